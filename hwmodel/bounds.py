"""What a level costs at least, whatever the other levels do: the bounds of the optimal search.

Integer tiles of a loop of length D fall into classes: those that cut it directly into the same
number q = ceil(D / tile) of pieces. Whatever the tiles above, a tile of class q makes at least q
pieces and needs at least the room of the smallest tile of its class. With that, the energy splits
into one term a level, which is linear in few products of counts; its weights are read off
`between`, the formula that prices every mapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.accesses import Cut, between
from hwmodel.hardware import Hardware
from hwmodel.pricing import level_energy, rates
from hwmodel.problem import OPERANDS, Operand, Problem, Window
from hwmodel.rows import RowRule, block_rows, most_rows, products
from hwmodel.search import candidates

__all__ = ["Axis", "Level", "Room", "Space", "TooMany", "Weights", "cheap_classes"]
__all__ += ["floor", "least_energy", "level", "rooms", "space"]

OfmapSpace = Literal["held", "counted"]  # where a tile of O must fit: if held, or always
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOTHING = Cut(0, 0, 0, 0, 0, 0, 0, 0, 0)
ROUNDING = 1e-11  # relative; what costs so little more than a bound is still listed
LONGEST_AXIS = 4096  # outputs or taps of an axis whose cuts are bounded one by one


class TooMany(Exception):
    """A list would be longer than the search's limit; caught there."""


class Room(NamedTuple):
    """One memory below the top: its capacity [bit], and which operands share it."""

    capacity: float
    I: bool  # noqa: E741
    F: bool
    O: bool  # noqa: E741


class Axis(NamedTuple):
    """Classes of one axis: outputs along the first index, taps along the second; uncut first."""

    outs: Ints  # the smallest tile of each class
    taps: Ints
    out_pieces: Ints
    tap_pieces: Ints
    room: Ints  # rows the smallest tiles of two classes need in a buffer
    rows: Ints  # rows loaded at least
    outs_per_row: Floats  # at most, in a buffer, for each class of taps


@dataclass(frozen=True, eq=False)
class Space:
    """A problem on a chip, prepared for the search."""

    problem: Problem
    rule: RowRule
    rooms: tuple[tuple[Room, ...], ...]  # of every level, none at the top
    ofmap_space: OfmapSpace
    prices: tuple[Any, ...]  # of every level
    top: Cut
    used: tuple[int, int]  # rows and columns that the MACs read
    height: Axis
    width: Axis
    sum_bits: int  # of an unfinished sum
    N: Ints  # smallest tiles of the classes
    C: Ints
    M: Ints
    limit: int


class Weights(NamedTuple):
    """A level's energy: constant + S sums + B blocks of I + (A + RA rows) blocks of F + R rows."""

    constant: float
    S: float
    B: float
    A: float
    RA: float
    R: float


class Level(NamedTuple):
    """One level's term of the energy, under what the boundaries above and below it hold."""

    space: Space
    number: int
    rooms: tuple[Room, ...]
    weights: Weights


def space(
    problem: Problem,
    hardware: Hardware,
    partial_sum_bits: int,
    rule: RowRule,
    ofmap_space: OfmapSpace,
    limit: int,
) -> Space:
    """Prepare the search of `problem` on `hardware`."""
    n, height, width = problem.extent, problem.height, problem.width
    tables = {height: _axis(height, rule, n.HO, n.HF)} if (n.HO, n.HF) == (n.WO, n.WF) else {}
    axis_h = tables.get(height) or _axis(height, rule, n.HO, n.HF)
    axis_w = tables.get(width) or _axis(width, rule, n.WO, n.WF)
    whole = [
        int(block_rows(w, rule, 0, outs, 0, taps))
        for w, outs, taps in ((height, n.HO, n.HF), (width, n.WO, n.WF))
    ]
    return Space(
        problem=problem,
        rule=rule,
        rooms=_rooms(hardware),
        ofmap_space=ofmap_space,
        prices=_prices(problem, hardware, partial_sum_bits),
        top=Cut(1, 1, 1, 1, 1, 1, 1, *whole),
        used=(products(height, rule, n.HO, n.HF), products(width, rule, n.WO, n.WF)),
        height=axis_h,
        width=axis_w,
        sum_bits=max(partial_sum_bits, problem.bits.O),
        N=candidates(n.N),
        C=candidates(n.C),
        M=candidates(n.M),
        limit=limit,
    )


def rooms(space: Space, index: int, above: Operand) -> tuple[Room, ...]:
    """The limited memories of a level; with room for sums where the boundary above holds them."""
    sums = space.ofmap_space == "counted" or above == "O"
    return tuple(room._replace(O=room.O and sums) for room in space.rooms[index])


def _rooms(hardware: Hardware) -> tuple[tuple[Room, ...], ...]:
    return tuple(
        tuple(
            Room(buffer.capacity_bits, *(operand in buffer.holds for operand in OPERANDS))
            for buffer in level.buffers
            if buffer.capacity_bits is not None
        )
        for level in hardware.levels
    )


def _prices(problem: Problem, hardware: Hardware, partial_sum_bits: int) -> tuple[Any, ...]:
    """Rates of every level with the reads of sums put on the sums' arrival.

    A level reads a sum for every arrival from below less every departure upwards, and departures
    are the arrivals of the level above: so an arrival costs write + read here - read one level
    below. A read that would make that negative is priced lower, which keeps bounds valid.
    """
    found = [rates(problem, hardware, k, partial_sum_bits) for k in range(len(hardware.levels))]
    reads = [found[0].O_partial_reads]
    for outer, inner in pairwise(found):
        reads.append(min(inner.O_partial_reads, reads[-1] + outer.O_partial_writes))
    reads.append(0.0)
    return tuple(
        rate._replace(
            O_partial_reads=0.0, O_partial_writes=rate.O_partial_writes + reads[k] - reads[k + 1]
        )
        for k, rate in enumerate(found)
    )


def _axis(window: Window, rule: RowRule, outs: int, taps: int) -> Axis:
    out, tap = candidates(outs), candidates(taps)
    turned = window._replace(step=window.dilation, dilation=window.step)
    whole = int(block_rows(window, rule, 0, outs, 0, taps))
    rows = np.maximum(
        _least_rows(window, rule, outs, taps, out)[:, None],
        _least_rows(turned, rule, taps, outs, tap),
    )
    room = most_rows(window, rule, whole, out[:, None], tap)
    with np.errstate(divide="ignore"):
        per_row = (out[:, None] / room).max(axis=0)
    return Axis(out, tap, -(-outs // out), -(-taps // tap), room, rows, per_row)


def _least_rows(window: Window, rule: RowRule, outs: int, taps: int, tiles: Ints) -> Ints:
    """Rows loaded at least when outputs are cut into pieces by tiles of each class.

    Where each row is touched by outputs in a row (step a multiple of dilation), a cut loads anew
    the rows that both of its sides touch, and nothing else depends on the cut. With pieces of at
    most t, the i-th of q - 1 cuts lies between outs - (q - i) t and i t; with more pieces, they
    load at least the cheapest q cuts.
    """
    touched = rule._replace(rows="touched")
    whole = int(block_rows(window, touched, 0, outs, 0, taps))
    rows: Ints = np.full(len(tiles), whole)
    if outs == 1 or window.step % window.dilation or outs > LONGEST_AXIS:
        return rows
    at = np.arange(1, outs)
    anew = block_rows(window, touched, 0, at, 0, taps)
    anew = anew + block_rows(window, touched, at, outs - at, 0, taps) - whole
    cheapest = np.concatenate([[0], np.cumsum(np.sort(anew))])
    for k, tile in enumerate(tiles.tolist()):
        q = -(-outs // tile)
        longest = outs if q == 1 else -(-outs // (q - 1)) - 1  # largest tile of the class
        placed = sum(
            anew[max(1, outs - (q - i) * longest) - 1 : i * longest].min() for i in range(1, q)
        )
        rows[k] += min(placed, cheapest[q] if q < outs else placed)
    return rows


def level(space: Space, index: int, above: Operand, below: Operand) -> Level:
    """The term of `index` under held operands: the weights, read off `between` by probing."""

    def energy(A: float, B: float, S: float, R: float) -> float:
        cut = Cut(B, A, S, 1, 1, 1, 1, R, 1)
        return _term(space, index, above, below, cut)

    base, one_A = energy(0, 0, 0, 0), energy(1, 0, 0, 0)
    weights = Weights(
        constant=base,
        S=energy(0, 0, 1, 0) - base,
        B=energy(0, 1, 0, 0) - base,
        A=one_A - base,
        RA=energy(1, 0, 0, 1) - energy(0, 0, 0, 1) - (one_A - base),
        R=energy(0, 0, 0, 1) - base,
    )
    return Level(space, index, rooms(space, index, above), weights)


def _term(space: Space, index: int, above: Operand, below: Operand, cut: Cut) -> float:
    """What `cut` adds at the boundaries above and below it, the other cuts taken as nothing.

    Traffic of a boundary is a sum of what its upper cut and what its lower cut bring, but for
    held ifmaps, whose rows are the lower cut's and whose visits are the upper one's. Those are
    bounded by the upper cut's own rows: pieces of pieces never load fewer.
    """
    problem, prices = space.problem, space.prices
    upper = space.top if index == 1 else NOTHING
    energy = level_energy(between(problem, upper, cut, above, 0), prices[index - 1])
    if index > 1:
        energy -= level_energy(between(problem, upper, NOTHING, above, 0), prices[index - 1])
    if index == len(prices) - 1:
        lower = cut._replace(rows=space.used[0], columns=space.used[1])
    else:
        lower = NOTHING._replace(rows=cut.rows, columns=cut.columns)
    return float(energy + level_energy(between(problem, cut, lower, below, 0), prices[index]))


class _Part(NamedTuple):
    """Classes chosen so far, one entry a candidate; None where not yet chosen."""

    C: Ints
    HF: Ints
    WF: Ints
    HO: Ints | None = None
    WO: Ints | None = None
    N: Ints | None = None


class _Sizes(NamedTuple):
    """What a part fixes: pieces and rows at least, and bits of a block with one filter."""

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
    outs = space.height.outs[part.HO] * space.width.outs[part.WO] * space.N[part.N]
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
    assert part.HO is not None and part.WO is not None and part.N is not None
    columns = (
        -(-n.N // space.N[part.N])[row],
        M,
        -(-n.C // space.C[part.C])[row],
        space.height.out_pieces[part.HO][row],
        space.width.out_pieces[part.WO][row],
        space.height.tap_pieces[part.HF][row],
        space.width.tap_pieces[part.WF][row],
    )
    return energy, np.stack(columns, axis=1)


def _check(number: int, limit: int) -> None:
    if number > limit:
        raise TooMany


def _start(space: Space) -> _Part:
    """All classes of the reduction."""
    sizes = (len(space.C), len(space.height.taps), len(space.width.taps))
    _check(sizes[0] * sizes[1] * sizes[2], space.limit)
    return _Part(*(index.ravel() for index in np.indices(sizes)))


def _stages(space: Space) -> tuple[tuple[str, int], ...]:
    """The loops in the order in which they are chosen, and how many classes each has."""
    return ("HO", len(space.height.outs)), ("WO", len(space.width.outs)), ("N", len(space.N))


def _with(part: _Part, loop: str, classes: int, limit: int) -> _Part:
    """Every entry of a part with every class of a further loop."""
    rows = len(part.C)
    _check(rows * classes, limit)
    longer = _kept(part, np.repeat(np.arange(rows), classes))
    return longer._replace(**{loop: np.tile(np.arange(classes), rows)})


def _kept(part: _Part, keep: Any) -> _Part:
    chosen = {loop: x[keep] for loop, x in part._asdict().items() if x is not None}
    return _Part(**chosen)


def floor(level: Level) -> float:
    """A quick lower bound of the energy of a level."""
    return float(_floor(level, _start(level.space)).min())


def least_energy(level: Level) -> float:
    """The least energy of all classes of a level that fit."""
    part = _start(level.space)
    floor = _floor(level, part)
    order = np.argsort(floor, kind="stable")
    least, begin, size = np.inf, 0, 4
    while begin < len(order) and floor[order[begin]] < least:
        chosen = order[begin : begin + size]
        full = _expanded(level, _kept(part, chosen), least)
        least = min(least, _with_most_filters(level, full).min(initial=np.inf))
        begin, size = begin + size, 4 * size
    return float(least)


def _with_most_filters(level: Level, part: _Part) -> Floats:
    """The energy of complete parts with as many filters as fit; infinite where none does."""
    w, size = level.weights, _sizes(level.space, part)
    M = level.space.problem.extent.M
    filters = _filters(level, part, size)
    A = -(-M // np.maximum(filters, 1))
    energy = w.constant + w.S * size.S + w.B * size.B + (w.A + w.RA * size.R) * A + w.R * size.R
    return np.where(filters > 0, energy, np.inf)


def _expanded(level: Level, part: _Part, bound: float) -> _Part:
    """All completions of a part, but for those that cannot cost as little as `bound`."""
    space = level.space
    for loop, classes in _stages(space):
        part = _with(part, loop, classes, space.limit)
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
