"""A lower bound that couples all levels: the least energy under sizes that need not be whole.

No mapping costs less than the sum of products of powers that `powers` makes of the energy. Its
least is found for each choice of what is held (`interior`).

Source: docs/chips.md, 'The search'.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.rows import products
from hwmodel.tiling.spatial.interior import Programme, solved
from hwmodel.tiling.spatial.powers import Former, Rows, Tables
from hwmodel.tiling.spatial.space import Space
from hwmodel.work.problem import Operand

__all__ = ["Relaxed", "relaxed"]

Floats = NDArray[np.float64]
Line = tuple[tuple[tuple[Hashable, float], ...], float]  # sum of factor * variable, at most
SMALL, ABOVE = 0.02, 0.05  # how far a first guess lies within what is allowed


class Relaxed(NamedTuple):
    """What is sure of one choice of what is held."""

    energy: float  # no mapping costs less [chip's unit]
    sizes: dict[str, tuple[float, ...]]  # of every loop, those that may be chosen, not whole


def relaxed(
    space: Space, choices: Sequence[tuple[Operand, ...]], *, apart: bool
) -> dict[tuple[Operand, ...], Relaxed]:
    """Return what is sure of every choice of what is held.

    Args:
        space: with groups one by one.
        apart: whether groups may lie side by side.
    """
    tables = Tables(space.axes)
    if not all(products(a.window, a.rule, a.outs, a.taps) for a in space.axes):
        return {held: _nothing(space) for held in choices}
    return {held: _relaxed(Former(space, held, tables, apart)) for held in choices}


def _relaxed(former: Former) -> Relaxed:
    found = former.energy()
    if found is None:
        return _nothing(former.space)
    paid, fixed = found
    if not paid:
        return _nothing(former.space)._replace(energy=max(0.0, fixed))
    sums = [*former.rooms()]
    lines: list[Line] = [(p.factors, -p.constant) for p in (*former.orders(), *former.spreads())]
    order = _order([*(p.factors for p, _ in paid), *(p.factors for s in sums for p in s)], lines)
    low, high = np.zeros(len(order)), np.zeros(len(order))
    for name, at in order.items():
        if not isinstance(name, Rows):
            high[at] = log(former.space.problem.extent._asdict()[name[0]])
    for name, at in order.items():
        if isinstance(name, Rows):
            planes = _planes(former, name)
            lines += planes
            ends = [
                (
                    sum(f * (low if f > 0 else high)[order[n]] for n, f in factors[1:]) - most,
                    sum(f * (high if f > 0 else low)[order[n]] for n, f in factors[1:]) - most,
                )
                for factors, most in planes
            ]
            low[at], high[at] = (max(end) for end in zip(*ends, strict=True))
    G, h = _matrix([factors for factors, _ in lines], order), np.array([m for _, m in lines])
    b = np.array([p.constant + log(weight) for p, weight in paid])
    shift = float(b.max())
    rooms = tuple(
        (_matrix([p.factors for p in s], order), np.array([p.constant for p in s])) for s in sums
    )
    programme = Programme(
        _matrix([p.factors for p, _ in paid], order), b - shift, G, h, rooms, low, high
    )
    result = solved(programme, _start(former, order, G, h))
    sizes = {
        loop: tuple(
            float(np.exp(result.at[order[key]])) if (key := former.key(loop, i)) in order else 1.0
            for i in range(columns.chosen)
        )
        for loop, columns in former.space.columns.items()
    }
    return Relaxed(max(0.0, fixed + float(np.exp(result.least + shift))), sizes)


def _order(several: Sequence[Any], lines: Sequence[Line]) -> dict[Any, int]:
    """Number the variables; those that rows depend on among them."""
    every = [*several, *(factors for factors, _ in lines)]
    names: dict[Any, None] = dict.fromkeys(name for factors in every for name, _ in factors)
    for name in list(names):
        if isinstance(name, Rows):
            names |= dict.fromkeys(key for key in (name.outs, name.taps) if key[1] >= 0)
    return {name: at for at, name in enumerate(names)}


def _planes(former: Former, name: Rows) -> list[Line]:
    """Rows are above each of their planes; the rows themselves come first in a line."""
    planes = former.tables.planes(name.which, name.kind)
    found: list[Line] = []
    for constant, slopes in zip(planes.constant, planes.slopes, strict=True):
        parts: list[tuple[Hashable, float]] = [(name, -1.0)]
        height = float(constant)
        for key, slope in zip((name.outs, name.taps), slopes, strict=True):
            size = former.of(key)
            parts += [(n, float(slope) * f) for n, f in size.factors]
            height += float(slope) * size.constant
        found.append((tuple(parts), -height))
    return found


def _nothing(space: Space) -> Relaxed:
    """Where nothing is known."""
    return Relaxed(0.0, {x: (1.0,) * c.chosen for x, c in space.columns.items()})


def _matrix(several: Sequence[Any], order: dict[Any, int]) -> Floats:
    found = np.zeros((len(several), len(order)))
    for row, factors in zip(found, several, strict=True):
        for name, factor in factors:
            row[order[name]] += factor
    return found


def _start(former: Former, order: dict[Any, int], G: Floats, h: Floats) -> Floats:
    """Sizes strictly within all orders: small ones, each a little below the one above it."""
    y, small = np.zeros(len(order)), SMALL
    n = former.space.problem.extent._asdict()
    keys: list[Any] = [name for name in order if not isinstance(name, Rows)]
    while True:
        for key in keys:
            places = sorted(place for loop, place in keys if loop == key[0])
            share = (len(places) - places.index(key[1])) / (len(places) + 1)
            y[order[key]] = small * log(n[key[0]]) * share
        for name, at in order.items():
            if isinstance(name, Rows):
                own = G[:, at] < 0
                y[at] += (G[own] @ y - h[own]).max() + ABOVE
        if (G @ y < h).all():
            return y
        small /= 2
