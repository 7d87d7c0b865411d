"""The time of one iteration as lines of a table: when a step runs, how long, and what bounds it."""

from __future__ import annotations

from typing import NamedTuple

from hwmodel.errors import SpecError
from hwmodel.model.duration import untimed
from hwmodel.model.report import Report
from hwmodel.views.colours import part_looks
from hwmodel.views.html.charts import Segment
from hwmodel.views.html.roof import Roof, roof

__all__ = ["MOST", "StepLine", "Timeline", "timeline"]

MOST = 40  # steps that are listed


class StepLine(NamedTuple):
    """One step: its name, what it waits for, its times [s], its share of all [%], its bar."""

    step: str
    bound: str
    overlapped: float
    serial: float
    percent: float
    bar: list[Segment]


class Timeline(NamedTuple):
    """The steps that take longest, in the order in which they run."""

    lines: list[StepLine]
    steps: int  # of all
    overlapped: float  # time of all [s]
    serial: float
    roof: Roof | None


def timeline(report: Report) -> Timeline | None:
    """Return the steps of a report; None where the chip or the method has no time.

    A bar begins where its step does and ends where it ends, in percent of the overlapped time.
    """
    if untimed(report.hardware):
        return None
    try:
        found = report.time
    except SpecError:
        return None
    whole = found.overlapped
    if not whole:
        return None
    colours = part_looks(dict.fromkeys(step.bound for step in found.steps))
    longest = sorted(found.steps, key=lambda step: -step.overlapped)[:MOST]
    shown = {step.step for step in longest}
    lines, begun = [], 0.0
    for step in found.steps:
        if step.step in shown:
            name = str(report.memory.steps[step.step])
            share = 100 * step.overlapped / whole
            tip = f"{name}: {1e3 * step.overlapped:.4g} ms, waits for {step.bound}"
            piece = Segment(100 * begun / whole, share, "", colours[step.bound].colour, tip)
            lines.append(StepLine(name, step.bound, step.overlapped, step.serial, share, [piece]))
        begun += step.overlapped
    return Timeline(lines, len(found.steps), whole, found.serial, roof(report))
