"""Rows of all pieces of a short axis, listed once; of nested cuts then a sum over their pieces."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.rows import block_rows
from hwmodel.tiling.spatial.paths import Axis

__all__ = ["PieceRows", "piece_rows"]

MOST = 2**21  # pairs of a piece of outputs and a piece of taps
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Tiles = tuple[int, ...]


class PieceRows:
    """Rows under every piece [start, stop) of outputs and of taps of an axis."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        grids = [np.indices((n + 1, n + 1)).reshape(2, -1) for n in (axis.outs, axis.taps)]
        (out, out_end), (tap, tap_end) = grids
        outs = np.maximum(out_end - out, 1)[:, None]  # pieces that end before they begin: not asked
        taps = np.maximum(tap_end - tap, 1)[None, :]
        rows = block_rows(axis.window, axis.rule, out[:, None], outs, tap[None, :], taps)
        self._rows: Floats = rows.astype(float)
        self._sums: dict[Tiles, Floats] = {}
        self._pieces: dict[tuple[int, tuple[int, ...]], Ints] = {}

    def rows(self, pairs: Iterable[tuple[Tiles, Tiles]]) -> list[float]:
        """Rows that nested cuts of both loops load, pair by pair: `paths.rows`, if all is kept.

        Args:
            pairs: tiles of outputs, outermost first, and of taps.
        """
        found: list[float] = []
        together = max(1, MOST // self._rows.shape[1])
        rest = list(pairs)
        for i in range(0, len(rest), together):
            found += self._some_rows(rest[i : i + together])
        return found

    def _some_rows(self, pairs: list[tuple[Tiles, Tiles]]) -> list[float]:
        outs: dict[Tiles, int] = {}
        taps: dict[Tiles, int] = {}
        at = [
            (outs.setdefault(out, len(outs)), taps.setdefault(tap, len(taps))) for out, tap in pairs
        ]
        under = np.array([self._under(out) for out in outs])
        pieces = np.zeros((len(taps), under.shape[1]))
        for i, tap in enumerate(taps):
            pieces[i, self._cut(self._axis.taps, tap)] = 1
        out, tap_ = np.array(at).T
        found: list[float] = np.einsum("ij,ij->i", under[out], pieces[tap_]).tolist()
        return found

    def _under(self, outs: Tiles) -> Floats:
        """Rows under all pieces of the outputs together and every piece of taps."""
        if len(self._sums) * self._rows.shape[1] > 2 * MOST:
            self._sums.clear()
        if outs not in self._sums:
            self._sums[outs] = self._rows[self._cut(self._axis.outs, outs)].sum(axis=0)
        return self._sums[outs]

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
