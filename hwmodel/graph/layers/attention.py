"""The two products of attention, and the turning of queries and keys by their positions.

A query meets the keys before it (`causal`), of them the last ones (`window`); keys that several
queries share are there once (`kv_heads`); keys of earlier tokens lie in a cache (`past`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.base import MAX_EXTENT, BaseLayer, Positive, Shape
from hwmodel.specs.files import Flag, Whole
from hwmodel.work.problem import PASSES, Extents, LoopNest, ProductPass, Window
from hwmodel.work.tensor import Factor, Pass, Tensor
from hwmodel.work.work import Mask, Tensors, Works, read, write

__all__ = ["AttentionContext", "AttentionScores", "Rotary"]

FORWARD, BACK, *_ = Pass


class Attention(BaseLayer):
    """A product of two activations, head by head: the second takes the filters' role.

    Nothing of it is shared between images or heads of keys, which therefore are groups. Heads that
    read the same keys are rows of one product.
    """

    SCORES: ClassVar[Literal["I", "O"]]  # the place of the scores in the forward pass

    heads: Positive = Field(description="of queries")
    kv_heads: Positive | None = Field(
        default=None, description="of keys and values; divides heads; left out, as many; 1: one"
    )
    causal: Flag = Field(
        default=False,
        description="whether a query meets only the keys before it and its own; the last query "
        "meets all",
    )
    window: Positive | None = Field(
        default=None, description="of a causal one: a query meets so many last keys, its own among"
    )
    cache: Flag = Field(
        default=False,
        description="whether the second operand is kept for the tokens that are generated next",
    )
    past: Whole = Field(
        default=0, ge=0, le=MAX_EXTENT, description="keys that lie in the cache beside the new ones"
    )

    @model_validator(mode="after")
    def _coherent(self) -> Attention:
        if self.kv_heads and self.heads % self.kv_heads:
            raise ValueError(f"kv_heads {self.kv_heads} does not divide heads {self.heads}")
        if self.window and not self.causal:
            raise ValueError(f"window {self.window} needs causal: true")
        if self.past and not self.cache:
            raise ValueError(f"past {self.past} needs cache: true")
        return self

    @property
    def shared(self) -> int:
        """Heads of queries that read the same keys."""
        return self.heads // (self.kv_heads or self.heads)

    def terms(self, inputs: Sequence[Shape], before: Sequence[int]) -> int:
        """C of one head."""
        return self._head(inputs).C

    def macs(self, inputs: Sequence[Shape]) -> int:
        """h L S d: heads * queries * keys * features of a head; hidden pairs, too."""
        n = self._head(inputs)
        return self.heads // self.shared * n.N * n.M * n.C

    def pairs(self, inputs: Sequence[Shape]) -> int:
        """Pairs of a query and a key that it meets, of one head; without a mask all L S.

        Query i of L, from 0, meets the keys up to P + i, with a window the last W of them:
        sum of min(P + i + 1, W).
        """
        L, S = self._lengths(inputs)
        if not self.causal:
            return L * S
        before, most = S - L, min(self.window or S, S)
        growing = min(L, max(0, most - before))
        return growing * before + growing * (growing + 1) // 2 + (L - growing) * most

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[ProductPass, LoopNest]:
        """Return the product, and its derivatives by the first and the second operand."""
        n, one = self._head(inputs), Window(1)
        extents: dict[ProductPass, Extents] = {
            "forward": n,
            "backward_input": n._replace(M=n.C, C=n.M),
            "backward_weight": n._replace(N=n.C, C=n.N),
        }
        groups = batch * self.heads // self.shared
        return {p: LoopNest(e, one, one, groups, PASSES[p]) for p, e in extents.items()}

    def unmasked(self, inputs: Sequence[Shape], batch: int) -> dict[ProductPass, LoopNest]:
        """The same where pairs that a mask hides are neither multiplied nor moved as scores.

        Queries, keys, values and the context move as without: blocks of a tiling that lie wholly
        behind the mask are not told apart.
        """
        pairs, (L, S) = self.pairs(inputs), self._lengths(inputs)
        nests = self.loops(inputs, batch)
        if pairs == L * S:
            return nests
        n, scores = self._head(inputs), type(self).SCORES
        why = f"{pairs:,} of {L * S:,} pairs; a mask hides the others"
        share, all_ = Factor("pairs met", pairs / (L * S), why), Factor("", 1)
        d = n.C if scores == "O" else n.M
        macs = (
            Factor("N", batch), Factor("heads", self.heads), Factor("pairs", pairs, why),
            Factor("d", d),
        )  # fmt: skip

        def masked(nest: LoopNest) -> LoopNest:
            I, F, O = (share if x.removeprefix("d") == scores else all_ for x in nest.tensors)  # noqa: E741
            return nest._replace(times=(I, F, O), macs=macs)

        return {p: masked(nest) for p, nest in nests.items()}

    def mask(self, inputs: Sequence[Shape]) -> Mask | None:
        """Which keys a block of queries meets; None where none is hidden."""
        L, S = self._lengths(inputs)
        if self.pairs(inputs) == L * S:
            return None
        return Mask(L, S, self.window, self.shared)

    def block_nest(self, inputs: Sequence[Shape], batch: int, *, back: bool) -> LoopNest:
        """Return the loops of all products of a kernel that keeps scores where they are made.

        Forward rows of queries are at M, those of keys at N and stream past; back they change
        places (Dao, FlashAttention-2, 2023, algorithms 1 and 2). C is the features of a head.
        """
        n, (L, S) = self._head(inputs), self._lengths(inputs)
        rows, one = self.shared * L, Window(1)
        d = n.C if isinstance(self, AttentionScores) else n.M
        sizes = (rows, S) if back else (S, rows)
        groups = batch * self.heads // self.shared
        return LoopNest(Extents(*sizes, d, 1, 1, 1, 1), one, one, groups, PASSES["forward"])

    @abstractmethod
    def _head(self, inputs: Sequence[Shape]) -> Extents:
        """The product of one head of keys."""

    @abstractmethod
    def _lengths(self, inputs: Sequence[Shape]) -> tuple[int, int]:
        """Queries and keys."""

    def _split(self, channels: int, heads: int, shape: Shape) -> int:
        if channels % heads:
            raise ShapeError(
                f"layer {self.name}: {heads} heads do not divide the channels of {shape}"
            )
        return channels // heads


class AttentionScores(Attention):
    """Q K^T: queries (h d, L, 1) and keys (kv d, S, 1) give scores (h, L, S)."""

    SCORES: ClassVar[Literal["I", "O"]] = "O"

    kind: Literal["attention-scores"]

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(h, L, P + S). Raises: ShapeError."""
        (D, L, W), keys = self.exactly(2, inputs)
        if keys[0] * self.shared != D or (W, keys[2]) != (1, 1):
            wanted = "(D, L, 1) and (D, S, 1)"
            if self.shared > 1:
                wanted = f"({self.heads} d, L, 1) and ({self.kv_heads} d, S, 1)"
            raise ShapeError(
                f"layer {self.name}: queries {inputs[0]} and keys {keys} are not {wanted}"
            )
        self._split(D, self.heads, inputs[0])
        self._see_causal(L, keys[1])
        return self.heads, L, self.past + keys[1]

    def _see_causal(self, L: int, S: int) -> None:
        if self.causal and self.past + S < L:
            raise ShapeError(
                f"layer {self.name}: {L} queries meet {self.past + S} keys; under causal: true the "
                "last query meets the last key, so the first ones meet none"
            )

    def _head(self, inputs: Sequence[Shape]) -> Extents:
        heads, L, S = self.output_shape(inputs)
        return Extents(self.shared * L, S, inputs[0][0] // heads, 1, 1, 1, 1)

    def _lengths(self, inputs: Sequence[Shape]) -> tuple[int, int]:
        return self.output_shape(inputs)[1:]


class AttentionContext(Attention):
    """P V: weights (h, L, S) and values (kv d, S, 1) give the context (h d, L, 1)."""

    SCORES: ClassVar[Literal["I", "O"]] = "I"

    kind: Literal["attention-context"]

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(h d, L, 1). Raises: ShapeError."""
        (heads, L, S), values = self.exactly(2, inputs)
        if (heads, S, 1) != (self.heads, self.past + values[1], values[2]):
            before = f" with {self.past} in the cache" if self.past else ""
            raise ShapeError(
                f"layer {self.name}: weights {inputs[0]} and values {values}{before} are not "
                f"({self.heads}, L, S) and (D, S, 1)"
            )
        self._split(values[0], self.heads // self.shared, values)
        return values[0] * self.shared, L, 1

    def _head(self, inputs: Sequence[Shape]) -> Extents:
        D, L, _ = self.output_shape(inputs)
        return Extents(self.shared * L, D // self.heads, inputs[0][2], 1, 1, 1, 1)

    def _lengths(self, inputs: Sequence[Shape]) -> tuple[int, int]:
        return inputs[0][1:]


class Rotary(BaseLayer):
    """Queries or keys (h d, L, 1), pairs of features turned by an angle that grows with the place.

    Source: Su et al., RoFormer, 2021, section 3.4.2, in the form x cos + x' sin.
    """

    kind: Literal["rotary"]
    heads: Positive = Field(description="of what is turned: of queries, or of keys")

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(h d, L, 1). Raises: ShapeError."""
        shape = self.one(inputs)
        if shape[0] % (2 * self.heads) or shape[2] != 1:
            raise ShapeError(
                f"layer {self.name}: {shape} is not ({self.heads} d, L, 1) with an even d"
            )
        return shape

    def work(self, t: Tensors) -> Works:
        """Two multiply-adds an element; a table of sines and cosines is read once for all heads.

        The table has d/2 of each a place, as wide as the map. Back, the signal is turned back.
        """
        _, channels, places, _ = t.O.shape
        d = int(channels.value) // self.heads
        table = Tensor("P", (Factor("d", d), Factor("L", places.value)), t.O.bits)
        yield from read(FORWARD, t.I)
        yield from read(FORWARD, table, why="sines and cosines of d/2 angles a place")
        yield t.operate(FORWARD, "mac", 2, "x cos + x' sin")
        yield from write(FORWARD, t.O)
        yield from read(BACK, t.dO)
        yield from read(BACK, table, why="sines and cosines of d/2 angles a place")
        yield t.operate(BACK, "mac", 2, "turned back")
        yield from write(BACK, t.dI)
