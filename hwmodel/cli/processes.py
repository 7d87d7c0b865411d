"""How many processes work for a command, and whether they are worth their start."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from hwmodel.errors import HwmodelError, SpecWarning

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
    for argument in arguments:
        if min(jobs, len(arguments) - done) > 1 and time.monotonic() - began >= alone:
            break
        yield function(argument)
        done += 1
    rest = arguments[done:]
    if not rest:
        return
    from hwmodel.vary.workers import MAX_JOBS, Task, completed, in_order, workers

    with workers(min(jobs, len(rest), MAX_JOBS)) as there:
        tasks = (Task(n, (function, one)) for n, one in enumerate(rest))
        for result, warned in in_order(completed(there, _with_warnings, tasks)):
            for one in warned:
                warnings.warn(one, stacklevel=2)
            yield result


def _with_warnings(function: Callable[..., Any], argument: Any) -> tuple[Any, list[Warning]]:
    """What the function gives, and what it warns of, for whoever asked to say."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(argument)
    return result, [one.message for one in caught if isinstance(one.message, SpecWarning)]
