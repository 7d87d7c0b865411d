"""Products of powers of sizes, in logarithms: constants and factors of variables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

__all__ = ["ONE", "WHOLE", "Key", "Least", "Pieces", "Power", "Rows", "Times", "over", "power"]

Key = tuple[str, int]  # a loop, and a place among its sizes that may be chosen
ONE, WHOLE = -1, -2  # in place of a place: sizes that are known


class Power(NamedTuple):
    """A product of powers: constant + sum of factor * variable, in logarithms."""

    constant: float
    factors: tuple[tuple[Hashable, float], ...]


def power(parts: Sequence[Power]) -> Power:
    """Multiply."""
    total: dict[Hashable, float] = defaultdict(float)
    for part in parts:
        for name, factor in part.factors:
            total[name] += factor
    kept = tuple(sorted(((n, f) for n, f in total.items() if abs(f) > 1e-12), key=repr))
    return Power(sum(part.constant for part in parts), kept)


class Rows(NamedTuple):
    """The rows of an axis under a tile of outputs and one of taps: a variable."""

    which: int
    outs: Key
    taps: Key
    kind: str  # loaded, or needed in a memory


class Least(NamedTuple):
    """What is no less than each of some products: a variable."""

    products: tuple[Power, ...]


class Pieces(NamedTuple):
    """The pieces that a chain of tiles cuts a loop into, down to one of its sizes: no variable."""

    key: Key


class Times(NamedTuple):
    """How often a tile goes into one further out, rounded up: no variable."""

    key: Key
    outer: Key  # the whole loop, too


def over(one: Power) -> Power:
    """Divide 1 by it."""
    return Power(-one.constant, tuple((n, -f) for n, f in one.factors))
