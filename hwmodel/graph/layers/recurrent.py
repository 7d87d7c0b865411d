"""Recurrent layers: products that wait for the step before, and what a cell does.

A file's `lstm`, `gru` or `rnn` (`graph/recurrent.py`) is a product of all inputs, which is a
linear layer over T places, and one of these for what goes from step to step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.base import BaseLayer, Positive, Shape, Width
from hwmodel.graph.layers.products import Conv
from hwmodel.specs.files import Flag, Whole
from hwmodel.work.problem import LoopNest, ProductPass
from hwmodel.work.tensor import Factor, Pass, Role, Tensor
from hwmodel.work.work import Kind, Operate, Tensors, Works, read, saved, write

__all__ = ["GATES", "Cell", "Recurrence", "StepLinear"]

FORWARD, BACK = Pass.FORWARD, Pass.BACKWARD_INPUT
Cell = Literal["lstm", "gru", "rnn"]


class _Operations(NamedTuple):
    """Operations of a step for each feature, forward and back, and what is kept for the way back.

    A sigmoid is an addition and two special functions, a tanh two and two, as activations have
    them (docs/model.md section 6).
    """

    forward: dict[Kind, int]
    back: dict[Kind, int]
    kept: int  # gates of a step, or what stands for them, for each feature
    state: bool = False  # whether a cell's state goes from step to step beside the output


GATES: dict[Cell, int] = {"lstm": 4, "gru": 3, "rnn": 1}
_CELLS: dict[Cell, _Operations] = {
    # i, f, o: sigmoids; g, tanh c: tanhs; four sums of both products; c = f c + i g, h = o tanh c
    "lstm": _Operations({"add": 4 + 3 + 4, "special": 10, "mac": 3}, {"mac": 16}, 5, state=True),
    # r, z: sigmoids; n: tanh; three sums; n = tanh(x + r h), h = n + z (h - n)
    "gru": _Operations({"add": 3 + 2 + 2, "special": 6, "mac": 2}, {"mac": 11, "add": 2}, 4),
    "rnn": _Operations({"add": 1 + 2, "special": 2}, {"mac": 2}, 0),
}


class _Stepped(BaseLayer):
    """A product done anew in each of T steps, since each waits for the step before.

    Its weights are read in each from where they live. The gradient of the weights is one product
    over all steps.
    """

    weight_bits: Width | None = Field(
        default=None, description="width of a weight that the network itself states [bit]"
    )

    def terms(self, inputs: Sequence[Shape], before: Sequence[int]) -> int:
        """C of a step."""
        return self._sizes(inputs)[1]

    def weights(self, inputs: Sequence[Shape]) -> int:
        """M * C."""
        M, C = self._sizes(inputs)
        return M * C

    def macs(self, inputs: Sequence[Shape]) -> int:
        """M * C in each step."""
        return self.weights(inputs) * self.sequence(inputs)[1]

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[ProductPass, LoopNest]:
        """Return the nests of one step; of the gradient of the weights, of all."""
        M, C = self._sizes(inputs)
        step = Conv(name=self.name, kind="conv", channels=M, kernel=(1, 1))
        one = step.loops([(C, 1, 1)], batch)
        every = step.loops([(C, 1, 1)], batch * self.sequence(inputs)[1])
        return one | {"backward_weight": every["backward_weight"]}

    def sequence(self, inputs: Sequence[Shape]) -> Shape:
        """The input, (C, T, 1). Raises: ShapeError."""
        shape = self.one(inputs)
        if shape[2] != 1:
            raise ShapeError(f"layer {self.name}: its input {shape} is no sequence (C, T, 1)")
        return shape

    @abstractmethod
    def _sizes(self, inputs: Sequence[Shape]) -> tuple[int, int]:
        """M and C of the product of a step. Raises: ShapeError."""


class Recurrence(_Stepped):
    """What goes from step to step: gates (g H, T, 1) give (H, T, 1)."""

    kind: Literal["recurrence"]
    cell: Cell
    features: Positive
    projection: Whole = Field(default=0, ge=0, description="features that go back; 0: all")
    bias: Flag = False
    reverse: Flag = Field(default=False, description="from the last step to the first")

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(H, T, 1). Raises: ShapeError where the input is not (g H, T, 1)."""
        C, T, W = self.sequence(inputs)
        gates = GATES[self.cell] * self.features
        if gates != C:
            raise ShapeError(
                f"layer {self.name}: its input {(C, T, W)} has not {gates} channels, the "
                f"{GATES[self.cell]} gates of {self.features} features"
            )
        return self.features, T, 1

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """A bias for each gate and feature, if any."""
        return GATES[self.cell] * self.features * self.bias

    def repeats(self, phase: ProductPass, inputs: Sequence[Shape]) -> int:
        """How often the nest of a pass is done: no signal goes back before the first step."""
        T = self.sequence(inputs)[1]
        return {"forward": T, "backward_input": T - 1, "backward_weight": 1}[phase]

    def _sizes(self, inputs: Sequence[Shape]) -> tuple[int, int]:
        self.output_shape(inputs)
        return GATES[self.cell] * self.features, self.projection or self.features

    def work(self, t: Tensors) -> Works:
        """A cell: gates of both products, its state, its output; back, the signals to the gates.

        Source: Hochreiter and Schmidhuber 1997, Cho et al. 2014, in the form of PyTorch and ONNX;
            docs/model.md section 6.
        """
        return self._work(t, kept=True)

    def inference(self, t: Tensors) -> Works:
        """The same, without what is kept for the way back."""
        return self._work(t, kept=False)

    def _work(self, t: Tensors, kept: bool) -> Works:
        own, name = _CELLS[self.cell], self.cell
        cell = t.O.as_(Role.CELL)
        yield from read(FORWARD, t.I, times=2, why="of the inputs, and of the step before")
        for kind, times in own.forward.items():
            yield t.operate(FORWARD, kind, times, f"a step of {name}")
        if own.state:
            yield from read(FORWARD, cell)
            yield from write(FORWARD, cell)
        yield from write(FORWARD, t.O)
        if not kept:
            return
        if own.kept:
            size = (Factor("gates and state", own.kept), *t.O.shape)
            sums = Tensor("O", size, t.O.bits, Role.KEPT_SUM, floating=t.O.floating)
            yield from write(FORWARD, sums, why="for the way back")
            yield from read(BACK, sums)
        else:
            yield from read(BACK, saved(t.O))
        yield from read(BACK, t.dO, times=2, why="of what takes the output, and of the step after")
        for kind, times in own.back.items():
            yield Operate(BACK, kind, t.O, times, (t.dO,), f"a step of {name}, back")
        if own.state:
            back = t.dO.as_(Role.CELL)
            yield from read(BACK, back)
            yield from write(BACK, back)
        yield from write(BACK, t.dI)


class StepLinear(_Stepped):
    """A product of what a step gives, which the next one waits for: the projection of an LSTM."""

    kind: Literal["step-linear"]
    features: Positive

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(M, T, 1). Raises: ShapeError."""
        return self.features, self.sequence(inputs)[1], 1

    def repeats(self, phase: ProductPass, inputs: Sequence[Shape]) -> int:
        """How often the nest of a pass is done: once a step."""
        return 1 if phase == "backward_weight" else self.sequence(inputs)[1]

    def _sizes(self, inputs: Sequence[Shape]) -> tuple[int, int]:
        return self.features, self.sequence(inputs)[0]
