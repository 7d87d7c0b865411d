"""Rows of I that a block of outputs and taps needs, counted exactly and in closed form.

Output `o` reads through tap `k` the row (o*step + k*dilation - pad) / spread, if that is whole.
The positions under a block are sums of two arithmetic progressions, so they fall into a few plain
progressions, and rows are counted without walking over them. Columns are rows of the other axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.work.problem import Window

__all__ = [
    "TOUCHED",
    "RowRule",
    "Span",
    "at_borders",
    "block_rows",
    "cut_rows",
    "cut_spans",
    "most_of",
    "most_rows",
    "products",
    "span_rows",
]

Whole = Any  # an int or an array of them
TOGETHER = 2**20  # pairs of pieces that are looked at together, to save memory


class RowRule(NamedTuple):
    """The rule that says which rows of I are moved and stored; columns alike."""

    rows: Literal["touched", "bounding"] = "touched"  # bounding: all from the first to the last
    padding: Literal["skipped", "counted"] = "skipped"


TOUCHED = RowRule()  # what a chip would pay


class Span(NamedTuple):
    """`number` pieces of one loop that load alike; the first begins at `start`."""

    start: int
    length: int
    number: int


class _Progression(NamedTuple):
    """Rows from `first` to `last` at equal gaps; no row where `number` is 0."""

    first: Whole
    last: Whole
    number: Whole


def block_rows(
    window: Window, rule: RowRule, out: Whole, outs: Whole, tap: Whole, taps: Whole
) -> NDArray[np.int64]:
    """Count the rows that outputs out ... out+outs-1 need through taps tap ... tap+taps-1.

    Arguments are numbers or arrays that broadcast. Positions are i*s' + k*d', s' and d' coprime.
    With d' outputs and s' taps or more, those of taps of one residue modulo s' are one progression
    in i, lengthened by d' for every further s' taps; with fewer, no two are equal, and each tap has
    a progression of its own. The same holds with outputs and taps exchanged, and whichever makes
    fewer progressions is taken.

    Holds for: every window; equal to the rows collected one by one in the tests' simulator.
    """
    shared = gcd(window.step, window.dilation)
    step, dilation = window.step // shared, window.dilation // shared
    given = [np.asarray(x, np.int64) for x in (out, outs, tap, taps)]
    out, outs, tap, taps = np.broadcast_arrays(*given)
    origin = out * window.step + tap * window.dilation - window.pad
    meet = (outs >= dilation) & (taps >= step)  # else progressions of single taps are apart
    by_tap = (taps, outs, np.where(meet, step, taps), dilation, window.step, window.dilation)
    by_out = (outs, taps, np.where(meet, dilation, outs), step, window.dilation, window.step)
    fewer = by_out[2] < by_tap[2]
    sides: tuple[Whole, ...] = by_tap
    if fewer.any():
        sides = tuple(np.where(fewer, *pair) for pair in zip(by_out, by_tap, strict=True))
    few, many, residues, shift, leap, offset = sides
    parts = []
    total = np.zeros_like(origin)
    for residue in range(int(np.minimum(residues, few).max(initial=0))):
        length = many + shift * ((few - 1 - residue) // residues)
        length = np.where(residue < np.minimum(residues, few), length, 0)
        part = _clip(window, rule, origin + residue * offset, leap, length)
        if rule.rows == "touched":
            total = total + part.number
        else:
            parts.append(part)
    return total if rule.rows == "touched" else _bounding(parts, origin)


def _clip(
    window: Window, rule: RowRule, position: Whole, leap: Whole, length: Whole
) -> _Progression:
    """Keep the positions that are whole rows and, if padding is skipped, rows that exist."""
    row, gap, count = position, leap, length
    if window.spread > 1:
        common = np.gcd(leap, window.spread)
        period = window.spread // common
        inverse = np.where(leap == window.step, *(_inverse(x, window.spread) for x in window[1:3]))
        first = np.where(
            position % common == 0, -position // common % period * inverse % period, length
        )
        count = np.maximum(-(-(length - first) // period), 0)
        row, gap = (position + first * leap) // window.spread, leap // common
    if rule.padding == "counted":
        return _Progression(row, row + gap * (count - 1), count)
    skipped = np.maximum(-(row // gap), 0)  # ceil(-row / gap) rows lie before row 0
    kept = np.minimum(count, (window.size - 1 - row) // gap + 1) - skipped
    row = row + skipped * gap
    return _Progression(row, row + gap * (kept - 1), np.maximum(kept, 0))


def _inverse(leap: int, spread: int) -> int:
    """Invert leap / gcd modulo spread / gcd, to find the multiples of `leap` that hit a row."""
    common = gcd(leap, spread)
    return pow(leap // common, -1, spread // common) if spread > common else 0


def _bounding(parts: list[_Progression], like: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the rows from the first to the last of all progressions."""
    top = np.iinfo(np.int64).max // 4
    first, last = np.full(like.shape, top), np.full(like.shape, -top)
    for part in parts:
        first = np.where(part.number > 0, np.minimum(first, part.first), first)
        last = np.where(part.number > 0, np.maximum(last, part.last), last)
    rows: NDArray[np.int64] = np.maximum(last - first + 1, 0)
    return rows


def most_rows(window: Window, rule: RowRule, whole: int, outs: Whole, taps: Whole) -> Any:
    """Return the most rows that a block of `outs` outputs and `taps` taps can need anywhere.

    That is the block away from the borders, at the best phase of `spread`, but never more than
    the `whole` rows of the uncut problem. It grows with the block, so smaller tiles always fit.
    """
    wide = rule._replace(padding="counted")
    phase = gcd(window.step, window.dilation, window.spread)
    starts = np.arange(-window.pad % phase, window.spread, phase)
    outs, taps = np.broadcast_arrays(outs, taps)
    step = max(1, TOGETHER // max(outs.size, 1))
    most: Any = 0
    for i in range(0, len(starts), step):
        some: Any = starts[i : i + step].reshape(-1, *[1] * outs.ndim)
        rows = block_rows(window._replace(pad=-some), wide, 0, outs, 0, taps)
        most = np.maximum(most, rows.max(axis=0))
    return np.minimum(most, whole)


@lru_cache(maxsize=2**14)
def most_of(window: Window, rule: RowRule, whole: int, outs: int, taps: int) -> int:
    """Return the same of one block."""
    return int(most_rows(window, rule, whole, outs, taps))


@lru_cache(maxsize=2**12)
def products(window: Window, rule: RowRule, outs: int, taps: int) -> int:
    """Count the pairs of an output and a tap that meet a row; the MACs of an axis read these."""
    few, many = (taps, outs) if taps <= outs else (outs, taps)
    window = window if taps <= outs else window._replace(step=window[2], dilation=window[1])
    single = rule._replace(rows="touched")  # a MAC takes one row, whatever lies between
    return int(block_rows(window, single, 0, many, np.arange(few), 1).sum())


def cut_rows(window: Window, rule: RowRule, outs: Sequence[Span], taps: Sequence[Span]) -> int:
    """Count the rows loaded if each pair of an output piece and a tap piece loads its own."""
    total, step = 0, max(1, TOGETHER // len(outs))
    for i in range(0, len(taps), step):
        rows, pairs = span_rows(window, rule, outs, taps[i : i + step])
        if float(rows.max()) * float(pairs.max()) * rows.size > 2**62:  # beyond 64-bit integers
            rows = rows.astype(object)
        total += int((rows * pairs).sum())
    return total


def span_rows(
    window: Window, rule: RowRule, outs: Sequence[Span], taps: Sequence[Span]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that a pair of pieces needs and the number of pairs [tap span, out span]."""
    out, length, count = np.array(outs, np.int64).T
    tap, width, times = np.array(taps, np.int64).T[:, :, None]
    return block_rows(window, rule, out, length, tap, width), times * count


def cut_spans(
    window: Window, rule: RowRule, extent: int, other: int, tiles: Sequence[int]
) -> list[list[Span]]:
    """Cut a loop at every level, the uncut loop first; pieces that load alike form one span.

    Pieces away from the borders load alike if they have the same length and the same phase of
    `spread`; so their number is small however long the loop is. `window` is seen from this loop:
    to cut the taps, exchange step and dilation. `other` is the length of the loop it meets.
    """
    inner = inner_range(window, rule, extent, other)
    levels = [[Span(0, extent, 1)]]
    for tile in tiles:
        levels.append([s for span in levels[-1] for s in _cut(span, tile, inner, window)])
    return levels


def inner_range(window: Window, rule: RowRule, extent: int, other: int) -> range:
    """Return the iterations of a loop away from the borders, whose rows all exist or count."""
    if rule.padding == "counted":
        return range(extent)
    reach = (other - 1) * window.dilation
    first = min(max(0, -(-window.pad // window.step)), extent)
    last = ((window.size - 1) * window.spread + window.pad - reach) // window.step
    return range(first, min(max(first, last + 1), extent))


def at_borders(window: Window, rule: RowRule, outs: int, taps: int) -> int:
    """Count the outputs and taps near the borders of an axis; each is listed by itself."""
    turned = window._replace(step=window.dilation, dilation=window.step)
    inner = inner_range(window, rule, outs, taps), inner_range(turned, rule, taps, outs)
    return outs - len(inner[0]) + taps - len(inner[1])


def _cut(span: Span, tile: int, inner: range, window: Window) -> list[Span]:
    """Cut a span; pieces inside `inner` that repeat are counted, not listed."""
    full, rest = divmod(span.length, tile)
    low = min(max(0, -(-(inner.start - span.start) // tile)), full)
    high = max(low, min(full, (inner.stop - span.start) // tile))
    if span.number > 1 or (inner.start <= span.start and span.start + span.length <= inner.stop):
        low, high = 0, full
    period = window.spread // gcd(tile * window.step, window.spread)
    result = [Span(span.start + i * tile, tile, span.number) for i in range(low)]
    for i in range(low, min(low + period, high)):
        alike = -(-(high - i) // period)
        result.append(Span(span.start + i * tile, tile, span.number * alike))
    result += [Span(span.start + i * tile, tile, span.number) for i in range(high, full)]
    if rest:
        result.append(Span(span.start + full * tile, rest, span.number))
    return result
