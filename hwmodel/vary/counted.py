"""One workload on many chips: tiled where a tiling can move, counted once for equal tilings.

    memories or search options move     ->  tiled anew (`tile` knows: they are its arguments)
    tilings of some products move       ->  those are counted anew, task by task
    only prices move                    ->  counts . matrix of prices [key, chip]
    tensors stay on the chip            ->  all anew
    attention takes the cheaper way     ->  work anew, where that is another one

Holds for: every energy equal to that of `evaluate` to 1e-12 (relative).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from math import fsum
from typing import NamedTuple, TypeVar

import numpy as np

from hwmodel.errors import HwmodelError, TooLarge
from hwmodel.graph.network import Network
from hwmodel.model.attention_choice import in_ways
from hwmodel.model.duration import UNTIMED, Demand, demands, duration, untimed
from hwmodel.model.entered import certified, entered, placed
from hwmodel.model.entries import search_options
from hwmodel.model.evaluate import attention_ways, staying_in
from hwmodel.model.ledger import Counts, Entry
from hwmodel.model.memory import Occupancy, see_room
from hwmodel.model.plans import all_tasks, occupied, run_name
from hwmodel.model.prices import Key, Prices, read_by
from hwmodel.model.workload import Job, Task, as_tiled
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.level_by_level import Greedy, greedy, level_costs
from hwmodel.tiling.options import SearchOptions, all_memories
from hwmodel.tiling.tile import check_known, check_size, tile
from hwmodel.work.problem import Problem
from hwmodel.work.tensor import Kinds
from hwmodel.work.work import Multiply

__all__ = ["GROUPS", "Cost", "Counted"]

GROUPS = ("way", "component", "direction", "part")  # by which a cost is kept apart
MOST = 64  # workloads, and counts of all their tasks, that are remembered
MOST_TILED = 4096  # chips' tilings, and counts of single tasks

Groups = dict[tuple[str, ...], dict[Key, int]]
Made = TypeVar("Made")
Alike = TypeVar("Alike", bound=Hashable)


class Cost(NamedTuple):
    """The energy of a workload on one chip, or the reason why there is none."""

    energy: float | None = None  # [chip's unit]
    groups: dict[tuple[str, ...], float] | None = None  # by GROUPS; they sum to `energy`
    unproved: int = 0  # tilings that the optimal search did not prove
    peak_bytes: int | None = None  # of what lives at one time in the outermost memories
    times: dict[str, float | None] = UNTIMED  # of a chip that states rates
    reason: str = ""


class _Product(NamedTuple):
    """A product that is tiled, and what its tiling depends on beside memories."""

    number: int  # of its task
    problem: Problem
    options: SearchOptions
    places: int  # which of the workload's kinds of tensors it is of
    search: Greedy | None  # its search, where that is level by level; None: `tile` searches it


class _Products(NamedTuple):
    """The products of a workload, and what lies at their places."""

    of: tuple[_Product, ...]
    kinds: tuple[Kinds, ...]  # each once
    asked: tuple[tuple[int, SearchOptions], ...]  # of places, each once


class _Tiled(NamedTuple):
    """The tilings of all products on one chip's memories."""

    mappings: dict[int, Mapping]  # by the number of the task; equal ones are one object
    unproved: int  # of them


class Counted:
    """Counts, remembered by all that they depend on; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._counts: dict[Hashable, tuple[Counts, dict[int, Demand]]] = {}
        self._kept: dict[Hashable, Occupancy] = {}
        self._products: dict[Hashable, _Products] = {}
        self._tilings: dict[Hashable, _Tiled] = {}
        self._same: dict[Hashable, dict[int, Mapping]] = {}
        self._tasks: dict[Hashable, tuple[Groups, tuple[Entry, ...]]] = {}

    def costs(
        self,
        key: Hashable,
        tasks: Sequence[Task],
        network: Network,
        job: Job,
        chips: Sequence[Hardware],
    ) -> list[Cost]:
        """Return the energies of the tasks of a job on a network, on each of the chips.

        Args:
            key: what tells these tasks, and the accounting but for its prices, which move no
                count, from all others that are asked for here.
        """

        def on_alike(choices: tuple[str, ...], here: Sequence[Hardware]) -> list[Cost]:
            accounting, work = read_by(here[0], job.accounting), tasks
            if accounting is not job.accounting:
                work = [_as_tiled(task, accounting) for task in tasks]
            return self._read(
                (key, choices), work, network, job._replace(accounting=accounting), here
            )

        read = (read_by(chip, job.accounting).counting for chip in chips)
        return _in_groups(chips, ((x.transfers, x.loops) for x in read), on_alike)

    def _read(
        self,
        key: Hashable,
        tasks: Sequence[Task],
        network: Network,
        job: Job,
        chips: Sequence[Hardware],
    ) -> list[Cost]:
        """The costs on chips by which the accounting is read alike."""
        if job.accounting.counting.attention != "cheaper":
            return self._costs((key, job.separate), tasks, network, job, chips)

        def on_alike(separate: frozenset[str], here: Sequence[Hardware]) -> list[Cost]:
            own, work = job, tasks
            if separate:  # on these chips some attention is other work
                own = job._replace(separate=separate)
                work = all_tasks(network, own)
            return self._costs((key, separate), work, network, own, here)

        ways = (in_ways(job, attention_ways(network, job, chip)) for chip in chips)
        return _in_groups(chips, (way.separate for way in ways), on_alike)

    def _costs(
        self,
        key: Hashable,
        tasks: Sequence[Task],
        network: Network,
        job: Job,
        chips: Sequence[Hardware],
    ) -> list[Cost]:
        """The costs on chips on which the work is the same."""
        if job.accounting.counting.residency != "none":
            return [self._staying(key, tasks, network, job, chip) for chip in chips]
        return self._tiled(key, tasks, network, job, chips)

    def _tiled(
        self,
        key: Hashable,
        tasks: Sequence[Task],
        network: Network,
        job: Job,
        chips: Sequence[Hardware],
    ) -> list[Cost]:
        """The costs on all chips, of which those that are tiled alike are counted once."""
        costs, accounting = [Cost()] * len(chips), job.accounting
        products = _remembered(self._products, key, MOST, lambda: _products(tasks, accounting))
        alike: dict[Hashable, list[tuple[int, _Tiled]]] = {}
        for i, chip in enumerate(chips):
            try:
                if chip.is_bounded:
                    see_room(chip, self._kept_by(key, network, job), run_name(network, job))
                tiling = self._tiled_on(key, products, tasks, chip)
            except HwmodelError as error:
                costs[i] = Cost(reason=str(error))
                continue
            alike.setdefault((_shape(chip), id(tiling.mappings)), []).append((i, tiling))
        for several in alike.values():
            members, (_, first) = [i for i, _ in several], several[0]
            try:
                counts, asked = self._of(key, tasks, accounting, chips[members[0]], first.mappings)
            except HwmodelError as error:  # of what its tilings do
                for i in members:
                    costs[i] = Cost(reason=str(error))
                continue
            peak = self._kept_by(key, network, job).peak().size
            priced = _priced(counts, accounting, [chips[i] for i in members])
            for (i, tiling), found in zip(several, priced, strict=True):
                costs[i] = found._replace(
                    unproved=tiling.unproved,
                    peak_bytes=peak,
                    times=_times(asked, chips[i], job.images, found.energy),
                )
        return costs

    def _tiled_on(
        self, key: Hashable, products: _Products, tasks: Sequence[Task], chip: Hardware
    ) -> _Tiled:
        """Tile all products on a chip's memories. Raises: Infeasible, TooLarge, HwmodelError."""
        places = all_memories(chip, products.kinds)

        def made() -> _Tiled:
            costs = [level_costs(one) for one in places]
            for which, options in products.asked:
                check_known(places[which], options)
            found, gaps = dict[int, Mapping](), 0
            for number, problem, options, which, search in products.of:
                with placed(tasks[number], chip.name):
                    if search:
                        found[number] = search.mapping(costs[which], places[which])
                        continue
                    tiling = tile(problem, places[which], options)
                found[number] = tiling.mapping
                if isinstance(work := tasks[number].work, Multiply):
                    tiling = certified(tiling, work, places[which], options)
                gaps += bool(tiling.certificate and tiling.certificate.gap)
            every = key, tuple(map(id, found.values()))  # which are kept, so that no id is reused
            return _Tiled(_remembered(self._same, every, MOST_TILED, lambda: found), gaps)

        return _remembered(self._tilings, (key, places), MOST_TILED, made)

    def _staying(
        self, key: Hashable, tasks: Sequence[Task], network: Network, job: Job, chip: Hardware
    ) -> Cost:
        """The cost on one chip where tensors stay on it: what stays depends on prices, too."""
        kept, accounting = self._kept_by(key, network, job), job.accounting
        try:
            if chip.is_bounded:
                see_room(chip, kept, run_name(network, job))
            staying = staying_in(tasks, network, job, chip)
            ledger, tilings = entered(tasks, chip, accounting, staying)
        except HwmodelError as error:
            return Cost(reason=str(error))
        (found,) = _priced(ledger.by(*GROUPS), accounting, [chip])
        gaps = sum(bool(tiling.certificate and tiling.certificate.gap) for _, tiling in tilings)
        times = _times(demands(ledger.entries), chip, job.images, found.energy)
        return found._replace(unproved=gaps, peak_bytes=kept.peak().size, times=times)

    def _kept_by(self, key: Hashable, network: Network, job: Job) -> Occupancy:
        """What the tasks of a key keep, whatever the chip."""
        return _remembered(self._kept, key, MOST, lambda: occupied(network, job))

    def _of(
        self,
        key: Hashable,
        tasks: Sequence[Task],
        accounting: Accounting,
        chip: Hardware,
        mappings: dict[int, Mapping],
    ) -> tuple[Counts, dict[int, Demand]]:
        """The counts of the tasks on a chip, and what each step asks for; made once a key."""
        shape, is_timed = _shape(chip), not untimed(chip)

        def made() -> tuple[Counts, dict[int, Demand]]:
            groups: Groups = {}
            entries: list[Entry] = []
            for number, task in enumerate(tasks):
                own = key, shape, number, mappings.get(number)
                count = partial(_counted, task, chip, accounting)
                counts, of_task = _remembered(self._tasks, own, MOST_TILED, count)
                entries += of_task
                for group, paid in counts.items():
                    into = groups.setdefault(group, {})
                    for price, number_paid in paid.items():
                        into[price] = into.get(price, 0) + number_paid
            return Counts(groups), demands(entries) if is_timed else {}

        depends = key, shape, tuple(mappings.values()), is_timed
        return _remembered(self._counts, depends, MOST, made)


def _remembered(
    known: dict[Hashable, Made], key: Hashable, most: int, make: Callable[[], Made]
) -> Made:
    """Return what is known of a key, or make it; the oldest is forgotten where there are many."""
    found = known.get(key)
    if found is None:
        found = known[key] = make()
        if len(known) > most:
            del known[next(iter(known))]
    return found


def _in_groups(
    chips: Sequence[Hardware],
    alike: Iterable[Alike],
    costs: Callable[[Alike, Sequence[Hardware]], list[Cost]],
) -> list[Cost]:
    """Return the costs on chips, of those together for which the same word stands.

    Args:
        alike: of each chip what it has in common with others.
    """
    groups: dict[Alike, list[int]] = {}
    for i, word in enumerate(alike):
        groups.setdefault(word, []).append(i)
    found = [Cost()] * len(chips)
    for word, members in groups.items():
        for i, cost in zip(members, costs(word, [chips[i] for i in members]), strict=True):
            found[i] = cost
    return found


def _as_tiled(task: Task, accounting: Accounting) -> Task:
    """A task with the loops that its product is tiled in."""
    work = task.work
    return task._replace(work=as_tiled(work, accounting)) if isinstance(work, Multiply) else task


def _products(tasks: Sequence[Task], accounting: Accounting) -> _Products:
    """List the products of a workload."""
    kinds: dict[Kinds, int] = {}
    found = []
    for number, task in enumerate(tasks):
        if isinstance(task.work, Multiply):
            problem, options = task.work.problem, search_options(accounting, task.work)
            which = kinds.setdefault(task.work.kinds, len(kinds))
            found.append(_Product(number, problem, options, which, _greedy(problem, options)))
    asked = dict.fromkeys((one.places, one.options) for one in found)
    return _Products(tuple(found), tuple(kinds), tuple(asked))


def _greedy(problem: Problem, options: SearchOptions) -> Greedy | None:
    """The search of a problem that `tile` would make, where it is level by level."""
    try:
        check_size(problem, options.rule)
    except TooLarge:  # `tile` says so
        return None
    return greedy(problem, options.sizes) if options.search == "level-by-level" else None


def _counted(
    task: Task, chip: Hardware, accounting: Accounting
) -> tuple[Groups, tuple[Entry, ...]]:
    """Count one task on a chip on which it is tiled."""
    ledger, _ = entered((task,), chip, accounting)
    return ledger.by(*GROUPS).groups, ledger.entries


def _times(
    asked: dict[int, Demand], chip: Hardware, images: int, energy: float | None
) -> dict[str, float | None]:
    """The columns of time, on a chip that states the rates for them."""
    if energy is None or untimed(chip):
        return UNTIMED
    try:
        return duration(asked, chip, images, energy).cells
    except HwmodelError:  # of a width without a rate
        return UNTIMED


def _shape(chip: Hardware) -> Hashable:
    """All of a chip, beside mappings, that counts depend on."""
    levels = [
        (level.name, level.instances, level.multicast is not False, level.reduction is not False,
         tuple((b.name, b.holds, b.coding) for b in level.buffers))
        for level in chip.levels
    ]  # fmt: skip
    return tuple(levels), chip.array and chip.array.holds, chip.zeros


def _priced(counts: Counts, accounting: Accounting, chips: Sequence[Hardware]) -> list[Cost]:
    """The energy of every group on chips on which all is counted alike."""
    columns: list[list[float] | str] = []
    for chip in chips:
        prices = Prices(chip, accounting)
        try:
            columns.append([prices.value(key) for key in counts.keys])
        except HwmodelError as error:  # an operation that this chip does not price
            columns.append(str(error))
    good = [column for column in columns if not isinstance(column, str)]
    # Key by key and not as a product of matrices, whose last bits differ from machine to machine.
    energies = np.zeros((len(good), len(counts.groups)))
    for count, paid in zip(counts.matrix.T, zip(*good, strict=True), strict=bool(good)):
        energies += np.outer(paid, count)
    found = iter(energies)
    costs = []
    for column in columns:
        if isinstance(column, str):
            costs.append(Cost(reason=column))
            continue
        groups: dict[tuple[str, ...], float] = dict(
            zip(counts.groups, next(found).tolist(), strict=True)
        )
        costs.append(Cost(fsum(groups.values()), groups))
    return costs
