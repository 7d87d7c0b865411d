"""Chooses the tensors that stay on the chip: packing, search again, exchanges, and a lower bound.

1.  Tilings as without residents give every access its energy by level, every product its room.
2.  Packing: the items that save most, with room for all (`packing`).
3.  Every product is searched again in its view (`products`).
4.  2 and 3 from parts of the rooms that the tiles took, for they take all that they can get.
5.  Where the lower bound leaves a gap, single items are exchanged as long as that pays.

The energy never rises: to keep nothing is a choice, too. Source: docs/model.md section 11.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from hwmodel.model.entries import Stay, search_options
from hwmodel.model.memory import Occupancy
from hwmodel.model.residency.bound import is_bounded, least_rooms, lower_bound, pick_rows
from hwmodel.model.residency.items import Access, Item, items, tracked
from hwmodel.model.residency.packing import Row, pack
from hwmodel.model.residency.products import Product, Tiled
from hwmodel.model.residency.run import Outcome, Run, Streamed
from hwmodel.model.workload import Task
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import Memories, memories
from hwmodel.work.problem import OPERANDS
from hwmodel.work.work import Move, Multiply

__all__ = ["Residency", "residency", "residency_levels"]

SHARE = 12  # a product is searched again with one part in so many of the usual budget
SCALES = (0.1, 0.3, 1.0, 0.0)  # of the rooms that tiles took; 0: single elements
MANY_STEPS, MOST_STEPS = 40, 100  # above which only the first start is made, none is exchanged
ENOUGH = 0.01  # gap down to which starts are made and items exchanged
GAP = 3e-3  # of what a packing saves
EXCHANGES = 300  # choices that are looked at
SEARCHES, TIMES = 100, 1500  # tilings that are searched for them: so many, or so many / steps
NO_END = 2**62  # bits of a memory without end


@dataclass(frozen=True)
class Residency:
    """What stays on the chip in a run, at what cost, and how far from the least."""

    items: tuple[Item, ...]
    stays: dict[int, Stay]  # of tasks of which something stays
    tilings: dict[int, Tiled]  # of products, in the order of the tasks
    energy: float  # of memories, hops and cycles [chip's unit]
    lower_bound: float | None  # None: prices fall outwards, nothing is known
    levels: dict[int, str]  # at which tensors may stay, by name
    capacities: dict[int, int]  # of these [bit]
    border: frozenset[str]  # tensors that come from outside, or are given to whoever asked

    def at(self, level: int, step: int) -> list[Item]:
        """The items that live at a level in a step, the largest first."""
        living = (i for i in self.items if i.level == level and i.first <= step <= i.last)
        return sorted(living, key=lambda item: -item.bits)

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
    """Choose what stays on a chip; None where it has no level for that.

    Args:
        tasks: of the run.
        kept: every tensor with its life.
        given: names of tensors that whoever asked takes.

    Raises: Infeasible, TooLarge, HwmodelError.
    """
    capacities = residency_levels(chip)
    if not capacities:
        return None
    run = _run(tasks, kept, given, chip, accounting, capacities)
    alone = run.outcome(())
    assert isinstance(alone, Outcome)
    # The bound has plain words; where a memory codes them it would be above what is paid.
    bounded = is_bounded(memories(chip)) and not memories(chip).codings
    least = lower_bound(run) if bounded else None
    best = _best(run, alone, least)
    return Residency(
        tuple(run.items[i] for i in sorted(best.chosen)),
        best.stays,
        dict(sorted(best.tilings.items())),
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
) -> Run:
    seen: dict[object, Memories] = {}
    products, moves = {}, {}
    for number, task in enumerate(tasks):
        work = task.work
        if isinstance(work, (Multiply, Move)) and work.kinds not in seen:
            seen[work.kinds] = memories(chip, work.kinds)
        if isinstance(work, Multiply):
            options = replace(search_options(accounting, work), share=SHARE)
            products[number] = Product(task, seen[work.kinds], options, capacities)
        elif isinstance(work, Move) and work.times:
            moves[number] = Streamed.of(task, seen[work.kinds])
    found = items(tracked(tasks, kept.tensors, given), capacities, len(kept.steps) - 1)
    return Run(tasks, products, moves, found, capacities)


def _best(run: Run, alone: Outcome, least: float | None) -> Outcome:
    """The best of all starts, better still by exchanges where the gap is not small."""
    outside = _outside(run, alone)
    values = [max(0.0, run.value(item, outside)) for item in run.items]
    best = alone
    for scale in SCALES:
        found = _packed(run, alone, values, scale)
        if found.energy < best.energy:
            best = found
        if _gap(best, least) < ENOUGH or len(run.steps) > MANY_STEPS:
            break
    if _gap(best, least) > ENOUGH and len(run.steps) <= MOST_STEPS:
        best = _exchanged(run, best, values, least)
    return best


def _gap(one: Outcome, least: float | None) -> float:
    return 1.0 if least is None else 1 - least / one.energy if one.energy else 0.0


def _outside(run: Run, alone: Outcome) -> dict[tuple[Access, int], float]:
    """What each access costs outside each level under tilings without residents."""
    found: dict[tuple[Access, int], float] = {}
    for item in run.items:
        for access in item.saves:
            at = access, item.level
            if at in found:
                continue
            if access.task in run.moves:
                found[at] = run.moves[access.task].outside(item.level)
            else:
                tiling = alone.tilings[access.task].tiling
                product = run.products[access.task]
                found[at] = product.outside(tiling, access.operand, item.level)
    return found


def _packed(run: Run, alone: Outcome, values: Sequence[float], scale: float) -> Outcome:
    """Pack items beside a part of the rooms that tiles took, and search again."""
    least = scale == 0.0
    rooms = least_rooms(run) if least else _rooms(run, alone, scale)
    chosen = pack(values, [*pick_rows(run), *rooms], GAP, loose=least).chosen
    return _settled(run, chosen, values) or alone


def _rooms(run: Run, alone: Outcome, scale: float) -> Iterator[Row]:
    """What lives at each level and step, beside the tiles; alike steps once."""
    taken: dict[tuple[int, int], int] = {}
    for number, tiled in alone.tilings.items():
        step = run.tasks[number].at.step
        for level, bits in tiled.rooms.items():
            at = step, level
            taken[at] = max(taken.get(at, 0), int(bits * scale))
    for level, capacity in run.capacities.items():
        alike: dict[tuple[int, ...], int] = {}
        for step, living in run.alive(level).items():
            room = capacity - taken.get((step, level), 0)
            some = tuple(living)
            alike[some] = min(alike.get(some, room), room)
        for some, room in alike.items():
            yield Row({i: run.items[i].bits for i in some}, max(room, 0))


def _settled(
    run: Run, chosen: Collection[int], values: Sequence[float], new: int | None = None
) -> Outcome | None:
    """What chosen items cost; where tiles find no room, without an item that saves little there.

    It is the least of those without which there is room, there and where it was used; if there is
    none, the least of those without which there is room there; else the least of all.

    Args:
        new: an item that is kept in any case.
    """
    left = set(chosen)
    while True:
        found = run.outcome(left)
        if isinstance(found, Outcome):
            return found
        living = [i for k in run.capacities for i in run.living(k, found.step, left) if i != new]
        living.sort(key=lambda i: (values[i], i))
        if not living:
            return None
        helps = [i for i in living if run.has_room(found.step, left - {i})]
        safe = (i for i in helps if all(run.has_room(s, left - {i}) for s in run.used_at(i)))
        left.discard(next(safe, (helps or living)[0]))


def _exchanged(run: Run, best: Outcome, values: Sequence[float], least: float | None) -> Outcome:
    """Exchange single items as long as that pays: add one, without what collides; or drop one."""
    looked, before, better = 0, run.searches, True
    most = max(SEARCHES, TIMES // len(run.steps))
    while better:
        better = False
        for i in sorted(range(len(run.items)), key=lambda i: -values[i]):
            spent = looked >= EXCHANGES or run.searches - before >= most
            if spent or _gap(best, least) <= ENOUGH:
                return best
            other = best.chosen ^ {i} if i in best.chosen else _with(run, best.chosen, i)
            found = _settled(run, other, values, i if i in other else None)
            looked += 1
            if found is not None and found.energy < best.energy * (1 - 1e-12):
                best, better = found, True
    return best


def _with(run: Run, chosen: frozenset[int], new: int) -> frozenset[int]:
    """Items with a new one, without those that save the same accesses or move its tensor."""
    others = {i for i in chosen if _collide(run.items[i], run.items[new])}
    return frozenset((chosen - others) | {new})


def _collide(one: Item, other: Item) -> bool:
    """Whether two items save one access, or would move their tensor from level to level."""
    if one.name != other.name:
        return False
    touched = {*one.saves, *one.begins} & {*other.saves, *other.begins}
    return bool(set(one.saves) & set(other.saves) or (one.level != other.level and touched))
