"""Weights of layers, held as bits or as real numbers, each with its optimizer's state."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hwmodel.trainer.bits import Bits, Logic, Signs, pack_bytes, signs, unpack, words

__all__ = ["BoolWeights", "RealWeights", "Reals"]

Reals = NDArray[np.float32]


@dataclass
class BoolWeights:
    """Truth values [outs, taps, inputs], every tap's inputs beginning at a whole byte.

    Attributes:
        bits: the weights [outs, words].
        votes: q of the last backward pass [outs, taps * inputs]; q > 0 asks for F, q < 0 for T.
        accumulator: the optimizer's memory of votes, same shape.
        ratio: beta, the share of the layer's weights that the last step left as they were.
    """

    bits: Bits
    taps: int
    inputs: int
    votes: Reals = field(init=False)
    accumulator: Reals = field(init=False)
    ratio: float = 1.0

    def __post_init__(self) -> None:
        self.votes = np.zeros((len(self.bits), self.taps * self.inputs), np.float32)
        self.accumulator = np.zeros_like(self.votes)

    @classmethod
    def of(cls, values: Logic) -> BoolWeights:
        """Weights of truth values [outs, taps, inputs]."""
        outs, taps, inputs = values.shape
        return cls(words(pack_bytes(values).reshape(outs, -1)), taps, inputs)

    @classmethod
    def random(cls, outs: int, taps: int, inputs: int, rng: np.random.Generator) -> BoolWeights:
        """Weights that are T or F with equal chance."""
        return cls.of(rng.random((outs, taps, inputs)) < 0.5)

    @property
    def values(self) -> Logic:
        """The weights as truth values [outs, taps * inputs]."""
        return unpack(self.bits, self.taps, self.inputs)

    @property
    def signs(self) -> Signs:
        """The weights as +1 and -1 [outs, taps * inputs]."""
        return signs(self.values)

    def flip(self, where: Logic) -> None:
        """Negate the weights at [outs, taps * inputs]: one XOR with the packed positions."""
        flips = where.reshape(len(where), self.taps, self.inputs)
        self.bits = self.bits ^ BoolWeights.of(flips).bits


@dataclass
class RealWeights:
    """Real parameters of any shape, trained by Adam.

    Attributes:
        value: the parameters.
        gradient: of the last backward pass.
        mean, square: Adam's running mean of the gradient and of its square.
        steps: Adam's steps so far.
        clip: the largest magnitude a parameter may keep; that of latent weights is 1.
    """

    value: Reals
    clip: float = np.inf
    gradient: Reals = field(init=False)
    mean: Reals = field(init=False)
    square: Reals = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.gradient = np.zeros_like(self.value)
        self.mean = np.zeros_like(self.value)
        self.square = np.zeros_like(self.value)

    @classmethod
    def random(
        cls, shape: tuple[int, ...], inputs: int, rng: np.random.Generator, clip: float = np.inf
    ) -> RealWeights:
        """Normal with variance 1 / inputs, so that a sum over inputs keeps its size."""
        values = rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(inputs))
        return cls(np.clip(values, -clip, clip), clip)
