"""verify: whether a table made earlier still is what its command makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.screen import say
from hwmodel.errors import printable

if TYPE_CHECKING:
    from hwmodel.rerun.verify import Verdict

__all__ = ["verify"]


def verify(
    table: Annotated[
        Path,
        typer.Argument(help="A CSV, JSON or Parquet file that a command wrote."),
    ],
    tolerance: Annotated[
        float, typer.Option(help="Relative change of a number that is let pass.")
    ] = 0.0,
) -> None:
    """Compute a table anew from the command it states, and say which rows moved.

    Files that the command names are looked for from the present folder. Exit code 0: nothing
    moved; 1: rows moved, are missing or too many; 2: the table cannot be read or computed.
    """
    from hwmodel.rerun.asked import command_line
    from hwmodel.rerun.verify import stated
    from hwmodel.rerun.verify import verify as verified

    say(f"computing anew: {command_line(stated(table)[2])}")
    verdict = verified(table, tolerance)
    for line in _sentences(verdict, tolerance):
        typer.echo(printable(line))
    if not verdict.holds:
        raise typer.Exit(1)


def _sentences(verdict: Verdict, tolerance: float) -> list[str]:
    from hwmodel import __version__

    lines = [f"moved: {cell}" for cell in verdict.moved]
    lines += [f"missing: {row}" for row in verdict.missing]
    lines += [f"extra: {row}" for row in verdict.extra]
    made = f"made by hwmodel {verdict.version or __version__}"
    lines.append(
        f"{made}, computed anew by {__version__}" if verdict.version else f"{made}, as now"
    )
    lines += [f"input differs: {given}" for given in verdict.inputs] or ["inputs are as they were"]
    moved = len({cell.row for cell in verdict.moved})
    within = f" within {tolerance:g}" if tolerance else ""
    lines.append(
        f"{verdict.equal:,} rows equal{within}, {moved:,} moved, {len(verdict.missing):,} missing, "
        f"{len(verdict.extra):,} extra"
    )
    return lines
