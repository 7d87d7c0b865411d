"""Layers that treat element by element: norms, activations, sums and products of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.base import BaseLayer, Learned, Positive, Shape
from hwmodel.specs.files import Flag
from hwmodel.work.tensor import Pass, Role
from hwmodel.work.work import Kind, Operate, Tensors, Works, read, saved, write

__all__ = ["Activation", "Add", "BatchNorm", "Embedding", "LayerNorm", "Multiply"]
__all__ += ["RMSNorm", "Scale"]

FORWARD, BACK, WEIGHT, *_ = Pass


class BatchNorm(BaseLayer):
    """Normalisation over a batch, then a scale and a shift for each channel.

    Training reads its input twice, for the statistics and for the result, and so does the way
    back; in inference the statistics are constants.
    """

    kind: Literal["batch-norm"]
    affine: Flag = True

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """A scale and a shift for each channel."""
        return 2 * self.one(inputs)[0] * self.affine

    def work(self, t: Tensors) -> Works:
        """Sum and sum of squares, then a multiply-add; back, two sums, then two multiply-adds.

        Source: Ioffe and Szegedy, Batch Normalization, 2015, algorithm 1 and the gradients below
            it; operation by operation in docs/model.md section 6.

        Frozen, it has constants for statistics in training, too: back, a factor.
        """
        if self.frozen:
            yield from self.inference(t)
            yield from read(BACK, t.dO)
            yield t.operate(BACK, "mac", why="the scale, statistics folded in")
            yield from write(BACK, t.dI)
        else:
            yield from _norm(t, forward=2, back=3, sums=1)

    def inference(self, t: Tensors) -> Works:
        """One multiply-add with two constants of the channel."""
        yield from read(FORWARD, t.I)
        yield t.operate(FORWARD, "mac", why="scale and shift, statistics folded in")
        yield from write(FORWARD, t.O)


class LayerNorm(BaseLayer):
    """Normalisation over the channels of each place, then a scale and a shift."""

    kind: Literal["layer-norm"]
    affine: Flag = True

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """A scale and a shift for each channel."""
        return 2 * self.one(inputs)[0] * self.affine

    def work(self, t: Tensors) -> Works:
        """Statistics of the place, in inference too, then scale and shift of the channel.

        Source: Ba et al., Layer Normalization, 2016, eq. 4; operation by operation in
            docs/model.md section 6.
        """
        yield from _norm(t, forward=3, back=6, sums=2)


class RMSNorm(BaseLayer):
    """Division by the root of the mean square over the channels of each place, then a scale."""

    kind: Literal["rms-norm"]
    affine: Flag = True

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """A scale for each channel."""
        return self.one(inputs)[0] * self.affine

    def work(self, t: Tensors) -> Works:
        """The statistic of the place, in inference too, then the scale of the channel.

        Source: Zhang and Sennrich, Root Mean Square Layer Normalization, NeurIPS 2019, eq. 4;
            operation by operation in docs/model.md section 6.
        """
        yield from _norm(t, forward=3, back=6, sums=0, mean=0)


Function = Literal[
    "method", "relu", "prelu", "hardtanh", "hardsigmoid", "sigmoid", "tanh", "swish", "gelu",
    "softmax", "sign", "threshold", "rsign", "rprelu", "dprelu", "leaky-relu", "elu", "hardswish",
]  # fmt: skip


class _Function(NamedTuple):
    """An activation's operations for each element, and the tensor that its way back reads."""

    forward: dict[Kind, int]
    keeps: Literal["I", "O"]  # O where the output alone gives the derivative
    backward: dict[Kind, int]
    passes: int = 1  # over the input


# Comparisons count as additions; exponentials, divisions and roots as special functions.
_FUNCTIONS: dict[str, _Function] = {
    "method": _Function({"add": 1}, "O", {"add": 1}),
    "relu": _Function({"add": 1}, "O", {"add": 1}),
    "sign": _Function({"add": 1}, "I", {"add": 2}),
    "threshold": _Function({"add": 1}, "I", {"add": 1, "mac": 1}),
    "hardtanh": _Function({"add": 2}, "I", {"add": 2}),
    "hardsigmoid": _Function({"add": 2, "mac": 1}, "I", {"add": 2, "mac": 1}),
    "hardswish": _Function({"add": 2, "mac": 2}, "I", {"add": 2, "mac": 2}),
    "prelu": _Function({"add": 1, "mac": 1}, "I", {"add": 1, "mac": 2}),
    "leaky-relu": _Function({"add": 1, "mac": 1}, "O", {"add": 1, "mac": 1}),
    "elu": _Function({"add": 1, "mac": 1, "special": 1}, "O", {"add": 1, "mac": 1}),
    "rsign": _Function({"add": 2}, "I", {"add": 3}),
    "rprelu": _Function({"add": 3, "mac": 1}, "I", {"add": 3, "mac": 2}),
    "dprelu": _Function({"add": 3, "mac": 1}, "I", {"add": 3, "mac": 2}),
    "tanh": _Function({"add": 2, "special": 2}, "O", {"mac": 2}),
    "sigmoid": _Function({"add": 1, "special": 2}, "O", {"mac": 2}),
    "swish": _Function({"add": 1, "mac": 1, "special": 2}, "I", {"mac": 4}),
    "gelu": _Function({"mac": 2, "special": 1}, "I", {"mac": 4}),
    "softmax": _Function({"add": 3, "special": 2}, "O", {"mac": 2}, passes=2),
}
_LEARNED = {"prelu": 1, "rsign": 1, "rprelu": 3, "dprelu": 4}  # parameters of one channel
# What of their way back only the gradients of these parameters need.
_FOR_GRADIENTS: dict[str, dict[Kind, int]] = {
    "prelu": {"mac": 1}, "rsign": {"add": 1},
    "rprelu": {"add": 2, "mac": 1}, "dprelu": {"add": 2, "mac": 1},
}  # fmt: skip


class Activation(BaseLayer):
    """A function of each element; left out, the method's own (ReLU, sign, threshold)."""

    kind: Literal["activation"]
    function: Function = "method"
    per_channel: Flag = Field(
        default=True, description="whether each channel learns slopes of its own, or all have one"
    )

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """Slopes and shifts that are learned, for each channel or for all of them."""
        return _LEARNED.get(self.function, 0) * (self.one(inputs)[0] if self.per_channel else 1)

    def terms(self, inputs: Sequence[Shape], before: Sequence[int]) -> int:
        """One: the output is no sum."""
        return 1

    def work(self, t: Tensors) -> Works:
        """State the work of the function; the method's own counts as one comparison."""
        function = _FUNCTIONS[self.function]
        name = "the method's threshold or ReLU" if self.function == "method" else self.function
        kept = t.I if function.keeps == "I" else t.O
        yield from read(FORWARD, t.I, times=function.passes)
        for kind, times in function.forward.items():
            yield t.operate(FORWARD, kind, times, f"of {name}")
        yield from write(FORWARD, t.O)
        yield from read(BACK, t.dO, saved(kept))
        own = _FOR_GRADIENTS.get(self.function, {}) if self.frozen else {}
        for kind, times in function.backward.items():
            times -= own.get(kind, 0)
            yield t.operate(BACK, kind, times, f"of the derivative of {name}")
        yield from write(BACK, t.dI)


class Add(BaseLayer):
    """The sum of tensors; backward, the signal goes on to each as it is.

    A tensor that is 1 long along an axis is added to all places along it.
    """

    kind: Literal["add"]
    inputs: tuple[str, ...] = Field(min_length=2, max_length=64)

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """The shape of the inputs together. Raises: ShapeError."""
        return self.broadcast(inputs)

    def terms(self, inputs: Sequence[Shape], before: Sequence[int]) -> int:
        """The terms of all inputs."""
        return sum(before)

    def work(self, t: Tensors) -> Works:
        """One addition for each input beyond the first.

        The signal of an input that is 1 long along an axis is a sum, which `model/workload.py`
        adds: it depends on which of the inputs want their signals.
        """
        yield from read(FORWARD, *t.ins)
        yield t.operate(FORWARD, "add", len(t.ins) - 1, f"to add up {len(t.ins)} tensors")
        yield from write(FORWARD, t.O)


class Multiply(BaseLayer):
    """The product of two tensors, of which one may be 1 long along an axis: (C, 1, 1)."""

    kind: Literal["multiply"]
    inputs: tuple[str, ...] = Field(min_length=2, max_length=2)

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """That of the inputs together. Raises: ShapeError."""
        return self.broadcast(self.exactly(2, inputs))

    def work(self, t: Tensors) -> Works:
        """One multiplication; backward, the signal of each operand needs the other operand."""
        yield from _product(t)


class Scale(BaseLayer):
    """A factor for each channel (the scaling of binary weights or of a branch)."""

    kind: Literal["scale"]
    learned: Learned = Field(
        default=True,
        description="false: a constant of the architecture; frozen: parameters, not trained",
    )

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """A factor for each channel, if it is no constant of the architecture."""
        return self.one(inputs)[0] * bool(self.learned)

    def work(self, t: Tensors) -> Works:
        """One multiplication; backward, one for the signal and one for the factor.

        The gradient of the factor, and it alone, needs the input again.
        """
        if not self.frozen:
            yield from _product(t)
            return
        yield from read(FORWARD, t.I)
        yield t.operate(FORWARD, "mac")
        yield from write(FORWARD, t.O)
        yield from read(BACK, t.dO)
        yield t.operate(BACK, "mac")
        yield from write(BACK, t.dI)


class Embedding(BaseLayer):
    """Rows of a table: token numbers (1, L, 1) give (features, L, 1)."""

    kind: Literal["embedding"]
    vocabulary: Positive
    features: Positive

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(features, L, 1). Raises: ShapeError."""
        shape = self.one(inputs)
        if shape[0] != 1 or shape[2] != 1:
            raise ShapeError(f"layer {self.name}: token numbers are (1, L, 1), not {shape}")
        return self.features, shape[1], 1

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """The table."""
        return self.vocabulary * self.features

    def work(self, t: Tensors) -> Works:
        """A row is read and written on; backward, its signal is added to the row of dF.

        Token numbers have no signal. The gradient is dense: written as a whole (zero), then row
        by row.
        """
        rows = t.O.as_(Role.LOOKED_UP, t.F.bits, name="F")
        gradients = t.O.as_(Role.LOOKED_UP, t.dF.bits, name="dF")
        yield from read(FORWARD, t.I, rows)
        yield from write(FORWARD, t.O)
        if self.frozen:
            return
        yield from write(WEIGHT, t.dF, why="zeros: gradients are dense")
        yield from read(WEIGHT, t.dO, gradients)
        yield from write(WEIGHT, gradients)
        yield Operate(WEIGHT, "add", t.O, operands=(t.dF, t.dO), why="to a row of dF")


def _norm(t: Tensors, *, forward: int, back: int, sums: int, mean: int = 1) -> Works:
    """Two passes over the input, for the statistics and for the result; so back.

    Args:
        forward, back: multiply-adds for each element.
        sums: additions for each element on the way back.
        mean: additions for each element forward, into the sum that gives the mean.
    """
    yield from read(FORWARD, t.I, times=2, why="for the statistics, and for the result")
    yield t.operate(FORWARD, "add", mean, "into the sum")
    yield t.operate(FORWARD, "mac", forward, "into the sum of squares, and to the result")
    yield from write(FORWARD, t.O)
    yield from read(BACK, t.dO, saved(t.I), times=2, why="for the sums, and for the result")
    yield t.operate(BACK, "add", sums, "into sums of signals")
    yield t.operate(BACK, "mac", back, "into sums of products, and to the result")
    yield from write(BACK, t.dI)


def _product(t: Tensors) -> Works:
    """O = I1 I2, or a factor for each channel; dI1 = dO I2 needs the other operand again."""
    yield from read(FORWARD, *t.ins)
    yield t.operate(FORWARD, "mac", why="the product")
    yield from write(FORWARD, t.O)
    yield from read(BACK, t.dO, *map(saved, t.ins))
    yield t.operate(BACK, "mac", 2, "the signal or gradient of each operand")
    yield from write(BACK, *t.signals)
