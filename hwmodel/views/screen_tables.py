"""Rows -> tables on screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import fsum, prod
from typing import TYPE_CHECKING, NamedTuple

from hwmodel.graph.layers import Shape
from hwmodel.graph.network import INPUT
from hwmodel.graph.node import Node
from hwmodel.model.compare import Comparison
from hwmodel.model.ledger import OPERATIONS, PLACES, Component
from hwmodel.model.reached import Reached
from hwmodel.model.report import Report
from hwmodel.model.widths import limits_of, treatment
from hwmodel.rerun.tables import (
    common_scale,
    decimals_of,
    fixed,
    greedy_notes,
    layer_sums,
    of_batches,
    scale,
    what,
    whole_run,
)
from hwmodel.specs.limits import AccumulatorWidth, TensorWidth
from hwmodel.specs.trace import HOLDS
from hwmodel.specs.training import Training
from hwmodel.views.colours import baseline_of, called
from hwmodel.views.remarks import asides, said_of
from hwmodel.work.problem import PASSES
from hwmodel.work.tensor import WAYS, Bits, Direction, Pass, shown, whole_bits

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["comparison_tables", "has_optimal", "moved_tables", "of_runs", "reached_tables"]
__all__ += ["report_tables", "table", "tensor_table"]

# Headings -> fields of `Comparison` that are added up: the four passes sum to the energy, products
# and elementwise work do, and so do the last two.
_PARTS = {
    **{pass_.replace("_", " "): (pass_,) for pass_ in WAYS},
    "products": tuple(f"{pass_}_{Component.PRODUCT}" for pass_ in PASSES),
    "elementwise": (*(f"{pass_}_{Component.ELEMENTWISE}" for pass_ in PASSES), Pass.UPDATE),
    "compute": ("compute",),
    "memory": ("memory",),
    "static": ("static",),
}


GAP = 3  # characters between columns
WIDEST = 10_000  # of a line that nobody's screen breaks


def _number(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)


def _scaled(energy: float | None, divisor: float, decimals: int = 1) -> str:
    return "-" if energy is None else fixed(energy / divisor, decimals)


def _sum(line: Comparison, fields: Iterable[str]) -> float | None:
    found = [getattr(line, field) for field in fields]
    return None if None in found else fsum(found)


def _part(line: Comparison, part: str) -> float | None:
    """The energy of a part; None where there is none, and of static energy that is not in it."""
    energy = _sum(line, _PARTS[part])
    return None if part == "static" and not energy else energy


class _Column(NamedTuple):
    """Numbers of a comparison below each other, one a line."""

    heading: str
    cells: list[str]
    rank: int = 0  # of what a narrow screen leaves out, the highest first; 0: nothing

    @property
    def width(self) -> int:
        """The least room that it takes [characters]: headings break at spaces, numbers nowhere."""
        return max(map(len, (*self.heading.split(), *self.cells))) + GAP


def comparison_tables(
    lines: Sequence[Comparison], run: Training | None = None, *, room: int = WIDEST
) -> Iterator[RenderableType]:
    """Yield a table per chip and accounting; what is beyond the room is named below it.

    Args:
        room: width of the screen [characters].
    """
    from rich.text import Text

    places = list(dict.fromkeys((line.hardware, line.accounting) for line in lines))
    for hardware, accounting in places:
        here = [x for x in lines if (x.hardware, x.accounting) == (hardware, accounting)]
        networks = list(dict.fromkeys(line.network for line in here))
        words = [_Column("method", [called(line.method) for line in here])]
        if len(networks) > 1:
            words.insert(0, _Column("network", [called(line.network, "network") for line in here]))
        if len({line.batch for line in here}) > 1:
            words.append(_Column("batch", [f"{line.batch:,}" for line in here]))
        every = [*_energies(here, lines), *_parts(here, lines), *_whole(here, lines, run)]
        columns = _fitting(every, room - sum(word.width for word in words) - 1)
        listed = table(
            f"{' and '.join(called(name, 'network') for name in networks)} on "
            f"{called(hardware, 'hardware')}: "
            f"energy of one {of_batches(here)}, accounting {accounting}"
            + (", tiles greedy" if any(line.optimal for line in here) else ""),
            [word.heading for word in words],
            [column.heading for column in columns],
        )
        for row in zip(*(column.cells for column in (*words, *columns)), strict=True):
            listed.add_row(*row)
        yield listed
        if left := [column.heading for column in every if column not in columns]:
            yield Text(f"  No room here for {'; '.join(left)}: widen the screen, or --csv -")
        yield from (Text(f"  {text}") for text in asides(here))
        yield from (Text(f"  {text}") for text in greedy_notes(here, called))
    if places[1:]:
        yield Text(f"{said_of(lines)}.\n")


def _fitting(columns: Sequence[_Column], room: int) -> list[_Column]:
    """Leave out columns until the others fit, or none is left that may be."""
    kept = list(columns)
    while sum(column.width for column in kept) > room:
        last = max(kept, key=lambda column: column.rank)
        if not last.rank:
            break
        kept.remove(last)
    return kept


def _energies(here: Sequence[Comparison], lines: Sequence[Comparison]) -> Iterator[_Column]:
    """Yield energies and percentages of one chip's lines, in one unit with those of all chips."""
    unit = here[0].unit
    alike = [line for line in lines if line.unit == unit]
    divisor, its, decimals = common_scale((line.energy for line in alike), unit)
    yield _Column(f"energy, {its}", [_scaled(line.energy, divisor, decimals) for line in here])
    if any(line.images > 1 for line in here):
        shares = (line.energy / line.images for line in alike if line.energy)
        of_image = max(2, decimals_of(min(shares, default=0.0) / divisor))
        yield _Column(f"an image, {its}", [_each(line, divisor, of_image) for line in here])
    percents = [_number(line.percent_of_baseline) for line in here]
    yield _Column(f"% of {baseline_of(here[0])}", percents)
    if has_optimal(here):
        energies = [_scaled(line.energy_optimal_tiles, divisor, decimals) for line in here]
        yield _Column(f"optimal tiles, {its}", energies)
        percents = [_number(line.percent_of_baseline_optimal_tiles) for line in here]
        yield _Column("optimal tiles, %", percents)
    if any(line.source_percent is not None for line in here):
        yield _Column("published %", [_number(line.source_percent) for line in here])
        yield _Column("residual %", [_number(line.residual_percent, "+.1f") for line in here])


def _parts(here: Sequence[Comparison], lines: Sequence[Comparison]) -> Iterator[_Column]:
    """Yield what the energies are made of, the peak and the time: the first have room the last."""
    unit = here[0].unit
    alike = (line.energy for line in lines if line.unit == unit)
    divisor, _, decimals = common_scale(alike, unit)
    static = any(line.static for line in lines)
    for rank, part in enumerate(_PARTS):
        if static or part != "static":
            cells = [_scaled(_part(line, part), divisor, decimals) for line in here]
            yield _Column(part, cells, rank=len(_PARTS) - rank + 3)
    peaks = [line.peak_bytes for line in lines if line.peak_bytes]
    size, its = (2**10, "KiB") if min(peaks, default=2**20) < 2**20 / 10 else (2**20, "MiB")
    yield _Column(f"peak, {its}", [_scaled(line.peak_bytes, size) for line in here], rank=1)
    if any(line.time_overlapped_s is not None for line in here):
        times = [line.time_overlapped_s for line in here]
        cells = [_number(t and 1e3 * t, ".4g") for t in times]
        yield _Column("time, ms, overlapped", cells, rank=2)
        cells = [_number(line.time_serial_s and 1e3 * line.time_serial_s, ".4g") for line in here]
        yield _Column("serial", cells, rank=3)


def _whole(
    here: Sequence[Comparison], lines: Sequence[Comparison], run: Training | None
) -> Iterator[_Column]:
    """Yield the energy of a whole training run, if one is asked."""
    if run is None:
        return
    unit = here[0].unit
    alike = (whole_run(line, run)[2] for line in lines if line.unit == unit)
    divisor, its, decimals = common_scale(alike, unit)
    mine = [whole_run(line, run) for line in here]
    yield _Column(f"{run.name}, {its}", [_scaled(one[2], divisor, decimals) for one in mine])
    yield _Column("kWh", [_number(one[3], ".4g") for one in mine])


def _each(line: Comparison, divisor: float, decimals: int) -> str:
    """The energy of one image of a batch."""
    each = None if line.energy is None else line.energy / line.images
    return _scaled(each, divisor, decimals)


def has_optimal(lines: Iterable[Comparison]) -> bool:
    """Say whether figures with optimal tiles stand beside greedy ones."""
    return any(line.optimal and line.optimal.energy is not None for line in lines)


def report_tables(report: Report) -> Iterator[RenderableType]:
    """Energy by layer and pass beside bit operations, then by pass and component, by memory."""
    divisor, unit = scale(report.energy, report.unit)
    head = (
        f"{called(report.network.name, 'network')} on "
        f"{called(report.hardware.name, 'hardware')} under {called(report.method.name)}: one "
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
    if report.batch > 1:
        each = _row(report, [energy / report.images for energy in totals], divisor)[:-1]
        listed.add_row("an image", *each, "", "", style="bold")
    yield listed
    yield _pass_table(report, divisor, unit)
    yield _memory_table(report, divisor, unit)


def _row(report: Report, energies: Sequence[float], divisor: float) -> list[str]:
    """Energies, their sum, and its share of the whole."""
    total = fsum(energies)
    share = 100 * total / report.energy if report.energy else 0.0
    return [*(fixed(energy / divisor, 2) for energy in (*energies, total)), f"{share:.1f}"]


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
    """Bits and energy of every memory, outermost first, then the operations, and time.

    Hops into the memories of a split level stand under the level's own name.
    """
    counts, energies = report.ledger.by("place", "direction").groups, report.energies("place")
    ways = {Direction.READ: "Mbit read", Direction.WRITE: "Mbit written"}
    if any(level.instances > 1 for level in report.hardware.levels):
        ways[Direction.HOP] = "Mbit on hops"
    listed = table(f"by memory, {unit}", ["memory"], [*ways.values(), "operations", "energy", "%"])
    names = [buffer.name for level in report.hardware.levels for buffer in level.buffers]
    hops = [level.name for level in report.hardware.levels if (level.name,) in energies]
    cycles = [place for place in PLACES if place != OPERATIONS and energies.get((place,))]
    for name in dict.fromkeys([*names, *hops, OPERATIONS, *cycles]):
        moved = [sum(counts.get((name, way), {}).values()) for way in ways]
        done = counts.get((name, Direction.OPERATE), {})
        cells = [*(f"{bits / 1e6:,.1f}" for bits in moved), f"{sum(done.values()):,}"]
        share = _row(report, [energies.get((name,), 0.0)], divisor)[1:]
        listed.add_row(name, *([""] * len(cells) if name in cycles else cells), *share)
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
        f"tensors of {called(report.network.name, 'network')} under "
        f"{called(report.method.name)}, batch {report.batch}",
        ["tensor", "kind", "shape"],
        ["bits", "bytes forward", "signal bits", "bytes back"],
    )
    training = report.mode == "training"

    def add(name: str, kind: str, shape: Shape, images: int, edge: tuple[Bits, Bits]) -> None:
        size = images * prod(shape)
        there, back = (f"{-(-whole_bits(size, bits) // 8):,}" for bits in edge)
        way_back = (shown(edge[1]), back) if training and name != INPUT else ("-", "-")
        listed.add_row(name, kind, " x ".join(map(str, shape)), shown(edge[0]), there, *way_back)

    add(INPUT, "network input", report.network.input, report.batch, edges[INPUT][:2])
    for node in nodes:
        layer = node.layer
        if node.weights:
            F = treatment(report.method, node, report.accounting, report.measured)
            widths = F.weight_bits, F.weight_signal_bits
            add(f"{layer.name} F", "weights", (node.weights, 1, 1), 1, widths)
        add(layer.name, layer.kind, node.output_shape, report.batch, edges[layer.name][:2])
    return listed


def reached_tables(lines: Sequence[Comparison], ends: Sequence[Reached]) -> Iterator[Table]:
    """Tabulate accuracy at the end and energy to the accuracy asked for, a table a unit.

    Of fewer than `QUARTILED` runs stand the extremes, of more the median and quartiles.
    """
    for one in dict.fromkeys(line.unit for line in lines):
        here = [(x, end) for x, end in zip(lines, ends, strict=True) if x.unit == one]
        divisor, unit, decimals = common_scale((end.energy_low for _, end in here), one)
        aimed = any(end.target_accuracy_percent is not None for _, end in here)
        columns = ["to reach, %", "reached", "steps", f"energy to it, {unit}"] if aimed else []
        listed = table(
            "to a stated validation accuracy, as traced" if aimed else "as traced",
            ["method", "hardware", "accounting"],
            ["runs", "test accuracy at the end, %", *columns],
        )
        for line, end in here:
            deviation = end.trace_accuracy_deviation
            energies = [end.energy_low, end.energy_middle, end.energy_high]
            cells = [
                _number(end.target_accuracy_percent),
                _number(end.runs_reached, "d"),
                _ranged(end, [end.steps_low, end.steps_middle, end.steps_high], 1, ",d"),
                _ranged(end, energies, divisor, f",.{decimals}f"),
            ]
            listed.add_row(
                called(line.method),
                called(line.hardware, "hardware"),
                line.accounting,
                str(end.runs),
                _number(end.trace_accuracy_percent)
                + ("" if deviation is None else f" ± {deviation:.2f}"),
                *cells[: len(columns)],
            )
        yield listed


def _ranged(end: Reached, numbers: Sequence[float | None], divisor: float, form: str) -> str:
    """Write "12" of one run, "12 to 15" of few, "13 [12, 15]" of many; "-" is never reached."""
    if end.spread is None:
        return "-"
    low, middle, high = (
        "-" if n is None else format(n if divisor == 1 else n / divisor, form) for n in numbers
    )
    if end.spread == "one run":
        return middle
    return f"{low} to {high}" if end.spread == "extremes" else f"{middle} [{low}, {high}]"


def moved_tables(assumed: Report, measured: Report) -> Iterator[RenderableType | str]:
    """Yield the measurements that replaced the accounting's assumptions, and their effect."""
    divisor, unit = scale(assumed.energy, assumed.unit)
    listed = table(
        f"assumed -> measured, {unit}",
        ["layer"],
        [
            "signal bits", "zero %", "vote bits", "zero %", "accumulator bits", "flips %",
            "sum bits", "energy as assumed", "energy as traced",
        ],
    )  # fmt: skip
    before, after = assumed.energies("layer"), measured.energies("layer")
    limits = limits_of(measured.method)
    nodes = {node.layer.name: node for node in measured.nodes}
    for name in [name for (name,) in before if name in assumed.edges]:
        old, new = assumed.edges[name], measured.edges[name]
        one, other = before[(name,)], after[(name,)]
        if (old._replace(nonzero=new.nonzero), one) != (new, other):
            found = (measured.measured or {}).get(name)
            zeros = (found.signal_zeros, found.vote_zeros) if found else (None, None)
            votes = _votes(assumed, measured, nodes[name])
            signal = found.signal_bits if found and nodes[name].weights else None
            listed.add_row(
                name,
                _bits(old.signal_bits, new.signal_bits, signal, limits.signal),
                *_zeros(zeros[0]),
                votes,
                *_zeros(None if votes == "-" else zeros[1]),
                *_remembered(measured, nodes[name]),
                _bits(old.sum_bits, new.sum_bits, found.sum_bits if found else None),
                f"{one / divisor:,.3f}",
                f"{other / divisor:,.3f}",
            )
    yield listed if listed.row_count else "the trace changes no width and no energy here"
    change = 100 * (measured.energy / assumed.energy - 1) if assumed.energy else 0.0
    yield (
        f"with the trace {fixed(measured.energy / divisor, 2)} {unit}, assumed "
        f"{fixed(assumed.energy / divisor, 2)} {unit} ({change:+.1f} %)\n{of_runs(measured)}\n"
    )


def _zeros(share: float | None) -> list[str]:
    return ["-" if share is None else f"{100 * share:.1f}"]


def _votes(assumed: Report, measured: Report, node: Node) -> str:
    """Widths of the votes of a layer that has some, assumed and measured."""
    if not node.macs:
        return "-"
    there, here = (
        treatment(of.method, node, of.accounting, of.measured) for of in (assumed, measured)
    )
    if here.update != "boolean":
        return "-"
    found = (measured.measured or {}).get(node.layer.name)
    limit = limits_of(measured.method).vote
    own = found.vote_bits if found else None
    return _bits(there.weight_signal_bits, here.weight_signal_bits, own, limit)


def _remembered(report: Report, node: Node) -> tuple[str, str]:
    """Accumulators and flips of a layer whose weights flip, assumed and measured."""
    found = (report.measured or {}).get(node.layer.name)
    if not node.macs or found is None or found.flip_rate is None:
        return "-", "-"
    extras, limit = report.accounting.extras, limits_of(report.method).accumulator
    own, flips = found.accumulator_bits, f"{100 * found.flip_rate:.2g}"
    if treatment(report.method, node, report.accounting).update != "boolean":
        return "-" if own is None else f"{own}, not used", f"{flips}, not used"
    assumed = extras.accumulator_bits
    bits = limit.bits if limit else own or assumed
    return _bits(assumed, bits, own, limit), f"{100 * extras.flip_rate:.2g} -> {flips}"


def _bits(
    assumed: Bits,
    priced: Bits,
    measured: Bits | None,
    limit: TensorWidth | AccumulatorWidth | None = None,
) -> str:
    """A width that a trace moved or could have moved; or one that the method itself states.

    A width that was measured where the method has words of its own is priced as the method says.
    """
    if limit is not None and limit.bits == priced:
        return f"{shown(priced)} (method)"
    if measured is None and assumed == priced:
        return "-"
    if measured is not None and measured != priced:
        return f"{shown(measured)}, not used"
    return f"{shown(assumed)} -> {shown(priced)}"


def of_runs(report: Report) -> str:
    """Say which runs a report took its figures of."""
    run = report.traces[0].run
    seeds = ", ".join(str(trace.run.seed) for trace in report.traces)
    seeds = "" if run.seed is None else f", seed{'s' * (len(report.traces) > 1)} {seeds}"
    if run.recording:
        seeds += f", recorded, {run.recording.steps_measured:,} steps measured whole"
        left_out = run.recording.steps_left_out
        seeds += f", {left_out:,} of overflowed gradients left out" * (left_out > 0)
    several = len(report.traces) > 1
    what = f"the most of {len(report.traces)} runs" if several else "those"
    ends = {len(trace.epochs) for trace in report.traces}
    cut = f", {min(ends)} of {run.epochs} epochs" if min(ends) < run.epochs else ""
    other = f"; they are priced here at batch {report.batch}" * (run.batch != report.batch)
    return (
        f"widths are {what} of {run.network} trained by {run.method} on {run.dataset} at batch "
        f"{run.batch}{seeds}{cut}{other};\nthey keep an rms error of "
        f"{100 * run.signal_error:g} %{_held(report)}"
    )


def _held(report: Report) -> str:
    """Say which widths hold the values themselves, where the traces know."""
    layers = (report.measured or {}).values()
    parts = [
        f"{what} {max(bits)}"
        for what in ("signal", "vote", "accumulator")
        if (bits := [b for one in layers if (b := getattr(one, f"{what}_holds")) is not None])
    ]
    return f"; the values are held, to {100 * HOLDS:g} %, by {', '.join(parts)} bit" * bool(parts)
