"""Colours, markers and hatches: what a thing looks like in every figure, whatever stands beside it.

Bundled methods state their look in their files. Any other method gets one that follows from its
name alone, so that it stays the same in other company. Nothing here needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import cycle
from typing import NamedTuple, get_args
from zlib import crc32

from hwmodel.files import bundled, load
from hwmodel.method import Hatch, Marker, Method

__all__ = ["PART_COLOURS", "Look", "ink_on", "lightness", "look", "looks", "part_colours"]

# For methods whose file states no colour: of middle lightness, apart from those of the main ones.
_SPARE_COLOURS = ("#4c72b0", "#8a6bbd", "#a0522d", "#d1772e", "#5b8c3e", "#6b7a8f", "#c2528b")

# Parts of a stack. A loss signal is the light shade of the tensor that it belongs to.
PART_COLOURS = {
    "forward": "#1b4f8a",
    "backward_input": "#e8a33d",
    "backward_weight": "#7a3b1d",
    "update": "#9ccbe6",
    "I": "#1b4f8a",
    "dI": "#9ccbe6",
    "F": "#7a3b1d",
    "dF": "#e8a33d",
    "O": "#2f6b4f",
    "dO": "#a8d5a2",
}
_SPARE_PARTS = ("#6f6f6f", "#b48fd9", "#8e3a6d", "#c8c8c8", "#4a3f7a", "#f2c6cf", "#3f3f3f")


class Look(NamedTuple):
    """How a method is drawn; `marker` and `hatch` are matplotlib's characters."""

    colour: str  # "#rrggbb"
    marker: str
    hatch: str  # "" is plain


@cache
def look(method: str) -> Look:
    """The look of a method, by its name alone.

    >>> look("mine") == look("mine")
    True
    """
    spread = crc32(method.encode())
    markers, hatches = get_args(Marker), get_args(Hatch)
    spare = Look(
        _SPARE_COLOURS[spread % len(_SPARE_COLOURS)],
        markers[spread // 8 % len(markers)],
        hatches[spread // 128 % len(hatches)],
    )
    if method not in bundled(Method):
        return spare
    stated = load(Method, method)
    return Look(stated.colour or spare.colour, stated.marker or spare.marker, stated.hatch or "")


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """The look of each method."""
    return {method: look(method) for method in methods}


def part_colours(parts: Iterable[str]) -> dict[str, str]:
    """A colour for each part of a stack: its own, or, where it has none, a spare one in turn.

    Beyond the seventh spare, colours come again.
    """
    spares = cycle(_SPARE_PARTS)
    return {part: PART_COLOURS.get(part) or next(spares) for part in dict.fromkeys(parts)}


def lightness(colour: str) -> float:
    """CIE L* of "#rrggbb", 0 (black) to 100 (white): what is left of it in grey.

    Source: IEC 61966-2-1 (sRGB), CIE 1976 L*.
    """
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    cube = luminance ** (1 / 3) if luminance > (6 / 29) ** 3 else None
    return 116 * cube - 16 if cube is not None else luminance * (29 / 3) ** 3


def ink_on(colour: str) -> str:
    """Black or white: the one of more contrast on `colour`, at least 4.5 to 1."""
    return "#000000" if lightness(colour) > 49.5 else "#ffffff"
