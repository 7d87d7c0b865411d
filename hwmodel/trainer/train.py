"""The loop: steps, epochs, what is measured on the way, and what is kept of it."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hwmodel import __version__
from hwmodel.errors import HwmodelError, ShapeError, SpecError, many
from hwmodel.graph.network import Network
from hwmodel.specs.files import bundled, load
from hwmodel.specs.method import Method
from hwmodel.specs.provenance import digest
from hwmodel.specs.trace import Epoch, LayerShape, Run, Trace, named, read_trace, write_trace
from hwmodel.specs.training import Training
from hwmodel.trainer.augment import Way, augmented, see_images
from hwmodel.trainer.checkpoint import checkpoint_path, restore, save
from hwmodel.trainer.data import Dataset, Labels
from hwmodel.trainer.export import write_curves, write_weights
from hwmodel.trainer.measure import Tally, finite
from hwmodel.trainer.nets import Net, Trained, build, logits_signal, scaled
from hwmodel.trainer.optim import FlipRule, adam_step, boolean_step, scheduled
from hwmodel.trainer.pooled import dense
from hwmodel.trainer.stack import Stack, stack
from hwmodel.trainer.weights import Reals

__all__ = ["SIGNAL_ERROR", "Progress", "Settings", "fitted", "planned", "see_free", "train"]

SIGNAL_ERROR = 0.3  # at which a width trains: docs/trainer.md, "Which width is needed"
TEST_BATCH = 500
USUAL_BATCH = 32  # of a run that no training file is of


@dataclass(frozen=True)
class Settings:
    """What is trained, how, and for how long.

    Attributes:
        training: None takes the bundled one that fits network and images.
        epochs, batch: None takes the training's own.
        learning_rate: of Boolean weights where there are any, of Adam elsewhere; None takes the
            training's own.
        freeze: leave Boolean weights as drawn, the control of what they contribute.
        signal_error: rms error, relative to the rms, at which widths are stated.
        validation: share of the training images on which nothing is trained: the last ones, in
            the data's own order.
        augment: how training images are changed from step to step: flip, crop (`augment.py`).
    """

    network: Network
    method: Method
    training: Training | None = None
    seed: int = 0
    epochs: int | None = None
    batch: int | None = None
    learning_rate: float | None = None
    freeze: bool = False
    signal_error: float = SIGNAL_ERROR
    validation: float = 0.0
    augment: tuple[Way, ...] = ()


class Progress(NamedTuple):
    """Where a run is: after which step, at which loss, and what the last epoch measured."""

    step: int
    steps: int
    loss: float
    flip_rate: float
    accuracy: float | None  # of the last test; None before the first


def train(
    settings: Settings,
    data: Dataset,
    path: Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
    weights: Path | None = None,
    curves: Path | None = None,
) -> Trace:
    """Train, and return the trace of the epochs that were completed.

    Args:
        settings: the run.
        data: images and labels.
        path: of the trace, written whole after every epoch, with a checkpoint beside it.
        resume: go on from that checkpoint.
        overwrite: a run that begins anew may take the place of what is at `path`.
        report: told after every step.
        stop: asked after every epoch whether to end there.
        weights, curves: where the weights, packed, and the epochs as a table go at the end
            (`export.py`).

    Raises: HwmodelError where the trace cannot be written or would be written over a file, or a
        loss, sum or signal is no number any more; SpecError for what is not trained; ShapeError,
        DataError for images or a checkpoint that do not fit.
    """
    layers = stack(settings.network, settings.method)
    _see_control(settings, layers)
    given, data = data.x.shape[1:], fitted(data, settings.network, layers)
    # Images are changed as such, also where the network takes each as one row.
    form = given if data.x.shape[1:3] == (1, 1) else data.x.shape[1:]
    see_images(data.name, form, settings.augment)
    training = planned(settings, data)
    if training.images != len(data.x):
        raise SpecError(
            f"training {training.name} is of {many(training.images, 'image')}, {data.name} has "
            f"{len(data.x):,} to train on"
        )
    data = data.withhold(settings.validation)
    for place in filter(None, (weights, curves, path)):
        _check_place(place)
    if path and not (resume or overwrite):
        see_free(path)
    run = _run(settings, training, layers, data)
    net = build(layers, training.recipe, run.batch, settings.seed, run.widths)
    shapes = tuple(node.shape for node in net.nodes if node.shape)
    trace = Trace(run=run, layers=shapes, epochs=())
    if resume and path:
        if not (weights or curves) and (done := _finished(path, run)) is not None:
            return done
        trace = restore(checkpoint_path(path), net, run)
        write_trace(trace, path)
    begun = trace
    for trace in _epochs(net, begun, data, form, report, stop):
        if path:
            save(checkpoint_path(path), net, trace)
            write_trace(trace, path)
    _leave(net, trace, weights, curves)
    return trace


def _see_control(settings: Settings, layers: Stack) -> None:
    """See that a control has weights to freeze. Raises: SpecError."""
    if settings.freeze and not layers.flips:
        raise SpecError(
            f"--freeze-boolean: network {settings.network.name} has no Boolean weights under "
            f"{settings.method.name}"
        )


def planned(settings: Settings, data: Dataset) -> Training:
    """The training asked for, or the usual one. Raises: SpecError where nobody says how many."""
    return settings.training or _usual(settings, data)


def _leave(net: Net, trace: Trace, weights: Path | None, curves: Path | None) -> None:
    if weights:
        write_weights(net, weights)
    if curves:
        write_curves(trace, curves)


def _epochs(
    net: Net, trace: Trace, data: Dataset, form: tuple[int, ...],
    report: Callable[[Progress], None], stop: Callable[[], bool],
) -> Iterator[Trace]:  # fmt: skip
    """Train epoch after epoch on images of a form; yields the trace with each."""
    while len(trace.epochs) < trace.run.epochs and not (trace.epochs and stop()):
        with np.errstate(over="ignore", invalid="ignore"):  # what matters of it is looked for
            epoch = _epoch(net, trace, data, form, report)
        trace = trace.model_copy(update={"epochs": (*trace.epochs, epoch)})
        yield trace


def _check_place(path: Path) -> None:
    """See that a file can be written, before time is spent on it. Raises: HwmodelError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise HwmodelError(f"{path}: cannot be written: {error.strerror or error}") from None
    if path.is_dir():
        raise HwmodelError(f"{path}: cannot be written: is a folder")


def _finished(path: Path, run: Run) -> Trace | None:
    """The trace of a run that has nothing more to train and left no checkpoint, if it is there."""
    if checkpoint_path(path).exists() or not path.is_file():
        return None
    found = read_trace(path)
    return found if found.run == run and len(found.epochs) == run.epochs else None


def see_free(path: Path) -> None:
    """See that a run that begins anew destroys no other. Raises: HwmodelError."""
    if not path.exists():
        return
    try:
        found = read_trace(path)
        what = f"the trace of {named(found.run)}, {len(found.epochs)} of {found.run.epochs} epochs"
    except HwmodelError:
        what = "no trace of this version"
    raise HwmodelError(
        f"{path}: is there already, {what}; give another --trace, --resume to go on, or --overwrite"
    )


def fitted(data: Dataset, network: Network, layers: Stack) -> Dataset:
    """Images in the form that the network takes: as they are, or each as one row of channels.

    A row of values is an image of the network's form, plane by plane.

    Raises: ShapeError where neither is the network's input, or there are more or fewer classes.
    """
    C, H, W = network.input
    rows, columns, channels = data.x.shape[1:]
    if (H, W) == (1, 1) and rows * columns * channels == C:
        rows, columns, channels = 1, 1, C
        data = data._replace(x=data.x.reshape(-1, 1, 1, C), test_x=data.test_x.reshape(-1, 1, 1, C))
    elif (rows, columns) == (1, 1) and channels == C * H * W:
        rows, columns, channels = H, W, C
        x, test_x = (
            each.reshape(-1, C, H, W).transpose(0, 2, 3, 1) for each in (data.x, data.test_x)
        )
        data = data._replace(x=x, test_x=test_x)
    if (channels, rows, columns) != (C, H, W):
        raise ShapeError(
            f"network {network.name} takes images of {C} x {H} x {W} (C, H, W), "
            f"{data.name} has {channels} x {rows} x {columns}"
        )
    last = layers.nodes[-1]
    if last.output_shape[0] != data.classes:
        outputs = many(last.output_shape[0], "output")
        raise ShapeError(
            f"network {network.name}: {last.layer.name} gives {outputs}, "
            f"{data.name} has {data.classes} class{'es' * (data.classes != 1)}"
        )
    return data


def _usual(settings: Settings, data: Dataset) -> Training:
    """The bundled training on so many images; if several, the network's own before the others'.

    Where there is none, one of so many epochs as are asked for.

    Raises: SpecError where nobody says how many.
    """
    network = settings.network
    known = [load(Training, name) for name in bundled(Training)]
    fitting = [training for training in known if training.images == len(data.x)]
    if not fitting and settings.epochs:
        return Training(
            version=1, name=f"{data.name[:60]}-{settings.epochs}", title=f"{data.name}, as asked",
            epochs=settings.epochs, images=len(data.x), batch=settings.batch or USUAL_BATCH,
        )  # fmt: skip
    if not fitting:
        raise SpecError(
            f"no bundled training is of {many(len(data.x), 'image')}, as {data.name} has; "
            "write one and name it with --training, or give --epochs"
        )
    names = [training.recipe.networks for training in fitting]
    order = [(network.name not in meant, len(meant)) for meant in names]
    return fitting[order.index(min(order))]


def _run(settings: Settings, training: Training, layers: Stack, data: Dataset) -> Run:
    recipe = training.recipe
    boolean = recipe.boolean_rate_with_batch_norm if layers.normalised else recipe.boolean_rate
    rate = settings.learning_rate or (boolean if layers.flips else recipe.adam_rate)
    return Run(
        tool=__version__,
        network=settings.network.name,
        method=settings.method.name,
        dataset=data.name,
        seed=settings.seed,
        epochs=settings.epochs or training.epochs,
        batch=min(settings.batch or training.batch, len(data.x)),
        train_images=len(data.x),
        test_images=len(data.test_x),
        validation_images=0 if data.validation_x is None else len(data.validation_x),
        learning_rate=rate,
        adam_rate=recipe.adam_rate if layers.flips else rate,
        frozen=settings.freeze,
        reweighting=recipe.reweighting and "threshold" in layers.functions.values(),
        scaling=scaled(layers, recipe),
        signal=recipe.signal,
        logic=recipe.logic,
        signal_error=settings.signal_error,
        augment=settings.augment,
        network_digest=digest(settings.network),
        method_digest=digest(settings.method),
        widths=settings.method.widths,
        data_digest=data.digest,
        training=training.name,
        training_digest=digest(training),
    )


def _epoch(
    net: Net, trace: Trace, data: Dataset, form: tuple[int, ...],
    report: Callable[[Progress], None],
) -> Epoch:  # fmt: skip
    """One pass over the training images in an order given by seed and epoch, then the test."""
    run, number = trace.run, len(trace.epochs) + 1
    assert run.seed is not None  # of recorded runs alone
    order = np.random.default_rng([run.seed, number, 1]).permutation(len(data.x))
    draws = np.random.default_rng([run.seed, number, 2])
    each = math.ceil(len(order) / run.batch)
    before = trace.epochs[-1].steps if trace.epochs else 0
    accuracy = trace.epochs[-1].accuracy if trace.epochs else None
    tallies = [_tally(net, node, node.shape, run) for node in net.nodes if node.shape]
    loss, right = 0.0, 0
    for step in range(1, each + 1):
        chosen = order[(step - 1) * run.batch : step * run.batch]
        images = data.x[chosen]
        if run.augment:
            changed = augmented(images.reshape(-1, *form), run.augment, draws)
            images = changed.reshape(images.shape)
        logits = net.forward(images, training=True)
        step_loss, z = logits_signal(logits, data.y[chosen])
        finite(step_loss)
        net.backward(z)
        flips = _update(net, run, before + step, run.epochs * each)
        _measure(net, tallies, flips)
        loss += step_loss * len(chosen)
        right += int((logits.argmax(1) == data.y[chosen]).sum())
        rate = sum(flips.values()) / max(sum(t.weights for t in tallies), 1)
        report(Progress(before + step, run.epochs * each, step_loss, rate, accuracy))
    return Epoch(
        epoch=number,
        steps=before + each,
        loss=loss / len(order),
        train_accuracy=right / len(order),
        accuracy=_accuracy(net, data.test_x, data.test_y),
        validation_accuracy=_accuracy(net, data.validation_x, data.validation_y)
        if data.validation_x is not None and data.validation_y is not None
        else None,
        layers=tuple(tally.result() for tally in tallies),
    )


def _update(net: Net, run: Run, step: int, steps: int) -> dict[str, int]:
    """One step of both optimizers; the flips of every layer with Boolean weights.

    Where votes are limited, they are rounded before they are counted.
    """
    assert run.seed is not None and run.adam_rate is not None and run.learning_rate is not None
    flips, recipe = {}, net.recipe
    rule = FlipRule(recipe.flip_threshold, recipe.beta, recipe.reset)
    for node in net.nodes:
        adam_step(node.layer.real, scheduled(run.adam_rate, step - 1, steps, recipe.schedule))
        if (limiter := net.limiters.get(f"{node.name}/vote")) is not None:
            node.layer.boolean[0].votes = limiter(node.layer.boolean[0].votes)
        if node.layer.boolean and not run.frozen:
            rate = scheduled(run.learning_rate, step - 1, steps, recipe.schedule)
            seed = (run.seed, net.places[node.name], step)
            flips[node.name] = boolean_step(node.layer.boolean, rate, net.memory, seed, rule)
    return flips


def _tally(net: Net, node: Trained, shape: LayerShape, run: Run) -> Tally:
    weights = sum(w.votes.size for w in node.layer.boolean)
    integer = shape.worst_sum_bits is not None
    limiters = {x: net.limiters.get(f"{node.name}/{x}") for x in ("signal", "sent", "vote")}
    held = {name: limiter.width.bits for name, limiter in limiters.items() if limiter}
    if net.memory is not None:
        held["optimizer_state"] = net.memory.bits
    return Tally(node.name, run.signal_error, integer, weights, held)


def _measure(net: Net, tallies: list[Tally], flips: dict[str, int]) -> None:
    """Add a step to the tallies: what flowed, and what the optimizer keeps."""
    layers = [node for node in net.nodes if node.shape]
    for node, tally in zip(layers, tallies, strict=True):
        boolean = node.layer.boolean
        if len(node.inputs) == 1:
            tally.reads(net.values[node.inputs[0]])
        tally.step(
            net.values[node.name],
            flips.get(node.name, 0),
            signal=net.signal(node.name),
            sent=dense(net.sent[node.name]) if node is not net.nodes[0] else None,
            vote=boolean[0].votes if boolean else None,
            optimizer_state=boolean[0].accumulator if boolean else None,
        )


def _accuracy(net: Net, x: Reals, y: Labels) -> float:
    """Share of images whose largest logit is their label's."""
    right = 0
    for start in range(0, len(x), TEST_BATCH):
        logits = net.forward(x[start : start + TEST_BATCH])
        right += int((logits.argmax(1) == y[start : start + TEST_BATCH]).sum())
    return right / len(x)
