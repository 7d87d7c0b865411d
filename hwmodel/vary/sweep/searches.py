"""Which tilings a sweep needs: counted before it runs, and, where they are dear, found once.

Chips that stand in the same blocks need the same problems solved; so the tilings are products of
chips and problems, and can be counted without being listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hwmodel.model.energy import Product
from hwmodel.model.evaluate import stationary
from hwmodel.specs.accounting import Accounting
from hwmodel.tiling.optimal.search import Stationary
from hwmodel.vary.sweep.block import Chip
from hwmodel.vary.sweep.chips import Memories
from hwmodel.vary.sweep.part import Memo, Workload, blocks, chip_at, work_at
from hwmodel.vary.sweep.plan import Plan
from hwmodel.vary.sweep.tilings import Choices, Found, Key, Search, choices_of
from hwmodel.work.problem import Problem

__all__ = ["Needed", "keys_of", "listed", "needed", "number"]

Solved = tuple[Problem, Stationary | None]


class Needed(NamedTuple):
    """The tilings of every one of some problems on every one of some chips."""

    problems: tuple[Solved, ...]
    chips: tuple[Chip, ...]
    accounting: Accounting


def needed(plan: Plan, points: Sequence[int]) -> list[Needed]:
    """All tilings that the points need, none of them twice."""
    memo = Memo(plan)
    problems: list[tuple[Solved, ...]] = []  # of each block
    accountings: dict[Choices, Accounting] = {}
    of_chip: dict[tuple[Choices, Memories], tuple[Chip, list[int]]] = {}
    for outer, several in blocks(plan, points):
        works = [work_at(memo, outer)]
        works += [work_at(memo, outer, as_baseline=True)] if plan.baseline else []
        if works[0].job is None:
            continue
        accounting = works[0].job.accounting
        choices = choices_of(accounting)
        accountings.setdefault(choices, accounting)
        problems.append(tuple(dict.fromkeys(s for work in works for s in _problems(work))))
        for _, digits in several:
            chip = chip_at(memo, digits)
            if isinstance(chip, Chip):
                stands = of_chip.setdefault((choices, chip.memories), (chip, []))[1]
                if stands[-1:] != [len(problems) - 1]:
                    stands.append(len(problems) - 1)
    alike: dict[tuple[Choices, tuple[int, ...]], list[Chip]] = {}
    for (choices, _), (chip, stands) in of_chip.items():
        alike.setdefault((choices, tuple(stands)), []).append(chip)
    return [
        Needed(
            tuple(dict.fromkeys(solved for i in stands for solved in problems[i])),
            tuple(chips),
            accountings[choices],
        )
        for (choices, stands), chips in alike.items()
    ]


def _problems(work: Workload) -> Iterator[Solved]:
    if work.job is not None:
        for one in work.works:
            if isinstance(one, Product):
                yield one.problem, stationary(one, work.job.accounting)


def number(groups: Sequence[Needed]) -> int:
    """How many tilings they are."""
    return sum(len(group.problems) * len(group.chips) for group in groups)


def listed(groups: Sequence[Needed]) -> list[tuple[Key, Search]]:
    """The tilings of accountings whose search is dear: the optimal one, milliseconds each.

    A step of the level-by-level search takes less than to send its result would.
    """
    return [
        (
            Key(problem, held, chip.memories, choices_of(group.accounting)),
            Search(problem, held, chip.hardware, group.accounting),
        )
        for group in groups
        if group.accounting.counting.search == "optimal"
        for chip in group.chips
        for problem, held in group.problems
    ]


def keys_of(plan: Plan, points: Sequence[int], found: dict[Key, Found]) -> dict[Key, Found]:
    """Of the tilings that were found those that some points need."""
    groups = needed(plan, points) if found else []
    return {key: found[key] for key, _ in listed(groups)}
