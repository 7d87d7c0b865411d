"""The selective scan of a state-space layer, as one operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.base import BaseLayer, Positive, Shape
from hwmodel.work.tensor import Factor, Pass, Role, Tensor
from hwmodel.work.work import Tensors, Works, read, saved, write

__all__ = ["Scan"]

FORWARD, BACK, WEIGHT, *_ = Pass


class Scan(BaseLayer):
    """h = exp(dt A) h + (dt u) B; y = (C h + D u) swish(z), token by token.

    Inputs: u and dt (D, L, 1), B and C (N, L, 1), z (D, L, 1). In one kernel the state, D N
    elements, stays on the chip; a kernel an operator writes and reads it and its two terms.
    Its operations are elementwise, no product that is tiled.

    Source: Gu and Dao, Mamba, arXiv:2312.00752, algorithm 2 and section 3.3.2: the way back
        computes states again.
    """

    kind: Literal["scan"]
    inputs: tuple[str, ...] = Field(min_length=5, max_length=5, description="u, dt, B, C, z")
    scan: Literal["fused", "materialised"] = Field(
        default="fused",
        description="one kernel, in which states stay; or a kernel an operator, between which the "
        "states of all tokens and their two terms are written and read",
    )
    states: Positive = Field(description="N, of each feature")

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(D, L, 1). Raises: ShapeError."""
        u, dt, B, C, z = self.exactly(5, inputs)
        wanted = (self.states, *u[1:])
        if (dt, B, C, z) != (u, wanted, wanted, u) or u[2] != 1:
            raise ShapeError(
                f"layer {self.name}: u, dt, B, C and z are {', '.join(map(str, inputs))}, not "
                f"(D, L, 1), the same, ({self.states}, L, 1), the same, and (D, L, 1)"
            )
        return u

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """A, N for each feature, and D, one for each."""
        return (self.states + 1) * inputs[0][0]

    def work(self, t: Tensors) -> Works:
        """Of a token and feature: 4 N + 2 multiply-adds, N exponentials, softplus and the gate.

        Forward dt A, (dt u) B, into h, C h; dt u, D u. Back 13 N: these four again; to C and B one
        each, two to h, d(dt u), two to dt A and its exponential, and to A and dt.
        """
        N = self.states
        parameters = Tensor("P", (Factor("A, D", t.F.elements),), t.F.bits)
        yield from read(FORWARD, *t.ins, parameters)
        yield t.operate(FORWARD, "mac", 4 * N + 2, "dt A, (dt u) B, h, C h; dt u, D u")
        yield t.operate(FORWARD, "special", N, "exp(dt A)")
        yield t.operate(FORWARD, "special", 2, "softplus of dt")
        yield t.operate(FORWARD, "add", 1, "1 + exp of the gate")
        yield t.operate(FORWARD, "mac", 2, "x sigmoid(x) of the gate, times it")
        yield t.operate(FORWARD, "special", 2, "sigmoid of the gate")
        yield from self._states(FORWARD, t.O)
        yield from write(FORWARD, t.O)
        yield from read(BACK, t.dO, *map(saved, t.ins))
        yield from read(BACK, parameters)
        yield t.operate(BACK, "mac", 13 * N, "states again, and the signal of each factor")
        yield t.operate(BACK, "special", N, "exp(dt A) again")
        yield t.operate(BACK, "mac", 6, "of the gate, and of its product")
        yield from self._states(BACK, t.O, "computed again")
        yield from self._states(BACK, t.dO)
        yield from write(BACK, *t.signals)
        if not self.frozen:
            yield from write(WEIGHT, t.dF, why="of A and D")

    def _states(self, pass_: Pass, of: Tensor, why: str = "") -> Works:
        """Write and read exp(dt A), (dt u) B and h, or their signals, if they leave the chip.

        Source: transformers, MambaMixer.slow_forward: each is a tensor of its own. That a way back
            which computes states again moves them again, and their signals once: chosen.
        """
        if self.scan == "fused":
            return
        many = (Factor("states", self.states), *of.shape)
        for index in (1, 2, 3):
            one = replace(of, shape=many).as_(Role.STATES, index=index)
            yield from write(pass_, one, why=why)
            yield from read(pass_, one, why=why)
