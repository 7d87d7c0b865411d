"""Rows -> CSV, and what every view says in words."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from math import fsum
from pathlib import Path
from typing import NamedTuple

from hwmodel.model.compare import Comparison, Reached
from hwmodel.model.evaluate import COLUMNS, Report
from hwmodel.specs.csv_files import Row, read_table, rows_of
from hwmodel.specs.provenance import Provenance
from hwmodel.specs.training import PJ_PER_KWH, Training
from hwmodel.vary.sensitivity import Effect, Sampled, Spread
from hwmodel.work.problem import PASSES

__all__ = ["COMPARED", "NATURE", "Table", "comparison_table", "csv_text", "effects_table"]
__all__ += ["layer_sums", "notes", "read_csv", "report_table", "run_sentence", "scale"]
__all__ += ["spreads_table", "what", "whole_run"]

BLOCK = 10_000  # rows that are turned into text at a time
NATURE = "analytical, not measured"
COMPARED = Comparison._fields[:-2]  # columns of the CSV; reason and report are for other views
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


class Table(NamedTuple):
    """Tidy records: one header, rows as long as it; None where there is no value."""

    header: tuple[str, ...]
    rows: list[tuple[object, ...]]

    def csv(self, provenance: Provenance | None = None) -> str:
        """As CSV; with where it comes from at the end of every row, where that is given."""
        if provenance is None:
            return csv_text(self.header, self.rows)
        rows = ((*row, *provenance.cells) for row in self.rows)
        return csv_text((*self.header, *provenance.columns), rows)

    def stamped(self, provenance: Provenance) -> Table:
        """With where it comes from at the end of every row."""
        header = (*self.header, *provenance.columns)
        return Table(header, [(*row, *provenance.cells) for row in self.rows])


def comparison_table(
    lines: Sequence[Comparison], run: Training | None = None, reached: Sequence[Reached] = ()
) -> Table:
    """One row a line.

    With a training run, its name, iterations and energy follow as further columns; with traces
    the accuracy reached, the steps to the accuracy asked for, and the energy of those.
    """
    header: tuple[str, ...] = COMPARED
    rows: list[tuple[object, ...]] = [tuple(line[: len(header)]) for line in lines]
    if run is not None:
        header += ("training", "iterations", "training_energy", "training_energy_kwh")
        rows = [(*row, *whole_run(line, run)) for row, line in zip(rows, lines, strict=True)]
    if reached:
        header += Reached._fields
        rows = [(*row, *more) for row, more in zip(rows, reached, strict=True)]
    return Table(header, rows)


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


def report_table(report: Report) -> Table:
    """One row a layer, pass, component, tensor and level."""
    return Table(COLUMNS, report.records)


def layer_sums(report: Report) -> tuple[list[str], dict[str, list[float]]]:
    """Passes in their order, and for each layer the energy of each pass [report's unit]."""
    energies: dict[tuple[str, str], list[float]] = {}
    for row in report.rows:
        energies.setdefault((row.layer, row.phase), []).append(row.energy)
    there = {phase for _, phase in energies}
    passes = [p for p in dict.fromkeys((*PASSES, *(r.phase for r in report.rows))) if p in there]
    sums = {
        layer: [fsum(energies.get((layer, phase), ())) for phase in passes]
        for layer in dict.fromkeys(row.layer for row in report.rows)
    }
    return passes, sums


def effects_table(effects: Sequence[Effect]) -> Table:
    """One row for every move and method."""
    return Table(Effect._fields, list(effects))


def spreads_table(found: Sequence[Sampled]) -> Table:
    """One row for every chip and method, and the samples in which the ranking held."""
    rows = [(*x, one.ranking_held, one.complete) for one in found for x in one.spreads]
    return Table((*Spread._fields, "ranking_held", "ranked_samples"), [*rows])


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and rows as CSV, numbers with every digit; None is an empty cell.

    Text that a spreadsheet would take for a formula is marked as text by an apostrophe.
    """
    pieces, left = [], chain([header], rows)
    while block := list(islice(left, BLOCK)):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([_cell(value) for value in row] for row in block)
        pieces.append(text.getvalue())
    return "".join(pieces)


def _cell(value: object) -> object:
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula else value


def read_csv(
    path: Path, check: Callable[[Sequence[str]], None] = lambda header: None
) -> tuple[tuple[str, ...], list[Row]]:
    """Header and rows of a CSV file, as text.

    Args:
        check: is given the header, and raises what it finds wrong with it.

    Raises: DataError.
    """
    columns = read_table(path, check)
    return tuple(columns), rows_of(columns)


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
