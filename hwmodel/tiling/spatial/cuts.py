"""Where to part the sizes of some mappings, so that more is sure of each part.

Between tiles that share rows and tiles that share none, as under a dilation, rows fall at once: any
plane below them is far below some. And where a tile goes into one further out no whole number of
times, or is no whole number, more pieces are cut than sizes that need not be whole say. All of that
is parted there: a part has its own planes, or pieces that are rounded up.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import ceil, exp, floor, inf, log
from typing import NamedTuple

import numpy as np

from hwmodel.tiling.spatial.boxes import Box
from hwmodel.tiling.spatial.minorants import within
from hwmodel.tiling.spatial.powers import Former
from hwmodel.tiling.spatial.products import WHOLE, Key, Least, Pieces, Rows, Times
from hwmodel.tiling.spatial.relaxed import Point, part_of

__all__ = ["sides"]

WORTH = 2e-2  # share of the energy that rows must be too low by
LITTLE = 2e-5  # and pieces
ENTIRE = 1e-6  # of a whole number, that a size may be below it and count as it
NEAR = 1e-3  # likewise of a number of times
LARGE = 40  # sizes from which on it is no matter that they are no whole numbers
PART = 0.3  # of what a size between two whole ones may be gained, by either
SURE = 0.98  # share of what lies in full pieces that must be known to
WIDER = 2  # times a size, up to which sizes are looked at apart if it is not


class _Cut(NamedTuple):
    """One way to part a box."""

    gain: float  # share of the energy at most
    by: Hashable  # a size, or how often it goes into another
    last: int  # of the first part; of times the second part has the next one alone


def sides(former: Former, box: Box, point: Point) -> tuple[Box, ...]:
    """Return the parts of a box by the cut that most is gained by; none if it is not worth it.

    Args:
        point: where the energy is least in the box.
    """
    cuts = [
        cut
        for name, share in point.shares.items()
        if isinstance(name, Rows) and share > WORTH
        for cut in _bends(former, box, point, name)
        if cut.gain > WORTH
    ]
    cuts += [
        cut
        for name, share in point.shares.items()
        if isinstance(name, Pieces) and share > LITTLE
        for cut in _ragged(former, box, point, name)
        if cut.gain > LITTLE
    ]
    if not cuts:
        return ()
    best = max(cuts, key=lambda cut: cut.gain)  # the first of several
    if isinstance(best.by, Times):
        least, most = box.get(best.by, (1, inf))
        often = best.last + 1
        several = (least, best.last), (often, often), (often + 1, most)
        return tuple(box | {best.by: some} for some in several if some[0] <= some[1])
    below = _bounded(former, box, best.by, most=best.last)  # type: ignore[arg-type]
    return below, _bounded(former, box, best.by, least=best.last + 1)  # type: ignore[arg-type]


def _ragged(former: Former, box: Box, point: Point, name: Pieces) -> Iterator[_Cut]:
    """Cuts by how often a tile goes into those further out, and by sizes of these."""
    loop, share = name.key[0], point.shares[name]
    length = former.space.problem.extent._asdict()[loop]
    sizes = [x for x in point.at if not isinstance(x, (Rows, Least)) and x[0] == loop]  # type: ignore[index]
    own: list[Key] = sorted(sizes, key=former.outside)  # type: ignore[arg-type]
    logs = [log(length), *(point.at[x] for x in own)]
    at, full = own.index(name.key) + 1, 1.0
    size = exp(logs[at])
    last = max(1, floor(size * (1 + NEAR)))
    if last * (1 + NEAR) < size < LARGE:
        yield _Cut(PART * share * log(min(size / last, (last + 1) / size)), name.key, last)
    for i, outer in enumerate([(loop, WHOLE), *own[: at - 1]]):
        if i:
            often = exp(logs[i - 1] - logs[i])
            full *= min(1.0, floor(often * (1 + NEAR)) / often)
        few, most = box.get(Times(name.key, outer), (1, inf))
        times = exp(logs[i] - logs[at])
        whole = max(int(few), ceil(times - NEAR * times))
        if 2 <= whole <= most and few != most:
            yield _Cut(share * full * log(whole / times), Times(name.key, outer), whole - 1)
        wide = int(WIDER * exp(logs[i]))
        if i and few == most and box.get(outer, (1, length))[1] > wide:
            surely = point.full[outer]
            if surely < SURE * full:
                yield _Cut(share * (full - surely) * log(few / times), outer, wide)


def _bends(former: Former, box: Box, point: Point, name: Rows) -> Iterator[_Cut]:
    """Cuts behind the tile of either loop at which rows are furthest above their planes."""
    share, part = point.shares[name], part_of(former, name, box)
    table = within(former.tables.loaded(name.which), part)
    planes = former.tables.planes(name.which, name.kind, part)
    ends = [former.of(key) for key in (name.outs, name.taps)]
    sizes = [one.constant + sum(f * point.at[n] for n, f in one.factors) for one in ends]
    classes = table.outs, table.taps
    at = [
        int(np.flatnonzero(some[:, 0] <= max(floor(np.exp(size) + ENTIRE), some[:, 0].min()))[0])
        for some, size in zip(classes, sizes, strict=True)
    ]
    gain = float(table.rows[at[0], at[1]]) - point.at[name]
    for side, key in enumerate((name.outs, name.taps)):
        some = classes[side]
        if key[1] < 0 or len(some) < 2:
            continue
        rows = table.rows[:, at[1]] if side == 0 else table.rows[at[0]]
        heights = planes.constant[:, None] + sum(
            planes.slopes[:, [i]] * (np.log(some[:, 0]) if i == side else sizes[i]) for i in (0, 1)
        )
        bends = rows - heights.max(axis=0)
        bend = int(np.argmax(bends))
        last = int(some[bend, 1] if bend else some[bend, 0] - 1)  # the first class has the largest
        yield _Cut(share * min(gain, float(bends[bend])), key, last)


def _bounded(former: Former, box: Box, key: Key, least: int = 1, most: int | None = None) -> Box:
    """A box in which a size, and those inside or outside it, are bounded."""
    loop, place = key
    length = getattr(former.space.problem.extent, loop)
    found = dict(box)
    for other in range(former.space.columns[loop].chosen):
        one = former.key(loop, other)
        if one[1] < 0:
            continue
        low, high = found.get(one, (1, length))
        if most is not None and other >= place:
            high = min(high, most)
        if other <= place:
            low = max(low, least)
        found[one] = low, high
    return found
