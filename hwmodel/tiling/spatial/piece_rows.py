"""Rows of all pieces of a short axis, listed once; of nested cuts then a sum over their pieces."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.rows import block_rows
from hwmodel.tiling.spatial.paths import Axis

__all__ = ["PieceRows", "piece_rows"]

MOST = 2**21  # pairs of a piece of outputs and a piece of taps
Ints = NDArray[np.int64]


class PieceRows:
    """Rows under every piece [start, stop) of outputs and of taps of an axis."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        grids = [np.indices((n + 1, n + 1)).reshape(2, -1) for n in (axis.outs, axis.taps)]
        (out, out_end), (tap, tap_end) = grids
        outs = np.maximum(out_end - out, 1)[:, None]  # pieces that end before they begin: not asked
        taps = np.maximum(tap_end - tap, 1)[None, :]
        self._rows = block_rows(axis.window, axis.rule, out[:, None], outs, tap[None, :], taps)
        self._pieces: dict[tuple[int, tuple[int, ...]], Ints] = {}

    def rows(self, outs: tuple[int, ...], taps: tuple[int, ...]) -> int:
        """Rows that nested cuts of both loops load: `paths.rows`, if all is kept.

        Args:
            outs: tiles of outputs, outermost first; `taps` alike.
        """
        out = self._cut(self._axis.outs, outs)
        tap = self._cut(self._axis.taps, taps)
        return int(self._rows[out[:, None], tap[None, :]].sum())

    def _cut(self, length: int, tiles: tuple[int, ...]) -> Ints:
        """Places of a loop's pieces in the list of all."""
        if (length, tiles) not in self._pieces:
            starts = [0]
            for tile in tiles:
                pieces = pairwise((*starts, length))
                starts = [at for start, stop in pieces for at in range(start, stop, tile)]
            ends = np.array([*starts[1:], length])
            self._pieces[length, tiles] = np.array(starts) * (length + 1) + ends
        return self._pieces[length, tiles]


@lru_cache(maxsize=8)
def piece_rows(axis: Axis) -> PieceRows | None:
    """Return the rows of all pieces of an axis; None where there are too many."""
    if (axis.outs + 1) ** 2 * (axis.taps + 1) ** 2 > MOST:
        return None
    return PieceRows(axis)
