"""Parts of a table: a folder beside the table, in which each part is written whole.

A part is written beside its place and renamed, so that it is there whole or not at all, and bears
a seal: one that is damaged, or that other code has made, is made anew. The manifest holds the hash
of the sweep and of all its inputs: parts of another sweep are refused.
Parts are cut by the sweep alone and put together in order, so that the table is the same however
many workers there were, and whenever they were stopped.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from hwmodel.errors import DataError, HwmodelError, SpecWarning, many
from hwmodel.specs.files import whole_file, write
from hwmodel.specs.inputs import read_text
from hwmodel.specs.provenance import Provenance, code_digest

__all__ = ["ENDINGS", "Folder", "Summary", "ending_of", "opened"]

ENDINGS = (".csv", ".parquet")
MANIFEST = "manifest.json"
GROUP = 32  # parts, of up to 1000 points each


class Summary(NamedTuple):
    """Counts of a sweep or of a part of it: points, failed points, tilings that are not proved."""

    points: int
    failed: int
    first_reason: str
    unproved: int  # tilings
    greedy: int  # points of which tiles are greedy


class Folder(NamedTuple):
    """The parts of one table, each under a seal: of itself, its place, the sweep and the code."""

    path: Path
    out: Path
    digest: str  # of the sweep

    def part(self, number: int) -> Path:
        """Return the path of a part."""
        return self.path / f"part-{number:06d}.txt"

    def missing(self, parts: int) -> list[int]:
        """Return the numbers of the parts that are to be computed.

        Warns: SpecWarning of those that are there and yet not what this code has made.
        """
        absent = [number for number in range(parts) if self._intact(number) is None]
        bad = sum(os.path.lexists(self.part(number)) for number in absent)
        if bad:
            warnings.warn(
                f"{self.path}: {many(bad, 'part')} of {parts:,}: damaged, or made by other code; "
                "made anew",
                SpecWarning,
                stacklevel=2,
            )
        return absent

    def store(self, number: int, text: str) -> None:
        """Write a part. Raises: HwmodelError."""
        path = self.part(number)
        with whole_file(path, "wb") as stream:
            stream.write(b"%b\n%b" % (self._seal(path, text.encode()), text.encode()))

    def read(self, number: int) -> str:
        """Read a part's text. Raises: DataError where it is not as it was stored."""
        text = self._intact(number)
        if text is None:
            raise DataError(f"{self.part(number)}: was damaged; go on with --resume")
        return text

    def _intact(self, number: int) -> str | None:
        """Read a part's text; None where it is not there as this sweep and this code made it."""
        path = self.part(number)
        try:
            seal, _, text = path.read_bytes().partition(b"\n") if path.is_file() else (b"",) * 3
        except OSError:
            return None
        return text.decode() if seal == self._seal(path, text) else None

    def _seal(self, path: Path, text: bytes) -> bytes:
        about = f"{self.digest} {code_digest()} {path.name}\n".encode()
        return hashlib.sha256(about + text).hexdigest().encode()

    def finish(self, columns: Mapping[str, type], parts: int, made: Provenance) -> Summary:
        """Put the parts together as one table, and remove them. Raises: HwmodelError.

        Args:
            made: stands at the end of every row.
        """
        seen: list[Summary] = []

        def lines() -> Iterator[list[list[str]]]:
            for number in range(parts):
                text = io.StringIO(self.read(number), newline="")
                some = list(csv.reader(text))
                seen.append(_summary(columns, some))
                yield [[*line, *made.cells] for line in some]

        all_columns = {**columns, **dict.fromkeys(made.columns, str)}
        _WRITERS[ending_of(self.out)](self.out, all_columns, lines())
        shutil.rmtree(self.path, ignore_errors=True)
        reasons = [part.first_reason for part in seen if part.first_reason]
        return Summary(
            sum(part.points for part in seen),
            sum(part.failed for part in seen),
            next(iter(reasons), ""),
            sum(part.unproved for part in seen),
            sum(part.greedy for part in seen),
        )


def ending_of(out: Path) -> str:
    """Return the format of a table, by its name. Raises: HwmodelError."""
    if out.suffix not in ENDINGS:
        raise HwmodelError(f"{out}: a table of results ends in {' or '.join(ENDINGS)}")
    if out.suffix == ".parquet":
        _arrow(out)
    return out.suffix


@contextmanager
def opened(out: Path, digest: str, *, resume: bool) -> Iterator[Folder]:
    """Open the folder of a table's parts, new or as it was left; nobody else has it meanwhile.

    Args:
        digest: of the sweep.

    Raises: HwmodelError if there are parts and `resume` is not asked for, or they are of another
        sweep, or another run is at work on them.
    """
    path = out.with_name(f"{out.name}.parts")
    inside = _inside(path)
    if inside and MANIFEST not in inside:
        raise HwmodelError(f"{path}: is in the way: it holds no parts of a sweep")
    lock = FileLock(path / ".lock")
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise HwmodelError(f"{path}: another run is at work on it; let it end first") from None
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or error
        raise HwmodelError(f"{path}: cannot be written: {reason}") from None
    with lock:
        _see_manifest(path, digest, resume)
        yield Folder(path, out, digest)


def _see_manifest(folder: Path, digest: str, resume: bool) -> None:
    """See that the folder is this sweep's, and say so in it. Raises: HwmodelError."""
    manifest = folder / MANIFEST
    if _inside(folder) <= {MANIFEST}:  # nothing is done yet
        write(manifest, json.dumps({"inputs_sha256": digest}, indent=1) + "\n")
        return
    if not resume:
        raise HwmodelError(
            f"{folder}: holds parts of a run that did not end; go on with --resume, "
            "or remove the folder"
        )
    try:
        stated = json.loads(read_text(manifest, 2**10))["inputs_sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{manifest}: cannot be read: {error}") from None
    if stated != digest:
        raise HwmodelError(
            f"{folder}: holds parts of another sweep: the sweep file, something that it "
            "names, or hwmodel has changed; remove the folder to begin anew"
        )


def _inside(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("[!.]*")}


def _summary(columns: Mapping[str, type], lines: Sequence[Sequence[str]]) -> Summary:
    """Count the points of a part with and without energies."""
    places = {name: place for place, name in enumerate(columns)}
    reasons = [line[places["reason"]] for line in lines if line[places["reason"]]]
    unproved = sum(int(line[places["unproved_tilings"]] or 0) for line in lines)
    greedy = sum(line[places["tiles"]] == "greedy" for line in lines)
    return Summary(len(lines), len(reasons), next(iter(reasons), ""), unproved, greedy)


Lines = Iterator[list[list[str]]]  # part by part


def _write_csv(out: Path, columns: Mapping[str, type], parts: Lines) -> None:
    """Write the parts' lines under a header."""
    with whole_file(out) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        for lines in parts:
            writer.writerows(lines)


def _write_parquet(out: Path, columns: Mapping[str, type], parts: Lines) -> None:
    """Write the parts' lines with a type for each column; `GROUP` parts are a group of rows.

    What the file says of each group is held until its end, so that there must not be too many.
    """
    arrow, parquet = _arrow(out)
    kinds = {int: arrow.int64(), float: arrow.float64(), str: arrow.string(), bool: arrow.bool_()}
    read: dict[type, Callable[[str], object]]
    read = {int: int, float: float, str: str, bool: "true".__eq__}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])

    def typed(lines: list[list[str]]) -> Any:
        cells = zip(columns.values(), zip(*lines, strict=True), schema, strict=True)
        arrays = [
            arrow.array([read[kind](cell) if cell else None for cell in column], field.type)
            for kind, column, field in cells
        ]
        return arrow.Table.from_arrays(arrays, schema=schema)

    with whole_file(out, "wb") as stream, parquet.ParquetWriter(stream, schema) as writer:
        while some := [typed(lines) for lines in islice(parts, GROUP)]:
            writer.write_table(arrow.concat_tables(some))


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
