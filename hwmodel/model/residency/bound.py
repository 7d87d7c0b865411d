"""What no choice of tensors that stay on the chip can cost less than.

Three parts are added up:

(a) each product in the view in which every operand stays as deep as any item has it, with the
    whole capacity: the lower bound of its certificate;
(b) moves of operators at the levels inside the deepest home of what they move;
(c) for every access that an item could save, one pass outside its deepest home, less the most of
    these that any items can save together, when of what does not stay the tiles of a product take
    one element of I and one of F.

This needs prices that do not fall outwards: then an operand that stays nowhere costs at least one
pass outside more than one that stays, and one that stays further out no less than one further in.

Source: docs/model.md section 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from hwmodel.model.entries import Stay
from hwmodel.model.residency.items import Access, Item
from hwmodel.model.residency.packing import Row, pack
from hwmodel.model.residency.products import Product
from hwmodel.model.residency.run import Run
from hwmodel.tiling.options import Memories
from hwmodel.tiling.tile import touched_elements
from hwmodel.tiling.view import Homes
from hwmodel.work.problem import OPERANDS, Operand

__all__ = ["all_kept", "is_bounded", "lower_bound", "pick_rows"]

GAP, EFFORT = 1e-4, 30  # of what is saved; of the solver


def is_bounded(chip: Memories) -> bool:
    """Whether no price of a memory falls outwards."""
    for operand in OPERANDS:
        there = [chip.holder(k, operand) for k, x in enumerate(chip.levels) if x.holds(operand)]
        for outer, inner in pairwise(there):
            if outer.read_energy_per_bit < inner.read_energy_per_bit:
                return False
            if outer.write_energy_per_bit < inner.write_energy_per_bit:
                return False
    return True


def lower_bound(run: Run) -> float:
    """Return the bound of memories, hops and cycles [chip's unit]; 0 where a product has none."""
    deepest = _deepest(run)
    total = 0.0
    for number, product in run.products.items():
        homes = Homes(*(deepest.get((number, place)) for place in range(3)))
        product.bounded(homes, run.capacities)
        total += product.floor(homes, run.capacities)
    for number, move in run.moves.items():
        parts = tuple(deepest.get((number, part)) for part in range(move.parts))
        total += move.energy(Stay(parts=parts))
    passes = {
        access: _passes(run, access)
        for item in run.items
        for access in (*item.saves, *item.begins, *item.finds)
    }
    for item in run.items:  # of a step's reads the first one alone, which brings it for all
        passes |= {access: _passes(run, access, once=True) for access in item.begins}
        passes |= {access: [0.0] * len(passes[access]) for access in item.finds}
    for access, costs in passes.items():
        total += sum(costs[: deepest[access.task, access.place]])
    if run.most_saved is None:  # which tilings do not change
        values = [
            sum(sum(passes[access][: i.level]) for access in i.saves) - _brought(run, i)
            for i in run.items
        ]
        rows = [*pick_rows(run), *_least_rooms(run)]
        run.most_saved = pack(values, rows, GAP, loose=True, effort=EFFORT).most
    return total - run.most_saved


def _brought(run: Run, item: Item) -> float:
    """What it costs at least that an operator's read brings a tensor to where it stays."""
    access = run.brings(item)
    if access is None or access in run.by_access:  # which may find it there
        return 0.0
    return sum(run.moves[access.task].writes[: item.level + 1])


def all_kept(run: Run, energy: float) -> float:
    """What is left of a run's energy when one pass of all that may stay is saved, as if it fitted.

    Args:
        energy: of the run without residents [chip's unit].
    """
    deepest = _deepest(run)
    several = {a for item in run.items for a in (*item.saves, *item.begins, *item.finds)}
    saved = (sum(_passes(run, at)[: deepest[at.task, at.place]]) for at in several)
    return max(energy - sum(saved), 0.0)


def pick_rows(run: Run) -> Iterator[Row]:
    """At most one item saves an access, and none moves a tensor from level to level."""
    for touching in {tuple(x) for x in run.by_access.values()}:
        if len(touching) > 1:
            yield Row(dict.fromkeys(touching, 1), 1)
    for pair in run.neighbours:
        yield Row(dict.fromkeys(pair, 1), 1)


def _deepest(run: Run) -> dict[tuple[int, int], int]:
    """The innermost level at which an item has each access."""
    found: dict[tuple[int, int], int] = {}
    for item in run.items:
        for access in (*item.saves, *item.begins, *item.finds):
            at = access.task, access.place
            found[at] = max(found.get(at, 0), item.level)
    return found


def _passes(run: Run, access: Access, *, once: bool = False) -> list[float]:
    """What one pass of an access costs at each level below which it may stay.

    One also where a nest is done in each of several steps: a stay may begin in the first.

    Args:
        once: of a move that is done several times the first alone, if it reads.
    """
    last = max(run.capacities)
    if access.task in run.moves:
        move = run.moves[access.task]
        times = move.times if once and not access.writes else 1
        return [cost / times for cost in move.levels[:last]]
    return run.products[access.task].passes(access.operand)


def _least_rooms(run: Run) -> Iterator[Row]:
    """What lives at each level and step, and an element of I and of F that stay elsewhere."""
    resident = _resident(run)
    for level, capacity in run.capacities.items():
        for step, living in run.alive(level).items():
            later = {i for several in run.again(living) for i in several[1:]}
            row = {i: run.items[i].bits for i in living if i not in later}
            most = capacity
            for number in run.steps.get(step, ()):
                if number in run.products:
                    most -= _elements(run, number, level, resident, row)
                    break
            yield Row(row, most)


def _elements(
    run: Run,
    number: int,
    level: int,
    resident: Mapping[tuple[int, int], list[int]],
    row: dict[int, int],
) -> int:
    """Bits of an element of I and of F; items by which these stay take them off their own."""
    product, total = run.products[number], 0
    for place, operand in enumerate(OPERANDS[:2]):
        element = _element(product, operand)
        total += element
        for i in resident.get((number, place), ()):
            if run.items[i].level >= level:
                row[i] = row.get(i, 0) - element
    return total


def _element(product: Product, operand: Operand) -> int:
    problem = product.work.problem
    if operand == "I" and not touched_elements(problem):
        return 0
    bits: int = getattr(problem.bits, operand)
    return bits


def _resident(run: Run) -> Mapping[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for i, item in enumerate(run.items):
        for access in (*item.saves, *item.begins, *item.finds):
            found.setdefault((access.task, access.place), []).append(i)
    return found
