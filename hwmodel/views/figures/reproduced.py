"""A published figure of accuracy against energy, drawn with published and with our energies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hwmodel.model.compare import Comparison
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.specs.published import PublishedTable
from hwmodel.views.figures.canvas import Style, below, caption, heading, panels
from hwmodel.views.figures.pareto import framed
from hwmodel.views.figures.points import Point, name_points, scatter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduced_figure", "series_of"]


def series_of(
    published: PublishedTable, lines: Sequence[Comparison]
) -> dict[tuple[str, str], list[Point]]:
    """Points by chip and by whose energy it is: "published", or an accounting.

    An energy is in percent of the table's baseline, a score is the row's.
    """
    scores = {f.modelled: next(iter(f.scores.values())) for f in published.figures if f.modelled}
    found: dict[tuple[str, str], list[Point]] = {}
    for chip in published.chips:
        here = found[chip, "published"] = []
        for figure in published.figures:
            if figure.modelled and chip in figure.energy_percent:
                name = figure.modelled[1]
                score = scores[figure.modelled]
                here.append(Point(figure.energy_percent[chip], score, _title(name), name))
        for line in lines:
            if line.hardware == chip and line.percent_of_baseline:
                score = scores[line.network.partition("@")[0], line.method]
                point = Point(line.percent_of_baseline, score, _title(line.method), line.method)
                found.setdefault((chip, line.accounting), []).append(point)
    return found


def reproduced_figure(
    published: PublishedTable, lines: Sequence[Comparison], style: Style
) -> Figure:
    """Draw a panel for each source of energies and chip, the chips side by side."""
    found = series_of(published, lines)
    sources = dict.fromkeys(whose for _, whose in found)
    series = {(chip, whose): found[chip, whose] for whose in sources for chip in published.chips}
    columns = min(len(published.chips), style.columns)
    figure, axes = panels(style, len(series), 0.8 * style.height, columns=columns)
    batches = {line.accounting: line.batch for line in lines}
    for one, ((chip, whose), points) in zip(axes, series.items(), strict=True):
        scatter(one, points, style)
        framed(one, points, style)
        one.set_xlim(min(p.x for p in points) / 1.6, 250)  # names of dear methods stand outside
        below(one, style, "energy, % of full precision", once=True)
        one.set_ylabel(f"{published.metric}, {published.unit}")
        heading(one, style, f"{chip}, {whose}")
    ours = ", ".join(f"batch {batch} under {name}" for name, batch in batches.items())
    said = f"{published.title}: {published.metric} as published; one training iteration, {ours}"
    caption(figure, style, f"{said}; figure {published.figure} of the source and ours")
    name_points(figure, axes, list(series.values()), style)
    return figure


def _title(method: str) -> str:
    return load(Method, method).title
