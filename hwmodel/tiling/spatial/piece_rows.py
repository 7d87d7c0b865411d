"""Rows of all pieces of an axis, listed once; of nested cuts then a sum over their pieces.

Where each row is touched by outputs in a row, through any taps in a row, a cut of the outputs loads
anew what both of its sides touch, whatever the other cuts are: so a row of numbers for each piece
of the taps does for long axes, too. The same holds with outputs and taps exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.rows import block_rows
from hwmodel.tiling.spatial.paths import Axis

__all__ = ["CutRows", "PieceRows", "piece_rows"]

MOST = 2**21  # pairs of a piece of outputs and a piece of taps
SHORT = 2**12  # a loop whose cuts are walked anew for each chain
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

    def rows_by_chain(self, chains: Ints, depth: int) -> Floats:
        """Rows that nested cuts of both loops load, by chain: `paths.rows`, if all is kept.

        Args:
            chains: tiles of outputs, outermost first, followed by those of taps [chain, size].
            depth: how many are of outputs.
        """
        if is_compiled():
            lengths = self._axis.outs, self._axis.taps
            return _compiled(self._rows, lengths, chains, depth, anew=False)
        return np.array(self.rows(_pairs(chains, depth)), np.float64)

    def rows(self, pairs: Iterable[tuple[Tiles, Tiles]]) -> list[float]:
        """`rows_by_chain` of pairs of chains, not compiled."""
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


class CutRows:
    """The same where cuts do not depend on each other: rows that each loads anew."""

    def __init__(self, axis: Axis, *, turned: bool) -> None:
        self._turned = turned
        self._lengths = (axis.taps, axis.outs) if turned else (axis.outs, axis.taps)
        length, other = self._lengths
        start, stop = np.indices((other + 1, other + 1)).reshape(2, -1)
        wide = np.maximum(stop - start, 1)  # pieces that end before they begin: not asked
        at = np.arange(length)[:, None]

        def rows(begin: Ints, many: Ints) -> Ints:
            out, tap = (begin, many), (start, wide)
            sides = (*tap, *out) if turned else (*out, *tap)
            return block_rows(axis.window, axis.rule, *sides)

        whole = rows(np.zeros_like(at), np.full_like(at, length))
        anew = rows(np.zeros_like(at), np.maximum(at, 1)) + rows(at, length - at) - whole
        anew[0] = whole[0]  # what the first piece begins with
        self._anew: Floats = anew.astype(float)
        self._sums: dict[Tiles, Floats] = {}
        self._places: dict[Tiles, Ints] = {}

    def rows_by_chain(self, chains: Ints, depth: int) -> Floats:
        """Rows that nested cuts of both loops load, as `PieceRows.rows_by_chain`."""
        if not is_compiled() or self._lengths[0] > SHORT:
            return np.array(self.rows(_pairs(chains, depth)), np.float64)
        if self._turned:
            chains = np.hstack([chains[:, depth:], chains[:, :depth]])
            depth = chains.shape[1] - depth
        return _compiled(self._anew, self._lengths, chains, depth, anew=True)

    def rows(self, pairs: Iterable[tuple[Tiles, Tiles]]) -> list[float]:
        """`rows_by_chain` of pairs of chains, not compiled."""
        found = []
        for pair in pairs:
            cut, other = pair[::-1] if self._turned else pair
            if cut not in self._sums:
                starts = _starts(self._lengths[0], cut)
                self._sums[cut] = self._anew[starts].sum(axis=0)
            if other not in self._places:
                begin = _starts(self._lengths[1], other)
                end = np.append(begin[1:], self._lengths[1])
                self._places[other] = begin * (self._lengths[1] + 1) + end
            found.append(float(self._sums[cut][self._places[other]].sum()))
        return found


def _compiled(
    table: Floats, lengths: tuple[int, int], chains: Ints, depth: int, *, anew: bool
) -> Floats:
    """Add up a table over the pieces of nested cuts of two loops, chain by chain."""
    found: Floats = kernel("spatial.rows_of_pieces")(table, lengths, chains, depth, anew)
    return found


def _pairs(chains: Ints, depth: int) -> Iterator[tuple[Tiles, Tiles]]:
    """Tiles of outputs and those of taps of each chain."""
    return ((chain[:depth], chain[depth:]) for chain in map(tuple, chains.tolist()))


def _starts(length: int, tiles: Tiles) -> Ints:
    """Where the pieces of nested cuts begin."""
    starts, most = np.zeros(1, np.int64), length
    for tile in tiles:
        if tile >= most:
            continue
        most = tile
        long = np.append(starts[1:], length) - starts
        number = -(-long // tile)
        first = np.repeat(np.cumsum(number) - number, number)
        starts = np.repeat(starts, number) + (np.arange(int(number.sum())) - first) * tile
    return starts


@lru_cache(maxsize=8)
def piece_rows(axis: Axis) -> PieceRows | CutRows | None:
    """Return the rows of all pieces of an axis; None where there are too many."""
    step, dilation = axis.window.step, axis.window.dilation
    turned = axis.taps > axis.outs
    long, short = max(axis.outs, axis.taps), min(axis.outs, axis.taps)
    apart = dilation % step if turned else step % dilation
    if not apart and axis.rule.rows == "touched" and long * (short + 1) ** 2 <= MOST:
        return CutRows(axis, turned=turned)
    few = (axis.outs + 1) ** 2 * (axis.taps + 1) ** 2 <= MOST
    return PieceRows(axis) if few else None
