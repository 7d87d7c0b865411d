"""reproduce: the source's tables, its figure, readings of what it leaves open; measured chips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.compare import partly, refuse_if_none
from hwmodel.cli.options import Drawn, Tables
from hwmodel.cli.screen import (
    REPORTS,
    deliver,
    destination,
    progress,
    say,
    stem_of,
    watched,
)
from hwmodel.errors import HwmodelError, printable
from hwmodel.rerun.asked import ReproduceAsked

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hwmodel.model.compare import Comparison
    from hwmodel.rerun.question import Reproduction

__all__ = ["reproduce"]

WIDE = "slides"  # style of figures with chips side by side


def reproduce(
    options: ReproduceAsked,
    to: Tables,
    drawn: Drawn,
    readings: Annotated[
        bool,
        typer.Option(
            "--readings",
            help="Every reading of what the source leaves open, row by row, of all its energies.",
        ),
    ] = False,
    measured: Annotated[
        bool,
        typer.Option(
            "--measured",
            help="What was measured on chips beside ours, unfitted; TABLE is one of its tables.",
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
    if measured or _is_measured(options.table):
        _measured(options, to, drawn, readings, figure)
    elif readings:
        _readings(options, to, figure)
    elif figure is not None:
        _figure(figure, options, to, drawn)
    else:
        _tables(options, to)


def _is_measured(table: str) -> bool:
    """Whether a table is one of measurements."""
    from hwmodel.specs.measured import measured_tables

    return bool(table) and table in measured_tables()


def _measured(
    options: ReproduceAsked, to: Tables, drawn: Drawn, readings: bool, figure: int | None
) -> None:
    """Tables of measurements. Raises: HwmodelError beside an option of published tables."""
    if options != ReproduceAsked(table=options.table) or readings or figure is not None:
        raise HwmodelError(
            "--measured states networks, chips and accountings of its own; beside it go only a "
            "table's name and options that say where it is written"
        )
    from hwmodel.rerun.asked import MeasuredAsked
    from hwmodel.rerun.question import measurements
    from hwmodel.rerun.tables import NATURE, against_table
    from hwmodel.vary.against import Against, against
    from hwmodel.views.figures.measured import measured_figure
    from hwmodel.views.formats import Result
    from hwmodel.views.measured_tables import measured_paper, measured_tables, sentence
    from hwmodel.views.plot import write_figure

    if drawn.ours:
        raise HwmodelError("--ours sets off methods, and --measured compares chips; leave it out")
    where, wide = destination(to, draws=True), drawn.as_style(WIDE)
    asked = measurements(MeasuredAsked(table=options.table))
    found: dict[str, list[Against]] = {}
    for table in asked.tables:
        found[table.name] = list(
            against(table, lambda rows, name=table.name: watched(rows, name))  # type: ignore[misc]
        )
    lines = [line for several in found.values() for line in several]
    provenance = asked.provenance(where.date)
    result = Result(against_table(lines), measured_paper(lines, provenance), {}, provenance)
    stem = stem_of(asked.asked, [options.table or "all"]).replace(" --", "_")
    tally = f"All: {sentence(lines)}\n" if len(asked.tables) > 1 else ""
    end = f"{tally}Our figures are {NATURE}."
    deliver(
        measured_tables(asked.tables, found), lambda _: end, result, where,
        stem=stem, kinds=[],
    )  # fmt: skip
    paths = [*where.figures]
    if where.folder is not None:
        paths += [where.folder / f"{stem}.{ending}" for ending in ("png", "svg")]
    if paths:
        stamp = provenance.cells
        write_figure(lambda own: measured_figure(lines, own), *paths, stamp=stamp, style=wide)
        say(printable(f"wrote {' and '.join(map(str, paths))}"))


def _tables(options: ReproduceAsked, to: Tables) -> None:
    """One table, or all of them."""
    from hwmodel.rerun.question import reproduction
    from hwmodel.rerun.tables import comparison_table
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
    refuse_if_none(lines)
    stem = stem_of(asked.asked, [options.table or "all"], *_names(asked))
    provenance = asked.provenance(where.date)
    said = [*asked.unlearned(), *asked.chosen_prices()]
    paper = comparison_paper(lines, None, asked.baseline_words(), provenance, notes=said)
    result = Result(comparison_table(lines), paper, asked.not_counted(), provenance)

    def end(not_counted: Mapping[str, Sequence[str]]) -> str:
        from hwmodel.rerun.tables import notes

        return "\n".join([*said, notes(not_counted)])

    deliver(tables, end, result, where, stem=stem, kinds=[])
    partly(lines)


def _names(asked: Reproduction) -> list[list[str]]:
    """What tells outputs of other accountings and batches apart."""
    batch = [] if asked.batch is None else [[f"batch{asked.batch}"]]
    return [[preset.name for preset in asked.accountings], *batch]


def _figure(number: int, options: ReproduceAsked, to: Tables, drawn: Drawn) -> None:
    """Draw a figure of the source. Raises: HwmodelError where it has none of that number."""
    from hwmodel.rerun.question import reproduction
    from hwmodel.specs.published import published_tables
    from hwmodel.views.figures.reproduced import reproduced_figure
    from hwmodel.views.plot import see_figure, write_figure

    figures = {t.figure: t for t in published_tables().values() if t.figure is not None}
    if number not in figures:
        raise HwmodelError(
            f"--figure {number}: the source's figures of energy are {', '.join(map(str, figures))}"
        )
    of_tables = [word for word in ("csv", "format", "date") if getattr(to, word)]
    if of_tables:
        raise HwmodelError(f"--{of_tables[0]} is of tables, and --figure draws; leave it out")
    destination(to.model_copy(update={"output": ()}))  # a folder that is none is told here
    published = figures[number]
    if options.table not in ("", published.name):
        raise HwmodelError(f"--figure {number} is of {published.name}, not of {options.table}")
    of_figure = {"table": published.name, "optimal_tiles": ""}
    asked = reproduction(options.model_copy(update=of_figure))
    stem = stem_of(asked.asked, [f"figure{number}"], *_names(asked))
    one = [Path(path) for path in to.output]
    for path in one:
        see_figure(path)
    folder = to.out or (None if one else REPORTS)
    paths = one + ([folder / f"{stem}.{ending}" for ending in ("png", "svg")] if folder else [])
    total = len(published.modelled) * len(published.chips) * len(asked.accountings)
    found = asked.lines(published, optimal_tiles=False)
    lines = progress(found, total, published.name)
    refuse_if_none(lines)
    stamp = asked.provenance().cells
    wide = drawn.as_style(WIDE)
    write_figure(
        lambda own: reproduced_figure(published, lines, own),
        *paths,
        stamp=stamp,
        style=wide,
        methods=[line.method for line in lines],
    )
    say(printable(f"wrote {' and '.join(map(str, paths))}"))
    partly(lines)


def _readings(options: ReproduceAsked, to: Tables, figure: int | None) -> None:
    """All readings of all tables with energies. Raises: HwmodelError beside an option of tables."""
    if options != ReproduceAsked() or figure is not None:
        raise HwmodelError(
            "--readings is of all tables with energies, and of accountings of its own; beside it "
            "go only options that say where its table is written"
        )
    from hwmodel.rerun.question import readings_provenance
    from hwmodel.rerun.tables import NATURE, readings_table
    from hwmodel.vary.readings import readings
    from hwmodel.views.formats import Result
    from hwmodel.views.readings import readings_paper, readings_tables

    where = destination(to)
    found = readings(watch=lambda several: watched(several, "reading"))
    provenance = readings_provenance(where.date)
    result = Result(readings_table(found), readings_paper(found, provenance), {}, provenance)
    end = f"All figures but the published are {NATURE}."
    stem = "reproduce_readings"
    deliver(readings_tables(found), lambda _: end, result, where, stem=stem, kinds=[])
