"""A study of trainings: its table on the screen and as CSV, and its figure, with their spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodel.errors import DataError, many
from hwmodel.rerun.tables import Table as Records
from hwmodel.rerun.tables import read_rows, scale
from hwmodel.specs.provenance import Provenance
from hwmodel.trainer.study import Outcome
from hwmodel.views.colours import called as named
from hwmodel.views.colours import look
from hwmodel.views.figures.canvas import (
    DRAFT,
    GREY,
    STYLES,
    Style,
    below,
    beside,
    broken,
    caption,
    heading,
    height_of,
    panels,
)
from hwmodel.views.figures.points import Point, name_points, scatter
from hwmodel.views.plot import write_figure
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

__all__ = ["draw_outcomes", "outcome_table", "outcomes_csv", "study_figure"]


def outcomes_csv(found: Sequence[Outcome], provenance: Provenance) -> str:
    """Every column of every row, and what made them, as CSV."""
    return Records(Outcome._fields, [tuple(one) for one in found]).csv(provenance)


def called(one: Outcome) -> str:
    """What a row is called: a method, or its control."""
    return f"{named(one.method)}, frozen" if one.frozen else named(one.method)


def outcome_table(found: Sequence[Outcome]) -> Table:
    """Tabulate what the methods of one network reached: medians with quartiles, or extremes."""
    first = found[0]
    iteration, per = _scaled(found, "energy_iteration")
    whole, unit = _scaled(found, "energy_low")
    priced = first.energy_iteration is not None
    aimed = first.target_percent is not None
    columns = ["runs", "test, %"]
    columns += ["validation, %"] if first.validation_low is not None else []
    columns += ["reached", "steps"] if aimed else []
    columns += [f"an iteration, {per}"] if priced else []
    columns += [f"energy to it, {unit}"] if priced and aimed else []
    listed = table(_title(first), ["method"], columns)
    for one in found:
        cells = [str(one.runs), _ranged(one, "test", ".1f")]
        cells += [_ranged(one, "validation", ".1f")] if first.validation_low is not None else []
        if aimed:
            cells += [f"{one.runs_reached} of {one.runs}", _ranged(one, "steps", ",d")]
        if priced:
            price = one.energy_iteration
            cells.append("-" if price is None else f"{price / iteration:,.2f}")
        if priced and aimed:
            cells.append(_ranged(one, "energy", ",.1f", whole))
        listed.add_row(called(one), *cells)
    return listed


def _title(one: Outcome) -> str:
    """Say what the table is of."""
    stated = [
        f"{one.network} on {one.dataset}",
        f"{many(one.train_images, 'image')} to train on, batch {one.batch}, "
        f"{many(one.planned_steps, 'step')}",
    ]
    if one.target_percent is not None:
        stated.append(
            f"to {one.target_percent:g} % of {one.validation_images} validation images, the first "
            f"of {many(one.sustain or 1, 'evaluation')} in a row, every "
            f"{many(one.steps_between_evaluations, 'step')}"
        )
    spread = {"quartiles": "median [quartiles]", "extremes": "least to most"}.get(one.spread)
    stated += [spread] if spread else []
    if one.hardware:
        stated.append(
            f"{one.hardware}, accounting {one.accounting}, at widths assumed, not measured"
        )
    return "; ".join(stated)


def _ranged(one: Outcome, what: str, form: str, divisor: float = 1) -> str:
    """Write "12" of one run, "12 to 15" of few, "13 [12, 15]" of many; "-" is never reached."""
    numbers = [getattr(one, f"{what}_{end}") for end in ("low", "middle", "high")]
    if not any(n is not None for n in numbers):
        return "-"
    low, middle, high = (
        "-" if n is None else format(n if divisor == 1 else n / divisor, form) for n in numbers
    )
    if one.spread == "one run":
        return middle
    return f"{low} to {high}" if one.spread == "extremes" else f"{middle} [{low}, {high}]"


def _scaled(
    found: Sequence[Outcome], column: str, of: Callable[..., float] = min
) -> tuple[float, str]:
    """A divisor and its unit for a column of energies: for a table that of the least.

    Args:
        of: max for an axis, which reaches to the largest.
    """
    values = [value for one in found if (value := getattr(one, column)) is not None]
    return scale(of(values, default=1), next((one.unit for one in found if one.unit), "pJ"))


def study_figure(found: Sequence[Outcome], style: Style = STYLES[DRAFT]) -> Figure:
    """Draw a study, a row a network: accuracy at the end, and the energy or steps to the target.

    Bars are medians and lines quartiles; of fewer than five runs there are extremes, and no bar.
    Where methods are priced, a last panel sets accuracy against the energy of an iteration.
    """
    networks = list(dict.fromkeys(one.network for one in found))
    rows = [[one for one in found if one.network == name] for name in networks]
    aimed = found[0].target_percent is not None
    priced = found[0].energy_iteration is not None
    across = 1 + aimed + priced
    beside = across if style.columns >= across else 1
    names = [broken(called(one), 0.35 * style.width / beside, style.small) for one in found]
    each = max(style.bar, max(1.3 * height_of(name, style.small) for name in names))
    height = max(0.6 * style.height, each * max(map(len, rows)))
    figure, axes = panels(style, across * len(networks), height, columns=beside)
    points = []
    for row, mine in enumerate(rows):
        own = iter(axes[row * across : (row + 1) * across])
        _bars(next(own), mine, "test", 1, "test accuracy, %", style)
        if aimed:
            divisor, unit = _scaled(mine, "energy_high", max) if priced else (1.0, "")
            to = f"to {mine[0].target_percent:g} % on validation images"
            title = f"energy {to}, {unit}" if priced else f"steps {to}"
            _bars(next(own), mine, "energy" if priced else "steps", divisor, title, style)
        if priced:
            last = next(own)
            points.append((last, _points(last, mine, style)))
    caption(figure, style, "; ".join(_title(mine[0]) for mine in rows))
    name_points(figure, [one for one, _ in points], [several for _, several in points], style)
    return figure


def _bars(
    axes: Axes, found: Sequence[Outcome], what: str, divisor: float, title: str, style: Style
) -> None:
    """A bar a method, with a line from the low to the high; an arrow where that has no end."""
    for y, one in enumerate(found):
        low, middle, high = (
            None if (n := getattr(one, f"{what}_{end}")) is None else n / divisor
            for end in ("low", "middle", "high")
        )
        colour, alpha = look(one.method).colour, 0.4 if one.frozen else 0.85
        if middle is not None:
            axes.barh(y, middle, color=colour, alpha=alpha, height=0.7)
        if low is not None:
            end = high if high is not None else low
            line, width = (GREY, 1.0) if middle is not None else (colour, 1.5)
            axes.plot([low, end], [y, y], color=line, linewidth=width, marker="|",
                      markersize=3 * width + 3, markeredgewidth=width)  # fmt: skip
        if what != "test" and one.runs_reached != one.runs:
            text = f" reached {one.runs_reached} of {one.runs}"
            at = max(low or 0, middle or 0), y
            axes.annotate(text, at, va="center", color=GREY, size=style.small)
    room = 0.35 * style.width / beside(axes)
    names = [broken(called(one), room, style.small) for one in found]
    axes.set_yticks(range(len(found)), names)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.locator_params(axis="x", nbins=4)
    heading(axes, style, named(found[0].network, "network"))
    below(axes, style, title)


def _points(axes: Axes, found: Sequence[Outcome], style: Style) -> list[Point]:
    """Accuracy against the energy of an iteration, with a line from the low to the high."""
    divisor, unit = _scaled(found, "energy_iteration", max)
    points = []
    for one in found:
        if one.energy_iteration is None:
            continue
        x, colour = one.energy_iteration / divisor, look(one.method).colour
        axes.plot([x, x], [one.test_low, one.test_high], color=colour, linewidth=1, marker="_")
        middle = one.test_mean if one.test_middle is None else one.test_middle
        points.append(Point(x, middle, named(one.method), one.method))
    scatter(axes, points, style)
    axes.margins(0.2)
    heading(axes, style, named(found[0].network, "network"))
    below(axes, style, f"energy of an iteration, {unit}")
    axes.set_ylabel("test accuracy, %")
    return points


def draw_outcomes(path: Path, to: Path, kind: str, style: Style) -> str:
    """Draw the table of a study. Return the caption. Raises: HwmodelError."""
    if kind not in ("", "study"):
        raise DataError(f"{path}: the table of a study is drawn as kind study, not {kind}")
    found, stamp = read_rows(path, Outcome, "table of a study")
    methods = list(dict.fromkeys(one.method for one in found))
    return write_figure(
        lambda own: study_figure(found, own), to, stamp=stamp, style=style, methods=methods
    )
