"""A layer at its place in a network: its inputs, its shapes, the layers that take its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from hwmodel.graph.layers import Layer, Shape
from hwmodel.specs.formats import Format
from hwmodel.work.problem import ProductPass
from hwmodel.work.tensor import Stated, stated_bits

__all__ = ["Node"]

# What every element of comes from the input as it is, or is 0; of operators without a model, too.
_KEEPS_VALUES = frozenset(
    {"concat", "expand", "max-pool", "pixel-shuffle", "pixel-unshuffle", "reshape", "slice"}
)
_OPERATORS_THAT_KEEP = frozenset(
    {
        "constant_pad_nd", "flip", "gather", "gatherelements", "index_select", "maxpool", "pad",
        "reflection_pad1d", "reflection_pad2d", "repeat", "replication_pad1d", "replication_pad2d",
        "roll", "slice", "tile", "transpose",
    }
)  # fmt: skip


class Node(NamedTuple):
    """A layer at its place in the graph. Shapes are (C, H, W) of one image."""

    layer: Layer
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    output_shape: Shape
    position: str  # among the layers with weights: "first", "last" or "middle"
    feeds: tuple[str, ...]  # kinds of layers that take the output, seen through pools and views
    consumers: tuple[Layer, ...]  # layers that take the output
    input_terms: int  # terms of +-1 that one element of an input can be the sum of, at most
    terms: int  # the same of the output
    signal_to: tuple[bool, ...]  # for each input, whether something before it is learned
    input_bits: tuple[Stated | None, ...]  # what the network itself states of each input [bit]
    weight_bits: Stated | Format | None  # what it states of the weights, its own or shared [bit]
    input_rates: tuple[float | None, ...] = ()  # of each input's spikes; None: it has none
    steps: int = 1  # of the network, in each of which every layer runs
    input_zeros: tuple[float, ...] = ()  # share of each input that is 0, as the network states it
    zeros: float = 0.0  # the same of the output
    lent: bool = False  # whether a layer that shares its weights gives a signal back

    @property
    def weights(self) -> int:
        """Elements of F that are this layer's own."""
        return 0 if self.layer.shares else self.layer.weights(self.input_shapes)

    @property
    def other_parameters(self) -> int:
        """Elements of biases, scales, shifts and tables that are this layer's own."""
        return 0 if self.layer.shares else self.layer.other_parameters(self.input_shapes)

    @property
    def bits(self) -> Stated | None:
        """Width of an element of the output that the network itself states [bit].

        A width stated before passes through what keeps values; of several, the widest.
        """
        stated = [bits for bits in self.input_bits if bits is not None]
        if self.layer.bits is not None or not _keeps_values(self.layer):
            return self.layer.bits
        return (
            max(stated, key=stated_bits) if stated and len(stated) == len(self.input_bits) else None
        )

    @property
    def stated(self) -> bool | Literal["floating"]:
        """Whether the file states all that a product reads; and then whether all of it floats."""
        weights = [self.weight_bits] if self.layer.weights(self.input_shapes) else []
        given = [*weights, *self.input_bits]
        if None in given:
            return False
        floats = [one.float if isinstance(one, Format) else isinstance(one, str) for one in given]
        return "floating" if given and all(floats) else not any(floats)

    @property
    def rate(self) -> float | None:
        """Share of the output that are spikes of 1 bit; None: it has other values."""
        if self.layer.kind == "spiking":
            return self.layer.rate
        rates = [rate for rate in self.input_rates if rate is not None]
        keeps = bool(rates) and len(rates) == len(self.input_rates) and _keeps_values(self.layer)
        return max(rates) if keeps else None

    @property
    def learned_weights(self) -> int:
        """Elements of F that are this layer's own and are trained."""
        return self.weights if self.layer.learned is True else 0

    @property
    def learned_parameters(self) -> int:
        """Elements of its own biases, scales, shifts and tables that are trained."""
        return 0 if self.layer.frozen else self.other_parameters

    @property
    def learns(self) -> bool:
        """Whether this layer or one before it is learned, so that its output has a loss signal."""
        layer, shapes = self.layer, self.input_shapes
        own = layer.weights(shapes) or layer.other_parameters(shapes)
        return any(self.signal_to) or (bool(own) and not layer.frozen)

    def wanted(self, phase: ProductPass) -> bool:
        """Whether what a pass of a product in training gives is wanted by anything.

        A signal is wanted at an input if something before it is learned; dF if the weights are.
        A recurrent layer wants the one to the step before, as long as anything of it learns.
        The second operand of an attention product is a tensor, and its dF the signal to it.
        """
        if phase == "forward":
            return True
        if phase == "backward_input":
            return self.learns if self.layer.kind == "recurrence" else self.signal_to[0]
        return self.signal_to[1] if len(self.signal_to) > 1 else self.layer.learned is True

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one pass over one image."""
        return self.layer.macs(self.input_shapes)

    @property
    def taken(self) -> Counter[int]:
        """Elements of one image's output by the number of layers that take them; slices take parts.

        The number of takers -> elements.
        """
        C, H, W = self.output_shape
        parts: dict[str, list[tuple[int, int]]] = {"channels": [], "rows": []}
        for layer in self.consumers:
            if layer.kind == "slice":
                parts[layer.axis].append((layer.start, layer.stop))
        whole = len(self.consumers) - sum(map(len, parts.values()))
        found: Counter[int] = Counter()
        for c, channels in _covered(C, parts["channels"]).items():
            for r, rows in _covered(H, parts["rows"]).items():
                found[whole + c + r] += channels * rows * W
        return found


def _keeps_values(layer: Layer) -> bool:
    """Whether the output has no value that the inputs do not have, but for 0."""
    if layer.kind == "upsample":
        return layer.interpolation == "nearest"
    if layer.kind == "activation":
        return layer.function == "relu"
    if layer.kind == "uncounted":
        return layer.operator.split()[0].lower() in _OPERATORS_THAT_KEEP
    return layer.kind in _KEEPS_VALUES


def _covered(length: int, parts: Sequence[tuple[int, int]]) -> Counter[int]:
    """Count the places along an axis by the number of parts (start to stop - 1) that cover them."""
    ends = sorted([(start, 1) for start, _ in parts] + [(stop, -1) for _, stop in parts])
    found: Counter[int] = Counter()
    depth = before = 0
    for place, step in [*ends, (length, 0)]:
        if place > before:
            found[depth] += place - before
        depth, before = depth + step, place
    return found
