"""explain: the whole derivation of one layer's energy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.network import InputShape
from hwmodel.cli.options import Accounting, Batch, Hardware, Method, Mode, Network, TraceFile
from hwmodel.cli.screen import console, handed
from hwmodel.errors import HwmodelError, nearest

__all__ = ["explain"]

_PASSES = ("forward", "backward-input", "backward-weight", "update")


def explain(
    network: Network,
    layer: Annotated[str, typer.Option(help="The layer, by its name in the network.")],
    hardware: Hardware,
    method: Method,
    accounting: Accounting = "paper",
    batch: Batch = None,
    mode: Mode = "training",
    pass_: Annotated[
        str, typer.Option("--pass", help="One pass only: " + ", ".join(_PASSES) + ".")
    ] = "",
    trace: TraceFile = "",
    input_shape: InputShape = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the Markdown to this .md file.")
    ] = None,
) -> None:
    """One layer's energy, formula by formula with its numbers, down to the report's rows."""
    if output is not None and output.suffix.lower() != ".md":
        raise HwmodelError(f"--output {output}: an explanation is written to a .md file")
    if pass_ and pass_ not in _PASSES:
        raise HwmodelError(f"--pass {pass_!r}: {nearest(pass_, _PASSES)}")
    from hwmodel.rerun.question import question
    from hwmodel.specs.provenance import written
    from hwmodel.views.explain.explanation import explanation

    options = {
        "--layer": layer, "--hardware": hardware, "--method": method, "--accounting": accounting,
        "--batch": batch, "--mode": mode, "--pass": pass_, "--trace": trace,
        "--input-shape": input_shape,
    }  # fmt: skip
    asked = question(written("explain", network, options))
    report = asked.report()
    text = explanation(report, layer, pass_.replace("-", "_") or None)
    text += f"\nMade by {asked.provenance()}\n"
    if output is not None:
        handed(text, output)
        return
    screen = console()
    if screen.is_terminal:
        from rich.markdown import Markdown

        screen.print(Markdown(text))
    else:
        typer.echo(text, nl=False)
