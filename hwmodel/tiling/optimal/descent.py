"""Improves a tiling tile by tile, for searches that end before they have an optimum."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.level_by_level import candidates
from hwmodel.tiling.optimal.bounds import Space
from hwmodel.tiling.optimal.chains import energies_of, energy_of
from hwmodel.work.problem import Extents, Operand

__all__ = ["descended", "first_guesses"]

ROUNDS = 6  # through all levels
TRIED = 16  # lengths of one tile, and as many multiples of the tile below
LOOPS = ("N", "M", "C")
AXES = ("HO", "WO", "HF", "WF")


def first_guesses(space: Space, held: tuple[Operand, ...]) -> Iterator[Mapping]:
    """Tilings of whole or of single outputs and taps, with the best N, M and C level by level."""
    n = space.problem.extent
    for outs, taps in product((True, False), repeat=2):
        HO, WO = (n.HO, n.WO) if outs else (1, 1)
        HF, WF = (n.HF, n.WF) if taps else (1, 1)
        guess = Mapping((Extents(1, 1, 1, HO, WO, HF, WF),) * len(held), held)
        best = energy_of(space, guess), guess
        for level in range(len(held)):
            best = _without_halo(space, best, level)
        yield best[1]


def descended(space: Space, mapping: Mapping) -> tuple[float, Mapping]:
    """Change tiles, each time to the best of its kind; return the energy and the tiling reached.

    At every level in turn, N, M and C change together, and then each of the other loops by itself.
    It ends where no change helps, or after some rounds; nothing says that it ends at the least.
    """
    best = energy_of(space, mapping), mapping
    for _ in range(ROUNDS):
        before = best[0]
        for level in range(len(mapping.tiles)):
            best = _without_halo(space, best, level)
            for loop in AXES:
                best = _along(space, best, level, loop)
        if best[0] >= before:
            break
    return best


def _without_halo(space: Space, best: tuple[float, Mapping], level: int) -> tuple[float, Mapping]:
    """Return `best`, or a better tiling with other N, M and C at one level."""
    energy, mapping = best
    lengths = [_lengths(space, mapping, level, loop) for loop in LOOPS]
    grid = [one.ravel() for one in np.meshgrid(*lengths, indexing="ij")]
    tiles: list[Any] = list(mapping.tiles)
    for i, tile in enumerate(tiles[level:], start=level):
        changed = dict(zip(LOOPS, grid, strict=True))
        if i > level:
            changed = {loop: np.minimum(one, getattr(tile, loop)) for loop, one in changed.items()}
        tiles[i] = tile._replace(**changed)
    energies = energies_of(space, tiles, mapping.held)
    at = int(np.argmin(energies))
    if not energies[at] < energy:
        return best
    chosen = [*mapping.tiles[:level]]
    for tile in tiles[level:]:
        chosen.append(tile._replace(**{loop: int(getattr(tile, loop)[at]) for loop in LOOPS}))
    return float(energies[at]), Mapping(tuple(chosen), mapping.held)


def _along(
    space: Space, best: tuple[float, Mapping], level: int, loop: str
) -> tuple[float, Mapping]:
    """Return `best`, or a better tiling with another tile of one loop at one level."""
    for changed in _changes(space, best[1], level, loop):
        energy = energy_of(space, changed)
        if energy < best[0]:
            best = energy, changed
    return best


def _changes(space: Space, mapping: Mapping, level: int, loop: str) -> Iterator[Mapping]:
    """Mappings with another tile of a loop at a level, those below no longer than it."""
    tiles = mapping.tiles
    for length in _lengths(space, mapping, level, loop).tolist():
        changed = [
            tile._replace(**{loop: min(getattr(tile, loop), length)}) for tile in tiles[level + 1 :]
        ]
        first = tiles[level]._replace(**{loop: length})
        yield Mapping((*tiles[:level], first, *changed), mapping.held)


def _lengths(space: Space, mapping: Mapping, level: int, loop: str) -> NDArray[np.int64]:
    """Lengths to try for one tile: some that differ in pieces, and multiples of the tile below."""
    tiles: tuple[Extents, ...] = (space.problem.extent, *mapping.tiles)
    above, own = (getattr(tile, loop) for tile in tiles[level : level + 2])
    below = getattr(tiles[level + 2], loop) if level + 2 < len(tiles) else 1
    useful = candidates(above)
    useful = useful[:: -(-len(useful) // TRIED)]
    multiples = np.arange(below, min(above, TRIED * below) + 1, below)
    return np.unique(np.concatenate([useful, multiples, [own]]))
