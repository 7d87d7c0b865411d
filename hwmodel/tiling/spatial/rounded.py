"""Whole sizes near sizes that need not be whole."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import comb, floor, log2

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.spatial.descent import Found, Held, Point
from hwmodel.tiling.spatial.space import GROUPS, Chosen, Space

__all__ = ["Sizes", "beside", "halved", "joined", "sizes_of", "within"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Sizes = dict[str, tuple[float, ...]]  # of every loop, as many as may be chosen
MOST = 300  # chains of an axis
WIDE, PART = 60, 0.3  # beginnings of chains that are gone on with: so many, or a part of all
NEAR = 1e-6  # of a whole number, that a size may be below it and count as it


def within(space: Space, sizes: Sizes) -> Point:
    """Return a mapping whose sizes are no larger, each a multiple of the size inside."""
    return tuple(
        tuple(_within(getattr(space.problem.extent, loop), sizes[loop]) for loop in loops)
        for loops in GROUPS
    )


def _within(length: int, sizes: tuple[float, ...]) -> Chosen:
    found: list[int] = []
    for size in reversed(sizes):
        inner = found[0] if found else 1
        found.insert(0, min(length, inner * max(1, floor(size / inner * (1 + NEAR)))))
    return tuple(found)


def beside(space: Space, sizes: Sizes, most: int = MOST) -> tuple[Ints, ...]:
    """Return chains of every axis near sizes [chain, size], the nearest first, at most so many."""
    lists = []
    for group, loops in enumerate(GROUPS):
        lengths = tuple(getattr(space.problem.extent, loop) for loop in loops)
        near = _nearest(lengths, tuple(sizes[loop] for loop in loops), most)
        few = len(space.thinned(group, near[:most]))
        lists.append(near[:few])
    return tuple(lists)


@lru_cache(maxsize=2**9)  # of some hundred chains each; axes of a problem are often alike
def _nearest(lengths: tuple[int, ...], sizes: tuple[tuple[float, ...], ...], most: int) -> Ints:
    """Chains of the loops of an axis near sizes, the nearest first [chain, size]."""
    some = most if len(lengths) == 1 else int(most**0.5) + 1
    wide = max(some, WIDE, int(PART * most))
    each = [_chains(*loop, wide) for loop in zip(lengths, sizes, strict=True)]
    if len(each) == 1:
        return each[0][0][:some]
    (first, far), (second, further) = ((chains[:some], x[:some]) for chains, x in each)
    one, other = np.indices((len(first), len(second))).reshape(2, -1)
    every = np.hstack([first[one], second[other]])
    near: Ints = every[np.lexsort([*every.T[::-1], far[one] + further[other]])]
    return near


def halved(space: Space, most: int) -> tuple[Ints, ...]:
    """Return chains of every axis of loops cut into 2, 4, 8 and more pieces, at most so many.

    Of two loops of an axis the shorter one is whole or cut into single elements.
    """
    lists = []
    for group, loops in enumerate(GROUPS):
        lengths = {loop: getattr(space.problem.extent, loop) for loop in loops}
        long = max(loops, key=lambda loop: lengths[loop])
        short = {
            x: _even(n, space.columns[x].chosen, 1, space.beat(x))
            for x, n in lengths.items()
            if x != long
        }
        left = most // max(1, *map(len, short.values())) if short else most
        even = _even(lengths[long], space.columns[long].chosen, left, space.beat(long))
        each = short | {long: even}
        chains = [sum(pair, ()) for pair in product(*(each[x] for x in loops))]
        rows = np.array(chains, np.int64).reshape(len(chains), -1)
        lists.append(space.thinned(group, rows))
    return tuple(lists)


def _even(length: int, chosen: int, most: int, beat: int) -> list[Chosen]:
    """Chains of a loop, at most so many, cut into powers of two, of four or of more pieces.

    Pieces are lengthened to multiples of `beat`.
    """
    times = 2
    while True:
        pieces = [times**i for i in range(int(log2(length) / log2(times)) + 1)]
        parts = [-(-length // k) for k in pieces]
        sizes = sorted({1, *(min(length, -(-n // beat) * beat) for n in parts)}, reverse=True)
        if len(sizes) <= 2 or comb(len(sizes) + chosen - 1, chosen) <= most:
            return list(combinations_with_replacement(sizes, chosen))
        times *= 2


def sizes_of(point: Point) -> Sizes:
    """Return the sizes of a mapping."""
    return {
        loop: tuple(map(float, chain))
        for loops, axis in zip(GROUPS, point, strict=True)
        for loop, chain in zip(loops, axis, strict=True)
    }


def joined(held: Held, point: Point, lists: tuple[Ints, ...]) -> Found:
    """Take the best chains of two axes at a time from lists, until nothing is better."""
    listed = []
    for group, (some, own) in enumerate(zip(lists, point, strict=True)):
        at, mine = held.places(group, some), held.place(group, own)
        listed.append(held.listed(group, at if (at == mine).any() else np.append(at, mine)))
    return held.best_of_lists(point, listed)


def _chains(length: int, sizes: tuple[float, ...], most: int) -> tuple[Ints, Floats]:
    """Chains near sizes [chain, size], the nearest first, and how far they are; at most so many.

    From the inside outwards each size is a multiple of the one before or an even part of the loop.
    """
    chains, far = np.ones((1, 1), np.int64), np.zeros(1)
    if length == 1:
        return np.ones((1, len(sizes)), np.int64), far
    if is_compiled():
        found: tuple[Ints, Floats] = kernel("chains.near")(length, np.array(sizes), most)
        return found
    for size in reversed(sizes):
        tiles = _tiles(length, chains[:, 0].copy(), size)
        further = far[:, None] + np.log(tiles / size) ** 2
        new = np.ones(tiles.shape, bool)
        new[:, 1:] = tiles[:, 1:] != tiles[:, :-1]
        of, which = np.nonzero(new)
        order = np.argsort(further[of, which], kind="stable")[:most]
        of, which = of[order], which[order]
        far = further[of, which]
        chains = np.column_stack([tiles[of, which], chains[of]])
    return chains[:, :-1], far


def _tiles(length: int, inner: Ints, size: float) -> Ints:
    """Whole sizes near one [chain, size], none smaller than the one further in; some twice."""
    times = np.maximum(1.0, size / inner)
    two, few = 2 ** np.floor(np.log2(times)).astype(np.int64), np.floor(times).astype(np.int64)
    multiples = np.stack([np.ones_like(few), few - 1, few, few + 1, few + 2, two, 2 * two], axis=1)
    parts = floor(length / size) + np.arange(3)
    even = -(-length // np.maximum(1, parts))
    tiles = np.minimum(length, inner[:, None] * np.maximum(1, multiples))
    return np.sort(np.hstack([tiles, np.maximum(inner[:, None], even)]), axis=1)
