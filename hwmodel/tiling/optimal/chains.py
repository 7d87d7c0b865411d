"""The best nested tiling within given classes of tiles: where bounds meet real pieces.

Most classes are met exactly: their smallest tiles nest without waste, and their bound is their
energy. Else tiles a little larger, or a few pieces more, are listed loop by loop and combined.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Cut, Mapping, Tile, between, exact_cuts, pieces, sums_moved
from hwmodel.tiling.optimal.bounds import Axis, Room, Space, rooms, sum_weights
from hwmodel.tiling.optimal.budget import ENTRIES, STEPS, Budget, TooMany
from hwmodel.tiling.optimal.chain_rows import chain_rows, pair_cost, summed_rows
from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.pricing import level_energy
from hwmodel.tiling.rows import most_of, most_rows
from hwmodel.work.problem import Extents, Operand, Window

__all__ = ["Found", "Nest", "best_held", "best_within", "energies_of", "energy_of", "uncut_energy"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
REMEMBERED = 5_000  # tiles below the first cut up to which a loop's chains are kept for reuse
MOST_STEPS = 10_000_000  # of a compiled list of chains
KNOWN = 6_000_000  # numbers of lists of chains that are remembered
COMPARED = 1000  # options that are compared with all others; what is left then is kept


class Found(NamedTuple):
    """A tiling, its energy by the formula, and the number of tilings looked at."""

    energy: float
    mapping: Mapping | None
    examined: int


class _Box(NamedTuple):
    """Tiles of one loop that are looked at: of given classes, of not too many pieces."""

    extent: int
    least: Ints  # tile of every level
    largest: Ints
    fewest: Ints  # pieces at every level
    most: Ints


class _Options(NamedTuple):
    """Ways to tile the loops of N, M, C or of an axis: one row an option, one column a level."""

    tiles: tuple[Ints, ...]  # of each loop
    pieces: tuple[Ints, ...]
    loaded: Ints | None = None  # rows of I
    stored: Ints | None = None


class Nest(NamedTuple):
    """A class of tiles of every loop at every level: arrays [levels, 7]."""

    places: Ints  # of the classes
    least: Ints  # tile
    largest: Ints
    fewest: Ints  # pieces
    most: Ints  # beyond which a loop alone makes a tiling too dear


def best_within(space: Space, held: tuple[Operand, ...], nest: Nest) -> Found:
    """The cheapest tiling whose tiles are of the classes of a nest. Raises: TooMany."""
    extents = space.problem.extent
    boxes = [_Box(extents[d], *(x[:, d] for x in nest[1:])) for d in range(7)]
    n, m, c, ho, wo, hf, wf = boxes
    problem, top = space.problem, space.top
    sums = sum_weights(space, held)
    parts: list[_Options] = []
    for box, weights in ((n, None), (m, None), (c, sums)):
        parts.append(_loop(space, box, weights))
        if not len(parts[-1].tiles[0]):
            return Found(np.inf, None, 1)
    height = problem.height, space.height, top.rows
    width = problem.width, space.width, top.columns
    for axis, outs, taps, at in ((height, ho, hf, (3, 5)), (width, wo, wf, (4, 6))):
        places = nest.places[:, at[0]], nest.places[:, at[1]]
        parts.append(_axis(space, axis, places, outs, taps, sums))
        if not len(parts[-1].tiles[0]):
            return Found(np.inf, None, 1)
    return _combined(space, held, parts)


def _loop(space: Space, box: _Box, sums: Floats | None) -> _Options:
    """Chains of a loop that loads nothing but itself: the least one if it wastes nothing.

    Args:
        sums: what its pieces cost at every level, if they pay at one (`sum_weights`).
    """
    if _wastes_nothing(box, sums):
        return _Options((box.least[None],), (box.fewest[None],))
    listed = _useful_chains if sums is None else _chains
    chains, cut = listed(space.budget, box, space.limit)
    keep = _undominated(space.budget, np.column_stack([chains, _costs(cut, sums)]))
    return _Options((chains[keep],), (cut[keep],))


def _wastes_nothing(box: _Box, sums: Floats | None) -> bool:
    """Whether the smallest tiles make the fewest pieces, and nothing is better than fewest."""
    is_single = bool((box.least == box.largest).all())
    if sums is not None and not is_single:
        return False
    return bool(pieces(box.extent, box.least.tolist())[1:] == box.fewest.tolist())


def _costs(cut: Ints, sums: Floats | None) -> Any:
    """Columns in which a chain of a loop must match another to be as good: its pieces.

    Where pieces of the reduction pay at some level, it is what they cost from each level inwards,
    sum_(j >= k) w_j P_j. The other reduction loops multiply w_k P_k by m_k, with m_1 <= m_2 ...;
    by Abel's summation the difference of two chains is sum_k (m_k - m_(k-1)) times that of these.
    """
    return cut if sums is None else (cut * sums)[:, ::-1].cumsum(axis=1)[:, ::-1]


def _useful_chains(budget: Budget, box: _Box, limit: int) -> tuple[Ints, Ints]:
    """The chains of a box, but for first cuts that are larger than others and save no piece."""
    tiles = tuple(zip(box.least.tolist(), box.largest.tolist(), strict=True))
    uncut = int((box.fewest == 1).sum())
    if uncut == len(tiles):
        return box.least[None], box.fewest[None]
    below = prod(largest - least + 1 for least, largest in tiles[uncut + 1 :])
    first = prod(largest - least + 1 for least, largest in tiles[uncut : uncut + 2])
    if below > REMEMBERED and first < below:  # few have so few pieces
        return _chains(budget, box, limit)
    listed = _remembered_chains if below <= REMEMBERED else _cutting_chains
    chains, cut = listed(box.extent, tiles[uncut:], limit // 3)
    budget.spend(len(chains) / ENTRIES)  # as if none were remembered
    keep = cut[0] <= box.most[uncut]
    for number, most in zip(cut[1:], box.most[uncut + 1 :].tolist(), strict=True):
        keep = keep & (number <= most)
    whole = np.full((int(keep.sum()), uncut), box.extent)
    kept = [number[keep] for number in cut]
    return np.column_stack([whole, chains[keep]]), np.column_stack([np.ones_like(whole), *kept])


def _cutting_chains(
    extent: int, tiles: tuple[tuple[int, int], ...], limit: int
) -> tuple[Ints, tuple[Ints, ...]]:
    """Useful chains of tiles from least to largest, all of which cut the loop, and their pieces.

    The first tile t leaves q - 1 pieces of t and one of r = extent - (q - 1) t. A longer piece
    never has fewer pieces at any level below. So, for given tiles below, only those t are useful
    at which r falls to where a piece would begin: the least t that spares it.
    """
    low, high = tiles[0]
    full = -(-extent // low) - 1
    below = np.zeros((1, 0), np.int64)
    for least, largest in tiles[1:]:
        below = _longer(limit, below, np.arange(least, largest + 1))
    first = np.full(len(below), low)
    found = [np.zeros((0, len(tiles)), np.int64)]
    while len(first):
        found.append(np.column_stack([first, below]))
        if sum(map(len, found)) > limit:
            raise TooMany
        spared = _begins(below, extent - full * first - 1)
        first = -(-(extent - spared) // full)
        keep = (first <= high) & (spared > 0)
        first, below = first[keep], below[keep]
    chains = np.concatenate(found)
    if len(tiles) > 1:
        chains = chains[chains[:, 1] <= chains[:, 0]]
    return chains, tuple(pieces(extent, list(chains.T))[1:])


_remembered_chains = lru_cache(maxsize=512)(_cutting_chains)  # nests often differ elsewhere


def _begins(tiles: Ints, position: Ints) -> Ints:
    """Return where the piece around `position` begins, cut by chains of tiles [chains, levels]."""
    rest = position
    for tile in tiles.T:
        rest = rest % tile
    return position - rest


def _longer(limit: int, chains: Ints, tiles: Ints) -> Ints:
    """Every chain with every further tile within its last one."""
    if len(chains) * len(tiles) > limit:
        raise TooMany
    above = np.repeat(np.arange(len(chains)), len(tiles))
    longer = np.column_stack([chains[above], np.tile(tiles, len(chains))])
    return longer[longer[:, -1] <= longer[:, -2]] if longer.shape[1] > 1 else longer


def _chains(budget: Budget, box: _Box, limit: int) -> tuple[Ints, Ints]:
    """The falling chains of a box with few enough pieces, and their pieces [chains, levels]."""
    return (_compiled_chains if is_compiled() else _chains_in_arrays)(budget, box, limit)


class _Known:
    """Chains that were listed before, the latest of them: searches list most boxes many times."""

    def __init__(self, room: int) -> None:
        self._room = room  # of numbers that are kept
        self._listed: OrderedDict[Hashable, tuple[int, Ints, Ints, int]] = OrderedDict()

    def listed(self, box: _Box, limit: int) -> tuple[int, Ints, Ints, int]:
        """How many chains there are, -1 of too many; they, their pieces, and the work of it."""
        ends = [np.asarray(x, np.int64) for x in (box.least, box.largest, box.most)]
        key = (box.extent, limit, *(x.tobytes() for x in ends))
        if key in self._listed:
            self._listed.move_to_end(key)
            return self._listed[key]
        chains, cut = (np.empty((limit, len(box.least)), np.int64) for _ in range(2))
        steps = min(STEPS * limit, MOST_STEPS)
        found, work = kernel("chains")(box.extent, *ends, steps, chains, cut)
        number = max(0, int(found))
        new = int(found), chains[:number].copy(), cut[:number].copy(), int(work)
        self._listed[key] = new
        self._room -= 2 * new[1].size
        while self._room < 0:
            _, (_, last, _, _) = self._listed.popitem(last=False)
            self._room += 2 * last.size
        return new


_known = _Known(KNOWN)


def _compiled_chains(budget: Budget, box: _Box, limit: int) -> tuple[Ints, Ints]:
    found, chains, cut, work = _known.listed(box, limit)
    budget.spend(work / STEPS)  # as if none were remembered
    if found < 0:
        raise TooMany
    return chains, cut


def _chains_in_arrays(budget: Budget, box: _Box, limit: int) -> tuple[Ints, Ints]:
    chains = cut = np.zeros((1, 0), np.int64)
    for i, (low, high) in enumerate(zip(box.least.tolist(), box.largest.tolist(), strict=True)):
        budget.spend(min(len(chains) * (high + 1 - low), limit) / ENTRIES)
        chains = _longer(limit, chains, np.arange(low, high + 1))
        cut = np.column_stack(
            [np.broadcast_to(x, len(chains)) for x in pieces(box.extent, list(chains.T))[1:]]
        )
        keep = (cut <= box.most[: i + 1]).all(axis=1)
        chains, cut = chains[keep], cut[keep]
    return chains, cut


def _undominated(budget: Budget, costs: Any) -> Any:
    """Rows of `costs` that no other row matches or beats in every column; of equals, one."""
    left = np.lexsort((np.arange(len(costs)), costs.sum(axis=1)))  # none beats an earlier one
    kept: list[int] = []
    while len(left) and len(kept) < COMPARED:
        budget.spend(len(left) / ENTRIES)
        kept.append(int(left[0]))
        left = left[(costs[left] < costs[left[0]]).any(axis=1)]
    return np.array([*kept, *left], dtype=np.int64)


def _axis(
    space: Space,
    of: tuple[Window, Axis, int],
    at: tuple[Ints, Ints],
    outs: _Box,
    taps: _Box,
    sums: Floats | None,
) -> _Options:
    """Chains of outputs and taps of one axis with the rows that they load and store.

    Args:
        of: the axis; and the rows of the whole.
        at: places of the classes of outputs and of taps.
        sums: what pieces of the taps cost at every level, if they pay at one (`sum_weights`).
    """
    window, axis, whole = of
    if _wastes_nothing(outs, None) and _wastes_nothing(taps, sums):
        out, tap = outs.least[None], taps.least[None]
        loaded = chain_rows(space.rule, window, outs.extent, taps.extent, out, tap)
        least = axis.rows[at]
        least[0] = axis.cut_once[at[0][0], at[1][0]]
        if (loaded[0] == least).all():
            cut = outs.fewest[None], taps.fewest[None]
            return _Options((out, tap), cut, loaded, axis.room[at][None])
    by_out = axis.by_out if (taps.fewest == 1).all() else None
    by_tap = axis.by_tap if (outs.fewest == 1).all() else None
    anew = by_tap if by_out is None else by_out
    together = anew is not None and anew.ndim == 1  # then rows are a sum over cuts, quickly made
    cost = pair_cost(space.rule, window, outs.extent, taps.extent, anew)
    limit = int(space.limit / max(cost / 10, 1))
    (out, out_cut), (tap, tap_cut) = (
        (_useful_chains if is_even else _chains)(space.budget, box, limit)
        for box, is_even in ((outs, _even(by_out)), (taps, _even(by_tap) and sums is None))
    )
    if len(out) * len(tap) > limit // (30 if together else 100):
        raise TooMany
    i, k = np.indices((len(out), len(tap))).reshape(2, -1)
    if not len(i):
        return _Options((out[i], tap[k]), (out_cut[i], tap_cut[k]))
    space.budget.spend(len(i) * cost)
    if by_out is not None:
        loaded = summed_rows(axis, by_out, out, out_cut)
    elif by_tap is not None:
        loaded = summed_rows(axis, by_tap, tap, tap_cut)
    else:
        loaded = chain_rows(space.rule, window, outs.extent, taps.extent, out, tap)
    found = _Options(
        (out[i], tap[k]),
        (out_cut[i], tap_cut[k]),
        loaded,
        most_rows(window, space.rule, whole, out[i], tap[k]),
    )
    costs = [*found.tiles, found.pieces[0], _costs(found.pieces[1], sums), loaded]
    return _kept(found, _undominated(space.budget, np.column_stack(costs)))


def _even(anew: Ints | None) -> bool:
    """Whether every cut loads the same anew, so that rows depend on the number of pieces alone."""
    return anew is not None and anew.ndim == 1 and bool((anew == anew[:1]).all())


def _kept(options: _Options, keep: Any) -> _Options:
    assert options.loaded is not None and options.stored is not None
    return _Options(
        tuple(tiles[keep] for tiles in options.tiles),
        tuple(numbers[keep] for numbers in options.pieces),
        options.loaded[keep],
        options.stored[keep],
    )


def _combined(space: Space, held: tuple[Operand, ...], parts: list[_Options]) -> Found:
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
