"""One workload on many chips: tiled where a tiling can move, counted once for equal tilings.

    memories or search options move     ->  tiled anew (`tile` knows: they are its arguments)
    a tiling moves                      ->  counted anew
    only prices move                    ->  counts . matrix of prices [key, chip]
    tensors stay on the chip            ->  all anew
    attention takes the cheaper way     ->  work anew, where that is another one

Holds for: every energy equal to that of `evaluate` to 1e-12 (relative).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache, partial
from math import fsum
from typing import NamedTuple

import numpy as np

from hwmodel.errors import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.model.duration import UNTIMED, Demand, demands, duration, untimed
from hwmodel.model.entries import search_options
from hwmodel.model.evaluate import (
    all_tasks,
    attention_ways,
    entered,
    in_ways,
    occupied,
    run_name,
    staying_in,
    tiled,
)
from hwmodel.model.ledger import Counts
from hwmodel.model.memory import Occupancy, see_room
from hwmodel.model.prices import Prices
from hwmodel.model.workload import Job, Task
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import memories
from hwmodel.work.work import Multiply

__all__ = ["GROUPS", "Cost", "Counted"]

GROUPS = ("way", "component", "direction")  # by which a cost is kept apart
MOST = 64  # counts that are remembered


class Cost(NamedTuple):
    """The energy of a workload on one chip, or the reason why there is none."""

    energy: float | None = None  # [chip's unit]
    groups: dict[tuple[str, ...], float] | None = None  # by GROUPS; they sum to `energy`
    unproved: int = 0  # tilings that the optimal search did not prove
    peak_bytes: int | None = None  # of what lives at one time in the outermost memories
    times: dict[str, float | None] = UNTIMED  # of a chip that states rates
    reason: str = ""


class Counted:
    """Counts, remembered by all that they depend on; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._counts: dict[Hashable, tuple[Counts, dict[int, Demand]]] = {}
        self._kept: dict[Hashable, Occupancy] = {}

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
        alike: dict[frozenset[str], list[int]] = {}
        for i, chip in enumerate(chips):
            ways = attention_ways(network, job, chip)
            alike.setdefault(in_ways(job, ways).separate, []).append(i)
        costs = [Cost()] * len(chips)
        for separate, members in alike.items():
            own, work, here = job, tasks, [chips[i] for i in members]
            if separate:  # on these chips some attention is other work
                own = job._replace(separate=separate)
                work = all_tasks(network, own)
            found = self._costs((key, separate), work, network, own, here)
            for i, cost in zip(members, found, strict=True):
                costs[i] = cost
        return costs

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
        products = [
            (task, task.work.kinds, search_options(accounting, task.work))
            for task in tasks
            if isinstance(task.work, Multiply)
        ]
        alike: dict[Hashable, list[int]] = {}
        for i, chip in enumerate(chips):
            try:
                if chip.is_bounded:
                    see_room(chip, self._kept_by(key, network, job), run_name(network, job))
                places = cache(partial(memories, chip))
                tilings = [
                    tiled(task, places(kinds), own, chip.name) for task, kinds, own in products
                ]
            except HwmodelError as error:
                costs[i] = Cost(reason=str(error))
                continue
            gaps = sum(bool(t.certificate and t.certificate.gap) for t in tilings)
            costs[i] = Cost(unproved=gaps)
            mappings = tuple(tiling.mapping for tiling in tilings)
            alike.setdefault((key, _shape(chip), mappings), []).append(i)
        for depends, members in alike.items():
            try:
                counts, asked = self._of(depends, tasks, accounting, chips[members[0]])
            except HwmodelError as error:  # of what its tilings do
                for i in members:
                    costs[i] = Cost(reason=str(error))
                continue
            peak = self._kept_by(key, network, job).peak().size
            for i, found in zip(
                members, _priced(counts, accounting, [chips[i] for i in members]), strict=True
            ):
                costs[i] = found._replace(
                    unproved=costs[i].unproved,
                    peak_bytes=peak,
                    times=_times(asked, chips[i], job.images, found.energy),
                )
        return costs

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
        if key not in self._kept:
            self._kept[key] = occupied(network, job)
            if len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
        return self._kept[key]

    def _of(
        self, key: Hashable, tasks: Sequence[Task], accounting: Accounting, chip: Hardware
    ) -> tuple[Counts, dict[int, Demand]]:
        """The counts of the tasks on a chip, and what each step asks for; made once a key."""
        if key not in self._counts:
            ledger, _ = entered(tasks, chip, accounting)
            self._counts[key] = ledger.by(*GROUPS), demands(ledger.entries)
            if len(self._counts) > MOST:
                del self._counts[next(iter(self._counts))]
        return self._counts[key]


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
