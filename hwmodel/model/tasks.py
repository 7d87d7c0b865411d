"""The work of a run, layer by layer; attention in one kernel where the accounting has it so."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodel.graph.attended import attended, unmasked_pairs
from hwmodel.graph.node import Node
from hwmodel.model.fused_attention import fused_attention
from hwmodel.model.widths import Edge
from hwmodel.model.workload import Job, Run, Task

__all__ = ["workload"]


def workload(nodes: tuple[Node, ...], edges: Mapping[str, Edge], job: Job) -> tuple[Task, ...]:
    """List the work of a run, in order.

    Args:
        nodes: the layers of a network at their places, without those that the method omits.
        edges: width of every tensor, as `widths.edges` has them.
    """
    skips = job.accounting.counting.masked_scores == "skipped"
    pairs = unmasked_pairs(nodes) if skips else {}
    runs = {n.layer.name: Run(n, edges, job, pairs.get(n.layer.name)) for n in nodes}
    found = {name: run.works() for name, run in runs.items()}
    if job.accounting.counting.attention != "separate":
        for group in attended(nodes, job.trains):
            if group.scores.layer.name in job.separate:
                continue
            found |= fused_attention([runs[name] for name in group.names], skips=skips)
    return tuple(Task(name, work) for name, works in found.items() for work in works)
