"""train: one network by one method, or a study of several with seeds, a target and a control."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.running import INTERRUPTED, interruptible, progress_bar
from hwmodel.specs.usual import ACCOUNTING

if TYPE_CHECKING:
    from hwmodel.graph.network import Network
    from hwmodel.specs.trace import Trace

__all__ = ["train"]

# Endings of what a trace must not take the place of.
INPUTS = (".yaml", ".yml", ".onnx", ".npz", ".csv", ".py", ".pt", ".pth")

DatasetName = Annotated[
    str | None,
    typer.Option(
        help="digits, mnist-5k; mnist or cifar10 with --data; default: of the first two the one "
        "whose images the network takes."
    ),
]
NetworkName = Annotated[
    str,
    typer.Option(
        help="Bundled (deep-mlp, conv-small, conv-mnist) or a file: as for a report; several, "
        "separated by commas, are a study."
    ),
]
MethodName = Annotated[
    str,
    typer.Option(
        help="bold, bold-bn, fp, binaryconnect, binarynet, or a file: as for a report; several, "
        "separated by commas, are a study."
    ),
]
TrainingName = Annotated[
    str | None,
    typer.Option(help="Epochs, batch and rates: bundled or a file; default: one that fits."),
]
TracePath = Annotated[
    Path | None,
    typer.Option(
        help="Where the measurements go, a checkpoint beside them; of a study a folder.",
        show_default="trace.json, of a study traces/",
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        help="Your own images: FILE.npz, a folder with train.csv and test.csv, or one of MNIST or "
        "CIFAR-10 files."
    ),
]
Epochs = Annotated[
    int | None, typer.Option(min=1, help="Passes over the images; default: the training's.")
]
Batch = Annotated[int | None, typer.Option(min=1, help="Images a step; default: the training's.")]
Rate = Annotated[float | None, typer.Option(help="Of the weights; default: the training's.")]
Seed = Annotated[int, typer.Option(min=0, help="Of weights and order of images.")]
Freeze = Annotated[bool, typer.Option("--freeze-boolean", help="Never flip a weight: the control.")]
Error = Annotated[float, typer.Option(help="Relative rms error at which widths are stated.")]
Validation = Annotated[
    float, typer.Option(help="Share of the training images to withhold: the last ones.")
]
MOST_SEEDS = 1000
Seeds = Annotated[
    int, typer.Option(min=1, max=MOST_SEEDS, help="Seeds of each method, from --seed on: a study.")
]
Target = Annotated[
    float | None, typer.Option(help="Accuracy to be reached, between 0 and 1: a study.")
]
TargetFrom = Annotated[str, typer.Option(help="validation: the images on which it is reached.")]
Sustain = Annotated[
    int, typer.Option(min=1, help="Evaluations in a row that reach the target; the first counts.")
]
Sweep = Annotated[str, typer.Option(help="widths: the method at several widths, a study.")]
Chip = Annotated[str, typer.Option(help="Of a study: chip whose energies stand beside.")]
Counted = Annotated[str, typer.Option(help="Of a study: accounting of those energies.")]
Csv = Annotated[Path | None, typer.Option(help="Of a study: write every figure there is.")]
Picture = Annotated[
    Path | None, typer.Option("--figure", help="Of a study: draw it; FILE.png, .svg or .pdf.")
]
Augment = Annotated[str, typer.Option(help="Change training images at random: flip, crop, both.")]
Weights = Annotated[
    Path | None, typer.Option(help="Write the weights at the end, packed: FILE.npz.")
]
Curves = Annotated[Path | None, typer.Option(help="Write loss, accuracies and flips: FILE.csv.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Begin anew in the place of a trace that is there.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the same run was stopped.")]


def train(
    dataset: DatasetName = None,
    network: NetworkName = "deep-mlp",
    method: MethodName = "bold",
    training: TrainingName = None,
    trace: TracePath = None,
    data: DataFolder = None,
    epochs: Epochs = None,
    batch: Batch = None,
    learning_rate: Rate = None,
    seed: Seed = 0,
    freeze_boolean: Freeze = False,
    signal_error: Error = 0.3,
    validation: Validation = 0.0,
    seeds: Seeds = 1,
    target: Target = None,
    target_from: TargetFrom = "validation",
    sustain: Sustain = 3,
    sweep: Sweep = "",
    hardware: Chip = "",
    accounting: Counted = ACCOUNTING,
    csv: Csv = None,
    figure: Picture = None,
    augment: Augment = "",
    weights: Weights = None,
    curves: Curves = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a small network in Boolean logic and measure what its energy depends on.

    The trace is written after every epoch. Ctrl-C ends the run with the epoch that is under way,
    a second Ctrl-C at once; --resume goes on from there.

    Several networks, methods or seeds, a target or a sweep are a study: a trace for each run, the
    control with frozen weights beside them, and a table of what was reached.
    """
    from hwmodel.cli.outputs import see_outputs
    from hwmodel.cli.study import Asked, study
    from hwmodel.errors import HwmodelError, one_line
    from hwmodel.importers.load import load_network
    from hwmodel.specs.files import load
    from hwmodel.specs.method import Method
    from hwmodel.specs.training import Training
    from hwmodel.trainer.augment import ways_of
    from hwmodel.trainer.data import dataset_for, load_dataset
    from hwmodel.trainer.train import SIGNAL_ERROR, Settings
    from hwmodel.trainer.train import train as run

    try:
        _check(learning_rate, signal_error, validation)
        places = {"--weights": weights, "--curves": curves, "--csv": csv, "--figure": figure}
        see_outputs(places)
        several = max(seeds, network.count(",") + 1, method.count(",") + 1) > 1
        networks = _apart([load_network(name) for name in network.split(",")])
        methods = [load(Method, name) for name in method.split(",")]
        settings = [
            Settings(
                network=net,
                method=by,
                training=load(Training, training) if training else None,
                seed=seed,
                epochs=epochs,
                batch=batch,
                learning_rate=learning_rate,
                freeze=freeze_boolean,
                signal_error=signal_error,
                validation=validation,
                augment=ways_of(augment),
            )
            for net in networks
            for by in methods
        ]
        if trace and trace.suffix.lower() in INPUTS:
            raise HwmodelError(f"--trace {trace}: would be written over what looks like an input")
        if several or target is not None or sweep:
            _see_one_run(weights, curves)
            stated = {
                "--network": network, "--method": method, "--dataset": dataset, "--data": data,
                "--training": training, "--epochs": epochs, "--batch": batch,
                "--learning-rate": learning_rate, "--seed": seed or None, "--seeds": seeds,
                "--signal-error": None if signal_error == SIGNAL_ERROR else signal_error,
                "--validation": validation or None, "--target": target, "--sustain": sustain,
                "--sweep": sweep, "--augment": augment, "--hardware": hardware,
                "--accounting": accounting,
            }  # fmt: skip
            words = [str(w) for said in stated.items() if said[1] not in (None, "") for w in said]
            asked = Asked(
                seeds, target, target_from, sustain, sweep, hardware, accounting, csv, figure,
                dataset, data, trace or Path("traces"), resume, overwrite,
                shlex.join(["hwmodel", "train", *words]),
            )  # fmt: skip
            study(settings, asked)
            return
        beyond = {"--hardware": hardware, "--csv": csv, "--figure": figure}
        beyond["--accounting"] = "" if accounting == ACCOUNTING else accounting
        if extra := next((f"{name} {value}" for name, value in beyond.items() if value), None):
            raise HwmodelError(f"{extra}: is of a study, of several seeds or methods or a --target")
        (one,), path = settings, trace or Path("trace.json")
        see_outputs({"--trace": path, "--weights": weights, "--curves": curves})
        images = load_dataset(dataset or dataset_for(one.network, data), data)
        with interruptible() as stop, progress_bar() as report:
            result = run(
                one, images, path,
                resume=resume, overwrite=overwrite, report=report, stop=stop, weights=weights,
                curves=curves,
            )  # fmt: skip
    except HwmodelError as error:
        typer.echo(one_line(f"hwmodel: {error}"), err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("hwmodel: stopped; finished epochs are kept, --resume goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _conclude(result, path)


def _apart(networks: list[Network]) -> list[Network]:
    """See that networks can be told apart by name. Raises: HwmodelError."""
    from hwmodel.errors import HwmodelError

    names = [network.name for network in networks]
    for name in names:
        if names.count(name) > 1:
            raise HwmodelError(
                f"--network: two networks are called {name!r}; leave one out, or name it otherwise"
            )
    return networks


def _see_one_run(*written: Path | None) -> None:
    """See that nothing is asked for that is of one run. Raises: HwmodelError."""
    from hwmodel.errors import HwmodelError

    for path in filter(None, written):
        raise HwmodelError(f"{path}: is of one run, and a study has several")


def _check(learning_rate: float | None, signal_error: float, validation: float) -> None:
    """The rules that an option's type does not know. Raises: SpecError."""
    from hwmodel.errors import SpecError

    if learning_rate is not None and not 0 < learning_rate < float("inf"):
        raise SpecError(f"--learning-rate {learning_rate:g}: is a number above 0")
    if not 1e-6 <= signal_error < 1:
        raise SpecError(f"--signal-error {signal_error:g}: is a share from 1e-6 to below 1")
    if not 0 <= validation < 1:
        raise SpecError(f"--validation {validation:g}: is a share from 0 to below 1")


def _conclude(result: Trace, path: Path) -> None:
    """What was reached, on stdout; a run that Ctrl-C cut short ends with the code for that."""
    from hwmodel.errors import many, printable

    run, last = result.run, result.epochs[-1]
    control = ", Boolean weights frozen" if run.frozen else ""
    typer.echo(
        f"{run.network} on {run.dataset}, {run.method}, seed {run.seed}{control}: "
        f"{last.accuracy:.1%} of the test images after {many(last.steps, 'step')}; "
        f"trace in {printable(str(path))}"
    )
    if last.epoch < run.epochs:
        typer.echo(
            f"hwmodel: ended after epoch {last.epoch} of {run.epochs}; --resume goes on", err=True
        )
        raise typer.Exit(INTERRUPTED)
