"""A 0/1 program: which items together save most, with room at every step and level for all.

Solved by HiGHS, on one thread and to a number of nodes, not of seconds, so that reruns are equal.
Values and bits are whole numbers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from highspy import HighsLp

__all__ = ["Packed", "Row", "pack"]

OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    "random_seed": 0,
    "mip_max_nodes": 500,  # of branch and bound
}
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
    """
    if not values or not any(values):
        return Packed([], 0.0)
    rounded = [_rounded(row, loose) for row in rows]
    tight = [row for row in rounded if sum(bits for bits in row.of.values() if bits > 0) > row.most]
    scale = VALUES / sum(values)
    whole = [(ceil if loose else int)(value * scale) for value in values]
    chosen, most = _solved(whole, tight, gap)
    return Packed(chosen, min(most, sum(whole)) / scale)


def _solved(values: Sequence[int], rows: Sequence[Row], gap: float) -> tuple[list[int], float]:
    """The variables that are 1, and the bound of the sum of their values."""
    with _quiet():  # it prints its name
        import highspy as hp

        solver = hp.Highs()
        for option, value in {**OPTIONS, "mip_rel_gap": gap}.items():
            solver.setOptionValue(option, value)
        solver.passModel(_program(values, rows))
        solver.run()
    found, about = solver.getSolution(), solver.getInfo()
    chosen = [i for i, x in enumerate(found.col_value) if x > 0.5] if found.value_valid else []
    return chosen, -about.mip_dual_bound


def _program(values: Sequence[int], rows: Sequence[Row]) -> HighsLp:
    import highspy as hp

    program, many = hp.HighsLp(), len(values)
    program.num_col_, program.num_row_ = many, len(rows)
    program.col_cost_ = [-float(value) for value in values]
    program.col_lower_, program.col_upper_ = [0.0] * many, [1.0] * many
    program.integrality_ = [hp.HighsVarType.kInteger] * many
    program.row_lower_ = [-hp.kHighsInf] * len(rows)
    program.row_upper_ = [float(row.most) for row in rows]
    matrix = program.a_matrix_
    matrix.format_ = hp.MatrixFormat.kRowwise
    matrix.start_ = [0, *accumulate(len(row.of) for row in rows)]
    matrix.index_ = [i for row in rows for i in row.of]
    matrix.value_ = [float(bits) for row in rows for bits in row.of.values()]
    return program


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what HiGHS writes on its own to standard output from the user's output.

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
