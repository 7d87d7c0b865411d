"""A sweep's table, read back: rows that keep conditions, the best rows, the Pareto front."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hwmodel.errors import DataError, HwmodelError, many, nearest
from hwmodel.specs.csv_files import ALIKE, CONTROL, Check, Row, begun, read_table, rows_of
from hwmodel.specs.inputs import note_input
from hwmodel.specs.provenance import refuse_old
from hwmodel.specs.quantity import refuse_mixed, refuse_unit
from hwmodel.vary.paths import PLAIN
from hwmodel.vary.sweep import part
from hwmodel.vary.sweep.conditions import Condition, conditions, holds, is_size
from hwmodel.vary.sweep.plan import NAMES

__all__ = ["Results", "Row", "chosen", "front", "is_results", "kept", "lowest", "numbers"]
__all__ += ["read_parquet", "read_results", "unit_of", "varied"]

MAX_HELD = 800 * 2**20  # bytes of cells
MAX_CELLS = 30_000_000  # of a Parquet file
_FIRST_COLUMN = re.compile(rb'(\xef\xbb\xbf)?"?point"?[,;\t|]')  # as spreadsheets write it, too
# Columns in the unit of their row.
ENERGIES = ("energy", "energy_per_image", *part.ENERGIES)
FEW = 6  # names that a sentence has
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
    there = note_input(path)
    try:
        with there.open("rb") as stream:
            return _FIRST_COLUMN.match(stream.read(20)) is not None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_results(path: Path) -> Results:
    """Read the table of a file; lines of a comparison are points, too. Raises: DataError."""

    def check(first: Mapping[str, Any]) -> None:
        refuse_old(path, first, str(first.get("command", "")))
        compared = {"point", "reason"} if "percent_of_baseline" in first else set()
        missing = [name for name in _OURS if name not in first and name not in compared]
        if missing:
            raise DataError(
                f"{path}: has no column {missing[0]!r}: it is no table of a sweep or a comparison"
            )

    if path.suffix == ".parquet":
        columns = read_parquet(path)
        check({name: next(iter(column), "") for name, column in columns.items()})
    else:
        columns = read_table(path, check, _kinds(path, check), MAX_HELD)
    if "point" not in columns:
        columns = {"point": [*range(len(columns["energy"]))]} | columns
    found = Results(tuple(columns), rows_of(columns))
    _check(path, columns, found.rows)
    return found


def _check(path: Path, columns: Mapping[str, Sequence[Any]], rows: Sequence[Row]) -> None:
    """See that all numbers are some, and that it is known of what. Raises: DataError."""
    for name, cells in columns.items():
        if not all(math.isfinite(cell) for cell in cells if isinstance(cell, float)):
            raise DataError(f"{path}: column {name} holds what is no finite number")
    if not rows:
        raise DataError(f"{path}: has no rows")
    if any(type(point) is not int for point in columns["point"]):
        raise DataError(f"{path}: column point must hold a whole number in every row")
    for unit in dict.fromkeys(row["unit"] for row in rows if row["energy"] is not None):
        if wrong := refuse_unit(unit):
            raise DataError(f"{path}: {wrong}")


def read_parquet(path: Path) -> dict[str, list[Any]]:
    """The columns of a Parquet file. Raises: DataError."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise HwmodelError(f"{path}: needs pyarrow: pip install 'hwmodel[parquet]'") from None
    there = note_input(path)
    try:
        about = parquet.read_metadata(there)
        groups = (about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        if about.num_rows * about.num_columns > MAX_CELLS or sum(groups) > MAX_HELD:
            raise DataError(f"{path}: has more cells than the {MAX_CELLS:,} that are held")
        names = parquet.read_schema(there).names
        if len(set(names)) < len(names):
            raise DataError(f"{path}: has two columns of one name")
        return {n: _cells(path, n, parquet.read_table(there, columns=[n])[n]) for n in names}
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except pyarrow.ArrowException as error:
        raise DataError(f"{path}: is not a Parquet file: {str(error).splitlines()[0]}") from None


def _cells(path: Path, name: str, column: Any) -> list[Any]:
    """The cells of a column, equal texts once. Raises: DataError."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        found: list[Any] = column.to_pylist()
        return found
    parts = [part for part in column.dictionary_encode().chunks]
    texts = [[*part.dictionary.to_pylist(), None] for part in parts]
    if any(re.search(CONTROL, text) for several in (*texts, [name]) for text in several if text):
        raise DataError(f"{path}: column {name} holds a control character")
    places = (part.indices.fill_null(len(of) - 1) for part, of in zip(parts, texts, strict=True))
    return [of[i] for of, at in zip(texts, places, strict=True) for i in at.to_pylist()]


def _kinds(path: Path, check: Check) -> list[Callable[[str], Any]]:
    """How each column of a CSV is read: the first of `_READS` that takes all of its cells."""
    header, lines = begun(path, check)
    places, known = [0] * len(header), [set[str]() for _ in header]
    for line in lines:
        for i, cell in enumerate(line):
            if cell and cell not in known[i]:
                places[i] = _place(cell, places[i], first=not known[i])
                if len(known[i]) < ALIKE:
                    known[i].add(cell)
    return [_READS[place] for place in places]


def _place(cell: str, place: int, *, first: bool) -> int:
    """Find the place in `_READS` of what takes a cell, and took those before a cell not first."""
    while True:
        try:
            _READS[place](cell)
            return place
        except (ValueError, KeyError):
            place = place + 1 if first or place == 0 else len(_READS) - 1


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda cell: read(cell) if cell else None


_READS = [_or_none(int), _or_none(float), _or_none({"true": True, "false": False}.__getitem__)]
_READS += [_or_none(str)]


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
        told = f"no row has an energy and keeps {where!r}" if where else "no energies"
        raise HwmodelError(f"{told}{_named_otherwise(wanted, results.rows)}")
    return rows


def chosen(cells: Sequence[Mapping[str, str]], where: str) -> list[Mapping[str, str]]:
    """Return the rows of a CSV's cells that keep the conditions, with an energy or without.

    Raises: HwmodelError if no row is left.
    """
    wanted = conditions(where, [*cells[0]])
    rows = [{name: _read(cell) for name, cell in row.items()} for row in cells]
    found = [own for own, row in zip(cells, rows, strict=True) if holds(wanted, row, absent=False)]
    if not found:
        raise HwmodelError(f"no row keeps {where!r}{_named_otherwise(wanted, rows)}")
    return found


def _read(cell: str) -> Any:
    """A cell as the first of `_READS` that takes it has it."""
    for read in _READS:
        with suppress(ValueError, KeyError):
            return read(cell)
    return cell


def _named_otherwise(wanted: Sequence[Condition], rows: Iterable[Mapping[str, Any]]) -> str:
    """Say what a column of names holds, where a condition asks for a name that is none of them."""
    rows = [*rows]
    for one in wanted:
        if one.name in NAMES and isinstance(one.value, str):
            there = sorted({str(row[one.name]) for row in rows})
            if one.value not in there:
                names = ", ".join(there[:FEW]) + ", ..." * (len(there) > FEW)
                return f"; {one.name} is by name, not by label: {names}"
    return ""


def numbers(rows: Sequence[Row], column: str, known: Sequence[str]) -> list[float]:
    """Return a column's values, which must be numbers. Raises: HwmodelError."""
    if column not in known:
        raise HwmodelError(f"the table has no column {column!r}: {nearest(column, known)}")
    values = [row[column] for row in rows]
    wrong = [v for v in values if isinstance(v, (str, bool)) or v is None]
    if wrong:
        if wrong[0] is None:
            absent = sum(value is None for value in values)
            if absent == len(rows):
                raise HwmodelError(f"column {column} is missing in all rows")
            raise HwmodelError(
                f"column {column} is missing in {many(absent, 'row')} of {len(rows):,}; leave them "
                f"out by --where '{column} > 0'"
            )
        raise HwmodelError(f"column {column} holds {wrong[0]!r}; numbers are needed")
    mixed = refuse_mixed(str(row["unit"]) for row in rows) if column in ENERGIES else ""
    if mixed:
        raise HwmodelError(f"column {column} has {mixed}; choose by --where 'hardware == …'")
    try:
        return [float(value) for value in values]
    except OverflowError:
        raise HwmodelError(f"column {column} holds a number beyond 1e308") from None


def unit_of(column: str, unit: str) -> str:
    """Return the unit of a column's numbers; "" for a count, a share or a word.

    Args:
        unit: of the energies.

    >>> unit_of("hardware.levels.L1.read_energy", "pJ"), unit_of("hardware.arithmetic.mac.32", "pJ")
    ('pJ/bit', 'pJ')
    >>> unit_of("hardware.voltage.run", "pJ"), unit_of("hardware.clock", "pJ")
    ('V', 'Hz')
    """
    path, _, last = column.rpartition(".")
    of_mac = path.startswith("hardware.arithmetic.") and last != "operations"
    if column in ENERGIES or of_mac:
        return unit
    if column.startswith("hardware.") and last in PLAIN:
        return PLAIN[last]
    if path.startswith("hardware.") and last.endswith("_energy"):
        return f"{unit}/bit"
    if is_size(column) and not last.endswith("_bytes"):
        return "bit"
    return "%" if "percent" in last else ""


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
