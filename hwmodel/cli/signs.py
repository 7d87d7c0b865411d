"""Signs of life of a command that takes long: where it is, and how long it may still take.

On a terminal, commands with many steps draw a bar (`screen.py`, `running.py`, `sweep.py`). Where
standard error is none, and for a command of one long step, a line is written every ten seconds; on
a terminal the first comes after two. What moves within a step is said behind it, in the bar, too:
products tiled, tilings looked at, code that is being compiled. `HWMODEL_PROGRESS=off` is silence.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

__all__ = ["at", "drawn", "pulse", "sentence", "within"]

EVERY = 10.0  # seconds between lines
FIRST = 2.0  # on a terminal


class _Place:
    """Where the command is: steps done of how many; a bar that is drawn says so itself."""

    what, done, total = "computing", 0, 0
    started = 0.0
    compiled = 0.0  # seconds of compiling before
    looked = 0.0  # tilings looked at before the command
    bar = False


_place = _Place()


def at(what: str, done: int, total: int) -> None:
    """Say where a command is."""
    if (what, total) != (_place.what, _place.total):
        from hwmodel.tiling.effort import effort

        _place.compiled = effort.compiled
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


def sentence(
    what: str,
    done: int,
    total: int,
    seconds: float,
    part: float = 0.0,
    inside: str = "",
    once: float = 0.0,
) -> str:
    """Say how far a command is after so many seconds, and what is left at this pace.

    Args:
        part: share of the step that is being worked on that is done.
        inside: what moves within it, in words.
        once: seconds that went into what is not done again.

    >>> sentence("comparing", 3, 12, 30)
    'comparing: 3 of 12 after 30 s, about 90 s left'
    >>> sentence("comparing", 0, 12, 30, 0.5, "products 4 of 8")
    'comparing: 0 of 12 after 30 s, about 690 s left; products 4 of 8'
    >>> sentence("comparing", 1, 3, 30, once=20)
    'comparing: 1 of 3 after 30 s, about 20 s left'
    >>> sentence("computing", 0, 0, 20.4)
    'computing: 20 s'
    """
    more = f"; {inside}" if inside else ""
    if not total:
        return f"{what}: {seconds:.0f} s{more}"
    whole = done + part
    pace = max(0.0, seconds - once) / whole if whole else 0.0
    left = f", about {pace * (total - whole):,.0f} s left" if whole else ""
    return f"{what}: {done:,} of {total:,} after {seconds:,.0f} s{left}{more}"


def within() -> tuple[float, str]:
    """Return the share of a step's products that are tiled, and what moves now, in words."""
    from hwmodel.model.progress import place  # most commands are done before
    from hwmodel.tiling.effort import effort

    said = [f"{place.what} {place.done:,} of {place.total:,}"] if place.total else []
    looked = effort.looked - _place.looked
    if looked:
        said.append(f"tilings looked at {looked:,.0f}")
    if effort.compiling:
        said.append("compiling the search, which is kept for the next time")
    return (place.done / place.total if place.total else 0.0), ", ".join(said)


def _said() -> str:
    """Say where the command is: its steps, or the products of its only one."""
    from hwmodel.model.progress import place
    from hwmodel.tiling.effort import effort

    part, inside = within()
    part = 0.0 if effort.compiling else part  # nothing is known of the pace yet
    lost = effort.compiled - _place.compiled
    if _place.total or not place.total:
        seconds = time.monotonic() - _place.started
        return sentence(_place.what, _place.done, _place.total, seconds, part, inside, lost)
    seconds = time.monotonic() - place.started
    rest = inside.partition(", ")[2]
    return sentence(place.what, place.done, place.total, seconds, 0.0, rest, lost)


@contextmanager
def pulse() -> Iterator[None]:
    """Write a line now and then while a command runs."""
    if os.environ.get("HWMODEL_PROGRESS", "") == "off":
        yield
        return
    from hwmodel.tiling.effort import effort

    over, terminal, _place.looked = Event(), sys.stderr.isatty(), effort.looked
    _place.what, _place.done, _place.total, _place.started = "computing", 0, 0, time.monotonic()

    def beat() -> None:
        wait = min(FIRST, EVERY) if terminal else EVERY
        while not over.wait(wait):
            wait = EVERY
            if not _place.bar:
                said = _said()
                with suppress(OSError, ValueError):  # nobody listens
                    print(f"hwmodel: {said}", file=sys.stderr, flush=True)

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
