"""Accuracy against energy, a point each method."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING

from hwmodel.errors import DataError
from hwmodel.rerun.tables import scale
from hwmodel.specs.published import accuracy_percent
from hwmodel.views.colours import called, look
from hwmodel.views.figures.canvas import Style, below, caption, heading, legend, panels, plain_ticks
from hwmodel.views.figures.points import Point, name_points, scatter
from hwmodel.views.figures.records import Page, Record, headline, label, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["accuracy", "framed", "front", "pareto_figure"]


def accuracy(record: Record, stated: Mapping[str, float] = {}) -> float | None:
    """Return a line's test accuracy [percent], as stated, traced or published; None if unknown.

    Args:
        stated: accuracies by method [percent].
    """
    if record["method"] in stated:
        return stated[record["method"]]
    if traced := record.get("trace_accuracy_percent"):
        return float(traced)
    return accuracy_percent(record["network"], record["method"])


def pareto_figure(page: Page) -> Figure:
    """Draw accuracy against energy, a panel a chip; the line joins points that no other beats.

    Raises: DataError where no line has both.
    """
    figure, apart = _drawn(page, by_names=True)
    return figure if apart else _drawn(page, by_names=False)[0]


def _drawn(page: Page, *, by_names: bool) -> tuple[Figure, bool]:
    """Draw it with names beside the points, or with a legend; say whether names are apart."""
    traced = any(_middle(record) for record in page.records)
    every = [(group, _points(group, page, traced)) for group in page.groups]
    groups = [group for group, (points, _) in every if points]
    series = [one for _, one in every if one[0]]
    if not series:
        raise DataError(
            "no row has both an energy and an accuracy, traced or published; state those you "
            f"know, --accuracy {page.records[0]['method']}=91.2"
        )
    style = page.style
    few = len(series) <= 2
    figure, axes = panels(
        style, len(series), (1 if few else 0.65) * style.height,
        columns=style.columns - 1 if few else page.columns,
    )  # fmt: skip
    for one, group, (points, unit) in zip(axes, groups, series, strict=True):
        scatter(one, points, style)
        if traced:
            _spreads(one, group, page)
        framed(one, points, style)
        what = f"energy to the accuracy asked for, {unit}" if traced else unit
        below(one, style, what, once=not traced)
        one.set_ylabel("test accuracy, %")
        heading(one, style, page.name(group))
    empty = [page.name(group) for group, (points, _) in every if not points]
    source = _source(page, {point.method for points, _ in series for point in points}, empty)
    caption(figure, style, f"{headline(page.records)}; accuracy {source}")
    if by_names:
        return figure, name_points(figure, axes, [points for points, _ in series], style)
    named = {p.text: look(p.method) for points, _ in series for p in points}
    legend(figure, style, named, marks=True)
    return figure, True


def _source(page: Page, drawn: Container[str], empty: Sequence[str]) -> str:
    """Say where accuracies are from, and which methods and panels are left out.

    Args:
        drawn: methods that have a point.
        empty: names of panels without any.
    """
    traced = any(_middle(record) for record in page.records)
    source = (
        "as traced; bars are what the runs of a method spread over" if traced else "as published"
    )
    names = unique(page.records, "method")
    methods = [called(m) for m in names if m in page.accuracies]
    if len(methods) == len(names):
        source = "as stated"
    elif methods:
        source = f"of {', '.join(methods)} as stated, else {source}"
    if missing := [called(name) for name in names if name not in drawn]:
        source += f"; without {', '.join(missing)}, of which there is no energy or no accuracy"
    return source + (f"; no point on {' and '.join(empty)}" if empty else "")


def _points(group: Sequence[Record], page: Page, traced: bool) -> tuple[list[Point], str]:
    """Return the points of one chip and the unit of their energy."""
    found = [(r, _middle(r) if traced else float(r["percent_of_baseline"] or 0)) for r in group]
    known = [
        (r, energy, percent)
        for r, energy in found
        if energy
        and (percent := accuracy(r, page.accuracies))
        is not None  # a logarithm has no place for zero
    ]
    divisor, unit = _scaled(group) if traced else (1.0, page.percent)
    points = [
        Point(energy / divisor, percent, label(r, page.records), r["method"])
        for r, energy, percent in known
    ]
    return points, unit


def _scaled(group: Sequence[Record]) -> tuple[float, str]:
    """Divisor and unit of a panel's energies to an accuracy."""
    return scale(max(map(_middle, group), default=0.0) or 1.0, group[0]["unit"])


def _middle(record: Record) -> float:
    """Energy to the accuracy asked for; of few runs the middle of their extremes on a logarithmic
    axis; 0 where it is not known.
    """
    if stated := record.get("energy_middle"):
        return float(stated)
    low, high = (float(record.get(field) or 0) for field in ("energy_low", "energy_high"))
    return sqrt(low * high)


def _spreads(axes: Axes, group: Sequence[Record], page: Page) -> None:
    """Draw a bar from the lower to the upper energy of each method's runs."""
    divisor, _ = _scaled(group)
    for record in group:
        low, high = (float(record.get(field) or 0) for field in ("energy_low", "energy_high"))
        percent = accuracy(record, page.accuracies)
        if low and high > low and percent is not None:
            axes.plot([low / divisor, high / divisor], [percent, percent], color="0.55",
                      lw=0.12 * page.style.size, zorder=2)  # fmt: skip


def front(points: Sequence[Point]) -> list[Point]:
    """Return the points more accurate than any other of at most their energy, by energy.

    >>> [p.text for p in front([Point(1, 5, "a", ""), Point(2, 4, "b", ""), Point(3, 6, "c", "")])]
    ['a', 'c']
    """
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.x, -p.y)):
        if not best or point.y > best[-1].y:
            best.append(point)
    return best


def framed(axes: Axes, points: Sequence[Point], style: Style) -> None:
    """Draw the front of a panel; set limits with room for names, and few round numbers as ticks."""
    axes.set_xscale("log")
    if points:
        low, high = min(p.x for p in points), max(p.x for p in points)
        axes.set_xlim(low / 1.6, high * 1.6)
        least, most = min(p.y for p in points), max(p.y for p in points)
        room = 0.12 * (most - least) or 1.0
        axes.set_ylim(least - room, most + room)
    best = front(points)
    stairs = [(p.x, p.y) for p in best[:1]]
    stairs += [corner for p, q in pairwise(best) for corner in ((q.x, p.y), (q.x, q.y))]
    axes.plot([x for x, _ in stairs], [y for _, y in stairs], color="0.75",
              lw=0.12 * style.size, zorder=1)  # fmt: skip
    plain_ticks(axes.xaxis)
    axes.grid()
