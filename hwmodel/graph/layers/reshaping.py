"""Layers that change the shape: pools, shuffles, joins and cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Literal

from pydantic import Field

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.base import MAX_EXTENT, BaseLayer, Learned, Pair, Positive, Shape, Sliding
from hwmodel.specs.files import Flag, Text, Whole
from hwmodel.work.tensor import Pass, Role
from hwmodel.work.work import Operate, Tensors, Works, read, write

__all__ = ["AveragePool", "Concat", "Expand", "GlobalAveragePool", "MaxPool", "PixelShuffle"]
__all__ += ["PixelUnshuffle", "Reshape", "Slice", "Source", "Uncounted", "Upsample"]

MAX_ELEMENTS = MAX_EXTENT**3

FORWARD, BACK, WEIGHT, *_ = Pass


class _Pool(Sliding):
    """A window whose `stride` defaults to its size."""

    stride: Pair | None = None
    partial: Flag = Field(default=False, description="whether a last partial step counts")

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(C, HO, WO). Raises: ShapeError."""
        shape = self.one(inputs)
        return shape[0], *self.slide(shape, self.stride or self.kernel, partial=self.partial)


class MaxPool(_Pool):
    """The largest element under each window."""

    kind: Literal["max-pool"]

    def work(self, t: Tensors) -> Works:
        """Comparisons within the window; back, the index of the largest, kept since."""
        bits = (self.window - 1).bit_length()
        index = [replace(t.O, name="index", bits=bits, role=Role.SAVED)] if bits else []
        yield from read(FORWARD, t.I)
        yield t.operate(FORWARD, "add", self.window - 1, f"comparisons of {self.window}")
        yield from write(FORWARD, t.O)
        yield from write(FORWARD, *index, why=f"which of {self.window} was the largest")
        yield from read(BACK, t.dO, *index)
        yield from write(BACK, t.dI)


class AveragePool(_Pool):
    """The mean under each window."""

    kind: Literal["average-pool"]

    def work(self, t: Tensors) -> Works:
        """Additions within the window and a factor; backward, the factor."""
        yield from _mean(t, self.window)


class GlobalAveragePool(BaseLayer):
    """The mean of each channel."""

    kind: Literal["global-average-pool"]

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(C, 1, 1)."""
        return self.one(inputs)[0], 1, 1

    def work(self, t: Tensors) -> Works:
        """Additions over the channel and a factor; backward, the factor."""
        yield from _mean(t, t.I.elements // t.O.elements)


class PixelShuffle(BaseLayer):
    """Channels to places: (C f^2, H, W) gives (C, f H, f W)."""

    kind: Literal["pixel-shuffle"]
    factor: Positive

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(C / f^2, f H, f W). Raises: ShapeError."""
        (C, H, W), f = self.one(inputs), self.factor
        if C % f**2:
            raise ShapeError(
                f"layer {self.name}: factor {f} squared does not divide the {C} channels"
            )
        return C // f**2, f * H, f * W

    def work(self, t: Tensors) -> Works:
        """Every word is read and written; nothing is fused."""
        yield from _rearranged(t)


class PixelUnshuffle(BaseLayer):
    """Places to channels: (C, f H, f W) gives (C f^2, H, W)."""

    kind: Literal["pixel-unshuffle"]
    factor: Positive

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(C f^2, H / f, W / f). Raises: ShapeError."""
        (C, H, W), f = self.one(inputs), self.factor
        if H % f or W % f:
            raise ShapeError(
                f"layer {self.name}: factor {f} does not divide the rows and columns of {(C, H, W)}"
            )
        return C * f**2, H // f, W // f

    def work(self, t: Tensors) -> Works:
        """Every word is read and written; nothing is fused."""
        yield from _rearranged(t)


class Upsample(BaseLayer):
    """Larger images by repetition or by interpolation."""

    kind: Literal["upsample"]
    size: Pair | None = Field(default=None, description="rows and columns of the output")
    factor: Positive | None = None
    interpolation: Literal["nearest", "bilinear"] = "nearest"

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(C, size), or (C, f H, f W). Raises: ShapeError."""
        C, H, W = self.one(inputs)
        if (self.size is None) == (self.factor is None):
            raise ShapeError(f"layer {self.name}: give either size or factor")
        rows, columns = self.size or (H * (self.factor or 1), W * (self.factor or 1))
        return C, rows, columns

    def work(self, t: Tensors) -> Works:
        """Each place repeated, or a weighted sum of four neighbours; the way back sums them up."""
        weights = 4 if self.interpolation == "bilinear" else 0
        yield from read(FORWARD, t.I)
        yield t.operate(FORWARD, "mac", weights, "weighted neighbours")
        yield from write(FORWARD, t.O)
        yield from read(BACK, t.dO)
        yield t.operate(BACK, "add", why="signals of the copies added up")
        yield t.operate(BACK, "mac", weights, "weighted neighbours")
        yield from write(BACK, t.dI)


class Concat(BaseLayer):
    """Channels, or rows (tokens), of several tensors one after the other."""

    kind: Literal["concat"]
    inputs: tuple[str, ...] = Field(min_length=2, max_length=1024)
    axis: Literal["channels", "rows"] = "channels"

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(sum of C, H, W), or (C, sum of H, W). Raises: ShapeError."""
        along, others = (0, "rows or columns") if self.axis == "channels" else (1, "other axes")
        sizes = list(inputs[0])
        for shape in inputs[1:]:
            if any(shape[axis] != sizes[axis] for axis in range(3) if axis != along):
                raise ShapeError(
                    f"layer {self.name}: cannot join {inputs[0]} and {shape}, "
                    f"which differ in {others}"
                )
            sizes[along] += shape[along]
        return sizes[0], sizes[1], sizes[2]

    def work(self, t: Tensors) -> Works:
        """Every word is read and written; nothing is fused."""
        yield from _rearranged(t)


class Slice(BaseLayer):
    """Channels or rows (tokens) `start` to `stop` - 1; a view, nothing moves."""

    kind: Literal["slice"]
    start: Whole = Field(ge=0)
    stop: Positive
    axis: Literal["channels", "rows"] = "channels"

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(stop - start, H, W), or (C, stop - start, W). Raises: ShapeError."""
        shape = self.one(inputs)
        length = self.stop - self.start
        if not self.start < self.stop <= shape[0 if self.axis == "channels" else 1]:
            raise ShapeError(
                f"layer {self.name}: {self.axis} {self.start} to {self.stop} of an input {shape}"
            )
        return (length, *shape[1:]) if self.axis == "channels" else (shape[0], length, shape[2])


class Reshape(BaseLayer):
    """The same elements in another shape; a view, nothing moves."""

    kind: Literal["reshape"]
    shape: tuple[Positive, Positive, Positive]

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """`shape`. Raises: ShapeError."""
        given = self.one(inputs)
        if prod(given) != prod(self.shape):
            raise ShapeError(
                f"layer {self.name}: {given} has {prod(given):,} elements, {self.shape} has "
                f"{prod(self.shape):,}"
            )
        return self.shape


class Expand(BaseLayer):
    """Elements repeated along axes that are 1 long, or in whole groups; a view, nothing moves.

    Who takes it reads the elements as often as they are repeated.
    """

    kind: Literal["expand"]
    shape: tuple[Positive, Positive, Positive]
    overlapping: Flag = Field(
        default=False,
        description="whether the groups are under windows that overlap, so that not all elements "
        "are repeated equally often",
    )

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """`shape`. Raises: ShapeError where it has not a whole number of its input's elements."""
        given = self.one(inputs)
        if prod(self.shape) % prod(given) and not self.overlapping:
            raise ShapeError(
                f"layer {self.name}: {self.shape} has {prod(self.shape):,} elements, which are no "
                f"multiple of the {prod(given):,} of {given}"
            )
        return self.shape

    def work(self, t: Tensors) -> Works:
        """Nothing forward; backward, the signals of what is one element are added up."""
        yield from read(BACK, t.dO)
        yield t.operate(BACK, "add")
        yield from write(BACK, t.dI)


class Source(BaseLayer):
    """A tensor that no layer computes: a further input of the network, or a learned constant."""

    kind: Literal["source"]
    shape: tuple[Positive, Positive, Positive]
    learned: Learned = Field(
        default=False,
        description="position embeddings, a class token; frozen: parameters, not trained",
    )

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """`shape`. Raises: ShapeError where it is given inputs."""
        self.exactly(0, inputs)
        return self.shape

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """All of its elements, unless it is a further input."""
        return prod(self.shape) * bool(self.learned)

    def work(self, t: Tensors) -> Works:
        """Nothing forward: who takes it reads it. If learned, its signals summed over images."""
        if not self.frozen:
            yield from write(WEIGHT, t.dF)
            yield from read(WEIGHT, t.dO)
            why = "signals of the images added up"
            yield Operate(WEIGHT, "add", t.O, operands=(t.dF, t.dO), why=why)


class Uncounted(BaseLayer):
    """An operator that has no model: its output's shape is known, its cost is listed as missing."""

    kind: Literal["uncounted"]
    operator: Text
    shape: tuple[Positive, Positive, Positive] | None = Field(
        default=None, description="of its output; left out, that of its first input"
    )
    parameters: Whole = Field(default=0, ge=0, le=MAX_ELEMENTS, description="that are its own")
    known_macs: Whole | None = Field(
        default=None, ge=0, le=MAX_ELEMENTS,
        description="multiply-accumulates of one pass over one image, where they are known",
    )  # fmt: skip

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """The shape that is stated, or that of the first input."""
        return self.shape or inputs[0]

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """As stated."""
        return self.parameters


def _mean(t: Tensors, window: int) -> Works:
    """The mean of `window` elements: additions and a factor; back, the factor."""
    yield from read(FORWARD, t.I)
    yield t.operate(FORWARD, "add", window - 1, f"additions of {window:,} elements")
    yield t.operate(FORWARD, "mac", why="times 1 over their number")
    yield from write(FORWARD, t.O)
    yield from read(BACK, t.dO)
    yield t.operate(BACK, "mac", why="times 1 over their number")
    yield from write(BACK, t.dI)


def _rearranged(t: Tensors) -> Works:
    """Every word is read and written, forward and back."""
    yield from read(FORWARD, *t.ins)
    yield from write(FORWARD, t.O)
    yield from read(BACK, t.dO)
    yield from write(BACK, *t.signals)
