"""Chooses the tensors that stay on the chip, in rounds, and bounds what any choice costs.

1.  Tilings as without residents, and with parts of the room that there is, are known.
2.  Tilings and items are chosen together (`joint`).
3.  Every product is searched again in its view, beside what was chosen (`products`).
4.  2 and 3 with the tilings that came to it, as long as that pays.
5.  Where the lower bound leaves a gap, single items are exchanged.
6.  Tilings that may still save much are searched in exactly the room that is left to them.
7.  Where the bound leaves next to no gap, what was taken as close enough so far is searched until
    it is proved.

The energy never rises: to keep nothing is a choice, too. Source: docs/model.md section 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2

from hwmodel.model.entries import Stay, search_options
from hwmodel.model.memory import Occupancy
from hwmodel.model.residency.bound import all_kept, is_bounded, lower_bound
from hwmodel.model.residency.items import Item, items, tracked
from hwmodel.model.residency.joint import together
from hwmodel.model.residency.products import CLOSE, Product, Tiled
from hwmodel.model.residency.run import Outcome, Run, Streamed, Stuck
from hwmodel.model.workload import Task
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import Memories, memories
from hwmodel.work.problem import OPERANDS
from hwmodel.work.work import Move, Multiply

__all__ = ["Residency", "residency", "residency_levels"]

SHARE = 12  # a product is searched again with one part in so many of the usual budget
MUCH = 1e-2  # a gap down to which tilings are searched for less room, or guessed
FEW = 24  # items: of all their choices none is better than what is found, in what tests try
NEXT_TO_NONE = 1e-3, 5e-3  # a gap that may be one of tilings alone; in a run of few steps
MOST_LESS, LESS = 10, 2  # parts of what tiles take, of which they may need one
ROOMS = ((2, 1), (4, 1), (8, 2), (32, 8))  # parts of the capacities, from the outermost level
ROUNDS, WORTH = 3, 1e-4  # as long as one saves that part of the energy
MANY_STEPS = 20  # of a run; above them no single items are exchanged, and
MUCH_OF_MANY = 1.5e-2  # is the gap down to which tilings are searched for less room, or guessed
MAY_SAVE = 2e-3  # of the energy: a tiling that may is searched once more, in the room that it has
EXCHANGES, SEARCHES = 300, 40  # choices that are looked at for that, tilings that are searched
NO_END = 2**62  # bits of a memory without end


@dataclass(frozen=True)
class Residency:
    """What stays on the chip in a run, at what cost, and how far from the least."""

    items: tuple[Item, ...]
    stays: dict[int, Stay]  # of tasks of which something stays
    tilings: dict[int, Tiled]  # of products, in the order of the tasks
    free: dict[int, dict[int, int]]  # of these: room that is left to tiles at each level [bit]
    energy: float  # of memories, hops and cycles [chip's unit]
    lower_bound: float | None  # None: prices fall outwards, nothing is known
    levels: dict[int, str]  # at which tensors may stay, by name
    capacities: dict[int, int]  # of these [bit]
    border: frozenset[str]  # tensors that come from outside, or are given to whoever asked

    def at(self, level: int, step: int) -> list[Item]:
        """The items that live at a level in a step, one a tensor, the largest first."""
        living = (i for i in self.items if i.level == level and i.first <= step <= i.last)
        return sorted({item.name: item for item in living}.values(), key=lambda item: -item.bits)

    @property
    def gap(self) -> float | None:
        """How far the energy may be from the least, of the energy; None where nothing is known."""
        if self.lower_bound is None:
            return None
        return 1 - self.lower_bound / self.energy if self.energy else 0.0


def residency_levels(chip: Hardware) -> dict[int, int]:
    """Return the levels at which tensors may stay, from the outermost, with capacities [bit].

    A memory between the outermost and level 0, the only one of its level, that holds I, F and O
    together, and does not say `stays: false`.
    """
    found, several = {}, 1
    for number, level in enumerate(chip.levels):
        several *= level.instances
        if several > 1:
            break
        inside = 0 < number < len(chip.levels) - 1
        if inside and len(level.buffers) == 1:
            memory = level.buffers[0]
            if memory.operands == OPERANDS and memory.stays is not False:
                bits = memory.capacity_bits
                found[number] = NO_END if bits is None else bits
    return found


def residency(
    tasks: Sequence[Task],
    kept: Occupancy,
    given: Sequence[str],
    chip: Hardware,
    accounting: Accounting,
) -> Residency | None:
    """Choose what stays on a chip; None where it has no level for that, or a product no tile.

    Args:
        tasks: of the run.
        kept: every tensor with its life.
        given: names of tensors that whoever asked takes.

    Raises: Infeasible, TooLarge, HwmodelError.
    """
    capacities = residency_levels(chip)
    if not capacities:
        return None
    # The bound has plain words; where a memory codes them it would be above what is paid.
    bounded = is_bounded(memories(chip)) and not memories(chip).codings
    run = _run(tasks, kept, given, chip, accounting, capacities, bounded)
    alone = run.outcome(())
    if isinstance(alone, Stuck):  # a product that has no tile: whoever tiles it says which
        return None
    _give_slack(run, alone)
    least = lower_bound(run) if bounded else None
    best = _best(run, alone, least)
    is_short = len(run.steps) <= MANY_STEPS
    near = NEXT_TO_NONE[is_short]
    if least is not None and len(run.items) > FEW and _gap(best, least) <= near:
        best, least = run.spared(best), lower_bound(run)
    return Residency(
        tuple(run.items[i] for i in sorted(best.chosen)),
        best.stays,
        run.certified(best),
        run.free(best),
        best.energy,
        None if least is None else min(least, best.energy),
        {number: chip.levels[number].name for number in capacities},
        capacities,
        frozenset(
            one.stored.name
            for one in tracked(tasks, kept.tensors, given)
            if one.is_given or (one.begins_read and not one.stored.part.is_kept)
        ),
    )


def _run(
    tasks: Sequence[Task],
    kept: Occupancy,
    given: Sequence[str],
    chip: Hardware,
    accounting: Accounting,
    capacities: dict[int, int],
    bounded: bool,
) -> Run:
    seen: dict[object, Memories] = {}
    products, moves = {}, {}
    for number, task in enumerate(tasks):
        work = task.work
        if isinstance(work, (Multiply, Move)) and work.kinds not in seen:
            seen[work.kinds] = memories(chip, work.kinds)
        if isinstance(work, Multiply):
            options = replace(search_options(accounting, work), share=SHARE)
            products[number] = Product(task, seen[work.kinds], options, capacities, bounded)
        elif isinstance(work, Move) and work.times:
            moves[number] = Streamed.of(task, seen[work.kinds], accounting.counting.transfers)
    found = items(tracked(tasks, kept.tensors, given), capacities, len(kept.steps) - 1)
    many = len(found) > FEW
    for product in products.values():
        slow = bool(product.chip.spatial)  # where no search knows what may be spared, either
        product.spare = CLOSE if many and not slow else 0.0
        product.is_coarse = many or slow
    return Run(tasks, products, moves, found, capacities)


def _give_slack(run: Run, alone: Outcome) -> None:
    """Let small products be searched roughly: all together may miss what a near one may, twice.

    A power of two, so that products that are equal in other runs are searched once.
    """
    left = CLOSE * all_kept(run, alone.energy) / max(len(run.products), 1)
    for product in run.products.values():
        if product.spare and left > 0:
            product.slack = 2.0 ** round(log2(left))


def _best(run: Run, alone: Outcome, least: float | None) -> Outcome:
    """The best of all rounds; where that leaves a gap, with tilings for less room, too."""
    best = _rounds(run, alone, alone, MOST_LESS)
    if any(product.chip.spatial for product in run.products.values()):
        return best  # a search takes seconds there
    much = MUCH if len(run.steps) <= MANY_STEPS else MUCH_OF_MANY
    if _gap(best, least) > much:
        for product in run.products.values():
            for parts in ROOMS:
                some = zip(run.capacities.items(), parts, strict=False)
                product.explored(dict(run.capacities) | {k: x // part for (k, x), part in some})
        best = _rounds(run, alone, best)
    if _gap(best, least) > much:
        best = _rounds(run, alone, best, LESS)
    if _gap(best, least) > MUCH and len(run.steps) <= MANY_STEPS:
        best = _exchanged(run, best, run.values(alone.tilings), least)
    return run.closer(best, MAY_SAVE) if least is not None else best


def _rounds(run: Run, alone: Outcome, best: Outcome, parts: int = 1) -> Outcome:
    """Choose from what is known and search beside it, as long as that pays.

    After the first time mostly nothing is left to be won: then only choices that are near the best
    are looked at, and all of them where one of these is better.

    Args:
        parts: of the room of known tilings, of which they are first taken to need only one, for
            they take all that they can get.
    """
    if parts > 1:
        guessed = run.outcome(together(run, alone.energy, parts, best.chosen).chosen)
        if isinstance(guessed, Outcome) and guessed.energy < best.energy:
            best = guessed
    for number in range(ROUNDS):
        known = together(run, alone.energy, known=best.chosen, near=number > 0)
        if number > 0 and known.energy < best.energy * (1 - WORTH):
            known = together(run, alone.energy, known=best.chosen)
        found = run.outcome(known.chosen)
        if isinstance(found, Stuck):
            break
        if found.energy < best.energy:
            best = found
        if found.energy > known.energy * (1 - WORTH):  # no search came to better tilings
            break
    return best


def _gap(one: Outcome, least: float | None) -> float:
    return 1.0 if least is None else 1 - least / one.energy if one.energy else 0.0


def _exchanged(run: Run, best: Outcome, values: Sequence[float], least: float | None) -> Outcome:
    """Exchange single items as long as that pays: add one, without what collides; or drop one."""
    looked, before, better = 0, run.searches, True
    while better:
        better = False
        for i in sorted(range(len(run.items)), key=lambda i: -values[i]):
            spent = looked >= EXCHANGES or run.searches - before >= SEARCHES
            if spent or _gap(best, least) <= MUCH:
                return best
            found = _with_room(run, best.chosen ^ {i}, values, i)
            looked += 1
            if found is not None and found.energy < best.energy * (1 - 1e-12):
                best, better = found, True
    return best


def _with_room(
    run: Run, chosen: frozenset[int], values: Sequence[float], new: int
) -> Outcome | None:
    """What chosen items cost, without those that collide with a new one or leave it no room.

    Of what lives where there is no room, that goes first which saves least.
    """
    item = run.items[new]
    left = {i for i in chosen if i == new or not _collide(run.items[i], item)}
    while isinstance(found := run.outcome(left), Stuck):
        living = [
            i for i in left if i != new and run.items[i].first <= found.step <= run.items[i].last
        ]
        if not living:
            return None
        left.discard(min(living, key=lambda i: (values[i], i)))
    return found


def _collide(one: Item, other: Item) -> bool:
    """Whether two items save one access, or would move their tensor from level to level."""
    if one.name != other.name:
        return False
    touched = {*one.saves, *one.begins, *one.finds} & {*other.saves, *other.begins, *other.finds}
    return bool(set(one.saves) & set(other.saves) or (one.level != other.level and touched))
