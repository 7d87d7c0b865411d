"""The backward pass of a Boolean convolution before a pool, one signal at a time, in whole numbers.

A signal on a grid is a small whole number k of steps. It adds k x to the votes of one filter and
k w to what is sent, in the one window that the pool has passed on; the other three of four are 0,
and neither they nor rows of windows are ever written down. A window's row of [row, column,
channel] is contiguous in the image. Every sum is exact, so that it is the float32 product's, bit
by bit, wherever that is exact, too.

Source: BOLD, section 3.3, as `layers.BoolConv.backward`; tests hold both against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.trainer.bits import Signs
from hwmodel.trainer.pooled import Choices, Pooled
from hwmodel.trainer.windows import Window

__all__ = ["WORTH_COMPILING", "by_events", "lanes", "loops", "possible"]

Whole = NDArray[np.integer[Any]]

WORTH_COMPILING = 2**20  # additions a call; below, loading the compiler costs more than it saves


def possible(signal: Pooled, window: Window, channels: int) -> bool:
    """Whether a signal is one of whole numbers, there is a compiler, and it is worth it."""
    additions = 2 * signal.z.size * window.size**2 * channels
    return signal.exponent is not None and additions >= WORTH_COMPILING and bool(find_spec("numba"))


def lanes(most: int, window: Window, filters: int, cells: int) -> tuple[Any, Any]:
    """Words for the votes of one image and for what is sent, wide enough for every sum.

    A pooled cell has one signal a filter. Windows at ceil(size / stride) places along each axis
    reach one pixel, and so many places lie in at most half as many cells and one.

    Args:
        most: largest magnitude of a signal [steps].
        filters: of the layer.
        cells: of an image.
    """
    reach = -(-window.size // window.stride)
    terms = filters * (reach // 2 + 1) ** 2
    words: list[Any] = []
    for count in (cells, terms):
        largest = most * count
        words.append(np.int16 if largest < 2**15 else np.int32 if largest < 2**31 else np.int64)
    return words[0], words[1]


def by_events(signal: Pooled, padded: Whole, weights: Signs, window: Window) -> tuple[Whole, Whole]:
    """Votes [filters, size * size * channels] and what is sent to the padded images [steps].

    Args:
        signal: whole multiples of 2^exponent.
        padded: signs of the images, with what stands outside around them.
        weights: signs [filters, size * size * channels].
    """
    assert signal.exponent is not None
    k = np.rint(np.ldexp(signal.z, -signal.exponent)).astype(np.int32)
    n, rows, columns, channels = padded.shape
    length, filters = window.size * channels, len(weights)
    most = int(max(k.max(initial=0), -k.min(initial=0)))
    vote, word = lanes(most, window, filters, k.shape[1] * k.shape[2])
    small = np.int16 if most < 2**15 else np.int32
    votes = np.zeros((filters, window.size, length), np.int64)
    sent = np.zeros((n, rows, columns * channels), word)
    _kernel(window.size, window.stride, channels, vote, word)(
        k.astype(small), signal.choice, padded.astype(np.int16).reshape(n, rows, -1),
        weights.astype(np.int16).reshape(filters, window.size, length), votes, sent,
    )  # fmt: skip
    return votes.reshape(filters, -1), sent.reshape(padded.shape)


@cache
def _kernel(size: int, stride: int, channels: int, vote: Any, word: Any) -> Callable[..., None]:
    import numba

    compiled: Callable[..., None] = numba.njit(loops(size, stride, channels, vote, word))
    return compiled


def loops(size: int, stride: int, channels: int, vote: Any, word: Any) -> Callable[..., None]:
    """The loops for one shape of window: of a known length the innermost fills whole vectors.

    Votes of one image are added up in words of their own, then to those of the batch.
    """
    length, step = size * channels, stride * channels

    def run(k: Any, choice: Choices, x: Any, w: Any, votes: Any, sent: Any) -> None:
        part = np.zeros(votes.shape, vote)
        for n in range(k.shape[0]):
            part[:] = 0
            for i in range(k.shape[1]):
                for j in range(k.shape[2]):
                    for m in range(k.shape[3]):
                        z = k[n, i, j, m]
                        if z == 0:
                            continue
                        place = choice[n, i, j, m]
                        top = (2 * i + (place >> 1)) * stride
                        left = (2 * j + (place & 1)) * step
                        for r in range(size):
                            seen = x[n, top + r, left : left + length]
                            back = sent[n, top + r, left : left + length]
                            mine, own = part[m, r], w[m, r]
                            for t in range(length):
                                mine[t] += vote(z) * vote(seen[t])
                            for t in range(length):
                                back[t] += word(z) * word(own[t])
            votes += part

    return run
