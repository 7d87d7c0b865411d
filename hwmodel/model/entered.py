"""Tasks on a chip: each product is tiled, and everything is entered in a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cache, partial

from hwmodel.errors import HwmodelError, Infeasible, TooLarge
from hwmodel.model.entries import (
    AWAY,
    UNFINISHED,
    moved,
    multiplied,
    operated,
    search_options,
)
from hwmodel.model.ledger import Entry, Ledger
from hwmodel.model.progress import counted
from hwmodel.model.residency.plan import Residency
from hwmodel.model.workload import Task
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.lately import lately
from hwmodel.tiling.options import Memories, SearchOptions, memories
from hwmodel.tiling.tile import Tiling, tile
from hwmodel.work.tensor import Factor, TensorKind
from hwmodel.work.work import Move, Multiply

__all__ = ["entered", "placed", "tiled"]


@lately(4)
def entered(
    tasks: Sequence[Task],
    chip: Hardware,
    accounting: Accounting,
    staying: Residency | None = None,
) -> tuple[Ledger, tuple[tuple[Task, Tiling], ...]]:
    """Tile and enter a workload on a chip: return its ledger, and the tiling of each product.

    Args:
        staying: what stays on the chip, with tilings beside it.

    Raises: Infeasible, TooLarge; they name the layer.
    """
    places = cache(partial(memories, chip))  # by the kinds of what is at I, F and O
    full = accounting.widths.full_precision_bits
    products = [(n, t, t.work) for n, t in enumerate(tasks) if isinstance(t.work, Multiply)]
    tilings = {
        number: staying.tilings[number].tiling
        if staying
        else tiled(task, places(work.kinds), search_options(accounting, work), chip.name)
        for number, task, work in counted("products", products, len(products))
    }
    entries: list[Entry] = []
    for number, task in enumerate(tasks):
        layer, work, at = task
        stay = staying.stays.get(number, AWAY) if staying else AWAY
        if isinstance(work, Multiply):
            options, here = search_options(accounting, work), places(work.kinds)
            nest = tilings[number].mapping
            found = list(multiplied(layer, work, nest, here, options, at, stay))
            if work.kinds[2] == TensorKind.GRADIENTS and not work.leaves:
                _see_whole(found, {memory.name for memory in here.levels[-1].buffers})
        elif isinstance(work, Move):
            found = list(moved(layer, work, places(work.kinds), at, stay))
        else:
            found = [operated(layer, work, full, at)]
        again = () if at.times == 1 else (Factor("iterations", at.times, "for one update"),)
        entries += (entry.again(again) for entry in found if entry.elements)
    return Ledger(tuple(entries)), tuple((tasks[n], tiling) for n, tiling in tilings.items())


def _see_whole(entries: Sequence[Entry], innermost: Set[str]) -> None:
    """See that sums of a gradient used as it is made end innermost. Raises: HwmodelError.

    Args:
        innermost: names of the memories of the innermost level.
    """
    outside = {one.memory: one.layer for one in entries if one.role in UNFINISHED and one.memory}
    for memory, layer in outside.items():
        if memory not in innermost:
            raise HwmodelError(
                f"update_order fused: sums of the gradient of {layer} leave unfinished to "
                f"{memory}, so that no weight can be stepped as they are made"
            )


def tiled(task: Task, places: Memories, options: SearchOptions, chip: str) -> Tiling:
    """Tile a task's product. Raises: Infeasible, TooLarge; they name layer and chip."""
    assert isinstance(task.work, Multiply)
    with placed(task, chip):
        return tile(task.work.problem, places, options)


@contextmanager
def placed(task: Task, chip: str) -> Iterator[None]:
    """Name the layer and the chip in an error of tiling a task."""
    try:
        yield
    except (Infeasible, TooLarge) as error:
        error.where = f"{task.layer}, {task.work.pass_} on {chip}"
        raise
