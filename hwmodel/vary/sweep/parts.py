"""Parts of a table: a folder beside the table, in which each part is written whole.

A part is written beside its place and renamed, so that it is there whole or not at all. The
manifest holds the hash of the sweep and of all its inputs: parts of another sweep are refused.
Parts are cut by the sweep alone and put together in order, so that the table is the same however
many workers there were, and whenever they were stopped.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hwmodel.errors import DataError, HwmodelError
from hwmodel.specs.files import whole_file
from hwmodel.specs.provenance import Provenance

__all__ = ["ENDINGS", "Folder", "Summary", "ending_of", "opened"]

ENDINGS = (".csv", ".parquet")
MANIFEST = "manifest.json"


class Summary(NamedTuple):
    """Counts of a sweep or of a part of it: points, failed points, tilings that are not proved."""

    points: int
    failed: int
    first_reason: str
    unproved: int  # tilings


class Folder(NamedTuple):
    """The parts of one table."""

    path: Path
    out: Path

    def part(self, kind: str, number: int) -> Path:
        """Return the path of a part."""
        return self.path / f"{kind}-{number:06d}.txt"

    def has(self, kind: str, number: int) -> bool:
        """Say whether a part is there; if it is, it is whole."""
        return self.part(kind, number).is_file()

    def store(self, kind: str, number: int, text: str) -> None:
        """Write a part. Raises: HwmodelError."""
        with whole_file(self.part(kind, number)) as stream:
            stream.write(text)

    def read(self, kind: str, number: int) -> str:
        """Read a part's text. Raises: DataError."""
        path = self.part(kind, number)
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from None

    def finish(
        self, columns: Mapping[str, type], parts: int, points: int, made: Provenance
    ) -> Summary:
        """Put the parts together as one table, and remove them. Raises: HwmodelError.

        Args:
            made: stands at the end of every row.
        """
        seen: list[Summary] = []

        def lines() -> Iterator[list[list[str]]]:
            for number in range(parts):
                some = list(csv.reader(io.StringIO(self.read("part", number))))
                seen.append(_summary(columns, some))
                yield [[*line, *made.cells] for line in some]
            if sum(part.points for part in seen) != points:
                raise DataError(f"{self.path}: its parts do not hold {points} points; remove it")

        all_columns = {**columns, **dict.fromkeys(made.columns, str)}
        _WRITERS[ending_of(self.out)](self.out, all_columns, lines())
        self.remove()
        reasons = [part.first_reason for part in seen if part.first_reason]
        return Summary(
            points,
            sum(part.failed for part in seen),
            next(iter(reasons), ""),
            sum(part.unproved for part in seen),
        )

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        _release(self.path)


def ending_of(out: Path) -> str:
    """Return the format of a table, by its name. Raises: HwmodelError."""
    if out.suffix not in ENDINGS:
        raise HwmodelError(f"{out}: a table of results ends in {' or '.join(ENDINGS)}")
    if out.suffix == ".parquet":
        _arrow(out)
    return out.suffix


def opened(out: Path, digest: str, *, resume: bool) -> Folder:
    """Open the folder of a table's parts, new or as it was left.

    Raises: HwmodelError if there are parts and `resume` is not asked for, or they are of another
        sweep, or another process is at work on them.
    """
    folder = Folder(out.with_name(f"{out.name}.parts"), out)
    manifest = folder.path / MANIFEST
    inside = _inside(folder.path)
    if inside and MANIFEST not in inside:
        raise HwmodelError(f"{folder.path}: is in the way: it holds no parts of a sweep")
    _hold(folder.path)
    inside = _inside(folder.path)  # which nobody changes any more
    if inside <= {MANIFEST}:  # nothing is done yet
        with whole_file(manifest) as stream:
            stream.write(json.dumps({"inputs_sha256": digest}, indent=1) + "\n")
        return folder
    if not resume:
        raise HwmodelError(
            f"{folder.path}: holds parts of a run that did not end; go on with --resume, "
            "or remove the folder"
        )
    try:
        stated = json.loads(manifest.read_text(encoding="utf-8"))["inputs_sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{manifest}: cannot be read: {error}") from None
    if stated != digest:
        raise HwmodelError(
            f"{folder.path}: holds parts of another sweep: the sweep file, something that it "
            "names, or hwmodel has changed; remove the folder to begin anew"
        )
    return folder


def _inside(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("[!.]*")}


_held: dict[Path, int] = {}  # open files with a lock, which ends with this process


def _hold(folder: Path) -> None:
    """See that no other process has the folder: two sweeps' parts would become one table.

    Raises: HwmodelError.
    """
    try:
        import fcntl
    except ImportError:  # where the system has no such locks
        return
    _release(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise HwmodelError(f"{folder}: cannot be written: {error.strerror or error}") from None
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise HwmodelError(f"{folder}: another run is at work on it; let it end first") from None
    except OSError:  # a file system without locks
        os.close(lock)
        return
    _held[folder] = lock


def _release(folder: Path) -> None:
    held = _held.pop(folder, None)
    if held is not None:
        os.close(held)


def _summary(columns: Mapping[str, type], lines: Sequence[Sequence[str]]) -> Summary:
    """Count the points of a part with and without energies."""
    places = {name: place for place, name in enumerate(columns)}
    reasons = [line[places["reason"]] for line in lines if line[places["reason"]]]
    unproved = sum(int(line[places["unproved_tilings"]] or 0) for line in lines)
    return Summary(len(lines), len(reasons), next(iter(reasons), ""), unproved)


Lines = Iterator[list[list[str]]]  # part by part


def _write_csv(out: Path, columns: Mapping[str, type], parts: Lines) -> None:
    """Write the parts' lines under a header."""
    with whole_file(out) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        for lines in parts:
            writer.writerows(lines)


def _write_parquet(out: Path, columns: Mapping[str, type], parts: Lines) -> None:
    """Write the parts' lines with a type for each column; a part is a group of rows."""
    arrow, parquet = _arrow(out)
    kinds = {int: arrow.int64(), float: arrow.float64(), str: arrow.string(), bool: arrow.bool_()}
    read: dict[type, Callable[[str], object]]
    read = {int: int, float: float, str: str, bool: "true".__eq__}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with whole_file(out, "wb") as stream, parquet.ParquetWriter(stream, schema) as writer:
        for lines in parts:
            cells = zip(columns.values(), zip(*lines, strict=True), schema, strict=True)
            arrays = [
                arrow.array([read[kind](cell) if cell else None for cell in column], field.type)
                for kind, column, field in cells
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet}


def _arrow(out: Path) -> tuple[Any, Any]:
    """The library for Parquet. Raises: HwmodelError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise HwmodelError(
            f"{out}: Parquet needs pyarrow: pip install 'hwmodel[parquet]'; or write a .csv"
        ) from None
    return pyarrow, pyarrow.parquet
