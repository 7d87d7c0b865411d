"""What chains of an axis do, remembered, whatever the boundaries hold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.effort import effort
from hwmodel.tiling.spatial.links import Plan
from hwmodel.tiling.spatial.neighbours import Axis, neighbours
from hwmodel.tiling.spatial.space import GROUPS, Space

__all__ = ["Rows", "Table"]

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """What some chains of an axis do."""

    counts: Any  # [chain, plan]
    rooms: Any  # [chain, level and operand]
    spreads: Any  # [chain, bound]


class Table:
    """Chains of one axis; a plan counts one when it is first asked for it."""

    def __init__(self, space: Space, group: int) -> None:
        self._space, self._group = space, group
        self.chains: list[Axis] = []
        self._places: dict[Axis, int] = {}
        self._near: dict[tuple[Axis, int], Ints] = {}
        self._columns: dict[Hashable, int] = {}  # of plans that count alike
        self._known: dict[Plan, int] = {}  # the column of every plan that was asked for
        self._plans: list[Plan] = []  # one of each column
        self._sizes: tuple[Any, ...] = ()  # of each loop [chain, size]
        self._counts: Any = np.empty((0, 0))  # [chain, plan]; not a number where it is not known
        self._rooms: Any = None
        self._spreads: Any = None
        self.work = 0  # chains that were counted, a long axis pair by pair for many

    def __len__(self) -> int:
        """Return how many chains there are."""
        return len(self.chains)

    def columns(self, plans: Sequence[Plan]) -> Ints:
        """Return the places of plans."""
        found = []
        for plan in plans:
            if plan not in self._known:
                kind = self._space.kind(self._group, plan)
                if kind not in self._columns:
                    self._columns[kind] = len(self._plans)
                    self._plans.append(plan)
                self._known[plan] = self._columns[kind]
            found.append(self._known[plan])
        return np.array(found, np.int64)

    def places(self, chains: Sequence[Axis]) -> Ints:
        """Return the places of chains, which are entered where they are new."""
        self._enter(chains)
        return np.array([self._places[chain] for chain in chains], np.int64)

    def near(self, chain: Axis, most: int) -> Ints:
        """Return the places of the chains near one, at most so many."""
        if (chain, most) not in self._near:
            some = neighbours(self._space, self._group, chain, most)
            self._near[chain, most] = self.places(some)
        return self._near[chain, most]

    def rows(self, at: Ints, columns: Ints) -> Rows:
        """Return what the chains at some places do by the counts of some plans."""
        shape = len(self.chains), len(self._columns)
        if self._counts.shape != shape:
            wider = np.full(shape, np.nan)
            wider[: self._counts.shape[0], : self._counts.shape[1]] = self._counts
            self._counts = wider
        counts = self._counts[at[:, None], columns]
        missing = np.isnan(counts)
        if missing.any():
            there = np.unique(at)
            for column in np.unique(columns[missing.any(axis=0)]).tolist():
                new = there[np.isnan(self._counts[there, column])]
                sizes = tuple(some[new] for some in self._sizes)
                self.work += len(new) * self._space.hard(self._group)
                found = self._space.count(self._group, self._plans[column], sizes)
                self._counts[new, column] = found
            counts = self._counts[at[:, None], columns]
        return Rows(counts, self._rooms[at], self._spreads[at])

    def _enter(self, chains: Sequence[Axis]) -> None:
        new = list(dict.fromkeys(chain for chain in chains if chain not in self._places))
        if not new:
            return
        effort.looked += len(new)
        self.work += len(new)
        loops = GROUPS[self._group]
        sizes = tuple(
            self._space.chain(
                loop,
                np.array([chain[i] for chain in new], np.int64).reshape(
                    len(new), self._space.columns[loop].chosen
                ),
            )
            for i, loop in enumerate(loops)
        )
        rooms, spreads = (
            self._space.rooms(self._group, sizes),
            self._space.spreads(self._group, sizes),
        )
        if self._places:
            sizes = tuple(map(_longer, self._sizes, sizes))
            rooms, spreads = _longer(self._rooms, rooms), _longer(self._spreads, spreads)
        self._sizes, self._rooms, self._spreads = sizes, rooms, spreads
        for chain in new:
            self._places[chain] = len(self._places)
        self.chains += new


def _longer(old: Any, new: Any) -> Any:
    return np.concatenate([old, new])
