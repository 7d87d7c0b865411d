"""Paths of indexes through a chain of tiles, and how many of them differ.

A loop of a given length is cut step by step into pieces. The path of an index says which piece it
lies in at every step. A count of the model is the number of different values that some components
of the path take; which of them is told by `Step.kept`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import TooLarge
from hwmodel.tiling.accesses import axis_spans
from hwmodel.tiling.rows import RowRule, Span, cut_rows, products, span_rows
from hwmodel.work.problem import Window

__all__ = ["Axis", "Met", "Step", "Steps", "meetings", "rows", "values"]

MOST_PAIRS = 2**24  # of an output and a tap, where they are looked at one by one


class Step(NamedTuple):
    """One cut of a path: pieces of at most `tile`; `kept` if the count tells them apart."""

    tile: int
    kept: bool


Steps = tuple[Step, ...]


class Axis(NamedTuple):
    """Rows or columns of a problem: how outputs meet rows of I through taps."""

    window: Window
    rule: RowRule
    outs: int
    taps: int


class Met(NamedTuple):
    """Groups of outputs and of taps, with equal kept components, that touch a row together."""

    pairs: int  # of groups
    outs: int  # outputs of the groups of outputs in these pairs, added up
    taps: int  # taps of the groups of taps in these pairs, added up


def values(length: int, steps: Sequence[Step]) -> int:
    """Count the different values that the kept components of a loop's paths take.

    Where a component is left out, pieces that differ in it are taken together. What lies in a
    shorter piece lies in the longest, the first, too: so only that one is followed.

    >>> values(6, (Step(4, True), Step(2, True)))  # 4 + 2, cut into 2 + 2 and 2
    3
    >>> values(6, (Step(4, False), Step(2, True)))  # copies that the first piece of 4 needs
    2

    Holds for: every chain of tiles that nest; equal to paths walked one by one in the tests.
    """
    kinds = {length: 1}
    for tile, kept in steps:
        cut: dict[int, int] = {}
        for piece, number in kinds.items():
            full, rest = divmod(piece, tile)
            if not kept:
                full, rest = (1, 0) if full else (0, rest)
            if full:
                cut[tile] = cut.get(tile, 0) + full * number
            if rest:
                cut[rest] = cut.get(rest, 0) + number
        kinds = cut
    return sum(kinds.values())


@lru_cache(maxsize=2**16)
def rows(axis: Axis, outs: Steps, taps: Steps) -> int:
    """Count the rows that each pair of a group of outputs and a group of taps loads, added up.

    Indexes whose kept components are equal are one group: what several instances ask for at the
    same moment is read once, halos that they share included. Under `rows` bounding a group loads
    all rows from its first to its last.

    Raises: TooLarge, where groups are not in one piece and the axis is long.
    """
    outs, taps = _needed(axis.outs, outs), _needed(axis.taps, taps)
    if _nested(outs, taps):
        return cut_rows(axis.window, axis.rule, *_spans(axis, outs, taps))
    return _walked(axis, outs, taps)[0]


@lru_cache(maxsize=2**16)
def meetings(axis: Axis, outs: Steps, taps: Steps) -> Met:
    """Count the pairs of groups that touch a row: a cycle that touches none is not made.

    Raises: TooLarge, as `rows`.
    """
    outs, taps = _needed(axis.outs, outs), _needed(axis.taps, taps)
    if products(axis.window, axis.rule, axis.outs, axis.taps) == axis.outs * axis.taps:
        across, down = values(axis.outs, outs), values(axis.taps, taps)
        return Met(across * down, axis.outs * down, across * axis.taps)
    if not _nested(outs, taps):
        return _walked(axis, outs, taps)[1]
    out, tap = _spans(axis, outs, taps)
    touched, number = span_rows(axis.window, axis.rule, out, tap)
    pairs = np.where(touched > 0, number.astype(object), 0)
    wide, high = (np.array([span.length for span in spans], object) for spans in (out, tap))
    return Met(int(pairs.sum()), int((pairs * wide).sum()), int((pairs * high[:, None]).sum()))


def _needed(length: int, steps: Steps) -> Steps:
    """Leave out what does not cut, and what is cut after the last component that is kept."""
    found: list[Step] = []
    for step in steps:
        if step.tile < length:
            found.append(step)
            length = step.tile
    while found and not found[-1].kept:
        found.pop()
    return tuple(found)


def _nested(outs: Steps, taps: Steps) -> bool:
    """Whether groups are the pieces of nested cuts, each in one piece."""
    return all(step.kept for step in (*outs, *taps))


def _spans(axis: Axis, outs: Steps, taps: Steps) -> tuple[list[Span], list[Span]]:
    """The pieces of nested cuts: a few kinds of them, however long the axis."""
    depth = max(len(outs), len(taps), 1)
    chains = []
    for length, steps in ((axis.outs, outs), (axis.taps, taps)):
        tiles = [step.tile for step in steps]
        chains.append(tiles + [tiles[-1] if tiles else length] * (depth - len(tiles)))
    cut = axis_spans(axis.window, axis.rule, axis.outs, axis.taps, list(zip(*chains, strict=True)))
    *_, last = cut
    return last


def _walked(axis: Axis, outs: Steps, taps: Steps) -> tuple[int, Met]:
    """Groups of several pieces: every output and tap by itself."""
    if axis.outs * axis.taps > MOST_PAIRS:
        raise TooLarge(
            "pairs of an output and a tap of one axis, which several instances ask for together",
            axis.outs * axis.taps,
            MOST_PAIRS,
        )
    out, tap = _groups(axis.outs, outs), _groups(axis.taps, taps)
    window, rule = axis.window, axis.rule
    position = (
        np.arange(axis.outs)[:, None] * window.step
        + np.arange(axis.taps)[None, :] * window.dilation
        - window.pad
    )
    row = position // window.spread
    real = position % window.spread == 0
    if rule.padding == "skipped":
        real &= (row >= 0) & (row < window.size)
    if not real.any():
        return 0, Met(0, 0, 0)
    wide = int(tap.max()) + 1
    pair = (out[:, None] * wide + tap[None, :])[real]
    row = row[real] - row[real].min()
    far = int(row.max()) + 1
    touched = np.unique(pair * far + row)
    pairs, loaded = np.unique(touched // far, return_counts=True)
    if rule.rows == "bounding":
        ends = np.cumsum(loaded)
        loaded = touched[ends - 1] - touched[ends - loaded] + 1
    return int(loaded.sum()), Met(
        len(pairs),
        int(np.bincount(out)[pairs // wide].sum()),
        int(np.bincount(tap)[pairs % wide].sum()),
    )


def _groups(length: int, steps: Steps) -> NDArray[np.int64]:
    """Number the groups; equal numbers are equal kept components."""
    offset, group = np.arange(length), np.zeros(length, np.int64)
    for tile, kept in steps:
        place, offset = np.divmod(offset, tile)
        if kept:
            group = np.unique(group * (int(place.max()) + 1) + place, return_inverse=True)[1]
    return group
