"""A small space of mappings, walked whole."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np

from hwmodel.tiling.spatial.descent import Held, Point
from hwmodel.tiling.spatial.neighbours import Axis
from hwmodel.tiling.spatial.space import GROUPS

__all__ = ["best_of_all"]


def best_of_all(held: Held) -> tuple[float, Point]:
    """Return the best of all mappings; the two axes of most chains in one product."""
    lists = [_all(held, group) for group in range(len(GROUPS))]
    *outer, second, first = sorted(range(len(GROUPS)), key=lambda group: len(lists[group]))
    best, found = np.inf, None
    for chains in product(*(lists[group] for group in outer)):
        axes = dict(zip(outer, chains, strict=True))
        point: Point = tuple(axes.get(group, lists[group][0]) for group in range(len(GROUPS)))
        energy, changed = held.best_of(point, (second, first), (lists[second], lists[first]))
        if found is None or energy < best:
            best, found = energy, changed
    assert found is not None
    return best, found


def _all(held: Held, group: int) -> list[Axis]:
    """All chains of an axis."""
    space, loops = held.space, GROUPS[group]
    each = []
    for loop in loops:
        tiles = range(getattr(space.problem.extent, loop), 0, -1)
        each.append(list(combinations_with_replacement(tiles, space.columns[loop].chosen)))
    return list(product(*each))
