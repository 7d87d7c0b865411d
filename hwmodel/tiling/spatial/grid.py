"""Outputs and taps of a short axis, pair by pair: groups of them, however they come about."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import kernel
from hwmodel.tiling.spatial.numbered import distinct
from hwmodel.tiling.spatial.paths import Axis
from hwmodel.work.problem import Operand

__all__ = ["Classes", "Grid", "grid"]

MOST = 2**13  # pairs of an output and a tap, of which rows are looked at one by one
MET = 2**21  # of which it is only looked at which groups meet
KEPT = 2**22  # members of groups that are remembered
Ints = NDArray[np.int64]
Chain = tuple[int, ...]
Kept = tuple[bool, ...]
Cuts = tuple[Chain, Kept]  # tiles, and whether their pieces are told apart


class _Groups(NamedTuple):
    """Outputs or taps with equal kept components."""

    of: Ints  # number of the group of each
    sizes: Ints


class Classes(NamedTuple):
    """Indexes of one loop by those of another with which they touch a row."""

    members: Ints  # of the one loop, class by class
    ends: Ints  # where each class ends
    others: Ints  # of the other loop, with which those of each class touch a row
    stops: Ints  # where these end

    @classmethod
    def of(cls, touching: NDArray[np.bool_]) -> Classes:
        """Make them; `touching` is of each of the one loop and each of the other."""
        packed = np.packbits(touching, axis=1)
        words = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
        words[:, : packed.shape[1]] = packed
        different, at = distinct(words.view(np.int64))
        members = np.argsort(at, kind="stable")
        first = members[np.searchsorted(at[members], np.arange(len(different)))]
        which, others = np.nonzero(touching[first])
        counts = (np.bincount(some, minlength=len(different)) for some in (at, which))
        ends, stops = (np.cumsum(each) for each in counts)
        return cls(members, ends, others, stops)


class Grid:
    """The pairs of an output and a tap of an axis, and the row that each touches."""

    def __init__(self, axis: Axis) -> None:
        window, rule = axis.window, axis.rule
        out, tap = np.indices((axis.outs, axis.taps)).reshape(2, -1)
        position = out * window.step + tap * window.dilation - window.pad
        row = position // window.spread
        real = position % window.spread == 0
        if rule.padding == "skipped":
            real &= (row >= 0) & (row < window.size)
        self._axis = axis
        self._out, self._tap, self._row = out[real], tap[real], row[real]
        self._groups: dict[tuple[int, Cuts], _Groups] = {}
        self._kept = 0

    def rows(self, outs: Cuts, taps: Cuts) -> int:
        """Rows that pairs of groups load: `paths.rows`."""
        if not len(self._row):
            return 0
        out, tap = self._cut(self._axis.outs, outs), self._cut(self._axis.taps, taps)
        first = int(self._row.min())
        far = int(self._row.max()) + 1 - first
        pair = out.of[self._out] * len(tap.sizes) + tap.of[self._tap]
        touched = np.sort(pair * far + (self._row - first))
        new = np.append(True, touched[1:] != touched[:-1])
        if self._axis.rule.rows == "touched":
            return int(np.count_nonzero(new))
        begins = np.flatnonzero(np.append(True, np.diff(touched // far) != 0))
        ends = np.append(begins[1:], len(touched)) - 1
        return int((touched[ends] - touched[begins] + 1).sum())

    def met(self, operand: Operand | None, outs: Cuts, taps: Cuts) -> int:
        """Taps (of F), outputs (of O) or pairs of groups that touch a row: `paths.meetings`."""
        out, tap = self._cut(self._axis.outs, outs), self._cut(self._axis.taps, taps)
        pairs = np.zeros((len(out.sizes), len(tap.sizes)), np.bool_)
        pairs[out.of[self._out], tap.of[self._tap]] = True
        if operand == "F":
            return int(pairs.sum(axis=0) @ tap.sizes)
        if operand == "O":
            return int(pairs.sum(axis=1) @ out.sizes)
        return int(np.count_nonzero(pairs))

    def met_by_chain(
        self, operand: Operand | None, sizes: Ints, outs: Kept, taps: Kept
    ) -> NDArray[np.float64]:
        """`met` of many chains at once, compiled.

        Args:
            sizes: tiles of outputs, followed by those of taps [chain, size].
            outs: of their tiles, whether their pieces are told apart; taps alike.
        """
        lengths, keeps = (self._axis.outs, self._axis.taps), (outs, taps)
        kinds: tuple[Operand | None, ...] = (None, "O", "F")
        if self._turned:
            sizes = np.hstack([sizes[:, len(outs) :], sizes[:, : len(outs)]])
            lengths, keeps, kinds = lengths[::-1], keeps[::-1], (None, "F", "O")
        found: NDArray[np.float64] = kernel("spatial.meetings")(
            tuple(self._classes), lengths, sizes, *(np.array(x, np.bool_) for x in keeps),
            kinds.index(operand),
        )  # fmt: skip
        return found

    @property
    def _turned(self) -> bool:
        """Whether the longer loop is that of taps."""
        return self._axis.taps > self._axis.outs

    @cached_property
    def _classes(self) -> Classes:
        """Indexes of the longer loop by those of the shorter one."""
        touching = np.zeros((self._axis.outs, self._axis.taps), np.bool_)
        touching[self._out, self._tap] = True
        return Classes.of(touching.T if self._turned else touching)

    def _cut(self, length: int, cuts: Cuts) -> _Groups:
        """The groups of a loop; those of equal loops are equal."""
        if (length, cuts) not in self._groups:
            offset, number = np.arange(length), np.zeros(length, np.int64)
            for tile, kept in zip(*cuts, strict=True):
                place, offset = np.divmod(offset, tile)
                if kept:
                    number = number * (int(place.max()) + 1) + place
            every = np.bincount(number)
            there = every > 0
            of, sizes = (np.cumsum(there) - 1)[number], every[there]
            self._kept += length
            if self._kept > KEPT:
                self._groups.clear()
                self._kept = length
            self._groups[length, cuts] = _Groups(of, sizes)
        return self._groups[length, cuts]


@lru_cache(maxsize=8)
def grid(axis: Axis, *, met: bool = False) -> Grid | None:
    """Return the pairs of a short axis; None of a long one.

    Args:
        met: whether only meetings are asked for, which takes less.
    """
    return Grid(axis) if axis.outs * axis.taps <= (MET if met else MOST) else None
