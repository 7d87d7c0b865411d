"""One layer's energy, formula by formula, with the numbers put in."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

from hwmodel.errors import NameUnknown
from hwmodel.evaluation import Report
from hwmodel.views.explain_steps import Explanation, Section, Step, Table
from hwmodel.views.tables import what

__all__ = ["explanation", "explanation_markdown"]


def explanation(report: Report, layer: str) -> Explanation:
    """The whole derivation of the energy of one layer. Raises: NameUnknown."""
    names = [known.name for known in report.network.layers]
    if layer not in names:
        raise NameUnknown("layer", layer, names)
    rows = [row for row in report.rows if row.layer == layer]
    energy = fsum(row.energy for row in rows)
    title = (
        f"{layer} of {report.network.name} on {report.hardware.name} under {report.method.name}, "
        f"accounting {report.accounting.name}: one {what(report.mode, report.batch)}"
    )
    header = ("pass", "component", "tensor", "level", f"energy [{report.unit}]")
    cells = tuple((*row[1:5], f"{row.energy:.6g}") for row in rows)
    total = Section("Sum", table=Table(header, cells))
    return Explanation(layer, title, (total,), energy, report.unit)


def explanation_markdown(explanation: Explanation) -> str:
    """An explanation as Markdown, each computation in a code span of its own."""
    parts = [f"# {explanation.title}"]
    for section in explanation.sections:
        parts.append(f"{'#' * section.depth} {section.title}")
        parts += [section.text] if section.text else []
        parts += [f"```\n{section.code}\n```"] if section.code else []
        parts += ["\n".join(_table(section.table))] if section.table else []
        parts += ["\n".join(map(_step, section.steps))] if section.steps else []
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> Iterator[str]:
    yield _cells(table.header)
    yield _cells(("---",) * len(table.header))
    yield from map(_cells, table.rows)


def _cells(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _step(step: Step) -> str:
    computed = f"`{step.numbers} = {step.result}`" if step.numbers else f"**{step.result}**"
    line = f"- {step.text}"
    line += f": {step.formula}" if step.formula else ""
    line += f": {computed} {step.unit}".rstrip() if step.result else ""
    return line + (f" ({step.source})" if step.source else "")
