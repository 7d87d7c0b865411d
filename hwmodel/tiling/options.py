"""Memories and options of a search: beside its problem, all that a tiling depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.rows import RowRule
from hwmodel.work.problem import Operand
from hwmodel.work.tensor import Pass

__all__ = ["Memories", "Memory", "MemoryLevel", "SearchOptions", "Stationary", "memories"]

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


def memories(chip: Hardware) -> Memories:
    """Return the memories of a chip, without its prices of arithmetic, its sources and its name."""
    return Memories(
        tuple(
            MemoryLevel(
                level.name,
                tuple(
                    Memory(
                        b.name, b.holds, b.capacity_bits, b.read_energy_per_bit,
                        b.write_energy_per_bit,
                    )
                    for b in level.buffers
                ),
            )
            for level in chip.levels
        )
    )  # fmt: skip
