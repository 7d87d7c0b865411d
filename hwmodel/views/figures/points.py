"""Points in the looks of their methods, and names beside them, none on another or on a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, hypot
from typing import TYPE_CHECKING, Any, NamedTuple

from hwmodel.views.colours import look
from hwmodel.views.figures.canvas import (
    GREY,
    HEAVY,
    PLAIN,
    Style,
    broken,
    marker,
    settle,
    spaced,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Point", "name_points", "scatter"]


class Point(NamedTuple):
    """A point of a figure: its place, its name, and the method whose look it has."""

    x: float
    y: float
    text: str  # "" has no name in the figure
    method: str  # "" is a place on a line, which is named there and has no mark
    weight: float = 0.0  # what it stands for: where not all have names, the heavy ones do


def scatter(axes: Axes, points: Sequence[Point], style: Style) -> None:
    """Draw every point in the look of its method."""
    for method in dict.fromkeys(point.method for point in points):
        mine = [point for point in points if point.method == method]
        drawn = marker(look(method), style, ours=method in style.ours)
        axes.plot([p.x for p in mine], [p.y for p in mine], zorder=3, **drawn)


class Box(NamedTuple):
    """A rectangle in a figure [pixel]."""

    left: float
    bottom: float
    right: float
    top: float

    def shared(self, other: Box) -> float:
        """Return the area that lies in both boxes [pixel²]."""
        across = min(self.right, other.right) - max(self.left, other.left)
        up = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, across) * max(0.0, up)

    def away(self, x: float, y: float) -> float:
        """Return how far a point is from the box [pixel]."""
        across = max(self.left - x, 0.0, x - self.right)
        return hypot(across, max(self.bottom - y, 0.0, y - self.top))


def name_points(
    figure: Figure, axes: Sequence[Axes], series: Sequence[Sequence[Point]], style: Style
) -> bool:
    """Put each point's name where it covers least of points, names and lines.

    Of such places one is taken from which no other point is nearer, if there is one.
    The layout is settled first and then stays: places are sought in pixels.

    Returns: whether no name lies on another, on a point of a method or beyond its panel.
    """
    settle(figure)
    size, apart = style.small * figure.dpi / 72, True
    for one, points in zip(axes, series, strict=True):
        frame = Box(*one.get_window_extent().extents)
        places = [one.transData.transform((point.x, point.y)) for point in points]
        half = 0.6 * size
        marked = [place for point, place in zip(points, places, strict=True) if point.method]
        marks = [Box(x - half, y - half, x + half, y + half) for x, y in marked]
        taken = [*marks, *_lines(one, size)]
        names: list[Box] = []
        for point, (x, y) in zip(points, places, strict=True):
            if not point.text:
                continue
            ours = bool(point.method) and point.method in style.ours
            boxes = {
                box: lines
                for lines in dict.fromkeys(broken(point.text, style.width / n, style.small)
                                           for n in (3, 4, 6))
                for box in _around(x, y, _extent(lines, ours, figure.dpi, style), size, frame)
            }  # fmt: skip
            covered = {b: sum(b.shared(other) for other in (*names, *taken)) for b in boxes}
            others = [mark for mark in marked if hypot(mark[0] - x, mark[1] - y) > half]
            ugly = {
                b: any(b.away(*at) < b.away(x, y) for at in others)
                + any(_between(b, (x, y), at) < half for at in others)
                + (not {*point.text.split()} <= {*lines.split()})  # a word is broken
                for b, lines in boxes.items()
            }
            box = min(boxes, key=lambda b: (covered[b], ugly[b]))
            lines = boxes[box]
            apart &= not any(box.shared(other) for other in (*names, *marks))
            apart &= box.left >= frame.left and box.bottom >= frame.bottom
            names.append(box)
            middle = (box.left + box.right) / 2, (box.bottom + box.top) / 2
            across, up = one.transAxes.inverted().transform(middle)
            drawn = one.annotate(
                lines, (point.x, point.y), (across, up),
                textcoords="axes fraction", ha="center", va="center", size=style.small, zorder=4,
                color="k" if point.method else GREY, weight=HEAVY if ours else PLAIN,
                arrowprops=_leader(box, x, y, size, others),
            )  # fmt: skip
            spaced([drawn])
    return apart


def _extent(lines: str, ours: bool, dpi: float, style: Style) -> tuple[float, float]:
    """Return width and height of a name [pixel]."""
    wide = (1.15 if ours else 1.0) * width_of(lines, style.small)
    return wide * dpi, 1.2 * style.small / 72 * dpi * len(lines.split("\n"))


def _lines(axes: Axes, size: float) -> Iterator[Box]:
    """Yield small boxes along the lines of a panel."""
    half = 0.15 * size
    for line in axes.get_lines():
        if line.get_linestyle() == "None":
            continue
        path: Any = line.get_transform().transform_path(line.get_path())
        for (x, y), (to_x, to_y) in pairwise(path.vertices.tolist()):
            steps = max(1, ceil(hypot(to_x - x, to_y - y) / (2 * half)))
            for step in range(steps + 1):
                at_x, at_y = x + (to_x - x) * step / steps, y + (to_y - y) * step / steps
                yield Box(at_x - half, at_y - half, at_x + half, at_y + half)


def _between(box: Box, end: tuple[float, float], mark: Any) -> float:
    """Return how far a mark is from the line that leads from a name to its point [pixel]."""
    x, y = min(max(end[0], box.left), box.right), min(max(end[1], box.bottom), box.top)
    across, up = end[0] - x, end[1] - y
    square = across**2 + up**2
    part = ((mark[0] - x) * across + (mark[1] - y) * up) / square if square else 0.0
    part = min(max(part, 0.0), 1.0)
    return hypot(x + part * across - mark[0], y + part * up - mark[1])


def _leader(
    box: Box, x: float, y: float, size: float, others: Sequence[Any]
) -> dict[str, Any] | None:
    """Return the style of a thin line from a name to its point, where they stand apart.

    So they do for the eye where another point is hardly farther.
    """
    near = Box(x - size, y - size, x + size, y + size).shared(box)
    near = near and all(box.away(*at) > box.away(x, y) + size for at in others)
    width = size / 100
    return None if near else {"arrowstyle": "-", "color": GREY, "lw": width, "shrinkA": 0}


def _around(x: float, y: float, extent: tuple[float, float], size: float, frame: Box) -> list[Box]:
    """List boxes for a name around a point, the best first, all inside the frame."""
    width, height = extent
    boxes = []
    for far in (1, 3, 6):  # steps away from the point
        for up in (0, 1, -1, 2, -2, 3, -3, 5, -5, 7, -7):
            for across in (1, -1, 0) if up else (1, -1):
                left = x + 0.8 * size * far * across + (across - 1) / 2 * width
                bottom = y + up * (0.4 * size + height / 2) - height / 2
                left = min(max(left, frame.left + 2), frame.right - width - 2)
                bottom = min(max(bottom, frame.bottom + 2), frame.top - height - 2)
                boxes.append(Box(left, bottom, left + width, bottom + height))
    return boxes
