"""Chains of tiles axis by axis, with what they count, what room they take and how they spread.

A chain of a loop is its row of sizes: union tile and tile of every boundary, outermost first, then
the piece of a cycle on a chip with an array.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.options import Bound, Memories, SearchOptions
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.rows import block_rows, most_rows, products
from hwmodel.tiling.spatial.grid import grid
from hwmodel.tiling.spatial.links import INDEXED, Plan, axis_count
from hwmodel.tiling.spatial.numbered import distinct
from hwmodel.tiling.spatial.paths import Axis as Meeting
from hwmodel.tiling.spatial.paths import Step
from hwmodel.tiling.spatial.piece_rows import piece_rows
from hwmodel.tiling.spatial.rough import Cuts, differing, estimated
from hwmodel.tiling.spatial.terms import Paid
from hwmodel.work.problem import OPERANDS, Extents, Operand, Problem

__all__ = ["GROUPS", "Axis", "Chosen", "Columns", "Space", "candidates"]

GROUPS = (("N",), ("M",), ("C",), ("HO", "HF"), ("WO", "WF"))
EASY, FEW = 2**13, 16  # pairs of an output and a tap of a short axis; chains of a long one
LONG = 2**14  # pairs of an axis whose counts may be estimated
Chains = NDArray[np.int64]  # [chain, size], of one loop
Chosen = tuple[int, ...]  # sizes of a loop's chain that are free
Floats = NDArray[np.float64]
Axis = tuple[Chosen, ...]  # of the loops of an axis


class Columns(NamedTuple):
    """Which sizes of a loop's chain may be chosen; the others follow."""

    follows: tuple[int, ...]  # of each size, the place among the chosen; -1: it is 1
    chosen: int  # how many are


class Limit(NamedTuple):
    """So many pieces of some loops side by side, from one size of a chain to the next."""

    bound: Bound
    outer: int  # places among the sizes of a chain
    inner: int | None  # None: single elements


class _Told(NamedTuple):
    """What a plan tells apart of the chains of an axis with taps."""

    at: Chains  # sizes that it looks at, of outputs and then of taps, side by side and a 1 behind
    outs: tuple[bool, ...]  # of these, whether pieces are told apart
    taps: tuple[bool, ...]
    last: Chains | None  # the last one of each loop; None where a loop is not cut

    @classmethod
    def of(cls, space: Space, which: int, plan: Plan) -> _Told:
        """Make it. On a chip without an array the last tile is single elements."""
        at: list[int] = []
        keeps: list[tuple[bool, ...]] = []
        last: list[int] = []
        wide = [len(space.columns[loop].follows) for loop in GROUPS[3 + which]]
        for loop, start, own in zip(GROUPS[3 + which], (0, wide[0]), wide, strict=True):
            places = [*range(start, start + own)]
            if space.chip.array is None:
                places.append(sum(wide))
            kept = list(plan.keeps(loop))[: len(places)]
            while kept and not kept[-1]:
                kept.pop()
            at += places[: len(kept)]
            keeps.append(tuple(kept))
            if getattr(space.problem.extent, loop) > 1:
                last.append(places[len(kept) - 1] if kept else -1)
        cut = np.array(last, np.int64) if -1 not in last else None
        outs, taps = keeps
        return cls(np.array(at, np.int64), outs, taps, cut)

    @property
    def every(self) -> bool:
        """Whether the pieces of all cuts are told apart."""
        return all(self.outs + self.taps)

    def single(self, sizes: Chains) -> bool:
        """Whether all single outputs and taps are told apart."""
        return self.every and self.last is not None and bool((sizes[:, self.last] == 1).all())


@dataclass(frozen=True)
class Space:
    """A problem on a chip, as the mapper sees it."""

    problem: Problem
    chip: Memories
    options: SearchOptions
    rough: bool = False  # whether counts of long axes are estimated (`rough`)

    @property
    def roughly(self) -> Space:
        """The same with counts of long axes that are estimated; itself where none is long."""
        long = any(axis.outs * axis.taps > LONG for axis in self.axes)
        return replace(self, rough=True) if long else self

    @property
    def depth(self) -> int:
        """Boundaries between levels."""
        return len(self.chip.levels) - 1

    @cached_property
    def paid(self) -> Paid:
        """What is paid under each choice of what boundaries hold."""
        return Paid(self.problem, self.chip, self.options)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """All bounds of fan-outs and of the array."""
        found = []
        for i, level in enumerate(self.chip.levels[1:]):
            axes = level.axes or (Bound(Extents._fields, level.fanout),)
            if level.fanout > 1:
                found += [Limit(bound, 2 * i, 2 * i + 1) for bound in axes]
        if self.chip.array is not None:
            found += [Limit(bound, 2 * self.depth, None) for bound in self._lanes()]
        return tuple(found)

    def _lanes(self) -> list[Bound]:
        """The bounds of the array, that of C times the operands that share a lane."""
        array = self.chip.array
        assert array is not None
        lanes = array.lanes(self.problem.lane)
        axes = list(array.axes)
        if lanes > 1 and not any("C" in bound.loops for bound in axes):
            axes.append(Bound(("C",), 1))
        return [
            bound._replace(most=bound.most * lanes) if "C" in bound.loops else bound
            for bound in axes
        ]

    @cached_property
    def columns(self) -> dict[str, Columns]:
        """Of every loop, which sizes are free."""
        return {loop: self._columns(loop) for loop in Extents._fields}

    def _columns(self, loop: str) -> Columns:
        spread = {limit.outer for limit in self.limits if loop in limit.bound.loops}
        follows, chosen = [], 0
        for boundary in range(self.depth):
            if 2 * boundary in spread:
                follows += [chosen, chosen + 1]
                chosen += 2
            else:
                follows += [chosen, chosen]
                chosen += 1
        if self.chip.array is not None:
            free = 2 * self.depth in spread
            follows.append(chosen if free else -1)
            chosen += free
        return Columns(tuple(follows), chosen)

    @cached_property
    def axes(self) -> tuple[Meeting, Meeting]:
        """Rows and columns."""
        n, rule = self.problem.extent, self.options.rule
        return (
            Meeting(self.problem.height, rule, n.HO, n.HF),
            Meeting(self.problem.width, rule, n.WO, n.WF),
        )

    @cached_property
    def bits(self) -> dict[Operand, int | float]:
        """Width of what lies in a memory: of O, of unfinished sums [bit]."""
        own = self.problem.bits
        sums = partial_sum_bits(self.problem, self.options.partial_sum_bits)
        return {"I": own.I, "F": own.F, "O": sums}

    def beat(self, loop: str) -> int:
        """Pieces of multiples of this many outputs lie alike among zeros between rows.

        Memories side by side then have nothing to do at the same moments, which are not made; so
        it is 1 where moments cost nothing.
        """
        if not self.chip.moment_energy or loop not in ("HO", "WO"):
            return 1
        return (self.problem.height if loop == "HO" else self.problem.width).spread

    def chain(self, loop: str, chosen: Chains) -> Chains:
        """Return the sizes of chains from those that are chosen [chain, chosen]."""
        padded = np.hstack([chosen, np.ones((len(chosen), 1), np.int64)])
        return padded[:, list(self.columns[loop].follows)]

    def free(self, group: int) -> tuple[int, ...]:
        """How many sizes of each loop of an axis may be chosen."""
        return tuple(self.columns[loop].chosen for loop in GROUPS[group])

    def measured(self, group: int, rows: Chains) -> tuple[NDArray[np.int64], Floats]:
        """Return the sizes of an axis's chains, and what is bounded: `rooms`, and `spreads`.

        Args:
            rows: chosen sizes of the loops, side by side [chain, size].

        Returns: [chain, loop, size] and [chain, part].
        """
        axis = self.axes[group - 3] if len(GROUPS[group]) == 2 else None
        if is_compiled() and (axis is None or axis.outs * axis.taps <= EASY):
            most = np.empty((0, 0)) if axis is None else _all_most_rows(axis)
            sizes, parts = kernel("chains.measured")(
                rows, self._places[group], self.depth, *self._bounded[group], most
            )
            return sizes, parts
        padded = np.ones((len(rows), rows.shape[1] + 1), np.int64)
        padded[:, :-1] = rows
        sizes = padded[:, self._places[group]]
        each = tuple(np.moveaxis(sizes, 1, 0))
        return sizes, np.hstack([self.rooms(group, each), self.spreads(group, each)])

    @cached_property
    def _places(self) -> list[NDArray[np.int64]]:
        """Of every axis, where the sizes of its loops are among those chosen [loop, size]."""
        found = []
        for group, loops in enumerate(GROUPS):
            starts = np.cumsum((0, *self.free(group)))
            follows = [
                [start + place if place >= 0 else -1 for place in self.columns[loop].follows]
                for loop, start in zip(loops, starts, strict=False)
            ]
            found.append(np.array(follows, np.int64))
        return found

    @cached_property
    def _bounded(self) -> list[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
        """Of every axis, which loops index an operand, and where bounds are [bound, loop, 2]."""
        found = []
        for loops in GROUPS:
            indexed = [[loop in INDEXED[x] for loop in loops] for x in OPERANDS]
            limits = np.full((len(self.limits), len(loops), 2), -1)
            for i, limit in enumerate(self.limits):
                for x, loop in enumerate(loops):
                    if loop in limit.bound.loops:
                        limits[i, x] = limit.outer, -1 if limit.inner is None else limit.inner
            found.append((np.array(indexed, np.bool_), limits))
        return found

    def axis(self, group: int, row: Chains) -> Axis:
        """Return a chain of an axis, loop by loop, from its sizes side by side."""
        every, first = tuple(row.tolist()), self.free(group)[0]
        return (every,) if len(GROUPS[group]) == 1 else (every[:first], every[first:])

    def kind(self, group: int, plan: Plan) -> Hashable:
        """Return what plans have in common that count this axis alike, whatever the chains."""
        loops, indexed = GROUPS[group], INDEXED[plan.operand] if plan.operand else ()
        met = len(loops) == 2 and (plan.operand in ("I", None) or plan.to_array)
        parts: list[Hashable] = [plan.operand if met else ""]
        for loop in loops:
            keeps = list(plan.keeps(loop))
            while keeps and not keeps[-1]:
                keeps.pop()
            parts.append(None if not met and loop in indexed else tuple(keeps))
        return tuple(parts)

    def factors(self, group: int, plan: Plan) -> tuple[float, ...] | None:
        """What a plan counts of each loop of an axis, whose product it counts of the axis.

        Returns: 0 of a loop whose different paths count; None where the axis is no such product.
        """
        loops, n = GROUPS[group], self.problem.extent
        indexed = INDEXED[plan.operand] if plan.operand else ()
        if len(loops) == 2 and plan.operand == "I":
            once = self._read_once[group - 3]
            return (once, 1.0) if once else None
        met = len(loops) == 2 and (plan.operand is None or plan.to_array)
        if met and not self.all_meet[group - 3]:
            return None
        return tuple(float(getattr(n, loop)) if loop in indexed else 0.0 for loop in loops)

    def count(self, group: int, plan: Plan, sizes: tuple[Chains, ...]) -> Floats:
        """Return what a plan counts of an axis under chains of its loops."""
        factors = self.factors(group, plan)
        if factors is None:
            return self._met(group - 3, plan, sizes)
        result: Floats = np.ones(len(sizes[0]))
        for loop, some, factor in zip(GROUPS[group], sizes, factors, strict=True):
            length: int = getattr(self.problem.extent, loop)
            result *= factor or differing(length, some, tuple(plan.keeps(loop)))
        return result

    def _met(self, which: int, plan: Plan, sizes: tuple[Chains, ...]) -> Floats:
        """Count rows or what touches them, once for all chains that the plan tells apart."""
        axis, told = self.axes[which], self._told(which, plan)
        given = np.ones((len(sizes[0]), 1 + sum(some.shape[1] for some in sizes)), np.int64)
        np.concatenate(sizes, axis=1, out=given[:, :-1])
        looked = given[:, told.at]
        if self.rough and axis.outs * axis.taps > LONG:
            outs, taps = looked[:, : len(told.outs)], looked[:, len(told.outs) :]
            cuts = Cuts(axis.outs, outs, told.outs), Cuts(axis.taps, taps, told.taps)
            return estimated(axis, plan.operand, *cuts)
        if plan.operand != "I" and told.single(given):
            # Single outputs and taps meet as often as there are products.
            touched = products(axis.window, axis.rule, axis.outs, axis.taps)
            return np.full(len(given), float(touched))
        pairs, back = distinct(looked)
        return self._met_by_chain(axis, plan, told, pairs)[back]

    def _met_by_chain(self, axis: Meeting, plan: Plan, told: _Told, pairs: Chains) -> Floats:
        """`_met` of different chains, of the sizes that are looked at."""
        depth = len(told.outs)
        listed = piece_rows(axis) if plan.operand == "I" and told.every else None
        if listed is not None:
            return listed.rows_by_chain(pairs, depth)
        short = grid(axis, met=plan.operand != "I")
        if short is not None and plan.operand != "I" and is_compiled():
            return short.met_by_chain(plan.operand, pairs, told.outs, told.taps)
        apart = [(pair[:depth], pair[depth:]) for pair in map(tuple, pairs.tolist())]
        if short is not None:
            cuts = (((out, told.outs), (tap, told.taps)) for out, tap in apart)
            count = short.rows if plan.operand == "I" else partial(short.met, plan.operand)
            found = [count(*each) for each in cuts]
        else:
            steps = ((map(Step, out, told.outs), map(Step, tap, told.taps)) for out, tap in apart)
            found = [axis_count(axis, plan, *map(tuple, each)) for each in steps]
        return np.array(found, np.float64)

    def _told(self, which: int, plan: Plan) -> _Told:
        """Return what a plan tells apart of the chains of an axis with taps; it is remembered."""
        known = self._told_apart
        if (which, plan) not in known:
            known[which, plan] = _Told.of(self, which, plan)
        return known[which, plan]

    @cached_property
    def _told_apart(self) -> dict[tuple[int, Plan], _Told]:
        return {}

    def hard(self, group: int) -> int:
        """How many times as long as a short axis the counts of one chain take; 0: no longer."""
        if self.rough or len(GROUPS[group]) == 1 or self.all_meet[group - 3]:
            return 0
        axis = self.axes[group - 3]
        return axis.outs * axis.taps // EASY

    def thinned(self, group: int, chains: Chains, often: int = 1) -> Chains:
        """Chains of an axis, of which some are left out where their counts take long.

        Args:
            often: how many times as many stay as where such a list is made at every step.
        """
        most = max(FEW, often * len(chains) // (often + self.hard(group)))
        return chains[:: -(-len(chains) // most)] if len(chains) else chains

    @cached_property
    def all_meet(self) -> tuple[bool, ...]:
        """Of both axes, whether every output meets a row through every tap."""
        return tuple(
            products(axis.window, axis.rule, axis.outs, axis.taps) == axis.outs * axis.taps
            for axis in self.axes
        )

    @cached_property
    def _read_once(self) -> tuple[float, ...]:
        """Rows of both axes where one output or tap is alone, so no cut parts a row; else 0."""
        return tuple(
            float(products(axis.window, axis.rule, axis.outs, axis.taps))
            if min(axis.outs, axis.taps) == 1 and axis.rule.rows == "touched"
            else 0.0
            for axis in self.axes
        )

    def rooms(self, group: int, sizes: tuple[Chains, ...]) -> Floats:
        """What a tile takes of each level in this axis, by operand."""
        loops, number = GROUPS[group], len(sizes[0])
        found = np.ones((number, self.depth, len(OPERANDS)))
        tiles = [some[:, 1 : 2 * self.depth : 2] for some in sizes]
        for i, x in enumerate(OPERANDS):
            if x == "I" and len(loops) == 2:
                rows = self._most_rows(group - 3, *(tile.ravel() for tile in tiles))
                found[:, :, i] = rows.reshape(number, self.depth)
                continue
            for loop, tile in zip(loops, tiles, strict=True):
                if loop in INDEXED[x]:
                    found[:, :, i] *= tile
        return found.reshape(number, -1)

    def _most_rows(self, which: int, outs: Chains, taps: Chains) -> Floats:
        axis = self.axes[which]
        if axis.outs * axis.taps <= EASY:
            found: Floats = _all_most_rows(axis)[outs, taps]
            return found
        pairs, back = np.unique(np.stack([outs, taps], axis=1), axis=0, return_inverse=True)
        return _most(axis, pairs[:, 0], pairs[:, 1])[back.ravel()]

    def spreads(self, group: int, sizes: tuple[Chains, ...]) -> Floats:
        """How many pieces of this axis lie side by side, under every bound."""
        loops = GROUPS[group]
        found = np.ones((len(sizes[0]), len(self.limits)))
        for i, limit in enumerate(self.limits):
            for loop, some in zip(loops, sizes, strict=True):
                if loop in limit.bound.loops:
                    inner = 1 if limit.inner is None else some[:, limit.inner]
                    found[:, i] *= -(-some[:, limit.outer] // inner)
        return found


@lru_cache(maxsize=2**14)
def candidates(length: int, most: int) -> tuple[int, ...]:
    """List the tiles of a loop that are tried: those that cut it into as few pieces as can be.

    Where there are more than `most`, large and small ones are kept and the rest thinned.
    """
    found = sorted({-(-length // k) for k in range(1, int(length**0.5) + 2)}, reverse=True)
    found += range(found[-1] - 1, 0, -1)
    if len(found) <= most:
        return tuple(found)
    return tuple(found[i * (len(found) - 1) // (most - 1)] for i in range(most))


def _most(axis: Meeting, outs: Chains, taps: Chains) -> Floats:
    """The most rows that tiles of an axis can need."""
    whole = int(block_rows(axis.window, axis.rule, 0, axis.outs, 0, axis.taps))
    return np.asarray(most_rows(axis.window, axis.rule, whole, outs, taps), np.float64)


@lru_cache(maxsize=2**6)
def _all_most_rows(axis: Meeting) -> Floats:
    """The most rows that any tile of a short axis can need [outputs, taps]; nothing of none."""
    found = np.zeros((axis.outs + 1, axis.taps + 1))
    outs, taps = (np.arange(1, n + 1) for n in (axis.outs, axis.taps))
    found[1:, 1:] = _most(axis, outs[:, None], taps)
    return found
