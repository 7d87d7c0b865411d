"""Layer kinds: shapes, weights, and the products of each training pass, side by side.

Shapes are (C, H, W) of one image. A layer is what a network file says of it; everything else
follows from the shape it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema

from hwmodel.errors import ShapeError
from hwmodel.files import Name, SpecModel
from hwmodel.problem import Extents, Window

__all__ = ["PASSES", "Activation", "Conv", "Layer", "Linear", "LoopNest", "MaxPool", "Pass"]
__all__ += ["Shape", "Tensor"]

Shape = tuple[int, int, int]  # C, H, W of one image [elements]
Pass = Literal["forward", "backward_input", "backward_weight"]
Tensor = Literal["I", "F", "O", "dI", "dF", "dO"]

# What moves as ifmaps, as filters and as ofmaps in each pass (spec section 2).
PASSES: dict[Pass, tuple[Tensor, Tensor, Tensor]] = {
    "forward": ("I", "F", "O"),
    "backward_input": ("dO", "F", "dI"),
    "backward_weight": ("I", "dO", "dF"),
}

MAX_EXTENT = 2**31  # the largest dimension, kernel, stride or padding that a file may state


class LoopNest(NamedTuple):
    """The loops of one pass, before a method says how wide its operands are."""

    extent: Extents  # of one group
    height: Window
    width: Window
    groups: int = 1


def _axes(value: Any, lengths: tuple[int, ...], least: int) -> tuple[int, ...]:
    """A whole number for all axes, or a list with one for each."""
    listed = value if isinstance(value, (list, tuple)) else [value]
    if len(listed) not in lengths:
        raise ValueError(f"{value!r}: give one number or {' or '.join(map(str, lengths[1:]))}")
    for number in listed:
        if not isinstance(number, int) or isinstance(number, bool):
            raise ValueError(f"{number!r} is no whole number")
        if not least <= number <= MAX_EXTENT:
            raise ValueError(f"{number} is not between {least} and {MAX_EXTENT}")
    return tuple(listed)


def _pair(value: Any) -> tuple[int, ...]:
    pair = _axes(value, (1, 2), 1)
    return pair * (2 // len(pair))


def _sides(value: Any) -> tuple[int, ...]:
    sides = _axes(value, (1, 2, 4), 0)
    return sides * (4 // len(sides))


def _numbers(longest: int, least: int) -> WithJsonSchema:
    number = {"type": "integer", "minimum": least}
    several = {"type": "array", "items": number, "maxItems": longest}
    return WithJsonSchema({"anyOf": [number, several]})


Pair = Annotated[tuple[int, int], BeforeValidator(_pair), _numbers(2, 1)]
Sides = Annotated[tuple[int, int, int, int], BeforeValidator(_sides), _numbers(4, 0)]
Positive = Annotated[int, Field(strict=True, ge=1, le=MAX_EXTENT)]


class _Layer(SpecModel):
    """What every kind of layer states; `inputs` defaults to the layer before."""

    name: Name
    inputs: tuple[Name, ...] | None = Field(default=None, min_length=1)

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """Shape of the output. Raises: ShapeError."""
        return self._one(inputs)

    def weights(self, inputs: Sequence[Shape]) -> int:
        """Elements of F."""
        return 0

    def macs(self, inputs: Sequence[Shape]) -> int:
        """Multiply-accumulates of one pass over one image."""
        return 0

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[Pass, LoopNest]:
        """The products of a training iteration, by pass; empty for a layer that only moves."""
        return {}

    def _one(self, inputs: Sequence[Shape]) -> Shape:
        if len(inputs) != 1:
            raise ShapeError(f"layer {self.name}: takes one input, is given {len(inputs)}")
        return inputs[0]


def _reach(kernel: int, dilation: int) -> int:
    return dilation * (kernel - 1) + 1


class _Sliding(_Layer):
    """A window that slides over rows and columns; a last partial step is dropped."""

    kernel: Pair
    padding: Sides = Field(default=(0, 0, 0, 0), description="all; rows, columns; or t, l, b, r")

    def _slide(self, shape: Shape, stride: tuple[int, int], dilation: tuple[int, int]) -> list[int]:
        sizes = []
        for axis, (size, word) in enumerate(zip(shape[1:], ("rows", "columns"), strict=True)):
            reach = _reach(self.kernel[axis], dilation[axis])
            padded = size + self.padding[axis] + self.padding[axis + 2]
            if reach > padded:
                raise ShapeError(
                    f"layer {self.name}: the kernel spans {reach} {word}, more than the {padded} "
                    f"of its input {shape} with padding {list(self.padding)}"
                )
            sizes.append((padded - reach) // stride[axis] + 1)
        return sizes


class Conv(_Sliding):
    """A 2-D convolution to `channels` channels, without bias."""

    kind: Literal["conv"]
    channels: Positive
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    groups: Positive = 1

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(M, HO, WO): HO = floor((H + p1 + p2 - d (K - 1) - 1) / s) + 1. Raises: ShapeError."""
        shape = self._one(inputs)
        for word, channels in (("input", shape[0]), ("output", self.channels)):
            if channels % self.groups:
                raise ShapeError(
                    f"layer {self.name}: groups {self.groups} does not divide the {channels} "
                    f"{word} channels (input {shape}, channels {self.channels})"
                )
        HO, WO = self._slide(shape, self.stride, self.dilation)
        return self.channels, HO, WO

    def weights(self, inputs: Sequence[Shape]) -> int:
        """M * C/g * HF * WF."""
        return self.channels * (self._one(inputs)[0] // self.groups) * prod(self.kernel)

    def macs(self, inputs: Sequence[Shape]) -> int:
        """M * C/g * HF * WF * HO * WO."""
        return self.weights(inputs) * prod(self.output_shape(inputs)[1:])

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[Pass, LoopNest]:
        """The three convolutions of a training iteration (spec section 2).

        forward: O[n,m] = sum over c, taps of I[n,c] F[m,c].
        backward_input: dI[n,c] = sum over m, taps of dO[n,m] F[m,c], the kernel turned round; of
            the dO spread out by the stride only every s-th position is a row.
        backward_weight: dF[m,c] = sum over n, positions of I[n,c] dO[n,m]: C images of N channels
            under M filters as large as dO, stride and dilation changing places.
        """
        (C, H, W), (M, HO, WO), g = self._one(inputs), self.output_shape(inputs), self.groups
        (HF, WF), N = self.kernel, batch
        C, M = C // g, M // g
        axes = [self._windows(axis, size, out) for axis, size, out in ((0, H, HO), (1, W, WO))]
        extents = {
            "forward": Extents(N, M, C, HO, WO, HF, WF),
            "backward_input": Extents(N, C, M, H, W, HF, WF),
            "backward_weight": Extents(C, M, N, HF, WF, HO, WO),
        }
        return {p: LoopNest(extents[p], axes[0][p], axes[1][p], g) for p in PASSES}

    def _windows(self, axis: int, size: int, out: int) -> dict[Pass, Window]:
        step, dilation = self.stride[axis], self.dilation[axis]
        before, after = self.padding[axis], self.padding[axis + 2]
        reach = _reach(self.kernel[axis], dilation) - 1
        return {
            "forward": Window(size, step, dilation, before, after),
            "backward_input": Window(out, 1, dilation, reach - before, reach - after, step),
            "backward_weight": Window(size, dilation, step, before, after),
        }


class Linear(_Layer):
    """A fully connected layer over all elements of its input, without bias."""

    kind: Literal["linear"]
    features: Positive

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(M, 1, 1)."""
        self._one(inputs)
        return self.features, 1, 1

    def weights(self, inputs: Sequence[Shape]) -> int:
        """M * C, with C all elements of the input."""
        return self.features * prod(self._one(inputs))

    def macs(self, inputs: Sequence[Shape]) -> int:
        """M * C."""
        return self.weights(inputs)

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[Pass, LoopNest]:
        """A convolution on one pixel with a kernel of one tap (spec section 1)."""
        pixel = Conv(name=self.name, kind="conv", channels=self.features, kernel=(1, 1))
        return pixel.loops([(prod(self._one(inputs)), 1, 1)], batch)


class MaxPool(_Sliding):
    """The largest element under each window; `stride` defaults to the window's size."""

    kind: Literal["max-pool"]
    stride: Pair | None = None

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(C, HO, WO). Raises: ShapeError."""
        shape = self._one(inputs)
        HO, WO = self._slide(shape, self.stride or self.kernel, (1, 1))
        return shape[0], HO, WO


class Activation(_Layer):
    """A function of each element; which one (ReLU, sign, threshold) is the method's."""

    kind: Literal["activation"]


Layer = Annotated[Conv | Linear | MaxPool | Activation, Field(discriminator="kind")]
