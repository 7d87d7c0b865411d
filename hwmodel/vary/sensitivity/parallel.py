"""Calls a function at many points in several processes; results come in the points' order."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, get_context
from threading import current_thread, main_thread
from typing import Any

from hwmodel.errors import HwmodelError
from hwmodel.vary.sensitivity.costs import Costs, Study

__all__ = ["Mapped", "workers"]

Mapped = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterator[Any]]
_own: list[Costs] = []  # of a worker: what it has found is there for its next point


@contextmanager
def workers(study: Study, jobs: int) -> Iterator[Mapped]:
    """A function `mapped(function, tasks)` that gives `function(costs, *task)` for every task.

    What is found does not depend on who finds it: outcomes are functions of the point alone.
    """
    if jobs == 1:
        costs = Costs(study)
        yield lambda function, tasks: (function(costs, *task) for task in tasks)
        return
    others = set(active_children())
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(study,)
    )
    try:
        yield lambda function, tasks: _submitted(pool, partial(_work, function), tasks)
    except BaseException as error:
        for process in set(active_children()) - others:
            process.terminate()  # what is at work is wanted by nobody, and may take minutes
        if isinstance(error, BrokenProcessPool):
            raise HwmodelError(
                "a worker process ended early; with --jobs 1 there are none"
            ) from None
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _submitted(
    pool: ProcessPoolExecutor, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """Results as they come. Processes start here, deaf to Ctrl-C from their first moment."""
    if current_thread() is not main_thread():
        return pool.map(work, tasks)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a new process takes over
    try:
        return pool.map(work, tasks)
    finally:
        signal.signal(signal.SIGINT, before)


def _begin(study: Study) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    _own.append(Costs(study))


def _work(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    return function(_own[0], *task)
