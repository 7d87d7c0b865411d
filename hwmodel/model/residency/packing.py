"""A 0/1 program: which items together save most, with room at every step and level for all.

Solved by HiGHS, on one thread. Its effort is counted and not timed, by how often it asks whether to
go on, so that reruns are equal. Values and bits are whole numbers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from math import ceil
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from highspy import HighsLp

__all__ = ["Packed", "Row", "Solved", "pack", "rounded", "solved"]

OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    "random_seed": 0,
    "mip_max_nodes": 500,  # of branch and bound
}
SEEKING = "mip_heuristic_run_feasibility_jump", "mip_heuristic_run_rens"
MUCH = 2_000  # times that it may go on
VALUES = 2**40  # the sum of all values is about that
WHOLE = 1e-6  # of a variable: as good as none of it, or all
PARTS = {True: 2**24, False: 2**20}  # of a capacity: a unit of room


class Row(NamedTuple):
    """The sum of coefficients of chosen items must not be above the most, nor below the least."""

    of: Mapping[int, int]  # by number of the item
    most: int
    least: int | None = None


class Packed(NamedTuple):
    """The items chosen, and what no choice can save more than."""

    chosen: list[int]
    most: float


class Solved(NamedTuple):
    """The variables that are 1, what they cost, and what no choice costs less than."""

    chosen: list[int]
    cost: float
    bound: float


def pack(
    values: Sequence[float],
    rows: Sequence[Row],
    gap: float,
    *,
    loose: bool,
    effort: int = MUCH,
) -> Packed:
    """Choose items to save most.

    Args:
        values: what each item saves, none below 0.
        gap: relative, at which a choice is good enough.
        loose: round so that the answer is one of a program with a little more room, whose most is
            a bound; else with a little less, whose choice has room.
        effort: of the solver; what it ends with is a choice and a bound, too.
    """
    if not values or not any(values):
        return Packed([], 0.0)
    units = [rounded(row, loose=loose) for row in rows]
    tight = [row for row in units if sum(bits for bits in row.of.values() if bits > 0) > row.most]
    scale = VALUES / sum(values)
    whole = [(ceil if loose else int)(value * scale) for value in values]
    best = solved([-value for value in whole], tight, gap, effort=effort, seeks=not loose)
    return Packed(best.chosen, min(-best.bound, sum(whole)) / scale)


def solved(
    costs: Sequence[float],
    rows: Sequence[Row],
    gap: float,
    parts: Collection[int] = (),
    effort: int = MUCH,
    start: tuple[int, Collection[int]] = (0, ()),
    *,
    rewrites: bool = True,
    beside: float = 0.0,
    begins_anew: bool = True,
    near: bool = False,
    seeks: bool = True,
) -> Solved:
    """Choose variables of least cost.

    Args:
        gap: relative, at which a choice is good enough.
        parts: variables that may be anything between 0 and 1.
        effort: how often HiGHS may go on.
        start: of the first so many variables those that are 1 in a choice that is known.
        rewrites: the program first, which tightens bounds, and delays first choices.
        beside: what is paid beside the program, of which the gap is a part, too.
        begins_anew: when much is known of its root, which tightens bounds, and delays the end.
        near: look only where parts of variables would have what the known choice has not, or
            the other way round. The bound is then one of these choices alone.
        seeks: choices in ways of which a bound has nothing.
    """
    with _quiet():  # it prints its name
        import highspy as hp

        solver = hp.Highs()
        own = {"mip_rel_gap": gap, "presolve": "on" if rewrites else "off"}
        own["mip_allow_restart"] = begins_anew
        own |= {} if seeks else dict.fromkeys(SEEKING, False)
        for option, value in (OPTIONS | own).items():
            solver.setOptionValue(option, value)
        solver.cbMipInterrupt.subscribe(_Counted(effort))
        program = _program(costs, rows, frozenset(parts))
        program.offset_ = beside
        if near:
            program.col_lower_, program.col_upper_ = _narrowed(costs, rows, start)
        solver.passModel(program)
        if first := start[0]:
            known = frozenset(start[1])
            values = [float(i in known) for i in range(first)]
            solver.setSolution(first, list(range(first)), values)
        solver.run()
    found, about = solver.getSolution(), solver.getInfo()
    chosen = [i for i, x in enumerate(found.col_value) if x > 0.5] if found.value_valid else []
    cost = about.objective_function_value - beside
    if start[0] and abs(sum(map(mul, costs, found.col_value)) - cost) > WHOLE * abs(cost):
        return solved(  # a choice that is known was rewritten to another cost, and ended it
            costs, rows, gap, parts, effort,
            rewrites=rewrites, beside=beside, begins_anew=begins_anew, seeks=seeks,
        )  # fmt: skip
    return Solved(chosen, cost, about.mip_dual_bound - beside)


def _narrowed(
    costs: Sequence[float], rows: Sequence[Row], start: tuple[int, Collection[int]]
) -> tuple[list[float], list[float]]:
    """The least and most of each variable: of both what a known choice has, where parts agree.

    Source: relaxation induced neighborhoods; Danna, Rothberg and Le Pape, Mathematical Programming
    102, 2005.
    """
    import highspy as hp

    solver, many, (first, known) = hp.Highs(), len(costs), start
    for option, value in (OPTIONS | {"presolve": "off"}).items():
        solver.setOptionValue(option, value)
    solver.passModel(_program(costs, rows, range(many)))
    solver.run()
    in_parts, there = solver.getSolution().col_value, frozenset(known)
    least, most = [0.0] * many, [1.0] * many
    for i in range(first):
        if abs(in_parts[i] - (i in there)) < WHOLE:
            least[i] = most[i] = float(i in there)
    return least, most


class _Counted:
    """Ends a solver that has gone on too often."""

    def __init__(self, effort: int) -> None:
        self._left = effort

    def __call__(self, event: Any) -> None:
        """Count one more time."""
        self._left -= 1
        if self._left < 0:
            event.interrupt()


def _program(costs: Sequence[float], rows: Sequence[Row], parts: Collection[int]) -> HighsLp:
    import highspy as hp

    program, many = hp.HighsLp(), len(costs)
    program.num_col_, program.num_row_ = many, len(rows)
    program.col_cost_ = [float(cost) for cost in costs]
    program.col_lower_, program.col_upper_ = [0.0] * many, [1.0] * many
    kinds = hp.HighsVarType.kInteger, hp.HighsVarType.kContinuous
    program.integrality_ = [kinds[i in parts] for i in range(many)]
    no_end = -hp.kHighsInf
    program.row_lower_ = [no_end if row.least is None else float(row.least) for row in rows]
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


def rounded(row: Row, *, loose: bool) -> Row:
    """Return a row in units of its most, with a little more room, or a little less."""
    unit = max(1, abs(row.most) // PARTS[loose])
    if loose:
        return Row({i: bits // unit for i, bits in row.of.items()}, -(-row.most // unit))
    return Row({i: -(-bits // unit) for i, bits in row.of.items()}, row.most // unit)
