"""One workload on many chips: tiled where a tiling can move, counted once for equal tilings.

    memories or search options move     ->  tiled anew (`tile` knows: they are its arguments)
    a tiling moves                      ->  counted anew
    only prices move                    ->  counts . matrix of prices [key, chip]

Holds for: every energy equal to that of `evaluate` to 1e-12 (relative).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from hwmodel.errors import HwmodelError
from hwmodel.model.evaluate import entered, tiled
from hwmodel.model.ledger import Counts
from hwmodel.model.prices import Prices
from hwmodel.model.workload import Task
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import SearchOptions, memories
from hwmodel.tiling.tile import Tiling
from hwmodel.work.work import Multiply

__all__ = ["GROUPS", "Cost", "Counted"]

GROUPS = ("pass", "component", "direction")  # by which a cost is kept apart
MOST = 64  # counts that are remembered


class Cost(NamedTuple):
    """The energy of a workload on one chip, or the reason why there is none."""

    energy: float | None = None  # [chip's unit]
    groups: dict[tuple[str, ...], float] | None = None  # by GROUPS; they sum to `energy`
    unproved: int = 0  # tilings that the optimal search did not prove
    reason: str = ""


class Counted:
    """Counts, remembered by all that they depend on; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._counts: dict[Hashable, Counts] = {}

    def costs(
        self,
        key: Hashable,
        tasks: Sequence[Task],
        accounting: Accounting,
        chips: Sequence[Hardware],
    ) -> list[Cost]:
        """Return the energies of the tasks on each of the chips.

        Args:
            key: what tells these tasks from all others that are asked for here. A price of the
                accounting moves no count and need not be part of it.
        """
        costs = [Cost()] * len(chips)
        alike: dict[Hashable, list[int]] = {}
        for i, chip in enumerate(chips):
            try:
                tilings = _tilings(tasks, accounting, chip)
            except HwmodelError as error:
                costs[i] = Cost(reason=str(error))
                continue
            gaps = sum(bool(t.certificate and t.certificate.gap) for t in tilings)
            costs[i] = Cost(unproved=gaps)
            names = tuple((b.name, b.holds) for level in chip.levels for b in level.buffers)
            same = key, accounting.counting, accounting.widths, names
            alike.setdefault((*same, *(tiling.mapping for tiling in tilings)), []).append(i)
        for depends, members in alike.items():
            counts = self._of(depends, tasks, accounting, chips[members[0]])
            for i, energies in zip(
                members, _priced(counts, accounting, [chips[i] for i in members]), strict=True
            ):
                costs[i] = energies._replace(unproved=costs[i].unproved)
        return costs

    def _of(
        self, key: Hashable, tasks: Sequence[Task], accounting: Accounting, chip: Hardware
    ) -> Counts:
        """The counts of the tasks on a chip, made once for each key."""
        if key not in self._counts:
            ledger, _ = entered(tasks, chip, accounting)
            self._counts[key] = ledger.by(*GROUPS)
            if len(self._counts) > MOST:
                del self._counts[next(iter(self._counts))]
        return self._counts[key]


def _tilings(tasks: Sequence[Task], accounting: Accounting, chip: Hardware) -> list[Tiling]:
    """Tile every product. Raises: Infeasible, TooLarge."""
    places = memories(chip)
    return [
        tiled(task, places, SearchOptions.of(accounting, task.work.pass_), chip.name)
        for task in tasks
        if isinstance(task.work, Multiply)
    ]


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
    found = iter((counts.matrix @ np.array(good, dtype=np.float64).T).T if good else ())
    costs = []
    for column in columns:
        if isinstance(column, str):
            costs.append(Cost(reason=column))
            continue
        groups: dict[tuple[str, ...], float] = dict(
            zip(counts.groups, next(found).tolist(), strict=True)
        )
        costs.append(Cost(sum(groups.values()), groups))
    return costs
