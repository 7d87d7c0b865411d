"""Methods side by side on several chips, in percent of a baseline on the same chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import NamedTuple, SupportsIndex, cast

from hwmodel.errors import HwmodelError, Infeasible, TooLarge
from hwmodel.graph.network import Network, zoo
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import Report, check_run, evaluate
from hwmodel.model.ledger import Component
from hwmodel.model.workload import Mode
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import expect, several
from hwmodel.specs.files import NamedSpec, Spec, bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.published import energy_percent, published_table
from hwmodel.specs.trace import Trace, steps_to
from hwmodel.work.problem import PASSES
from hwmodel.work.tensor import Direction, Pass

__all__ = ["Comparison", "Reached", "compare", "distinct", "line_of", "published_percent"]
__all__ += ["reached", "reproduce"]


class Comparison(NamedTuple):
    """One line of `hwmodel compare`; energies are in `unit`.

    The four passes sum to `energy`, and so do compute and memory; products and elementwise work of
    a pass sum to the pass. Where no tile fits, `energy` and what follows from it are None, and
    `reason` says where.
    """

    network: str
    method: str
    hardware: str
    accounting: str
    mode: str
    batch: int
    energy: float | None
    unit: str
    percent_of_baseline: float | None = None  # None where the baseline costs nothing
    forward: float | None = None
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
    source_percent: float | None = None
    residual_percent: float | None = None  # of the published value: 100 (ours / source - 1)
    reason: str | None = None  # why there is no energy, or what is not proved of it; not in the CSV
    report: Report | None = None  # what the line was taken from; not in the CSV


class Reached(NamedTuple):
    """The accuracy and steps of a method's trace, beside its line; None where it has no trace."""

    trace_accuracy_percent: float | None  # at the end of the run, on the test images
    target_accuracy_percent: float | None
    steps: int | None  # until the target was first reached; None if it was not
    energy_to_accuracy: float | None  # steps times the energy of an iteration


class _Cell(NamedTuple):
    """One line that is asked for: its inputs, its baseline, and its published figure."""

    network: Network
    method: Method
    baseline_network: Network
    baseline: Method
    source_percent: float | None


def compare(
    network: str | Path | Network,
    hardware: str | Path | Hardware | Sequence[str | Path | Hardware],
    methods: str | Path | Method | Sequence[str | Path | Method],
    *,
    baseline: str | Path | Method | None = None,
    accounting: str | Path | Accounting | Sequence[str | Path | Accounting] = "paper",
    batch: SupportsIndex = 1,
    mode: Mode = "training",
    traces: Sequence[Trace] = (),
) -> Iterator[Comparison]:
    """Yield lines in the order given: by chip, by accounting, by method.

    Everything is loaded before the first line is computed.

    Args:
        hardware, methods: one, or several.
        baseline: the method that is 100 %, by default each accounting's.
        accounting: one, or several to be set side by side.
        traces: of training runs; a method that one of them was trained with takes its figures.

    Raises: HwmodelError, as `evaluate`.
    """
    network = load_network(network)
    chips = _loaded(Hardware, "hardware", hardware)
    rules = _loaded(Method, "methods", methods)
    choices = _loaded(Accounting, "accounting", accounting)
    for specs in (chips, rules, choices):
        distinct(specs)
    images = check_run(batch, mode)
    by_method = _by_method(traces)
    if baseline is not None:
        expect((str, Path, Method), "baseline", baseline, "a name, a path or a Method")
    references = [load(Method, c.baseline if baseline is None else baseline) for c in choices]
    plan = [
        (chip, choice, [_cell(network, m, chip, reference, images, mode) for m in rules])
        for chip in chips
        for choice, reference in zip(choices, references, strict=True)
    ]
    return _lines(plan, images, mode, by_method)


def _loaded(
    kind: type[Spec], name: str, given: str | Path | Spec | Sequence[str | Path | Spec]
) -> list[Spec]:
    """Load a spec of a name, path or value, or several. Raises: HwmodelError."""
    if isinstance(given, (str, Path, kind)):
        return [load(kind, given)]
    rule = f"a name, a path, a {kind.__name__}, or a list of them"
    return [load(kind, one) for one in several(name, cast(Sequence[Spec], given), rule)]


def _by_method(traces: Sequence[Trace]) -> dict[str, Trace]:
    """Index traces by method. Raises: HwmodelError where two are of one."""
    found: dict[str, Trace] = {}
    for trace in several("traces", traces, "a list of Traces"):
        expect(Trace, "traces", trace, "a Trace, as read_trace gives it")
        if trace.run.method in found:
            raise HwmodelError(f"traces: two of them are of method {trace.run.method}")
        found[trace.run.method] = trace
    return found


def reached(
    lines: Sequence[Comparison], traces: Sequence[Trace], target: float | None
) -> list[Reached]:
    """Return for each line the accuracy that its method's trace reached, and its energy.

    Args:
        target: accuracy that must be reached [share]; by default the lowest of the runs' ends, so
            that every method has reached it.
    """
    by_method = {trace.run.method: trace for trace in traces if trace.epochs}
    ends = {name: trace.epochs[-1].accuracy for name, trace in by_method.items()}
    goal = min(ends.values(), default=None) if target is None else target
    found = []
    for line in lines:
        trace = by_method.get(line.method)
        steps = None if trace is None or goal is None else steps_to(trace, goal)
        energy = None if steps is None or line.energy is None else steps * line.energy
        end = ends.get(line.method)
        found.append(
            Reached(
                None if end is None else 100 * end,
                None if trace is None or goal is None else 100 * goal,
                steps,
                energy,
            )
        )
    return found


def _cell(
    network: Network, method: Method, chip: Hardware, reference: Method, batch: int, mode: Mode
) -> _Cell:
    source = published_percent(network, method, chip, reference, batch, mode)
    return _Cell(network, method, network, reference, source)


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


def reproduce(
    table: str,
    *,
    accounting: Sequence[str | Path | Accounting] = ("paper", "full"),
    batch: SupportsIndex = 1,
) -> Iterator[Comparison]:
    """Compute a published table row by row, on its chips, against its baseline.

    Raises: NameUnknown; HwmodelError for arguments of another kind.
    """
    published = published_table(table)
    choices = _loaded(Accounting, "accounting", accounting)
    distinct(choices)
    images = check_run(batch, "training")
    baseline = load_network(published.baseline.network), load(Method, published.baseline.method)
    rows = [(load_network(f.network), load(Method, f.method), f) for f in published.figures]
    plan = [
        (
            load(Hardware, chip),
            choice,
            [_Cell(net, rule, *baseline, f.energy_percent.get(chip)) for net, rule, f in rows],
        )
        for chip in published.chips
        for choice in choices
    ]
    return _lines(plan, images, "training", {})


def _lines(
    plan: list[tuple[Hardware, Accounting, list[_Cell]]],
    batch: int,
    mode: Mode,
    traces: Mapping[str, Trace],
) -> Iterator[Comparison]:
    for chip, choice, cells in plan:

        def report(
            network: Network, method: Method, chip: Hardware = chip, choice: Accounting = choice
        ) -> Report:
            return evaluate(
                network, chip, method, accounting=choice, batch=batch, mode=mode,
                trace=traces.get(method.name),
            )  # fmt: skip

        wholes: dict[tuple[str, str], float | None] = {}
        for cell in cells:
            key = cell.baseline_network.name, cell.baseline.name
            try:
                if key not in wholes:
                    wholes[key] = None
                    wholes[key] = report(cell.baseline_network, cell.baseline).energy
                yield line_of(report(cell.network, cell.method), wholes[key], cell.source_percent)
            except (Infeasible, TooLarge) as error:
                names = cell.network.name, cell.method.name, chip.name, choice.name
                yield Comparison(*names, mode, batch, None, chip.unit, reason=str(error))


def line_of(report: Report, whole: float | None, source: float | None = None) -> Comparison:
    """Make a line of a comparison of a report.

    Args:
        whole: energy of the baseline [the report's unit]; None or 0: there is no percentage.
        source: the published percentage.
    """
    percent = 100 * (report.energy / whole) if whole else None  # of itself exactly 100

    of = report.energies("pass", "component")
    passes = report.energies("pass")
    directions = report.energies("direction")
    moved = [directions.get((word,), 0.0) for word in (Direction.READ, Direction.WRITE)]
    return Comparison(
        network=report.network.name,
        method=report.method.name,
        hardware=report.hardware.name,
        accounting=report.accounting.name,
        mode=report.mode,
        batch=report.batch,
        energy=report.energy,
        unit=report.unit,
        percent_of_baseline=percent,
        **{pass_: passes.get((pass_,), 0.0) for pass_ in Pass},
        **{f"{pass_}_{part}": of.get((pass_, part), 0.0) for pass_ in PASSES for part in Component},
        compute=directions.get((Direction.OPERATE,), 0.0),
        memory=fsum(moved),
        source_percent=source,
        residual_percent=100 * (percent / source - 1) if percent and source else None,
        reason="; ".join(filter(None, (report.unproved, report.by_width))) or None,
        report=report,
    )
