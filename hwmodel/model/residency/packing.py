"""A 0/1 program: which items together save most, with room at every step and level for all.

Solved by HiGHS, which SciPy brings, on one thread and to a number of nodes, not of seconds, so that
reruns are equal. Values and bits are whole numbers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import NamedTuple

from hwmodel.errors import HwmodelError

__all__ = ["Packed", "Row", "pack"]

NODES = 500  # of branch and bound
VALUES = 2**40  # the sum of all values is about that
PARTS = {True: 2**24, False: 2**20}  # of a capacity: a unit of room


class Row(NamedTuple):
    """The sum of coefficients of chosen items must not be above the most."""

    of: Mapping[int, int]  # by number of the item
    most: int


class Packed(NamedTuple):
    """The items chosen, and what no choice can save more than."""

    chosen: list[int]
    most: float


def pack(values: Sequence[float], rows: Sequence[Row], gap: float, *, loose: bool) -> Packed:
    """Choose items to save most.

    Args:
        values: what each item saves, none below 0.
        gap: relative, at which a choice is good enough.
        loose: round so that the answer is one of a program with a little more room, whose most is
            a bound; else with a little less, whose choice has room.

    Raises: HwmodelError without SciPy.
    """
    if not values or not any(values):
        return Packed([], 0.0)
    try:
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array
    except ImportError:
        raise HwmodelError(
            "residency: tensors needs the package scipy: pip install 'hwmodel[residency]'"
        ) from None
    rounded = [_rounded(row, loose) for row in rows]
    tight = [row for row in rounded if sum(bits for bits in row.of.values() if bits > 0) > row.most]
    scale = VALUES / sum(values)
    whole = np.array([float((ceil if loose else int)(value * scale)) for value in values])
    constraints = []
    if tight:
        at = [(r, i) for r, row in enumerate(tight) for i in row.of]
        data = [float(bits) for row in tight for bits in row.of.values()]
        matrix = csr_array((data, tuple(zip(*at, strict=True))), shape=(len(tight), len(values)))
        constraints = [LinearConstraint(matrix, -np.inf, [float(row.most) for row in tight])]
    options = {"mip_rel_gap": gap, "node_limit": NODES, "disp": False}
    ones = np.ones(len(values))
    with _quiet():
        found = milp(
            -whole, integrality=ones, bounds=Bounds(0, 1), constraints=constraints, options=options
        )
    most = float(whole.sum())
    if found.mip_dual_bound is not None:
        most = min(most, -found.mip_dual_bound)
    chosen = [] if found.x is None else [i for i, x in enumerate(found.x) if x > 0.5]
    return Packed(chosen, most / scale)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what HiGHS writes on its own, in SciPy 1.17 to standard output, from the user's output.

    It writes past Python, to the file descriptor.
    """
    sys.stdout.flush()
    try:
        before = os.dup(1)
    except OSError:  # no standard output: nothing to keep clean
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)
        os.close(nowhere)


def _rounded(row: Row, loose: bool) -> Row:
    """A row in units of its most."""
    unit = max(1, abs(row.most) // PARTS[loose])
    if loose:
        return Row({i: bits // unit for i, bits in row.of.items()}, -(-row.most // unit))
    return Row({i: -(-bits // unit) for i, bits in row.of.items()}, row.most // unit)
