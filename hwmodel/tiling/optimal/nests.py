"""Nests of classes: one class of tiles a level, each within the one above, and their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.bounds import Axis, Level, Space, all_rooms
from hwmodel.tiling.optimal.budget import TooMany
from hwmodel.tiling.pricing import added
from hwmodel.work.problem import Extents, Operand

__all__ = ["joined", "most_pieces", "smallest_tiles", "stands", "tile_ranges", "wasted"]

Ints = NDArray[np.int64]
TOGETHER = 2**17  # pairs of classes that are compared together, to save memory


def joined(lists: list[tuple[Any, Ints]], reach: float, limit: int) -> tuple[Any, Ints, int]:
    """All nests of listed classes up to `reach`: bounds, classes [nests, levels, 7], how many."""
    least = [float(energies.min(initial=np.inf)) for energies, _ in lists]
    rest = [added(least[k + 1 :]) for k in range(len(lists))]
    totals = lists[0][0][lists[0][0] + rest[0] <= reach]
    chosen = [np.arange(len(totals))]  # which class of each list
    examined = sum(len(energies) for energies, _ in lists)
    for k in range(1, len(lists)):
        upper, lower = _pairs(totals, chosen[-1], lists[k - 1][1], lists[k], reach - rest[k], limit)
        totals = totals[upper] + lists[k][0][lower]
        chosen = [*(index[upper] for index in chosen), lower]
        examined += len(totals)
    nests = [classes[index] for (_, classes), index in zip(lists, chosen, strict=True)]
    return totals, np.stack(nests, axis=1), examined


def _pairs(
    totals: Any, last: Ints, above: Ints, below: tuple[Any, Ints], reach: float, limit: int
) -> tuple[Ints, Ints]:
    """Pair nests with the classes of the next level that cut every loop at least as often.

    Args:
        last: the class of each nest in the list `above`.
    """
    energies, classes = below
    # Nests of one class stand in a row, the cheapest first.
    order = np.lexsort((totals, last))
    starts = np.flatnonzero(np.diff(last[order], prepend=-1))
    near = np.searchsorted(energies, reach - totals[order[starts]], side="right")
    uppers, lowers, number = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for row, lower in _nested(above[last[order[starts]]], classes, near):
        counts = _within(totals[order], starts, row, reach - energies[lower])
        number += int(counts.sum())
        if number > limit:
            raise TooMany
        lowers.append(np.repeat(lower, counts))
        firsts = np.repeat(np.cumsum(counts) - counts - starts[row], counts)
        uppers.append(order[np.arange(len(firsts)) - firsts])
    upper, lower = np.concatenate(uppers), np.concatenate(lowers)
    listed = np.lexsort((lower, upper, last[upper]))
    return upper[listed], lower[listed]


def _within(totals: Any, starts: Ints, row: Ints, reach: Any) -> Any:
    """Count the entries of a row that are at most `reach`; the first one is, and entries rise."""
    ends = np.append(starts[1:], len(totals))
    low, high = starts[row] + 1, ends[row]
    while (low < high).any():
        middle = (low + high) // 2
        below = totals[np.minimum(middle, len(totals) - 1)] <= reach
        low = np.where((low < high) & below, middle + 1, low)
        high = np.where((low < high) & ~below, middle, high)
    return low - starts[row]


def _nested(above: Ints, below: Ints, near: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the classes `below` that are nested in those `above`, of the first `near` of each.

    All loops are compared at once: their pieces, each with a bit above it, stand side by side in
    a word; where none is less, no subtraction borrows such a bit.
    """
    words: list[tuple[Ints, Ints, int]] = []
    free = 0  # bits of the last word
    for upper, lower in zip(above.T, below.T, strict=True):
        longest = int(upper.max(initial=1))
        if longest == 1:  # every class has one piece or more
            continue
        width = longest.bit_length() + 1
        if width > free:
            words.append((np.zeros(len(above), np.int64), np.zeros(len(below), np.int64), 0))
            free = 63
        free -= width
        bit = 1 << free + width - 1
        whole, parts, borrowed = words[-1]
        parts = parts | np.minimum(lower, longest) << free | bit
        words[-1] = whole | upper << free, parts, borrowed | bit
    order = np.argsort(-near, kind="stable")
    begin = 0
    while begin < len(order) and near[order[begin]]:
        most = int(near[order[begin]])
        some = order[begin : begin + max(1, TOGETHER // most)]
        fits = np.arange(most) < near[some, None]
        for whole, parts, bits in words:
            fits &= ((parts[:most] - whole[some, None]) & bits) == bits
        at, lower = np.divmod(np.flatnonzero(fits), most)
        yield some[at], lower
        begin += len(some)


def most_pieces(levels: tuple[Level, ...], classes: Ints, slack: float) -> Ints:
    """Pieces [levels, 7] up to which a loop alone raises the bound by at most `slack`."""
    most = classes.copy()
    for row, one, pieces in zip(most, levels, classes.astype(float), strict=True):
        w, (n, m, c, ho, wo, hf, wf) = one.weights, pieces
        top = one.space.top
        of_B, of_S = w.B * n * ho * wo, w.S * c * hf * wf
        of_A = (w.A + w.RA * top.rows * top.columns) * m
        each = np.array([of_B, of_A, of_S, of_B, of_B, of_S, of_S]) / pieces
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.where(each > 0, (slack * (1 + 1e-9) + 1e-300) / each, np.inf)
        row += np.minimum(more, one.space.problem.extent).astype(np.int64)
    return most


def stands(axis: Axis, outs: Ints, taps: Ints) -> tuple[Ints, Ints]:
    """Return the indices of classes in the tables of an axis."""
    return np.searchsorted(axis.out_pieces, outs), np.searchsorted(axis.tap_pieces, taps)


def tile_ranges(space: Space, held: tuple[Operand, ...], nests: Ints) -> tuple[Ints, Ints]:
    """The smallest and the largest tiles of each class of `nests` [nests, levels, 7].

    The largest ones of N, M and C fit beside the smallest ones of the other loops: what a tile
    takes of a buffer is proportional to them.
    """
    extents, bits = np.array(space.problem.extent), space.problem.bits
    least = -(-extents // nests)
    largest = np.where(nests > 1, -(-extents // np.maximum(nests - 1, 1)) - 1, extents)
    n, m, c, ho, wo, hf, wf = np.moveaxis(least.astype(float), 2, 0)  # counts beyond 64 bit
    rows = space.height.room[stands(space.height, nests[..., 3], nests[..., 5])]
    columns = space.width.room[stands(space.width, nests[..., 4], nests[..., 6])]
    sizes = np.stack(
        [
            bits.I * n * c * rows * columns,
            bits.F * m * c * hf * wf,
            space.sum_bits * n * m * ho * wo,
        ]
    )  # [3, nests, levels]
    for i, holds in enumerate(held):
        for room in all_rooms(space, i + 1, holds):
            taken = sizes[:, :, i] * np.array(room[1:], float)[:, None]
            free = room.capacity - taken.sum(axis=0)
            for d, grows in enumerate(((0, 2), (1, 2), (0, 1))):
                share = np.maximum(taken[list(grows)].sum(axis=0), 1e-9)
                most = np.minimum(least[:, i, d] * (free / share), extents[d]).astype(np.int64)
                largest[:, i, d] = np.minimum(largest[:, i, d], least[:, i, d] + most)
    return least, largest


def smallest_tiles(space: Space, held: tuple[Operand, ...], nest: Ints) -> Mapping:
    """The smallest tiles of the classes of a nest [levels, 7]: they fit, and may waste pieces."""
    tiles = -(-np.array(space.problem.extent) // nest)
    return Mapping(tuple(Extents(*tile) for tile in tiles.tolist()), held)


def wasted(space: Space, held: tuple[Operand, ...], levels: tuple[Level, ...], nests: Ints) -> Any:
    """Return the energy by which nests must exceed their bounds: they waste pieces of N, M, C.

    With tiles t1 in [l1, h1] and t2 <= h2, each of the q1 - 1 full pieces of t1 has at least
    a = ceil(l1 / h2) pieces. Where a h2 > h1, no t1 is a multiple; the fewest pieces are then
    those of the largest tiles, (q1 - 1) a + ceil((extent - (q1 - 1) h1) / h2). At the next level
    all but q1 of the pieces are full, and the same holds for them.
    """
    least, largest = tile_ranges(space, held, nests)
    pieces = nests.copy()
    for d in range(3):
        extent, q = space.problem.extent[d], nests[..., d]
        full = q[:, 0] - 1
        for k in range(1, min(3, len(held))):
            low, high, below = least[:, k - 1, d], largest[:, k - 1, d], largest[:, k, d]
            each = -(-low // below)
            rest = np.maximum(extent - full * high, 0)
            number = np.where(each * below <= high, 0, full * each - (-rest // below))
            pieces[:, k, d] = np.maximum(q[:, k], number)
            full = np.maximum(q[:, 1] - q[:, 0], 0)
    more = [_energy(one, pieces[:, k]) - _energy(one, nests[:, k]) for k, one in enumerate(levels)]
    return np.maximum(sum(more), 0)


def _energy(level: Level, pieces: Ints) -> Any:
    """Return the energy of pieces [nests, 7] at a level, without rows of I loaded anew."""
    w, top = level.weights, level.space.top
    n, m, c, ho, wo, hf, wf = pieces.T.astype(float)
    filters = (w.A + w.RA * top.rows * top.columns) * m
    return w.S * c * hf * wf + w.B * n * ho * wo + filters
