"""The work of a layer in three words; every layer states all of its work, forward and back.

    Multiply    a loop nest over three tensors: the only work that is tiled
    Move        a tensor read from the outermost memory, or written to it, so many times
    Operate     so many operations for each element of a tensor

A layer states all of its work. What a run leaves out (the way back of inference, the signal of an
input that nobody learns from, what an accounting does not count) is left out in
`model/workload.py`, by the pass, the direction and the role of a work: no layer asks for a mode, a
method or a choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from hwmodel.work.problem import LoopNest, Operand, Problem, Widths
from hwmodel.work.tensor import (
    Direction,
    Factor,
    Kinds,
    Pass,
    Role,
    Tensor,
    plain,
    product,
)

__all__ = [
    "Kernel",
    "Kind",
    "Mask",
    "Move",
    "Multiply",
    "Operate",
    "Operation",
    "Side",
    "Tensors",
    "Work",
]
__all__ += ["Works", "boolean_step", "quantised", "read", "saved", "write"]

Kind = Literal["mac", "int-mac", "int-mul", "add", "int-add", "logic", "special"]
FORWARD, UPDATE = Pass.FORWARD, Pass.UPDATE
READ, WRITE = Direction.READ, Direction.WRITE
MANY_BLOCKS = 2**16
Side = Literal["queries", "keys"]


class Move(NamedTuple):
    """A tensor passes `times` times between the outermost memory and the operators."""

    pass_: Pass
    direction: Direction
    tensor: Tensor
    times: int = 1
    why: str = ""  # why so many times, or what for
    through: bool = True  # whether every memory on the way is paid for, or the outermost alone

    @property
    def kinds(self) -> Kinds:
        """The kind of the tensor, whether it moves as an ifmap or as an ofmap."""
        kind = self.tensor.kind
        return kind, kind, kind


class Operate(NamedTuple):
    """`times` operations for each element of a tensor.

    Of kind "add": additions and comparisons, made of Boolean operations where the words are
    narrower than full precision and no floating-point ones. Of kind "logic": always made of them.
    """

    pass_: Pass
    kind: Kind
    each: Tensor
    times: int = 1
    operands: tuple[Tensor, ...] = ()  # an addition is as wide as the widest of them
    why: str = ""


class Operation(NamedTuple):
    """Operations of one kind, as a product of factors."""

    kind: Kind
    bits: int  # of the wider operand; of an integer addition, of the sum
    factors: tuple[Factor, ...]
    narrow: int = 0  # of the narrower operand of an integer multiplication
    format: str = ""  # of both operands of a floating-point one, "e4m3 x e5m2"; "": as wide as bits


class Mask(NamedTuple):
    """Which keys a block of queries meets, and which queries a block of keys."""

    queries: int
    keys: int  # the last of them is the last query's own
    window: int | None
    shared: int  # rows of the product that are one query's: heads that share keys

    def share(self, side: Side, block: int) -> float:
        """Return the share of what streams past blocks of `block` rows that these meet.

        Keys past blocks of queries: sum over b of min(S, P + (b + 1) l), less what lies before the
        window of the block's first query, of as many times S. Queries past blocks of keys likewise.
        """
        L, S, P = self.queries, self.keys, self.keys - self.queries
        W, g = min(self.window or S, S), self.shared
        if side == "queries":  # rows are of queries, the heads of a group side by side
            rows, other = L * g, S
        else:
            rows, other = S, L
        blocks = -(-rows // block)
        if blocks > MANY_BLOCKS:  # single rows, but for one in so many
            growing = min(L, max(0, W - P))
            pairs = growing * P + growing * (growing + 1) // 2 + (L - growing) * W
            return pairs / (L * S)
        met = 0
        for start in range(0, rows, block):
            end = min(start + block, rows)
            if side == "queries":
                first, last = start // g, (end - 1) // g
                met += P + last + 1 - max(0, P + first + 1 - W)
            else:
                met += max(0, min(L, end - 1 + W - P) - max(0, start - P))
        return met / (blocks * other)


class Kernel(NamedTuple):
    """How a product moves that is one of several in the same blocks: attention that is fused.

    All run through one nest of rows of queries and of keys, with filters held at every boundary,
    and are cut alike, since `bits` is what moves along in all of them. What one of them has
    brought in the others find there. Scores move nowhere.
    """

    bits: Widths  # of all that is brought in at I and at F
    moved: tuple[Operand, ...] = ("I", "F")  # what this product brings in
    inner: tuple[int, int] = (1, 1)  # how often MACs read I and F from their last memories
    running: Operand | None = None  # at which operand's place its result rests while it grows
    # Pairs that are not computed, and what the rows of F are: queries or keys.
    mask: tuple[Mask, Side] | None = None


class Multiply(NamedTuple):
    """O += I F over a loop nest; the letters say what moves as ifmaps, filters and ofmaps."""

    pass_: Pass
    nest: LoopNest
    I: Tensor  # noqa: E741  (the source's letter)
    F: Tensor
    O: Tensor  # noqa: E741
    operations: tuple[Operation, ...]  # the arithmetic of the method
    macs: tuple[Factor, ...]  # multiply-accumulates, without those by zeros put between rows
    leaves: bool = True  # whether finished sums are written; else an operator takes each at once
    repeats: int = 1  # how often the nest is done, one after the other
    expanded: tuple[Operand, ...] = ()  # packed until they leave level 0, a MAC a word
    full: int = 32  # bits of a MAC that expands
    kernel: Kernel | None = None  # of several products that run in the same blocks
    tiled: LoopNest | None = None  # the nest with loops put together; None: as it is

    @property
    def operands(self) -> dict[Operand, Tensor]:
        """The three tensors by the place they take."""
        return {"I": self.I, "F": self.F, "O": self.O}

    @property
    def kinds(self) -> Kinds:
        """What the three tensors are: by this the outermost memories know what they hold."""
        return self.I.kind, self.F.kind, self.O.kind

    @property
    def bit_operations(self) -> int:
        """MACs times the bits of both operands (BOPs): van Baalen et al., arXiv:2005.07093."""
        return product(self.macs) * self.I.operand_bits * self.F.operand_bits

    @property
    def problem(self) -> Problem:
        """The problem that is tiled: loops, windows and widths, without layer and pass."""
        n, own = self.tiled or self.nest, (self.I, self.F, self.O)
        widths = Widths(*(plain(one.bits) for one in own))
        if self.kernel is None:
            return Problem(n.extent, n.height, n.width, widths, n.groups)
        return Problem(n.extent, n.height, n.width, self.kernel.bits, n.groups, widths)


Work = Move | Operate | Multiply
Works = Iterator[Move | Operate]


@dataclass(frozen=True)
class Tensors:
    """The tensors around a layer: its inputs, its output, their signals, its weights."""

    ins: tuple[Tensor, ...]
    O: Tensor  # noqa: E741
    signals: tuple[Tensor, ...]  # dI of each input
    dO: Tensor
    F: Tensor
    dF: Tensor

    @property
    def I(self) -> Tensor:  # noqa: E743
        """The first input."""
        return self.ins[0]

    @property
    def dI(self) -> Tensor:
        """The signal to the first input."""
        return self.signals[0]

    def operate(self, pass_: Pass, kind: Kind, times: int = 1, why: str = "") -> Operate:
        """Return operations for each element of the output, on the words of that pass."""
        words = (*self.ins, self.O) if pass_ == FORWARD else (*self.signals, self.dO)
        return Operate(pass_, kind, self.O, times, words, why)


def read(pass_: Pass, *tensors: Tensor, times: int = 1, why: str = "") -> Iterator[Move]:
    """Read each of the tensors."""
    return (Move(pass_, READ, tensor, times, why) for tensor in tensors)


def write(pass_: Pass, *tensors: Tensor, times: int = 1, why: str = "") -> Iterator[Move]:
    """Write each of the tensors."""
    return (Move(pass_, WRITE, tensor, times, why) for tensor in tensors)


def saved(tensor: Tensor) -> Tensor:
    """Return the tensor as the forward pass keeps it for the way back."""
    return tensor.as_(Role.SAVED)


def quantised(pass_: Pass, copy: Tensor, wide: Tensor, times: int) -> Iterator[Operate]:
    """Make words of a format: the largest of those that share a scale, then each by its scale."""
    yield Operate(pass_, "add", copy, times, (wide,), "a comparison, for the largest of a scale")
    yield Operate(pass_, "mac", copy, times, why="to scale")


def boolean_step(F: Tensor, dF: Tensor, accumulator_bits: Factor, flips: Factor) -> Works:
    """Add the vote to the accumulator, compare that, and write the weights that flip.

    Args:
        accumulator_bits: width of the accumulator [bit], and who states it.
        flips: share of the weights that flip in an iteration, and who states it.
    Source: BOLD, algorithm "Boolean optimizer". An addition or a comparison of b bit is 2b - 1
        Boolean operations (docs/model.md section 5).
    """
    accumulator = F.as_(Role.ACCUMULATOR, int(accumulator_bits.value))
    why = f"{accumulator_bits.name} {accumulator_bits.why}"
    yield from read(UPDATE, dF.as_(Role.VOTE))
    yield from read(UPDATE, accumulator, why=why)
    yield from read(UPDATE, F)
    yield Operate(UPDATE, "logic", F, 2, (accumulator,), "an addition and a comparison")
    yield from write(UPDATE, accumulator, why=why)
    yield from write(UPDATE, replace(F, shape=(flips, *F.shape)), why="the weights that flip")
