"""Mappings looked at part by part, where little is sure of all together.

What is parted is always what has the lowest bound of all choices of what is held (`cuts` says
where); the least of all parts is a bound of all.

Source: branch and bound, Land and Doig, Econometrica 28, 1960, on the bound of `relaxed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple

from hwmodel.tiling.spatial.boxes import Box
from hwmodel.tiling.spatial.counts import Tables
from hwmodel.tiling.spatial.cuts import sides
from hwmodel.tiling.spatial.powers import Former
from hwmodel.tiling.spatial.relaxed import Energies, Point, Relaxed
from hwmodel.tiling.spatial.space import Space
from hwmodel.work.problem import Operand

__all__ = ["Parts"]

MOST = 300  # cuts
PATIENCE, RISE = 40, 1e-3  # cuts after which the least bound must have risen, and by what share


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
        for part in sorted(self._parts, key=lambda part: part[:2]):
            held = self._formers[part.choice].held
            found.setdefault(held, part.point.relaxed._replace(energy=part.energy))
        return found

    def lowest(self, number: int) -> list[tuple[tuple[Operand, ...], Relaxed]]:
        """What is held in the parts with the lowest bounds, and where these are."""
        parts = sorted(self._parts, key=lambda part: part[:2])[:number]
        return [(self._formers[part.choice].held, part.point.relaxed) for part in parts]

    def cut(self, enough: float, patience: int = PATIENCE) -> None:
        """Cut the part with the lowest bound, until that is enough or does not rise any more.

        Args:
            enough: energy [chip's unit].
            patience: cuts after which it must have risen.
        """
        before, left = self.least, patience
        for _ in range(MOST):
            first = self._parts[0]
            parts = sides(self._formers[first.choice], first.box, first.point)
            if not parts or self.least >= enough or not left:
                return
            one = heappop(self._parts)
            own = self._of(one.choice)
            for box in parts:
                (point,) = own.points(box, one.point.at)
                energy = max(one.energy, point.relaxed.energy)
                part = _Part(energy, next(self._numbers), one.choice, box, point)
                heappush(self._parts, part)
            left -= 1
            if self.least > before * (1 + RISE):
                before, left = self.least, patience

    def _of(self, choice: int) -> Energies:
        """The energies of one choice, which are remembered."""
        if choice not in self._energies:
            self._energies[choice] = Energies([self._formers[choice]])
        return self._energies[choice]
