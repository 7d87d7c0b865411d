"""Spiking neurons: a membrane that sums what comes in, and a spike of 1 bit where it is full."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hwmodel.graph.layers.base import BaseLayer, Bits
from hwmodel.specs.files import Number
from hwmodel.work.tensor import Pass, Role
from hwmodel.work.work import Operate, Tensors, Works, read, write

__all__ = ["Spiking"]

FORWARD, BACK = Pass.FORWARD, Pass.BACKWARD_INPUT


class Spiking(BaseLayer):
    """Neurons that write 1 bit in each step of the network.

    LIF: v = beta v + x, a multiply-add; IF: v = v + x, an addition. Then a comparison with the
    threshold, and an addition where the reset subtracts it.
    """

    kind: Literal["spiking"]
    neuron: Literal["lif", "if"] = "lif"
    reset: Literal["zero", "subtract"] = "zero"
    rate: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=1.0, description="share of neurons that spike in a step; 1 where nobody knows"
    )
    membrane_bits: Bits = 32

    def work(self, t: Tensors) -> Works:
        """A step of every neuron; back, the surrogate's derivative and the membrane's signal."""
        return self._work(t, trains=True)

    def inference(self, t: Tensors) -> Works:
        """The same, without membranes kept for the way back."""
        return self._work(t, trains=False)

    def _work(self, t: Tensors, trains: bool) -> Works:
        adds = 1 + (self.reset == "subtract") + (self.neuron == "if")
        yield from read(FORWARD, t.I)
        yield Operate(FORWARD, "mac", t.O, int(self.neuron == "lif"), why="beta v + x")
        yield Operate(FORWARD, "add", t.O, adds, (t.I,), "threshold, reset, and the sum of an IF")
        yield from write(FORWARD, t.O)
        if not trains:
            return
        membrane = t.O.as_(Role.KEPT_SUM, self.membrane_bits)
        yield from write(FORWARD, membrane, why="the membrane of each step, for the way back")
        yield from read(BACK, membrane)
        yield from read(BACK, t.dO)
        yield Operate(BACK, "mac", t.O, 2, why="of the surrogate")
        yield from write(BACK, t.dI)
