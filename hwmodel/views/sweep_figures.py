"""Figures of a sweep: the front of two columns, lines over one, shades over two.

Where several points share a place, the lowest stands for them: what the fields that are not shown
can do at best. The figure says which fields these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import ceil, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hwmodel.errors import HwmodelError, nearest
from hwmodel.rerun.tables import NATURE, scale
from hwmodel.specs.provenance import COLUMNS as PROVENANCE
from hwmodel.vary.sweep.results import ENERGIES, Results, Row, front, kept, numbers, unit_of, varied
from hwmodel.views.colours import Look, called, ink_on, look, part_looks
from hwmodel.views.figures.canvas import (
    DRAFT,
    STYLES,
    Style,
    below,
    broken,
    caption,
    legend,
    panels,
    plain_ticks,
    rounded,
    width_of,
)
from hwmodel.views.plot import write_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SWEEP_PLOTS", "View", "draw_sweep"]

MOST_SERIES = 12
FRONT = (
    "points: all; on lines: those than which no other is better in one and not worse in the other"
)
MOST_CELLS = 400  # of a heatmap whose cells have numbers
DIGITS = range(3, 8)  # of the number in a cell: as few as tell different energies apart
_SIZES = (("GiB", 2**33), ("MiB", 2**23), ("KiB", 2**13), ("B", 8), ("bit", 1))


class View(NamedTuple):
    """The columns, conditions and series of a figure; columns left out are those of its kind."""

    x: str = ""
    y: str = ""
    z: str = ""
    by: str = ""
    where: str = ""


class Column(NamedTuple):
    """A column to be drawn: its values, and its label with the unit."""

    values: list[float]
    label: str


def draw_sweep(
    results: Results, path: Path, kind: str, view: View, style: Style = STYLES[DRAFT]
) -> str:
    """Write a figure; the ending of `path` says in which format. Return its caption.

    Args:
        kind: a name of `SWEEP_PLOTS`; "" is the first.
        style: one of `STYLES`, or of `styled`.

    Raises: HwmodelError for a kind, a column or a condition that is none.
    """
    kind = kind or next(iter(SWEEP_PLOTS))
    if kind not in SWEEP_PLOTS:
        raise HwmodelError(f"no plot of a sweep is called {kind!r}: {nearest(kind, SWEEP_PLOTS)}")
    usual, drawn = SWEEP_PLOTS[kind]
    stated = {name: value for name, value in view._asdict().items() if value}
    whole = View(**{**usual, **stated})
    for name in ("x", "y"):
        if not getattr(whole, name):
            raise HwmodelError(f"a plot of {kind} needs --{name}, a column of the table")
    rows = kept(results, whole.where)
    stamp = [str(rows[0].get(name) or "") for name in PROVENANCE]
    if style.ours and (whole.by != "method" or kind == "heatmap"):
        raise HwmodelError(f"--ours {style.ours[0]}: is for lines of methods, --by method")
    methods = list(dict.fromkeys(str(row.get("method", "")) for row in rows))
    made = partial(drawn, rows, results.columns, whole)
    return write_figure(made, path, stamp=stamp, style=style, methods=methods)


def pareto_figure(
    rows: Sequence[Row], columns: Sequence[str], view: View, style: Style = STYLES[DRAFT]
) -> Figure:
    """Draw every point, and for each series a line along the points that no other beats."""
    figure, axes = _figure(style)
    x, y = _column(rows, view.x, columns), _column(rows, view.y, columns)
    shown: dict[str, Artist] = {}
    for name, places, own in _series(rows, columns, view.by):
        mine_x, mine_y = [x.values[i] for i in places], [y.values[i] for i in places]
        small: dict[str, Any] = {"ms": 2 / 3 * style.size, "alpha": 0.6, "mew": 0}
        axes.plot(mine_x, mine_y, ".", color=own.colour, rasterized=True, **small)
        signs = [-1 if _more_is_better(column) else 1 for column in (view.x, view.y)]
        best = front([signs[0] * v for v in mine_x], [signs[1] * v for v in mine_y])
        edge = [mine_x[i] for i in best], [mine_y[i] for i in best]
        (shown[name],) = axes.plot(*edge, label=name, **_line(name, own, style))
    _axes(axes, style, x, y)
    others = _others(rows, columns, view)
    apart = f"\npoints differ in {', '.join(map(_words, others))}" if others else ""
    _title(figure, style, rows, columns, view, f"{FRONT}{apart}")
    legend(figure, style, {}, shown=shown, marks=view.by == "method")
    return figure


def lines_figure(
    rows: Sequence[Row], columns: Sequence[str], view: View, style: Style = STYLES[DRAFT]
) -> Figure:
    """Draw the lowest values of a column over another column, a line for each series."""
    figure, axes = _figure(style)
    x, y = _column(rows, view.x, columns), _column(rows, view.y, columns)
    shown: dict[str, Artist] = {}
    for name, places, own in _series(rows, columns, view.by):
        lowest: dict[float, float] = {}
        for i in places:
            lowest[x.values[i]] = min(y.values[i], lowest.get(x.values[i], y.values[i]))
        line = sorted(lowest.items())
        drawn = axes.plot(*zip(*line, strict=True), label=name, **_line(name, own, style))
        shown[name] = drawn[0]
    _axes(axes, style, x, y)
    _ticks_at(axes, style, sorted(set(x.values)))
    _title(figure, style, rows, columns, view, f"lines: {_lowest(rows, columns, view, view.y)}")
    legend(figure, style, {}, shown=shown, marks=view.by == "method")
    return figure


def heatmap_figure(
    rows: Sequence[Row], columns: Sequence[str], view: View, style: Style = STYLES[DRAFT]
) -> Figure:
    """Draw the lowest values of a column as shades over two other columns."""
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, Normalize, to_hex

    x, y = _column(rows, view.x, columns), _column(rows, view.y, columns)
    z = _column(rows, view.z, columns)
    lowest: dict[tuple[float, float], float] = {}
    for place, value in zip(zip(x.values, y.values, strict=True), z.values, strict=True):
        lowest[place] = min(value, lowest.get(place, value))
    across, up = sorted({a for a, _ in lowest}), sorted({b for _, b in lowest})
    told = _told(list(lowest.values()))
    left = max(width_of(_plain(b, 12), style.small) for b in up)
    drawing = style.width - left - 13 * style.size / 72  # beside it: labels, and the shades' scale
    room = drawing / len(across)
    widest = max(width_of(text, style.small) for text in told.values())
    numbered = widest + 0.4 * style.small / 72 < room and len(across) * len(up) <= MOST_CELLS
    high = (1.6 if numbered else 0.4) * style.small / 72 * len(up)
    figure, axes = _figure(style, min(max(style.height, high), 8.0))
    least, most = min(lowest.values()), max(lowest.values())
    norm = (LogNorm if 0 < 20 * least < most else Normalize)(least, most)
    shades = colormaps["viridis"]
    cells = [[lowest.get((a, b), float("nan")) for a in across] for b in up]
    image = axes.imshow(cells, norm=norm, cmap=shades, origin="lower", aspect="auto")
    if numbered:
        for (a, b), value in lowest.items():
            ink = ink_on(to_hex(shades(norm(value))))
            at = across.index(a), up.index(b)
            size = style.small
            axes.text(*at, told[value], ha="center", va="center", size=size, color=ink)
    names = [_plain(a, 12) for a in across]
    narrow = max(width_of(f"{name} ", style.small) for name in names) > room
    slant: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    each = max(1, ceil(1.5 * style.small / 72 / room)) if narrow else 1  # names that have room
    axes.set_xticks([*range(len(across))][::each], names[::each], **(slant if narrow else {}))
    step = max(1, ceil(1.3 * style.small / 72 * len(up) / (figure.get_figheight() - 1)))
    axes.set_yticks([*range(len(up))][::step], [_plain(b, 12) for b in up][::step])
    below(axes, style, x.label)
    axes.set_ylabel(broken(y.label, style.height, style.size))
    shown = figure.colorbar(image, ax=axes)
    shown.set_label(broken(z.label, style.height, style.size))
    if isinstance(norm, LogNorm):
        plain_ticks(shown.ax.yaxis)
    blank = "; blank: no such point" if len(lowest) < len(across) * len(up) else ""
    what = f"cells: {_lowest(rows, columns, view, view.z)}{blank}"
    _title(figure, style, rows, columns, view, what)
    return figure


def _told(values: Sequence[float]) -> dict[float, str]:
    """Round numbers to the fewest digits, at most seven, that tell how far they are apart."""
    different = len({_plain(value, DIGITS[-1]) for value in values})
    little = 0.02 * (max(values) - min(values))
    for digits in DIGITS:
        told = {value: rounded(value, digits) for value in values}
        off = max(abs(float(f"{value:.{digits}g}") - value) for value in values)
        if len({*told.values()}) == different and off <= little:
            break
    whole = [_plain(value, DIGITS[0]) for value in values]  # counts have no digits behind a point
    if (
        all(abs(value - round(value)) < 1e-9 * abs(value) or not value for value in values)
        and len({*whole}) == different
    ):
        return {value: _plain(value, DIGITS[0]) for value in values}
    return told


def _plain(value: float, digits: int) -> str:
    """Write a number in so many digits, without a power of ten.

    >>> _plain(1234.5, 3), _plain(0.0588235, 3)
    ('1230', '0.0588')
    """
    return f"{float(f'{value:.{digits}g}'):.15g}"


def _figure(style: Style, height: float = 0.0) -> tuple[Figure, Axes]:
    """A figure of one panel, as high as its style says or as stated [inch]."""
    figure, (axes,) = panels(style, 1, height or style.height, columns=1)
    return figure, axes


def _line(name: str, own: Look, style: Style) -> dict[str, Any]:
    """How the line of a series is drawn; ours are heavier."""
    size = style.size / 7.5 * (1.6 if name in style.ours else 1.0)
    return {"color": own.colour, "marker": own.marker or "o", "ms": 4 * size, "lw": 1.2 * size}


def _column(rows: Sequence[Row], name: str, columns: Sequence[str]) -> Column:
    """Return the numbers of a column in a unit that suits them."""
    values = numbers(rows, name, columns)
    words = _words(name)
    units = {str(row["unit"]) for row in rows}
    divisor, unit = 1.0, unit_of(name, *units) if len(units) == 1 else ""
    if name in ENERGIES:
        divisor, unit = scale(max(values), str(rows[0]["unit"]))
    elif name.endswith((".capacity", "capacity_bits")):
        least = min(values)
        unit, divisor = next(((u, n) for u, n in _SIZES if least >= n), ("bit", 1))
    unit = "images" if name == "batch" else unit
    words = words.removesuffix(" bits") if unit else words
    words = words.removesuffix(" percent") if unit == "%" else words
    return Column([value / divisor for value in values], f"{words}, {unit}" if unit else words)


def _more_is_better(column: str) -> bool:
    return "accuracy" in column


def _series(
    rows: Sequence[Row], columns: Sequence[str], by: str
) -> list[tuple[str, list[int], Look]]:
    """Return name, rows and look of each series. Raises: HwmodelError."""
    if by not in columns:
        raise HwmodelError(f"the table has no column {by!r}: {nearest(by, columns)}")
    places: dict[Any, list[int]] = {}
    for i, row in enumerate(rows):
        places.setdefault(row[by], []).append(i)
    if len(places) > MOST_SERIES:
        raise HwmodelError(
            f"column {by} has {len(places)} values; at most {MOST_SERIES} lines are drawn: "
            "choose some by --where"
        )
    names = {v: str(v) if by == "method" else f"{_short(by)} {v}" for v in places}
    spare = part_looks(names.values())
    own = {v: look(n) if by == "method" else spare[n] for v, n in names.items()}
    return [(names[value], mine, own[value]) for value, mine in places.items()]


def _axes(axes: Axes, style: Style, x: Column, y: Column) -> None:
    """Label the axes; use a logarithmic scale where values span more than a factor of 20."""
    for column, name in ((x, "x"), (y, "y")):
        axis = getattr(axes, f"{name}axis")
        if 0 < 20 * min(column.values) < max(column.values):
            getattr(axes, f"set_{name}scale")("log")
            plain_ticks(axis)
    below(axes, style, x.label)
    axes.set_ylabel(broken(y.label, style.height, style.size))
    axes.grid()


def _ticks_at(axes: Axes, style: Style, values: Sequence[float]) -> None:
    """Put ticks at the values themselves, where their numbers have room side by side."""
    from matplotlib.ticker import NullLocator

    names = [_plain(value, 12) for value in values]
    places = [log10(value) for value in values] if axes.get_xscale() == "log" else values
    inch = 0.75 * style.width / ((places[-1] - places[0]) or 1.0)
    wide = [width_of(f"{name} ", style.small) for name in names]
    if all(
        (b[0] - a[0]) * inch > (a[1] + b[1]) / 2
        for a, b in pairwise(zip(places, wide, strict=True))
    ):
        axes.set_xticks(values, names)
        axes.xaxis.set_minor_locator(NullLocator())


def _title(
    figure: Figure, style: Style, rows: Sequence[Row], columns: Sequence[str], view: View, what: str
) -> None:
    """Write the title: values that all rows share, conditions, and what is drawn."""
    words = {"accounting": "accounting ", "batch": "batch "}
    alike = [
        f"{words.get(name, '')}{called(str(rows[0][name]), name)}"
        for name in ("network", "hardware", "method", "accounting", "mode", "batch")
        if name in columns and len({row[name] for row in rows}) == 1
    ]
    chosen = [f"only points with {view.where}"] if view.where else []
    greedy = ["tiles greedy"] if any(row.get("tiles") == "greedy" for row in rows) else []
    alike += greedy
    caption(figure, style, "\n".join([f"{', '.join(alike)} ({NATURE})", *chosen, what]))


def _lowest(rows: Sequence[Row], columns: Sequence[str], view: View, column: str) -> str:
    """Name the column that is drawn, and the fields over which its lowest value was taken."""
    others = _others(rows, columns, view)
    drawn = _words(column)
    return f"the lowest {drawn} over {', '.join(map(_words, others))}" if others else drawn


def _others(rows: Sequence[Row], columns: Sequence[str], view: View) -> list[str]:
    """List the names and fields in which rows differ and which are not shown."""
    shown = {view.x, view.y, view.z, view.by}
    return [name for name in varied(rows, columns) if name not in shown]


def _words(column: str) -> str:
    if column == "capacity_bits":  # of all memories there, not of the one that is swept
        return "capacity on the chip in all bits"
    return _short(column).replace("_", " ")


def _short(column: str) -> str:
    """Shorten a path to its last steps."""
    return column.removeprefix("hardware.").removeprefix("levels.").removeprefix("accounting.")


Drawn = Callable[[Sequence[Row], Sequence[str], View, Style], "Figure"]
SWEEP_PLOTS: dict[str, tuple[dict[str, str], Drawn]] = {
    "pareto": ({"x": "capacity_bits", "y": "energy", "by": "method"}, pareto_figure),
    "lines": ({"y": "energy", "by": "method"}, lines_figure),
    "heatmap": ({"z": "energy"}, heatmap_figure),
}
