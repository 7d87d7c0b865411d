"""Rows -> tables on screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import fsum, prod
from typing import TYPE_CHECKING

from hwmodel.graph.layers import Shape
from hwmodel.graph.network import INPUT
from hwmodel.model.compare import Comparison, Reached
from hwmodel.model.evaluate import Report
from hwmodel.model.ledger import Component
from hwmodel.model.widths import treatment
from hwmodel.rerun.tables import OPERATIONS, layer_sums, scale, what, whole_run
from hwmodel.specs.published import PublishedTable
from hwmodel.specs.quantity import not_to_compare
from hwmodel.specs.trace import Run
from hwmodel.specs.training import Training
from hwmodel.work.problem import PASSES
from hwmodel.work.tensor import Direction, Pass

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["comparison_tables", "moved_tables", "reached_tables", "report_tables"]
__all__ += ["reproduction_tables", "table", "tensor_table"]

# Headings -> fields of `Comparison` that are added up: the four passes sum to the energy, products
# and elementwise work do, and so do the last two.
_PARTS = {
    **{pass_.replace("_", " "): (pass_,) for pass_ in Pass},
    "products": tuple(f"{pass_}_{Component.PRODUCT}" for pass_ in PASSES),
    "elementwise": (*(f"{pass_}_{Component.ELEMENTWISE}" for pass_ in PASSES), Pass.UPDATE),
    "compute": ("compute",),
    "memory": ("memory",),
}


def _number(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)


def _scaled(energy: float | None, divisor: float) -> str:
    return "-" if energy is None else f"{energy / divisor:,.1f}"


def _sum(line: Comparison, fields: Iterable[str]) -> float | None:
    found = [getattr(line, field) for field in fields]
    return None if None in found else fsum(found)


def _least(energies: Iterable[float | None]) -> float:
    return min((energy for energy in energies if energy is not None), default=0.0)


def comparison_tables(
    lines: Sequence[Comparison], run: Training | None = None, *, parts: bool = True
) -> Iterator[RenderableType]:
    """Yield a table per chip and accounting; without `parts` it fits 80 columns."""
    from rich.text import Text

    shown = _PARTS if parts else {}
    for hardware, accounting in dict.fromkeys((line.hardware, line.accounting) for line in lines):
        here = [x for x in lines if (x.hardware, x.accounting) == (hardware, accounting)]
        first = here[0]
        divisor, unit = scale(_least(line.energy for line in here), first.unit)
        columns = [f"energy, {unit}", "% of baseline", "published %", "residual %", *shown]
        whole, whole_unit = scale(0.0, first.unit)
        if run is not None:
            whole, whole_unit = scale(_least(whole_run(x, run)[2] for x in here), first.unit)
            columns += [f"{run.name}, {whole_unit}", "kWh"]
        listed = table(
            f"{first.network} on {hardware}: energy of one {what(first.mode, first.batch)}, "
            f"accounting {accounting}",
            ["method"],
            columns,
        )
        for line in here:
            cells = [
                _scaled(line.energy, divisor),
                _number(line.percent_of_baseline),
                _number(line.source_percent),
                _number(line.residual_percent, "+.1f"),
                *(_scaled(_sum(line, fields), divisor) for fields in shown.values()),
            ]
            if run is not None:
                _, _, energy, kwh = whole_run(line, run)
                cells += [_scaled(energy, whole), _number(kwh, ".4g")]
            listed.add_row(line.method, *cells)
        yield listed
        yield from (Text(f"  {x.method}: {x.reason}") for x in here if x.reason)
    if mixed := not_to_compare(line.unit for line in lines):
        yield Text(f"{mixed[0].upper()}{mixed[1:]}; percentages are.\n")


def reproduction_tables(
    published: PublishedTable, lines: Sequence[Comparison]
) -> Iterator[RenderableType]:
    """Yield published and computed percentages, a table per chip, with the reasons known."""
    from rich.text import Text

    for chip in published.chips:
        here = [line for line in lines if line.hardware == chip]
        presets = list(dict.fromkeys(line.accounting for line in here))
        listed = table(
            f"{published.title} on {chip}: % of {published.baseline.network} under "
            f"{published.baseline.method}, one training iteration of batch {here[0].batch}",
            ["network", "method"],
            ["published", *(x for preset in presets for x in (preset, "residual %"))],
        )
        rows = [[line for line in here if line.accounting == preset] for preset in presets]
        for same in zip(*rows, strict=True):
            cells = [
                cell
                for line in same
                for cell in (
                    _number(line.percent_of_baseline),
                    _number(line.residual_percent, "+.1f"),
                )
            ]
            listed.add_row(same[0].network, same[0].method, _number(same[0].source_percent), *cells)
        yield listed
        for remark in published.remarks:
            if remark.hardware == chip:
                yield Text(f"  {', '.join(remark.methods)}: {remark.text}.\n")


def report_tables(report: Report) -> Iterator[RenderableType]:
    """Energy by layer and pass beside bit operations, then by pass and component, by memory."""
    divisor, unit = scale(report.energy, report.unit)
    head = (
        f"{report.network.name} on {report.hardware.name} under {report.method.name}: one "
        f"{what(report.mode, report.batch)}, accounting {report.accounting.name}, {unit}"
    )
    passes, sums = layer_sums(report)
    listed = table(head, ["layer"], [*(p.replace("_", " ") for p in passes), "sum", "%", "BOPs"])
    bops = report.bit_operations
    for layer, energies in sums.items():
        listed.add_row(layer, *_row(report, energies, divisor), f"{bops.get(layer, 0):,}")
    totals = [report.energies("pass")[(one,)] for one in passes]
    whole = f"{sum(bops.values()):,}"
    listed.add_row("all layers", *_row(report, totals, divisor), whole, style="bold")
    yield listed
    yield _pass_table(report, divisor, unit)
    yield _memory_table(report, divisor, unit)


def _row(report: Report, energies: Sequence[float], divisor: float) -> list[str]:
    """Energies, their sum, and its share of the whole."""
    total = fsum(energies)
    share = 100 * total / report.energy if report.energy else 0.0
    return [*(f"{energy / divisor:,.2f}" for energy in (*energies, total)), f"{share:.1f}"]


def _pass_table(report: Report, divisor: float, unit: str) -> Table:
    """Every pass, split into products and elementwise work."""
    listed = table(f"by pass, {unit}", ["pass"], ["products", "elementwise", "sum", "%"])
    cells = report.energies("pass", "component")
    for pass_ in Pass:
        energies = [cells.get((pass_, component), 0.0) for component in Component]
        if any(energies):
            listed.add_row(pass_.replace("_", " "), *_row(report, energies, divisor))
    return listed


def _memory_table(report: Report, divisor: float, unit: str) -> Table:
    """Bits and energy of every memory, outermost first, then the operations."""
    listed = table(
        f"by memory, {unit}", ["memory"],
        ["Mbit read", "Mbit written", "operations", "energy", "%"],
    )  # fmt: skip
    counts, energies = report.ledger.by("memory", "direction").groups, report.energies("memory")
    names = [buffer.name for level in report.hardware.levels for buffer in level.buffers]
    for name in (*names, ""):
        read, written, operations = (
            sum(counts.get((name, direction), {}).values()) for direction in Direction
        )
        listed.add_row(
            name or OPERATIONS,
            f"{read / 1e6:,.1f}",
            f"{written / 1e6:,.1f}",
            f"{operations:,}",
            *_row(report, [energies.get((name,), 0.0)], divisor)[1:],
        )
    return listed


def table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """Make an empty table: columns of words on the left, columns of numbers on the right."""
    from rich import box
    from rich.table import Table

    empty = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for word in words:
        empty.add_column(word, no_wrap=True)
    for number in numbers:
        empty.add_column(number, justify="right")
    return empty


def tensor_table(report: Report) -> Table:
    """Tabulate every tensor of every pass: shape for one image, width, bytes of the batch."""
    nodes = report.network.nodes(frozenset(report.method.omits))
    edges = report.edges
    listed = table(
        f"tensors of {report.network.name} under {report.method.name}, batch {report.batch}",
        ["tensor", "kind", "shape"],
        ["bits", "bytes forward", "signal bits", "bytes back"],
    )
    training = report.mode == "training"

    def add(name: str, kind: str, shape: Shape, images: int, edge: tuple[int, int]) -> None:
        size = images * prod(shape)
        there, back = (f"{-(-size * bits // 8):,}" for bits in edge)
        way_back = (str(edge[1]), back) if training and name != INPUT else ("-", "-")
        listed.add_row(name, kind, " x ".join(map(str, shape)), str(edge[0]), there, *way_back)

    add(INPUT, "network input", report.network.input, report.batch, edges[INPUT][:2])
    for node in nodes:
        layer = node.layer
        if node.weights:
            F = treatment(report.method, node, report.accounting)
            widths = F.weight_bits, F.weight_signal_bits
            add(f"{layer.name} F", "weights", (node.weights, 1, 1), 1, widths)
        add(layer.name, layer.kind, node.output_shape, report.batch, edges[layer.name][:2])
    return listed


def reached_tables(lines: Sequence[Comparison], ends: Sequence[Reached]) -> Iterator[Table]:
    """Tabulate accuracy at the end and energy to the accuracy asked for, a table a unit."""
    for one in dict.fromkeys(line.unit for line in lines):
        here = [(x, end) for x, end in zip(lines, ends, strict=True) if x.unit == one]
        divisor, unit = scale(_least(end.energy_to_accuracy for _, end in here), one)
        listed = table(
            "to a stated accuracy, as traced",
            ["method", "hardware", "accounting"],
            ["accuracy at the end, %", "to reach, %", "steps", f"energy to it, {unit}"],
        )
        for line, end in here:
            listed.add_row(
                line.method,
                line.hardware,
                line.accounting,
                _number(end.trace_accuracy_percent),
                _number(end.target_accuracy_percent),
                "-" if end.steps is None else f"{end.steps:,}",
                _scaled(end.energy_to_accuracy, divisor),
            )
        yield listed


def moved_tables(assumed: Report, measured: Report, run: Run) -> Iterator[RenderableType | str]:
    """Yield the measurements that replaced the accounting's assumptions, and their effect."""
    divisor, unit = scale(assumed.energy, assumed.unit)
    listed = table(
        f"assumed -> measured, {unit}",
        ["layer"],
        ["signal bits", "sum bits", "energy as assumed", "energy as traced"],
    )

    before, after = assumed.energies("layer"), measured.energies("layer")
    for name in [name for (name,) in before if name in assumed.edges]:
        old, new = assumed.edges[name], measured.edges[name]
        one, other = before[(name,)], after[(name,)]
        if (old, one) != (new, other):
            listed.add_row(
                name,
                f"{old.signal_bits} -> {new.signal_bits}",
                f"{old.sum_bits} -> {new.sum_bits}",
                f"{one / divisor:,.3f}",
                f"{other / divisor:,.3f}",
            )
    yield listed if listed.row_count else "the trace changes no width and no energy here"
    change = 100 * (measured.energy / assumed.energy - 1) if assumed.energy else 0.0
    yield (
        f"with the trace {measured.energy / divisor:,.2f} {unit}, assumed "
        f"{assumed.energy / divisor:,.2f} {unit} ({change:+.1f} %); accumulator widths and flip "
        "rates are in the energies\n"
        f"the trace is of {run.network} trained by {run.method} on {run.dataset}: layers take the "
        "figures of their name there, else of the Boolean layers of their kind\n"
    )
