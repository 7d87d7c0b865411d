"""The best nested tiling within given classes of tiles: where bounds meet real pieces.

Most classes are met exactly: their smallest tiles nest without waste, and their bound is their
energy. Else tiles a little larger, or a few pieces more, are listed loop by loop and combined.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.accesses import Cut, Mapping, axis_rows, between, exact_cuts, pieces
from hwmodel.bounds import Axis, Room, Space, TooMany, rooms
from hwmodel.pricing import level_energy
from hwmodel.problem import Extents, Operand, Window
from hwmodel.rows import RowRule, most_rows

__all__ = ["Found", "best_within", "energy_of"]

Ints = NDArray[np.int64]
COMPARED = 3000  # options that are compared pair by pair; longer lists are left as they are


class Found(NamedTuple):
    """A tiling, its energy by the formula, and how many were looked at to find it."""

    energy: float
    mapping: Mapping | None
    examined: int


class _Box(NamedTuple):
    """Tiles of one loop that are looked at: of given classes, and of not too many pieces."""

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


def best_within(space: Space, held: tuple[Operand, ...], classes: Ints, most: Ints) -> Found:
    """The cheapest nested tiling whose tiles are of `classes` [levels, 7].

    Args:
        most: pieces [levels, 7] beyond which a loop alone makes a tiling too dear.
    """
    extents = np.array(space.problem.extent)
    least = -(-extents // classes)
    largest = np.where(classes > 1, -(-extents // np.maximum(classes - 1, 1)) - 1, extents)
    largest = np.minimum(largest, _roomy(space, held, least))
    boxes = [
        _Box(extents[d].item(), least[:, d], largest[:, d], classes[:, d], most[:, d])
        for d in range(7)
    ]
    n, m, c, ho, wo, hf, wf = boxes
    problem, top = space.problem, space.top
    parts = (
        *(_loop(space, box) for box in (n, m, c)),
        _axis(space, problem.height, space.height, top.rows, ho, hf),
        _axis(space, problem.width, space.width, top.columns, wo, wf),
    )
    return _combined(space, held, parts)


def _roomy(space: Space, held: tuple[Operand, ...], least: Ints) -> Ints:
    """The largest tiles [levels, 7] of each loop that fit beside the least ones of the others.

    Only N, M and C are limited: what a tile takes of a buffer is proportional to them.
    """
    problem, bits = space.problem, space.problem.bits
    largest = np.broadcast_to(np.array(problem.extent), least.shape).copy()
    n, m, c, ho, wo, hf, wf = least.T
    rows = most_rows(problem.height, space.rule, space.top.rows, ho, hf)
    columns = most_rows(problem.width, space.rule, space.top.columns, wo, wf)
    size_I = bits.I * n * c * rows * columns
    size_F = bits.F * m * c * hf * wf
    size_O = space.sum_bits * n * m * ho * wo
    for i, holds in enumerate(held):
        for room in rooms(space, i + 1, holds):
            sizes = size_I[i] * room.I, size_F[i] * room.F, size_O[i] * room.O
            for d, grows in enumerate(((0, 2), (1, 2), (0, 1))):
                share = sum(sizes[k] for k in grows)
                if share:
                    most = least[i, d] * (room.capacity - sum(sizes) + share) / share
                    largest[i, d] = min(largest[i, d], int(most))
    return largest


def _loop(space: Space, box: _Box) -> _Options:
    """Chains of a loop that loads nothing but itself: the least one if it wastes nothing."""
    direct = np.array(pieces(box.extent, box.least.tolist())[1:])
    if (direct == box.fewest).all():
        return _Options((box.least[None],), (direct[None],))
    chains, cut = _chains(space, box)
    keep = _undominated(np.column_stack([chains, cut]))
    return _Options((chains[keep],), (cut[keep],))


def _chains(space: Space, box: _Box) -> tuple[Ints, Ints]:
    """The falling chains of a box with few enough pieces, and their pieces [chains, levels]."""
    chains = cut = np.zeros((1, 0), np.int64)
    for i, (low, high) in enumerate(zip(box.least.tolist(), box.largest.tolist(), strict=True)):
        tiles = np.arange(low, high + 1)
        if len(chains) * len(tiles) > space.limit:
            raise TooMany
        longer = np.repeat(chains, len(tiles), axis=0)
        chains = np.column_stack([longer, np.tile(tiles, len(chains))])
        if i:
            chains = chains[chains[:, i] <= chains[:, i - 1]]
        numbers = pieces(box.extent, list(chains.T))[1:]
        cut = np.column_stack([np.broadcast_to(x, len(chains)) for x in numbers])
        keep = cut[:, i] <= box.most[i]
        chains, cut = chains[keep], cut[keep]
    return chains, cut


def _undominated(costs: Ints) -> Any:
    """Rows of `costs` that no other row matches or beats in every column; of equals, the first."""
    if len(costs) > COMPARED:
        return np.arange(len(costs))
    order = np.lexsort((np.arange(len(costs)), costs.sum(axis=1)))
    kept: list[int] = []
    for i in order.tolist():
        if not kept or not (costs[kept] <= costs[i]).all(axis=1).any():
            kept.append(i)
    return np.array(sorted(kept), dtype=np.int64)


def _axis(space: Space, window: Window, axis: Axis, whole: int, outs: _Box, taps: _Box) -> _Options:
    """Chains of outputs and taps of one axis with the rows that they load and store."""
    bound = axis.rows[
        np.searchsorted(axis.out_pieces, outs.fewest),
        np.searchsorted(axis.tap_pieces, taps.fewest),
    ]
    direct = [pieces(box.extent, box.least.tolist())[1:] for box in (outs, taps)]
    if direct == [outs.fewest.tolist(), taps.fewest.tolist()]:
        least = _with_rows(space, window, whole, outs, taps, outs.least[None], taps.least[None])
        if (least.loaded == bound).all():
            return least
    out_chains, _ = _chains(space, outs)
    tap_chains, _ = _chains(space, taps)
    if len(out_chains) * len(tap_chains) > space.limit // 100:
        raise TooMany
    i, k = np.indices((len(out_chains), len(tap_chains))).reshape(2, -1)
    found = _with_rows(space, window, whole, outs, taps, out_chains[i], tap_chains[k])
    keep = _undominated(np.column_stack([*found.tiles, *found.pieces, found.loaded]))
    return _kept(found, keep)


def _with_rows(
    space: Space, window: Window, whole: int, outs: _Box, taps: _Box, out: Ints, tap: Ints
) -> _Options:
    loaded = [
        axis_rows_once(window, space.rule, outs.extent, taps.extent, tuple(o), tuple(t))
        for o, t in zip(out.tolist(), tap.tolist(), strict=True)
    ]
    numbers = [
        np.column_stack(
            [np.broadcast_to(x, len(chain)) for x in pieces(box.extent, list(chain.T))[1:]]
        )
        for box, chain in ((outs, out), (taps, tap))
    ]
    return _Options(
        tiles=(out, tap),
        pieces=(numbers[0], numbers[1]),
        loaded=np.array(loaded, np.int64).reshape(out.shape),
        stored=most_rows(window, space.rule, whole, out, tap),
    )


@lru_cache(maxsize=4096)
def axis_rows_once(
    window: Window,
    rule: RowRule,
    outs: int,
    taps: int,
    out_tiles: tuple[int, ...],
    tap_tiles: tuple[int, ...],
) -> tuple[int, ...]:
    """`axis_rows` below the top; both axes of a square problem, and its neighbours, ask alike."""
    tiles = list(zip(out_tiles, tap_tiles, strict=True))
    return tuple(axis_rows(window, rule, outs, taps, tiles)[1:])


def _kept(options: _Options, keep: Any) -> _Options:
    assert options.loaded is not None and options.stored is not None
    return _Options(
        tuple(tiles[keep] for tiles in options.tiles),
        tuple(numbers[keep] for numbers in options.pieces),
        options.loaded[keep],
        options.stored[keep],
    )


def _combined(space: Space, held: tuple[Operand, ...], parts: tuple[_Options, ...]) -> Found:
    """The cheapest of all combinations of the loops' options that fit."""
    sizes = [len(part.tiles[0]) for part in parts]
    total = int(np.prod(sizes, dtype=float))
    if total > space.limit:
        raise TooMany
    if not total:
        return Found(np.inf, None, 0)
    n, m, c, h, w = np.indices(sizes).reshape(5, -1)
    N, M, C, H, W = parts
    tiles = (N.tiles[0][n], M.tiles[0][m], C.tiles[0][c])
    tiles += (H.tiles[0][h], W.tiles[0][w], H.tiles[1][h], W.tiles[1][w])
    cut = (N.pieces[0][n], M.pieces[0][m], C.pieces[0][c])
    cut += (H.pieces[0][h], W.pieces[0][w], H.pieces[1][h], W.pieces[1][w])
    assert H.loaded is not None and W.loaded is not None
    assert H.stored is not None and W.stored is not None
    cuts = np.array([*cut, H.loaded[h], W.loaded[w]], float)  # [9, options, levels]
    fits = np.ones(total, bool)
    stored = H.stored[h] * W.stored[w]
    for level in range(len(held)):
        tile = Extents(*(t[:, level] for t in tiles))
        fits &= _fits(space, rooms(space, level + 1, held[level]), tile, stored[:, level])
    energy = np.where(fits, _energy(space, held, cuts), np.inf)
    best = int(np.argmin(energy))
    if not fits[best]:
        return Found(np.inf, None, total)
    chosen = tuple(Extents(*(int(t[best, level]) for t in tiles)) for level in range(len(held)))
    return Found(float(energy[best]), Mapping(chosen, held), total)


def _fits(space: Space, rooms: tuple[Room, ...], tile: Any, stored: Any) -> Any:
    bits = space.problem.bits
    size_I = bits.I * tile.N * tile.C * stored
    size_F = bits.F * tile.M * tile.C * tile.HF * tile.WF
    size_O = space.sum_bits * tile.N * tile.M * tile.HO * tile.WO
    fits = True
    for room in rooms:
        fits &= size_I * room.I + size_F * room.F + size_O * room.O <= room.capacity
    return fits


def energy_of(space: Space, mapping: Mapping) -> float:
    """Energy of a mapping; infinite if a tile does not fit."""
    problem, top = space.problem, space.top
    for i, (tile, holds) in enumerate(zip(mapping.tiles, mapping.held, strict=True)):
        rows = most_rows(problem.height, space.rule, top.rows, tile.HO, tile.HF)
        columns = most_rows(problem.width, space.rule, top.columns, tile.WO, tile.WF)
        if not _fits(space, rooms(space, i + 1, holds), tile, rows * columns):
            return np.inf
    cuts = exact_cuts(problem, mapping.tiles, space.rule)[1:-1]
    return float(_energy(space, mapping.held, np.array(cuts, float).T))


def _energy(space: Space, held: tuple[Operand, ...], cuts: Any) -> Any:
    """Energy of nests [options], their cuts below the top [9, options, levels]."""
    levels = [space.top, *(Cut(*cuts[..., level]) for level in range(len(held)))]
    levels.append(levels[-1]._replace(rows=space.used[0], columns=space.used[1]))
    energy: Any = 0.0
    for upper, lower, holds, price in zip(
        levels[:-1], levels[1:], (*held, "F"), space.prices, strict=True
    ):
        energy = energy + level_energy(between(space.problem, upper, lower, holds), price)
    return energy
