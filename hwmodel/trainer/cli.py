"""The command that trains; the main command line takes it in by import."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hwmodel.specs.trace import Trace
    from hwmodel.trainer.train import Progress

__all__ = ["main", "train"]

INTERRUPTED = 130  # the exit code that shells give to a command ended by Ctrl-C

INPUTS = (".yaml", ".yml", ".onnx")  # endings of what a trace must not take the place of


DatasetName = Annotated[str, typer.Option(help="digits, mnist-5k; mnist or cifar10 with --data.")]
NetworkName = Annotated[
    str, typer.Option(help="Bundled (deep-mlp, conv-small, conv-mnist) or a file: as for a report.")
]
MethodName = Annotated[
    str,
    typer.Option(help="bold, bold-bn, fp, binaryconnect, binarynet, or a file: as for a report."),
]
TrainingName = Annotated[
    str | None,
    typer.Option(help="Epochs, batch and rates: bundled or a file; default: one that fits."),
]
TracePath = Annotated[
    Path, typer.Option(help="Where the measurements go; a checkpoint stands beside it.")
]
DataFolder = Annotated[
    Path | None, typer.Option(help="Folder of your own MNIST or CIFAR-10 files.")
]
Epochs = Annotated[
    int | None, typer.Option(min=1, help="Passes over the images; default: the training's.")
]
Batch = Annotated[int | None, typer.Option(min=1, help="Images a step; default: the training's.")]
Rate = Annotated[float | None, typer.Option(help="Of the weights; default: the training's.")]
Seed = Annotated[int, typer.Option(min=0, help="Of weights and order of images.")]
Freeze = Annotated[bool, typer.Option("--freeze-boolean", help="Never flip a weight: the control.")]
Error = Annotated[
    float, typer.Option(help="Relative rms error at which widths of signals are stated.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Begin anew in the place of a trace that is there.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the same run was stopped.")]


def train(
    dataset: DatasetName = "digits",
    network: NetworkName = "deep-mlp",
    method: MethodName = "bold",
    training: TrainingName = None,
    trace: TracePath = Path("trace.json"),
    data: DataFolder = None,
    epochs: Epochs = None,
    batch: Batch = None,
    learning_rate: Rate = None,
    seed: Seed = 0,
    freeze_boolean: Freeze = False,
    signal_error: Error = 0.01,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a small network in Boolean logic and measure what its energy depends on.

    The trace is written after every epoch. Ctrl-C ends the run with the epoch that is under way,
    a second Ctrl-C at once; --resume goes on from there.
    """
    from hwmodel.errors import HwmodelError, one_line
    from hwmodel.importers.load import load_network
    from hwmodel.specs.files import load
    from hwmodel.specs.method import Method
    from hwmodel.specs.training import Training
    from hwmodel.trainer.data import load_dataset
    from hwmodel.trainer.train import Settings
    from hwmodel.trainer.train import train as run

    try:
        _check(learning_rate, signal_error)
        settings = Settings(
            network=load_network(network),
            method=load(Method, method),
            training=load(Training, training) if training else None,
            seed=seed,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            freeze=freeze_boolean,
            signal_error=signal_error,
        )
        if trace.suffix.lower() in INPUTS:
            raise HwmodelError(f"--trace {trace}: would be written over what looks like an input")
        images = load_dataset(dataset, data)
        with _interruptible() as stop, _bar() as report:
            result = run(
                settings, images, trace,
                resume=resume, overwrite=overwrite, report=report, stop=stop,
            )  # fmt: skip
    except HwmodelError as error:
        typer.echo(one_line(f"hwmodel: {error}"), err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("hwmodel: stopped; finished epochs are kept, --resume goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _conclude(result, trace)


def _check(learning_rate: float | None, signal_error: float) -> None:
    """The rules that an option's type does not know. Raises: SpecError."""
    from hwmodel.errors import SpecError

    if learning_rate is not None and not 0 < learning_rate < float("inf"):
        raise SpecError(f"--learning-rate {learning_rate:g}: is a number above 0")
    if not 1e-6 <= signal_error < 1:
        raise SpecError(f"--signal-error {signal_error:g}: is a share from 1e-6 to below 1")


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
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
def _bar() -> Iterator[Callable[[Progress], None]]:
    """A progress bar on stderr with loss, accuracy and flip rate; nothing where that is no screen.

    The loss and the flip rate shown are running means, since single steps jump.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = ("{task.completed}/{task.total} steps", "{task.fields[state]}")
    console = Console(stderr=True)
    with Bar(
        BarColumn(),
        *(TextColumn(column) for column in columns),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
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


def _conclude(result: Trace, path: Path) -> None:
    """What was reached, on stdout; a run that Ctrl-C cut short ends with the code for that."""
    from hwmodel.errors import printable

    run, last = result.run, result.epochs[-1]
    control = ", Boolean weights frozen" if run.frozen else ""
    typer.echo(
        f"{run.network} on {run.dataset}, {run.method}, seed {run.seed}{control}: "
        f"{last.accuracy:.1%} of the test images after {last.steps:,} steps; "
        f"trace in {printable(str(path))}"
    )
    if last.epoch < run.epochs:
        typer.echo(
            f"hwmodel: ended after epoch {last.epoch} of {run.epochs}; --resume goes on", err=True
        )
        raise typer.Exit(INTERRUPTED)


def main() -> None:
    """Run the command by itself."""
    typer.run(train)
