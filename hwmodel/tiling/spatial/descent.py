"""Mappings made better axis by axis, and two axes at a time.

With three axes as they are, the energy of all pairs of chains of the other two is one product of
matrices; so is the room that they take. Which pairs fit is seen the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.spatial.links import Plan
from hwmodel.tiling.spatial.neighbours import Axis
from hwmodel.tiling.spatial.space import GROUPS, Space
from hwmodel.tiling.spatial.tables import Rows, Table
from hwmodel.tiling.spatial.terms import terms
from hwmodel.work.problem import OPERANDS, Extents, Operand

__all__ = ["MISFIT", "Held", "Point", "descended", "settled"]

BETTER = 1e-12
MISFIT = 1e200  # above all energies
Point = tuple[Axis, ...]  # of all axes
Ints = NDArray[np.int64]


class Held:
    """A space under one choice of what its boundaries hold."""

    def __init__(self, space: Space, held: tuple[Operand, ...], tables: tuple[Table, ...]) -> None:
        self.space, self.held, self._tables = space, held, tables
        weighted = terms(space.problem, space.chip, held, space.options)
        self.plans: tuple[Plan, ...] = tuple(weighted)
        self.weights = np.array(list(weighted.values()))
        self.most = np.array([limit.bound.most for limit in space.limits], np.float64)
        self.buffers = list(self._buffers())
        self._columns = [table.columns(self.plans) for table in tables]
        self._alone: dict[tuple[Point, int], tuple[float, Point]] = {}

    def _buffers(self) -> Iterator[tuple[NDArray[np.float64], int]]:
        """Bits an element that count in a memory, by level and operand, and its capacity."""
        space = self.space
        for level in range(1, space.depth + 1):
            inmost = level == space.depth and space.chip.array is not None
            sums = self.held[level - 1] == "O" or inmost
            for memory in space.chip.levels[level].buffers:
                if memory.capacity_bits is None:
                    continue
                bits = np.zeros(3 * space.depth)
                for i, x in enumerate(OPERANDS):
                    if x in memory.holds and (x != "O" or sums):
                        bits[3 * (level - 1) + i] = space.bits[x]
                yield bits, memory.capacity_bits

    def rows(self, group: int, chains: Sequence[Axis]) -> Rows:
        """What chains of an axis do."""
        table = self._tables[group]
        return table.rows(table.places(chains), self._columns[group])

    def energy(self, point: Point) -> float:
        """The energy of a mapping; beyond `MISFIT` by how much it does not fit [chip's unit]."""
        counts, rooms, spreads = self._rest(point, ())
        own = Rows(*(part[None, :] for part in (counts, rooms, spreads)))
        return float(self._paid(own)[0])

    def _paid(self, rows: Rows) -> Any:
        """Energies of whole mappings, as `energy` has them."""
        excess = np.maximum(rows.spreads / self.most - 1, 0).sum(axis=1)
        for bits, most in self.buffers:
            excess += np.maximum(rows.rooms @ bits / most - 1, 0)
        return np.where(excess > 0, MISFIT * (1 + excess), rows.counts @ self.weights)

    def _rest(self, point: Point, without: tuple[int, ...]) -> Rows:
        """The products over all axes but some."""
        parts = [self.rows(g, [point[g]]) for g in range(len(GROUPS)) if g not in without]
        return Rows(*(np.prod([part[i][0] for part in parts], axis=0) for i in range(3)))

    def best_near(self, point: Point, groups: tuple[int, int]) -> tuple[float, Point]:
        """The best chains of two axes near their own; the others stay."""
        return self.best_at(point, groups, [self._tables[g].near(point[g]) for g in groups])

    def best_of(self, point: Point, groups: tuple[int, int], lists: Any) -> tuple[float, Point]:
        """The best chains of two axes, from a list each; the others stay."""
        at = [self._tables[g].places(some) for g, some in zip(groups, lists, strict=True)]
        return self.best_at(point, groups, at)

    def best_at(
        self, point: Point, groups: tuple[int, int], at: Sequence[Ints]
    ) -> tuple[float, Point]:
        """The best chains of two axes, of those at some places of their tables."""
        counts, rooms, spreads = self._rest(point, groups)
        first, second = (
            self._tables[g].rows(some, self._columns[g]) for g, some in zip(groups, at, strict=True)
        )
        bounded: list[tuple[Any, Any, float]] = [
            (np.ones((len(at[0]), 1)), np.ones((len(at[1]), 1)), 1.0)
        ]
        bounded += [
            (first.rooms[:, bits > 0] * (bits * rooms)[bits > 0], second.rooms[:, bits > 0], most)
            for bits, most in self.buffers
        ]
        bounded += [
            (first.spreads[:, [i]] * spreads[i], second.spreads[:, [i]], most)
            for i, most in enumerate(self.most)
        ]
        here, there = _fitting(bounded)
        if not len(here) or not len(there):
            return 2 * MISFIT, point
        weighted = first.counts[here] * (self.weights * counts)
        energy = weighted @ second.counts[there].T
        for own, other, most in bounded:
            some, others = own[here], other[there]
            if some.max(axis=0) @ others.max(axis=0) > most:
                np.putmask(energy, some @ others.T > most, 2 * MISFIT)
        i, k = divmod(int(np.argmin(energy)), energy.shape[1])
        changed = list(point)
        for group, place in zip(groups, (at[0][here[i]], at[1][there[k]]), strict=True):
            changed[group] = self._tables[group].chains[place]
        return float(energy[i, k]), tuple(changed)

    def places(self, group: int, chains: Sequence[Axis]) -> Ints:
        """The places of chains in the table of an axis."""
        return self._tables[group].places(chains)

    def best_alone(self, point: Point, group: int) -> tuple[float, Point]:
        """The best chain of one axis near its own; the others stay. It is remembered."""
        if (point, group) not in self._alone:
            rest, table = self._rest(point, (group,)), self._tables[group]
            near = table.near(point[group])
            own = table.rows(near, self._columns[group])
            energy = self._paid(Rows(*(a * b for a, b in zip(own, rest, strict=True))))
            i = int(np.argmin(energy))
            changed = (*point[:group], table.chains[near[i]], *point[group + 1 :])
            self._alone[point, group] = float(energy[i]), changed
        return self._alone[point, group]

    def mapping(self, point: Point) -> Mapping:
        """The mapping of a point."""
        space, sizes = self.space, {}
        for loops, axis in zip(GROUPS, point, strict=True):
            for loop, chosen in zip(loops, axis, strict=True):
                row = space.chain(loop, np.array([chosen], np.int64).reshape(1, len(chosen)))[0]
                sizes[loop] = [int(size) for size in row]

        def tile(place: int) -> Extents:
            return Extents(*(sizes[loop][place] for loop in Extents._fields))

        tiles = tuple(tile(2 * i + 1) for i in range(space.depth))
        unions = tuple(tile(2 * i) for i in range(space.depth))
        cycle = tile(2 * space.depth) if space.chip.array is not None else None
        return Mapping(tiles, self.held, unions, cycle)


def _fitting(bounded: Sequence[tuple[Any, Any, float]]) -> tuple[Ints, Ints]:
    """Places in two lists of what fits with the smallest of the other.

    Args:
        bounded: what each of the first list takes, each of the second, whose products, added up,
            are at most so much.
    """
    fits = [np.ones(len(side), bool) for side in bounded[0][:2]]
    for own, other, most in bounded:
        fits[0] &= own @ other.min(axis=0) <= most
        fits[1] &= other @ own.min(axis=0) <= most
    here, there = map(np.flatnonzero, fits)
    return here, there


def settled(held: Held, point: Point) -> tuple[float, Point]:
    """Change one axis at a time for the better, until nothing is."""
    groups = range(len(GROUPS))
    return _improved(held.energy(point), point, [partial(held.best_alone, group=g) for g in groups])


def descended(held: Held, point: Point) -> tuple[float, Point]:
    """Change two axes at a time for the better, until nothing is."""
    pairs = combinations(range(len(GROUPS)), 2)
    return _improved(held.energy(point), point, [partial(held.best_near, groups=p) for p in pairs])


def _improved(
    energy: float, point: Point, moves: Sequence[Callable[[Point], tuple[float, Point]]]
) -> tuple[float, Point]:
    """Take moves in turn, until none is for the better."""
    stale = 0
    for move in cycle(moves):
        found, changed = move(point)
        stale += 1
        if found < energy * (1 - BETTER):
            energy, point, stale = found, changed, 0
        if stale >= len(moves):
            return energy, point
    raise AssertionError("no moves")
