"""memory: what a run keeps in the outermost memories at its peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from hwmodel.cli.screen import show
from hwmodel.rerun.asked import (
    Batch,
    Checkpoint,
    Freeze,
    InputShape,
    Method,
    Mode,
    Names,
    Network,
    Options,
    Says,
    TrainOnly,
)
from hwmodel.specs import usual

if TYPE_CHECKING:
    from hwmodel.model.workload import Mode as RunMode

__all__ = ["memory"]


class MemoryAsked(Options):
    """The run that is asked about."""

    network: Network
    method: Method
    accounting: Annotated[
        str, Says("For its widths and its optimizer: a preset, or a YAML file.", names="accounting")
    ] = usual.ACCOUNTING
    batch: Batch = None
    mode: Mode = "training"
    hardware: Annotated[
        Names,
        Says(
            "Chips, by name or file, separated by commas: the peak of each outermost memory.",
            names="hardware",
            usual="none",
        ),
    ] = ()
    input_shape: InputShape = ()
    freeze: Freeze = ()
    train_only: TrainOnly = ()
    checkpoint: Checkpoint = ()


def memory(options: MemoryAsked) -> None:
    """The most that an iteration keeps at one time: by class, the step, the largest tensors.

    The exit code is 0 where the run fits on every chip that is named, 1 where it does not on one.
    """
    from hwmodel.errors import many
    from hwmodel.graph.checkpointing import checkpointed
    from hwmodel.graph.freezing import frozen
    from hwmodel.importers.load import load_network
    from hwmodel.importers.onnx import input_shapes
    from hwmodel.model.attention_choice import in_ways
    from hwmodel.model.evaluate import attention_ways, check_run
    from hwmodel.model.plans import occupied
    from hwmodel.model.prices import read_by
    from hwmodel.model.workload import Job
    from hwmodel.specs.accounting import Accounting
    from hwmodel.specs.files import load
    from hwmodel.specs.hardware import Hardware
    from hwmodel.specs.method import Method as Rules
    from hwmodel.views.memory_tables import fits, memory_tables

    asked, mode = options, cast("RunMode", options.mode)
    images = check_run(1 if asked.batch is None else asked.batch, mode)
    network = load_network(asked.network, input_shapes(asked.input_shape))
    network = frozen(network, asked.freeze, asked.train_only)
    network = checkpointed(network, asked.checkpoint)
    job = Job(load(Rules, asked.method), load(Accounting, asked.accounting), images, mode)
    alike: dict[object, tuple[Job, list[Hardware]]] = {} if asked.hardware else {"": (job, [])}
    for chip in [load(Hardware, name) for name in asked.hardware]:
        here = job._replace(accounting=read_by(chip, job.accounting))
        own = in_ways(job, attention_ways(network, here, chip))  # whichever costs less there
        alike.setdefault(own.separate, (own, []))[1].append(chip)
    run = (
        f"{network.label or network.name} under {job.method.label or job.method.name}, {mode} of "
        f"{many(images, 'image')}"
    )
    short = False
    for own, chips in alike.values():
        kept = occupied(network, own)
        of = [chip.label or chip.name for chip in chips]
        on = f" on {', '.join(of)}" if len(alike) > 1 else ""
        show(memory_tables(kept, f"{run}{on}", chips))
        short |= not all(fits(kept, chip) for chip in chips)
    if short:
        raise typer.Exit(1)
