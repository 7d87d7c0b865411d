"""Percent of the baseline of every method at one point, with all that is equal found once.

Reuse is exact, and a test compares it with `evaluate`:
- what there is to do (`workload`) asks neither the chip nor a price of the accounting;
- a tiling asks of chip and accounting only what `tiling.tile.tiling_inputs` names.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple, TypeVar

from hwmodel.errors import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.model.energy import Product, Stream
from hwmodel.model.evaluate import Found, Tiler, priced, workload
from hwmodel.model.workload import Job, Mode
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling.tile import tiling_inputs
from hwmodel.vary.paths import Inputs, Scalar, changed

__all__ = ["Costs", "Outcome", "Study", "overtaken", "ranks"]

Key = TypeVar("Key")
Value = TypeVar("Value")
PRICES = {"sources", "prices"}
MOST_KEPT = 16  # sets of tilings, and workloads of a method


@dataclass(frozen=True)
class Study:
    """What stays as it is while chips and accounting move."""

    network: Network
    methods: tuple[Method, ...]
    baseline: Method
    points: tuple[Inputs, ...]  # the unmoved one of each chip
    mode: Mode


class Outcome(NamedTuple):
    """What each method costs at a point, in the order of the study's methods."""

    percents: tuple[float | None, ...]  # of the baseline
    reasons: tuple[str, ...]  # why there is no percentage; "" where there is one


class Costs:
    """Outcomes of one study."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._found: dict[Hashable, Found] = {}
        self._work: dict[Hashable, list[Product | Stream]] = {}

    def at(self, index: int, changes: Mapping[str, Scalar]) -> Outcome:
        """The outcome where the inputs of chip number `index` are changed.

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
        """As `evaluate(...).energy` [the chip's unit]."""
        accounting = inputs.accounting
        job = Job(method, accounting, inputs.batch, self.study.mode)
        tiler = Tiler(inputs.hardware, accounting, self._tilings(inputs.hardware, accounting))
        rows, _ = priced(self._works(job), job, tiler)
        return fsum(row.energy for row in rows)

    def _works(self, job: Job) -> list[Product | Stream]:
        asked = (value for name, value in job.accounting if name not in PRICES)
        # The baseline may be called as one of the methods is, and yet have other rules.
        key = job.method == self.study.baseline, job.method.name, *asked
        if key not in self._work:
            work, _ = workload(self.study.network, job)
            _keep(self._work, key, work, MOST_KEPT * (1 + len(self.study.methods)))
        return self._work[key]

    def _tilings(self, hardware: Hardware, accounting: Accounting) -> Found:
        key = tiling_inputs(hardware, accounting)
        found = self._found.pop(key, {})
        _keep(self._found, key, found, MOST_KEPT)  # the latest to be asked for is last
        return found


def _keep(kept: dict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Put a value into a bounded memory; the one that came first goes."""
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


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
