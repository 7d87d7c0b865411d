"""What chains of an axis do, remembered, whatever the boundaries hold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.effort import effort
from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.spatial.links import Plan
from hwmodel.tiling.spatial.neighbours import neighbours
from hwmodel.tiling.spatial.numbered import Numbered
from hwmodel.tiling.spatial.space import GROUPS, Axis, Space

__all__ = ["Rows", "Table"]

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """What some chains of an axis do."""

    counts: Any  # [chain, plan]
    parts: Any  # what is bounded [chain, part]: rooms, by level and operand, and spreads, by bound


class Table:
    """Chains of one axis; a plan counts one when it is first asked for it."""

    def __init__(self, space: Space, group: int) -> None:
        self._space, self._group = space, group
        self._chains = Numbered(sum(space.free(group)))
        self._lengths = np.array([getattr(space.problem.extent, x) for x in GROUPS[group]])
        self._alone: dict[Axis, int] = {}  # places of chains that were asked for one by one
        self._near: dict[tuple[Axis, int], Ints] = {}
        self._columns: dict[Hashable, int] = {}  # of plans that count alike
        self._known: dict[Plan, int] = {}  # the column of every plan that was asked for
        self._plans: list[Plan] = []  # one of each column
        self._factors: Any = np.empty((0, len(GROUPS[group])))  # `_factors` of each column
        # of each column and loop, which sizes are kept
        self._keeps: Any = np.empty((0, len(GROUPS[group]), 0), np.bool_)
        self._sizes: Any = None  # [chain, loop, size]
        self._counts: Any = np.empty((0, 0))  # [chain, plan]; not a number where it is not known
        self._parts: Any = None
        self.work = 0  # chains that were counted, a long axis pair by pair for many

    def __len__(self) -> int:
        """Return how many chains there are."""
        return len(self._chains)

    def chain(self, place: int) -> Axis:
        """Return the chain at a place."""
        return self._space.axis(self._group, self._chains.rows[place])

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

    def places(self, chains: Ints) -> Ints:
        """Return the places of chains, which are entered where they are new.

        Args:
            chains: sizes of all loops that may be chosen, side by side [chain, size].
        """
        before = len(self)
        at = self._chains.places(chains)
        if len(self) > before:
            self._enter(self._chains.rows[before:])
        return at

    def place(self, chain: Axis) -> int:
        """Return the place of one chain."""
        if chain not in self._alone:
            row = np.array([sum(chain, ())], np.int64)
            self._alone[chain] = int(self.places(row)[0])
        return self._alone[chain]

    def near(self, chain: Axis, most: int) -> Ints:
        """Return the places of the chains near one, at most so many."""
        if (chain, most) not in self._near:
            some = neighbours(self._space, self._group, chain, most)
            self._near[chain, most] = self.places(some)
        return self._near[chain, most]

    def rows(self, at: Ints, columns: Ints) -> Rows:
        """Return what the chains at some places do by the counts of some plans."""
        self._widen()
        rows, missing = self._known_rows(at, columns)
        if missing.any():
            for column in dict.fromkeys(columns[missing].tolist()):
                new = at[np.isnan(self._counts[at, column])]
                every = self._sizes[new]
                sizes = tuple(every[:, i] for i in range(every.shape[1]))
                self.work += len(new) * self._space.hard(self._group)
                found = self._space.count(self._group, self._plans[column], sizes)
                self._counts[new, column] = found
            rows, _ = self._known_rows(at, columns)
        return rows

    def _known_rows(self, at: Ints, columns: Ints) -> tuple[Rows, Any]:
        """What is known of chains by some plans, and which plans have counts that are not.

        Compiled loops make those that are products over loops.
        """
        if not is_compiled():
            counts = self._counts[at[:, None], columns]
            return Rows(counts, self._parts[at]), np.isnan(counts).any(axis=0)
        counts, missing, parts, made = kernel("spatial.counted")(
            self._counts, at, columns, self._sizes, self._lengths, self._factors, self._keeps,
            self._parts,
        )  # fmt: skip
        self.work += made * self._space.hard(self._group)
        return Rows(counts, parts), missing

    def _widen(self) -> None:
        """Make room for the counts of all chains by all plans."""
        rows, columns = self._counts.shape
        if rows < len(self._sizes) or columns < len(self._plans):
            wider = np.full((len(self._sizes), len(self._plans)), np.nan)
            wider[:rows, :columns] = self._counts
            self._counts = wider
        if len(self._factors) < len(self._plans):
            self._factors = np.array([self._product(plan) for plan in self._plans])
            keeps = [[[*plan.keeps(x)] for x in GROUPS[self._group]] for plan in self._plans]
            long = max(len(one) for each in keeps for one in each)
            self._keeps = np.array(
                [[one + [False] * (long - len(one)) for one in each] for each in keeps], np.bool_
            )

    def _product(self, plan: Plan) -> tuple[float, ...]:
        """`Space.factors`; below 0 where the axis is no product over its loops."""
        found = self._space.factors(self._group, plan)
        return (-1.0,) * len(GROUPS[self._group]) if found is None else found

    def _enter(self, new: Ints) -> None:
        """Add new chains."""
        effort.looked += len(new)
        self.work += len(new)
        sizes, parts = self._space.measured(self._group, new)
        first, number = len(self) - len(new), len(self)
        self._sizes = _longer(self._sizes, sizes, first, number)
        self._parts = _longer(self._parts, parts, first, number)


def _longer(old: Any, new: Any, first: int, number: int) -> Any:
    """Write new rows behind the first ones of an array, which is made longer where it must be."""
    if old is None or len(old) < number:
        wider = np.zeros((2 * number, *new.shape[1:]), new.dtype)
        wider[:first] = old[:first] if old is not None else 0
        old = wider
    old[first:number] = new
    return old
