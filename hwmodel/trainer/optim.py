"""The rules that change weights: flips for Boolean ones, Adam for real ones, a cosine for both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hwmodel.specs.limits import AccumulatorWidth
from hwmodel.trainer.bits import signs
from hwmodel.trainer.rounding import limited_memory
from hwmodel.trainer.weights import BoolWeights, RealWeights

__all__ = ["adam_step", "boolean_step", "cosine"]

MEMORY = 3  # ends the seeds of accumulators, as no tensor's


def boolean_step(
    layer: Sequence[BoolWeights],
    rate: float,
    width: AccumulatorWidth | None = None,
    seed: tuple[int, ...] = (),
) -> int:
    """One step of the Boolean optimizer on all Boolean weights of a layer; the number of flips.

        m <- beta m + eta q;   where m e(w) >= 1: w <- not w, m <- 0
        beta <- weights left as they were / all weights of the layer

    q is the variation of the loss by the weight: where it agrees with w, flipping w lowers the
    loss.

    Args:
        layer: the layer's weights, and its biases where it has any; they share beta.
        rate: eta.
        width: of the memory; None: not limited. A flip is decided before the memory is rounded,
            for the adder has its carry.
        seed: of stochastic rounding, for this layer in this step.

    Source: BOLD, section 3.3, Boolean optimizer. The text asks for a flip wherever m and w
        agree in sign; the threshold of 1 is that of the published code.
    """
    flips = total = 0
    for weights in layer:
        memory = weights.accumulator
        memory *= np.float32(weights.ratio)
        memory += np.float32(rate) * weights.votes
        flip = memory * signs(weights.values) >= 1
        count = int(np.count_nonzero(flip))
        if count:
            memory[flip] = 0
            weights.flip(flip)
        if width is not None:
            memory[...] = limited_memory(memory, width, _draws(width, seed, memory.shape))
        flips += count
        total += flip.size
    for weights in layer:
        weights.ratio = (total - flips) / total
    return flips


def _draws(
    width: AccumulatorWidth, seed: tuple[int, ...], shape: tuple[int, ...]
) -> NDArray[np.float64] | None:
    stochastic = width.rounding == "stochastic"
    return np.random.default_rng((*seed, MEMORY)).random(shape) if stochastic else None


def adam_step(parameters: Iterable[RealWeights], rate: float) -> None:
    """One step of Adam with decays 0.9 and 0.999, then the clip of latent weights.

    Source: Kingma and Ba, Adam (arXiv:1412.6980), algorithm 1.
    """
    for p in parameters:
        p.steps += 1
        p.mean += np.float32(0.1) * (p.gradient - p.mean)
        p.square += np.float32(0.001) * (p.gradient * p.gradient - p.square)
        step = rate * math.sqrt(1 - 0.999**p.steps) / (1 - 0.9**p.steps)
        p.value -= np.float32(step) * p.mean / (np.sqrt(p.square) + np.float32(1e-8))
        if p.clip < np.inf:
            np.clip(p.value, -p.clip, p.clip, out=p.value)


def cosine(rate: float, step: int, steps: int) -> float:
    """Half a cosine from `rate` at step 0 towards 0 at `steps`.

    Source: Loshchilov and Hutter, SGDR (arXiv:1608.03983), without restarts.
    """
    return 0.5 * rate * (1 + math.cos(math.pi * step / steps))
