"""Keeps a command from writing over the files that it has read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hwmodel.errors import DataError, HwmodelError

__all__ = ["MAX_JSON", "inputs_kept", "note_input", "read_text", "refuse_input"]

MAX_JSON = 24 * 2**20  # bytes of a JSON file, whose values may take 38 times as much

_read: set[str] | None = None  # real paths; None: nobody wants to know


@contextmanager
def inputs_kept() -> Iterator[None]:
    """Note the files that are read meanwhile, so that none is written over, also through a link."""
    global _read
    before, _read = _read, set()
    try:
        yield
    finally:
        _read = before


def note_input(path: Path) -> None:
    """Say that a file is being read.

    Raises: DataError for a device or a pipe: reading it might not end, or not begin.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path}: is no file, but a device or a pipe")
    if _read is not None:
        _read.add(os.path.realpath(path))


def read_text(path: Path, most: int, wrong: type[HwmodelError] = DataError) -> str:
    """The text of a file, without the mark that some editors write at its beginning.

    Args:
        most: bytes that are read.
        wrong: kind of the errors.

    Raises: HwmodelError.
    """
    note_input(path)
    try:
        with path.open("rb") as stream:
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
    if _read and os.path.realpath(path) in _read and path.is_file():
        raise HwmodelError(f"{path}: is read by the same command, and would be written over")
