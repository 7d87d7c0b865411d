"""The line itself: network, chip, method -> work -> mapping -> ledger -> prices -> table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import SupportsIndex

from hwmodel.errors import HwmodelError, SpecError, SpecWarning
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.model import widths
from hwmodel.model.attention_choice import Ways, cheaper_ways, in_ways
from hwmodel.model.entered import entered
from hwmodel.model.entries import (
    operated,
)
from hwmodel.model.memory import occupancy, see_room
from hwmodel.model.not_counted import (
    not_counted,
    of_zeros,
    on_chips,
    see_counted,
    tell_lanes,
    tell_unmodelled,
)
from hwmodel.model.plans import all_tasks, occupied, planned, prepared, run_name, teacher_schedule
from hwmodel.model.prices import Key, Prices, read_by
from hwmodel.model.report import Report
from hwmodel.model.residency.plan import Residency, residency, residency_levels
from hwmodel.model.traced import common_batch, fitted
from hwmodel.model.workload import MODES, Job, Mode, Task
from hwmodel.specs import usual
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import expect, path_of, several, whole, word
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.lately import lately
from hwmodel.specs.method import Method
from hwmodel.specs.trace import Trace, read_trace
from hwmodel.work.tensor import Direction
from hwmodel.work.work import Multiply, Operate

__all__ = ["attention_ways", "check_run", "evaluate", "read_traces", "staying_in", "ways_of"]

MAX_BATCH = 2**31


def evaluate(
    network: str | Path | Network,
    hardware: str | Path | Hardware,
    method: str | Path | Method,
    *,
    accounting: str | Path | Accounting = usual.ACCOUNTING,
    batch: SupportsIndex | None = None,
    mode: Mode = "training",
    trace: str | Path | Trace | Sequence[str | Path | Trace] | None = None,
) -> Report:
    """Compute the energy of one training iteration, or of one inference, of a batch.

    Names, paths to YAML files and values are accepted alike.

    Args:
        batch: images in the iteration; by default those of the traces, else 1.
        mode: "training" (all passes) or "inference" (forward only).
        trace: a trace of a training run of this network by this method, or its file, or several
            of different seeds; the widths of Boolean signals, votes, sums and accumulators that
            they measured and their flip rates take the place of the accounting's.

    Raises: HwmodelError, of which SpecError, NameUnknown, ShapeError and Infeasible are kinds.
    """
    network = load_network(network)
    chip = load(Hardware, hardware)
    method = load(Method, method)
    widths.tell_doubts(method)
    method.see_limited()
    choices = read_by(chip, load(Accounting, accounting))
    traces = read_traces("trace", trace)
    images = check_run(common_batch(traces) or 1 if batch is None else batch, mode)
    nodes = network.nodes(frozenset(method.omits))
    measured = fitted(traces, network, nodes, method, choices) if traces else None
    job = Job(method, choices, images, mode, measured)
    edges = prepared(network, job)[1]
    widths.tell_unread(method, nodes, edges)
    ways = attention_ways(network, job, chip)
    job = in_ways(job, ways)
    tasks = all_tasks(network, job)
    see_priced(tasks, Prices(chip, choices), method.name)
    if chip.is_bounded:
        see_room(chip, occupied(network, job), run_name(network, job))
    staying = staying_in(tasks, network, job, chip)
    if choices.counting.residency != "none" and not residency_levels(chip):
        warnings.warn(
            f"hardware {chip.name} has no memory in which tensors could stay from one layer to the "
            "next, so residency: tensors changes nothing there",
            SpecWarning,
            stacklevel=2,
        )
    ledger, tilings = entered(tasks, chip, choices, staying)
    see_counted(network, choices, (entry.pass_ for entry in ledger.entries))
    tell_unmodelled(network)
    products = (task.work for task in tasks if isinstance(task.work, Multiply))
    tell_lanes(chip, (work.problem.lane for work in products))
    missing = (*on_chips(not_counted(network, choices, mode), [chip], choices),)
    missing += tuple(of_zeros(network, edges.values(), chip))
    missing += tuple(widths.unpriced(method, choices)) if job.trains else ()
    return Report(
        network, chip, method, choices, images, mode, ledger, tilings, edges, missing, measured,
        traces, staying, ways,
    )  # fmt: skip


def see_priced(tasks: Iterable[Task], prices: Prices, method: str) -> None:
    """Refuse an operation that has no price, before anything is searched.

    Raises: SpecError, with the layer, the pass and the method that ask for it.
    """
    for task in tasks:
        try:
            _see_priced(task, prices)
        except SpecError as error:
            asks = f"{task.layer}, {task.work.pass_.replace('_', ' ')}, asks for it"
            raise SpecError(f"{error}; {asks} under method {method}") from None


def _see_priced(task: Task, prices: Prices) -> None:
    """Refuse an operation of one layer that has no price. Raises: SpecError."""
    chip, (layer, work, _) = prices.chip, task
    if isinstance(work, Multiply):
        adds = any(price.operation in ("add", "int-add") for price in chip.arithmetic)
        if work.I.bits == 1 and work.I.nonzero < 1 and chip.zeros != "none" and not adds:
            raise SpecError(
                f"hardware {chip.name}: zeros {chip.zeros} needs a price of an add or int-add, "
                f"which the spikes take that {layer} is fed"
            )
        for kind, bits, _, narrow, format_ in work.operations:
            prices.of(Key(Direction.OPERATE, kind, bits, narrow, format_))
        if work.expanded:
            prices.of(Key(Direction.OPERATE, "mac", work.full))
    elif isinstance(work, Operate):
        done = operated(layer, work, prices.accounting.widths.full_precision_bits)
        if done.elements:
            prices.of(done.key)


@lately(2)  # attention is tried in both ways, of which one is what the run takes
def staying_in(
    tasks: Sequence[Task], network: Network, job: Job, chip: Hardware, asked: Sequence[str] = ()
) -> Residency | None:
    """Choose what stays on a chip, where the accounting has it and the chip a memory for it.

    Args:
        asked: names of tensors that whoever asked takes, beside what the network gives.

    Raises: Infeasible, TooLarge, HwmodelError.
    """
    if job.accounting.counting.residency == "none":
        return None
    runs = [run for run in (teacher_schedule(job), planned(network, job)) if run]
    given = [*(name for run in runs for name in run.given), *asked]
    return residency(tasks, occupancy(runs), given, chip, job.accounting)


@lately(16)
def attention_ways(network: Network, job: Job, chip: Hardware) -> tuple[Ways, ...]:
    """Choose a way for each block of attention on a chip, where the cheaper is to be taken.

    Separate products are none where scores have no room in the outermost memories.
    """
    return ways_of(network, job, chip, lambda one: (all_tasks(network, one), ()))


def ways_of(
    network: Network,
    job: Job,
    chip: Hardware,
    work: Callable[[Job], tuple[Sequence[Task], Sequence[str]]],
) -> tuple[Ways, ...]:
    """Return `attention_ways` of what is done on a network.

    Args:
        work: of a job: its tasks, and the names of tensors that whoever asked takes.
    """

    def energies(tasks: Sequence[Task], one: Job) -> dict[str, float] | None:
        try:
            staying = staying_in(tasks, network, one, chip, work(one)[1])
            ledger, _ = entered(tasks, chip, one.accounting, staying)
        except HwmodelError:
            return None
        found = ledger.by("layer").energies(Prices(chip, one.accounting))
        return {layer: energy for (layer,), energy in found.items()}

    nodes, _ = prepared(network, job)
    ways = cheaper_ways(nodes, job, lambda one: work(one)[0], energies)
    own = in_ways(job, ways)
    if own.separate and chip.is_bounded:
        try:
            see_room(chip, occupied(network, own), "")
        except HwmodelError:
            return tuple(one._replace(separate=None, is_separate=False) for one in ways)
    return ways


def read_traces(
    name: str, given: str | Path | Trace | Sequence[str | Path | Trace] | None
) -> tuple[Trace, ...]:
    """Return traces, read from their files if need be.

    Args:
        name: of the argument.

    Raises: HwmodelError.
    """
    rule = "a path, a Trace, or a list of them"
    if given is None:
        return ()
    if isinstance(given, (str, Path, Trace)):
        given = [given]
    return tuple(_read(name, one, rule) for one in several(name, given, rule))


def _read(name: str, trace: str | Path | Trace, rule: str) -> Trace:
    if isinstance(trace, Trace):
        return trace
    expect((str, Path), name, trace, rule)
    return read_trace(path_of(name, trace))


def check_run(batch: SupportsIndex, mode: Mode) -> int:
    """Check a batch and a mode; return the batch. Raises: HwmodelError."""
    images = whole("batch", batch, 1, MAX_BATCH)
    word("mode", mode, MODES)
    return images
