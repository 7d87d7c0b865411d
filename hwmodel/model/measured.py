"""Measurements of a training run, in the place of the accounting's assumptions.

A trace says of each layer how wide its sums, its signals and its Boolean optimizer's memory had
to be, and how many weights flipped. A layer of the network at hand takes the figures of the
traced layer of its name, else those of the traced layers of its kind, else keeps the assumption.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import NamedTuple

from hwmodel.specs.trace import LayerEpoch, Trace

__all__ = ["LayerMeasures", "Measures", "measures"]


class LayerMeasures(NamedTuple):
    """Measurements of one layer over a run; None where the trace has no such figure."""

    sum_bits: int | None  # of a pre-activation [bit]
    signal_bits: int | None  # of the signal received at the layer's output [bit]
    sent_bits: int | None  # of the signal sent on to its input [bit]
    accumulator_bits: int | None  # of the Boolean optimizer's memory of a weight [bit]
    flip_rate: float | None  # mean share of the weights that flip in a step


class Measures(NamedTuple):
    """Figures by layer name and, of Boolean layers together, by kind of layer."""

    names: dict[str, LayerMeasures]
    kinds: dict[str, LayerMeasures]

    def of(self, name: str, kind: str) -> LayerMeasures | None:
        """Return the measurements of a layer, or of its kind."""
        return self.names.get(name) or self.kinds.get(kind)


def measures(trace: Trace) -> Measures:
    """Read the figures of a trace: widths that held in every epoch, mean flip rates."""
    epochs: dict[str, list[LayerEpoch]] = {}
    for epoch in trace.epochs:
        for layer in epoch.layers:
            epochs.setdefault(layer.name, []).append(layer)
    names = {name: _over(found) for name, found in epochs.items()}
    by_kind: dict[str, list[LayerMeasures]] = {}
    for shape in trace.layers:
        if shape.weights == "boolean" and shape.name in names:
            by_kind.setdefault(shape.kind, []).append(names[shape.name])
    return Measures(names, {kind: _together(found) for kind, found in by_kind.items()})


def _over(epochs: list[LayerEpoch]) -> LayerMeasures:
    return LayerMeasures(
        sum_bits=_most(epoch.accumulator_bits for epoch in epochs),
        signal_bits=_most(epoch.signal.bits for epoch in epochs),
        sent_bits=_most(epoch.sent.bits if epoch.sent else None for epoch in epochs),
        accumulator_bits=_most(
            epoch.optimizer_state.bits if epoch.optimizer_state else None for epoch in epochs
        ),
        flip_rate=_mean(epoch.flip_rate for epoch in epochs),
    )


def _together(layers: list[LayerMeasures]) -> LayerMeasures:
    return LayerMeasures(
        sum_bits=_most(layer.sum_bits for layer in layers),
        signal_bits=_most(layer.signal_bits for layer in layers),
        sent_bits=_most(layer.sent_bits for layer in layers),
        accumulator_bits=_most(layer.accumulator_bits for layer in layers),
        flip_rate=_mean(layer.flip_rate for layer in layers),
    )


def _most(bits: Iterable[int | None]) -> int | None:
    return max((b for b in bits if b is not None), default=None)


def _mean(rates: Iterable[float | None]) -> float | None:
    found = [rate for rate in rates if rate is not None]
    return fsum(found) / len(found) if found else None
