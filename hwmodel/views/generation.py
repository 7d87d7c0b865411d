"""What `hwmodel generate` prints, writes and draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hwmodel.model.generate import Generation
from hwmodel.model.not_counted import on_chips
from hwmodel.rerun.tables import NATURE, scale
from hwmodel.views.colours import part_looks
from hwmodel.views.figures.canvas import (
    DRAFT,
    STYLES,
    Style,
    below,
    caption,
    legend,
    panels,
    plain_ticks,
    surface,
    swatches,
)
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from rich.console import RenderableType

__all__ = ["generation_figure", "generation_tables"]

LEFT_OUT = (
    "speculative decoding, beams, shared prefixes, pages, ragged lengths, chunked prefill",
    "eviction from the cache; maps that stay on the chip from one step to the next",
    "sampling of the next token",
)


def _run(one: Generation) -> str:
    """What a table or figure is of, by its labels."""
    specs = one.network, one.hardware, one.method
    return "{} on {}, {}".format(*(spec.label or spec.name for spec in specs))


def _parts(found: Sequence[Generation]) -> list[str]:
    """The parts of all, in order."""
    return [*dict.fromkeys(part for one in found for phase in one.phases for part in phase.parts)]


def generation_tables(found: Sequence[Generation]) -> Iterator[RenderableType | str]:
    """Yield energy a token of each phase and batch by part, a step by length, and what it is of."""
    first = found[0]
    energies = [phase.energy / phase.tokens for one in found for phase in one.phases]
    divisor, unit = scale(min(energies), first.unit)
    wide = f", cache of {first.cache_bits} bit" if first.cache_bits else ""
    title = (
        f"{_run(first)}, "
        f"{first.accounting.name}: {first.prefill:,} tokens at once, then {first.decode:,} steps"
        f"{wide}; {unit} a token"
    )
    parts = _parts(found)
    by_phase = table(title, ["batch", "phase"], [*parts, "all", "with prefill"])
    for one in found:
        for phase in one.phases:
            cells = [f"{phase.parts.get(p, 0.0) / phase.tokens / divisor:,.3f}" for p in parts]
            whole = f"{phase.energy / phase.tokens / divisor:,.3f}"
            both = f"{one.energy_with_prefill / divisor:,.3f}" if phase.name == "decode" else "-"
            by_phase.add_row(str(one.batch), phase.name, *cells, whole, both)
    yield by_phase
    if first.decode:
        by_length = table(
            f"one step of decoding by the keys that it meets; {unit} a token",
            ["batch"], ["keys", *parts, "all"],
        )  # fmt: skip
        for one in found:
            for keys, step in one.steps.items():
                values = (*(step.get(part, 0.0) for part in parts), sum(step.values()))
                cells = [f"{value / divisor:,.3f}" for value in values]
                by_length.add_row(str(one.batch), f"{keys:,}", *cells)
        yield by_length
    yield from _sentences(found)


def _sentences(found: Sequence[Generation]) -> Iterator[str]:
    for one in found:
        for phase in one.phases:
            n = phase.elements
            yield (
                f"batch {one.batch}, {phase.name}: {int(n.macs):,} MACs; elements of one pass: "
                f"{round(n.weights):,} of weights, {int(n.cache_read):,} read from the cache, "
                f"{int(n.cache_written):,} written to it, {int(n.scores):,} scores."
            )
    errors = [one.error for one in found if one.error is not None]
    if errors:
        most = 100 * max(errors)
        yield (
            "Between the lengths that are listed counts lie on straight lines; one from end to end "
            f"would err by {'less than 0.01' if most < 0.01 else f'{most:.2g}'} % in the middle."
        )
    yield "A prompt gives the first token; each step one more for each sequence."
    listed = (*LEFT_OUT, *found[0].accounting.not_counted)
    left = on_chips(listed, [found[0].hardware], found[0].accounting)
    yield "\n".join(["Not counted:", *(f"- {what}" for what in left)])
    yield f"All figures are {NATURE}."


def generation_figure(found: Sequence[Generation], style: Style = STYLES[DRAFT]) -> Figure:
    """Energy a token over the keys that are met, a line a batch; and over the batch, by part."""
    from matplotlib.ticker import MaxNLocator

    first = found[0]
    steps = [sum(parts.values()) for one in found for parts in one.steps.values()]
    divisor, unit = scale(min(steps, default=first.energy), first.unit)
    figure, (left, right) = panels(style, 2, style.height, columns=min(2, style.columns))
    lines: dict[str, Artist] = {}
    for n, one in enumerate(found):
        energies = [sum(parts.values()) / divisor for parts in one.steps.values()]
        (lines[f"batch {one.batch}"],) = left.plot(
            list(one.steps), energies, ("-", "--", ":")[n // 10 % 3], color=f"C{n % 10}",
            marker="o", ms=0.4 * style.size,
        )  # fmt: skip
    below(left, style, "keys that a token meets")
    left.set_ylabel(f"energy a token, {unit}")
    left.set_yscale("log" if len(found) > 1 else "linear")
    if len(found) > 1:
        plain_ticks(left.yaxis)
    left.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    left.grid()
    bottom = [0.0] * len(found)
    looks = part_looks(_parts(found))
    for part in looks:
        ends = [one.phases[-1] for one in found]
        heights = [end.parts.get(part, 0.0) / end.tokens / divisor for end in ends]
        right.bar(range(len(found)), heights, bottom=bottom, **surface(looks[part]))
        bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
    right.set_xticks(range(len(found)), [str(one.batch) for one in found])
    below(right, style, "sequences side by side")
    right.set_ylabel(f"energy a token, {unit}")
    said = f"{_run(first)}: {first.prefill:,} tokens, then {first.decode:,} ({NATURE})"
    caption(figure, style, said)
    legend(figure, style, {}, shown=lines | swatches(looks))
    return figure
