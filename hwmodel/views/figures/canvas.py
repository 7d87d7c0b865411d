"""Shared by all figures: sizes, type, panels, labels that fit, and a legend below."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import pairwise
from math import floor, log10
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hwmodel.errors import HwmodelError, SpecWarning, nearest
from hwmodel.views.colours import Look, called, shade_on

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text

__all__ = ["DRAFT", "FONTS", "GREY", "HEAVY", "PLAIN", "STYLES", "Style", "bar", "below"]
__all__ += [
    "beside",
    "boxes_told",
    "broken",
    "caption",
    "foot",
    "heading",
    "height_of",
    "in_order",
    "legend",
    "marker",
    "outline",
    "panels",
]
__all__ += [
    "plain_ticks",
    "rounded",
    "settings",
    "settle",
    "spaced",
    "styled",
    "surface",
    "swatches",
    "title_of",
]
__all__ += ["width_of"]

GREY = "0.35"
PLAIN, HEAVY = 400, 700  # weights of type


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
    titled: bool = True  # whether a caption stands above the drawing
    serif: bool = False  # whether type is like Times
    ours: tuple[str, ...] = ()  # methods that are set off from the others


DRAFT = "draft"
_PAPER = Style(3.5, 2.1, 0.145, 7.5, 7.0, 2, 300)  # one column of a two-column page
# Widths of text as the venues' own LaTeX styles set them: neurips_2024.sty, icml2024.sty,
# IEEEtran.cls (252 pt).
STYLES = {
    DRAFT: _PAPER._replace(stamped=True),
    "paper": _PAPER,
    "neurips": _PAPER._replace(width=5.5, height=2.2, bar=0.155, size=8.0, small=7.5, columns=3),
    "icml": _PAPER._replace(width=3.25),
    "ieee": _PAPER._replace(width=3.487),
    "slides": Style(10.0, 4.4, 0.36, 16.0, 13.0, 3, 150),
}
FONTS = ("sans", "serif")
_UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # of TeX
_NARROWEST, _WIDEST = 3.0, 40.0  # inch


def styled(
    name: str = DRAFT,
    *,
    width: str = "",
    title: bool = True,
    font: str = "",
    ours: Sequence[str] = (),
) -> Style:
    """Return a style by its name, some of it changed.

    Args:
        width: as "5.5in", in in, cm, mm or pt; "" is the style's own.
        font: one of `FONTS`; "" is sans.
        ours: methods to be set off from the others.

    Raises: HwmodelError.
    """
    if name not in STYLES:
        raise HwmodelError(f"no style of plots is called {name!r}: {nearest(name, STYLES)}")
    if font and font not in FONTS:
        raise HwmodelError(f"no font of plots is called {font!r}: {nearest(font, FONTS)}")
    style = STYLES[name]._replace(titled=title, serif=font == "serif", ours=tuple(ours))
    return style if not width else _as_wide(style, width)


def _as_wide(style: Style, width: str) -> Style:
    """Return a style of another width; as many panels side by side as have room."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(in|cm|mm|pt)", width)
    inches = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not _NARROWEST <= inches <= _WIDEST:
        raise HwmodelError(
            f"--width {width!r}: a number with its unit, as 5.5in, 14cm, 140mm or 397pt, from "
            f"{_NARROWEST:g} to {_WIDEST:g} inches"
        )
    columns = max(1, round(style.columns * inches / style.width))
    return style._replace(width=inches, columns=columns)


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


@contextmanager
def boxes_told(*paths: Path) -> Iterator[None]:
    """Warn of letters that no font has while files are drawn: boxes stand in their place.

    Other warnings of Matplotlib's are no matter of ours. An SVG has its text, and asks its reader's
    fonts.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    missing = (re.match(r"Glyph (\d+) ", str(one.message)) for one in told)
    letters = "".join(dict.fromkeys(chr(int(match[1])) for match in missing if match))
    drawn = [path for path in paths if path.suffix.lower() != ".svg"]
    if letters and drawn:
        warnings.warn(
            f"{drawn[0]}: no font here has the letters {letters}, and boxes stand in their place; "
            "give it a label in other letters, or draw an .svg, which keeps the text",
            SpecWarning,
            stacklevel=3,
        )


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
            "text.hinting": "none",  # a text is as wide in every format, whatever its resolution
            "font.family": ["serif" if style.serif else "sans-serif"],
            "font.sans-serif": ["DejaVu Sans", "Verdana"],  # of equal widths, where text is text
            # The first and the last, which has letters that the first lacks, come with Matplotlib.
            "font.serif": ["STIXGeneral", "Times New Roman", "DejaVu Serif"],
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
            "lines.linewidth": 0.16 * style.size,
            "lines.markersize": 0.6 * style.size,
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


def width_of(text: str, size: float, weight: int = PLAIN) -> float:
    """Return the width of the longest line of a text in type of `size` points [inch].

    In the font that is set, as `settings` does.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    widths = (
        text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]
        for line in text.split("\n")
    )
    return max(widths) / 72


def broken(text: str, inches: float, size: float, *, hyphens: bool = True) -> str:
    """Break a text into lines no wider than that, between words or, if it may, at hyphens.

    A batch stands on one line with its number, a number with its unit.
    """
    text = re.sub(r"(?<=\bbatch) (?=\d)|(?<=\d) (?=[A-Za-zµ]{1,3}\b)", "\N{NO-BREAK SPACE}", text)
    characters, lines = len(text), text
    while characters > 1 and width_of(lines, size) > inches:
        characters = min(characters - 1, int(characters * inches / width_of(lines, size)) + 1)
        lines = "\n".join(wrap(text, characters, break_on_hyphens=hyphens)) or text
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def in_two(text: str, inches: float, size: float) -> str:
    """Break a name that is too wide before its batch, if two lines do, or else as `broken` does."""
    name, comma, rest = text.rpartition(", ")
    two = f"{name},\n{rest}"
    if comma and width_of(text, size) > inches >= width_of(two, size):
        return two
    return broken(text, inches, size)


def caption(figure: Figure, style: Style, text: str) -> None:
    """Write the caption above a figure; the figure grows by the height of its lines.

    In a style without titles it is kept with the figure (`title_of`), for the text around it.
    """
    figure.set_label(" ".join(text.split()))
    if not style.titled:
        return
    width = 0.96 * style.width
    lines = "\n".join(broken(line, width, style.small) for line in text.split("\n"))
    figure.suptitle(lines, x=0.02, ha="left", size=style.small, color=GREY)
    _grow(figure, height_of(lines, style.small) + 0.6 * style.small / 72)


def title_of(figure: Figure) -> str:
    """Return the caption of a figure, whether it is drawn or not; "" if it has none."""
    return str(figure.get_label() or "")


def foot(figure: Figure, version: str, inputs: str, command: str) -> None:
    """Write below a figure, in small type, what made its table; the figure grows.

    The layout must be settled: it would put the foot and a legend into one place.
    """
    small = 4.5
    width = 0.97 * figure.get_figwidth()
    made = (f"hwmodel {version}: {command}", f"inputs {inputs}")
    lines = "\n".join(broken(line, width, small, hyphens=False) for line in made)
    room = height_of(lines, small) + small / 72
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


def heading(axes: Axes, style: Style, text: str, *, method: str = "") -> None:
    """Write the name of a panel above it; the figure grows for lines beyond the first.

    Args:
        method: whose panel it is, if one's: heavy if it is one of ours.
    """
    lines = in_two(text, 0.58 * style.width / beside(axes), style.size)
    index = axes.figure.axes.index(axes)
    row = axes.figure.axes[index - index % beside(axes) : index]
    room = max(
        height_of(one.get_title(loc="left") or "one line", style.size) for one in [axes, *row]
    )
    title = axes.set_title(lines, loc="left", weight=HEAVY if method in style.ours else PLAIN)
    title.set_label(text)  # before it was broken: `settle` knows what room there is
    _grow(cast("Figure", axes.figure), max(0.0, height_of(lines, style.size) - room))


def below(axes: Axes, style: Style, text: str, *, once: bool = False) -> None:
    """Label the horizontal axis; if `once`, only under the lowest panel of a column."""
    shown = [one for one in axes.figure.axes if one.get_visible()]
    if not once or shown.index(axes) + beside(axes) >= len(shown):
        axes.set_xlabel(broken(text, 0.75 * style.width / beside(axes), style.size))
        axes.xaxis.label.set_label(text)


def beside(axes: Axes) -> int:
    """Count the panels that stand side by side."""
    place = axes.get_subplotspec()
    assert place is not None  # `panels` has put it into a grid
    return int(place.get_gridspec().ncols)


def height_of(text: str, size: float) -> float:
    """Return the height of lines in type of `size` points [inch]."""
    return 1.25 * len(text.split("\n")) * size / 72


def _grow(figure: Figure, inches: float) -> None:
    figure.set_figheight(figure.get_figheight() + inches)


def rounded(value: float, digits: int = 3) -> str:
    """Write a number in so many digits, zeros at its end among them, without a power of ten.

    Very large and very small numbers have one: nobody counts fifteen zeros.

    >>> rounded(100.0), rounded(2.5), rounded(0.06), rounded(12345.0), rounded(0.0)
    ('100', '2.50', '0.0600', '12,300', '0')
    """
    if not value:
        return "0"
    if not 1e-5 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    kept = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - floor(log10(abs(kept)) + 1e-12)
    return f"{kept:,.{max(0, decimals)}f}"


def settle(figure: Figure) -> None:
    """Lay the figure out, once: every format that it is written in has the same places.

    Headings and names of axes are broken to the room that the layout leaves them.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        spaced(figure.findobj(_is_text))
        figure.draw_without_rendering()
        if _rebroken(figure):
            figure.draw_without_rendering()
        figure.set_layout_engine("none")


def _is_text(artist: Artist) -> bool:
    from matplotlib.text import Text

    return isinstance(artist, Text)


def spaced(texts: Iterable[Any]) -> None:
    """Set lines of texts as far apart in the serif font as in the other: 1.2 of their size.

    STIX has 1.51 where DejaVu has 1.2, which Matplotlib multiplies by what is set here.
    """
    for text in texts:
        if text.get_fontfamily() == ["serif"]:
            text.set_linespacing(1.2 * 1.2 / 1.51)


def _rebroken(figure: Figure) -> bool:
    """Break headings and names of axes that reach into those beside them; return whether any do.

    The figure grows by the lines that come to it.
    """
    wide = figure.get_figwidth()
    rows: dict[int, list[Axes]] = {}
    for axes in figure.axes:
        place = axes.get_subplotspec()
        if place is not None and axes.get_visible():
            rows.setdefault(place.rowspan.start, []).append(axes)
    lines = 0.0
    for row in rows.values():
        boxes = [axes.get_position() for axes in row]
        middles = [wide * (box.x0 + box.x1) / 2 for box in boxes]
        lefts = [wide * box.x0 for box in boxes]
        more = [0.0]
        for n, axes in enumerate(row):
            right = lefts[n + 1] if n + 1 < len(row) else wide
            sides = [2 * middles[n], 2 * (wide - middles[n])]
            sides += [abs(middles[n] - middle) for k, middle in enumerate(middles) if k != n]
            more.append(_refitted(axes._left_title, right - lefts[n]))  # type: ignore[attr-defined]
            more.append(_refitted(axes.xaxis.label, min(sides)))
        lines += max(more)
    _grow(figure, lines)
    return lines > 0


def _refitted(text: Text, inches: float) -> float:
    """Break a text that is wider than its room; return by how much higher it is [inch]."""
    size, before = float(text.get_fontsize()), text.get_text()
    room = inches - 0.6 * size / 72
    if (
        not before
        or width_of(before, size) * (1.1 if text.get_fontweight() == HEAVY else 1) <= room
    ):
        return 0.0
    text.set_text(in_two(str(text.get_label() or before), room / 1.1, size))
    return height_of(text.get_text(), size) - height_of(before, size)


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


def swatches(looks: Mapping[str, Look]) -> dict[str, Artist]:
    """Make a piece of a bar of each look for the legend."""
    from matplotlib.patches import Patch

    return {name: Patch(**surface(look)) for name, look in looks.items()}


def outline(axes: Axes, style: Style, y: float, width: float, *, high: float = 0.78) -> None:
    """Draw a heavy frame around a bar, of whatever pieces it is: it is ours."""
    axes.barh(y, width, high, fill=False, edgecolor="k", linewidth=0.16 * style.size, zorder=3)


def marker(look: Look, style: Style, *, ours: bool = False) -> dict[str, Any]:
    """Return the arguments with which `plot` draws the points of a method; ours are larger."""
    return {
        "ls": "", "marker": look.marker, "color": look.colour,
        "ms": (1.15 if ours else 0.75) * style.size, "mec": "k", "mew": 0.05 * style.size,
    }  # fmt: skip


def _mark(look: Look, style: Style) -> Artist:
    """Make a point for the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **marker(look, style))


def legend(
    figure: Figure,
    style: Style,
    looks: Mapping[str, Look],
    *,
    marks: bool = False,
    shown: Mapping[str, Artist] | None = None,
) -> None:
    """Draw the legend below the figure, in as many columns as fit; the figure grows.

    Args:
        marks: whether points of methods are explained, not bars.
        shown: lines to be explained in place of bars, by their names.
    """
    if shown is None:
        marked = {n: _mark(look, style) for n, look in looks.items()} if marks else {}
        shown = marked or swatches(looks)
    named = [called(n) if marks else n for n in shown]
    wide = 1.15 if style.ours else 1.0  # heavy type is wider
    names = [broken(n, 0.38 * style.width / wide, style.small) for n in named]
    entry = wide * max(width_of(name, style.small) for name in names) + 3.6 * style.small / 72
    columns = max(1, min(int(style.width / entry), len(names)))
    drawn = figure.legend(
        list(shown.values()), names,
        loc="outside lower center", ncols=columns, frameon=False, handlelength=1.4,
        columnspacing=1.2, handletextpad=0.5, borderpad=0.1, labelspacing=0.3,
    )  # fmt: skip
    for name, text in zip(shown, drawn.get_texts(), strict=True):
        text.set_fontweight(HEAVY if name in style.ours else PLAIN)
    rows = -(-len(names) // columns)
    stacked = ("\n".join(names[start : start + rows]) for start in range(0, len(names), rows))
    high = max(height_of(lines, style.small) for lines in stacked)
    _grow(figure, 1.1 * high + 0.6 * style.small / 72)


def plain_ticks(axis: Axis, subs: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Write plain numbers on a logarithmic axis: powers would need mathematics, which is off.

    Where they would stand closer than half an em, there are powers of ten alone.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    class Apart(LogLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            few, fine = (LogLocator(subs=own).tick_values(vmin, vmax) for own in ((1.0,), subs))
            return few if _crowded(axis, [x for x in fine if vmin <= x <= vmax]) else fine

    axis.set_major_locator(Apart(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _crowded(axis: Any, ticks: Sequence[float]) -> bool:
    """Whether numbers below a logarithmic axis stand closer than half an em."""
    if axis.axis_name != "x":
        return False
    low, high = axis.get_view_interval()
    decade = axis.axes.bbox.width / axis.figure.dpi / log10(high / low)  # inch
    size = float(axis.get_major_ticks(1)[0].label1.get_fontsize())
    widths = [width_of(f"{x:g}", size) for x in ticks]
    return any(
        (log10(right) - log10(left)) * decade < (wide + wider) / 2 + size / 2 / 72
        for (left, wide), (right, wider) in pairwise(zip(ticks, widths, strict=True))
    )


def in_order(names: Sequence[str], weight: Callable[[str], float], most: int) -> list[str]:
    """Keep the `most` weightiest of the names, in their order."""
    kept = set(sorted(names, key=weight, reverse=True)[:most])
    return [name for name in names if name in kept]
