"""A layer at its place in a network: its inputs, its shapes, the layers that take its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hwmodel.graph.layers import Layer, Shape

__all__ = ["Node"]


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
    input_bits: tuple[int | None, ...]  # what the network itself states of each input [bit]

    @property
    def weights(self) -> int:
        """Elements of F that are this layer's own."""
        return 0 if self.layer.shares else self.layer.weights(self.input_shapes)

    @property
    def other_parameters(self) -> int:
        """Elements of biases, scales, shifts and tables that are this layer's own."""
        return 0 if self.layer.shares else self.layer.other_parameters(self.input_shapes)

    @property
    def learns(self) -> bool:
        """Whether this layer or one before it is learned, so that its output has a loss signal."""
        layer, shapes = self.layer, self.input_shapes
        return bool(any(self.signal_to) or layer.weights(shapes) or layer.other_parameters(shapes))

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
