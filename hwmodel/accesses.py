"""How many elements each memory level is asked for: one formula, fed by a counting rule.

A mapping cuts the seven loops into blocks, level by level. A counting rule turns the cuts of one
level into a `Cut`: how many pieces each loop has there, and how many rows and columns of I all
pieces together load. From the cuts of two neighbouring levels follows what crosses between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from hwmodel.problem import Extents, Operand, Problem, Window

__all__ = ["Count", "Cut", "Mapping", "Tile", "Traffic", "between", "paper_cut", "paper_cuts"]
__all__ += ["paper_extent", "paper_top", "traffic"]

Count = Any  # an int, a float under the source's ratios, or an array of either (in the search)
Tile = Any  # Extents; in the search, Extents whose entries are arrays, one entry a tile


@dataclass(frozen=True)
class Mapping:
    """Tiles of every level below the top, outermost first, and the operand each boundary holds.

    `held[i]` belongs to the boundary above `tiles[i]`: "F" keeps filters while ifmaps stream past.
    """

    tiles: tuple[Extents, ...]
    held: tuple[Operand, ...]


class Cut(NamedTuple):
    """One problem as one level sees it: pieces of each loop, and what they load of I."""

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
        """Blocks that the sum of one output is cut into."""
        return self.C * self.HF * self.WF


class Traffic(NamedTuple):
    """Elements that one level is asked for over the whole problem."""

    I_reads: Count
    F_reads: Count
    O_partial_reads: Count  # sums fetched back to be continued
    O_partial_writes: Count  # sums that leave unfinished
    O_writes: Count  # finished sums


def traffic(problem: Problem, mapping: Mapping, counting: Literal["paper"]) -> list[Traffic]:
    """Elements asked of every level, the outermost first; the last is asked by the MACs.

    Under `counting="paper"` the source's ratios are rounded to whole elements, and a sum is
    counted only where it comes to rest: finished ones at the outermost level, unfinished ones at
    the level above the cut that made them.

    Source: BOLD, appendix, table of accesses and formula of the memory energy (spec sections
    5 and 6: the O terms (2 n3 - 1), 2 n3 (n2 - 1) ...).
    """
    cuts = {"paper": paper_cuts}[counting](problem, mapping.tiles)
    pairs = zip(cuts[:-1], cuts[1:], (*mapping.held, "F"), strict=True)
    levels = [between(problem, upper, lower, held) for upper, lower, held in pairs]
    whole = [Traffic(*(round(count) for count in level)) for level in levels]
    return [whole[0], *(level._replace(O_writes=0) for level in whole[1:])]


def between(problem: Problem, upper: Cut, lower: Cut, held: Operand = "F") -> Traffic:
    """Elements of I, F and O that cross between the levels of `upper` and of `lower`.

    One visit to an upper block runs, from the outside: reduction blocks, blocks of the held
    operand, blocks of the streamed one. With #d pieces of loop d,

        reads(X) = |X| * product of #d over the loops d that do not index X

    where #d is taken at the lower level if X streams, and at the upper level if X is held: it
    stays while everything else passes. |I| is what the lower pieces load, halos included. A sum
    is fetched back for all reduction blocks of a visit but the first.

    Source: BOLD, appendix "Energy Estimation", algorithm of the data movement and its tables.
    Holds for: every cut; equal to the loop-nest simulator of the tests.
    """
    n = problem.extent
    at_I = upper if held == "I" else lower
    at_F = upper if held == "F" else lower
    revisits = lower.reduction - upper.reduction
    return Traffic(
        I_reads=problem.groups * n.N * n.C * lower.rows * lower.columns * at_I.M,
        F_reads=problem.F_elements * at_F.N * at_F.HO * at_F.WO,
        O_partial_reads=problem.O_elements * revisits,
        O_partial_writes=problem.O_elements * revisits,
        O_writes=problem.O_elements,
    )


def paper_extent(window: Window, outs: Count, taps: Count) -> Count:
    """Rows of I under `outs` outputs and `taps` taps, HI_i of the source, padding included.

    Source: BOLD, HI_i = (HO_i - 1) s + (HF - 1) d + 1. In the backward pass of a strided layer
    (`spread` > 1) the inserted zeros are no rows, and there are at most `size`.
    """
    span = (outs - 1) * window.step + (taps - 1) * window.dilation
    if window.spread == 1:
        return span + 1
    return np.minimum(span // window.spread + 1, window.size)


def paper_top(problem: Problem) -> Cut:
    """The uncut problem; its ifmaps have their padding, HI = H + 2p (spec section 11)."""

    def padded(window: Window) -> int:
        return window.size + (window.pad + window.pad_end if window.spread == 1 else 0)

    return Cut(1, 1, 1, 1, 1, 1, 1, padded(problem.height), padded(problem.width))


def paper_cut(problem: Problem, above: Cut, above_tile: Extents, tile: Tile) -> Cut:
    """A level's cut by the source's table: ceilings multiply, halos enter as ratios.

    With alpha_i = HO_i / HI_i, the pieces of HO load HO / alpha_i rows: exact where tiles divide.
    Entries of `tile` may be arrays, and so then are those of the cut.

    Source: BOLD, table of access counts (spec section 5); its product n_3 ... n_i is taken here
    in one, so that each factor is the count of this level over the count of the level above.
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
    """Cuts of all levels by the source's table: the whole, every tile, and the single MACs.

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
