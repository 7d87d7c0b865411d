"""The cheapest tiling of a problem on a chip, with a proof: branch and bound over classes of tiles.

Every level has a term of the energy that depends on its own pieces alone (`bounds`). The sum of the
terms' minima is a lower bound; with it, a term may exceed its minimum by no more than the gap to a
tiling at hand. Only such classes are listed, joined level by level to nests, and met exactly
(`chains`), the most promising first. When no nest is left below the best tiling, it is optimal.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise, product
from math import comb, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import Infeasible, TooLarge
from hwmodel.tiling.accesses import Mapping, traffic
from hwmodel.tiling.level_by_level import level_by_level
from hwmodel.tiling.optimal.bounds import Level, OfmapSpace, Space, level, rooms, space
from hwmodel.tiling.optimal.budget import NEST, Budget, TooMany
from hwmodel.tiling.optimal.chains import best_within, energy_of, uncut_energy
from hwmodel.tiling.optimal.classes import cheap_classes, floor, least_energy
from hwmodel.tiling.optimal.descent import descended, dived, first_guesses
from hwmodel.tiling.optimal.nests import joined, most_pieces, smallest_tiles, wasted
from hwmodel.tiling.options import Memories, Stationary
from hwmodel.tiling.pricing import added, memory_energy
from hwmodel.tiling.rows import TOUCHED, RowRule
from hwmodel.work.problem import OPERANDS, Operand, Problem

__all__ = ["Certificate", "Optimum", "Options", "optimal"]

Ints = NDArray[np.int64]
SLACKS = 1e-9, 1e-5  # relative to the bound: at first, and then
GROWTH = (30, 10.0), (300, 4.0), (3000, 2.0), (inf, 1.4)  # of the slack, by entries listed
CAREFUL = 1e-3  # relative slack from which it grows twofold at most
SHORT = 112  # outputs and taps of an axis that is settled all the same
LOOSE = 4  # where halos are bounded loosely, few searches end in a proof: a share of the budget
NEAR = 30  # tilings that are kept for the end
ENOUGH = 1e-3  # gap at which a tiling is left as it is
CHUNK = 50_000  # nests looked at together, to save memory
ROUNDING = 1e-13  # relative; energies that differ by less are equal


@dataclass(frozen=True)
class Options:
    """The choices that the search is free to make, and its rules of counting."""

    partial_sum_bits: int = 32
    stationary: Stationary = "filter"
    rule: RowRule = TOUCHED
    ofmap_space: OfmapSpace = "held"
    limit: int = 1_000_000  # entries of any list
    budget: int = 600_000  # tilings looked at, nests met and lists made: a second or two


@dataclass(frozen=True)
class Certificate:
    """A tiling's distance from the optimum: energy, lower bound, and whether that is proved."""

    energy: float  # [chip's unit]
    lower_bound: float  # no tiling of the space costs less [chip's unit]
    gap: float  # 1 - lower_bound / energy; 0 if proved
    proved: bool
    space: int  # tilings, fitting or not
    examined: int  # classes, nests of classes and tilings that were evaluated


class Optimum(NamedTuple):
    """The cheapest tiling found, and its certificate."""

    mapping: Mapping
    certificate: Certificate


class _Best(NamedTuple):
    energy: float
    mapping: Mapping | None
    examined: int = 0
    near: tuple[Mapping, ...] = ()  # of the smallest tiles of nests whose bounds are least


def optimal(problem: Problem, hardware: Memories, options: Options = Options()) -> Optimum:
    """The tiling of least memory energy, exact counting, over all integer tile chains.

    Of tilings of equal energy the one met first is kept: an order without chance, so that equal
    problems always get equal tilings. More freedom is never worse: where no tiling is proved to be
    the best, the answer of the search that may hold less is looked at, too.

    Raises: Infeasible.
    Holds for: every problem and all prices; equal to the exhaustive search of the tests. Where a
        list would exceed `options.limit`, or `options.budget` is spent, the best tiling so far is
        returned with its gap.
    """
    sums, room = options.partial_sum_bits, options.ofmap_space
    share = 1 if _tight(problem) else LOOSE
    budget = Budget(options.budget // share)
    prepared = space(problem, hardware, sums, options.rule, room, options.limit, budget)
    _check_feasible(prepared, hardware)
    best, orders = _best_first(prepared, _orders(prepared, options.stationary))
    bound = min(best.energy, *(order.settled for order in orders))
    if best.mapping is None or best.energy > bound * (1 + ROUNDING):
        best = _fallback(prepared, best, orders, _narrower(problem, hardware, options))
    return _certified(problem, hardware, options, best, bound)


def _tight(problem: Problem) -> bool:
    """Whether halos enter the bound of rows well enough that most searches end soon.

    They do where rows are touched by outputs, and by taps, in a row; a dilation and a step undo
    that. Axes that are short enough are settled all the same.
    """
    n = problem.extent
    axes = ((problem.height, n.HO, n.HF), (problem.width, n.WO, n.WF))
    return all(
        min(outs, taps) == 1 or w.step == w.dilation == 1 or max(outs, taps) <= SHORT
        for w, outs, taps in axes
    )


def _best_first(space: Space, orders: list[_Order]) -> tuple[_Best, list[_Order]]:
    """Search the best tiling under any of `orders`; return it and the orders as they are left.

    The order with the lowest bound goes on, by one step of slack; so a good tiling is found early,
    and most orders are never looked into.
    """
    best, orders = _Best(inf, None), list(orders)
    known: dict[Level, float] = {}
    queue = [(order.settled, i) for i, order in enumerate(orders) if order.open]
    heapify(queue)
    while queue and queue[0][0] < best.energy * (1 - ROUNDING) and not space.budget.is_spent:
        before, i = heappop(queue)
        try:
            best, order = _deepened(space, orders[i], best, known)
        except TooMany:
            order = orders[i]._replace(open=False)
        orders[i] = order._replace(settled=max(before, order.settled))
        if order.open:
            heappush(queue, (orders[i].settled, i))
    return best, orders


def _narrower(problem: Problem, hardware: Memories, options: Options) -> list[Mapping]:
    """List the answer of the search that may hold less; below filters held, of level by level."""
    less: dict[Stationary, Stationary] = {"best": "either", "either": "filter"}
    if options.stationary in less:
        inner = replace(options, stationary=less[options.stationary])
        return [optimal(problem, hardware, inner).mapping]
    with suppress(Infeasible, TooLarge):
        return [level_by_level(problem, hardware)]
    return []


def _fallback(space: Space, best: _Best, orders: list[_Order], known: list[Mapping]) -> _Best:
    """Return `best`, or a better tiling of those known or guessed, improved tile by tile."""
    single: Operand = "F"
    choices = (single,) * (len(space.rates) - 1), *(near.held for near in best.near[-1:])
    starts = [guess for held in dict.fromkeys(choices) for guess in first_guesses(space, held)]
    starts += [*best.near, *known, *_dives(space, orders, best.energy)]
    starts += [best.mapping] if best.mapping is not None else []
    energies = [energy_of(space, mapping) for mapping in starts]
    best = best._replace(examined=best.examined + len(starts))
    at = int(np.argmin(energies))
    energy, mapping = energies[at], starts[at]
    if energy * (1 - ENOUGH) > min(order.settled for order in orders):
        energy, mapping = descended(space, mapping)
    return best._replace(energy=energy, mapping=mapping) if energy < best.energy else best


def _dives(space: Space, orders: list[_Order], energy: float) -> list[Mapping]:
    """List tilings that are cheap level by level, under orders that may hold one below `energy`.

    They have a budget of their own, as most is spent when they are asked for.
    """
    found: list[Mapping] = []
    known: dict[Level, Ints] = {}
    space.budget.renew()
    for order in sorted(orders, key=lambda order: order.settled):
        if not order.levels or order.settled >= energy or space.budget.is_spent:
            break
        with suppress(TooMany):
            found += dived(space, order.levels, order.held, known)
    return found


def _certified(
    problem: Problem, hardware: Memories, options: Options, best: _Best, bound: float
) -> Optimum:
    assert best.mapping is not None
    counts = traffic(problem, best.mapping, "exact", options.rule)
    energy = memory_energy(problem, counts, hardware, options.partial_sum_bits)
    proved = bound >= best.energy * (1 - ROUNDING)
    levels = len(hardware.levels) - 1
    size = len(_held(options.stationary, levels))
    for extent in problem.extent:
        size *= comb(extent + levels - 1, levels)  # falling chains of tiles
    lower = energy if proved else bound
    gap = 0.0 if proved or not energy else 1 - lower / energy
    return Optimum(best.mapping, Certificate(energy, lower, gap, proved, size, best.examined))


class _Order(NamedTuple):
    """The operands held at each boundary, and how far the tilings under them are looked at."""

    held: tuple[Operand, ...]
    levels: tuple[Level, ...]
    settled: float  # no tiling below this is left
    least: tuple[float, ...] = ()  # energies of the levels; at first only a rough sum is known
    slack: float = 0.0
    seen: frozenset[bytes] = frozenset()
    open: bool = True  # False: a limit was reached


def _held(stationary: Stationary, boundaries: int) -> list[tuple[Operand, ...]]:
    """List all choices of the operands held at the boundaries."""
    if stationary == "best":
        return list(product(OPERANDS, repeat=boundaries))
    same: tuple[Operand, ...] = ("F", "I") if stationary == "either" else ("F",)
    return [(operand,) * boundaries for operand in same]


def _orders(space: Space, stationary: Stationary) -> list[_Order]:
    """List all choices of the operands held, each with a rough lower bound."""
    known: dict[tuple[int, tuple[Operand, Operand]], tuple[Level, float]] = {}
    orders, choices = [], _held(stationary, len(space.rates) - 1)
    for held in choices:
        around: tuple[Operand, ...] = (*held, "F")
        keys = list(enumerate(pairwise(around), start=1))
        try:
            for key in keys:
                if key not in known:
                    one = level(space, key[0], *key[1])
                    known[key] = one, floor(one)
        except TooMany:  # not even the classes of the reduction can be listed
            return [_Order(held, (), uncut_energy(space), open=False) for held in choices]
        levels, bounds = zip(*(known[key] for key in keys), strict=True)
        orders.append(_Order(held, levels, added(bounds)))
    return orders


def _deepened(
    space: Space, order: _Order, best: _Best, known: dict[Level, float]
) -> tuple[_Best, _Order]:
    """Return `best`, or a better tiling of an order up to the next slack above its bound."""
    if not order.least:
        for one in order.levels:
            if one not in known:
                known[one] = least_energy(one)
        least = tuple(known[one] for one in order.levels)
        bound = added(least)
        return best, order._replace(least=least, settled=bound, slack=SLACKS[0] * abs(bound))
    bound = added(order.least)
    reach = min(bound + order.slack, best.energy)
    lists = [
        cheap_classes(one, low + order.slack)
        for one, low in zip(order.levels, order.least, strict=True)
    ]
    totals, nests, examined = joined(lists, reach, space.limit)
    space.budget.spend(examined + NEST)
    best = best._replace(examined=best.examined + examined)
    seen = set(order.seen)
    best, settled = _met(space, order, totals, nests, reach, best, seen)
    return best, order._replace(
        settled=settled,
        slack=max(
            _growth(examined, order.slack / max(abs(bound), 1e-300)) * order.slack,
            SLACKS[1] * abs(bound),
            1e-30,
        ),
        seen=frozenset(seen),
        open=settled >= min(reach, best.energy),
    )


def _growth(examined: int, slack: float) -> float:
    """Return the factor by which a slack may grow while lists, which grow faster, stay short."""
    factor = next(factor for most, factor in GROWTH if examined <= most)
    return min(factor, 2.0) if slack > CAREFUL else factor


def _met(
    space: Space,
    order: _Order,
    totals: Any,
    nests: Ints,
    reach: float,
    best: _Best,
    seen: set[bytes],
) -> tuple[_Best, float]:
    """Return `best`, or the best unseen tiling of `nests` up to `reach`; and what is settled."""
    settled = reach
    waste = [
        wasted(space, order.held, order.levels, nests[i : i + CHUNK])
        for i in range(0, len(nests), CHUNK)
    ]
    raised = totals + np.concatenate([np.zeros(0), *waste])
    if len(nests):
        near = smallest_tiles(space, order.held, nests[np.argmin(raised)])
        best = best._replace(near=(*best.near[1 - NEAR :], near))
    for i in np.argsort(raised, kind="stable").tolist():
        total, reach = float(raised[i]), min(reach, best.energy)
        if total > reach or total >= best.energy * (1 - ROUNDING):
            break
        most = most_pieces(order.levels, nests[i], reach - float(totals[i]))
        nest = nests[i].tobytes() + most.tobytes()
        if nest in seen:
            continue
        if space.budget.is_spent:
            return best, min(settled, total)
        seen.add(nest)
        space.budget.spend(NEST)
        try:
            found = best_within(space, order.held, nests[i], most)
        except TooMany:
            settled = min(settled, total)
            continue
        best = best._replace(examined=best.examined + found.examined)
        space.budget.spend(found.examined)
        if found.energy < best.energy * (1 - ROUNDING):
            best = best._replace(energy=found.energy, mapping=found.mapping)
    return best, settled


def _check_feasible(space: Space, hardware: Memories) -> None:
    """Raise Infeasible unless a tile of one element fits every level, with filters held."""
    element = int(space.height.room[-1, -1] * space.width.room[-1, -1])  # 0: only padding is met
    bits = {"I": space.problem.bits.I * element, "F": space.problem.bits.F, "O": space.sum_bits}
    for index, memories in enumerate(hardware.levels):
        buffers = [b for b in memories.buffers if b.capacity_bits is not None]
        for room, buffer in zip(rooms(space, index, "F"), buffers, strict=True):
            operands = [x for x, there in zip("IFO", room[1:], strict=True) if there]
            needs = sum(bits[x] for x in operands)
            if needs > room.capacity:
                raise Infeasible(buffer.name, " and ".join(operands), needs, int(room.capacity))
