"""Whether attention runs in one kernel or as separate products: whichever costs less.

A library has both ways and takes the one that suits a chip. Where nothing stays on the chip, what
a block of attention costs does not depend on the other layers: each block is computed in both ways,
alone, blocks of the same work once. Where tensors stay, all of them share the chip's room: the run
is computed with every block in one kernel, with every block as separate products, and, if some
blocks cost less in the one and some in the other, with each in its own; the cheapest run is taken,
so that none is dearer than both ways alike.

Source: docs/model.md section 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from hwmodel.graph.attended import attended
from hwmodel.graph.node import Node
from hwmodel.model.workload import Job, Task

__all__ = ["Ways", "cheaper_ways", "in_ways"]

Energies = Mapping[str, float]  # of layers [chip's unit]


class Ways(NamedTuple):
    """A block of attention, and what its layers cost in one kernel and as separate products.

    Where tensors stay on the chip: in a run in which all blocks are alike.
    """

    scores: str  # the layer of its scores
    layers: tuple[str, ...]  # all of it, the scores among them
    kernel: float | None  # [chip's unit]; None: it has no room, or no price
    separate: float | None
    is_separate: bool  # it runs as separate products


def cheaper_ways(
    nodes: Sequence[Node],
    job: Job,
    tasks_of: Callable[[Job], Sequence[Task]],
    energies_of: Callable[[Sequence[Task], Job], Energies | None],
) -> tuple[Ways, ...]:
    """Choose a way for every block of attention, where the accounting takes the cheaper one.

    Args:
        nodes: the layers of the network at their places.
        tasks_of: lists the work of a job on the network.
        energies_of: computes the energy of each layer of a job's work, or of some of it; None where
            it has no tiling, no price or no room.
    """
    counting = job.accounting.counting
    if counting.attention != "cheaper":
        return ()
    blocks = attended(nodes, job.trains)
    names = [(block.scores.layer.name, block.names) for block in blocks]
    if not names:
        return ()
    apart = _with(job, (scores for scores, _ in names))
    if counting.residency == "none":
        return _alone(names, (job, apart), tasks_of, energies_of)
    runs = [energies_of(tasks_of(one), one) for one in (job, apart)]
    each = [
        [None if run is None else fsum(run.get(x, 0.0) for x in layers) for run in runs]
        for _, layers in names
    ]
    found = [
        Ways(*name, kernel, separate, _is_less(separate, kernel))
        for name, (kernel, separate) in zip(names, each, strict=True)
    ]
    choices = [(runs[0], False), (runs[1], True)]
    alike = [
        (fsum(run.values()), [one._replace(is_separate=is_separate) for one in found])
        for run, is_separate in choices
        if run is not None
    ]
    if len({one.is_separate for one in found}) > 1:
        own = _with(job, (one.scores for one in found if one.is_separate))
        mixed = energies_of(tasks_of(own), own)
        alike += [(fsum(mixed.values()), found)] if mixed is not None else []
    return tuple(min(alike, key=lambda run: run[0])[1] if alike else found)


def in_ways(job: Job, ways: Iterable[Ways]) -> Job:
    """Return a job whose attention runs in the ways that cost less."""
    separate = frozenset(one.scores for one in ways if one.is_separate)
    return job._replace(separate=separate) if separate else job


def _alone(
    names: Sequence[tuple[str, tuple[str, ...]]],
    jobs: tuple[Job, Job],
    tasks_of: Callable[[Job], Sequence[Task]],
    energies_of: Callable[[Sequence[Task], Job], Energies | None],
) -> tuple[Ways, ...]:
    """Each block in the way that costs less alone."""
    known: list[tuple[object, list[float | None]]] = []
    found = []
    for scores, layers in names:
        own = [([task for task in tasks_of(job) if task.layer in layers], job) for job in jobs]
        key = [[task.work for task in tasks] for tasks, _ in own]
        costs = next((costs for other, costs in known if other == key), None)
        if costs is None:
            runs = [energies_of(tasks, job) for tasks, job in own]
            costs = [None if run is None else fsum(run.values()) for run in runs]
            known.append((key, costs))
        kernel, separate = costs
        found.append(Ways(scores, layers, kernel, separate, _is_less(separate, kernel)))
    return tuple(found)


def _with(job: Job, separate: Iterable[str]) -> Job:
    return job._replace(separate=frozenset(separate))


def _is_less(separate: float | None, kernel: float | None) -> bool:
    """Whether separate products cost less, or are the only way."""
    return separate is not None and (kernel is None or separate < kernel)
