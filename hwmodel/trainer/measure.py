"""Measures a layer's sums, signals and flips over the steps of an epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import HwmodelError
from hwmodel.specs.trace import OCTAVES, LayerEpoch, Magnitudes, Range, two_complement_bits

__all__ = ["Tally", "finite", "held_bits", "magnitudes", "rounded"]

WIDEST = 32  # [bit]; float32 values need no more in any case met here


def finite(value: float) -> float:
    """Return the value if it is finite. Raises: HwmodelError, with what to do about it."""
    if not math.isfinite(value):
        raise HwmodelError("the training left the range of numbers; lower --learning-rate")
    return value


def rounded(z: NDArray[Any], bits: int) -> NDArray[np.float64]:
    """Values as a signed integer of `bits` times one step for the whole tensor.

    With L = 2**(bits - 1) - 1, the step is max|z| / L and values are rounded to the nearest of
    -L .. L. One bit holds the sign alone, at the magnitude max|z|.
    """
    z = np.asarray(z, np.float64)
    largest = float(np.abs(z).max(initial=0.0))
    if bits == 1:
        return np.where(z < 0, -largest, np.float64(largest))
    step = largest / (2 ** (bits - 1) - 1) or 1.0  # zeros stay zeros
    whole: NDArray[np.float64] = np.rint(z / step)
    return whole * step


def held_bits(z: NDArray[Any], error: float) -> int:
    """Smallest width of `rounded` whose rms error is at most `error` times the rms of z [bit]."""
    z = np.asarray(z, np.float64)
    allowed = error * math.sqrt(float(np.mean(z * z))) if z.size else 0.0
    for bits in range(1, WIDEST):
        if math.sqrt(float(np.mean((rounded(z, bits) - z) ** 2))) <= allowed:
            return bits
    return WIDEST


def magnitudes(z: NDArray[Any], error: float) -> Magnitudes:
    """Sizes of one tensor's values, and the width that holds them at a relative rms error."""
    flat = np.abs(np.asarray(z, np.float64)).ravel()
    largest = finite(float(flat.max(initial=0.0)))
    nonzero = flat[flat > 0]
    bits = held_bits(z, error) if len(nonzero) else 1
    octave = np.floor(-np.log2(nonzero / largest)) if len(nonzero) else nonzero
    counts = np.bincount(np.minimum(octave, OCTAVES - 1).astype(np.intp), minlength=OCTAVES)
    return Magnitudes(
        largest=largest,
        rms=math.sqrt(float(np.mean(flat * flat))),
        zero_share=1 - len(nonzero) / len(flat),
        bits=bits,
        rounded_zero_share=float(np.mean(rounded(z, bits) == 0)),
        octaves=tuple(round(float(c) / max(len(nonzero), 1), 6) for c in counts),
    )


def _together(parts: list[Magnitudes]) -> Magnitudes:
    """Join several steps: the widest width, the largest value, the means of the shares."""
    return Magnitudes(
        largest=max(p.largest for p in parts),
        rms=math.sqrt(float(np.mean([p.rms**2 for p in parts]))),
        zero_share=float(np.mean([p.zero_share for p in parts])),
        bits=max(p.bits for p in parts),
        rounded_zero_share=float(np.mean([p.rounded_zero_share for p in parts])),
        octaves=tuple(round(float(x), 6) for x in np.mean([p.octaves for p in parts], axis=0)),
    )


@dataclass
class Tally:
    """Measurements of one layer since the epoch began.

    Attributes:
        name: of the layer.
        error: relative rms error at which widths are stated.
        integer: whether its sums are integers.
        weights: number of Boolean weights, 0 where it has none.
    """

    name: str
    error: float
    integer: bool
    weights: int
    flips: int = 0
    steps: int = 0
    lowest: float = math.inf
    highest: float = -math.inf
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    seen: dict[str, list[Magnitudes]] = field(default_factory=dict)

    def step(self, sums: NDArray[Any], flips: int) -> None:
        """Count a step: its flips, and the extremes of its sums."""
        self.steps += 1
        self.flips += flips
        self.lowest = min(self.lowest, finite(float(sums.min())))
        self.highest = max(self.highest, finite(float(sums.max())))

    def sample(self, sums: NDArray[Any], **tensors: NDArray[Any] | None) -> None:
        """Measure a step closely: the spread of its sums and the sizes of named tensors."""
        exact = sums.astype(np.float64)
        self.count += exact.size
        self.total += float(exact.sum())
        self.squares += float((exact * exact).sum())
        for name, values in tensors.items():
            if values is not None:
                self.seen.setdefault(name, []).append(magnitudes(values, self.error))

    def result(self) -> LayerEpoch:
        """Return the epoch of this layer, as the trace records it."""
        mean = self.total / self.count
        parts = {name: _together(seen) for name, seen in self.seen.items()}
        return LayerEpoch(
            name=self.name,
            flip_rate=self.flips / (self.weights * self.steps) if self.weights else None,
            preactivation=Range(
                lowest=self.lowest,
                highest=self.highest,
                mean=mean,
                deviation=math.sqrt(max(self.squares / self.count - mean * mean, 0.0)),
            ),
            accumulator_bits=(
                two_complement_bits(self.lowest, self.highest) if self.integer else None
            ),
            signal=parts["signal"],
            sent=parts.get("sent"),
            optimizer_state=parts.get("optimizer_state"),
        )
