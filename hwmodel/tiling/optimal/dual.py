"""Moves weight from a level to the one above it, where that raises the sum of their bounds.

Pieces of a level lie in pieces of the level above, so counts S, B, A, A R and R rise inwards.
With a multiplier of 0 or more, multiplier times (inner count - outer count) may be taken off the
energy, and each level bounded again. The sum of the bounds is concave in the multipliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.bounds import Level, Weights
from hwmodel.tiling.optimal.budget import STEPS as BUDGET_STEPS
from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.optimal.listing import CALL, MOST_WORK, REDUCTION, check, least
from hwmodel.tiling.optimal.nodes import Node, Part, Place, term, weights_below
from hwmodel.tiling.optimal.tables import Classes, Tables
from hwmodel.tiling.pricing import added

__all__ = ["STEPS", "Shifted", "added_weights", "shifted"]

Floats = NDArray[np.float64]
STEPS = 14  # for orders that hold different operands; with one held little is gained
PATIENCE = 3  # steps without a better bound after which they are halved


class Shifted(NamedTuple):
    """Weights of the levels below a node that sum to no more than the energy; the least of each."""

    weights: tuple[Weights, ...]
    parts: tuple[Part, ...]
    bound: float
    multipliers: Floats  # [levels - 1, 5]


def shifted(
    classes: Classes, node: Node, target: float, steps: int, start: Floats | None = None
) -> Shifted:
    """Weights under which a node has a high bound; at least its own.

    Steps along the subgradient, as long as what is missing to `target`, the best energy known.

    Args:
        start: multipliers that are tried first.
    """
    levels = node.order.levels[len(node.chosen) :]
    first = weights_below(levels[0], node.chosen, node.crossing)
    each = (first, *(level.weights for level in levels[1:]))
    own = np.array(each, float)  # [levels, 6], the constant first
    none = np.zeros((len(levels) - 1, 5))
    best = Shifted(each, node.rest, node.bound, none)
    if len(levels) == 1 or any(part.place is None for part in node.rest):
        return best
    if is_compiled():
        return _compiled(classes, node, own, target, steps, start)
    counts = np.array([_counts(classes, node.tables, part.place) for part in node.rest])
    scale = np.maximum(np.maximum(counts[:-1], counts[1:]), 1.0)
    now, length, without = best, 1.0, 0
    for step in range(steps):
        slope = (counts[:-1] - counts[1:]) / scale
        norm = float(added((slope**2).ravel().tolist()))
        if norm == 0 or best.bound >= target or target == np.inf:
            break
        moved = now.multipliers + length * (target - now.bound) / norm * slope / scale
        if step == 0 and start is not None and start.any():
            moved = start
        now = _moved(classes, node, own, moved, now.parts)
        if any(part.place is None for part in now.parts):
            break
        counts = np.array([_counts(classes, node.tables, part.place) for part in now.parts])
        best, without = (now, 0) if now.bound > best.bound else (best, without + 1)
        if without == PATIENCE:
            length, without = length / 2, 0
    return best


def _compiled(
    classes: Classes, node: Node, own: Floats, target: float, steps: int, start: Floats | None
) -> Shifted:
    """`shifted`, compiled."""
    levels = node.order.levels[len(node.chosen) :]
    reductions = check(classes, node.tables) if steps else 0
    rooms = [level.room_table for level in levels]
    energies = np.array([part.energy for part in node.rest])
    places = np.array([part.place for part in node.rest], np.int64)
    best = (
        np.empty(own.shape),
        np.empty(len(own)),
        np.empty_like(places),
        np.empty((len(own) - 1, 5)),
    )
    bound, walks, work = kernel("shift")(
        classes.flat,
        (node.tables.flat, node.tables.first, node.tables.rows),
        classes.axes,
        classes.axes,
        (np.concatenate(rooms), np.cumsum([0, *map(len, rooms)])),
        own,
        (float(node.done), energies, places),
        (float(target), steps, PATIENCE),
        np.zeros(best[3].shape) if start is None else start,
        best,
        MOST_WORK + REDUCTION * reductions,
        classes.arrays,
    )
    classes.space.budget.spend(walks * CALL[0] + work / BUDGET_STEPS)
    weights = tuple(Weights(*map(float, row)) for row in best[0])
    parts = tuple(
        Part(float(energy), tuple(map(int, place)))
        for energy, place in zip(best[1], best[2], strict=True)
    )
    return Shifted(weights, parts, bound, best[3])


def _moved(
    classes: Classes, node: Node, own: Floats, multipliers: Floats, before: tuple[Part, ...]
) -> Shifted:
    """The levels below a node under multipliers; `before`: under others."""
    multipliers = _within(multipliers, own)
    weights = own.copy()
    weights[:-1, 1:] += multipliers
    weights[1:, 1:] -= multipliers
    weights[:, 1:] = np.maximum(weights[:, 1:], 0)
    each = tuple(Weights(*row) for row in weights.tolist())
    levels = node.order.levels[len(node.chosen) :]
    parts = tuple(
        _least(classes, level, one, node, part.place)
        for level, one, part in zip(levels, each, before, strict=True)
    )
    bound = node.done + float(added(part.energy for part in parts))
    return Shifted(each, parts, bound, multipliers)


def _least(
    classes: Classes, level: Level, weights: Weights, node: Node, place: Place | None
) -> Part:
    """The least energy of a level below a node, from classes that are likely to have it."""
    there = None
    if place is not None:
        there = term(classes, level, weights, node.tables, place)
    if there is None:
        return Part(*least(classes, level, weights, node.tables))
    found = Part(*least(classes, level, weights, node.tables, there))
    return Part(min(found.energy, there), place) if found.place is None else found


def added_weights(multipliers: Floats) -> Floats:
    """What multipliers [levels - 1, 5] add to weights [levels, 6]; empty if nothing."""
    found = np.zeros((len(multipliers) + 1, 6))
    found[:-1, 1:] += multipliers
    found[1:, 1:] -= multipliers
    return found if multipliers.any() else found[:0]


def _within(moved: Floats, own: Floats) -> Floats:
    """Multipliers [levels - 1, 5] of 0 or more that leave no weight below 0."""
    moved = np.maximum(moved, 0)
    for b in range(len(moved) - 1, -1, -1):
        inner = moved[b + 1] if b + 1 < len(moved) else 0.0
        moved[b] = np.minimum(moved[b], own[b + 1, 1:] + inner)
    return moved


def _counts(classes: Classes, tables: Tables, place: Place | None) -> Floats:
    """S, B, A, A R and R of classes, in the order of the weights."""
    assert place is not None
    n, m, c, ho, wo, hf, wf = (pieces[i] for pieces, i in zip(tables.pieces, place, strict=True))
    height, width = classes.axes
    rows = max(height[1, place[3], place[5]], tables.rows[0])
    R = rows * max(width[1, place[4], place[6]], tables.rows[1])
    return np.array([c * hf * wf, n * ho * wo, m, m * R, R], float)
