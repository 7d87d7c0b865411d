"""Rows that tiles of the first level load at least, tile by tile, where a class says little.

A class has the room of its smallest tile and the rows of its best one, which may not fit beside the
others: rows are touched by outputs or taps apart, or some of them are padding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.bounds import MOST_SINGLE, Axis, Level, cut_once, is_uneven
from hwmodel.tiling.optimal.budget import ENTRIES
from hwmodel.tiling.optimal.tables import Chosen, Classes
from hwmodel.tiling.rows import most_rows
from hwmodel.work.problem import Window

__all__ = ["nearer"]

Ints = NDArray[np.int64]


class _Pairs(NamedTuple):
    """All tiles of a class of outputs with all of a class of taps."""

    outs: Ints
    taps: Ints
    room: Ints  # rows that a tile needs in a buffer
    rows: Ints  # that are loaded where it cuts the whole


def nearer(classes: Classes, level: Level, own: Chosen) -> Chosen | None:
    """Raise the rows of classes of the first level to those of tiles that fit; None: none does."""
    space, place = classes.space, own.place
    n = space.problem.extent
    axes = (
        (space.problem.height, space.height, n.HO, n.HF, (3, 5), (4, 6), "rows"),
        (space.problem.width, space.width, n.WO, n.WF, (4, 6), (3, 5), "columns"),
    )
    for number, (window, axis, outs, taps, (o, t), (p, q), field) in enumerate(axes):
        if not _says_little(axis, window, outs, taps):
            continue
        key = number, place[o], place[t]
        if key not in classes.pairs:
            ends = [(int(own.low[d]), int(classes.longest[d][place[d]])) for d in (o, t)]
            classes.pairs[key] = _pairs(classes, window, axis, (outs, taps), ends)
        pairs = classes.pairs[key]
        space.budget.spend(pairs.rows.size / ENTRIES)
        beside = float(classes.axes[1 - number][0, place[p], place[q]])
        fits = _fit(classes, level, own, pairs, beside, (own.low[p], own.low[q]))
        if not fits.any():
            return None
        least = float(pairs.rows[fits].min())
        own = own._replace(**{field: max(least, getattr(own, field))})
    return own


def _says_little(axis: Axis, window: Window, outs: int, taps: int) -> bool:
    """Whether tiles of a class load different numbers of rows, and are few enough to look at."""
    some = (anew for anew in (axis.by_out, axis.by_tap) if anew is not None)
    apart = any(anew.ndim == 2 or (anew != anew[:1]).any() for anew in some)
    return is_uneven(window, outs, taps) or (apart and outs * taps <= MOST_SINGLE)


def _pairs(
    classes: Classes, window: Window, axis: Axis, lengths: tuple[int, int], ends: Any
) -> _Pairs:
    space = classes.space
    out, tap = (np.arange(low, high + 1) for low, high in ends)
    whole = int(axis.rows[0, 0])
    room = most_rows(window, space.rule, whole, out[:, None], tap)
    touched = space.rule._replace(rows="touched")
    rows = cut_once(window, touched, (lengths[0], out), (lengths[1], tap))
    return _Pairs(out[:, None], tap, room, rows)


def _fit(
    classes: Classes,
    level: Level,
    own: Chosen,
    pairs: _Pairs,
    beside: float,
    others: tuple[float, float],
) -> Any:
    """Which pairs fit beside the smallest tiles of all else."""
    bits, (n, m, c) = classes.bits.tolist(), own.low[:3]
    size_I = bits[0] * n * c * beside * pairs.room
    size_F = bits[1] * m * c * others[1] * pairs.taps
    size_O = bits[2] * n * m * others[0] * pairs.outs
    fits: Any = True
    for room in level.rooms:
        fits = fits & (size_I * room.I + size_F * room.F + size_O * room.O <= room.capacity)
    return np.broadcast_to(fits, pairs.rows.shape)
