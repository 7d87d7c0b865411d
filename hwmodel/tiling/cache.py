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
import sqlite3
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.search import Certificate
from hwmodel.work.problem import Extents

__all__ = ["folder", "look_up", "store"]

MOST = 500_000  # tilings; some two hundred bytes each
Found = tuple[Mapping, Certificate]


def folder() -> Path | None:
    """Return the folder of the cache; None where it is switched off."""
    chosen = os.environ.get("HWMODEL_CACHE", "")
    if chosen:
        return None if chosen == "off" else Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "hwmodel"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "hwmodel"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hwmodel"


def look_up(key: object) -> Found | None:
    """Read the tiling of a key, if it is there and whole."""
    with suppress(sqlite3.Error, ValueError, TypeError, KeyError):
        there = _opened()
        if there is not None:
            row = there.execute("SELECT found FROM tilings WHERE key = ?", (_hash(key),)).fetchone()
            return _read(row[0], _hash(key)) if row else None
    return None


def store(key: object, found: Found) -> None:
    """Keep a tiling; drop the oldest where there are too many."""
    mapping, proof = found
    text = json.dumps(["".join(mapping.held), mapping.tiles, asdict(proof)], default=int)
    name = _hash(key)
    with suppress(sqlite3.Error):
        there = _opened()
        if there is not None:
            whole = _check(name, text) + text
            with there:
                there.execute("INSERT OR REPLACE INTO tilings VALUES (?, ?)", (name, whole))
                there.execute(
                    "DELETE FROM tilings WHERE rowid <= (SELECT max(rowid) FROM tilings) - ?",
                    (MOST,),
                )


def _read(whole: str, name: bytes) -> Found | None:
    """What was stored under a name; None where a single character is not as it was."""
    check, text = whole[:16], whole[16:]
    if check != _check(name, text):
        return None
    held, tiles, proof = json.loads(text)
    return Mapping(tuple(Extents(*tile) for tile in tiles), tuple(held)), Certificate(**proof)


def _check(name: bytes, text: str) -> str:
    return hashlib.sha256(name + text.encode()).hexdigest()[:16]


def _hash(key: object) -> bytes:
    return hashlib.sha256(f"{_code()}{key!r}".encode()).digest()


@cache
def _code() -> str:
    """The hash of all code that a tiling depends on, and NumPy's version."""
    import numpy as np

    here = Path(__file__).parent
    files = [*sorted(here.rglob("*.py")), here.parent / "work" / "problem.py"]
    text = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(text).hexdigest() + np.__version__


@cache
def _connected(path: Path, process: int) -> sqlite3.Connection | None:
    """The file, made anew where it is damaged; None where there can be none."""
    for again in (False, True):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            there = sqlite3.connect(path, timeout=1.0, check_same_thread=False)
            there.execute("PRAGMA synchronous = OFF")  # what is lost is found again
            there.execute("CREATE TABLE IF NOT EXISTS tilings (key BLOB PRIMARY KEY, found TEXT)")
            return there
        except (sqlite3.Error, OSError):
            if again:
                return None
            with suppress(OSError):
                path.unlink()
    return None


def _opened() -> sqlite3.Connection | None:
    place = folder()  # a connection is of one process: after a fork there is another
    return None if place is None else _connected(place / "tilings.sqlite", os.getpid())
