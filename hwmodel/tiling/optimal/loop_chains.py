"""Chains of the tiles of one loop, and which of them another matches or beats."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import pieces
from hwmodel.tiling.optimal.budget import ENTRIES, STEPS, Budget, TooMany
from hwmodel.tiling.optimal.compiled import is_compiled, kernel

__all__ = [
    "Box",
    "costs_of",
    "every_chain",
    "longer",
    "undominated",
    "useful_chains",
    "wastes_nothing",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
REMEMBERED = 5_000  # tiles below the first cut up to which a loop's chains are kept for reuse
MOST_STEPS = 10_000_000  # of a compiled list of chains
KNOWN = 6_000_000  # numbers of lists of chains that are remembered
COMPARED = 1000  # options that are compared with all others; what is left then is kept


class Box(NamedTuple):
    """Tiles of one loop that are looked at: of given classes, of not too many pieces."""

    extent: int
    least: Ints  # tile of every level
    largest: Ints
    fewest: Ints  # pieces at every level
    most: Ints


def wastes_nothing(box: Box, sums: Floats | None) -> bool:
    """Whether the smallest tiles make the fewest pieces, and nothing is better than fewest."""
    is_single = bool((box.least == box.largest).all())
    if sums is not None and not is_single:
        return False
    return bool(pieces(box.extent, box.least.tolist())[1:] == box.fewest.tolist())


def costs_of(cut: Ints, sums: Floats | None) -> Any:
    """Columns in which a chain of a loop must match another to be as good: its pieces.

    Where pieces of the reduction pay at some level, it is what they cost from each level inwards,
    sum_(j >= k) w_j P_j. The other reduction loops multiply w_k P_k by m_k, with m_1 <= m_2 ...;
    by Abel's summation the difference of two chains is sum_k (m_k - m_(k-1)) times that of these.
    """
    return cut if sums is None else (cut * sums)[:, ::-1].cumsum(axis=1)[:, ::-1]


def useful_chains(budget: Budget, box: Box, limit: int) -> tuple[Ints, Ints]:
    """The chains of a box, but for first cuts that are larger than others and save no piece."""
    tiles = tuple(zip(box.least.tolist(), box.largest.tolist(), strict=True))
    uncut = int((box.fewest == 1).sum())
    if uncut == len(tiles):
        return box.least[None], box.fewest[None]
    below = prod(largest - least + 1 for least, largest in tiles[uncut + 1 :])
    first = prod(largest - least + 1 for least, largest in tiles[uncut : uncut + 2])
    if below > REMEMBERED and first < below:  # few have so few pieces
        return every_chain(budget, box, limit)
    listed = _remembered_chains if below <= REMEMBERED else _cutting_chains
    chains, cut = listed(box.extent, tiles[uncut:], limit // 3)
    budget.spend(len(chains) / ENTRIES)  # as if none were remembered
    keep = cut[0] <= box.most[uncut]
    for number, most in zip(cut[1:], box.most[uncut + 1 :].tolist(), strict=True):
        keep = keep & (number <= most)
    whole = np.full((int(keep.sum()), uncut), box.extent)
    kept = [number[keep] for number in cut]
    return np.column_stack([whole, chains[keep]]), np.column_stack([np.ones_like(whole), *kept])


def _cutting_chains(
    extent: int, tiles: tuple[tuple[int, int], ...], limit: int
) -> tuple[Ints, tuple[Ints, ...]]:
    """Useful chains of tiles from least to largest, all of which cut the loop, and their pieces.

    The first tile t leaves q - 1 pieces of t and one of r = extent - (q - 1) t. A longer piece
    never has fewer pieces at any level below. So, for given tiles below, only those t are useful
    at which r falls to where a piece would begin: the least t that spares it.
    """
    low, high = tiles[0]
    full = -(-extent // low) - 1
    below = np.zeros((1, 0), np.int64)
    for least, largest in tiles[1:]:
        below = longer(limit, below, np.arange(least, largest + 1))
    first = np.full(len(below), low)
    found = [np.zeros((0, len(tiles)), np.int64)]
    while len(first):
        found.append(np.column_stack([first, below]))
        if sum(map(len, found)) > limit:
            raise TooMany
        spared = _begins(below, extent - full * first - 1)
        first = -(-(extent - spared) // full)
        keep = (first <= high) & (spared > 0)
        first, below = first[keep], below[keep]
    chains = np.concatenate(found)
    if len(tiles) > 1:
        chains = chains[chains[:, 1] <= chains[:, 0]]
    return chains, tuple(pieces(extent, list(chains.T))[1:])


_remembered_chains = lru_cache(maxsize=512)(_cutting_chains)  # nests often differ elsewhere


def _begins(tiles: Ints, position: Ints) -> Ints:
    """Return where the piece around `position` begins, cut by chains of tiles [chains, levels]."""
    rest = position
    for tile in tiles.T:
        rest = rest % tile
    return position - rest


def longer(limit: int, chains: Ints, tiles: Ints) -> Ints:
    """Every chain with every further tile within its last one."""
    if len(chains) * len(tiles) > limit:
        raise TooMany
    above = np.repeat(np.arange(len(chains)), len(tiles))
    longer = np.column_stack([chains[above], np.tile(tiles, len(chains))])
    return longer[longer[:, -1] <= longer[:, -2]] if longer.shape[1] > 1 else longer


def every_chain(budget: Budget, box: Box, limit: int) -> tuple[Ints, Ints]:
    """The falling chains of a box with few enough pieces, and their pieces [chains, levels]."""
    return (_compiled_chains if is_compiled() else _chains_in_arrays)(budget, box, limit)


class _Known:
    """Chains that were listed before, the latest of them: searches list most boxes many times."""

    def __init__(self, room: int) -> None:
        self._room = room  # of numbers that are kept
        self._listed: OrderedDict[Hashable, tuple[int, Ints, Ints, int]] = OrderedDict()

    def listed(self, box: Box, limit: int) -> tuple[int, Ints, Ints, int]:
        """How many chains there are, -1 of too many; they, their pieces, and the work of it."""
        ends = [np.asarray(x, np.int64) for x in (box.least, box.largest, box.most)]
        key = (box.extent, limit, *(x.tobytes() for x in ends))
        if key in self._listed:
            self._listed.move_to_end(key)
            return self._listed[key]
        chains, cut = (np.empty((limit, len(box.least)), np.int64) for _ in range(2))
        steps = min(STEPS * limit, MOST_STEPS)
        found, work = kernel("chains")(box.extent, *ends, steps, chains, cut)
        number = max(0, int(found))
        new = int(found), chains[:number].copy(), cut[:number].copy(), int(work)
        self._listed[key] = new
        self._room -= 2 * new[1].size
        while self._room < 0:
            _, (_, last, _, _) = self._listed.popitem(last=False)
            self._room += 2 * last.size
        return new


_known = _Known(KNOWN)


def _compiled_chains(budget: Budget, box: Box, limit: int) -> tuple[Ints, Ints]:
    found, chains, cut, work = _known.listed(box, limit)
    budget.spend(work / STEPS)  # as if none were remembered
    if found < 0:
        raise TooMany
    return chains, cut


def _chains_in_arrays(budget: Budget, box: Box, limit: int) -> tuple[Ints, Ints]:
    chains = cut = np.zeros((1, 0), np.int64)
    for i, (low, high) in enumerate(zip(box.least.tolist(), box.largest.tolist(), strict=True)):
        budget.spend(min(len(chains) * (high + 1 - low), limit) / ENTRIES)
        chains = longer(limit, chains, np.arange(low, high + 1))
        cut = np.column_stack(
            [np.broadcast_to(x, len(chains)) for x in pieces(box.extent, list(chains.T))[1:]]
        )
        keep = (cut <= box.most[: i + 1]).all(axis=1)
        chains, cut = chains[keep], cut[keep]
    return chains, cut


def undominated(budget: Budget, costs: Any) -> Any:
    """Rows of `costs` that no other row matches or beats in every column; of equals, one."""
    left = np.lexsort((np.arange(len(costs)), costs.sum(axis=1)))  # none beats an earlier one
    kept: list[int] = []
    while len(left) and len(kept) < COMPARED:
        budget.spend(len(left) / ENTRIES)
        kept.append(int(left[0]))
        left = left[(costs[left] < costs[left[0]]).any(axis=1)]
    return np.array([*kept, *left], dtype=np.int64)
