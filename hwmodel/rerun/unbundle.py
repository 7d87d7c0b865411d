"""Opens a bundle of anybody's: within bounds, and only what its lock lists, by its hash.

Files are unpacked under names of ours to a folder that is removed afterwards, so that no name in a
bundle leads anywhere. Commands read them by the names that the bundle's table gives them.
"""

from __future__ import annotations

import hashlib
import stat
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from hwmodel.errors import DataError, printable
from hwmodel.rerun.lock import LOCK, MAX_BYTES, MAX_FILES, Lock, may_be_held
from hwmodel.specs.files import read_yaml, validate
from hwmodel.specs.inputs import note_input, read_from

__all__ = ["opened"]

PIECE = 2**20  # bytes that are copied at a time
MAX_INDEX = 2**20  # bytes in which a zip file lists what it holds
MAX_LOCK = 2**20  # bytes
_END, _BEFORE = 22, 20  # bytes of the last record, and of the one that may stand before it
_WRONG = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Path, Lock | None]]:
    """Open a bundle, from which all files are read meanwhile; a table alone is given as it is.

    Yields: the table's path, and the bundle's lock.

    Raises: DataError for what is no bundle, or not as it was bundled.
    """
    if path.suffix.lower() != ".zip":
        yield path, None
        return
    with TemporaryDirectory() as folder:
        try:
            lock, places = _unpacked(path, Path(folder))
        except (*_WRONG, zlib.error) as error:
            why = printable(str(error)) or type(error).__name__
            raise DataError(f"{path}: is no zip file that can be read: {why}") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be unpacked: {error.strerror or error}") from None
        table = path / lock.table.file
        held = {given.named: places[given.file] for given in lock.inputs}
        with read_from(held | {table.as_posix(): places[lock.table.file]}):
            yield table, lock


def _unpacked(path: Path, folder: Path) -> tuple[Lock, dict[str, Path]]:
    """Unpack a bundle; return its lock, and where each of its files stands. Raises: DataError."""
    with note_input(path).open("rb") as stream:
        _see_index(path, stream)
        with ZipFile(stream) as archive:
            entries = _entries(path, archive.infolist())
            if LOCK not in entries:
                raise DataError(f"{path}: holds no {LOCK}: it is no bundle of hwmodel")
            if entries[LOCK].file_size > MAX_LOCK:
                raise DataError(f"{path}: {LOCK} is longer than {MAX_LOCK:,} B")
            _copied(archive, entries.pop(LOCK), folder / LOCK)
            lock = _lock(path, folder / LOCK)
            files = (lock.table, *lock.inputs)
            _see_listed(path, entries, [held.file for held in files])
            places = {}
            for number, held in enumerate(files):
                place = places[held.file] = folder / str(number)
                found = _copied(archive, entries[held.file], place)
                if found != held.sha256:
                    raise DataError(
                        f"{path}: {held.file} is not as it was bundled: its SHA-256 is "
                        f"{found[:8]}…, not {held.sha256[:8]}…"
                    )
    return lock, places


def _see_index(path: Path, stream: IO[bytes]) -> None:
    """See that a file ends as a zip file of few entries does. Raises: DataError."""
    size = stream.seek(0, 2)
    if size > MAX_BYTES:
        raise DataError(f"{path}: is longer than {MAX_BYTES:,} B, the most that is read")
    stream.seek(max(0, size - _END - _BEFORE))
    tail = stream.read()
    end = tail[-_END:]
    index, before = struct.unpack("<LL", end[12:20]) if len(end) == _END else (0, 0)
    if index > MAX_INDEX or tail[:4] == b"PK\6\7":
        raise DataError(f"{path}: lists more files than a bundle may hold")
    if end[:4] != b"PK\5\6" or before + index + _END != size:
        raise DataError(f"{path}: is no zip file that can be read, or only part of one")


def _entries(path: Path, found: Sequence[ZipInfo]) -> dict[str, ZipInfo]:
    """List the files of a bundle by name. Raises: DataError for what none of ours has."""
    entries: dict[str, ZipInfo] = {}
    seen = set()
    for entry in found:
        name = entry.orig_filename
        wrong = _wrong_with(entry) or ("twice" if name.casefold() in seen else "")
        if wrong:
            raise DataError(f"{path}: holds {printable(name)[:200]!r}, {wrong}")
        seen.add(name.casefold())
        entries[name] = entry
    if len(entries) > MAX_FILES + 2:
        raise DataError(f"{path}: holds more than {MAX_FILES:,} files")
    if sum(entry.file_size for entry in found) > MAX_BYTES:
        raise DataError(f"{path}: unpacks to more than {MAX_BYTES:,} B")
    return entries


def _wrong_with(entry: ZipInfo) -> str:
    """Say what is wrong with an entry of a zip file; "" for a plain file."""
    if not may_be_held(entry.orig_filename):
        return "which is no name of a file in a bundle"
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        return "which is no plain file, but a folder, a link or a device"
    if entry.flag_bits & 1:
        return "which is encrypted"
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "which is compressed in a way that is not read"
    return ""


def _lock(path: Path, place: Path) -> Lock:
    """Read the lock. Raises: SpecError."""
    shown = path / LOCK
    with read_from({shown.as_posix(): place}):
        return validate(Lock, read_yaml(shown), shown)


def _see_listed(path: Path, entries: dict[str, ZipInfo], listed: Sequence[str]) -> None:
    """See that a bundle holds what its lock lists, and nothing else. Raises: DataError."""
    missing = [name for name in listed if name not in entries]
    if missing:
        raise DataError(f"{path}: lacks {missing[0]}, which its {LOCK} lists")
    more = [name for name in entries if name not in listed]
    if more:
        raise DataError(f"{path}: holds {more[0]}, which its {LOCK} does not list")
    twice = [name for name in listed if listed.count(name) > 1]
    if twice:
        raise DataError(f"{path}: {LOCK} lists {twice[0]} twice")


def _copied(archive: ZipFile, entry: ZipInfo, place: Path) -> str:
    """Unpack one file, no more of it than was said; return the SHA-256 of its bytes."""
    seen = hashlib.sha256()
    with archive.open(entry) as stream, place.open("wb") as target:
        while piece := stream.read(PIECE):
            seen.update(piece)
            target.write(piece)
    return seen.hexdigest()
