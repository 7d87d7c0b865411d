"""Where parts are computed: in this process, in others, or on a cluster; one way to ask them.

All three take `submit(function, ...)` and give futures. At most a few tasks a worker are asked for
at a time, so that memory stays bounded; a task whose worker dies is asked for again.
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
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as waited
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError

__all__ = ["Task", "Workers", "completed", "workers"]

AHEAD = 3  # tasks asked for, for each worker
DEATHS = 3  # of workers in a row without a task done between, before a run is given up


class Task(NamedTuple):
    """One call that is asked for."""

    number: int
    arguments: tuple[Any, ...]


class Workers(NamedTuple):
    """How to get an executor and to be rid of it, and how many tasks it works on at a time."""

    started: Callable[[], Executor]
    stopped: Callable[[Executor], None]  # whatever it is still doing
    number: int


class _Here(Executor):
    """This process: a task is done when it is asked for."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _There(Executor):
    """A Dask client. Its own executor fails where a worker dies while a result is on its way."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._asked: dict[Future[Any], Any] = {}  # a task that nobody refers to is not computed

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        there = self._client.submit(function, *args, **kwargs, pure=False)
        self._asked[future] = there
        there.add_done_callback(lambda done: self._hand_over(done, future))
        return future

    def _hand_over(self, there: Any, future: Future[Any]) -> None:
        """A result that is lost on its way is computed again, and waited for."""
        del self._asked[future]
        try:
            future.set_result(there.result())
        except BaseException as error:  # of a cancelled task it is no Exception
            future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._client.cancel([*self._asked.values()])


@contextmanager
def workers(jobs: int, scheduler: str | None) -> Iterator[Workers]:
    """Workers: `jobs` processes on this machine, or those of a Dask scheduler.

    Raises: HwmodelError where the scheduler is not there, or is lost.
    """
    if scheduler is not None:
        with _cluster(scheduler) as found:
            yield found
    elif jobs == 1:
        yield Workers(_Here, Executor.shutdown, 1)
    else:
        yield Workers(lambda: _processes(jobs), _end, jobs)


def _processes(jobs: int) -> Executor:
    """Spawned everywhere alike: a fork would copy threads and locks of the libraries."""
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)


def _end(executor: Executor) -> None:
    """Be rid of processes at once: what they have not handed over is computed again."""
    executor.shutdown(wait=False, cancel_futures=True)
    for child in active_children():
        if child.name.startswith("SpawnProcess"):
            child.terminate()
            child.join()


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
        from distributed import Client, KilledWorker
    except ImportError:
        raise HwmodelError("--scheduler needs Dask: pip install 'hwmodel[cluster]'") from None
    if not re.fullmatch(r"\w+://\S+:\d+", scheduler):  # for half an address Dask waits, and fails
        raise HwmodelError(f"--scheduler {scheduler!r}: is no address as tcp://host:8786")
    try:
        client = Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise HwmodelError(f"--scheduler {scheduler}: cannot be reached: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise HwmodelError(f"--scheduler {scheduler}: has no workers")
        try:
            yield Workers(lambda: _There(client), Executor.shutdown, threads)
        except (KilledWorker, CancelledError, OSError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise HwmodelError(
                f"--scheduler {scheduler}: was lost: {reason}; "
                "what is done is kept: go on with --resume"
            ) from None


def completed(
    workers: Workers, function: Callable[..., Any], tasks: Iterable[Task]
) -> Generator[tuple[int, Any], None, None]:
    """The numbers of the tasks and what the function gives for each, as they come.

    Raises: HwmodelError where workers die again and again.
    """
    rest = iter(tasks)
    asked: dict[Future[Any], Task] = {}
    deaths = 0
    while deaths < DEATHS:
        executor = workers.started()
        try:
            again, asked = [*asked.values()], {}
            while _ask(executor, function, asked, again, rest, AHEAD * workers.number):
                for future in wait(asked, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    deaths = 0
                    yield asked.pop(future).number, result
            return
        except BrokenExecutor:
            deaths += 1
        finally:
            workers.stopped(executor)
    raise HwmodelError(
        f"{DEATHS} workers died one after the other (out of memory?); "
        "what is done is kept: go on with --resume"
    )


def _ask(
    executor: Executor,
    function: Callable[..., Any],
    asked: dict[Future[Any], Task],
    again: list[Task],
    rest: Iterator[Task],
    most: int,
) -> bool:
    """Ask for tasks until so many are asked for; whether any is.

    A task that cannot be asked for stands in `asked` all the same, with a future that has failed.
    """
    for task in islice(chain(_emptied(again), rest), max(most - len(asked), 0)):
        try:
            with _deaf():  # processes are started here, if there are to be more of them
                future = executor.submit(function, *task.arguments)
        except BrokenExecutor as error:
            future = Future()
            future.set_exception(error)
        asked[future] = task
    return bool(asked)


@contextmanager
def _deaf() -> Iterator[None]:
    """No Ctrl-C for what starts now, from its first moment."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a new process takes over
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _emptied(tasks: list[Task]) -> Iterator[Task]:
    while tasks:
        yield tasks.pop(0)
