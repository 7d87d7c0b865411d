"""A roofline in seconds: what each step reaches, and what the chip allows it.

    x = MACs of a step / bytes through the outermost memory        [MAC/B]
    y = MACs of a step / its overlapped time                       [MAC/s]
    roof: y <= bandwidth x, and y <= MACs a second at the widths that the steps have

A step that moves nothing through the outermost memory has no end of MACs a byte: at the right edge.

Source: Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
"""

from __future__ import annotations

from math import ceil, floor, inf, log10
from typing import NamedTuple

from hwmodel.model.duration import MACS, demands
from hwmodel.model.report import Report
from hwmodel.views.colours import part_looks

__all__ = ["Dot", "Roof", "roof"]


class Dot(NamedTuple):
    """One step, in percent of the axes from the lower left corner."""

    x: float
    y: float
    colour: str  # of what it waits for
    tip: str
    at_edge: bool  # nothing is moved


class Roof(NamedTuple):
    """The chart: dots, lines of the roof, and decades at the axes."""

    dots: list[Dot]
    lines: list[tuple[float, float, float, float, str]]  # from and to [% of the axes], what it is
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    memory: str


def roof(report: Report) -> Roof | None:
    """Return the roofline of a report with times; None without products through its memory."""
    memory = report.hardware.levels[0].buffers[0]
    if memory.rates is None:
        return None
    asked, times = demands(report.ledger.entries), report.time.steps
    found = []
    for step in times:
        asks = asked[step.step]
        macs = sum(asks.macs.values()) + asks.logic
        moved = (asks.read.get(memory.name, 0) + asks.written.get(memory.name, 0)) / 8
        if macs and step.overlapped:
            far = macs / moved if moved else inf
            found.append((step, far, macs / step.overlapped, macs / step.compute))
    near = [x for _, x, _, _ in found if x < inf]
    if not near:
        return None
    bandwidth, peaks = memory.rates[0], sorted({round(peak, -6) for *_, peak in found})
    left, right = _decades([*near, peaks[-1] / bandwidth])
    low, high = _decades([y for _, _, y, _ in found] + [peaks[-1]])

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            100 * (log10(x) - left) / (right - left),
            100 * (log10(y) - low) / (high - low),
        )

    colours = part_looks([MACS, *(step.bound for step, *_ in found)])
    dots = [
        Dot(
            *at(min(x, 10.0**right), y),
            colours[step.bound].colour,
            f"{report.memory.steps[step.step]}: "
            f"{f'{x:.3g} MAC/B' if x < inf else f'nothing through {memory.name}'}, "
            f"{y:.3g} MAC/s, waits for {step.bound}",
            x == inf,
        )
        for step, x, y, _ in found
    ]
    ridge = peaks[-1] / bandwidth
    begin = max(10**left, 10**low / bandwidth)
    lines = [(*at(begin, bandwidth * begin), *at(ridge, peaks[-1]), f"{bandwidth / 1e9:.4g} GB/s")]
    # Steps of an array have a peak each; of these the highest alone is a roof.
    own = peaks if report.hardware.array is None else peaks[-1:]
    lines += [
        (*at(max(begin, peak / bandwidth), peak), *at(10**right, peak), f"{peak:.4g} MAC/s")
        for peak in own
    ]
    x_ticks = [(at(10**n, 1)[0], f"{10.0**n:g}") for n in range(left, right + 1)]
    y_ticks = [(at(1, 10**n)[1], f"{10.0**n:.0e}") for n in range(low, high + 1)]
    return Roof(dots, lines, x_ticks, y_ticks, memory.name)


def _decades(values: list[float]) -> tuple[int, int]:
    """Return the powers of ten that values lie between, at least one apart."""
    low = floor(log10(min(values)))
    return low, max(ceil(log10(max(values))), low + 1)
