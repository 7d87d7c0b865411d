"""Tidy tables of results as CSV, and the sentences that every view has."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hwmodel.errors import DataError
from hwmodel.model.compare import Comparison
from hwmodel.model.duration import UNTIMED
from hwmodel.model.optimal_tiles import greedy_note, optimal_tiles
from hwmodel.model.proof import Proof, together
from hwmodel.model.reached import Reached
from hwmodel.model.report import COLUMNS, Report
from hwmodel.specs.csv_files import Check, Row, read_table, rows_of
from hwmodel.specs.provenance import COLUMNS as PROVENANCE
from hwmodel.specs.provenance import Provenance
from hwmodel.specs.training import PJ_PER_KWH, Training
from hwmodel.work.tensor import Pass

if TYPE_CHECKING:
    from hwmodel.vary.against import Against
    from hwmodel.vary.readings import Readings
    from hwmodel.vary.sensitivity import Effect, Sampled

__all__ = ["ADDED", "COMPARED", "NATURE", "Table", "against_table", "alike"]
__all__ += [
    "common_scale",
    "comparison_table",
    "csv_text",
    "decimals_of",
    "effects_table",
    "fixed",
    "greedy_notes",
    "layer_sums",
]
__all__ += [
    "notes",
    "of_batches",
    "read_csv",
    "read_rows",
    "readings_table",
    "report_table",
    "run_sentence",
    "scale",
]
__all__ += ["spreads_table", "tiles_sentence", "unproved", "what", "whole_run", "whose"]

BLOCK = 10_000  # rows that are turned into text at a time
NATURE = "analytical, not measured"
COMPARED = Comparison._fields[:-4]  # columns of the CSV; the last are for other views
# Columns that tables of before have not: they are read and verified without.
ADDED: tuple[str, ...] = ("energy_optimal_tiles", "percent_of_baseline_optimal_tiles", "tiles")
ADDED += ("static", "peak_bytes", *UNTIMED, "accumulate", "lacking_memory", "lacking_bytes")
Made = TypeVar("Made")  # a named tuple
_JOULES = (1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ"), (1.0, "pJ")
_POWERS = (1e12, "10¹² "), (1e9, "10⁹ "), (1e6, "10⁶ "), (1e3, "10³ "), (1.0, "")  # of MACs


def scale(energy: float, unit: str) -> tuple[float, str]:
    """Return a divisor and its unit, in which `energy` is at least 10 where possible.

    >>> scale(3.2e8, "pJ"), scale(3.2e8, "MAC (fp32)")
    ((1000000.0, 'µJ'), (1000000.0, '10⁶ MAC (fp32)'))
    """
    steps = _JOULES if unit == "pJ" else [(size, f"{power}{unit}") for size, power in _POWERS]
    return next((step for step in steps if energy >= 10 * step[0]), steps[-1])


def common_scale(energies: Iterable[float | None], unit: str) -> tuple[float, str, int]:
    """Return a divisor, its unit and decimals for energies that stand together, in every view.

    The unit suits the least of them, or is the next where the largest would have more than six
    digits; the decimals are those of the least.

    >>> common_scale([3.2e8, None, 9e9], "pJ"), common_scale([3.2e8, 5e13], "pJ")
    ((1000000.0, 'µJ', 1), (1000000000.0, 'mJ', 3))
    """
    known = [energy for energy in energies if energy]
    least, most = min(known, default=0.0), max(known, default=0.0)
    divisor, its = scale(least, unit)
    if most >= 1e6 * divisor:
        divisor, its = scale(1e4 * divisor, unit)
    return divisor, its, decimals_of(least / divisor)


def decimals_of(least: float) -> int:
    """Count the decimals in which a number has three significant digits, one at least.

    >>> [decimals_of(x) for x in (0.0, 0.0123, 1.23, 12.3, 1234.5)]
    [1, 4, 2, 1, 1]
    """
    return max(1, 2 - floor(log10(least))) if least > 0 else 1


def fixed(value: float, decimals: int = 1) -> str:
    """Write a number for a reader; of one beyond counting its size in place of every digit.

    >>> fixed(1234.56), fixed(1e91, 2)
    ('1,234.6', '1.0000e+91')
    """
    return f"{value:,.{decimals}f}" if abs(value) < 1e15 else f"{value:.4e}"


class Table(NamedTuple):
    """Tidy records: one header, rows as long as it; None where there is no value."""

    header: tuple[str, ...]
    rows: list[tuple[object, ...]]

    def csv(self, provenance: Provenance | None = None) -> str:
        """Write the table as CSV, with its provenance at the end of every row, if given."""
        if provenance is None:
            return csv_text(self.header, self.rows)
        rows = ((*row, *provenance.cells) for row in self.rows)
        return csv_text((*self.header, *provenance.columns), rows)

    def stamped(self, provenance: Provenance) -> Table:
        """Add the provenance at the end of every row."""
        header = (*self.header, *provenance.columns)
        return Table(header, [(*row, *provenance.cells) for row in self.rows])


def comparison_table(
    lines: Sequence[Comparison], run: Training | None = None, reached: Sequence[Reached] = ()
) -> Table:
    """Make a table of a comparison, one row a line.

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
    """Return name, iterations and energy of a whole run, in kWh where the unit is of energy."""
    iterations = run.iterations(line.batch)
    if line.energy is None:
        return run.name, iterations, None, None
    energy = iterations * line.energy
    kwh = energy / PJ_PER_KWH if line.unit == "pJ" else None
    return run.name, iterations, energy, kwh


Called = Callable[..., str]  # of a name and its kind, the label


def _name(name: str, kind: str = "method") -> str:
    return name


def greedy_notes(lines: Sequence[Comparison], called: Called = _name) -> list[str]:
    """Say of which lines tiles are greedy, what was exchanged beside them, and what is unproved.

    Args:
        called: what a method is called; by default its name.
    """
    found: dict[str, None] = {}
    for line in lines:
        if (
            line.report
            and line.optimal
            and (line.optimal.energy is not None or line.optimal.reason)
        ):
            found[f"{greedy_note(line.report.accounting)}."] = None
    for those, said in alike(lines, lambda line: line.optimal.reason if line.optimal else ""):
        found[f"{whose(those, lines, called)}, optimal tiles: {said}"] = None
    tiled = [(x, x.optimal.proof) for x in lines if x.optimal and x.optimal.proof.unproved]
    if tiled:
        names = whose([line for line, _ in tiled], lines, called)
        found[f"{names}, optimal tiles: {unproved(tiled, lines, called)}"] = None
    return list(found)


def unproved(
    some: Sequence[tuple[Comparison, Proof]], lines: Sequence[Comparison], called: Called = _name
) -> str:
    """Say how many tilings of some lines are not proved; of several, which is the furthest off.

    Args:
        some: of the lines, those with such tilings.
        lines: of one chip and accounting.
        called: what a method is called; by default its name.
    """
    found = together(proof for _, proof in some)
    widest = next(line for line, proof in some if proof.gap == found.gap)
    return found.sentence(whose([widest], lines, called) if some[1:] else "")


def alike(
    lines: Sequence[Comparison], said: Callable[[Comparison], str]
) -> Iterator[tuple[list[Comparison], str]]:
    """Yield lines of which the same is to be said together, and it; none of which nothing is."""
    found: dict[str, list[Comparison]] = {}
    for line in lines:
        found.setdefault(said(line), []).append(line)
    yield from ((those, text) for text, those in found.items() if text)


def whose(some: Sequence[Comparison], lines: Sequence[Comparison], called: Called = _name) -> str:
    """Name some of the lines of one chip and accounting: methods, if need be which run.

    That is on which network, and at which batch.

    Args:
        called: what a method is called; by default its name.
    """
    several = len({line.batch for line in lines}) > 1
    networks = len({line.network for line in lines}) > 1
    of: dict[tuple[str, str], dict[int, None]] = {}
    for line in some:
        of.setdefault((line.method, line.network), {})[line.batch] = None
    groups: dict[str, list[str]] = {}
    for (method, network), batches in of.items():
        every = {line.batch for line in lines if (line.method, line.network) == (method, network)}
        at = ", ".join(f"{batch:,}" for batch in batches) if several and every - {*batches} else ""
        on = f" on {called(network, 'network')}" if networks else ""
        groups.setdefault(at and f" at batch {at}", []).append(f"{called(method)}{on}")
    return "; ".join(f"{', '.join(names)}{at}" for at, names in groups.items())


def tiles_sentence(report: Report) -> str:
    """Say what a report with greedy tiles would cost with optimal ones; "" where they are."""
    found = optimal_tiles(report)
    if found is None:
        return ""
    note = greedy_note(report.accounting)
    if found.energy is None:
        return f"{note}; it has no energy: {found.reason}."
    divisor, unit = scale(found.energy, report.unit)
    times = f", {report.energy / found.energy:.3g} times less" if found.energy else ""
    if found.energy > report.energy:
        times = ", more than here"
    said = found.proof.sentence()
    end = f"; {said}" if said else ""
    return f"{note}: {fixed(found.energy / divisor)} {unit}{times}{end}."


def run_sentence(report: Report, run: Training) -> str:
    """Say the energy of a whole training run."""
    name, iterations, energy, kwh = whole_run(report, run)
    divisor, unit = scale(energy or 0.0, report.unit)
    in_kwh = "" if kwh is None else f", {kwh:.4g} kWh"
    stages = " and then ".join(
        f"{one.epochs:,} epochs of {one.images:,} images" for one in run.stages()
    )
    return (
        f"Training {name}: {stages}, {iterations:,} "
        f"iterations of {report.batch:,}: {fixed((energy or 0.0) / divisor)} {unit}{in_kwh}."
    )


def report_table(report: Report) -> Table:
    """One row for every entry of the ledger."""
    return Table(COLUMNS, report.records)


def layer_sums(report: Report) -> tuple[list[Pass], dict[str, list[float]]]:
    """Return the passes in order, and each layer's energy by pass [report's unit]."""
    cells = report.energies("layer", "pass")
    passes = [one for one in Pass if any(pass_ == one for _, pass_ in cells)]
    layers = dict.fromkeys(layer for layer, _ in cells)
    return passes, {x: [cells.get((x, one), 0.0) for one in passes] for x in layers}


def effects_table(effects: Sequence[Effect]) -> Table:
    """Make a table of moves, one row for every move and method."""
    from hwmodel.vary.sensitivity import Effect

    return Table(Effect._fields, list(effects))


def spreads_table(found: Sequence[Sampled]) -> Table:
    """Make a table of samples, one row for every chip and method."""
    from hwmodel.vary.sensitivity import Spread

    rows = [(*x, one.ranking_held, one.complete) for one in found for x in one.spreads]
    return Table((*Spread._fields, "ranking_held", "ranked_samples"), [*rows])


def readings_table(found: Readings) -> Table:
    """Make a table of readings, one row for every reading and published energy."""
    from hwmodel.vary.readings import Reading

    rows: list[tuple[object, ...]] = [
        (row.table, row.hardware, row.network, row.method, *reading, row.published, percent,
         residual)
        for reading, percents in found.percents.items()
        for row, percent, residual in zip(
            found.rows, percents, found.residuals(reading), strict=True
        )
    ]  # fmt: skip
    words = ("table", "hardware", "network", "method", *Reading._fields)
    return Table((*words, "source_percent", "percent_of_baseline", "residual_percent"), rows)


def against_table(found: Sequence[Against]) -> Table:
    """Make a table of measured figures and ours, one row a figure."""
    from hwmodel.vary.against import Against

    return Table(Against._fields, [*found])


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a header and rows as CSV, numbers with every digit; None is an empty cell.

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


def read_csv(path: Path, check: Check = lambda first: None) -> tuple[tuple[str, ...], list[Row]]:
    """Read header and rows of a CSV file, as text.

    Args:
        check: is given the first row, and raises what is wrong with it.

    Raises: DataError.
    """
    columns = read_table(path, check)
    return tuple(columns), rows_of(columns)


def read_rows(path: Path, kind: type[Made], what: str) -> tuple[list[Made], list[str]]:
    """Read a table of named tuples that this program wrote, and its provenance ([] without).

    Args:
        kind: of the rows; an empty cell is None.
        what: the table in words.

    Raises: DataError for columns that are missing and cells that break a rule.
    """
    from pydantic import TypeAdapter, ValidationError

    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]

    def check(first: Mapping[str, str]) -> None:
        if missing := [name for name in fields if name not in first]:
            raise DataError(f"{path}: has no column {missing[0]!r}: it is no {what}")

    _, rows = read_csv(path, check)
    if not rows:
        raise DataError(f"{path}: has no rows")
    row_of = TypeAdapter(kind)
    found = []
    for line, row in enumerate(rows, start=2):
        try:
            found.append(row_of.validate_python({name: row[name] or None for name in fields}))
        except ValidationError as error:
            wrong = error.errors()[0]
            where = ".".join(map(str, wrong["loc"]))
            raise DataError(f"{path}:{line}: {where} {wrong['input']!r}: {wrong['msg']}") from None
    stated = PROVENANCE[0] in rows[0]
    return found, [rows[0][name] for name in PROVENANCE] if stated else []


def notes(not_counted: Mapping[str, Sequence[str]]) -> str:
    """Write a report's last lines: what each accounting leaves out; that figures are analytical."""
    lines = []
    for accounting, items in not_counted.items():
        lines.append(f"Not counted under accounting {accounting}:")
        lines += [f"  - {item}" for item in items]
    return "\n".join([*lines, f"All figures are {NATURE}."])


def of_batches(lines: Sequence[Comparison]) -> str:
    """Say what one iteration of the lines of a table is, which may be of several batches."""
    first = lines[0]
    if len({line.batch for line in lines}) == 1:
        return what(first.mode, first.images)
    times = f", {first.accumulate:,} of them added up" if first.accumulate > 1 else ""
    return f"{_iteration(first.mode)} of the batch listed{times}"


def _iteration(mode: str) -> str:
    return "training iteration" if mode == "training" else "inference"


def what(mode: str, batch: int) -> str:
    """Say what one iteration is."""
    return f"{_iteration(mode)} of {batch} image{'s' if batch > 1 else ''}"
