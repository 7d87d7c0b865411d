"""Rows of whole numbers, each numbered when it first comes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import is_compiled, kernel

__all__ = ["Numbered", "distinct"]

Ints = NDArray[np.int64]
FIRST = 2**8  # rows that there is room for at first


class Numbered:
    """Different rows in the order in which they came."""

    def __init__(self, wide: int) -> None:
        self._rows = np.empty((0, wide), np.int64)
        self._slots = np.empty(0, np.int64)  # of compiled loops
        self._places: dict[bytes, int] = {}  # without these
        self._number = 0

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._number

    @property
    def rows(self) -> Ints:
        """All rows [row, column]."""
        return self._rows[: self._number]

    def places(self, rows: Ints) -> Ints:
        """Return the numbers of rows, which are entered where they are new."""
        if is_compiled():
            self._widen(self._number + len(rows))
            at, given = np.empty(len(rows), np.int64), np.ascontiguousarray(rows)
            entered = kernel("chains.entered")
            self._number = entered(self._rows, self._number, self._slots, given, at)
            return at
        known, before = self._places, self._number
        at = np.array([known.setdefault(row, len(known)) for row in _bytes(rows)], np.int64)
        if len(known) > before:
            first = np.unique(at, return_index=True)[1][before - len(known) :]
            self._rows = np.concatenate([self._rows, rows[first]])
            self._number = len(known)
        return at

    def _widen(self, number: int) -> None:
        """Make room for so many rows."""
        if number <= len(self._rows):
            return
        room = FIRST
        while room < number:
            room *= 2
        old = self.rows
        self._rows = np.empty((room, old.shape[1]), np.int64)
        self._slots = np.full(4 * room, -1, np.int64)
        if len(old):
            at = np.empty(len(old), np.int64)
            kernel("chains.entered")(self._rows, 0, self._slots, old, at)


def _bytes(rows: Ints) -> list[bytes]:
    """Each row as bytes."""
    every, wide = rows.tobytes(), rows.shape[1] * rows.itemsize
    return [every[i * wide : (i + 1) * wide] for i in range(len(rows))]


def distinct(rows: Ints) -> tuple[Ints, Ints]:
    """Return the different rows in the order in which they come, and the place of each row."""
    found = Numbered(rows.shape[1])
    at = found.places(rows)
    return found.rows, at
