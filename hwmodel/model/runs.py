"""Runs whose reports a comparison sets side by side: each by itself, wherever it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hwmodel.errors import Infeasible, TooLarge
from hwmodel.graph.network import Network
from hwmodel.model.evaluate import evaluate
from hwmodel.model.optimal_tiles import OptimalTiles, optimal_tiles
from hwmodel.model.report import Report
from hwmodel.model.workload import Mode
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.trace import Trace

__all__ = ["Each", "Reported", "Run", "reported"]


class Run(NamedTuple):
    """What one report is of."""

    network: Network
    chip: Hardware
    method: Method
    accounting: Accounting
    batch: int
    mode: Mode
    traces: tuple[Trace, ...]
    beside: bool  # whether to say, where tiles are greedy, what optimal ones would cost


# The report, and what optimal tiles would make of it; or why there is none.
Reported = tuple[Report, OptimalTiles | None] | Infeasible | TooLarge
# Who computes the reports of runs, in their order: `map`, or processes (hwmodel/vary/workers.py).
Each = Callable[[Callable[[Run], Reported], Sequence[Run]], Iterator[Reported]]


def reported(run: Run) -> Reported:
    """Compute the report of a run; what has no room is returned."""
    try:
        report = evaluate(
            run.network, run.chip, run.method, accounting=run.accounting, batch=run.batch,
            mode=run.mode, trace=run.traces or None,
        )  # fmt: skip
        return report, optimal_tiles(report) if run.beside else OptimalTiles(None)
    except (Infeasible, TooLarge) as error:
        return error
