"""Accesses of every memory level: one formula, fed by a counting rule.

A mapping cuts the seven loops into blocks, level by level. A counting rule turns the cuts of one
level into a `Cut`: how many pieces each loop has there, and how many rows and columns of I all
pieces together load. From the cuts of two neighbouring levels follows what crosses between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from hwmodel.tiling.rows import TOUCHED, RowRule, Span, cut_rows, cut_spans, products
from hwmodel.work.problem import Extents, Operand, Problem, Window
from hwmodel.work.tensor import Direction, Factor, Role, product

__all__ = ["Asked", "Count", "Counting", "Cut", "Mapping", "Tile", "Traffic", "all_cuts"]
__all__ += ["asked", "axis_spans", "between", "exact_cuts", "paper_cut", "paper_cuts"]
__all__ += ["paper_extent", "paper_top", "piece_kinds", "pieces", "rounds", "sums_moved", "traffic"]

Counting = Literal["paper", "exact"]
_MET = "outputs times taps, without those that meet padding or a zero put in; columns alike"
_USEFUL = "outputs times taps, without the share that meets zeros put in; columns alike"
Count = Any  # an int, a float under the source's ratios, or an array of either (in the search)
Tile = Any  # Extents; in the search, Extents whose entries are arrays, one entry a tile


@dataclass(frozen=True)
class Mapping:
    """Tiles of every level below the top, outermost first, and the operand each boundary holds.

    `held[i]` belongs to the boundary above `tiles[i]`: "F" keeps filters while ifmaps stream past,
    "I" keeps ifmaps while filters do, "O" keeps sums until their whole reduction has passed.
    Where memories lie side by side, `unions[i]` is what those under one parent have together at
    one moment, and `tiles[i]` what one of them has.
    """

    tiles: tuple[Extents, ...]
    held: tuple[Operand, ...]
    unions: tuple[Extents, ...] = ()  # empty: as the tiles, one memory a level
    cycle: Extents | None = None  # what the MACs of an array do in one cycle
    groups: tuple[int, ...] = ()  # side by side at each boundary; empty: one by one

    def together(self, level: int) -> int:
        """Groups whose tiles a memory of `levels[level]` has at one moment."""
        return prod(self.groups[level:])


def rounds(groups: int, side_by_side: tuple[int, ...]) -> int:
    """How often the nest of one group runs, one after the other."""
    return -(-groups // prod(side_by_side))


class Cut(NamedTuple):
    """The pieces into which one level cuts each loop, and the rows and columns of I they load."""

    N: Count
    M: Count
    C: Count
    HO: Count
    WO: Count
    HF: Count
    WF: Count
    rows: Count  # of I, summed over all pieces of (HO, HF)
    columns: Count  # of I, summed over all pieces of (WO, WF)

    @property
    def reduction(self) -> Count:
        """Blocks into which the reduction of one output is cut."""
        return self.C * self.HF * self.WF


class Traffic(NamedTuple):
    """Elements read from and written to one level over the whole problem."""

    I_reads: Count
    F_reads: Count
    O_partial_reads: Count  # sums fetched back to be continued
    O_partial_writes: Count  # sums that leave unfinished
    O_writes: Count  # finished sums


def traffic(
    problem: Problem,
    mapping: Mapping,
    counting: Counting,
    rule: RowRule = TOUCHED,
) -> list[Traffic]:
    """Count the accesses of every level, the outermost first; the MACs read the last one.

    Under `counting="exact"` all are whole, and every transfer is counted at every level. Under
    `counting="paper"` the source's ratios are rounded to whole elements, and a sum is counted only
    where it comes to rest: finished ones at the outermost level, unfinished ones at the level
    above the cut that made them. `rule` says which rows of I exact counts include.

    Source: BOLD, appendix, table of accesses and formula of the memory energy, whose O terms are
    (2 n3 - 1), 2 n3 (n2 - 1) ...; exact pieces: ours. Both: docs/model.md section 2.
    """
    levels, leaving = [], 1
    found = all_cuts(problem, mapping.tiles, counting, rule)
    for upper, lower, held in zip(found[:-1], found[1:], (*mapping.held, "F"), strict=True):
        levels.append(between(problem, upper, lower, held, leaving))
        leaving = sums_moved(upper, lower, held)
    if counting == "exact":
        return levels
    whole = [Traffic(*(round(count) for count in level)) for level in levels]
    below = [t._replace(O_partial_writes=t.O_partial_reads, O_writes=0) for t in whole[1:]]
    return [whole[0], *below]


def sums_moved(upper: Cut, lower: Cut, held: Operand) -> Count:
    """Count how often a sum of each output goes up: once a lower block; if held, an upper one."""
    return (upper if held == "O" else lower).reduction


def between(
    problem: Problem, upper: Cut, lower: Cut, held: Operand = "F", leaving: Count = 1
) -> Traffic:
    """Count the elements of I, F and O that cross between the levels of `upper` and `lower`.

    One visit to an upper block runs, from the outside: reduction blocks, blocks of the held
    operand, blocks of the streamed one; if O is held, blocks of O outside and the reduction
    inside. With #d pieces of loop d,

        reads(X) = |X| * product of #d over the loops d that do not index X

    where #d is taken at the lower level if X streams, and at the upper level if X is held: it
    stays while everything else passes. |I| is what the lower pieces load, halos included. For O
    the product counts the sums that arrive from below; all but the last of an output are
    unfinished. What arrives is added to the sum that rests in the upper memory, so that one is
    read; not by the first to arrive after the last sum has left.

    Args:
        leaving: how often a sum of each output goes on up from the upper memory.
    Source: BOLD, appendix "Energy Estimation", algorithm of the data movement and its tables.
    Holds for: every cut; equal to the loop-nest simulator of the tests.
    """
    n = problem.extent
    at_I = upper if held == "I" else lower
    at_F = upper if held == "F" else lower
    sums = sums_moved(upper, lower, held)
    return Traffic(
        I_reads=problem.groups * n.N * n.C * lower.rows * lower.columns * at_I.M,
        F_reads=problem.F_elements * at_F.N * at_F.HO * at_F.WO,
        O_partial_reads=problem.O_elements * (sums - leaving),
        O_partial_writes=problem.O_elements * (sums - 1),
        O_writes=problem.O_elements,
    )


class Asked(NamedTuple):
    """What one level is asked for of one operand: elements, as a product of factors."""

    operand: Operand
    direction: Direction
    role: Role  # of a sum: whether it is finished
    factors: tuple[Factor, ...]  # [elements]


def asked(
    problem: Problem, mapping: Mapping, counting: Counting, rule: RowRule = TOUCHED
) -> Iterator[list[Asked]]:
    """The same counts as `traffic`, each as the factors of `between`, the outermost level first.

    With S sums of each output arriving from below, of which T go on up:

        reads I = g N C rows columns #M        reads O  = |O| (S - T), unfinished
        reads F = |F| #N #HO #WO               writes O = |O| (S - 1), unfinished, and |O| at last

    What is nothing is left out.

    Source: BOLD, appendix "Energy Estimation"; docs/model.md sections 3 and 4.
    Holds for: every cut; a test holds it against `traffic` and against a simulator.
    """
    tiles, exact, leaving = mapping.tiles, counting == "exact", 1
    for level, (upper, lower) in enumerate(pairwise(all_cuts(problem, tiles, counting, rule))):
        held = (*mapping.held, "F")[level]
        arriving = int(sums_moved(upper, lower, held))
        found = _Boundary(problem, tiles, level, upper, lower, held, exact).asked(arriving, leaving)
        yield [one for one in found if product(one.factors)]
        leaving = arriving


class _Boundary(NamedTuple):
    """The gap between a level and the one below it, or between level 0 and the MACs."""

    problem: Problem
    tiles: tuple[Extents, ...]  # of every level from the second
    level: int  # the upper one, from the outermost, which is 0
    upper: Cut
    lower: Cut
    held: Operand
    exact: bool

    def asked(self, S: int, T: int) -> Iterator[Asked]:
        """Reads and writes of I, F and O; finished sums are written where they settle."""
        groups = Factor("g", self.problem.groups)
        I = (groups, *self.loops("N", "C"), *self.rows())  # noqa: E741
        F = (groups, *self.loops("M", "C", "HF", "WF"))
        O = (groups, *self.loops("N", "M", "HO", "WO"))  # noqa: E741
        arrive = f"S = {S:,} sums of an output arrive"
        fetched = Factor("S - T", S - T, f"{arrive}; T = {T:,}, as many as go on up, find none")
        left = Factor("S - 1", S - 1, f"{arrive}, all but the last unfinished")
        back = fetched._replace(why="as many as come back")
        settles = self.exact or self.level == 0
        yield Asked("I", Direction.READ, Role.OPERAND, (*I, *self.again("I", "M")))
        yield Asked("F", Direction.READ, Role.OPERAND, (*F, *self.again("F", "N", "HO", "WO")))
        yield Asked("O", Direction.READ, Role.UNFINISHED, (*O, fetched))
        yield Asked("O", Direction.WRITE, Role.UNFINISHED, (*O, left if settles else back))
        if settles:
            yield Asked("O", Direction.WRITE, Role.OPERAND, O)

    def loops(self, *names: str) -> Iterator[Factor]:
        """Lengths of some loops."""
        return (Factor(loop, getattr(self.problem.extent, loop)) for loop in names)

    def rows(self) -> Iterator[Factor]:
        """List rows and columns of I that pieces of the lower level, or the MACs, load together.

        Levels have numbers, of which 0 is next to the MACs.
        """
        below = len(self.tiles) - self.level - 1
        if below >= 0:
            yield Factor(f"rows({below})", self.lower.rows)
            yield Factor(f"columns({below})", self.lower.columns)
        else:
            yield Factor("rows(MAC)", self.lower.rows, _MET if self.exact else _USEFUL)
            yield Factor("columns(MAC)", self.lower.columns)

    def again(self, operand: Operand, *loops: str) -> Iterator[Factor]:
        """How often an operand is read again: pieces of the loops that do not index it."""
        held = self.held == operand
        cut, depth = (self.upper, self.level) if held else (self.lower, self.level + 1)
        tiles = self.tiles[:depth]
        for loop in loops:
            length = above = getattr(self.problem.extent, loop)
            by = []
            for tile in tiles:
                inner = getattr(tile, loop)
                if inner < above:
                    by.append(f"{inner:,}")
                above = inner
            why = f"{loop} = {length:,} cut by {', then by '.join(by)}" if by else ""
            yield Factor(f"#{loop}({len(self.tiles) - len(tiles)})", getattr(cut, loop), why)


def pieces(extent: int, tiles: Sequence[Count]) -> list[Count]:
    """Count the pieces of a loop at every level, the uncut loop first; tiles cut tile by tile.

    Entries of `tiles` may be arrays.

    >>> pieces(9, [6, 3]), pieces(9, [5, 3])
    ([1, 2, 3], [1, 2, 4])
    """
    return [sum(number for _, number in kinds) for kinds in piece_kinds(extent, tiles)]


def piece_kinds(extent: int, tiles: Sequence[Count]) -> Iterator[list[tuple[Count, Count]]]:
    """List the pieces of a loop at every level, the uncut loop first: a length, how many have it.

    Below the top, pieces of one level are as long as its tile, but for the rests that the levels
    above have left over: one more kind of piece a level, of which there may be none.
    """
    kinds: list[tuple[Count, Count]] = [(extent, 1)]
    yield kinds
    for tile in tiles:
        full: Count = 0
        rests = []
        for length, number in kinds:
            whole, rest = length // tile, length % tile
            full = full + whole * number
            rests.append((rest, number * (rest > 0)))
        kinds = [(tile, full), *rests]
        yield kinds


def all_cuts(
    problem: Problem, tiles: Sequence[Extents], counting: Counting, rule: RowRule
) -> list[Cut]:
    """Return the cuts of all levels by a counting rule: the whole, every tile, the single MACs."""
    if counting == "exact":
        return exact_cuts(problem, tiles, rule)
    return paper_cuts(problem, tiles)


def exact_cuts(problem: Problem, tiles: Sequence[Extents], rule: RowRule) -> list[Cut]:
    """Cut the loops into their real pieces at all levels: the whole, every tile, single MACs.

    A MAC reads its own element of I, which all M_0 filters at level 0 share; only products with
    an element that exists (under padding "counted": or with padding) are read.

    Source: ours; docs/model.md section 2, counting `exact`.
    Holds for: every tile, ragged or not; equal to the simulator of the tests, to the element.
    """
    n, height, width = problem.extent, problem.height, problem.width
    numbers = {
        d: pieces(extent, [getattr(tile, d) for tile in tiles]) for d, extent in n._asdict().items()
    }
    rows = axis_rows(height, rule, n.HO, n.HF, tuple((tile.HO, tile.HF) for tile in tiles))
    columns = axis_rows(width, rule, n.WO, n.WF, tuple((tile.WO, tile.WF) for tile in tiles))
    cuts = [
        Cut(**{d: number[i] for d, number in numbers.items()}, rows=rows[i], columns=columns[i])
        for i in range(len(tiles) + 1)
    ]
    used = products(height, rule, n.HO, n.HF), products(width, rule, n.WO, n.WF)
    return [*cuts, cuts[-1]._replace(rows=used[0], columns=used[1])]


@lru_cache(maxsize=4096)
def axis_rows(
    window: Window, rule: RowRule, outs: int, taps: int, tiles: tuple[tuple[int, int], ...]
) -> tuple[int, ...]:
    """Count the rows of I that the pieces of an axis load at every level, the uncut axis first.

    Remembered: the two axes of a square layer ask alike, and so do a search and its report.

    Args:
        tiles: outputs and taps of a tile at each level, outermost first.
    """
    return tuple(
        cut_rows(window, rule, *spans) for spans in axis_spans(window, rule, outs, taps, tiles)
    )


def axis_spans(
    window: Window, rule: RowRule, outs: int, taps: int, tiles: Sequence[tuple[int, int]]
) -> Iterator[tuple[list[Span], list[Span]]]:
    """Yield the pieces of outputs and taps of an axis at every level, the uncut axis first."""
    turned = window._replace(step=window.dilation, dilation=window.step)
    out_spans: list[list[Span]] = cut_spans(window, rule, outs, taps, [t[0] for t in tiles])
    tap_spans = cut_spans(turned, rule, taps, outs, [t[1] for t in tiles])
    return zip(out_spans, tap_spans, strict=True)


def paper_extent(window: Window, outs: Count, taps: Count) -> Count:
    """Count the rows of I under `outs` outputs and `taps` taps: the source's HI_i, padded.

    Source: BOLD, HI_i = (HO_i - 1) s + (HF - 1) d + 1. In the backward pass of a strided layer
    (`spread` > 1) the inserted zeros are no rows, and there are at most `size`.
    """
    span = (outs - 1) * window.step + (taps - 1) * window.dilation
    if window.spread == 1:
        return span + 1
    return np.minimum(span // window.spread + 1, window.size)


def paper_top(problem: Problem) -> Cut:
    """Return the uncut problem; its ifmaps are padded, HI = H + 2p (docs/model.md section 2)."""

    def padded(window: Window) -> int:
        return window.size + (window.pad + window.pad_end if window.spread == 1 else 0)

    return Cut(1, 1, 1, 1, 1, 1, 1, padded(problem.height), padded(problem.width))


def paper_cut(problem: Problem, above: Cut, above_tile: Extents, tile: Tile) -> Cut:
    """Cut a level by the source's table: ceilings multiply, halos enter as ratios.

    With alpha_i = HO_i / HI_i, the pieces of HO load HO / alpha_i rows: exact where tiles divide.
    Entries of `tile` may be arrays, and so then are those of the cut.

    Source: BOLD, table of access counts (docs/model.md section 2); its product n_3 ... n_i is
    taken in one: each factor is the count of this level over the count of the level above.
    """
    n = problem.extent
    pieces = {
        d: getattr(above, d) * -(-getattr(above_tile, d) // getattr(tile, d))
        for d in Extents._fields
    }
    rows = paper_extent(problem.height, tile.HO, tile.HF) * pieces["HF"]
    columns = paper_extent(problem.width, tile.WO, tile.WF) * pieces["WF"]
    return Cut(**pieces, rows=n.HO / tile.HO * rows, columns=n.WO / tile.WO * columns)


def paper_cuts(problem: Problem, tiles: Sequence[Extents]) -> list[Cut]:
    """Cut all levels by the source's table: the whole, every tile, single MACs.

    A MAC reads its own element of I, which all M_0 filters at level 0 share. In the backward pass
    of a strided layer only one product in stride^2 is not with an inserted zero.
    """
    n = problem.extent
    cuts, above_tile = [paper_top(problem)], n
    for tile in tiles:
        cuts.append(paper_cut(problem, cuts[-1], above_tile, tile))
        above_tile = tile
    height, width = problem.height, problem.width
    rows, columns = n.HO * n.HF / height.spread, n.WO * n.WF / width.spread
    return [*cuts, cuts[-1]._replace(rows=rows, columns=columns)]
