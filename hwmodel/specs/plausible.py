"""What memories and operations of the bundled chips cost, to tell a mistaken unit from a price.

A unit that is mistaken is so by a thousand, mostly: pJ for fJ, a word for a bit, J of 10^9.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NEAR", "RANGES", "Range", "doubt"]

# Between what is known of a bit in a register or a Boolean operation and one word over a network,
# with room on both sides [pJ].
PLAUSIBLE_PJ = 1e-4, 1e5
NEAR = {"bit": 5.0, "operation": 10.0}  # how far beyond the bundled ones a price may lie


class Range(NamedTuple):
    """The least and the most that bundled chips pay [pJ per bit or operation], and which do."""

    least: float
    of_least: str
    most: float
    of_most: str


# Of all bundled chips in pJ but the microcontroller, whose price is a whole instruction's;
# tests/test_hardware.py goes through their files.
RANGES: dict[str, Range] = {
    "unlimited outermost memory": Range(3.92, "tpuv4i's HBM", 21.1, "v100-board's HBM2"),
    "memory on the chip": Range(0.023148, "ascend's L0-C", 15.48, "v100-board's L2"),
    "8-bit int-add": Range(0.007, "tpuv4i", 0.03, "horowitz45-array"),
    "16-bit int-add": Range(0.05, "horowitz45", 0.05, "horowitz45-array"),
    "32-bit int-add": Range(0.03, "tpuv4i", 0.1, "horowitz45-array"),
    "8-bit int-mac": Range(0.077, "tpuv4i", 2.0, "gap9"),
    "32-bit int-mac": Range(3.2, "horowitz45", 3.2, "horowitz45-array"),
    "16-bit add": Range(0.11, "tpuv4i", 0.4, "horowitz45-array"),
    "32-bit add": Range(0.38, "tpuv4i", 30.9, "v100-pcie-board"),
    "16-bit mac": Range(0.32, "tpuv4i", 2.19, "v100-pcie-board"),
    "32-bit mac": Range(1.176471, "ascend", 34.6, "v100-pcie-board"),
    "1-bit logic": Range(0.0043478, "binareye", 0.0043478, "binareye"),
}


def doubt(name: str, kind: str, pj: float, per: str, bare: bool) -> str:
    """Say that a price is far from any that is known; "" where it is near one, or 0.

    Args:
        name: of the memory or operation.
        kind: a key of `RANGES`; another one is compared with nothing but `PLAUSIBLE_PJ`.
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
    known = RANGES.get(kind)
    if known is None or known.least / NEAR[per] <= pj <= known.most * NEAR[per]:
        return ""
    near, whose = known[:2] if pj < known.least else known[2:]
    return (
        f"{name}: {pj:g} pJ per {per} is far from what bundled chips pay, the nearest {near:.4g} "
        f"({whose}); is the unit right?{hint}"
    )
