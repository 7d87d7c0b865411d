"""The line itself: network, chip, method -> work -> mapping -> ledger -> prices -> table."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from hwmodel.errors import HwmodelError, Infeasible, SpecError, SpecWarning, TooLarge, many
from hwmodel.graph.attended import past
from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.importers.load import load_network
from hwmodel.model import widths
from hwmodel.model.attention_choice import Ways, cheaper_ways
from hwmodel.model.duration import Duration, demands, duration
from hwmodel.model.entries import (
    AWAY,
    UNFINISHED,
    moved,
    multiplied,
    operated,
    search_options,
)
from hwmodel.model.ledger import NAME, Entry, Ledger
from hwmodel.model.measured import Measures
from hwmodel.model.memory import Occupancy, occupancy, see_room
from hwmodel.model.not_counted import (
    not_counted,
    of_chip,
    of_zeros,
    see_counted,
    tell_lanes,
    tell_unmodelled,
)
from hwmodel.model.notebook import html_table
from hwmodel.model.prices import Key, Prices
from hwmodel.model.progress import counted
from hwmodel.model.residency.plan import Residency, residency
from hwmodel.model.residency.products import NEAR
from hwmodel.model.schedule import Schedule, schedule
from hwmodel.model.traced import common_batch, fitted
from hwmodel.model.widths import Edge
from hwmodel.model.workload import MODES, Job, Mode, Task
from hwmodel.specs import usual
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import expect, path_of, several, whole, word
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.lately import lately
from hwmodel.specs.method import Method
from hwmodel.specs.trace import Trace, read_trace
from hwmodel.tiling.options import Memories, SearchOptions, memories
from hwmodel.tiling.spatial.asked import time
from hwmodel.tiling.tile import Tiling, tile
from hwmodel.work.tensor import Direction, Factor, Pass, TensorKind, plain, product
from hwmodel.work.work import Move, Multiply, Operate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "Report", "all_tasks", "attention_ways", "check_run", "entered", "evaluate"]
__all__ += ["in_ways", "occupied", "placed", "prepared", "read_traces", "run_name", "staying_in"]
__all__ += ["teacher_layer", "teacher_run", "tiled", "unproved"]

MAX_BATCH = 2**31
FEW = 3  # layers that a sentence names
COLUMNS = (
    "network", "hardware", "method", "accounting", "batch",
    *NAME, "bits", "elements", "count", "price", "energy", "unit",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Report:
    """The energy of one iteration (training) or one run (inference) of a batch, row by row."""

    network: Network
    hardware: Hardware
    method: Method
    accounting: Accounting
    batch: int
    mode: Mode
    ledger: Ledger
    tilings: tuple[tuple[Task, Tiling], ...]  # of every product, a teacher's among them
    edges: dict[str, Edge]  # width of every tensor, by the layer it comes from
    not_counted: tuple[str, ...]
    measured: Measures | None = None  # of traces, if the report took some
    traces: tuple[Trace, ...] = ()
    residency: Residency | None = None  # what stays on the chip; None: nothing may
    ways: tuple[Ways, ...] = ()  # of attention that takes the cheaper of two

    def __repr__(self) -> str:
        inputs = (self.network, self.hardware, self.method, self.accounting)
        names = ", ".join(spec.name for spec in inputs)
        return f"<Report {names}, batch {self.batch}: {self.energy:.6g} {self.unit}>"

    @cached_property
    def energy(self) -> float:
        """The sum of all entries [`unit`]."""
        return self.energies()[()]

    @property
    def prices(self) -> Prices:
        """The prices of the chip under the accounting."""
        return Prices(self.hardware, self.accounting)

    def energies(self, *columns: str) -> dict[tuple[str, ...], float]:
        """Energy [`unit`] of every group of entries that agree in some columns of `ledger.NAME`."""
        return self.ledger.by(*columns).energies(self.prices)

    @property
    def unit(self) -> str:
        """Unit of every energy: "pJ", or as in "MAC (fp32)" where a chip's costs are normalised."""
        return self.hardware.unit

    @property
    def images(self) -> int:
        """Images for one update: of one iteration, or of those whose gradients are added up."""
        return self.job.images

    @property
    def job(self) -> Job:
        """The job that the report is of."""
        job = Job(self.method, self.accounting, self.batch, self.mode, self.measured)
        return in_ways(job, self.ways)

    @cached_property
    def memory(self) -> Occupancy:
        """Every tensor of the run with the steps at which it lives; `.peak()` is the most bits."""
        return occupied(self.network, self.job)

    @cached_property
    def time(self) -> Duration:
        """Lower bound and serial time of the run. Raises: SpecError where the chip lacks rates."""
        asked = demands(self.ledger.entries)
        return duration(asked, self.hardware, self.images, self.energy)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Layers of the network as the method has them, at their places."""
        return self.network.nodes(frozenset(self.method.omits))

    @property
    def unproved(self) -> str:
        """A sentence on tilings that the optimal search did not prove; "" if there are none."""
        return unproved(self.tilings)

    @property
    def staying(self) -> str:
        """A sentence on what stays on the chip, its lower bound, and what is left; "" for none."""
        found = self.residency
        if found is None or not self.energy:
            return ""
        part = {one.name: one.part.kind for one in self.memory.tensors}
        outermost = {memory.name for memory in self.hardware.levels[0].buffers}
        left = fsum(
            energy
            for (memory, name), energy in self.energies("memory", "stored").items()
            if memory in outermost and name and name not in found.border
            and part.get(name.partition(" + ")[0]) in (TensorKind.MAPS, TensorKind.SIGNALS)
        )  # fmt: skip
        rest = self.energy - found.energy
        known = "prices fall outwards, so that no bound is known"
        if found.lower_bound is not None:
            gap = 100 * (1 - (found.lower_bound + rest) / self.energy)
            given = ", with attention run as it is here," if self.ways else ""
            known = f"no choice{given} costs less than {100 - gap:.2f} % of this (gap {gap:.2f} %)"
        return (
            f"{many(len(found.items), 'stay')} of tensors on the chip; {known}. Activations "
            f"through the outermost memory, but for what comes from outside or is given there: "
            f"{100 * left / self.energy:.1f} % (depth-first could save at most this)"
        )

    @property
    def attention(self) -> str:
        """A sentence on blocks of attention that run as separate products; "" if none does."""
        apart = [one for one in self.ways if one.is_separate]
        if not apart:
            return ""
        kernels = [one.kernel for one in apart if one.kernel is not None]
        less = "for which one kernel has no room"
        if len(kernels) == len(apart):
            share = 1 - fsum(one.separate or 0.0 for one in apart) / fsum(kernels)
            less = f"which cost {100 * share:.1f} % less than in one kernel"
            if share <= 0:
                less = "with which the run costs less than with one kernel"
        few = ", ".join(one.scores for one in apart[:FEW]) + ", ..." * (len(apart) > FEW)
        blocks = many(len(self.ways), "block")
        return f"attention: {len(apart)} of {blocks} as separate products, {less} ({few})"

    @property
    def by_width(self) -> str:
        """A sentence on prices that nobody states, made of the widths; "" if there are none."""
        found = self.prices.derived(self.ledger.keys)
        return found and f"prices that nobody states, by width (docs/model.md section 5): {found}"

    @property
    def bit_operations(self) -> dict[str, int]:
        """Bit operations of the products of each layer, in all passes of the report."""
        found: dict[str, int] = {}
        for task, _ in self.tilings:
            assert isinstance(task.work, Multiply)
            found[task.layer] = found.get(task.layer, 0) + task.work.bit_operations
        return found

    @property
    def idleness(self) -> str:
        """A sentence on how many MACs work, on a chip with an array; "" without.

        A MAC by padding is paid as an operation, and is no work: nothing is read for it.
        """
        chip = self.hardware
        if chip.array is None or not self.tilings:
            return ""
        made, could, paid, padded = 0, 0, 0, 0
        for task, tiling in self.tilings:
            assert isinstance(task.work, Multiply)
            places = memories(chip, task.work.kinds)
            options = search_options(self.accounting, task.work)
            taken = time(task.work.problem, tiling.mapping, places, options.rule)
            assert taken is not None
            met, macs = task.work.repeats * taken.products, product(task.work.macs)
            made += met
            could += task.work.repeats * taken.possible
            paid += macs
            padded += max(0, macs - met)
        share = f"{100 * made / could if could else 0:.1f} % of the MACs work"
        if padded:
            share += f"; {100 * padded / paid:.1f} % of those paid meet padding and are no work"
        free = "" if chip.static_energy else "; time is free here, the chip states no static energy"
        return f"utilisation: {share}{free}"

    @property
    def records(self) -> list[tuple[object, ...]]:
        """The tidy table as plain tuples in the order of `COLUMNS`: energy = count x price."""
        inputs = (self.network.name, self.hardware.name, self.method.name, self.accounting.name)
        paid = {key: self.prices.value(key) for key in self.ledger.by().keys}
        return [
            (
                *inputs, self.batch, *map(str, entry.name), plain(entry.bits), entry.elements,
                entry.count, paid[entry.key], entry.count * paid[entry.key], self.unit,
            )
            for entry in self.ledger.entries
        ]  # fmt: skip

    @property
    def table(self) -> pd.DataFrame:
        """The tidy table: one row for every entry of the ledger."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=list(COLUMNS))

    def plot(self, kind: str = "", **look: Any) -> Any:
        """Draw it: `layers`, `levels`, `passes`, `level-tensor` or `roofline`; `hwmodel.plot`."""
        import hwmodel

        return hwmodel.plot(self, kind, **look)

    def _repr_html_(self) -> str:
        """Show the energy by layer and pass; whatever a name holds is text."""
        cells, layers = self.energies("layer", "pass"), self.energies("layer")
        passes = [one for one in Pass if any(pass_ == one for _, pass_ in cells)]
        rows = [
            (layer, *(f"{cells.get((layer, one), 0.0):,.4g}" for one in passes), f"{total:,.4g}",
             f"{100 * total / self.energy if self.energy else 0.0:.1f}")
            for (layer,), total in layers.items()
        ]  # fmt: skip
        head = ("layer", *(one.replace("_", " ") for one in passes), f"sum, {self.unit}", "%")
        return html_table(f"{self!r}"[1:-1] + ", analytical, not measured", head, rows)

    def by(self, *columns: str) -> pd.Series[float]:
        """Energy [`unit`] summed over all but `columns` of the table, in order of appearance."""
        import pandas as pd

        unknown = [column for column in columns if column not in NAME]
        if unknown or not columns:
            raise HwmodelError(f"by{columns}: give columns of the table, {', '.join(NAME)}")
        found = self.energies(*columns)
        labels = [list(map(str, column)) for column in zip(*found, strict=True)]
        several = len(columns) > 1
        index = (
            pd.MultiIndex.from_arrays(labels, names=columns)
            if several
            else pd.Index(labels[0], name=columns[0])
        )
        return pd.Series(list(found.values()), index=index, name="energy", dtype=float)


def unproved(tilings: Sequence[tuple[Task, Tiling]]) -> str:
    """Say how many tilings the optimal search did not prove; "" if there are none."""
    gaps = [t.certificate.gap for _, t in tilings if t.certificate and t.certificate.gap]
    if not gaps:
        return ""
    wide = [gap for gap in gaps if gap > NEAR]
    found = f"{len(gaps)} of {len(tilings)} tilings are not proved optimal"
    if not wide:
        return f"{found}: the largest gap to a lower bound is not above {100 * NEAR:.2f} %"
    near = f", {len(gaps) - len(wide)} of them within {100 * NEAR:.2f} %" * (len(wide) < len(gaps))
    return f"{found}{near}: the largest gap to a lower bound is {100 * max(gaps):.1f} %"


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
    choices = load(Accounting, accounting)
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
    if staying is None and choices.counting.residency != "none":
        warnings.warn(
            f"hardware {chip.name} has no memory in which tensors could stay: residency tensors "
            "costs what none does",
            SpecWarning,
            stacklevel=2,
        )
    ledger, tilings = entered(tasks, chip, choices, staying)
    see_counted(network, choices, (entry.pass_ for entry in ledger.entries))
    tell_unmodelled(network)
    products = (task.work for task in tasks if isinstance(task.work, Multiply))
    tell_lanes(chip, (work.problem.bits for work in products))
    missing = (*not_counted(network, choices, mode), *of_chip(chip, choices))
    missing += tuple(of_zeros(network, edges.values(), chip))
    missing += tuple(widths.unpriced(method, choices)) if job.trains else ()
    return Report(
        network, chip, method, choices, images, mode, ledger, tilings, edges, missing, measured,
        traces, staying, ways,
    )  # fmt: skip


@lately(16)
def prepared(network: Network, job: Job) -> tuple[tuple[Node, ...], dict[str, Edge]]:
    """Return the layers of a network that a job has, and the width of every tensor.

    Raises: HwmodelError for training where everything is frozen.
    """
    nodes = network.nodes(frozenset(job.method.omits))
    if job.trains and not job.method.trains:
        raise HwmodelError(f"method {job.method.name} is for inference; use --mode inference")
    behind = next((node.layer.name for node in nodes if past(node.layer)), None)
    if job.trains and behind:
        raise HwmodelError(
            f"{network.name}: layer {behind} has a past in a cache, which training has not; use "
            "--mode inference"
        )
    kept = next((node.layer.name for node in nodes if node.layer.checkpoint), None)
    if not job.trains and kept:
        raise HwmodelError(
            f"{network.name}: layer {kept} is a checkpoint, for the way back, which inference has "
            "not; use --mode training, or no checkpoint"
        )
    frozen = any(node.layer.frozen and (node.weights or node.other_parameters) for node in nodes)
    if job.trains and frozen and not any(node.learns for node in nodes):
        raise HwmodelError(f"{network.name}: nothing in it learns; use --mode inference")
    return nodes, widths.edges(job.method, nodes, job.accounting, job.measured)


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
    runs = [run for run in (_teacher(job), planned(network, job)) if run]
    given = [*(name for run in runs for name in run.given), *asked]
    return residency(tasks, occupancy(runs), given, chip, job.accounting)


@lately(16)
def attention_ways(network: Network, job: Job, chip: Hardware) -> tuple[Ways, ...]:
    """Choose a way for each block of attention on a chip, where the cheaper is to be taken.

    Separate products are none where scores have no room in the outermost memories.
    """

    def energies(tasks: Sequence[Task], one: Job) -> dict[str, float] | None:
        try:
            staying = staying_in(tasks, network, one, chip)
            ledger, _ = entered(tasks, chip, one.accounting, staying)
        except HwmodelError:
            return None
        found = ledger.by("layer").energies(Prices(chip, one.accounting))
        return {layer: energy for (layer,), energy in found.items()}

    nodes, _ = prepared(network, job)
    ways = cheaper_ways(nodes, job, partial(all_tasks, network), energies)
    own = in_ways(job, ways)
    if own.separate and chip.is_bounded:
        try:
            see_room(chip, occupied(network, own), "")
        except HwmodelError:
            return tuple(one._replace(separate=None, is_separate=False) for one in ways)
    return ways


def in_ways(job: Job, ways: Iterable[Ways]) -> Job:
    """Return a job whose attention runs in the ways that cost less."""
    separate = frozenset(one.scores for one in ways if one.is_separate)
    return job._replace(separate=separate) if separate else job


@lately(4)
def entered(
    tasks: Sequence[Task],
    chip: Hardware,
    accounting: Accounting,
    staying: Residency | None = None,
) -> tuple[Ledger, tuple[tuple[Task, Tiling], ...]]:
    """Tile and enter a workload on a chip: return its ledger, and the tiling of each product.

    Args:
        staying: what stays on the chip, with tilings beside it.

    Raises: Infeasible, TooLarge; they name the layer.
    """
    places = cache(partial(memories, chip))  # by the kinds of what is at I, F and O
    full = accounting.widths.full_precision_bits
    products = [(n, t, t.work) for n, t in enumerate(tasks) if isinstance(t.work, Multiply)]
    tilings = {
        number: staying.tilings[number].tiling
        if staying
        else tiled(task, places(work.kinds), search_options(accounting, work), chip.name)
        for number, task, work in counted("products", products, len(products))
    }
    entries: list[Entry] = []
    for number, task in enumerate(tasks):
        layer, work, at = task
        stay = staying.stays.get(number, AWAY) if staying else AWAY
        if isinstance(work, Multiply):
            options, here = search_options(accounting, work), places(work.kinds)
            nest = tilings[number].mapping
            found = list(multiplied(layer, work, nest, here, options, at, stay))
            if work.kinds[2] == TensorKind.GRADIENTS and not work.leaves:
                _see_whole(found, {memory.name for memory in here.levels[-1].buffers})
        elif isinstance(work, Move):
            found = list(moved(layer, work, places(work.kinds), at, stay))
        else:
            found = [operated(layer, work, full, at)]
        again = () if at.times == 1 else (Factor("iterations", at.times, "for one update"),)
        entries += (entry.again(again) for entry in found if entry.elements)
    return Ledger(tuple(entries)), tuple((tasks[n], tiling) for n, tiling in tilings.items())


def _see_whole(entries: Sequence[Entry], innermost: Set[str]) -> None:
    """See that sums of a gradient used as it is made end innermost. Raises: HwmodelError.

    Args:
        innermost: names of the memories of the innermost level.
    """
    outside = {one.memory: one.layer for one in entries if one.role in UNFINISHED and one.memory}
    for memory, layer in outside.items():
        if memory not in innermost:
            raise HwmodelError(
                f"update_order fused: sums of the gradient of {layer} leave unfinished to "
                f"{memory}, so that no weight can be stepped as they are made"
            )


def tiled(task: Task, places: Memories, options: SearchOptions, chip: str) -> Tiling:
    """Tile a task's product. Raises: Infeasible, TooLarge; they name layer and chip."""
    assert isinstance(task.work, Multiply)
    with placed(task, chip):
        return tile(task.work.problem, places, options)


@contextmanager
def placed(task: Task, chip: str) -> Iterator[None]:
    """Name the layer and the chip in an error of tiling a task."""
    try:
        yield
    except (Infeasible, TooLarge) as error:
        error.where = f"{task.layer}, {task.work.pass_} on {chip}"
        raise


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


@lately(16)  # chips, tables of energy and of memory ask for the same ones
def planned(network: Network, job: Job, prefix: str = "") -> Schedule:
    """Return the schedule of a job on a network.

    Args:
        prefix: of the names of layers and tensors, where several networks run.

    Raises: HwmodelError.
    """
    return schedule(*prepared(network, job), job, prefix)


def all_tasks(network: Network, job: Job) -> tuple[Task, ...]:
    """List the work of a job on a network, with the forward pass of its teacher at the end.

    In the schedule the teacher comes first, counted or not.
    """
    mine, taught = planned(network, job), _teacher(job)
    if taught is None:
        return mine.tasks
    before = len(taught.steps)
    later = (task._replace(at=task.at._replace(step=task.at.step + before)) for task in mine.tasks)
    extras = job.accounting.extras
    again = (t._replace(at=t.at._replace(times=extras.accumulate)) for t in taught.tasks)
    return (*later, *(again if extras.teacher else ()))


def _teacher(job: Job) -> Schedule | None:
    """Return the run of a distilling method's teacher, whose names begin with its network's."""
    extras = job.accounting.extras.model_copy(update={"teacher": True})
    accounting = job.accounting.model_copy(update={"extras": extras})
    found = teacher_run(job._replace(accounting=accounting))
    if found is None:
        return None
    network, run = found
    return planned(network, run, teacher_layer(network, ""))


def occupied(network: Network, job: Job) -> Occupancy:
    """Return what a job on a network keeps in the outermost memories, its teacher's run first."""
    runs = _teacher(job), planned(network, job)
    return occupancy([run for run in runs if run])


def run_name(network: Network, job: Job) -> str:
    """Name a run in a message."""
    images = many(job.batch, "image")
    return f"{network.name} under {job.method.name}, {job.mode} of {images},"


def teacher_run(job: Job) -> tuple[Network, Job] | None:
    """Return the network that a distilling method learns from, and its run, which is forward."""
    teacher = job.method.teacher
    if not (job.accounting.extras.teacher and teacher and job.trains):
        return None
    network, method = load_network(teacher.network), load(Method, teacher.method)
    return network, Job(method, job.accounting, job.batch, "inference")


def teacher_layer(network: Network, layer: str) -> str:
    """Name a teacher's layer, NETWORK:LAYER: a colon is in no name of a user's."""
    return f"{network.name}:{layer}"


def check_run(batch: SupportsIndex, mode: Mode) -> int:
    """Check a batch and a mode; return the batch. Raises: HwmodelError."""
    images = whole("batch", batch, 1, MAX_BATCH)
    word("mode", mode, MODES)
    return images
