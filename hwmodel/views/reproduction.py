"""A published table beside ours: what the publication says of each row, and energies by chip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hwmodel.model.compare import Comparison
from hwmodel.rerun.tables import greedy_notes
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.specs.published import Figure, PublishedTable
from hwmodel.vary.readings import NEAR
from hwmodel.views.screen_tables import has_optimal, table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["reproduction_tables", "sentences"]

_STATED = {"image": "image size", "batch": "batch"}


def reproduction_tables(
    published: PublishedTable, lines: Sequence[Comparison]
) -> Iterator[RenderableType]:
    """Yield the scores of a published table, then a table of energies for each chip."""
    from rich.text import Text

    yield _scores(published)
    yield Text(f"  Source: {published.source}.\n")
    without = [
        f"  {' '.join(_names(f)).removesuffix(' -')}: {f.why}." for f in published.figures if f.why
    ]
    if without:
        yield Text("\n".join(["Without a model here:", *without, ""]))
    for chip in published.chips:
        here = [line for line in lines if line.hardware == chip]
        yield _energies(published, chip, here)
        yield from (Text(f"  {text}") for text in sentences(published, chip, here))
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
    unknown = [word for word in ("image", "batch") if getattr(run, word) is None]
    if run.batch:
        said.append(f"batch {run.batch}")
    if unknown:
        said.append(f"{' and '.join(_STATED[word] for word in unknown)} not stated")
    return f" (the source: {', '.join(said)})"


def _names(figure: Figure) -> tuple[str, str]:
    """Network and method of a row, or its title."""
    return figure.network or figure.title or "", figure.method or "-"


def _teacher(figure: Figure) -> str:
    teacher = load(Method, figure.method).teacher if figure.method else None
    return teacher.network if teacher else ""


def _energies(published: PublishedTable, chip: str, lines: Sequence[Comparison]) -> RenderableType:
    """Published and computed percentages on one chip, row by row."""
    presets = list(dict.fromkeys(line.accounting for line in lines))
    has = _has_energies(published)
    of = {preset: [x for x in lines if x.accounting == preset] for preset in presets}
    # Lines come in the order of the pairs, once for each accounting.
    found = {preset: dict(zip(published.modelled, of[preset], strict=True)) for preset in presets}
    by_run: dict[str, list[str]] = {}
    for preset in presets:
        by_run.setdefault(_iteration(of[preset]), []).append(preset)
    said = "; ".join(
        f"{run} ({', '.join(under)})" if by_run.keys() - {run} else run
        for run, under in by_run.items()
    )
    listed = table(
        f"{published.title} on {chip}: % of {published.baseline.network} under "
        f"{published.baseline.method}, one training iteration of {said}",
        ["network", "method"],
        [*["published"] * has, *(x for p in presets for x in _heads(p, of[p], has))],
    )
    for figure in published.figures:
        if figure.modelled is None:
            continue
        same = [found[preset][figure.modelled] for preset in presets]
        cells = [x for line in same for x in _cells(line, has_optimal(of[line.accounting]), has)]
        percents = [_number(figure.energy_percent.get(chip))] * has
        listed.add_row(*_names(figure), *percents, *cells)
    return listed


def _has_energies(published: PublishedTable) -> bool:
    return any(figure.energy_percent for figure in published.figures)


def _iteration(lines: Sequence[Comparison]) -> str:
    """Batch of an iteration and inputs of the networks, as they were computed."""
    shapes = (line.report.network.input for line in lines if line.report)
    inputs = dict.fromkeys(" x ".join(map(str, shape)) for shape in shapes)
    return f"batch {lines[0].batch}" + (f", input {' or '.join(inputs)}" if inputs else "")


def sentences(published: PublishedTable, chip: str, lines: Sequence[Comparison]) -> Iterator[str]:
    """Say which rows come out, and which do not; it follows from the numbers."""
    if not _has_energies(published):
        yield f"The source has no energies of this table on {chip} or elsewhere.\n"
        return
    base = published.baseline.network, published.baseline.method
    for preset in dict.fromkeys(line.accounting for line in lines):
        known = {
            pair: line.residual_percent
            for pair, line in zip(
                published.modelled, (x for x in lines if x.accounting == preset), strict=True
            )
            if pair != base and line.residual_percent is not None
        }
        off = {pair: x for pair, x in known.items() if abs(x) > NEAR}
        networks = {network for network, _ in known}
        named = [
            f"{method if len(networks) == 1 else f'{network} {method}'} {x:+.1f}"
            for (network, method), x in off.items()
        ]
        end = f"; not {', '.join(named)} %" if named else ""
        yield (
            f"{preset}: {len(known) - len(off)} of {len(known)} rows within {NEAR:g} % of the "
            f"published figure{end}.\n"
        )


def _heads(preset: str, lines: Sequence[Comparison], published: bool) -> list[str]:
    """Headings of the columns of one accounting."""
    more = [f"{preset}, optimal tiles"] if has_optimal(lines) else []
    return [preset, *["residual %"] * published, *more]


def _cells(line: Comparison, optimal: bool, published: bool) -> list[str]:
    found = [_number(line.percent_of_baseline)]
    found += [_number(line.residual_percent, "+.1f")] * published
    return [*found, *([_number(line.percent_of_baseline_optimal_tiles)] if optimal else [])]


def _number(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)
