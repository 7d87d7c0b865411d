"""The walk of `kernels` in arrays, for where nothing is compiled: loop by loop, many at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["walk_in_arrays"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING = 1e-11  # relative; a floor may be rounded above an energy
GUESSED = 16  # of the best partial choices that a guess goes on with
AT_ONCE = 4  # reductions that are completed together at first, and then fourfold
MOST_AT_ONCE = 16_000_000  # choices of one batch, before any is left out


class _Part(NamedTuple):
    """Partial choices, one entry each: classes of the loops chosen, and what follows from them."""

    places: tuple[Ints, ...]  # of C, HF, WF, and then of HO, WO
    base: Floats  # paid whatever follows, but for rows
    R: Floats
    B: Floats
    I_bits: Floats
    F_bits: Floats
    outs: Floats


def walk_in_arrays(
    level: Any, reach: float, only_least: bool, most_work: int, energies: Floats, classes: Ints
) -> tuple[int, int, float]:
    """List what `kernels.walk` does."""
    part, floors = _reductions(level, reach)
    work, found, begin = int(np.prod([len(level[0][d]) - level[2][d] for d in (2, 5, 6)])), 0, 0
    outputs = int(np.prod([len(level[0][d]) - level[2][d] for d in (0, 3, 4)]))
    most = max(1, MOST_AT_ONCE // outputs)
    size = min(AT_ONCE if only_least else max(1, len(floors)), most)
    if only_least and len(floors) and reach == np.inf:
        guess = _guessed(level, _kept(part, slice(0, AT_ONCE)), reach)
        reach = min(reach, guess + ROUNDING * (abs(guess) + abs(level[9][0])))
    while begin < len(floors) and floors[begin] <= reach:
        if work > most_work:
            return found, work, min(reach, float(floors[begin]))
        some = _kept(part, slice(begin, begin + size))
        costs, places, listed = _below(level, some, reach, only_least, len(energies) - found)
        work += listed
        if costs is None:  # there is no place for so many
            if size == 1:
                return found, work, min(reach, float(floors[begin]))
            size //= 2
            continue
        begin, size = begin + size, min(size * 4, most) if only_least else size
        if only_least:  # instead of the one that there is
            costs, places = _cheaper(costs, places, energies[:found])
            found = 0 if len(costs) else found
        energies[found : found + len(costs)] = costs
        classes[found : found + len(costs)] = places
        found += len(costs)
        if only_least and found:
            reach = float(energies[0])
    return found, work, reach


def _guessed(level: Any, part: _Part, reach: float) -> float:
    """The energy of some good choice, or `reach`: what costs more need not be looked at."""
    for axis in (0, 1):
        part, floors, _ = _with_outputs(level, part, axis, reach)
        part = _kept(part, np.argsort(floors, kind="stable")[:GUESSED])
    costs = _completed(level, part, reach, True, 0)[0]
    return reach if costs is None else float(costs.min(initial=reach))


def _cheaper(costs: Floats, places: Ints, before: Floats) -> tuple[Floats, Ints]:
    """The cheapest entry, the first of equals; none if it is not cheaper than what was `before`."""
    best = np.argsort(costs, kind="stable")[:1]
    if len(best) and len(before) and costs[best[0]] >= before[0]:
        best = best[:0]
    return costs[best], places[best]


def _below(
    level: Any, part: _Part, reach: float, only_least: bool, room: int
) -> tuple[Floats | None, Ints, int]:
    """Energies up to `reach` of all completions, and their classes; None if they are too many."""
    work = 0
    for axis in (0, 1):
        part, _, listed = _with_outputs(level, part, axis, reach)
        work += listed
    costs, places, listed = _completed(level, part, reach, only_least, room)
    return costs, places, work + listed


def _kept(part: _Part, keep: Any) -> _Part:
    places = tuple(x[keep] for x in part.places)
    return _Part(places, *(x[keep] for x in part[1:]))


def _rest(level: Any, part: _Part, B: Floats, beta: Floats) -> Floats:
    """`kernels._rest` of many choices: the least energy of all completions of each."""
    piece, first, extent, bits, rooms, w = (level[i] for i in (1, 2, 6, 7, 8, 9))
    eA, eB = w[3] + w[4] * part.R, w[2]
    alpha = part.F_bits * extent[1]
    kappa = bits[2] * extent[1] * extent[0] * extent[3] * extent[4]
    A, coupled = np.full(len(alpha), piece[1][first[1]]), np.zeros(len(alpha))
    for capacity, has_I, has_F, has_O in rooms:
        if has_F:
            A = np.maximum(A, alpha / capacity)
        if has_I:
            B = np.maximum(B, beta / capacity)
        if has_I and has_F:
            root = np.sqrt(eA * alpha) + np.sqrt(eB * beta)
            coupled = np.maximum(coupled, root * root / capacity)
        if has_O:
            coupled = np.maximum(coupled, 2 * np.sqrt(eA * eB * kappa / capacity))
    least: Floats = part.base + w[5] * part.R + np.maximum(eA * A + eB * B, coupled)
    outs = extent[0] * extent[3] * extent[4]
    fits = (extent[1] * (1 + 1e-12) >= A) & (outs * (1 + 1e-12) >= B)
    return np.where(fits, least, np.inf)


def _reductions(level: Any, reach: float) -> tuple[_Part, Floats]:
    """Classes of C, HF and WF whose floor is at most `reach`, by their floors."""
    tile, piece, first, height, width, least_rows, extent, bits, _, w = level
    ho, wo = first[3], first[4]
    loops = (5, 6, 2)
    hf, wf, c = (index.ravel() for index in np.indices([len(tile[d]) - first[d] for d in loops]))
    hf, wf, c = hf + first[5], wf + first[6], c + first[2]
    rows = np.maximum(least_rows[0], height[2][ho, hf])
    R = rows * np.maximum(least_rows[1], width[2][wo, wf])
    base = w[0] + w[1] * piece[2][c] * piece[5][hf] * piece[6][wf]
    F_bits = bits[1] * tile[2][c] * tile[5][hf] * tile[6][wf]
    I_bits = bits[0] * tile[2][c]
    part = _Part((c, hf, wf), base, R, np.ones(len(c)), I_bits, F_bits, np.ones(len(c)))
    B = np.full(len(c), piece[0][first[0]] * piece[3][ho] * piece[4][wo])
    beta = I_bits / (height[3][ho, hf] * width[3][wo, wf]) * extent[0] * extent[3] * extent[4]
    floors = _rest(level, part, B, beta)
    keep = np.flatnonzero((floors <= reach) & (floors < np.inf))
    keep = keep[np.argsort(floors[keep], kind="stable")]
    return _kept(part, keep), floors[keep]


def _with_outputs(level: Any, part: _Part, axis: int, reach: float) -> tuple[_Part, Floats, int]:
    """Every choice with every class of HO, or of WO, that leaves its floor at most `reach`."""
    tile, piece, first, height, width, least_rows, extent = level[:7]
    own, other = (height, width) if axis == 0 else (width, height)
    number = len(tile[3 + axis]) - first[3 + axis]
    out = np.tile(np.arange(first[3 + axis], len(tile[3 + axis])), len(part.R))
    part = _kept(part, np.repeat(np.arange(len(part.R)), number))
    hf, wf = part.places[1:3]
    tap = hf if axis == 0 else wf
    rows = np.maximum(least_rows[axis], own[1][out, tap])
    if axis == 0:
        R = rows * np.maximum(least_rows[1], other[2][first[4], wf])
    else:
        R = rows * np.maximum(least_rows[0], other[1][part.places[3], hf])
    part = part._replace(
        places=(*part.places, out),
        R=R,
        B=part.B * piece[3 + axis][out],
        I_bits=part.I_bits * own[0][out, tap],
        outs=part.outs * tile[3 + axis][out],
    )
    beta, B = part.I_bits * part.B * extent[0], part.B * piece[0][first[0]]
    if axis == 0:
        beta, B = beta / width[3][first[4], wf] * extent[4], B * piece[4][first[4]]
    floors = _rest(level, part, B, beta)
    keep = np.flatnonzero((floors <= reach) & (floors < np.inf))
    return _kept(part, keep), floors[keep], len(out)


def _images(level: Any, part: _Part, reach: float) -> tuple[Ints, Ints]:
    """The choices and the classes of N that may fit and cost at most `reach`, by the choice."""
    tile, piece, first, extent, bits, rooms, w = (level[i] for i in (0, 1, 2, 6, 7, 8, 9))
    most = np.full(len(part.R), extent[0])
    for capacity, has_I, has_F, has_O in rooms:
        of_one = part.I_bits * has_I + bits[2] * part.outs * has_O
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = np.floor((capacity - part.F_bits * has_F) / of_one * (1 + 1e-12))
        most = np.where(of_one > 0, np.minimum(most, fit), most)
    tiles, pieces = tile[0][first[0] :], piece[0][first[0] :]
    begin = np.searchsorted(-tiles, -np.maximum(most, 0.5))
    rest = reach - part.base - w[5] * part.R - (w[3] + w[4] * part.R) * piece[1][first[1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        dearest = np.where(w[2] * part.B > 0, rest / (w[2] * part.B), np.inf)
    end = np.searchsorted(pieces, dearest * (1 + 1e-12), side="right")
    many = np.maximum(end - begin, 0)
    row = np.repeat(np.arange(len(many)), many)
    n = np.arange(len(row)) - np.repeat(np.cumsum(many) - many - begin, many)
    return row, n + first[0]


def _completed(
    level: Any, part: _Part, reach: float, only_least: bool, room: int
) -> tuple[Floats | None, Ints, int]:
    """Energies up to `reach` of choices with every N and M that fit, and their classes."""
    tile, piece, first, extent, bits, rooms, w = (level[i] for i in (0, 1, 2, 6, 7, 8, 9))
    row, n = _images(level, part, reach)
    part = _kept(part, row)
    eA = w[3] + w[4] * part.R
    cost = part.base + w[5] * part.R + w[2] * part.B * piece[0][n]
    keep = np.flatnonzero(cost + eA * piece[1][first[1]] <= reach)
    work, n, cost, eA, part = len(n), n[keep], cost[keep], eA[keep], _kept(part, keep)
    most = np.full(len(n), extent[1])
    for capacity, has_I, has_F, has_O in rooms:
        free = capacity - part.I_bits * tile[0][n] * has_I
        of_one = part.F_bits * has_F + bits[2] * part.outs * tile[0][n] * has_O
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = np.where(of_one > 0, np.floor(free / of_one), most)
        most = np.where(free < 0, 0, np.minimum(most, fit))
    at = first[1] + np.searchsorted(-tile[1][first[1] :], -np.maximum(most, 0.5))
    fits = (most >= 1) & (at < len(tile[1]))
    last = at + 1
    if not only_least:
        with np.errstate(divide="ignore", invalid="ignore"):
            pieces = np.where(eA > 0, (reach - cost) / eA, np.inf)
        last = first[1] + np.searchsorted(piece[1][first[1] :], pieces * (1 + 1e-12), side="right")
    many = np.where(fits, np.maximum(last - at, 0), 0)
    total = int(many.sum())
    work += total
    if not only_least and total > room:
        return None, np.zeros((0, 7), np.int64), work
    row = np.repeat(np.arange(len(many)), many)
    m = np.arange(len(row)) - np.repeat(np.cumsum(many) - many - at, many)
    energy = cost[row] + eA[row] * piece[1][m]
    keep = np.flatnonzero(energy <= reach)
    row, m = row[keep], m[keep]
    c, hf, wf, ho, wo = (x[row] for x in part.places)
    return energy[keep], np.stack([n[row], m, c, ho, wo, hf, wf], axis=1), work
