"""The energy of mappings from below, as a sum of products of powers of their sizes.

What plans count is in `counts`; the room of a tile and what lies side by side are sums and products
of powers, too. What is left out on the way is left out of the energy: a sum that a memory finds no
other resting for saves a read, which is set against what is paid as often at least.

Source: docs/chips.md, 'The search'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from math import log, prod

import numpy as np

from hwmodel.tiling.spatial.counts import Counts
from hwmodel.tiling.spatial.links import INDEXED, Plan, Ways, links
from hwmodel.tiling.spatial.products import ONE, WHOLE, Key, Power, over, power
from hwmodel.tiling.spatial.space import GROUPS
from hwmodel.work.problem import Extents, Operand

__all__ = ["Former"]

Paid = dict[Hashable, list[tuple[Plan, float]]]  # plans that count alike, with weights


class Former(Counts):
    """The energy of one choice of what is held as a sum of products of powers."""

    alike = True  # whether sizes are bounded alike whatever is held

    def energy(self) -> tuple[list[tuple[Power, float]], float] | None:
        """List products with their weights [chip's unit], and what is paid in any case."""
        space, fixed = self.space, 0.0
        paid: Paid = defaultdict(list)
        saved: list[tuple[Plan, float]] = []
        for plan, weight in space.paid.terms(self.held).items():
            sure = self._sure(plan)
            if sure is not None:
                fixed += weight * sure
            elif weight > 0:
                paid[self.signature(plan)].append((plan, weight))
            else:
                saved.append((plan, weight))
        for plan, weight in saved:
            for key in (self.signature(plan), self._arriving(plan)):
                weight = self._set_against(paid, key, weight)
            if weight < 0:
                return None
        found = [(self.count(p), w) for several in paid.values() for p, w in several if w > 0]
        return found, fixed

    def _set_against(self, paid: Paid, key: Hashable, weight: float) -> float:
        """Take what is saved from what is paid as often at least; return what is left."""
        for i, (plan, there) in enumerate(paid.get(key, [])):
            used = min(there, -weight)
            paid[key][i] = plan, there - used
            weight += used
        return weight

    def _arriving(self, plan: Plan) -> tuple[Hashable, ...]:
        """The sums that arrive where those of a plan begin, which are no fewer."""
        ways = Ways(self.space.chip, self.held)
        for link in links(self.space.chip, "O"):
            if ways.begun(link) == plan:
                return self.signature(ways.crossing(link, link.above))
        return ()

    def _sure(self, plan: Plan) -> float | None:
        """What a plan counts whatever the tiles; None where it depends on them."""
        if plan not in self.tables.sure:
            self.tables.sure[plan] = self._counted(plan)
        return self.tables.sure[plan]

    def _counted(self, plan: Plan) -> float | None:
        if self.rounds(plan) or any(
            self.cuts(x, plan, plan.operand) for x in self._looked_at(plan)
        ):
            return None
        return prod(self._counted_once(group, plan) for group in range(len(GROUPS)))

    def _counted_once(self, group: int, plan: Plan) -> float:
        """What a plan counts of an axis that it sees no cut of."""
        factors, space = self.space.factors(group, plan), self.space
        if factors is not None:
            return prod(factor or 1.0 for factor in factors)
        ones = (np.ones((1, space.columns[x].chosen), np.int64) for x in GROUPS[group])
        sizes = tuple(map(space.chain, GROUPS[group], ones))
        return float(space.count(group, plan, sizes)[0])

    def _looked_at(self, plan: Plan) -> Sequence[str]:
        indexed = INDEXED[plan.operand] if plan.operand else ()
        if plan.operand == "I":
            return [x for x in Extents._fields if x not in ("N", "C")]
        return [x for x in Extents._fields if x not in indexed]

    def room(self, level: int, operand: Operand) -> Power:
        """What a tile takes of a level at least [elements]."""
        if (level, operand) not in self.tables.rooms:
            self.tables.rooms[level, operand] = self._room(level, operand)
        return self.tables.rooms[level, operand]

    def _room(self, level: int, operand: Operand) -> Power:
        step, parts = 2 * level - 1, []
        for loops in GROUPS:
            if operand == "I" and len(loops) == 2:
                keys = [self.in_room(loop, step, operand) for loop in loops]
                parts.append(self.rows(GROUPS.index(loops) - 3, keys[0], keys[1], "needed"))
                continue
            own = (x for x in loops if x in INDEXED[operand])
            parts += [self.of(self.in_room(x, step, operand)) for x in own]
        return power(parts)

    def rooms(self) -> Iterator[list[Power]]:
        """Shares of every memory that a tile takes; nothing of one in which all always fits."""
        space = self.space
        for level in range(1, space.depth + 1):
            inmost = level == space.depth and space.chip.array is not None
            for memory in space.chip.levels[level].buffers:
                if memory.capacity_bits is None:
                    continue
                sums = inmost or self.sums_rest(level)
                there = [x for x in memory.holds if space.bits[x] and (x != "O" or sums)]
                taken = [
                    (self.room(level, x), log(space.bits[x] / memory.capacity_bits)) for x in there
                ]
                found = [one._replace(constant=one.constant + share) for one, share in taken]
                yield found if any(one.factors for one in found) else []

    def sums_rest(self, level: int) -> bool:
        """Whether sums take room in a level without an array."""
        return self.held[level - 1] == "O"

    def orders(self) -> Iterator[Power]:
        """Products of powers that are at most 1: no size is above the next one out or below 1."""
        for loop in Extents._fields:
            above: Key = (loop, WHOLE)
            for step in range(2 * self.space.depth + 1):
                key = self.size(loop, step)
                if key == above or key[1] == ONE:
                    continue
                yield power([self.of(key), over(self.of(above))])
                above = key
            if above[1] >= 0:
                yield over(self.of(above))

    def spreads(self) -> Iterator[Power]:
        """Products of powers that are at most 1: of what lies side by side."""
        for limit in self.space.limits:
            parts = [Power(-log(limit.bound.most), ())]
            for loop in limit.bound.loops:
                inner = (loop, ONE) if limit.inner is None else self.size(loop, limit.inner)
                parts += [self.of(self.size(loop, limit.outer)), over(self.of(inner))]
            together = power(parts)
            if together.factors:
                yield together
