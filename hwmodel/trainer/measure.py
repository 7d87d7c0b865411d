"""Measures a layer's sums, signals, votes, memory and flips over every step of an epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import HwmodelError
from hwmodel.specs.trace import HOLDS, OCTAVES, LayerEpoch, Magnitudes, Range, sum_bits
from hwmodel.trainer.rounding import exponent, limited

__all__ = ["Sizes", "Tally", "finite", "held_bits", "magnitudes"]

WIDEST = 32  # [bit]; float32 values need no more in any case met here
BIASED = 256  # exponents of a float32 word
BIAS = 127
FRACTION = np.uint32(2**23 - 1)  # bits of a word below its exponent


def finite(value: float) -> float:
    """Return the value if it is finite. Raises: HwmodelError, with what to do about it."""
    if not math.isfinite(value):
        raise HwmodelError("the training left the range of numbers; lower --learning-rate")
    return value


def held_bits(z: NDArray[Any], error: float) -> int:
    """Return the least width whose rounding has an rms error of at most `error` of the rms [bit].

    Rounded is as in training: to the nearest step of the grid of `rounding.limited` at the
    tensor's own scale.
    """
    z = np.asarray(z, np.float32)
    squares = _squares(z)
    return next((bits for bits in range(1, WIDEST) if _holds(z, bits, error, squares)), WIDEST)


def _holds(z: NDArray[np.float32], bits: int, error: float, squares: float) -> bool:
    """Whether the rms error of rounding is at most `error` times the rms of the values."""
    scale = exponent(z, bits)
    if scale is None:
        return True
    off = limited(z, bits, scale)
    off -= z
    return math.sqrt(_squares(off)) <= error * math.sqrt(squares)


def _squares(z: NDArray[Any]) -> float:
    """Sum of the squares, in one thread: a product of BLAS rounds as its threads divide it."""
    flat = z.ravel().astype(np.float64, copy=False)
    return float(np.einsum("i,i->", flat, flat))


def _octaves(z: NDArray[np.float32], scale: int) -> NDArray[np.int64]:
    """Count nonzero values in [1/2, 1), [1/4, 1/2), ... of 2^scale; the last holds all below.

    Told by the exponents of the words: a word of E is from 2^(E - BIAS) to below twice that.
    """
    words = (z.view(np.uint32) << np.uint32(1)) >> np.uint32(24)
    counts = np.bincount(words, minlength=BIASED)
    counts[0] = np.count_nonzero(z) - int(counts[1:].sum())  # below all normal words, but not 0
    largest = scale - 1 + BIAS
    octaves = counts[max(largest, 0) :: -1]
    octaves = np.append(octaves, np.zeros(OCTAVES, np.int64))
    return np.append(octaves[: OCTAVES - 1], octaves[OCTAVES - 1 :].sum())


def _most(octaves: NDArray[np.int64], bits: int, scale: int) -> float:
    """A bound on the sum of squared errors of rounding to several bits at a scale.

    A value is off by half a step at most, one of the first octave, which may be cut off at the
    largest, by a step, and one below half a step by its own size.
    """
    if bits == 1:
        return math.inf
    counts = octaves.tolist()  # all of i are below 2^(scale - i), half a step is 2^(scale - bits)
    off = sum(n * 4.0 ** (scale - max(bits, i)) for i, n in enumerate(counts))
    return float(off + 3 * counts[0] * 4.0 ** (scale - bits))


@dataclass
class Sizes:
    """Sizes of one tensor over the steps of an epoch.

    Attributes:
        error: relative rms error at which the width is stated.
        held: width to which the tensor is limited, if it is [bit].
        bits: the widest of the steps' widths [bit].
        holds: the same at the error HOLDS.
        octaves: nonzero values by halvings of the power of two above each step's largest.
        lowest: those of them that are the lowest of their octave, and so a power of two.
    """

    error: float
    held: int | None = None
    values: int = 0
    nonzero: int = 0
    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    bits: int = 1
    holds: int = 1
    octaves: NDArray[np.int64] = field(default_factory=lambda: np.zeros(OCTAVES, np.int64))
    lowest: NDArray[np.int64] = field(default_factory=lambda: np.zeros(OCTAVES, np.int64))

    def step(self, z: NDArray[Any]) -> None:
        """Measure a step. A widest width grows only where it does not hold the step."""
        z = np.ascontiguousarray(z, np.float32).ravel()
        largest = finite(max(float(z.max(initial=0.0)), -float(z.min(initial=0.0))))
        squares = _squares(z)
        self.values += z.size
        self.nonzero += int(np.count_nonzero(z))
        self.total += float(z.sum(dtype=np.float64))
        self.squares += squares
        self.largest = max(self.largest, largest)
        if not largest:
            return
        scale = math.frexp(largest)[1]
        octaves = _octaves(z, scale)
        self.octaves += octaves
        self.lowest += _octaves(z[z.view(np.uint32) & FRACTION == 0], scale)
        for name, error in (("bits", self.error), ("holds", HOLDS)):
            bits = getattr(self, name)
            if error * error * squares < _most(octaves, bits, scale) and not _holds(
                z, bits, error, squares
            ):
                setattr(self, name, max(bits, held_bits(z, error)))

    def result(self) -> Magnitudes:
        """Return what the trace records."""
        bits = min(self.bits, self.held or self.bits)
        small = int(self.octaves[bits:].sum())  # below half a step, 2^(e - bits)
        if bits < OCTAVES:  # half a step itself is rounded to even, so to 0; the last has others
            small += int(self.lowest[bits - 1])
        zeros = self.values - self.nonzero
        return Magnitudes(
            largest=self.largest,
            rms=math.sqrt(self.squares / self.values),
            mean=self.total / self.values,
            zero_share=zeros / self.values,
            bits=bits,
            holds_bits=min(self.holds, self.held or self.holds),
            rounded_zero_share=(zeros + small * (bits > 1)) / self.values,
            octaves=tuple(round(int(n) / max(self.nonzero, 1), 6) for n in self.octaves),
        )


def magnitudes(z: NDArray[Any], error: float) -> Magnitudes:
    """Sizes of one tensor's values, and the width that holds them at a relative rms error."""
    sizes = Sizes(error)
    sizes.step(z)
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
    read: int = 0
    zeros: int = 0
    seen: dict[str, Sizes] = field(default_factory=dict)

    def reads(self, x: NDArray[Any]) -> None:
        """Count the zeros of what a step reads; signs, which are kept as Booleans, have none."""
        if x.dtype != np.bool_:
            self.read += x.size
            self.zeros += x.size - int(np.count_nonzero(x))

    def step(self, sums: NDArray[Any], flips: int, **tensors: NDArray[Any] | None) -> None:
        """Count a step: its flips, its sums, the sizes of named tensors."""
        self.steps += 1
        self.flips += flips
        self.lowest = min(self.lowest, finite(float(sums.min())))
        self.highest = max(self.highest, finite(float(sums.max())))
        self.count += sums.size
        self.total += float(sums.sum(dtype=np.float64))
        self.squares += _squares(sums)
        for name, values in tensors.items():
            if values is not None:
                sizes = self.seen.setdefault(name, Sizes(self.error, self.held.get(name)))
                sizes.step(values)

    def result(self) -> LayerEpoch:
        """Return the epoch of this layer, as the trace records it."""
        mean = self.total / self.count
        parts = {name: sizes.result() for name, sizes in self.seen.items()}
        return LayerEpoch(
            name=self.name,
            flip_rate=self.flips / (self.weights * self.steps) if self.weights else None,
            input_zeros=self.zeros / self.read if self.read else None,
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
