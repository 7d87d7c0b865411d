"""Boolean layers and the threshold between them: forward and backward of each on one page.

A layer keeps what its backward pass needs, and leaves the votes on its weights where the
optimizer finds them. Signals are derivatives of the loss by pre-activations in units of +1 and -1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from hwmodel.trainer.bits import Bits, Logic, Signs, Sums, pack, pack_bytes, signs, unpack, words
from hwmodel.trainer.events import by_events, possible
from hwmodel.trainer.kernels import EXACT_FLOAT32, count_agreements, fastest
from hwmodel.trainer.logic import truth
from hwmodel.trainer.pooled import Pooled, dense
from hwmodel.trainer.weights import BoolWeights, Reals, RealWeights
from hwmodel.trainer.windows import Window

__all__ = ["NOTHING", "BoolConv", "BoolLinear", "Layer", "Rules", "Threshold"]
__all__ += ["conv_scale", "linear_scale", "window_slope"]


NOTHING: Reals = np.zeros(0, np.float32)  # sent by layers that take images


class Layer(ABC):
    """The interface of layers; a layer without weights has empty lists.

    Attributes:
        sends: whether anything before the layer needs the signal that it would send.
    """

    boolean: list[BoolWeights]
    real: list[RealWeights]
    sends = True

    def __init__(self) -> None:
        self.boolean, self.real = [], []

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """The output of a batch."""

    @abstractmethod
    def backward(self, z: Any) -> Any:
        """Return the loss's derivative by the input, given that by the output; set the weights'."""


class Rules(NamedTuple):
    """The choices that a method makes for all its Boolean layers."""

    logic: Literal["xnor", "xor"] = "xnor"
    signal: Literal["real", "boolean"] = "real"
    bias: bool = False
    bits: int | None = None  # of signals on a grid; None: they are not limited

    @property
    def sign(self) -> int:
        """xnor(a, x) = a x and xor(a, x) = -a x: the layers differ by this factor throughout."""
        return 1 if self.logic == "xnor" else -1

    def received(self, z: Reals) -> Reals:
        """Return the signal as the layer uses it: real, or only its truth value."""
        return truth(z) if self.signal == "boolean" else z

    def exact(self, terms: int) -> type[Any]:
        """Return words in which every sum of so many values of a signal is exact.

        On a grid a value is at most 2^(bits - 1) - 1 steps: float32 holds sums of up to 2^24 of
        them, float64 any that are met here. Then no order of adding shows in a result.
        """
        most = 1 if self.bits == 1 else 2 ** ((self.bits or 1) - 1) - 1
        wide = self.bits is not None and most * terms >= EXACT_FLOAT32
        return np.float64 if wide else np.float32


Count = Callable[[Bits, Bits, int], Sums]
PLAIN = Rules()
PRODUCT_ELEMENTS = 2**17  # weights at a time as signs in a product, 512 KiB
FILL = {"nothing": 0.0, "true": 1.0, "false": -1.0}  # what padding adds to a product of signs


def linear_scale(outs: int) -> float:
    """Factor on the signal that a linear layer of `outs` neurons sends upstream: sqrt(2 / outs).

    Source: BOLD, appendix on training regularization, variance of the backpropagated signal.
    """
    return math.sqrt(2 / outs)


def conv_scale(outs: int, size: int, stride: int, pooled: bool) -> float:
    """Factor on a convolution's upstream signal: sqrt(2 stride / (outs size size)).

    Twice that where a 2 x 2 max-pool follows, which sends three of four signals nowhere.

    Source: as `linear_scale`.
    """
    return (2 if pooled else 1) * math.sqrt(2 * stride / (outs * size * size))


def window_slope(spread: float) -> float:
    """alpha = pi / (2 sqrt(3 m)), for pre-activations of variance m.

    tanh'(alpha s) is then, up to its height, the logistic density of the pre-activations' own
    variance. A sum of m independent values of +1 and -1 has the variance m, its fan-in.

    Source: BOLD, appendix on training regularization.
    """
    return math.pi / (2 * math.sqrt(3 * spread))


class BoolLinear(Layer):
    """n Boolean neurons over m Boolean inputs."""

    def __init__(
        self, m: int, n: int, rng: np.random.Generator, rules: Rules = PLAIN, scale: float = 1.0
    ) -> None:
        self.m, self.n, self.rules, self.scale = m, n, rules, scale
        self.boolean = [BoolWeights.random(n, 1, m, rng)]
        if rules.bias:
            self.boolean.append(BoolWeights.random(n, 1, 1, rng))
        self.real = []

    def forward(self, x: Logic) -> Sums:
        """s[k, j] = w0[j] + sum over i of L(x[k, i], w[j, i]), integers [batch, n].

        Images are taken as one row each.

        Source: BOLD, section 3.3; s = 2 count - m where the source counts Trues.
        """
        self.shape = x.shape
        self.x = x.reshape(len(x), -1)
        case = ("linear", len(x).bit_length(), self.m, self.n)
        return _finish(_sums(self, case, self.m), self.rules, self.boolean)

    def by_words(self, count: Count = count_agreements) -> Sums:
        """Agreements minus disagreements [batch, n], counted on words."""
        return count(pack(self.x), self.boolean[0].bits, self.m)

    def by_product(self) -> Sums:
        """Multiply signs to the same sums; exact in float32 for m up to EXACT_FLOAT32.

        A few neurons at a time: their signs take 32 times the memory of their bits.
        """
        x, w = signs(self.x), self.boolean[0]
        sums = np.empty((len(x), self.n), np.int32)
        step = max(1, PRODUCT_ELEMENTS // self.m)
        for start in range(0, self.n, step):
            part = slice(start, start + step)
            sums[:, part] = x @ signs(unpack(w.bits[part], 1, self.m)).T
        return sums

    def backward(self, z: Reals) -> Reals:
        """Votes q[j, i] = sum over k of L(z[k, j], x[k, i]); sends sum over j of L(z, w[j, i]).

        The scale is on what is sent, never on the votes. Source: BOLD, section 3.3.
        """
        z = self.rules.received(z)
        w = self.boolean[0]
        z = z.astype(self.rules.exact(max(len(z), self.n)), copy=False)
        w.votes = self.rules.sign * (z.T @ signs(self.x))
        _bias_votes(self.boolean, z)
        sent = np.float32(self.rules.sign * self.scale) * (z @ w.signs)
        return sent.reshape(self.shape)


class BoolConv(Layer):
    """`outs` Boolean filters over images of C Boolean channels: a linear layer on windows.

    Args:
        channels: C.
        outs: M.
        window: size, stride and padding.
        padding: what stands outside the image: nothing (the third value, which adds nothing to
            a sum), or a constant T or F.
    """

    def __init__(
        self,
        channels: int,
        outs: int,
        window: Window,
        rng: np.random.Generator,
        rules: Rules = PLAIN,
        scale: float = 1.0,
        padding: Literal["nothing", "true", "false"] = "nothing",
    ) -> None:
        self.window, self.outs, self.rules, self.scale = window, outs, rules, scale
        self.fill = FILL[padding]
        self.boolean = [BoolWeights.random(outs, window.size**2, channels, rng)]
        if rules.bias:
            self.boolean.append(BoolWeights.random(outs, 1, 1, rng))
        self.real = []

    def forward(self, x: Logic) -> Sums:
        """s[n, h, w, j]: sums over channels and taps, integers [images, HO, WO, outs]."""
        self.x = x
        n, height, width, channels = x.shape
        self.out = (self.window.outputs(height), self.window.outputs(width))
        case = ("conv", n.bit_length(), height, width, channels, self.outs, self.window)
        sums = _sums(self, case, self.window.size**2 * channels)
        s = _finish(sums, self.rules, self.boolean)
        return s.reshape(n, *self.out, self.outs)

    def backward(self, z: Reals | Pooled) -> Reals:
        """Votes and the signal sent upstream, by the rules of the linear layer on windows."""
        if isinstance(z, Pooled):
            if possible(z, self.window, self.x.shape[-1]):
                return self._by_events(z)
            z = dense(z)
        z = self.rules.received(z)
        w, weights = self.boolean[0].signs, self.boolean[0]
        z = z.astype(self._exact(z.size), copy=False)
        votes = np.zeros(weights.votes.shape, z.dtype)
        sent = np.empty(self.x.shape, z.dtype)
        for block in self.window.blocks(self.x, self.out):
            flat = z[block].reshape(-1, self.outs)
            padded = self._padded_signs(block).astype(z.dtype, copy=False)
            votes += flat.T @ self.window.rows(padded)
            size = (*self.out, self.window.size, self.window.size, self.x.shape[-1])
            padded[:] = 0
            self.window.scatter((flat @ w).reshape(-1, *size), padded)
            sent[block] = self.window.crop(padded)
        weights.votes = self.rules.sign * votes
        _bias_votes(self.boolean, z.reshape(-1, self.outs))
        sent *= np.float32(self.rules.sign * self.scale)
        return sent

    def _by_events(self, signal: Pooled) -> Reals:
        """The same of a pooled signal on a grid, in whole numbers."""
        assert signal.exponent is not None
        weights, exact = self.boolean[0], self._exact(prod(signal.shape))
        step = exact(2.0**signal.exponent)
        padded = self.window.pad(2 * self.x.view(np.int8) - np.int8(1), self.fill)
        votes, sent = by_events(signal, padded, weights.signs, self.window)
        weights.votes = self.rules.sign * (votes.astype(exact) * step)
        _bias_votes(self.boolean, signal.z.reshape(-1, self.outs).astype(exact, copy=False))
        upstream: Reals = self.window.crop(sent).astype(exact)
        upstream *= step
        upstream *= np.float32(self.rules.sign * self.scale)
        return upstream

    def _exact(self, signals: int) -> type[Any]:
        """Words in which sums over so many signals are exact."""
        return self.rules.exact(max(signals // self.outs, self.outs * self.window.size**2))

    def _padded_signs(self, block: slice) -> Signs:
        return self.window.pad(signs(self.x[block]), self.fill)

    def by_product(self) -> Sums:
        """Agreements minus disagreements [images * HO * WO, outs], as a product of signs."""
        w = self.boolean[0].signs.T
        sums = np.empty((len(self.x), self.out[0] * self.out[1], self.outs), np.int32)
        for block in self.window.blocks(self.x, self.out):
            product = self.window.rows(self._padded_signs(block)) @ w
            sums[block] = product.reshape(-1, *sums.shape[1:])
        return sums.reshape(-1, self.outs)

    def by_words(self, count: Count = count_agreements) -> Sums:
        """Count the same sums on words. Outside the image stands F; what it added is taken back."""
        weights = self.boolean[0]
        m = weights.taps * weights.inputs
        sums = np.empty((len(self.x), self.out[0] * self.out[1], self.outs), np.int32)
        for block in self.window.blocks(self.x, self.out):
            padded = self.window.pad(self.x[block], self.fill > 0)
            rows = words(self.window.rows(pack_bytes(padded)))
            sums[block] = count(rows, weights.bits, m).reshape(-1, *sums.shape[1:])
        if self.window.padding and self.fill == 0:
            sums += self._outside()
        return sums.reshape(-1, self.outs)

    def _outside(self) -> Sums:
        """Sum of the weights whose tap lies outside the image [HO * WO, outs]."""
        weights = self.boolean[0]
        inside = np.zeros((1, *self.x.shape[1:3], 1), np.int32)
        taps = self.window.rows(self.window.pad(inside, 1))
        each = weights.signs.reshape(self.outs, weights.taps, weights.inputs).sum(2)
        sums: Sums = taps @ each.T.astype(np.int32)
        return sums


def _sums(layer: BoolLinear | BoolConv, case: tuple[object, ...], m: int) -> Sums:
    """Compute the layer's sums by the faster of the ways that are exact for m inputs."""
    ways: dict[str, Callable[[], Sums]] = {"words": layer.by_words}
    if m <= EXACT_FLOAT32:
        ways["product"] = layer.by_product
    return fastest(case, ways)


def _finish(s: Sums, rules: Rules, weights: list[BoolWeights]) -> Sums:
    """Sums of agreements turned by the logic, plus the bias, a weight whose input is always T."""
    if rules.sign < 0:
        np.negative(s, out=s)
    if rules.bias:
        s += weights[1].signs[:, 0].astype(np.int32)
    return s


def _bias_votes(weights: list[BoolWeights], z: Reals) -> None:
    """q[0, j] = sum over k of z[k, j]: xnor with T, whatever the logic of the other weights."""
    if len(weights) > 1:
        weights[1].votes = z.sum(0)[:, None]


class Threshold(Layer):
    """y = T where s >= tau; backward, the signal re-weighted by how far s is from tau.

    Args:
        slope: alpha of `window_slope`, or nothing for a signal passed on as it is.
        tau: the threshold, in the units of s.
    """

    def __init__(self, slope: float | None, tau: float = 0.0) -> None:
        super().__init__()
        self.slope, self.tau = slope, tau

    def forward(self, s: Sums | Reals) -> Logic:
        """Truth values, same shape."""
        self.s = s
        return s >= self.tau

    def backward(self, z: Reals) -> Reals:
        """z tanh'(alpha |s - tau|), with tanh' = 1 - tanh**2.

        In float32 this is exactly 0 beyond alpha |s - tau| of about 9.

        Source: BOLD, appendix on training regularization; tanh' written as its code has it.
        """
        if self.slope is None:
            return z
        far = np.subtract(self.s, self.tau, dtype=np.float32)
        far *= np.float32(self.slope)
        np.tanh(far, out=far)
        far *= far
        np.subtract(1, far, out=far)
        far *= z
        return far
