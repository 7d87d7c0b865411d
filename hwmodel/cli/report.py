"""report: one network on one chip under one method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.network import InputShape
from hwmodel.cli.options import (
    Accounting,
    Batch,
    Csv,
    Date,
    Format,
    Hardware,
    Html,
    Method,
    Mode,
    Network,
    Out,
    Output,
    Run,
    Strict,
    TraceFile,
)
from hwmodel.cli.screen import deliver, destination

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hwmodel.model.evaluate import Report
    from hwmodel.rerun.question import Question

__all__ = ["report"]


def report(
    network: Network,
    hardware: Hardware,
    method: Method,
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
    format: Format = "",
    output: Output = "",
    csv: Csv = "",
    html: Html = "",
    out: Out = None,
    date: Date = False,
) -> None:
    """One network on one chip under one method: by layer, pass, tensor and level."""
    from hwmodel.model.not_counted import refuse_unknown
    from hwmodel.rerun.question import question
    from hwmodel.rerun.tables import report_table
    from hwmodel.specs.provenance import written
    from hwmodel.views.formats import Result
    from hwmodel.views.paper import report_paper

    options = {
        "--hardware": hardware, "--method": method, "--accounting": accounting, "--batch": batch,
        "--mode": mode, "--training": training, "--trace": trace, "--input-shape": input_shape,
    }  # fmt: skip
    to = destination(csv, format, output, out, date, html)
    asked = question(written("report", network, options))
    if strict:
        refuse_unknown(asked.network)
    found = asked.report()
    provenance = asked.provenance(to.date)
    names = (found.network.name, found.hardware.name, found.method.name, found.accounting.name)
    stem = f"report_{'_'.join(names)}_{mode}_batch{found.batch}"
    missing = {found.accounting.name: found.not_counted}
    result = Result(report_table(found), report_paper(found, provenance), missing, provenance)
    pieces = _pieces(found, asked, tensors)
    page = _page(found, asked, to.date) if to.html else ""
    kinds = ["layers", "levels"]
    notes = partial(_notes, found, asked)
    deliver(pieces, notes, result, to, stem=stem, kinds=kinds, page=page)


def _notes(found: Report, asked: Question, not_counted: Mapping[str, Sequence[str]]) -> str:
    """What is said below the tables."""
    from hwmodel.rerun.tables import notes, run_sentence

    end = notes(not_counted)
    end = f"{found.unproved}.\n{end}" if found.unproved else end
    return f"{run_sentence(found, asked.training)}\n{end}" if asked.training else end


def _page(found: Report, asked: Question, date: str | None) -> str:
    """The HTML file of a report, beside the baseline of its accounting."""
    from dataclasses import replace

    from hwmodel.model.compare import line_of, published_percent
    from hwmodel.rerun.tables import run_sentence
    from hwmodel.specs.files import load
    from hwmodel.specs.method import Method
    from hwmodel.views.html.derivation import derivation
    from hwmodel.views.html.page import page

    base = load(Method, found.accounting.baseline)
    (whole,) = replace(asked, methods=(base,), traces=()).lines()
    published = published_percent(
        found.network, found.method, found.hardware, base, found.batch, found.mode
    )
    mine = line_of(found, whole.energy, published)
    beside = replace(asked, methods=(*asked.methods, base))
    return page(
        [mine] if base.name == found.method.name else [whole, mine],
        [mine],
        beside.provenance(date),
        beside.specs(),
        remarks=[run_sentence(found, asked.training)] if asked.training else [],
        explained=derivation,
    )


def _pieces(found: Report, asked: Question, tensors: bool) -> list[RenderableType | str]:
    """What is printed of a report."""
    from hwmodel.views.screen_tables import moved_tables, report_tables, tensor_table

    pieces: list[RenderableType | str] = [*report_tables(found)]
    if asked.traces:
        pieces += moved_tables(asked.report(traced=False), found, asked.traces[0].run)
    if tensors:
        pieces.append(tensor_table(found))
    return pieces
