"""Rows that many chains of tiles load at once: sums over their cuts, in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import axis_rows
from hwmodel.tiling.optimal.bounds import LONGEST_APART, Axis, reloads
from hwmodel.tiling.optimal.budget import ENTRIES
from hwmodel.tiling.rows import RowRule, at_borders, block_rows
from hwmodel.work.problem import Window

__all__ = ["chain_rows", "pair_cost", "summed_rows"]

Ints = NDArray[np.int64]
FEW = 16  # outputs or taps, the fewer of them, whose cuts are looked at piece by piece


def chain_rows(rule: RowRule, window: Window, outs: int, taps: int, out: Ints, tap: Ints) -> Ints:
    """Rows [out chains * tap chains, levels] that every pair of two lists of chains loads."""
    turned = window._replace(step=window.dilation, dilation=window.step)
    if not _is_short(rule, outs, taps):
        rows = np.array(
            [
                axis_rows(window, rule, outs, taps, tuple(zip(o, t, strict=True)))[1:]
                for o in out.tolist()
                for t in tap.tolist()
            ]
        )
    elif outs <= taps:
        rows = _piece_by_piece(turned, rule, (outs, taps), out, tap)
    else:
        rows = _piece_by_piece(window, rule, (taps, outs), tap, out).swapaxes(0, 1)
    listed: Ints = rows.reshape(-1, out.shape[1])
    return listed


def pair_cost(
    rule: RowRule, window: Window, outs: int, taps: int, anew: Ints | None = None
) -> float:
    """Return the work of counting a pair's rows, in tilings looked at (measured; see `Budget`).

    Args:
        anew: rows that cuts add where their loop alone is cut, if known.
    """
    if anew is not None and anew.ndim == 1:
        return (1 + np.count_nonzero(anew != _usual(anew)) / 10) / ENTRIES
    if anew is not None or _is_short(rule, outs, taps):
        return (1 + max(outs, taps) / 10) / ENTRIES
    return 100 + at_borders(window, rule, outs, taps) / 5


def _is_short(rule: RowRule, outs: int, taps: int) -> bool:
    """Whether cuts are looked at piece by piece, for many chains at once."""
    few, many = sorted((outs, taps))
    return rule.rows == "touched" and few <= FEW and many <= LONGEST_APART


def summed_rows(axis: Axis, anew: Ints, chains: Ints, cut: Ints) -> Ints:
    """Rows that chains of one loop load [chains, levels], the other uncut: a sum over cuts.

    All cuts load the same anew but for some near the borders, which are looked at one by one;
    unless what they load depends on the cut before (`anew` [from, at]).
    """
    if anew.ndim == 2:
        return _after_each_other(axis, anew, chains)
    usual = _usual(anew)
    at = np.flatnonzero(anew != usual)
    rest = np.broadcast_to(at + 1, (len(chains), len(at)))
    rows = axis.rows[0, 0] + usual * (cut - 1)
    for level, tiles in enumerate(chains.T):
        rest = rest % tiles[:, None]
        rows[:, level] += ((rest == 0) * (anew[at] - usual)).sum(axis=1)
    summed: Ints = rows
    return summed


def _usual(anew: Ints) -> int:
    """Return the rows that most cuts add."""
    return int(np.median(anew)) if len(anew) else 0


def _after_each_other(axis: Axis, anew: Ints, chains: Ints) -> Ints:
    """Rows that chains of one loop load, where a cut's rows depend on the one before it."""
    rows = np.full_like(chains, axis.rows[0, 0])
    for some, level, chain, before, cut in _cuts(len(anew) - 1, chains):
        rows[some, level] += np.bincount(chain, anew[before, cut], len(rows[some])).astype(int)
    return rows


def _cuts(extent: int, chains: Ints) -> Iterator[tuple[slice, int, Ints, Ints, Ints]]:
    """Yield the cuts that chains of a loop make, some chains at a time, level by level.

    Each with its chain, counted from the first of these, and the cut (or beginning) before it.
    """
    positions, number = np.arange(extent), 2**21 // extent + 1  # 16 MiB at a time
    for first in range(0, len(chains), number):
        some = slice(first, first + number)
        rest = np.broadcast_to(positions, (len(chains[some]), extent))
        for level, tiles in enumerate(chains[some].T):
            rest = rest % tiles[:, None]
            chain, start = np.nonzero(rest == 0)  # position 0 begins the first piece of every chain
            cut = np.flatnonzero(start)
            yield some, level, chain[cut], start[cut - 1], start[cut]


def _piece_by_piece(
    window: Window, rule: RowRule, extents: tuple[int, int], few: Ints, many: Ints
) -> Ints:
    """Rows [few chains, many chains, levels]: for each piece of the short loop, those of the long.

    Args:
        window: with the long loop (`extents[1]`) as outputs and the short one as taps.
        few: chains of the short loop; there are not many ways to cut it.
        many: chains of the long one.
    """
    short, long = extents
    rows = np.zeros((len(few), len(many), few.shape[1]), np.int64)
    starts: list[list[tuple[int, ...]]] = []
    rest = np.broadcast_to(np.arange(short), (len(few), short))
    for tiles in few.T:
        rest = rest % tiles[:, None]
        starts.append([tuple(np.flatnonzero(row == 0).tolist()) for row in rest])
    for some, level, chain, before, cut in _cuts(long, many):
        loaded = {}
        for first in set(starts[level]):
            pieces_of_short = list(zip(first, (*first[1:], short), strict=True))
            tables = [_of_piece(window, rule, long, *piece) for piece in pieces_of_short]
            anew = sum(table[before, cut] for _, table in tables)
            number = np.bincount(chain, anew, len(many[some])).astype(int)
            loaded[first] = number + sum(whole for whole, _ in tables)
        rows[:, some, level] = [loaded[first] for first in starts[level]]
    return rows


@lru_cache(maxsize=64)
def _of_piece(window: Window, rule: RowRule, outs: int, tap: int, end: int) -> tuple[int, Ints]:
    """Return the rows that all outputs load through taps tap ... end - 1, and `reloads`."""
    own = window._replace(pad=window.pad - tap * window.dilation)
    return int(block_rows(own, rule, 0, outs, 0, end - tap)), reloads(own, rule, outs, end - tap)
