"""Loops of Newton's method for programmes that are minimised together, one by one.

Rows of factors have few that are not 0, which alone are looked at. These functions are plain
Python; where the extra `compiled` is installed, numba compiles them, and `interior` takes them in
the place of its arrays. Nothing imports this module before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodel.tiling.optimal.kernels import _compiled

__all__ = ["centred"]


@_compiled
def _sparse(rows: Any, constants: Any, listed: Any, number: Any) -> Any:
    """Enter rows into a list behind `number` others, without those of infinite constants.

    Args:
        rows: factors [row, size]; constants alike, minus infinity of a row that is not there.
        listed: columns and factors [row, place], constants and how many places each row has.

    Returns: how many rows the list has now.
    """
    columns, factors, fixed, many = listed
    for i in range(len(rows)):
        if constants[i] == -np.inf:
            continue
        wide = 0
        for k in range(rows.shape[1]):
            if rows[i, k] != 0.0:
                columns[number, wide], factors[number, wide] = k, rows[i, k]
                wide += 1
        many[number], fixed[number] = wide, constants[i]
        number += 1
    return number


@_compiled
def _barrier(
    y: Any, ends: Any, listed: Any, weight: Any, wider: Any, powers: Any, sums: Any
) -> Any:
    """Value that Newton's method lowers; infinity where y is not within all bounds.

    Args:
        ends: where the rows of the objective and of each sum end in the list, those of the bounds
            after them.
        wider: what is allowed to each sum.
        powers: of every row, which are written: shares of its sum, or how far below its bound.
        sums: how far the sums are below their bounds, which are written; 1 of a sum of no terms.
    """
    columns, factors, fixed, many = listed
    for i in range(len(powers)):
        found = fixed[i]
        for k in range(many[i]):
            found += factors[i, k] * y[columns[i, k]]
        powers[i] = found
    value, start = 0.0, 0
    within = True
    for s in range(len(ends)):
        most, total = -np.inf, 0.0
        for i in range(start, ends[s]):
            most = max(most, powers[i])
        for i in range(start, ends[s]):
            powers[i] = np.exp(powers[i] - most)
            total += powers[i]
        for i in range(start, ends[s]):
            powers[i] /= total
        if s == 0:
            value += weight * (most + np.log(total))
        else:
            sums[s - 1] = wider[s - 1] - (most + np.log(total)) if ends[s] > start else 1.0
            if sums[s - 1] > 0:
                value -= np.log(sums[s - 1])
            else:
                within = False
        start = ends[s]
    for i in range(start, len(powers)):
        powers[i] = -powers[i]
        if powers[i] > 0:
            value -= np.log(powers[i])
        else:
            within = False
    return value if within else np.inf


@_compiled
def _spread(row: Any, listed: Any, weight: Any, curvature: Any) -> None:
    """Add a row times itself, with a weight, to one half of a matrix."""
    columns, factors, _, many = listed
    for k in range(many[row]):
        more = weight * factors[row, k]
        for j in range(k + 1):
            curvature[columns[row, k], columns[row, j]] += more * factors[row, j]


@_compiled
def _slopes(
    ends: Any, listed: Any, weight: Any, powers: Any, sums: Any, mean: Any, gradient: Any,
    curvature: Any,
) -> None:  # fmt: skip
    """Write the slope of the barrier and one half of its curvature; see `_barrier`."""
    columns, factors, _, many = listed
    sizes = len(gradient)
    gradient[:], curvature[:] = 0.0, 0.0
    start = 0
    for s in range(len(ends)):
        mean[:] = 0.0
        price = weight if s == 0 else 1 / sums[s - 1]
        for i in range(start, ends[s]):
            for k in range(many[i]):
                mean[columns[i, k]] += powers[i] * factors[i, k]
            _spread(i, listed, price * powers[i], curvature)
        # of a sum's own curvature - s s' / left, and of the logarithm of its bound s s' / left^2
        square = -weight if s == 0 else price * price - price
        for k in range(sizes):
            if mean[k] != 0.0:
                gradient[k] += price * mean[k]
                more = square * mean[k]
                for j in range(k + 1):
                    curvature[k, j] += more * mean[j]
        start = ends[s]
    for i in range(start, len(powers)):
        inverse = 1 / powers[i]
        for k in range(many[i]):
            gradient[columns[i, k]] += inverse * factors[i, k]
        _spread(i, listed, inverse * inverse, curvature)
    for k in range(sizes):
        curvature[k, k] += 1e-9


@_compiled
def _solve(curvature: Any, gradient: Any, step: Any) -> None:
    """Write the step that solves curvature . step = gradient; the half of the matrix is changed."""
    sizes = len(gradient)
    pivots = np.empty(sizes)
    for i in range(sizes):
        row = curvature[i]
        for j in range(i):
            other, fours = curvature[j], j // 4
            zero, one, two, three = 0.0, 0.0, 0.0, 0.0  # four sums at a time
            for k in range(fours):
                zero += row[4 * k] * other[4 * k]
                one += row[4 * k + 1] * other[4 * k + 1]
                two += row[4 * k + 2] * other[4 * k + 2]
                three += row[4 * k + 3] * other[4 * k + 3]
            for k in range(4 * fours, j):
                zero += row[k] * other[k]
            row[j] -= (zero + one) + (two + three)
        pivot, left = row[i], gradient[i]
        for k in range(i):
            scaled = row[k] / pivots[k]
            pivot -= scaled * row[k]
            left -= scaled * step[k]
            row[k] = scaled
        pivots[i], step[i] = pivot, left
    for i in range(sizes):
        step[i] /= pivots[i]
    for i in range(sizes - 1, 0, -1):
        row = curvature[i]
        for j in range(i):
            step[j] -= row[j] * step[i]


@_compiled
def _reach(step: Any, listed: Any, slack: Any, first: Any) -> Any:
    """How much of a step stays within the bounds, which begin at a place of the list; at most 1."""
    columns, factors, _, many = listed
    far = 1.0
    for i in range(first, len(slack)):
        ahead = 0.0
        for k in range(many[i]):
            ahead += factors[i, k] * step[columns[i, k]]
        if ahead < 0:
            far = min(far, 0.99 * slack[i] / -ahead)
    return far


@_compiled
def centred(
    objective: Any, bounds: Any, rooms: Any, start: Any, weights: Any, wider: Any, limits: Any
) -> Any:  # fmt: skip
    """Return points near the least of barriers, as `interior._centre` [programme, size].

    Args:
        objective: A and b of `interior.Programmes`; bounds G and h, rooms R and r.
        limits: steps; half of the squared decrement at which a weight is done with, of each
            programme; part of a step that is tried.
    """
    (A, b), (G, h), (R, r) = objective, bounds, rooms
    steps, near, shortest = limits
    found = start.copy()
    sums, sizes = R.shape[1], A.shape[2]
    rows = A.shape[1] + sums * R.shape[2] + G.shape[1]
    columns, factors = np.empty((rows, sizes), np.int64), np.empty((rows, sizes))
    fixed, many = np.empty(rows), np.empty(rows, np.int64)
    ends = np.empty(1 + sums, np.int64)
    left, rest = np.empty(sums), np.empty(sums)
    mean, gradient, step = np.empty(sizes), np.empty(sizes), np.zeros(sizes)
    curvature, tried = np.empty((sizes, sizes)), np.empty(sizes)
    for p in range(len(start)):
        of = p if len(G) > 1 else 0
        every = (columns, factors, fixed, many)
        number = _sparse(A[p], b[p], every, 0)
        ends[0] = number
        for s in range(sums):
            number = _sparse(R[p, s], r[p, s], every, number)
            ends[1 + s] = number
        number = _sparse(G[of], -h[of], every, number)
        listed = (columns[:number], factors[:number], fixed[:number], many[:number])
        powers, other, y = np.empty(number), np.empty(number), found[p]
        value, far, decrement, taken = np.inf, 0.0, 0.0, 0
        tried[:] = y
        while True:  # steps that are halved until they help
            new = _barrier(tried, ends, listed, weights[p], wider[p], other, rest)
            if new > value - 0.1 * far * decrement:
                far /= 2
                if far < shortest:
                    break
            else:
                y[:], value = tried, new
                powers, other, left, rest = other, powers, rest, left
                if taken == steps:
                    break
                taken += 1
                _slopes(ends, listed, weights[p], powers, left, mean, gradient, curvature)
                _solve(curvature, gradient, step)
                decrement = 0.0
                for k in range(sizes):
                    decrement += gradient[k] * step[k]
                if not decrement / 2 > near[p]:
                    break
                far = _reach(step, listed, powers, ends[-1])
            for k in range(sizes):
                tried[k] = y[k] - far * step[k]
    return found
