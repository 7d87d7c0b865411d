"""Searches classes of tiles level by level, what costs least first.

Everything that is open waits in one heap under a bound of all tilings in it. So the least of these
bounds is one of all tilings that have not been looked at, whenever the search ends.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.bounds import Level, Space, Weights
from hwmodel.tiling.optimal.budget import NEST, TooMany
from hwmodel.tiling.optimal.chains import best_held, best_within
from hwmodel.tiling.optimal.dual import STEPS, shifted
from hwmodel.tiling.optimal.listing import Listed, listed, rough
from hwmodel.tiling.optimal.nodes import (
    Node,
    Order,
    Part,
    child,
    nest_of,
    root,
    term,
    weights_below,
)
from hwmodel.tiling.optimal.tables import Classes, smallest_tiles
from hwmodel.work.problem import Operand

__all__ = ["ROUNDING", "Search"]

ROUNDING = 1e-13  # relative; energies that differ by less are equal
FEW = 1_000  # entries of a list at first
GROWTH = 8  # of a list that was too short
SLACK, SLACKS = 1e-5, 30  # up to which classes of all levels are met, and its growth
SHARE = 20  # of the limits of lists at first, for nests that take long to meet
LOOKED_AT = 12  # classes of the first level whose bounds are made for a dive
DIVED = 3  # of them that are dived into
PRICED = 100  # nests of which the smallest tiles are looked at before they are met
NEAR = 1e-3  # slack of the first list of a dive, relative to a level's least energy


@dataclass(frozen=True)
class _Stream:
    """Classes of the next level of a node, in the order of their energies."""

    node: Node
    weights: Weights  # they are listed by
    base: float  # energy of all other levels at least
    listed: Listed
    at: int  # the next one
    limit: int

    @property
    def key(self) -> float:
        """A bound of all that is still to come."""
        energies = self.listed.energies
        return self.base + float(
            energies[self.at] if self.at < len(energies) else self.listed.settled
        )


@dataclass(frozen=True)
class _Leaf:
    """Classes of all levels; the best tiling of them is not known."""

    node: Node
    settled: float  # none costs less
    slack: float = SLACK  # relative to the bound, up to which they are met next
    is_late: bool = False  # with lists as long as may be


_Item = Order | Node | _Stream | _Leaf


class Search:
    """One search: the best tiling so far, and what is open."""

    def __init__(self, space: Space, orders: list[Order], held: list[tuple[Operand, ...]]) -> None:
        self.space, self.orders, self.held = space, orders, held
        self.classes = Classes(space)
        self.energy, self.examined = inf, 0
        self.mapping: Mapping | None = None
        self.priced = 0  # nests
        self.closed = inf  # bound of what was given up
        self._open: list[tuple[float, int, _Item]] = []
        self._entered = 0
        self._late: list[_Leaf] = []  # what takes long to meet
        self._known: dict[Level, Part] = {}

    @property
    def bound(self) -> float:
        """No tiling costs less."""
        late = min((leaf.settled for leaf in self._late), default=inf)
        least = self._open[0][0] if self._open else inf
        return min(self.energy, self.closed, late, least)

    @property
    def is_proved(self) -> bool:
        """Whether no tiling is better than the best one."""
        return self.mapping is not None and self.bound >= self._enough

    @property
    def _enough(self) -> float:
        return self.energy * (1 - ROUNDING)

    def run(self, left: float) -> None:
        """Search until all is proved, or no more than `left` of the budget is there.

        Args:
            left: tilings; see `Budget`.
        """
        budget = self.space.budget
        for order in self.orders:
            with self._giving_up(0.0):
                self._push(sum(rough(self.classes, level) for level in order.levels), order)
        while self._goes_on and budget.left > left:
            key, _, item = heappop(self._open)
            with self._giving_up(key):
                if isinstance(item, Order):
                    self._push(key, root(self.classes, item, self._known))
                elif isinstance(item, _Stream):
                    self._next(item)
                elif isinstance(item, _Leaf):
                    self._meet(item)
                elif not item.chosen:
                    self._begin(item)
                else:
                    self._list(item, item.done + item.next_below)

    @property
    def _goes_on(self) -> bool:
        """Whether something is open below the best tiling; what takes long comes last."""
        if (not self._open or self._open[0][0] >= self._enough) and self._late:
            for leaf in self._late:
                self._push(leaf.settled, leaf)
            self._late = []
        return bool(self._open) and self._open[0][0] < self._enough

    def offer(self, energy: float, mapping: Mapping) -> None:
        """Keep a tiling if it is better than the best one."""
        self.examined += 1
        if energy < self._enough:
            self.energy, self.mapping = energy, mapping

    def _push(self, key: float, item: _Item) -> None:
        """Put something into the heap, under its own bound or the one of what it came from."""
        key = max(key, item.bound) if isinstance(item, Node) else key
        if key < self._enough:
            heappush(self._open, (key, self._entered, item))
            self._entered += 1

    def _giving_up(self, key: float) -> _GivingUp:
        return _GivingUp(self, key)

    def _begin(self, node: Node) -> None:
        """Look for good tilings under an order, then list the classes of its first level."""
        self._dive(node)
        if node.bound >= self._enough:
            return
        alike = len(set(node.order.held)) == 1 and node.order.held[0] != "O"
        better = shifted(self.classes, node, self.energy, 0 if alike else STEPS)
        base = better.bound - better.parts[0].energy
        self._list(node, base, better.weights[0])

    def _list(
        self, node: Node, base: float, weights: Weights | None = None, limit: int = FEW,
        settled: float = -inf,
    ) -> None:  # fmt: skip
        """List classes of a node's next level that cost more than `settled`."""
        k = len(node.chosen)
        level = node.order.levels[k]
        if weights is None:
            weights = weights_below(level, node.chosen, node.crossing)
        reach = self.energy - base
        limit = min(limit, self.space.limit)
        while True:
            found = listed(self.classes, level, weights, node.tables, reach, limit)
            self.examined += len(found.energies)
            if found.settled > settled or settled >= reach:
                break
            if limit >= self.space.limit:
                raise TooMany
            limit *= GROWTH
        at = int(found.energies.searchsorted(settled, side="right"))
        stream = _Stream(node, weights, base, found, at, limit)
        self._push(max(stream.key, node.bound), stream)

    def _next(self, stream: _Stream) -> None:
        """Take the next class of a list, and leave the others."""
        if stream.at >= len(stream.listed.energies):
            if stream.key < self._enough:
                self._list(
                    stream.node, stream.base, stream.weights, stream.limit * GROWTH,
                    stream.listed.settled,
                )  # fmt: skip
            return
        place, energy = self._entry(stream)
        rest = replace(stream, at=stream.at + 1)
        self._push(max(rest.key, stream.key), rest)
        found = child(self.classes, stream.node, place, energy, self._enough)
        if found is None:
            return
        if found.rest:
            self._push(stream.key, found)
            return
        if self.priced < PRICED:
            self._price(found)
        key = max(stream.key, found.done)
        self._push(key, _Leaf(found, key))

    def _entry(self, stream: _Stream) -> tuple[tuple[int, ...], float]:
        """The classes that are next, and their true energy."""
        node, i = stream.node, stream.at
        place = tuple(stream.listed.places[i].tolist())
        if node.chosen:
            return place, float(stream.listed.energies[i])
        level = node.order.levels[0]
        energy = term(self.classes, level, level.weights, node.tables, place)
        assert energy is not None
        return place, energy

    def _meet(self, leaf: _Leaf) -> None:
        """Find the best tiling whose tiles are of the classes of all levels, up to an energy.

        Little is listed below little more than the bound, and the first tiling that is found
        spares most of the rest.
        """
        node = leaf.node
        reach = min(self.energy, node.done + leaf.slack * abs(node.done))
        self.space.budget.spend(NEST)
        space = self.space
        if not leaf.is_late:
            space = replace(space, limit=space.limit // SHARE)
        try:
            found = best_within(space, node.order.held, nest_of(node, reach))
        except TooMany:
            if leaf.is_late:
                raise
            self._late.append(replace(leaf, is_late=True))
            return
        space.budget.spend(found.examined)
        self.examined += found.examined
        if found.mapping is not None:
            self.offer(found.energy, found.mapping)
        if found.energy > reach:
            self._push(reach, replace(leaf, slack=leaf.slack * SLACKS, settled=reach))

    def _dive(self, node: Node) -> None:
        """Price tilings below the most promising classes of the first level."""
        level, part = node.order.levels[0], node.rest[0]
        slack, limit, places = NEAR, 4 * LOOKED_AT, [part.place]
        for _ in range(3):
            reach = part.energy + slack * abs(part.energy)
            found = listed(self.classes, level, level.weights, node.tables, reach, limit)
            places = [tuple(row) for row in found.places[:LOOKED_AT].tolist()] or places
            if len(places) == LOOKED_AT or found.settled < reach:
                break
            slack *= 16
        nodes = []
        for place in places:
            if place is None:
                continue
            energy = term(self.classes, level, level.weights, node.tables, place)
            if energy is not None:
                below = child(self.classes, node, place, energy, self._enough)
                nodes += [below] if below is not None else []
        for below in sorted(nodes, key=lambda one: one.bound)[:DIVED]:
            self._follow(below)

    def _follow(self, node: Node | None) -> None:
        """Take the cheapest class of every level below, and price the smallest tiles."""
        while node is not None and node.rest:
            part = node.rest[0]
            level = node.order.levels[len(node.chosen)]
            weights = weights_below(level, node.chosen, node.crossing)
            if part.place is None:
                return
            energy = term(self.classes, level, weights, node.tables, part.place)
            node = (
                child(self.classes, node, part.place, energy, inf) if energy is not None else None
            )
        if node is not None:
            self._price(node)

    def _price(self, node: Node) -> None:
        """Look at the smallest tiles of the classes of all levels."""
        self.priced += 1
        self.space.budget.spend(NEST / 2)
        nest = [one.place for one in node.chosen]
        tiles = smallest_tiles(self.classes, node.order.held, nest).tiles
        self.offer(*best_held(self.space, tiles, self.held))


class _GivingUp(suppress):
    """What is too long to be listed is given up, its bound kept."""

    def __init__(self, search: Search, key: float) -> None:
        super().__init__(TooMany)
        self.search, self.key = search, key

    def __exit__(self, kind, value, trace):  # type: ignore[no-untyped-def]
        caught = super().__exit__(kind, value, trace)
        if caught:
            self.search.closed = min(self.search.closed, self.key)
        return caught
