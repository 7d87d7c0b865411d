"""The steps of a run, what stays on the chip in each, and the room that is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.model.report import Report
from hwmodel.rerun.tables import what
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["schedule_table"]

NO_END = 2**62


def schedule_table(report: Report) -> Table:
    """List every step with the residents of each level, the room of its tiles, and what is free."""
    found = report.residency
    assert found is not None
    tiles: dict[tuple[int, int], int] = {}
    for (task, _), tiled in zip(report.tilings, found.tilings.values(), strict=True):
        for level in found.levels:
            at = task.at.step, level
            taken = tiled.rooms[level] + tiled.resting.get(level, 0)
            tiles[at] = max(tiles.get(at, 0), taken)
    names = [f"{name}: {part}" for name in found.levels.values()
             for part in ("residents [bit]", "tiles [bit]", "free [bit]")]  # fmt: skip
    listed = table(
        f"steps of one {what(report.mode, report.batch)}, and what stays on the chip",
        ["step", "", *[name for name in names if "residents" in name]],
        [name for name in names if "residents" not in name],
    )
    for number, step in enumerate(report.memory.steps):
        residents, rooms = [], []
        for level in found.levels:
            here = found.at(level, number)
            residents.append(", ".join(f"{item.name} {item.bits:,}" for item in here))
            taken = tiles.get((number, level), 0)
            free = found.capacities[level] - taken - sum(item.bits for item in here)
            unlimited = found.capacities[level] >= NO_END
            rooms += [f"{taken:,}", "unlimited" if unlimited else f"{free:,}"]
        listed.add_row(str(number + 1), str(step), *residents, *rooms)
    return listed
