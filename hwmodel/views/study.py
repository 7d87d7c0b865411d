"""A study of trainings: its table on the screen and as CSV, and its figure, with their spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hwmodel.errors import many
from hwmodel.rerun.tables import Table as Records
from hwmodel.rerun.tables import scale
from hwmodel.specs.provenance import Provenance
from hwmodel.trainer.study import Outcome
from hwmodel.views.colours import look
from hwmodel.views.figures.canvas import DRAFT, GREY, STYLES, Style, panels
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

__all__ = ["outcome_table", "outcomes_csv", "study_figure"]


def outcomes_csv(found: Sequence[Outcome], provenance: Provenance) -> str:
    """Every column of every row, and what made them, as CSV."""
    return Records(Outcome._fields, [tuple(one) for one in found]).csv(provenance)


def called(one: Outcome) -> str:
    """What a row is called: a method, or its control."""
    return f"{one.method}, frozen" if one.frozen else one.method


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


def _scaled(found: Sequence[Outcome], column: str) -> tuple[float, str]:
    """A divisor and its unit for a column of energies."""
    values = [value for one in found if (value := getattr(one, column)) is not None]
    return scale(min(values, default=1), next((one.unit for one in found if one.unit), "pJ"))


def study_figure(found: Sequence[Outcome], style: Style = STYLES[DRAFT]) -> Figure:
    """Draw a study, a row a network: accuracy at the end, and the energy or steps to the target.

    Bars are medians and lines quartiles; of fewer than five runs there are extremes and no bar.
    Where methods are priced, a last panel sets accuracy against the energy of an iteration.
    """
    networks = list(dict.fromkeys(one.network for one in found))
    rows = [[one for one in found if one.network == name] for name in networks]
    aimed = found[0].target_percent is not None
    priced = found[0].energy_iteration is not None
    across = 1 + aimed + priced
    height = max(style.height, style.bar * max(map(len, rows)))
    wide = style._replace(width=style.width * across)
    figure, axes = panels(wide, across * len(networks), height, columns=across)
    for row, mine in enumerate(rows):
        own = iter(axes[row * across : (row + 1) * across])
        _bars(next(own), mine, "test", 1, f"{mine[0].network}: test accuracy, %")
        if aimed:
            divisor, unit = _scaled(mine, "energy_low") if priced else (1.0, "")
            to = f"to {mine[0].target_percent:g} % on validation images"
            title = f"energy {to}, {unit}" if priced else f"steps {to}"
            _bars(next(own), mine, "energy" if priced else "steps", divisor, title)
        if priced:
            _points(next(own), mine)
    return figure


def _bars(axes: Axes, found: Sequence[Outcome], what: str, divisor: float, title: str) -> None:
    """A bar a method, with a line from the low to the high; an arrow where that has no end."""
    for y, one in enumerate(found):
        low, middle, high = (
            None if (n := getattr(one, f"{what}_{end}")) is None else n / divisor
            for end in ("low", "middle", "high")
        )
        if middle is not None:
            colour = look(one.method).colour
            axes.barh(y, middle, color=colour, alpha=0.4 if one.frozen else 0.85, height=0.7)
        if low is not None:
            end = high if high is not None else low
            axes.plot([low, end], [y, y], color=GREY, linewidth=1, marker="|")
        if what != "test" and one.runs_reached != one.runs:
            text = f"  reached {one.runs_reached} of {one.runs}"
            axes.annotate(text, (max(low or 0, middle or 0), y), va="center", color=GREY)
    axes.set_yticks(range(len(found)), [called(one) for one in found])
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel(title)


def _points(axes: Axes, found: Sequence[Outcome]) -> None:
    """Accuracy against the energy of an iteration, with a line from the low to the high."""
    divisor, unit = _scaled(found, "energy_iteration")
    for one in found:
        if one.energy_iteration is None:
            continue
        x, colour = one.energy_iteration / divisor, look(one.method).colour
        axes.plot([x, x], [one.test_low, one.test_high], color=colour, linewidth=1, marker="_")
        middle = one.test_mean if one.test_middle is None else one.test_middle
        axes.plot(x, middle, "o", color=colour, markersize=3)
        axes.annotate(f" {one.method}", (x, middle), size=STYLES[DRAFT].small - 2)
    axes.set_xlabel(f"energy of an iteration, {unit}")
    axes.set_ylabel("test accuracy, %")
