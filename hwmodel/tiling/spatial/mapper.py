"""The search for mappings on chips with memories side by side.

A lower bound of all levels together comes first, with sizes that need not be whole. Near these,
under the choices of what boundaries hold that cost least, mappings are made better two axes at a
time. Where what is found stays above the bound, another bound, level by level, is made, too. Small
spaces are walked whole: there the best is proved.

Holds for: every chip; the certificate says how far the mapping may be from the best.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import comb, prod

from hwmodel.errors import SpecWarning
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.terms import Certificate
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.spatial.asked import time
from hwmodel.tiling.spatial.beginnings import smallest, spread
from hwmodel.tiling.spatial.bound import Bound, bound, closer
from hwmodel.tiling.spatial.choices import Choices, Found, check_feasible, holdings
from hwmodel.tiling.spatial.descent import Held, Point, descended, settled
from hwmodel.tiling.spatial.grouped import every, few, most_groups
from hwmodel.tiling.spatial.parted import Parts
from hwmodel.tiling.spatial.space import Space
from hwmodel.tiling.spatial.trials import CLOSEST, Search
from hwmodel.work.problem import Extents, Problem

__all__ = ["mapped"]

WALKED = 3_000_000  # mappings of a space that is walked whole
QUICK = 20  # part of a search's budget for a first bound
CLOSE = 0.97  # of the other bound, from which on the one level by level is made with all its budget
NEAR = 2  # parts with low bounds near whose sizes mappings are sought
SOON = 7  # cuts of parts after which more must be known
LATER, AROUND = 20, 12  # likewise, where what is found stays far above the bound
WIDE = 2.5e-2  # above the bound, from which on a longer look is taken
OPEN = 2e-2  # above the bound, from which on sizes are looked at part by part
ENOUGH = 1e-2  # above the bound, at which no other bound is made, and no longer look goes on
APART = 8  # memories of all levels served one by one, of more of which that bound knows little
FEW = 2  # boundaries, of more of which it was never the higher one where both sides are paid
ROUNDING = 1e-9


def mapped(problem: Problem, chip: Memories, options: SearchOptions) -> tuple[Mapping, Certificate]:
    """Return a mapping of little energy and its certificate. Raises: Infeasible, TooLarge."""
    space = Space(problem, chip, options)
    check_feasible(space)
    limits = most_groups(problem, chip)
    size = prod(limits) * _size(problem, chip, options)
    if size <= WALKED:
        return _walked(problem, chip, options, size)
    first, *others = few(problem.groups, limits)
    if not chip.moment_energy:  # time is free
        others = others[-1:]
    choices = Choices.on(space)  # few() begins with one group at a time
    parts = Parts.of(space, holdings(options.stationary, space.depth), apart=prod(limits) > 1)
    search = Search(parts.least, parts.sure(), Choices.on(space.roughly))
    bounds = _searched(space, search, parts)
    found = search.counted(choices)
    best, examined = (found, first), search.choices.chains
    for groups in others:
        more = Choices.of(problem, chip, options, groups)
        if more is not None:
            energy, point, held = best[0]
            look = _beside(more.held(held.held), point)
            examined += more.chains
            if look.energy <= energy * (1 + ROUNDING):  # as dear, but sooner done
                best = look, groups
    return _certified(_sooner(best[0]), best[1], bounds, size, examined)


def _searched(space: Space, search: Search, parts: Parts) -> tuple[float, float]:
    """Search until what is found is near the bounds, or little comes of it; return these.

    They are that of all levels together, and the higher of it and the one level by level.
    """
    found = search.best()
    if found.energy > parts.least * (1 + OPEN):
        parts.cut(found.energy, SOON)
        found = search.again(parts.least, parts.lowest(NEAR))
    least = parts.least
    if found.energy > least * (1 + ENOUGH) and _tells(space):
        quick = bound(space.problem, space.chip, space.options, QUICK)
        least = _least(space, quick, least)
        found = search.beside(quick)
    if space.options.share == 1 and found.energy > least * (1 + WIDE):
        parts.cut(found.energy, LATER)
        least = max(least, parts.least)
        search.longer(least, parts.lowest(AROUND), ENOUGH)
    return parts.least, least


def _tells(space: Space) -> bool:
    """Whether the bound level by level may be the higher one."""
    apart = prod(x.fanout for x in space.chip.levels if not (x.multicast and x.reduction))
    return apart <= APART and (space.depth <= FEW or space.options.transfers == "upper")


def _least(space: Space, quick: Bound, floor: float) -> float:
    """The highest of what is known of all levels together, and level by level."""
    problem, chip, options = space.problem, space.chip, space.options
    if options.rows != "touched":  # bounding rows of parts may be fewer than those of the whole
        return floor
    if quick.energy < CLOSE * floor:
        return max(floor, quick.energy)
    return max(floor, quick.energy, closer(problem, chip, options, quick))


def _walked(
    problem: Problem, chip: Memories, options: SearchOptions, size: int
) -> tuple[Mapping, Certificate]:
    """Return the best of all mappings, and of equally dear ones the soonest done."""
    found, groups = _best_walked(problem, chip, options)
    least = found.energy
    if price := _hurry(found):
        soonest, groups = _best_walked(problem, chip._replace(moment_energy=price), options)
        choices = Choices.of(problem, chip, options, groups)
        assert choices is not None
        held = choices.held(soonest.held.held)
        found = Found(held.energy(soonest.point), soonest.point, held)
    return _certified(found, groups, (least, least), size, size)


def _best_walked(
    problem: Problem, chip: Memories, options: SearchOptions
) -> tuple[Found, tuple[int, ...]]:
    """The best of all mappings, and groups side by side."""
    best = None
    for groups in every(most_groups(problem, chip)):
        choices = Choices.of(problem, chip, options, groups)
        if choices is not None:
            found = choices.walked()
            if best is None or found.energy <= best[0].energy:  # as dear, but sooner done
                best = found, groups
    assert best is not None
    return best


def _hurry(found: Found) -> float:
    """A price of a moment, all of which together are a billionth of the energy; 0: time has one.

    Where time is free, MACs that idle cost nothing, and which mapping is found is chance.
    """
    space = found.held.space
    if space.chip.array is None or space.chip.moment_energy or not found.energy:
        return 0.0
    taken = time(space.problem, found.held.mapping(found.point), space.chip, space.options.rule)
    assert taken is not None
    moments = prod(moment.value for moment in taken.moments)
    return ROUNDING * found.energy / moments if moments else 0.0  # where all is padding


def _sooner(found: Found) -> Found:
    """The same, or a mapping near it that is as dear to `ROUNDING` and sooner done."""
    space, price = found.held.space, _hurry(found)
    if not price:
        return found
    hurried = Space(space.problem, space.chip._replace(moment_energy=price), space.options)
    _, point = descended(found.held.on(hurried), found.point, CLOSEST)
    return Found(found.held.energy(point), point, found.held)


def _beside(held: Held, point: Point) -> Found:
    """The best that is found with more groups side by side, from what was good with fewer."""
    looks = [settled(held, one) for one in (spread(held, point), smallest(held.space))]
    return Found(*descended(held, min(looks)[1]), held)


def _size(problem: Problem, chip: Memories, options: SearchOptions) -> int:
    """How many mappings there are of one group."""
    space = Space(problem, chip, options)
    held = len(holdings(options.stationary, space.depth))
    return held * prod(_chains(space, loop) for loop in Extents._fields)


def _chains(space: Space, loop: str) -> int:
    """How many chains of a loop there are."""
    free = space.columns[loop].chosen
    return comb(getattr(space.problem.extent, loop) + free - 1, free)


def _certified(
    best: Found, groups: tuple[int, ...], bounds: tuple[float, float], size: int, examined: int
) -> tuple[Mapping, Certificate]:
    """Return a mapping and its certificate.

    Args:
        bounds: of all levels together, and the higher of it and the one level by level.
    """
    (energy, point, held), (floor, least) = best, bounds
    if energy < least * (1 - ROUNDING):
        warnings.warn(
            f"a mapping of {energy:.6g} is below the bound of {least:.6g}, which is a "
            "fault of ours: that bound is not taken to be known",
            SpecWarning,
            stacklevel=2,
        )
        least = floor if floor <= energy else 0.0
    proved = energy <= least * (1 + 2 * ROUNDING)
    gap = 0.0 if proved else 1 - least / energy
    mapping = held.mapping(point)
    if prod(groups) > 1:
        mapping = replace(mapping, groups=groups)
    return mapping, Certificate(energy, energy if proved else least, gap, proved, size, examined)
