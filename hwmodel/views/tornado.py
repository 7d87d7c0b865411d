"""Tornado plots: how far each method's percentage moves with the fields that move it most."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodel.errors import DataError, nearest
from hwmodel.rerun.tables import NATURE, read_csv, what
from hwmodel.specs.provenance import COLUMNS as PROVENANCE
from hwmodel.specs.provenance import refuse_old
from hwmodel.vary.sensitivity import Effect
from hwmodel.views.colours import called, looks
from hwmodel.views.figures.canvas import (
    DRAFT,
    STYLES,
    Style,
    below,
    broken,
    caption,
    heading,
    panels,
    rounded,
    settle,
    width_of,
)
from hwmodel.views.figures.records import LARGEST, whole
from hwmodel.views.plot import write_figure
from hwmodel.views.sensitivity_tables import largest, short, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_effects", "draw_tornado", "read_effects", "tornado_figure"]

BARS = 8  # fields of a panel
HIGH = 0.62  # of a bar, of a row
End = tuple[float, float, int, str]  # unmoved, change, row and value of the farthest move
_WHOLE = ("batch", "rank_before", "rank_after")
_NUMBERS = ("percent_before", "percent_after", "change_points", "flips_at")


def draw_tornado(
    effects: Sequence[Effect],
    path: Path,
    stamp: Sequence[str] = (),
    style: Style = STYLES[DRAFT],
) -> str:
    """Write the figure of one chip; the ending of `path` says in which format.

    Args:
        stamp: version, inputs and command, for the foot of the figure.

    Returns: its caption. Raises: HwmodelError for an unknown format.
    """
    methods = list(dict.fromkeys(effect.method for effect in effects))
    command = stamp[-1] if stamp else ""
    return write_figure(
        lambda own: tornado_figure(effects, own, command),
        path,
        stamp=stamp,
        style=style,
        methods=methods,
    )


def read_effects(path: Path) -> tuple[list[Effect], list[str]]:
    """Read the rows of a table that `sensitivity` wrote, and its provenance. Raises: DataError."""

    def check(first: Mapping[str, str]) -> None:
        refuse_old(path, first, first.get("command", ""))
        if missing := [name for name in Effect._fields if name not in first]:
            raise DataError(f"{path}: has no column {missing[0]!r}: it is no table of sensitivity")

    _, rows = read_csv(path, check)
    effects = []
    for line, row in enumerate(rows, start=2):
        cells: dict[str, Any] = {name: row[name] for name in Effect._fields}
        try:
            cells |= {name: int(row[name]) if row[name] else None for name in _WHOLE}
            cells |= {name: float(row[name]) if row[name] else None for name in _NUMBERS}
        except ValueError as error:
            raise DataError(f"{path}:{line}: {error}") from None
        for name in ("value_from", "value_to"):
            with suppress(ValueError):
                cells[name] = float(row[name])
        effects.append(Effect(**cells))
    if not effects:
        raise DataError(f"{path}: has no rows")
    if not all(abs(one.percent_before or 0) < LARGEST and abs(one.change_points or 0) < LARGEST
               for one in effects):  # fmt: skip
        raise DataError(f"{path}: has a percentage above {LARGEST:g}, the most that is drawn")
    stamp = [rows[0][name] for name in PROVENANCE] if PROVENANCE[0] in rows[0] else []
    return effects, stamp


def draw_effects(path: Path, to: Path, kind: str, style: Style, hardware: str = "") -> str:
    """Draw one chip of a table that `sensitivity` wrote. Return the caption. Raises: HwmodelError.

    Args:
        hardware: the chip, where the table has several.
    """
    if kind not in ("", "tornado"):
        raise DataError(f"{path}: a table of sensitivity is drawn as kind tornado, not {kind}")
    effects, stamp = read_effects(path)
    chips = list(dict.fromkeys(effect.hardware for effect in effects))
    if hardware and hardware not in chips:
        raise DataError(f"{path}: has no chip {hardware!r}: {nearest(hardware, chips)}")
    if not hardware and len(chips) > 1:
        raise DataError(f"{path}: is of several chips; choose one, --hardware {chips[0]}")
    chip = hardware or chips[0]
    return draw_tornado([one for one in effects if one.hardware == chip], to, stamp, style)


def tornado_figure(
    effects: Sequence[Effect], style: Style = STYLES[DRAFT], command: str = ""
) -> Figure:
    """Draw a panel for each method that anything moves: bars from unmoved to moved percentages.

    The field of largest effect is on top.

    Args:
        command: that made the effects, which says what is 100 %.
    """
    methods = list(dict.fromkeys(effect.method for effect in effects))
    mine = {name: [e for e in effects if e.method == name] for name in methods}
    moved = [name for name in methods if largest(mine[name])]
    look = looks(methods)
    columns = max(1, style.columns - 1)
    most = max((len(largest(mine[name])[:BARS]) for name in moved), default=1)
    names = [_names(mine[name], style, columns) for name in moved]
    lines = max((len(text.split("\n")) for texts in names for text in texts), default=1)
    lines = max(2, lines)  # the values at the ends may take two
    high = 1.45 * lines * style.small / 72
    figure, axes = panels(style, max(1, len(moved)), most * high, columns=columns)
    ends = [
        _panel(one, style, mine[name], look[name].colour, texts, f"energy, % of {whole(command)}")
        for one, name, texts in zip(axes, moved, names, strict=False)
    ]
    for empty in axes[len(moved) :]:
        empty.set_visible(False)
    first = effects[0]
    said = (
        f"{called(first.network, 'network')} on {called(first.hardware, 'hardware')}, "
        f"{what(first.mode, first.batch)}, accounting {first.accounting} ({NATURE}); from the "
        "percentage as it is to that with one field moved, whose value stands at the bar's end"
    )
    caption(figure, style, said if moved else f"{said}; no field moves any method")
    settle(figure)
    for one, mine_of in zip(axes, ends, strict=False):
        _make_room(one, style, mine_of)
    return figure


def _names(mine: Sequence[Effect], style: Style, columns: int) -> list[str]:
    """The names of a panel's fields, in lines that leave room for bars."""
    fields = [field for field, _ in largest(mine)[:BARS]]
    room = 0.36 * style.width / columns
    words = (short(field).partition(".")[2].replace("_", " ") for field in fields)
    return [broken(name.replace(".", ". "), room, style.small).replace(". ", ".") for name in words]


def _panel(
    axes: Axes, style: Style, mine: Sequence[Effect], colour: str, names: Sequence[str], unit: str
) -> list[End]:
    """Draw the bars of one method. Each ends in the value moved to; lines mark other values."""
    fields = [field for field, _ in largest(mine)[:BARS]]
    base = next(e.percent_before for e in mine if e.percent_before is not None)
    ends: list[End] = []
    for row, field in enumerate(fields):
        here = [e for e in mine if e.field == field and e.change_points is not None]
        for up in (False, True):
            side = [e for e in here if e.change_points and (e.change_points > 0) == up]
            side.sort(key=lambda e: -abs(e.change_points or 0))
            _bar(axes, row, base, side, colour)
            if side:
                value = shown(side[0].value_to, side[0].field, side[0].unit)
                value = value.partition(" + ")[0]  # of moves together that of the first named
                far = side[0].change_points or 0.0
                ends.append((base, far, row, value + (", …" if len(side) > 1 else "")))
    axes.axvline(base, color="k", lw=0.1 * style.size)
    axes.set_yticks(range(len(fields)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.set_ylim(len(fields) - 0.4, -0.6)
    axes.grid(axis="x")
    method = mine[0].method
    heading(axes, style, f"{called(method)}: {rounded(base)} %", method=method)
    below(axes, style, unit)
    return ends


def _make_room(axes: Axes, style: Style, ends: Sequence[End]) -> None:
    """Write the value at the end of every bar, within limits that leave it room."""
    inches = axes.get_position().width * style.width
    ends = [(b, f, row, _lines(text, inches, style.small)) for b, f, row, text in ends]
    gap = 0.8 * style.small / 72
    reach = [(b, f, width_of(text, style.small) + gap) for b, f, _, text in ends]
    low, high = (pick(base + far for base, far, _ in reach) for pick in (min, max))
    low, high = min(low, ends[0][0]), max(high, ends[0][0])
    least, most = low, high
    for _ in range(60):  # the scale depends on the limits, which approach their own
        unit = (most - least) / inches
        least = min([low, *(b + far - wide * unit for b, far, wide in reach if far < 0)])
        most = max([high, *(b + far + wide * unit for b, far, wide in reach if far > 0)])
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlim(least, most)
    axes.set_xticks([tick for tick in axes.get_xticks() if max(0, least) <= tick <= most])
    axes.set_xlim(least, most)
    axes.spines["bottom"].set_bounds(max(0.0, least), most)  # no percentage is below 0
    for base, far, row, text in ends:
        axes.annotate(
            text, (base + far, row), ((0.4 if far > 0 else -0.4) * style.small, 0),
            textcoords="offset points", ha="left" if far > 0 else "right", va="center",
            size=style.small,
        )  # fmt: skip


def _lines(text: str, inches: float, size: float) -> str:
    """Break a value into lines of less than half a panel, within no word that fits into that."""
    longest = max(width_of(word, size) for word in re.split(r"(?<=-)| ", text) if word)
    return broken(text, max(0.4 * inches, min(longest + 0.01, 0.48 * inches)), size)


def _bar(axes: Axes, row: int, base: float, side: Sequence[Effect], colour: str) -> None:
    """Draw the farthest move to one side, paler if it is downwards, and lines for the others."""
    from matplotlib.colors import to_rgb

    for effect in side[:1]:
        change = effect.change_points or 0.0
        paler = 0.1 if change > 0 else 0.5
        shade = [1 - (1 - part) * (1 - paler) for part in to_rgb(colour)]
        axes.barh(row, change, HIGH, left=base, color=shade)
    for effect in side[1:]:
        x = base + (effect.change_points or 0.0)
        axes.plot([x, x], [row - HIGH / 2, row + HIGH / 2], color="white", lw=0.5)
