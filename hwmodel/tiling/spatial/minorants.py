"""Rows of I from below: planes in the logarithms of a tile's outputs and taps.

Rows that pieces load, and rows that a tile has room for, are no products of sizes. Below them lie
products, c * outs^a * taps^b, which are planes in logarithms: some of them, each as high as no
integer tile forbids, are taken in place of the rows.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.bounds import _axis as axis_of
from hwmodel.tiling.optimal.bounds import largest
from hwmodel.tiling.rows import block_rows, most_rows, products
from hwmodel.tiling.spatial.paths import Axis

__all__ = ["Part", "Planes", "Table", "in_runs", "loaded", "loaded_table", "needed", "within"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROWS, SLOPES = 6, 24  # rows of a table whose slopes are taken; slopes of all of them
POINTS = 100  # of a row whose hull is taken
SEEN = 40  # tiles of each loop at which planes are compared
MOST, LOW = 10, 3e-3  # planes; how far they may be below the highest ones
CLOSE = 0.01  # of longer loops, between the logarithms of tiles that are looked at
LISTED = 192  # tiles of a loop that are looked at one by one


class Planes(NamedTuple):
    """Planes below the logarithm of something: constant + slopes . (log outs, log taps)."""

    constant: Floats
    slopes: Floats  # [plane, 2]


class Part(NamedTuple):
    """The tiles that are looked at: no others are chosen."""

    outs: tuple[int, int]  # least and most
    taps: tuple[int, int]


class Table(NamedTuple):
    """Logarithms of rows from below, by classes of tiles."""

    outs: Ints  # smallest and largest of each class [class, 2]
    taps: Ints
    rows: Floats  # [class of outputs, class of taps]


@lru_cache(maxsize=2**9)  # rows and columns, and layers, are often alike
def loaded(axis: Axis, part: Part | None = None) -> Planes:
    """Return planes below the rows that pieces of at most a tile load, all pieces together."""
    table = loaded_table(axis)
    if part is not None:
        table = within(table, part)
    return _below(np.log(table.outs[:, 0]), np.log(table.taps[:, 0]), table.rows, falls=True)


@lru_cache(maxsize=2**9)
def needed(axis: Axis, part: Part | None = None) -> Planes:
    """Return planes below the rows that a tile needs in a memory."""
    table = needed_table(axis)
    if part is not None:
        table = within(table, part)
    return _below(np.log(table.outs[:, 1]), np.log(table.taps[:, 1]), table.rows, falls=False)


@lru_cache(maxsize=2**6)
def loaded_table(axis: Axis) -> Table:
    """Return what pieces of at most a tile load at least, all pieces together."""
    single = max(axis.outs, axis.taps) <= LISTED
    classes = axis_of(axis.window, axis.rule, axis.outs, axis.taps, single)
    outs, taps = (
        np.stack([tiles, largest(length, tiles)], axis=1).astype(np.int64)
        for length, tiles in ((axis.outs, classes.outs), (axis.taps, classes.taps))
    )
    met = products(axis.window, axis.rule, axis.outs, axis.taps)
    # A row meets an output through one tap at most, so a block takes part in so many products.
    longest = np.minimum.outer(outs[:, 1], taps[:, 1])
    return Table(outs, taps, np.log(np.maximum(np.maximum(classes.rows, met / longest), 1)))


@lru_cache(maxsize=2**6)
def needed_table(axis: Axis) -> Table:
    """Return what tiles need in a memory at least."""
    outs, taps = (_some(length) for length in (axis.outs, axis.taps))
    whole = int(block_rows(axis.window, axis.rule, 0, axis.outs, 0, axis.taps))
    most = most_rows(axis.window, axis.rule, whole, outs[:, None], taps)
    out, tap = (np.stack([x, np.append(x[1:] - 1, x[-1])], axis=1) for x in (outs, taps))
    return Table(out, tap, np.log(np.maximum(np.asarray(most, float), 1)))


def within(table: Table, part: Part) -> Table:
    """Return what a table says of some tiles."""
    sides = []
    for classes, (least, most) in ((table.outs, part.outs), (table.taps, part.taps)):
        there = np.flatnonzero((classes[:, 0] <= most) & (classes[:, 1] >= least))
        sides.append((there, np.clip(classes[there], least, most)))
    (out, outs), (tap, taps) = sides
    return Table(outs, taps, table.rows[np.ix_(out, tap)])


def in_runs(axis: Axis) -> bool:
    """Whether outputs that meet a row through a tap are in a row, and taps of an output alike.

    And whether, the more outputs a tap is to meet, the shorter the row of such taps is; of outputs
    alike.
    """
    window = axis.window
    if window.spread > 1:
        return False
    sides = ((axis.outs, axis.taps, window.step, window.dilation),
             (axis.taps, axis.outs, window.dilation, window.step))  # fmt: skip
    for length, other, step, by in sides:
        at = np.arange(other) * by - window.pad
        first = np.maximum(0, -(at // step))
        last = np.minimum(length - 1, (window.size - 1 - at) // step)
        met = np.diff(np.maximum(0, last + 1 - first) if axis.rule.padding == "skipped" else at * 0)
        falls = np.flatnonzero(met < 0)
        if len(falls) and (met[falls[0] :] > 0).any():
            return False
    return True


def _some(length: int) -> NDArray[np.int64]:
    """Tiles of a loop, the smallest first; each stands for all up to the next."""
    if length <= LISTED:
        return np.arange(1, length + 1)
    more = np.geomspace(LISTED, length, 2 + int(np.log(length / LISTED) / CLOSE))
    return np.unique(np.append(np.arange(1, LISTED), more.astype(np.int64)))


def _below(x: Floats, y: Floats, values: Floats, *, falls: bool) -> Planes:
    """Planes under a table [x, y], nearly as high as any planes are.

    For a slope along one side what is left of the table is a line of its least values, whose lower
    hull has the other slopes. Of all such planes those are taken, one after the other, that lie
    highest where the ones before are lowest.
    """
    found: list[tuple[float, float, float]] = []
    for turned, table, (u, v) in ((False, values, (x, y)), (True, values.T, (y, x))):
        some = _spread(len(u), POINTS)
        for b in _along(v, table, falls):
            line = (table - b * v).min(axis=1)
            for a in _hull(u[some], line[some], falls):
                constant = float((line - a * u).min())
                found.append((constant, b, a) if turned else (constant, a, b))
    every = np.array(found)
    at = np.ix_(_spread(len(x), SEEN), _spread(len(y), SEEN))
    seen = np.stack([np.broadcast_to(one, values.shape)[at].ravel() for one in (x[:, None], y)])
    heights = every[:, :1] + every[:, 1:] @ seen
    return Planes(*_high(every, heights))


def _high(planes: Floats, heights: Floats) -> tuple[Floats, Floats]:
    """Few planes that are nearly as high as all of them, wherever they are looked at."""
    best, kept = heights.max(axis=0), [int(heights.mean(axis=1).argmax())]
    while len(kept) < MOST:
        short = best - heights[kept].max(axis=0)
        lowest = int(short.argmax())
        if short[lowest] < LOW:
            break
        there = np.flatnonzero(heights[:, lowest] >= best[lowest] - LOW / 4)
        kept.append(int(there[heights[there].mean(axis=1).argmax()]))
    return planes[kept, 0], planes[kept, 1:]


def _along(v: Floats, table: Floats, falls: bool) -> list[float]:
    """Slopes of the lower hulls of some rows of a table."""
    at = _spread(len(v), POINTS)
    some = table[_spread(len(table), ROWS)][:, at]
    slopes = sorted({b for row in some for b in _hull(v[at], row, falls)})
    return [slopes[i] for i in _spread(len(slopes), SLOPES)]


def _hull(x: Floats, values: Floats, falls: bool) -> list[float]:
    """Slopes of the lower hull of points, none that rises where the table falls; 0 of one point."""
    order = np.argsort(x)
    kept: list[tuple[float, float]] = []
    for here in zip(x[order].tolist(), values[order].tolist(), strict=True):
        while len(kept) > 1 and _turns(kept[-2], kept[-1], here):
            kept.pop()
        kept.append(here)
    slopes = {0.0}
    for (left, low), (right, high) in pairwise(kept):
        slope = (high - low) / (right - left)
        slopes.add(min(slope, 0.0) if falls else max(slope, 0.0))
    return sorted(slopes)


def _turns(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether the middle of three points does not lie below the line of the others."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def _spread(length: int, most: int) -> list[int]:
    """Some places of a list, its ends among them."""
    few = min(length, most)
    return sorted({round(i * (length - 1) / max(1, few - 1)) for i in range(few)})
