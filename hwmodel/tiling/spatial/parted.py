"""Sizes looked at part by part, where rows bend.

Between tiles that share rows and tiles that share none, as under a dilation, rows fall at once: any
plane below them is far below some. So the tiles of such a loop are parted there; of each part the
planes are its own, and the least of all parts is a bound of all. What is parted is always what has
the lowest bound of all choices of what is held.

Source: branch and bound, Land and Doig, Econometrica 28, 1960, on the bound of `relaxed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from math import floor
from typing import NamedTuple

import numpy as np

from hwmodel.tiling.spatial.counts import Tables
from hwmodel.tiling.spatial.minorants import within
from hwmodel.tiling.spatial.powers import Former
from hwmodel.tiling.spatial.products import Key, Rows
from hwmodel.tiling.spatial.relaxed import Box, Energies, Point, Relaxed, part_of
from hwmodel.tiling.spatial.space import Space
from hwmodel.work.problem import Operand

__all__ = ["Parts"]

MOST = 40  # cuts
PATIENCE, RISE = 5, 2e-3  # cuts after which the least bound must have risen, and by what share
WORTH = 2e-2  # share of the energy that rows must be too low by
WHOLE = 1e-6  # of a whole number, that a size may be below it and count as it


class _Part(NamedTuple):
    """Some mappings of one choice of what is held."""

    energy: float  # none costs less
    number: int  # of parts with equal energies the first comes first
    choice: int
    box: Box
    point: Point


class Parts:
    """What is sure of choices of what is held, part by part."""

    def __init__(self, formers: Sequence[Former]) -> None:
        self._formers, self._numbers = formers, count()
        self._energies: dict[int, Energies] = {}  # of choices that were cut
        self._parts = [
            _Part(point.relaxed.energy, next(self._numbers), i, {}, point)
            for i, point in enumerate(Energies(formers).points({}))
        ]
        heapify(self._parts)

    @classmethod
    def of(cls, space: Space, choices: Sequence[tuple[Operand, ...]], *, apart: bool) -> Parts:
        """Return one part of every choice of what is held.

        Args:
            space: with groups one by one.
            apart: whether groups may lie side by side.
        """
        tables = Tables(space.axes)
        return cls([Former(space, held, tables, apart) for held in choices])

    @property
    def least(self) -> float:
        """The least of all bounds [chip's unit]."""
        return self._parts[0].energy

    def sure(self) -> dict[tuple[Operand, ...], Relaxed]:
        """What is sure of every choice, and the sizes of the part with its lowest bound."""
        found: dict[tuple[Operand, ...], Relaxed] = {}
        for part in sorted(self._parts):
            held = self._formers[part.choice].held
            found.setdefault(held, part.point.relaxed._replace(energy=part.energy))
        return found

    def cut(self, enough: float) -> None:
        """Cut the part with the lowest bound, until that is enough or does not rise any more."""
        before, patience = self.least, PATIENCE
        for _ in range(MOST):
            sides = _sides(self._formers[self._parts[0].choice], self._parts[0])
            if not sides or self.least >= enough or not patience:
                return
            one = heappop(self._parts)
            own = self._of(one.choice)
            for box in sides:
                (point,) = own.points(box)
                energy = max(one.energy, point.relaxed.energy)
                part = _Part(energy, next(self._numbers), one.choice, box, point)
                heappush(self._parts, part)
            patience -= 1
            if self.least > before * (1 + RISE):
                before, patience = self.least, PATIENCE

    def _of(self, choice: int) -> Energies:
        """The energies of one choice, which are remembered."""
        if choice not in self._energies:
            self._energies[choice] = Energies([self._formers[choice]])
        return self._energies[choice]


def _sides(former: Former, part: _Part) -> tuple[Box, ...]:
    """Both sides of the cut that rows gain most by; none if it is not worth it."""
    cuts = (
        (share * gain, number, cut)
        for number, (name, share) in enumerate(part.point.shares.items())
        if share > WORTH
        for gain, cut in _cuts(former, part, name)
    )
    most, _, cut = max(cuts, default=(0.0, 0, None))
    if cut is None or most < WORTH:
        return ()
    key, last = cut
    below = _bounded(former, part.box, key, most=last)
    return below, _bounded(former, part.box, key, least=last + 1)


def _cuts(former: Former, part: _Part, name: Rows) -> Iterator[tuple[float, tuple[Key, int]]]:
    """By how much rows are too low, in logarithms, and behind which tile to part either loop."""
    table = within(former.tables.loaded(name.which), part_of(former, name, part.box))
    planes = former.tables.planes(name.which, name.kind, part_of(former, name, part.box))
    ends = [former.of(key) for key in (name.outs, name.taps)]
    sizes = [one.constant + sum(f * part.point.at[n] for n, f in one.factors) for one in ends]
    classes = table.outs, table.taps
    at = [
        int(np.flatnonzero(some[:, 0] <= max(floor(np.exp(size) + WHOLE), some[:, 0].min()))[0])
        for some, size in zip(classes, sizes, strict=True)
    ]
    gain = float(table.rows[at[0], at[1]]) - part.point.at[name]
    for side, key in enumerate((name.outs, name.taps)):
        some = classes[side]
        if key[1] < 0 or len(some) < 2:
            continue
        rows = table.rows[:, at[1]] if side == 0 else table.rows[at[0]]
        logs = [sizes[0], sizes[1]]
        heights = planes.constant[:, None] + sum(
            planes.slopes[:, [i]] * (np.log(some[:, 0]) if i == side else logs[i]) for i in (0, 1)
        )
        bends = rows - heights.max(axis=0)
        bend = int(np.argmax(bends))
        last = int(some[bend, 1] if bend else some[bend, 0] - 1)  # the first class has the largest
        yield min(gain, float(bends[bend])), (key, last)


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
