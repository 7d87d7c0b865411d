"""Several trainings side by side: seeds, methods, widths, with what they reach and its energy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from hwmodel.cli.outputs import see_folder
from hwmodel.cli.running import INTERRUPTED, interruptible, progress_bar
from hwmodel.cli.screen import say, show
from hwmodel.errors import HwmodelError, many, nearest, printable

if TYPE_CHECKING:
    from hwmodel.specs.accounting import Accounting
    from hwmodel.specs.hardware import Hardware
    from hwmodel.specs.provenance import Input
    from hwmodel.specs.trace import Run, Trace
    from hwmodel.trainer.data import Dataset
    from hwmodel.trainer.study import Outcome
    from hwmodel.trainer.train import Settings

__all__ = ["Asked", "study"]

SWEEPS = ("widths",)


class Asked(NamedTuple):
    """What is asked of a study, as options of `hwmodel train`."""

    seeds: int
    target: float | None
    target_from: str
    sustain: int
    sweep: str
    hardware: str
    accounting: str
    csv: Path | None
    figure: Path | None
    dataset: str | None
    data: Path | None
    folder: Path
    resume: bool
    overwrite: bool
    command: str  # that makes the same


def study(settings: Sequence[Settings], asked: Asked) -> None:
    """Train every method with every seed, and a control; print and write what was reached.

    Args:
        settings: one of each network and method.

    Raises: HwmodelError; typer.Exit where Ctrl-C ended it.
    """
    from hwmodel.specs.files import write
    from hwmodel.specs.provenance import Provenance, input_of
    from hwmodel.views.plot import write_figure
    from hwmodel.views.study import outcome_table, outcomes_csv, study_figure

    _see(settings, asked)
    at = _priced_at(asked)
    by_network = _by_network(settings, asked, at)
    images = _images(by_network, asked)
    found: list[Outcome] = []
    inputs = [input_of(spec) for spec in at or ()]
    for name, mine in by_network.items():
        outcomes, remarks, runs = _of_network(mine, images[name], asked, at)
        found += outcomes
        inputs += [given for run in runs for given in _inputs(run)]
        provenance = Provenance(asked.command, tuple(dict.fromkeys(inputs)))
        show([outcome_table(outcomes), *remarks])
        if asked.csv:
            write(asked.csv, outcomes_csv(found, provenance))
    if asked.figure:
        stamp = list(map(str, provenance.cells))
        write_figure(lambda own: study_figure(found, own), asked.figure, stamp=stamp)
    if written := [printable(str(path)) for path in (asked.csv, asked.figure) if path]:
        say(f"wrote {' and '.join(written)}")


def _see(settings: Sequence[Settings], asked: Asked) -> None:
    """See that the options go together. Raises: HwmodelError."""
    if asked.target_from != "validation":
        raise HwmodelError(
            f"--target-from {asked.target_from}: a target is one of validation images; one that "
            "is set on the test images says nothing of other images"
        )
    if asked.target is not None and not 0 < asked.target <= 1:
        raise HwmodelError(f"--target {asked.target:g}: is a share above 0, at most 1")
    if asked.target is not None and not settings[0].validation:
        raise HwmodelError("--target: is reached on validation images; say --validation 0.2, too")
    if asked.sweep and asked.sweep not in SWEEPS:
        raise HwmodelError(f"--sweep {asked.sweep}: {nearest(asked.sweep, SWEEPS)}")
    if asked.sweep and any(not one.method.flips for one in settings):
        raise HwmodelError(f"--sweep {asked.sweep}: is of methods whose weights flip")
    if settings[0].freeze:
        raise HwmodelError("--freeze-boolean: a study has its control anyway; leave it out")
    if asked.folder.suffix:
        raise HwmodelError(f"--trace {asked.folder}: a study has a trace a run; name a folder")
    see_folder(asked.folder)
    _see_rate(settings)


def _see_rate(settings: Sequence[Settings]) -> None:
    """See that a rate is of one optimizer. Raises: HwmodelError."""
    flipping = {one.method.flips: one.method.name for one in settings}
    if (rate := settings[0].learning_rate) is not None and len(flipping) > 1:
        raise HwmodelError(
            f"--learning-rate {rate:g}: of {flipping[True]} it is the rate of flips, of "
            f"{flipping[False]} that of Adam; leave it out, or make a study of either kind"
        )


def _priced_at(asked: Asked) -> tuple[Hardware, Accounting] | None:
    """The chip and the accounting of the energies, if any are asked for. Raises: HwmodelError."""
    from hwmodel.specs.accounting import Accounting
    from hwmodel.specs.files import load
    from hwmodel.specs.hardware import Hardware

    accounting = load(Accounting, asked.accounting)
    return (load(Hardware, asked.hardware), accounting) if asked.hardware else None


def _by_network(
    settings: Sequence[Settings], asked: Asked, at: tuple[Hardware, Accounting] | None
) -> dict[str, list[Settings]]:
    """The methods of each network. Raises: HwmodelError for those that look alike or lack a price.

    That is known before time is spent on them.
    """
    from hwmodel.model.compare import distinct
    from hwmodel.model.evaluate import evaluate
    from hwmodel.trainer.study import at_widths

    found: dict[str, list[Settings]] = {}
    for one in settings:
        widths = at_widths(one.method) if asked.sweep else [one.method]
        mine = found.setdefault(one.network.name, [])
        mine += [replace(one, method=method) for method in widths]
    for mine in found.values():
        distinct([one.method for one in mine])
        for one in mine if at else ():
            assert at is not None
            evaluate(one.network, at[0], one.method, accounting=at[1])
    return found


def _images(by_network: Mapping[str, Sequence[Settings]], asked: Asked) -> dict[str, Dataset]:
    """The images of each network, each set read once.

    Raises: HwmodelError, also for what is not trained, for images that do not fit, and where there
        are fewer evaluations than reach a target.
    """
    from hwmodel.trainer.data import dataset_for, load_dataset
    from hwmodel.trainer.stack import stack
    from hwmodel.trainer.train import fitted, planned

    sets: dict[str, Dataset] = {}
    found: dict[str, Dataset] = {}
    for network, mine in by_network.items():
        first = mine[0]
        name = asked.dataset or dataset_for(first.network, asked.data)
        found[network] = sets.setdefault(name, sets.get(name) or load_dataset(name, asked.data))
        for one in mine:
            fitted(found[network], one.network, stack(one.network, one.method))
        epochs = first.epochs or planned(first, found[network]).epochs
        if asked.target is not None and epochs < asked.sustain:
            raise HwmodelError(
                f"--sustain {asked.sustain}: {network} is evaluated {many(epochs, 'time')}, after "
                "every epoch, and cannot reach a target so often; say more --epochs or less"
            )
    return found


def _of_network(
    settings: Sequence[Settings], images: Dataset, asked: Asked,
    at: tuple[Hardware, Accounting] | None,
) -> tuple[list[Outcome], list[str], list[Run]]:  # fmt: skip
    """What the methods reach on one network, remarks on it, a run of each method."""
    from hwmodel.model.reached import noise
    from hwmodel.trainer.study import arms, outcome, priced, unlearned

    plan = arms(settings[0], [one.method for one in settings], asked.seeds)
    found, by_method, runs = [], {}, []
    for of, traces in zip(plan, _trained(plan, images, asked), strict=True):
        price = names = None
        if not of[0].freeze:
            by_method[of[0].method.name] = traces
            if at:
                price, names = priced(of[0], traces[0], *at), (at[0].name, at[1].name)
        found.append(outcome(traces, asked.target, asked.sustain, price, names))
        runs.append(traces[0].run)
    idle = unlearned(found)
    remarks = []
    if idle:
        verb = "is" if len(idle) == 1 else "are"
        remarks = [f"{', '.join(idle)} {verb} no better than weights as drawn, which never flip"]
    learned = {name: traces for name, traces in by_method.items() if name not in idle}
    if asked.target is not None and (said := noise(learned, asked.target)):
        remarks.append(said)
    return found, remarks, runs


def _inputs(run: Run) -> Iterator[Input]:
    """The files and images that a run depends on."""
    from hwmodel.specs.provenance import Input

    yield Input("network", run.network, run.network_digest or "")
    yield Input("method", run.method, run.method_digest or "")
    yield Input("training", run.training or "", run.training_digest or "")
    yield Input("data", run.dataset, run.data_digest or "")


def _trained(
    plan: Sequence[Sequence[Settings]], images: Dataset, asked: Asked
) -> list[list[Trace]]:
    """The traces of every method. Raises: HwmodelError; typer.Exit where Ctrl-C ended it."""
    from hwmodel.trainer.study import trained

    network = plan[0][0].network
    found: list[list[Trace]] = []
    with interruptible() as stop, progress_bar() as report:
        for traces in trained(
            plan, images, asked.folder,
            resume=asked.resume, overwrite=asked.overwrite, report=report, stop=stop,
        ):  # fmt: skip
            run, found = traces[0].run, [*found, traces]
            frozen = ", frozen" * run.frozen
            if len(traces) < len(plan[0]) or len(traces[-1].epochs) < run.epochs:
                say("hwmodel: ended early; --resume goes on with the same options")
                raise typer.Exit(INTERRUPTED)
            say(f"{network.name}: {run.method}{frozen}, {many(len(traces), 'run')}, done")
    return found
