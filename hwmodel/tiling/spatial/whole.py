"""A small space of mappings, walked whole."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.spatial.descent import Held, Point
from hwmodel.tiling.spatial.space import GROUPS

__all__ = ["best_of_all"]


def best_of_all(held: Held) -> tuple[float, Point]:
    """Return the best of all mappings; the two axes of most chains in one product."""
    lists = [_all(held, group) for group in range(len(GROUPS))]
    *outer, second, first = sorted(range(len(GROUPS)), key=lambda group: len(lists[group]))
    chains = [[held.space.axis(g, row) for row in lists[g]] for g in outer]
    some = [held.listed(g, held.places(g, lists[g])) for g in (second, first)]
    whole = {g: held.space.axis(g, lists[g][0]) for g in (second, first)}
    best, found = np.inf, None
    for each in product(*chains):
        axes = whole | dict(zip(outer, each, strict=True))
        point: Point = tuple(axes[group] for group in range(len(GROUPS)))
        energy, changed = held.best_at(point, (second, first), some, np.inf)
        if found is None or energy < best:
            best, found = energy, changed
    assert found is not None
    return best, found


def _all(held: Held, group: int) -> NDArray[np.int64]:
    """All chains of an axis [chain, size]."""
    space, loops = held.space, GROUPS[group]
    each = []
    for loop in loops:
        tiles = range(getattr(space.problem.extent, loop), 0, -1)
        each.append(list(combinations_with_replacement(tiles, space.columns[loop].chosen)))
    chains = [sum(pair, ()) for pair in product(*each)]
    return np.array(chains, np.int64).reshape(len(chains), -1)
