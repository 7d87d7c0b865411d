"""The least of a sum of products of powers, under bounds of such sums: a geometric programme.

In logarithms y of its sizes, log sum exp(A y + b) is convex and so is what bounds it. Newton's
method follows the middle of what is allowed to a point near the least, with a multiplier for every
bound. What the multipliers say is then made a bound by convexity alone: it holds however near the
point came.

Source: Boyd, Kim, Vandenberghe, Hassibi, A tutorial on geometric programming, 2007; Boyd and
Vandenberghe, Convex Optimization, 2004, sections 5.2 and 11.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Programme", "Solved", "solved"]

Floats = NDArray[np.float64]
FIRST, LAST, FASTER = 1e1, 2e5, 27.2  # weights of the objective against the bounds
STEPS = 40  # of Newton's method for one weight
NEAR, NEAREST = 1e-1, 1e-8  # half of the squared decrement at which a weight is done with; the last


class Programme(NamedTuple):
    """Minimise log sum exp(A y + b), where G y <= h and log sum exp(R y + r) <= 0 for each R, r."""

    A: Floats
    b: Floats
    G: Floats
    h: Floats
    sums: tuple[tuple[Floats, Floats], ...]
    low: Floats  # of every y, without which there is no bound
    high: Floats


class Solved(NamedTuple):
    """A point near the least, and what is sure of the least."""

    at: Floats
    least: float  # no allowed point has less


def solved(programme: Programme, start: Floats) -> Solved:
    """Return a point and a lower bound.

    Args:
        start: strictly within G y < h; where a sum's bound is not met, that bound is widened on
            the way, which does not matter to what is returned as sure.
    """
    wider = [max(0.0, _sum(start, *one)[0] + 0.05) for one in programme.sums]
    y, weight = start, FIRST
    while True:
        y = _centre(programme, y, weight, wider)
        if weight >= LAST:
            break
        weight = min(LAST, weight * FASTER)
    return Solved(y, _sure(programme, y, weight, wider))


def _sum(y: Floats, A: Floats, b: Floats) -> tuple[float, Floats]:
    """log sum exp(A y + b), and the share of every term."""
    powers = A @ y + b
    most = powers.max()
    shares = np.exp(powers - most)
    total = shares.sum()
    return float(most + np.log(total)), shares / total


def _barrier(programme: Programme, y: Floats, weight: float, wider: list[float]) -> float:
    slack = programme.h - programme.G @ y
    if slack.min(initial=np.inf) <= 0:
        return float("inf")
    value = weight * _sum(y, programme.A, programme.b)[0] - np.log(slack).sum()
    for one, more in zip(programme.sums, wider, strict=True):
        left = more - _sum(y, *one)[0]
        if left <= 0:
            return float("inf")
        value -= np.log(left)
    return float(value)


def _centre(programme: Programme, y: Floats, weight: float, wider: list[float]) -> Floats:
    """Newton's method with steps that are halved until they help."""
    A, G = programme.A, programme.G
    value = _barrier(programme, y, weight, wider)
    for _ in range(STEPS):
        slack = programme.h - G @ y
        _, shares = _sum(y, A, programme.b)
        mean = shares @ A
        inverse = 1 / slack
        gradient = weight * mean + inverse @ G
        scaled = G * inverse[:, None]
        curvature = weight * ((A * shares[:, None]).T @ A - np.outer(mean, mean))
        curvature += scaled.T @ scaled
        for (R, r), more in zip(programme.sums, wider, strict=True):
            total, parts = _sum(y, R, r)
            slope, left = parts @ R, more - total
            gradient += slope / left
            curvature += ((R * parts[:, None]).T @ R - np.outer(slope, slope)) / left
            curvature += np.outer(slope, slope) / left**2
        curvature[np.diag_indices_from(curvature)] += 1e-9
        step = np.linalg.solve(curvature, gradient)
        decrement = float(gradient @ step)
        if decrement / 2 <= (NEAR if weight < LAST else NEAREST):
            return y
        far = 1.0
        ahead = G @ step  # the slack grows by this
        closer = ahead < 0
        if closer.any():
            far = min(1.0, 0.99 * float((slack[closer] / -ahead[closer]).min()))
        while far > 1e-8:
            tried = y - far * step
            new = _barrier(programme, tried, weight, wider)
            if new <= value - 0.1 * far * decrement:
                break
            far /= 2
        else:
            return y
        y, value = tried, new
    return y


def _sure(programme: Programme, y: Floats, weight: float, wider: list[float]) -> float:
    """The least of the Lagrangian's tangent at y over all sizes, which is below the least."""
    slack = programme.h - programme.G @ y
    multipliers = 1 / (weight * slack)
    value, shares = _sum(y, programme.A, programme.b)
    slope = shares @ programme.A + multipliers @ programme.G
    value -= float(multipliers @ slack)
    for (R, r), more in zip(programme.sums, wider, strict=True):
        total, parts = _sum(y, R, r)
        multiplier = 1 / (weight * (more - total))
        value += multiplier * total
        slope = slope + multiplier * (parts @ R)
    ends = np.minimum(slope * (programme.low - y), slope * (programme.high - y))
    return float(value + ends.sum())
