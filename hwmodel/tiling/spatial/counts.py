"""What plans count, from below: products of powers of sizes.

Let pieces be the length over the tile, with no piece too short and nothing rounded up: every count
is then at least a product of powers of sizes, and so are the rows of I (`minorants`). Where pieces
of an output and of a tap may meet nothing, in padding, the share of pairs that meet comes in, and
instances that a count takes together are told apart first.

Source: docs/chips.md, 'The search'. Holds for: every chip; judged by mappings of all kinds on
chips that just hold them (`tests/test_relaxation.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from math import log, prod

from hwmodel.tiling.rows import products
from hwmodel.tiling.spatial.links import INDEXED, Kept, Plan
from hwmodel.tiling.spatial.minorants import (
    Part,
    Planes,
    Table,
    in_runs,
    loaded,
    loaded_table,
    needed,
)
from hwmodel.tiling.spatial.paths import Axis, rows
from hwmodel.tiling.spatial.products import ONE, WHOLE, Key, Least, Pieces, Power, Rows, over, power
from hwmodel.tiling.spatial.space import GROUPS, Limit, Space
from hwmodel.work.problem import Extents, Operand

__all__ = ["Counts", "Tables"]


@dataclass
class Tables:
    """What is the same whatever is held: planes below the rows of both axes, and what plans count.

    All of it is made when it is first asked for.
    """

    axes: tuple[Axis, Axis]
    counts: dict[Plan, Power] = field(default_factory=dict)
    sure: dict[Plan, float | None] = field(default_factory=dict)
    signatures: dict[Plan, tuple[Hashable, ...]] = field(default_factory=dict)
    runs: dict[int, bool] = field(default_factory=dict)
    rooms: dict[tuple[int, Operand], Power] = field(default_factory=dict)

    def planes(self, which: int, kind: str, part: Part | None = None) -> Planes:
        """Return them, of all tiles or of some."""
        return (loaded if kind == "loaded" else needed)(self.axes[which], part)

    def loaded(self, which: int) -> Table:
        """Return the table below whose rows they are."""
        return loaded_table(self.axes[which])

    def in_runs(self, which: int) -> bool:
        """Say `minorants.in_runs` of an axis."""
        if which not in self.runs:
            self.runs[which] = in_runs(self.axes[which])
        return self.runs[which]


@dataclass
class Counts:
    """What plans count under one choice of what is held, as products of powers."""

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

    def pieces(self, loop: str, plan: Plan, *, whole: bool = True) -> Power:
        """Different values of the kept components, at least.

        Args:
            whole: whether each piece counts, be it ever so short.
        """
        parts, above = [], self.of((loop, WHOLE))
        cuts = self.cuts(loop, plan, plan.operand)
        if whole and cuts and cuts[-1][0][1] >= 0 and all(kept for _, kept in cuts):
            return self._whole(loop, plan, Power(0.0, ((Pieces(cuts[-1][0]), 1.0),)))
        for key, kept in cuts:
            tile = self.of(key)
            if kept:
                parts += [above, Power(-tile.constant, tuple((n, -f) for n, f in tile.factors))]
            above = tile
        return self._whole(loop, plan, power(parts))

    def _whole(self, loop: str, plan: Plan, pieces: Power) -> Power:
        """Pieces that cycles of an array cut, if it takes so many members of a loop at most.

        They are no fewer than the loop cut into such cycles, rounded up.
        """
        least = self.least_pieces(loop)
        cuts = self.cuts(loop, plan, plan.operand)
        last = self.size(loop, 2 * self.space.depth)
        if least is None or not cuts or cuts[-1][0] != last or not all(kept for _, kept in cuts):
            return pieces
        return Power(0.0, ((Least((pieces, Power(log(least), ()))), 1.0),))

    def least_pieces(self, loop: str) -> int | None:
        """How many cycles cut a loop at least, where that is no even division; else None."""
        n = self.space.problem.extent._asdict()
        alone = [
            limit.bound.most
            for limit in self.space.limits
            if limit.inner is None
            and loop in limit.bound.loops
            and all(n[other] == 1 for other in limit.bound.loops if other != loop)
        ]
        if loop not in ("N", "M", "C") or not alone or n[loop] % min(alone) == 0:
            return None
        return -(-n[loop] // min(alone)) if n[loop] > min(alone) else None

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
        if self.rounds(plan):
            return self._told_apart(plan)
        met = plan.to_array and plan.operand != "I" and self._padded
        if not met or not self._mixed(plan):
            lines = [self._product(plan, plan)]
        else:
            lines = list(self._where_some_meet(plan))
        moments = plan.operand is None and self._mixed(plan)
        if moments and any(self.least_pieces(loop) for loop in ("N", "M", "C")):
            lines.append(self._told_apart(plan))
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

    def rounds(self, plan: Plan) -> bool:
        """Whether a plan counts moments, and groups side by side share theirs."""
        return self.apart and plan.operand is None and not plan.kept[0].place

    def _told_apart(self, plan: Plan) -> Power:
        """All instances told apart, and at most so many of them: groups side by side are some."""
        levels = self.space.chip.levels[1:]
        kept = tuple(Kept(time=True, place=True) for _ in levels)
        every = plan._replace(kept=(*kept, *plan.kept[len(levels) :]))
        shared = prod(level.fanout for level in levels)
        return power([self._product(every, every), Power(-log(shared), ())])

    def _where_some_meet(self, plan: Plan) -> Iterator[Power]:
        """What a plan counts at least where pieces of padded axes may meet nothing.

        The instances of all boundaries told apart, or of all but one: of a component that is left
        out before others that are kept, see `minorants.in_runs`.
        """
        merged = [
            i
            for i, kept in enumerate(plan.kept[: self.space.depth])
            if not (kept.place and kept.indexed_place)
        ]
        runs = all(self.tables.in_runs(GROUPS.index(axis) - 3) for axis in self._padded)
        first = self._apart(plan, merged)
        left = self._left_out(first)
        if not left or (runs and left == 1):
            yield from self._shared(plan, first, merged)
        else:
            # A group has a member at least, and is met by all of those that its times part.
            never = plan._replace(kept=tuple(Kept(False, False, False) for _ in plan.kept))
            yield self._product(plan, never)
        for one in merged:
            others = [i for i in merged if i != one]
            told = self._apart(plan, others)
            if runs and self._side_by_side(one) and self._left_out(told) <= 1:
                yield from self._shared(plan, told, others)

    def _apart(self, plan: Plan, boundaries: list[int]) -> Plan:
        """The plan that tells the instances of some boundaries apart."""
        kept = (x._replace(place=True, indexed_place=True) for x in plan.kept)
        return plan._replace(
            kept=tuple(
                told if i in boundaries else own
                for i, (told, own) in enumerate(zip(kept, plan.kept, strict=True))
            )
        )

    def _left_out(self, plan: Plan) -> int:
        """How many components of padded axes are left out before some that are kept."""
        found = set()
        for loop in (loop for axis in self._padded for loop in axis):
            left = {key for key, kept in self.cuts(loop, plan, plan.operand) if not kept}
            steps = range(2 * self.space.depth + 1)
            first = {self.in_plan(loop, step, plan): step for step in reversed(steps)}
            found |= {step for key, step in first.items() if key in left}
        return len(found)

    def _side_by_side(self, boundary: int) -> list[Limit]:
        """The bounds of what lies side by side below a boundary."""
        places = 2 * boundary, 2 * boundary + 1
        return [x for x in self.space.limits if (x.outer, x.inner) == places]

    def _shared(self, plan: Plan, told: Plan, boundaries: list[int]) -> Iterator[Power]:
        """What a plan counts, if padded axes tell the instances of some boundaries apart.

        Of these one count stands for at most so many as other loops leave to such axes; and for as
        many as lie side by side in them, which are fewer than twice the tiles that one is of the
        other's size.
        """
        padded = {loop for axis in self._padded for loop in axis}
        ways = []  # for each bound, what is told apart at most, either way
        for limit in (limit for i in boundaries for limit in self._side_by_side(i)):
            if not padded & set(limit.bound.loops):
                continue
            leave, own = [Power(-log(limit.bound.most), ())], []
            for loop in limit.bound.loops:
                outer, inner = (self.of(self.size(loop, limit.outer + i)) for i in (0, 1))
                if loop not in padded:
                    leave += [outer, over(inner)]
                elif outer != inner:
                    own += [Power(-log(2), ()), over(outer), inner]
            ways.append((leave, own))
        for parts in product(*ways):
            yield power([self._product(plan, told), *chain.from_iterable(parts)])

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
                touched = axis._replace(rule=axis.rule._replace(rows="touched"))
                return Power(log(max(1, rows(touched, (), ()))), ())  # bounding rows may be more
            ends = [
                cut[-1][0] if cut else (loop, WHOLE)
                for loop, cut in zip(loops, (out, tap), strict=True)
            ]
            return self.rows(which, ends[0], ends[1], "loaded")
        met = products(axis.window, axis.rule, axis.outs, axis.taps)
        share = Power(log(met / (axis.outs * axis.taps)), ())
        whole = met == axis.outs * axis.taps
        across, down = (
            self.of((loop, WHOLE)) if plan.operand == at else self.pieces(loop, plan, whole=whole)
            for loop, at in zip(loops, ("O", "F"), strict=True)
        )
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
