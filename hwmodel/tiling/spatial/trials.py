"""Mappings that are tried, ever fewer of them more closely.

Some are of even parts and some near relaxed sizes. The best that differ are made better two axes at
a time. Then the sizes of one step of the best one are changed together, and what comes of it is
made better in its turn: two axes at a time do not lead from one good mapping to another where three
would have to change.

Source: docs/chips.md, 'The search'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from hwmodel.tiling.optimal.compiled import is_compiled
from hwmodel.tiling.spatial.beginnings import seeds, smallest, spread
from hwmodel.tiling.spatial.bound import Bound
from hwmodel.tiling.spatial.choices import Choices, Found
from hwmodel.tiling.spatial.descent import MISFIT, Held, Point, descended, settled
from hwmodel.tiling.spatial.neighbours import finer
from hwmodel.tiling.spatial.relaxed import Relaxed
from hwmodel.tiling.spatial.rounded import Sizes, beside, halved, joined, sizes_of, within
from hwmodel.tiling.spatial.space import GROUPS, Space
from hwmodel.work.problem import Extents, Operand

__all__ = ["CLOSEST", "NEARER", "Search"]

EVEN = 400  # chains of an axis of loops in even parts
FEW, SOME = 4, 9  # choices of what is held to begin with: of even parts, of relaxed sizes
NEAR, ROUGH = (5, 2), (3, 2)  # of relaxed sizes, of even parts: made better, polished
CHAINS, MANY = 200, 1000  # of an axis, near sizes that are begun from; of three loops alone
CLOSEST = 200  # chains of an axis that are looked at before mappings are polished
SHAKEN, SOON, SEVERAL, FURTHER = 40, 6, 4, 3e-2
LONGER, LOOKED = 100, 8  # times that the best are shaken where the gap is wide; of how many
IN_VAIN, BETTER = 24, 1e-4  # looks after which the best must have fallen, and by what share
WIDE, CLOSE = 1.2, 6e-2  # times, by what logarithm; how much dearer is polished
NEAR_ENOUGH = 5e-3  # above the bound, at which no other kind is made better
FAR = 2e-2  # above the bound, from which on the best is shaken
COUNTED = 8  # mappings that are counted where they were estimated
AFTER = 2  # mappings that are polished from the tiles of the bound level by level
NEARER = 5e-4  # above the bound, at which nothing more is looked at
FEW_AXES = 3  # that may be cut, up to which lists are longer
AGAINST, MOST = 60_000, 150_000  # work after which nothing is begun anew; nothing is looked at
MORE = 30_000  # work of a longer look
ROUNDING = 1e-9
IRRATIONAL = np.sqrt([2, 3, 5, 7, 11, 13, 17])  # of every loop


class Search:
    """A search that ends as soon as it meets the bound."""

    def __init__(
        self, floor: float, sure: dict[tuple[Operand, ...], Relaxed], choices: Choices
    ) -> None:
        self.floor, self.sure, self.choices = floor, sure, choices
        self.found: list[Found] = []
        self._known: dict[tuple[Operand, ...], Held] = {}

    def best(self) -> Found:
        """The best mapping found, by ever longer looks at fewer choices."""
        for look in chain(self._begun(), self._better(), self._shaken()):
            self.found.append(look)
            if look.energy <= self.floor * (1 + NEARER) or self.choices.work > MOST:
                break
        if self._best().energy > self.floor * (1 + NEARER):
            self.found.append(_finished(self._best(), _polished))
        return self._best()

    def again(self, floor: float, near: Sequence[tuple[tuple[Operand, ...], Relaxed]]) -> Found:
        """The best near other sizes, of which more is sure."""
        self.floor, looks = floor, self._around(near)
        while self.choices.work < AGAINST and (look := next(looks, None)):
            self.found.append(look)
        return self._best()

    def longer(
        self, floor: float, near: Sequence[tuple[tuple[Operand, ...], Relaxed]], enough: float
    ) -> Found:
        """The best by a longer look, near more sizes and with more changed together.

        Args:
            near: what is held, and sizes, of parts with low bounds.
            enough: above the bound, at which nothing more is looked at.
        """
        self.floor, since = max(self.floor, floor), 0
        end = self.choices.work + MORE
        for look in chain(self._around(near), self._further()):
            before = self._best().energy
            since = 0 if look.energy < before * (1 - BETTER) else since + 1
            self.found.append(look)
            if since > IN_VAIN or self.choices.work > end:
                break
            if self._best().energy <= self.floor * (1 + enough):
                break
        return self._best()

    def _around(self, near: Sequence[tuple[tuple[Operand, ...], Relaxed]]) -> Iterator[Found]:
        """Mappings near sizes of which less is sure than of the best."""
        for held, one in near:
            if one.energy < self._best().energy:
                yield _polished(_near(self._held(held), one.sizes))

    def _further(self) -> Iterator[Found]:
        """More of the best ones with the sizes of one step changed."""
        for time in range(SHAKEN + 1, SHAKEN + LONGER + 1):
            several = _apart(self.found, LOOKED)
            yield self._changed(several[time % len(several)], time)

    def beside(self, least: Bound) -> Found:
        """The best from the smallest tiles and those of the bound level by level."""
        before, held = self.found, self._held(least.above.held)
        self.found = [Found(*settled(held, point), held) for point in seeds(held, least)]
        for one in self._promising(AFTER):
            if self.choices.work < AGAINST:
                self.found.append(_polished(one))
        self.found += before
        return self._best()

    def counted(self, choices: Choices) -> Found:
        """The best of all, counted on a space on which no axis is estimated, and made better."""
        if choices.space == self.choices.space:
            return self._best()
        some = [(one.point, choices.held(one.held.held)) for one in _apart(self.found, COUNTED)]
        best = min((Found(held.energy(point), point, held) for point, held in some), key=_energy)
        return _finished(_closest(best), _closest)

    def _begun(self) -> Iterator[Found]:
        """Mappings of even parts and near relaxed sizes, where little is sure to be paid."""
        even, small = halved(self.choices.space, EVEN), smallest(self.choices.space)
        for held in self._worth(FEW):
            yield Found(*joined(held, small, even), held)
        self.rough = len(self.found)
        for held in self._worth(SOME):
            yield _near(held, self.sure[held.held].sizes)

    def _better(self) -> Iterator[Found]:
        """The best of each kind, and the best of all under other choices, made better."""
        kinds = (self.found[self.rough :], NEAR), (self.found[: self.rough], ROUGH)
        for several, (some, good) in kinds:
            if self._best().energy <= self.floor * (1 + NEAR_ENOUGH):
                return
            known = len(self.found)
            for one in _apart(several, some):
                yield _closest(one)
            for one in _apart(self.found[known:], good):
                yield _polished(one)
        for one in self._promising(1):
            yield _polished(one)

    def _shaken(self) -> Iterator[Found]:
        """The best ones with the sizes of one step changed, made better if not much dearer."""
        for time in range(1, SHAKEN + 1):
            best = self._best()
            if best.energy <= self.floor * (1 + (FAR if time <= SOON else FURTHER)):
                return
            if self.choices.work > AGAINST:
                return
            several = _apart(self.found, SEVERAL if time > SOON else 1)
            yield self._changed(several[time % len(several)], time)

    def _changed(self, one: Found, time: int) -> Found:
        """A mapping with the sizes of one step changed, made better if it is not much dearer."""
        look = _near(one.held, _shaken(self.choices.space, one.point, time))
        near = look.energy <= self._best().energy * (1 + CLOSE)
        return _polished(look) if near and look.point != one.point else look

    def _best(self) -> Found:
        return min(self.found, key=_energy)

    def _worth(self, number: int) -> Iterator[Held]:
        """The choices of what is held with the lowest bounds, if below all that is found so far."""
        for operands in self._cheapest()[:number]:
            if not self.found or self.sure[operands].energy < self._best().energy:
                yield self._held(operands)

    def _cheapest(self) -> list[tuple[Operand, ...]]:
        """What the boundaries may hold, the lowest bound first."""
        return sorted(self.sure, key=lambda operands: self.sure[operands].energy)

    def _held(self, operands: tuple[Operand, ...]) -> Held:
        """The space under one choice, which is remembered."""
        if operands not in self._known:
            self._known[operands] = self.choices.held(operands)
        return self._known[operands]

    def _promising(self, number: int) -> list[Found]:
        """The choices of what is held under which the best mapping of all so far costs least."""
        best = self._best()
        promising = (x for x in self._cheapest() if self.sure[x].energy < best.energy)
        known = {
            held.held: Found(held.energy(best.point), best.point, held)
            for held in map(self._held, promising)
        }
        for one in self.found:
            if one.held.held in known:
                known[one.held.held] = min(known[one.held.held], one, key=_energy)
        return sorted(known.values(), key=_energy)[:number]


def _near(held: Held, sizes: Sizes) -> Found:
    """The best of chains near sizes that need not be whole."""
    lists = beside(held.space, sizes, _so_many(held.space))
    first = tuple(held.space.axis(group, some[0]) for group, some in enumerate(lists))
    start = spread(held, first)
    if held.energy(start) >= MISFIT:
        start = spread(held, within(held.space, sizes))
    return Found(*joined(held, start, lists), held)


def _so_many(space: Space) -> int:
    """Chains of an axis that are begun from: more where there are few axes to pair, compiled."""
    if not is_compiled():
        return CHAINS
    long = sum(any(getattr(space.problem.extent, x) > 1 for x in loops) for loops in GROUPS)
    return MANY if long <= FEW_AXES else CHAINS


def _polished(one: Found) -> Found:
    """Change two axes at a time, near and then by lists around, until nothing is better."""
    last = np.inf
    while True:
        energy, point = descended(one.held, one.point)
        lists = beside(one.held.space, sizes_of(point))
        again, changed = joined(one.held, point, lists)
        if again >= energy * (1 - ROUNDING) or energy >= last:
            return Found(energy, point, one.held)
        last, one = energy, Found(again, changed, one.held)


def _closest(one: Found) -> Found:
    """Change two axes at a time by the chains nearest to their own, until nothing is better."""
    return Found(*descended(one.held, one.point, CLOSEST), one.held)


def _finished(one: Found, better: Callable[[Found], Found]) -> Found:
    """A mapping of which no size alone may be changed for the better.

    Args:
        better: makes one better that was changed.
    """
    while True:
        lists = tuple(finer(one.held.space, group, axis) for group, axis in enumerate(one.point))
        energy, point = joined(one.held, one.point, lists)
        if energy >= one.energy * (1 - ROUNDING):
            return one
        changed = better(Found(energy, point, one.held))
        if changed.energy >= one.energy:
            return one
        one = changed


def _shaken(space: Space, point: Point, time: int) -> Sizes:
    """The sizes of a mapping, those of one step of all loops multiplied.

    By how much is a different number each time, and for every loop; no chance is in it.
    """
    factors = np.exp(WIDE * (2 * (time * IRRATIONAL % 1) - 1))
    found, step = sizes_of(point), time % (2 * space.depth + 1)
    for loop, factor in zip(Extents._fields, factors.tolist(), strict=True):
        follows, sizes = space.columns[loop].follows, list(found[loop])
        at = follows[min(step, len(follows) - 1)]
        if at >= 0:
            length = getattr(space.problem.extent, loop)
            size = min(max(1.0, sizes[at] * factor), float(length))
            outer = (max(other, size) for other in sizes[:at])
            found[loop] = (*outer, size, *(min(other, size) for other in sizes[at + 1 :]))
    return found


def _apart(found: list[Found], number: int) -> list[Found]:
    """The best of some mappings that have different tiles."""
    tiles: dict[Point, Found] = {}
    for one in sorted(found, key=_energy):
        tiles.setdefault(one.point, one)
    return list(tiles.values())[:number]


def _energy(one: Found) -> float:
    return one.energy
