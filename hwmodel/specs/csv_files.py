"""Reads CSV files that come back from editors and spreadsheets, or says what is wrong.

A table is kept by columns, equal cells of a column mostly once, and a row is a view of it: so a
table takes little more memory than its file, and one that would take too much is refused.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from sys import getsizeof
from typing import IO, Any

from hwmodel.errors import DataError
from hwmodel.specs.inputs import note_input

__all__ = ["ALIKE", "CONTROL", "Check", "Row", "begins_with", "begun", "read_table", "rows_of"]

MAX_LINE = 2**20  # characters
MAX_HELD = 2**28  # bytes of cells
ALIKE = 1000  # different cells of a column that are remembered to be kept once
# What a terminal obeys, or XML cannot hold.
CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f" + "\ufffe\uffff]"
_CONTROL = re.compile(CONTROL)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


Check = Callable[[Mapping[str, Any]], None]


class Row(Mapping[str, Any]):
    """A row of a table that is kept by columns."""

    __slots__ = ("_columns", "_place")

    def __init__(self, columns: Mapping[str, Sequence[Any]], place: int) -> None:
        self._columns, self._place = columns, place

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self._place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return repr(dict(self))


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Return the rows of a table that is kept by columns."""
    return [Row(columns, place) for place in range(len(next(iter(columns.values()), ())))]


def read_table(
    path: Path,
    check: Check,
    reads: Sequence[Callable[[str], Any]] = (),
    most: int = MAX_HELD,
) -> dict[str, list[Any]]:
    """Read the columns of a CSV file.

    Args:
        check: see `begun`.
        reads: for each column what a cell stands for; by default its text.
        most: bytes of cells that are held.

    Raises: DataError.
    """
    header, lines = begun(path, check)
    held, columns = 0, [list[Any]() for _ in header]
    memos = [dict[str, Any]() for _ in header]
    ways = [*zip(columns, memos, reads or [str] * len(header), strict=True)]
    for line in lines:
        for cell, (column, known, read) in zip(line, ways, strict=True):
            value = known.get(cell, known)
            if value is known:  # which stands for a cell that is new
                value = read(cell)
                held += getsizeof(value)
                if len(known) < ALIKE:
                    known[cell] = value
            column.append(value)
        held += 8 * len(header)
        if held > most:
            raise DataError(f"{path}: its cells take more than the {most:,} B that are held")
    return dict(zip(header, columns, strict=True))


def begins_with(path: Path, columns: Sequence[str]) -> bool:
    """Say whether a file begins with some columns, as a table of a kind does."""
    try:
        with path.open("rb") as stream:
            start = stream.read(400).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return False  # who reads it says so
    return start.startswith(",".join(columns).encode())


def begun(path: Path, check: Check) -> tuple[list[str], Iterator[list[str]]]:
    """Read the header of a CSV file, and the other records as they are asked for.

    Args:
        check: is given the first row, with the header's names, and raises what is wrong with it,
            before the rest is read.

    Raises: DataError.
    """
    lines = _records(path)
    header = next(lines)
    twice = next((name for name, number in Counter(header).items() if number > 1), None)
    if twice is not None:
        raise DataError(f"{path}:1: has the column {twice!r} twice")
    first = [*islice(lines, 1)]
    check(dict(zip(header, first[0] if first else [""] * len(header), strict=True)))
    return header, chain(first, lines)


def _records(path: Path) -> Iterator[list[str]]:
    """Read the records of a CSV file; the first is the header.

    The mark that spreadsheets write at the beginning is passed over. Control characters are
    refused: cells of a table come into figures, pages and terminals.

    Raises: DataError.
    """
    there = note_input(path)
    try:
        with there.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(_lines(path, stream), strict=True)
            header = next(reader, [])
            yield header
            for record in reader:
                if record and len(record) != len(header):
                    raise DataError(
                        f"{path}:{reader.line_num}: has not as many cells as the header"
                    )
                if record:
                    yield record
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        with there.open("rb") as raw:
            wide = raw.read(2) in _UTF_16
        why = "it is UTF-16; UTF-8 is expected" if wide else str(error)
        raise DataError(f"{path}: is not a CSV file: {why}") from None
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: is not CSV: {error}") from None


def _lines(path: Path, stream: IO[str]) -> Iterator[str]:
    """The lines of a file, each looked at. Raises: DataError."""
    number = 0
    while line := stream.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE:
            raise DataError(f"{path}:{number}: is a line of more than {MAX_LINE:,} characters")
        if control := _CONTROL.search(line):
            raise DataError(f"{path}:{number}: has the control character {control[0]!r}")
        for separator, called in _SEPARATORS.items() if number == 1 else ():
            if line.count(separator) > line.count(","):
                raise DataError(f"{path}:1: is separated by {called}; commas are expected")
        yield line
