"""Tornado plots: how far each method's percentage moves with the fields that move it most."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodel.rerun.tables import NATURE, what
from hwmodel.vary.sensitivity import Effect
from hwmodel.views.colours import looks
from hwmodel.views.plot import write_figure
from hwmodel.views.sensitivity_tables import largest, short, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_tornado"]

BARS = 8  # fields of a panel
COLUMNS = 2


def draw_tornado(effects: Sequence[Effect], path: Path, stamp: Sequence[str] = ()) -> None:
    """Write the figure of one chip; the ending of `path` says in which format.

    Args:
        stamp: version, inputs and command, for the foot of the figure.

    Raises: HwmodelError for an unknown format.
    """
    write_figure(lambda: tornado_figure(effects), path, stamp=stamp)


def tornado_figure(effects: Sequence[Effect]) -> Figure:
    """Draw a panel for each method that anything moves: bars from unmoved to moved percentages.

    The field of largest effect is on top.
    """
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(effect.method for effect in effects))
    mine = {name: [e for e in effects if e.method == name] for name in methods}
    moved = [name for name in methods if largest(mine[name])]
    look = looks(methods)
    lines = max(1, ceil(len(moved) / COLUMNS))
    figure = Figure(figsize=(6.2 * min(COLUMNS, max(1, len(moved))), 0.5 + 2.7 * lines),
                    layout="constrained")  # fmt: skip
    for number, name in enumerate(moved, start=1):
        axes = figure.add_subplot(lines, min(COLUMNS, len(moved)), number)
        _panel(axes, mine[name], look[name].colour)
    first = effects[0]
    figure.suptitle(
        f"{first.network} on {first.hardware}, {what(first.mode, first.batch)}, accounting "
        f"{first.accounting} ({NATURE})",
        fontsize=8,
        color="0.3",
    )
    return figure


def _panel(axes: Axes, mine: Sequence[Effect], colour: str) -> None:
    """Draw the bars of one method. Each ends in the value moved to; lines mark other values."""
    fields = [field for field, _ in largest(mine)[:BARS]]
    base = next(e.percent_before for e in mine if e.percent_before is not None)
    for row, field in enumerate(fields):
        here = [e for e in mine if e.field == field and e.change_points is not None]
        for up in (False, True):
            side = [e for e in here if e.change_points and (e.change_points > 0) == up]
            _bar(axes, row, base, sorted(side, key=lambda e: -abs(e.change_points or 0)), colour)
    axes.axvline(base, color="k", lw=0.8)
    names = [short(field).partition(".")[2] for field in fields]
    axes.set_yticks(range(len(fields)), names, fontsize=7)
    axes.invert_yaxis()
    axes.margins(x=0.25)
    left, right = axes.get_xlim()
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= right])
    axes.set_xlim(left, right)
    axes.grid(axis="x", color="0.9")
    axes.set_title(f"{mine[0].method}: {base:.4g} %", loc="left", fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel("energy, % of the baseline", fontsize=8)


def _bar(axes: Axes, row: int, base: float, side: Sequence[Effect], colour: str) -> None:
    """Draw the moves to one side, the farthest first; its value stands at the end."""
    for effect in side:
        change = effect.change_points or 0.0
        axes.barh(row, change, 0.62, left=base, color=colour, alpha=0.9 if change > 0 else 0.5,
                  ec="white", lw=0.5)  # fmt: skip
    if side:
        far = side[0].change_points or 0.0
        axes.annotate(
            shown(side[0].value_to, side[0].field, side[0].unit) + (", …" if len(side) > 1 else ""),
            (base + far, row),
            (3 if far > 0 else -3, 0),
            textcoords="offset points",
            ha="left" if far > 0 else "right",
            va="center",
            size=7,
        )
