"""Bounds of sizes and of how often one goes into another: parts of all mappings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf, log

from hwmodel.tiling.spatial.products import WHOLE, Key, Pieces, Power, Times
from hwmodel.tiling.spatial.whole_pieces import Factors, factors

__all__ = ["Box", "Chains", "Line", "is_empty", "pieces", "times_bounded", "within"]

Box = dict[Hashable, tuple[float, float]]  # least and most of sizes and of `Times`
Chains = Mapping[str, Sequence[Key]]  # sizes of every loop that may be chosen, the outermost first
Line = tuple[tuple[tuple[Hashable, float], ...], float]  # sum of factor * variable, at most
CLOSE = 1e-4  # beyond its bounds that a number of times is let, in logarithms


def within(box: Box, chains: Chains, lengths: Mapping[str, int]) -> Box:
    """Return a box whose sizes are bounded by those outside and inside them, too."""
    found = dict(box)
    parted = {name.key[0] if isinstance(name, Times) else name[0] for name in box}  # type: ignore[index]
    for loop in parted:
        own, length = chains[loop], lengths[loop]
        known: list[tuple[float, float]] = []
        for at, name in enumerate(own):
            low, high = box.get(name, (1, length))
            high = min(high, known[-1][1] if known else length)
            for outer, (least, most) in zip(
                [(loop, WHOLE), *own[:at]], [(length, length), *known], strict=True
            ):
                few, many = box.get(Times(name, outer), (1, inf))
                if few > 2:
                    high = min(high, most // (few - 1))
                if many < inf:
                    low = max(low, -(-least // many))
            known.append((low, high))
        low = 1.0
        for name, (least, most) in zip(reversed(own), reversed(known), strict=True):
            low = max(low, least)
            found[name] = low, most
    return found


def is_empty(box: Box) -> bool:
    """Whether nothing is within a box."""
    return any(least > most for least, most in box.values())


def times_bounded(box: Box, lengths: Mapping[str, int]) -> list[Line]:
    """List bounds of how often tiles go into ones further out.

    Rounded up k times or more is more than k - 1 times.
    """
    found: list[Line] = []
    for name, (least, most) in box.items():
        if not isinstance(name, Times):
            continue
        parts: tuple[tuple[Hashable, float], ...] = ((name.key, -1.0),)
        whole = log(lengths[name.key[0]]) if name.outer[1] == WHOLE else 0.0
        if not whole:
            parts = ((name.outer, 1.0), *parts)
        if most < inf:
            found.append((parts, log(most) + CLOSE - whole))
        if least > 2:
            found.append((tuple((n, -f) for n, f in parts), whole + CLOSE - log(least - 1)))
    return found


def pieces(
    box: Box,
    chains: Chains,
    lengths: Mapping[str, int],
    several: Sequence[Pieces],
    near: Mapping[Hashable, float],
) -> tuple[dict[Pieces, Power], dict[Hashable, float]]:
    """Return pieces as powers of sizes, and shares of loops that surely lie in full ones.

    Args:
        box: of `within`.
        near: logarithms of sizes at which the powers should be high; none: nowhere.
    """
    found: dict[Pieces, Power] = {}
    full: dict[Hashable, float] = {}
    known: dict[str, list[Factors]] = {}
    for one in several:
        loop, own = one.key[0], chains[one.key[0]]
        if one.key not in box:
            found[one] = Power(log(lengths[loop]), ((one.key, -1.0),))
            continue
        if loop not in known:
            places = {key: at for at, key in enumerate(own)}
            times = {
                (places[name.key], places.get(name.outer, -1)): some
                for name, some in box.items()
                if isinstance(name, Times) and name.key[0] == loop
            }
            logs = [near[key] for key in own] if near else None
            known[loop], shares = factors(lengths[loop], [box[key] for key in own], times, logs)
            full |= dict(zip(own, shares, strict=True))
        constant, slopes = known[loop][own.index(one.key)]
        found[one] = Power(constant, tuple((own[at], slope) for at, slope in slopes))
    return found, full
