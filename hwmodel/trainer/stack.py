"""What a method makes of a network's layers: the stack that is trained is the one that is priced.

The layers are those that a price is of, `Network.nodes` without the kinds that the method omits,
and the method's own rules say which weights have 1 bit and which activations are truth values.
What the rules ask for and the trainer does not do is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Literal, NamedTuple

from hwmodel.errors import SpecError
from hwmodel.graph.layers import Activation, Conv, MaxPool
from hwmodel.graph.network import INPUT, Network
from hwmodel.graph.node import Node
from hwmodel.model.widths import Edge, Treatment, edges, extra_work, treatment
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.method import Method

__all__ = ["Function", "Stack", "Values", "Weights", "stack"]

Weights = Literal["boolean", "binary", "real"]  # that flip; signs of latent ones; real ones
Function = Literal["threshold", "sign", "relu"]
Values = Literal["truth", "integer", "real"]

COUNTED = "full"  # of the widths only 1 bit and full precision matter, alike in every accounting
FUNCTIONS: tuple[Function, ...] = ("relu", "sign", "threshold")


class Stack(NamedTuple):
    """The layers in order, and what the method makes of them, by name."""

    nodes: tuple[Node, ...]
    weights: dict[str, Weights]  # of layers with products
    functions: dict[str, Function]  # of activations
    values: dict[str, Values]  # of the input and of every layer's output

    @property
    def flips(self) -> bool:
        """Whether some weights are trained by flips."""
        return "boolean" in self.weights.values()

    @property
    def normalised(self) -> bool:
        """Whether there are batch norms."""
        return any(node.layer.kind == "batch-norm" for node in self.nodes)


def stack(network: Network, method: Method) -> Stack:
    """The stack of a network under a method.

    Raises: SpecError, naming the layer, for what the trainer does not do; ShapeError.
    """
    beyond = method.untrained or (method.teacher and "it learns from a teacher")
    if beyond:
        raise SpecError(f"method {method.name} is not trained here: {beyond}")
    method.see_limited()
    where = f"network {network.name} is not trained by {method.name}: layer"
    nodes = network.nodes(frozenset(method.omits))
    accounting = load(Accounting, COUNTED)
    treatments = {n.layer.name: treatment(method, n, accounting) for n in nodes if n.macs}
    widths = edges(method, nodes, accounting)
    walk = _Walk(method, widths, treatments, accounting.widths.full_precision_bits)
    for node in nodes:
        try:
            walk.add(node)
            if node is not nodes[-1] and not node.consumers:
                raise ValueError("gives what no layer takes")
        except ValueError as error:
            raise SpecError(f"{where} {node.layer.name} {error}") from None
    last = nodes[-1].layer
    if last.kind != "linear" or walk.weights[last.name] != "real":
        raise SpecError(f"{where} {last.name} is the last one, and not linear with real weights")
    return Stack(nodes, walk.weights, walk.functions, walk.values)


@dataclass
class _Walk:
    """What is known of the layers on the way from the first to the last."""

    method: Method
    edges: dict[str, Edge]
    treatments: dict[str, Treatment]
    full: int  # of a full-precision word [bit]
    weights: dict[str, Weights] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    values: dict[str, Values] = field(default_factory=lambda: {INPUT: "real"})
    rows: set[str] = field(default_factory=set)  # tensors that are a row for each image

    def add(self, node: Node) -> None:
        """Take in the next layer. Raises: ValueError for what is not trained."""
        _check_shape(node)
        extra = [work.what for work in extra_work(self.method, node) if work.streamed is not None]
        if extra:
            raise ValueError(f"needs what no layer of the network does: {extra[0]}")
        row = [source in self.rows for source in node.inputs]
        if any(row) and (node.layer.kind in ("conv", "max-pool") or not all(row)):
            raise ValueError("takes images, and a linear layer before it gives rows")
        if any(row) or node.layer.kind == "linear":
            self.rows.add(node.layer.name)
        value = self.values[node.layer.name] = self._value(node)
        bits = self.edges[node.layer.name].bits
        if value != "truth" and not _held(node, self.edges[node.layer.name], self.full):
            raise ValueError(
                f"gives numbers of {bits} bit; trained are full precision and sums of truth values"
            )

    def _value(self, node: Node) -> Values:
        """What the layer gives."""
        taken = {self.values[source] for source in node.inputs}
        if node.layer.name in self.treatments:
            return self._product(node)
        if isinstance(node.layer, Activation):
            return self._activation(node.layer, "truth" in taken)
        if node.layer.kind == "max-pool":
            return taken.pop()
        return "integer" if node.layer.kind == "add" and taken == {"integer"} else "real"

    def _product(self, node: Node) -> Values:
        name, source = node.layer.name, node.inputs[0]
        found = self.treatments[name]
        weights = _weights(found, self.full)
        if weights is None:
            raise ValueError(
                f"has weights of {found.weight_bits} bit and signals of {found.weight_signal_bits} "
                "bit to them; trained are full precision, and weights of 1 bit that are signs of "
                "latent ones or flip"
            )
        signal = found.signal.bits if found.signal and weights != "boolean" else self.full
        if found.input_bits not in (None, 1, self.full) or signal != self.full:
            raise ValueError(
                f"reads inputs of {found.input_bits or self.full} bit and signals of {signal} bit; "
                "trained are full precision and truth values"
            )
        self.weights[name] = weights
        truth = self.values[source] == "truth"
        if (weights == "boolean" or found.input_bits == 1) and not truth:
            raise ValueError(
                f"reads truth values, and {source} gives none; put an activation there"
            )
        return "integer" if weights != "real" and truth else "real"

    def _activation(self, layer: Activation, of_truth: bool) -> Values:
        bits = self.edges[layer.name].bits
        flips = any(found.update == "boolean" for found in self.treatments.values())
        own: Function = "relu" if bits > 1 else "threshold" if flips else "sign"
        function = next((known for known in FUNCTIONS if known == layer.function), own)
        if of_truth or bits != (self.full if function == "relu" else 1):
            raise ValueError(
                f"is a {function} of {bits} bit{' on truth values' * of_truth}; trained are, on "
                "numbers, threshold and sign of 1 bit, relu in full precision"
            )
        self.functions[layer.name] = function
        return "real" if function == "relu" else "truth"


def _weights(found: Treatment, full: int) -> Weights | None:
    """How weights of such a treatment are trained; None: not at all."""
    if found.update == "boolean":
        return "boolean" if found.weight_bits == 1 else None
    if found.weight_signal_bits != full:
        return None
    if found.weight_bits == 1:
        return "binary"
    return "real" if found.weight_bits == found.read(full).bits == full else None


def _held(node: Node, edge: Edge, full: int) -> bool:
    """Whether numbers are as wide as they are priced; of 1 bit where a threshold alone follows."""
    if edge.bits == 1:
        return set(node.feeds) == {"activation"}
    return edge.bits in (full, edge.sum_bits)


def _square(node: Node) -> bool:
    conv: Conv = node.layer  # type: ignore[assignment]
    sides = (conv.kernel, conv.stride, conv.padding, (1, conv.groups, *conv.dilation))
    return all(len({*side}) == 1 for side in sides)


def _quarter(node: Node) -> bool:
    pool: MaxPool = node.layer  # type: ignore[assignment]
    windows = {pool.kernel, pool.stride or pool.kernel}
    return windows == {(2, 2)} and not any(pool.padding) and not pool.partial


# Kinds of layers that are trained: which of them, in code and in words.
_TRAINED: dict[str, tuple[Callable[[Node], bool], str]] = {
    "activation": (
        lambda node: getattr(node.layer, "function", "") in ("method", *FUNCTIONS),
        f"activations of function method, {', '.join(FUNCTIONS)}",
    ),
    "add": (lambda node: len({*node.input_shapes}) == 1, "sums of tensors of one shape"),
    "batch-norm": (lambda node: bool(node.other_parameters), "batch norms with scale and shift"),
    "conv": (_square, "square convolutions without groups and dilation, padded alike all round"),
    "linear": (
        lambda node: prod(node.output_shape[1:]) == 1,
        "linear layers over all of their input",
    ),
    "max-pool": (_quarter, "max-pools of 2 x 2 that do not overlap"),
}


def _check_shape(node: Node) -> None:
    """See that a layer is one that is trained. Raises: ValueError, with those that are."""
    kind = node.layer.kind
    if kind not in _TRAINED:
        raise ValueError(f"is of kind {kind}; trained are {', '.join(_TRAINED)}")
    holds, trained = _TRAINED[kind]
    if node.layer.shares:
        raise ValueError("shares its weights; trained are layers with weights of their own")
    if node.layer.learned is not True:
        raise ValueError(
            "is frozen, wholly or in part; trained are layers that learn all they have"
        )
    if not holds(node):
        raise ValueError(f"is none of those that are trained: {trained}")
