"""How many processes work for a command, and whether they are worth their start."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hwmodel.errors import SpecWarning

__all__ = ["MAX_JOBS", "cores", "shared"]

ALONE = 5.0  # seconds after which several processes are worth their start
MAX_JOBS = 256


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MAX_JOBS)
    return min(os.cpu_count() or 1, MAX_JOBS)


def shared(
    function: Callable[..., Any], arguments: Sequence[Any], jobs: int, alone: float = ALONE
) -> Iterator[Any]:
    """What the function gives for each argument, in their order; what is warned of, once.

    Processes are asked only if it takes longer than they take to be started.

    Args:
        jobs: processes.
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
    from hwmodel.vary.workers import Task, completed, in_order, workers  # most need none

    with workers(min(jobs, len(rest))) as there:
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
