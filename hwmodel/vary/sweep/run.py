"""A sweep from its plan to the table, part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import SupportsIndex

from hwmodel.specs.arguments import expect, path_of, whole
from hwmodel.specs.inputs import refuse_input
from hwmodel.specs.provenance import Provenance
from hwmodel.vary.sweep.part import columns, run_part
from hwmodel.vary.sweep.parts import Summary, ending_of, opened
from hwmodel.vary.sweep.plan import Plan
from hwmodel.vary.workers import MAX_JOBS, Lost, Task, completed, workers

__all__ = ["Progress", "cut", "run"]

LONGEST = 1000  # points of a part
FEWEST = 64  # parts, where there are so many points: two workers end at about the same time

Progress = Callable[[str, int, int], None]  # what is done, how many, of how many


def run(
    plan: Plan,
    out: str | Path,
    command: str,
    *,
    jobs: SupportsIndex,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Progress,
) -> Summary:
    """Compute all points and write the table.

    Args:
        out: a .csv or .parquet file; parts are kept beside it until it is whole.
        command: what the table says of how it was made.
        jobs: processes on this machine.
        scheduler: address of a Dask scheduler, whose workers are used instead.
        resume: whether to go on with parts that are there.

    Raises: HwmodelError.
    """
    expect(Plan, "plan", plan, "a Plan, as plan.plan makes it")
    out, processes = path_of("out", out), whole("jobs", jobs, 1, MAX_JOBS)
    ending_of(out)
    refuse_input(out)
    points = plan.points()
    parts = cut(points)
    try:
        with (
            workers(processes, scheduler) as there,
            opened(out, plan.digest, resume=resume) as folder,
        ):
            missing = folder.missing(len(parts))
            done = len(points) - sum(len(parts[n]) for n in missing)
            progress("points", done, len(points))
            tasks = (Task(n, (plan, parts[n])) for n in missing)
            with closing(completed(there, run_part, tasks)) as results:
                for number, text in results:
                    folder.store(number, text)
                    done += len(parts[number])
                    progress("points", done, len(points))
            return folder.finish(columns(plan), len(parts), Provenance(command, plan.inputs))
    except Lost as error:
        raise Lost(f"{error}; what is done is kept: go on with --resume") from None


def cut(points: Sequence[int]) -> list[Sequence[int]]:
    """Cut the points into parts by their number alone, whoever computes them."""
    size = max(1, min(LONGEST, -(-len(points) // FEWEST)))
    return [points[i : i + size] for i in range(0, len(points), size)]
