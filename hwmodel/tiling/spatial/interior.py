"""The least of sums of products of powers, under bounds of such sums: geometric programmes.

In logarithms y of its sizes, log sum exp(A y + b) is convex and so is what bounds it. Newton's
method follows the middle of what is allowed to a point near the least, with a multiplier for every
bound. What the multipliers say is then made a bound by convexity alone: it holds however near the
point came.

Programmes that differ in what is minimised are solved together, each step one product of arrays;
where the extra `compiled` is installed, one by one, in loops over the few factors that are not 0
(`newton_kernels`). Those whose least is sure to be well above another's are left where they are.

Source: Boyd, Kim, Vandenberghe, Hassibi, A tutorial on geometric programming, 2007; Boyd and
Vandenberghe, Convex Optimization, 2004, sections 5.2 and 11.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import is_compiled, kernel

__all__ = ["Outside", "Programmes", "Solved", "inside", "solved"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FIRST, LAST, FASTER = 1e1, 2e5, 27.2  # weights of the objective against the bounds
ALL = 272  # weight that all programmes are followed to
STEPS = 120  # of Newton's method for one weight
NEAR, NEAREST = 1e-1, 1e-8  # half of the squared decrement at which a weight is done with; the last
BESIDE = 0.1  # share: how far above the least of all a programme is followed to the end
INSIDE = 1e1, 1e3, 1e5, 1e7  # weights of what bounds are exceeded by
SHORTEST = 1e-8  # part of a step that is tried


class Programmes(NamedTuple):
    """Minimise log sum exp(A y + b), where G y <= h and log sum exp(R y + r) <= 0 for each R, r.

    A term with b or r of minus infinity is not there; a sum of none bounds nothing.
    """

    A: Floats  # [programme, term, size]
    b: Floats  # [programme, term]
    G: Floats  # [1 or programme, bound, size]; 1: of all programmes
    h: Floats  # [1 or programme, bound]
    R: Floats  # [programme, sum, term, size]
    r: Floats  # [programme, sum, term]
    low: Floats  # of every y, without which there is no bound
    high: Floats

    def of(self, some: Ints) -> Programmes:
        """Some of the programmes, each once and in turn."""
        if len(some) == len(self.A):
            return self
        G, h = (x if len(x) == 1 < len(self.A) else x[some] for x in (self.G, self.h))
        each = {"A": self.A[some], "b": self.b[some], "R": self.R[some], "r": self.r[some]}
        return self._replace(G=G, h=h, **each)

    def slack(self, y: Floats) -> Floats:
        """How far each programme's sizes are below its bounds G y <= h."""
        return self.h - self.along(y)

    def along(self, y: Floats) -> Floats:
        """G y [programme, bound]."""
        if len(self.G) == 1:
            short: Floats = y @ self.G[0].T
            return short
        found: Floats = (self.G @ y[..., None])[..., 0]
        return found

    def back(self, weights: Floats) -> Floats:
        """Bounds added up with weights [programme, size]."""
        if len(self.G) == 1:
            short: Floats = weights @ self.G[0]
            return short
        found: Floats = (weights[:, None, :] @ self.G)[:, 0]
        return found


class _Pairs(NamedTuple):
    """Products of two sizes' factors in bounds that all programmes have, where they are not 0."""

    products: Floats  # [bound, pair]
    at: Ints  # of each pair, its place in a square of sizes

    @classmethod
    def of(cls, programmes: Programmes) -> _Pairs | None:
        """Make them once; None where programmes have bounds of their own."""
        if len(programmes.G) > 1:
            return None
        G = programmes.G[0]
        every = (G[:, :, None] * G[:, None, :]).reshape(len(G), -1)
        at = np.flatnonzero(every.any(axis=0))
        return cls(every[:, at], at)

    def squares(self, weights: Floats, sizes: int) -> Floats:
        """`_squares` of the bounds."""
        found = np.zeros((len(weights), sizes * sizes))
        found[:, self.at] = weights @ self.products
        return found.reshape(-1, sizes, sizes)


class Solved(NamedTuple):
    """Points near the least, and what is sure of the least."""

    at: Floats  # [programme, size]
    least: Floats  # of each programme; no allowed point has less


class _Sums(NamedTuple):
    """log sum exp(A y + b), and the share of every term; of no terms minus infinity and zeros."""

    value: Floats
    shares: Floats


def solved(programmes: Programmes, start: Floats, beside: Floats) -> Solved:
    """Return points and lower bounds.

    Args:
        start: strictly within G y < h; where a sum's bound is not met, that bound is widened on the
            way, which does not matter to what is returned as sure.
        beside: added to what each minimises [exp of the objective], where they are compared.
    """
    number = len(programmes.A)
    y = np.array(np.broadcast_to(start, (number, start.shape[-1])))
    wider = np.maximum(0.0, _rooms(programmes, y).value + 0.05)
    pairs = None if is_compiled() else _Pairs.of(programmes)
    least, weight = np.full(number, -np.inf), np.full(number, FIRST / FASTER)
    while True:
        value = np.exp(least)
        near = (weight < ALL) | ((1 - BESIDE) * value + beside <= (value + beside).min())
        live = np.flatnonzero(near & (weight < LAST))
        if not len(live):
            return Solved(y, least)
        weight[live] = np.minimum(LAST, weight[live] * FASTER)
        some, now, more = programmes.of(live), weight[live], wider[live]
        y[live] = _centred(some, y[live], now, more, pairs)
        least[live] = np.maximum(least[live], _sure(some, y[live], now, more))


class Outside(Exception):
    """Nothing is within all bounds."""


def inside(programme: Programmes, near: Floats) -> Floats | None:
    """A point strictly within all bounds of one programme; None if none is found.

    What the bounds are exceeded by at most is made less, until it is less than nothing.

    Args:
        near: where it begins.
    Raises: Outside, if there is surely no such point between the programme's least and most.
    """
    G, h, R, r = programme.G[0], programme.h[0], programme.R[0], programme.r[0]
    wide = np.zeros((len(h) + 1, len(near) + 1))
    wide[:-1, :-1], wide[:, -1] = G, -1.0
    rooms = np.append(R, np.full((*R.shape[:2], 1), -1.0), axis=2)
    rooms[..., -1][~np.isfinite(r)] = 0.0
    over = max((G @ near - h).max(), _rooms(programme, near[None]).value.max(initial=-1.0)) + 1.0
    one = Programmes(
        np.append(0 * near, 1.0)[None, None], np.zeros((1, 1)), wide[None], np.append(h, 1.0)[None],
        rooms[None], r[None], np.append(programme.low, -1.0), np.append(programme.high, over),
    )  # fmt: skip
    y, none = np.append(near, over)[None], np.zeros((1, len(R)))
    for weight in INSIDE:
        y = _centred(one, y, np.array([weight]), none, None)
        if y[0, -1] < 0:
            found: Floats = y[0, :-1]
            return found
        if _sure(one, y, np.array([weight]), none)[0] > 0:
            raise Outside
    return None


def _sum(powers: Floats) -> _Sums:
    most = powers.max(axis=-1)
    most = np.where(np.isfinite(most), most, 0.0)
    shares = np.exp(powers - most[..., None])
    total = shares.sum(axis=-1)
    there = np.where(total > 0, total, 1.0)
    value = np.where(total > 0, most + np.log(there), -np.inf)
    return _Sums(value, shares / there[..., None])


def _objective(some: Programmes, y: Floats) -> _Sums:
    return _sum((some.A @ y[:, :, None])[..., 0] + some.b)


def _rooms(some: Programmes, y: Floats) -> _Sums:
    return _sum((some.R @ y[:, None, :, None])[..., 0] + some.r)


def _left(sums: _Sums, wider: Floats) -> Floats:
    """How far sums are below their bounds; 1 of a sum of no terms."""
    return np.where(np.isfinite(sums.value), wider - sums.value, 1.0)


def _barrier(some: Programmes, y: Floats, weight: Floats, wider: Floats) -> Floats:
    """Value that Newton's method lowers; infinity where y is not within all bounds."""
    slack = some.slack(y)
    left = _left(_rooms(some, y), wider)
    within = (slack > 0).all(axis=1) & (left > 0).all(axis=1)
    value = weight * _objective(some, y).value
    value -= np.log(np.where(slack > 0, slack, 1.0)).sum(axis=1)
    value -= np.log(np.where(left > 0, left, 1.0)).sum(axis=1)
    return np.where(within, value, np.inf)


def _centred(
    some: Programmes, start: Floats, weights: Floats, wider: Floats, pairs: _Pairs | None
) -> Floats:
    """Points near the least of barriers: `_centre`, or compiled."""
    if not is_compiled():
        return _centre(some, start, weights, wider, pairs)
    near = np.where(weights < LAST, NEAR, NEAREST)
    found: Floats = kernel("newton.centred")(
        (some.A, some.b), (some.G, some.h), (some.R, some.r), start, weights, wider,
        (STEPS, near, SHORTEST),
    )  # fmt: skip
    return found


def _centre(
    programmes: Programmes, start: Floats, weights: Floats, wider: Floats, pairs: _Pairs | None
) -> Floats:
    """Newton's method with steps that are halved until they help."""
    y, live = start.copy(), np.arange(len(start))
    value = _barrier(programmes, y, weights, wider)
    for _ in range(STEPS):
        some, here, more, weight = programmes.of(live), y[live], wider[live], weights[live]
        slack, gradient, curvature = _slopes(some, here, weight, more, pairs)
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        decrement = (gradient * step).sum(axis=1)
        on = decrement / 2 > np.where(weight < LAST, NEAR, NEAREST)
        live, some, here, more = live[on], some.of(np.flatnonzero(on)), here[on], more[on]
        weight = weight[on]
        if not len(live):
            break
        slack, step, decrement = slack[on], step[on], decrement[on]
        ahead = some.along(step)  # the slack grows by this
        reach = np.where(ahead < 0, 0.99 * slack / np.where(ahead < 0, -ahead, 1.0), np.inf)
        far = np.minimum(1.0, reach.min(axis=1, initial=np.inf))
        tried = here - far[:, None] * step
        new = _barrier(some, tried, weight, more)
        while (worse := new > value[live] - 0.1 * far * decrement).any():
            far = np.where(worse, far / 2, far)
            if (far[worse] < SHORTEST).all():
                break
            tried = here - far[:, None] * step
            new = _barrier(some, tried, weight, more)
        better = ~worse
        y[live[better]], value[live[better]] = tried[better], new[better]
        live = live[better]
        if not len(live):
            break
    return y


def _slopes(
    some: Programmes, y: Floats, weight: Floats, wider: Floats, pairs: _Pairs | None
) -> tuple[Floats, Floats, Floats]:
    """Slack of the bounds G y <= h, and slope and curvature of the barrier."""
    A, G, R = some.A, some.G, some.R
    slack = some.slack(y)
    shares = _objective(some, y).shares
    mean = (shares[:, None, :] @ A)[:, 0]
    inverse = 1 / slack
    rooms = _rooms(some, y)
    left = _left(rooms, wider)[..., None]
    slope = (rooms.shares[:, :, None, :] @ R)[:, :, 0]  # [programme, sum, size]
    gradient = weight[:, None] * mean + some.back(inverse) + (slope / left).sum(axis=1)
    curvature = _squares(A, shares) - mean[:, :, None] * mean[:, None, :]
    curvature *= weight[:, None, None]
    if pairs is None:
        curvature += (np.swapaxes(G, 1, 2) * (inverse**2)[:, None, :]) @ G
    else:
        curvature += pairs.squares(inverse**2, G.shape[2])
    flat = R.reshape(len(R), -1, R.shape[-1])
    curvature += _squares(flat, (rooms.shares / left).reshape(len(R), -1))
    # of a sum's own curvature - s s' / left, and of the logarithm of its bound s s' / left^2
    curvature += np.swapaxes(slope, 1, 2) @ (slope * (1 / left**2 - 1 / left))
    places = np.arange(curvature.shape[-1])
    curvature[:, places, places] += 1e-9
    return slack, gradient, curvature


def _squares(rows: Floats, weights: Floats) -> Floats:
    """Sum over terms of weight times row times row, for each programme."""
    return np.swapaxes(rows * weights[..., None], 1, 2) @ rows


def _sure(some: Programmes, y: Floats, weight: Floats, wider: Floats) -> Floats:
    """The least of the Lagrangian's tangent at y over all sizes, which is below the least."""
    slack = some.slack(y)
    multipliers = 1 / (weight[:, None] * slack)
    value, shares = _objective(some, y)
    slope = (shares[:, None, :] @ some.A)[:, 0] + some.back(multipliers)
    value = value - (multipliers * slack).sum(axis=1)
    rooms = _rooms(some, y)
    each = 1 / (weight[:, None] * _left(rooms, wider))
    value += np.where(np.isfinite(rooms.value), each * rooms.value, 0.0).sum(axis=1)
    slope += (each[..., None] * (rooms.shares[:, :, None, :] @ some.R)[:, :, 0]).sum(axis=1)
    ends = np.minimum(slope * (some.low - y), slope * (some.high - y))
    found: Floats = value + ends.sum(axis=1)
    return found
