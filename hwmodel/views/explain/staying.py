"""What stays on the chip of what a layer uses: the items by which rows are gone."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodel.model.plans import all_tasks
from hwmodel.model.report import Report
from hwmodel.model.residency.items import Access, Item
from hwmodel.model.residency.plan import NO_END
from hwmodel.tiling.view import NOWHERE, Homes

__all__ = ["homes_of", "room_lines", "staying_lines"]


def homes_of(report: Report) -> list[Homes]:
    """Return where the operands of each product stay, in the order of the report's tilings."""
    if report.residency is None:
        return [NOWHERE] * len(report.tilings)
    return [tiled.stay.homes for tiled in report.residency.tilings.values()]


def room_lines(report: Report) -> list[list[str]]:
    """Say what is left of each memory to each product's tiles, in the order of the tilings.

    Nothing of memories in which nothing stays, nor of those without end.
    """
    found = report.residency
    if found is None:
        return [[] for _ in report.tilings]
    return [
        [
            f"- Of the {has:,} bit of {found.levels[level]} {has - left:,} are taken by what stays "
            f"there in this step: {left:,} are left for tiles"
            for level, left in found.free[number].items()
            if left < (has := found.capacities[level]) < NO_END
        ]
        for number in found.tilings
    ]


def _costs(access: Access, item: Item, where: str, found: set[Access]) -> str:
    """What an access costs outside of the memory where its tensor stays.

    Args:
        found: accesses that find the tensor there, for another of its stays ends with them.
    """
    does = "write" if access.writes else "read"
    if access in item.begins and access in found:
        return f"{does}: nothing outside of {where}, where the stay before leaves it"
    if access in item.begins:
        return f"{does}: once outside, for the stay begins with it"
    begun = ", for the stay has begun in this step" if access in item.finds else ""
    return f"{does}: nothing outside of {where}{begun}"


def staying_lines(report: Report, layer: str) -> Iterator[str]:
    """Name every stay of a tensor that the layer uses, and what it does to each access."""
    found = report.residency
    if found is None:
        return
    tasks, lines = all_tasks(report.network, report.job), []
    for item in sorted(found.items, key=lambda item: (item.first, item.last)):
        where = found.levels[item.level]
        same = (x for x in found.items if (x.name, x.level) == (item.name, item.level))
        saved = {access for other in same for access in other.saves}
        here: dict[str, None] = {}
        for access in (*item.begins, *item.finds, *item.saves):
            task = tasks[access.task]
            if task.layer == layer:
                here[f"{task.work.pass_}, {_costs(access, item, where, saved)}"] = None
        if here:
            life = "whole" if item.whole else "from one use to the next"
            steps = f"steps {item.first + 1} to {item.last + 1}"
            lines.append(
                f"- {item.name}, {item.bits:,} bit, stays in {where}, {life}, {steps}. "
                f"{'; '.join(here)}."
            )
    if lines:
        yield "## What stays on the chip\n"
        yield (
            "Tensors of this layer; `report --schedule` lists those of all. Rows of what stays "
            "outside of its memory are gone (docs/model.md section 11).\n"
        )
        yield from lines
        yield ""
