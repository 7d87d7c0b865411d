"""sweep: a design space, point by point."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hwmodel.cli.processes import Jobs, processes_of
from hwmodel.cli.running import untold
from hwmodel.cli.screen import say
from hwmodel.cli.signs import at, drawn
from hwmodel.errors import HwmodelError, SpecWarning, printable
from hwmodel.rerun.asked import SweepAsked, command_line

if TYPE_CHECKING:
    from hwmodel.vary.sweep.parts import Summary
    from hwmodel.vary.sweep.plan import Plan

__all__ = ["sweep"]


def sweep(
    asked: SweepAsked,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--output",
            "-o",
            help="FILE.csv or FILE.parquet.",
            show_default="the sweep's name .csv",
        ),
    ] = None,
    jobs: Jobs = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that did not end.")
    ] = False,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, as tcp://host:8786.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many points and searches there are.")
    ] = False,
) -> None:
    """Energy at every point of a grid, or of a sample of it."""
    from hwmodel.vary.sweep.plan import read_plan

    if jobs is not None and scheduler:
        raise HwmodelError(f"--jobs {jobs}: none with --scheduler")
    processes = processes_of(jobs)
    planned = read_plan(asked.file)
    if dry_run:
        _say_what(planned)
        _tell_flat(planned)
        return
    target = out or Path(f"{planned.file.name}.csv")
    command = command_line(asked)
    if out is None:
        _refuse_another(target, command)
    summary = _run(planned, target, command, processes, scheduler, resume)
    say(printable(f"wrote {target}"))
    _tell_flat(planned)
    if summary.greedy:
        from hwmodel.views.sweep_tables import GREEDY

        say(f"hwmodel: {summary.greedy:,} of {summary.points:,} points: {GREEDY}")
    if summary.unproved:
        say(f"hwmodel: {summary.unproved:,} tilings are not proved optimal: unproved_tilings")
    if summary.failed:
        say(
            f"hwmodel: {summary.failed:,} of {summary.points:,} points have no energy; the first: "
            f"{printable(summary.first_reason)}"
        )
        raise typer.Exit(1)


def _tell_flat(planned: Plan) -> None:
    """Warn of memories whose price does not go with their capacity."""
    from hwmodel.vary.sweep.flat import flat_memories

    if flat := flat_memories(planned):
        warnings.warn(flat, SpecWarning, stacklevel=2)


def _refuse_another(target: Path, command: str) -> None:
    """See that no table of another sweep of the same name is written over. Raises: HwmodelError."""
    if target.is_file():
        with target.open(encoding="utf-8", errors="replace") as stream:
            rows = [stream.readline(2**20).rstrip('"\n') for _ in range(2)]
        if not rows[1].endswith(command):
            raise HwmodelError(f"{target}: is no table of {command!r}; name another by --out")


MOST_LOOKED_AT = 100_000  # points that a dry run looks at one by one, to count tilings


def _say_what(planned: Plan) -> None:
    """What a run would do."""
    from hwmodel.vary.sweep.part import columns, searches
    from hwmodel.vary.sweep.run import cut

    points = planned.points()
    axes = [f"  {axis.name}: {axis.length:,}" for axis in planned.axes if axis.length > 1]
    typer.echo("\n".join([f"{planned.file.name}: {planned.file.title}", *axes]))
    if len(points) < planned.grid:
        how = (
            "drawn, and kept by the constraints" if planned.file.sample else "keep the constraints"
        )
        typer.echo(f"{planned.grid:,} points of the grid, of which {how}:")
    parts = f"{len(points):,} points in {len(cut(points)):,} parts"
    few = len(points) <= MOST_LOOKED_AT
    tilings = f"; {searches(planned, points):,} different tilings to be searched" if few else ""
    typer.echo(parts + tilings)
    typer.echo(f"columns: {', '.join(columns(planned))}")


def _run(
    planned: Plan, out: Path, command: str, jobs: int, scheduler: str | None, resume: bool
) -> Summary:
    """Compute the table, with a bar if somebody is watching."""
    from hwmodel.vary.sweep.run import run

    try:
        with _bar() as progress:
            return run(
                planned, out, command,
                jobs=jobs, scheduler=scheduler, resume=resume, progress=progress,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit) as stopped:
        parts = printable(f"{out}.parts")
        how = "go on with the same command and --resume"
        say(f"hwmodel: stopped; {parts} holds what is done: {how}")
        untold.clear()
        code = stopped.code if isinstance(stopped, SystemExit) else 130
        raise typer.Exit(int(code or 0)) from None


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """What a run reports its progress to: a bar with rate and time left on standard error."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield at
        return
    rate = TextColumn("{task.fields[rate]}")
    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    with (
        drawn(),
        Progress(*columns, rate, TimeRemainingColumn(), console=errors, transient=True) as bar,
    ):
        tasks: dict[str, tuple[Any, int]] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total, rate=""), done
            task, before = tasks[what]
            seconds = bar.tasks[task].elapsed or 0.0
            speed = f"{(done - before) / seconds:,.0f}/s" if seconds and done > before else ""
            bar.update(task, completed=done, rate=speed)

        yield report
