"""Memories and options of a search: beside its problem, all that a tiling depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Buffer, Hardware
from hwmodel.tiling.rows import RowRule
from hwmodel.work.problem import OPERANDS, PASSES, Operand, ProductPass
from hwmodel.work.tensor import Kinds, Pass, kind_of

__all__ = ["Memories", "Memory", "MemoryLevel", "SearchOptions", "Stationary", "memories"]
__all__ += ["pass_kinds"]

# What the boundaries may hold: filters at all of them; filters at all or ifmaps at all; anything.
Stationary = Literal["filter", "either", "best"]


@dataclass(frozen=True)
class SearchOptions:
    """The choices that the search may make, and its rules of counting."""

    search: Literal["level-by-level", "optimal"]
    stationary: Stationary
    counting: Literal["paper", "exact"]
    rows: Literal["touched", "bounding"]
    padding: Literal["skipped", "counted"]
    partial_sum_bits: int

    @classmethod
    def of(cls, accounting: Accounting, pass_: Pass) -> SearchOptions:
        """Return the options of one pass: in backward_weight either operand may stay."""
        held: Stationary = accounting.counting.stationary
        free = accounting.counting.weight_gradient == "best-of-two-roles"
        if held == "filter" and free and pass_ == Pass.BACKWARD_WEIGHT:
            held = "either"
        return cls(
            search=accounting.counting.search,
            stationary=held,
            counting=accounting.counting.counting,
            rows=accounting.counting.rows,
            padding=accounting.counting.padding,
            partial_sum_bits=accounting.widths.partial_sum_bits,
        )

    @property
    def rule(self) -> RowRule:
        """The rule that says which rows of I are moved and stored."""
        return RowRule(self.rows, self.padding)


class Memory(NamedTuple):
    """One memory of a chip, as the search sees it."""

    name: str
    holds: tuple[Operand, ...]
    capacity_bits: int | None  # None: unlimited
    read_energy_per_bit: float  # [chip's unit/bit]
    write_energy_per_bit: float


class MemoryLevel(NamedTuple):
    """The memories of one level."""

    name: str
    buffers: tuple[Memory, ...]


class Memories(NamedTuple):
    """The levels of a chip, outermost first: all that a search asks of hardware."""

    levels: tuple[MemoryLevel, ...]

    def holder(self, level: int, operand: Operand) -> Memory:
        """Return the memory that holds `operand` at `levels[level]` (0 is the outermost)."""
        for memory in self.levels[level].buffers:
            if operand in memory.holds:
                return memory
        raise LookupError(f"{self.levels[level].name} holds no {operand}")


def pass_kinds(pass_: ProductPass) -> Kinds:
    """Return the kinds of what is at I, F and O in a pass of a layer with weights.

    >>> [kind.value for kind in pass_kinds("backward_weight")]
    ['maps', 'signals', 'gradients']
    """
    at_I, at_F, at_O = map(kind_of, PASSES[pass_])
    return at_I, at_F, at_O


_FORWARD = pass_kinds("forward")


def memories(chip: Hardware, kinds: Kinds = _FORWARD) -> Memories:
    """Return the memories of a chip as a product of three tensors sees them.

    The outermost level is those of its memories in which the three lie. Whether they have room
    there is no matter of tiles: `model/memory.py` sees to it. Prices of arithmetic, sources and
    the chip's name are left out.

    Args:
        kinds: of what is at I, F and O.
    """
    outermost, *inner = chip.levels
    places = zip(OPERANDS, kinds, strict=True)
    holders = [(chip.keepers[kind], operand) for operand, kind in places]
    buffers = [
        _memory(one, tuple(x for memory, x in holders if memory is one), None)
        for one in outermost.buffers
        if any(memory is one for memory, _ in holders)
    ]
    levels = [
        MemoryLevel(
            level.name, tuple(_memory(b, b.operands, b.capacity_bits) for b in level.buffers)
        )
        for level in inner
    ]
    return Memories((MemoryLevel(outermost.name, tuple(buffers)), *levels))


def _memory(buffer: Buffer, holds: tuple[Operand, ...], capacity_bits: int | None) -> Memory:
    read, write = buffer.read_energy_per_bit, buffer.write_energy_per_bit
    return Memory(buffer.name, holds, capacity_bits, read, write)
