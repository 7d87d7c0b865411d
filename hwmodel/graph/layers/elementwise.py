"""Layers that treat element by element: norms, activations, sums and products of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.base import BaseLayer, Cost, Positive, Shape
from hwmodel.specs.files import Flag

__all__ = ["Activation", "Add", "BatchNorm", "Embedding", "LayerNorm", "Multiply", "Scale"]


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

    def cost(self, inputs: Sequence[Shape]) -> Cost:
        """Sum and sum of squares, then one multiply-add; back, two sums, then two multiply-adds.

        Frozen, its statistics are constants, in training as in inference: a factor and a shift.
        """
        if self.frozen:
            return Cost(adds=1, macs=2, signal_macs=1)
        return Cost(
            reads=2, adds=1, macs=2, signal_reads=2, saved_input=2, signal_adds=1, signal_macs=3,
            inference_reads=1,
        )  # fmt: skip


class LayerNorm(BaseLayer):
    """Normalisation over the channels of each place, then a scale and a shift."""

    kind: Literal["layer-norm"]
    affine: Flag = True

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """A scale and a shift for each channel."""
        return 2 * self.one(inputs)[0] * self.affine

    def cost(self, inputs: Sequence[Shape]) -> Cost:
        """As batch norm; its statistics are those of the place, in inference too."""
        return Cost(
            reads=2, adds=1, macs=2, signal_reads=2, saved_input=2, signal_adds=1, signal_macs=3
        )


Function = Literal[
    "method", "relu", "prelu", "hardtanh", "hardsigmoid", "sigmoid", "tanh", "swish", "gelu",
    "softmax", "sign", "threshold", "rsign", "rprelu", "dprelu", "leaky-relu", "elu", "hardswish",
]  # fmt: skip

# What each function costs an element; comparisons count as additions. Those that the output
# alone inverts read it back, the others their input.
_FUNCTIONS: dict[str, Cost] = {
    "method": Cost(adds=1, saved_output=1, signal_adds=1),
    "relu": Cost(adds=1, saved_output=1, signal_adds=1),
    "prelu": Cost(adds=1, macs=1, saved_input=1, signal_adds=1, signal_macs=2),
    "hardtanh": Cost(adds=2, saved_input=1, signal_adds=2),
    "hardsigmoid": Cost(adds=2, macs=1, saved_input=1, signal_adds=2, signal_macs=1),
    "sigmoid": Cost(adds=1, specials=2, saved_output=1, signal_macs=2),
    "tanh": Cost(adds=2, specials=2, saved_output=1, signal_macs=2),
    "swish": Cost(adds=1, macs=1, specials=2, saved_input=1, signal_macs=4),
    "gelu": Cost(macs=2, specials=1, saved_input=1, signal_macs=4),
    "softmax": Cost(reads=2, adds=3, specials=2, saved_output=1, signal_macs=2),
    "sign": Cost(adds=1, saved_input=1, signal_adds=2),
    "threshold": Cost(adds=1, saved_input=1, signal_adds=1, signal_macs=1),
    "rsign": Cost(adds=2, saved_input=1, signal_adds=3),
    "rprelu": Cost(adds=3, macs=1, saved_input=1, signal_adds=3, signal_macs=2),
    "dprelu": Cost(adds=3, macs=1, saved_input=1, signal_adds=3, signal_macs=2),
    "leaky-relu": Cost(adds=1, macs=1, saved_output=1, signal_adds=1, signal_macs=1),
    "elu": Cost(adds=1, macs=1, specials=1, saved_output=1, signal_adds=1, signal_macs=1),
    "hardswish": Cost(adds=2, macs=2, saved_input=1, signal_adds=2, signal_macs=2),
}
_LEARNED = {"prelu": 1, "rsign": 1, "rprelu": 3, "dprelu": 4}  # parameters of one channel
# Additions and multiply-adds of the way back that only their gradients need.
_FOR_GRADIENTS = {"prelu": (0, 1), "rsign": (1, 0), "rprelu": (2, 1), "dprelu": (2, 1)}


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
        """One: what comes out is no sum."""
        return 1

    def cost(self, inputs: Sequence[Shape]) -> Cost:
        """That of the function; the method's own counts as one comparison."""
        cost = _FUNCTIONS[self.function]
        if not self.frozen:
            return cost
        adds, macs = _FOR_GRADIENTS.get(self.function, (0, 0))
        return cost._replace(
            signal_adds=cost.signal_adds - adds, signal_macs=cost.signal_macs - macs
        )


class Add(BaseLayer):
    """The sum of tensors; backward, the signal goes on to each as it is.

    A tensor that is 1 long along an axis is added to all places along it.
    """

    kind: Literal["add"]
    inputs: tuple[str, ...] = Field(min_length=2, max_length=64)

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """That of the inputs together. Raises: ShapeError."""
        return self.broadcast(inputs)

    def terms(self, inputs: Sequence[Shape], before: Sequence[int]) -> int:
        """Those of all inputs."""
        return sum(before)

    def cost(self, inputs: Sequence[Shape]) -> Cost:
        """One addition for each input beyond the first.

        What comes back to an input that is 1 long along an axis is a sum, which
        `workload.py` adds: it depends on which of the inputs want their signals.
        """
        return Cost(adds=len(self.inputs) - 1, signal_reads=0, signal_writes=0)


class Multiply(BaseLayer):
    """The product of two tensors, of which one may be 1 long along an axis: (C, 1, 1)."""

    kind: Literal["multiply"]
    inputs: tuple[str, ...] = Field(min_length=2, max_length=2)

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """That of the inputs together. Raises: ShapeError."""
        return self.broadcast(self.exactly(2, inputs))

    def cost(self, inputs: Sequence[Shape]) -> Cost:
        """One multiplication; backward, each operand's signal needs the other operand."""
        return Cost(macs=1, saved_input=1, signal_macs=2)


class Scale(BaseLayer):
    """A factor for each channel (the scaling of binary weights or of a branch)."""

    kind: Literal["scale"]
    learned: Flag | Literal["frozen"] = Field(
        default=True,
        description="false: a constant of the architecture; frozen: parameters, not trained",
    )

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """A factor for each channel, if it is no constant of the architecture."""
        return self.one(inputs)[0] * bool(self.learned)

    def cost(self, inputs: Sequence[Shape]) -> Cost:
        """One multiplication forward; backward, one for the signal and one for the factor.

        The gradient of the factor, and it alone, needs the input.
        """
        if self.frozen:
            return Cost(macs=1, signal_macs=1)
        return Cost(macs=1, saved_input=1, signal_macs=2)


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

    def cost(self, inputs: Sequence[Shape]) -> Cost:
        """A row is read and written on; backward, its signal is added to the row of dF.

        Token numbers have no signal.
        """
        adds = 0 if self.frozen else 1
        return Cost(table_reads=1, signal_reads=0, signal_writes=0, gradient_adds=adds)
