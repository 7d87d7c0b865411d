"""Chains of the tiles of an axis: outputs and taps, with the rows of I that they load and store."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import pieces
from hwmodel.tiling.optimal.bounds import Axis, Chains, Space
from hwmodel.tiling.optimal.budget import TooMany
from hwmodel.tiling.optimal.chain_rows import chain_rows, pair_cost, summed_rows
from hwmodel.tiling.optimal.loop_chains import (
    Box,
    costs_of,
    every_chain,
    longer,
    undominated,
    useful_chains,
    wastes_nothing,
)
from hwmodel.tiling.rows import most_rows
from hwmodel.work.problem import Window

__all__ = ["Options", "axis_options"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
FEW_CHAINS = 5000  # of one loop that are listed at once
KEPT = 200_000  # of an axis that are remembered
LISTED = 4  # numbers of a list that a pair of chains of an axis takes


class Options(NamedTuple):
    """Ways to tile the loops of N, M, C or of an axis: one row an option, one column a level."""

    tiles: tuple[Ints, ...]  # of each loop
    pieces: tuple[Ints, ...]
    loaded: Ints | None = None  # rows of I
    stored: Ints | None = None


def axis_options(
    space: Space,
    of: tuple[Window, Axis, int],
    at: tuple[Ints, Ints],
    boxes: tuple[Box, Box],
    sums: Floats | None,
    useful: Callable[[Options], Any],
) -> Options:
    """Chains of outputs and taps of one axis with the rows that they load and store.

    Args:
        of: the axis; and the rows of the whole.
        at: places of the classes of outputs and of taps.
        boxes: outputs and taps.
        sums: what pieces of the taps cost at every level, if they pay at one (`sum_weights`).
        useful: says which options may be of a tiling that is cheap enough.
    """
    (window, axis, whole), (outs, taps) = of, boxes
    if wastes_nothing(outs, None) and wastes_nothing(taps, sums):
        out, tap = outs.least[None], taps.least[None]
        loaded = chain_rows(space.rule, window, outs.extent, taps.extent, out, tap)
        if (loaded[0] == axis.rows[at]).all():
            cut = outs.fewest[None], taps.fewest[None]
            return Options((out, tap), cut, loaded, axis.room[at][None])
    by_out = axis.by_out if (taps.fewest == 1).all() else None
    by_tap = axis.by_tap if (outs.fewest == 1).all() else None
    anew = by_tap if by_out is None else by_out
    together = anew is not None and anew.ndim == 1  # then rows are a sum over cuts, quickly made
    cost = pair_cost(space.rule, window, outs.extent, taps.extent, anew)
    limit = int(space.limit / max(cost / 10, 1))
    if anew is not None and anew.ndim == 2:
        found = _stepwise(space, of, at, boxes, (limit // LISTED, cost), useful)
        return _undominated_of(space, found, sums, limit // 100)
    (out, out_cut), (tap, tap_cut) = (
        (useful_chains if is_even else every_chain)(space.budget, box, limit)
        for box, is_even in ((outs, _even(by_out)), (taps, _even(by_tap) and sums is None))
    )
    if len(out) * len(tap) > limit // LISTED:
        raise TooMany
    i, k = np.indices((len(out), len(tap))).reshape(2, -1)
    if not len(i):
        return Options((out[i], tap[k]), (out_cut[i], tap_cut[k]))
    space.budget.spend(len(i) * cost)
    if by_out is not None:
        loaded = summed_rows(axis, by_out, out, out_cut)
    elif by_tap is not None:
        loaded = summed_rows(axis, by_tap, tap, tap_cut)
    else:
        loaded = chain_rows(space.rule, window, outs.extent, taps.extent, out, tap)
    found = Options(
        (out[i], tap[k]),
        (out_cut[i], tap_cut[k]),
        loaded,
        most_rows(window, space.rule, whole, out[i], tap[k]),
    )
    found = _kept(found, np.flatnonzero(useful(found)))
    return _undominated_of(space, found, sums, limit // (30 if together else 100))


def _undominated_of(space: Space, found: Options, sums: Floats | None, limit: int) -> Options:
    """The options of an axis that no other matches or beats. Raises: TooMany."""
    assert found.loaded is not None
    if len(found.loaded) > limit:
        raise TooMany
    costs = [*found.tiles, found.pieces[0], costs_of(found.pieces[1], sums), found.loaded]
    return _kept(found, undominated(space.budget, np.column_stack(costs)))


def _stepwise(
    space: Space,
    of: tuple[Window, Axis, int],
    at: tuple[Ints, Ints],
    boxes: tuple[Box, Box],
    work: tuple[int, float],
    useful: Callable[[Options], Any],
) -> Options:
    """Chains of an axis of which one loop is not cut: level by level, those that may be cheap.

    Args:
        work: chains that may be listed, and what each costs [tilings].
        useful: as of `axis_options`; of levels that are not chosen yet it is told what is least.
    """
    axis, (limit, cost), side = of[1], work, _cut_side(boxes)
    box, other = boxes[side], boxes[1 - side]
    rows, room = axis.rows[at], axis.room[at]
    ranges = [np.arange(low, high + 1) for low, high in zip(box.least, box.largest, strict=True)]
    depth = len(ranges)
    found, known = None, np.zeros((1, 0), np.int64)
    for level in range(1 if prod(map(len, ranges)) > FEW_CHAINS else depth, depth + 1):
        chains = _with_rows(space, of, boxes, limit, known, ranges[known.shape[1] : level])
        space.budget.spend(len(chains.tiles) * cost)
        few = np.flatnonzero((chains.pieces <= box.most[:level]).all(axis=1))
        known, pieces_of, loaded, stored = (numbers[few] for numbers in chains)
        tiles = _before(known, box.least), np.broadcast_to(other.least, (len(few), depth))
        parts = _before(pieces_of, box.fewest), np.broadcast_to(other.fewest, (len(few), depth))
        if side:
            tiles, parts = tiles[::-1], parts[::-1]
        found = Options(tiles, parts, _before(loaded, rows), _before(stored, room))
        keep = np.flatnonzero(useful(found))
        found, known = _kept(found, keep), known[keep]
        if not len(keep):
            break
    assert found is not None
    return found


def _cut_side(boxes: tuple[Box, Box]) -> int:
    """Which of outputs and taps is cut, where one of them is not."""
    return 0 if (boxes[1].fewest == 1).all() else 1


def _with_rows(
    space: Space,
    of: tuple[Window, Axis, int],
    boxes: tuple[Box, Box],
    limit: int,
    known: Ints,
    more: list[Ints],
) -> Chains:
    """Chains with further tiles, and rows. Raises: TooMany.

    Lists of all levels at once are remembered: nests often differ elsewhere.
    """
    (window, axis, whole), side = of, _cut_side(boxes)
    key = np.array([[x[0], x[-1]] for x in more]).tobytes() + bytes([side, known.shape[1]])
    if key in axis.listed and not known.shape[1]:
        return axis.listed[key]
    chains, anew = known, axis.by_tap if side else axis.by_out
    assert anew is not None
    for tiles in more:
        chains = longer(limit, chains, tiles)
    number = pieces(boxes[side].extent, list(chains.T))[1:]
    cut = np.column_stack([np.broadcast_to(x, len(chains)) for x in number])
    pair = chains, np.broadcast_to(boxes[1 - side].least[: chains.shape[1]], chains.shape)
    stored = most_rows(window, space.rule, whole, *(pair[::-1] if side else pair))
    found = Chains(chains, cut, summed_rows(axis, anew, chains, cut), stored)
    if not known.shape[1]:
        if sum(len(one.tiles) for one in axis.listed.values()) > KEPT:
            axis.listed.clear()
        axis.listed[key] = found
    return found


def _before(known: Ints, rest: Ints) -> Ints:
    """Columns that are known, and those of the levels that are left [chains, levels]."""
    left = rest[known.shape[1] :]
    return np.column_stack([known, np.broadcast_to(left, (len(known), len(left)))])


def _even(anew: Ints | None) -> bool:
    """Whether every cut loads the same anew, so that rows depend on the number of pieces alone."""
    return anew is not None and anew.ndim == 1 and bool((anew == anew[:1]).all())


def _kept(options: Options, keep: Any) -> Options:
    assert options.loaded is not None and options.stored is not None
    return Options(
        tuple(tiles[keep] for tiles in options.tiles),
        tuple(numbers[keep] for numbers in options.pieces),
        options.loaded[keep],
        options.stored[keep],
    )
