"""What a tiling does to one product: room taken, pieces of the loops, rows that they load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Buffer, Hardware
from hwmodel.tiling.accesses import (
    Cut,
    Mapping,
    Traffic,
    axis_spans,
    exact_cuts,
    paper_cuts,
    paper_extent,
)
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.rows import RowRule, span_rows
from hwmodel.tiling.tile import counts, footprints, tile_rows
from hwmodel.views.explain.steps import TIMES, Step, Table, computed, count, times
from hwmodel.work.problem import Extents, Operand, Problem, Window

__all__ = ["Tiled", "piece_steps", "pieces_table", "room_steps", "row_steps"]
__all__ += ["shown_windows"]

_LISTED = 12  # kinds of blocks whose rows are written out; of more, only the sum


@dataclass(frozen=True)
class Tiled:
    """One product, how it is tiled, on which chip, counted how; and what follows from that."""

    problem: Problem
    mapping: Mapping
    hardware: Hardware
    accounting: Accounting

    @property
    def rule(self) -> RowRule:
        """Which rows of I are counted."""
        return RowRule(self.accounting.counting.rows, self.accounting.counting.padding)

    @cached_property
    def cuts(self) -> list[Cut]:
        """The cut of every level, outermost first, and that of the MACs."""
        if self.accounting.counting.counting == "exact":
            return exact_cuts(self.problem, self.mapping.tiles, self.rule)
        return paper_cuts(self.problem, self.mapping.tiles)

    @cached_property
    def asked(self) -> list[Traffic]:
        """Elements that every level is asked for, as the report counts them."""
        return counts(self.problem, self.mapping, self.accounting)

    @property
    def tiles(self) -> list[Extents]:
        """The whole problem, then the tile of every level below the outermost."""
        return [self.problem.extent, *self.mapping.tiles]

    @property
    def sum_bits(self) -> int:
        """Width of an unfinished sum [bit]."""
        return partial_sum_bits(self.problem, self.accounting.widths.partial_sum_bits)

    def number(self, index: int) -> str:
        """What `levels[index]` is called in the formulas, where 0 is next to the MACs."""
        last = len(self.hardware.levels) - 1
        return str(last - index) if index <= last else "MAC"


class _Axis(NamedTuple):
    """Rows or columns: what they are called, how outputs read them, which loops run over them."""

    word: str
    size: str  # of a tile's part of I
    window: Window
    out: str
    tap: str


def _axes(problem: Problem) -> tuple[_Axis, _Axis]:
    return (
        _Axis("rows", "HI", problem.height, "HO", "HF"),
        _Axis("columns", "WI", problem.width, "WO", "WF"),
    )


def room_steps(tiled: Tiled) -> Iterator[Step]:
    """Bits that the tile of every level takes of every memory there."""
    hardware, accounting, mapping = tiled.hardware, tiled.accounting, tiled.mapping
    for index, (tile, held) in enumerate(zip(mapping.tiles, mapping.held, strict=True), 1):
        rows, columns = tile_rows(tiled.problem, tile, accounting)
        found = footprints(tiled.problem, tile, hardware, index, accounting, held)
        for buffer, (name, used, room) in zip(hardware.levels[index].buffers, found, strict=True):
            formula, numbers = _room(tiled, index, buffer, (rows, columns))
            if numbers:
                free = "unlimited" if room is None else f"of {room:,}, {100 * used / room:.1f} %"
                yield computed(f"{name} is taken up", formula, numbers, used, f"bit, {free}")


def _room(tiled: Tiled, index: int, buffer: Buffer, ifmap: tuple[int, int]) -> tuple[str, str]:
    """Formula and numbers of what one memory holds of a tile."""
    tile, i = tiled.mapping.tiles[index - 1], tiled.number(index)
    bits = tiled.problem.bits
    terms: dict[Operand, tuple[str, str]] = {
        "I": (f"b_I N({i}) C({i}) HI({i}) WI({i})", times(bits.I, tile.N, tile.C, *ifmap)),
        "F": (
            f"b_F M({i}) C({i}) HF({i}) WF({i})",
            times(bits.F, tile.M, tile.C, tile.HF, tile.WF),
        ),
        "O": (
            f"b_sum N({i}) M({i}) HO({i}) WO({i})",
            times(tiled.sum_bits, tile.N, tile.M, tile.HO, tile.WO),
        ),
    }
    held = [
        terms[operand]
        for operand in buffer.holds
        if operand != "O" or tiled.mapping.held[index - 1] == "O"
    ]
    return " + ".join(formula for formula, _ in held), " + ".join(numbers for _, numbers in held)


def pieces_table(tiled: Tiled) -> Table:
    """Pieces of every loop, and rows and columns that they load together, at every level."""
    header = ("level", *(f"#{loop}" for loop in Extents._fields), "rows", "columns")
    names = [f"{level.level} ({level.name})" for level in tiled.hardware.levels]
    below = zip([*names[1:], "MAC"], tiled.cuts[1:], strict=True)
    return Table(header, tuple((name, *map(count, cut)) for name, cut in below))


def piece_steps(tiled: Tiled) -> Iterator[Step]:
    """How many pieces each loop has at a level, where that level cuts it."""
    cuts, tiles = tiled.cuts, tiled.tiles
    for loop in Extents._fields:
        lengths = Counter({getattr(tiles[0], loop): 1})
        for index in range(1, len(tiles)):
            outer, inner = getattr(tiles[index - 1], loop), getattr(tiles[index], loop)
            lengths = _cut(lengths, inner)
            if inner == outer:
                continue
            i, above = tiled.number(index), tiled.number(index - 1)
            before, after = getattr(cuts[index - 1], loop), getattr(cuts[index], loop)
            text = f"pieces of {loop} at level {i}"
            if tiled.accounting.counting.counting == "paper":
                formula = f"#{loop}({i}) = #{loop}({above}) ceil({loop}({above}) / {loop}({i}))"
                numbers = times(before, f"ceil({outer} / {inner})")
            else:
                parts = ", ".join(f"{number:,} of {length}" for length, number in lengths.items())
                formula = f"#{loop}({i}), of lengths that add up to {loop}: {parts}"
                numbers = " + ".join(map(count, lengths.values()))
            yield computed(text, formula, numbers, after)


def _cut(lengths: Counter[int], tile: int) -> Counter[int]:
    """Pieces by length, each cut into tiles and a rest."""
    cut: Counter[int] = Counter()
    for length, number in lengths.items():
        cut[tile] += number * (length // tile)
        cut[length % tile] += number
    return +Counter({length: number for length, number in cut.items() if length})


def row_steps(tiled: Tiled) -> Iterator[Step]:
    """Rows and columns of I that the pieces of every level load together, and the MACs.

    A level whose blocks are as long as those of the level above loads the same, and has no step.
    """
    make = _exact_rows if tiled.accounting.counting.counting == "exact" else _paper_rows
    for height, width in zip(*(make(tiled, axis) for axis in _axes(tiled.problem)), strict=True):
        if height[2:] == width[2:]:
            yield height._replace(text=f"{height.text}; columns alike")
        else:
            yield from (height, width)


def _exact_rows(tiled: Tiled, axis: _Axis) -> Iterator[Step]:
    """Rows of the blocks of HO and HF one by one, those that load as many put together."""
    n, cuts = tiled.problem.extent, tiled.cuts
    whole, taps = getattr(n, axis.out), getattr(n, axis.tap)
    tiles = [(getattr(t, axis.out), getattr(t, axis.tap)) for t in tiled.mapping.tiles]
    levels = list(axis_spans(axis.window, tiled.rule, whole, taps, tiles))
    for index in _cutting(tiled):
        rows, pairs = span_rows(axis.window, tiled.rule, *levels[index])
        blocks: Counter[int] = Counter()
        for each, number in zip(rows.flat, pairs.flat, strict=True):
            blocks[int(each)] += int(number)
        i, total = tiled.number(index), getattr(cuts[index], axis.word)
        many = "1 block" if blocks.total() == 1 else f"{blocks.total():,} blocks"
        text = f"{axis.word} of I that {many} of {axis.out} and {axis.tap} load at level {i}"
        formula = f"{axis.word}({i}) = sum over blocks of number times {axis.word}"
        parts = [times(number, each) for each, number in sorted(blocks.items())]
        if len(parts) <= _LISTED:
            yield computed(text, formula, " + ".join(parts), total)
        else:
            yield Step(f"{text}, of {len(parts)} sizes", formula, result=count(total))
    pairs_used = getattr(cuts[-1], axis.word)
    yield computed(
        f"pairs of an output and a tap that meet a {axis.word[:-1]}; the others meet padding or "
        "zeros put in",
        f"{axis.word}(MAC) = {axis.out} {axis.tap} - those that meet none",
        f"{times(whole, taps)} - {count(whole * taps - pairs_used)}",
        pairs_used,
    )


def _paper_rows(tiled: Tiled, axis: _Axis) -> Iterator[Step]:
    """Rows by the source's ratios: HO / HO_i pieces of HI_i rows, for every piece of HF."""
    n, cuts = tiled.problem.extent, tiled.cuts
    whole, taps = getattr(n, axis.out), getattr(n, axis.tap)
    for index in _cutting(tiled):
        i, cut, tile = tiled.number(index), cuts[index], tiled.tiles[index]
        out, tap = getattr(tile, axis.out), getattr(tile, axis.tap)
        under = int(paper_extent(axis.window, out, tap))
        formula, numbers = _extent(axis, out, tap)
        yield computed(
            f"{axis.word} of I under a tile of level {i}", f"{axis.size}({i}) = {formula}",
            numbers, under,
        )  # fmt: skip
        yield computed(
            f"{axis.word} of I that the pieces of level {i} load",
            f"{axis.word}({i}) = {axis.out} / {axis.out}({i}) {axis.size}({i}) #{axis.tap}({i})",
            f"{whole} / {times(out, under, getattr(cut, axis.tap))}",
            getattr(cut, axis.word),
        )
    spread = axis.window.spread
    yield computed(
        f"{axis.word} of I that the MACs read, the useful share of them",
        f"{axis.word}(MAC) = {axis.out} {axis.tap}{' / spread' if spread > 1 else ''}",
        times(whole, taps) + (f" / {spread}" if spread > 1 else ""),
        getattr(cuts[-1], axis.word),
    )


def _cutting(tiled: Tiled) -> list[int]:
    """Levels whose blocks are not those of the level above, and the first below the outermost."""
    axes = [(tile.HO, tile.HF, tile.WO, tile.WF) for tile in tiled.mapping.tiles]
    return [i for i, loops in enumerate(axes, 1) if i == 1 or loops != axes[i - 2]]


def _extent(axis: _Axis, out: int, tap: int) -> tuple[str, str]:
    """Formula and numbers of HI_i."""
    window = axis.window
    span = f"({out} - 1) {TIMES} {window.step} + ({tap} - 1) {TIMES} {window.dilation}"
    if window.spread == 1:
        return f"({axis.out} - 1) step + ({axis.tap} - 1) dilation + 1", f"{span} + 1"
    return (
        f"min(floor((({axis.out} - 1) step + ({axis.tap} - 1) dilation) / spread) + 1, size)",
        f"min(floor(({span}) / {window.spread}) + 1, {window.size})",
    )


def shown_windows(problem: Problem) -> Sequence[str]:
    """How outputs read I along both axes, in words."""
    shown = []
    for axis in _axes(problem):
        w = axis.window
        place = f"{w.step} {axis.out.lower()} + {w.dilation} {axis.tap.lower()}"
        place += f" - {w.pad}" if w.pad > 0 else f" + {-w.pad}" if w.pad else ""
        place = f"({place}) / {w.spread} where it is whole" if w.spread > 1 else place
        shown.append(f"{axis.size.lower()} = {place}, of {w.size:,} {axis.word}")
    return shown
