"""Chains of tiles axis by axis, with what they count, what room they take and how they spread.

A chain of a loop is its row of sizes: union tile and tile of every boundary, outermost first, then
the piece of a cycle on a chip with an array.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.tiling.options import Bound, Memories, SearchOptions
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.rows import block_rows, most_rows, products
from hwmodel.tiling.spatial.grid import grid
from hwmodel.tiling.spatial.links import INDEXED, Plan, axis_count
from hwmodel.tiling.spatial.paths import Axis, Step
from hwmodel.tiling.spatial.piece_rows import piece_rows
from hwmodel.tiling.spatial.terms import Paid
from hwmodel.work.problem import OPERANDS, Extents, Operand, Problem

__all__ = ["GROUPS", "Columns", "Space", "candidates"]

GROUPS = (("N",), ("M",), ("C",), ("HO", "HF"), ("WO", "WF"))
EASY, FEW = 2**13, 16  # pairs of an output and a tap of a short axis; chains of a long one
Chains = NDArray[np.int64]  # [chain, size], of one loop
Floats = NDArray[np.float64]


class Columns(NamedTuple):
    """Which sizes of a loop's chain may be chosen; the others follow."""

    follows: tuple[int, ...]  # of each size, the place among the chosen; -1: it is 1
    chosen: int  # how many are


class Limit(NamedTuple):
    """So many pieces of some loops side by side, from one size of a chain to the next."""

    bound: Bound
    outer: int  # places among the sizes of a chain
    inner: int | None  # None: single elements


@dataclass(frozen=True)
class Space:
    """A problem on a chip, as the mapper sees it."""

    problem: Problem
    chip: Memories
    options: SearchOptions

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
    def axes(self) -> tuple[Axis, Axis]:
        """Rows and columns."""
        n, rule = self.problem.extent, self.options.rule
        return (
            Axis(self.problem.height, rule, n.HO, n.HF),
            Axis(self.problem.width, rule, n.WO, n.WF),
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

    def count(self, group: int, plan: Plan, sizes: tuple[Chains, ...]) -> Floats:
        """Return what a plan counts of an axis under chains of its loops."""
        loops, n = GROUPS[group], self.problem.extent
        shape = len(sizes[0])
        indexed = INDEXED[plan.operand] if plan.operand else ()
        if len(loops) == 1:
            whole = getattr(n, loops[0])
            if loops[0] in indexed:
                return np.full(shape, float(whole))
            return _values(whole, plan, loops[0], sizes[0])
        if plan.operand in ("I", None) or plan.to_array:
            return self._met(group - 3, plan, sizes)
        result: Floats = np.ones(shape)
        for loop, some in zip(loops, sizes, strict=True):
            length: int = getattr(n, loop)
            result *= length if loop in indexed else _values(length, plan, loop, some)
        return result

    def _met(self, which: int, plan: Plan, sizes: tuple[Chains, ...]) -> Floats:
        """Count rows or what touches them, once for all chains that the plan tells apart."""
        axis, loops = self.axes[which], tuple(GROUPS[3 + which])
        if plan.operand != "I" and self.all_meet[which]:
            across = _values(axis.outs, plan, loops[0], sizes[0])
            down = _values(axis.taps, plan, loops[1], sizes[1])
            met = {"F": across * axis.taps, "O": down * axis.outs, None: across * down}
            return met[plan.operand]
        if plan.operand == "I" and self._read_once[which]:
            return np.full(len(sizes[0]), self._read_once[which])
        ones = np.ones((len(sizes[0]), int(self.chip.array is None)), np.int64)
        columns = []
        for loop, some in zip(loops, sizes, strict=True):
            keeps = list(plan.keeps(loop))[: some.shape[1] + ones.shape[1]]
            last = max((i for i, kept in enumerate(keeps) if kept), default=-1)
            columns.append((np.hstack([some, ones])[:, : last + 1], tuple(keeps[: last + 1])))
        (outs, out_keeps), (taps, tap_keeps) = columns
        depth = outs.shape[1]
        ends = zip((axis.outs, axis.taps), (outs, taps), strict=True)
        single = all(n == 1 or (t.shape[1] and (t[:, -1] == 1).all()) for n, t in ends)
        if single and plan.operand != "I" and all(out_keeps + tap_keeps):
            # Single outputs and taps meet as often as there are products.
            touched = products(axis.window, axis.rule, axis.outs, axis.taps)
            return np.full(len(sizes[0]), float(touched))
        pairs: dict[tuple[int, ...], int] = {}
        back = [
            pairs.setdefault(tuple(row), len(pairs)) for row in np.hstack([outs, taps]).tolist()
        ]
        apart = [(pair[:depth], pair[depth:]) for pair in pairs]
        listed = piece_rows(axis) if plan.operand == "I" and all(out_keeps + tap_keeps) else None
        short = grid(axis, met=plan.operand != "I") if listed is None else None
        if listed is not None:
            found = listed.rows(apart)
        elif short is not None:
            if plan.operand != "I" and is_compiled():
                return short.met_by_chain(plan.operand, pairs, out_keeps, tap_keeps)[back]
            cuts = (((out, out_keeps), (tap, tap_keeps)) for out, tap in apart)
            count = short.rows if plan.operand == "I" else partial(short.met, plan.operand)
            found = [count(*each) for each in cuts]
        else:
            steps = ((map(Step, out, out_keeps), map(Step, tap, tap_keeps)) for out, tap in apart)
            found = [axis_count(axis, plan, *map(tuple, each)) for each in steps]
        return np.array(found, np.float64)[back]

    def hard(self, group: int) -> int:
        """How many times as long as a short axis the counts of one chain take; 0: no longer."""
        if len(GROUPS[group]) == 1 or self.all_meet[group - 3]:
            return 0
        axis = self.axes[group - 3]
        return axis.outs * axis.taps // EASY

    def thinned(self, group: int, chains: Sequence[Any]) -> Sequence[Any]:
        """Chains of an axis, of which some are left out where their counts take long."""
        most = max(FEW, len(chains) // (1 + self.hard(group)))
        return chains[:: -(-len(chains) // most)] if chains else chains

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
        loops = GROUPS[group]
        found = []
        for boundary in range(self.depth):
            tiles = {
                loop: some[:, 2 * boundary + 1] for loop, some in zip(loops, sizes, strict=True)
            }
            for x in OPERANDS:
                if x == "I" and len(loops) == 2:
                    found.append(self._most_rows(group - 3, *tiles.values()))
                    continue
                part = np.ones(len(sizes[0]))
                for loop, tile in tiles.items():
                    part = part * tile if loop in INDEXED[x] else part
                found.append(part)
        return np.stack(found, axis=1) if found else np.ones((len(sizes[0]), 0))

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


def _values(length: int, plan: Plan, loop: str, sizes: Chains) -> Floats:
    """`paths.values` of many chains at once."""
    if is_compiled():
        found: Floats = kernel("spatial.pieces")(length, sizes, np.array([*plan.keeps(loop)]))
        return found
    shape = len(sizes)
    kinds: list[tuple[Chains, Chains]] = [(np.full(shape, length), np.ones(shape, np.int64))]
    for tile, kept in zip(sizes.T, plan.keeps(loop), strict=False):
        full: Chains = np.zeros(shape, np.int64)
        rests: list[tuple[Chains, Chains]] = []
        for piece, number in kinds:
            whole: Chains = piece // tile
            rest: Chains = piece % tile
            full = full + (whole if kept else np.minimum(whole, 1)) * number
            left = (rest > 0) if kept else (rest > 0) & (whole == 0)
            rests.append((rest, number * left))
        kinds = [(tile, full), *rests]
    result: Floats = np.sum([number for _, number in kinds], axis=0).astype(np.float64)
    return result


def _most(axis: Axis, outs: Chains, taps: Chains) -> Floats:
    """The most rows that tiles of an axis can need."""
    whole = int(block_rows(axis.window, axis.rule, 0, axis.outs, 0, axis.taps))
    return np.asarray(most_rows(axis.window, axis.rule, whole, outs, taps), np.float64)


@lru_cache(maxsize=2**6)
def _all_most_rows(axis: Axis) -> Floats:
    """The most rows that any tile of a short axis can need [outputs, taps]; nothing of none."""
    found = np.zeros((axis.outs + 1, axis.taps + 1))
    outs, taps = (np.arange(1, n + 1) for n in (axis.outs, axis.taps))
    found[1:, 1:] = _most(axis, outs[:, None], taps)
    return found
