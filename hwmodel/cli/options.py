"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.offered import bundled_names

__all__ = ["Accounting", "Accountings", "Batch", "Chips", "Csv", "Date", "Format", "Hardware"]
__all__ += ["Html", "Method", "Methods", "Mode", "Network", "Out", "Output", "Run", "Strict"]
__all__ += ["TraceFile"]

_hardware, _method = bundled_names("hardware"), bundled_names("method")
_accounting = bundled_names("accounting")

Network = Annotated[
    str,
    typer.Argument(
        help="A bundled network, or a YAML or ONNX file.", autocompletion=bundled_names("network")
    ),
]
Hardware = Annotated[str, typer.Option(help="The chip, by name or file.", autocompletion=_hardware)]
Chips = Annotated[
    str,
    typer.Option(
        "--hardware", help="Chips, by name or file, separated by commas.", autocompletion=_hardware
    ),
]
Method = Annotated[str, typer.Option(help="The method, by name or file.", autocompletion=_method)]
Methods = Annotated[
    str,
    typer.Option(help="Methods, by name or file, separated by commas.", autocompletion=_method),
]
Accounting = Annotated[
    str,
    typer.Option(
        help="What is counted and how: a preset, or a YAML file.", autocompletion=_accounting
    ),
]
Accountings = Annotated[
    str,
    typer.Option(
        "--accounting",
        help="Presets or YAML files, separated by commas.",
        autocompletion=_accounting,
    ),
]
Batch = Annotated[
    int | None,
    typer.Option(
        help="Images in the iteration.",
        show_default="1; the training's; in compare the trace's",
    ),
]
Mode = Annotated[str, typer.Option(help="training (all passes) or inference (forward only).")]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="markdown or latex (tables for print), csv, json, parquet or excel (every row); only "
        "this goes to standard output, and no figures are drawn. With -o, to that file.",
        show_default="the ending of -o",
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "--output", "-o", help="Write one file, .md, .tex, .csv, .json, .parquet or .xlsx, "
        "and no figures.", show_default=False,
    ),
]  # fmt: skip
Csv = Annotated[
    str,
    typer.Option("--csv", help="Short for --format csv -o FILE; '-' is standard output."),
]
Html = Annotated[
    str,
    typer.Option(
        "--html", help="Write one HTML file that needs nothing beside it, and no figures.",
        show_default=False,
    ),
]  # fmt: skip
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the CSV and the figures.",
        show_default="reports, unless one file is asked for",
    ),
]
Run = Annotated[
    str,
    typer.Option(
        "--training",
        help="A whole training run, too: a preset, or a YAML file.",
        autocompletion=bundled_names("training"),
    ),
]
TraceFile = Annotated[
    str, typer.Option("--trace", help="Measured widths and flip rates in place of assumed ones.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse operators that have no model.")]
Date = Annotated[bool, typer.Option("--date", help="Put the date (UTC) into what is written.")]
