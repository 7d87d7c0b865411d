"""How many MACs of a chip's arrays work, and in which passes they idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hwmodel.model.entries import search_options
from hwmodel.model.workload import Task
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import memories
from hwmodel.tiling.spatial.asked import time
from hwmodel.tiling.tile import Tiling
from hwmodel.work.tensor import Pass, product
from hwmodel.work.work import Multiply

__all__ = ["idleness"]


class _Used(NamedTuple):
    """MACs of one product."""

    pass_: Pass
    made: int
    possible: int  # in the cycles that it takes
    paid: int
    padded: int  # of those paid, by padding: nothing is read for them
    summed: int  # extent of C, the loop that an axis of channels takes
    lanes: int  # products that a MAC makes at a time of operands that are so narrow


def idleness(chip: Hardware, accounting: Accounting, tilings: Sequence[tuple[Task, Tiling]]) -> str:
    """Return a sentence on how many MACs work on a chip with an array, in all and in each pass.

    A MAC by padding is paid as an operation, and is no work. In backward_weight images are at the
    place of C (docs/model.md, section 2), so that few of them leave an axis of C idle.
    """
    used = [_used(chip, accounting, task, tiling) for task, tiling in tilings]
    told = f"{_share(used)} of the MACs work"
    passes = {name: own for name in Pass if (own := [one for one in used if one.pass_ == name])}
    if len(passes) > 1:
        each = [f"{_share(own)} in {name.replace('_', ' ')}" for name, own in passes.items()]
        told += f" ({', '.join(each)})"
    if padded := sum(one.padded for one in used):
        share = 100 * padded / sum(one.paid for one in used)
        told += f"; {share:.1f} % of those paid meet padding and are no work"
    axis = chip.array.axes.get("C", 0) if chip.array else 0
    back = passes.get(Pass.BACKWARD_WEIGHT, [])
    most = max((one.summed for one in back), default=axis)
    if most < axis:
        told += f"; backward weight sums over images, {most} on axis C of {axis}"
        if (lanes := max(one.lanes for one in back)) > 1:
            told += f", where up to {lanes} narrow operands share a lane"
    free = "" if chip.static_energy else "; time is free here, the chip states no static energy"
    return f"utilisation: {told}{free}"


def _used(chip: Hardware, accounting: Accounting, task: Task, tiling: Tiling) -> _Used:
    work = task.work
    assert isinstance(work, Multiply)
    rule = search_options(accounting, work).rule
    taken = time(work.problem, tiling.mapping, memories(chip, work.kinds), rule)
    assert taken is not None
    made, paid = work.repeats * taken.products, product(work.macs)
    possible = work.repeats * taken.possible
    array, padded = memories(chip, work.kinds).array, max(0, paid - made)
    lanes = array.lanes(work.problem.lane) if array else 1
    return _Used(work.pass_, made, possible, paid, padded, work.nest.extent.C, lanes)


def _share(used: Sequence[_Used]) -> str:
    made, possible = sum(one.made for one in used), sum(one.possible for one in used)
    return f"{100 * made / possible if possible else 0:.1f} %"
