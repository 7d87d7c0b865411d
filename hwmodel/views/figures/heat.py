"""Where the energy of a run goes: every tensor at every memory, in percent of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

from hwmodel.errors import DataError
from hwmodel.model.ledger import PLACES
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
from hwmodel.views.figures.records import Page, Record, headline, sums, turn, wholes
from hwmodel.views.figures.words import part_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["level_tensor_figure"]

MOST_TENSORS = 14


def level_tensor_figure(page: Page) -> Figure:
    """A cell for each tensor and memory, dark where much of the energy goes; a blank has no row."""
    style = page.style
    order = turn(page.records, "tensor")
    tables = [_cells(group, order) for group in page.groups]
    most = max(len(tensors) for tensors, _, _, _ in tables)
    names = [name for tensors, _, _, _ in tables for name in _lines(tensors, style)]
    high = 1.75 if any("\n" in name for name in names) else 1.15
    widest = max(width_of(name, style.small) for name in names)
    cells = max(len(memories) for _, memories, _, _ in tables) * 1.3 * width_of("<0.1", style.small)
    across = int(style.width / (widest + cells + 2 * style.small / 72))  # so that numbers fit
    columns = max(1, min(style.columns - 1, across))
    figure, axes = panels(style, len(tables), high * style.bar * most, columns=columns)
    for one, group, (tensors, memories, percent, _), whole in zip(
        axes, page.groups, tables, wholes(page.groups), strict=True
    ):
        _cell_colours(one, page, tensors, memories, percent)
        title = f"{page.name(group)}: {whole.text}"
        heading(one, style, title, method=group[0]["method"])
    caption(figure, style, headline(page.records))
    return figure


def _lines(tensors: list[str], style: Style) -> list[str]:
    words = map(part_words, tensors)
    return [broken(tensor, 0.32 * style.width, style.small) for tensor in words]


Cells = dict[tuple[str, ...], float]  # (tensor, memory) -> percent of the whole


def _cells(
    group: Sequence[Record], order: Mapping[str, int]
) -> tuple[list[str], list[str], Cells, float]:
    """Tensors, memories, the share of each pair that has rows [percent], and the whole energy."""
    found = sums(group, "tensor", "memory")
    tensors, memories = ([*dict.fromkeys(names)] for names in zip(*found, strict=True))
    tensors.sort(key=order.__getitem__)  # alike in all panels
    memories.sort(key=lambda memory: memory in PLACES)  # last
    whole = fsum(found.values())
    if not whole:
        raise DataError("the table has no energy")
    kept = in_order(
        tensors, lambda t: fsum(found.get((t, memory), 0) for memory in memories), MOST_TENSORS
    )
    others = [tensor for tensor in tensors if tensor not in kept]
    name = f"{len(others)} other"
    percent: Cells = {
        pair: 100 * energy / whole for pair, energy in found.items() if pair[0] in kept
    }
    for memory in memories:
        rest = [found[t, memory] for t in others if (t, memory) in found]
        if rest:
            percent[name, memory] = 100 * fsum(rest) / whole
    return [*kept, *([name] if others else [])], memories, percent, whole


def _cell_colours(
    axes: Axes, page: Page, tensors: list[str], memories: list[str], percent: Cells
) -> None:
    """Shade cells by the square root of their share, so that small shares show."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from matplotlib.patches import Rectangle

    style, shades = page.style, colormaps["Blues"]
    highest = max(percent.values())
    for (tensor, memory), share in percent.items():
        x, y = memories.index(memory), tensors.index(tensor)
        colour = to_hex(shades(0.85 * (share / highest) ** 0.5))
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=colour, lw=0))
        text = "0" if not share else "<0.1" if share < 0.05 else f"{share:.1f}"
        axes.text(x, y, text, ha="center", va="center", size=style.small, color=ink_on(colour))
    axes.set_xlim(-0.5, len(memories) - 0.5)
    axes.set_ylim(len(tensors) - 0.5, -0.5)
    axes.set_yticks(range(len(tensors)), _lines(tensors, style))
    axes.set_xticks(range(len(memories)), memories)
    room = 0.82 * style.width / beside(axes) / len(memories)
    if width_of("\n".join(memories), style.small) > room:
        for name in axes.get_xticklabels():
            name.set(rotation=40, ha="right", rotation_mode="anchor")
    axes.tick_params(length=0)
    below(axes, style, "memory; energy, % of the whole", once=True)
    for side in axes.spines.values():
        side.set_visible(False)
