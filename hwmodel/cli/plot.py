"""plot: figures from tables made earlier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.screen import say
from hwmodel.errors import HwmodelError

__all__ = ["plot"]


def plot(
    table: Annotated[
        Path, typer.Argument(help="A CSV of compare or report, a table of a sweep, or a trace.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.png, .svg or .pdf.")],
    kind: Annotated[
        str,
        typer.Option(
            help="methods, layers, levels, pareto, training; of a sweep pareto, lines, heatmap.",
            show_default="what the CSV is of",
        ),
    ] = "",
    x: Annotated[str, typer.Option(help="Of a sweep: column along x.")] = "",
    y: Annotated[str, typer.Option(help="Of a sweep: column along y.")] = "",
    z: Annotated[str, typer.Option(help="Of a sweep: column of a heatmap's shades.")] = "",
    by: Annotated[str, typer.Option(help="Of a sweep: a line for each value of it.")] = "",
    where: Annotated[str, typer.Option(help="Of a sweep: rows that keep these conditions.")] = "",
) -> None:
    """Draw a figure from a CSV made earlier."""
    from hwmodel.sweep.results import is_results, read_results
    from hwmodel.views.plot import draw, draw_training, read_records
    from hwmodel.views.sweep_figures import View, draw_sweep

    view = View(x, y, z, by, where)
    if is_results(table):
        draw_sweep(read_results(table), output, kind, view)
        say(f"wrote {output}")
        return
    for name, value in view._asdict().items():
        if value:
            raise HwmodelError(f"--{name} {value}: is for tables of a sweep, which {table} is not")
    if table.suffix == ".json":
        draw_training(table, output, kind)
    else:
        draw(read_records(table), output, kind or None)
    say(f"wrote {output}")
