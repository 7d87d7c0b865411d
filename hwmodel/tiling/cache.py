"""Tilings on disk: found once on this machine, whoever asks.

A tiling is looked up by its arguments, by the code that searches and by NumPy's version, so that
nothing old is ever taken for new. The file is SQLite's, in the user's cache folder; it may be
removed at any time, is bounded, and where it cannot be used the search goes without it. The
environment variable `HWMODEL_CACHE` names another folder, or is `off`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.compiled import is_compiled
from hwmodel.tiling.optimal.terms import Certificate
from hwmodel.work.problem import Extents

if TYPE_CHECKING:
    import sqlite3

__all__ = ["folder", "look_up", "store"]

MOST = 100_000  # tilings; some five hundred bytes each
WAIT = 1.0  # for another process that writes [s]
Found = tuple[Mapping, Certificate]
_TABLE = "CREATE TABLE IF NOT EXISTS tilings (key BLOB PRIMARY KEY, found TEXT)"
_OLD = "DELETE FROM tilings WHERE rowid <= (SELECT max(rowid) FROM tilings) - ?"
# Open files, each of one process: after a fork there is another. None: cannot be used.
_files: dict[tuple[Path, int], sqlite3.Connection | None] = {}


def folder() -> Path | None:
    """Return the folder of the cache; None where it is switched off, or there is no home."""
    chosen = os.environ.get("HWMODEL_CACHE", "")
    if chosen:
        try:
            return None if chosen == "off" else Path(chosen).expanduser()
        except RuntimeError:  # ~ of a user who has no home
            return None
    own = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    if os.environ.get(own):
        return Path(os.environ[own]) / "hwmodel"
    try:
        home = Path.home()
    except RuntimeError:  # a user who has none
        return None
    usual = {"darwin": ("Library", "Caches"), "win32": ("AppData", "Local")}
    return home.joinpath(*usual.get(sys.platform, (".cache",)), "hwmodel")


def look_up(key: object) -> Found | None:
    """Read the tiling of a key, if it is there and whole."""
    if folder() is None:
        return None
    name = _hash(key)
    rows = _asked("SELECT found FROM tilings WHERE key = ?", name)
    return _read(rows[0][0], name) if rows else None


def store(key: object, found: Found) -> None:
    """Keep a tiling; drop the oldest where there are too many."""
    if folder() is None:
        return
    mapping, proof = found
    tiles = mapping.tiles, mapping.unions, mapping.cycle, mapping.groups
    parts = ["".join(mapping.held), *tiles, asdict(proof)]
    text = json.dumps(parts, default=int)
    name = _hash(key)
    _asked("INSERT OR REPLACE INTO tilings VALUES (?, ?)", name, _check(name, text) + text)
    _asked(_OLD, MOST)


def _read(whole: object, name: bytes) -> Found | None:
    """What was stored under a name; None where a single character is not as it was."""
    if not isinstance(whole, str) or whole[:16] != _check(name, whole[16:]):
        return None
    text = whole[16:]
    held, tiles, unions, cycle, groups, proof = json.loads(text)
    mapping = Mapping(
        tuple(Extents(*tile) for tile in tiles),
        tuple(held),
        tuple(Extents(*union) for union in unions),
        Extents(*cycle) if cycle else None,
        tuple(groups),
    )
    return mapping, Certificate(**proof)


def _check(name: bytes, text: str) -> str:
    return hashlib.sha256(name + text.encode()).hexdigest()[:16]


def _hash(key: object) -> bytes:
    return hashlib.sha256(f"{_code()}{key!r}".encode()).digest()


@cache
def _code() -> str:
    """The hash of all code that a tiling depends on, and NumPy's version."""
    import numpy as np

    here = Path(__file__).parent
    files = [*sorted(here.rglob("*.py"), key=str), here.parent / "work" / "problem.py"]
    text = b"".join(file.read_bytes() for file in files)
    # Where a budget ends a search, a compiled one has come further.
    return hashlib.sha256(text).hexdigest() + np.__version__ + str(is_compiled())


def _asked(statement: str, *values: object) -> list[Any]:
    """Ask the file; get no rows where it cannot be used, which is tried only once a process.

    A file that is damaged is removed, and made anew when it is asked next.
    """
    place = folder()
    if place is None:
        return []
    import sqlite3

    path = place / "tilings.sqlite"
    process = path, os.getpid()
    try:
        if process not in _files:
            _files[process] = _opened(path)
        there = _files[process]
        if there is None:
            return []
        with there:
            return there.execute(statement, values).fetchall()
    except (sqlite3.OperationalError, OSError):  # a full disk, no right to write, locks that hang
        _files[process] = None
    except sqlite3.DatabaseError:
        _files.pop(process, None)
        with suppress(OSError):
            path.unlink()
    return []


def _opened(path: Path) -> sqlite3.Connection:
    """Open the file. Raises: OSError, sqlite3.Error."""
    import sqlite3

    path.parent.mkdir(parents=True, exist_ok=True)
    there = sqlite3.connect(path, timeout=WAIT, check_same_thread=False)
    there.execute("PRAGMA synchronous = OFF")  # what is lost is found again
    there.execute(_TABLE)
    return there
