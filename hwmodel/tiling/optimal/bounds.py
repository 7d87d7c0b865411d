"""Bounds of the optimal search: the least energy of a level, whatever the others do.

Integer tiles of a loop of length D fall into classes: those that cut it directly into the same
number q = ceil(D / tile) of pieces. Whatever the tiles above, a tile of class q makes at least q
pieces and needs at least the room of the smallest tile of its class. With that, the energy splits
into one term a level, which is linear in few products of counts; its weights are read off
`between`, the formula that prices every mapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Cut, Traffic, between
from hwmodel.tiling.level_by_level import candidates
from hwmodel.tiling.optimal.budget import Budget
from hwmodel.tiling.optimal.terms import OfmapSpace
from hwmodel.tiling.options import Memories, Transfers
from hwmodel.tiling.pricing import level_energy, rates
from hwmodel.tiling.rows import RowRule, block_rows, most_rows, products
from hwmodel.work.problem import OPERANDS, Operand, Problem, Window

__all__ = [
    "Axis",
    "Chains",
    "Level",
    "Room",
    "Space",
    "Weights",
    "all_rooms",
    "cut_once",
    "is_uneven",
    "largest",
    "level",
]
__all__ += ["reloads", "rooms", "space", "sum_weights"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOTHING = Cut(0, 0, 0, 0, 0, 0, 0, 0, 0)
LONGEST_AXIS = 4096  # outputs or taps of an axis whose cuts are bounded one by one
LONGEST_APART = 1024  # and of one whose rows are touched by outputs apart
MOST_SINGLE = 4096  # outputs times taps of an axis whose tiles are looked at one by one


class Room(NamedTuple):
    """One memory below the top: its capacity [bit], and which operands share it."""

    capacity: float
    I: bool  # noqa: E741
    F: bool
    O: bool  # noqa: E741


class Chains(NamedTuple):
    """Chains of one loop of an axis [chains, levels]."""

    tiles: Ints
    pieces: Ints
    loaded: Ints  # rows of I
    stored: Ints  # rows that a tile needs in a buffer


class Axis(NamedTuple):
    """Classes of one axis: outputs along the first index, taps along the second; uncut first."""

    outs: Ints  # the smallest tile of each class
    taps: Ints
    room: Ints  # rows the smallest tiles of two classes need in a buffer
    rows: Ints  # rows loaded at least
    by_out: Ints | None  # rows that cuts of the outputs load anew, the taps uncut: see `_anew`
    by_tap: Ints | None  # None where they are not known
    listed: dict[bytes, Chains]  # of one loop, the other uncut, by their ranges


@dataclass(frozen=True, eq=False)
class Space:
    """A problem on a chip, prepared for the search."""

    problem: Problem
    rule: RowRule
    rooms: tuple[tuple[Room, ...], ...]  # of every level, none at the top
    ofmap_space: OfmapSpace
    rates: tuple[Traffic, ...]  # what every level is paid for; see `_rates`
    least_rates: tuple[Traffic, ...]  # no more, and no less for an arrival of a sum than nothing
    top: Cut
    used: tuple[int, int]  # rows and columns that the MACs read
    height: Axis
    width: Axis
    sum_bits: int | float  # of an unfinished sum
    N: Ints  # smallest tiles of the classes
    C: Ints
    M: Ints
    limit: int  # entries of any list
    budget: Budget  # of the whole search


class Weights(NamedTuple):
    """A level's energy: constant + S sums + B blocks of I + (A + RA rows) blocks of F + R rows."""

    constant: float
    S: float
    B: float
    A: float
    RA: float
    R: float


@dataclass(frozen=True, eq=False)
class Level:
    """One level's term of the energy, under what the boundaries above and below it hold."""

    space: Space
    number: int
    rooms: tuple[Room, ...]
    weights: Weights
    crossing: float  # of RA, what is paid by the rows of the level below; see `_term`

    @cached_property
    def room_table(self) -> Floats:
        """Capacity [bit] and whether I, F and O lie there, a row a memory."""
        return np.array(self.rooms, float).reshape(-1, 4)


def space(
    problem: Problem,
    hardware: Memories,
    partial_sum_bits: int,
    rule: RowRule,
    ofmap_space: OfmapSpace,
    transfers: Transfers,
    limit: int,
    budget: Budget,
) -> Space:
    """Prepare the search of `problem` on `hardware`."""
    n, height, width = problem.extent, problem.height, problem.width
    axis_h = _axis(height, rule, n.HO, n.HF)
    is_square = (height, n.HO, n.HF) == (width, n.WO, n.WF)
    axis_w = axis_h if is_square else _axis(width, rule, n.WO, n.WF)
    whole = [
        int(block_rows(w, rule, 0, outs, 0, taps))
        for w, outs, taps in ((height, n.HO, n.HF), (width, n.WO, n.WF))
    ]
    paid, least = _rates(problem, hardware, partial_sum_bits, transfers)
    return Space(
        problem=problem,
        rule=rule,
        rooms=_rooms(hardware),
        ofmap_space=ofmap_space,
        rates=paid,
        least_rates=least,
        top=Cut(1, 1, 1, 1, 1, 1, 1, *whole),
        used=(products(height, rule, n.HO, n.HF), products(width, rule, n.WO, n.WF)),
        height=axis_h,
        width=axis_w,
        sum_bits=max(partial_sum_bits, problem.bits.O),
        N=candidates(n.N),
        C=candidates(n.C),
        M=candidates(n.M),
        limit=limit,
        budget=budget,
    )


def rooms(space: Space, index: int, above: Operand) -> tuple[Room, ...]:
    """The limited memories of a level; with room for sums where the boundary above holds them."""
    counted = space.ofmap_space == "counted"
    return tuple(
        room._replace(O=room.O and (counted or above == "O")) for room in space.rooms[index]
    )


def all_rooms(space: Space, index: int, above: Operand) -> tuple[Room, ...]:
    """Return the memories that a tile of a level must fit: its own, and smaller ones above.

    A tile lies within those above it, so it fits where they must fit, too.
    """
    own = rooms(space, index, above)
    outer = [room for i in range(1, index) for room in rooms(space, i, "F")]
    return (*own, *(room for room in outer if not _implied(room, own)))


def _implied(room: Room, own: tuple[Room, ...]) -> bool:
    """Whether what fits `own` memories is sure to fit `room`."""
    least = [min((r.capacity for r in own if r[k]), default=np.inf) for k in (1, 2, 3) if room[k]]
    return sum(least) <= room.capacity


def _rooms(hardware: Memories) -> tuple[tuple[Room, ...], ...]:
    return tuple(
        tuple(
            Room(buffer.capacity_bits, *(operand in buffer.holds for operand in OPERANDS))
            for buffer in level.buffers
            if buffer.capacity_bits is not None
        )
        for level in hardware.levels
    )


def _rates(
    problem: Problem, hardware: Memories, partial_sum_bits: int, transfers: Transfers
) -> tuple[tuple[Traffic, ...], tuple[Traffic, ...]]:
    """Return the rates of every level, and those of bounds, with reads of sums put on arrivals.

    A level reads a sum for every arrival from below less every departure upwards, and departures
    are the arrivals of the level above: so an arrival costs write + read here - read one level
    below. Where that is negative, the bounds take nothing, and the level below so much less: it
    has as many arrivals or more. Where it is nowhere negative, both are the same energy.
    """
    levels = range(len(hardware.levels))
    found = [rates(problem, hardware, k, partial_sum_bits, transfers) for k in levels]
    reads = [found[0].O_partial_reads]
    for outer, inner in pairwise(found):
        reads.append(min(inner.O_partial_reads, reads[-1] + outer.O_partial_writes))
    is_same = all(read == rate.O_partial_reads for read, rate in zip(reads, found, strict=True))
    reads.append(0.0)
    least = tuple(
        rate._replace(
            O_partial_reads=0.0, O_partial_writes=rate.O_partial_writes + reads[k] - reads[k + 1]
        )
        for k, rate in enumerate(found)
    )
    return (least if is_same else tuple(found)), least


def sum_weights(space: Space, held: tuple[Operand, ...]) -> Floats | None:
    """Return what a piece of the reduction costs at every level below the top, if it pays at one.

    None where it costs something or nothing at every level: then fewer pieces are never dearer.
    It pays where to write and read a sum again costs less than to read it one level further in.
    """
    if space.rates is space.least_rates:
        return None
    arrivals = [rate.O_partial_writes + rate.O_partial_reads for rate in space.rates]
    departures = [rate.O_partial_reads for rate in space.rates[1:]]
    arriving = np.array(arrivals) - np.array([*departures, 0.0])
    weights = np.zeros(len(held))
    for boundary, holds in enumerate((*held, "F")):
        cut = boundary - 1 if holds == "O" else min(boundary, len(held) - 1)
        if cut >= 0:
            weights[cut] += arriving[boundary]
    return weights if (weights < 0).any() else None


def _axis(window: Window, rule: RowRule, outs: int, taps: int, single: bool = False) -> Axis:
    alone = single and is_uneven(window, outs, taps)
    out, tap = (_tiles(length, alone) for length in (outs, taps))
    turned = window._replace(step=window.dilation, dilation=window.step)
    whole = int(block_rows(window, rule, 0, outs, 0, taps))
    room = most_rows(window, rule, whole, out[:, None], tap)
    by_out, by_tap = _anew(window, rule, outs, taps), _anew(turned, rule, taps, outs)
    rows = np.maximum(
        _least_anew(outs, out, by_out, alone)[:, None], _least_anew(taps, tap, by_tap, alone)
    )
    touched = rule._replace(rows="touched")
    rows += int(block_rows(window, touched, 0, outs, 0, taps))
    if rule.rows == "bounding":  # more rows than are touched, and not a sum over cuts
        by_out = by_tap = None
    return Axis(out, tap, room, rows, by_out, by_tap, {})


def cut_once(window: Window, rule: RowRule, outs: tuple[int, Ints], taps: tuple[int, Ints]) -> Ints:
    """Rows [out tiles, tap tiles] that an axis loads if each tile cuts its uncut loop.

    Args:
        outs: length of the loop, and tiles of it.
    """
    (out, long, of_out), (tap, wide, of_tap) = (_pieces(*loop) for loop in (outs, taps))
    rows = block_rows(window, rule, out[:, None], long[:, None], tap, wide)
    once: Ints = np.add.reduceat(np.add.reduceat(rows, of_out, axis=0), of_tap, axis=1)
    return once


def _pieces(length: int, tiles: Ints) -> tuple[Ints, Ints, Ints]:
    """Begin and length of the pieces that every tile cuts, and where those of each tile begin."""
    number = -(-length // tiles)
    first = np.cumsum(number) - number
    begin = (np.arange(number.sum()) - np.repeat(first, number)) * np.repeat(tiles, number)
    return begin, np.minimum(np.repeat(tiles, number), length - begin), first


def is_uneven(window: Window, outs: int, taps: int) -> bool:
    """Whether rows are touched by outputs or taps apart, so that a class says little of its tiles.

    Then a class has the room of its smallest tile and the rows of its largest, which may be far
    from one another. An axis of many tiles keeps its classes.
    """
    apart = outs > 1 and window.step % window.dilation != 0
    apart |= taps > 1 and window.dilation % window.step != 0
    apart |= window.spread > 1
    return apart and min(outs, taps) > 1 and outs * taps <= MOST_SINGLE


def _tiles(length: int, alone: bool) -> Ints:
    """The smallest tile of each class, the uncut loop first."""
    return np.arange(length, 0, -1) if alone else candidates(length)


def _anew(window: Window, rule: RowRule, outs: int, taps: int) -> Ints | None:
    """Rows that a cut before output 1, 2, ... loads anew, the taps uncut; None if it is not known.

    Where each row is touched by outputs in a row (step a multiple of dilation), a cut loads anew
    the rows that both of its sides touch, whatever the other cuts are. Elsewhere that depends on
    the cut before: [from, at] as `reloads`.
    """
    apart = outs > 1 and window.step % window.dilation != 0
    if outs > LONGEST_AXIS or (apart and max(outs, taps) > LONGEST_APART):
        return None
    if apart:
        return reloads(window, rule, outs, taps)
    touched, at = rule._replace(rows="touched"), np.arange(1, outs)
    whole = block_rows(window, touched, 0, outs, 0, taps)
    before = block_rows(window, touched, 0, at, 0, taps)
    return before + block_rows(window, touched, at, outs - at, 0, taps) - whole


def _least_anew(outs: int, tiles: Ints, anew: Ints | None, alone: bool = False) -> Ints:
    """Rows loaded anew at least when outputs are cut into pieces by tiles of each class.

    Args:
        anew: of `_anew`, for the same axis.
        alone: each class is one tile.
    """
    if anew is None or outs == 1:
        return np.zeros(len(tiles), np.int64)
    if anew.ndim == 1:
        return _cheapest_cuts(outs, tiles, anew)
    return _cheapest_partition(anew, tiles if alone else largest(outs, tiles))


def largest(length: int, smallest: Ints) -> Ints:
    """The largest tile of each class, by the smallest ones of all classes, the uncut loop first."""
    return np.concatenate([[length], smallest[:-1] - 1]).astype(np.int64)


def reloads(window: Window, rule: RowRule, outs: int, taps: int) -> Ints:
    """Rows [from, at] that a cut before output `at` loads anew, the cut before it being at `from`.

    A row is loaded once for every piece that touches it: for two outputs of which one is the next
    to touch the same row, once more if a cut lies between them. To count it once it is put on the
    first such cut, the one that has the earlier output in the piece before it.
    """
    out, tap = np.indices((outs, taps)).reshape(2, -1)
    position = out * window.step + tap * window.dilation - window.pad
    row, rest = position // window.spread, position % window.spread
    there = (rest == 0) & ((rule.padding == "counted") | (row >= 0) & (row < window.size))
    order = np.lexsort((out[there], row[there]))
    row, out = row[there][order], out[there][order]
    same = row[1:] == row[:-1]
    cut_between = np.zeros((outs + 1, outs + 1), np.int64)  # [earlier output, later output]
    np.add.at(cut_between, (out[:-1][same], out[1:][same]), 1)
    later = cut_between[:, ::-1].cumsum(axis=1)[:, ::-1]  # at or after the cut
    later = np.triu(later, k=1)  # and the earlier one before it
    anew: Ints = later[::-1].cumsum(axis=0)[::-1]
    return anew


def _cheapest_partition(anew: Ints, longest: Ints) -> Ints:
    """The least sum of `anew` [from, at] over all ways to cut into pieces of at most `longest`."""
    outs = len(anew) - 1
    least = np.full((len(longest), outs + 1), np.iinfo(np.int64).max // 2)
    least[:, 0] = 0
    reach = int(longest.max())
    for at in range(1, outs + 1):
        start = max(0, at - reach)
        length = at - np.arange(start, at)
        sums = np.where(
            length <= longest[:, None], least[:, start:at] + anew[start:at, at], least[0, -1]
        )
        least[:, at] = sums.min(axis=1)
    return least[:, outs]


def _cheapest_cuts(outs: int, tiles: Ints, anew: Ints) -> Ints:
    """Return the least sum of `anew` [at] where no cut's rows depend on the other cuts.

    With pieces of at most t, the i-th of q - 1 cuts lies between outs - (q - i) t and i t; with
    more pieces, they load at least what the cheapest q cuts do.
    """
    rows: Ints = np.zeros(len(tiles), np.int64)
    cheapest = np.concatenate([[0], np.cumsum(np.sort(anew))])
    if (anew == anew[0]).all():
        return cheapest[-(-outs // tiles) - 1]
    for k, tile in enumerate(tiles.tolist()):
        q = -(-outs // tile)
        longest = outs if q == 1 else -(-outs // (q - 1)) - 1  # largest tile of the class
        placed = sum(
            anew[max(1, outs - (q - i) * longest) - 1 : i * longest].min() for i in range(1, q)
        )
        rows[k] = min(placed, cheapest[q] if q < outs else placed)
    return rows


def level(space: Space, index: int, above: Operand, below: Operand) -> Level:
    """The term of `index` under held operands."""
    n = space.problem.extent
    crosses = below == "I" and index < len(space.rates) - 1
    crossing = space.problem.groups * n.N * n.C * space.rates[index].I_reads if crosses else 0.0
    paid = _Paid(space.problem, space.least_rates, space.top, space.used)
    weights = _weights(paid, index, above, below)
    return Level(space, index, all_rooms(space, index, above), weights, crossing)


class _Paid(NamedTuple):
    """All that weights depend on; rooms are nothing to them."""

    problem: Problem
    prices: tuple[Traffic, ...]
    top: Cut
    used: tuple[int, int]


@lru_cache(maxsize=2**12)  # one product is searched in rooms of many sizes
def _weights(paid: _Paid, index: int, above: Operand, below: Operand) -> Weights:
    """The weights of a term, read off `between` by probing."""

    def energy(A: float, B: float, S: float, R: float) -> float:
        cut = Cut(B, A, S, 1, 1, 1, 1, R, 1)
        return _term(paid, index, above, below, cut)

    base, one_A = energy(0, 0, 0, 0), energy(1, 0, 0, 0)
    return Weights(
        constant=base,
        S=energy(0, 0, 1, 0) - base,
        B=energy(0, 1, 0, 0) - base,
        A=one_A - base,
        RA=energy(1, 0, 0, 1) - energy(0, 0, 0, 1) - (one_A - base),
        R=energy(0, 0, 0, 1) - base,
    )


def _term(paid: _Paid, index: int, above: Operand, below: Operand, cut: Cut) -> float:
    """Return the energy that `cut` adds at its two boundaries, other cuts taken as nothing.

    Traffic of a boundary is a sum of what its upper cut and what its lower cut bring, but for
    held ifmaps, whose rows are the lower cut's and whose visits are the upper one's. Those are
    bounded by the upper cut's own rows: pieces of pieces never load fewer.
    """
    problem, prices, top, used = paid
    upper = top if index == 1 else NOTHING
    energy = level_energy(between(problem, upper, cut, above, 0), prices[index - 1])
    if index > 1:
        energy -= level_energy(between(problem, upper, NOTHING, above, 0), prices[index - 1])
    if index == len(prices) - 1:
        lower = cut._replace(rows=used[0], columns=used[1])
    else:
        lower = NOTHING._replace(rows=cut.rows, columns=cut.columns)
    return float(energy + level_energy(between(problem, cut, lower, below, 0), prices[index]))
