"""A lower bound that couples all levels: the least energy under sizes that need not be whole.

No mapping costs less than the sum of products of powers that `powers` makes of the energy. Its
least is found for each choice of what is held (`interior`).

Source: docs/chips.md, 'The search'.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from math import inf, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.rows import products
from hwmodel.tiling.spatial.boxes import Box, Line, is_empty, pieces, times_bounded, within
from hwmodel.tiling.spatial.interior import Outside, Programmes, inside, solved
from hwmodel.tiling.spatial.minorants import Part
from hwmodel.tiling.spatial.powers import Former
from hwmodel.tiling.spatial.products import ONE, WHOLE, Key, Least, Pieces, Power, Rows
from hwmodel.tiling.spatial.space import Space

__all__ = ["Energies", "Point", "Relaxed", "part_of", "sure"]

Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]  # the least and the most of every variable
SMALL, ABOVE = 0.02, 0.05  # how far a first guess lies within what is allowed
SMALLEST = 1e-9
BESIDE = 1e-3  # above and below its least and most that a size is let, in logarithms
FURTHER = 0.5  # above all rows, which no bound needs, but a variable without use must end


NOWHERE: Mapping[Hashable, float] = {}


class Relaxed(NamedTuple):
    """What is sure of one choice of what is held."""

    energy: float  # no mapping costs less [chip's unit]
    sizes: dict[str, tuple[float, ...]]  # of every loop, those that may be chosen, not whole


class Point(NamedTuple):
    """Where the energy of a choice is least."""

    relaxed: Relaxed
    at: dict[Hashable, float]  # logarithms of sizes and of rows
    shares: dict[Rows | Pieces, float]  # of the energy that rises with rows, and with pieces
    full: dict[Hashable, float]  # share of a loop that surely lies in full pieces of a size


def sure(formers: Sequence[Former]) -> list[Relaxed]:
    """Return what is sure of each of several energies of one space."""
    return [one.relaxed for one in Energies(formers).points({})]


class _Open(NamedTuple):
    """A choice of what is held whose energy depends on the sizes."""

    former: Former
    paid: list[tuple[Power, float]]  # products of powers and their weights
    saved: float  # in any case; not above 0


class _Terms(NamedTuple):
    """Programmes without what depends on the tiles that are looked at."""

    order: dict[Any, int]  # of variables
    pieces: dict[Pieces, int]  # that are none
    lines: list[list[Line]]  # bounds [1 or programme], without those of rows and of single sizes
    A: Floats
    P: Floats  # as A, of pieces
    b: Floats
    R: Floats
    r: Floats
    shift: float  # that b is lowered by, the same for all, so that they compare


class _Bounded(NamedTuple):
    """What depends on the tiles that are looked at."""

    lines: list[Line]  # bounds of rows, of single sizes, of how often one goes into another
    sides: Sides
    powers: Floats  # of pieces [pieces, variable]
    constants: Floats
    full: dict[Hashable, float]  # see `Point`


class Energies:
    """Energies of several choices of what is held in one space, made ready to be minimised."""

    def __init__(self, formers: Sequence[Former]) -> None:
        self._space = formers[0].space
        self._sure = [Point(_nothing(self._space), {}, {}, {})] * len(formers)
        self._open: dict[int, _Open] = {}
        if not all(products(a.window, a.rule, a.outs, a.taps) for a in self._space.axes):
            return
        for i, former in enumerate(formers):
            energy = former.energy()
            paid, fixed = energy or ([], 0.0)
            relaxed = self._sure[i].relaxed._replace(energy=max(0.0, fixed))
            self._sure[i] = Point(relaxed, {}, {}, {})
            if paid:
                always = [(Power(0.0, ()), fixed)] if fixed > 0 else []
                self._open[i] = _Open(former, [*paid, *always], min(0.0, fixed))

    def points(self, box: Box, near: Mapping[Hashable, float] = NOWHERE) -> list[Point]:
        """Return what is sure of each, and where it is least.

        Args:
            box: least and most of some sizes that may be chosen, if only some mappings are looked
                at.
            near: where bounds of pieces should be high, of all variables; or nowhere.
        """
        found = list(self._sure)
        if self._open:
            for i, one in zip(self._open, self._solved(box, near), strict=True):
                found[i] = one
        return found

    @cached_property
    def _terms(self) -> _Terms:
        several = [*self._open.values()]
        one = several[0].former
        apart = several[:1] if one.alike else several
        spreads: list[Line] = [(p.factors, -p.constant) for p in one.spreads()]
        lines = [[*((p.factors, -p.constant) for p in x.former.orders()), *spreads] for x in apart]
        rooms = [list(x.former.rooms()) for x in several]
        every = [p.factors for x in several for p, _ in x.paid]
        every += [p.factors for each in rooms for s in each for p in s]
        order, pieces = _order(every, [line for some in lines for line in some])
        columns = order | {name: len(order) + at for name, at in pieces.items()}
        A, b = _padded([[(p, log(weight)) for p, weight in x.paid] for x in several], columns)
        A, P = A[..., : len(order)], A[..., len(order) :]
        R, r = _padded([[(p, 0.0) for p in s] for each in rooms for s in each], order)
        shape, shift = (len(several), len(rooms[0])), float(b.max())
        return _Terms(
            order, pieces, lines, A, P, b - shift,
            R.reshape(*shape, *R.shape[1:]), r.reshape(*shape, *r.shape[1:]), shift,
        )  # fmt: skip

    @cached_property
    def _lengths(self) -> dict[str, int]:
        return self._space.problem.extent._asdict()

    @cached_property
    def _chains(self) -> dict[str, list[Key]]:
        """Sizes of every loop that may be chosen, the outermost first."""
        former = next(iter(self._open.values())).former
        names = [x for x in self._terms.order if not isinstance(x, (Rows, Least))]
        return {
            loop: sorted((name for name in names if name[0] == loop), key=former.outside)
            for loop in self._lengths
        }

    def _bounded(self, box: Box, near: Mapping[Hashable, float]) -> _Bounded:
        """What depends on a box of `within`."""
        order, one = self._terms.order, next(iter(self._open.values())).former
        whole, full = pieces(box, self._chains, self._lengths, [*self._terms.pieces], near)
        low, high = np.zeros(len(order)), np.zeros(len(order))
        lines = times_bounded(box, self._lengths)
        for name, at in order.items():
            if not isinstance(name, (Rows, Least)):
                high[at] = log(self._lengths[name[0]])
                if name in box:
                    low[at], high[at] = (log(size) for size in box[name])
                    lines.append((((name, 1.0),), high[at] + BESIDE))
                    lines.append((((name, -1.0),), BESIDE - low[at]))
        for name, at in order.items():
            if isinstance(name, (Rows, Least)):
                planes = [_plain(line, whole) for line in _planes(one, name, box)]
                ends = [
                    (
                        sum(f * (low if f > 0 else high)[order[n]] for n, f in factors[1:]) - most,
                        sum(f * (high if f > 0 else low)[order[n]] for n, f in factors[1:]) - most,
                    )
                    for factors, most in planes
                ]
                low[at], high[at] = (max(end) for end in zip(*ends, strict=True))
                lines += [*planes, (((name, 1.0),), high[at] + FURTHER)]
        powers = _matrix([one.factors for one in whole.values()], order)
        constants = np.array([one.constant for one in whole.values()])
        return _Bounded(lines, (low, high), powers, constants, full)

    def _solved(self, box: Box, near: Mapping[Hashable, float]) -> list[Point]:
        """Solve the programmes together."""
        several, terms = [*self._open.values()], self._terms
        order, inner = terms.order, within(box, self._chains, self._lengths)
        if is_empty(inner):
            return [_none(self._space)] * len(several)
        given = self._bounded(inner, near)
        A, b = terms.A + terms.P @ given.powers, terms.b + terms.P @ given.constants
        bounds = [[*some, *given.lines] for some in terms.lines]
        G = np.array([_matrix([factors for factors, _ in some], order) for some in bounds])
        h = np.array([[most for _, most in some] for some in bounds])
        programmes = Programmes(A, b, G, h, terms.R, terms.r, *given.sides)
        if near:
            try:
                starts = [_begun(programmes, np.array([near[name] for name in order]))]
            except Outside:
                return [_none(self._space)]
        else:
            starts = [
                _start(x.former, order, given.sides, *ends)
                for x, *ends in zip(several, G, h, strict=False)
            ]
        if not all((x @ y < most).all() for x, y, most in zip(G, starts, h, strict=False)):
            return [Point(_nothing(self._space), {}, {}, {})] * len(several)  # maybe of no mapping
        saved = np.array([x.saved for x in several])
        result = solved(programmes, np.array(starts), saved * np.exp(-terms.shift))
        least = np.exp(result.least + terms.shift)
        return [
            Point(
                Relaxed(max(0.0, x.saved + float(energy)), _sizes(x.former, order, at)),
                dict(zip(order, at.tolist(), strict=True)),
                _shares(A[i] @ at + b[i], A[i], terms.P[i], terms),
                given.full,
            )
            for i, (x, energy, at) in enumerate(zip(several, least, result.at, strict=True))
        ]


def _shares(powers: Floats, A: Floats, P: Floats, terms: _Terms) -> dict[Rows | Pieces, float]:
    """What share of the energy rises with rows, and with pieces."""
    each = np.exp(powers - powers.max())
    each /= each.sum()
    of_rows, of_pieces = each @ A, each @ P
    found: dict[Rows | Pieces, float] = {
        name: float(of_rows[at]) for name, at in terms.order.items() if isinstance(name, Rows)
    }
    return found | {name: float(of_pieces[at]) for name, at in terms.pieces.items()}


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


def _order(
    several: Sequence[Any], lines: Sequence[Line]
) -> tuple[dict[Any, int], dict[Pieces, int]]:
    """Number the variables, behind those that they depend on; and pieces, which are none."""
    names: dict[Any, None] = {}
    cut: dict[Pieces, None] = {}

    def add(name: Any) -> None:
        if isinstance(name, Rows):
            names.update(dict.fromkeys(key for key in (name.outs, name.taps) if key[1] >= 0))
        if isinstance(name, Least):
            for other in (other for one in name.products for other, _ in one.factors):
                add(other)
        if isinstance(name, Pieces):
            cut.setdefault(name)
            name = name.key
        names.setdefault(name)

    for name in (name for some in (*several, *(line for line, _ in lines)) for name, _ in some):
        add(name)
    return {name: at for at, name in enumerate(names)}, {one: at for at, one in enumerate(cut)}


def part_of(former: Former, name: Rows, box: Box) -> Part:
    """The tiles under which rows are looked at."""
    sides = []
    for key in (name.outs, name.taps):
        length = getattr(former.space.problem.extent, key[0])
        known = {ONE: (1, 1), WHOLE: (length, length)}
        sides.append(known.get(key[1]) or box.get(key, (1, length)))
    return Part(*sides)


def _planes(former: Former, name: Rows | Least, box: Box) -> list[Line]:
    """Rows are above each of their planes; the rows themselves come first in a line."""
    if isinstance(name, Least):
        return [(((name, -1.0), *one.factors), -one.constant) for one in name.products]
    planes = former.tables.planes(name.which, name.kind, part_of(former, name, box))
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


def _plain(line: Line, whole: Mapping[Pieces, Power]) -> Line:
    """A bound in which pieces are powers of sizes."""
    parts, most = line
    if not any(isinstance(name, Pieces) for name, _ in parts):
        return line
    found: list[tuple[Hashable, float]] = []
    for name, factor in parts:
        if isinstance(name, Pieces):
            most -= factor * whole[name].constant
            found += [(n, factor * f) for n, f in whole[name].factors]
        else:
            found.append((name, factor))
    return tuple(found), most


def _none(space: Space) -> Point:
    """Where there is no mapping."""
    return Point(_nothing(space)._replace(energy=inf), {}, {}, {})


def _nothing(space: Space) -> Relaxed:
    """Where nothing is known."""
    return Relaxed(0.0, {x: (1.0,) * c.chosen for x, c in space.columns.items()})


def _matrix(several: Sequence[Any], order: dict[Any, int]) -> Floats:
    found = np.zeros((len(several), len(order)))
    for row, factors in zip(found, several, strict=True):
        for name, factor in factors:
            row[order[name]] += factor
    return found


def _start(former: Former, order: dict[Any, int], sides: Sides, G: Floats, h: Floats) -> Floats:
    """Sizes strictly within all orders: small ones, each a little below the one above it.

    Where so many cannot lie side by side, the inner ones are near the outer ones.
    """
    for near in (False, True):
        small = SMALL
        while small > SMALLEST:
            y = _guess(former, order, sides, small, near=near)
            for name, at in order.items():
                if isinstance(name, (Rows, Least)):
                    own = G[:, at] < 0
                    y[at] += (G[own] @ y - h[own]).max() + ABOVE
            if (G @ y < h).all():
                return y
            small /= 2
    return y


def _begun(programme: Programmes, near: Floats) -> Floats:
    """A point strictly within all bounds, or one near it. Raises: Outside."""
    rooms = programme.R[0] @ near + programme.r[0]
    fits = (np.exp(rooms).sum(axis=-1) < 1).all()
    if fits and (programme.G[0] @ near < programme.h[0]).all():
        return near
    found = inside(programme, near)
    return near if found is None else found


def _guess(
    former: Former, order: dict[Any, int], sides: Sides, small: float, *, near: bool
) -> Floats:
    """Sizes a little above their least, the inner ones of a loop a little below the outer ones."""
    (low, high), y = sides, np.zeros(len(order))
    keys: list[Any] = [name for name in order if not isinstance(name, (Rows, Least))]
    for loop, n in former.space.problem.extent._asdict().items():
        mine = sorted((key for key in keys if key[0] == loop), key=former.outside)
        step, above = small * log(n) / (len(mine) + 1), np.inf
        for i, key in enumerate(mine):
            at = order[key]
            y[at] = low[at] + step * (len(mine) - i)
            if near and i and key != former.size(loop, 2 * former.space.depth):  # no cycle
                y[at] = max(y[at], above - step)
            y[at] = above = min(y[at], high[at] - step, above - step)
    return y
