"""One function called for many tasks: in this process, in others of this machine, or on a cluster.

At most a few tasks a worker are asked for at a time, so that memory stays bounded; a task whose
worker dies is asked for again.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as waited
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError
from hwmodel.specs.provenance import code_digest

__all__ = ["AHEAD", "MAX_JOBS", "Lost", "Task", "Workers", "completed", "in_order", "workers"]

AHEAD = 3  # tasks asked for, for each worker
MAX_JOBS = 256
DEATHS = 3  # of workers in a row without a task done between, before a run is given up


class Lost(HwmodelError):
    """Workers died, or their scheduler is gone: what they have not handed over is not computed."""


class Task(NamedTuple):
    """One call that is asked for."""

    number: int
    arguments: tuple[Any, ...]


class Workers(NamedTuple):
    """Who computes elsewhere; `submit` and `wait` are those of `concurrent.futures`."""

    number: int
    submit: Callable[..., Any]
    wait: Callable[..., Any]
    stop: Callable[[], None]  # whatever they are still doing; `submit` starts new ones


@contextmanager
def workers(jobs: int, scheduler: str | None = None) -> Iterator[Workers | None]:
    """Workers: `jobs` processes of this machine, or those of a Dask scheduler; None: this process.

    Raises: HwmodelError where the scheduler is not there, Lost where it is lost.
    """
    if scheduler is not None:
        with _cluster(scheduler) as found:
            yield found
        return
    there = _processes(jobs) if jobs > 1 else None
    try:
        yield there
    finally:
        if there:
            there.stop()


def completed(
    there: Workers | None, function: Callable[..., Any], tasks: Iterable[Task]
) -> Generator[tuple[int, Any], None, None]:
    """The number of every task and what the function gives for it, as they come.

    Raises: Lost where workers die again and again.
    """
    if there is None:
        yield from ((number, function(*arguments)) for number, arguments in tasks)
        return
    rest, asked, deaths = iter(tasks), dict[Any, Task](), 0
    while deaths < DEATHS:
        try:
            while _ask(there, function, rest, asked):
                for future in there.wait([*asked], return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    deaths = 0
                    yield asked.pop(future).number, result
            return
        except BrokenExecutor:
            deaths += 1
            there.stop()
            rest, asked = chain([*asked.values()], rest), {}
    raise Lost(f"{DEATHS} workers died one after the other (out of memory?)")


def _ask(
    there: Workers, function: Callable[..., Any], rest: Iterator[Task], asked: dict[Any, Task]
) -> bool:
    """Ask for tasks until enough are asked for; whether any is."""
    for task in islice(rest, AHEAD * there.number - len(asked)):
        asked[(lost := Future[Any]())] = task  # if it cannot be asked for now
        future = there.submit(_done, code_digest(), function, task.arguments)
        asked[future] = asked.pop(lost)
    return bool(asked)


def _done(code: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a worker does. Raises: HwmodelError where its code is not that of who asks."""
    if code != code_digest():
        raise HwmodelError("a worker has another hwmodel, or other bundled files, than this one")
    return function(*arguments)


def in_order(results: Iterable[tuple[int, Any]]) -> Iterator[Any]:
    """Results of tasks that are numbered from 0, in the order of the numbers."""
    early: dict[int, Any] = {}
    number = 0
    for which, result in results:
        early[which] = result
        while number in early:
            yield early.pop(number)
            number += 1


def _processes(jobs: int) -> Workers:
    """Processes of this machine, started when they are needed.

    Spawned everywhere alike: a fork would copy threads and locks of the libraries.
    """
    pools: list[ProcessPoolExecutor] = []
    others = {*active_children()}

    def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        with _deaf():  # processes are started here, if there are to be more of them
            if not pools:  # a Ctrl-C within would leave its semaphores behind
                pools.append(ProcessPoolExecutor(jobs, get_context("spawn"), _begin))
            return pools[0].submit(function, *arguments)

    def stop() -> None:
        while pools:
            pools.pop().shutdown(wait=False, cancel_futures=True)
            for child in {*active_children()} - others:
                child.terminate()  # what it is at may take minutes, and nobody wants it
                child.join()

    return Workers(jobs, submit, wait, stop)


@contextmanager
def _deaf() -> Iterator[None]:
    """No Ctrl-C for what starts now, from its first moment: a new process takes it over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _begin() -> None:
    """In a new process: Ctrl-C is for the one that started it, and so is its end for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        waited([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _cluster(scheduler: str) -> Iterator[Workers]:
    try:
        import distributed
    except ImportError:
        raise HwmodelError("--scheduler needs Dask: pip install 'hwmodel[cluster]'") from None
    if not re.fullmatch(r"\w+://\S+:\d+", scheduler):  # for half an address Dask waits, and fails
        raise HwmodelError(f"--scheduler {scheduler!r}: is no address as tcp://host:8786")
    try:
        client = distributed.Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise HwmodelError(f"--scheduler {scheduler}: cannot be reached: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise HwmodelError(f"--scheduler {scheduler}: has no workers")
        submit = partial(client.submit, pure=False)
        try:
            yield Workers(threads, submit, distributed.wait, lambda: None)
        except (distributed.KilledWorker, CancelledError, OSError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise Lost(f"--scheduler {scheduler}: was lost: {reason}") from None
