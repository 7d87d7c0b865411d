"""A tiling made better loop by loop, for searches that end before they have an optimum."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodel.problem import Extents
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.bounds import Space
from hwmodel.tiling.chains import energy_of
from hwmodel.tiling.level_by_level import candidates

__all__ = ["descended"]

LOOKED_AT = 2_000  # tilings; a fraction of a millisecond each
MULTIPLES = 40  # of the tile below that are tried for one tile


def descended(space: Space, mapping: Mapping) -> tuple[float, Mapping]:
    """The tiling that single changes of tiles lead to, each the best for its loop and level.

    It has no lower energy beside it that one change reaches; nothing says that it is the least.
    Ends after `LOOKED_AT` tilings.
    """
    best, energy, left = mapping, energy_of(space, mapping), LOOKED_AT
    moving = True
    while moving and left > 0:
        moving = False
        for level in range(len(mapping.tiles)):
            for loop in Extents._fields:
                for changed in _changes(space, best, level, loop):
                    left -= 1
                    found = energy_of(space, changed)
                    if found < energy:
                        best, energy, moving = changed, found, True
                if left <= 0:
                    return energy, best
    return energy, best


def _changes(space: Space, mapping: Mapping, level: int, loop: str) -> Iterator[Mapping]:
    """Mappings with another tile of one loop at one level, those below no longer than it."""
    tiles = mapping.tiles
    above = getattr(tiles[level - 1] if level else space.problem.extent, loop)
    below = getattr(tiles[level + 1], loop) if level + 1 < len(tiles) else 1
    lengths = {*candidates(above).tolist()}
    lengths.update(range(below, min(above, MULTIPLES * below) + 1, below))
    for length in sorted(lengths - {getattr(tiles[level], loop)}, reverse=True):
        shorter = (
            tile._replace(**{loop: min(getattr(tile, loop), length)}) for tile in tiles[level + 1 :]
        )
        changed = tiles[level]._replace(**{loop: length})
        yield Mapping((*tiles[:level], changed, *shorter), mapping.held)
