"""Measures a layer's sums, signals and flips over the steps of an epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import HwmodelError
from hwmodel.specs.trace import OCTAVES, LayerEpoch, Magnitudes, Range, sum_bits

__all__ = ["Sizes", "Tally", "finite", "held_bits", "magnitudes", "rounded"]

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
    return next((bits for bits in range(1, WIDEST) if _holds(z, bits, error)), WIDEST)


def _holds(z: NDArray[np.float64], bits: int, error: float) -> bool:
    """Whether the rms error of rounding is at most `error` times the rms of the values."""
    off = rounded(z, bits)
    off -= z
    return math.sqrt(_mean_square(off)) <= error * math.sqrt(_mean_square(z))


def _mean_square(z: NDArray[np.float64]) -> float:
    return _squares(z) / max(z.size, 1)


def _squares(z: NDArray[np.float64]) -> float:
    """Sum of the squares, in one thread: a product of BLAS rounds as its threads divide it."""
    flat = z.ravel()
    return float(np.einsum("i,i->", flat, flat))


@dataclass
class Sizes:
    """Sizes of one tensor over the steps of an epoch.

    Attributes:
        error: relative rms error at which the width is stated.
        held: width to which the tensor is limited, if it is [bit].
        bits: the widest of the steps' widths [bit].
        rounded: of each sampled step, the share of values that are 0 at its width.
        octaves: of each sampled step, the share of nonzero values in every halving of the range.
    """

    error: float
    held: int | None = None
    values: int = 0
    nonzero: int = 0
    squares: float = 0.0
    largest: float = 0.0
    bits: int = 1
    rounded: list[float] = field(default_factory=list)
    octaves: list[NDArray[np.float64]] = field(default_factory=list)

    def step(self, z: NDArray[Any], *, closely: bool = False) -> None:
        """Measure a step; `closely` says to look at its distribution, too.

        The widest width grows only where it does not hold this step: one look at most steps.
        """
        z = np.asarray(z, np.float64).ravel()
        largest = finite(float(np.abs(z).max(initial=0.0)))
        squares = _squares(z)
        self.values += z.size
        self.nonzero += int(np.count_nonzero(z))
        self.squares += squares
        self.largest = max(self.largest, largest)
        if largest and not _holds(z, self.bits, self.error):
            self.bits = max(self.bits, held_bits(z, self.error))
        if closely:
            self._sample(z, largest)

    def _sample(self, z: NDArray[np.float64], largest: float) -> None:
        flat = np.abs(z[z != 0])
        bits = held_bits(z, self.error) if largest else 1
        octave = np.floor(-np.log2(flat / largest)) if largest else flat
        places = np.minimum(octave, OCTAVES - 1).astype(np.intp)
        counts = np.bincount(places, minlength=OCTAVES)
        self.octaves.append(counts / max(len(flat), 1))
        self.rounded.append(float(np.mean(rounded(z, bits) == 0)))

    def result(self) -> Magnitudes:
        """Return what the trace records."""
        return Magnitudes(
            largest=self.largest,
            rms=math.sqrt(self.squares / self.values),
            zero_share=1 - self.nonzero / self.values,
            bits=min(self.bits, self.held or self.bits),
            rounded_zero_share=float(np.mean(self.rounded)),
            octaves=tuple(round(float(x), 6) for x in np.mean(self.octaves, axis=0)),
        )


def magnitudes(z: NDArray[Any], error: float) -> Magnitudes:
    """Sizes of one tensor's values, and the width that holds them at a relative rms error."""
    sizes = Sizes(error)
    sizes.step(z, closely=True)
    return sizes.result()


@dataclass
class Tally:
    """Measurements of one layer since the epoch began.

    Attributes:
        name: of the layer.
        error: relative rms error at which widths are stated.
        integer: whether its sums are integers.
        weights: number of Boolean weights, 0 where it has none.
        held: widths of tensors that are limited, by name [bit]; no wider ones are stated.
    """

    name: str
    error: float
    integer: bool
    weights: int
    held: Mapping[str, int] = field(default_factory=dict)
    flips: int = 0
    steps: int = 0
    lowest: float = math.inf
    highest: float = -math.inf
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    seen: dict[str, Sizes] = field(default_factory=dict)

    def step(
        self, sums: NDArray[Any], flips: int, *, closely: bool, **tensors: NDArray[Any] | None
    ) -> None:
        """Count a step: its flips, the extremes of its sums, the sizes of named tensors.

        Args:
            closely: measure the spread of the sums and of the sizes, too.
        """
        self.steps += 1
        self.flips += flips
        self.lowest = min(self.lowest, finite(float(sums.min())))
        self.highest = max(self.highest, finite(float(sums.max())))
        for name, values in tensors.items():
            if values is not None:
                sizes = self.seen.setdefault(name, Sizes(self.error, self.held.get(name)))
                sizes.step(values, closely=closely)
        if closely:
            exact = sums.astype(np.float64)
            self.count += exact.size
            self.total += float(exact.sum())
            self.squares += float((exact * exact).sum())

    def result(self) -> LayerEpoch:
        """Return the epoch of this layer, as the trace records it."""
        mean = self.total / self.count
        parts = {name: sizes.result() for name, sizes in self.seen.items()}
        return LayerEpoch(
            name=self.name,
            flip_rate=self.flips / (self.weights * self.steps) if self.weights else None,
            preactivation=Range(
                lowest=self.lowest,
                highest=self.highest,
                mean=mean,
                deviation=math.sqrt(max(self.squares / self.count - mean * mean, 0.0)),
            ),
            sum_bits=sum_bits(self.lowest, self.highest) if self.integer else None,
            signal=parts["signal"],
            sent=parts.get("sent"),
            vote=parts.get("vote"),
            optimizer_state=parts.get("optimizer_state"),
        )
