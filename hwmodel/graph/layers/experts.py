"""Tokens sent to some of several experts, and what these give, added up again.

A linear layer with `experts` behind a `dispatch` has the weights of all experts; a token is
multiplied with those of `active` ones. How many experts a pass of T tokens meets, and so how many
weights it reads, is a matter of chance: expected, or stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, expm1, isclose, log1p
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.base import BaseLayer, Positive, Shape
from hwmodel.specs.files import Number
from hwmodel.work.problem import PASSES, Extents, LoopNest, ProductPass, Window
from hwmodel.work.tensor import Factor, Pass
from hwmodel.work.work import Operate, Tensors, Works, read, saved, write

__all__ = ["Combine", "Dispatch", "distinct", "routed"]

FORWARD, BACK, *_ = Pass
MOST_EXPERTS = 4096
Probability = Annotated[Number, Field(ge=0, le=1)]


class Dispatch(BaseLayer):
    """Each token, k times over, to the experts that a router chose: (D, L, 1) gives (D, k L, 1)."""

    kind: Literal["dispatch"]
    inputs: tuple[str, ...] = Field(min_length=2, max_length=2)
    active: Positive = Field(description="experts that a token goes to")
    distinct: Literal["expected", "all"] | Positive = Field(
        default="expected",
        description="experts that a pass meets, whose weights it reads: expected of the "
        "probabilities, all, or so many",
    )
    probabilities: tuple[Probability, ...] | None = Field(
        default=None, min_length=1, max_length=MOST_EXPERTS,
        description="of each expert, to be one of the active ones of a token; left out, alike",
    )  # fmt: skip
    capacity: Number | None = Field(
        default=None, gt=0, le=MOST_EXPERTS,
        description="slots of an expert in multiples of T k / E; all are computed, empty ones too",
    )  # fmt: skip

    @model_validator(mode="after")
    def _coherent(self) -> Dispatch:
        found = self.probabilities
        if found and not isclose(sum(found), self.active, rel_tol=1e-6):
            raise ValueError(f"probabilities sum to {sum(found):.6g}, not to active {self.active}")
        return self

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(D, k L, 1). Raises: ShapeError."""
        (D, L, W), router = self.exactly(2, inputs)
        if router[1:] != (L, W) or W != 1:
            raise ShapeError(
                f"layer {self.name}: tokens {inputs[0]} and the router's scores {router} are not "
                "(D, L, 1) and (experts, L, 1)"
            )
        self.see(router[0])
        return D, self.active * L, 1

    def see(self, experts: int) -> None:
        """See that so many experts can be chosen from. Raises: ShapeError."""
        known = self.probabilities
        if self.active > experts:
            raise ShapeError(f"layer {self.name}: {self.active} active of {experts} experts")
        if known and len(known) != experts:
            raise ShapeError(f"layer {self.name}: {len(known)} probabilities of {experts} experts")
        if isinstance(self.distinct, int) and not self.active <= self.distinct <= experts:
            raise ShapeError(
                f"layer {self.name}: distinct {self.distinct} is not from {self.active} active "
                f"to {experts} experts"
            )

    def work(self, t: Tensors) -> Works:
        """Comparisons of the scores for each active expert; k reads and k writes; back, a sum."""
        yield from read(FORWARD, t.ins[1])
        yield Operate(FORWARD, "add", t.ins[1], self.active, (t.ins[1],), "which are largest")
        yield from read(FORWARD, t.I, times=self.active)
        yield from write(FORWARD, t.O)
        yield from read(BACK, t.dO)
        yield Operate(BACK, "add", t.dI, self.active - 1, (t.dO,), "signals of the copies added")
        yield from write(BACK, t.dI)


class Combine(BaseLayer):
    """What k experts give for each token, times the router's scores, added up."""

    kind: Literal["combine"]
    inputs: tuple[str, ...] = Field(min_length=2, max_length=2)
    active: Positive = Field(description="experts that a token went to")

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(D, L, 1). Raises: ShapeError."""
        (D, rows, W), router = self.exactly(2, inputs)
        if rows != self.active * router[1] or (W, router[2]) != (1, 1):
            raise ShapeError(
                f"layer {self.name}: {inputs[0]} and the router's scores {router} are not "
                f"(D, {self.active} L, 1) and (experts, L, 1)"
            )
        return D, router[1], 1

    def work(self, t: Tensors) -> Works:
        """k multiply-adds an element; back, those of the signal and of the score."""
        yield from read(FORWARD, *t.ins)
        yield t.operate(FORWARD, "mac", self.active, "times the score of each expert")
        yield from write(FORWARD, t.O)
        yield from read(BACK, t.dO, *map(saved, t.ins))
        yield t.operate(BACK, "mac", 2 * self.active, "signals of the experts and of the scores")
        yield from write(BACK, *t.signals)


def distinct(sent: Dispatch, experts: int, tokens: int) -> float:
    """Return the experts that a pass of so many tokens meets.

    Expected: the sum over experts of 1 - (1 - p)^T; E (1 - (1 - k / E)^T) where they are alike.

    >>> sent = Dispatch(name="sent", kind="dispatch", inputs=("x", "router"), active=2)
    >>> distinct(sent, 8, 2), distinct(sent, 2, 3)
    (3.5, 2.0)
    """
    if isinstance(sent.distinct, int):
        return sent.distinct
    if sent.distinct == "all" or sent.capacity is not None:
        return experts
    if sent.probabilities:
        return sum(1 - (1 - p) ** tokens for p in sent.probabilities)
    if sent.active == experts:
        return float(experts)  # the logarithm of 1 - k / E is none
    return -experts * expm1(tokens * log1p(-sent.active / experts))


def routed(sent: Dispatch, experts: int, M: int, C: int, rows: int) -> dict[ProductPass, LoopNest]:
    """Return the three products of a linear layer of experts.

    One expert's nest stands for all that are met: its filters move once for each of these, rows of
    I and O as many as there are. The gradient is dense: all experts' is written.

    Args:
        rows: T k, tokens of all sequences times active experts.
    """
    tokens = rows // sent.active
    one = Window(1)
    if sent.capacity is not None:
        slots = ceil(sent.capacity * rows / experts)
        met, N, rows = float(experts), slots, experts * slots
    else:
        if isinstance(sent.distinct, int) and sent.distinct > rows:
            raise ShapeError(
                f"layer {sent.name}: distinct {sent.distinct} of {tokens:,} tokens, each to "
                f"{sent.active} experts: they meet {rows:,} at most"
            )
        met = distinct(sent, experts, tokens)
        N = max(1, round(rows / met))
    why = f"experts that {tokens:,} tokens meet, {sent.distinct}, for one"
    read_once = Factor("experts", met, why)
    moved = Factor("rows / N", rows / N, f"{rows:,} rows of all experts, for {N:,} of one")
    whole = Factor("experts", experts, "gradients are dense")
    macs = (Factor("rows", rows, "tokens x active experts"), Factor("M", M), Factor("C", C))
    nests = {
        "forward": (Extents(N, M, C, 1, 1, 1, 1), (moved, read_once, moved)),
        "backward_input": (Extents(N, C, M, 1, 1, 1, 1), (moved, read_once, moved)),
        "backward_weight": (Extents(C, M, N, 1, 1, 1, 1), (moved, moved, whole)),
    }
    return {p: LoopNest(nests[p][0], one, one, 1, PASSES[p], nests[p][1], macs) for p in PASSES}
