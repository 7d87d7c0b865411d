"""Signs of life of a command that takes long: where it is, and how long it may still take.

On a terminal, commands with many steps draw a bar (`screen.py`, `running.py`, `sweep.py`). Where
standard error is none, and for a command of one long step, a line is written every ten seconds; on
a terminal the first comes after two. A command without steps of its own says how many products it
has tiled. `HWMODEL_PROGRESS=off` is silence.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

__all__ = ["at", "drawn", "pulse", "sentence"]

EVERY = 10.0  # seconds between lines
FIRST = 2.0  # on a terminal


class _Place:
    """Where the command is: steps done of how many; a bar that is drawn says so itself."""

    what, done, total = "computing", 0, 0
    started = 0.0
    bar = False


_place = _Place()


def at(what: str, done: int, total: int) -> None:
    """Say where a command is."""
    if (what, total) != (_place.what, _place.total):
        _place.what, _place.total, _place.started = what, total, time.monotonic()
    _place.done = done


@contextmanager
def drawn() -> Iterator[None]:
    """Keep still while a bar is drawn."""
    _place.bar = True
    try:
        yield
    finally:
        _place.bar = False


def sentence(what: str, done: int, total: int, seconds: float) -> str:
    """Say how far a command is after so many seconds, and what is left at this pace.

    >>> sentence("comparing", 3, 12, 30)
    'comparing: 3 of 12 after 30 s, about 90 s left'
    >>> sentence("computing", 0, 0, 20.4)
    'computing: 20 s'
    """
    if not total:
        return f"{what}: {seconds:.0f} s"
    left = f", about {seconds / done * (total - done):,.0f} s left" if done else ""
    return f"{what}: {done:,} of {total:,} after {seconds:,.0f} s{left}"


@contextmanager
def pulse() -> Iterator[None]:
    """Write a line now and then while a command runs."""
    if os.environ.get("HWMODEL_PROGRESS", "") == "off":
        yield
        return
    over, terminal = Event(), sys.stderr.isatty()
    _place.what, _place.done, _place.total, _place.started = "computing", 0, 0, time.monotonic()

    def beat() -> None:
        wait = min(FIRST, EVERY) if terminal else EVERY
        while not over.wait(wait):
            wait = EVERY
            from hwmodel.model.progress import place  # most commands are done before

            if not _place.bar:
                at_now = place if place.total and not _place.total else _place
                seconds = time.monotonic() - at_now.started
                said = sentence(at_now.what, at_now.done, at_now.total, seconds)
                with suppress(OSError, ValueError):  # nobody listens
                    print(f"hwmodel: {said}", file=sys.stderr, flush=True)

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
