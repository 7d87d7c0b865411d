"""A part of a sweep: some points in order, as lines of the table of results.

What is needed of a point is made from the plan where it is needed, and remembered: a part is sent
to a worker as the plan and its points' numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, repeat
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError
from hwmodel.model.energy import Product, Stream
from hwmodel.model.evaluate import teacher_works, workload
from hwmodel.model.workload import Job
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.published import accuracy_percent
from hwmodel.vary.paths import Inputs, changed, replaced_all
from hwmodel.vary.sweep.block import PARTS, Chip, Energies, energies
from hwmodel.vary.sweep.chips import memories_of
from hwmodel.vary.sweep.plan import NAMES, Digits, Plan
from hwmodel.vary.sweep.tilings import Found, Key, Tilings

__all__ = ["Memo", "Workload", "blocks", "chip_at", "columns", "run_part", "work_at"]

_TILINGS = Tilings()  # of this process
WORKLOADS = 64  # workloads that a process remembers
CHIPS = 4096  # chips that a process remembers; some ten kilobytes each


class Workload(NamedTuple):
    """What is done at a point, whatever the chip; or why it cannot be done."""

    job: Job | None = None
    works: tuple[Product | Stream, ...] = ()
    reason: str = ""


def columns(plan: Plan) -> dict[str, type]:
    """The columns of the results, and what stands in them."""
    percent = {"percent_of_baseline": float} if plan.baseline else {}
    energies = dict.fromkeys((*PARTS, "compute", "memory"), float)
    fields = {path: _type(plan.values(path)) for path in plan.paths}
    ends = {"capacity_bits": int, "published_accuracy_percent": float, "unproved_tilings": int}
    return {
        "point": int,
        **dict.fromkeys(NAMES, str),
        "batch": int,
        **fields,
        "energy": float,
        "unit": str,
        "energy_per_image": float,
        **percent,
        **energies,
        **ends,
        "reason": str,
    }


def _type(values: Sequence[Any]) -> type:
    """What all values of a column are, as they stand in a table; None does not count."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int} and max(map(abs, filter(None, values)), default=0) >= 2**63:
        return float  # beyond what Parquet holds
    if kinds == {int, float}:
        return float
    return next(iter(kinds)) if kinds in ({bool}, {int}, {float}) else str


def blocks(plan: Plan, points: Sequence[int]) -> Iterator[tuple[Digits, list[tuple[int, Digits]]]]:
    """Points in order, those that share their work together: its digits, and (point, digits)."""
    numbered = ((point, plan.digits(point)) for point in points)
    for outer, several in groupby(numbered, key=lambda pair: pair[1][: plan.inner]):
        yield outer, list(several)


class Memo(NamedTuple):
    """A plan as a key of what is remembered: plans are equal if their hashes are."""

    plan: Plan

    def __hash__(self) -> int:
        return hash(self.plan.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memo) and self.plan.digest == other.plan.digest


@lru_cache(maxsize=WORKLOADS)
def work_at(memo: Memo, outer: Digits, as_baseline: bool = False) -> Workload:
    """The work of all points that begin with some digits, or what their baseline has to do."""
    plan = memo.plan
    roots = [root for root in NAMES if root != "hardware"]
    fields = {s.path: s.value for root in roots if root != "mode"
              for s in plan.settings(root, outer)}  # fmt: skip
    chosen = {root: plan.specs[root][plan.which(root, outer)] for root in roots}
    mode = chosen.pop("mode")
    try:
        inputs = changed(Inputs(hardware=plan.specs["hardware"][0], **chosen), fields)
        method = plan.baseline if as_baseline and plan.baseline else inputs.method
        job = Job(method, inputs.accounting, inputs.batch, mode)
        works = (*workload(inputs.network, job)[0], *teacher_works(job))
    except HwmodelError as error:
        return Workload(reason=str(error))
    return Workload(job, works)


@lru_cache(maxsize=CHIPS)
def _chip(memo: Memo, which: int, settings: tuple[tuple[str, Any], ...]) -> Chip | str:
    """A chip with some fields set; or why there is none."""
    fields = {path.partition(".")[2]: value for path, value in settings}
    base: Hardware = memo.plan.specs["hardware"][which]
    try:
        chip = replaced_all(base, fields) if fields else base
    except HwmodelError as error:
        return str(error)
    return Chip(chip, memories_of(chip))


def chip_at(memo: Memo, digits: Digits) -> Chip | str:
    """The chip of a point; or why there is none."""
    settings = memo.plan.settings("hardware", digits)
    which = memo.plan.which("hardware", digits)
    return _chip(memo, which, tuple((s.path, s.value) for s in settings))


def run_part(plan: Plan, points: Sequence[int], found: dict[Key, Found]) -> str:
    """The lines of some points: CSV without a header.

    Args:
        found: tilings that are known already; others are searched here.
    """
    _TILINGS.add(found)
    memo, stream = Memo(plan), io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for outer, several in blocks(plan, points):
        chips = [chip_at(memo, digits) for _, digits in several]
        ours = _energies(work_at(memo, outer), chips)
        whole: list[Energies] | list[None] = [None] * len(ours)
        if plan.baseline:
            whole = _energies(work_at(memo, outer, as_baseline=True), chips)
        for (point, digits), chip, got, base in zip(several, chips, ours, whole, strict=True):
            writer.writerow(_line(plan, point, digits, chip, got, base))
    return stream.getvalue()


def _energies(work: Workload, chips: Sequence[Chip | str]) -> list[Energies]:
    """What a workload costs on each chip, or why it has no cost."""
    good = [chip for chip in chips if isinstance(chip, Chip)]
    priced: Iterator[Energies] = repeat(Energies(reason=work.reason))
    if work.job is not None:
        priced = iter(energies(work.works, good, work.job.accounting, _TILINGS))
    return [next(priced) if isinstance(chip, Chip) else Energies(reason=chip) for chip in chips]


def _line(
    plan: Plan, point: int, digits: Digits, chip: Chip | str, got: Energies, base: Energies | None
) -> list[object]:
    """One line, in the order of `columns`."""
    shown = plan.shown(digits)
    hardware: Hardware = plan.specs["hardware"][plan.which("hardware", digits)]
    capacity = None
    if isinstance(chip, Chip):
        hardware = chip.hardware
        sizes = [b.capacity_bits for level in hardware.levels for b in level.buffers]
        capacity = sum(size for size in sizes if size is not None)
    of_base: list[float | None] = [] if base is None else [None]
    if base is not None and base.energy and got.energy is not None:
        of_base = [100 * (got.energy / base.energy)]
    cells = [
        point,
        *(shown.get(name) for name in (*NAMES, *plan.paths)),
        got.energy,
        hardware.energy_unit,
        None if got.energy is None else got.energy / shown["batch"],
        *of_base,
        *(got.parts or (None,) * len(PARTS)),
        got.compute,
        got.memory,
        capacity,
        _accuracy(plan, digits),
        None if got.reason else got.unproved,
        got.reason or None,
    ]
    return [_cell(cell) for cell in cells]


def _accuracy(plan: Plan, digits: Digits) -> float | None:
    """What is published for the network and method as they are bundled; their fields not moved."""
    if any(path.startswith(("network.", "method.")) for path in plan.paths):
        return None
    names = (plan.specs[root][plan.which(root, digits)].name for root in ("network", "method"))
    return accuracy_percent(*names)


def _cell(value: Any) -> object:
    """As it stands in a table: yes and no as in a file, lists as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, list) else value
