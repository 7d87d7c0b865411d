"""Parts of the page: lines of its tables and its sentences, made from reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import fsum
from typing import NamedTuple

from hwmodel.model.compare import Comparison
from hwmodel.model.energy import COMPUTE, Product, Row
from hwmodel.model.evaluate import Report
from hwmodel.rerun.tables import scale, what
from hwmodel.tiling.tile import Tiling
from hwmodel.views.colours import look
from hwmodel.views.html.charts import Segment, Shade, shaded, stacked
from hwmodel.work.problem import PASSES, Extents

__all__ = ["PARTS", "Group", "HeatMap", "LayerTable", "Member", "TilingLine", "groups", "heat_map"]
__all__ += ["layer_table", "sentence", "tiling_lines"]

PARTS = ("forward", "backward_input", "backward_weight", "update", "elementwise")
OPERATIONS = "operations"  # the heat map's column of what is no access
NAMED = 3  # largest parts that a sentence names


class Member(NamedTuple):
    """One method of a group, with its bars."""

    line: Comparison
    bar: list[Segment]  # percent of the baseline
    made_of: list[Segment]  # its parts, each in percent of its own energy


class Group(NamedTuple):
    """Methods on one chip under one accounting."""

    hardware: str
    accounting: str
    unit: str  # of the energies shown
    divisor: float
    most: float  # end of the scale [% of the baseline]
    members: list[Member]


class LayerLine(NamedTuple):
    """One layer: energy of each pass [the report's unit], their sum, its share and its bar."""

    layer: str
    kind: str
    energies: tuple[float, ...]
    total: float
    percent: float
    bar: list[Segment]


class LayerTable(NamedTuple):
    """Energy by layer and pass."""

    passes: tuple[str, ...]
    lines: list[LayerLine]
    sums: tuple[float, ...]  # of each pass
    unit: str
    divisor: float
    most: float  # end of the bars' scale [the report's unit]


class HeatMap(NamedTuple):
    """Energy by level and tensor; None where a tensor does not ask a level."""

    tensors: tuple[str, ...]
    lines: list[tuple[str, list[Shade | None], float]]  # level, cells, sum
    sums: list[float]  # of each tensor


class TilingLine(NamedTuple):
    """The tiling of one pass of one layer, and its certificate."""

    layer: str
    phase: str
    loops: str  # extents of the whole problem
    tiles: tuple[str, ...]  # of every level below the outermost
    held: str  # operand that stays, at each boundary
    certificate: str
    gap: float | None  # [%]; None: nothing is known


def groups(lines: Sequence[Comparison]) -> list[Group]:
    """Group the lines of a comparison by chip and accounting."""
    found = []
    for hardware, accounting in dict.fromkeys((x.hardware, x.accounting) for x in lines):
        here = [x for x in lines if (x.hardware, x.accounting) == (hardware, accounting)]
        divisor, unit = scale(min((x.energy for x in here if x.energy), default=0.0), here[0].unit)
        most = max(
            (p for x in here for p in (x.percent_of_baseline, x.source_percent) if p), default=0.0
        )
        members = [_member(x, most, divisor, unit) for x in here]
        found.append(Group(hardware, accounting, unit, divisor, most, members))
    return found


def _member(line: Comparison, most: float, divisor: float, unit: str) -> Member:
    """Return a line with its bars; none where nothing could be computed."""
    if line.energy is None:
        return Member(line, [], [])
    percent = line.percent_of_baseline or 0.0
    energies = [getattr(line, part) for part in PARTS]
    tips = [
        f"{line.method}, {part.replace('_', ' ')}: {energy / divisor:,.2f} {unit}, "
        f"{_percent(energy, line.energy):.1f} % of its energy"
        for part, energy in zip(PARTS, energies, strict=True)
    ]
    tip = f"{line.method}: {percent:.2f} % of the baseline, {line.energy / divisor:,.2f} {unit}"
    bar = stacked([percent], most, [look(line.method).colour], [tip])
    return Member(line, bar, stacked(energies, line.energy, PARTS, tips))


def layer_table(report: Report) -> LayerTable:
    """Sum energy by layer and pass; every row of the report is in one cell."""
    cells = _summed(report.rows, lambda row: (row.layer, row.phase))
    phases = dict.fromkeys((*PASSES, *(row.phase for row in report.rows)))
    passes = tuple(p for p in phases if any(phase == p for _, phase in cells))
    kinds = {node.layer.name: node.layer.kind for node in report.nodes}
    totals = _summed(report.rows, lambda row: (row.layer,))
    most = max(totals.values(), default=0.0)
    divisor, unit = scale(report.energy, report.unit)
    lines = []
    for (layer,), total in totals.items():
        energies = tuple(cells.get((layer, phase), 0.0) for phase in passes)
        tips = [
            f"{layer}, {phase.replace('_', ' ')}: {energy / divisor:,.2f} {unit}, "
            f"{_percent(energy, report.energy):.2f} % of the whole"
            for phase, energy in zip(passes, energies, strict=True)
        ]
        bar = stacked(energies, most, passes, tips)
        share = _percent(total, report.energy)
        lines.append(LayerLine(layer, kinds.get(layer, ""), energies, total, share, bar))
    by_pass = _summed(report.rows, lambda row: (row.phase,))
    sums = tuple(by_pass[(phase,)] for phase in passes)
    return LayerTable(passes, lines, sums, unit, divisor, most)


def heat_map(report: Report) -> HeatMap:
    """Sum energy by level, outermost first, and tensor; operations stand apart."""
    cells = _summed(report.rows, lambda row: (row.level, _column(row)))
    tensors = tuple(dict.fromkeys(_column(row) for row in report.rows if row.level != COMPUTE))
    columns = (*tensors, OPERATIONS) if any(c == OPERATIONS for _, c in cells) else tensors
    levels = [buffer.name for level in report.hardware.levels for buffer in level.buffers]
    most = max(cells.values(), default=0.0)
    divisor, unit = scale(report.energy, report.unit)

    def cell(level: str, column: str) -> Shade | None:
        if (level, column) not in cells:
            return None
        energy = cells[level, column]
        share = _percent(energy, report.energy)
        tip = f"{column} at {level}: {energy / divisor:,.4f} {unit}, {share:.2f} % of the whole"
        return shaded(energy, most, tip)

    by_level = _summed(report.rows, lambda row: (row.level,))
    by_column = _summed(report.rows, lambda row: (_column(row),))
    lines = [
        (level, [cell(level, column) for column in columns], by_level.get((level,), 0.0))
        for level in (*levels, COMPUTE)
    ]
    return HeatMap(columns, lines, [by_column[(column,)] for column in columns])


def _column(row: Row) -> str:
    return OPERATIONS if row.level == COMPUTE else row.tensor


def tiling_lines(report: Report) -> list[TilingLine]:
    """List the tiling of every product, in the order of the report."""
    return [_tiling_line(work, tiling) for work, tiling in report.tilings]


def _tiling_line(work: Product, tiling: Tiling) -> TilingLine:
    proof, mapping = tiling.certificate, tiling.mapping
    tiles, above = [], work.problem.extent
    for tile in mapping.tiles:
        tiles.append("whole" if tile == above else _extents(tile))
        above = tile
    groups = f"{work.problem.groups} x " if work.problem.groups > 1 else ""
    found, gap = "none", None
    if proof is not None:
        gap = 100 * proof.gap
        found = "proved" if proof.proved else f"gap {gap:.2f} %"
    loops = groups + _extents(work.problem.extent)
    held = " ".join(mapping.held)
    return TilingLine(work.layer, work.phase, loops, tuple(tiles), held, found, gap)


def _extents(tile: Extents) -> str:
    return " ".join(map(str, tile))


def sentence(report: Report, percent: float | None, baseline: str) -> str:
    """Say what the method costs on the chip, and which levels, passes and layers cost most.

    Args:
        percent: of the baseline's energy; None where that has none.
        baseline: name of the method that is 100 %.
    """
    divisor, unit = scale(report.energy, report.unit)
    energy = f"{report.energy / divisor:,.2f} {unit}"
    cost = energy if percent is None else f"{percent:.2f} % of the baseline {baseline}"
    also = "" if percent is None else f": {energy}"
    levels = _largest(report, lambda row: (_place(row),))
    passes = _largest(report, lambda row: (row.phase.replace("_", " "),))
    layers = _largest(report, lambda row: (row.layer,))
    return (
        f"Under {report.method.name}, one {what(report.mode, report.batch)} of "
        f"{report.network.name} costs {cost} on {report.hardware.name}{also}, of which {levels}. "
        f"By pass, {passes}; by layer, {layers}."
    )


def _place(row: Row) -> str:
    return OPERATIONS if row.level == COMPUTE else row.level


def _largest(report: Report, key: Callable[[Row], tuple[str, ...]]) -> str:
    """Say the largest shares: `L3 takes 64.7 %, operations 27.7 % and L2 4.5 %`."""
    sums = _summed(report.rows, key)
    first = sorted(sums.items(), key=lambda item: -item[1])[:NAMED]
    shares = [
        f"{' '.join(name)}{'' if i else ' takes'} {_percent(energy, report.energy):.1f} %"
        for i, (name, energy) in enumerate(first)
    ]
    return " and ".join(part for part in (", ".join(shares[:-1]), *shares[-1:]) if part)


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def _summed(
    rows: Iterable[Row], key: Callable[[Row], tuple[str, ...]]
) -> dict[tuple[str, ...], float]:
    """Sum the energies of rows by their key, in order of appearance."""
    found: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row.energy)
    return {name: fsum(energies) for name, energies in found.items()}
