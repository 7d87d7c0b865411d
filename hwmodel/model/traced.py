"""Fits traces of training runs to a network under a method, or refuses them for what they are.

A trace fits a network whose layers that compute sums have, one by one, the extents of those that
it measured, under the method of the run; names of layers do not matter. Several runs that differ
in their seed alone give the widths that held in all of them, and means of rates and shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum

from hwmodel.errors import DataError
from hwmodel.graph.layers import Conv
from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.model.measured import LayerMeasures, Measures
from hwmodel.model.widths import NO_LIMITS, limits_of, treatment
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.limits import Limits
from hwmodel.specs.method import Method
from hwmodel.specs.trace import LayerEpoch, LayerShape, Magnitudes, Run, Trace, named, which

__all__ = ["common_batch", "fitted", "see_alike", "see_comparable", "see_trained"]

LEARNED = 0.1  # of the way from chance to certainty: a run that ends below has learned nothing
SHOWN = 3  # differences that a message lists
EXTENTS = (
    "kind", "weights", "N", "M", "C", "HO", "WO", "HF", "WF", "stride", "padding", "dilation",
    "groups",
)  # fmt: skip
FREE = ("seed", "tool", "recording")  # fields in which runs of one method may differ


def fitted(
    traces: Sequence[Trace], network: Network, nodes: tuple[Node, ...], method: Method,
    accounting: Accounting,
) -> Measures:  # fmt: skip
    """Return what the runs measured of each layer of a network that computes sums.

    Args:
        traces: runs of one method that differ in their seed.
        nodes: the layers that the method has.

    Raises: DataError for a trace that is no run of this method on layers of these extents, or of
        which no figure is one of training.
    """
    see_alike(traces)
    for trace in traces:
        _see_usable(trace)
        if trace.run.method != method.name:
            raise DataError(
                f"the trace of {named(trace.run)} measured another method than {method.name}"
            )
        if (trace.run.widths or NO_LIMITS) != limits_of(method):
            raise DataError(
                f"the trace of {named(trace.run)} measured widths {_said(trace.run.widths)}, and "
                f"method {method.name} has widths {_said(method.widths)}"
            )
        see_trained(trace, network, nodes, method, accounting)
    return {
        node.layer.name: _together(
            [epoch.layers[place] for trace in traces for epoch in trace.epochs]
        )
        for place, node in enumerate(_summing(nodes, traces[0]))
    }


def common_batch(traces: Iterable[Trace]) -> int | None:
    """Return the images a step of the runs; None without runs. Raises: DataError if they differ."""
    runs = {trace.run.batch: trace.run for trace in traces}
    if len(runs) > 1:
        of = " and ".join(f"{run.batch} ({named(run)})" for run in [*runs.values()][:2])
        raise DataError(f"the traces have different batches, {of}: their steps do not compare")
    return next(iter(runs), None)


def see_comparable(traces: Sequence[Trace], batch: int) -> None:
    """See that steps of runs compare, as steps of iterations of a batch. Raises: DataError."""
    for run in (trace.run for trace in traces):
        if not _same_images(run, traces[0].run):
            raise DataError(
                f"the traces of {named(traces[0].run)} and of {named(run)} are of different "
                "images: their accuracies do not compare"
            )
        if run.batch != batch:
            raise DataError(
                f"the trace of {named(run)} ran at batch {run.batch}: its steps are no iterations "
                f"of batch {batch}; leave out --batch"
            )


def _same_images(one: Run, other: Run) -> bool:
    """Whether runs are of the same images; of recorded ones the name alone is known."""
    known = one.data_digest is not None and other.data_digest is not None
    return one.data_digest == other.data_digest if known else one.dataset == other.dataset


def see_alike(traces: Sequence[Trace]) -> None:
    """See that runs of one method differ in their seed alone. Raises: DataError."""
    first, *others = traces
    seeds = {first.run.seed}
    for run in (trace.run for trace in others):
        then = _without_seed(first.run)
        differs = next((f for f, value in _without_seed(run).items() if value != then[f]), None)
        if differs:
            raise DataError(
                f"the traces of {named(first.run)} and of {named(run)} differ in more than their "
                f"seed: {differs} {then[differs]} and {getattr(run, differs)}"
            )
        if run.seed in seeds:
            raise DataError(f"two of the traces are of one run, {named(run)}")
        seeds.add(run.seed)


def _see_usable(trace: Trace) -> None:
    """See that a run is one of training that has learned something. Raises: DataError."""
    run = trace.run
    if not trace.epochs:
        raise DataError(f"the trace of {named(run)} has no epoch yet")
    if run.frozen:
        raise DataError(
            f"the trace of {run.network} by {run.method}, {which(run)}, is of a control whose "
            "Boolean weights were frozen: it measured no training of them"
        )
    chance = 1 / trace.layers[-1].M
    end = trace.epochs[-1].accuracy
    if end < chance + LEARNED * (1 - chance):
        raise DataError(
            f"the trace of {named(run)} ends at {100 * end:.1f} % accuracy, {100 * chance:.1f} % "
            "being chance: the run collapsed, and its widths are those of nothing learned"
        )


def _said(limits: Limits | None) -> str:
    """Say in bits what is limited."""
    stated = dict(limits) if limits else {}
    parts = [f"{name} {width.bits}" for name, width in stated.items() if width]
    return f"of {', '.join(parts)} bit" if parts else "that are not limited"


def _without_seed(run: Run) -> dict[str, object]:
    return {field: getattr(run, field) for field in Run.model_fields if field not in FREE}


def see_trained(
    trace: Trace, network: Network, nodes: tuple[Node, ...], method: Method, accounting: Accounting
) -> None:
    """See that the layers are those that were trained, by their extents. Raises: DataError."""
    layers, found = _summing(nodes, trace), []
    for node, shape in zip(layers, trace.layers, strict=False):
        here, there = _extents(node, method, accounting), _measured(shape)
        differs = [
            f"{what} {here.get(what, 1)} for {there.get(what, 1)}"
            for what in {**here, **there}
            if here.get(what) != there.get(what)
        ]
        if differs:
            found.append(f"{node.layer.name} has {', '.join(differs)} of {shape.name}")
    if len(layers) != len(trace.layers):
        found.append(f"{len(layers)} layers compute sums here, {len(trace.layers)} there")
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise DataError(
            f"the trace of {named(trace.run)} measured other layers than those of "
            f"{network.name}: {'; '.join(found[:SHOWN])}{more}"
        )


def _summing(nodes: tuple[Node, ...], trace: Trace) -> list[Node]:
    """Layers that compute sums, as a trace has them: a recorder sees no sums of branches."""
    adds = trace.run.recording is None
    return [node for node in nodes if node.macs or (adds and node.layer.kind == "add")]


def _measured(shape: LayerShape) -> dict[str, object]:
    """Extents of a layer as a trace states them, without the batch."""
    return {what: getattr(shape, what) for what in EXTENTS if what != "N"}


def _extents(node: Node, method: Method, accounting: Accounting) -> dict[str, object]:
    """Extents of a layer at hand in the same words; words more where it has what no trace has."""
    layer = node.layer
    M, HO, WO = node.output_shape
    weights = "none"
    if layer.weights(node.input_shapes):
        found = treatment(method, node, accounting)
        weights = "real" if found.weight_bits > 1 else "binary"
        weights = "boolean" if found.update == "boolean" else weights
    extents: dict[str, object] = {"kind": layer.kind, "weights": weights}
    C = layer.weights(node.input_shapes) // M if layer.kind == "linear" else node.input_shapes[0][0]
    extents |= {"M": M, "C": C, "HO": HO, "WO": WO, "HF": 1, "WF": 1, "stride": 1, "padding": 0}
    extents |= {"dilation": 1, "groups": 1}
    if isinstance(layer, Conv):
        extents |= {
            "HF": layer.kernel[0], "WF": layer.kernel[1], "stride": _one(layer.stride),
            "padding": _one(layer.padding), "dilation": _one(layer.dilation),
            "groups": layer.groups,
        }  # fmt: skip
    return extents


def _one(values: tuple[int, ...]) -> object:
    """A number, where all of several are that; else all of them."""
    return values[0] if len({*values}) == 1 else values


def _together(epochs: list[LayerEpoch]) -> LayerMeasures:
    """Join epochs of runs: widths that held in every one, means of rates and shares."""
    return LayerMeasures(
        sum_bits=_most(epoch.sum_bits for epoch in epochs),
        signal_bits=_most(epoch.signal.bits for epoch in epochs),
        sent_bits=_most(epoch.sent.bits if epoch.sent else None for epoch in epochs),
        vote_bits=_most(epoch.vote.bits if epoch.vote else None for epoch in epochs),
        accumulator_bits=_most(
            epoch.optimizer_state.bits if epoch.optimizer_state else None for epoch in epochs
        ),
        flip_rate=_mean(epoch.flip_rate for epoch in epochs),
        signal_zeros=_mean(epoch.signal.zero_share for epoch in epochs) or 0.0,
        vote_zeros=_mean(epoch.vote.zero_share if epoch.vote else None for epoch in epochs),
        signal_holds=_holds(x for epoch in epochs for x in (epoch.signal, epoch.sent)),
        vote_holds=_holds(epoch.vote for epoch in epochs),
        accumulator_holds=_holds(epoch.optimizer_state for epoch in epochs),
        map_zeros=_mean(epoch.input_zeros for epoch in epochs),
    )


def _holds(sizes: Iterable[Magnitudes | None]) -> int | None:
    """Return the width that holds the values of a tensor in every run."""
    return _most(one.holds_bits for one in sizes if one)


def _most(bits: Iterable[int | None]) -> int | None:
    return max((b for b in bits if b is not None), default=None)


def _mean(rates: Iterable[float | None]) -> float | None:
    found = [rate for rate in rates if rate is not None]
    return fsum(found) / len(found) if found else None
