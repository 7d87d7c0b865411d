"""report: one network on one chip under one method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.options import Files, Strict
from hwmodel.cli.screen import Destination, deliver, destination, stem_of
from hwmodel.errors import HwmodelError
from hwmodel.rerun.asked import ReportAsked

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hwmodel.model.report import Report
    from hwmodel.rerun.question import Question

__all__ = ["report"]


def report(
    options: ReportAsked,
    to: Files,
    tensors: Annotated[
        bool, typer.Option("--tensors", help="List every tensor: shape, bits, bytes, each way.")
    ] = False,
    steps: Annotated[
        bool,
        typer.Option("--schedule", help="List every step: what stays on the chip, and the room."),
    ] = False,
    strict: Strict = False,
    optimal_tiles: Annotated[
        str,
        typer.Option(help="Say what greedy tiles cost more than optimal ones: yes or no."),
    ] = "yes",
) -> None:
    """One network on one chip under one method: by layer, pass, tensor and memory."""
    from hwmodel.model.not_counted import refuse_unknown
    from hwmodel.rerun.question import question
    from hwmodel.views.colours import looks_of

    if optimal_tiles not in ("yes", "no"):
        raise HwmodelError(f"--optimal-tiles {optimal_tiles!r}: yes or no")
    where, asked = destination(to, draws=True), question(options)
    if strict:
        refuse_unknown(asked.network)
    with looks_of(asked.specs()):
        _report(asked, where, tensors, steps, optimal_tiles == "yes")


def _report(asked: Question, where: Destination, tensors: bool, steps: bool, beside: bool) -> None:
    """Compute what is asked, and deliver it; with what greedy tiles cost more, `beside` it."""
    from hwmodel.rerun.tables import report_table, tiles_sentence
    from hwmodel.views.colours import called
    from hwmodel.views.formats import Result
    from hwmodel.views.paper import report_paper

    found = asked.report()
    provenance = asked.provenance(where.date)
    names = (found.network.name, found.hardware.name, found.method.name, found.accounting.name)
    run = found.mode, f"batch{found.batch}"
    stem = stem_of(asked.asked, *([name] for name in (*names, *run)))
    missing = {found.accounting.name: found.not_counted}
    remark = tiles_sentence(found) if beside else ""
    moved = asked.moved_words(called)
    moved = f"Moved: {moved}." if moved else ""
    paper = report_paper(found, provenance, " ".join(filter(None, (moved, remark))))
    result = Result(report_table(found), paper, missing, provenance)
    if steps and found.residency is None:
        raise HwmodelError(
            "--schedule: nothing stays on the chip here; it needs an accounting with residency "
            "tensors, as chip, and a chip with a memory for it"
        )
    pieces = _pieces(found, asked, tensors, steps)
    page = _page(found, asked, where.date, beside, moved) if where.html else ""
    kinds = ["layers", "levels"]
    notes = partial(_notes, found, asked, "\n".join(filter(None, (moved, remark))))
    deliver(pieces, notes, result, where, stem=stem, kinds=kinds, page=page)


def _notes(
    found: Report, asked: Question, remark: str, not_counted: Mapping[str, Sequence[str]]
) -> str:
    """What is said below the tables."""
    from hwmodel.model.prices import paid_once
    from hwmodel.model.widths import unlearned
    from hwmodel.rerun.tables import notes, run_sentence

    end = notes(not_counted)
    doubt = unlearned(found.method, found.accounting) if found.mode == "training" else ""
    if doubt:
        end = f"{doubt}\n{end}"
    once = paid_once(found.hardware, asked.accountings[0])
    once = f"{found.hardware.label or found.hardware.name}: {once}" if once else ""
    told = found.by_width, found.unproved, found.idleness, found.attention, found.staying, once
    for said in filter(None, told):
        end = f"{said}.\n{end}"
    end = f"{remark}\n{end}" if remark else end
    return f"{run_sentence(found, asked.training)}\n{end}" if asked.training else end


def _page(found: Report, asked: Question, date: str | None, optimal_tiles: bool, moved: str) -> str:
    """The HTML file of a report, beside the baseline of its accounting."""
    from dataclasses import replace

    from hwmodel.model.compare import line_of, published_percent, set_beside
    from hwmodel.model.optimal_tiles import optimal_tiles as tiled_optimally
    from hwmodel.rerun.tables import run_sentence
    from hwmodel.specs.files import load
    from hwmodel.specs.method import Method
    from hwmodel.views.html.derivation import derivation
    from hwmodel.views.html.page import page

    said = run_sentence(found, asked.training) if asked.training else ""
    base = load(Method, found.accounting.baseline)
    (whole,) = replace(asked, methods=(base,), traces=()).lines(optimal_tiles)
    published = published_percent(
        found.network, found.method, found.hardware, base, found.batch, found.mode
    )
    mine = line_of(found, whole.energy, published)
    if optimal_tiles:
        mine = set_beside(mine, tiled_optimally(found), whole.optimal)
    beside = replace(asked, methods=(*asked.methods, base))
    return page(
        [mine] if base.name == found.method.name else [whole, mine],
        [mine],
        beside.provenance(date),
        beside.specs(),
        remarks=[*filter(None, (moved, said))],
        explained=derivation,
    )


def _pieces(
    found: Report, asked: Question, tensors: bool, steps: bool
) -> Iterator[RenderableType | str]:
    """What is printed of a report, made only where it is."""
    from hwmodel.views.schedule_table import schedule_tables
    from hwmodel.views.screen_tables import moved_tables, report_tables, tensor_table
    from hwmodel.views.time_tables import time_tables

    yield from report_tables(found)
    yield from time_tables(found)
    if asked.traces:
        yield from moved_tables(asked.report(traced=False), found)
    if tensors:
        yield tensor_table(found)
    if steps:
        yield from schedule_tables(found)
