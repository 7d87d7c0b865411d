"""Rows -> CSV, and what every view says in words."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hwmodel.comparison import Comparison, Reached
from hwmodel.evaluation import COLUMNS, Report
from hwmodel.files import whole_file
from hwmodel.training import PJ_PER_KWH, Training

__all__ = ["COMPARED", "NATURE", "comparison_csv", "csv_text", "notes", "report_csv"]
__all__ += ["run_sentence", "scale", "what", "whole_run", "write_text"]

NATURE = "analytical, not measured"
COMPARED = Comparison._fields[:-1]  # columns of the CSV; the reason is for the screen
_SCALES = {
    "pJ": ((1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ"), (1.0, "pJ")),
    "MAC": ((1e12, "10¹² MAC"), (1e9, "10⁹ MAC"), (1e6, "10⁶ MAC"), (1e3, "10³ MAC"), (1.0, "MAC")),
}


def scale(energy: float, unit: str) -> tuple[float, str]:
    """A divisor, and the unit it leads to, in which `energy` is at least 10 where it can be.

    >>> scale(3.2e8, "pJ")
    (1000000.0, 'µJ')
    """
    steps = _SCALES[unit]
    return next((step for step in steps if energy >= 10 * step[0]), steps[-1])


def comparison_csv(
    lines: Sequence[Comparison], run: Training | None = None, reached: Sequence[Reached] = ()
) -> str:
    """One row a line, full precision; an empty cell where there is no value.

    With a training run, its name, iterations and energy follow as further columns; with traces
    the accuracy reached, the steps to the accuracy asked for, and the energy of those.
    """
    header, columns = list(COMPARED), len(COMPARED)
    rows: list[list[object]] = [list(line[:columns]) for line in lines]
    if run is not None:
        header += ["training", "iterations", "training_energy", "training_energy_kwh"]
        rows = [[*row, *whole_run(line, run)] for row, line in zip(rows, lines, strict=True)]
    if reached:
        header += Reached._fields
        rows = [[*row, *more] for row, more in zip(rows, reached, strict=True)]
    return csv_text(header, rows)


def whole_run(
    line: Comparison | Report, run: Training
) -> tuple[str, int, float | None, float | None]:
    """Name, iterations and energy of a whole run; in kWh where the unit is of energy."""
    iterations = run.iterations(line.batch)
    if line.energy is None:
        return run.name, iterations, None, None
    energy = iterations * line.energy
    kwh = energy / PJ_PER_KWH if line.unit == "pJ" else None
    return run.name, iterations, energy, kwh


def run_sentence(report: Report, run: Training) -> str:
    """The energy of a whole training run in words."""
    name, iterations, energy, kwh = whole_run(report, run)
    divisor, unit = scale(energy or 0.0, report.unit)
    in_kwh = "" if kwh is None else f", {kwh:.4g} kWh"
    return (
        f"Training {name}: {run.epochs:,} epochs of {run.images:,} images, {iterations:,} "
        f"iterations of {report.batch:,}: {(energy or 0.0) / divisor:,.1f} {unit}{in_kwh}."
    )


def report_csv(report: Report) -> str:
    """The tidy table, full precision."""
    return csv_text(COLUMNS, report.records)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and rows as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def write_text(path: Path, text: str) -> None:
    """A whole file or none. Raises: HwmodelError."""
    with whole_file(path) as stream:
        stream.write(text)


def notes(not_counted: Mapping[str, Sequence[str]]) -> str:
    """How every report ends: what each accounting leaves out, and what kind of figure it gives."""
    lines = []
    for accounting, items in not_counted.items():
        lines.append(f"Not counted under accounting {accounting}:")
        lines += [f"  - {item}" for item in items]
    return "\n".join([*lines, f"All figures are {NATURE}."])


def what(mode: str, batch: int) -> str:
    """One iteration, in words."""
    iteration = "training iteration" if mode == "training" else "inference"
    return f"{iteration} of {batch} image{'s' if batch > 1 else ''}"
