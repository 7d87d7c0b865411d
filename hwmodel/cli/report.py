"""report: one network on one chip under one method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hwmodel.cli.network import InputShape, chosen_network
from hwmodel.cli.options import (
    Accounting,
    Batch,
    Csv,
    Mode,
    Network,
    Out,
    Run,
    Strict,
    TraceFile,
    images,
    training_run,
)
from hwmodel.cli.screen import deliver

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hwmodel.evaluation import Report

__all__ = ["report"]


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

    chosen, run = chosen_network(network, input_shape, strict), training_run(training)
    asked: dict[str, Any] = {
        "network": chosen,
        "hardware": hardware,
        "method": method,
        "accounting": accounting,
        "batch": images(batch, run),
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
