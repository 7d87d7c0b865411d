"""Pieces of a loop from below, where it is known how often a tile goes into one further out.

A chain of tiles cuts a loop of D into at least D / t pieces of the size t. Of a tile further out of
T = p t each full piece has p such pieces, rounded up: k or more, for none is longer than t. If a
share s of the loop lies in full pieces of the size T, there are at least

    D / t (1 - s + s k / p) >= D / t (k / p)^s

pieces, for what is shorter has as many as without rounding up, and a mean of powers is no more than
the mean. Of what lies in full pieces of the next tile out floor(p) / p lies in full ones of t.

Source: ours; the inequality of arithmetic and geometric means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, inf, log
from typing import NamedTuple

__all__ = ["Factors", "factors"]

NEAR = 1e-12  # relative: numbers that differ by less are equal
Range = tuple[float, float]  # least and most


class Factors(NamedTuple):
    """Pieces are at least the exponential of constant + sum of slope * logarithm of a tile."""

    constant: float
    slopes: tuple[tuple[int, float], ...]  # by the tile's place in its chain


def factors(
    length: int,
    sizes: Sequence[Range],
    times: Mapping[tuple[int, int], Range],
    near: Sequence[float] | None = None,
) -> tuple[list[Factors], list[float]]:
    """Return factors of the pieces that each tile of a chain cuts a loop into, and what share of
    the loop surely lies in full ones.

    Args:
        length: of the loop, which is further out than all tiles: its place is -1.
        sizes: of the tiles, the outermost first.
        times: how often a tile goes into one further out, rounded up, by their places.
        near: logarithms of tiles at which the factors of several that hold should be high.
    """
    every = [(float(length), float(length)), *sizes]
    logs = [log(length), *(near or [log(low * high) / 2 for low, high in sizes])]
    full, found = [1.0], []  # shares in full pieces, of the whole first
    for inner in range(1, len(every)):
        best, chosen = 0.0, Factors(log(length), ((inner - 1, -1.0),))
        for outer in range(inner):
            few, many, whole = _often(every[outer], every[inner], times.get((inner - 1, outer - 1)))
            if many > whole * (1 + NEAR):
                continue
            gain = full[outer] * (log(whole) - logs[outer] + logs[inner])
            if gain > best:
                best, share = gain, full[outer]
                chosen = Factors(
                    log(length) + share * log(whole),
                    ((inner - 1, share - 1), (outer - 1, -share)),
                )
        if outside := [s for at, s in chosen.slopes if at < 0]:
            chosen = Factors(
                chosen.constant + outside[0] * log(length),
                tuple((at, s) for at, s in chosen.slopes if at >= 0),
            )
        found.append(chosen)
        few, many, _ = _often(every[inner - 1], every[inner], times.get((inner - 1, inner - 2)))
        below = floor(few * (1 + NEAR))
        full.append(full[-1] * min(1.0, below / min(many, below + 1)))
    return found, full[1:]


def _often(outer: Range, inner: Range, known: Range | None) -> tuple[float, float, float]:
    """How often a tile goes into another at least and at most, and at least rounded up."""
    least, most = known or (1, inf)
    few = max(1.0, outer[0] / inner[1], least - 1)
    many = max(few, min(outer[1] / inner[0], most))
    return few, many, max(least, ceil(outer[0] / inner[1] * (1 - NEAR)))
