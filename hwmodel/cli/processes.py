"""How many processes work for a command, and whether they are worth their start."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from hwmodel.errors import HwmodelError, SpecWarning
from hwmodel.tiling.effort import effort

__all__ = ["Jobs", "cores", "processes_of", "shared"]

Jobs = Annotated[int | None, typer.Option(help="Processes.", show_default="as many as cores")]

ALONE = 5.0  # seconds after which several processes are worth their start


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processes_of(jobs: int | None) -> int:
    """Processes that are asked for, by default as many as cores. Raises: HwmodelError."""
    if jobs is None:
        return cores()
    from hwmodel.vary.workers import MAX_JOBS  # most ask for none

    if not 1 <= jobs <= MAX_JOBS:
        raise HwmodelError(f"--jobs {jobs}: 1 to {MAX_JOBS} processes")
    return jobs


def shared(
    function: Callable[..., Any], arguments: Sequence[Any], jobs: int, alone: float = ALONE
) -> Iterator[Any]:
    """What the function gives for each argument, in their order; what is warned of, once.

    Processes are asked only if it takes longer than they take to be started.

    Args:
        jobs: processes; no more than `MAX_JOBS` are started.
        alone: seconds in which this process does what it can by itself.
    """
    began, done = time.monotonic(), 0
    several = jobs > 1 and _can_start()
    for argument in arguments:
        if several and len(arguments) - done > 1 and time.monotonic() - began >= alone:
            break
        yield function(argument)
        done += 1
    rest = arguments[done:]
    if not rest:
        return
    from hwmodel.vary.workers import MAX_JOBS, Task, completed, in_order, workers

    number = min(jobs, len(rest), MAX_JOBS)
    with workers(number) as there, _elsewhere(number):
        tasks = (Task(n, (function, one)) for n, one in enumerate(rest))
        for result, warned in in_order(completed(there, _with_warnings, tasks)):
            for one in warned:
                warnings.warn(one, stacklevel=2)
            yield result


def _can_start() -> bool:
    """Whether a new process finds the program that runs: none that was read from a pipe is."""
    main = getattr(sys.modules["__main__"], "__file__", None)
    return main is None or Path(main).exists()


@contextmanager
def _elsewhere(number: int) -> Iterator[None]:
    """Say that others search while they do."""
    effort.elsewhere = number
    try:
        yield
    finally:
        effort.elsewhere = 0


def _with_warnings(function: Callable[..., Any], argument: Any) -> tuple[Any, list[Warning]]:
    """What the function gives, and what it warns of, for whoever asked to say."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(argument)
    return result, [one.message for one in caught if isinstance(one.message, SpecWarning)]
