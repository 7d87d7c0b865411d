"""Keeps a command from writing over the files that it has read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hwmodel.errors import HwmodelError

__all__ = ["inputs_kept", "note_input", "refuse_input"]

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
    """Say that a file is being read."""
    if _read is not None:
        _read.add(os.path.realpath(path))


def refuse_input(path: Path) -> None:
    """See that a file to be written is none that was read. Raises: HwmodelError."""
    if _read and os.path.realpath(path) in _read and path.is_file():
        raise HwmodelError(f"{path}: is read by the same command, and would be written over")
