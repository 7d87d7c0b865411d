"""The optimal search: proves that no tiling of the whole space costs less.

Every level has a term of the energy that depends on its own pieces alone (`bounds`). The sum of the
terms' minima is a lower bound. Classes of tiles are chosen level by level, what costs least first
(`best_first`); what is known of the levels above raises the bounds of those below (`tables`). When
nothing is open below the best tiling, it is optimal.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from math import comb
from typing import NamedTuple

from hwmodel.errors import Infeasible, TooLarge
from hwmodel.tiling.accesses import Mapping, traffic
from hwmodel.tiling.level_by_level import level_by_level
from hwmodel.tiling.optimal.best_first import ROUNDING, Search
from hwmodel.tiling.optimal.bounds import Space, rooms, space
from hwmodel.tiling.optimal.budget import Budget
from hwmodel.tiling.optimal.chains import energy_of, uncut_energy
from hwmodel.tiling.optimal.compiled import is_compiled
from hwmodel.tiling.optimal.descent import descended, first_guesses
from hwmodel.tiling.optimal.nodes import orders
from hwmodel.tiling.optimal.terms import Certificate, Options, Together
from hwmodel.tiling.options import Memories, Stationary
from hwmodel.tiling.pricing import memory_energy
from hwmodel.work.problem import OPERANDS, Operand, Problem

# Says what is known of all levels together, beside an energy and a bound that are known.
Ask = Callable[[Problem, Memories, Options, float, float], Together]

__all__ = ["Certificate", "Optimum", "Options", "at_least", "optimal"]

USUAL = Options()
NARROWER: dict[Stationary, Stationary] = {"best": "either", "either": "filter"}
# Of the budget is spent before all levels together are asked about, and the gap from which on they
# are: compiled, and in arrays, where that takes as long as a whole search.
FIRST, LEFT = (0.2, 0.8), (1e-3, 1e-2)
# Gaps after that, and at the end, from which on the budget grows so many times, once, compiled.
WIDE, FURTHER = 1e-2, 5
OPEN, LONGER = 3e-4, 3
ENOUGH = 1e-3  # gap at which a tiling is left as it is


class Optimum(NamedTuple):
    """The cheapest tiling found, and its certificate."""

    mapping: Mapping
    certificate: Certificate


def optimal(
    problem: Problem, hardware: Memories, options: Options = USUAL, together: Ask | None = None
) -> Optimum:
    """The tiling of least memory energy, exact counting, over all integer tile chains.

    Of tilings of equal energy the one met first is kept: an order without chance, so that equal
    problems always get equal tilings. More freedom is never worse, but for what need not be saved
    (`spare`, `slack`): where no tiling is proved to be the best, the answer of the search that may
    hold less is looked at, too.

    Raises: Infeasible.
    Holds for: every problem and all prices; equal to the exhaustive search of the tests. Where a
        list would exceed `options.limit`, or `options.budget` is spent, the best tiling so far is
        returned with its gap; and so is one whose gap is not above `options.spare`, or
        `options.slack`.

    Args:
        together: asked where a fifth of the budget has left a gap, if at all.
    """
    search = _searched(problem, hardware, options, together)
    bound = search.bound
    if not search.is_proved:
        held = _held(options.stationary, len(hardware.levels) - 1)
        less = NARROWER.get(options.stationary, "filter")
        needed = less == options.stationary or search.may_hold(_held(less, len(held[0])))
        search.end()
        _improve(search, bound, _narrower(problem, hardware, options, together) if needed else [])
    return _certified(problem, hardware, options, search, bound)


def at_least(problem: Problem, hardware: Memories, options: Options = USUAL) -> float:
    """Return the lower bound of `optimal`'s certificate, or little less, without the best tiling.

    Returns: what no tiling costs less than [chip's unit].
    Raises: Infeasible.
    """
    search = _searched(problem, hardware, options)
    bound = search.bound
    if search.is_proved:
        return _certified(problem, hardware, options, search, bound).certificate.lower_bound
    return max(bound, uncut_energy(search.space))


def _searched(
    problem: Problem, hardware: Memories, options: Options, together: Ask | None = None
) -> Search:
    """Search until all is proved or the budget is spent."""
    sums, room = options.partial_sum_bits, options.ofmap_space
    budget = Budget(options.budget)
    given = problem, hardware, sums, options.rule, room, options.transfers, options.limit, budget
    prepared = space(*given)
    _check_feasible(prepared, hardware)
    held = _held(options.stationary, len(hardware.levels) - 1)
    search = Search(prepared, orders(prepared, held), held, options)
    if together is not None:
        plain = not is_compiled()
        search.run((1 - FIRST[plain]) * budget.whole)
        if search.leaves(LEFT[plain]):
            search.learn(together(problem, hardware, options, search.energy, search.bound))
        if not plain and search.leaves(WIDE):
            budget.raise_(FURTHER)
    search.run(0.0)
    once = together is not None and is_compiled() and budget.whole == options.budget
    if once and search.leaves(OPEN):
        budget.raise_(LONGER)
        search.run(0.0)
    return search


def _improve(search: Search, bound: float, known: list[Mapping]) -> None:
    """Look at tilings known or guessed, and change the best of all tile by tile."""
    held: Operand = "F"
    guesses = first_guesses(search.space, (held,) * (len(search.space.rates) - 1))
    for guess in [*known, *guesses]:
        search.offer(energy_of(search.space, guess), guess)
    assert search.mapping is not None
    if search.energy * (1 - ENOUGH) > bound:
        search.offer(*descended(search.space, search.mapping))


def _certified(
    problem: Problem, hardware: Memories, options: Options, search: Search, bound: float
) -> Optimum:
    assert search.mapping is not None
    counts = traffic(problem, search.mapping, "exact", options.rule)
    sums, transfers = options.partial_sum_bits, options.transfers
    energy = memory_energy(problem, counts, hardware, sums, transfers)
    levels = len(hardware.levels) - 1
    size = len(_held(options.stationary, levels))
    for extent in problem.extent:
        size *= comb(extent + levels - 1, levels)  # falling chains of tiles
    lower = max(bound, uncut_energy(search.space))
    proved = lower >= search.energy * (1 - ROUNDING)
    lower = energy if proved else lower
    gap = 0.0 if proved or not energy else 1 - lower / energy
    return Optimum(search.mapping, Certificate(energy, lower, gap, proved, size, search.examined))


def _held(stationary: Stationary, boundaries: int) -> list[tuple[Operand, ...]]:
    """List all choices of the operands held at the boundaries."""
    if stationary == "best":
        return list(product(OPERANDS, repeat=boundaries))
    same: tuple[Operand, ...] = ("F", "I") if stationary == "either" else ("F",)
    return [(operand,) * boundaries for operand in same]


def _narrower(
    problem: Problem, hardware: Memories, options: Options, together: Ask | None
) -> list[Mapping]:
    """List the answer of the search that may hold less; below filters held, of level by level."""
    if options.stationary in NARROWER:
        inner = replace(options, stationary=NARROWER[options.stationary])
        return [optimal(problem, hardware, inner, together).mapping]
    with suppress(Infeasible, TooLarge):
        return [level_by_level(problem, hardware)]
    return []


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
