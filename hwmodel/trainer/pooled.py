"""2 x 2 max-pools: what is passed on and from which pixel, and signals that only chosen pixels get.

Behind a pool three of four signals are exactly 0. Where the layer before it can use that, the
signal stays as small as the pool's output, with the pixel that each of its values goes to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.trainer.weights import Reals

__all__ = ["Choices", "Pooled", "dense", "pool"]

Choices = NDArray[np.uint8]  # of every 2 x 2 pixels the one passed on: 0 to 3, row by row
WORTH_COMPILING = 2**17  # pixels a call; below, loading the compiler costs more than it saves


class Pooled(NamedTuple):
    """A signal to the input of a pool.

    Attributes:
        z: the signal to its output [images, H // 2, W // 2, channels].
        choice: where each value goes, same shape.
        shape: of the input.
        exponent: z are whole multiples of 2^exponent; None: it is not known of which.
    """

    z: Reals
    choice: Choices
    shape: tuple[int, ...]
    exponent: int | None = None


def dense(signal: Reals | Pooled) -> Reals:
    """The signal of every pixel: 0 at those that were not passed on."""
    if not isinstance(signal, Pooled):
        return signal
    sent = np.zeros(signal.shape, signal.z.dtype)
    for place, part in enumerate(_quarters(sent)):
        part[...] = np.where(signal.choice == place, signal.z, 0)
    return sent


def _quarters(x: NDArray[Any]) -> list[NDArray[Any]]:
    """Views of the four pixels of every 2 x 2; a last odd row or column is left out."""
    rows, columns = (n // 2 * 2 for n in x.shape[1:3])
    return [x[:, i:rows:2, j:columns:2] for i in (0, 1) for j in (0, 1)]


def pool(x: NDArray[Any]) -> tuple[NDArray[Any], Choices]:
    """The largest of every 2 x 2 pixels [images, H // 2, W // 2, channels], and which it was.

    Of equal pixels the first, row by row.
    """
    if x.size >= WORTH_COMPILING and x.dtype != np.bool_ and find_spec("numba"):
        n, rows, columns, channels = x.shape
        y = np.empty((n, rows // 2, columns // 2, channels), x.dtype)
        choice = np.empty(y.shape, np.uint8)
        _compiled()(np.ascontiguousarray(x), y, choice)
        return y, choice
    a, b, c, d = _quarters(x)
    y = np.maximum(np.maximum(a, b), np.maximum(c, d))
    later: Choices = (c != y).view(np.uint8) + np.uint8(1)
    later *= b != y
    later += np.uint8(1)
    later *= a != y
    return y, later


@cache
def _compiled() -> Callable[..., None]:
    import numba

    compiled: Callable[..., None] = numba.njit(_loops)
    return compiled


def _loops(x: Any, y: Any, choice: Any) -> None:
    for n in range(y.shape[0]):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                a, b = x[n, 2 * i, 2 * j], x[n, 2 * i, 2 * j + 1]
                c, d = x[n, 2 * i + 1, 2 * j], x[n, 2 * i + 1, 2 * j + 1]
                most, which = y[n, i, j], choice[n, i, j]
                for m in range(y.shape[3]):
                    upper = b[m] if b[m] > a[m] else a[m]
                    lower = d[m] if d[m] > c[m] else c[m]
                    first = np.uint8(1) if b[m] > a[m] else np.uint8(0)
                    second = np.uint8(3) if d[m] > c[m] else np.uint8(2)
                    most[m] = lower if lower > upper else upper
                    which[m] = second if lower > upper else first
