"""Published figures against ours, log-log: the one-to-one line, and a band of a factor of two."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodel.errors import DataError, HwmodelError
from hwmodel.rerun.tables import read_rows
from hwmodel.vary.against import ABOVE, CALIBRATION, Against
from hwmodel.views.colours import Look
from hwmodel.views.figures.canvas import (
    GREY,
    Style,
    below,
    caption,
    heading,
    legend,
    marker,
    panels,
    plain_ticks,
)
from hwmodel.views.figures.points import Point, name_points
from hwmodel.views.figures.records import LARGEST
from hwmodel.views.plot import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_measured", "measured_figure"]

KIND = "measured"
WIDE = 5.0  # inches that two panels with decades at their ticks take side by side

_LOOKS = (
    Look("#0072b2", "o", ""), Look("#d55e00", "s", ""), Look("#009e73", "^", ""),
    Look("#cc79a7", "D", ""), Look("#e69f00", "v", ""), Look("#56b4e9", "P", ""),
    Look("#000000", "X", ""), Look("#999999", "<", ""), Look("#5e3c99", ">", ""),
)  # fmt: skip
FEW = 10  # points of a panel that all have names
_PANELS = {
    "energy, J": ("energy",),
    "rate, 1/s; GB/s": ("rate", "bandwidth"),
    "Eyeriss: MB, ms, %, MAC": ("dram", "buffer", "time", "share", "levels"),
}


def measured_figure(lines: Sequence[Against], style: Style) -> Figure:
    """Draw a panel for energies, for rates and for the counts of a chip, as far as there are."""
    names = list(dict.fromkeys(line.table for line in lines))
    looks = {name: _LOOKS[n % len(_LOOKS)] for n, name in enumerate(names)}
    shown = {
        title: mine
        for title, quantities in _PANELS.items()
        if (mine := [line for line in lines if line.quantity in quantities])
    }
    columns = min(len(shown), 2 if style.width >= WIDE else 1)
    figure, axes = panels(style, len(shown), style.height, columns=columns)
    for one, (title, mine) in zip(axes, shown.items(), strict=True):
        _band(one, mine)
        for line in mine:
            hollow = {"markerfacecolor": "white"} if line.verdict == CALIBRATION else {}
            drawn = marker(looks[line.table], style) | hollow
            one.plot([line.published], [line.ours], zorder=3, **drawn)
        heading(one, style, title)
        below(one, style, "published")
    axes[0].set_ylabel("ours")
    said = "on the line they are equal, in the band within a factor of two"
    if any(line.verdict == CALIBRATION for line in lines):
        said += "; a constant of its chip is from a hollow point, nothing else is fitted"
    else:
        said += "; nothing is fitted"
    caption(figure, style, f"Published against ours: {said}.")
    numbers = {name: f" ({n})" if names[1:] else "" for n, name in enumerate(names, start=1)}
    legend(figure, style, {name + numbers[name]: its for name, its in looks.items()}, marks=True)
    points = [_points(mine, numbers) for mine in shown.values()]
    name_points(figure, axes, points, style)
    return figure


def draw_measured(path: Path, to: Path, kind: str, style: Style) -> str:
    """Draw a table that `reproduce --measured` wrote. Return the caption. Raises: HwmodelError."""
    if kind not in ("", KIND):
        raise DataError(f"{path}: a table of measurements is drawn as kind {KIND}, not {kind}")
    lines, stamp = read_rows(path, Against, "table of measurements")
    for number, line in enumerate(lines, start=2):
        if not all(0 < value < LARGEST for value in (line.published, line.ours)):
            raise DataError(f"{path}:{number}: published and ours have to be above 0, and drawable")
        if not any(line.quantity in quantities for quantities in _PANELS.values()):
            raise DataError(f"{path}:{number}: no quantity is called {line.quantity!r}")
    if style.ours:
        raise HwmodelError("--ours sets off methods, and this table compares chips; leave it out")
    return write_figure(lambda own: measured_figure(lines, own), to, stamp=stamp, style=style)


def _points(lines: Sequence[Against], numbers: Mapping[str, str]) -> list[Point]:
    """The points of a panel, with names: all where they are few, else of what is off.

    Of many of one table that are off the first, the middle one and the last have names, which end
    in the number of their table.
    """
    kinds = {line.quantity for line in lines}
    named = set(lines)
    if len(lines) > FEW:
        far = [line for line in lines if line.verdict in ("off", ABOVE)]
        tables = dict.fromkeys(line.table for line in far)
        runs = [[line for line in far if line.table == table] for table in tables]
        named = {run[at] for run in runs for at in (0, len(run) // 2, -1)}
    return [
        Point(
            line.published,
            line.ours,
            f"{_name(line, kinds)}{numbers[line.table]}" if line in named else "",
            line.table,
        )
        for line in lines
    ]


def _name(line: Against, kinds: Collection[str]) -> str:
    """A row, and which of its figures where a panel has several."""
    alike = len(kinds) == 1 or line.quantity in ("rate", "bandwidth")
    return line.row if alike else f"{line.row}, {line.quantity}"


def _band(axes: Axes, lines: Sequence[Against]) -> None:
    """Draw the line of equal figures and the band about it."""
    from matplotlib.ticker import LogLocator

    every = [value for line in lines for value in (line.published, line.ours)]
    ends = min(every) / 2, max(every) * 2
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(ends, ends, color=GREY, lw=1, zorder=1)
    axes.fill_between(ends, [x / 2 for x in ends], [x * 2 for x in ends], color="0.9", zorder=0)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis, (1.0,) if ends[1] > 100 * ends[0] else (1.0, 2.0, 5.0))
        if ends[1] > 1e4 * ends[0]:
            axis.set_major_locator(LogLocator(base=100))
