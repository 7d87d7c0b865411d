"""plot: figures from tables made earlier."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.options import Drawn
from hwmodel.cli.screen import say
from hwmodel.errors import HwmodelError, printable

if TYPE_CHECKING:
    from hwmodel.views.figures.canvas import Style

__all__ = ["plot"]

SEVERAL = ",(?=[^,=]*=)"  # a comma behind which another name and number stand


def plot(
    tables: Annotated[
        list[Path],
        typer.Argument(
            help="A CSV of compare, sensitivity, reproduce or a study, one or more of report, a "
            "sweep's table, or a trace."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.png, .svg or .pdf.")],
    drawn: Drawn,
    kind: Annotated[
        str,
        typer.Option(
            help="Of compare: methods, passes, pareto. Of report: layers, levels, passes, "
            "level-tensor, roofline. Of a sweep: pareto, lines, heatmap. Of sensitivity: tornado. "
            "Of a trace: training, signals. Of a study of `train`: study. Of reproduce --measured: "
            "measured.",
            show_default="what the CSV is of",
        ),
    ] = "",
    accuracy: Annotated[
        list[str] | None,
        typer.Option(
            help="Of pareto: a method's test accuracy in percent, as mine=91.2,fp=93; repeatable.",
            metavar="<NAME=PERCENT>",
        ),
    ] = None,
    group: Annotated[
        str,
        typer.Option(
            help="Of layers: layer, product (with what follows it), block or stage.",
            show_default="as fine as there is room",
        ),
    ] = "",
    network: Annotated[
        str, typer.Option(help="File of the network, for a roofline of one that is not bundled.")
    ] = "",
    hardware: Annotated[
        str,
        typer.Option(
            help="Files of chips, for a roofline of such as are not bundled; of sensitivity the "
            "name of the chip."
        ),
    ] = "",
    x: Annotated[str, typer.Option(help="Of a sweep: column along x.")] = "",
    y: Annotated[str, typer.Option(help="Of a sweep: column along y.")] = "",
    z: Annotated[str, typer.Option(help="Of a sweep: column of a heatmap's shades.")] = "",
    by: Annotated[str, typer.Option(help="Of a sweep: a line for each value of it.")] = "",
    where: Annotated[
        str,
        typer.Option(help="Of a sweep, compare or report: rows that keep these, as 'batch == 64'."),
    ] = "",
) -> None:
    """Draw a figure from tables made earlier. Several reports are set side by side."""
    from hwmodel.vary.sweep.results import is_results, read_results
    from hwmodel.views.sweep_figures import View, draw_sweep

    if bundles := [table for table in tables if table.suffix.lower() == ".zip"]:
        raise HwmodelError(f"{bundles[0]}: is a bundle; unpack it, and name the table in it")
    view, style = View(x, y, z, by, where), drawn.as_style()
    if len(tables) == 1 and is_results(tables[0]):
        if group:
            raise HwmodelError(f"--group {group}: is of a figure of layers, not of a sweep")
        if accuracy:
            raise HwmodelError(f"--accuracy {accuracy[0]}: is of a table of compare")
        title = draw_sweep(read_results(tables[0]), output, kind, view, style)
    elif stated := [(n, value) for n, value in view._asdict().items() if value and n != "where"]:
        option, value = stated[0]
        raise HwmodelError(
            f"--{option} {value}: is for tables of a sweep, which {tables[-1]} is not"
        )
    else:
        title = _draw(tables, output, kind, style, network, hardware, group, accuracy or (), where)
    say(printable(f"wrote {output}"))
    if drawn.no_title and title:
        say(printable(f"its caption: {title}"))


def _draw(
    tables: Sequence[Path],
    output: Path,
    kind: str,
    style: Style,
    network: str,
    hardware: str,
    group: str,
    accuracy: Sequence[str],
    where: str,
) -> str:
    """A figure of a trace, or of what `compare`, `report` and `sensitivity` wrote; its caption."""
    from hwmodel.rerun.asked import split_names
    from hwmodel.vary.sweep.results import chosen
    from hwmodel.views.plot import draw, draw_training, read_records

    trace, other = tables[0].suffix == ".json", _other(tables[0], hardware)
    alone = trace or other is not None
    if alone and len(tables) > 1:
        raise HwmodelError(f"{tables[1]}: of traces and studies one is drawn at a time")
    if alone and group:
        raise HwmodelError(f"--group {group}: is of a figure of layers")
    if alone and accuracy:
        raise HwmodelError(f"--accuracy {accuracy[0]}: is of a table of compare")
    if alone and where:
        raise HwmodelError(f"--where {where}: is for tables of a sweep, of compare and of report")
    if trace:
        return draw_training(tables[0], output, kind, style)
    if other:
        return other(tables[0], output, kind, style)
    chips = split_names(hardware) if hardware else []
    records = read_records(*tables)
    records = chosen(records, where) if where else records
    return draw(
        records, output, kind=kind, style=style, network=network, hardware=chips, layers_by=group,
        accuracies=_accuracies(accuracy),
    )  # fmt: skip


def _other(table: Path, hardware: str) -> Callable[[Path, Path, str, Style], str] | None:
    """What draws a table of one of the kinds that stand alone; None for another."""
    from hwmodel.specs.csv_files import begins_with
    from hwmodel.trainer.study import Outcome
    from hwmodel.vary.against import Against
    from hwmodel.vary.sensitivity import Effect

    if begins_with(table, Effect._fields[:8]):
        from hwmodel.views.tornado import draw_effects

        return partial(draw_effects, hardware=hardware)
    if begins_with(table, Outcome._fields[:8]):
        from hwmodel.views.study import draw_outcomes

        return draw_outcomes
    if begins_with(table, Against._fields):
        from hwmodel.views.figures.measured import draw_measured

        return draw_measured
    return None


def _accuracies(stated: Sequence[str]) -> dict[str, float]:
    """Read the accuracies of methods [percent]. Raises: HwmodelError for one that has two."""
    found: dict[str, float] = {}
    for name, percent in (_stated(one) for text in stated for one in re.split(SEVERAL, text)):
        if name in found:
            raise HwmodelError(f"--accuracy {name}={percent:g}: {name} has {found[name]:g} already")
        found[name] = percent
    return found


def _stated(text: str) -> tuple[str, float]:
    """Read a method and its accuracy [percent]. Raises: HwmodelError."""
    name, equals, number = text.rpartition("=")
    try:
        percent = float(number)
    except ValueError:
        percent = -1.0
    if not (equals and name and 0 <= percent <= 100):
        raise HwmodelError(f"--accuracy {text}: a method and percent from 0 to 100, as mine=91.2")
    return name, percent
