"""How a problem is tiled under an accounting: by the search it names."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from math import isqrt
from typing import NamedTuple

from hwmodel.errors import TooLarge
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping, Traffic, paper_extent, traffic
from hwmodel.tiling.level_by_level import level_by_level
from hwmodel.tiling.optimal.search import Certificate, Options, Stationary, optimal
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.rows import TOUCHED, RowRule, at_borders, block_rows, most_rows
from hwmodel.work.problem import Extents, Operand, Problem, Window

LONGEST_LOOP = 2**31  # iterations
MOST_TAPS = 2**12  # of an axis that has as many outputs
WIDEST_BORDER = 2**15  # outputs that meet padding, or taps of which some outputs do
WIDEST_STRIDE = 2**10  # of a layer that is trained
MANY_CLASSES = 2**30  # from which the search keeps shorter lists

__all__ = ["Tiling", "counts", "footprints", "tile", "tile_rows", "tiling_inputs"]
__all__ += ["touched_elements"]


class Tiling(NamedTuple):
    """A mapping, and what is known of its distance from the optimum; None: nothing."""

    mapping: Mapping
    certificate: Certificate | None


def tile(
    problem: Problem,
    hardware: Hardware,
    accounting: Accounting,
    stationary: Stationary | None = None,
) -> Tiling:
    """The tiling of a problem under an accounting.

    Args:
        stationary: what may be held, where it is not as the accounting says.

    Raises: Infeasible, TooLarge.
    """
    rule = RowRule(accounting.counting.rows, accounting.counting.padding)
    _check_size(problem, rule)
    if accounting.counting.search == "level-by-level":
        return Tiling(level_by_level(problem, hardware), None)
    options = Options(
        partial_sum_bits=accounting.widths.partial_sum_bits,
        stationary=stationary or accounting.counting.stationary,
        rule=rule,
    )
    n = problem.extent
    if isqrt(n.N) * isqrt(n.M) * isqrt(n.C) > MANY_CLASSES:  # a loop has 2 sqrt(length) of them
        options = replace(options, limit=options.limit // 10)
    return Tiling(*optimal(problem, hardware, options))


def tiling_inputs(hardware: Hardware, accounting: Accounting) -> Hashable:
    """All that `tile` reads of a chip and an accounting: where equal, so is every tiling.

    The optimum weighs every energy of every memory. The level-by-level rule compares, for each
    level, the reads of I from the level above with those of F from the level itself, and asks only
    what I and F take of it: no write, no memory for sums, no choice of the accounting enters.
    No price of arithmetic enters either: all tilings of a problem have the same operations.
    """
    levels = hardware.levels
    if accounting.counting.search == "level-by-level":
        upper, lower = range(len(levels) - 1), range(1, len(levels))
        holders = [(hardware.holder(i, "I"), hardware.holder(i, "F")) for i in lower]
        return (
            accounting.counting.search,
            tuple(hardware.holder(i, "I").read_energy_per_bit for i in upper),
            tuple((F.read_energy_per_bit, F.capacity_bits) for _, F in holders),
            tuple((I.capacity_bits, I is F) for I, F in holders),  # noqa: E741
        )
    memories = tuple(
        (index, b.holds, b.capacity_bits, b.read_energy_per_bit, b.write_energy_per_bit)
        for index, level in enumerate(levels)
        for b in level.buffers
    )
    return memories, accounting.counting, accounting.widths.partial_sum_bits


def _check_size(problem: Problem, rule: RowRule) -> None:
    """See that counts stay exact and lists short. Raises: TooLarge.

    Positions and rows of an axis are 64-bit integers: with loops of at most 2^31, strides and
    dilations that fit the image, no product of two of them leaves these. Counts over all loops are
    integers without end.
    """
    for loop, length in problem.extent._asdict().items():
        if length > LONGEST_LOOP:
            raise TooLarge(f"iterations of the loop {loop}", length, LONGEST_LOOP)
    n = problem.extent
    axes = (problem.height, n.HO, n.HF), (problem.width, n.WO, n.WF)
    for window, outs, taps in axes:
        if min(outs, taps) > MOST_TAPS:
            raise TooLarge("taps under as many outputs of one axis", min(outs, taps), MOST_TAPS)
        border = at_borders(window, rule, outs, taps)
        if border > WIDEST_BORDER:
            raise TooLarge("outputs and taps of one axis at its borders", border, WIDEST_BORDER)
        if window.spread > WIDEST_STRIDE:
            raise TooLarge("rows of stride to go back through", window.spread, WIDEST_STRIDE)


def counts(problem: Problem, mapping: Mapping, accounting: Accounting) -> list[Traffic]:
    """Elements asked of every level by the accounting's counting rule, outermost first."""
    rule = RowRule(accounting.counting.rows, accounting.counting.padding)
    return traffic(problem, mapping, accounting.counting.counting, rule)


def footprints(
    problem: Problem,
    tile: Extents,
    hardware: Hardware,
    level: int,
    accounting: Accounting,
    held: Operand,
) -> list[tuple[str, int, int | None]]:
    """What a tile takes of each memory of a level: name, bits taken, bits it has (None: no end).

    I with its halo, where it is widest; sums, unfinished, only where the boundary above holds them.

    Source: spec section 4; the rows as `tile_rows`.
    """
    sum_bits = partial_sum_bits(problem, accounting.widths.partial_sum_bits)
    rows, columns = tile_rows(problem, tile, accounting)
    bits = {
        "I": problem.bits.I * tile.N * tile.C * rows * columns,
        "F": problem.bits.F * tile.M * tile.C * tile.HF * tile.WF,
        "O": sum_bits * tile.N * tile.M * tile.HO * tile.WO * (held == "O"),
    }
    return [
        (buffer.name, sum(bits[operand] for operand in buffer.holds), buffer.capacity_bits)
        for buffer in hardware.levels[level].buffers
    ]


def tile_rows(problem: Problem, tile: Extents, accounting: Accounting) -> tuple[int, int]:
    """Rows and columns of I that a tile must have room for, as the search of `accounting` has it.

    Level by level: those of the source's HI_i; optimal: the most that a tile can need.
    """
    n, rule = problem.extent, RowRule(accounting.counting.rows, accounting.counting.padding)

    def rows(window: Window, outs: tuple[int, int], taps: tuple[int, int]) -> int:
        if accounting.counting.search == "level-by-level":
            return int(paper_extent(window, outs[1], taps[1]))
        whole = int(block_rows(window, rule, 0, outs[0], 0, taps[0]))
        return int(most_rows(window, rule, whole, outs[1], taps[1]))

    return (
        rows(problem.height, (n.HO, tile.HO), (n.HF, tile.HF)),
        rows(problem.width, (n.WO, tile.WO), (n.WF, tile.WF)),
    )


def touched_elements(problem: Problem) -> int:
    """Elements of I that some window touches: each must be moved once at least."""
    n = problem.extent
    rows = int(block_rows(problem.height, TOUCHED, 0, n.HO, 0, n.HF))
    columns = int(block_rows(problem.width, TOUCHED, 0, n.WO, 0, n.WF))
    return problem.groups * n.N * n.C * rows * columns
