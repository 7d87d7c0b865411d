"""Tasks on a chip: each product is tiled, and everything is entered in a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from math import fsum

from hwmodel.errors import HwmodelError, Infeasible, TooLarge
from hwmodel.model.entries import (
    AWAY,
    UNFINISHED,
    code_of,
    moved,
    multiplied,
    operated,
    paid,
    search_options,
    width,
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
from hwmodel.work.tensor import Direction, Factor, Role, TensorKind, product
from hwmodel.work.work import Move, Multiply

__all__ = ["certified", "entered", "placed", "tiled"]


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
    tilings: dict[int, Tiling] = {}
    for number, task, one in counted("products", products, len(products)):
        options, here = search_options(accounting, one), places(one.kinds)
        if staying:  # which knows what all of it costs
            tilings[number] = staying.tilings[number].tiling
        else:
            tilings[number] = certified(tiled(task, here, options, chip.name), one, here, options)
    entries: list[Entry] = []
    for number, task in enumerate(tasks):
        layer, work, at = task
        stay = staying.stays.get(number, AWAY) if staying else AWAY
        if isinstance(work, Multiply):
            options, here = search_options(accounting, work), places(work.kinds)
            nest = tilings[number].mapping
            written = list(multiplied(layer, work, nest, here, options, at, stay))
            if work.kinds[2] == TensorKind.GRADIENTS and not work.leaves:
                _see_whole(written, {memory.name for memory in here.levels[-1].buffers})
        elif isinstance(work, Move):
            both = accounting.counting.transfers == "both"
            written = list(moved(layer, work, places(work.kinds), at, stay, both=both))
        else:
            written = [operated(layer, work, full, at)]
        again = () if at.times == 1 else (Factor("iterations", at.times, "for one update"),)
        entries += (entry.again(again) for entry in written if entry.elements)
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


def certified(found: Tiling, work: Multiply, places: Memories, options: SearchOptions) -> Tiling:
    """Certify a tiling with sums that rest beside another operand, which its search has not seen.

    The search of a kernel's blocks is one for all its products, and has no price for what one of
    them keeps there: of the product's own energy in memories no more than that may be saved, and
    what the search itself has left open.
    """
    proof = found.certificate
    if proof is None or work.kernel is None or work.kernel.running is None:
        return found
    energies: dict[bool, list[float]] = {True: [], False: []}
    for level, one in paid(work, found.mapping, places, options):
        if one.direction != Direction.HOP:
            memory, is_read = places.holder(level, one.operand), one.direction == Direction.READ
            each = memory.read_energy_per_bit if is_read else memory.write_energy_per_bit
            code = code_of(work.operands[one.operand], one.role, places, memory.name)
            bits = code.bits if code else width(work, one.operand, one.role, options)
            energies[one.role == Role.RUNNING].append(product(one.factors) * float(bits) * each)
    if not (more := fsum(energies[True])):
        return found
    energy = more + fsum(energies[False])
    gap = min(1.0, proof.gap + more / energy)
    least = energy * (1 - gap)
    proof = replace(proof, energy=energy, lower_bound=least, gap=gap, proved=False)
    return found._replace(certificate=proof)


@contextmanager
def placed(task: Task, chip: str) -> Iterator[None]:
    """Name the layer and the chip in an error of tiling a task."""
    try:
        yield
    except (Infeasible, TooLarge) as error:
        error.where = f"{task.layer}, {task.work.pass_} on {chip}"
        raise
