"""Searches classes of tiles level by level, what costs least first.

Everything that is open waits in one heap under a bound of all tilings in it. So the least of these
bounds is one of all tilings that have not been looked at, whenever the search ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.bounds import Level, Space, Weights
from hwmodel.tiling.optimal.budget import NEST, TooMany
from hwmodel.tiling.optimal.chains import best_held, best_within, energy_of
from hwmodel.tiling.optimal.compiled import is_compiled
from hwmodel.tiling.optimal.dual import STEPS, added_weights, shifted
from hwmodel.tiling.optimal.listing import MOST_WORK, least, listed, rough
from hwmodel.tiling.optimal.nodes import (
    NOTHING,
    Node,
    Order,
    Part,
    child,
    children,
    nest_of,
    root,
    term,
    weights_below,
)
from hwmodel.tiling.optimal.tables import Classes, smallest_tiles
from hwmodel.tiling.optimal.terms import Options, Together
from hwmodel.work.problem import Operand

__all__ = ["ROUNDING", "Search"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING = 1e-13  # relative; energies that differ by less are equal
NARROW, WIDER = 3e-3, 4  # slack of a list at first, relative to the bound, and its growth
CHILD = 15  # tilings that take as long as what is known of one more level
HELD = 80  # numbers that a node holds for each tiling it takes: 400 MB under the usual budget
FEW = 1_000  # entries of a list at first
LONG = 200_000  # and later, unless that ends with nothing new
GROWTH = 8  # of a list that was too short
LONGER = GROWTH**2  # times the usual work of a walk, up to which a list may take
SLACK, SLACKS = 1e-5, 30  # up to which classes of all levels are met, and its growth
SHARE = 20  # of the limits of lists at first, for nests that take long to meet
LOOK = 400  # part of the budget that a look at some classes may take
LOOKED_AT, MANY = 12, 300  # classes whose bounds are made for a dive: in arrays, and compiled
DIVED = 3  # of them that are dived into, at every level
FEWER_STEPS = 5  # of the dual in arrays
SAMPLED = 12  # classes of the next level that a dive in arrays chooses from
NEAR, SPREAD = 1e-3, 0.52  # slack of the first and of the last list of a dive
MET = 1e-2  # slack up to which classes are met that a dive ends with
FOLLOWED = 40  # first nodes below which a tiling is looked for
PRICED = 300  # nests of which the smallest tiles are looked at before they are met


@dataclass(frozen=True)
class _Stream:
    """Classes of the next level of a node, in the order of their energies."""

    node: Node
    weights: Weights  # they are listed by
    base: float  # energy of all other levels at least
    settled: float  # energy up to which they are listed
    slack: float  # by which more is listed next
    work: int  # that a list may take
    bounds: Floats  # of the nodes with each of the classes
    places: Ints  # of the classes
    at: int  # the next one
    later: Floats  # energies of classes that are listed, and not bounded yet
    later_places: Ints

    @property
    def key(self) -> float:
        """A bound of all that is still to come."""
        least = self.base + (float(self.later[0]) if len(self.later) else self.settled)
        return min(least, float(self.bounds[self.at])) if self.at < len(self.bounds) else least


@dataclass(frozen=True)
class _Leaf:
    """Classes of all levels; the best tiling of them is not known."""

    node: Node
    settled: float  # none costs less
    slack: float = SLACK  # relative to the bound, up to which they are met next
    is_late: bool = False  # with lists as long as may be


_Item = Order | Node | _Stream | _Leaf


def _order(item: _Item) -> Order:
    """The choice of operands held that something is below of."""
    if isinstance(item, Order):
        return item
    return item.order if isinstance(item, Node) else item.node.order


class Search:
    """One search: the best tiling so far, and what is open.

    Args:
        options: of which it reads what a tiling must save at least to be looked for.
    """

    def __init__(
        self,
        space: Space,
        orders: list[Order],
        held: list[tuple[Operand, ...]],
        options: Options,
    ) -> None:
        self.space, self.orders, self.held = space, orders, held
        self.spare, self.slack = max(options.spare, ROUNDING), options.slack
        self.classes = Classes(space)
        n, height = space.problem.extent, space.problem.height
        self.is_square = (height, n.HO, n.HF) == (space.problem.width, n.WO, n.WF)
        self.energy, self.examined = inf, 0
        self.mapping: Mapping | None = None
        self.priced = self.followed = 0  # nests, and classes of outer levels
        self._closed: dict[tuple[Operand, ...], float] = {}  # bounds of what was given up
        self._open: list[tuple[float, float, int, _Item]] = []  # bound, own bound, number
        self._entered = 0
        self._late: list[_Leaf] = []  # what takes long to meet
        self.floors: dict[tuple[Operand, ...], float] = {}  # see `floor`
        self.sure: dict[tuple[Operand, ...], float] = {}  # bounds of all levels together
        self._rough: dict[Level, float] = {}
        self._known: dict[Level, Part] = {}
        self._weights: dict[Order, tuple[Weights, ...]] = {}  # that dives list by
        # Of the last node of so many levels, which are good below other ones, too; see `dual`.
        self._multipliers: dict[tuple[Order, int], Floats] = {}

    @property
    def bound(self) -> float:
        """No tiling costs less."""
        least = self._open[0][0] if self._open else inf
        return min(self._enough, least, *(key for _, key in self._apart()))

    @property
    def is_proved(self) -> bool:
        """Whether no tiling is better than the best one, by more than may be spared."""
        return self.mapping is not None and self.bound >= self._enough

    def leaves(self, gap: float) -> bool:
        """Whether nothing is proved, and the bound is further below the best one than a gap."""
        return not self.is_proved and self.bound < self.energy * (1 - gap)

    @property
    def _enough(self) -> float:
        return min(self.energy * (1 - self.spare), self.energy - self.slack)

    def may_hold(self, choices: list[tuple[Operand, ...]]) -> bool:
        """Whether a tiling under some choices of operands held may be better than the best one."""
        return any(key < self._enough for held, key in self._bounds() if held in choices)

    def _bounds(self) -> Iterator[tuple[tuple[Operand, ...], float]]:
        """What is held in all that is not looked at, and bounds of it."""
        yield from self._apart()
        yield from ((_order(item).held, key) for key, _, _, item in self._open)

    def _apart(self) -> Iterator[tuple[tuple[Operand, ...], float]]:
        """The same of what was given up, or waits until all else is looked at."""
        yield from ((held, self._least(held, key)) for held, key in self._closed.items())
        for leaf in self._late:
            held = _order(leaf).held
            yield held, self._least(held, leaf.settled)

    def _least(self, held: tuple[Operand, ...], key: float) -> float:
        """The higher of a bound of its own and that of all that holds the same."""
        return max(key, self.sure.get(held, 0.0))

    def learn(self, more: Together) -> None:
        """Take bounds of all levels together, and mappings that may be better."""
        self.sure = more.floors
        for mapping in more.mappings:
            self.offer(energy_of(self.space, mapping), mapping)
        before, self._open = self._open, []
        for _, own, _, item in sorted(before, key=lambda one: one[:3]):
            self._push(own, item)

    def end(self) -> None:
        """Give up what is open, which may be hundreds of megabytes; its bound stays known."""
        for held, key in self._bounds():
            self._closed[held] = min(key, self._closed.get(held, inf))
        self._open, self._late = [], []

    def run(self, left: float) -> None:
        """Search until all is proved, or no more than `left` of the budget is there.

        Args:
            left: tilings; see `Budget`.
        """
        if not self._entered:
            self._enter()
        budget = self.space.budget
        while self._goes_on and budget.left > left:
            key, own, _, item = heappop(self._open)
            with self._giving_up(_order(item), key):
                if isinstance(item, Order):
                    self._push(own, root(self.classes, item, self._known))
                elif isinstance(item, _Stream):
                    self._next(item)
                elif isinstance(item, _Leaf):
                    self._meet(item)
                else:
                    self._begin(item)

    @property
    def _goes_on(self) -> bool:
        """Whether something is open below the best tiling; what takes long comes last."""
        if (not self._open or self._open[0][0] >= self._enough) and self._late:
            for leaf in self._late:
                self._push(leaf.settled, leaf)
            self._late = []
        return bool(self._open) and self._open[0][0] < self._enough

    def _enter(self) -> None:
        """Enter all orders, with a quick bound; and dive below those that hold one operand.

        Below the others good tilings take longer to find.
        """
        for order in self.orders:
            with self._giving_up(order, 0.0):
                self._push(self.floor(order), order)
        for order in self.orders:
            if len(set(order.held)) == 1:
                with suppress(TooMany):
                    node = root(self.classes, order, self._known)
                    self._dive(node, tuple(level.weights for level in order.levels))

    def floor(self, order: Order) -> float:
        """A quick bound of an order; known by what it holds. Raises: TooMany."""
        if order.held not in self.floors:
            for level in order.levels:
                if level not in self._rough:
                    self._rough[level] = rough(self.classes, level)
            self.floors[order.held] = sum(self._rough[level] for level in order.levels)
        return self.floors[order.held]

    def offer(self, energy: float, mapping: Mapping) -> None:
        """Keep a tiling if it is better than the best one."""
        self.examined += 1
        if energy < self._enough:
            self.energy, self.mapping = energy, mapping

    def _push(self, key: float, item: _Item) -> None:
        """Put something into the heap, under its own bound or the one of what it came from."""
        own = max(key, item.bound) if isinstance(item, Node) else key
        key = self._least(_order(item).held, own)
        if key < self._enough:
            heappush(self._open, (key, own, self._entered, item))
            self._entered += 1

    @contextmanager
    def _giving_up(self, order: Order, key: float) -> Iterator[None]:
        """What is too long to be listed is given up, its bound kept."""
        try:
            yield
        except TooMany:
            self._closed[order.held] = min(key, self._closed.get(order.held, inf))

    def _begin(self, node: Node) -> None:
        """Look for good tilings below a node, then list the classes of its next level.

        Where all boundaries hold the same operand, little is gained by weights of an order.
        """
        depth = len(node.chosen)
        steps = STEPS if is_compiled() else FEWER_STEPS
        if not depth:
            alike = len(set(node.order.held)) == 1 and node.order.held[0] != "O"
            better = shifted(self.classes, node, self.energy, 0 if alike else steps)
            self._weights[node.order] = better.weights
            if better.bound < self._enough:
                self._dive(node, better.weights)
        else:
            if self.followed < FOLLOWED:
                self.followed += 1
                self._follow(node, self._weights[node.order])
            start = self._multipliers.get((node.order, depth))
            better = shifted(self.classes, node, self.energy, steps, start)
        if len(better.parts) > 1:
            self._multipliers[node.order, depth] = better.multipliers
            below = self._multipliers.get((node.order, depth + 1))
            if below is None or not below.any():
                self._multipliers[node.order, depth + 1] = better.multipliers[1:]
        if better.bound >= self._enough:
            return
        lowest = better.parts[0].energy
        self._list(node, better.bound - lowest, better.weights[0], lowest)

    def _list(self, node: Node, base: float, weights: Weights, lowest: float) -> None:
        """List classes of a node's next level.

        Args:
            base: energy of all other levels at least.
            weights: what the level is listed by, under which no class costs less than `lowest`.
        """
        slack = NARROW * (abs(node.bound) or self.energy)
        # Energies of a level may be negative, and nothing; what is listed costs more than `below`.
        below = float(np.nextafter(lowest - ROUNDING * abs(lowest), -inf))
        none, nowhere = np.empty(0), np.empty((0, 7), np.int64)
        stream = _Stream(
            node, weights, base, below, slack, MOST_WORK, none, nowhere, 0, none, nowhere
        )
        self._extend(stream, FEW)

    def _extend(self, stream: _Stream, limit: int) -> None:
        """List what costs a little more than what has been listed."""
        level = stream.node.order.levels[len(stream.node.chosen)]
        settled, slack, tables = stream.settled, stream.slack, stream.node.tables
        work = stream.work
        while True:
            reach = min(self.energy - stream.base, settled + slack)
            found = listed(self.classes, level, stream.weights, tables, reach, limit, work)
            self.examined += len(found.energies)
            if found.settled > settled or found.settled >= reach:
                break
            if (limit >= self.space.limit) if found.is_full else (work >= LONGER * MOST_WORK):
                raise TooMany
            if found.is_full:
                limit, slack = min(limit * GROWTH, self.space.limit), slack / GROWTH
            else:
                work *= GROWTH
        at = int(found.energies.searchsorted(settled, side="right"))
        energies, places = found.energies[at:], found.places[at:]
        slack *= WIDER if len(energies) < FEW / 2 else 2  # what is listed once is listed again
        if self.is_square and all(_is_alike(one.place) for one in stream.node.chosen):
            first = _is_first(places)
            energies, places = energies[first], places[first]
        self._bound_some(
            replace(
                stream,
                settled=found.settled,
                slack=slack,
                work=work,
                later=energies,
                later_places=places,
            ),
            stream.key,
        )

    def _bound_some(self, stream: _Stream, key: float) -> None:
        """Bound the nodes with some of the classes that are listed, and open the list again.

        Compiled, the levels below are bounded for many of them at once.

        Args:
            key: a bound of all that is still to come.
        """
        bounds, places, node = stream.base + stream.later, stream.later_places, stream.node
        if is_compiled() and len(places):
            below = children(self.classes, node, places, self._enough, self._moved(node))
            bounds = np.maximum(bounds[: len(below)], below)
        number = len(bounds)
        bounds = np.concatenate([stream.bounds[stream.at :], bounds])
        places = np.concatenate([stream.places[stream.at :], places[:number]])
        keep = np.flatnonzero(bounds < self._enough)
        keep = keep[np.argsort(bounds[keep], kind="stable")]
        longer = replace(
            stream, bounds=bounds[keep], places=places[keep], at=0,
            later=stream.later[number:], later_places=stream.later_places[number:],
        )  # fmt: skip
        self._push(max(longer.key, key), longer)

    def _moved(self, node: Node) -> Floats:
        """What is added to the weights of the levels below those of a node's classes."""
        multipliers = self._multipliers.get((node.order, len(node.chosen) + 1))
        return NOTHING if multipliers is None else added_weights(multipliers)

    def _next(self, stream: _Stream) -> None:
        """Take the next class of a list, and leave the others."""
        at, bounds = stream.at, stream.bounds
        if at >= len(bounds) or stream.key < bounds[at]:
            if len(stream.later):
                self._bound_some(stream, stream.key)
            elif stream.key < self._enough:
                self._extend(stream, LONG)
            return
        self.space.budget.spend(max(CHILD, len(self.classes.direct) / HELD))
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
        node = stream.node
        place = tuple(stream.places[stream.at].tolist())
        level = node.order.levels[len(node.chosen)]
        weights = weights_below(level, node.chosen, node.crossing)
        energy = term(self.classes, level, weights, node.tables, place)
        assert energy is not None
        return place, energy

    def _meet(self, leaf: _Leaf) -> None:
        """Find the best tiling whose tiles are of the classes of all levels, up to an energy.

        Little is listed below little more than the bound, and the first tiling that is found
        spares most of the rest.
        """
        node = leaf.node
        reach = min(self.energy, node.done + leaf.slack * abs(node.done))
        try:
            found = self._within(node, reach, self.space.limit // (1 if leaf.is_late else SHARE))
        except TooMany:
            if leaf.is_late:
                raise
            self._late.append(replace(leaf, is_late=True))
            return
        if found > reach:
            self._push(reach, replace(leaf, slack=leaf.slack * SLACKS, settled=reach))

    def _within(self, node: Node, reach: float, limit: int) -> float:
        """Offer the best tiling of the classes of all levels; return its energy. Raises: TooMany.

        Args:
            reach: a dearer one may be missed.
        """
        space = replace(self.space, limit=limit)
        space.budget.spend(NEST)
        found = best_within(space, node.order.held, nest_of(node, reach), reach)
        space.budget.spend(found.examined)
        self.examined += found.examined
        if found.mapping is not None:
            self.offer(found.energy, found.mapping)
        return found.energy

    def _dive(self, node: Node, weights: tuple[Weights, ...]) -> None:
        """Price tilings below the most promising classes of the first level.

        Args:
            weights: classes of each level are looked at that cost little under these.
        """
        places = self._near(node, weights, MANY if is_compiled() else LOOKED_AT)
        for below in self._cheapest(node, places):
            if below.bound < self._enough:
                self._follow(below, weights)
                self._learn(below)

    def _learn(self, node: Node) -> None:
        """Find multipliers that are good below a node, and so below those beside it."""
        key = node.order, len(node.chosen)
        if is_compiled() and len(node.rest) > 1 and node.bound < self._enough < inf:
            start = self._multipliers.get(key)
            self._multipliers[key] = shifted(
                self.classes, node, self.energy, STEPS, start
            ).multipliers

    def _follow(self, node: Node, weights: tuple[Weights, ...]) -> None:
        """Go on with what leaves the levels below cheapest, down to tilings; price them."""
        nodes = [node]
        while nodes and nodes[0].rest:
            found = [
                below for one in nodes for below in self._cheapest(one, self._some(one, weights))
            ]
            nodes = sorted(found, key=lambda one: one.bound)
        nodes = [one for one in nodes if one.bound < self._enough]
        for one in nodes:
            self._price(one)
        for one in nodes[:1]:
            reach = min(self.energy, one.done + MET * abs(one.done))
            with suppress(TooMany):
                self._within(one, reach, self.space.limit // SHARE)

    def _some(self, node: Node, weights: tuple[Weights, ...]) -> Ints:
        """The cheapest classes of the next level, and some that are dearer."""
        if len(node.rest) > 1:
            return self._near(node, weights, MANY if is_compiled() else SAMPLED)
        level, best = node.order.levels[len(node.chosen)], node.rest[0].place
        own = weights_below(level, node.chosen, node.crossing)
        if best is None or term(self.classes, level, own, node.tables, best) is None:
            best = least(self.classes, level, own, node.tables)[1]  # the bound is of other classes
        return np.array([] if best is None else [best], np.int64).reshape(-1, 7)

    def _near(self, node: Node, weights: tuple[Weights, ...], number: int) -> Ints:
        """Some classes of the next level that cost little more than the cheapest.

        They are taken at equal distances from all up to the slack at which there are enough.
        """
        level, own = node.order.levels[len(node.chosen)], weights[len(node.chosen)]
        energy, place = least(self.classes, level, own, node.tables)
        places = np.array([] if place is None else [place], np.int64).reshape(-1, 7)
        slack = NEAR
        while slack <= SPREAD:
            reach = energy + slack * abs(node.bound)
            found = listed(self.classes, level, own, node.tables, reach, 8 * number)
            if len(found.places) > len(places):
                places = found.places
            if len(places) >= number or found.settled < reach:
                break
            slack *= 8
        return places[:: max(1, len(places) // number)]

    def _cheapest(self, node: Node, places: Ints) -> list[Node]:
        """The nodes with the classes at `places`, those of the least bounds first."""
        reach, budget = self._enough, self.space.budget
        least = budget.left - max(budget.whole / LOOK, NEST)
        if is_compiled() and len(places):
            bounds = children(self.classes, node, places, reach, self._moved(node), as_found=True)
            places = places[np.argsort(bounds, kind="stable")[:DIVED]]
        level = node.order.levels[len(node.chosen)]
        weights = weights_below(level, node.chosen, node.crossing)
        nodes: list[Node] = []
        for place in map(tuple, places.tolist()):
            if nodes and budget.left < least:
                break
            energy = term(self.classes, level, weights, node.tables, place)
            if energy is not None:
                below = child(self.classes, node, place, energy, reach)
                nodes += [below] if below is not None else []
        return sorted(nodes, key=lambda one: one.bound)[:DIVED]

    def _price(self, node: Node) -> None:
        """Look at the smallest tiles of the classes of all levels."""
        self.priced += 1
        self.space.budget.spend(NEST / 2)
        nest = [one.place for one in node.chosen]
        tiles = smallest_tiles(self.classes, node.order.held, nest).tiles
        self.offer(*best_held(self.space, tiles, self.held))


def _is_alike(place: tuple[int, ...]) -> bool:
    """Whether a level cuts rows as it cuts columns."""
    return place[3] == place[4] and place[5] == place[6]


def _is_first(places: Ints) -> NDArray[np.bool_]:
    """Whether places come before, or are, themselves with rows and columns exchanged."""
    ho, wo, hf, wf = places[:, 3:].T
    found: NDArray[np.bool_] = (ho < wo) | ((ho == wo) & (hf <= wf))
    return found
