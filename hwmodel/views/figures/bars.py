"""Bars: methods in percent of the baseline, and one run by pass, by memory, by layer."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from hwmodel.errors import DataError
from hwmodel.model.ledger import PLACES
from hwmodel.views.colours import Look, depth_looks, look, part_looks
from hwmodel.views.figures.canvas import (
    GREY,
    HEAVY,
    PLAIN,
    Style,
    bar,
    below,
    beside,
    broken,
    caption,
    heading,
    in_order,
    legend,
    outline,
    panels,
    rounded,
    surface,
)
from hwmodel.views.figures.grouping import GROUPINGS, layer_groups
from hwmodel.views.figures.records import (
    PARTS,
    Page,
    Record,
    Whole,
    headline,
    label,
    sums,
    turn,
    unknown,
    wholes,
)
from hwmodel.views.figures.words import part_words, pass_words
from hwmodel.work.tensor import Pass

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["layers_figure", "levels_figure", "method_passes_figure", "methods_figure"]
__all__ += ["passes_figure"]

LEAST = 0.01  # percent of the whole that is told by its digits
MOST_INCHES = 6.0  # of lying bars, each with a name; more layers stand upright, by number
MOST_PARTS = 8  # tensors in a stack; the lightest are put together
MOST_UNEQUAL = 10  # times the longest bar of one panel in another on the same scale
OTHERS = "other"


class Stack(NamedTuple):
    """Bars of one panel, cut into parts."""

    title: str
    places: list[str]  # a bar each
    heights: dict[str, list[float]]  # of each part, one a place
    unit: str
    method: str = ""  # whose panel it is, if one's
    unknown: Mapping[int, str] = {}  # places without a bar, and why

    @property
    def totals(self) -> list[float]:
        """The sum of all parts at each place."""
        return [fsum(column) for column in zip(*self.heights.values(), strict=True)]


def methods_figure(page: Page) -> Figure:
    """Draw percent of the baseline: a panel per chip, a bar per method, marks where published."""
    style, records = page.style, page.records
    names = list(dict.fromkeys(label(record, records) for record in records))
    figure, axes = panels(
        style, len(page.groups), _height(names, style), columns=page.columns, share_y=True
    )
    marked = then = False
    heavy = _ours(page, names)
    for one, group in zip(axes, page.groups, strict=True):
        for record in group:
            y = names.index(label(record, records))
            marked |= _method_bar(one, y, record, page)
            then |= _optimal_mark(one, y, record, page)
        _prepare(one, page, names, page.name(group), page.percent, heavy)
    marks = "; | as published" * marked + "; ◇ with optimal tiles in place of greedy ones" * then
    caption(figure, style, headline(records) + marks)
    return figure


def _method_bar(axes: Axes, y: int, record: Record, page: Page) -> bool:
    """Draw a bar with its number, and the published figure; return whether there is one."""
    percent, source = record["percent_of_baseline"], float(record["source_percent"] or 0)
    small = page.style.small
    if not percent:
        _say(axes, page, y, unknown(record))
        return False
    bar(axes, y, float(percent), look(record["method"]))
    ours = record["method"] in page.style.ours
    if ours:
        outline(axes, page.style, y, float(percent))
    if source:
        axes.plot([source, source], [y - 0.45, y + 0.45], color="k", lw=0.16 * small)
    mark = _optimal_percent(record) or 0.0
    right = max(float(percent), source, mark)
    beyond = 0.7 if mark and mark == right else 0.4  # half a diamond more
    axes.annotate(
        rounded(float(percent)), (right, y), (beyond * small, 0),
        textcoords="offset points", va="center", size=small, weight=HEAVY if ours else PLAIN,
    )  # fmt: skip
    return bool(source)


def _say(axes: Axes, page: Page, y: int, text: str) -> None:
    """Write why there is no bar where it would begin."""
    small = page.style.small
    axes.annotate(f" {text}", (0, y), va="center", size=small, color=GREY, style="italic")


def _optimal_percent(record: Record) -> float | None:
    """The percentage with optimal tiles where greedy ones hide it, else None."""
    percent = record.get("percent_of_baseline_optimal_tiles", "")
    same = not percent or percent == record["percent_of_baseline"]
    return None if same or record["energy_optimal_tiles"] == record["energy"] else float(percent)


def _optimal_mark(axes: Axes, y: int, record: Record, page: Page) -> bool:
    """Mark what greedy tiles hide: the percentage with optimal ones; return whether there is one.

    The baseline's is 100 % either way.
    """
    if not record.get("percent_of_baseline_optimal_tiles", "") or (
        record["energy_optimal_tiles"] == record["energy"]
    ):
        return False
    percent = _optimal_percent(record)
    if percent is not None:
        size = 0.5 * page.style.small
        axes.plot(percent, y, "D", mfc="w", mec="k", ms=size, mew=0.1 * size, zorder=4)
    return True


def _lines(names: Sequence[str], style: Style, beside: int = 1) -> list[str]:
    """Break the names of bars, which stand so many times side by side."""
    room = 0.35 * style.width / beside
    return [broken(pass_words(name), room, style.small) for name in names]


def _height(names: Sequence[str], style: Style, beside: int = 1) -> float:
    """Return the height of bars whose names may take several lines [inch]."""
    most = max(len(name.split("\n")) for name in _lines(names, style, beside))
    return len(names) * max(style.bar, most * 1.25 * style.small / 72)


def _ours(page: Page, names: Sequence[str]) -> set[int]:
    """Places of the bars whose method is ours."""
    of_name = {label(record, page.records): record["method"] for record in page.records}
    return {i for i, name in enumerate(names) if of_name.get(name) in page.style.ours}


def _prepare(
    axes: Axes,
    page: Page,
    names: Sequence[str],
    title: str,
    xlabel: str,
    heavy: Container[int] = (),
    method: str = "",
    own: int = 1,
) -> None:
    """Write names on the left, the first on top, a heading, and the quantity below.

    Args:
        heavy: places whose names stand out.
        method: whose panel it is, if one's.
        own: panels side by side that have names of their own.
    """
    style = page.style
    axes.set_yticks(range(len(names)), _lines(names, style, own))
    for place, text in enumerate(axes.get_yticklabels()):
        text.set_fontweight(HEAVY if place in heavy else PLAIN)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_xlim(left=0)
    if xlabel == page.percent and not axes.dataLim.x1 > 0:  # no bar: an axis as its neighbours'
        axes.set_xlim(right=105)  # with the margin of a bar of 100 %
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=5 if beside(axes) == 1 else 3)
    heading(axes, style, title, method=method)
    below(axes, style, xlabel, once=xlabel == page.percent)


def method_passes_figure(page: Page) -> Figure:
    """Draw percent of the baseline, cut by pass: a panel per chip, a bar per method."""
    names = list(dict.fromkeys(label(record, page.records) for record in page.records))
    parts = [part for part in PARTS if any(float(r[part] or 0) for r in page.records)]
    if not parts:
        raise DataError("the table has no energy in any pass")
    stacks = []
    for group in page.groups:
        lines = {label(record, page.records): record for record in group}
        shares = {part: [_percent(lines.get(name), part) for name in names] for part in parts}
        without = {
            place: unknown(lines[name]) if name in lines else ""
            for place, name in enumerate(names)
            if name not in lines or not lines[name]["percent_of_baseline"]
        }
        stacks.append(Stack(page.name(group), names, shares, page.percent, unknown=without))
    return _lying(page, stacks, columns=page.columns, heavy=_ours(page, names))


def _percent(record: Record | None, part: str) -> float:
    """Return a part of a line, in percent of the baseline."""
    if record is None or not float(record["energy"] or 0):
        return 0.0
    return float(record["percent_of_baseline"] or 0) * float(record[part]) / float(record["energy"])


def passes_figure(page: Page) -> Figure:
    """Energy of each pass of one run, cut by memory."""
    stacks = _stacks(page, "pass", "memory")
    places = dict.fromkeys(place for stack in stacks for place in stack.heights)
    return _lying(page, stacks, depth_looks(list(places), PLACES))


def levels_figure(page: Page) -> Figure:
    """Energy at each memory, and of the operations, cut by tensor."""
    return _lying(page, _stacks(page, "memory", "tensor"))


def layers_figure(page: Page) -> Figure:
    """Draw the energy of each layer, cut by pass, or of groups of layers that fit a page.

    As fine as there is room, unless the page says how: `GROUPINGS`. Layers of which not even the
    stages fit stand as a profile, by number.
    """
    grouped = layer_groups(page.records)
    kinds = [page.layers_by] if page.layers_by else list(GROUPINGS)
    for kind in kinds:
        stacks = _stacks(page, "layer", "pass", grouped[kind])
        own = _apart(stacks, page.style)
        if max(_height(stack.places, page.style, own) for stack in stacks) <= MOST_INCHES:
            return _lying(page, stacks, said=GROUPINGS[kind])
    of = grouped[kinds[0]]
    return _standing(page, _stacks(page, "layer", "pass", of))


def _in_turn(names: Iterable[str], turn: Mapping[str, int]) -> list[str]:
    """Order passes as in an iteration, anything else as in the tables; operations come last."""
    order = [pass_.value for pass_ in Pass]
    found = sorted({*names}, key=lambda name: (name in PLACES, turn.get(name, len(turn)), name))
    return sorted(found, key=order.index) if set(found) <= set(order) else found


def _stacks(
    page: Page, along: str, across: str, of: Mapping[str, str] | None = None
) -> list[Stack]:
    """Sum the energy of every group by two columns of the table, those of one unit alike scaled.

    Args:
        of: the place of each value of `along`; by default each is a place of its own.
    """
    own = of or {value: value for value in turn(page.records, along)}
    places = {place: i for i, place in enumerate(dict.fromkeys(own.values()))}
    turns = turn(page.records, across) | places
    stacks = []
    for group, whole in zip(page.groups, wholes(page.groups), strict=True):
        cells: dict[tuple[str, ...], float] = {}
        for (part, value), energy in sums(group, across, along).items():
            key = part, own[value]
            cells[key] = cells.get(key, 0.0) + energy
        stacks.append(_stack(page, group, cells, turns, whole))
    return stacks


def _stack(
    page: Page,
    group: Sequence[Record],
    found: Mapping[tuple[str, ...], float],
    turns: Mapping[str, int],
    whole: Whole,
) -> Stack:
    """Cut the bars of a group into parts.

    Args:
        found: energies by part and place.
        turns: the order of parts and of places, one in all panels.
        whole: energy of the group.
    """
    parts, places = (_in_turn(names, turns) for names in zip(*found, strict=True))
    most = len(parts) if len(parts) == MOST_PARTS + 1 else MOST_PARTS  # one is not put together
    kept = in_order(parts, lambda p: fsum(found.get((p, x), 0) for x in places), most)
    heights = {p: [found.get((p, x), 0) / whole.divisor for x in places] for p in kept}
    others = [p for p in parts if p not in kept]
    if others:
        rest = [fsum(found.get((p, x), 0) for p in others) / whole.divisor for x in places]
        # panels share a legend: how many are put together is not the same in each
        heights[OTHERS if len(page.groups) > 1 else f"{len(others)} {OTHERS}"] = rest
    title = f"{page.name(group)}: {whole.text}"
    return Stack(title, places, heights, f"energy, {whole.unit}", group[0]["method"])


def _lying(
    page: Page,
    stacks: list[Stack],
    drawn: dict[str, Look] | None = None,
    *,
    columns: int = 0,
    heavy: Container[int] = (),
    said: str = "",
) -> Figure:
    """Draw horizontal bars, a panel each stack, with each bar's share of the whole at its end.

    Args:
        columns: panels of the same bars side by side; by default each has its own.
        heavy: places of the bars that are ours.
        said: what else the caption says.
    """
    style = page.style
    own = 1 if columns else _apart(stacks, style)
    figure, axes = panels(
        style, len(stacks), max(_height(stack.places, style, own) for stack in stacks),
        columns=columns or own, share_y=bool(columns),
    )  # fmt: skip
    drawn = drawn or part_looks(part for stack in stacks for part in stack.heights)
    for one, stack in zip(axes, stacks, strict=True):
        left = [0.0] * len(stack.places)
        for part, widths in stack.heights.items():
            for y, width in enumerate(widths):
                if width:
                    bar(one, y, width, drawn[part], left=left[y])
            left = [start + width for start, width in zip(left, widths, strict=True)]
        for y, total in enumerate(left):
            if y in heavy and total:
                outline(one, style, y, total)
        _numbers(one, page, stack, heavy)
        _prepare(one, page, stack.places, stack.title, stack.unit, heavy, stack.method, own)
    _alike(axes, stacks)
    caption(figure, style, headline(page.records) + said)
    legend(figure, style, {part_words(part): look for part, look in drawn.items()})
    return figure


def _alike(axes: Sequence[Axes], stacks: Sequence[Stack]) -> None:
    """Give panels of one unit one scale, where every panel's bars can still be told apart."""
    most = [max(stack.totals) for stack in stacks]
    if len({stack.unit for stack in stacks}) == 1 and max(most) <= MOST_UNEQUAL * min(most):
        right = max(one.get_xlim()[1] for one in axes)
        for one in axes:
            one.set_xlim(right=right)


def _apart(stacks: Sequence[Stack], style: Style) -> int:
    """Count the panels side by side, where each has names of its own."""
    return max(1, min(len(stacks), style.columns - 1))


def _numbers(axes: Axes, page: Page, stack: Stack, heavy: Container[int]) -> None:
    """Write at the end of each bar its percent of the baseline, or of the whole run."""
    totals = stack.totals
    whole = 100.0 if stack.unit == page.percent else fsum(totals)
    for y, total in enumerate(totals):
        if y in stack.unknown:
            _say(axes, page, y, stack.unknown[y])
            continue
        text = rounded(100 * total / whole) if whole else "0"
        percent = "" if stack.unit == page.percent else " %"
        if percent and 0 < 100 * total / whole < LEAST:
            text = f"<{LEAST:g}"
        axes.annotate(
            f"{text}{percent}", (total, y), (0.4 * page.style.small, 0),
            textcoords="offset points", va="center", size=page.style.small,
            weight=HEAVY if y in heavy else PLAIN,
        )  # fmt: skip


def _standing(page: Page, stacks: list[Stack]) -> Figure:
    """Draw layers as a profile from the first to the last, and name the largest."""
    from matplotlib.ticker import MaxNLocator

    style = page.style
    figure, axes = panels(style, len(stacks), style.height, columns=1)
    drawn: dict[str, Look] = part_looks(part for stack in stacks for part in stack.heights)
    for one, stack in zip(axes, stacks, strict=True):
        edges = [number + 0.5 for number in range(len(stack.places) + 1)]
        low = [0.0] * len(stack.places)
        for part, heights in stack.heights.items():
            high = [start + height for start, height in zip(low, heights, strict=True)]
            one.stairs(high, edges, baseline=low, fill=True, **surface(drawn[part]))
            low = high
        _name_largest(one, page, stack)
        one.set_xlim(0.5, len(stack.places) + 0.5)
        one.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        below(one, style, "number of the layer, in the order of the table")
        one.set_ylabel(stack.unit)
        heading(one, style, stack.title, method=stack.method)
        one.grid(axis="y")
    caption(figure, style, headline(page.records))
    legend(figure, style, {pass_words(part): look for part, look in drawn.items()})
    return figure


def _name_largest(axes: Axes, page: Page, stack: Stack) -> None:
    """Name up to three of the highest bars, far enough apart for their names."""
    totals, count = stack.totals, len(stack.places)
    named: list[int] = []
    for index in sorted(range(count), key=lambda i: -totals[i]):
        apart = all(abs(index - other) > count / 3.2 for other in named)
        if apart and len(named) < 3 and totals[index] > 0.1 * max(totals):
            named.append(index)
    style = page.style
    for index in named:
        text = broken(f"{index + 1} {stack.places[index]}", 0.33 * style.width, style.small)
        side = "left" if index < count / 3 else "right" if index > 2 * count / 3 else "center"
        axes.annotate(
            text, (index + 1, totals[index]), (0, 2), textcoords="offset points",
            ha=side, va="bottom", size=style.small,
        )  # fmt: skip
    axes.set_ylim(top=1.3 * max(totals) or 1.0)  # room for the names
