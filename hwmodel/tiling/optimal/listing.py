"""Lists of the classes that a level can afford, and the least energy of a level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.bounds import Level, Weights
from hwmodel.tiling.optimal.budget import ENTRIES, STEPS, TooMany
from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.optimal.staged import walk_in_arrays
from hwmodel.tiling.optimal.tables import Classes, Tables

__all__ = ["CALL", "MOST_WORK", "REDUCTION", "Listed", "check", "least", "listed", "rough"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING = 1e-11  # relative; what costs so little more than a bound is still looked at
SORTED = 4  # entries of a list that take as long as one tiling
CALL = 4, 300  # tilings in the time of a call: compiled, and in arrays
MOST_WORK = 1_000_000  # steps of one walk; then it ends with the bound that it has
REDUCTION = 4  # steps that one choice of classes of C, HF and WF takes
MOST_CHOICES = 4_000_000  # of classes of C, HF and WF, or of HO, WO and N, taken together


class Listed(NamedTuple):
    """Classes of a level, the cheapest first: energies, places [n, 7]."""

    energies: Floats
    places: Ints
    settled: float  # all classes up to this energy are listed
    is_full: bool  # had there been more place, more would be


def least(
    classes: Classes, level: Level, weights: Weights, tables: Tables, reach: float = np.inf
) -> tuple[float, tuple[int, ...] | None]:
    """The least energy of a level, and the classes that have it; `reach` if none is below it.

    Where this takes too much work, the energy is a lower bound.
    """
    energies, places = np.empty(1), np.empty((1, 7), np.int64)
    found, settled = _walked(classes, level, weights, tables, reach, True, energies, places)
    if not found:
        return settled, None
    return min(float(energies[0]), settled), tuple(places[0].tolist())


def rough(classes: Classes, level: Level) -> float:
    """A quick lower bound of the energy of a level. Raises: TooMany."""
    energies, places = np.empty(1), np.empty((1, 7), np.int64)
    return _walked(classes, level, level.weights, classes.whole, np.inf, True, energies, places, 0)[
        1
    ]


def listed(
    classes: Classes, level: Level, weights: Weights, tables: Tables, reach: float, limit: int,
    most_work: int = MOST_WORK,
) -> Listed:  # fmt: skip
    """All classes of a level that fit and cost at most `reach`, or as many as there is place for.

    Raises: TooMany.
    """
    energies, places = np.empty(limit), np.empty((limit, 7), np.int64)
    of = classes, level, weights, tables, reach
    found, settled = _walked(*of, False, energies, places, most_work)
    order = np.argsort(energies[:found], kind="stable")
    classes.space.budget.spend(found / SORTED)
    order = order[: int(np.searchsorted(energies[order], settled, side="right"))]
    return Listed(energies[order], places[order], settled, found == limit)


def check(classes: Classes, tables: Tables) -> int:
    """Count the choices of classes of C, HF and WF. Raises: TooMany."""
    n, _, c, ho, wo, hf, wf = (
        len(tiles) - first
        for tiles, first in zip(classes.tiles, tables.first.tolist(), strict=True)
    )
    if max(c * hf * wf, n * ho * wo) > MOST_CHOICES:
        raise TooMany
    return int(c * hf * wf)


def _walked(
    classes: Classes, level: Level, weights: Weights, tables: Tables, reach: float, only: bool,
    energies: Floats, places: Ints, most_work: int = MOST_WORK,
) -> tuple[int, float]:  # fmt: skip
    """Walk; pay for it. Returns: how many were found; up to which energy nothing is missing."""
    reductions = check(classes, tables)
    if most_work:  # beside what is done before the first class is seen
        most_work += REDUCTION * reductions
    compiled = is_compiled()
    own = (
        (classes.flat[0], tables.flat, classes.ends) if compiled else (classes.tiles, tables.pieces)
    )
    given = (
        *own, tables.first, *classes.axes, tables.rows, classes.extent, classes.bits,
        level.room_table, np.array(weights),
    )  # fmt: skip
    # A floor may be rounded above the energy of what it is a floor of, so that nothing is missing
    # only up to a little less than what was walked.
    margin = ROUNDING * abs(weights.constant)
    loose = float(reach) + ROUNDING * abs(reach) + margin if reach < np.inf else np.inf
    of = given, loose, only, most_work, energies, places
    found, work, walked = kernel("walk")(*of, classes.arrays) if compiled else walk_in_arrays(*of)
    if walked >= loose:
        settled = float(reach)
    elif only and found and walked >= energies[0]:
        settled = float(energies[0])
    else:
        settled = min(float(reach), walked - ROUNDING * abs(walked) - margin)
    steps, call = (STEPS, CALL[0]) if compiled else (ENTRIES, CALL[1])
    classes.space.budget.spend(call + work / steps)
    return int(found), settled
