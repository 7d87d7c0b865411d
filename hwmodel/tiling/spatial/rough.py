"""What plans count of long axes, about: for a search, whose mapping is then counted.

Outputs and taps that meet no row, between inserted zeros, follow one another in a period. Pieces
that are multiples of it begin alike, so that what is asked of several of them together meets what
one of them meets; others meet all. Borders are left out.

Holds for: axes that are long against their borders.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.rows import products
from hwmodel.tiling.spatial.paths import Axis
from hwmodel.work.problem import Operand, Window

__all__ = ["Cuts", "differing", "estimated"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Cuts(NamedTuple):
    """Chains of a loop."""

    length: int
    sizes: Ints  # [chain, size]
    keeps: tuple[bool, ...]  # of every size, whether its pieces are told apart

    @property
    def values(self) -> Floats:
        """The different values of what is kept."""
        return differing(self.length, self.sizes, self.keeps)

    @property
    def pieces(self) -> Floats:
        """All pieces up to the last that are told apart."""
        return differing(self.length, self.sizes, (True,) * self._last)

    @property
    def groups(self) -> Floats:
        """The members of one piece of these, at most."""
        if not self._last:
            return np.full(len(self.sizes), float(self.length))
        return self.sizes[:, self._last - 1].astype(np.float64)

    def aligned(self, period: int) -> NDArray[np.bool_]:
        """Whether all pieces begin where the period does."""
        return self._in_step([*range(self._last)], period)

    def alike(self, period: int) -> NDArray[np.bool_]:
        """Whether pieces that are taken together begin alike."""
        return self._in_step([i for i in range(self._last) if not self.keeps[i]], period)

    def _in_step(self, places: list[int], period: int) -> NDArray[np.bool_]:
        """Whether sizes are multiples of a period; one that cuts nothing need not be."""
        above = np.hstack([np.full((len(self.sizes), 1), self.length), self.sizes])
        here = self.sizes[:, places]
        return np.asarray(((here % period == 0) | (here >= above[:, places])).all(axis=1))

    @property
    def _last(self) -> int:
        """How many sizes there are up to the last that is kept."""
        some = self.keeps[: self.sizes.shape[1]]
        return max((i + 1 for i, kept in enumerate(some) if kept), default=0)


def estimated(axis: Axis, operand: Operand | None, outs: Cuts, taps: Cuts) -> Floats:
    """Return about what a plan counts of an axis: rows (I), taps (F), outputs (O), or pairs."""
    window, met = axis.window, products(axis.window, axis.rule, axis.outs, axis.taps)
    periods = [window.spread // gcd(by, window.spread) for by in (window.step, window.dilation)]
    if operand == "I":
        reach = (axis.taps / taps.pieces - 1) * window.dilation
        whole = ((axis.outs - 1) * window.step + reach + 1) / window.spread
        rows: Floats = taps.pieces * (
            np.minimum(whole, window.size) + (outs.pieces - 1) * _halo(window, outs, reach, periods)
        )
        return np.minimum(rows, met)
    share: Floats = np.full(len(outs.sizes), met / (axis.outs * axis.taps))
    for cuts, period in zip((outs, taps), periods, strict=True):
        share = share * np.where(cuts.alike(period), np.minimum(cuts.groups, period), period)
    across = float(axis.outs) if operand == "O" else outs.values
    down = float(axis.taps) if operand == "F" else taps.values
    found: Floats = across * down * np.minimum(share, 1.0)
    return found


def _halo(window: Window, outs: Cuts, reach: Floats, periods: list[int]) -> Floats:
    """Rows that both sides of a cut of the outputs touch, through taps so far apart."""
    first = -(window.pad // window.spread)
    begun = np.ceil((reach - window.pad) / window.spread) - first  # at the start of a period
    rows = np.where(outs.aligned(periods[0]), begun, reach / window.spread)
    found: Floats = np.maximum(0, rows - (window.step - 1) / window.spread)
    return found


def differing(length: int, sizes: Ints, keeps: tuple[bool, ...]) -> Floats:
    """Return `paths.values` of many chains at once.

    Args:
        sizes: [chain, size].
        keeps: of every size, whether its pieces are told apart.
    """
    if is_compiled():
        found: Floats = kernel("spatial.pieces")(length, sizes, np.array(keeps, np.bool_))
        return found
    shape = len(sizes)
    kinds: list[tuple[Ints, Ints]] = [(np.full(shape, length), np.ones(shape, np.int64))]
    for tile, kept in zip(sizes.T, keeps, strict=False):
        full: Ints = np.zeros(shape, np.int64)
        rests: list[tuple[Ints, Ints]] = []
        for piece, number in kinds:
            whole: Ints = piece // tile
            rest: Ints = piece % tile
            full = full + (whole if kept else np.minimum(whole, 1)) * number
            left = (rest > 0) if kept else (rest > 0) & (whole == 0)
            rests.append((rest, number * left))
        kinds = [(tile, full), *rests]
    result: Floats = np.sum([number for _, number in kinds], axis=0).astype(np.float64)
    return result
