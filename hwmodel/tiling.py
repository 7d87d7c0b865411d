"""How a problem is tiled under an accounting: by the search it names."""

from __future__ import annotations

from typing import NamedTuple

from hwmodel.accesses import Mapping, Traffic, traffic
from hwmodel.accounting import Accounting
from hwmodel.hardware import Hardware
from hwmodel.optimal import Certificate, Options, Stationary, optimal
from hwmodel.problem import Problem
from hwmodel.rows import RowRule
from hwmodel.search import level_by_level

__all__ = ["Tiling", "counts", "tile"]


class Tiling(NamedTuple):
    """A mapping, and what is known of its distance from the optimum; None: nothing."""

    mapping: Mapping
    certificate: Certificate | None


def tile(
    problem: Problem,
    hardware: Hardware,
    accounting: Accounting,
    stationary: Stationary | None = None,
) -> Tiling:
    """The tiling of a problem under an accounting.

    Args:
        stationary: what may be held, where it is not as the accounting says.

    Raises: Infeasible, TooLarge.
    """
    if accounting.search == "level-by-level":
        return Tiling(level_by_level(problem, hardware), None)
    options = Options(
        partial_sum_bits=accounting.partial_sum_bits,
        stationary=stationary or accounting.stationary,
        rule=RowRule(accounting.rows, accounting.padding),
    )
    return Tiling(*optimal(problem, hardware, options))


def counts(problem: Problem, mapping: Mapping, accounting: Accounting) -> list[Traffic]:
    """Elements asked of every level by the accounting's counting rule, outermost first."""
    rule = RowRule(accounting.rows, accounting.padding)
    return traffic(problem, mapping, accounting.counting, rule)
