"""How many tilings of a run, or of several, are proved optimal, and how far the others may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hwmodel.model.residency.products import NEAR
from hwmodel.model.workload import Task
from hwmodel.tiling.tile import Tiling

__all__ = ["Proof", "proof", "together"]


class Proof(NamedTuple):
    """Tilings of a run, those that are not proved optimal, and their largest gap."""

    tilings: int
    unproved: int = 0
    near: int = 0  # of the unproved, with a gap of `NEAR` at most
    gap: float = 0.0  # 1 - lower bound / energy, the largest

    @property
    def sentence(self) -> str:
        """Say how many tilings are not proved; "" where all are."""
        if not self.unproved:
            return ""
        found = f"{self.unproved:,} of {self.tilings:,} tilings are not proved optimal"
        if self.near == self.unproved:
            return f"{found}: the largest gap to a lower bound is not above {100 * NEAR:.2f} %"
        near = f", {self.near:,} of them within {100 * NEAR:.2f} %" * (self.near > 0)
        return f"{found}{near}: the largest gap to a lower bound is {100 * self.gap:.1f} %"


def proof(tilings: Sequence[tuple[Task, Tiling]]) -> Proof:
    """Count what the optimal search proved of the tilings of a run."""
    gaps = [t.certificate.gap for _, t in tilings if t.certificate and t.certificate.gap]
    near = sum(gap <= NEAR for gap in gaps)
    return Proof(len(tilings), len(gaps), near, max(gaps, default=0.0))


def together(proofs: Iterable[Proof]) -> Proof:
    """Add up the tilings of several runs."""
    tilings, unproved, near, gaps = zip(*proofs, strict=True)
    return Proof(sum(tilings), sum(unproved), sum(near), max(gaps))
