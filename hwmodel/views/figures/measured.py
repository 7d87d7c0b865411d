"""Published figures against ours, log-log: the one-to-one line, and a band of a factor of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hwmodel.vary.against import Against
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["measured_figure"]

_LOOKS = (
    Look("#0072b2", "o", ""), Look("#d55e00", "s", ""), Look("#009e73", "^", ""),
    Look("#cc79a7", "D", ""), Look("#e69f00", "v", ""), Look("#56b4e9", "P", ""),
    Look("#000000", "X", ""), Look("#999999", "<", ""),
)  # fmt: skip
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
    figure, axes = panels(style, len(shown), style.height, columns=min(len(shown), style.columns))
    for one, (title, mine) in zip(axes, shown.items(), strict=True):
        _band(one, mine)
        for name in dict.fromkeys(line.table for line in mine):
            points = [line for line in mine if line.table == name]
            one.plot(
                [p.published for p in points], [p.ours for p in points], zorder=3,
                **marker(looks[name], style),
            )  # fmt: skip
        heading(one, style, title)
        below(one, style, "published")
    axes[0].set_ylabel("ours")
    caption(
        figure, style,
        "Published against ours; on the line they are equal, in the band within a factor of two. "
        "Nothing is fitted.",
    )  # fmt: skip
    legend(figure, style, looks, marks=True)
    return figure


def _band(axes: Axes, lines: Sequence[Against]) -> None:
    """Draw the line of equal figures and the band about it."""
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
