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

__all__ = ["at", "drawn", "left", "pulse", "remaining", "sentence", "within"]

EVERY = 10.0  # seconds between lines
FIRST = 2.0  # on a terminal
FEW = 4  # products whose pace says something of the others


class _Place:
    """Where the command is: steps done of how many; a bar that is drawn says so itself."""

    what, done, total = "computing", 0, 0
    alike = 0  # steps that take about as long, one group after another; 0: all do
    started = 0.0
    began = 0.0  # when the present group did
    compiled = 0.0  # seconds of compiling before that
    looked = 0.0  # tilings looked at before the command
    bar = False


_place = _Place()


def at(what: str, done: int, total: int, alike: int = 0) -> None:
    """Say where a command is.

    Args:
        alike: steps of a group, as those of one chip: the pace of one says nothing of the next.
    """
    new = (what, total) != (_place.what, _place.total)
    if new or (alike and done % alike == 0 and done != _place.done):
        from hwmodel.tiling.effort import effort

        _place.compiled, _place.began = effort.compiled, time.monotonic()
    if new:
        _place.what, _place.total, _place.started = what, total, _place.began
    _place.done, _place.alike = done, alike


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
    alike: int = 0,
    before: float = 0.0,
) -> str:
    """Say how far a command is after so many seconds, and what is left at this pace.

    Args:
        part: share of the step that is being worked on that is done.
        inside: what moves within it, in words.
        once: seconds that went into what is not done again, of the present group.
        alike: steps of a group; of later groups the pace is not known. 0: all are one.
        before: seconds until the present group began.

    >>> sentence("comparing", 3, 12, 30)
    'comparing: 3 of 12 after 30 s, about 90 s left'
    >>> sentence("comparing", 0, 12, 30, 0.5, "products 4 of 8")
    'comparing: 0 of 12 after 30 s, about 690 s left; products 4 of 8'
    >>> sentence("comparing", 1, 3, 30, once=20)
    'comparing: 1 of 3 after 30 s, about 20 s left'
    >>> sentence("comparing", 6, 15, 50, alike=5, before=30)
    'comparing: 6 of 15 after 50 s, about 80 s left for 4 of these'
    >>> sentence("computing", 0, 0, 20.4)
    'computing: 20 s'
    """
    more = f"; {inside}" if inside else ""
    if not total:
        return f"{what}: {seconds:.0f} s{more}"
    said = left(done, total, seconds - before - once, part, alike)
    said = said and f", {said}"
    return f"{what}: {done:,} of {total:,} after {seconds:,.0f} s{said}{more}"


def left(done: int, total: int, seconds: float, part: float = 0.0, alike: int = 0) -> str:
    """Say how long steps still take that are like those of the present group; "" if unknown.

    Args:
        seconds: that the present group has taken.

    >>> left(0, 15, 9), left(6, 15, 20, alike=5), left(11, 15, 20, alike=5)
    ('', 'about 80 s left for 4 of these', 'about 80 s left')
    """
    start = done - done % alike if alike else 0
    end = min(total, start + alike) if alike else total
    whole = done - start + part
    if not whole:
        return ""
    words = f"about {max(0.0, seconds) / whole * (end - start - whole):,.0f} s left"
    return words if end == total else f"{words} for {end - done:,} of these"


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
        before = _place.began - _place.started
        return sentence(
            _place.what, _place.done, _place.total, seconds, part, inside, lost,
            _place.alike, before,
        )  # fmt: skip
    seconds = time.monotonic() - place.started
    rest = inside.partition(", ")[2]
    known = place.done >= min(FEW, place.total / 4)  # of fewer the pace says little
    if not known:
        told = f"{place.what}: {place.done:,} of {place.total:,} after {seconds:,.0f} s"
        return f"{told}; {rest}" if rest else told
    return sentence(place.what, place.done, place.total, seconds, 0.0, rest, lost)


def remaining() -> str:
    """Say how long the steps of a bar still take; "" if unknown."""
    from hwmodel.tiling.effort import effort

    part = 0.0 if effort.compiling else within()[0]
    seconds = time.monotonic() - _place.began - (effort.compiled - _place.compiled)
    return left(_place.done, _place.total, seconds, part, _place.alike)


@contextmanager
def pulse() -> Iterator[None]:
    """Write a line now and then while a command runs."""
    if os.environ.get("HWMODEL_PROGRESS", "") == "off":
        yield
        return
    from hwmodel.tiling.effort import effort

    over, terminal, _place.looked = Event(), sys.stderr.isatty(), effort.looked
    _place.what, _place.done, _place.total, _place.alike = "computing", 0, 0, 0
    _place.started = _place.began = time.monotonic()

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
