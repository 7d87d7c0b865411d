"""Finds the value of a number at which the ranking of two methods reverses."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from hwmodel.vary.sensitivity.costs import Costs, overtaken
from hwmodel.vary.sensitivity.moves import Move, Number

__all__ = ["PRECISION", "Flip", "flip"]

PRECISION = 1.01  # ratio of the values between which the ranking flips


class Flip(NamedTuple):
    """The nearest value found at which the ranking is another, and the pair that it reverses."""

    value: Number
    pairs: tuple[tuple[int, int], ...]  # (cheaper before, cheaper there), numbers of methods


def flip(costs: Costs, index: int, move: Move) -> Flip:
    """Bisect a move of a number, on chip number `index`, that reverses some pair of methods.

    The value found lies at most 1 %, or one whole number, beyond a value at which the ranking
    holds. Where the ranking flips more than once on the way, one of the flips is found.
    """
    before = costs.at(index, {}).percents
    holds, flips = move.leaf.value, move.value
    assert isinstance(holds, (int, float)) and isinstance(flips, (int, float))

    def pairs(value: Number) -> list[tuple[int, int]]:
        return overtaken(before, costs.at(index, {move.leaf.path: value}).percents)

    found = pairs(flips)
    while not _close(holds, flips, move.leaf.whole):
        middle = (holds + flips) // 2 if move.leaf.whole else sqrt(holds * flips)
        there = pairs(middle)
        if there:
            flips, found = middle, there
        else:
            holds = middle
    return Flip(flips, tuple(found))


def _close(one: Number, other: Number, whole: bool) -> bool:
    low, high = sorted((one, other))
    return high <= low * PRECISION or (whole and high - low <= 1)
