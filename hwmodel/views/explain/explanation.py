"""One layer's energy, formula by formula, with the numbers put in.

The explanation is made of the same loop nests and streams that the report was made of, and of the
report's rows; each number that it prints is compared with the report's, and a difference is an
error. Nothing is counted or priced here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from hwmodel.errors import HwmodelError, nearest
from hwmodel.graph.node import Node
from hwmodel.model.energy import COMPUTE, Product, Row, Stream, product_rows, stream_rows
from hwmodel.model.evaluate import Report
from hwmodel.model.workload import works
from hwmodel.rerun.tables import NATURE, what
from hwmodel.tiling.tile import Tiling
from hwmodel.views.explain.layer import layer_section
from hwmodel.views.explain.prices import memories, operation_prices
from hwmodel.views.explain.products import NumberedRow, product_sections
from hwmodel.views.explain.steps import Explanation, Section, Step, Table, added, energy
from hwmodel.views.explain.streams import stream_sections

__all__ = ["explanation", "explanation_markdown"]

Work = tuple[Product | Stream, Sequence[NumberedRow]]


def explanation(report: Report, layer: str, phase: str | None = None) -> Explanation:
    """The whole derivation of the energy of one layer, or of one of its passes.

    Args:
        phase: forward, backward_input, backward_weight or update; None is all of them.

    Raises: HwmodelError where the report has no such layer, or the layer no such pass.
    """
    node = _node(report, layer)
    done = [] if node is None else _numbered(node, report, phase)
    rows = [numbered for _, rows in done for numbered in rows]
    _compare(report, layer, phase, [row for _, row in rows])
    if phase is not None and not rows:
        known = dict.fromkeys(row.phase for row in report.rows if row.layer == layer)
        raise HwmodelError(
            f"{layer} has no work in pass {phase}, only in {', '.join(known) or 'none'}"
        )
    total = fsum(row.energy for _, row in rows)
    sections = [*_sections(node, done, report)] if node else []
    sections += _sum(rows, total, report) if rows else [_nothing(layer, report)]
    title = (
        f"{layer} of {report.network.name} on {report.hardware.name} under {report.method.name}, "
        f"accounting {report.accounting.name}: one {what(report.mode, report.batch)}"
    )
    return Explanation(layer, title, tuple(sections), total, report.unit)


def _node(report: Report, layer: str) -> Node | None:
    """The layer at its place; None if the method omits it. Raises: HwmodelError."""
    for node in report.nodes:
        if node.layer.name == layer:
            return node
    names = [known.name for known in report.network.layers]
    if layer in names:
        return None
    hint = nearest(layer, names)
    if hint.startswith("known: ") and len(names) > 20:
        hint = f"`hwmodel network show {report.network.name}` lists its {len(names)} layers"
    raise HwmodelError(f"{report.network.name} has no layer {layer!r}: {hint}")


def _numbered(node: Node, report: Report, phase: str | None) -> list[Work]:
    """Every piece of a layer's work with the rows it makes, which are numbered through."""
    done: list[Work] = []
    number = 1
    for work in works(node, report.edges, report.job):
        if phase in (None, work.phase):
            rows = _rows(work, report)
            done.append((work, list(enumerate(rows, number))))
            number += len(rows)
    return done


def _rows(work: Product | Stream, report: Report) -> list[Row]:
    if isinstance(work, Stream):
        return stream_rows(work, report.hardware, report.accounting)
    mapping = _tiling(work, report).mapping
    return product_rows(work, mapping, report.hardware, report.accounting)


def _tiling(work: Product, report: Report) -> Tiling:
    return next(tiling for known, tiling in report.tilings if known == work)


def _compare(report: Report, layer: str, phase: str | None, rows: list[Row]) -> None:
    """See that the rows explained are the report's, to the last bit. Raises: AssertionError."""
    reported = [row for row in report.rows if row.layer == layer and phase in (None, row.phase)]
    if rows != reported:
        raise AssertionError(f"{layer}: the rows explained are not those of the report")


def _sections(node: Node, done: Sequence[Work], report: Report) -> Iterator[Section]:
    """The layer, the constants, then pass by pass, then what is merely moved."""
    products = [(work, rows) for work, rows in done if isinstance(work, Product)]
    streams = [(work, rows) for work, rows in done if isinstance(work, Stream)]
    yield layer_section(node, [work for work, _ in products], report)
    if not any(rows for _, rows in done):
        return
    yield memories(report.hardware)
    needed = [(op.kind, op.bits) for work, _ in done for op in work.operations if op.times]
    if needed:
        yield operation_prices(needed, report.hardware, report.accounting)
    for product, rows in products:
        yield from product_sections(product, _tiling(product, report), node, report, rows)
    yield from stream_sections(streams, node, report)


def _nothing(layer: str, report: Report) -> Section:
    """Why a layer has no rows, as far as it is known."""
    (kind,) = (known.kind for known in report.network.layers if known.name == layer)
    if all(node.layer.name != layer for node in report.nodes):
        text = f"Method {report.method.name} does without layers of kind {kind}."
    else:
        text = (
            f"Nothing is counted of this layer under method {report.method.name} and accounting "
            f"{report.accounting.name}: it has no rows in the report."
        )
        if report.accounting.extras.elementwise == "preactivation-words":
            text += " Words for batch norm and scaling stand with the layer whose sums they take."
    return Section("Sum", text=text, steps=(Step("energy", result="0", unit=report.unit),))


def _sum(rows: Sequence[NumberedRow], total: float, report: Report) -> Iterator[Section]:
    """The report's rows, their sum pass by pass, and what the sources are called in full."""
    header = ("row", "pass", "component", "tensor", "level", "accesses or operations",
              f"energy [{report.unit}]")  # fmt: skip
    cells = tuple(
        (
            str(number), row.phase, row.component, row.tensor, row.level,
            f"{row.operations if row.level == COMPUTE else row.accesses:,}", energy(row.energy),
        )
        for number, row in rows
    )  # fmt: skip
    phases = {
        phase: fsum(row.energy for _, row in rows if row.phase == phase)
        for phase in dict.fromkeys(row.phase for _, row in rows)
    }
    steps = tuple(
        added(f"energy of {phase}", [row.energy for _, row in rows if row.phase == phase],
              subtotal, report.unit)
        for phase, subtotal in phases.items()
    )  # fmt: skip
    steps += (added("energy of the layer", phases.values(), total, report.unit),)
    yield Section("Sum", text="The rows of the report.", table=Table(header, cells), steps=steps)
    yield _publications(report)


def _publications(report: Report) -> Section:
    """What the short names of sources stand for."""
    rows = [
        (spec.KIND, spec.name, key, text)
        for spec in (report.hardware, report.method, report.accounting)
        for key, text in spec.sources.items()
    ]
    text = f"All figures are {NATURE}."
    return Section("Sources", text=text, table=Table(("file", "name", "key", "is"), tuple(rows)))


def explanation_markdown(explanation: Explanation) -> str:
    """An explanation as Markdown; each computation is a code span `numbers = result`."""
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
    """A line of a list; the row of the table that it explains stands in front."""
    line = f"- **row {step.row}** {step.text}" if step.row else f"- {step.text}"
    line += f": {step.formula}" if step.formula else ""
    if step.result:
        done = step.result  # a number alone is no computation
        if step.numbers not in ("", done):
            done = f"{step.numbers} = {done}"
        line += f": `{done}` {step.unit}".rstrip()
    return line + (f" [{step.source}]" if step.source else "")
