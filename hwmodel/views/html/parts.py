"""Parts of the page: lines of its tables and its sentences, made from reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hwmodel.model.compare import Comparison
from hwmodel.model.ledger import OPERATIONS, PLACES, Component
from hwmodel.model.report import Report
from hwmodel.model.workload import Task
from hwmodel.rerun.tables import common_scale, fixed, greedy_notes, layer_sums, scale, what
from hwmodel.tiling.tile import Tiling
from hwmodel.views.colours import called, look
from hwmodel.views.html.charts import Segment, Shade, shaded, stacked
from hwmodel.work.problem import PASSES, Extents
from hwmodel.work.tensor import Pass
from hwmodel.work.work import Multiply

__all__ = ["PARTS", "Group", "HeatMap", "LayerTable", "Member", "TilingLine", "groups", "heat_map"]
__all__ += ["layer_table", "sentence", "tiling_lines"]

# Fields of `Comparison` that sum to its energy, in the order of an iteration.
PARTS = (
    *(f"{pass_}_{component}" for pass_ in PASSES for component in Component),
    Pass.UPDATE.value,
)
NAMED = 3  # largest parts that a sentence names


class Member(NamedTuple):
    """One method of a group, with its bars."""

    line: Comparison
    bar: list[Segment]  # percent of the baseline
    made_of: list[Segment]  # its parts, each in percent of its own energy


class Group(NamedTuple):
    """Methods on one chip under one accounting at one batch."""

    hardware: str
    accounting: str
    batch: int
    unit: str  # of the energies shown
    divisor: float
    decimals: int
    most: float  # end of the scale [% of the baseline]
    members: list[Member]
    published: bool  # whether there is a published figure
    static: bool  # whether there is static energy
    greedy: list[str]  # what is to be said of greedy tiles; nothing where they are optimal


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
    """Energy by memory and tensor; None where a tensor does not ask a memory."""

    tensors: tuple[str, ...]
    lines: list[tuple[str, list[Shade | None], float]]  # memory, cells, sum
    sums: list[float]  # of each tensor


class TilingLine(NamedTuple):
    """The tiling of one pass of one layer, and its certificate."""

    layer: str
    pass_: str
    loops: str  # extents of the whole problem
    tiles: tuple[str, ...]  # of every level below the outermost
    held: str  # operand that stays, at each boundary
    certificate: str
    gap: float | None  # [%]; None: nothing is known


def groups(lines: Sequence[Comparison]) -> list[Group]:
    """Group the lines of a comparison by chip, accounting and batch."""
    found = []
    for place in dict.fromkeys((x.hardware, x.accounting, x.batch) for x in lines):
        here = [x for x in lines if (x.hardware, x.accounting, x.batch) == place]
        alike = (x.energy for x in lines if x.unit == here[0].unit)  # one unit on every chip
        divisor, unit, decimals = common_scale(alike, here[0].unit)
        most = max(
            (p for x in here for p in (x.percent_of_baseline, x.source_percent) if p), default=0.0
        )
        members = [_member(x, most, divisor, unit, decimals) for x in here]
        known = any(x.source_percent is not None for x in here)
        notes = greedy_notes(here, called)
        static = any(x.static for x in here)
        found.append(Group(*place, unit, divisor, decimals, most, members, known, static, notes))
    return found


def _member(line: Comparison, most: float, divisor: float, unit: str, decimals: int) -> Member:
    """Return a line with its bars; none where nothing could be computed."""
    if line.energy is None:
        return Member(line, [], [])
    percent = line.percent_of_baseline or 0.0
    energies = [getattr(line, part) for part in PARTS]
    tips = [
        f"{called(line.method)}, {part.replace('_', ' ')}: {fixed(energy / divisor, decimals)} "
        f"{unit}, "
        f"{_percent(energy, line.energy):.1f} % of its energy"
        for part, energy in zip(PARTS, energies, strict=True)
    ]
    energy = f"{fixed(line.energy / divisor, decimals)} {unit}"
    tip = f"{called(line.method)}: {percent:.2f} % of the baseline, {energy}"
    bar = stacked([percent], most, [look(line.method).colour], [tip])
    return Member(line, bar, stacked(energies, line.energy, PARTS, tips))


def layer_table(report: Report) -> LayerTable:
    """Sum energy by layer and pass; every row of the report is in one cell."""
    passes, sums = layer_sums(report)
    kinds = {node.layer.name: node.layer.kind for node in report.nodes}
    totals = report.energies("layer")
    most = max(totals.values(), default=0.0)
    divisor, unit = scale(report.energy, report.unit)
    lines = []
    for (layer,), total in totals.items():
        energies = tuple(sums[layer])
        tips = [
            f"{layer}, {pass_.replace('_', ' ')}: {energy / divisor:,.2f} {unit}, "
            f"{_percent(energy, report.energy):.2f} % of the whole"
            for pass_, energy in zip(passes, energies, strict=True)
        ]
        bar = stacked(energies, most, passes, tips)
        share = _percent(total, report.energy)
        lines.append(LayerLine(layer, kinds.get(layer, ""), energies, total, share, bar))
    by_pass = report.energies("pass")
    whole = tuple(by_pass[(pass_,)] for pass_ in passes)
    return LayerTable(tuple(passes), lines, whole, unit, divisor, most)


def heat_map(report: Report) -> HeatMap:
    """Energy by memory, outermost first, and tensor; operations are rows of their own."""
    cells = report.energies("place", "tensor")
    columns = tuple(tensor for (tensor,) in report.energies("tensor"))
    most = max(cells.values(), default=0.0)
    divisor, unit = scale(report.energy, report.unit)

    def cell(memory: str, column: str) -> Shade | None:
        if (memory, column) not in cells:
            return None
        energy = cells[memory, column]
        share = _percent(energy, report.energy)
        at = f"operations on {column}" if memory == OPERATIONS else f"{column} at {memory}"
        return shaded(
            energy, most, f"{at}: {energy / divisor:,.4f} {unit}, {share:.2f} % of the whole"
        )

    by_place, by_tensor = report.energies("place"), report.energies("tensor")
    names = [buffer.name for level in report.hardware.levels for buffer in level.buffers]
    others = [place for (place,) in by_place if place not in PLACES]  # hops into split levels
    places = dict.fromkeys((*names, *others, *(p for p in PLACES if by_place.get((p,)))))
    lines = [
        (place, [cell(place, x) for x in columns], by_place.get((place,), 0.0)) for place in places
    ]
    return HeatMap(columns, lines, [by_tensor[(column,)] for column in columns])


def tiling_lines(report: Report) -> list[TilingLine]:
    """List the tiling of every product, in the order of the report."""
    return [_tiling_line(task, tiling) for task, tiling in report.tilings]


def _tiling_line(task: Task, tiling: Tiling) -> TilingLine:
    assert isinstance(task.work, Multiply)
    problem = task.work.problem
    proof, mapping = tiling.certificate, tiling.mapping
    tiles, above = [], problem.extent
    for tile in mapping.tiles:
        tiles.append("whole" if tile == above else _extents(tile))
        above = tile
    groups = f"{problem.groups} x " if problem.groups > 1 else ""
    found, gap = "none", None
    if proof is not None:
        gap = 100 * proof.gap
        found = "proved" if proof.proved else f"gap {gap:.2f} %"
    loops = groups + _extents(problem.extent)
    held = " ".join(mapping.held)
    return TilingLine(task.layer, task.work.pass_, loops, tuple(tiles), held, found, gap)


def _extents(tile: Extents) -> str:
    return " ".join(map(str, tile))


def sentence(report: Report, percent: float | None, baseline: str) -> str:
    """Say what the method costs on the chip, and which levels, passes and layers cost most.

    Args:
        percent: of the baseline's energy; None where that has none.
        baseline: name of the method that is 100 %.
    """
    divisor, unit = scale(report.energy, report.unit)
    energy = f"{fixed(report.energy / divisor, 2)} {unit}"
    cost = energy if percent is None else f"{percent:.2f} % of the baseline {called(baseline)}"
    also = "" if percent is None else f": {energy}"
    levels, passes, layers = (_largest(report, column) for column in ("place", "pass", "layer"))
    return (
        f"Under {called(report.method.name)}, one {what(report.mode, report.batch)} of "
        f"{called(report.network.name, 'network')} costs {cost} on "
        f"{called(report.hardware.name, 'hardware')}{also}, "
        f"of which {levels}. "
        f"By pass, {passes}; by layer, {layers}."
    )


def _largest(report: Report, column: str) -> str:
    """The largest shares in words: `L3 takes 64.7 %, (operations) 27.7 % and L2 4.5 %`."""
    first = sorted(report.energies(column).items(), key=lambda item: -item[1])[:NAMED]
    shares = [
        f"{name.replace('_', ' ') if column == 'pass' else name}"
        f"{'' if i else ' takes'} {_percent(energy, report.energy):.1f} %"
        for i, ((name,), energy) in enumerate(first)
    ]
    return " and ".join(part for part in (", ".join(shares[:-1]), *shares[-1:]) if part)


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0
