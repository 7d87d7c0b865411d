"""One layer's energy, entry by entry: every factor of its counts and prices, and where it is from.

Nothing is counted or priced here. What is printed is multiplied and added up once more as it is
printed, and compared with the report; a difference is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import fsum, isclose
from typing import NamedTuple

from hwmodel.errors import HwmodelError, nearest
from hwmodel.model.entries import search_options
from hwmodel.model.ledger import Component, Entry
from hwmodel.model.optimal_tiles import greedy_note, optimal_tiles
from hwmodel.model.plans import prepared, teacher_layer, teacher_run
from hwmodel.model.prices import value
from hwmodel.model.report import Report
from hwmodel.rerun.tables import NATURE, what
from hwmodel.specs.hardware import Buffer, Hardware
from hwmodel.tiling.options import memories
from hwmodel.tiling.tile import Tiling
from hwmodel.tiling.view import Homes, whole_view
from hwmodel.views.colours import called
from hwmodel.views.explain.layer import Place, layer_lines
from hwmodel.views.explain.lines import TIMES, computed, energy, exact, reasons, table
from hwmodel.views.explain.staying import homes_of, room_lines, staying_lines
from hwmodel.views.explain.tiled import product_lines
from hwmodel.views.explain.ways import ways_lines
from hwmodel.work.tensor import Direction, Factor, Pass, shown, titled
from hwmodel.work.work import Multiply

__all__ = ["explanation"]

_OPERATORS = {
    Pass.FORWARD: "Operators, forward",
    Pass.BACKWARD_INPUT: "Operators, on the way back",
    Pass.BACKWARD_WEIGHT: "Gradients that no product sums up",
    Pass.UPDATE: "Weight update",
    Pass.RECOMPUTE: "Operators, forward once more",
}
_HOW = (
    "The energy of a row is elements times bits times the energy of a bit, or operations times "
    "the energy of one. Before it stand the factors of the elements; what is 1 is left out. Their "
    "formulas are in docs/model.md: of products in sections 1 to 3, of operations in 5, of all "
    "else in 6."
)
_DONE = {Direction.READ: "read from", Direction.WRITE: "written to"}
_DONE[Direction.HOP] = "on its way into or out of one"


class _Row(NamedTuple):
    """An entry of the ledger, its number among those of its layer, and what it is worth."""

    number: int
    entry: Entry
    price: float  # [chip's unit per bit, or per operation]
    energy: float  # [chip's unit]


def explanation(report: Report, layer: str, pass_: str | None = None) -> str:
    """Derive the energy of one layer, or of one of its passes, in Markdown.

    Args:
        layer: of the network, or of a distilling method's teacher as the report names it.
        pass_: forward, backward_input, backward_weight, update or recompute; None is all of them.

    Raises: HwmodelError where the report has no such layer, or the layer no such pass.
    """
    place = _place(report, layer)
    rows = _rows(report, layer, pass_)
    if pass_ is not None and not rows:
        known = dict.fromkeys(one.pass_ for one in report.ledger.entries if one.layer == layer)
        raise HwmodelError(
            f"{layer} has no work in pass {pass_}, only in {', '.join(known) or 'none'}"
        )
    title = (
        f"# {layer} of {called(report.network.name, 'network')} on "
        f"{called(report.hardware.name, 'hardware')} under "
        f"{called(report.method.name)}, accounting {report.accounting.name}: one "
        f"{what(report.mode, report.batch)}"
    )
    lines = [title, "", *(layer_lines(place) if place else ())]
    if place and rows:
        lines += _derived(report, layer, rows)
    else:
        lines += _nothing(report, layer, place)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _place(report: Report, layer: str) -> Place | None:
    """Find the layer at its place; None if the method omits it. Raises: HwmodelError."""
    for node in report.nodes:
        if node.layer.name == layer:
            return Place(report.job, report.edges, report.nodes, node)
    if teacher := teacher_run(report.job):
        network, job = teacher
        nodes, edges = prepared(network, job)
        for node in nodes:
            if teacher_layer(network, node.layer.name) == layer:
                return Place(job, edges, nodes, node)
    names = [known.name for known in report.network.layers]
    if layer in names:
        return None
    hint = nearest(layer, names)
    if hint.startswith("known: ") and len(names) > 20:
        hint = f"`hwmodel network show {report.network.name}` lists its {len(names)} layers"
    raise HwmodelError(f"{report.network.name} has no layer {layer!r}: {hint}")


def _rows(report: Report, layer: str, pass_: str | None) -> list[_Row]:
    """List the entries of a layer, or of one of its passes, in the order of the report's table."""
    entries = [one for one in report.ledger.entries if one.layer == layer]
    chosen = [(n, one) for n, one in enumerate(entries, 1) if pass_ in (None, one.pass_)]
    prices = [report.prices.value(one.key) for _, one in chosen]
    return [
        _Row(n, e, price, e.count * price) for (n, e), price in zip(chosen, prices, strict=True)
    ]


def _derived(report: Report, layer: str, rows: Sequence[_Row]) -> Iterator[str]:
    """Print prices, then every entry, products pass by pass, then operators; then their sum."""
    yield f"{_HOW}\n"
    yield from _memories(report)
    yield from ways_lines(report, layer)
    yield from staying_lines(report, layer)
    yield from _operations(report, rows)
    beside = zip(report.tilings, homes_of(report), room_lines(report), strict=True)
    tilings: dict[Pass, list[tuple[Multiply, Tiling, Homes, list[str]]]] = {}
    for (task, tiling), home, room in beside:
        if task.layer == layer and isinstance(task.work, Multiply):
            tilings.setdefault(task.work.pass_, []).append((task.work, tiling, home, room))
    for component in Component:
        for pass_ in Pass:
            here = [r for r in rows if (r.entry.component, r.entry.pass_) == (component, pass_)]
            if not here:
                continue
            if component == Component.PRODUCT:
                for work, tiling, home, room in tilings[pass_]:
                    options = search_options(report.accounting, work)
                    seen = whole_view(memories(report.hardware, work.kinds), home, {})
                    yield from product_lines(work, tiling, seen, options, report.hardware, room)
                yield f"### {pass_}: reads, writes and operations\n"
            else:
                yield f"## {_OPERATORS[pass_]}\n"
            yield from _entries(here, report)
    yield from _sum(report, layer, rows)
    yield from _sources(report)


def _memories(report: Report) -> Iterator[str]:
    """List every memory, its capacity, and what a bit costs there."""
    chip, unit = report.hardware, report.unit
    yield "## What memories cost\n"
    header = (
        "level", "memory", "holds", "capacity [bit]", f"e_read [{unit}/bit]",
        f"e_write [{unit}/bit]", "which is", "source",
    )  # fmt: skip
    yield from table(
        header,
        [
            (
                str(level.level), memory.name, ", ".join(_held(report, memory)),
                "unlimited" if memory.capacity_bits is None else f"{memory.capacity_bits:,}",
                exact(memory.read_energy_per_bit * chip.scale_of(memory)),
                exact(memory.write_energy_per_bit * chip.scale_of(memory)),
                _stated(memory, chip), memory.source,
            )
            for level in chip.levels
            for memory in level.buffers
        ],
    )  # fmt: skip
    if chip.path_prices:
        yield (
            "\nPrices are of whole paths (path_prices), both sides of a transfer: the memory that "
            "is asked pays for both."
        )
    yield ""


def _held(report: Report, memory: Buffer) -> Sequence[str]:
    """What a memory holds: operands; of one of several outermost memories, kinds of tensors."""
    outermost = report.hardware.levels[0].buffers
    return memory.kinds if len(outermost) > 1 and memory in outermost else memory.holds


def _stated(memory: Buffer, chip: Hardware) -> str:
    """Write the energy in the units that files use: of a read, where a write costs another."""
    read, unit = memory.read_energy_per_bit, chip.unit
    at = ""
    if chip.voltage is not None and chip.scale_of(memory) != 1:
        at = f", {TIMES} ({chip.voltage.ratio})^2"
    if memory.efficiency is not None:
        return f"1 / (8 {TIMES} {exact(1 / read / 8)} GB/s/mW){at}"
    return f"{exact(8 * read)} {unit}/B, {exact(32 * read)} {unit}/32bit{at}"


def _operations(report: Report, rows: Sequence[_Row]) -> Iterator[str]:
    """List the price of each kind of operation, and how it comes about."""
    keys = dict.fromkeys(row.entry.key for row in rows if row.entry.operation)
    if keys:
        yield "## What operations cost\n"
        for key in keys:
            price = report.prices.of(key)
            come = computed([price], value(price), exact)
            yield f"- one {key}: {come} {report.unit}{reasons(price, set())}"
        yield ""


def _entries(rows: Sequence[_Row], report: Report) -> Iterator[str]:
    """Print each entry: its factors, then elements times bits, or operations, times price."""
    told: set[str] = set()
    for number, entry, price, paid in rows:
        tensor = titled(entry.tensor, entry.role)
        counted, numbers = computed([entry.factors], entry.elements), [entry.elements]
        scaled: tuple[Factor, ...] = ()
        if entry.operation:
            name = f"{entry.key} for {tensor}"
        else:
            name = f"{tensor} {_DONE[entry.direction]} {entry.memory}"
            if isinstance(entry.bits, int):
                numbers.append(entry.bits)
            else:  # with scales of blocks: rounded up once
                words = f"{entry.elements:,} words of {shown(entry.bits)} bit"
                scaled, numbers = (Factor("bits", 1, f"{words}, rounded up"),), [entry.count]
        terms = [Factor("", number) for number in (*numbers, price)]
        worth = computed([terms], paid, energy)
        why = reasons((*entry.factors, *scaled), told)
        yield f"- **row {number}** {name}: {counted}; energy {worth} {report.unit}{why}"
    yield ""


def _sum(report: Report, layer: str, rows: Sequence[_Row]) -> Iterator[str]:
    """Add the rows up, pass by pass; it must be the report's energy. Raises: AssertionError."""
    yield "## Sum\n"
    reported = report.energies("layer", "pass")
    passes = [pass_ for pass_ in Pass if any(row.entry.pass_ == pass_ for row in rows)]
    for pass_ in passes:
        parts = [row.energy for row in rows if row.entry.pass_ == pass_]
        yield f"- energy of {pass_}: {_added(parts, reported[layer, pass_])} {report.unit}"
    sums = [reported[layer, pass_] for pass_ in passes]
    yield f"- energy of the layer: {_added(sums, fsum(sums))} {report.unit}\n"
    yield from _with_optimal_tiles(report, layer, passes)


def _with_optimal_tiles(report: Report, layer: str, passes: Sequence[Pass]) -> Iterator[str]:
    """Say of greedy tiles what the same passes of the layer would cost with optimal ones."""
    told = False
    for pass_ in passes:
        other = optimal_tiles(report, layer, pass_)
        if other is None:
            return
        if not told:
            yield f"## With optimal tiles\n\n{greedy_note(report.accounting)}.\n"
            told = True
        found = other.reason if other.energy is None else f"{energy(other.energy)} {report.unit}"
        unproved = other.proof.sentence()
        proof = f"; {unproved}" if unproved else ""
        yield f"- {pass_} with optimal tiles: {found}{proof}"
    yield ""


def _added(parts: Sequence[float], reported: float) -> str:
    """Write a sum of energies, each to six digits, so that the last digit may differ."""
    if not isclose(fsum(parts), reported, rel_tol=1e-12):
        raise AssertionError(f"the entries come to {fsum(parts)!r}, the report has {reported!r}")
    text, result = " + ".join(map(energy, parts)), energy(reported)
    return f"`{text} = {result}`" if text != result else f"`{result}`"


def _nothing(report: Report, layer: str, place: Place | None) -> Iterator[str]:
    """Say why a layer has no rows, as far as it is known."""
    yield "## Sum\n"
    if place is None:
        (kind,) = (known.kind for known in report.network.layers if known.name == layer)
        yield f"Method {report.method.name} does without layers of kind {kind}.\n"
    else:
        text = (
            f"Nothing is counted of this layer under method {report.method.name} and accounting "
            f"{report.accounting.name}: it has no rows in the report."
        )
        if report.accounting.extras.elementwise == "preactivation-words":
            text += " Words for batch norm and scaling stand with the layer whose sums they take."
        yield f"{text}\n"
    yield f"- energy of the layer: `0` {report.unit}"


def _sources(report: Report) -> Iterator[str]:
    """List what the short names of sources stand for."""
    yield f"## Sources\n\nAll figures are {NATURE}.\n"
    yield from table(
        ("file", "name", "key", "is"),
        [
            (spec.KIND, spec.name, key, text)
            for spec in (report.hardware, report.method, report.accounting)
            for key, text in spec.sources.items()
        ],
    )
