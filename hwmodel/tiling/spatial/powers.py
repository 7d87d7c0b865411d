"""The energy of mappings from below, as a sum of products of powers of their sizes.

Let pieces be the length over the tile, with no piece too short and nothing rounded up: every count
is then at least a product of powers of sizes, and so are the rows of I (`minorants`), the room of a
tile and what lies side by side.

What is left out on the way is left out of the energy: a sum that a memory finds no other resting
for saves a read, which is set against what is paid as often at least.

Source: docs/chips.md, 'The search'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log, prod

import numpy as np

from hwmodel.tiling.rows import products
from hwmodel.tiling.spatial.links import INDEXED, Kept, Plan, Ways, links
from hwmodel.tiling.spatial.minorants import Planes, in_runs, loaded, needed
from hwmodel.tiling.spatial.paths import Axis, rows
from hwmodel.tiling.spatial.products import ONE, WHOLE, Key, Least, Power, Rows, over, power
from hwmodel.tiling.spatial.space import GROUPS, Limit, Space
from hwmodel.tiling.spatial.terms import terms
from hwmodel.work.problem import Extents, Operand

__all__ = ["Former", "Tables"]

Paid = dict[Hashable, list[tuple[Plan, float]]]  # plans that count alike, with weights


@dataclass
class Tables:
    """What is the same whatever is held: planes below the rows of both axes, and what plans count.

    All of it is made when it is first asked for.
    """

    axes: tuple[Axis, Axis]
    known: dict[tuple[int, str], Planes] = field(default_factory=dict)
    counts: dict[Plan, Power] = field(default_factory=dict)
    sure: dict[Plan, float | None] = field(default_factory=dict)
    signatures: dict[Plan, tuple[Hashable, ...]] = field(default_factory=dict)
    runs: dict[int, bool] = field(default_factory=dict)

    def planes(self, which: int, kind: str) -> Planes:
        """Return them."""
        if (which, kind) not in self.known:
            axis = self.axes[which]
            found = loaded(axis) if kind == "loaded" else needed(axis)
            self.known[which, kind] = found
        return self.known[which, kind]

    def in_runs(self, which: int) -> bool:
        """Say `minorants.in_runs` of an axis."""
        if which not in self.runs:
            self.runs[which] = in_runs(self.axes[which])
        return self.runs[which]


@dataclass
class Former:
    """The energy of one choice of what is held as a sum of products of powers."""

    space: Space
    held: tuple[Operand, ...]
    tables: Tables
    apart: bool  # whether groups may lie side by side

    def size(self, loop: str, step: int) -> Key:
        """The variable of a step's tile: union tile and tile of every boundary, then a cycle's."""
        n, columns = getattr(self.space.problem.extent, loop), self.space.columns[loop]
        if n == 1:
            return loop, ONE
        place = columns.follows[step] if step < len(columns.follows) else ONE
        return (loop, ONE) if place < 0 else self.key(loop, place)

    def outside(self, key: Key) -> tuple[int, ...]:
        """Where a variable stands among the sizes of its loop, the outermost first."""
        return key[1:]

    def in_plan(self, loop: str, step: int, plan: Plan) -> Key:
        """The variable of the tile by which a plan counts."""
        return self.size(loop, step)

    def in_room(self, loop: str, step: int, operand: Operand) -> Key:
        """The variable of the tile that an operand has room for."""
        return self.size(loop, step)

    def key(self, loop: str, place: int) -> Key:
        """The variable of a size that may be chosen."""
        return loop, self.alias.get((loop, place), place)

    @cached_property
    def alias(self) -> dict[Key, int]:
        """Sizes that can only be as the one further in, as only one piece lies side by side."""
        found: dict[Key, int] = {}
        for limit in self.space.limits:
            for loop in limit.bound.loops:
                columns = self.space.columns[loop]
                if limit.bound.most == 1:
                    inner = ONE if limit.inner is None else columns.follows[limit.inner]
                    found[loop, columns.follows[limit.outer]] = inner
        return {
            (loop, outer): found.get((loop, inner), inner) for (loop, outer), inner in found.items()
        }

    def of(self, key: Key) -> Power:
        """The size itself."""
        loop, place = key
        if place == ONE:
            return Power(0.0, ())
        if place == WHOLE:
            return Power(log(getattr(self.space.problem.extent, loop)), ())
        return Power(0.0, ((key, 1.0),))

    def cuts(self, loop: str, plan: Plan, operand: Operand | None) -> tuple[tuple[Key, bool], ...]:
        """The steps of a plan that cut, up to the last that is kept."""
        found: list[tuple[Key, bool]] = []
        last: Key = (loop, WHOLE)
        steps = 2 * self.space.depth + 1
        for step, kept in zip(range(steps), plan.keeps(loop), strict=False):
            key = self.in_plan(loop, step, plan)
            if self.space.chip.array is None and step == steps - 1:
                key = last if loop == "M" and operand == "I" else (loop, ONE)
            if getattr(self.space.problem.extent, loop) == 1 or key == last:
                continue
            found.append((key, kept))
            last = key
        while found and not found[-1][1]:
            found.pop()
        return tuple(found)

    def pieces(self, loop: str, plan: Plan) -> Power:
        """Different values of the kept components, at least."""
        parts, above = [], self.of((loop, WHOLE))
        for key, kept in self.cuts(loop, plan, plan.operand):
            tile = self.of(key)
            if kept:
                parts += [above, Power(-tile.constant, tuple((n, -f) for n, f in tile.factors))]
            above = tile
        return power(parts)

    def signature(self, plan: Plan) -> tuple[Hashable, ...]:
        """What plans have in common that count alike, up to what meets nothing in an array."""
        if plan not in self.tables.signatures:
            self.tables.signatures[plan] = self._signature(plan)
        return self.tables.signatures[plan]

    def _signature(self, plan: Plan) -> tuple[Hashable, ...]:
        indexed = INDEXED[plan.operand] if plan.operand else ()
        loops = Extents._fields if plan.operand in ("I", None) else [
            x for x in Extents._fields if x not in indexed
        ]  # fmt: skip
        return plan.operand, *(self.cuts(x, plan, plan.operand) for x in loops)

    def count(self, plan: Plan) -> Power:
        """Return a product of powers that is no more than what a plan counts."""
        if plan not in self.tables.counts:
            self.tables.counts[plan] = self._count(plan)
        return self.tables.counts[plan]

    def _count(self, plan: Plan) -> Power:
        merged = self._merged(plan)
        if not merged:
            return self._product(plan, plan)
        if self.apart:
            return self._told_apart(plan, merged)
        lines = [self._shared(plan, some) for some in (merged, *self._but_one(merged))]
        return lines[0] if len(lines) == 1 else Power(0.0, ((Least(tuple(lines)), 1.0),))

    def _product(self, plan: Plan, met: Plan) -> Power:
        """A product over loops; axes where outputs and taps may not meet count by a plan apart."""
        operand, parts = plan.operand, []
        indexed = INDEXED[operand] if operand else ()
        for loops in GROUPS:
            if len(loops) == 2 and (operand in ("I", None) or plan.to_array):
                parts.append(self._met(loops, met if loops in self._padded else plan))
                continue
            for loop in loops:
                whole = loop in indexed
                parts.append(self.of((loop, WHOLE)) if whole else self.pieces(loop, plan))
        return power(parts)

    @property
    def _padded(self) -> list[tuple[str, ...]]:
        """Axes in which not every output meets a row through every tap."""
        return [x for x, met in zip(GROUPS[3:], self.space.all_meet, strict=True) if not met]

    def _merged(self, plan: Plan) -> list[int]:
        """Boundaries whose instances a plan merges, where pieces may meet nothing."""
        if not self._mixed(plan) or plan.operand == "I" or not plan.to_array:
            return []
        if not (self._padded or self.apart):
            return []
        kept = plan.kept[: self.space.depth]
        return [i for i, k in enumerate(kept) if not (k.place and k.indexed_place)]

    def _told_apart(self, plan: Plan, merged: list[int]) -> Power:
        """All instances told apart, and at most so many of them: groups side by side are some."""
        levels = self.space.chip.levels[1:]
        kept = tuple(Kept(time=True, place=True) for _ in plan.kept[: len(levels)])
        every = plan._replace(kept=(*kept, *plan.kept[len(levels) :]))
        shared = prod(levels[i].fanout for i in merged)
        return power([self._product(every, every), Power(-log(shared), ())])

    def _but_one(self, merged: list[int]) -> Iterator[list[int]]:
        """All of the boundaries but one, whose instances stay merged: see `minorants.in_runs`."""
        if all(self.tables.in_runs(GROUPS.index(axis) - 3) for axis in self._padded):
            for one in merged:
                if self._side_by_side(one):
                    yield [i for i in merged if i != one]

    def _side_by_side(self, boundary: int) -> list[Limit]:
        """The bounds of what lies side by side below a boundary."""
        places = 2 * boundary, 2 * boundary + 1
        return [x for x in self.space.limits if (x.outer, x.inner) == places]

    def _shared(self, plan: Plan, boundaries: list[int]) -> Power:
        """What a plan counts, if padded axes tell the instances of some boundaries apart.

        Of these one count stands for at most so many as other loops leave to such axes.
        """
        apart = [
            Kept(time=True, place=True) if i in boundaries else kept
            for i, kept in enumerate(plan.kept)
        ]
        padded = {loop for axis in self._padded for loop in axis}
        parts = [self._product(plan, plan._replace(kept=tuple(apart)))]
        for limit in (limit for i in boundaries for limit in self._side_by_side(i)):
            if padded & set(limit.bound.loops):
                parts.append(Power(-log(limit.bound.most), ()))
                for loop in set(limit.bound.loops) - padded:
                    inner = self.of(self.size(loop, limit.outer + 1))
                    parts += [self.of(self.size(loop, limit.outer)), over(inner)]
        return power(parts)

    def _mixed(self, plan: Plan) -> bool:
        """Whether a component is left out before one that is kept."""
        return any(
            not all(kept for _, kept in self.cuts(x, plan, plan.operand)) for x in Extents._fields
        )

    def _met(self, loops: tuple[str, ...], plan: Plan) -> Power:
        which = GROUPS.index(loops) - 3
        axis = self.space.axes[which]
        out, tap = (self.cuts(loop, plan, plan.operand) for loop in loops)
        if plan.operand == "I":
            if not all(kept for _, kept in (*out, *tap)):
                return Power(log(max(1, rows(axis, (), ()))), ())
            ends = [
                cut[-1][0] if cut else (loop, WHOLE)
                for loop, cut in zip(loops, (out, tap), strict=True)
            ]
            return self.rows(which, ends[0], ends[1], "loaded")
        met = products(axis.window, axis.rule, axis.outs, axis.taps)
        share = Power(log(met / (axis.outs * axis.taps)), ())
        across = self.of((loops[0], WHOLE)) if plan.operand == "O" else self.pieces(loops[0], plan)
        down = self.of((loops[1], WHOLE)) if plan.operand == "F" else self.pieces(loops[1], plan)
        return power([share, across, down])

    def rows(self, which: int, outs: Key, taps: Key, kind: str) -> Power:
        """Rows under a tile: a variable, or known."""
        axis = self.space.axes[which]
        names = [key for key in (outs, taps) if key[1] >= 0]
        if names:
            return Power(0.0, ((Rows(which, outs, taps, kind), 1.0),))
        if kind == "loaded" and outs[1] == taps[1] == WHOLE:
            return Power(log(max(1, rows(axis, (), ()))), ())
        planes = self.tables.planes(which, kind)
        ends = [self.of(key).constant for key in (outs, taps)]
        return Power(float((planes.constant + planes.slopes @ ends).max()), ())

    def energy(self) -> tuple[list[tuple[Power, float]], float] | None:
        """List products with their weights [chip's unit], and what is paid in any case."""
        space, fixed = self.space, 0.0
        paid: Paid = defaultdict(list)
        saved: list[tuple[Plan, float]] = []
        for plan, weight in terms(space.problem, space.chip, self.held, space.options).items():
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
        if any(self.cuts(x, plan, plan.operand) for x in self._looked_at(plan)):
            return None
        nothing = [
            tuple(
                self.space.chain(x, np.ones((1, self.space.columns[x].chosen), np.int64))
                for x in loops
            )
            for loops in GROUPS
        ]
        return float(prod(float(self.space.count(g, plan, s)[0]) for g, s in enumerate(nothing)))

    def _looked_at(self, plan: Plan) -> Sequence[str]:
        indexed = INDEXED[plan.operand] if plan.operand else ()
        if plan.operand == "I":
            return [x for x in Extents._fields if x not in ("N", "C")]
        return [x for x in Extents._fields if x not in indexed]

    def room(self, level: int, operand: Operand) -> Power:
        """What a tile takes of a level at least [elements]."""
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
                there = [x for x in memory.holds if x != "O" or sums]
                taken = [
                    power(
                        [self.room(level, x), Power(log(space.bits[x] / memory.capacity_bits), ())]
                    )
                    for x in there
                ]
                yield taken if any(one.factors for one in taken) else []

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
