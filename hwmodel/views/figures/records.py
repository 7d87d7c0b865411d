"""Records of a CSV that `compare` or `report` wrote, checked; sums and names of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import fsum
from pathlib import Path
from typing import Literal, NamedTuple
from warnings import catch_warnings

from hwmodel.errors import DataError, HwmodelError, SpecWarning
from hwmodel.model.ledger import PLACES, Component, place_of
from hwmodel.model.report import COLUMNS
from hwmodel.rerun.asked import CompareAsked, ReproduceAsked, SensitivityAsked, read_command
from hwmodel.rerun.moved import moved_words
from hwmodel.rerun.tables import ADDED, COMPARED, NATURE, read_csv, scale
from hwmodel.rerun.tables import Table as Rows
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, is_path, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.provenance import refuse_old
from hwmodel.specs.published import published_tables
from hwmodel.specs.quantity import not_to_compare, refuse_unit
from hwmodel.views.chip import size
from hwmodel.views.colours import called, told
from hwmodel.views.figures.canvas import Style, rounded
from hwmodel.work.problem import PASSES
from hwmodel.work.tensor import Pass

NEAR = 1e4  # times the least energy, below which energies of a figure have one unit

__all__ = [
    "PARTS",
    "Page",
    "Record",
    "Table",
    "Whole",
    "headline",
    "label",
    "place",
    "read_records",
    "records_of",
    "sums",
    "table_of",
    "turn",
    "unique",
    "unknown",
    "whole",
    "wholes",
]

Record = Mapping[str, str]
Table = Literal["compare", "report"]
# Columns of a comparison that sum to its energy, in the order of an iteration.
PARTS = (
    *(f"{pass_}_{component}" for pass_ in PASSES for component in Component),
    Pass.UPDATE.value,
)
_NUMBERS = {
    **dict.fromkeys(("energy", "percent_of_baseline", "source_percent", *PARTS), "energy"),
    **dict.fromkeys((name for name in ADDED if name != "lacking_memory"), "energy"),
    **dict.fromkeys(("energy_low", "energy_middle", "energy_high"), "energy"),
    "trace_accuracy_percent": "accuracy",
    "bits": "number of bits",
    "count": "count",
}

BASELINE = "the baseline"  # what is 100 %, where nothing says which
SHORT_TITLE = 20  # characters of a method's title that stands on an axis
LARGEST = 1e100  # number; an axis to it can still be scaled
LONGEST_TEXT = 500  # characters of a cell
LONGEST_COMMAND = 10_000


class Page(NamedTuple):
    """The records of a figure, its style, and the files that it needs beside them."""

    records: Sequence[Record]
    style: Style
    network: str = ""  # the file of a network that is not bundled, where a figure needs it
    hardware: Sequence[str] = ()  # files of chips that are not bundled
    accuracies: Mapping[str, float] = {}  # stated of methods [percent]
    layers_by: str = ""  # how layers are put together, of `GROUPINGS`; "": as fine as there is room

    @property
    def groups(self) -> list[list[Record]]:
        """Records that belong into one panel: of a chip under an accounting at a batch; in reports,
        also of a method.
        """
        of_report = table_of(self.records) == "report"
        fields = ("hardware", "accounting", "batch", *(("method",) if of_report else ()))
        found: dict[tuple[str, ...], list[Record]] = {}
        for record in self.records:
            found.setdefault(tuple(record[field] for field in fields), []).append(record)
        return list(found.values())

    @property
    def percent(self) -> str:
        """The name of an axis of percentages."""
        commands = unique(self.records, "command") if "command" in self.records[0] else []
        return f"energy, % of {whole(commands[0]) if len(commands) == 1 else BASELINE}"

    @property
    def columns(self) -> int:
        """Count the panels side by side: a row a chip where there are several accountings or
        batches.
        """
        of_chip = len({(one["accounting"], one["batch"]) for one in self.records})
        return of_chip if 1 < of_chip <= self.style.columns else self.style.columns

    def name(self, group: Sequence[Record]) -> str:
        """Write the heading of a panel, with the values that set it apart from the others."""
        first = group[0]
        of_report = table_of(self.records) == "report"
        chip = called(first["hardware"], "hardware")
        chip = f"{called(first['method'])} on {chip}" if of_report else chip
        if len(unique(self.records, "accounting")) > 1:
            chip += f", {first['accounting']}"
        return f"{chip}, batch {first['batch']}" if len(batches_of(self.records)) > 1 else chip


def read_records(*paths: Path) -> Sequence[Record]:
    """Read the rows of a CSV that `compare` or `report` wrote, or of several of `report`.

    Raises: DataError.
    """
    tables = [_read(path) for path in paths]
    for path, records in zip(paths, tables, strict=True):
        _check_together(records, path)
    if len(tables) > 1:
        _check_beside(paths, tables)
    return [record for records in tables for record in records]


def records_of(table: Rows) -> list[Record]:
    """Return the rows of a table as its CSV has them, checked as those. Raises: DataError."""
    texts = ([("" if cell is None else str(cell)) for cell in row] for row in table.rows)
    records: list[Record] = [dict(zip(table.header, row, strict=True)) for row in texts]
    for line, record in enumerate(records, start=1):
        _check(record, f"row {line}")
    return records


def _read(path: Path) -> Sequence[Record]:
    def check(first: Mapping[str, str]) -> None:
        refuse_old(path, first, first.get("command", ""))
        compared = tuple(name for name in COMPARED if name in first or name not in ADDED)
        if not any(tuple(first)[: len(ours)] == ours for ours in (COLUMNS, compared)):
            raise DataError(f"{path}:1: has not the columns of a `compare` or a `report` CSV")

    _, records = read_csv(path, check)
    if not records:
        raise DataError(f"{path}: has no rows")
    for line, record in enumerate(records, start=2):
        _check(record, f"{path}:{line}")
    return records


def _check(record: Record, where: str) -> None:
    """See that numbers are finite, and the unit is known."""
    if wrong := refuse_unit(record["unit"]):
        raise DataError(f"{where}: {wrong}")
    for field, what in _NUMBERS.items():
        text = record.get(field, "")
        try:
            value = float(text or 0)
        except ValueError:
            value = float("nan")
        if not 0 <= value < float("inf"):
            raise DataError(f"{where}: {field} {text!r} is no {what}")
        if value > LARGEST:
            raise DataError(f"{where}: {field} {text} is above {LARGEST:g}, the most that is drawn")
    _see_lengths(record, where)


def _see_lengths(record: Record, where: str) -> None:
    """See that the texts that a figure shows have an end. Raises: DataError."""
    for field, text in record.items():
        longest = LONGEST_COMMAND if field == "command" else LONGEST_TEXT
        if len(text) > longest:
            raise DataError(f"{where}: {field} has {len(text):,} characters; {longest:,} are drawn")


def _check_together(records: Sequence[Record], path: Path) -> None:
    """See that the rows are of one run, so that they may be added up and set side by side."""
    compared = table_of(records) == "compare"
    alike = [] if compared else ["batch", "hardware", "method", "accounting", "unit"]
    if not (compared and _of_one_table(records)):
        alike.insert(0, "network")
    for field in alike:
        if len(several := unique(records, field)) > 1:
            raise DataError(f"{path}: has rows of more than one {field}: {', '.join(several[:3])}")
    parts = ("network", "method", "hardware", "accounting", "mode", "batch")
    lines = {tuple(record.get(part, "") for part in parts) for record in records}
    if compared and len(lines) < len(records):
        raise DataError(f"{path}: has two rows of one method, chip, accounting, mode and batch")


def _of_one_table(records: Sequence[Record]) -> bool:
    """Say whether networks differ but share a baseline, as in a published table."""
    pairs = {(record["network"], record["method"]) for record in records}
    tables = published_tables().values()
    return any(pairs <= {*table.modelled} for table in tables)


def _check_beside(paths: Sequence[Path], tables: Sequence[Sequence[Record]]) -> None:
    """See that several tables are reports of one network and batch, each of another run."""
    seen: dict[tuple[str, ...], Path] = {}
    for path, records in zip(paths, tables, strict=True):
        first = records[0]
        if table_of(records) == "compare":
            raise DataError(f"{path}: of `compare` one table is drawn at a time")
        for field in ("network", "batch"):
            if first[field] != tables[0][0][field]:
                raise DataError(
                    f"{path}: is of {field} {first[field]}, and {paths[0]} of "
                    f"{tables[0][0][field]}: not to be set side by side"
                )
        run = first["method"], first["hardware"], first["accounting"]
        if run in seen:
            raise DataError(f"{path}: is of {' on '.join(run[:2])}, {run[2]}, as is {seen[run]}")
        seen[run] = path


def table_of(records: Sequence[Record]) -> Table:
    """Return the command that wrote the records."""
    return "compare" if "percent_of_baseline" in records[0] else "report"


def unique(records: Sequence[Record], field: str) -> list[str]:
    """List the different values of a column in order of appearance."""
    return list(dict.fromkeys(record[field] for record in records))


def batches_of(records: Sequence[Record]) -> list[str]:
    """List the batches of a table."""
    return unique(records, "batch")


def label(record: Record, records: Sequence[Record]) -> str:
    """Name a line by its method, with the network where the table has the method on several."""
    networks = {other["network"] for other in records if other["method"] == record["method"]}
    method = called(record["method"])
    return f"{method} ({called(record['network'], 'network')})" if len(networks) > 1 else method


def unknown(record: Record) -> str:
    """Say why a line of a comparison has no percentage."""
    if record["energy"]:
        return "no baseline"
    lacking = int(record.get("lacking_bytes") or 0)
    if not lacking:
        return "no energy"
    return f"{record['lacking_memory']} lacks {size(8 * lacking, 3)}"


def sums(records: Sequence[Record], *columns: str) -> dict[tuple[str, ...], float]:
    """Energy of every group of records that agree in some columns [their unit].

    Where no memory is asked, one of `ledger.PLACES` stands in its place.
    """
    found: dict[tuple[str, ...], list[float]] = {}
    for record in records:
        label = tuple(place(record) if c == "memory" else record[c] for c in columns)
        if "memory" in columns and not float(record["energy"] or 0) and place(record) in PLACES[1:]:
            continue  # cycles for which the chip states no energy
        found.setdefault(label, []).append(float(record["energy"] or 0))
    return {label: fsum(energies) for label, energies in found.items()}


class Whole(NamedTuple):
    """The energy of a group of records, and the step of its unit in which a figure has it."""

    text: str  # "12.9 mJ"
    divisor: float
    unit: str


def wholes(groups: Sequence[Sequence[Record]]) -> list[Whole]:
    """Return the energy of each group of records; those of one unit, if they are near, in one step.

    The largest of them is at least 1 there.
    """
    energies = [fsum(float(record["energy"] or 0) for record in group) for group in groups]
    found = []
    for group, energy in zip(groups, energies, strict=True):
        unit = group[0]["unit"]
        pairs = zip(groups, energies, strict=True)
        alike = [other for its, other in pairs if its[0]["unit"] == unit and other]
        near = alike and max(alike) < NEAR * min(alike)
        divisor, step = scale(10 * (max(alike) if near else energy), unit)
        found.append(Whole(f"{rounded(energy / divisor)} {step}", divisor, step))
    return found


def turn(records: Sequence[Record], column: str) -> dict[str, int]:
    """The place of each value of a column among all, in the order of the records."""
    values = (place(record) if column == "memory" else record[column] for record in records)
    return {value: i for i, value in enumerate(dict.fromkeys(values))}


def place(record: Record) -> str:
    """Where the energy of a report's record goes: a memory, or one of `ledger.PLACES`."""
    return record["memory"] or place_of(record["operation"])


def headline(records: Sequence[Record]) -> str:
    """Write the headline: the values that all panels share, and the kind of figure."""
    first = records[0]
    mode = f"{first['mode']}, " if "mode" in first else ""
    networks = unique(records, "network")
    what = called(networks[0], "network") if len(networks) == 1 else f"{len(networks)} networks"
    accountings = ", ".join(unique(records, "accounting"))
    mixed = not_to_compare(unique(records, "unit"))
    end = f"; {mixed}" if mixed else ""
    batches = f"batch {' and '.join(batches_of(records))}"
    about = f"{what}, {mode}{batches}, accounting {accountings} ({NATURE}){end}"
    return about + _asked(records)


def _asked(records: Sequence[Record]) -> str:
    """Say what was moved, and what is 100 % where it is chosen or not drawn, by the command."""
    commands = unique(records, "command") if "command" in records[0] else []
    asked = _read_asked(commands[0]) if len(commands) == 1 else None
    if table_of(records) != "compare" or not isinstance(asked, CompareAsked):
        return ""
    chips, rules = told(Hardware), told(Accounting)  # without those whose files are gone
    methods = unique(records, "method")
    whole = _wholes(asked)
    end = ""
    if asked.baseline or asked.baseline_network or not {*whole} <= {*methods}:
        end = f"; 100 % is {' or '.join(map(called, whole))}"
    if asked.baseline_network:
        end += f" on {called(asked.baseline_network, 'network')}"
    moves = moved_words(asked.move, chips, rules, called)
    return f"{end}; moved, for methods and baseline: {moves}" if moves else end


def _read_asked(command: str) -> CompareAsked | ReproduceAsked | SensitivityAsked | None:
    """Read the command that made a table; None where it is another."""
    try:
        asked = read_command(command, [CompareAsked, ReproduceAsked, SensitivityAsked])
    except HwmodelError:
        return None
    return asked if isinstance(asked, (CompareAsked, ReproduceAsked, SensitivityAsked)) else None


def _wholes(asked: CompareAsked) -> list[str]:
    """List the methods that are 100 %, one for each accounting that has another."""
    if not asked.baseline:
        return list(dict.fromkeys(one.baseline for one in told(Accounting)))
    stated = Path(asked.baseline).stem if is_path(asked.baseline) else asked.baseline
    if is_path(asked.baseline):
        with suppress(HwmodelError), catch_warnings(action="ignore", category=SpecWarning):
            stated = load(Method, asked.baseline).name
    return [stated]


def whole(command: str) -> str:
    """Name what is 100 % in a table, by the command that made it; "the baseline" if unknown."""
    asked = _read_asked(command)
    if isinstance(asked, SensitivityAsked):
        return _listed(one.baseline for one in told(Accounting))
    if isinstance(asked, CompareAsked):
        on = asked.baseline_network
        return _listed(_wholes(asked)) + (f" on {called(on, 'network')}" if on else "")
    if asked is None or asked.table not in published_tables():
        return BASELINE
    base = published_tables()[asked.table].baseline
    return f"{_listed([base.method])} on {called(base.network, 'network')}"


def _listed(methods: Iterable[str]) -> str:
    return " or ".join(map(_titled, dict.fromkeys(methods))) or BASELINE


def _titled(name: str) -> str:
    """Return a method's label, or its title with its name where that is short."""
    if called(name) != name or name not in bundled(Method):
        return called(name)
    title = load(Method, name).title
    first, *_ = title.split()
    title = title if first[1:] != first[1:].lower() else title[0].lower() + title[1:]
    return f"{title} ({name})" if len(title) <= SHORT_TITLE else name
