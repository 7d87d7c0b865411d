"""Energy of every tensor at every level, in percent of the whole, as shades."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from hwmodel.errors import DataError
from hwmodel.rerun.tables import scale
from hwmodel.views.colours import ink_on
from hwmodel.views.figures.canvas import (
    Style,
    below,
    beside,
    broken,
    caption,
    heading,
    in_order,
    panels,
    width_of,
)
from hwmodel.views.figures.records import Page, headline, sums, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["level_tensor_figure"]

MOST_TENSORS = 14


def level_tensor_figure(page: Page) -> Figure:
    """Draw a cell for each tensor and level, darker for more energy; a blank has no row."""
    style = page.style
    tables = [_cells(group) for group in page.groups]
    most = max(len(tensors) for tensors, _, _, _ in tables)
    names = [name for tensors, _, _, _ in tables for name in _lines(tensors, style)]
    high = 1.75 if any("\n" in name for name in names) else 1.15
    figure, axes = panels(style, len(tables), high * style.bar * most, columns=style.columns - 1)
    for one, group, (tensors, levels, percent, whole) in zip(
        axes, page.groups, tables, strict=True
    ):
        _cell_colours(one, page, tensors, levels, percent)
        divisor, unit = scale(whole, group[0]["unit"])
        title = f"{page.name(group)}: {whole / divisor:,.4g} {unit}"
        heading(one, style, title)
    caption(figure, style, headline(page.records))
    return figure


def _lines(tensors: list[str], style: Style) -> list[str]:
    return [broken(tensor, 0.32 * style.width, style.small) for tensor in tensors]


Cells = dict[tuple[str, str], float]  # (tensor, level) -> percent of the whole


def _cells(group: list[dict[str, str]]) -> tuple[list[str], list[str], Cells, float]:
    """Return tensors, levels, the share of each pair with rows [percent], and the whole energy."""
    found = sums(group, lambda record: (record["tensor"], record["level"]))
    operations = {record["tensor"] for record in group if record["component"] == "compute"}
    tensors = sorted(unique(group, "tensor"), key=lambda tensor: tensor in operations)
    levels = unique(group, "level")
    whole = fsum(found.values())
    if not whole:
        raise DataError("the table has no energy")
    kept = in_order(
        tensors, lambda t: fsum(found.get((t, level), 0) for level in levels), MOST_TENSORS
    )
    others = [tensor for tensor in tensors if tensor not in kept]
    name = f"{len(others)} other"
    percent = {pair: 100 * energy / whole for pair, energy in found.items() if pair[0] in kept}
    for level in levels:
        rest = [found[t, level] for t in others if (t, level) in found]
        if rest:
            percent[name, level] = 100 * fsum(rest) / whole
    return [*kept, *([name] if others else [])], levels, percent, whole


def _cell_colours(
    axes: Axes, page: Page, tensors: list[str], levels: list[str], percent: Cells
) -> None:
    """Shade cells by the square root of their share, so that small shares show."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from matplotlib.patches import Rectangle

    style, shades = page.style, colormaps["Blues"]
    highest = max(percent.values())
    for (tensor, level), share in percent.items():
        x, y = levels.index(level), tensors.index(tensor)
        colour = to_hex(shades(0.85 * (share / highest) ** 0.5))
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=colour, lw=0))
        text = "0" if not share else "<0.1" if share < 0.05 else f"{share:.1f}"
        axes.text(x, y, text, ha="center", va="center", size=style.small, color=ink_on(colour))
    axes.set_xlim(-0.5, len(levels) - 0.5)
    axes.set_ylim(len(tensors) - 0.5, -0.5)
    axes.set_yticks(range(len(tensors)), _lines(tensors, style))
    axes.set_xticks(range(len(levels)), levels)
    if width_of("\n".join(levels), style.small) > 0.82 * style.width / beside(axes) / len(levels):
        axes.tick_params(axis="x", rotation=40)
    axes.tick_params(length=0)
    below(axes, style, "level; energy, % of the whole", once=True)
    for side in axes.spines.values():
        side.set_visible(False)
