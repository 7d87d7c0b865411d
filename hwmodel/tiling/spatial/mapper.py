"""The search for mappings on chips with memories side by side.

A lower bound comes first, with the tiles by which it came about. From these and from the smallest
tiles, mappings are made better two axes at a time, under each choice of what boundaries hold. Small
spaces are walked whole: there the best is proved.

Holds for: every chip; the certificate says how far the mapping may be from the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import comb, prod
from random import Random
from typing import NamedTuple

from hwmodel.errors import Infeasible
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.terms import Certificate
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.rows import block_rows
from hwmodel.tiling.spatial.bound import Bound, bound
from hwmodel.tiling.spatial.descent import Held, Point, descended, settled, shaken
from hwmodel.tiling.spatial.grouped import every, few, most_groups, narrowed
from hwmodel.tiling.spatial.relaxed import Relaxed, relaxed
from hwmodel.tiling.spatial.rounded import beside, joined, sizes_of
from hwmodel.tiling.spatial.space import GROUPS, Space
from hwmodel.tiling.spatial.tables import Table
from hwmodel.tiling.spatial.whole import best_of_all
from hwmodel.work.problem import OPERANDS, Extents, Operand, Problem

__all__ = ["mapped"]

WALKED = 3_000_000  # mappings of a space that is walked whole
FEW, GOOD = 8, 4  # choices of what is held that are looked at: one axis, two axes at a time
NEAREST = 12  # choices whose relaxed sizes are rounded
SHAKEN = 12  # mappings that are drawn near a good one
QUICK = 20  # part of a search's budget for a first bound
ENOUGH = 5e-3  # above the bound, at which no more guesses are made
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
    choices = _Choices.of(problem, chip, options, first)
    assert choices is not None
    sure = relaxed(space, holdings(options.stationary, space.depth), apart=prod(limits) > 1)
    floor = min(one.energy for one in sure.values())
    least = bound(problem, chip, options, QUICK).at_least(floor)
    found = _Search(least, sure, choices.all()).near_relaxed()
    if found.energy > least.energy * (1 + ENOUGH):
        least = bound(problem, chip, options).at_least(least.energy)
        guessed = _Search(least, sure, choices.all()).near_guesses()
        found = min(found, guessed, key=_energy)
    best, examined = (found, first), choices.chains
    for groups in others:
        choices = _Choices.of(problem, chip, options, groups)
        if choices is not None:
            energy, point, held = best[0]
            look = _beside(choices.held(held.held), point, least)
            examined += choices.chains
            if look.energy <= energy * (1 + ROUNDING):  # as dear, but sooner done
                best = look, groups
    return _certified(*best, min(least.energy, best[0].energy), size, examined)


def _walked(
    problem: Problem, chip: Memories, options: SearchOptions, size: int
) -> tuple[Mapping, Certificate]:
    """Return the best of all mappings."""
    best = None
    for groups in every(most_groups(problem, chip)):
        choices = _Choices.of(problem, chip, options, groups)
        if choices is not None:
            found = choices.walked()
            if best is None or found.energy <= best[0].energy:  # as dear, but sooner done
                best = found, groups
    assert best is not None
    return _certified(*best, best[0].energy, size, size)


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
        return cls(space, tuple(Table(space, group) for group in range(len(GROUPS))))

    @property
    def chains(self) -> int:
        """Chains that were looked at."""
        return sum(map(len, self.tables))

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


def _beside(held: Held, point: Point, least: Bound) -> _Found:
    """The best that is found with more groups side by side, from what was good with fewer."""
    looks = [settled(held, one) for one in (_spread(held, point), *_seeds(held, least))]
    return _Found(*descended(held, min(looks)[1]), held)


def _size(problem: Problem, chip: Memories, options: SearchOptions) -> int:
    """How many mappings there are of one group."""
    space = Space(problem, chip, options)
    held = len(holdings(options.stationary, space.depth))
    return held * prod(_chains(space, loop) for loop in Extents._fields)


class _Search:
    """A search that ends as soon as it meets the bound."""

    def __init__(
        self, least: Bound, sure: dict[tuple[Operand, ...], Relaxed], choices: list[Held]
    ) -> None:
        self.least, self.sure, self.choices = least, sure, choices
        self.found: list[_Found] = []

    def near_relaxed(self) -> _Found:
        """The best mapping found near sizes that need not be whole."""
        return self._run(self._from_relaxed(), ROUNDING)

    def near_guesses(self) -> _Found:
        """The best mapping found from the smallest tiles and those of the bound."""
        return self._run(self._from_guesses(), ENOUGH)

    def _run(self, looks: Iterator[_Found], enough: float) -> _Found:
        for look in looks:
            self.found.append(look)
            if look.energy <= self.least.energy * (1 + enough):
                break
        return min(self.found, key=_energy)

    def _from_relaxed(self) -> Iterator[_Found]:
        """Mappings near relaxed ones, where little is sure to be paid, then ever longer looks."""
        cheap = sorted(self.choices, key=lambda held: self.sure[held.held].energy)
        for held in cheap[:NEAREST]:
            point, lists = beside(held.space, self.sure[held.held].sizes)
            point = _spread(held, point)
            yield _Found(*joined(held, point, lists), held)
            yield _Found(*settled(held, point), held)
        for held in self.choices:
            if held.held == self.least.above.held:
                for point in _seeds(held, self.least):
                    yield _Found(*settled(held, point), held)
        for one in self._promising(FEW):
            yield _Found(*settled(one.held, one.point), one.held)
        for one in self._promising(GOOD):
            yield _polished(one)

    def _from_guesses(self) -> Iterator[_Found]:
        """From the smallest tiles and those of the bound, by longer looks at fewer choices."""
        first = {self.least.above.held, self.choices[0].held}
        for held in self.choices:
            if held.held in first:
                for point in _seeds(held, self.least):
                    yield _Found(*settled(held, point), held)
        for one in self._promising(FEW):
            yield _Found(*settled(one.held, one.point), one.held)
        for one in self._promising(GOOD):
            yield (better := _Found(*descended(one.held, one.point), one.held))
            yield (shaken_ := _shaken(better))
            if shaken_.energy < better.energy:
                yield _polished(shaken_)

    def _promising(self, number: int) -> list[_Found]:
        """The choices of what is held under which the best mapping of all so far costs least."""
        best = min(self.found, key=_energy)
        known = {
            held.held: _Found(held.energy(best.point), best.point, held)
            for held in self.choices
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
        _, lists = beside(one.held.space, sizes_of(point))
        again, changed = joined(one.held, point, lists)
        if again >= energy * (1 - ROUNDING):
            return _Found(energy, point, one.held)
        one = _Found(again, changed, one.held)


def _shaken(best: _Found) -> _Found:
    """The best of several mappings that are drawn near one, the same ones each time."""
    chance, found = Random(0), best
    for _ in range(SHAKEN):
        point = shaken(best.held, best.point, chance)
        found = min(found, _Found(*settled(best.held, point), best.held), key=_energy)
    return found


def _seeds(held: Held, least: Bound) -> Iterator[Point]:
    """The smallest tiles, and the tiles of the bound as far as they fit together."""
    space = held.space
    yield tuple(tuple((1,) * space.columns[x].chosen for x in loops) for loops in GROUPS)
    ones = Extents(*(1,) * len(Extents._fields))
    above = space.problem.extent
    unions, tiles = [], []
    for level, union in enumerate(least.above.tiles, 1):
        inside = least.inside.get(level)
        tile = inside.tiles[0] if inside else union
        union = Extents(*map(min, union, above))
        tile = Extents(*map(min, tile, union))
        unions.append(union)
        tiles.append(tile)
        above = tile
    for depth in range(len(tiles), -1, -1):
        rest = len(tiles) - depth
        point = _point(space, [*unions[:depth], *[ones] * rest], [*tiles[:depth], *[ones] * rest])
        yield _spread(held, point)


def _point(space: Space, unions: list[Extents], tiles: list[Extents]) -> Point:
    axes = []
    for loops in GROUPS:
        axis = []
        for loop in loops:
            sizes = [getattr(x, loop) for pair in zip(unions, tiles, strict=True) for x in pair]
            sizes.append(1)
            columns, chosen = space.columns[loop], {}
            for place, at in enumerate(columns.follows):
                chosen[at] = sizes[place]  # where both follow one, the tile
            axis.append(tuple(chosen[at] for at in range(columns.chosen)))
        axes.append(tuple(axis))
    return tuple(axes)


def _spread(held: Held, point: Point) -> Point:
    """Bring union tiles back to what instances can hold side by side, halving the widest."""
    space = held.space
    for limit in space.limits:
        if limit.inner is None:
            continue
        sizes = {x: list(c) for loops, axis in zip(GROUPS, point, strict=True)
                 for x, c in zip(loops, axis, strict=True)}  # fmt: skip
        places = {
            x: (space.columns[x].follows[limit.outer], space.columns[x].follows[limit.inner])
            for x in limit.bound.loops
        }
        while True:
            pieces = {x: -(-sizes[x][u] // sizes[x][t]) for x, (u, t) in places.items()}
            if prod(pieces.values()) <= limit.bound.most:
                break
            widest = max(pieces, key=lambda x: pieces[x])
            union, tile = places[widest]
            sizes[widest][union] = sizes[widest][tile] * -(-pieces[widest] // 2)
        point = tuple(tuple(tuple(sizes[x]) for x in loops) for loops in GROUPS)
    return point


def _chains(space: Space, loop: str) -> int:
    """How many chains of a loop there are."""
    free = space.columns[loop].chosen
    return comb(getattr(space.problem.extent, loop) + free - 1, free)


def _certified(
    best: _Found, groups: tuple[int, ...], least: float, size: int, examined: int
) -> tuple[Mapping, Certificate]:
    energy, point, held = best
    proved = energy <= least * (1 + ROUNDING)
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
