"""A part of a sweep: some points in order, as lines of the table of results.

What is needed of a point is made from the plan where it is needed, and remembered: a part is sent
to a worker as the plan and its points' numbers.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, repeat
from math import fsum
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.model.duration import UNTIMED
from hwmodel.model.entries import search_options
from hwmodel.model.ledger import Component, Part
from hwmodel.model.plans import all_tasks
from hwmodel.model.workload import Job, Task
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.published import accuracy_percent
from hwmodel.tiling.options import Memories, memories
from hwmodel.vary.counted import Cost, Counted
from hwmodel.vary.paths import Known, replaced_all
from hwmodel.vary.sweep.plan import NAMES, Digits, Plan
from hwmodel.work.problem import PASSES
from hwmodel.work.tensor import WAYS, Kinds
from hwmodel.work.work import Multiply

__all__ = ["ENERGIES", "Memo", "Workload", "blocks", "chip_at", "columns", "on_chip_bits"]
__all__ += ["run_part", "searches", "work_at"]

# The columns of energies, each the sum of the groups of `counted.GROUPS` that agree with it.
ENERGIES: dict[str, tuple[tuple[int, str], ...]] = {
    **{pass_.value: ((0, pass_),) for pass_ in WAYS},
    **{f"{pass_}_{part}": ((0, pass_), (1, part)) for pass_ in PASSES for part in Component},
    **{part.value: ((3, part),) for part in Part},
}
_TILES = {"level-by-level": "greedy", "optimal": "optimal"}  # by the accounting's search
_COUNTED, _KNOWN = Counted(), Known()  # of this process
WORKLOADS = 64  # workloads that a process remembers
CHIPS = 4096  # chips that a process remembers; some ten kilobytes each


class Workload(NamedTuple):
    """What is done at a point, whatever the chip; or why it cannot be done."""

    job: Job | None = None
    network: Network | None = None
    tasks: tuple[Task, ...] = ()
    reason: str = ""


def columns(plan: Plan) -> dict[str, type]:
    """The columns of the results, and what stands in them."""
    percent = {"percent_of_baseline": float} if plan.baseline else {}
    energies = dict.fromkeys(ENERGIES, float)
    fields = {path: _type(plan.values(path)) for path in plan.paths}
    ends: dict[str, type] = {"capacity_bits": int, "published_accuracy_percent": float}
    ends |= {"tiles": str, "unproved_tilings": int}
    ends |= {"peak_bytes": int, **dict.fromkeys(UNTIMED, float)}
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
    try:
        inputs, mode = plan.work(outer)
        method = plan.baseline if as_baseline and plan.baseline else inputs.method
        job = Job(method, inputs.accounting, inputs.batch, mode)
        return Workload(job, inputs.network, all_tasks(inputs.network, job))
    except HwmodelError as error:
        return Workload(reason=str(error))


@lru_cache(maxsize=CHIPS)
def _chip(memo: Memo, which: int, settings: tuple[tuple[str, Any], ...]) -> Hardware | str:
    """A chip with some fields set; or why there is none."""
    fields = {path.partition(".")[2]: value for path, value in settings}
    base: Hardware = memo.plan.specs["hardware"][which]
    try:
        return replaced_all(base, fields, _KNOWN) if fields else base
    except HwmodelError as error:
        return str(error)


def chip_at(memo: Memo, digits: Digits) -> Hardware | str:
    """The chip of a point; or why there is none."""
    settings = memo.plan.settings("hardware", digits)
    which = memo.plan.which("hardware", digits)
    return _chip(memo, which, tuple((s.path, s.value) for s in settings))


def searches(plan: Plan, points: Sequence[int]) -> int:
    """How many tilings the points need, none of them counted twice."""
    memo = Memo(plan)
    problems: list[dict[Kinds, set[Hashable]]] = []  # of each block
    stands: dict[Memories, set[tuple[int, Kinds]]] = {}  # where a chip's memories stand
    for outer, several in blocks(plan, points):
        works = [work_at(memo, outer)]
        works += [work_at(memo, outer, as_baseline=True)] if plan.baseline else []
        problems.append(_problems(works))
        for _, digits in several:
            chip = chip_at(memo, digits)
            if isinstance(chip, Hardware):
                for kinds in problems[-1]:
                    places = memories(chip, kinds)
                    stands.setdefault(places, set()).add((len(problems) - 1, kinds))
    alike = Counter(frozenset(those) for those in stands.values())
    return sum(
        number * len(frozenset().union(*(problems[i][kinds] for i, kinds in those)))
        for those, number in alike.items()
    )


def _problems(works: Sequence[Workload]) -> dict[Kinds, set[Hashable]]:
    """The problems of some works, with the options of their searches, by what is multiplied."""
    found: dict[Kinds, set[Hashable]] = {}
    for work in works:
        for _, one, _ in work.tasks if work.job is not None else ():
            if work.job is not None and isinstance(one, Multiply):
                key = one.problem, search_options(work.job.accounting, one)
                found.setdefault(one.kinds, set()).add(key)
    return found


def run_part(plan: Plan, points: Sequence[int]) -> str:
    """The lines of some points: CSV without a header."""
    memo, stream = Memo(plan), io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for outer, several in blocks(plan, points):
        chips = [chip_at(memo, digits) for _, digits in several]
        ours = _costs(memo, outer, chips)
        whole: list[Cost] | list[None] = [None] * len(ours)
        if plan.baseline:
            whole = _costs(memo, outer, chips, as_baseline=True)
        alike = _alike(memo, outer)
        for (point, digits), chip, got, base in zip(several, chips, ours, whole, strict=True):
            writer.writerow(_line(plan, point, digits, chip, got, base, alike))
    return stream.getvalue()


class _Alike(NamedTuple):
    """What all lines of points share that begin with the same digits."""

    shown: dict[str, Any]
    accuracy: float | None  # that is published
    tiles: str | None
    images: int | None


def _alike(memo: Memo, outer: Digits) -> _Alike:
    plan, job = memo.plan, work_at(memo, outer).job
    tiles = _TILES[job.accounting.counting.search] if job else None
    shown = plan.shown(outer, [root for root in NAMES if root != "hardware"])
    return _Alike(shown, _accuracy(plan, outer), tiles, job.images if job else None)


def _costs(
    memo: Memo, outer: Digits, chips: Sequence[Hardware | str], *, as_baseline: bool = False
) -> list[Cost]:
    """What a workload costs on each chip, or why it has no cost."""
    work = work_at(memo, outer, as_baseline)
    good = [chip for chip in chips if isinstance(chip, Hardware)]
    found: Iterator[Cost] = repeat(Cost(reason=work.reason))
    if work.job is not None and work.network is not None:
        key = memo, outer, as_baseline
        found = iter(_COUNTED.costs(key, work.tasks, work.network, work.job, good))
    return [next(found) if isinstance(chip, Hardware) else Cost(reason=chip) for chip in chips]


def _line(
    plan: Plan,
    point: int,
    digits: Digits,
    chip: Hardware | str,
    got: Cost,
    base: Cost | None,
    alike: _Alike,
) -> list[object]:
    """One line, in the order of `columns`."""
    shown = alike.shown | plan.shown(digits, ["hardware"])
    hardware: Hardware = plan.specs["hardware"][plan.which("hardware", digits)]
    capacity = None
    if isinstance(chip, Hardware):
        hardware = chip
        capacity = on_chip_bits(hardware)
    of_base: list[float | None] = [] if base is None else [None]
    if base is not None and base.energy and got.energy is not None:
        of_base = [100 * (got.energy / base.energy)]
    cells = [
        point,
        *(shown.get(name) for name in (*NAMES, *plan.paths)),
        got.energy,
        hardware.unit,
        None if got.energy is None or alike.images is None else got.energy / alike.images,
        *of_base,
        *_energies(got),
        capacity,
        alike.accuracy,
        alike.tiles,
        None if got.reason else got.unproved,
        got.peak_bytes,
        *got.times.values(),
        got.reason or None,
    ]
    return [_cell(cell) for cell in cells]


def _energies(cost: Cost) -> list[float | None]:
    """The columns `ENERGIES`."""
    if cost.groups is None:
        return [None] * len(ENERGIES)
    energies = [*cost.groups.values()]
    return [fsum([energies[i] for i in those]) for those in _summed(tuple(cost.groups))]


@lru_cache(maxsize=WORKLOADS)
def _summed(groups: tuple[tuple[str, ...], ...]) -> list[list[int]]:
    """The places of the groups whose energies are summed in each of the columns of energies."""
    return [
        [i for i, group in enumerate(groups) if all(group[at] == word for at, word in wanted)]
        for wanted in ENERGIES.values()
    ]


def on_chip_bits(chip: Hardware) -> int:
    """Sum the capacities of the chip's own memories, each as often as it is there [bit]."""
    bits, several = 0, 1
    for level in chip.levels:
        several *= level.instances
        own = (one for one in level.buffers if chip.is_on_chip(one))
        bits += several * sum(one.capacity_bits or 0 for one in own)
    return bits


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
