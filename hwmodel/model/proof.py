"""How many tilings of a run, or of several, are proved optimal, and how far the others may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from hwmodel.model.residency.products import NEAR
from hwmodel.model.workload import Task
from hwmodel.tiling.tile import Tiling
from hwmodel.work.tensor import Pass

__all__ = ["Proof", "proof", "together"]


class Proof(NamedTuple):
    """Tilings of a run, those that are not proved optimal, and their largest gap."""

    tilings: int
    unproved: int = 0
    near: int = 0  # of the unproved, with a gap of `NEAR` at most
    gap: float = 0.0  # 1 - lower bound / energy, the largest
    widest: str = ""  # layer and pass of that gap, as tables name them

    def sentence(self, run: str = "") -> str:
        """Say how many tilings are not proved, and which is the furthest off; "" where all are.

        Args:
            run: that has the largest gap; "" where no other could be meant.
        """
        if not self.unproved:
            return ""
        found = f"{self.unproved:,} of {self.tilings:,} tilings are not proved optimal"
        if self.near == self.unproved:
            return f"{found}: the largest gap to a lower bound is not above {100 * NEAR:.2f} %"
        near = f", {self.near:,} of them within {100 * NEAR:.2f} %" * (self.near > 0)
        of = f", of {run}" if run else ""
        most = f"{100 * self.gap:.1f} % ({self.widest}{of})"
        return f"{found}{near}: the largest gap to a lower bound is {most}"


def proof(tilings: Sequence[tuple[Task, Tiling]]) -> Proof:
    """Count what the optimal search proved of the tilings of a run."""
    known = ((t.certificate.gap, x) for x, t in _in_order(tilings) if t.certificate)
    open_ = [(gap, task) for gap, task in known if gap]
    if not open_:
        return Proof(len(tilings))
    near = sum(gap <= NEAR for gap, _ in open_)
    gap, (layer, work, _) = max(open_, key=lambda one: one[0])  # of equal ones the first
    return Proof(len(tilings), len(open_), near, gap, f"{layer}, {work.pass_.replace('_', ' ')}")


def _in_order(tilings: Sequence[tuple[Task, Tiling]]) -> list[tuple[Task, Tiling]]:
    """Layer by layer, pass by pass: what goes forward once more stands behind all in a workload."""
    layers = {layer: at for at, layer in enumerate(dict.fromkeys(x.layer for x, _ in tilings))}
    passes = [*Pass]
    return sorted(tilings, key=lambda x: (layers[x[0].layer], passes.index(x[0].work.pass_)))


def together(proofs: Iterable[Proof]) -> Proof:
    """Add up the tilings of several runs; of equal gaps the first run's is named."""
    every = [*proofs]
    tilings, unproved, near, *_ = zip(*every, strict=True)
    widest = max(every, key=attrgetter("gap"))
    return widest._replace(tilings=sum(tilings), unproved=sum(unproved), near=sum(near))
