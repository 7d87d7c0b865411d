"""Moves weight from a level to the one above it, where that raises the sum of their bounds.

Pieces of a level lie in pieces of the level above, so counts S, B, A, A R and R rise inwards.
With a multiplier of 0 or more, multiplier times (inner count - outer count) may be taken off the
energy, and each level bounded again. The sum of the bounds is concave in the multipliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.bounds import Weights
from hwmodel.tiling.optimal.listing import least
from hwmodel.tiling.optimal.nodes import Node, Part, Place
from hwmodel.tiling.optimal.tables import Classes
from hwmodel.tiling.pricing import added

__all__ = ["STEPS", "Shifted", "shifted"]

Floats = NDArray[np.float64]
STEPS = 14  # for orders that hold different operands; with one held little is gained
PATIENCE = 3  # steps without a better bound after which they are halved


class Shifted(NamedTuple):
    """Weights of every level that sum to no more than the energy, and the least of each."""

    weights: tuple[Weights, ...]
    parts: tuple[Part, ...]
    bound: float


def shifted(classes: Classes, node: Node, target: float, steps: int) -> Shifted:
    """Weights under which the root of an order has a high bound; at least its own.

    Steps along the subgradient, as long as what is missing to `target`, the best energy known.
    """
    levels = node.order.levels
    own = np.array([level.weights for level in levels], float)  # [levels, 6], the constant first
    best = Shifted(tuple(level.weights for level in levels), node.rest, node.bound)
    if len(levels) == 1 or any(part.place is None for part in node.rest):
        return best
    counts = np.array([_counts(classes, part.place) for part in node.rest])
    scale = np.maximum(np.maximum(counts[:-1], counts[1:]), 1.0)
    moved = np.zeros_like(scale)
    value, length, without = node.bound, 1.0, 0
    for _ in range(steps):
        slope = (counts[:-1] - counts[1:]) / scale
        norm = float((slope**2).sum())
        if norm == 0 or best.bound >= target or target == np.inf:
            break
        moved = moved + length * (target - value) / norm * slope / scale
        moved = _within(moved, own)
        weights = own.copy()
        weights[:-1, 1:] += moved
        weights[1:, 1:] -= moved
        weights[:, 1:] = np.maximum(weights[:, 1:], 0)
        each = tuple(Weights(*row) for row in weights.tolist())
        parts = tuple(
            Part(*least(classes, level, one, classes.whole))
            for level, one in zip(levels, each, strict=True)
        )
        value = float(added(part.energy for part in parts))
        if any(part.place is None for part in parts):
            break
        counts = np.array([_counts(classes, part.place) for part in parts])
        if value > best.bound:
            best, without = Shifted(each, parts, value), 0
        else:
            without += 1
        if without == PATIENCE:
            length, without = length / 2, 0
    return best


def _within(moved: Floats, own: Floats) -> Floats:
    """Multipliers [levels - 1, 5] of 0 or more that leave no weight below 0."""
    moved = np.maximum(moved, 0)
    for b in range(len(moved) - 1, -1, -1):
        inner = moved[b + 1] if b + 1 < len(moved) else 0.0
        moved[b] = np.minimum(moved[b], own[b + 1, 1:] + inner)
    return moved


def _counts(classes: Classes, place: Place | None) -> Floats:
    """S, B, A, A R and R of classes, in the order of the weights."""
    assert place is not None
    n, m, c, ho, wo, hf, wf = (
        pieces[i] for pieces, i in zip(classes.whole.pieces, place, strict=True)
    )
    axes = classes.axes
    R = axes[0][1][place[3], place[5]] * axes[1][1][place[4], place[6]]
    return np.array([c * hf * wf, n * ho * wo, m, m * R, R], float)
