"""How many elements each memory level is asked for: one formula, fed by a counting rule.

A mapping cuts the seven loops into blocks, level by level. A counting rule turns the cuts of one
level into a `Cut`: how many pieces each loop has there, and how many rows and columns of I all
pieces together load. From the cuts of two neighbouring levels follows what crosses between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hwmodel.problem import Extents, Operand, Problem, Window

__all__ = ["RULES", "Cut", "Mapping", "Traffic", "between", "paper_cuts", "traffic"]

Count = Any  # an int, a float under the source's ratios, or an array of either (the search)


@dataclass(frozen=True)
class Mapping:
    """Tiles of every level below the top, outermost first, and the operand each boundary holds.

    `held[i]` belongs to the boundary above `tiles[i]`: "F" keeps filters while ifmaps stream past.
    """

    tiles: tuple[Extents, ...]
    held: tuple[Operand, ...]


class Cut(NamedTuple):
    """One problem as one level sees it: pieces of each loop, and rows and columns of I loaded."""

    N: Count
    M: Count
    HO: Count
    WO: Count
    reduction: Count  # pieces of C times pieces of HF times pieces of WF
    rows: Count  # summed over all pieces of (HO, HF)
    columns: Count  # summed over all pieces of (WO, WF)


class Traffic(NamedTuple):
    """Elements one level is asked for over the whole problem."""

    I_reads: Count
    F_reads: Count
    O_partial_reads: Count  # sums that come back to be continued
    O_partial_writes: Count  # sums that leave unfinished
    O_writes: Count  # finished sums


def between(problem: Problem, upper: Cut, lower: Cut, held: Operand = "F") -> Traffic:
    """Elements of I, F and O that cross from the level of `upper` to that of `lower` and back.

    One visit to an upper block runs, from the outside: reduction blocks, blocks of the held
    operand, blocks of the streamed one. With #d pieces of loop d,

        reads(X) = |X| * product of #d over the loops d that do not index X

    taken at the lower level if X streams, at the upper level if X is held: it then stays while
    everything else passes. A sum is written once per reduction block, and read back for all but
    the first of each visit.

    Source: BOLD, appendix "Energy Estimation", algorithm of the data movement and its tables.
    Holds for: every cut; equal to the loop-nest simulator of the tests.
    """
    n, groups = problem.extent, problem.groups
    at_I = upper if held == "I" else lower
    at_F = upper if held == "F" else lower
    outputs = problem.O_elements
    sums, begun = lower.reduction, upper.reduction
    return Traffic(
        I_reads=groups * n.N * n.C * at_I.rows * at_I.columns * at_I.M,
        F_reads=problem.F_elements * at_F.N * at_F.HO * at_F.WO,
        O_partial_reads=outputs * (sums - begun),
        O_partial_writes=outputs * (sums - 1),
        O_writes=outputs,
    )
