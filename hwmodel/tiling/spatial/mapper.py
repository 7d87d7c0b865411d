"""The search for mappings on chips with memories side by side.

A lower bound of all levels together comes first, with sizes that need not be whole. Near these,
under the choices of what boundaries hold that cost least, mappings are made better two axes at a
time. Where what is found stays above the bound, another bound, level by level, is made, too. Small
spaces are walked whole: there the best is proved.

Holds for: every chip; the certificate says how far the mapping may be from the best.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from math import comb, prod
from typing import NamedTuple

from hwmodel.errors import Infeasible, SpecWarning
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.terms import Certificate
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.rows import block_rows
from hwmodel.tiling.spatial.asked import time
from hwmodel.tiling.spatial.beginnings import seeds, smallest, spread
from hwmodel.tiling.spatial.bound import Bound, bound, closer
from hwmodel.tiling.spatial.descent import MISFIT, Held, Point, descended, settled
from hwmodel.tiling.spatial.grouped import every, few, most_groups, narrowed
from hwmodel.tiling.spatial.relaxed import Relaxed, relaxed
from hwmodel.tiling.spatial.rounded import beside, halved, joined, sizes_of, within
from hwmodel.tiling.spatial.space import GROUPS, Space
from hwmodel.tiling.spatial.tables import Table
from hwmodel.tiling.spatial.whole import best_of_all
from hwmodel.work.problem import OPERANDS, Extents, Operand, Problem

__all__ = ["mapped"]

WALKED = 3_000_000  # mappings of a space that is walked whole
EVEN = 800  # chains of an axis of loops in even parts
NEAREST = 12  # beginnings of each kind
NEAR, ROUGH = (4, 2), (3, 1)  # of those near relaxed sizes and of even parts: made better, polished
GOOD = 2  # choices of what is held under which the best of all is polished
CLOSEST = 200  # chains of an axis that are looked at before mappings are polished
QUICK = 20  # part of a search's budget for a first bound
CLOSE = 0.97  # of the other bound, from which on the one level by level is made with all its budget
ENOUGH = 5e-3  # above the bound, at which no other bound is made
NEARER = 5e-4  # above the bound, at which nothing more is looked at
FAR = 5e-2  # the same where memories side by side are served apart, of which the other knows little
AGAINST, MOST = 20_000, 150_000  # work after which nothing is begun anew; nothing is looked at
SOME = 9  # choices of what is held that leave time for more care


class _Care(NamedTuple):
    """How much is tried."""

    chains: int  # of an axis, near relaxed sizes
    far: float  # above the bound, from which on relaxed sizes are made better at once
    again: int  # choices under which they are
    after: int  # choices that are polished from the tiles of the bound level by level


CAREFUL, SWIFT = _Care(300, 3e-2, 2, 4), _Care(150, 3e-2, 2, 2)
ROUNDING = 1e-9


class _Found(NamedTuple):
    energy: float
    point: Point
    held: Held


def mapped(problem: Problem, chip: Memories, options: SearchOptions) -> tuple[Mapping, Certificate]:
    """Return a mapping of little energy and its certificate. Raises: Infeasible, TooLarge."""
    space = Space(problem, chip, options)
    _check_feasible(space)
    limits = most_groups(problem, chip)
    size = prod(limits) * _size(problem, chip, options)
    if size <= WALKED:
        return _walked(problem, chip, options, size)
    first, *others = few(problem.groups, limits)
    if not chip.moment_energy:  # time is free
        others = others[-1:]
    choices = _Choices.on(space)  # few() begins with one group at a time
    sure = relaxed(space, holdings(options.stationary, space.depth), apart=prod(limits) > 1)
    floor = min(one.energy for one in sure.values())
    search, least = _Search(floor, sure, choices), floor
    found = search.best()
    shared = all(level.multicast and level.reduction for level in chip.levels)
    if found.energy > floor * (1 + (ENOUGH if shared else FAR)):
        quick = bound(problem, chip, options, QUICK)
        least = _least(problem, chip, options, quick, floor)
        found = min(found, search.beside(quick), key=_energy)
    best, examined = (found, first), choices.chains
    for groups in others:
        more = _Choices.of(problem, chip, options, groups)
        if more is not None:
            energy, point, held = best[0]
            look = _beside(more.held(held.held), point)
            examined += more.chains
            if look.energy <= energy * (1 + ROUNDING):  # as dear, but sooner done
                best = look, groups
    return _certified(_sooner(best[0]), best[1], (floor, least), size, examined)


def _least(
    problem: Problem, chip: Memories, options: SearchOptions, quick: Bound, floor: float
) -> float:
    """The highest of what is known of all levels together, and level by level."""
    if options.rows != "touched":  # bounding rows of parts may be fewer than those of the whole
        return floor
    if quick.energy < CLOSE * floor:
        return max(floor, quick.energy)
    return max(floor, quick.energy, closer(problem, chip, options, quick))


def _walked(
    problem: Problem, chip: Memories, options: SearchOptions, size: int
) -> tuple[Mapping, Certificate]:
    """Return the best of all mappings, and of equally dear ones the soonest done."""
    found, groups = _best_walked(problem, chip, options)
    least = found.energy
    if price := _hurry(found):
        soonest, groups = _best_walked(problem, chip._replace(moment_energy=price), options)
        choices = _Choices.of(problem, chip, options, groups)
        assert choices is not None
        held = choices.held(soonest.held.held)
        found = _Found(held.energy(soonest.point), soonest.point, held)
    return _certified(found, groups, (least, least), size, size)


def _best_walked(
    problem: Problem, chip: Memories, options: SearchOptions
) -> tuple[_Found, tuple[int, ...]]:
    """The best of all mappings, and groups side by side."""
    best = None
    for groups in every(most_groups(problem, chip)):
        choices = _Choices.of(problem, chip, options, groups)
        if choices is not None:
            found = choices.walked()
            if best is None or found.energy <= best[0].energy:  # as dear, but sooner done
                best = found, groups
    assert best is not None
    return best


def _hurry(found: _Found) -> float:
    """A price of a moment, all of which together are a billionth of the energy; 0: time has one.

    Where time is free, MACs that idle cost nothing, and which mapping is found is chance.
    """
    space = found.held.space
    if space.chip.array is None or space.chip.moment_energy or not found.energy:
        return 0.0
    taken = time(space.problem, found.held.mapping(found.point), space.chip, space.options.rule)
    assert taken is not None
    moments = prod(moment.value for moment in taken.moments)
    return ROUNDING * found.energy / moments if moments else 0.0  # where all is padding


def _sooner(found: _Found) -> _Found:
    """The same, or a mapping near it that is as dear to `ROUNDING` and sooner done."""
    space, price = found.held.space, _hurry(found)
    if not price:
        return found
    hurried = Space(space.problem, space.chip._replace(moment_energy=price), space.options)
    _, point = descended(_Choices.on(hurried).held(found.held.held), found.point)
    return _Found(found.held.energy(point), point, found.held)


class _Choices(NamedTuple):
    """What the boundaries may hold, with so many groups side by side."""

    space: Space
    tables: tuple[Table, ...]

    @classmethod
    def of(
        cls, problem: Problem, chip: Memories, options: SearchOptions, groups: tuple[int, ...]
    ) -> _Choices | None:
        """Return the choices on a chip with groups side by side; None where nothing fits."""
        space = Space(problem, narrowed(problem, chip, groups), options)
        try:
            _check_feasible(space)
        except Infeasible:
            return None
        return cls.on(space)

    @classmethod
    def on(cls, space: Space) -> _Choices:
        """Return the choices on a chip as it is."""
        return cls(space, tuple(Table(space, group) for group in range(len(GROUPS))))

    @property
    def chains(self) -> int:
        """Chains that were looked at."""
        return sum(map(len, self.tables))

    @property
    def work(self) -> int:
        """What that took, in chains of short axes."""
        return sum(table.work for table in self.tables)

    def held(self, operands: tuple[Operand, ...]) -> Held:
        """The space under one choice."""
        return Held(self.space, operands, self.tables)

    def all(self) -> list[Held]:
        """The space under every choice."""
        return [
            self.held(operands)
            for operands in holdings(self.space.options.stationary, self.space.depth)
        ]

    def walked(self) -> _Found:
        """The best of all mappings."""
        return min((_Found(*best_of_all(held), held) for held in self.all()), key=_energy)


def _beside(held: Held, point: Point) -> _Found:
    """The best that is found with more groups side by side, from what was good with fewer."""
    looks = [settled(held, one) for one in (spread(held, point), smallest(held.space))]
    return _Found(*descended(held, min(looks)[1]), held)


def _size(problem: Problem, chip: Memories, options: SearchOptions) -> int:
    """How many mappings there are of one group."""
    space = Space(problem, chip, options)
    held = len(holdings(options.stationary, space.depth))
    return held * prod(_chains(space, loop) for loop in Extents._fields)


class _Search:
    """A search that ends as soon as it meets the bound."""

    def __init__(
        self, floor: float, sure: dict[tuple[Operand, ...], Relaxed], choices: _Choices
    ) -> None:
        self.floor, self.sure, self.choices = floor, sure, choices
        self.every = sorted(choices.all(), key=lambda held: sure[held.held].energy)
        self.care = CAREFUL if len(self.every) <= SOME else SWIFT
        self.found: list[_Found] = []

    def best(self) -> _Found:
        """The best mapping found, by ever longer looks at fewer choices."""
        for look in chain(self._near(), self._again()):
            self.found.append(look)
            if look.energy <= self.floor * (1 + NEARER) or self.choices.work > MOST:
                break
        return min(self.found, key=_energy)

    def _near(self) -> Iterator[_Found]:
        """Mappings of even parts and near relaxed sizes, where little is sure to be paid."""
        even, small = halved(self.choices.space, EVEN), smallest(self.choices.space)
        for held in self._worth():
            yield _Found(*joined(held, small, even), held)
        rough = list(self.found)
        for held in self._worth():
            sizes = self.sure[held.held].sizes
            lists = beside(held.space, sizes, self.care.chains)
            first = tuple(held.space.axis(group, some[0]) for group, some in enumerate(lists))
            starts = (first, within(held.space, sizes))
            nearest, smaller = (spread(held, point) for point in starts)
            start = nearest if held.energy(nearest) < MISFIT else smaller
            yield _Found(*joined(held, start, lists), held)
        near = self.found[len(rough) :]
        for several, (some, good) in ((near, NEAR), (rough, ROUGH)):
            known = len(self.found)
            for one in self._apart(some, several):
                yield _Found(*descended(one.held, one.point, CLOSEST), one.held)
            for one in self._apart(good, self.found[known:]):
                yield _polished(one)
        for one in self._promising(GOOD):
            yield _polished(one)

    def _worth(self) -> Iterator[Held]:
        """The choices of what is held with the lowest bounds, if below all that is found so far."""
        for held in self.every[:NEAREST]:
            if not self.found or self.sure[held.held].energy < min(map(_energy, self.found)):
                yield held

    def _again(self) -> Iterator[_Found]:
        """Where all of these are far above the bound: relaxed sizes, made better at once."""
        for held in self.every[: self.care.again]:
            if self._above(self.care.far) and self.choices.work < AGAINST:
                point = spread(held, within(held.space, self.sure[held.held].sizes))
                yield _polished(_Found(held.energy(point), point, held))

    def beside(self, least: Bound) -> _Found:
        """The best from the smallest tiles and those of the bound level by level."""
        self.found = [
            _Found(*settled(held, point), held)
            for held in self.every
            if held.held == least.above.held
            for point in seeds(held, least)
        ]
        for one in self._promising(self.care.after):
            if self.choices.work < AGAINST:
                self.found.append(_polished(one))
        return min(self.found, key=_energy)

    def _above(self, share: float) -> bool:
        return min(map(_energy, self.found)) > self.floor * (1 + share)

    def _apart(self, number: int, found: list[_Found]) -> list[_Found]:
        """The best of some mappings that have different tiles."""
        tiles: dict[Point, _Found] = {}
        for one in sorted(found, key=_energy):
            tiles.setdefault(one.point, one)
        return list(tiles.values())[:number]

    def _promising(self, number: int) -> list[_Found]:
        """The choices of what is held under which the best mapping of all so far costs least."""
        best = min(self.found, key=_energy)
        known = {
            held.held: _Found(held.energy(best.point), best.point, held)
            for held in self.every
            if self.sure[held.held].energy < best.energy
        }
        for one in self.found:
            if one.held.held in known:
                known[one.held.held] = min(known[one.held.held], one, key=_energy)
        return sorted(known.values(), key=_energy)[:number]


def holdings(stationary: str, depth: int) -> list[tuple[Operand, ...]]:
    """List what the boundaries may hold."""
    if stationary == "best":
        return list(product(OPERANDS, repeat=depth))
    alike: tuple[Operand, ...] = ("F", "I") if stationary == "either" else ("F",)
    return [(operand,) * depth for operand in alike]


def _energy(one: _Found) -> float:
    return one.energy


def _polished(one: _Found) -> _Found:
    """Change two axes at a time, near and then by lists around, until nothing is better."""
    while True:
        energy, point = descended(one.held, one.point)
        lists = beside(one.held.space, sizes_of(point))
        again, changed = joined(one.held, point, lists)
        if again >= energy * (1 - ROUNDING):
            return _Found(energy, point, one.held)
        one = _Found(again, changed, one.held)


def _chains(space: Space, loop: str) -> int:
    """How many chains of a loop there are."""
    free = space.columns[loop].chosen
    return comb(getattr(space.problem.extent, loop) + free - 1, free)


def _certified(
    best: _Found, groups: tuple[int, ...], bounds: tuple[float, float], size: int, examined: int
) -> tuple[Mapping, Certificate]:
    """Return a mapping and its certificate.

    Args:
        bounds: of all levels together, and the higher of it and the one level by level.
    """
    (energy, point, held), (floor, least) = best, bounds
    if energy < least * (1 - ROUNDING):
        warnings.warn(
            f"a mapping of {energy:.6g} is below the bound of {least:.6g}, which is a "
            "fault of ours: that bound is not taken to be known",
            SpecWarning,
            stacklevel=2,
        )
        least = floor if floor <= energy else 0.0
    proved = energy <= least * (1 + 2 * ROUNDING)
    gap = 0.0 if proved else 1 - least / energy
    mapping = held.mapping(point)
    if prod(groups) > 1:
        mapping = replace(mapping, groups=groups)
    return mapping, Certificate(energy, energy if proved else least, gap, proved, size, examined)


def _check_feasible(space: Space) -> None:
    """Raise Infeasible unless a tile of one element fits every level, sums where they must lie."""
    element = prod(
        min(1, int(block_rows(axis.window, axis.rule, 0, axis.outs, 0, axis.taps)))
        for axis in space.axes
    )
    for i, level in enumerate(space.chip.levels[1:], 1):
        inmost = i == space.depth and space.chip.array is not None
        for memory in level.buffers:
            there = [x for x in memory.holds if x != "O" or inmost]
            bits = {x: space.bits[x] * (element if x == "I" else 1) for x in there}
            if memory.capacity_bits is not None and sum(bits.values()) > memory.capacity_bits:
                names = " and ".join(there)
                raise Infeasible(memory.name, names, sum(bits.values()), memory.capacity_bits)
