"""Measured chips: what was published of them, and what the model says, row by row.

    ratio = ours / published
    verdict: within 10 %, within 25 %, within 2 x, off

No constant is fitted; a row that a constant of its chip is from has no verdict. Chips, accounting
and networks of a row are named in `specs/measured.yaml`, and every row stays, whatever comes out. A
published time lies between the overlapped and the serial one where it can; a published bandwidth is
a ceiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate
from hwmodel.model.ledger import Component, Entry
from hwmodel.model.report import Report
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import NamedSpec, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.measured import UNITS, MeasuredTable, Measurement, Run, measured_network
from hwmodel.vary.paths import leaves, replaced_all
from hwmodel.work.tensor import Direction, product
from hwmodel.work.work import Multiply

__all__ = ["ABOVE", "CALIBRATION", "Against", "against", "network_of", "run_of"]
__all__ += ["verdict"]

ABOVE = "above: impossible"  # of a ceiling
CALIBRATION = "calibration"  # in the place of a verdict: a constant is from this row
ALL = "all "  # how a row of all layers begins
PJ = 1e-12


class Against(NamedTuple):
    """One published figure and ours; of times and rates of a chip that overlaps nothing, too."""

    table: str
    row: str
    quantity: str
    unit: str
    published: float
    ours: float
    serial: float | None
    ratio: float  # ours / published
    verdict: str
    why: str | None
    run: str  # what it is computed of, other than a file as it stands


def verdict(ratio: float, ceiling: bool = False) -> str:
    """Say how far ours lies from what is published.

    >>> verdict(1.08), verdict(0.76), verdict(1.9), verdict(0.4), verdict(0.4, ceiling=True)
    ('within 10 %', 'within 25 %', 'within 2 x', 'off', 'below')
    """
    if ceiling:
        return "below" if ratio <= 1 else ABOVE
    far = round(abs(ratio - 1), 9)  # 1.1 - 1 is a little above 0.1
    if far <= 0.10:
        return "within 10 %"
    if far <= 0.25:
        return "within 25 %"
    return "within 2 x" if 0.5 <= ratio <= 2 else "off"


def network_of(run: Run) -> Network:
    """The network of a run, bundled or of the measurements' own file."""
    assert run.network is not None
    return load_network(run.network)


def against(
    table: MeasuredTable,
    watch: Callable[[Sequence[Measurement]], Iterator[Measurement]] = iter,
    rows: Sequence[str] = (),
) -> Iterator[Against]:
    """Compute the rows of a table.

    Args:
        rows: names of those that are wanted; without any, all.
    """
    found: dict[str, Report] = {}
    wanted = [one for one in table.rows if not rows or one.row in rows]
    for one in watch(wanted):
        run = one.run.within(table.run)
        key = run.model_dump_json()
        if key not in found:
            found = {key: _evaluated(run)}  # the rows of one run follow one another
        for quantity, published in one.published.items():
            ours, serial = _QUANTITIES[quantity](found[key], one, table)
            ratio = ours / published
            said = verdict(ratio, ceiling=quantity == "bandwidth")
            said = CALIBRATION if one.calibration else said
            if quantity == "time" and serial is not None and ours <= published <= serial:
                said = f"{said}, between the bounds"
            unit = UNITS[quantity].format(item=table.item)
            numbers = published, ours, serial, ratio
            told = run_of(table, one)
            yield Against(table.name, one.row, quantity, unit, *numbers, said, one.why, told)


def run_of(table: MeasuredTable, one: Measurement) -> str:
    """Say what a row is computed with: accounting and chip, and all that is not as their files."""
    run = one.run.within(table.run)
    chip, counting = load(Hardware, run.hardware or ""), load(Accounting, run.accounting or "")
    parts = [f"accounting {_with(counting, run.counting)}", f"chip {_with(chip, run.chip)}"]
    if chip.zeros != "none" or any(x.coding for level in chip.levels for x in level.buffers):
        zeros = (measured_network(run.network or "") or {}).get("zeros", {})
        shares = ", ".join(f"{name} {share}" for name, share in zeros.items())
        parts += [f"zeros as published beside the figures: {shares}"] * bool(zeros)
    if one.active_pes:
        parts.append(f"{one.active_pes} PEs at work, as published beside the figures")
    return "; ".join(parts)


def _with(spec: NamedSpec, changes: Mapping[str, object]) -> str:
    """Name a spec, and its changes with what its file has in their place."""
    stated = {leaf.path: leaf for leaf in leaves(spec)}
    said = [
        f"{path} {_plain(value)} {stated[path].unit}".rstrip()
        + f" (its file: {_plain(stated[path].value)})"
        for path, value in changes.items()
        if stated[path].value != value
    ]
    return f"{spec.name} with {', '.join(said)}" if said else spec.name


def _plain(value: object) -> str:
    return f"{value:,.15g}" if isinstance(value, float) else str(value)


def _evaluated(run: Run) -> Report:
    chip = replaced_all(load(Hardware, run.hardware or ""), run.chip)
    counting = replaced_all(load(Accounting, run.accounting or ""), run.counting)
    return evaluate(
        network_of(run), chip, run.method or "",
        accounting=counting, batch=run.batch, mode=run.mode or "training",
    )  # fmt: skip


Pair = tuple[float, float | None]


def _energy(report: Report, one: Measurement, table: MeasuredTable) -> Pair:
    """Energy of an image, static power times the overlapped time with it [J]."""
    dynamic = report.energy * PJ
    if report.hardware.static_watts:
        time = report.time
        energy, slow = time.energy(time.overlapped), time.energy(time.serial)
        assert energy is not None and slow is not None
        return energy / report.batch, slow / report.batch
    return dynamic / report.batch, None


def _rate(report: Report, one: Measurement, table: MeasuredTable) -> Pair:
    """Images a second, if all in a step overlaps, and if nothing does."""
    return report.batch / report.time.overlapped, report.batch / report.time.serial


def _bandwidth(report: Report, one: Measurement, table: MeasuredTable) -> Pair:
    """What the outermost memory is asked for at the published rate [GB/s]."""
    names = {memory.name for memory in report.hardware.levels[0].buffers}
    bits = sum(entry.count for entry in report.ledger.entries if entry.memory in names)
    assert one.rate is not None
    return bits / 8 / report.batch * one.rate / 1e9, None


def _products(report: Report, one: Measurement) -> list[Entry]:
    """Entries of the products of a row's layer, or of all."""
    whole = one.row.startswith(ALL)
    return [
        entry
        for entry in report.ledger.entries
        if entry.component == Component.PRODUCT and (whole or entry.layer == one.row)
    ]


def _outermost(entries: Sequence[Entry], report: Report) -> float:
    """Bytes through the outermost memory, as it codes them [B]."""
    memory = report.hardware.levels[0].buffers[0].name
    return sum(entry.count for entry in entries if entry.memory == memory) / 8


def _by_layer(table: MeasuredTable, one: Measurement, of: Callable[[Measurement], float]) -> float:
    """A figure of a row's layer, or the sum over all rows of one layer."""
    if one.row.startswith(ALL):
        return fsum(of(row) for row in table.rows if row.active_pes)
    return of(one)


def _dram(report: Report, one: Measurement, table: MeasuredTable) -> Pair:
    """Bytes through the outermost memory, coded [MB]."""

    def of(row: Measurement) -> float:
        return _outermost(_products(report, row), report) / 1e6

    return _by_layer(table, one, of), None


def _buffer(report: Report, one: Measurement, table: MeasuredTable) -> Pair:
    """Bytes that the level below the outermost is read and written [MB]."""
    names = {memory.name for memory in report.hardware.levels[1].buffers}
    moves = (Direction.READ, Direction.WRITE)
    bits = sum(
        entry.count
        for entry in _products(report, one)
        if entry.memory in names and entry.direction in moves
    )
    return bits / 8 / 1e6, None


def _time(report: Report, one: Measurement, table: MeasuredTable) -> Pair:
    """Time by the published number of MACs at work, and our coded bytes [ms]."""
    chip = report.hardware
    rates = chip.levels[0].buffers[0].rates
    assert chip.clock is not None and rates is not None
    hertz, bandwidth = chip.clock.hertz, rates[0]
    # A multiply-accumulate by zero, which is gated, takes its cycle.
    works = ((task.layer, task.work) for task, _ in report.tilings)
    made = {layer: product(work.macs) for layer, work in works if isinstance(work, Multiply)}

    def both(row: Measurement) -> tuple[float, float]:
        assert row.active_pes is not None
        mine = _products(report, row)
        macs = made[row.row]
        moved = _outermost(mine, report) / bandwidth
        return 1e3 * macs / (row.active_pes * hertz), 1e3 * moved

    return (
        _by_layer(table, one, lambda row: max(both(row))),
        _by_layer(table, one, lambda row: fsum(both(row))),
    )


def _share(report: Report, one: Measurement, table: MeasuredTable) -> Pair:
    """A layer's part of the energy of all layers, the outermost memory left out [%]."""
    outermost = {memory.name for memory in report.hardware.levels[0].buffers}

    def of(row: Measurement) -> float:
        mine = (entry for entry in _products(report, row) if entry.memory not in outermost)
        return fsum(entry.count * report.prices.value(entry.key) for entry in mine)

    layers = [row for row in table.rows if not row.row.startswith(ALL)]
    return 100 * of(one) / fsum(map(of, layers)), None


def _levels(report: Report, one: Measurement, table: MeasuredTable) -> Pair:
    """Energy of a memory's accesses, or of hops into it [10^9 of the chip's unit]."""
    every = Measurement(row=ALL, published=one.published)
    return fsum(
        entry.count * report.prices.value(entry.key)
        for entry in _products(report, every)
        if entry.memory == one.memory
        and (entry.direction == Direction.HOP) == (one.direction == "hop")
    ) / 1e9, None


_QUANTITIES: dict[str, Callable[[Report, Measurement, MeasuredTable], Pair]] = {
    "energy": _energy,
    "rate": _rate,
    "bandwidth": _bandwidth,
    "dram": _dram,
    "buffer": _buffer,
    "time": _time,
    "share": _share,
    "levels": _levels,
}
