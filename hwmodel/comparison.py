"""Methods side by side on several chips, in percent of a baseline on the same chip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from pathlib import Path
from typing import NamedTuple, cast

from hwmodel.accounting import Accounting
from hwmodel.energy import COMPUTE
from hwmodel.evaluation import Report, Tiler, evaluate
from hwmodel.files import load
from hwmodel.hardware import Hardware
from hwmodel.method import Method
from hwmodel.network import Network, load_network
from hwmodel.published import energy_percent, published_table
from hwmodel.workload import Mode

__all__ = ["Comparison", "compare", "reproduce"]


class Comparison(NamedTuple):
    """One line of `hwmodel compare`; energies are in `unit`.

    The five parts forward ... elementwise sum to `energy`, and so do compute and memory.
    """

    network: str
    method: str
    hardware: str
    accounting: str
    mode: str
    batch: int
    energy: float
    unit: str
    percent_of_baseline: float | None  # None where the baseline costs nothing
    forward: float  # products of the forward pass; likewise the next two
    backward_input: float
    backward_weight: float
    update: float
    elementwise: float
    compute: float  # operations of all parts
    memory: float  # movement of all parts
    source_percent: float | None
    residual_percent: float | None  # of the published value: 100 (ours / source - 1)


class _Cell(NamedTuple):
    """One line that is asked for: what is evaluated, against what, and what was published."""

    network: Network
    method: Method
    baseline_network: Network
    baseline: Method
    source_percent: float | None


def compare(
    network: str | Path | Network,
    hardware: Sequence[str | Path | Hardware],
    methods: Sequence[str | Path | Method],
    *,
    baseline: str | Path | Method | None = None,
    accounting: str | Path | Accounting | Sequence[str | Path | Accounting] = "paper",
    batch: int = 1,
    mode: Mode = "training",
) -> Iterator[Comparison]:
    """Lines in the order given, chip by chip, accounting by accounting, method by method.

    Everything is loaded before the first line is computed.

    Args:
        baseline: the method that is 100 %, by default each accounting's.
        accounting: one, or several to be set side by side.

    Raises: HwmodelError, as `evaluate`.
    """
    network = load_network(network)
    chips = [load(Hardware, chip) for chip in hardware]
    rules = [load(Method, method) for method in methods]
    single = isinstance(accounting, (str, Path, Accounting))
    several = cast(Sequence[str | Path | Accounting], [accounting] if single else accounting)
    choices = [load(Accounting, choice) for choice in several]
    references = [load(Method, baseline or choice.baseline) for choice in choices]
    plan = [
        (chip, choice, [_cell(network, method, chip, reference, mode) for method in rules])
        for chip in chips
        for choice, reference in zip(choices, references, strict=True)
    ]
    return _lines(plan, batch, mode)


def _cell(network: Network, method: Method, chip: Hardware, reference: Method, mode: Mode) -> _Cell:
    source = energy_percent(network.name, method.name, chip.name, reference.name)
    return _Cell(network, method, network, reference, source if mode == "training" else None)


def reproduce(
    table: str, *, accounting: Sequence[str | Path | Accounting] = ("paper", "full"), batch: int = 1
) -> Iterator[Comparison]:
    """A published table row by row, on its chips, against its baseline.

    Raises: NameUnknown.
    """
    published = published_table(table)
    choices = [load(Accounting, choice) for choice in accounting]
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
    return _lines(plan, batch, "training")


def _lines(
    plan: list[tuple[Hardware, Accounting, list[_Cell]]], batch: int, mode: Mode
) -> Iterator[Comparison]:
    tilers: dict[tuple[str, str], Tiler] = {}
    for chip, choice, cells in plan:
        tiler = tilers.setdefault((chip.name, choice.name), Tiler(chip))
        wholes: dict[tuple[str, str], float] = {}
        for cell in cells:
            key = cell.baseline_network.name, cell.baseline.name
            if key not in wholes:
                wholes[key] = evaluate(
                    cell.baseline_network, chip, cell.baseline,
                    accounting=choice, batch=batch, mode=mode, tiler=tiler,
                ).energy  # fmt: skip
            report = evaluate(
                cell.network, chip, cell.method,
                accounting=choice, batch=batch, mode=mode, tiler=tiler,
            )  # fmt: skip
            yield _line(report, wholes[key], cell.source_percent)


_PRODUCT = ("memory", "compute")


def _line(report: Report, whole: float, source: float | None) -> Comparison:
    percent = 100 * report.energy / whole if whole else None
    rows = report.rows
    parts = {
        phase: fsum(r.energy for r in rows if r.phase == phase and r.component in _PRODUCT)
        for phase in ("forward", "backward_input", "backward_weight")
    }
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
        **parts,
        update=fsum(r.energy for r in rows if r.component == "update"),
        elementwise=fsum(r.energy for r in rows if r.component == "elementwise"),
        compute=fsum(r.energy for r in rows if r.level == COMPUTE),
        memory=fsum(r.energy for r in rows if r.level != COMPUTE),
        source_percent=source,
        residual_percent=100 * (percent / source - 1) if percent and source else None,
    )
