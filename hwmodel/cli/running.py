"""While a training runs: Ctrl-C asks for its end, and a bar shows where it is."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from hwmodel.cli.signs import at, drawn

if TYPE_CHECKING:
    from hwmodel.trainer.train import Progress

__all__ = ["INTERRUPTED", "interruptible", "progress_bar", "untold"]

INTERRUPTED = 130  # the exit code that shells give to a command ended by Ctrl-C
untold: list[int] = []  # Ctrl-Cs that no command has said a line of; libraries may hide them


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks for an end after this epoch; the second one is an ordinary KeyboardInterrupt."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        typer.echo("\nhwmodel: ends after this epoch; Ctrl-C again ends at once", err=True)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar() -> Iterator[Callable[[Progress], None]]:
    """A progress bar on stderr with loss, accuracy and flip rate; a line now and then where that
    is no screen.

    The loss and the flip rate shown are running means, since single steps jump.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = ("{task.completed}/{task.total} steps", "{task.fields[state]}")
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda progress: at("training", progress.step, progress.steps)
        return
    with (
        drawn(),
        Bar(
            BarColumn(),
            *(TextColumn(column) for column in columns),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        ) as bar,
    ):
        means: list[float] = []

        def report(progress: Progress) -> None:
            now = (progress.loss, progress.flip_rate)
            means[:] = [0.9 * m + 0.1 * x for m, x in zip(means or now, now, strict=True)]
            accuracy = "" if progress.accuracy is None else f"  accuracy {progress.accuracy:.1%}"
            state = f"loss {means[0]:.3f}{accuracy}  flips {means[1]:.3%}"
            task = (
                bar.task_ids[0]
                if bar.task_ids
                else bar.add_task("", total=progress.steps, state=state)
            )
            bar.update(task, total=progress.steps, completed=progress.step, state=state)

        yield report
