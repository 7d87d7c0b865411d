"""Finds by trying which way of computing the same integers is the fastest for a shape.

Sums of agreements can be counted on words or multiplied as +1 and -1 in float32, where every
partial sum is an integer below 2**24 and therefore exact. Both give the same integers, so the
choice, made from the clock, never shows in a result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from hwmodel.trainer.bits import Bits, Sums, xnor_sums

__all__ = ["EXACT_FLOAT32", "compiled_sums", "count_agreements", "fastest"]

EXACT_FLOAT32 = 2**24  # float32 holds every integer up to here
WORTH_COMPILING = 2**22  # agreements a call; below, loading the compiler costs more than it saves
TRIALS = 5  # of every way, unless they take longer than
TRIAL_SECONDS = 0.1

_fastest: dict[tuple[object, ...], str] = {}


def fastest(case: tuple[object, ...], ways: dict[str, Callable[[], Sums]]) -> Sums:
    """Compute sums by the one of `ways` that was fastest when `case` first came up.

    Args:
        case: kind and extents of the layer, on which the time depends.
        ways: name -> computation of [rows, outs]; all give the same integers.
    """
    if len(ways) > 1 and case not in _fastest:
        seconds = _seconds(ways)
        _fastest[case] = min(seconds, key=seconds.__getitem__)
    return ways[_fastest.get(case, next(iter(ways)))]()


def _seconds(ways: dict[str, Callable[[], Sums]]) -> dict[str, float]:
    """The least time of every way [s], tried by turns so that a busy moment hits all alike.

    The first call does not count: it may compile, or touch new memory.
    """
    least = dict.fromkeys(ways, math.inf)
    for way in ways.values():
        way()
    begin = time.perf_counter()
    for _ in range(TRIALS):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            least[name] = min(least[name], time.perf_counter() - start)
        if time.perf_counter() - begin > TRIAL_SECONDS:
            break
    return least


def count_agreements(x: Bits, w: Bits, m: int) -> Sums:
    """`xnor_sums`, compiled where the extra `compiled` is installed and the case is large."""
    if len(x) * len(w) * m >= WORTH_COMPILING and find_spec("numba"):
        return compiled_sums(x, w, m)
    return xnor_sums(x, w, m)


def compiled_sums(x: Bits, w: Bits, m: int) -> Sums:
    """`xnor_sums` as a compiled loop; needs numba. Source, shapes and range: as there."""
    sums = np.empty((len(x), len(w)), np.int32)
    _compiled()(np.ascontiguousarray(x), np.ascontiguousarray(w.T), m, sums)
    return sums


@cache
def _compiled() -> Callable[..., None]:
    import numba

    compiled: Callable[..., None] = numba.njit(_loops(numba.njit(inline="always")(_ones)))
    return compiled


def _loops(ones: Any) -> Any:
    """The loop over rows, words and neurons; neurons innermost, so that they fill a vector."""

    def loops(x: Any, w: Any, m: Any, sums: Any) -> None:
        count = np.empty(w.shape[1], np.uint64)
        for row in range(x.shape[0]):
            count[:] = 0
            for word in range(x.shape[1]):
                value = x[row, word]
                for out in range(w.shape[1]):
                    count[out] += ones(value ^ w[word, out])
            for out in range(w.shape[1]):
                sums[row, out] = m - 2 * np.int64(count[out])

    return loops


def _ones(word: Any) -> Any:
    """Number of ones in 64 bits, by sums of neighbours of 1, 2, 4 bits and one product.

    Compilers know this form and put the processor's own instruction in its place.
    """
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    low = np.uint64(0x3333333333333333)
    word = (word & low) + ((word >> np.uint64(2)) & low)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)
