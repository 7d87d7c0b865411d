"""The base of all kinds of layers: the fields that each states, the questions it answers.

Shapes are (C, H, W) of one image. A layer is what a network file says of it; everything else
follows from the shapes it is given. Products are handed on as loop nests. Everything else that a
layer does is moving tensors and small operations on their elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from hwmodel.errors import ShapeError
from hwmodel.specs.files import Flag, Name, SpecModel
from hwmodel.work.problem import LoopNest, ProductPass
from hwmodel.work.work import Tensors, Works

__all__ = [
    "INPUT",
    "MAX_EXTENT",
    "BaseLayer",
    "Bits",
    "Learned",
    "Pair",
    "Positive",
    "Shape",
    "Sides",
]
__all__ += ["Sliding", "Width", "reach"]

Shape = tuple[int, int, int]  # C, H, W of one image [elements]
INPUT = "input"  # what layers call the network's own input
MAX_EXTENT = 2**31  # the largest dimension, kernel, stride or padding that a file may state


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
Learned = Flag | Literal["biases", "frozen"]
Bits = Annotated[int, Field(strict=True, ge=1, le=64)]
Width = Bits | Annotated[str, Field(pattern=r"^e[1-9]m[0-9]{1,2}$")]


class BaseLayer(SpecModel):
    """The fields of every kind of layer; `inputs` defaults to the layer before."""

    name: Name
    inputs: tuple[Name, ...] | None = Field(default=None, min_length=1)
    role: Name | None = Field(default=None, description="a word that rules of a method can match")
    bits: Width | None = Field(
        default=None,
        description="width of an output element that the network itself states [bit], or its "
        "floating-point format, e4m3",
    )
    shares: Name | None = Field(
        default=None, description="an earlier layer whose weights it uses, stored once"
    )
    learned: Learned = Field(
        default=True,
        description="false: frozen, its weights and other parameters are used and not trained; "
        "biases: its weights are frozen, its biases are trained",
    )

    checkpoint: Flag = Field(
        default=False,
        description="in training: what it gives is kept, and layers since the checkpoint before it "
        "go forward once more on the way back",
    )

    @property
    def frozen(self) -> bool:
        """Whether no gradient of its weights and other parameters is wanted."""
        return self.learned in (False, "frozen")

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """Shape of the output. Raises: ShapeError."""
        return self.one(inputs)

    def weights(self, inputs: Sequence[Shape]) -> int:
        """Elements of F, the filters of a product."""
        return 0

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """Elements of what else can be learned: biases, scales, shifts and tables."""
        return 0

    def macs(self, inputs: Sequence[Shape]) -> int:
        """Multiply-accumulates of one pass over one image, of products only."""
        return 0

    def terms(self, inputs: Sequence[Shape], before: Sequence[int]) -> int:
        """Terms of +-1 that an element of the output can be the sum of, given the inputs'."""
        return max(before, default=1)

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[ProductPass, LoopNest]:
        """The products of a training iteration, by pass; empty for a layer that only moves."""
        return {}

    def repeats(self, phase: ProductPass, inputs: Sequence[Shape]) -> int:
        """How often the nest of a pass is done, one after the other."""
        return 1

    def work(self, t: Tensors) -> Works:
        """What a layer that is no product does with the tensors around it, forward and back."""
        return iter(())

    def inference(self, t: Tensors) -> Works:
        """The same where nothing is learned: all that is not forward is left out later."""
        return self.work(t)

    def one(self, inputs: Sequence[Shape]) -> Shape:
        """Return the only input. Raises: ShapeError where there are more."""
        return inputs[0] if len(inputs) == 1 else self.exactly(1, inputs)[0]

    def exactly(self, number: int, inputs: Sequence[Shape]) -> Sequence[Shape]:
        """Return the inputs. Raises: ShapeError where they are not `number`."""
        if len(inputs) != number:
            raise ShapeError(
                f"layer {self.name}: takes {number} input{'s' * (number > 1)}, "
                f"is given {len(inputs)}"
            )
        return inputs

    def alike(self, inputs: Sequence[Shape]) -> Shape:
        """Return the shape that all inputs have. Raises: ShapeError where they differ."""
        for shape in inputs[1:]:
            if shape != inputs[0]:
                raise ShapeError(
                    f"layer {self.name}: its inputs differ in shape, {inputs[0]} and {shape}"
                )
        return inputs[0]

    def broadcast(self, inputs: Sequence[Shape]) -> Shape:
        """Return the shape to which the inputs spread along axes on which some are 1 long.

        Raises: ShapeError where two differ and neither is 1.
        """
        C, H, W = (max(lengths) for lengths in zip(*inputs, strict=True))
        for shape in inputs:
            if any(a not in (1, b) for a, b in zip(shape, (C, H, W), strict=True)):
                return self.alike(inputs)
        return C, H, W


def reach(kernel: int, dilation: int) -> int:
    """Count the rows from the first to the last tap."""
    return dilation * (kernel - 1) + 1


class Sliding(BaseLayer):
    """A window that slides over rows and columns."""

    kernel: Pair
    padding: Sides = Field(default=(0, 0, 0, 0), description="all; rows, columns; or t, l, b, r")

    def slide(
        self,
        shape: Shape,
        stride: tuple[int, int],
        dilation: tuple[int, int] = (1, 1),
        *,
        partial: bool = False,
    ) -> tuple[int, int]:
        """Count the positions of the window along rows and columns.

        A last partial step is dropped, or taken where `partial`. Raises: ShapeError.
        """
        kernel, padding, sizes = self.kernel, self.padding, []
        for axis, size in enumerate(shape[1:]):
            span = reach(kernel[axis], dilation[axis])
            padded = size + padding[axis] + padding[axis + 2]
            if span > padded:
                word = ("rows", "columns")[axis]
                raise ShapeError(
                    f"layer {self.name}: the effective kernel spans {span} {word}, more than the "
                    f"{padded} of its input {shape} with padding {list(self.padding)}"
                )
            steps = padded - span
            sizes.append((-(-steps // stride[axis]) if partial else steps // stride[axis]) + 1)
        return sizes[0], sizes[1]

    @property
    def window(self) -> int:
        """Elements under the window in one channel."""
        return prod(self.kernel)
