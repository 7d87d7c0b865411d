"""Bars and shades of the page: lengths in percent of a scale, and the text of each."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

__all__ = ["Segment", "Shade", "shaded", "stacked"]


class Segment(NamedTuple):
    """A piece of a horizontal bar; the template draws it as an SVG rectangle."""

    x: float  # where it begins [% of the scale]
    width: float  # [% of the scale]
    paint: str  # class of the style sheet, or "" where `colour` says it
    colour: str  # "#rrggbb", or ""
    tip: str  # shown on hover and on focus


class Shade(NamedTuple):
    """A cell of a heat map."""

    value: float
    strength: float  # of its shade [%]
    tip: str


def stacked(
    values: Sequence[float], whole: float, paints: Sequence[str], tips: Sequence[str]
) -> list[Segment]:
    """Stack segments one behind the other; segments of 0 are left out.

    Args:
        values: not negative, in the unit of `whole`.
        whole: value at the end of the scale; 0 where there is nothing to draw.
        paints: of each value a class of the style sheet, or a colour "#rrggbb".
    """
    segments, x = [], 0.0
    for value, paint, tip in zip(values, paints, tips, strict=True):
        width = 100 * value / whole if whole else 0.0
        if width:
            colour = paint if paint.startswith("#") else ""
            segments.append(Segment(x, width, "" if colour else paint, colour, tip))
        x += width
    return segments


def shaded(value: float, most: float, tip: str) -> Shade:
    """Shade a cell by the root of its share of the largest, so that small ones are seen, too."""
    return Shade(value, 100 * sqrt(value / most) if most else 0.0, tip)
