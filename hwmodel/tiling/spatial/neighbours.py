"""Chains of an axis near a given one."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice, product

import numpy as np

from hwmodel.tiling.spatial.space import GROUPS, Space, candidates

__all__ = ["MOST", "TILES", "Axis", "Chosen", "neighbours"]

TILES = 16  # of a loop, that are tried for a size
MANY = 60  # chains with one size changed, of a loop with taps
MOST = 600  # chains of an axis that are looked at together
Chosen = tuple[int, ...]  # sizes of a loop's chain that are free
Axis = tuple[Chosen, ...]  # of the loops of an axis


def neighbours(space: Space, group: int, axis: Axis, most: int = MOST) -> tuple[Axis, ...]:
    """Chains of an axis near one: two sizes of one loop are changed, or one of both.

    Args:
        most: so many are looked at, the nearest in kind first.
    """
    lengths = tuple(getattr(space.problem.extent, loop) for loop in GROUPS[group])
    return tuple(space.thinned(group, _near(lengths, axis, most)))


@lru_cache(maxsize=2**8)  # of up to MOST chains each
def _near(lengths: tuple[int, ...], axis: Axis, most: int) -> tuple[Axis, ...]:
    once = [_changed(n, chosen, 1) for n, chosen in zip(lengths, axis, strict=True)]
    found = dict.fromkeys(product(*once)) if len(axis) == 1 or len(once[0]) < MANY else {axis: None}
    for i, (n, chosen) in enumerate(zip(lengths, axis, strict=True)):
        if len(found) < most:
            chains = _changed(n, chosen, 2)
            found |= dict.fromkeys((*axis[:i], chain, *axis[i + 1 :]) for chain in chains)
    return tuple(islice(found, most))


@lru_cache(maxsize=2**11)
def _changed(length: int, chosen: Chosen, sizes: int) -> tuple[Chosen, ...]:
    """Chains with one or two neighbouring sizes changed; the others are cut or widened to them."""
    found = {chosen: None}
    own = np.array(chosen, np.int64)
    for place in range(len(chosen) - sizes + 1):
        tiles = [(*candidates(length, TILES), *(chosen[place + i] + k for k in (1, -1)
                 for i in range(sizes)))]  # fmt: skip
        outer = chosen[place - 1] if place else length
        tried = sorted({t for t in (*tiles[0], *candidates(outer, TILES)) if 0 < t <= length})
        falling = np.array(tried[::-1], np.int64)
        if sizes == 1:
            some = falling[:, None]
        else:
            some = np.stack([falling[at] for at in np.triu_indices(len(falling))], axis=1)
        chains = np.tile(own, (len(some), 1))
        chains[:, place : place + sizes] = some
        np.maximum(chains[:, :place], some[:, :1], out=chains[:, :place])
        after = chains[:, place + sizes :]
        np.minimum(after, some[:, -1:], out=after)
        found |= dict.fromkeys(map(tuple, chains.tolist()))
        if len(found) >= 2 * MOST:
            break
    return tuple(found)
