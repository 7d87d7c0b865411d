"""verify: whether a table made earlier still is what its command makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.processes import Jobs, processes_of
from hwmodel.cli.screen import say, shared_out
from hwmodel.errors import many, printable

if TYPE_CHECKING:
    from hwmodel.rerun.verify import Verdict

__all__ = ["verify"]

LITTLE = 5e-3  # relative: what a search moves that ends elsewhere


def verify(
    table: Annotated[
        Path,
        typer.Argument(help="A CSV, JSON or Parquet file that a command wrote, or a bundle."),
    ],
    tolerance: Annotated[
        float, typer.Option(help="Relative change of a number that is let pass.")
    ] = 0.0,
    jobs: Jobs = None,
) -> None:
    """Compute a table anew from the command it states, and say which rows moved.

    Files that the command names are looked for from the present folder, those of a bundle in the
    bundle alone. Exit code 0: nothing moved; 1: rows moved, are missing or too many; 2: the table
    cannot be read or computed.
    """
    from hwmodel.rerun.asked import command_line
    from hwmodel.rerun.unbundle import opened
    from hwmodel.rerun.verify import stated
    from hwmodel.rerun.verify import verify as verified

    each = shared_out(processes_of(jobs), "computing anew")
    with opened(table) as (path, lock):
        say(f"computing anew: {command_line(stated(path)[2])}")
        verdict = verified(path, tolerance, each)._replace(lock=lock)
    for line in _sentences(verdict, tolerance):
        typer.echo(printable(line))
    if not verdict.holds:
        raise typer.Exit(1)


def _sentences(verdict: Verdict, tolerance: float) -> list[str]:
    from hwmodel import __version__
    from hwmodel.rerun.lock import made_here

    moved = len({cell.row for cell in verdict.moved})
    within = f" within {tolerance:g}" if tolerance else ""
    lines = [
        f"{many(verdict.equal, 'row')} equal{within}, {moved:,} moved, "
        f"{len(verdict.missing):,} missing, {len(verdict.extra):,} extra"
    ]
    lines += [f"moved: {cell}" for cell in verdict.moved]
    lines += [f"missing: {row}" for row in verdict.missing]
    lines += [f"extra: {row}" for row in verdict.extra]
    if _is_little(verdict):
        from hwmodel.tiling.optimal.compiled import is_compiled

        how = "are compiled here" if is_compiled() else "are not compiled here, for want of numba"
        lines.append(
            f"searches {how}: where they are otherwise, tilings that are not proved optimal end "
            f"elsewhere, and numbers move by so little; --tolerance {LITTLE:g} lets that pass"
        )
    made = f"made by hwmodel {verdict.version or __version__}"
    lines.append(
        f"{made}, computed anew by {__version__}" if verdict.version else f"{made}, as now"
    )
    if verdict.lock:
        bundled, here = verdict.lock.made_with, made_here()
        lines.append(
            f"bundled by {bundled}" + (", as here" if here == bundled else f"; here {here}")
        )
    lines += [f"input differs: {given}" for given in verdict.inputs] or ["inputs are as they were"]
    return lines


def _is_little(verdict: Verdict) -> bool:
    """Whether all that moved moved by little, though code and inputs are the same."""
    if not verdict.moved or verdict.version or verdict.inputs or verdict.missing or verdict.extra:
        return False
    return all(cell.change is not None and abs(cell.change) < LITTLE for cell in verdict.moved)
