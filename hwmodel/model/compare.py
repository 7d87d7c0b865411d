"""Methods side by side on several chips, in percent of a baseline on the same chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import fsum
from pathlib import Path
from typing import NamedTuple, SupportsIndex, cast

from hwmodel.errors import DataError, HwmodelError, NoRoom
from hwmodel.graph.network import Network, zoo
from hwmodel.graph.zoo import family_arguments
from hwmodel.importers.load import load_network
from hwmodel.model.duration import UNTIMED, untimed
from hwmodel.model.evaluate import check_run
from hwmodel.model.ledger import Component, Part
from hwmodel.model.notebook import Lines
from hwmodel.model.optimal_tiles import OptimalTiles
from hwmodel.model.report import Report
from hwmodel.model.runs import Each, Reported, Run, reported
from hwmodel.model.traced import common_batch, see_alike, see_comparable
from hwmodel.model.workload import Mode
from hwmodel.specs import usual
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import expect, several
from hwmodel.specs.files import NamedSpec, Spec, bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.published import PublishedTable, energy_percent, published_table
from hwmodel.specs.trace import Trace, named
from hwmodel.work.problem import PASSES
from hwmodel.work.tensor import WAYS, Direction

__all__ = ["Comparison", "compare", "distinct", "line_of", "published_percent", "reproduce"]
__all__ += ["reproduced_run", "set_beside", "sized", "told_apart"]


class Comparison(NamedTuple):
    """One line of `hwmodel compare`; energies are in `unit`.

    The four passes sum to `energy`, and so do compute, memory and static; products and elementwise
    work of a pass sum to the pass. Where no tile fits, `energy` and what follows from it are None,
    and `reason` says where.
    """

    network: str
    method: str
    hardware: str
    accounting: str
    mode: str
    batch: int  # images of an iteration
    energy: float | None
    unit: str
    percent_of_baseline: float | None = None  # None where the baseline costs nothing
    forward: float | None = None  # with checkpoints both times
    backward_input: float | None = None
    backward_weight: float | None = None
    update: float | None = None  # all of it elementwise
    forward_product: float | None = None  # of the forward pass; likewise the next five
    forward_elementwise: float | None = None
    backward_input_product: float | None = None
    backward_input_elementwise: float | None = None
    backward_weight_product: float | None = None
    backward_weight_elementwise: float | None = None
    compute: float | None = None  # operations of all passes
    memory: float | None = None  # reads and writes of all passes
    static: float | None = None  # static energy, where a chip has cycles that it is paid by
    source_percent: float | None = None
    residual_percent: float | None = None  # of the published value: 100 (ours / source - 1)
    # The same work with optimal tiles, where the accounting's are greedy; None where not asked.
    energy_optimal_tiles: float | None = None
    percent_of_baseline_optimal_tiles: float | None = None
    peak_bytes: int | None = None  # of what lives at one time in the outermost memories
    time_overlapped_s: float | None = None  # of a chip that states rates; and the next three
    time_serial_s: float | None = None
    power_w: float | None = None  # of the overlapped time, as energy x time
    edp_js: float | None = None
    accumulate: int = 1  # iterations that the energy is of: gradients are added up for one update
    lacking_memory: str | None = None  # the outermost one that misses most; None: there is room
    lacking_bytes: int | None = None  # by how much what it has to hold exceeds it
    reason: str | None = None  # why there is no energy, or what is not proved of it; not in the CSV
    report: Report | None = None  # what the line was taken from; not in the CSV
    optimal: OptimalTiles | None = None  # None where tiles are optimal anyway; not in the CSV
    baseline: str | None = None  # what is 100 %: a method, if need be on a network; not in the CSV

    @property
    def images(self) -> int:
        """Images that the energy is of."""
        return self.batch * self.accumulate

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from all lines of other energies."""
        return (
            self.network,
            self.method,
            self.hardware,
            self.accounting,
            self.mode,
            self.batch,
            self.accumulate,
        )


class _Cell(NamedTuple):
    """One line that is asked for: its inputs, its baseline, and its published figure."""

    network: Network
    method: Method
    baseline_network: Network
    baseline: Method
    source_percent: float | None


class _Plan(NamedTuple):
    """Lines that share a chip, an accounting and a batch."""

    chip: Hardware
    accounting: Accounting
    cells: list[_Cell]
    batch: int


def compare(
    network: str | Path | Network,
    hardware: str | Path | Hardware | Sequence[str | Path | Hardware],
    methods: str | Path | Method | Sequence[str | Path | Method],
    *,
    baseline: str | Path | Method | None = None,
    baseline_network: str | Path | Network | None = None,
    accounting: str | Path | Accounting | Sequence[str | Path | Accounting] = usual.ACCOUNTING,
    batch: SupportsIndex | Sequence[SupportsIndex] | None = None,
    mode: Mode = "training",
    traces: Sequence[Trace] = (),
    optimal_tiles: bool = True,
    each: Each = map,
) -> Lines[Comparison]:
    """Give lines in the order given, by chip, by accounting, by batch, by method.

    They come as they are asked for, and can be used as the `pandas.DataFrame` of all, which is
    `.table`; `.plot()` is a figure.

    Everything is loaded before the first line is computed.

    Args:
        hardware, methods: one, or several.
        baseline: the method that is 100 %, by default each accounting's.
        baseline_network: the network that is 100 % under it, by default the same; another one has
            a line of its own, which comes first.
        accounting: one, or several to be set side by side.
        batch: images in an iteration, one number or several; by default those of the traces, else
            1. What is 100 % is of the same batch.
        traces: of training runs; a method takes what all runs by it measured, which differ in
            their seed.
        optimal_tiles: whether to say, where tiles are greedy, what optimal ones would cost.
        each: who computes the reports, which do not depend on it.

    Raises: HwmodelError, as `evaluate`.
    """
    network = load_network(network)
    chips = _loaded(Hardware, "hardware", hardware)
    rules = _loaded(Method, "methods", methods)
    choices = _loaded(Accounting, "accounting", accounting)
    for specs in (chips, rules, choices):
        distinct(specs)
    by_method = _by_method(traces)
    batches = _batches(common_batch(traces) or 1 if batch is None else batch, mode)
    for images in batches:
        see_comparable(traces, images)
    if baseline is not None:
        expect((str, Path, Method), "baseline", baseline, "a name, a path or a Method")
    references = [load(Method, c.baseline if baseline is None else baseline) for c in choices]
    for reference in references:
        told_apart(rules, reference)
    _see_compared(by_method, [*rules, *references])
    whole = network if baseline_network is None else load_network(baseline_network)
    if whole != network and whole.name == network.name:
        raise HwmodelError(
            f"two networks to compare are called {network.name!r}; "
            "give one of the files another name"
        )
    plan = [
        _Plan(chip, choice, _cells(network, whole, rules, chip, reference, images, mode), images)
        for chip in chips
        for choice, reference in zip(choices, references, strict=True)
        for images in batches
    ]
    return Lines(_lines(plan, mode, by_method, beside=optimal_tiles, each=each))


def _batches(given: SupportsIndex | Sequence[SupportsIndex], mode: Mode) -> list[int]:
    """Check one batch, or several. Raises: HwmodelError."""
    each = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    found = [check_run(one, mode) for one in each]
    if len({*found}) < max(1, len(found)):
        raise HwmodelError(f"batch {given!r}: must be a number, or several, none of them twice")
    return found


def _loaded(
    kind: type[Spec], name: str, given: str | Path | Spec | Sequence[str | Path | Spec]
) -> list[Spec]:
    """Load a spec of a name, path or value, or several. Raises: HwmodelError."""
    if isinstance(given, (str, Path, kind)):
        return [load(kind, given)]
    rule = f"a name, a path, a {kind.__name__}, or a list of them"
    return [load(kind, one) for one in several(name, cast(Sequence[Spec], given), rule)]


def _by_method(traces: Sequence[Trace]) -> dict[str, tuple[Trace, ...]]:
    """Sort traces by method. Raises: DataError where those of one differ in more than the seed."""
    found: dict[str, tuple[Trace, ...]] = {}
    for trace in several("traces", traces, "a list of Traces"):
        expect(Trace, "traces", trace, "a Trace, as read_trace gives it")
        found[trace.run.method] = (*found.get(trace.run.method, ()), trace)
    for runs in found.values():
        see_alike(runs)
    return found


def _see_compared(traces: Mapping[str, Sequence[Trace]], methods: Sequence[Method]) -> None:
    """See that every trace is of a method that is compared. Raises: DataError."""
    names = list(dict.fromkeys(method.name for method in methods))
    for method, (first, *_) in traces.items():
        if method not in names:
            raise DataError(
                f"the trace of {named(first.run)} is of none of the methods compared, "
                f"{', '.join(names)}"
            )


def _cells(
    network: Network,
    whole: Network,
    methods: Sequence[Method],
    chip: Hardware,
    reference: Method,
    batch: int,
    mode: Mode,
) -> list[_Cell]:
    """Lines of one chip under one accounting; a baseline of another network is the first."""
    if whole != network:
        first = _Cell(whole, reference, whole, reference, None)
        return [first, *(_Cell(network, m, whole, reference, None) for m in methods)]
    return [
        _Cell(network, m, network, reference,
              published_percent(network, m, chip, reference, batch, mode))
        for m in methods
    ]  # fmt: skip


def published_percent(
    network: Network, method: Method, chip: Hardware, reference: Method, batch: int, mode: Mode
) -> float | None:
    """Return the published percentage of the baseline; only bundled specs have one.

    The source states no batch; its figures are set beside iterations of one image.
    """
    if mode == "training" and batch == 1 and _bundled(network, method, chip, reference):
        return energy_percent(network.name, method.name, chip.name, reference.name)
    return None


def _bundled(network: Network, *specs: NamedSpec) -> bool:
    own = network.name in zoo() and network == load_network(network.name)
    return own and all(s.name in bundled(type(s)) and s == load(type(s), s.name) for s in specs)


def distinct(specs: Sequence[NamedSpec]) -> None:
    """See that lines can be told apart by name. Raises: HwmodelError."""
    names = [spec.name for spec in specs]
    for spec in specs:
        if names.count(spec.name) > 1:
            raise HwmodelError(
                f"two of the {type(spec).KIND}s to compare are called {spec.name!r}; "
                "give one of the files another name"
            )


def told_apart(methods: Sequence[Method], baseline: Method) -> None:
    """See that no other method is called as the baseline is. Raises: HwmodelError."""
    if any(method.name == baseline.name and method != baseline for method in methods):
        raise HwmodelError(
            f"a method to compare is called {baseline.name!r}, as the baseline is, and is another; "
            "give its file another name, or make it the baseline"
        )


def reproduce(
    table: str,
    *,
    accounting: Sequence[str | Path | Accounting] = ("paper", "full"),
    batch: SupportsIndex | None = None,
    optimal_tiles: bool = True,
    each: Each = map,
) -> Iterator[Comparison]:
    """Compute a published table row by row, on its chips, against its baseline.

    Rows that share network and method are one line; rows without a model have none.

    Args:
        batch: images of an iteration; by default as each accounting has it (`published_run`).

    Raises: NameUnknown; HwmodelError for arguments of another kind.
    """
    published = published_table(table)
    choices = _loaded(Accounting, "accounting", accounting)
    distinct(choices)
    runs = [reproduced_run(published, choice, batch) for choice in choices]
    percents = {f.modelled: f.energy_percent for f in published.figures[::-1] if f.modelled}
    methods = {method: load(Method, method) for _, method in published.modelled}
    reference = load(Method, published.baseline.method)

    def cells(chip: str, size: Size) -> list[_Cell]:
        whole = sized(published.baseline.network, size)
        found = []
        for network, method in published.modelled:
            percent = percents[network, method].get(chip)
            mine = sized(network, size), methods[method]
            found.append(_Cell(*mine, whole, reference, percent))
        return found

    plans = [
        _Plan(load(Hardware, chip), choice, cells(chip, size), images)
        for chip in published.chips
        for choice, (images, size) in zip(choices, runs, strict=True)
    ]
    return _lines(plans, "training", {}, beside=optimal_tiles, each=each)


Size = tuple[int, int] | None  # rows and columns of an image; None: the bundled network's


def reproduced_run(
    published: PublishedTable, choice: Accounting, batch: SupportsIndex | None
) -> tuple[int, Size]:
    """Return images of an iteration and their size, as an accounting takes them for a table."""
    stated = choice.published_run == "stated"
    images = ((published.run.batch if stated else None) or 1) if batch is None else batch
    return check_run(images, "training"), published.run.image if stated else None


def sized(network: str, size: Size) -> Network:
    """Load a bundled network at another image size, where it has another."""
    usual = family_arguments(network).get("image")
    pair = (usual, usual) if isinstance(usual, int) else usual and tuple(usual)
    if size is None or pair in (None, size):
        return load_network(network)
    return load_network(f"{network}@{size[0]}x{size[1]}")


def _lines(
    plans: list[_Plan],
    mode: Mode,
    traces: Mapping[str, tuple[Trace, ...]],
    *,
    beside: bool,
    each: Each = map,
) -> Iterator[Comparison]:
    """Set the reports of all runs in lines, each run computed once for a chip and batch."""

    def run(plan: _Plan, network: Network, method: Method) -> Run:
        its = traces.get(method.name, ())
        return Run(network, plan.chip, method, plan.accounting, plan.batch, mode, its, beside)

    runs = [[run(plan, *pair) for pair in _pairs(plan.cells)] for plan in plans]
    every = each(reported, [*chain.from_iterable(runs)])
    for plan, its in zip(plans, runs, strict=True):
        yield from _lines_of(plan, mode, zip(its, every, strict=False))


def _lines_of(
    plan: _Plan, mode: Mode, reports: Iterator[tuple[Run, Reported]]
) -> Iterator[Comparison]:
    """The lines of one chip, accounting and batch, each as soon as it and its baseline are there.

    Args:
        reports: of the runs of `_pairs`, in that order.
    """
    chip, choice, cells, batch = plan
    found: dict[tuple[str, str], Reported] = {}

    def reported_of(network: Network, method: Method) -> Reported:
        while (network.name, method.name) not in found:
            run, its = next(reports)
            found[run.network.name, run.method.name] = its
        return found[network.name, method.name]

    elsewhere = any(cell.network != cell.baseline_network for cell in cells)
    for cell in cells:
        whole = reported_of(cell.baseline_network, cell.baseline)
        mine = reported_of(cell.network, cell.method)
        if isinstance(mine, tuple):
            report, tiles = mine
            base, base_tiles = whole if isinstance(whole, tuple) else (None, None)
            line = line_of(report, base.energy if base else None, cell.source_percent)
            line = set_beside(line, tiles, base_tiles)
        else:
            names = cell.network.name, cell.method.name, chip.name, choice.name
            line = Comparison(*names, mode, batch, None, chip.unit, reason=str(mine))
            if isinstance(mine, NoRoom):
                lacking = mine.level, -(-mine.missing_bits // 8)
                line = line._replace(
                    peak_bytes=mine.peak_bytes, lacking_memory=lacking[0], lacking_bytes=lacking[1]
                )
        other = cell.baseline_network.name
        base_of = f"{cell.baseline.name} on {other}" if elsewhere else cell.baseline.name
        yield line._replace(baseline=base_of)


def _pairs(cells: Sequence[_Cell]) -> list[tuple[Network, Method]]:
    """Networks and methods of lines, each before the line that first needs it, once."""
    pairs = (
        pair
        for cell in cells
        for pair in ((cell.baseline_network, cell.baseline), (cell.network, cell.method))
    )
    return [*{(network.name, method.name): (network, method) for network, method in pairs}.values()]


def set_beside(
    line: Comparison, optimal: OptimalTiles | None, whole: OptimalTiles | None
) -> Comparison:
    """Set beside a line what optimal tiles would make of it."""
    if optimal is None:  # they are optimal
        return line._replace(
            energy_optimal_tiles=line.energy,
            percent_of_baseline_optimal_tiles=line.percent_of_baseline,
        )
    base = whole.energy if whole else None
    percent = 100 * (optimal.energy / base) if optimal.energy is not None and base else None
    return line._replace(
        energy_optimal_tiles=optimal.energy,
        percent_of_baseline_optimal_tiles=percent,
        optimal=optimal,
    )


def line_of(report: Report, whole: float | None, source: float | None = None) -> Comparison:
    """Make a line of a comparison of a report.

    Args:
        whole: energy of the baseline [the report's unit]; None or 0: there is no percentage.
        source: the published percentage.
    """
    percent = 100 * (report.energy / whole) if whole else None  # of itself exactly 100

    of = report.energies("way", "component")
    passes = report.energies("way")
    parts = report.energies("part", "direction")
    times = UNTIMED if report.untimed or untimed(report.hardware) else report.time.cells
    return Comparison(
        network=report.network.name,
        method=report.method.name,
        hardware=report.hardware.name,
        accounting=report.accounting.name,
        mode=report.mode,
        batch=report.batch,
        accumulate=report.images // report.batch,
        energy=report.energy,
        unit=report.unit,
        percent_of_baseline=percent,
        **{pass_: passes.get((pass_,), 0.0) for pass_ in WAYS},
        **{f"{pass_}_{part}": of.get((pass_, part), 0.0) for pass_ in PASSES for part in Component},
        **{part: fsum(parts.get((part, way), 0.0) for way in Direction) for part in Part},
        source_percent=source,
        residual_percent=100 * (percent / source - 1) if percent and source else None,
        peak_bytes=report.memory.peak().size,
        **times,
        lacking_memory=None,
        lacking_bytes=None,
        reason="; ".join(filter(None, (report.unproved, report.by_width, report.untimed))) or None,
        report=report,
        optimal=None,
        baseline=None,
    )
