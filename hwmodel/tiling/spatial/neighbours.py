"""Chains of an axis near a given one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.spatial.numbered import distinct
from hwmodel.tiling.spatial.space import GROUPS, Axis, Chosen, Space, candidates

__all__ = ["MOST", "TILES", "finer", "neighbours"]

TILES, FINE = 16, 120  # of a loop, that are tried for a size; for one size alone
SELDOM = 8  # of how many lists one is such as `finer` makes
MANY = 60  # chains with one size changed, of a loop with taps
MOST = 600  # chains of an axis that are looked at together
Ints = NDArray[np.int64]
Loop = tuple[int, int]  # how long, and of how many its pieces lie alike (`Space.beat`)


def neighbours(space: Space, group: int, axis: Axis, most: int = MOST) -> Ints:
    """Chains of an axis near one [chain, size]: two sizes of one loop are changed, or one of both.

    Args:
        most: so many are looked at, the nearest in kind first.
    """
    loops = tuple((getattr(space.problem.extent, x), space.beat(x)) for x in GROUPS[group])
    return space.thinned(group, _near(loops, axis, most))


def finer(space: Space, group: int, axis: Axis) -> Ints:
    """Chains of an axis with one size changed to any of many [chain, size]."""
    own = np.array([[size for chosen in axis for size in chosen]], np.int64)
    found, start = [own], 0
    for name, chosen in zip(GROUPS[group], axis, strict=True):
        loop = getattr(space.problem.extent, name), space.beat(name)
        found.append(_with(own, start, _changed(loop, chosen, 1, FINE)))
        start += len(chosen)
    return space.thinned(group, distinct(np.concatenate(found))[0], SELDOM)


@lru_cache(maxsize=2**8)  # of up to MOST chains each
def _near(loops: tuple[Loop, ...], axis: Axis, most: int) -> Ints:
    once = [_changed(loop, chosen, 1) for loop, chosen in zip(loops, axis, strict=True)]
    own = np.array([[size for chosen in axis for size in chosen]], np.int64)
    if len(axis) == 1:
        found = once[0][:most]
    elif len(once[0]) < MANY:
        one, other = np.divmod(np.arange(min(most, len(once[0]) * len(once[1]))), len(once[1]))
        found = np.hstack([once[0][one], once[1][other]])
    else:
        found = own
    start = 0
    for loop, chosen in zip(loops, axis, strict=True):
        if len(found) < most:
            more = _with(own, start, _changed(loop, chosen, 2))
            found = distinct(np.concatenate([found, more]))[0][:most]
        start += len(chosen)
    return found


def _with(own: Ints, start: int, changed: Ints) -> Ints:
    """A chain of an axis with those of one loop, whose sizes begin at a place, in turn."""
    found = np.tile(own, (len(changed), 1))
    found[:, start : start + changed.shape[1]] = changed
    return found


@lru_cache(maxsize=2**11)
def _changed(loop: Loop, chosen: Chosen, sizes: int, tiles: int = TILES) -> Ints:
    """Chains with one or two neighbouring sizes changed; the others are cut or widened to them.

    And to multiples of what is inside them, behind these.
    """
    length, _ = loop
    own = np.array(chosen, np.int64)
    outer = (length, *chosen[:-1])
    if is_compiled():
        tried = np.array([_padded(n, loop, tiles) for n in (length, *outer)], np.int64)
        listed: Ints = kernel("chains.changed")(own, length, tried, sizes, 2 * MOST)
        return listed
    found = own[None, :]
    for place in range(len(chosen) - sizes + 1):
        near = (chosen[place + i] + k for k in (1, -1) for i in range(sizes))
        every = {*_tried(length, loop, tiles), *near, *_tried(outer[place], loop, tiles)}
        falling = np.array(sorted((t for t in every if 0 < t <= length), reverse=True), np.int64)
        if sizes == 1:
            some = falling[:, None]
        else:
            some = np.stack([falling[at] for at in np.triu_indices(len(falling))], axis=1)
        chains = np.tile(own, (len(some), 1))
        chains[:, place : place + sizes] = some
        np.maximum(chains[:, :place], some[:, :1], out=chains[:, :place])
        after = chains[:, place + sizes :]
        np.minimum(after, some[:, -1:], out=after)
        found = distinct(np.concatenate([found, chains]))[0]
        if len(found) >= 2 * MOST:
            break
    return _with_multiples(length, found)


def _with_multiples(length: int, chains: Ints) -> Ints:
    """Chains, and the same with every size a multiple of the one inside, or the whole loop."""
    even = chains.copy()
    for at in range(even.shape[1] - 2, -1, -1):
        inner = even[:, at + 1]
        multiple = np.maximum(1, even[:, at] // inner) * inner
        even[:, at] = np.where(chains[:, at] == length, length, multiple)
    new = (even != chains).any(axis=1)
    return distinct(np.concatenate([chains, even[new]]))[0] if new.any() else chains


def _tried(outer: int, loop: Loop, most: int) -> tuple[int, ...]:
    """Tiles that are tried within one: those that cut it evenly, but for 1 in whole beats."""
    (length, beat), tiles = loop, candidates(outer, most)
    return tuple(min(length, -(-tile // beat) * beat if tile > 1 else 1) for tile in tiles)


@lru_cache(maxsize=2**14)
def _padded(outer: int, loop: Loop, most: int) -> tuple[int, ...]:
    """The tiles that are tried, and zeros behind them."""
    tiles = _tried(outer, loop, most)
    return (*tiles, *[0] * (most - len(tiles)))
