"""The steps of a run, what stays on the chip from which to which, and the room that is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hwmodel.model.report import Report
from hwmodel.model.residency.plan import NO_END, Residency
from hwmodel.rerun.tables import what
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["schedule_tables"]


def schedule_tables(report: Report) -> Iterator[Table]:
    """Yield what stays on the chip, and every step with what stays, tiles, and what is free."""
    assert report.residency is not None
    yield _stays(report.residency)
    yield _steps(report, report.residency)


def _stays(found: Residency) -> Table:
    """List tensors that stay: in which memory, and in which steps."""
    listed = table("what stays on the chip", ["tensor", "memory"], ["steps", "bits"])
    spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
    bits = {}
    for item in sorted(found.items, key=lambda item: (item.first, item.last)):
        several = spans.setdefault((item.name, item.level), [])
        bits[item.name, item.level] = item.bits
        if several and item.first <= several[-1][1] + 1:  # it stays on
            first, last = several.pop()
            several.append((first, max(last, item.last)))
        else:
            several.append((item.first, item.last))
    for (name, level), several in sorted(spans.items(), key=lambda one: one[1]):
        steps = ", ".join(f"{first + 1} to {last + 1}" for first, last in several)
        listed.add_row(name, found.levels[level], steps, f"{bits[name, level]:,}")
    return listed


def _steps(report: Report, found: Residency) -> Table:
    """List every step: what stays in each memory, the room of tiles, and what is free."""
    tiles: dict[tuple[int, int], int] = {}
    for (task, _), tiled in zip(report.tilings, found.tilings.values(), strict=True):
        for level in found.levels:
            at = task.at.step, level
            taken = tiled.rooms[level] + tiled.resting.get(level, 0)
            tiles[at] = max(tiles.get(at, 0), taken)
    listed = table(
        f"steps of one {what(report.mode, report.batch)}, bits of each memory",
        ["step", "", "work"],
        [
            f"{name}: {part}"
            for name in found.levels.values()
            for part in ("stays", "tiles", "free")
        ],
    )
    for number, step in enumerate(report.memory.steps):
        cells = []
        for level in found.levels:
            staying = sum(item.bits for item in found.at(level, number))
            taken = tiles.get((number, level), 0)
            free = found.capacities[level] - taken - staying
            unlimited = found.capacities[level] >= NO_END
            cells += [f"{staying:,}", f"{taken:,}", "unlimited" if unlimited else f"{free:,}"]
        listed.add_row(str(number + 1), str(step), step.component, *cells)
    return listed
