"""compare, report, reproduce and plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hwmodel.cli.network import InputShape, chosen_network
from hwmodel.cli.screen import console, deliver, progress, say
from hwmodel.errors import HwmodelError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hwmodel.comparison import Comparison
    from hwmodel.evaluation import Report
    from hwmodel.network import Network as Net
    from hwmodel.trace import Trace
    from hwmodel.training import Training

__all__ = ["compare", "plot", "report", "reproduce"]

Network = Annotated[str, typer.Argument(help="A bundled network, or a YAML or ONNX file.")]
Accounting = Annotated[str, typer.Option(help="What is counted and how: a preset, or a YAML file.")]
Accountings = Annotated[
    str, typer.Option("--accounting", help="Presets or YAML files, separated by commas.")
]
Batch = Annotated[
    int | None, typer.Option(help="Images in the iteration.", show_default="1, or the training's")
]
Mode = Annotated[str, typer.Option(help="training (all passes) or inference (forward only).")]
Csv = Annotated[
    str,
    typer.Option(
        "--csv", help="Write the CSV here and no figures; '-': to standard output, and no tables."
    ),
]
Out = Annotated[
    Path | None, typer.Option(help="Folder for the CSV and the figures.", show_default="reports")
]
Run = Annotated[
    str, typer.Option("--training", help="A whole training run, too: a preset, or a YAML file.")
]
TraceFile = Annotated[
    str, typer.Option("--trace", help="Measured widths and flip rates in place of assumed ones.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse operators that have no model.")]


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
    chosen, run = chosen_network(network, input_shape), _run(training)
    traces = _traces(trace, accuracy)
    asked: dict[str, Any] = {
        "hardware": _names(hardware, "--hardware"),
        "methods": _names(methods, "--methods"),
        "accounting": _names(accounting, "--accounting"),
        "batch": traces[0].run.batch if traces and batch is None else _images(batch, run),
        "baseline": baseline or None,
        "traces": traces,
        "mode": mode,
    }
    if strict:
        _refuse_unknown(chosen)
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


def _refuse_unknown(network: Net) -> None:
    from hwmodel.evaluation import refuse_unknown

    refuse_unknown(network)


def report(
    network: Network,
    hardware: Annotated[str, typer.Option(help="The chip, by name or file.")],
    method: Annotated[str, typer.Option(help="The method, by name or file.")],
    batch: Batch = None,
    accounting: Accounting = "paper",
    mode: Mode = "training",
    training: Run = "",
    trace: TraceFile = "",
    tensors: Annotated[
        bool, typer.Option("--tensors", help="List every tensor: shape, bits, bytes, each way.")
    ] = False,
    input_shape: InputShape = None,
    strict: Strict = False,
    csv: Csv = "",
    out: Out = None,
) -> None:
    """One network on one chip under one method: by layer, pass, tensor and level."""
    from hwmodel.views.tables import notes, report_csv, run_sentence

    chosen, run = chosen_network(network, input_shape), _run(training)
    if strict:
        _refuse_unknown(chosen)
    asked: dict[str, Any] = {
        "network": chosen,
        "hardware": hardware,
        "method": method,
        "accounting": accounting,
        "batch": _images(batch, run),
        "mode": mode,
    }
    found, pieces = _report(asked, trace, tensors)
    end = notes({found.accounting.name: found.not_counted})
    end = f"{found.unproved}.\n{end}" if found.unproved else end
    if run is not None:
        end = f"{run_sentence(found, run)}\n{end}"
    inputs = (found.network.name, found.hardware.name, found.method.name, found.accounting.name)
    stem = f"report_{'_'.join(inputs)}_{mode}_batch{found.batch}"
    deliver(pieces, end, report_csv(found), csv=csv, out=out, stem=stem, kinds=["layers", "levels"])


def _report(
    asked: dict[str, Any], trace: str, tensors: bool
) -> tuple[Report, list[RenderableType | str]]:
    """The report that is asked for, and what is printed of it."""
    from hwmodel.evaluation import evaluate
    from hwmodel.views.screen_tables import moved_tables, report_tables, tensor_table

    found = evaluate(**asked, trace=trace or None)
    pieces: list[RenderableType | str] = [*report_tables(found)]
    if trace:
        pieces += moved_tables(evaluate(**asked), found)
    if tensors:
        pieces.append(tensor_table(found))
    return found, pieces


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
    presets = _names(accounting, "--accounting")
    images = _images(batch, None)
    lines: list[Comparison] = []
    tables: list[RenderableType] = []
    for published in wanted:
        total = len(published.figures) * len(published.chips) * len(presets)
        some = reproduced(published.name, accounting=presets, batch=images)
        mine = progress(some, total, published.name)
        lines += mine
        tables += reproduction_tables(published, mine)
    _refuse_if_none(lines)
    end = f"No constant was fitted to any row. All figures but the published are {NATURE}."
    stem = f"reproduce_{table or 'all'}_{'-'.join(presets)}_batch{images}"
    text = comparison_csv(lines, None)
    deliver(tables, end, text, csv=csv, out=out, stem=stem, kinds=[])
    _partly(lines)


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


def _run(name: str) -> Training | None:
    from hwmodel.files import load
    from hwmodel.training import Training

    return load(Training, name) if name else None


def _traces(listed: str, accuracy: float | None) -> list[Trace]:
    from hwmodel.trace import read_trace

    if accuracy is not None and not (listed and 0 < accuracy <= 1):
        raise HwmodelError(f"--accuracy {accuracy}: a share above 0, at most 1, with --trace")
    traces = [read_trace(Path(name)) for name in _names(listed, "--trace")] if listed else []
    methods = [trace.run.method for trace in traces]
    if len(set(methods)) < len(methods):
        raise HwmodelError(f"--trace {listed}: two of the traces are of one method")
    return traces


def _images(batch: int | None, run: Training | None) -> int:
    """The batch: as asked for, else that of the training run, else one image."""
    if batch is not None:
        return batch
    return run.batch if run else 1


def _names(listed: str, option: str) -> list[str]:
    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise HwmodelError(f"{option} {listed!r}: names separated by commas, none of them empty")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise HwmodelError(f"{option} {listed!r}: {twice[0]} stands there twice")
    return names
