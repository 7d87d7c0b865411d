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
from hwmodel.tiling.spatial.counts import Tables
from hwmodel.tiling.spatial.interior import Programmes, solved
from hwmodel.tiling.spatial.powers import Former
from hwmodel.tiling.spatial.products import Least, Power, Rows
from hwmodel.tiling.spatial.space import Space
from hwmodel.work.problem import Operand

__all__ = ["Relaxed", "relaxed", "sure"]

Floats = NDArray[np.float64]
Line = tuple[tuple[tuple[Hashable, float], ...], float]  # sum of factor * variable, at most
SMALL, ABOVE = 0.02, 0.05  # how far a first guess lies within what is allowed
FURTHER = 0.5  # above all rows, which no bound needs, but a variable without use must end


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
    return dict(zip(choices, sure([Former(space, x, tables, apart) for x in choices]), strict=True))


def sure(formers: Sequence[Former]) -> list[Relaxed]:
    """Return what is sure of each of several energies of one space."""
    space = formers[0].space
    found = [_nothing(space)] * len(formers)
    if not all(products(a.window, a.rule, a.outs, a.taps) for a in space.axes):
        return found
    open_: dict[int, _Open] = {}
    for i, former in enumerate(formers):
        energy = former.energy()
        paid, fixed = energy or ([], 0.0)
        found[i] = found[i]._replace(energy=max(0.0, fixed))
        if paid:
            always = [(Power(0.0, ()), fixed)] if fixed > 0 else []
            open_[i] = _Open(former, [*paid, *always], min(0.0, fixed))
    for i, one in zip(open_, _solved([*open_.values()]), strict=True):
        found[i] = one
    return found


class _Open(NamedTuple):
    """A choice of what is held whose energy depends on the sizes."""

    former: Former
    paid: list[tuple[Power, float]]  # products of powers and their weights
    saved: float  # in any case; not above 0


def _solved(several: Sequence[_Open]) -> list[Relaxed]:
    """Solve the programmes of several energies together."""
    if not several:
        return []
    one = several[0].former
    apart = several[:1] if one.alike else several
    own: list[list[Line]] = [[(p.factors, -p.constant) for p in x.former.orders()] for x in apart]
    lines: list[Line] = [(p.factors, -p.constant) for p in one.spreads()]
    rooms = [list(x.former.rooms()) for x in several]
    every = [p.factors for x in several for p, _ in x.paid]
    every += [p.factors for each in rooms for s in each for p in s]
    order = _order(every, [line for some in (lines, *own) for line in some])
    low, high = np.zeros(len(order)), np.zeros(len(order))
    for name, at in order.items():
        if not isinstance(name, (Rows, Least)):
            high[at] = log(one.space.problem.extent._asdict()[name[0]])
    for name, at in order.items():
        if isinstance(name, (Rows, Least)):
            planes = _planes(one, name)
            ends = [
                (
                    sum(f * (low if f > 0 else high)[order[n]] for n, f in factors[1:]) - most,
                    sum(f * (high if f > 0 else low)[order[n]] for n, f in factors[1:]) - most,
                )
                for factors, most in planes
            ]
            low[at], high[at] = (max(end) for end in zip(*ends, strict=True))
            lines += [*planes, (((name, 1.0),), high[at] + FURTHER)]
    bounds = [[*some, *lines] for some in own]
    G = np.array([_matrix([factors for factors, _ in some], order) for some in bounds])
    h = np.array([[most for _, most in some] for some in bounds])
    A, b = _padded([[(p, log(weight)) for p, weight in x.paid] for x in several], order)
    shift = float(b.max())  # one for all, so that they compare
    R, r = _padded([[(p, 0.0) for p in s] for each in rooms for s in each], order)
    shape = len(several), len(rooms[0])
    programmes = Programmes(
        A, b - shift, G, h, R.reshape(*shape, *R.shape[1:]), r.reshape(*shape, *r.shape[1:]),
        low, high,
    )  # fmt: skip
    saved = np.array([x.saved for x in several])
    starts = [_start(x.former, order, *ends) for x, *ends in zip(several, G, h, strict=False)]
    result = solved(programmes, np.array(starts), saved * np.exp(-shift))
    least = np.exp(result.least + shift)
    return [
        Relaxed(max(0.0, x.saved + float(energy)), _sizes(one, order, at))
        for x, energy, at in zip(several, least, result.at, strict=True)
    ]


def _sizes(former: Former, order: dict[Any, int], at: Floats) -> dict[str, tuple[float, ...]]:
    """The sizes of every loop that may be chosen; 1 where nothing depends on one."""
    return {
        loop: tuple(
            float(np.exp(at[order[key]])) if (key := former.key(loop, i)) in order else 1.0
            for i in range(columns.chosen)
        )
        for loop, columns in former.space.columns.items()
    }


def _padded(
    several: Sequence[Sequence[tuple[Power, float]]], order: dict[Any, int]
) -> tuple[Floats, Floats]:
    """Matrices of as many terms each, and constants: minus infinity of one that is not there.

    Args:
        several: lists of terms, each with what is added to its constant.
    """
    most = max((len(terms) for terms in several), default=0)
    A = np.zeros((len(several), max(most, 1), len(order)))
    b = np.full(A.shape[:2], -np.inf)
    for i, terms in enumerate(several):
        A[i, : len(terms)] = _matrix([p.factors for p, _ in terms], order)
        b[i, : len(terms)] = [p.constant + more for p, more in terms]
    return A, b


def _order(several: Sequence[Any], lines: Sequence[Line]) -> dict[Any, int]:
    """Number the variables; those that rows depend on among them."""
    every = [*several, *(factors for factors, _ in lines)]
    names: dict[Any, None] = dict.fromkeys(name for factors in every for name, _ in factors)
    for name in list(names):
        if isinstance(name, Rows):
            names |= dict.fromkeys(key for key in (name.outs, name.taps) if key[1] >= 0)
        if isinstance(name, Least):
            names |= dict.fromkeys(key for one in name.products for key, _ in one.factors)
    return {name: at for at, name in enumerate(names)}


def _planes(former: Former, name: Rows | Least) -> list[Line]:
    """Rows are above each of their planes; the rows themselves come first in a line."""
    if isinstance(name, Least):
        return [(((name, -1.0), *one.factors), -one.constant) for one in name.products]
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
    small = SMALL
    n, shares = former.space.problem.extent._asdict(), np.zeros(len(order))
    keys: list[Any] = [name for name in order if not isinstance(name, (Rows, Least))]
    for loop in n:
        mine = sorted((key for key in keys if key[0] == loop), key=former.outside)
        for i, key in enumerate(mine):
            shares[order[key]] = log(n[loop]) * (len(mine) - i) / (len(mine) + 1)
    while True:
        y = small * shares
        for name, at in order.items():
            if isinstance(name, (Rows, Least)):
                own = G[:, at] < 0
                y[at] += (G[own] @ y - h[own]).max() + ABOVE
        if (G @ y < h).all():
            return y
        small /= 2
