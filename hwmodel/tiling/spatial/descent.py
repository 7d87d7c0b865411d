"""Mappings made better axis by axis, and two axes at a time.

With three axes as they are, the energy of all pairs of chains of the other two is one product of
matrices; so is the room that they take. Which pairs fit is seen the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import combinations, cycle
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.spatial.links import Plan
from hwmodel.tiling.spatial.neighbours import MOST
from hwmodel.tiling.spatial.space import GROUPS, Axis, Space
from hwmodel.tiling.spatial.tables import Rows, Table
from hwmodel.work.problem import OPERANDS, Extents, Operand

__all__ = ["MISFIT", "Found", "Held", "Listed", "Point", "descended", "improved", "settled"]

BETTER = 1e-12
LEAST = 1e-6  # bits, in place of no room at all
MISFIT = 1e200  # above all energies
Point = tuple[Axis, ...]  # of all axes
Found = tuple[float, Point]
Ints = NDArray[np.int64]


class Listed(NamedTuple):
    """Some chains of an axis."""

    at: Ints  # their places in its table
    rows: Rows  # what they do under one choice of what is held


class Held:
    """A space under one choice of what its boundaries hold."""

    def __init__(self, space: Space, held: tuple[Operand, ...], tables: tuple[Table, ...]) -> None:
        self.space, self.held, self._tables = space, held, tables
        weighted = space.paid.terms(held)
        self.plans: tuple[Plan, ...] = tuple(weighted)
        self.weights = np.array(list(weighted.values()))
        self.most = np.array([limit.bound.most for limit in space.limits], np.float64)
        self.buffers = list(self._buffers())
        self._bits, self._bounds = self._bounded()
        self._columns = [table.columns(self.plans) for table in tables]
        self._alone: dict[tuple[Point, int], Found] = {}
        self._ones: list[dict[Axis, Rows]] = [{} for _ in tables]
        # energies of those that nothing near is better than
        self.best: dict[tuple[Point, int], float] = {}
        self._last: dict[int, tuple[Axis, int, Listed]] = {}

    def on(self, space: Space) -> Held:
        """The same of a space in which chains count alike, and cost something else."""
        return Held(space, self.held, self._tables)

    def _buffers(self) -> Iterator[tuple[Any, Any, int]]:
        """Bits an element that count in a memory, by level and operand, where, and its capacity."""
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
                if bits.any():  # else whatever lies there takes no room
                    yield bits, np.flatnonzero(bits), memory.capacity_bits

    def _bounded(self) -> tuple[Any, tuple[Ints, Ints, Any]]:
        """All that is bounded, as compiled loops take it (`kernels.pair`): bits, and bounds."""
        rooms, limits = 3 * self.space.depth, len(self.most)
        bits = [all_bits[some] for all_bits, some, _ in self.buffers]
        columns = [*(some for _, some, _ in self.buffers), np.arange(limits) + rooms]
        ends = np.cumsum([*map(len, bits), *[1] * limits]).astype(np.int64)
        most = np.array([*(float(most) for *_, most in self.buffers), *self.most])
        together = np.concatenate([*bits, np.ones(limits)])
        return together, (np.concatenate(columns).astype(np.int64), ends, most)

    def energy(self, point: Point) -> float:
        """The energy of a mapping; beyond `MISFIT` by how much it does not fit [chip's unit]."""
        counts, parts = self._rest(point, ())
        return float(self._paid(Rows(counts[None, :], parts[None, :]))[0])

    def _paid(self, rows: Rows) -> Any:
        """Energies of whole mappings, as `energy` has them."""
        rooms, spreads = np.split(rows.parts, [3 * self.space.depth], axis=1)
        excess = np.maximum(spreads / self.most - 1, 0).sum(axis=1)
        for bits, _, most in self.buffers:
            excess += np.maximum(rooms @ bits / max(most, LEAST) - 1, 0)
        return np.where(excess > 0, MISFIT * (1 + excess), rows.counts @ self.weights)

    def _rest(self, point: Point, without: tuple[int, ...]) -> Rows:
        """The products over all axes but some."""
        parts = [self._one(g, point[g]) for g in range(len(GROUPS)) if g not in without]
        return Rows(*(reduce(mul, several) for several in zip(*parts, strict=True)))

    def _one(self, group: int, chain: Axis) -> Rows:
        """What one chain does; it is remembered."""
        known = self._ones[group]
        if chain not in known:
            at = np.array([self.place(group, chain)], np.int64)
            rows = self._tables[group].rows(at, self._columns[group])
            known[chain] = Rows(*(part[0] for part in rows))
        return known[chain]

    def near(self, group: int, chain: Axis, most: int) -> Listed:
        """Chains near one, at most so many; those of the last are remembered."""
        if self._last.get(group, (None,))[:-1] != (chain, most):
            near = self._tables[group].near(chain, most)
            self._last[group] = chain, most, self.listed(group, near)
        return self._last[group][-1]

    def listed(self, group: int, at: Ints) -> Listed:
        """The chains at some places of an axis's table, with what they do."""
        return Listed(at, self._tables[group].rows(at, self._columns[group]))

    def best_of_lists(self, point: Point, listed: Sequence[Listed]) -> Found:
        """Take the best chains of two axes at a time from lists, until nothing is better.

        Args:
            listed: of each axis, its own chain among them.
        """
        if not is_compiled():
            moves = [
                partial(self._best_pair, pair, listed)
                for pair in combinations(range(len(GROUPS)), 2)
            ]
            return improved(self.energy(point), point, moves, again=False)
        ends = np.cumsum([len(some.at) for some in listed])
        every = np.concatenate([some.at for some in listed])
        own = [self.place(group, chain) for group, chain in enumerate(point)]
        starts = ends - [len(some.at) for some in listed]
        at = starts + [
            int(np.argmax(some.at == place)) for some, place in zip(listed, own, strict=True)
        ]
        energy = kernel("spatial.joined")(
            np.concatenate([some.rows.counts for some in listed]),
            np.concatenate([some.rows.parts for some in listed]),
            ends, at, self.weights, self._bits, self._bounds, BETTER,
        )  # fmt: skip
        if energy == np.inf:
            return self.energy(point), point
        chains = (table.chain(every[i]) for table, i in zip(self._tables, at, strict=True))
        return float(energy), tuple(chains)

    def _best_pair(
        self, groups: tuple[int, int], listed: Sequence[Listed], point: Point, below: float
    ) -> Found:
        """The best chains of two axes, from the lists of all, as `best_at`."""
        return self.best_at(point, groups, [listed[group] for group in groups], below)

    def best_at(
        self, point: Point, groups: tuple[int, int], lists: Sequence[Listed], below: float
    ) -> Found:
        """The best chains of two axes, from a list each; the others stay.

        Returns: what costs less than `below`, if any does; else an energy that is not below it.
        """
        counts, parts = self._rest(point, groups)
        if is_compiled():
            least, at, beside = kernel("spatial.pair")(
                *(tuple(some.rows) for some in lists), self.weights * counts,
                self._bits * parts[self._bounds[0]], self._bounds, below,
            )  # fmt: skip
            return self._changed(point, groups, lists, (at, beside), least)
        first, second = (listed.rows for listed in lists)
        bounded: list[tuple[Any, Any, float]] = [
            (first.parts[:, some] * bits[some] * parts[some], second.parts[:, some], most)
            for bits, some, most in self.buffers
        ]
        bounded += [
            (first.parts[:, [i]] * parts[i], second.parts[:, [i]], most)
            for i, most in enumerate(self.most, 3 * self.space.depth)
        ]
        here, there = _fitting(bounded, *(len(listed.at) for listed in lists))
        weighted, others = first.counts[here] * (self.weights * counts), second.counts[there]
        some, few = _promising(weighted, others, below)
        if not len(some) or not len(few):
            return 2 * MISFIT, point
        here, there = here[some], there[few]
        energy = weighted[some] @ others[few].T
        for own, other, most in bounded:
            mine, its = own[here], other[there]
            if mine.max(axis=0) @ its.max(axis=0) > most:
                np.putmask(energy, mine @ its.T > most, 2 * MISFIT)
        i, k = divmod(int(np.argmin(energy)), energy.shape[1])
        return self._changed(point, groups, lists, (here[i], there[k]), energy[i, k])

    def _changed(
        self,
        point: Point,
        groups: tuple[int, int],
        lists: Sequence[Listed],
        at: tuple[int, int],
        energy: float,
    ) -> Found:
        """A point with the chains at two places of two lists; as it is where there are none."""
        if at[0] < 0:
            return 2 * MISFIT, point
        changed = list(point)
        for group, listed, i in zip(groups, lists, at, strict=True):
            changed[group] = self._tables[group].chain(listed.at[i])
        return float(energy), tuple(changed)

    def places(self, group: int, chains: Ints) -> Ints:
        """The places of chains in the table of an axis; chains as rows of sizes."""
        return self._tables[group].places(chains)

    def place(self, group: int, chain: Axis) -> int:
        """The place of one chain."""
        return self._tables[group].place(chain)

    def best_alone(self, point: Point, group: int) -> Found:
        """The best chain of one axis near its own; the others stay. It is remembered."""
        if (point, group) not in self._alone:
            rest, table = self._rest(point, (group,)), self._tables[group]
            near = table.near(point[group], MOST)
            own = table.rows(near, self._columns[group])
            energy = self._paid(Rows(*(a * b for a, b in zip(own, rest, strict=True))))
            i = int(np.argmin(energy))
            changed = (*point[:group], table.chain(near[i]), *point[group + 1 :])
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


def _fitting(
    bounded: Sequence[tuple[Any, Any, float]], first: int, second: int
) -> tuple[Ints, Ints]:
    """Places in two lists of what fits with the smallest of the other.

    Args:
        bounded: what each of the first list takes, each of the second, whose products, added up,
            are at most so much.
    """
    fits = np.ones(first, bool), np.ones(second, bool)
    for own, other, most in bounded:
        fits[0][own @ other.min(axis=0) > most] = False
        fits[1][other @ own.min(axis=0) > most] = False
    return np.flatnonzero(fits[0]), np.flatnonzero(fits[1])


def _promising(weighted: Any, others: Any, below: float) -> tuple[Ints, Ints]:
    """Places in two lists of what may cost less than something with the best of the other.

    Args:
        weighted: what each of the first list counts, times its price, which may be below 0.
        others: what each of the second counts.
    """
    here, there = np.arange(len(weighted)), np.arange(len(others))
    if not np.isfinite(below) or not len(here) or not len(there):
        return here, there
    low, high = others.min(axis=0), others.max(axis=0)
    here = np.flatnonzero(np.minimum(weighted * low, weighted * high).sum(axis=1) < below)
    if len(here):
        there = np.flatnonzero(others @ weighted[here].min(axis=0) < below)
    return here, there


def settled(held: Held, point: Point) -> Found:
    """Change one axis at a time for the better, until nothing is."""
    groups = range(len(GROUPS))
    moves = [partial(_alone, held, g) for g in groups]
    return improved(held.energy(point), point, moves)


def _alone(held: Held, group: int, point: Point, _: float) -> Found:
    return held.best_alone(point, group)


def descended(held: Held, point: Point, most: int = MOST) -> Found:
    """Change two axes at a time for the better, until nothing is.

    Args:
        most: chains of an axis that are looked at together.
    """
    energy = np.inf
    while (point, most) not in held.best:
        near = [held.near(group, chain, most) for group, chain in enumerate(point)]
        found, changed = held.best_of_lists(point, near)
        if changed == point or found >= energy * (1 - BETTER):  # rounding may call a loop better
            held.best[point, most] = min(found, energy)
        else:
            energy, point = found, changed
    return held.best[point, most], point


def improved(
    energy: float,
    point: Point,
    moves: Sequence[Callable[[Point, float], Found]],
    *,
    again: bool = True,
) -> Found:
    """Take moves in turn, until none is for the better.

    Args:
        moves: given a mapping and the energy below which they are to come.
        again: whether a move may be for the better twice in turn.
    """
    stale = 0
    for move in cycle(moves):
        found, changed = move(point, energy)
        stale += 1
        if found < energy * (1 - BETTER):
            energy, point, stale = found, changed, int(not again)
        if stale >= len(moves):
            return energy, point
    raise AssertionError("no moves")
