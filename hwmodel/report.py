"""Rows -> tables on screen and CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodel.comparison import Comparison
from hwmodel.energy import COMPUTE
from hwmodel.evaluation import COLUMNS, Report
from hwmodel.files import whole_file
from hwmodel.layers import PASSES

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["NATURE", "comparison_csv", "comparison_tables", "report_csv", "report_tables"]
__all__ += ["notes", "scale", "table", "write_text"]

NATURE = "analytical, not measured"
_PARTS = {  # heading -> field of `Comparison`; the first five sum to the energy, and the last two
    "forward": "forward",
    "backward input": "backward_input",
    "backward weight": "backward_weight",
    "update": "update",
    "elementwise": "elementwise",
    "compute": "compute",
    "memory": "memory",
}
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


def comparison_csv(lines: Sequence[Comparison]) -> str:
    """One row a line, full precision; an empty cell where there is no value."""
    return _csv(Comparison._fields, lines)


def report_csv(report: Report) -> str:
    """The tidy table, full precision."""
    return _csv(COLUMNS, report.records)


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def write_text(path: Path, text: str) -> None:
    """A whole file or none. Raises: HwmodelError."""
    with whole_file(path) as stream:
        stream.write(text)


def _number(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)


def comparison_tables(
    lines: Sequence[Comparison], baseline: str, *, parts: bool = True
) -> Iterator[RenderableType]:
    """A table per chip; without `parts` one that fits 80 columns."""
    shown = _PARTS if parts else {}
    for hardware in dict.fromkeys(line.hardware for line in lines):
        here = [line for line in lines if line.hardware == hardware]
        divisor, unit = scale(min(line.energy for line in here), here[0].unit)
        first = here[0]
        listed = table(
            f"{first.network} on {hardware}: energy of one {_what(first.mode, first.batch)}, "
            f"accounting {first.accounting}",
            ["method"],
            [f"energy, {unit}", f"% of {baseline}", "published %", "residual %", *shown],
        )
        for line in here:
            listed.add_row(
                line.method,
                f"{line.energy / divisor:,.1f}",
                _number(line.percent_of_baseline),
                _number(line.source_percent),
                _number(line.residual_percent, "+.1f"),
                *(f"{getattr(line, part) / divisor:,.1f}" for part in shown.values()),
            )
        yield listed


def report_tables(report: Report) -> Iterator[RenderableType]:
    """Energy by layer and pass, then energy and traffic by level."""
    rows = report.rows
    divisor, unit = scale(report.energy, report.unit)
    head = (
        f"{report.network.name} on {report.hardware.name} under {report.method.name}: one "
        f"{_what(report.mode, report.batch)}, accounting {report.accounting.name}, {unit}"
    )
    passes = [*dict.fromkeys([*PASSES, *(row.phase for row in rows)])]
    passes = [phase for phase in passes if any(row.phase == phase for row in rows)]
    listed = table(head, ["layer"], [*(p.replace("_", " ") for p in passes), "sum", "%"])
    for layer in [*dict.fromkeys(row.layer for row in rows), None]:
        mine = [row for row in rows if layer is None or row.layer == layer]
        total = fsum(row.energy for row in mine)
        share = 100 * total / report.energy if report.energy else 0.0
        cells = [fsum(row.energy for row in mine if row.phase == phase) for phase in passes]
        listed.add_row(
            layer or "all layers",
            *(f"{cell / divisor:,.2f}" for cell in (*cells, total)),
            f"{share:.1f}",
            style="bold" if layer is None else "",
        )
    yield listed
    yield _level_table(report, divisor, unit)


def _level_table(report: Report, divisor: float, unit: str) -> Table:
    """Energy, accesses and bits of every level, outermost first, then the operations."""
    listed = table(
        f"by level, {unit}", ["level"], ["accesses", "Mbit moved", "operations", "energy", "%"]
    )
    names = [buffer.name for level in report.hardware.levels for buffer in level.buffers]
    for level in [*names, COMPUTE]:
        mine = [row for row in report.rows if row.level == level]
        energy = fsum(row.energy for row in mine)
        share = 100 * energy / report.energy if report.energy else 0.0
        listed.add_row(
            level,
            f"{sum(row.accesses for row in mine):,}",
            f"{sum(row.bits for row in mine) / 1e6:,.1f}",
            f"{sum(row.operations for row in mine):,}",
            f"{energy / divisor:,.2f}",
            f"{share:.1f}",
        )
    return listed


def _what(mode: str, batch: int) -> str:
    iteration = "training iteration" if mode == "training" else "inference"
    return f"{iteration} of {batch} image{'s' if batch > 1 else ''}"


def table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """An empty table: columns of words to the left, columns of numbers to the right."""
    from rich import box
    from rich.table import Table

    empty = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for word in words:
        empty.add_column(word, no_wrap=True)
    for number in numbers:
        empty.add_column(number, justify="right")
    return empty


def notes(not_counted: Sequence[str]) -> str:
    """How every report ends: what it leaves out, and what kind of figure it gives."""
    listed = "".join(f"\n  - {item}" for item in not_counted)
    return f"Not counted:{listed}\nAll figures are {NATURE}."
