"""A sweep's table, read back: rows that keep conditions, the best rows, the Pareto front."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hwmodel.errors import DataError, HwmodelError, nearest
from hwmodel.specs.csv_files import CONTROL, csv_file_text
from hwmodel.specs.inputs import note_input
from hwmodel.specs.provenance import refuse_old
from hwmodel.specs.quantity import ENERGY_UNITS
from hwmodel.vary.sweep import part
from hwmodel.vary.sweep.conditions import conditions, holds
from hwmodel.vary.sweep.plan import NAMES

__all__ = ["Results", "Row", "front", "is_results", "kept", "lowest", "numbers", "read_results"]
__all__ += ["varied"]

Row = dict[str, Any]
MAX_BYTES = 2**31
_FIRST_COLUMN = re.compile(rb'(\xef\xbb\xbf)?"?point"?[,;\t|]')  # as spreadsheets write it, too
# Columns in the unit of their row.
ENERGIES = ("energy", "energy_per_image", *part.ENERGIES, "memory")
_OURS = ("point", *NAMES, "energy", "unit", "reason")  # columns that every such table has


class Results(NamedTuple):
    """Rows of a table that `hwmodel sweep` wrote."""

    columns: tuple[str, ...]
    rows: Sequence[Row]


def is_results(path: Path) -> bool:
    """Say whether a file looks like a sweep's table, by its ending or its first column.

    Raises: DataError where it cannot be read.
    """
    if path.suffix == ".parquet":
        return True
    try:
        with path.open("rb") as stream:
            return _FIRST_COLUMN.match(stream.read(20)) is not None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_results(path: Path) -> Results:
    """Read the table of a file. Raises: DataError."""
    note_input(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path}: is larger than {MAX_BYTES:,} B")
        found = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    _check(path, found)
    return found


def _check(path: Path, found: Results) -> None:
    """See that it is the table of a sweep. Raises: DataError."""
    command = str(found.rows[0].get("command") or "") if found.rows else ""
    refuse_old(path, found.columns, command)
    missing = [name for name in _OURS if name not in found.columns]
    if missing:
        raise DataError(f"{path}: has no column {missing[0]!r}: it is no table of a sweep")
    if len(set(found.columns)) < len(found.columns):
        raise DataError(f"{path}: has two columns of one name")
    if not found.rows:
        raise DataError(f"{path}: has no rows")
    if any(type(row["point"]) is not int for row in found.rows):
        raise DataError(f"{path}: column point must hold a whole number in every row")
    for unit in dict.fromkeys(row["unit"] for row in found.rows if row["energy"] is not None):
        if unit not in ENERGY_UNITS:
            raise DataError(f"{path}: unit {unit!r} is none of {', '.join(ENERGY_UNITS)}")


def _read_parquet(path: Path) -> Results:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise HwmodelError(f"{path}: needs pyarrow: pip install 'hwmodel[parquet]'") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise DataError(f"{path}: is no Parquet file: {str(error).splitlines()[0]}") from None
    for name, column in zip(table.column_names, table.columns, strict=True):
        _check_column(path, name, column)
    return Results(tuple(table.column_names), table.to_pylist())


def _check_column(path: Path, name: str, column: Any) -> None:
    """See that a column can be drawn and shown. Raises: DataError."""
    from pyarrow import compute, types

    floats = types.is_floating(column.type)
    if floats and compute.min_max(compute.is_finite(column)).as_py()["min"] is False:
        raise DataError(f"{path}: column {name} holds what is no finite number")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    odd = re.search(CONTROL, name) is not None
    if types.is_string(column.type) or types.is_large_string(column.type):
        found = compute.any(compute.match_substring_regex(column, CONTROL))
        odd = odd or bool(found.as_py())
    if odd:
        raise DataError(f"{path}: column {name} holds a control character")


def _read_csv(path: Path) -> Results:
    try:
        text = csv_file_text(path)
        header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (csv.Error, ValueError) as error:
        raise DataError(f"{path}: is no CSV of a sweep: {error}") from None
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise DataError(f"{path}:{number}: has not as many cells as the header")
    columns = [_typed(column) for column in zip(*lines, strict=True)] if lines else []
    for name, cells in zip(header, columns, strict=bool(lines)):
        if not all(math.isfinite(cell) for cell in cells if isinstance(cell, float)):
            raise DataError(f"{path}: column {name} holds what is no finite number")
    rows = [dict(zip(header, cells, strict=True)) for cells in zip(*columns, strict=True)]
    return Results(tuple(header), rows)


def _typed(cells: Sequence[str]) -> list[Any]:
    """Read a column's cells as numbers, as yes and no, or as text; an empty one as None."""
    reads: tuple[Callable[[str], Any], ...] = (
        int,
        float,
        {"true": True, "false": False}.__getitem__,
    )
    for read in reads:
        try:
            return [read(cell) if cell else None for cell in cells]
        except (ValueError, KeyError):
            continue
    return [cell or None for cell in cells]


def kept(results: Results, where: str) -> list[Row]:
    """Return the rows with an energy that keep the conditions; a missing value keeps none.

    Raises: HwmodelError if no row is left.
    """
    wanted = conditions(where, results.columns)
    rows = [
        row
        for row in results.rows
        if row["energy"] is not None and holds(wanted, row, absent=False)
    ]
    if not rows:
        raise HwmodelError(f"no row has an energy and keeps {where!r}" if where else "no energies")
    return rows


def numbers(rows: Sequence[Row], column: str, known: Sequence[str]) -> list[float]:
    """Return a column's values, which must be numbers. Raises: HwmodelError."""
    if column not in known:
        raise HwmodelError(f"the table has no column {column!r}: {nearest(column, known)}")
    values = [row[column] for row in rows]
    wrong = [v for v in values if isinstance(v, (str, bool)) or v is None]
    if wrong:
        what = "is missing in some rows" if wrong[0] is None else f"holds {wrong[0]!r}"
        raise HwmodelError(f"column {column} {what}; numbers are needed")
    units = {str(row["unit"]) for row in rows}
    if column in ENERGIES and len(units) > 1:
        raise HwmodelError(
            f"rows have {column} in {' and in '.join(sorted(units))}, which cannot be compared; "
            "choose by 'unit == pJ' or 'hardware == …'"
        )
    try:
        return [float(value) for value in values]
    except OverflowError:
        raise HwmodelError(f"column {column} holds a number beyond 1e308") from None


def lowest(rows: Sequence[Row], values: Sequence[float], number: int) -> list[Row]:
    """Return the rows of the lowest values, the lowest first; of equal ones the first point."""
    order = sorted(range(len(rows)), key=lambda i: (values[i], rows[i]["point"]))
    return [rows[i] for i in order[:number]]


def front(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """Find the Pareto front: no other place has less of one value and not more of the other.

    Returns: places in order of x.
    """
    found: list[int] = []
    for i in sorted(range(len(x)), key=lambda i: (x[i], y[i])):
        if not found or y[i] < y[found[-1]]:
            found.append(i)
    return found


def varied(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """List the names and fields of points whose values differ between rows."""
    of_points = [*NAMES, *(name for name in columns if "." in name)]
    return [name for name in of_points if len({row[name] for row in rows}) > 1]
