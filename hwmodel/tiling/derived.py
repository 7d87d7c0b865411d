"""How the cuts of a tiling come about: pieces of the loops, and rows of I, as sums of products.

The counts themselves are those of `accesses`; here their terms are kept, for a reader to add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hwmodel.tiling.accesses import (
    Count,
    Counting,
    Cut,
    all_cuts,
    axis_spans,
    paper_extent,
    piece_kinds,
)
from hwmodel.tiling.rows import RowRule, span_rows
from hwmodel.work.problem import Extents, Problem, Window
from hwmodel.work.tensor import Factor

__all__ = ["Sum", "derived"]

MOST_TERMS = 12  # of a sum that is written out


Terms = tuple[tuple[Factor, ...], ...]


class Sum(NamedTuple):
    """A field of a `Cut` as a sum of products; without terms where they are too many."""

    name: str  # as the factors of `accesses.asked` have it: #M(1), rows(0)
    terms: Terms
    value: Count


class _Axis(NamedTuple):
    """Rows or columns: what they are called, how outputs read them, which loops run over them."""

    rows: str
    size: str  # of a tile's part of I
    window: Window
    out: str
    tap: str


def derived(
    problem: Problem, tiles: Sequence[Extents], counting: Counting, rule: RowRule
) -> Iterator[Sum]:
    """List the pieces of every loop at the levels that cut it, then the rows and columns they load.

    Args:
        tiles: of every level below the outermost.
    Source: docs/model.md section 2.
    """
    levels = [problem.extent, *tiles]
    cuts = all_cuts(problem, tiles, counting, rule)
    for loop in Extents._fields:
        lengths = [getattr(tile, loop) for tile in levels]
        yield from _pieces(loop, lengths, [getattr(cut, loop) for cut in cuts], counting)
    for axis in (
        _Axis("rows", "HI", problem.height, "HO", "HF"),
        _Axis("columns", "WI", problem.width, "WO", "WF"),
    ):
        spans = [(getattr(tile, axis.out), getattr(tile, axis.tap)) for tile in levels]
        if counting == "exact":
            yield from _exact_rows(axis, spans, cuts, rule)
        else:
            yield from _paper_rows(axis, spans, cuts)


def _pieces(
    loop: str, lengths: Sequence[int], numbers: Sequence[Count], counting: Counting
) -> Iterator[Sum]:
    kinds = list(piece_kinds(lengths[0], lengths[1:]))
    for i, (above, tile) in enumerate(pairwise(lengths), 1):
        if tile < above:
            level = len(lengths) - 1 - i
            terms: Terms
            if counting == "exact":
                terms = tuple((Factor(f"pieces of {x:,}", n),) for x, n in kinds[i] if x and n)
            else:
                before = Factor(f"#{loop}({level + 1})", numbers[i - 1])
                terms = ((before, Factor(f"ceil({above:,} / {tile:,})", -(-above // tile))),)
            yield Sum(f"#{loop}({level})", terms, numbers[i])


def _exact_rows(
    axis: _Axis, spans: Sequence[tuple[int, int]], cuts: Sequence[Cut], rule: RowRule
) -> Iterator[Sum]:
    """Put blocks of outputs and taps together that load as many rows."""
    levels = list(axis_spans(axis.window, rule, *spans[0], spans[1:]))
    for i in range(1, len(spans)):
        if spans[i] == spans[i - 1]:  # blocks as above load as much
            continue
        rows, pairs = span_rows(axis.window, rule, *levels[i])
        blocks: Counter[int] = Counter()
        for each, number in zip(rows.flat, pairs.flat, strict=True):
            blocks[int(each)] += int(number)
        name = f"{axis.rows} of each"
        terms = tuple((Factor("blocks", n), Factor(name, x)) for x, n in sorted(blocks.items()))
        level, value = len(spans) - 1 - i, getattr(cuts[i], axis.rows)
        yield Sum(f"{axis.rows}({level})", terms if len(terms) <= MOST_TERMS else (), value)


def _paper_rows(
    axis: _Axis, spans: Sequence[tuple[int, int]], cuts: Sequence[Cut]
) -> Iterator[Sum]:
    """Take the source's ratios: tiles of HI rows, as many as go into HO, for every piece of HF."""
    for i in range(1, len(spans)):
        if i > 1 and spans[i] == spans[i - 1]:
            continue
        level, (out, tap) = len(spans) - 1 - i, spans[i]
        ratio = Factor(f"{axis.out} / {axis.out}({level})", spans[0][0] / out)
        why = f"{axis.rows} under {out:,} outputs and {tap:,} taps; docs/model.md section 2"
        under = Factor(f"{axis.size}({level})", int(paper_extent(axis.window, out, tap)), why)
        taps = Factor(f"#{axis.tap}({level})", getattr(cuts[i], axis.tap))
        yield Sum(f"{axis.rows}({level})", ((ratio, under, taps),), getattr(cuts[i], axis.rows))
