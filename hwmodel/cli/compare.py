"""compare and reproduce: methods side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.options import Files, Strict, Tables
from hwmodel.cli.screen import console, deliver, destination, progress, say, show, stem_of, watched
from hwmodel.errors import HwmodelError
from hwmodel.rerun.asked import CompareAsked, ReproduceAsked

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hwmodel.model.compare import Comparison
    from hwmodel.model.reached import Reached
    from hwmodel.rerun.question import Question
    from hwmodel.specs.provenance import Provenance

__all__ = ["compare", "reproduce"]


def compare(options: CompareAsked, to: Files, strict: Strict = False) -> None:
    """Methods side by side: energy, percent of the baseline, published figures where they exist."""
    from hwmodel.model.not_counted import not_counted, refuse_unknown
    from hwmodel.rerun.question import question
    from hwmodel.rerun.tables import comparison_table, notes
    from hwmodel.views.formats import Result
    from hwmodel.views.paper import comparison_paper

    where, asked = destination(to), question(options)
    if strict:
        refuse_unknown(asked.network)
    networks = [asked.network, *([asked.baseline_network] if asked.baseline_network else [])]
    total = len(asked.hardware) * (len(asked.methods) + len(networks) - 1) * len(asked.accountings)
    lines = progress(asked.lines(), total, "comparing")
    _refuse_if_none(lines)
    ends = asked.ends(lines)
    presets = asked.accountings
    missing = {
        preset.name: list(
            dict.fromkeys(x for one in networks for x in not_counted(one, preset, asked.mode))
        )
        for preset in presets
    }
    provenance = asked.provenance(where.date)
    paper = comparison_paper(lines, asked.training, asked.baseline_words(), provenance)
    table = comparison_table(lines, asked.training, ends)
    several = [[one.name for one in of] for of in (asked.hardware, asked.methods, presets)]
    run = [asked.mode], [f"batch{asked.batch}"]
    stem = stem_of(asked.asked, [one.name for one in networks], *several, *run)
    result = Result(table, paper, missing, provenance)
    page = _page(lines, asked, provenance) if where.html else ""
    tables = _tables(lines, ends, asked)
    looks, kinds = asked.methods, ["methods"] if len(networks) == 1 else []  # of one network
    deliver(tables, notes, result, where, stem=stem, kinds=kinds, page=page, looks=looks)
    _partly(lines)


def _tables(
    lines: list[Comparison], ends: list[Reached], asked: Question
) -> Iterator[RenderableType]:
    """What is printed of a comparison, made only where it is."""
    from hwmodel.views.screen_tables import comparison_tables, reached_tables

    yield from comparison_tables(lines, asked.training, parts=console().width >= 150)
    if ends:
        yield from reached_tables(lines, ends)


def _page(lines: list[Comparison], asked: Question, provenance: Provenance) -> str:
    """The HTML file of a comparison."""
    from hwmodel.rerun.tables import run_sentence
    from hwmodel.views.html.page import page

    run = asked.training
    remarks = [
        f"{line.method} on {line.hardware}, accounting {line.accounting}. "
        f"{run_sentence(line.report, run)}"
        for line in lines
        if run and line.report
    ]
    baseline = asked.baseline.name if asked.baseline else ""
    return page(lines, lines, provenance, asked.specs(), baseline=baseline, remarks=remarks)


def reproduce(
    options: ReproduceAsked,
    to: Tables,
    readings: Annotated[
        bool,
        typer.Option(
            "--readings", help="Every reading of what the source leaves open, row by row; alone."
        ),
    ] = False,
) -> None:
    """The source's tables, row by row: published, computed, and what does not come out."""
    if readings:
        _readings(options, to)
        return
    from hwmodel.rerun.question import reproduction
    from hwmodel.rerun.tables import NATURE, comparison_table
    from hwmodel.views.formats import Result
    from hwmodel.views.paper import comparison_paper
    from hwmodel.views.reproduction import reproduction_tables

    where, asked = destination(to), reproduction(options)
    by_table: list[list[Comparison]] = []
    tables: list[RenderableType] = []
    for published in asked.tables:
        total = len(published.modelled) * len(published.chips) * len(asked.accountings)
        mine = progress(asked.lines(published), total, published.name)
        by_table.append(mine)
        tables += reproduction_tables(published, mine)
    lines = asked.merged(by_table)
    _refuse_if_none(lines)
    presets = [preset.name for preset in asked.accountings]
    batch = [[f"batch{asked.batch}"]] if asked.batch else []
    stem = stem_of(asked.asked, [options.table or "all"], presets, *batch)
    provenance = asked.provenance(where.date)
    paper = comparison_paper(lines, None, asked.baseline_words(), provenance)
    missing = {preset.name: preset.not_counted for preset in asked.accountings}
    result = Result(comparison_table(lines), paper, missing, provenance)
    end = (
        "Choices of paper (docs/model.md section 7), the prices of an addition and of a Boolean "
        "operation among\nthem, were made to reconstruct the source's column for VGG-small. All "
        f"figures but the published are {NATURE}."
    )
    deliver(tables, lambda _: end, result, where, stem=stem, kinds=[])
    _partly(lines)


def _readings(options: ReproduceAsked, to: Tables) -> None:
    """All readings of all energy tables, to the screen. Raises: HwmodelError beside an option."""
    if options != ReproduceAsked() or to != Tables():
        raise HwmodelError("--readings prints what it finds, of all tables; it goes with no option")
    from hwmodel.rerun.tables import NATURE
    from hwmodel.vary.readings import readings
    from hwmodel.views.readings import readings_tables

    found = readings(watch=lambda several: watched(several, "reading"))
    show([*readings_tables(found), f"All figures but the published are {NATURE}."])


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
