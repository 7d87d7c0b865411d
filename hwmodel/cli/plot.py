"""plot: figures from tables made earlier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.screen import say
from hwmodel.errors import HwmodelError, printable

__all__ = ["plot"]


def plot(
    tables: Annotated[
        list[Path],
        typer.Argument(
            help="A CSV of compare, one or more of report, a sweep's table, or a trace."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.png, .svg or .pdf.")],
    kind: Annotated[
        str,
        typer.Option(
            help="Of compare: methods, passes, pareto. Of report: layers, levels, passes, "
            "level-tensor, roofline. Of a sweep: pareto, lines, heatmap. Of a trace: training, "
            "signals.",
            show_default="what the CSV is of",
        ),
    ] = "",
    style: Annotated[
        str,
        typer.Option(help="draft (what made it at the foot), paper (3.5 inches wide) or slides."),
    ] = "draft",
    network: Annotated[
        str, typer.Option(help="File of the network, for a roofline of one that is not bundled.")
    ] = "",
    hardware: Annotated[
        str, typer.Option(help="Files of chips, for a roofline of such as are not bundled.")
    ] = "",
    x: Annotated[str, typer.Option(help="Of a sweep: column along x.")] = "",
    y: Annotated[str, typer.Option(help="Of a sweep: column along y.")] = "",
    z: Annotated[str, typer.Option(help="Of a sweep: column of a heatmap's shades.")] = "",
    by: Annotated[str, typer.Option(help="Of a sweep: a line for each value of it.")] = "",
    where: Annotated[str, typer.Option(help="Of a sweep: rows that keep these conditions.")] = "",
) -> None:
    """Draw a figure from tables made earlier. Several reports are set side by side."""
    from hwmodel.vary.sweep.results import is_results, read_results
    from hwmodel.views.sweep_figures import View, draw_sweep

    view = View(x, y, z, by, where)
    if len(tables) == 1 and is_results(tables[0]):
        draw_sweep(read_results(tables[0]), output, kind, view, style)
    elif stated := next(((name, value) for name, value in view._asdict().items() if value), None):
        option, value = stated
        raise HwmodelError(
            f"--{option} {value}: is for tables of a sweep, which {tables[-1]} is not"
        )
    else:
        _draw(tables, output, kind, style, network, hardware)
    say(printable(f"wrote {output}"))


def _draw(
    tables: list[Path], output: Path, kind: str, style: str, network: str, hardware: str
) -> None:
    """A figure of a trace, or of what `compare` and `report` wrote."""
    from hwmodel.rerun.asked import split_names
    from hwmodel.views.plot import draw, draw_training, read_records

    if tables[0].suffix == ".json":
        if len(tables) > 1:
            raise HwmodelError(f"{tables[1]}: of traces one is drawn at a time")
        draw_training(tables[0], output, kind, style)
        return
    chips = split_names(hardware) if hardware else []
    records = read_records(*tables)
    draw(records, output, kind=kind, style=style, network=network, hardware=chips)
