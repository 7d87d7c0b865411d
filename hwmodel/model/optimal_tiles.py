"""What the same work would cost with optimal tiles, where an accounting's own are greedy."""

from __future__ import annotations

from typing import NamedTuple

from hwmodel.errors import Infeasible, TooLarge
from hwmodel.model.entered import entered
from hwmodel.model.plans import all_tasks
from hwmodel.model.proof import Proof, proof
from hwmodel.model.report import Report
from hwmodel.specs.accounting import Accounting

__all__ = ["OptimalTiles", "exchanged", "greedy_note", "optimal_tiles", "with_optimal_tiles"]

# The optimal search minimises exact counts; what stands for their roughness goes with them.
_EXACT = {"counting": "exact", "rows": "touched", "padding": "skipped"}


class OptimalTiles(NamedTuple):
    """The energy of a report's work with optimal tiles [the report's unit]."""

    energy: float | None
    proof: Proof = Proof(0)  # of the tilings
    reason: str = ""  # why there is no energy


def with_optimal_tiles(accounting: Accounting) -> Accounting | None:
    """Return an accounting with the optimal search and what that needs; None where it has it."""
    chosen = accounting.counting
    if chosen.search == "optimal":
        return None
    new = {"search": "optimal", **(_EXACT if chosen.counting == "paper" else {})}
    return accounting.model_copy(update={"counting": chosen.model_copy(update=new)})


def exchanged(accounting: Accounting) -> str:
    """Say what `with_optimal_tiles` exchanges; "" for nothing.

    As in "search optimal for level-by-level, counting exact for paper".
    """
    other = with_optimal_tiles(accounting)
    if other is None:
        return ""
    fields = ((name, value, getattr(accounting.counting, name)) for name, value in other.counting)
    return ", ".join(f"{name} {new} for {old}" for name, new, old in fields if new != old)


def greedy_note(accounting: Accounting) -> str:
    """Say that tiles are greedy and what the figures with optimal ones are; "" where they are."""
    what = exchanged(accounting)
    if not what:
        return ""
    exact = (
        "; exact counts have every transfer of a sum, which the source's have not, so that a "
        "figure may also rise"
    )
    return (
        f"Tiles under accounting {accounting.name} are greedy: each level's in turn. "
        f'"Optimal tiles" is the same work with {what}'
        f"{exact if accounting.counting.counting == 'paper' else ''}"
    )


def optimal_tiles(
    report: Report, layer: str | None = None, pass_: str | None = None
) -> OptimalTiles | None:
    """Tile a report's work by the optimal search; None where its tiles are from that already.

    Args:
        layer: only that layer's work.
        pass_: only that pass of it; None is all.
    """
    accounting = with_optimal_tiles(report.accounting)
    if accounting is None:
        return None
    tasks = [
        task
        for task in all_tasks(report.network, report.job)  # which no choice of tiles moves
        if layer in (None, task.layer) and pass_ in (None, task.work.pass_)
    ]
    try:
        ledger, tilings = entered(tasks, report.hardware, accounting)
    except (Infeasible, TooLarge) as error:
        return OptimalTiles(None, reason=str(error))
    return OptimalTiles(ledger.by().energies(report.prices).get((), 0.0), proof(tilings))
