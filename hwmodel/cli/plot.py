"""plot: figures from tables made earlier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.screen import say
from hwmodel.errors import HwmodelError

__all__ = ["plot"]


def plot(
    tables: Annotated[
        list[Path], typer.Argument(help="A CSV of compare, one or more of report, or a trace.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.png, .svg or .pdf.")],
    kind: Annotated[
        str,
        typer.Option(
            help="Of compare: methods, passes, pareto. Of report: layers, levels, passes, "
            "level-tensor, roofline. Of a trace: training.",
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
) -> None:
    """Draw a figure from tables made earlier. Several reports are set side by side."""
    from hwmodel.views.plot import draw, draw_training, read_records

    if tables[0].suffix == ".json":
        if len(tables) > 1:
            raise HwmodelError(f"{tables[1]}: of traces one is drawn at a time")
        draw_training(tables[0], output, kind, style)
    else:
        chips = [name.strip() for name in hardware.split(",")] if hardware else []
        draw(
            read_records(*tables), output,
            kind=kind, style=style, network=network, hardware=chips,
        )  # fmt: skip
    say(f"wrote {output}")
