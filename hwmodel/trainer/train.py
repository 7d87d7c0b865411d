"""The loop: steps, epochs, what is measured on the way, and what is kept of it."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hwmodel import __version__
from hwmodel.errors import HwmodelError
from hwmodel.specs.trace import Epoch, LayerShape, Run, Trace, write_trace
from hwmodel.trainer.checkpoint import checkpoint_path, restore, save
from hwmodel.trainer.data import Dataset
from hwmodel.trainer.measure import Tally, finite
from hwmodel.trainer.nets import Net, Node, build, logits_signal
from hwmodel.trainer.optim import adam_step, boolean_step, cosine
from hwmodel.trainer.specs import MethodSpec, NetworkSpec

__all__ = ["Progress", "Settings", "train"]

SAMPLES = 4  # steps of an epoch that are measured closely
TEST_BATCH = 500


@dataclass(frozen=True)
class Settings:
    """What is trained, how, and for how long.

    Attributes:
        epochs, batch: None takes the network's own.
        learning_rate: None takes the method's own.
        freeze: leave Boolean weights as drawn, the control of what they contribute.
        signal_error: rms error, relative to the rms, at which widths of signals are stated.
    """

    network: NetworkSpec
    method: MethodSpec
    seed: int = 0
    epochs: int | None = None
    batch: int | None = None
    learning_rate: float | None = None
    freeze: bool = False
    signal_error: float = 0.01


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
    report: Callable[[Progress], None] = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
) -> Trace:
    """Train, and return the trace of the epochs that were completed.

    Args:
        settings: the run.
        data: images and labels.
        path: of the trace, written whole after every epoch, with a checkpoint beside it.
        resume: go on from that checkpoint.
        report: told after every step.
        stop: asked after every epoch whether to end there.

    Raises: HwmodelError where the trace cannot be written, or a loss, sum or signal is no number
        any more; ShapeError; DataError for a checkpoint that does not fit.
    """
    if path:
        _check_place(path)
    run = _run(settings, data)
    image = data.x.shape[1:]
    net = build(settings.network, settings.method, image, data.classes, run.batch, run.seed)
    shapes = tuple(node.shape for node in net.nodes if node.shape)
    trace = Trace(run=run, layers=shapes, epochs=())
    if resume and path:
        trace = restore(checkpoint_path(path), net, run)
        write_trace(trace, path)
    while len(trace.epochs) < run.epochs and not (trace.epochs and stop()):
        with np.errstate(over="ignore", invalid="ignore"):  # what matters of it is looked for
            epoch = _epoch(net, trace, data, report)
        trace = trace.model_copy(update={"epochs": (*trace.epochs, epoch)})
        if path:
            save(checkpoint_path(path), net, trace)
            write_trace(trace, path)
    return trace


def _check_place(path: Path) -> None:
    """That a trace can be written, before time is spent on it. Raises: HwmodelError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise HwmodelError(f"{path}: cannot be written: {error.strerror or error}") from None
    if path.is_dir():
        raise HwmodelError(f"{path}: cannot be written: is a folder")


def _run(settings: Settings, data: Dataset) -> Run:
    method = settings.method
    rate = settings.learning_rate or method.learning_rate
    return Run(
        tool=__version__,
        network=settings.network.name,
        method=method.name,
        dataset=data.name,
        seed=settings.seed,
        epochs=settings.epochs or settings.network.epochs,
        batch=min(settings.batch or settings.network.batch, len(data.x)),
        train_images=len(data.x),
        test_images=len(data.test_x),
        learning_rate=rate,
        adam_rate=method.adam_rate if method.weights == "boolean" else rate,
        frozen=settings.freeze,
        reweighting=method.reweighting and method.activation == "threshold",
        scaling=method.scaling and method.weights == "boolean",
        signal=method.signal,
        logic=method.logic,
        signal_error=settings.signal_error,
        network_digest=_digest(settings.network),
        method_digest=_digest(method),
        data_digest=data.digest,
    )


def _digest(spec: NetworkSpec | MethodSpec) -> str:
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()


def _epoch(net: Net, trace: Trace, data: Dataset, report: Callable[[Progress], None]) -> Epoch:
    """One pass over the training images in an order given by seed and epoch, then the test."""
    run, number = trace.run, len(trace.epochs) + 1
    order = np.random.default_rng([run.seed, number, 1]).permutation(len(data.x))
    each = math.ceil(len(order) / run.batch)
    before = trace.epochs[-1].steps if trace.epochs else 0
    accuracy = trace.epochs[-1].accuracy if trace.epochs else None
    sampled = {round((i + 1) * each / SAMPLES) for i in range(SAMPLES)}
    tallies = [_tally(node, node.shape, run) for node in net.nodes if node.shape]
    loss, right = 0.0, 0
    for step in range(1, each + 1):
        chosen = order[(step - 1) * run.batch : step * run.batch]
        logits = net.forward(data.x[chosen], training=True)
        step_loss, z = logits_signal(logits, data.y[chosen])
        finite(step_loss)
        net.backward(z)
        flips = _update(net, run, before + step, run.epochs * each)
        _measure(net, tallies, flips, step in sampled)
        loss += step_loss * len(chosen)
        right += int((logits.argmax(1) == data.y[chosen]).sum())
        rate = sum(flips.values()) / max(sum(t.weights for t in tallies), 1)
        report(Progress(before + step, run.epochs * each, step_loss, rate, accuracy))
    return Epoch(
        epoch=number,
        steps=before + each,
        loss=loss / len(order),
        train_accuracy=right / len(order),
        accuracy=_accuracy(net, data),
        layers=tuple(tally.result() for tally in tallies),
    )


def _update(net: Net, run: Run, step: int, steps: int) -> dict[str, int]:
    """One step of both optimizers; the flips of every layer with Boolean weights."""
    flips = {}
    for node in net.nodes:
        adam_step(node.layer.real, cosine(run.adam_rate, step - 1, steps))
        if node.layer.boolean and not run.frozen:
            rate = cosine(run.learning_rate, step - 1, steps)
            flips[node.name] = boolean_step(node.layer.boolean, rate)
    return flips


def _tally(node: Node, shape: LayerShape, run: Run) -> Tally:
    weights = sum(w.votes.size for w in node.layer.boolean)
    return Tally(node.name, run.signal_error, node.out.kind == "integer", weights)


def _measure(net: Net, tallies: list[Tally], flips: dict[str, int], closely: bool) -> None:
    """Add a step to the tallies; `closely`, with the sizes of what flowed and what is kept."""
    layers = [node for node in net.nodes if node.shape]
    for node, tally in zip(layers, tallies, strict=True):
        sums = net.values[node.name]
        tally.step(sums, flips.get(node.name, 0))
        if closely:
            boolean = node.layer.boolean
            tally.sample(
                sums,
                signal=net.signals[node.name],
                sent=net.sent[node.name] if node is not net.nodes[0] else None,
                optimizer_state=boolean[0].accumulator if boolean else None,
            )


def _accuracy(net: Net, data: Dataset) -> float:
    """Share of the test images whose largest logit is their label's."""
    right = 0
    for start in range(0, len(data.test_x), TEST_BATCH):
        logits = net.forward(data.test_x[start : start + TEST_BATCH])
        right += int((logits.argmax(1) == data.test_y[start : start + TEST_BATCH]).sum())
    return right / len(data.test_x)
