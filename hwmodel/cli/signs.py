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
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

__all__ = ["at", "drawn", "left", "pulse", "remaining", "sentence", "silent", "within"]

EVERY = 10.0  # seconds between lines
FIRST = 2.0  # on a terminal
LATE = 1.0  # seconds
FEW = 4  # products whose pace says something of the others
LATELY = 8  # steps whose pace says most of those to come: some are known from before


class _Place:
    """Where the command is: steps done of how many; a bar that is drawn says so itself."""

    what, done, total = "computing", 0, 0
    alike = 0  # steps that take about as long, one group after another; 0: all do
    started = 0.0
    last = 0.0  # when the last step was done
    pace = 0.0  # seconds a step of the present group lately; 0: not known yet
    compiled = 0.0  # seconds of compiling before the command
    looked = 0.0  # tilings looked at before the command
    bar = False

    def __init__(self) -> None:
        # steps of the group that were done, and after what seconds
        self.lately = deque([(0, 0.0)], LATELY + 1)


_place = _Place()


def at(what: str, done: int, total: int, alike: int = 0) -> None:
    """Say where a command is.

    Args:
        alike: steps of a group, as those of one chip: the pace of one says nothing of the next.
    """
    from hwmodel.tiling.effort import effort

    now, new = time.monotonic(), (what, total) != (_place.what, _place.total)
    if new:
        _place.what, _place.total, _place.started, _place.done = what, total, now, -1
    own = done % alike if alike else done
    spent = now - effort.compiled  # compiling is not done again
    if new or (done != _place.done and not own):  # what is known from before took no time
        _place.lately, _place.pace = deque([(own, spent)], LATELY + 1), 0.0
    elif done != _place.done:
        _place.lately.append((own, spent))
        (first, since), (last, until) = _place.lately[0], _place.lately[-1]
        _place.pace = max(0.0, until - since) / (last - first)
    if done != _place.done:
        _place.last = now
    _place.done, _place.alike = done, alike


def silent() -> bool:
    """Whether nobody wants signs of life."""
    return os.environ.get("HWMODEL_PROGRESS", "") == "off"


@contextmanager
def drawn() -> Iterator[None]:
    """Keep still while a bar is drawn."""
    _place.bar = True
    try:
        yield
    finally:
        _place.bar = False


def sentence(
    what: str, done: int, total: int, seconds: float, rest: str = "", inside: str = ""
) -> str:
    """Say how far a command is after so many seconds.

    Args:
        rest: what is left, in words.
        inside: what moves within a step, in words.

    >>> sentence("comparing", 3, 12, 30, "about 90 s left", "products 4 of 8")
    'comparing: 3 of 12 after 30 s, about 90 s left; products 4 of 8'
    >>> sentence("computing", 0, 0, 20.4)
    'computing: 20 s'
    """
    place = f"{done:,} of {total:,} after " if total else ""
    more = (f", {rest}" if rest else "") + (f"; {inside}" if inside else "")
    return f"{what}: {place}{seconds:,.0f} s{more}"


def left(done: int, total: int, pace: float, since: float = 0.0, alike: int = 0) -> str:
    """Say how long steps still take that are like those of the present group; "" if unknown.

    Args:
        pace: seconds a step of the present group; 0: not known yet.
        since: seconds since the last one was done.

    >>> left(0, 15, 0), left(3, 12, 10), left(11, 15, 20, alike=5)
    ('', 'about 90 s left', 'about 80 s left')
    >>> left(6, 15, 20, 5, alike=5)
    'about 75 s for the next 4, and 5 behind them of which nothing is known'
    """
    end = min(total, done - done % alike + alike) if alike else total
    rest = end - done
    if not pace or not rest:
        return ""
    seconds = max(pace * (rest - 1), pace * rest - since)
    if since > pace * rest + LATE:  # it should be done by now: nothing is known
        return ""
    if end == total:
        return f"about {seconds:,.0f} s left"
    behind = f"{total - end:,} behind them of which nothing is known"
    return f"about {seconds:,.0f} s for the next {rest:,}, and {behind}"


def remaining() -> str:
    """Say how long the steps of a command still take; "" if unknown."""
    since = time.monotonic() - _place.last
    return left(_place.done, _place.total, _place.pace, since, _place.alike)


def within() -> str:
    """Return what moves within a step, in words."""
    from hwmodel.model.progress import place  # most commands are done before
    from hwmodel.tiling.effort import effort

    said = [f"{place.what} {place.done:,} of {place.total:,}"] if place.total else []
    looked = effort.looked - _place.looked
    if effort.elsewhere:
        said.append(f"in {effort.elsewhere} processes")
    elif looked:
        said.append(f"tilings looked at {looked:,.0f}")
    if effort.compiling:
        said.append("compiling the search, which is kept for the next time")
    return ", ".join(said)


def _said() -> str:
    """Say where the command is: its steps, or the products of its only one."""
    from hwmodel.model.progress import place
    from hwmodel.tiling.effort import effort

    now = time.monotonic()
    if _place.total or not place.total:
        seconds = now - _place.started
        return sentence(
            _place.what, _place.done, _place.total, seconds, remaining(), within()
        )  # fmt: skip
    seconds = now - place.started
    known = place.done and place.done >= min(FEW, place.total / 4)  # fewer say little of the others
    pace = max(0.0, seconds - (effort.compiled - _place.compiled)) / place.done if known else 0.0
    rest = within().partition(", ")[2]
    return sentence(
        place.what, place.done, place.total, seconds, left(place.done, place.total, pace), rest
    )


@contextmanager
def pulse() -> Iterator[None]:
    """Write a line now and then while a command runs."""
    if silent():
        yield
        return
    from hwmodel.tiling.effort import effort

    over, terminal, _place.looked = Event(), sys.stderr.isatty(), effort.looked
    _place.what, _place.done, _place.total, _place.alike = "computing", 0, 0, 0
    _place.pace, _place.compiled = 0.0, effort.compiled
    _place.started = _place.last = time.monotonic()

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
