"""Figures of a sweep: the front of two columns, lines over one, shades over two.

Where several points share a place, the lowest stands for them: what the fields that are not shown
can do at best. The figure says which fields these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hwmodel.errors import HwmodelError, nearest
from hwmodel.rerun.tables import NATURE, scale
from hwmodel.specs.provenance import COLUMNS as PROVENANCE
from hwmodel.vary.sweep.results import ENERGIES, Results, Row, front, kept, numbers, unit_of, varied
from hwmodel.views.colours import Look, ink_on, look, part_looks
from hwmodel.views.figures.canvas import DRAFT, STYLES, Style, caption, plain_ticks, width_of
from hwmodel.views.plot import sizes, write_figure

if TYPE_CHECKING:
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


def draw_sweep(results: Results, path: Path, kind: str, view: View, style: str = DRAFT) -> None:
    """Write a figure; the ending of `path` says in which format.

    Args:
        kind: a name of `SWEEP_PLOTS`; "" is the first.
        style: a name of `STYLES`.

    Raises: HwmodelError for a kind, a style, a column or a condition that is none.
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
    of_style = sizes(style)
    made = partial(drawn, rows, results.columns, whole, of_style)
    write_figure(made, path, stamp=stamp, style=style)


def pareto_figure(
    rows: Sequence[Row], columns: Sequence[str], view: View, style: Style = STYLES[DRAFT]
) -> Figure:
    """Draw every point, and for each series a line along the points that no other beats."""
    figure, axes = _figure(style)
    x, y = _column(rows, view.x, columns), _column(rows, view.y, columns)
    for name, places, own in _series(rows, columns, view.by):
        mine_x, mine_y = [x.values[i] for i in places], [y.values[i] for i in places]
        small: dict[str, Any] = {"ms": 2 / 3 * style.size, "alpha": 0.6, "mew": 0}
        axes.plot(mine_x, mine_y, ".", color=own.colour, rasterized=True, **small)
        signs = [-1 if _more_is_better(column) else 1 for column in (view.x, view.y)]
        best = front([signs[0] * v for v in mine_x], [signs[1] * v for v in mine_y])
        edge = [mine_x[i] for i in best], [mine_y[i] for i in best]
        axes.plot(*edge, label=name, **_line(own, style))
    _axes(axes, x, y)
    others = _others(rows, columns, view)
    apart = f"\npoints differ in {', '.join(map(_words, others))}" if others else ""
    _title(figure, style, rows, columns, view, f"{FRONT}{apart}")
    _legend(figure)
    return figure


def lines_figure(
    rows: Sequence[Row], columns: Sequence[str], view: View, style: Style = STYLES[DRAFT]
) -> Figure:
    """Draw the lowest values of a column over another column, a line for each series."""
    figure, axes = _figure(style)
    x, y = _column(rows, view.x, columns), _column(rows, view.y, columns)
    for name, places, own in _series(rows, columns, view.by):
        lowest: dict[float, float] = {}
        for i in places:
            lowest[x.values[i]] = min(y.values[i], lowest.get(x.values[i], y.values[i]))
        line = sorted(lowest.items())
        axes.plot(*zip(*line, strict=True), label=name, **_line(own, style))
    _axes(axes, x, y)
    _title(figure, style, rows, columns, view, f"lines: {_lowest(rows, columns, view, view.y)}")
    _legend(figure)
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
    widest = max(width_of(text, style.small) for text in told.values()) + 0.12
    width, height = max(3.0, widest * len(across)), max(1.8, 0.3 * len(up))
    figure, axes = _figure(style, width + 2, height + 1.2)
    least, most = min(lowest.values()), max(lowest.values())
    norm = (LogNorm if 0 < 20 * least < most else Normalize)(least, most)
    shades = colormaps["viridis"]
    cells = [[lowest.get((a, b), float("nan")) for a in across] for b in up]
    image = axes.imshow(cells, norm=norm, cmap=shades, origin="lower", aspect="auto")
    if len(across) * len(up) <= MOST_CELLS:
        for (a, b), value in lowest.items():
            ink = ink_on(to_hex(shades(norm(value))))
            at = across.index(a), up.index(b)
            size = style.small
            axes.text(*at, told[value], ha="center", va="center", size=size, color=ink)
    names = [_plain(a, 12) for a in across]
    narrow = max(width_of(f"{name} ", style.small) for name in names) > width / len(across)
    slant: dict[str, Any] = {"rotation": 40, "ha": "right"} if narrow else {}
    axes.set_xticks(range(len(across)), names, **slant)
    axes.set_yticks(range(len(up)), [_plain(b, 12) for b in up])
    axes.set_xlabel(x.label)
    axes.set_ylabel(y.label)
    shown = figure.colorbar(image, ax=axes, label=z.label)
    if isinstance(norm, LogNorm):
        plain_ticks(shown.ax.yaxis)
    blank = "; blank: no such point" if len(lowest) < len(across) * len(up) else ""
    what = f"cells: {_lowest(rows, columns, view, view.z)}{blank}"
    _title(figure, style, rows, columns, view, what)
    return figure


def _told(values: Sequence[float]) -> dict[float, str]:
    """Round numbers to the fewest digits, at most seven, that tell different ones apart."""
    different = len({_plain(value, DIGITS[-1]) for value in values})
    for digits in DIGITS:
        told = {value: _plain(value, digits) for value in values}
        if len(set(told.values())) == different:
            break
    return told


def _plain(value: float, digits: int) -> str:
    """Write a number in so many digits, without a power of ten.

    >>> _plain(1234.5, 3), _plain(0.0588235, 3)
    ('1230', '0.0588')
    """
    return f"{float(f'{value:.{digits}g}'):.15g}"


def _figure(style: Style, width: float = 0.0, height: float = 0.0) -> tuple[Figure, Axes]:
    """A figure of a size [inch], or of that of its style; there is room in a draft."""
    from matplotlib.figure import Figure

    usual = (6.4, 3.8) if style.stamped else (style.width, style.height + 6 * style.size / 72)
    width, height = width or usual[0], height or usual[1]
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _line(own: Look, style: Style) -> dict[str, Any]:
    """How the line of a series is drawn."""
    size = style.size / 7.5
    return {"color": own.colour, "marker": own.marker or "o", "ms": 4 * size, "lw": 1.2 * size}


def _legend(figure: Figure) -> None:
    """Beside the drawing, or below it where the figure is a column of a page."""
    narrow = figure.get_figwidth() < 5
    where = (
        {"loc": "outside lower center", "ncols": 2} if narrow else {"loc": "outside right center"}
    )
    figure.legend(frameon=False, **where)


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


def _axes(axes: Axes, x: Column, y: Column) -> None:
    """Label the axes; use a logarithmic scale where values span more than a factor of 20."""
    for column, name in ((x, "x"), (y, "y")):
        axis = getattr(axes, f"{name}axis")
        if 0 < 20 * min(column.values) < max(column.values):
            getattr(axes, f"set_{name}scale")("log")
            plain_ticks(axis)
        axis.set_label_text(column.label)
    axes.grid(color="0.9")


def _title(
    figure: Figure, style: Style, rows: Sequence[Row], columns: Sequence[str], view: View, what: str
) -> None:
    """Write the title: values that all rows share, conditions, and what is drawn."""
    words = {"accounting": "accounting ", "batch": "batch "}
    alike = [
        f"{words.get(name, '')}{rows[0][name]}"
        for name in ("network", "hardware", "method", "accounting", "mode", "batch")
        if name in columns and len({row[name] for row in rows}) == 1
    ]
    chosen = [f"only points with {view.where}"] if view.where else []
    style = style._replace(width=figure.get_figwidth(), small=style.size)
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
