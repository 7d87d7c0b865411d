"""Methods side by side on several chips, in percent of a baseline on the same chip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from pathlib import Path
from typing import ClassVar, NamedTuple

from pydantic import Field

from hwmodel.accounting import Accounting
from hwmodel.energy import COMPUTE
from hwmodel.evaluation import Report, Tiler, evaluate
from hwmodel.files import Name, NamedSpec, Number, SpecModel, Text, load, read_yaml, validate
from hwmodel.hardware import Hardware
from hwmodel.method import Method
from hwmodel.network import Network, load_network
from hwmodel.workload import Mode

__all__ = ["Comparison", "compare", "published_percent"]


class Figure(SpecModel):
    """A published result of one network under one method."""

    network: Name
    method: Name
    accuracy_percent: Number | None = None
    energy_percent: dict[Name, Number] = Field(default={}, description="of the baseline, by chip")
    source: Text


class Published(NamedSpec):
    """What papers print, to be set beside what the model says."""

    KIND: ClassVar[str] = "table of published figures"
    FOLDER: ClassVar[str] = "."

    figures: tuple[Figure, ...]


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


def compare(
    network: str | Path | Network,
    hardware: Sequence[str | Path | Hardware],
    methods: Sequence[str | Path | Method],
    *,
    baseline: str | Path | Method | None = None,
    accounting: str | Path | Accounting = "paper",
    batch: int = 1,
    mode: Mode = "training",
) -> Iterator[Comparison]:
    """Lines in the order given, chip by chip; everything is loaded before the first is computed.

    Args:
        baseline: the method that is 100 %, by default the accounting's.

    Raises: HwmodelError, as `evaluate`.
    """
    network, choices = load_network(network), load(Accounting, accounting)
    chips = [load(Hardware, chip) for chip in hardware]
    rules = [load(Method, method) for method in methods]
    reference = load(Method, baseline or choices.baseline)
    return _lines(network, chips, rules, reference, choices, batch, mode)


def _lines(
    network: Network,
    chips: list[Hardware],
    methods: list[Method],
    reference: Method,
    accounting: Accounting,
    batch: int,
    mode: Mode,
) -> Iterator[Comparison]:
    for chip in chips:
        tiler = Tiler(chip)

        def report(method: Method, chip: Hardware = chip, tiler: Tiler = tiler) -> Report:
            return evaluate(
                network, chip, method, accounting=accounting, batch=batch, mode=mode, tiler=tiler
            )

        whole = report(reference).energy
        for method in methods:
            yield _line(report(method), whole, reference)


def _line(report: Report, whole: float, reference: Method) -> Comparison:
    percent = 100 * report.energy / whole if whole else None
    source = published_percent(report, reference)
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


_PRODUCT = ("memory", "compute")


def published_percent(report: Report, reference: Method) -> float | None:
    """The published energy of the same network, method and chip in training, if there is one.

    Published percentages refer to the accounting's baseline; against another there is none.
    """
    if report.mode != "training" or reference.name != report.accounting.baseline:
        return None
    for figure in _published().figures:
        if (figure.network, figure.method) == (report.network.name, report.method.name):
            return figure.energy_percent.get(report.hardware.name)
    return None


def _published() -> Published:
    path = Path(__file__).parent / "published.yaml"
    return validate(Published, read_yaml(path), path)
