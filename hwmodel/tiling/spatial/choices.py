"""What the boundaries of a chip may hold, and the space of mappings under each choice."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple

from hwmodel.errors import Infeasible
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.rows import block_rows
from hwmodel.tiling.spatial.descent import Held, Point
from hwmodel.tiling.spatial.grouped import narrowed
from hwmodel.tiling.spatial.space import GROUPS, Space
from hwmodel.tiling.spatial.tables import Table
from hwmodel.tiling.spatial.whole import best_of_all
from hwmodel.work.problem import OPERANDS, Operand, Problem

__all__ = ["Choices", "Found", "check_feasible", "holdings"]


class Found(NamedTuple):
    """A mapping that was met."""

    energy: float
    point: Point
    held: Held


class Choices(NamedTuple):
    """What the boundaries may hold, with so many groups side by side."""

    space: Space
    tables: tuple[Table, ...]

    @classmethod
    def of(
        cls, problem: Problem, chip: Memories, options: SearchOptions, groups: tuple[int, ...]
    ) -> Choices | None:
        """Return the choices on a chip with groups side by side; None where nothing fits."""
        space = Space(problem, narrowed(problem, chip, groups), options)
        try:
            check_feasible(space)
        except Infeasible:
            return None
        return cls.on(space)

    @classmethod
    def on(cls, space: Space) -> Choices:
        """Return the choices on a chip as it is."""
        return cls(space, tuple(Table(space, group) for group in range(len(GROUPS))))

    @property
    def chains(self) -> int:
        """Chains that were looked at."""
        return sum(map(len, self.tables))

    @property
    def work(self) -> int:
        """What that took, in chains of short axes."""
        return sum(table.work for table in self.tables)

    def held(self, operands: tuple[Operand, ...]) -> Held:
        """The space under one choice."""
        return Held(self.space, operands, self.tables)

    def all(self) -> list[Held]:
        """The space under every choice."""
        return [
            self.held(operands)
            for operands in holdings(self.space.options.stationary, self.space.depth)
        ]

    def walked(self) -> Found:
        """The best of all mappings."""
        every = (Found(*best_of_all(held), held) for held in self.all())
        return min(every, key=lambda found: found.energy)


def holdings(stationary: str, depth: int) -> list[tuple[Operand, ...]]:
    """List what the boundaries may hold."""
    if stationary == "best":
        return list(product(OPERANDS, repeat=depth))
    alike: tuple[Operand, ...] = ("F", "I") if stationary == "either" else ("F",)
    return [(operand,) * depth for operand in alike]


def check_feasible(space: Space) -> None:
    """Raise Infeasible unless a tile of one element fits every level, sums where they must lie."""
    element = prod(
        min(1, int(block_rows(axis.window, axis.rule, 0, axis.outs, 0, axis.taps)))
        for axis in space.axes
    )
    for i, level in enumerate(space.chip.levels[1:], 1):
        inmost = i == space.depth and space.chip.array is not None
        for memory in level.buffers:
            there = [x for x in memory.holds if x != "O" or inmost]
            bits = {x: space.bits[x] * (element if x == "I" else 1) for x in there}
            if memory.capacity_bits is not None and sum(bits.values()) > memory.capacity_bits:
                names = " and ".join(there)
                raise Infeasible(memory.name, names, sum(bits.values()), memory.capacity_bits)
