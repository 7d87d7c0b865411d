"""Whether attention runs in one kernel or as separate products: block by block what costs less.

A library has both ways and takes the one that suits a chip. Each block is computed in both, alone:
what enters it is read from the outermost memory, and what it gives is written there, with all of
the chip's room for the block's own tensors. Blocks of the same work are computed once.

Source: docs/model.md section 7.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from hwmodel.errors import HwmodelError
from hwmodel.graph.attended import attended
from hwmodel.graph.node import Node
from hwmodel.model.workload import Job, Task

__all__ = ["Ways", "cheaper_ways"]


class Ways(NamedTuple):
    """A block of attention, and what it costs alone in one kernel and as separate products."""

    scores: str  # the layer of its scores
    layers: tuple[str, ...]  # all of it, the scores among them
    kernel: float | None  # [chip's unit]; None: it has no room, or no price
    separate: float | None

    @property
    def is_separate(self) -> bool:
        """Whether separate products cost less, or are the only way."""
        if self.separate is None:
            return False
        return self.kernel is None or self.separate < self.kernel


def cheaper_ways(
    nodes: Sequence[Node],
    job: Job,
    tasks_of: Callable[[Job], Sequence[Task]],
    energy_of: Callable[[Sequence[Task], Job], float],
) -> tuple[Ways, ...]:
    """Compute every block of attention in both ways, where the accounting takes the cheaper one.

    Args:
        nodes: the layers of the network at their places.
        tasks_of: lists the work of a job on the network.
        energy_of: computes the energy of some of a job's work [chip's unit].
    """
    if job.accounting.counting.attention != "cheaper":
        return ()
    blocks = attended(nodes, job.trains)
    apart = job._replace(separate=frozenset(block.scores.layer.name for block in blocks))
    known: list[tuple[object, tuple[float | None, float | None]]] = []
    found = []
    for block in blocks:
        own = [(_of(tasks_of(one), block.names), one) for one in (job, apart)]
        key = [[task.work for task in tasks] for tasks, _ in own]
        costs = next((costs for other, costs in known if other == key), None)
        if costs is None:
            kernel, separate = (_energy(tasks, one, energy_of) for tasks, one in own)
            costs = kernel, separate
            known.append((key, costs))
        found.append(Ways(block.scores.layer.name, block.names, *costs))
    return tuple(found)


def _of(tasks: Sequence[Task], layers: Collection[str]) -> list[Task]:
    return [task for task in tasks if task.layer in layers]


def _energy(
    tasks: Sequence[Task], job: Job, energy_of: Callable[[Sequence[Task], Job], float]
) -> float | None:
    """The energy of a block; None where it has no tiling, or no price."""
    try:
        return energy_of(tasks, job)
    except HwmodelError:
        return None
