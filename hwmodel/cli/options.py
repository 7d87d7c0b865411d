"""Options that several commands take, and how their words are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.errors import HwmodelError

if TYPE_CHECKING:
    from hwmodel.trace import Trace
    from hwmodel.training import Training

__all__ = ["Accounting", "Accountings", "Batch", "Csv", "Mode", "Network", "Out", "Run", "Strict"]
__all__ += ["TraceFile", "images", "names", "traces_of", "training_run"]

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


def training_run(name: str) -> Training | None:
    """The training run of a name or file; "" is none."""
    from hwmodel.files import load
    from hwmodel.training import Training

    return load(Training, name) if name else None


def traces_of(listed: str, accuracy: float | None) -> list[Trace]:
    """Traces of as many methods, from files separated by commas."""
    from hwmodel.trace import read_trace

    if accuracy is not None and not (listed and 0 < accuracy <= 1):
        raise HwmodelError(f"--accuracy {accuracy}: a share above 0, at most 1, with --trace")
    traces = [read_trace(Path(name)) for name in names(listed, "--trace")] if listed else []
    methods = [trace.run.method for trace in traces]
    if len(set(methods)) < len(methods):
        raise HwmodelError(f"--trace {listed}: two of the traces are of one method")
    return traces


def images(batch: int | None, run: Training | None) -> int:
    """The batch: as asked for, else that of the training run, else one image."""
    if batch is not None:
        return batch
    return run.batch if run else 1


def names(listed: str, option: str) -> list[str]:
    """Names separated by commas, each once."""
    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise HwmodelError(f"{option} {listed!r}: names separated by commas, none of them empty")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise HwmodelError(f"{option} {listed!r}: {twice[0]} stands there twice")
    return names
