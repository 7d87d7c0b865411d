"""The cheapest tiling of a problem on a chip, with a proof: branch and bound over classes of tiles.

Every level has a term of the energy that depends on its own pieces alone (`bounds`). The sum of the
terms' minima is a lower bound; with it, a term may exceed its minimum by no more than the gap to a
tiling at hand. Only such classes are listed, joined level by level to nests, and met exactly
(`chains`), the most promising first. When no nest is left below the best tiling, it is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from math import comb, inf
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.accesses import Mapping, traffic
from hwmodel.bounds import (
    Level,
    OfmapSpace,
    Space,
    TooMany,
    cheap_classes,
    floor,
    least_energy,
    level,
    space,
)
from hwmodel.chains import best_within, energy_of
from hwmodel.errors import Infeasible
from hwmodel.hardware import Hardware
from hwmodel.pricing import memory_energy
from hwmodel.problem import OPERANDS, Extents, Operand, Problem
from hwmodel.rows import TOUCHED, RowRule
from hwmodel.search import level_by_level

__all__ = ["Certificate", "Optimum", "Options", "optimal"]

Ints = NDArray[np.int64]
SLACKS = 1e-9, 1e-3  # relative to the bound: at first, and then; four times more each time
ROUNDING = 1e-13  # relative; energies that differ by less are equal


@dataclass(frozen=True)
class Options:
    """What the search is free to choose, and how it counts."""

    partial_sum_bits: int = 32
    stationary: Literal["filter", "best"] = "filter"
    rule: RowRule = TOUCHED
    ofmap_space: OfmapSpace = "held"
    limit: int = 3_000_000  # entries of any list


@dataclass(frozen=True)
class Certificate:
    """What is known about a tiling's distance from the optimum."""

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


def optimal(problem: Problem, hardware: Hardware, options: Options = Options()) -> Optimum:
    """The tiling of least memory energy, exact counting, over all integer tile chains.

    Of tilings of equal energy the one met first is kept: an order without chance, so that equal
    problems always get equal tilings.

    Raises: Infeasible.
    Holds for: every problem; equal to the exhaustive search of the tests. Where a list would
        exceed `options.limit`, the best tiling so far is returned with its gap.
    """
    sums, room = options.partial_sum_bits, options.ofmap_space
    prepared = space(problem, hardware, sums, options.rule, room, options.limit)
    _check_feasible(prepared, hardware)
    best, bounds = _Best(inf, None), []
    for lowest, held, levels in _orders(prepared, options.stationary):
        if lowest < best.energy * (1 - ROUNDING):
            best, lowest = _search(prepared, held, levels, best)
        bounds.append(min(lowest, best.energy))
    if best.energy > min(bounds) * (1 + ROUNDING):
        best = _greedy(prepared, hardware, best)
    return _certified(problem, hardware, options, best, min(bounds))


def _greedy(space: Space, hardware: Hardware, best: _Best) -> _Best:
    """`best`, or the level-by-level tiling, or tiles of one element, where the search gave up."""
    problem = space.problem
    number = len(hardware.levels) - 1
    single: Operand = "F"
    ones = Mapping((Extents(1, 1, 1, 1, 1, 1, 1),) * number, (single,) * number)
    starts = level_by_level(problem, hardware), ones
    for mapping in starts:
        energy = energy_of(space, mapping)
        if energy < best.energy:
            best = best._replace(energy=energy, mapping=mapping)
    return best


def _certified(
    problem: Problem, hardware: Hardware, options: Options, best: _Best, bound: float
) -> Optimum:
    assert best.mapping is not None
    counts = traffic(problem, best.mapping, "exact", options.rule)
    energy = memory_energy(problem, counts, hardware, options.partial_sum_bits)
    proved = bound >= best.energy * (1 - ROUNDING)
    levels = len(hardware.levels) - 1
    size = len(OPERANDS) ** levels if options.stationary == "best" else 1
    for extent in problem.extent:
        size *= comb(extent + levels - 1, levels)  # falling chains of tiles
    lower = energy if proved else bound
    gap = 0.0 if proved or not energy else 1 - lower / energy
    return Optimum(best.mapping, Certificate(energy, lower, gap, proved, size, best.examined))


def _orders(
    space: Space, stationary: Literal["filter", "best"]
) -> list[tuple[float, tuple[Operand, ...], list[Level]]]:
    """What each boundary may hold, with a rough lower bound of the energy, the lowest first."""
    boundaries = len(space.prices) - 1
    choices: tuple[Operand, ...] = OPERANDS if stationary == "best" else ("F",)
    rough: dict[tuple[int, Operand, Operand], tuple[float, Level]] = {}
    orders = []
    for held in product(choices, repeat=boundaries):
        around: tuple[Operand, ...] = (*held, "F")
        bound, levels = 0.0, []
        for number, (above, below) in enumerate(pairwise(around), start=1):
            key = number, above, below
            if key not in rough:
                one = level(space, *key)
                rough[key] = floor(one), one
            bound += rough[key][0]
            levels.append(rough[key][1])
        orders.append((bound, held, levels))
    return sorted(orders, key=lambda order: order[0])


def _search(
    space: Space, held: tuple[Operand, ...], levels: list[Level], best: _Best
) -> tuple[_Best, float]:
    """The best of all tilings under `held` and `best`, and what no other one costs less than.

    All tilings up to a slack above the bound are looked at; if there is none, up to more.
    """
    least = [least_energy(one) for one in levels]
    bound = sum(least)
    done, slack = bound, SLACKS[0] * abs(bound)
    seen: set[bytes] = set()
    try:
        while best.energy > done * (1 + ROUNDING):
            lists = [
                cheap_classes(one, low + slack) for one, low in zip(levels, least, strict=True)
            ]
            best = _joined(space, held, levels, lists, bound + slack, best, seen)
            done = bound + slack
            slack = max(4 * slack, SLACKS[1] * abs(bound))
        return best, done
    except TooMany:
        return best, done


def _joined(
    space: Space,
    held: tuple[Operand, ...],
    levels: list[Level],
    lists: list[tuple[Any, Ints]],
    reach: float,
    best: _Best,
    seen: set[bytes],
) -> _Best:
    """`best`, or the best tiling up to `reach` from nests of listed classes not yet `seen`."""
    reach = min(reach, best.energy)
    totals, nests, examined = _nests(lists, reach, space.limit)
    classes = np.stack([rows[1][index] for rows, index in zip(lists, nests, strict=True)], axis=1)
    best = best._replace(examined=best.examined + examined)
    for i in np.argsort(totals, kind="stable").tolist():
        if totals[i] >= best.energy * (1 - ROUNDING):
            break
        slack = min(reach, best.energy) - float(totals[i])
        most = _most_pieces(levels, classes[i], slack)
        nest = classes[i].tobytes() + most.tobytes()
        if nest in seen:
            continue
        seen.add(nest)
        found = best_within(space, held, classes[i], most)
        best = best._replace(examined=best.examined + found.examined)
        if found.energy < best.energy * (1 - ROUNDING):
            best = best._replace(energy=found.energy, mapping=found.mapping)
    return best


def _nests(lists: list[tuple[Any, Ints]], reach: float, limit: int) -> tuple[Any, list[Ints], int]:
    """All nests of listed classes up to `reach`: their bounds, and one index into each list."""
    rest = [sum(float(energies[0]) for energies, _ in lists[k + 1 :]) for k in range(len(lists))]
    totals = lists[0][0][lists[0][0] + rest[0] <= reach]
    nests = [np.arange(len(totals))]
    examined = sum(len(energies) for energies, _ in lists)
    for k in range(1, len(lists)):
        energies, classes = lists[k]
        above = lists[k - 1][1][nests[-1]]
        upper, lower = _pairs(totals, above, energies, classes, reach - rest[k], limit)
        totals = totals[upper] + energies[lower]
        nests = [*(index[upper] for index in nests), lower]
        examined += len(totals)
    return totals, nests, examined


def _pairs(
    totals: Any, above: Ints, energies: Any, below: Ints, reach: float, limit: int
) -> tuple[Ints, Ints]:
    """Which nests go with which classes of the next level: at least as many pieces of each loop."""
    found: list[tuple[Ints, Ints]] = []
    number = 0
    for i in range(len(totals)):
        affordable = int(np.searchsorted(energies, reach - totals[i], side="right"))
        fine = np.flatnonzero((below[:affordable] >= above[i]).all(axis=1))
        number += len(fine)
        if number > limit:
            raise TooMany
        found.append((np.full(len(fine), i), fine))
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    upper, lower = (np.concatenate(x) for x in zip(*found, strict=True))
    return upper, lower


def _most_pieces(levels: list[Level], classes: Ints, slack: float) -> Ints:
    """Pieces [levels, 7] up to which a loop alone raises the bound by at most `slack`."""
    most = classes.copy()
    for row, one, pieces in zip(most, levels, classes.astype(float), strict=True):
        w, (n, m, c, ho, wo, hf, wf) = one.weights, pieces
        top = one.space.top
        of_B, of_S = w.B * n * ho * wo, w.S * c * hf * wf
        of_A = (w.A + w.RA * top.rows * top.columns) * m
        each = np.array([of_B, of_A, of_S, of_B, of_B, of_S, of_S]) / pieces
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.where(each > 0, (slack * (1 + 1e-9) + 1e-300) / each, np.inf)
        row += np.minimum(more, one.space.problem.extent).astype(np.int64)
    return most


def _check_feasible(space: Space, hardware: Hardware) -> None:
    """Raise Infeasible unless a tile of one element fits every level."""
    bits = {"I": space.problem.bits.I, "F": space.problem.bits.F, "O": space.sum_bits}
    for index, rooms in enumerate(space.rooms):
        buffers = [b for b in hardware.levels[index].buffers if b.capacity_bits is not None]
        for room, buffer in zip(rooms, buffers, strict=True):
            operands = [x for x, there in zip("IFO", room[1:], strict=True) if there]
            needs = sum(bits[x] for x in operands)
            if needs > room.capacity:
                raise Infeasible(buffer.name, " and ".join(operands), needs, int(room.capacity))
