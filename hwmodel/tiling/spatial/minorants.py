"""Rows of I from below: planes in the logarithms of a tile's outputs and taps.

Rows that pieces load, and rows that a tile has room for, are no products of sizes. Below them lie
products, c * outs^a * taps^b, which are planes in logarithms: some of them, each as high as no
integer tile forbids, are taken in place of the rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.bounds import _axis as axis_of
from hwmodel.tiling.optimal.bounds import largest
from hwmodel.tiling.rows import block_rows, most_rows, products
from hwmodel.tiling.spatial.paths import Axis

__all__ = ["Planes", "in_runs", "loaded", "needed"]

Floats = NDArray[np.float64]
LOOKED_AT = 4  # tiles of each loop whose slopes are taken
CLOSE = 0.01  # of longer loops, between the logarithms of tiles that are looked at
LISTED = 192  # tiles of a loop that are looked at one by one


class Planes(NamedTuple):
    """Planes below the logarithm of something: constant + slopes . (log outs, log taps)."""

    constant: Floats
    slopes: Floats  # [plane, 2]


@lru_cache(maxsize=2**6)  # rows and columns, and layers, are often alike
def loaded(axis: Axis) -> Planes:
    """Return planes below the rows that pieces of at most a tile load, all pieces together."""
    classes = axis_of(axis.window, axis.rule, axis.outs, axis.taps)
    outs, taps = classes.outs.astype(float), classes.taps.astype(float)
    met = products(axis.window, axis.rule, axis.outs, axis.taps)
    longest = np.minimum.outer(largest(axis.outs, classes.outs), largest(axis.taps, classes.taps))
    # A row meets an output through one tap at most, so a block takes part in so many products.
    rows = np.maximum(np.maximum(classes.rows, met / longest), 1)
    return _below(np.log(outs), np.log(taps), np.log(rows), falls=True)


@lru_cache(maxsize=2**6)
def needed(axis: Axis) -> Planes:
    """Return planes below the rows that a tile needs in a memory."""
    outs, taps = (_some(length) for length in (axis.outs, axis.taps))
    whole = int(block_rows(axis.window, axis.rule, 0, axis.outs, 0, axis.taps))
    most = most_rows(axis.window, axis.rule, whole, outs[:, None], taps)
    rows = np.log(np.maximum(np.asarray(most, float), 1))
    x, y = (np.log(np.append(some[1:] - 1, some[-1])) for some in (outs, taps))
    return _below(x, y, rows, falls=False)


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
    """Planes under a table, with slopes as it has them between some of its places."""
    found: dict[tuple[float, float], float] = {}
    for i in _spread(len(x)):
        for k in _spread(len(y)):
            for a in _slopes(x, values[:, k], i):
                for b in _slopes(y, values[i], k):
                    slope = (min(a, 0.0), min(b, 0.0)) if falls else (max(a, 0.0), max(b, 0.0))
                    slope = round(slope[0], 6), round(slope[1], 6)
                    if slope not in found:
                        above = values - slope[0] * x[:, None] - slope[1] * y
                        found[slope] = float(above.min())
    slopes = np.array(list(found))
    constant = np.array(list(found.values()))
    return _touching(Planes(constant, slopes), x, y)


def _touching(planes: Planes, x: Floats, y: Floats) -> Planes:
    """Those planes that are the highest anywhere."""
    heights = (
        planes.constant[:, None, None]
        + planes.slopes[:, 0, None, None] * x[:, None]
        + planes.slopes[:, 1, None, None] * y
    )
    highest = np.unique(heights.argmax(axis=0))
    return Planes(planes.constant[highest], planes.slopes[highest])


def _spread(length: int) -> list[int]:
    """Some places of a list, its ends among them."""
    return sorted({round(i * (length - 1) / (LOOKED_AT - 1)) for i in range(LOOKED_AT)})


def _slopes(x: Floats, values: Floats, at: int) -> set[float]:
    """Slopes of the lower hull of a line of a table on both sides of a place."""
    left, right = x < x[at], x > x[at]
    rise = np.divide(values - values[at], x - x[at], where=left | right, out=np.zeros(len(x)))
    sides = [float(rise[left].max())] if left.any() else []
    sides += [float(rise[right].min())] if right.any() else []
    return set(sides) or {0.0}
