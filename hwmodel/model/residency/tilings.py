"""What is known of a product's tilings: costs by home, what a search came to, bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hwmodel.model.entries import Stay
from hwmodel.tiling.tile import Tiling
from hwmodel.tiling.view import Homes
from hwmodel.work.problem import OPERANDS, Operand

__all__ = ["ROUNDING", "Costs", "Floor", "Searched", "Tiled", "is_home"]

ROUNDING = 1 + 1e-9


class Tiled(NamedTuple):
    """A product's tiling beside what stays on the chip."""

    tiling: Tiling  # of the whole chip
    stay: Stay
    energy: float  # of its memories, hops and cycles [chip's unit]
    rooms: dict[int, int]  # that it takes at the levels at which tensors may stay [bit]
    resting: dict[int, int]  # and what unfinished sums take more there than finished ones [bit]


class Costs(NamedTuple):
    """A tiling wherever operands stay: each operand adds its own, whatever the others do."""

    tiling: Tiling
    cycles: float  # energy of an array's cycles [chip's unit]
    energy: dict[tuple[Operand, int | None], float]  # by operand and home [chip's unit]
    parts: dict[int, dict[Operand, int]]  # by level: bits of each operand's tile [bit]
    resting: dict[int, int]  # by home of O: more bits of its unfinished sums there [bit]

    def at(self, homes: Homes) -> float:
        """Energy with homes [chip's unit]."""
        return self.cycles + sum(self.energy[x, homes.of(x)] for x in OPERANDS)

    def rooms(self, homes: Homes) -> dict[int, int]:
        """Return the room that tiles of what does not stay take [bit]."""
        return {
            level: sum(bits for x, bits in parts.items() if not is_home(homes.of(x), level))
            for level, parts in self.parts.items()
        }

    def more(self, homes: Homes) -> dict[int, int]:
        """Return what unfinished sums take more than finished ones at the home of O [bit]."""
        bits = self.resting.get(homes.O, 0) if homes.O is not None else 0
        return {homes.O: bits} if homes.O is not None and bits else {}


class Searched(NamedTuple):
    """What a search came to, and what it had to find."""

    found: Tiled | None  # None: nothing fits
    gap: float  # to its bound; 0 if that is met
    energy: float  # in its view [chip's unit]
    spare: float  # of the energy: a better tiling that saves less need not be found

    def is_enough(self, spare: float) -> bool:
        """Whether what was found is as near as is asked, or its budget ended as another would."""
        is_spent = self.gap > self.spare * ROUNDING
        return is_spent or self.gap <= spare * ROUNDING


class Floor(NamedTuple):
    """A bound: what a product costs at least, with such homes or nearer the outermost memory."""

    homes: Homes
    free: Mapping[int, int]  # room at each level, or less [bit]
    energy: float  # [chip's unit]


def is_home(home: int | None, level: int) -> bool:
    """Whether an operand stays at a level or further in than it, so that no tile lies there."""
    return home is not None and home >= level
