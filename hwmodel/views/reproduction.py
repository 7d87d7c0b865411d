"""A published table beside ours: what the publication says of each row, and energies by chip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hwmodel.model.compare import Comparison
from hwmodel.rerun.tables import greedy_notes
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.specs.published import Figure, PublishedTable
from hwmodel.views.screen_tables import has_optimal, table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["reproduction_tables"]


def reproduction_tables(
    published: PublishedTable, lines: Sequence[Comparison]
) -> Iterator[RenderableType]:
    """Yield the scores of a published table, then a table of energies for each chip."""
    from rich.text import Text

    yield _scores(published)
    without = [
        f"  {' '.join(_names(f)).removesuffix(' -')}: {f.why}." for f in published.figures if f.why
    ]
    if without:
        yield Text("\n".join(["Without a model here:", *without, ""]))
    for chip in published.chips:
        here = [line for line in lines if line.hardware == chip]
        yield _energies(published, chip, here)
        yield from (Text(f"  {text}\n") for text in greedy_notes(here))


def _scores(published: PublishedTable) -> RenderableType:
    """What is published of each row: how it was trained, by which teacher, and its scores."""
    names = list(dict.fromkeys(name for figure in published.figures for name in figure.scores))
    words = {
        "bits": [figure.bits or "" for figure in published.figures],
        "trained": [figure.modality or "" for figure in published.figures],
        "run": [figure.training or "" for figure in published.figures],
        "teacher": list(map(_teacher, published.figures)),
    }
    shown = {word: cells for word, cells in words.items() if any(cells)}
    listed = table(
        f"{published.title}: {published.metric} as published, {published.unit}{_run(published)}",
        ["network", "method", *shown],
        names,
    )
    for figure, *cells in zip(published.figures, *shown.values(), strict=True):
        scores = [figure.scores.get(name) for name in names]
        listed.add_row(*_names(figure), *cells, *("-" if x is None else f"{x:g}" for x in scores))
    return listed


def _run(published: PublishedTable) -> str:
    """What the publication states of an iteration."""
    run, said = published.run, []
    if run.training:
        said.append(f"run {run.training}")
    if run.image:
        said.append(f"images of {run.image[0]} x {run.image[1]}")
    said.append(f"batch {run.batch}" if run.batch else "batch not stated")
    return f" ({', '.join(said)})"


def _names(figure: Figure) -> tuple[str, str]:
    """Network and method of a row, or its title."""
    return figure.network or figure.title or "", figure.method or "-"


def _teacher(figure: Figure) -> str:
    teacher = load(Method, figure.method).teacher if figure.method else None
    return teacher.network if teacher else ""


def _energies(published: PublishedTable, chip: str, lines: Sequence[Comparison]) -> RenderableType:
    """Published and computed percentages on one chip, row by row."""
    presets = list(dict.fromkeys(line.accounting for line in lines))
    of = {preset: [x for x in lines if x.accounting == preset] for preset in presets}
    # Lines come in the order of the pairs, once for each accounting.
    found = {preset: dict(zip(published.modelled, of[preset], strict=True)) for preset in presets}
    batches = [of[preset][0].batch for preset in presets]
    alike = len(set(batches)) == 1
    said = (
        f"batch {batches[0]}"
        if alike
        else "batch " + ", ".join(f"{b} ({p})" for p, b in zip(presets, batches, strict=True))
    )
    listed = table(
        f"{published.title} on {chip}: % of {published.baseline.network} under "
        f"{published.baseline.method}, one training iteration of {said}",
        ["network", "method"],
        ["published", *(head for preset in presets for head in _heads(preset, of[preset]))],
    )
    for figure in published.figures:
        if figure.modelled is None:
            continue
        same = [found[preset][figure.modelled] for preset in presets]
        cells = [cell for line in same for cell in _cells(line, has_optimal(of[line.accounting]))]
        listed.add_row(*_names(figure), _number(figure.energy_percent.get(chip)), *cells)
    return listed


def _heads(preset: str, lines: Sequence[Comparison]) -> list[str]:
    """Headings of the columns of one accounting."""
    more = [f"{preset}, optimal tiles"] if has_optimal(lines) else []
    return [preset, "residual %", *more]


def _cells(line: Comparison, optimal: bool) -> list[str]:
    found = [_number(line.percent_of_baseline), _number(line.residual_percent, "+.1f")]
    return [*found, *([_number(line.percent_of_baseline_optimal_tiles)] if optimal else [])]


def _number(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)
