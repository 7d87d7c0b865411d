"""Mappings made better axis by axis, and two axes at a time.

With three axes as they are, the energy of all pairs of chains of the other two is one product of
matrices; so is the room that they take. Which pairs fit is seen the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, islice, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.spatial.links import Plan
from hwmodel.tiling.spatial.space import GROUPS, Space, candidates
from hwmodel.tiling.spatial.terms import terms
from hwmodel.work.problem import OPERANDS, Extents, Operand

__all__ = ["Held", "Point", "descended"]

TILES, FEW = 24, 8  # of a loop, that are tried for one size; for a second one
MOST = 700  # chains of an axis that are looked at together
BETTER = 1e-12
Chosen = tuple[int, ...]  # sizes of a loop's chain that are free
Axis = tuple[Chosen, ...]  # of the loops of an axis
Point = tuple[Axis, ...]  # of all axes


class _Rows(NamedTuple):
    """What some chains of an axis do."""

    counts: Any  # [chain, term]
    rooms: Any  # [chain, level and operand]
    spreads: Any  # [chain, bound]


class Held:
    """A space under one choice of what its boundaries hold."""

    def __init__(self, space: Space, held: tuple[Operand, ...]) -> None:
        self.space, self.held = space, held
        weighted = terms(space.problem, space.chip, held, space.options)
        self.plans: tuple[Plan, ...] = tuple(weighted)
        self.weights = np.array(list(weighted.values()))
        self.most = np.array([limit.bound.most for limit in space.limits], np.float64)
        self.buffers = list(self._buffers())
        self.examined = 0
        self._rows: list[dict[Axis, int]] = [{} for _ in GROUPS]
        self._tables: list[_Rows | None] = [None] * len(GROUPS)

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

    def rows(self, group: int, chains: Sequence[Axis]) -> _Rows:
        """What chains of an axis do; remembered."""
        known = self._rows[group]
        new = list(dict.fromkeys(chain for chain in chains if chain not in known))
        if new:
            self.examined += len(new)
            loops = len(GROUPS[group])
            free = [self.space.columns[loop].chosen for loop in GROUPS[group]]
            parts = tuple(
                np.array([chain[i] for chain in new], np.int64).reshape(len(new), free[i])
                for i in range(loops)
            )
            table = self.space.table(group, parts, self.plans)
            for chain in new:
                known[chain] = len(known)
            old = self._tables[group]
            found = _Rows(table.counts, table.rooms, table.spreads)
            if old is not None:
                found = _Rows(*(np.concatenate(pair) for pair in zip(old, found, strict=True)))
            self._tables[group] = found
        at = [known[chain] for chain in chains]
        table_ = self._tables[group]
        assert table_ is not None
        return _Rows(*(part[at] for part in table_))

    def energy(self, point: Point) -> float:
        """The energy of a mapping, infinite where it does not fit [chip's unit]."""
        counts, rooms, spreads = self._rest(point, ())
        if (spreads > self.most).any():
            return np.inf
        if any(float(bits @ rooms) > most for bits, most in self.buffers):
            return np.inf
        return float(self.weights @ counts)

    def _rest(self, point: Point, without: tuple[int, ...]) -> _Rows:
        """The products over all axes but some."""
        parts = [self.rows(g, [point[g]]) for g in range(len(GROUPS)) if g not in without]
        return _Rows(*(np.prod([part[i][0] for part in parts], axis=0) for i in range(3)))

    def best_of(self, point: Point, groups: tuple[int, int], lists: Any) -> tuple[float, Point]:
        """The best chains of two axes, from a list each; the others stay."""
        counts, rooms, spreads = self._rest(point, groups)
        first, second = (self.rows(g, some) for g, some in zip(groups, lists, strict=True))
        energy = (first.counts * (self.weights * counts)) @ second.counts.T
        fits = np.ones(energy.shape, bool)
        for bits, most in self.buffers:
            fits &= (first.rooms * (bits * rooms)) @ second.rooms.T <= most
        for i, most in enumerate(self.most):
            fits &= np.outer(first.spreads[:, i] * spreads[i], second.spreads[:, i]) <= most
        energy[~fits] = np.inf
        i, k = np.unravel_index(int(np.argmin(energy)), energy.shape)
        changed = list(point)
        changed[groups[0]], changed[groups[1]] = lists[0][i], lists[1][k]
        return float(energy[i, k]), tuple(changed)

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


def descended(held: Held, point: Point, rounds: int = 20) -> tuple[float, Point]:
    """Change two axes at a time for the better, until nothing is."""
    best = held.energy(point)
    pairs = list(combinations(range(len(GROUPS)), 2))
    stale = 0
    for i in range(rounds * len(pairs)):
        if stale == len(pairs):
            break
        groups = pairs[i % len(pairs)]
        lists = [neighbours(held.space, g, point[g]) for g in groups]
        energy, changed = held.best_of(point, groups, lists)
        if energy < best * (1 - BETTER):
            best, point, stale = energy, changed, 0
        else:
            stale += 1
    return best, point


def neighbours(space: Space, group: int, axis: Axis) -> tuple[Axis, ...]:
    """Chains of an axis near one: of a loop with two sizes changed, or of both with one each."""
    return _near(tuple(getattr(space.problem.extent, loop) for loop in GROUPS[group]), axis)


@lru_cache(maxsize=2**12)
def _near(lengths: tuple[int, ...], axis: Axis) -> tuple[Axis, ...]:
    near = [_changed(n, chosen, TILES) for n, chosen in zip(lengths, axis, strict=True)]
    found = {axis: None}
    if len(axis) == 1:
        found |= {(one,): None for one in near[0]}
        for one in near[0]:
            found |= {(chosen,): None for chosen in _changed(lengths[0], one, FEW)}
            if len(found) > MOST:
                break
    else:
        found |= {pair: None for pair in product(*near)}
    return tuple(islice(found, MOST))


@lru_cache(maxsize=2**14)
def _changed(length: int, chosen: Chosen, most: int) -> tuple[Chosen, ...]:
    """Chains with one size changed; what lies further in is cut to it, further out widened."""
    found = {chosen: None}
    for place, now in enumerate(chosen):
        outer = chosen[place - 1] if place else length
        for tile in (*candidates(outer, most), *candidates(length, most), now - 1, now + 1):
            if 0 < tile <= length:
                before = (max(tile, size) for size in chosen[:place])
                after = (min(tile, size) for size in chosen[place + 1 :])
                found[*before, tile, *after] = None
    return tuple(found)
