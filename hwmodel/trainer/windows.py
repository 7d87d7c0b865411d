"""Convolution as rows: the window of every output position as one row, and the way back.

Images are [images, rows, columns, channels]. Work is done a few images at a time, so that the
rows, which repeat every input once per tap, stay small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.trainer.weights import Reals

__all__ = ["Window"]

BLOCK_ELEMENTS = 2**19  # of window elements at a time, 2 MiB of float32


class Window(NamedTuple):
    """A square window: its size, its step, and how far it begins outside the image."""

    size: int
    stride: int = 1
    padding: int = 0

    def outputs(self, inputs: int) -> int:
        """Positions of the window along `inputs` rows or columns; below 1 where it has no room."""
        return (inputs + 2 * self.padding - self.size) // self.stride + 1

    def pad(self, x: NDArray[Any], value: float | bool) -> NDArray[Any]:
        """Images with `padding` rows and columns of `value` on every side."""
        if not self.padding:
            return x
        p = self.padding
        n, h, w, c = x.shape
        out = np.full((n, h + 2 * p, w + 2 * p, c), value, x.dtype)
        out[:, p : p + h, p : p + w] = x
        return out

    def rows(self, padded: NDArray[Any]) -> NDArray[Any]:
        """Windows of padded images [images * HO * WO, size * size * channels]."""
        view = np.lib.stride_tricks.sliding_window_view(padded, (self.size, self.size), (1, 2))
        view = view[:, :: self.stride, :: self.stride].transpose(0, 1, 2, 4, 5, 3)
        return view.reshape(-1, self.size**2 * padded.shape[-1])

    def blocks(self, x: NDArray[Any], out: tuple[int, int]) -> Iterator[slice]:
        """Groups of images whose windows have about BLOCK_ELEMENTS elements together.

        Args:
            x: the images.
            out: output rows and columns.
        """
        each = out[0] * out[1] * self.size**2 * x.shape[-1]
        step = max(1, BLOCK_ELEMENTS // each)
        for start in range(0, len(x), step):
            yield slice(start, min(len(x), start + step))

    def scatter(self, rows: Reals, padded: Reals) -> None:
        """Add every window element [images, HO, WO, size, size, channels] to where it was read."""
        height, width = (
            (n - self.size) // self.stride * self.stride + 1 for n in padded.shape[1:3]
        )
        for i in range(self.size):
            for j in range(self.size):
                target = padded[:, i : i + height : self.stride, j : j + width : self.stride]
                target += rows[:, :, :, i, j]

    def crop(self, padded: NDArray[Any]) -> NDArray[Any]:
        """Padded images without their padding."""
        p = self.padding
        return padded[:, p : padded.shape[1] - p, p : padded.shape[2] - p]
