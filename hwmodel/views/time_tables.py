"""The time of a run as a table: its lower bound, and the time of one that overlaps nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hwmodel.errors import SpecError
from hwmodel.model.duration import FREE, Duration, idle, untimed
from hwmodel.model.report import Report
from hwmodel.rerun.tables import what
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["time_tables"]


def time_tables(report: Report) -> Iterator[RenderableType | str]:
    """Yield time, images a second, power and energy times time, or what the chip does not state."""
    from rich.text import Text

    if lacks := untimed(report.hardware):
        yield Text(f"No time: {lacks}.\n")
        return
    try:
        found = report.time
    except SpecError as error:
        yield Text(f"No time: {error}.\n")
        return
    listed = table(f"time of one {what(report.mode, report.batch)}", [""], ["overlapped", "serial"])
    for name, cells in _rows(found):
        listed.add_row(name, *cells)
    yield listed
    waits = sorted(found.bounds.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in waits)
    yield Text(
        f"Overlapped, steps wait for {shares} of the time; arithmetic goes on in "
        f"{100 * found.busy:.1f} %. "
        "It is the least that these tilings can take: published trainings of ResNet-50 take 1.2 to "
        f"2.0 times as long (docs/model.md section 10).{_untimed(report)}{_idle(report)}\n"
    )


def _untimed(report: Report) -> str:
    """Say which memories are used and take no time, for their chip states no bandwidth of them."""
    names = report.timeless
    if not names:
        return ""
    return (
        f" What moves in {', '.join(names)} takes no time, for no bandwidth is stated there: "
        "times are what they are at least, powers at most."
    )


def _idle(report: Report) -> str:
    """Say that time was free to the tilings, where it was."""
    return f" {FREE}." if idle(report.hardware) else ""


def _rows(found: Duration) -> Iterator[tuple[str, list[str]]]:
    times = found.overlapped, found.serial
    yield "time, ms", [f"{1e3 * time:,.4g}" for time in times]
    yield "images/s", [f"{found.images / time:,.4g}" for time in times]
    energies = [found.energy(time) for time in times]
    if None not in energies:
        pairs = [(energy or 0.0, time) for energy, time in zip(energies, times, strict=True)]
        yield (
            "energy, static over all the time, mJ",
            [f"{1e3 * energy:,.4g}" for energy, _ in pairs],
        )
        yield "power, W", [f"{energy / time:,.4g}" for energy, time in pairs]
        yield "energy x time, mJ ms", [f"{1e6 * energy * time:,.4g}" for energy, time in pairs]
