"""The rules that change weights: flips for Boolean ones, Adam for real ones, a cosine for both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.specs.limits import AccumulatorWidth
from hwmodel.trainer.bits import signs
from hwmodel.trainer.rounding import limited_memory
from hwmodel.trainer.weights import BoolWeights, RealWeights

__all__ = ["PUBLISHED", "FlipRule", "adam_step", "boolean_step", "scheduled"]

Schedule = Literal["cosine", "linear", "constant"]
MEMORY = 3  # ends the seeds of accumulators, as no tensor's


class FlipRule(NamedTuple):
    """When a weight flips and what is remembered, as a recipe states it."""

    threshold: float = 1.0  # 0: where accumulator and weight agree at all
    beta: float | Literal["unchanged"] = "unchanged"
    reset: Literal["zero", "keep"] = "zero"


PUBLISHED = FlipRule()


def boolean_step(
    layer: Sequence[BoolWeights],
    rate: float,
    width: AccumulatorWidth | None = None,
    seed: tuple[int, ...] = (),
    rule: FlipRule = PUBLISHED,
) -> int:
    """One step of the Boolean optimizer on all Boolean weights of a layer; the number of flips.

        m <- beta m + eta q;   where m e(w) >= threshold: w <- not w, m <- 0
        beta <- weights left as they were / all weights of the layer

    q is the variation of the loss by the weight: where it agrees with w, flipping w lowers the
    loss.

    Args:
        layer: the layer's weights, and its biases where it has any; they share beta.
        rate: eta.
        width: of the memory; None: not limited. A flip is decided before the memory is rounded,
            for the adder has its carry.
        seed: of stochastic rounding, for this layer in this step.
        rule: the threshold, a beta of its own, whether a flip resets m.

    Source: BOLD, section 3.3, Boolean optimizer. The text asks for a flip wherever m and w
        agree in sign, which is a threshold of 0; that of 1 is the published code's.
    """
    flips = total = 0
    for weights in layer:
        memory = weights.accumulator
        memory *= np.float32(weights.ratio)
        memory += np.float32(rate) * weights.votes
        agreed = memory * signs(weights.values)
        flip = agreed >= rule.threshold if rule.threshold else agreed > 0
        count = int(np.count_nonzero(flip))
        if count:
            if rule.reset == "zero":
                memory[flip] = 0
            weights.flip(flip)
        if width is not None:
            memory[...] = limited_memory(memory, width, _draws(width, seed, memory.shape))
        flips += count
        total += flip.size
    for weights in layer:
        weights.ratio = (total - flips) / total if rule.beta == "unchanged" else rule.beta
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


def scheduled(rate: float, step: int, steps: int, schedule: Schedule = "cosine") -> float:
    """A rate at a step: half a cosine or a line from `rate` at step 0 towards 0, or a constant.

    Source: Loshchilov and Hutter, SGDR (arXiv:1608.03983), without restarts, for the cosine.
    """
    if schedule == "constant":
        return rate
    if schedule == "linear":
        return rate * (1 - step / steps)
    return 0.5 * rate * (1 + math.cos(math.pi * step / steps))
