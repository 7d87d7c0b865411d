"""Classes of tiles that a level can afford: their energy stays below a bound.

Loops are chosen one after the other, the reduction first. What is chosen so far has a floor: the
least energy of any completion, from what the capacities leave to the loops still open. Only parts
with a floor below the bound go on, so few of the millions of combinations are ever written down.
The filters come last, in closed form: as many as fit, or fewer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.bounds import Level, Space
from hwmodel.tiling.optimal.budget import ENTRIES, TooMany
from hwmodel.work.problem import Extents

__all__ = ["cheap_classes", "cheapest", "floor", "least_energy"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ALL = Extents(0, 0, 0, 0, 0, 0, 0)  # places of the first classes
ROUNDING = 1e-11  # relative; what costs so little more than a bound is still listed


class _Part(NamedTuple):
    """Classes chosen so far, one entry a candidate; None where not yet chosen."""

    C: Ints
    HF: Ints
    WF: Ints
    HO: Ints | None = None
    WO: Ints | None = None
    N: Ints | None = None


class _Sizes(NamedTuple):
    """Least pieces and rows of each part, and bits of its block with one filter."""

    S: Floats
    B: Floats
    R: Floats
    I_bits: Floats  # of the block; per output of the loops not yet chosen
    F_bits: Floats
    left: float  # outputs in the loops not yet chosen


def _sizes(space: Space, part: _Part) -> _Sizes:
    n, bits = space.problem.extent, space.problem.bits
    C = space.C[part.C].astype(float)
    S, I_bits, F_bits, left = -(-n.C // C), bits.I * C, bits.F * C, 1.0
    B = R = np.ones(1)
    axes = ((space.height, part.HO, part.HF, n.HO), (space.width, part.WO, part.WF, n.WO))
    for axis, out, tap, outs in axes:
        S, F_bits = S * axis.tap_pieces[tap], F_bits * axis.taps[tap]
        if out is None:
            left, I_bits, R = left * outs, I_bits / axis.outs_per_row[tap], R * axis.rows[0, tap]
        else:
            I_bits, R = I_bits * axis.room[out, tap], R * axis.rows[out, tap]
            B = B * axis.out_pieces[out]
    if part.N is None:
        left *= n.N
    else:
        N = space.N[part.N].astype(float)
        I_bits, B = I_bits * N, B * -(-n.N // N)
    return _Sizes(S, B, R, I_bits, F_bits, left)


def _floor(level: Level, part: _Part) -> Floats:
    """The least energy of any completion of each part.

    With A and B pieces of filters and of ifmaps, a block takes alpha / A bits of F, beta / B bits
    of I and kappa / (A B) bits of O; eA A + eB B is least where the capacity binds.
    """
    space, w, size = level.space, level.weights, _sizes(level.space, part)
    space.budget.spend(len(part.C) / ENTRIES)
    n = space.problem.extent
    eA, eB = w.A + w.RA * size.R, w.B
    alpha, beta = size.F_bits * n.M, size.I_bits * size.B * size.left
    A, B, coupled = np.ones_like(alpha), np.maximum(size.B, 1.0), np.zeros_like(alpha)
    for room in level.rooms:
        if room.F:
            A = np.maximum(A, alpha / room.capacity)
        if room.I:
            B = np.maximum(B, beta / room.capacity)
        if room.F and room.I:
            shared = (np.sqrt(eA * alpha) + np.sqrt(eB * beta)) ** 2 / room.capacity
            coupled = np.maximum(coupled, shared)
        if room.O:
            kappa = space.sum_bits * n.M * n.N * n.HO * n.WO / room.capacity
            coupled = np.maximum(coupled, 2 * np.sqrt(eA * eB * kappa))
    fixed = w.constant + w.S * size.S + w.R * size.R
    energy: Floats = fixed + np.maximum(eA * A + eB * B, coupled)
    return energy


def _filters(level: Level, part: _Part, size: _Sizes) -> Ints:
    """The most filters of a block that fit beside the smallest tiles of the part; 0: none."""
    space = level.space
    n, bits = space.problem.extent, space.sum_bits
    assert part.HO is not None and part.WO is not None and part.N is not None
    outs = 1.0 * space.height.outs[part.HO] * space.width.outs[part.WO] * space.N[part.N]
    most = np.full(size.I_bits.shape, float(n.M))
    for room in level.rooms:
        free = room.capacity - size.I_bits * room.I
        of_one = size.F_bits * room.F + bits * outs * room.O
        fit = np.floor(free / np.maximum(of_one, 1e-9)) if room.F or room.O else most
        most = np.where(free < 0, 0, np.minimum(most, fit))
    filters: Ints = np.maximum(most, 0).astype(np.int64)
    return filters


def _completed(level: Level, part: _Part, bound: float) -> tuple[Floats, Ints]:
    """Energies up to `bound` of a part with every M that fits: and the classes [entries, 7]."""
    space, w, size = level.space, level.weights, _sizes(level.space, part)
    n = space.problem.extent
    pieces_M = -(-n.M // space.M)  # rises
    filters = _filters(level, part, size)
    first = np.searchsorted(pieces_M, -(-n.M // np.maximum(filters, 1)))
    eA = w.A + w.RA * size.R
    rest = w.constant + w.S * size.S + w.R * size.R + w.B * size.B
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(eA > 0, (bound - rest) / eA, np.where(rest <= bound, np.inf, 0))
    last = np.searchsorted(pieces_M, most * (1 + 1e-12), side="right")
    number = np.where(filters > 0, np.maximum(last - first, 0), 0)
    _check(int(number.sum()), space.limit)
    row = np.repeat(np.arange(len(number)), number)
    M = pieces_M[np.arange(len(row)) - np.repeat(np.cumsum(number) - number - first, number)]
    energy = (rest + 0 * eA)[row] + eA[row] * M
    return energy, _classes(space, _kept(part, row), M)


def _check(number: int, limit: int) -> None:
    if number > limit:
        raise TooMany


def _start(space: Space, first: Extents = ALL) -> _Part:
    """All classes of the reduction from the `first` ones on."""
    ends = (len(space.C), len(space.height.taps), len(space.width.taps))
    sizes = [end - begin for end, begin in zip(ends, (first.C, first.HF, first.WF), strict=True)]
    _check(sizes[0] * sizes[1] * sizes[2], space.limit)
    C, HF, WF = (index.ravel() for index in np.indices(sizes))
    if first is ALL:
        return _Part(C, HF, WF)
    return _Part(C + first.C, HF + first.HF, WF + first.WF)


def _stages(space: Space) -> tuple[tuple[str, int], ...]:
    """Return the loops in the order of their choice, and the number of classes of each."""
    return ("HO", len(space.height.outs)), ("WO", len(space.width.outs)), ("N", len(space.N))


def _with(part: _Part, loop: str, first: int, end: int, limit: int) -> _Part:
    """Every entry of a part with every class of a further loop."""
    rows, classes = len(part.C), end - first
    _check(rows * classes, limit)
    longer = _kept(part, np.repeat(np.arange(rows), classes))
    return longer._replace(**{loop: np.tile(np.arange(first, end), rows)})


def _kept(part: _Part, keep: Any) -> _Part:
    chosen = {loop: x[keep] for loop, x in part._asdict().items() if x is not None}
    return _Part(**chosen)


def floor(level: Level) -> float:
    """A quick lower bound of the energy of a level."""
    return float(_floor(level, _start(level.space)).min())


def least_energy(level: Level) -> float:
    """The least energy of all classes of a level that fit."""
    return float(cheapest(level)[0].min(initial=np.inf))


def cheapest(level: Level, above: Ints | None = None, number: int = 1) -> tuple[Floats, Ints]:
    """The cheapest classes of a level that fit, each with as many filters as fit.

    Args:
        above: pieces [7] of which a class must have as many or more: those of a level above.
        number: how many, if there are so many.
    Returns: their energies [entries] and the pieces of each loop [entries, 7].
    """
    first = ALL if above is None else _first(level.space, above)
    part = _start(level.space, first)
    floor = _floor(level, part)
    order = np.argsort(floor, kind="stable")
    energies, classes = np.full(number, np.inf), np.zeros((number, 7), np.int64)
    begin, size = 0, 4
    while begin < len(order) and floor[order[begin]] < energies[-1]:
        chosen = order[begin : begin + size]
        full = _expanded(level, _kept(part, chosen), float(energies[-1]), first)
        more, M = _with_most_filters(level, full, first)
        best = np.argsort(more, kind="stable")[:number]
        energies = np.concatenate([energies, more[best]])
        classes = np.concatenate([classes, _classes(level.space, _kept(full, best), M[best])])
        kept = np.argsort(energies, kind="stable")[:number]
        energies, classes = energies[kept], classes[kept]
        begin, size = begin + size, 4 * size
    fit = energies < np.inf
    return energies[fit], classes[fit]


def _all_pieces(space: Space) -> list[Ints]:
    """The pieces of all classes of each loop."""
    n, height, width = space.problem.extent, space.height, space.width
    of_tiles = [-(-n.N // space.N), -(-n.M // space.M), -(-n.C // space.C)]
    return [*of_tiles, height.out_pieces, width.out_pieces, height.tap_pieces, width.tap_pieces]


def _classes(space: Space, part: _Part, M: Ints) -> Ints:
    """The pieces [entries, 7] of complete parts and of `M`."""
    n, _, c, ho, wo, hf, wf = _all_pieces(space)
    assert part.HO is not None and part.WO is not None and part.N is not None
    columns = n[part.N], M, c[part.C], ho[part.HO], wo[part.WO], hf[part.HF], wf[part.WF]
    return np.stack(columns, axis=1)


def _first(space: Space, above: Ints) -> Extents:
    """The first class of each loop that has as many pieces as those `above`, or more."""
    places = zip(_all_pieces(space), above, strict=True)
    return Extents(*(int(np.searchsorted(pieces, least)) for pieces, least in places))


def _with_most_filters(level: Level, part: _Part, first: Extents) -> tuple[Floats, Ints]:
    """Energies of complete parts with as many filters as fit, infinite where none; pieces of M."""
    w, size = level.weights, _sizes(level.space, part)
    M = level.space.problem.extent.M
    filters = np.minimum(_filters(level, part, size), level.space.M[first.M])
    A = -(-M // np.maximum(filters, 1))
    energy = w.constant + w.S * size.S + w.B * size.B + (w.A + w.RA * size.R) * A + w.R * size.R
    return np.where(filters > 0, energy, np.inf), A


def _expanded(level: Level, part: _Part, bound: float, first: Extents = ALL) -> _Part:
    """All completions of a part, but for those that cannot cost as little as `bound`."""
    space = level.space
    for loop, end in _stages(space):
        part = _with(part, loop, getattr(first, loop), end, space.limit)
        part = _kept(part, _floor(level, part) <= bound)
    return part


def cheap_classes(level: Level, bound: float) -> tuple[Floats, Ints]:
    """All classes of a level that fit and cost at most `bound`, the cheapest first.

    Returns: their energies [entries] and the pieces of each loop [entries, 7].
    """
    reach = bound + ROUNDING * (abs(bound) + abs(level.weights.constant))
    part = _start(level.space)
    part = _expanded(level, _kept(part, _floor(level, part) <= reach), reach)
    energy, pieces = _completed(level, part, reach)
    keep = np.flatnonzero(energy <= reach)
    order = keep[np.argsort(energy[keep], kind="stable")]
    return energy[order], pieces[order]
