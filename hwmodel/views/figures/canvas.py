"""Shared by all figures: sizes, type, panels, labels that fit, and a legend below."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hwmodel.views.colours import Look, shade_on

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["DRAFT", "GREY", "STYLES", "Style", "bar", "below", "beside", "broken", "caption"]
__all__ += ["foot", "heading", "in_order", "legend", "marker", "panels", "plain_ticks", "settings"]
__all__ += ["settle", "surface", "width_of"]

GREY = "0.35"


class Style(NamedTuple):
    """Sizes of a figure for one purpose. Type is set at these sizes in the file: do not scale."""

    width: float  # [inch]
    height: float  # of the drawing in one panel that does not count bars [inch]
    bar: float  # height of a bar with the gap to the next [inch]
    size: float  # of type [point]
    small: float  # of numbers within the drawing, and of the caption [point]
    columns: int  # panels side by side, at most
    dpi: int  # of a PNG
    stamped: bool = False  # whether what made the figure stands at its foot, too


DRAFT = "draft"
_PAPER = Style(3.5, 2.1, 0.145, 7.5, 7.0, 2, 300)  # one column of a two-column page
STYLES = {
    DRAFT: _PAPER._replace(stamped=True),
    "paper": _PAPER,
    "slides": Style(10.0, 4.4, 0.36, 16.0, 13.0, 3, 150),
}


def _library() -> Any:
    """Import matplotlib without a screen, whatever the environment asks for."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if "matplotlib" not in sys.modules:
        asked = os.environ.pop("MPLBACKEND", None)  # if there is none such, the import would end
        try:
            import matplotlib
        finally:
            if asked is not None:
                os.environ["MPLBACKEND"] = asked
        if asked is not None:
            with suppress(ValueError):
                matplotlib.rcParams["backend"] = asked  # as it would have been, for a notebook
    import matplotlib

    return matplotlib


def settings(style: Style) -> AbstractContextManager[None]:
    """Set matplotlib up while a figure is made and written, without a user's `matplotlibrc`."""
    matplotlib = _library()
    own: dict[Any, Any] = {
        name: of for name, of in matplotlib.rcParamsDefault.items() if name != "backend"
    }
    context: AbstractContextManager[None] = matplotlib.rc_context(
        own
        | {
            "text.parse_math": False,  # a name is a name, dollars and all
            "svg.hashsalt": "hwmodel",  # the same table gives the same bytes
            "svg.fonttype": "none",  # text stays text
            "pdf.fonttype": 42,  # fonts are embedded as outlines that can be searched
            "font.family": ["sans-serif"],
            "font.sans-serif": ["DejaVu Sans", "Verdana"],  # of equal widths, where text is text
            "font.size": style.size,
            "axes.titlesize": style.size,
            "axes.labelsize": style.size,
            "xtick.labelsize": style.small,
            "ytick.labelsize": style.small,
            "legend.fontsize": style.small,
            "axes.linewidth": 0.08 * style.size,
            "xtick.major.width": 0.08 * style.size,
            "xtick.major.size": 0.35 * style.size,
            "xtick.major.pad": 0.3 * style.size,
            "ytick.major.width": 0.08 * style.size,
            "ytick.major.size": 0.35 * style.size,
            "ytick.major.pad": 0.3 * style.size,
            "axes.labelpad": 0.4 * style.size,
            "axes.titlepad": 0.5 * style.size,
            "hatch.linewidth": 0.08 * style.size,
            "grid.color": "0.9",
            "grid.linewidth": 0.07 * style.size,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
        }
    )
    return context


def panels(
    style: Style, count: int, height: float, *, columns: int | None = None, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """Make a figure of `count` panels, row by row, the drawing in each `height` inches high."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    across = min(count, columns or style.columns)
    rows = -(-count // across)
    around = 6 * style.size / 72  # title, ticks and label of an axis
    size = style.width, rows * (height + around)
    padding = 0.3 * style.size / 72
    engine = ConstrainedLayoutEngine(w_pad=padding, h_pad=padding)
    figure = Figure(figsize=size, layout=engine)
    axes = figure.subplots(rows, across, squeeze=False, sharey="row" if share_y else False)
    every = [one for row in axes for one in row]
    for empty in every[count:]:
        empty.set_visible(False)
    return figure, every[:count]


def width_of(text: str, size: float) -> float:
    """Return the width of the longest line of a text in type of `size` points [inch]."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=["DejaVu Sans"], size=size)
    widths = (
        text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]
        for line in text.split("\n")
    )
    return max(widths) / 72


def broken(text: str, inches: float, size: float, *, hyphens: bool = True) -> str:
    """Break a text into lines no wider than that, between words or, if it may, at hyphens."""
    characters = len(text)
    lines = text
    while characters > 1 and width_of(lines, size) > inches:
        characters = min(characters - 1, int(characters * inches / width_of(lines, size)) + 1)
        lines = "\n".join(wrap(text, characters, break_on_hyphens=hyphens)) or text
    return lines


def caption(figure: Figure, style: Style, text: str) -> None:
    """Write the caption above a figure; the figure grows by the height of its lines."""
    width = 0.96 * style.width
    lines = "\n".join(broken(line, width, style.small) for line in text.split("\n"))
    figure.suptitle(lines, x=0.02, ha="left", size=style.small, color=GREY)
    _grow(figure, _high(lines, style.small) + 0.6 * style.small / 72)


def foot(figure: Figure, version: str, inputs: str, command: str) -> None:
    """Write below a figure, in small type, what made its table; the figure grows.

    The layout must be settled: it would put the foot and a legend into one place.
    """
    small = 4.5
    width = 0.97 * figure.get_figwidth()
    made = (f"hwmodel {version}: {command}", f"inputs {inputs}")
    lines = "\n".join(broken(line, width, small, hyphens=False) for line in made)
    room = _high(lines, small) + small / 72
    _lift(figure, room)
    edge = 1 - 0.5 * small / 72 / room  # of the room, from below
    height = edge * room / figure.get_figheight()
    figure.text(0.01, height, lines, ha="left", va="top", size=small, color="0.45")


def _lift(figure: Figure, inches: float) -> None:
    """Free the lowest inches of a figure: it grows, and all that stands in it keeps its size."""
    from matplotlib.transforms import Affine2D

    places = [axes.get_position() for axes in figure.axes]
    before = figure.get_figheight()
    _grow(figure, inches)
    after = figure.get_figheight()
    lifted = Affine2D().scale(1, before / after).translate(0, inches / after)
    for axes, place in zip(figure.axes, places, strict=True):
        axes.set_position(place.transformed(lifted))
    for text in figure.texts:
        text.set_y(lifted.transform(text.get_position())[1])
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, inches / after, 1, before / after), figure.transFigure)


def heading(axes: Axes, style: Style, text: str) -> None:
    """Write the name of a panel above it; the figure grows for lines beyond the first."""
    lines = broken(text, 0.58 * style.width / beside(axes), style.size)
    index = axes.figure.axes.index(axes)
    row = axes.figure.axes[index - index % beside(axes) : index]
    room = max(_high(one.get_title(loc="left") or "one line", style.size) for one in [axes, *row])
    axes.set_title(lines, loc="left")
    _grow(cast("Figure", axes.figure), max(0.0, _high(lines, style.size) - room))


def below(axes: Axes, style: Style, text: str, *, once: bool = False) -> None:
    """Label the horizontal axis; if `once`, only under the lowest panel of a column."""
    shown = [one for one in axes.figure.axes if one.get_visible()]
    if not once or shown.index(axes) + beside(axes) >= len(shown):
        axes.set_xlabel(broken(text, 0.75 * style.width / beside(axes), style.size))


def beside(axes: Axes) -> int:
    """Count the panels that stand side by side."""
    place = axes.get_subplotspec()
    assert place is not None  # `panels` has put it into a grid
    return int(place.get_gridspec().ncols)


def _high(text: str, size: float) -> float:
    """Return the height of lines in type of `size` points [inch]."""
    return 1.25 * len(text.split("\n")) * size / 72


def _grow(figure: Figure, inches: float) -> None:
    figure.set_figheight(figure.get_figheight() + inches)


def settle(figure: Figure) -> None:
    """Lay the figure out, once: every format that it is written in has the same places."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def bar(
    axes: Axes, y: float, width: float, look: Look, *, left: float = 0, high: float = 0.78
) -> None:
    """Draw a horizontal bar, or a piece of one, in a look."""
    axes.barh(y, width, high, left, **surface(look))


def surface(look: Look) -> dict[str, Any]:
    """Return the filling of an area; a hatch of dots has fewer, for each is a path of its own."""
    return {
        "facecolor": look.colour, "edgecolor": shade_on(look.colour), "linewidth": 0,
        "hatch": (2 if look.hatch in {".", "o"} else 3) * look.hatch,
    }  # fmt: skip


def _swatch(look: Look, style: Style) -> Artist:
    """Make a piece of a bar for the legend."""
    from matplotlib.patches import Patch

    return Patch(**surface(look))


def marker(look: Look, style: Style) -> dict[str, Any]:
    """Return the arguments with which `plot` draws the points of a method."""
    return {
        "ls": "", "marker": look.marker, "color": look.colour, "ms": 0.75 * style.size,
        "mec": "k", "mew": 0.05 * style.size,
    }  # fmt: skip


def _mark(look: Look, style: Style) -> Artist:
    """Make a point for the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **marker(look, style))


def legend(figure: Figure, style: Style, looks: Mapping[str, Look], *, marks: bool = False) -> None:
    """Draw the legend below the figure, in as many columns as fit; the figure grows.

    Args:
        marks: whether points are explained, not bars.
    """
    names = [broken(n.replace("_", " "), 0.38 * style.width, style.small) for n in looks]
    entry = max(width_of(name, style.small) for name in names) + 3.6 * style.small / 72
    columns = max(1, min(int(style.width / entry), len(names)))
    figure.legend(
        [(_mark if marks else _swatch)(look, style) for look in looks.values()], names,
        loc="outside lower center", ncols=columns, frameon=False, handlelength=1.4,
        columnspacing=1.2, handletextpad=0.5, borderpad=0.1, labelspacing=0.3,
    )  # fmt: skip
    rows = -(-len(names) // columns)
    stacked = ("\n".join(names[start : start + rows]) for start in range(0, len(names), rows))
    high = max(_high(lines, style.small) for lines in stacked)
    _grow(figure, 1.1 * high + 0.6 * style.small / 72)


def plain_ticks(axis: Axis, subs: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Write plain numbers on a logarithmic axis: powers would need mathematics, which is off."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def in_order(names: Sequence[str], weight: Callable[[str], float], most: int) -> list[str]:
    """Keep the `most` weightiest of the names, in their order."""
    kept = set(sorted(names, key=weight, reverse=True)[:most])
    return [name for name in names if name in kept]
