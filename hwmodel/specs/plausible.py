"""What memories and operations of the bundled chips cost, to tell a mistaken unit from a price.

A unit that is mistaken is so by a thousand, mostly: pJ for fJ, a word for a bit, J of 10^9.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hwmodel.specs.files import Number, SpecModel, Text, bundled_spec

__all__ = ["NEAR", "Range", "doubt", "ranges"]

# Between what is known of a bit in a register or a Boolean operation and one word over a network,
# with room on both sides [pJ].
PLAUSIBLE_PJ = 1e-4, 1e5
# How far below and above the bundled ones a price may lie.
NEAR = {"bit": (25.0, 5.0), "operation": (10.0, 10.0)}


class Range(SpecModel):
    """The least and the most that bundled chips pay [pJ per bit or operation], and which do."""

    least: Number
    of_least: Text
    most: Number
    of_most: Text


class Instructions(SpecModel):
    """What a bundled chip pays for operations that are instructions of a processor [pJ]."""

    of: Text
    pj: tuple[Number, ...]


class _Ranges(SpecModel):
    instructions: Instructions
    ranges: dict[str, Range]


@cache
def ranges() -> dict[str, Range]:
    """What the bundled chips pay, by the kind of memory or operation: plausible.yaml."""
    return _stated().ranges


@cache
def _stated() -> _Ranges:
    return bundled_spec(_Ranges, Path(__file__).with_suffix(".yaml"))


def doubt(name: str, kind: str, pj: float, per: str, bare: bool) -> str:
    """Say that a price is far from any that is known; "" where it is near one, or 0.

    Args:
        name: of the memory or operation.
        kind: a key of `ranges`; another one is compared with nothing but `PLAUSIBLE_PJ`.
        per: "bit" or "operation".
        bare: whether it was stated without a unit.
    """
    least, most = PLAUSIBLE_PJ
    hint = f" A bare number is in pJ per {per}" if bare else ""
    if not pj:
        return ""
    if not least <= pj <= most:
        between = f"outside {least:g} to {most:g}"
        return f"{name}: {pj:g} pJ per {per} is {between}; is the unit right?{hint}"
    known, (below, above) = ranges().get(kind), NEAR[per]
    if known is None or known.least / below <= pj <= known.most * above:
        return ""
    place = "a memory of this kind" if per == "bit" else "it alone"
    if pj < known.least:
        said = f"1/{_about(known.least / pj)} of the least that bundled chips pay for {place}"
        said += f", {known.least:.4g} ({known.of_least})"
    else:
        said = f"{_about(pj / known.most)} times the most that bundled chips pay for {place}"
        said += f", {known.most:.4g} ({known.of_most})"
    whole = _stated().instructions
    if per == "operation" and pj > known.most:
        if min(whole.pj) / NEAR[per][0] <= pj <= max(whole.pj):
            return ""
        said += f"; instructions cost {min(whole.pj):g} to {max(whole.pj):g} ({whole.of})"
    return f"{name}: {pj:g} pJ per {per} is {said}; is the unit right?{hint}"


def _about(times: float) -> str:
    """Write a factor in three digits, of a large one all places before the point.

    >>> _about(3924.6), _about(37.04), _about(5.1234)
    ('3,920', '37', '5.12')
    """
    near = float(f"{times:.3g}")
    return f"{near:,.0f}" if near >= 100 else f"{near:.3g}"
