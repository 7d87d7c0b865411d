"""The best nested tiling within given classes of tiles: where bounds meet real pieces.

Most classes are met exactly: their smallest tiles nest without waste, and their bound is their
energy. Else tiles a little larger, or a few pieces more, are listed loop by loop and combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Cut, Mapping, Tile, between, exact_cuts, sums_moved
from hwmodel.tiling.optimal.axis_chains import Options, axis_options
from hwmodel.tiling.optimal.bounds import Room, Space, rooms, sum_weights
from hwmodel.tiling.optimal.budget import TooMany
from hwmodel.tiling.optimal.loop_chains import (
    Box,
    costs_of,
    every_chain,
    undominated,
    useful_chains,
    wastes_nothing,
)
from hwmodel.tiling.pricing import level_energy
from hwmodel.tiling.rows import most_of
from hwmodel.work.problem import Extents, Operand

__all__ = ["Found", "Nest", "best_held", "best_within", "energies_of", "energy_of", "uncut_energy"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Found(NamedTuple):
    """A tiling, its energy by the formula, and the number of tilings looked at."""

    energy: float
    mapping: Mapping | None
    examined: int


class Nest(NamedTuple):
    """A class of tiles of every loop at every level: arrays [levels, 7]."""

    places: Ints  # of the classes
    least: Ints  # tile
    largest: Ints
    fewest: Ints  # pieces
    most: Ints  # beyond which a loop alone makes a tiling too dear


def best_within(
    space: Space, held: tuple[Operand, ...], nest: Nest, reach: float = np.inf
) -> Found:
    """The cheapest tiling whose tiles are of the classes of a nest.

    Args:
        reach: a dearer one may be missed.

    Raises: TooMany.
    """
    extents = space.problem.extent
    boxes = [Box(extents[d], *(x[:, d] for x in nest[1:])) for d in range(7)]
    if (nest.fewest > nest.most).any():
        return Found(np.inf, None, 1)
    n, m, c, ho, wo, hf, wf = boxes
    problem, top = space.problem, space.top
    sums = sum_weights(space, held)
    parts: list[Options] = []
    for box, weights in ((n, None), (m, None), (c, sums)):
        parts.append(_loop(space, box, weights))
        if not len(parts[-1].tiles[0]):
            return Found(np.inf, None, 1)
    height = problem.height, space.height, top.rows
    width = problem.width, space.width, top.columns
    for axis, outs, taps, at in ((height, ho, hf, (3, 5)), (width, wo, wf, (4, 6))):
        useful = partial(_useful, space, held, nest, at, reach if sums is None else np.inf)
        places = nest.places[:, at[0]], nest.places[:, at[1]]
        parts.append(axis_options(space, axis, places, (outs, taps), sums, useful))
        if not len(parts[-1].tiles[0]):
            return Found(np.inf, None, 1)
    return _combined(space, held, parts)


def _loop(space: Space, box: Box, sums: Floats | None) -> Options:
    """Chains of a loop that loads nothing but itself: the least one if it wastes nothing.

    Args:
        sums: what its pieces cost at every level, if they pay at one (`sum_weights`).
    """
    if wastes_nothing(box, sums):
        return Options((box.least[None],), (box.fewest[None],))
    listed = useful_chains if sums is None else every_chain
    chains, cut = listed(space.budget, box, space.limit)
    keep = undominated(space.budget, np.column_stack([chains, costs_of(cut, sums)]))
    return Options((chains[keep],), (cut[keep],))


def _useful(
    space: Space,
    held: tuple[Operand, ...],
    nest: Nest,
    of: tuple[int, int],
    reach: float,
    options: Options,
) -> Any:
    """Which options of an axis fit, and cost no more than `reach`, where all else is least.

    Args:
        of: the loops of the axis.
    """
    if not np.isfinite(reach):
        return np.ones(len(options.tiles[0]), bool)
    assert options.loaded is not None and options.stored is not None
    other = space.width if of == (3, 5) else space.height
    places = nest.places[:, 7 - of[0]], nest.places[:, 11 - of[1]]
    cuts = np.empty((9, *options.loaded.shape))
    cuts[:7] = nest.fewest.T[:, None]
    cuts[of, :] = options.pieces
    cuts[of[0] + 4], cuts[11 - of[0]] = options.loaded, other.rows[places]
    keep = _energy(space, held, cuts) <= reach * (1 + 1e-9)
    sizes: list[Any] = [*nest.least.T]
    sizes[of[0]], sizes[of[1]] = options.tiles
    stored = options.stored * other.room[places]
    for level in range(len(held)):
        tile: Tile = Extents(*(size[..., level] for size in sizes))
        keep &= _fits(space, rooms(space, level + 1, held[level]), tile, stored[:, level])
    return keep


def _combined(space: Space, held: tuple[Operand, ...], parts: list[Options]) -> Found:
    """The cheapest of all combinations of the loops' options that fit."""
    sizes = [len(part.tiles[0]) for part in parts]
    total = int(np.prod(sizes, dtype=float))
    if total > space.limit:
        raise TooMany
    if not total:
        return Found(np.inf, None, 0)
    n, m, c, h, w = np.indices(sizes).reshape(5, -1)
    N, M, C, H, W = parts
    tiles: tuple[Ints, ...] = (N.tiles[0][n], M.tiles[0][m], C.tiles[0][c])
    tiles += (H.tiles[0][h], W.tiles[0][w], H.tiles[1][h], W.tiles[1][w])
    cut: tuple[Ints, ...] = (N.pieces[0][n], M.pieces[0][m], C.pieces[0][c])
    cut += (H.pieces[0][h], W.pieces[0][w], H.pieces[1][h], W.pieces[1][w])
    assert H.loaded is not None and W.loaded is not None
    assert H.stored is not None and W.stored is not None
    cuts = np.array([*cut, H.loaded[h], W.loaded[w]], float)  # [9, options, levels]
    fits = np.ones(total, bool)
    stored = H.stored[h] * W.stored[w]
    for level in range(len(held)):
        at_level: Any = [t[:, level] for t in tiles]
        tile: Tile = Extents(*at_level)
        fits &= _fits(space, rooms(space, level + 1, held[level]), tile, stored[:, level])
    energy = np.where(fits, _energy(space, held, cuts), np.inf)
    best = int(np.argmin(energy))
    if not fits[best]:
        return Found(np.inf, None, total)
    chosen = tuple(Extents(*(int(t[best, level]) for t in tiles)) for level in range(len(held)))
    return Found(float(energy[best]), Mapping(chosen, held), total)


def _fits(space: Space, rooms: tuple[Room, ...], tile: Any, stored: Any) -> Any:
    bits = space.problem.bits
    # Floats, which count further than 64-bit integers.
    size_I = float(bits.I) * tile.N * tile.C * stored
    size_F = float(bits.F) * tile.M * tile.C * tile.HF * tile.WF
    size_O = float(space.sum_bits) * tile.N * tile.M * tile.HO * tile.WO
    fits = True
    for room in rooms:
        fits &= size_I * room.I + size_F * room.F + size_O * room.O <= room.capacity
    return fits


def energy_of(space: Space, mapping: Mapping) -> float:
    """Energy of a mapping; infinite if a tile does not fit."""
    return float(energies_of(space, mapping.tiles, mapping.held)[0])


def energies_of(space: Space, tiles: Sequence[Tile], held: tuple[Operand, ...]) -> Floats:
    """Energies of nested tiles [mappings]; infinite where one does not fit.

    Args:
        tiles: of every level; N, M and C may be arrays [mappings] of whole numbers.
    """
    problem, top = space.problem, space.top
    fits: Any = True
    for i, (tile, holds) in enumerate(zip(tiles, held, strict=True)):
        rows = most_of(problem.height, space.rule, top.rows, tile.HO, tile.HF)
        columns = most_of(problem.width, space.rule, top.columns, tile.WO, tile.WF)
        fits = fits & _fits(space, rooms(space, i + 1, holds), tile, rows * columns)
    cuts = exact_cuts(problem, tiles, space.rule)[1:-1]
    flat = np.broadcast_arrays(*(np.atleast_1d(number) for cut in cuts for number in cut))
    levels = np.array(flat, float).reshape(len(cuts), len(Cut._fields), -1)
    found: Floats = np.where(fits, _energy(space, held, np.moveaxis(levels, 0, -1)), np.inf)
    return found


def best_held(
    space: Space, tiles: tuple[Extents, ...], choices: Sequence[tuple[Operand, ...]]
) -> tuple[float, Mapping]:
    """The energy of tiles under the best of the `choices` of what the boundaries hold.

    Given the tiles, each boundary is paid by itself: what it holds changes nothing elsewhere but
    the reads of sums at the next one, which are counted with the arrivals that spare them.
    """
    problem, top = space.problem, space.top
    cuts = [top, *exact_cuts(problem, tiles, space.rule)[1:]]
    stored = [
        most_of(problem.height, space.rule, top.rows, tile.HO, tile.HF)
        * most_of(problem.width, space.rule, top.columns, tile.WO, tile.WF)
        for tile in tiles
    ]
    freed = [problem.O_elements * rate.O_partial_reads for rate in space.rates[1:]] + [0.0]
    last: tuple[Operand, ...] = ("F",)
    each = _each(tuple(choices))
    totals = np.zeros(len(choices))
    for i, (upper, lower) in enumerate(pairwise(cuts)):
        paid = []
        options, places = each[i] if i < len(tiles) else (last, 0)
        for holds in options:
            fits = i == len(tiles) or _fits(space, rooms(space, i + 1, holds), tiles[i], stored[i])
            counts = between(problem, upper, lower, holds, 0)
            spared = freed[i] * sums_moved(upper, lower, holds)
            paid.append(level_energy(counts, space.rates[i]) - spared if fits else np.inf)
        if i == len(tiles):
            paid[0] -= problem.O_elements * space.rates[0].O_partial_reads
        totals += np.array(paid, float)[places]
    best = int(np.argmin(totals))
    return float(totals[best]), Mapping(tiles, choices[best])


@lru_cache(maxsize=16)
def _each(
    choices: tuple[tuple[Operand, ...], ...],
) -> list[tuple[tuple[Operand, ...], Ints]]:
    """What each boundary may hold, and which of that every choice has there [choices]."""
    found = []
    for held in zip(*choices, strict=True):
        options = tuple(dict.fromkeys(held))
        found.append((options, np.array([options.index(x) for x in held])))
    return found


def uncut_energy(space: Space) -> float:
    """Return the energy of everything in one piece at every level, as if it fitted: a bound."""
    levels = len(space.rates) - 1
    rows, columns = space.height.rows[0, 0], space.width.rows[0, 0]
    cut = np.array([1, 1, 1, 1, 1, 1, 1, rows, columns], float)
    held: Operand = "F"
    return float(_energy(space, (held,) * levels, np.repeat(cut[:, None], levels, axis=1)))


def _energy(space: Space, held: tuple[Operand, ...], cuts: Any) -> Any:
    """Energy of nests [options], their cuts below the top [9, options, levels]."""
    levels = [space.top, *(Cut(*cuts[..., level]) for level in range(len(held)))]
    levels.append(levels[-1]._replace(rows=space.used[0], columns=space.used[1]))
    energy: Any = 0.0
    leaving: Any = 1
    for upper, lower, holds, rate in zip(
        levels[:-1], levels[1:], (*held, "F"), space.rates, strict=True
    ):
        energy = energy + level_energy(between(space.problem, upper, lower, holds, leaving), rate)
        leaving = sums_moved(upper, lower, holds)
    return energy
