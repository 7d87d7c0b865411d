"""The tensors that lie in memory during a run, and their names.

A **tensor** is a thing in memory, whatever it is called in a pass:

    a:L       what layer L gives; a:input what the network is given
    c8:L      the 8-bit copy of it, for products
    sum:L     the sum that is kept for the way back beside it; index:L what a pool keeps
    d:L       the signal with respect to a:L; d:L<T what taker T gives to it, of several
    cache:L   keys or values of tokens before, that attention product L reads
    F:L, P:L  weights; biases, scales, shifts or a table
    dF:L      their gradient, or the votes on it; m(F):L a state; latent F:L; accumulator F:L

One tensor has several names where nothing is written: what a layer gives without writing is its
input (a view, a threshold on words of 1 bit), and the signal that it passes on without writing is
its own (a view, a sum).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from math import prod
from typing import NamedTuple

from hwmodel.graph.attended import past
from hwmodel.graph.layers import Shape
from hwmodel.graph.node import Node
from hwmodel.model.widths import Edge
from hwmodel.model.workload import Job
from hwmodel.work.problem import OPERANDS
from hwmodel.work.tensor import (
    Bits,
    Direction,
    Pass,
    Role,
    Tensor,
    TensorKind,
    shown,
    whole_bits,
)
from hwmodel.work.work import Move, Multiply, Work

__all__ = ["Lying", "Names", "Part"]

FORWARD = Pass.FORWARD
TORCH_INDEX = 64  # bits of an index of a max-pool, a whole number of PyTorch
READ = Direction.READ


class Part(StrEnum):
    """Classes of tensors, finer than kinds."""

    WEIGHTS = "weights"  # biases, scales, shifts and tables among them
    LATENT = "latent weights"
    MOMENTS = "optimizer states"
    ACCUMULATORS = "accumulators"
    GRADIENTS = "weight gradients"
    ACTIVATIONS = "activations"
    COPIES = "copies"
    INDICES = "indices of pools"
    SUMS = "kept sums"
    SIGNALS = "signals"
    CACHE = "cache"  # keys and values of tokens that were there before

    @property
    def kind(self) -> TensorKind:
        """What they are for the outermost memories."""
        return _KINDS.get(self, TensorKind.MAPS)

    @property
    def is_kept(self) -> bool:
        """Whether they live on into the next iteration."""
        return self == Part.CACHE or self.kind in (TensorKind.WEIGHTS, TensorKind.STATE)


_KINDS = {
    Part.WEIGHTS: TensorKind.WEIGHTS,
    Part.LATENT: TensorKind.STATE,
    Part.MOMENTS: TensorKind.STATE,
    Part.ACCUMULATORS: TensorKind.STATE,
    Part.GRADIENTS: TensorKind.GRADIENTS,
    Part.SIGNALS: TensorKind.SIGNALS,
}
# What has a name of its own beside the tensor that it is of.
_OWN = {
    Role.COPY: ("c{bits}", Part.COPIES),
    Role.KEPT_SUM: ("sum", Part.SUMS),
    Role.LOG_SUM: ("log-sum", Part.SUMS),
    Role.LATENT: ("latent {name}", Part.LATENT),
    Role.MOMENT: ("{name}", Part.MOMENTS),
    Role.ACCUMULATOR: ("accumulator {name}", Part.ACCUMULATORS),
}


class Lying(NamedTuple):
    """A tensor as it lies in memory."""

    name: str
    part: Part
    bits: int  # of all elements that it has [bit]


class Names:
    """The names of all tensors that the works of a run use.

    Args:
        works: of each layer, with nothing left out.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        edges: Mapping[str, Edge],
        job: Job,
        works: Mapping[str, Sequence[Work]],
    ) -> None:
        self.edges, self.job, self.works = edges, job, works
        self.named = {node.layer.name: node for node in nodes}
        self.takers: dict[str, list[tuple[Node, int]]] = {}
        for node in nodes:
            for place, source in enumerate(node.inputs):
                self.takers.setdefault(source, []).append((node, place))
        self.forks = {
            name
            for name, own in works.items()
            for work in own
            if isinstance(work, Move) and work.tensor.role == Role.FORK
        }
        self.maps: dict[str, Lying] = {}  # by the layer that gives them
        for node in nodes:
            self.maps[node.layer.name] = self._map(node)
        self.signals: dict[str, list[Lying]] = {}
        for node in reversed(nodes):
            if job.trains and node.learns:
                self.signals[node.layer.name] = self._signal(node)

    def of(self, layer: str, work: Work) -> tuple[tuple[Lying, ...], ...]:
        """Return what lies at I, F and O of a product, or what a move moves; each may be parts."""
        node = self.named[layer]
        if isinstance(work, Multiply):
            moved = (*work.kernel.moved, "O") if work.kernel else OPERANDS
            return tuple(
                tuple(self._operand(node, tensor)) if operand in moved else ()
                for operand, tensor in work.operands.items()
            )
        if isinstance(work, Move):
            return (tuple(self._moved(node, work.tensor, work.direction)),)
        return ()

    def _operand(self, node: Node, tensor: Tensor) -> list[Lying]:
        """What lies at a place of a product: products read narrower copies of wide tensors."""
        place = int(tensor.second)
        if tensor.kind == TensorKind.MAPS and tensor.name != "O":
            source = node.inputs[place]
            before = self._before(node, tensor)
            if tensor.bits == self.edges[source].bits:
                return [self.given(source), *before]
            bits = whole_bits(tensor.elements, tensor.bits)
            return [Lying(f"c{shown(tensor.bits)}:{source}", Part.COPIES, bits), *before]
        if tensor.name == "dI" or tensor.second:
            return self.passed(node, place)
        if tensor.name == "dO" and tensor.bits < self.edges[node.layer.name].signal_bits:
            return [self._copy(node, tensor)]
        return self._moved(node, tensor, READ)

    def _before(self, node: Node, tensor: Tensor) -> list[Lying]:
        """Keys or values of earlier tokens, at the place of the second operand of an attention."""
        before = past(node.layer)
        if not (before and tensor.second):
            return []
        bits = self._size((node.input_shapes[1][0], before, 1), tensor.bits)
        return [Lying(f"cache:{node.layer.name}", Part.CACHE, bits)]

    def _moved(self, node: Node, tensor: Tensor, way: Direction) -> list[Lying]:
        """What is moved, by role and letter."""
        name, role = node.layer.name, tensor.role
        if role == Role.STATES:
            part = Part.SIGNALS if tensor.name == "dO" else Part.ACTIVATIONS
            return [
                Lying(f"states {tensor}:{name}", part, whole_bits(tensor.elements, tensor.bits))
            ]
        if role in _OWN or tensor.name == "index":
            word, part = _OWN.get(role, ("index", Part.INDICES))
            if role == Role.COPY and tensor.name in ("dO", "F"):
                return [self._copy(node, tensor)]
            word = word.format(name=tensor.name, bits=shown(tensor.bits))
            bits = TORCH_INDEX if part == Part.INDICES and self.as_torch else tensor.bits
            owner = (
                node.layer.shares or name if role == Role.LATENT else name
            )  # shared weights: one
            return [Lying(f"{word}:{owner}", part, whole_bits(tensor.elements, bits))]
        if tensor.name in ("F", "P", "dF", "dP"):
            return self._of_weights(node, tensor, way)
        if tensor.name in ("I", "dI"):
            place = max(tensor.index, 1) - 1
            given = tensor.name == "I"
            return [self.given(node.inputs[place])] if given else self.passed(node, place)
        if tensor.name == "O":
            return [self.maps[name]]
        if role == Role.FORK and way == READ:
            return [one for taker in self.takers[name] for one in self.passed(*taker)]
        return self.signals[name]

    def _copy(self, node: Node, tensor: Tensor) -> Lying:
        """Narrower words of a signal or of weights, of which products on the way back read."""
        part = Part.SIGNALS if tensor.name == "dO" else Part.WEIGHTS
        owner = node if tensor.name == "dO" else self.named.get(node.layer.shares or "", node)
        letter = "d" if tensor.name == "dO" else "F"
        name = f"c{shown(tensor.bits)}{letter}:{owner.layer.name}"
        return Lying(name, part, whole_bits(tensor.elements, tensor.bits))

    def _of_weights(self, node: Node, tensor: Tensor, way: Direction) -> list[Lying]:
        """Weights or a gradient; that of shared weights is added to that of their owner."""
        own = self.parameters(node, tensor.name, tensor.bits)
        if tensor.role != Role.SHARED:
            return [own]
        owner = own._replace(name=f"{own.name.partition(':')[0]}:{node.layer.shares}")
        return [own, owner] if way == READ else [owner]

    @property
    def as_torch(self) -> bool:
        """Whether pools keep what PyTorch's keep."""
        return self.job.accounting.extras.kept == "pytorch"

    @property
    def full(self) -> int:
        """A full-precision word [bit]."""
        return self.job.accounting.widths.full_precision_bits

    def _size(self, shape: Shape, bits: Bits) -> int:
        steps = next(iter(self.named.values())).steps
        return whole_bits(self.job.batch * steps * prod(shape), bits)

    def parameters(self, node: Node, letter: str, bits: Bits) -> Lying:
        """Weights of a product are F, a table or other parameters P; gradients are each layer's."""
        layer, shapes = node.layer, node.input_shapes
        owner = node if letter.startswith("d") else self.named.get(layer.shares or "", node)
        number = layer.other_parameters(shapes)
        if letter.endswith("F"):
            number = layer.weights(shapes) or number
            if not owner.layer.weights(owner.input_shapes):
                letter = letter.replace("F", "P")
        part = Part.GRADIENTS if letter.startswith("d") else Part.WEIGHTS
        return Lying(f"{letter}:{owner.layer.name}", part, whole_bits(number, bits))

    def given(self, source: str) -> Lying:
        """The tensor that a layer gives, or the network's input."""
        if source in self.maps:
            return self.maps[source]
        taker, place = self.takers[source][0]
        bits = self._size(taker.input_shapes[place], self.edges[source].bits)
        return Lying(f"a:{source}", Part.ACTIVATIONS, bits)

    def _map(self, node: Node) -> Lying:
        """What a layer gives: its input, where it writes nothing."""
        name = node.layer.name
        if node.layer.kind == "source" and node.other_parameters:
            return self.parameters(node, "P", self.full)
        writes = any(
            work.tensor.name == "O" and work.tensor.role == Role.OPERAND
            if isinstance(work, Move)
            else isinstance(work, Multiply)
            for work in self.works[name]
            if work.pass_ == FORWARD
        )
        if writes or not node.inputs or node.layer.kind == "uncounted":
            bits = self._size(node.output_shape, self.edges[name].bits)
            return Lying(f"a:{name}", Part.ACTIVATIONS, bits)
        return self.given(node.inputs[0])

    def _signal(self, node: Node) -> list[Lying]:
        """The signal with respect to what a layer gives: of slices without overlap, a part each."""
        name = node.layer.name
        if name in self.takers and name not in self.forks:
            return [one for taker in self.takers[name] for one in self.passed(*taker)]
        bits = self._size(node.output_shape, self.edges[name].signal_bits)
        return [Lying(f"d:{name}", Part.SIGNALS, bits)]

    def passed(self, taker: Node, place: int) -> list[Lying]:
        """The signal that a layer passes on to an input: its own, where it writes none."""
        source, name = taker.inputs[place], taker.layer.name
        if taker.layer.kind != "uncounted" and (name, place) not in self._writing:
            return self.signals[name]
        alone = len(self.takers[source]) == 1
        twice = f".{place + 1}" if taker.inputs.count(source) > 1 else ""
        bits = self._size(taker.input_shapes[place], self.edges[source].signal_bits)
        return [Lying(f"d:{source}" + ("" if alone else f"<{name}{twice}"), Part.SIGNALS, bits)]

    @cached_property
    def _writing(self) -> set[tuple[str, int]]:
        """The layers that write a signal to an input, and the place of that."""
        found = set()
        for name, works in self.works.items():
            for work in works:
                if isinstance(work, Multiply) and (work.O.name == "dI" or work.O.second):
                    found.add((name, int(work.O.second)))
                elif isinstance(work, Move) and work.tensor.name == "dI":
                    found.add((name, max(work.tensor.index, 1) - 1))
        return found
