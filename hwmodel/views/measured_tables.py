"""Measured figures beside ours: a table on screen for each set, a sentence, a table for print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hwmodel.rerun.tables import NATURE, scale
from hwmodel.specs.measured import MeasuredTable
from hwmodel.specs.provenance import Provenance
from hwmodel.vary.against import ABOVE, CALIBRATION, Against
from hwmodel.views.paper import Column, Heading, Paper
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["measured_paper", "measured_tables", "sentence"]

ORDER = (
    "within 10 %",
    "within 25 %",
    "within 2 x",
    "off",
    "below",
    ABOVE,
    CALIBRATION,
)


def measured_tables(
    tables: Sequence[MeasuredTable], found: Mapping[str, Sequence[Against]]
) -> Iterator[RenderableType]:
    """Yield a table for each set of measurements, its source, what is left out, and a sentence."""
    from rich.text import Text

    for one in tables:
        lines = found[one.name]
        listed = table(
            f"{one.name}: {one.title}",
            ["row", "quantity", "unit"],
            ["published", "ours", "if nothing overlaps", "ours / published", "verdict"],
        )
        for line, (factor, unit) in zip(lines, _shown(lines), strict=True):
            serial = "" if line.serial is None else _number(line.serial * factor)
            numbers = _number(line.published * factor), _number(line.ours * factor), serial
            ratio = f"{line.ratio:.3f}"
            listed.add_row(line.row, line.quantity, unit, *numbers, ratio, line.verdict)
        yield listed
        said = [*_runs(lines), f"Source: {one.source}.", sentence(lines)]
        said += dict.fromkeys(f"{line.row}: {line.why}." for line in lines if line.why)
        said += ["Measured and not counted, or not known:", *(f"  - {x}" for x in one.left_out)]
        yield Text("".join(f"  {line}\n" for line in said))


def _runs(lines: Sequence[Against]) -> Iterator[str]:
    """Yield what all rows are computed with, then what a row is beside that."""
    parts = {line.row: line.run.split("; ") for line in lines}
    first = next(iter(parts.values()), [])
    common = [part for part in first if all(part in own for own in parts.values())]
    yield f"Run: {'; '.join(common)}."
    rows: dict[str, list[str]] = {}
    for row, own in parts.items():
        if rest := "; ".join(part for part in own if part not in common):
            rows.setdefault(rest, []).append(row)
    yield from (f"Run of {' | '.join(of)}: {rest}." for rest, of in rows.items())


def sentence(lines: Sequence[Against]) -> str:
    """Count the verdicts.

    Times are counted as they say first; what lies between two bounds is no verdict of its own.
    """
    counts = Counter(line.verdict.partition(",")[0] for line in lines)
    told = [f"{counts[word]} {word}" for word in ORDER if counts[word]]
    return f"{len(lines)} figures: {', '.join(told)}."


def measured_paper(lines: Sequence[Against], provenance: Provenance) -> Paper:
    """Make a table for print of all figures."""
    blank = Heading("")
    columns = (
        Column(blank, Heading("published"), 4),
        Column(blank, Heading("ours"), 4),
        Column(blank, Heading("ours / published"), 3),
    )
    caption = f"Measured figures and ours; ours are {NATURE} (hwmodel {provenance.version})."
    rows: list[tuple[tuple[str, ...], tuple[float | None, ...]]] = []
    for line, (factor, unit) in zip(lines, _shown(lines), strict=True):
        words = line.table, line.row, line.quantity, unit, line.verdict
        rows.append((words, (line.published * factor, line.ours * factor, line.ratio)))
    return Paper(
        caption, "tab:measured", ("table", "row", "quantity", "unit", "verdict"), columns, rows
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _shown(lines: Sequence[Against]) -> Iterator[tuple[float, str]]:
    """Yield a factor and the unit that it leads to: joules in the size that fits their table."""
    least: dict[str, float] = {}
    for line in lines:
        if line.quantity == "energy":
            least[line.table] = min(least.get(line.table, line.published), line.published)
    for line in lines:
        if line.quantity != "energy":
            yield 1.0, line.unit
            continue
        divisor, unit = scale(least[line.table] * 1e13, "pJ")
        yield 1e12 / divisor, line.unit.replace("J", unit, 1)
