"""Percent of the baseline of every method at one point; equal parts are computed once.

What there is to do asks neither the chip nor a price of the accounting; a tiling asks for its
arguments alone. A test moves every field and compares with `evaluate`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hwmodel.errors import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.model.plans import all_tasks
from hwmodel.model.workload import Job, Mode, Task
from hwmodel.specs.method import Method
from hwmodel.vary.counted import Counted
from hwmodel.vary.paths import Inputs, Scalar, changed

__all__ = ["Costs", "Outcome", "Study", "overtaken", "ranks"]

MOST_KEPT = 16  # workloads of a method


@dataclass(frozen=True)
class Study:
    """The inputs of a study that stay while chips and accounting move, and the unmoved points."""

    network: Network
    methods: tuple[Method, ...]
    baseline: Method
    points: tuple[Inputs, ...]  # the unmoved one of each chip
    mode: Mode


class Outcome(NamedTuple):
    """The percentage of each method at a point, in the order of the study's methods."""

    percents: tuple[float | None, ...]  # of the baseline
    reasons: tuple[str, ...]  # why there is no percentage; "" where there is one


class Costs:
    """Outcomes of one study; the parts that they have in common are computed once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._counted = Counted()
        self._tasks: dict[Hashable, tuple[Task, ...]] = {}

    def at(self, index: int, changes: Mapping[str, Scalar]) -> Outcome:
        """Compute the outcome with the inputs of chip number `index` changed.

        Raises: SpecError for changes that the specs' rules refuse.
        """
        inputs = changed(self.study.points[index], changes)
        try:
            whole = self._energy(self.study.baseline, inputs)
        except HwmodelError as error:
            nothing = (None,) * len(self.study.methods)
            return Outcome(nothing, (f"the baseline: {error}",) * len(nothing))
        percents, reasons = [], []
        for method in self.study.methods:
            try:
                energy = whole if method == self.study.baseline else self._energy(method, inputs)
                percents.append(100 * (energy / whole) if whole else None)
                reasons.append("" if whole else "the baseline costs nothing")
            except HwmodelError as error:
                percents.append(None)
                reasons.append(str(error))
        return Outcome(tuple(percents), tuple(reasons))

    def _energy(self, method: Method, inputs: Inputs) -> float:
        """As `evaluate(...).energy` [the chip's unit]. Raises: HwmodelError."""
        job = Job(method, inputs.accounting, inputs.batch, self.study.mode)
        asked = job.accounting
        key = method.name, asked.counting, asked.widths, asked.extras, inputs.batch
        if key not in self._tasks:
            self._tasks[key] = all_tasks(self.study.network, job)
            if len(self._tasks) > MOST_KEPT * (1 + len(self.study.methods)):
                del self._tasks[next(iter(self._tasks))]
        tasks = self._tasks[key]
        (cost,) = self._counted.costs(key, tasks, self.study.network, job, [inputs.hardware])
        if cost.energy is None:
            raise HwmodelError(cost.reason)
        return cost.energy


def ranks(percents: Sequence[float | None]) -> list[int | None]:
    """Place of each method, 1 for the cheapest; equal ones share a place."""
    known = [percent for percent in percents if percent is not None]
    return [None if p is None else 1 + sum(other < p for other in known) for p in percents]


def overtaken(
    before: Sequence[float | None], after: Sequence[float | None]
) -> list[tuple[int, int]]:
    """Pairs (a, b) of methods of which a cost less before and costs more after.

    A method that can no longer be computed overtakes none, and a tie is no reversal.
    """
    return [
        (a, b)
        for a, (old_a, new_a) in enumerate(zip(before, after, strict=True))
        for b, (old_b, new_b) in enumerate(zip(before, after, strict=True))
        if old_a is not None and old_b is not None and new_a is not None and new_b is not None
        if old_a < old_b and new_a > new_b
    ]
