"""A small space of mappings, walked whole."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np

from hwmodel.tiling.spatial.descent import Axis, Held, Point
from hwmodel.tiling.spatial.space import GROUPS

__all__ = ["best_of_all"]


def best_of_all(held: Held) -> tuple[float, Point]:
    """Return the best of all mappings of whole tiles; rows and columns in one product."""
    lists = [_all(held, group) for group in range(len(GROUPS))]
    best, found = np.inf, None
    for outer in product(*lists[:3]):
        point: Point = (*outer, lists[3][0], lists[4][0])
        energy, changed = held.best_of(point, (3, 4), (lists[3], lists[4]))
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
