"""compare and reproduce: methods side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
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

WIDE = "slides"  # style of figures with chips side by side


def compare(options: CompareAsked, to: Files, strict: Strict = False) -> None:
    """Methods side by side: energy, percent of the baseline, published figures where they exist."""
    from hwmodel.model.not_counted import not_counted, refuse_unknown
    from hwmodel.model.widths import unpriced
    from hwmodel.rerun.question import question
    from hwmodel.rerun.tables import comparison_table
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
    if asked.mode == "training":
        own = [item for method in asked.methods for item in unpriced(method)]
        missing = {name: [*items, *own] for name, items in missing.items()}
    provenance = asked.provenance(where.date)
    paper = comparison_paper(lines, asked.training, asked.baseline_words(), provenance)
    table = comparison_table(lines, asked.training, ends)
    several = [[one.name for one in of] for of in (asked.hardware, asked.methods, presets)]
    run = [asked.mode], [f"batch{asked.batch}"]
    stem = stem_of(asked.asked, [one.name for one in networks], *several, *run)
    result = Result(table, paper, missing, provenance)
    page = _page(lines, asked, provenance) if where.html else ""
    tables = _tables(lines, ends, asked)
    looks, end = asked.methods, partial(_notes, asked)
    kinds = ["methods"] if len(networks) == 1 else []  # of one network
    deliver(tables, end, result, where, stem=stem, kinds=kinds, page=page, looks=looks)
    _partly(lines)


def _notes(asked: Question, not_counted: Mapping[str, Sequence[str]]) -> str:
    """What is said below the tables."""
    from hwmodel.model.reached import noise
    from hwmodel.model.widths import unlearned
    from hwmodel.rerun.tables import notes

    pairs = product(asked.accountings, asked.methods) if asked.mode == "training" else ()
    said = dict.fromkeys(unlearned(method, choice) for choice, method in pairs)
    if asked.accuracy is not None:
        runs = {
            m.name: [t for t in asked.traces if t.epochs and t.run.method == m.name]
            for m in asked.methods
        }
        said[noise(runs, asked.accuracy)] = None
    return "\n".join([*filter(None, said), notes(not_counted)])


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
    figure: Annotated[
        int | None,
        typer.Option(
            help="Draw this figure of the source, with its energies and ours; -o FILE.svg, .pdf or "
            ".png, by default in reports/.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """The source's tables, row by row: published, computed, and what does not come out."""
    if readings:
        if figure is not None:
            raise HwmodelError("--readings goes with no option")
        _readings(options, to)
        return
    if figure is not None:
        _figure(figure, options, to)
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


def _figure(number: int, options: ReproduceAsked, to: Tables) -> None:
    """Draw a figure of the source. Raises: HwmodelError where it has none of that number."""
    from pathlib import Path

    from hwmodel.cli.screen import REPORTS
    from hwmodel.rerun.question import reproduction
    from hwmodel.specs.published import published_tables
    from hwmodel.views.figures.reproduced import reproduced_figure
    from hwmodel.views.plot import sizes, write_figure

    drawn = {t.figure: t for t in published_tables().values() if t.figure is not None}
    if number not in drawn:
        raise HwmodelError(
            f"--figure {number}: the source's figures of energy are {', '.join(map(str, drawn))}"
        )
    published = drawn[number]
    if options.table not in ("", published.name):
        raise HwmodelError(f"--figure {number} is of {published.name}, not of {options.table}")
    asked = reproduction(options.model_copy(update={"table": published.name}))
    stem = f"reproduce_figure{number}_{'+'.join(preset.name for preset in asked.accountings)}"
    folder = to.out or REPORTS
    one = [Path(to.output)] if to.output else []
    paths = one or [folder / f"{stem}.{ending}" for ending in ("png", "svg")]
    lines = progress(asked.lines(published), 0, published.name)
    _refuse_if_none(lines)
    stamp = list(map(str, asked.provenance().cells))
    write_figure(
        lambda: reproduced_figure(published, lines, sizes(WIDE)), *paths, stamp=stamp, style=WIDE
    )
    say(f"wrote {' and '.join(map(str, paths))}")


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
