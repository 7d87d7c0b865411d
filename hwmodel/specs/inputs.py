"""Reads files, and keeps a command from writing over those that it has read.

A file is read by the name that a command gives it. Where the files of a bundle stand in, the name
leads to what the bundle holds, and to nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hwmodel.errors import DataError, HwmodelError

__all__ = ["MAX_JSON", "inputs_kept", "is_input", "note_input", "read_from", "read_text"]
__all__ += ["refuse_endless", "refuse_input"]

MAX_JSON = 24 * 2**20  # bytes of a JSON file, whose values may take 38 times as much

# Real paths of what has been read, by the names that were given; None: nobody wants to know.
_read: dict[str, str] | None = None
_held: Mapping[str, Path] | None = None  # where files stand, by name; None: where they say


@contextmanager
def inputs_kept() -> Iterator[Mapping[str, str]]:
    """Note the files that are read meanwhile, so that none is written over, also through a link.

    Yields: their names as they were given, in the order of reading, with their real paths.
    """
    global _read
    before, _read = _read, {}
    try:
        yield _read
    finally:
        _read = before


@contextmanager
def read_from(held: Mapping[str, Path] | None) -> Iterator[None]:
    """Let names of files lead to others meanwhile, and to no others.

    Args:
        held: where each file stands, by its name with "/" between folders; None: where it says.
    """
    global _held
    before, _held = _held, held
    try:
        yield
    finally:
        _held = before


def is_input(name: str) -> bool:
    """Whether there is a file of a name."""
    return os.path.isfile(name) if _held is None else Path(name).as_posix() in _held


def refuse_endless(path: Path) -> None:
    """Refuse a device or a pipe: reading it might not end, or not begin. Raises: DataError."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path}: is no file, but a device or a pipe")


def note_input(path: Path) -> Path:
    """Say that a file is being read; return where it stands.

    Raises: DataError, as `refuse_endless`, and for what a bundle does not hold.
    """
    there = path if _held is None else _held.get(path.as_posix())
    if there is None:
        raise DataError(f"{path}: is not in the bundle, and nothing else is read for it")
    refuse_endless(there)
    if _read is not None:
        _read[path.as_posix()] = os.path.realpath(there)
    return there


def read_text(path: Path, most: int, wrong: type[HwmodelError] = DataError) -> str:
    """The text of a file, without the mark that some editors write at its beginning.

    Args:
        most: bytes that are read.
        wrong: kind of the errors.

    Raises: HwmodelError.
    """
    there = note_input(path)
    try:
        with there.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise wrong(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(raw) > most:
        raise wrong(f"{path}: is longer than {most:,} B, the most that is read")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong(f"{path}: is not UTF-8 text (byte {error.start})") from None


def refuse_input(path: Path) -> None:
    """See that a file to be written is none that was read. Raises: HwmodelError."""
    if _read and os.path.realpath(path) in _read.values() and path.is_file():
        raise HwmodelError(f"{path}: is read by the same command, and would be written over")
