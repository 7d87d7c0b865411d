"""Layers of real numbers, for the full-precision ends of networks and for the baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.trainer.bits import signs
from hwmodel.trainer.layers import NOTHING, Layer
from hwmodel.trainer.pooled import Pooled, dense, pool
from hwmodel.trainer.weights import Reals, RealWeights
from hwmodel.trainer.windows import Window

__all__ = ["Add", "BatchNorm", "Conv", "Linear", "MaxPool", "Relu", "SignThrough"]


def _reals(x: NDArray[Any]) -> Reals:
    """Numbers as they are, truth values as +1 and -1."""
    return signs(x) if x.dtype == np.bool_ else x.astype(np.float32, copy=False)


def _used(weights: RealWeights, binary: bool) -> Reals:
    """The weights that multiply: latent ones by their sign, with 0 as +1."""
    return signs(weights.value >= 0) if binary else weights.value


class Linear(Layer):
    """y = x W^T [batch, n], with `bias` plus b; images are taken as one row each.

    With `binary`, sign(W) multiplies and W is the latent weight that the gradient moves
    (straight-through), kept within -1 and 1.

    Source: Courbariaux et al., BinaryConnect (arXiv:1511.00363), algorithm 1, for `binary`.
    """

    def __init__(
        self, m: int, n: int, rng: np.random.Generator, *, binary: bool = False, bias: bool = False
    ) -> None:
        super().__init__()
        self.binary = binary
        self.real = [RealWeights.random((n, m), m, rng, clip=1.0 if binary else np.inf)]
        if bias:
            self.real.append(RealWeights(np.zeros(n, np.float32)))

    def forward(self, x: NDArray[Any]) -> Reals:
        """Pre-activations [batch, n]."""
        self.shape = x.shape
        self.x = _reals(x).reshape(len(x), -1)
        y = self.x @ _used(self.real[0], self.binary).T
        if len(self.real) > 1:
            y += self.real[1].value
        return y

    def backward(self, z: Reals) -> Reals:
        """Gradients z^T x and sum of z; sends z W."""
        self.real[0].gradient = z.T @ self.x
        if len(self.real) > 1:
            self.real[1].gradient = z.sum(0)
        if not self.sends:
            return NOTHING
        return (z @ _used(self.real[0], self.binary)).reshape(self.shape)


class Conv(Layer):
    """Convolution of images [images, H, W, C] with weights [M, size * size * C], zero padding.

    `binary`, `bias` and the source as for `Linear`.
    """

    def __init__(
        self,
        channels: int,
        outs: int,
        window: Window,
        rng: np.random.Generator,
        *,
        binary: bool = False,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.window, self.outs, self.binary = window, outs, binary
        m = window.size**2 * channels
        self.real = [RealWeights.random((outs, m), m, rng, clip=1.0 if binary else np.inf)]
        if bias:
            self.real.append(RealWeights(np.zeros(outs, np.float32)))

    def forward(self, x: NDArray[Any]) -> Reals:
        """Pre-activations [images, HO, WO, M]."""
        self.x = _reals(x)
        self.out = (self.window.outputs(x.shape[1]), self.window.outputs(x.shape[2]))
        w = _used(self.real[0], self.binary).T
        y = np.empty((len(x), *self.out, self.outs), np.float32)
        for block in self.window.blocks(self.x, self.out):
            rows = self.window.rows(self.window.pad(self.x[block], 0))
            y[block] = (rows @ w).reshape(-1, *self.out, self.outs)
        if len(self.real) > 1:
            y += self.real[1].value
        return y

    def backward(self, z: Reals) -> Reals:
        """Gradients by weights and bias; sends the gradient by the input, same shape as it."""
        w = _used(self.real[0], self.binary)
        gradient = np.zeros_like(w)
        sent = np.empty(self.x.shape, np.float32) if self.sends else NOTHING
        for block in self.window.blocks(self.x, self.out):
            flat = z[block].reshape(-1, self.outs)
            padded = self.window.pad(self.x[block], 0)
            gradient += flat.T @ self.window.rows(padded)
            if not self.sends:
                continue
            size = (*self.out, self.window.size, self.window.size, self.x.shape[-1])
            target = np.zeros(padded.shape, np.float32)
            self.window.scatter((flat @ w).reshape(-1, *size), target)
            sent[block] = self.window.crop(target)
        self.real[0].gradient = gradient
        if len(self.real) > 1:
            self.real[1].gradient = z.sum((0, 1, 2))
        return sent


class MaxPool(Layer):
    """The largest of every 2 x 2 pixels; a last odd row or column is left out.

    Of equal pixels the first, row by row, passes the value and receives the signal.

    Attributes:
        folded: whether the signal is sent as small as it comes, with the pixels that it goes to.
    """

    folded = False

    def forward(self, x: NDArray[Any]) -> NDArray[Any]:
        """[images, H // 2, W // 2, C], of the input's type."""
        self.shape = x.shape
        y, self.choice = pool(x)
        return y

    def backward(self, z: Reals) -> Reals | Pooled:
        """The signal at the pixels that were passed on, 0 elsewhere."""
        signal = Pooled(z, self.choice, self.shape)
        return signal if self.folded else dense(signal)


class BatchNorm(Layer):
    """Every channel to mean 0 and variance 1 over the batch, then a learned scale and shift.

    Outside training, running averages (decay 0.9) stand in for the batch's mean and variance.

    Source: Ioffe and Szegedy, Batch Normalization (arXiv:1502.03167), algorithm 1.
    """

    EPSILON = 1e-5

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.training = False
        self.real = [
            RealWeights(np.ones(channels, np.float32)),
            RealWeights(np.zeros(channels, np.float32)),
        ]
        self.mean = np.zeros(channels, np.float32)
        self.variance = np.ones(channels, np.float32)

    def forward(self, x: NDArray[Any]) -> Reals:
        """Normalised values, same shape."""
        x = _reals(x)
        axes = tuple(range(x.ndim - 1))
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x.mean(axes), x.var(axes)
            self.mean = np.float32(0.9) * self.mean + np.float32(0.1) * mean
            self.variance = np.float32(0.9) * self.variance + np.float32(0.1) * variance
        self.inverse: Reals = 1 / np.sqrt(variance + np.float32(self.EPSILON))
        self.x: Reals = (x - mean) * self.inverse
        y: Reals = self.x * self.real[0].value + self.real[1].value
        return y

    def backward(self, z: Reals) -> Reals:
        """Gradients of scale and shift; sends that of the input, the batch's moments included."""
        axes = tuple(range(z.ndim - 1))
        self.real[0].gradient = (z * self.x).sum(axes)
        self.real[1].gradient = z.sum(axes)
        z = z * self.real[0].value
        sent: Reals = z - z.mean(axes) - self.x * (z * self.x).mean(axes)
        return sent * self.inverse


class Relu(Layer):
    """The positive part."""

    def forward(self, x: Reals) -> Reals:
        """max(x, 0)."""
        self.x = x
        return np.maximum(x, 0)

    def backward(self, z: Reals) -> Reals:
        """z where x > 0."""
        return z * (self.x > 0)


class SignThrough(Layer):
    """The sign as a truth value; backward, z passes unchanged where |s| <= 1 and ends elsewhere.

    Source: Hubara et al., Binarized Neural Networks (arXiv:1602.02830), straight-through estimator.
    """

    def forward(self, s: Reals) -> NDArray[np.bool_]:
        """T where s >= 0."""
        self.s = s
        return s >= 0

    def backward(self, z: Reals) -> Reals:
        """z inside the window."""
        return z * (np.abs(self.s) <= 1)


class Add(Layer):
    """The sum of branches; all receive the same signal."""

    def forward(self, x: tuple[NDArray[Any], ...]) -> NDArray[Any]:
        """Element by element; truth values count as +1 and -1."""
        first, *others = (signs(branch) if branch.dtype == np.bool_ else branch for branch in x)
        return sum(others, start=first)

    def backward(self, z: Reals) -> Reals:
        """The signal of every branch."""
        return z
