"""What training runs measured of a layer, in the place of the accounting's assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["LayerMeasures", "Measures"]


class LayerMeasures(NamedTuple):
    """Measurements of one layer over all runs; None where no trace has such a figure."""

    sum_bits: int | None  # of a pre-activation [bit]
    signal_bits: int | None  # of the signal received at the layer's output [bit]
    sent_bits: int | None  # of the signal sent on to its input [bit]
    vote_bits: int | None  # of a vote on a weight [bit]
    accumulator_bits: int | None  # of the Boolean optimizer's memory of a weight [bit]
    flip_rate: float | None  # mean share of the weights that flip in a step
    signal_zeros: float  # mean share of the signal received that is 0
    vote_zeros: float | None  # the same of the votes
    signal_holds: int | None = None  # of signals received and sent, at 1 % error [bit]
    vote_holds: int | None = None
    accumulator_holds: int | None = None
    map_zeros: float | None = None  # mean share of the map that it reads that is 0


Measures = Mapping[str, LayerMeasures]  # by the name of the layer in the network at hand
