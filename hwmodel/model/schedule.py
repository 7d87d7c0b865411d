"""The schedule of a run: its work in order, step by step, and the tensors that each step uses.

A **step** is one product, or all other work of one layer in one pass. Steps go forward layer by
layer; then back from the last layer to the first: the sum of several signals, the operator's own
way back, the product backward_weight, the product backward_input; then come the updates.

A **tensor** is a thing in memory, whatever it is called in a pass:

    a:L       what layer L gives; a:input what the network is given
    c8:L      the 8-bit copy of it, for products
    sum:L     the sum that is kept for the way back beside it; index:L what a pool keeps
    d:L       the signal with respect to a:L; d:L<T what taker T gives to it, of several
    F:L, P:L  weights; biases, scales, shifts or a table
    dF:L      their gradient, or the votes on it; m(F):L a state; latent F:L; accumulator F:L

One tensor has several names where nothing is written: what a layer gives without writing is its
input (a view, a threshold on words of 1 bit), and the signal that it passes on without writing is
its own (a view, a sum).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from math import prod
from typing import NamedTuple

from hwmodel.graph.layers import INPUT, Shape
from hwmodel.graph.node import Node
from hwmodel.model.ledger import Component
from hwmodel.model.widths import Edge
from hwmodel.model.workload import Job, workload
from hwmodel.work.tensor import Direction, Pass, Role, Tensor, TensorKind
from hwmodel.work.work import Move, Multiply, Work

__all__ = ["Part", "Step", "Use", "everything", "schedule"]

FORWARD, BACK, WEIGHT, UPDATE = Pass
READ, WRITE = Direction.READ, Direction.WRITE


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

    @property
    def kind(self) -> TensorKind:
        """What they are for the outermost memories."""
        return _KINDS.get(self, TensorKind.MAPS)

    @property
    def is_kept(self) -> bool:
        """Whether they live on into the next iteration."""
        return self.kind in (TensorKind.WEIGHTS, TensorKind.STATE)


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
    Role.LATENT: ("latent {name}", Part.LATENT),
    Role.MOMENT: ("{name}", Part.MOMENTS),
    Role.ACCUMULATOR: ("accumulator {name}", Part.ACCUMULATORS),
}


class Step(NamedTuple):
    """One product, or all other work of a layer in a pass."""

    layer: str
    pass_: Pass
    component: Component

    def __str__(self) -> str:
        return f"{self.pass_} of {self.layer}"


class Lying(NamedTuple):
    """A tensor as it lies in memory."""

    name: str
    part: Part
    bits: int  # of all elements that it has [bit]


class Use(NamedTuple):
    """A tensor is read or written at a step."""

    name: str
    part: Part
    bits: int  # of all elements that it has [bit]
    direction: Direction


def everything(job: Job) -> Job:
    """Return the job with nothing left out that needs memory, whether or not it is counted.

    Operators stream, what the way back needs is stored, Boolean weights have accumulators, a
    teacher runs. An optimizer `none` is one without states.
    """
    extras = job.accounting.extras
    optimizer = "sgd" if extras.optimizer == "none" else extras.optimizer
    whole = {"elementwise": "streamed", "stored_activations": True, "boolean_update": True}
    more = extras.model_copy(update={**whole, "optimizer": optimizer, "teacher": True})
    return job._replace(accounting=job.accounting.model_copy(update={"extras": more}))


def schedule(
    nodes: Sequence[Node], edges: Mapping[str, Edge], job: Job, prefix: str = ""
) -> Iterator[tuple[Step, list[Use]]]:
    """Yield the steps of a run in order, each with the tensors that it uses.

    Args:
        job: of which `everything` has left nothing out.
        prefix: of the names of layers and tensors, where several networks run.
    """
    for step, uses in _Schedule(nodes, edges, job).steps():
        named = [use._replace(name=f"{prefix}{use.name}") for use in uses]
        yield step._replace(layer=f"{prefix}{step.layer}"), named


class _Schedule:
    """The work of a run by layer, and the names of its tensors."""

    def __init__(self, nodes: Sequence[Node], edges: Mapping[str, Edge], job: Job) -> None:
        self.nodes, self.edges, self.job = tuple(nodes), edges, job
        self.named = {node.layer.name: node for node in nodes}
        self.works: dict[str, list[Work]] = {name: [] for name in self.named}
        for layer, work in workload(self.nodes, edges, job):
            self.works[layer].append(work)
        self.takers: dict[str, list[tuple[Node, int]]] = {}
        for node in nodes:
            for place, source in enumerate(node.inputs):
                self.takers.setdefault(source, []).append((node, place))
        self.forks = {
            name
            for name, works in self.works.items()
            for work in works
            if isinstance(work, Move) and work.tensor.role == Role.FORK
        }
        self.maps: dict[str, Lying] = {}  # by the layer that gives them
        for node in nodes:
            self.maps[node.layer.name] = self._map(node)
        self.signals: dict[str, list[Lying]] = {}
        for node in reversed(nodes):
            if job.trains and node.learns:
                self.signals[node.layer.name] = self._signal(node)

    def steps(self) -> Iterator[tuple[Step, list[Use]]]:
        """Yield the forward pass, the way back and the updates."""
        ends = [node.layer.name for node in self.nodes if node.layer.name not in self.takers]
        forward = [step for node in self.nodes for step in self._forward(node)]
        if not forward:  # views alone
            last = ends[-1] if ends else INPUT
            forward = [(Step(last, FORWARD, Component.ELEMENTWISE), [])]
        # A loss, or whoever asked, takes what the network gives.
        forward[-1][1].extend(Use(*self.maps[name], READ) for name in ends)
        yield from forward
        if not self.job.trains:
            return
        back = [step for node in reversed(self.nodes) for step in self._back(node)]
        if back:
            learned = [name for name in ends if self.named[name].learns]
            lost = [Use(*one, WRITE) for name in learned for one in self.signals[name]]
            back[0][1][:0] = lost  # all of them are there when the way back begins
        yield from back
        for node in self.nodes:
            moves = [work for work in self.works[node.layer.name] if work.pass_ == UPDATE]
            yield from self._step(node, UPDATE, Component.ELEMENTWISE, self._used(node, moves))

    def _forward(self, node: Node) -> Iterator[tuple[Step, list[Use]]]:
        works = [work for work in self.works[node.layer.name] if work.pass_ == FORWARD]
        products = [work for work in works if isinstance(work, Multiply)]
        others = [work for work in works if not isinstance(work, Multiply)]
        yield from self._step(node, FORWARD, Component.PRODUCT, self._used(node, products))
        used = self._used(node, others)
        if node.layer.kind == "uncounted":
            used += [Use(*self._given(source), READ) for source in node.inputs]
            used.append(Use(*self.maps[node.layer.name], WRITE))
        if node.other_parameters:
            used.append(Use(*self._parameters(node, "P", self._full), READ))
        yield from self._step(node, FORWARD, Component.ELEMENTWISE, used)

    def _back(self, node: Node) -> Iterator[tuple[Step, list[Use]]]:
        works = self.works[node.layer.name]
        products = [work for work in works if isinstance(work, Multiply)]
        moves = [work for work in works if isinstance(work, Move)]
        forks = [one for one in moves if one.tensor.role == Role.FORK]
        own = [one for one in moves if one.pass_ == BACK and one not in forks]
        yield from self._step(node, BACK, Component.ELEMENTWISE, self._used(node, forks))
        used = self._used(node, own)
        if node.layer.kind == "uncounted" and node.learns:
            used += [Use(*one, READ) for one in self.signals[node.layer.name]]
            for place, wanted in enumerate(node.signal_to):
                used += [Use(*one, WRITE) for one in self._passed(node, place) if wanted]
        yield from self._step(node, BACK, Component.ELEMENTWISE, used)
        of_weights = [work for work in products if work.pass_ == WEIGHT]
        yield from self._step(node, WEIGHT, Component.PRODUCT, self._used(node, of_weights))
        used = self._used(node, [one for one in moves if one.pass_ == WEIGHT])
        if node.learned_parameters:
            used.append(Use(*self._parameters(node, "dP", self._full), WRITE))
        yield from self._step(node, WEIGHT, Component.ELEMENTWISE, used)
        of_inputs = [work for work in products if work.pass_ == BACK]
        yield from self._step(node, BACK, Component.PRODUCT, self._used(node, of_inputs))

    @staticmethod
    def _step(
        node: Node, pass_: Pass, component: Component, used: list[Use]
    ) -> Iterator[tuple[Step, list[Use]]]:
        if used:
            yield Step(node.layer.name, pass_, component), used

    def _used(self, node: Node, works: Sequence[Work]) -> list[Use]:
        found = []
        for work in works:
            if isinstance(work, Multiply):
                ends = (work.I, READ), (work.F, READ), (work.O, WRITE)
                found += [
                    Use(*one, way) for tensor, way in ends for one in self._operand(node, tensor)
                ]
            elif isinstance(work, Move):
                found += [
                    Use(*one, work.direction)
                    for one in self._moved(node, work.tensor, work.direction)
                ]
        return found

    def _operand(self, node: Node, tensor: Tensor) -> list[Lying]:
        """What lies at a place of a product: products read narrower copies of wide tensors."""
        place = int(tensor.second)
        if tensor.kind == TensorKind.MAPS and tensor.name != "O":
            source = node.inputs[place]
            if tensor.bits == self.edges[source].bits:
                return [self._given(source)]
            bits = tensor.elements * tensor.bits
            return [Lying(f"c{tensor.bits}:{source}", Part.COPIES, bits)]
        if tensor.name == "dI" or tensor.second:
            return self._passed(node, place)
        return self._moved(node, tensor, READ)

    def _moved(self, node: Node, tensor: Tensor, way: Direction) -> list[Lying]:
        """What is moved, by role and letter."""
        name, role = node.layer.name, tensor.role
        if role in _OWN or tensor.name == "index":
            word, part = _OWN.get(role, ("index", Part.INDICES))
            word = word.format(name=tensor.name, bits=tensor.bits)
            return [Lying(f"{word}:{name}", part, tensor.elements * tensor.bits)]
        if tensor.name in ("F", "P", "dF", "dP"):
            return self._of_weights(node, tensor, way)
        if tensor.name in ("I", "dI"):
            place = max(tensor.index, 1) - 1
            given = tensor.name == "I"
            return [self._given(node.inputs[place])] if given else self._passed(node, place)
        if tensor.name == "O":
            return [self.maps[name]]
        if role == Role.FORK and way == READ:
            return [one for taker in self.takers[name] for one in self._passed(*taker)]
        return self.signals[name]

    def _of_weights(self, node: Node, tensor: Tensor, way: Direction) -> list[Lying]:
        """Weights or a gradient; that of shared weights is added to that of their owner."""
        own = self._parameters(node, tensor.name, tensor.bits)
        if tensor.role != Role.SHARED:
            return [own]
        owner = own._replace(name=f"{own.name.partition(':')[0]}:{node.layer.shares}")
        return [own, owner] if way == READ else [owner]

    @property
    def _full(self) -> int:
        return self.job.accounting.widths.full_precision_bits

    def _size(self, shape: Shape, bits: int) -> int:
        return self.job.batch * prod(shape) * bits

    def _parameters(self, node: Node, letter: str, bits: int) -> Lying:
        """Weights of a product are F, a table or other parameters P; gradients are each layer's."""
        layer, shapes = node.layer, node.input_shapes
        owner = node if letter.startswith("d") else self.named.get(layer.shares or "", node)
        number = layer.other_parameters(shapes)
        if letter.endswith("F"):
            number = layer.weights(shapes) or number
            if not owner.layer.weights(owner.input_shapes):
                letter = letter.replace("F", "P")
        part = Part.GRADIENTS if letter.startswith("d") else Part.WEIGHTS
        return Lying(f"{letter}:{owner.layer.name}", part, number * bits)

    def _given(self, source: str) -> Lying:
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
            return self._parameters(node, "P", self._full)
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
        return self._given(node.inputs[0])

    def _signal(self, node: Node) -> list[Lying]:
        """The signal with respect to what a layer gives: of slices without overlap, a part each."""
        name = node.layer.name
        if name in self.takers and name not in self.forks:
            return [one for taker in self.takers[name] for one in self._passed(*taker)]
        bits = self._size(node.output_shape, self.edges[name].signal_bits)
        return [Lying(f"d:{name}", Part.SIGNALS, bits)]

    def _passed(self, taker: Node, place: int) -> list[Lying]:
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
