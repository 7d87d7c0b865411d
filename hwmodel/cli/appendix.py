"""appendix: a page that says how a table was computed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.processes import Jobs, processes_of
from hwmodel.cli.screen import say, shared_out
from hwmodel.errors import printable

__all__ = ["appendix"]


def appendix(
    table: Annotated[Path, typer.Argument(help="A CSV, JSON or Parquet file of compare.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.html or FILE.pdf.")],
    jobs: Jobs = None,
) -> None:
    """One page for a paper: model, choices, constants with sources, residuals, the command.

    The inputs that the table's command names must be as they were when it was made.
    """
    from hwmodel.views.appendix import write_appendix

    write_appendix(table, output, shared_out(processes_of(jobs), "computing anew"))
    say(printable(f"wrote {output}"))
