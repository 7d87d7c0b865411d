"""Calls a function at many points in several processes; results come in the points' order."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from hwmodel.vary.sensitivity.costs import Costs, Study
from hwmodel.vary.workers import Task, completed, in_order, workers

__all__ = ["Mapped", "mapped_by"]

Mapped = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterator[Any]]


@contextmanager
def mapped_by(study: Study, jobs: int) -> Iterator[Mapped]:
    """A function `mapped(function, tasks)` that gives `function(costs, *task)` for every task.

    What is found does not depend on who finds it: outcomes are functions of the point alone.
    """
    text = pickle.dumps(study)  # sent with every task, but read once by each worker
    with workers(jobs) as there:

        def mapped(function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
            numbered = (Task(n, (text, function, *task)) for n, task in enumerate(tasks))
            return in_order(completed(there, _work, numbered))

        yield mapped


def _work(study: bytes, function: Callable[..., Any], *task: Any) -> Any:
    return function(_costs(study), *task)


@lru_cache(maxsize=1)
def _costs(study: bytes) -> Costs:
    """What this process has found of a study is there for its next point."""
    costs: Costs = Costs(pickle.loads(study))
    return costs
