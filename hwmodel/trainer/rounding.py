"""Limited widths in training: signals, votes and accumulators as the method's file states them.

Every step of a grid is a power of two, so that a limited tensor is a small whole number times one
step, and products of it are sums of whole numbers.

Source: docs/trainer.md, "Limited widths".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.specs.limits import AccumulatorWidth, Rounding, TensorWidth

__all__ = ["STATIC_STEPS", "Limiter", "exponent", "limited", "limited_memory"]

STATIC_STEPS = 100  # whose largest value a static scale is that of

Numbers = NDArray[Any]


def exponent(z: Numbers, bits: int) -> int | None:
    """Return the exponent e of a tensor's own scale; None where all of it is 0.

    Of several bits e = floor(log2 max|z|) + 1, so that max|z| < 2^e; of one the nearest to
    log2 mean|z| over what is not 0.
    """
    largest = max(float(z.max(initial=0)), -float(z.min(initial=0)))
    if not largest:
        return None
    if bits == 1:
        return round(math.log2(float(np.mean(np.abs(z[z != 0]).astype(np.float64)))))
    return math.frexp(largest)[1]


def limited(
    z: Numbers, bits: int, e: int, rounding: Rounding = "nearest", draws: Numbers | None = None
) -> Numbers:
    """Values on the grid of a scale.

        several bits: step = 2^(e - bits + 1), k = clip(round(z / step), -L, L), L = 2^(bits-1) - 1;
            floor reaches to -L - 1
        one bit: sign(z) 2^e, and 0 stays 0: it is structure, what a pool sends nowhere

    Args:
        draws: for stochastic rounding, uniform in [0, 1), of the shape of z.

    >>> z = np.array([0.30, -0.07, 0.011, 0])
    >>> [(limited(z, 4, -1, r) * 16).tolist() for r in ("nearest", "truncate", "floor")]
    [[5.0, -1.0, 0.0, 0.0], [4.0, -1.0, 0.0, 0.0], [4.0, -2.0, 0.0, 0.0]]
    """
    if bits == 1:
        return np.asarray(np.sign(z) * z.dtype.type(2.0**e))
    most = 2 ** (bits - 1) - 1
    step = z.dtype.type(2.0 ** (e - bits + 1))
    whole = np.clip(_whole(z / step, rounding, draws), -most - (rounding == "floor"), most)
    return np.asarray(whole * step + 0)  # no -0


def limited_memory(m: Numbers, width: AccumulatorWidth, draws: Numbers | None = None) -> Numbers:
    """Accumulators on their grid: k range 2^(1 - bits), k from -2^(bits-1) to 2^(bits-1) - 1."""
    half = 2.0 ** (width.bits - 1)
    step = width.range / half
    whole = _whole(m.astype(np.float64) / step, width.rounding, draws)
    return np.asarray(np.clip(whole, -half, half - 1) * step + 0, m.dtype)


def _whole(z: Numbers, rounding: Rounding, draws: Numbers | None) -> Numbers:
    if rounding == "stochastic":
        assert draws is not None
        return np.asarray(np.floor(z + draws))
    return np.asarray({"nearest": np.rint, "truncate": np.trunc, "floor": np.floor}[rounding](z))


@dataclass
class Limiter:
    """Rounds one tensor, step by step.

    Attributes:
        width: as the method states it.
        seed: of stochastic rounding, one for each tensor of a run.
        steps: rounded so far.
        exponent: of the scale before, or of the first steps.
        known: whether there was any value but 0.
        finest: what the last step gave are multiples of two to this power.
    """

    width: TensorWidth
    seed: tuple[int, ...]
    steps: int = 0
    exponent: int = 0
    known: bool = False
    finest: int = 0

    def __call__(self, z: Numbers) -> Numbers:
        """The tensor of this step on its grid, of the dtype of z."""
        own = exponent(z, self.width.bits)
        used = self._scale(own)
        draws = None
        if self.width.rounding == "stochastic" and self.width.bits > 1:
            draws = np.random.default_rng((*self.seed, self.steps)).random(z.shape, np.float32)
        self.steps += 1
        if used is None:
            return z
        self.finest = used - self.width.bits + 1
        return limited(z, self.width.bits, used, self.width.rounding, draws)

    def _scale(self, own: int | None) -> int | None:
        """Choose the exponent of this step, and remember that of the next."""
        scale = self.width.scale
        if scale == "step" or not self.known:
            self._remember(own)
            return own
        before = self.exponent
        if scale == "delayed":
            self._remember(own)
            return before
        if self.steps < STATIC_STEPS and own is not None and own > before:
            self.exponent = own
        return self.exponent

    def _remember(self, own: int | None) -> None:
        if own is not None:
            self.exponent, self.known = own, True
