"""compare and reproduce: methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hwmodel.cli.network import InputShape, chosen_network
from hwmodel.cli.options import (
    Accountings,
    Batch,
    Csv,
    Mode,
    Network,
    Out,
    Run,
    Strict,
    images,
    names,
    traces_of,
    training_run,
)
from hwmodel.cli.screen import console, deliver, progress, say
from hwmodel.errors import HwmodelError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hwmodel.comparison import Comparison
    from hwmodel.network import Network as Net
    from hwmodel.training import Training

__all__ = ["compare", "reproduce"]


def compare(
    network: Network,
    hardware: Annotated[str, typer.Option(help="Chips, by name or file, separated by commas.")],
    methods: Annotated[str, typer.Option(help="Methods, by name or file, separated by commas.")],
    baseline: Annotated[str, typer.Option(help="Method that is 100 %.", show_default="fp")] = "",
    batch: Batch = None,
    accounting: Accountings = "paper",
    mode: Mode = "training",
    training: Run = "",
    trace: Annotated[
        str, typer.Option(help="Traces of training runs, one a method, separated by commas.")
    ] = "",
    accuracy: Annotated[
        float | None,
        typer.Option(help="Test accuracy to reach, 0 to 1.", show_default="what all traces reach"),
    ] = None,
    input_shape: InputShape = None,
    strict: Strict = False,
    csv: Csv = "",
    out: Out = None,
) -> None:
    """Methods side by side: energy, percent of the baseline, published figures where they exist."""
    chosen, run = chosen_network(network, input_shape, strict), training_run(training)
    traces = traces_of(trace, accuracy)
    asked: dict[str, Any] = {
        "hardware": names(hardware, "--hardware"),
        "methods": names(methods, "--methods"),
        "accounting": names(accounting, "--accounting"),
        "batch": traces[0].run.batch if traces and batch is None else images(batch, run),
        "baseline": baseline or None,
        "traces": traces,
        "mode": mode,
    }
    _compare(chosen, asked, run, accuracy, csv, out)


def _compare(
    network: Net,
    asked: dict[str, Any],
    run: Training | None,
    accuracy: float | None,
    csv: str,
    out: Path | None,
) -> None:
    """Compute the lines of `compare` and deliver them."""
    from hwmodel.accounting import Accounting as Preset
    from hwmodel.comparison import compare as compared
    from hwmodel.comparison import reached
    from hwmodel.evaluation import not_counted
    from hwmodel.files import load
    from hwmodel.views.screen_tables import comparison_tables, reached_table
    from hwmodel.views.tables import comparison_csv, notes

    presets = [load(Preset, name) for name in asked["accounting"]]
    total = len(asked["hardware"]) * len(asked["methods"]) * len(presets)
    lines = progress(compared(network, **asked), total, "comparing")
    _refuse_if_none(lines)
    ends = reached(lines, asked["traces"], accuracy) if asked["traces"] else []
    tables = [*comparison_tables(lines, run, parts=console().width >= 150)]
    tables += [reached_table(lines, ends)] if ends else []
    missing = {preset.name: not_counted(network, preset, asked["mode"]) for preset in presets}
    text = comparison_csv(lines, run, ends)
    names = "-".join(preset.name for preset in presets)
    stem = f"compare_{network.name}_{names}_{asked['mode']}_batch{asked['batch']}"
    deliver(tables, notes(missing), text, csv=csv, out=out, stem=stem, kinds=["methods"])
    _partly(lines)


def reproduce(
    table: Annotated[
        str, typer.Argument(help="A published table.", show_default="all of them")
    ] = "",
    accounting: Accountings = "paper,full",
    batch: Batch = None,
    csv: Csv = "",
    out: Out = None,
) -> None:
    """The source's energy tables, row by row: published, computed, and what does not come out."""
    from hwmodel.comparison import reproduce as reproduced
    from hwmodel.published import published_table, published_tables
    from hwmodel.views.screen_tables import reproduction_tables
    from hwmodel.views.tables import NATURE, comparison_csv

    wanted = [published_table(table)] if table else list(published_tables().values())
    presets = names(accounting, "--accounting")
    count = images(batch, None)
    lines: list[Comparison] = []
    tables: list[RenderableType] = []
    for published in wanted:
        total = len(published.figures) * len(published.chips) * len(presets)
        some = reproduced(published.name, accounting=presets, batch=count)
        mine = progress(some, total, published.name)
        lines += mine
        tables += reproduction_tables(published, mine)
    _refuse_if_none(lines)
    end = f"No constant was fitted to any row. All figures but the published are {NATURE}."
    stem = f"reproduce_{table or 'all'}_{'-'.join(presets)}_batch{count}"
    text = comparison_csv(lines, None)
    deliver(tables, end, text, csv=csv, out=out, stem=stem, kinds=[])
    _partly(lines)


def _refuse_if_none(lines: list[Comparison]) -> None:
    """Stop, with nothing written, where not one line could be computed."""
    if lines and all(line.energy is None for line in lines):
        raise HwmodelError(str(lines[0].reason))


def _partly(lines: list[Comparison]) -> None:
    """Exit with 1 where some lines could not be computed: what is there, is right."""
    for line in lines:
        if line.reason and line.energy is not None:
            say(f"hwmodel: {line.method} on {line.hardware}, {line.accounting}: {line.reason}")
    failed = [line for line in lines if line.energy is None]
    for line in failed:
        say(f"hwmodel: {line.method} on {line.hardware}, {line.accounting}: {line.reason}")
    if failed:
        raise typer.Exit(1)
