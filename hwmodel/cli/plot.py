"""plot: figures from tables made earlier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.screen import say

__all__ = ["plot"]


def plot(
    table: Annotated[Path, typer.Argument(help="A CSV of compare or report, or a trace.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.png, .svg or .pdf.")],
    kind: Annotated[
        str,
        typer.Option(
            help="methods, layers, levels, pareto or training.", show_default="what the CSV is of"
        ),
    ] = "",
) -> None:
    """Draw a figure from a CSV made earlier."""
    from hwmodel.views.plot import draw, draw_training, read_records

    if table.suffix == ".json":
        draw_training(table, output, kind)
    else:
        draw(read_records(table), output, kind or None)
    say(f"wrote {output}")
