"""A product of which operands stay on the chip is the same product on another chip, its view.

Operand X that stays at its home, a level of the chip, has there a memory of its own, without end,
at the price of that level. In the levels outside it has one that costs nothing, but that a sum
which comes back is read at the price of the home, where it lies all the time: of S sums that
arrive at home, S - T are read there and the other T - 1 in the levels outside, as counts have it.
The operands that stay nowhere share what room is left. Levels outside of all homes are left out.

Source: docs/model.md section 11.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Readable
from typing import NamedTuple, cast

from hwmodel.tiling.accesses import Asked, Mapping
from hwmodel.tiling.options import Memories, Memory, MemoryLevel
from hwmodel.work.problem import OPERANDS, Operand, Problem
from hwmodel.work.tensor import Direction, Role, product

__all__ = ["NOWHERE", "Homes", "resting", "view", "whole_view", "widened"]

DEAR = 1e3  # times its price, at which a sum that comes home unfinished is avoided


class Homes(NamedTuple):
    """The level at which each operand stays, from the outermost, which is 0; None: it does not."""

    I: int | None = None  # noqa: E741  (the source's letter)
    F: int | None = None
    O: int | None = None  # noqa: E741

    @property
    def outermost(self) -> int:
        """The outermost level that is asked for any operand."""
        return min(home or 0 for home in self)

    def of(self, operand: Operand) -> int | None:
        """Where an operand stays."""
        home: int | None = getattr(self, operand)
        return home


NOWHERE = Homes()


def view(
    chip: Memories, homes: Homes, free: Readable[int, int], *, finished: bool = False
) -> Memories:
    """Return the chip as a product with homes sees it, without levels outside of all homes.

    Args:
        chip: with one memory that holds all operands at each home.
        free: room that is left at levels at which tensors stay [bit].
        finished: ask for sums that come home finished, for others are wider: by a price of theirs.
    """
    seen = whole_view(chip, homes, free, finished=finished)
    return seen._replace(levels=seen.levels[homes.outermost :])


def whole_view(
    chip: Memories, homes: Homes, free: Readable[int, int], *, finished: bool = False
) -> Memories:
    """Return the same with all levels."""
    dear = DEAR if finished else 1.0
    levels = [
        level._replace(buffers=tuple(_buffers(chip, number, level, homes, free, dear)))
        for number, level in enumerate(chip.levels)
    ]
    return chip._replace(levels=tuple(levels))


def _buffers(
    chip: Memories,
    number: int,
    level: MemoryLevel,
    homes: Homes,
    free: Readable[int, int],
    dear: float,
) -> list[Memory]:
    shared = {x for x in OPERANDS if (home := homes.of(x)) is None or number > home}
    found: list[Memory] = []
    for memory in level.buffers:
        holds: tuple[Operand, ...] = tuple(x for x in memory.holds if x in shared)
        if holds:
            room = free.get(number, memory.capacity_bits)
            room = max(room, 1) if room is not None else None  # a memory has one bit at least
            found.append(memory._replace(holds=holds, capacity_bits=room))
    for x in OPERANDS:
        home = homes.of(x)
        if home is None or number > home:
            continue
        there = chip.holder(home, x)
        if x == "O":
            prices = there.read_energy_per_bit * dear, there.write_energy_per_bit * dear
            there = there._replace(read_energy_per_bit=prices[0], write_energy_per_bit=prices[1])
        if number == home:
            found.append(there._replace(holds=(x,), capacity_bits=None))
        else:
            again = there.read_energy_per_bit if x == "O" else 0.0
            found.append(Memory(level.name, (x,), None, again, 0.0, passed=True))
    return found


def widened(problem: Problem, mapping: Mapping, homes: Homes) -> Mapping:
    """Return a mapping of a view as one of the whole chip: levels outside cut nothing."""
    outside = homes.outermost
    whole = (problem.extent,) * outside
    held = cast("tuple[Operand, ...]", ("F",) * outside)
    unions = (*whole, *mapping.unions) if mapping.unions else ()
    groups = ((1,) * outside + mapping.groups) if mapping.groups else ()
    return Mapping((*whole, *mapping.tiles), (*held, *mapping.held), unions, mapping.cycle, groups)


def resting(
    problem: Problem, mapping: Mapping, asked: Iterable[tuple[int, Asked]], home: int, wider: int
) -> int:
    """Bits that unfinished sums take more than finished ones at a home of O [bit].

    Nothing where sums arrive finished there. Else those of one tile, if each leaves the level but
    once; else all.

    Args:
        asked: of the whole chip: what each level is asked for, whatever stays.
        wider: bits by which an unfinished sum is wider than a finished one [bit].
    """
    arrive = {
        level: product(one.factors)
        for level, one in asked
        if (one.operand, one.role, one.direction) == ("O", Role.UNFINISHED, Direction.WRITE)
    }
    if wider <= 0 or not arrive.get(home):
        return 0
    if any(arrive.get(level) for level in range(home)):
        return problem.O_elements * wider
    n = mapping.tiles[home - 1]
    return n.N * n.M * n.HO * n.WO * wider
