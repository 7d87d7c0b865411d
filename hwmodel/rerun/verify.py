"""Verifies a table: computes it anew from its command and compares cell by cell.

The command that a table states is taken apart into options and values and asked of the library.
Nothing of it reaches a shell, and an option that is not known is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hwmodel.errors import DataError, HwmodelError
from hwmodel.model.ledger import NAME
from hwmodel.model.runs import Each
from hwmodel.rerun.answers import answer
from hwmodel.rerun.asked import (
    Asked,
    CompareAsked,
    GenerateAsked,
    MeasuredAsked,
    ReadingsAsked,
    ReportAsked,
    ReproduceAsked,
    SensitivityAsked,
    SweepAsked,
    read_command,
)
from hwmodel.rerun.lock import Lock
from hwmodel.rerun.tables import ADDED, read_csv
from hwmodel.rerun.unbundle import opened
from hwmodel.specs.csv_files import Check, rows_of
from hwmodel.specs.inputs import MAX_JSON, read_text
from hwmodel.specs.provenance import COLUMNS, Input, Provenance, refuse_old
from hwmodel.specs.quantity import refuse_unit
from hwmodel.vary.readings import Reading
from hwmodel.vary.sweep.results import read_parquet

__all__ = ["Moved", "Verdict", "differing", "stated", "verify"]

# Columns that tell the rows of a table apart; all others are compared.
_KEYS: dict[type[Asked], tuple[str, ...]] = {
    ReportAsked: NAME,
    CompareAsked: ("network", "method", "hardware", "accounting", "mode", "batch"),
    ReproduceAsked: ("network", "method", "hardware", "accounting", "mode", "batch"),
    ReadingsAsked: ("hardware", "network", "method", *Reading._fields),
    MeasuredAsked: ("table", "row", "quantity"),
    GenerateAsked: ("batch", "phase", "part"),
    SensitivityAsked: ("hardware", "field", "value_to", "method"),
    SweepAsked: ("point",),
}
_FOR_PRINT = (".md", ".markdown", ".tex", ".xlsx", ".html")
Key = tuple[str, ...]


class Moved(NamedTuple):
    """One cell that has changed."""

    row: str
    column: str
    old: str
    new: str
    change: float | None  # relative to the old value; None where that is no number, or 0

    def __str__(self) -> str:
        change = "" if self.change is None else f" ({100 * self.change:+.3g} %)"
        return f"{self.row}: {self.column} {self.old or 'empty'} -> {self.new or 'empty'}{change}"


class Verdict(NamedTuple):
    """The result of verifying a table."""

    equal: int  # rows of which no cell moved
    moved: list[Moved]
    missing: list[str]  # rows that are computed and do not stand in the table
    extra: list[str]  # rows that stand in the table and are not computed
    version: str | None  # that made the table, where it is not the present one
    inputs: list[str]  # what differs of the inputs
    lock: Lock | None = None  # of the bundle that holds the table

    @property
    def holds(self) -> bool:
        """Whether the table is unchanged."""
        return not (self.moved or self.missing or self.extra)


def stated(path: Path) -> tuple[Sequence[Mapping[str, str]], dict[str, str], Asked]:
    """Read rows of a table as text, its provenance, and what its command is asked.

    Args:
        path: a CSV, JSON or Parquet file of a command that `_KEYS` names.

    Raises: DataError where it is none, of an old format, or its rows are not of one command.
    """
    records = _records(path)
    old = [r["unit"] for r in records if "energy" in r and r.get("unit") == "MAC"]
    if old:
        raise DataError(f"{path}: {refuse_unit(old[0])}, {records[0]['command']}")
    for column in COLUMNS:
        values = list(dict.fromkeys(record[column] for record in records))
        if len(values) > 1:
            first, last = values[0], records[-1][column]
            if values == [first, last] and first.startswith(last):
                raise DataError(f"{path}: ends in the middle of its last row: it was cut")
            raise DataError(f"{path}: has rows of more than one {column}: {values[0]}, {values[1]}")
    made = {column: records[0][column] for column in COLUMNS}
    try:
        asked = read_command(made["command"], [*_KEYS])
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if isinstance(asked, SensitivityAsked):
        moved = dict.fromkeys(record.get("field", "") for record in records)
        refuse_old(path, [name for field in moved for name in field.split(" + ")], made["command"])
    return records, made, asked


def _records(path: Path) -> Sequence[Mapping[str, str]]:
    """Read the rows of a table that says what made it. Raises: DataError."""

    def check(first: Mapping[str, Any]) -> None:
        refuse_old(path, first, str(first.get("command", "")))
        for column in COLUMNS:
            if column not in first:
                raise DataError(f"{path}: has no column {column}: it does not say what made it")

    ending = path.suffix.lower()
    if ending in _FOR_PRINT:
        raise DataError(f"{path}: has rounded numbers; verify the .csv, .json or .parquet file")
    if ending == ".json":
        records: Sequence[Mapping[str, str]] = _json_records(path, check)
    elif ending == ".parquet":
        columns = read_parquet(path)
        check({name: next(iter(column), "") for name, column in columns.items()})
        records = rows_of({name: [*map(_text, column)] for name, column in columns.items()})
    else:
        records = read_csv(path, check)[1]
    if not records:
        raise DataError(f"{path}: has no rows")
    return records


def _json_records(path: Path, check: Check) -> list[dict[str, str]]:
    try:
        document = json.loads(read_text(path, MAX_JSON))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON: {error}") from None
    rows = document.get("rows") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: has no list 'rows' of objects")
    for number, row in enumerate(rows, start=1):
        check(row)
        if row.keys() != rows[0].keys():
            raise DataError(f"{path}: row {number} has other columns than the first")
    return [{name: _text(value) for name, value in row.items()} for row in rows]


def _text(value: Any) -> str:
    """Write a cell as a CSV has it, yes and no as a sweep's CSV has them."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def verify(path: Path, tolerance: float = 0.0, each: Each = map) -> Verdict:
    """Compute a table anew from its command; return what moved.

    Args:
        path: of the table, or of a bundle, whose inputs are read then and no others.
        tolerance: relative change of a number that is let pass.
        each: who computes the reports of a comparison.

    Raises: DataError for a table that is not ours or of which columns are gone, HwmodelError
        where its inputs cannot be read or computed any more.
    """
    if not 0 <= tolerance < 1:
        raise HwmodelError(f"--tolerance {tolerance:g}: a relative change from 0 to below 1")
    with opened(path) as (place, lock):
        return _verdict(place, tolerance, each)._replace(lock=lock)


def _verdict(path: Path, tolerance: float, each: Each) -> Verdict:
    records, made, asked = stated(path)
    here = tuple(name for name in records[0] if name not in (*COLUMNS, "date"))
    if isinstance(asked, (CompareAsked, ReproduceAsked)) and ADDED[0] not in here:
        asked = asked.model_copy(update={"optimal_tiles": "no"})
    table, now = answer(asked, records[0], each)
    if here != tuple(name for name in table.header if name in here or name not in ADDED):
        raise DataError(f"{path}: has not the columns that {asked.NAME} writes today")
    keys = tuple(name for name in _KEYS[type(asked)] if name in here)
    old = _by_key(records, keys)
    computed = zip(*table.rows, strict=True) if table.rows else [()] * len(table.header)
    new = _by_key(rows_of(dict(zip(table.header, computed, strict=True))), keys)
    moved = {key: _moved(key, old[key], new[key], keys, tolerance) for key in old if key in new}
    return Verdict(
        equal=sum(not cells for cells in moved.values()),
        moved=[cell for cells in moved.values() for cell in cells],
        missing=[_words(key) for key in new if key not in old],
        extra=[_words(key) for key in old if key not in new],
        version=made["version"] if made["version"] != now.version else None,
        inputs=_sentences(differing(made["inputs_sha256"], now)),
    )


def _by_key(
    records: Iterable[Mapping[str, Any]], keys: Sequence[str]
) -> dict[Key, Mapping[str, Any]]:
    """Index rows by the cells that tell them apart, and by number where several are alike."""
    found: dict[Key, Mapping[str, Any]] = {}
    seen: Counter[Key] = Counter()
    for record in records:
        key = tuple(str(record[name]) for name in keys)
        seen[key] += 1
        found[(*key, str(seen[key]))] = record
    return found


def _words(key: Key) -> str:
    *parts, which = key
    named = " ".join(part for part in parts if part)
    return named if which == "1" else f"{named} (number {which})"


def _moved(
    key: Key, old: Mapping[str, str], new: Mapping[str, Any], keys: Sequence[str], tolerance: float
) -> list[Moved]:
    """List the cells of one row that differ."""
    found = []
    for column, value in new.items():
        if column in keys or column not in old or _equal(old[column], value, tolerance):
            continue
        text = "" if value is None else str(value)
        before = _number(old[column])
        change = None
        if before and isinstance(value, (int, float)):
            change = (value - before) / abs(before)
        found.append(Moved(_words(key), column, old[column], text, change))
    return found


def _equal(old: str, new: object, tolerance: float) -> bool:
    """Say whether a cell is unchanged; numbers are compared by value."""
    if not isinstance(new, (int, float)):
        return old == ("" if new is None else str(new))
    number = _number(old)
    if number is None:
        return False
    return number == new or abs(new - number) <= tolerance * abs(number)


def _number(text: str) -> int | float | None:
    """Return a cell's number, whole where it is written so; None for text, infinity and NaN."""
    if re.fullmatch(r"-?\d{1,300}", text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def differing(hashes: str, now: Provenance) -> list[tuple[Input, str, str]] | None:
    """List the inputs that have changed, with their hashes then and now.

    Returns: None where there were more or fewer of them.
    """
    then, today = hashes.split("-"), now.inputs_sha256.split("-")
    if len(then) != len(today):
        return None
    pairs = zip(now.inputs, then, today, strict=True)
    return [(given, before, after) for given, before, after in pairs if before != after]


def _sentences(changed: list[tuple[Input, str, str]] | None) -> list[str]:
    if changed is None:
        return ["the table was made from other inputs than its command names today"]
    return [f"{given}: {before} then, {after} now" for given, before, after in changed]
