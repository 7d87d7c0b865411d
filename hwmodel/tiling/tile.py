"""Tiles a problem by the search that its options name."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

from hwmodel.errors import HwmodelError, TooLarge
from hwmodel.tiling.accesses import Mapping, Traffic, paper_extent, traffic
from hwmodel.tiling.cache import look_up, store
from hwmodel.tiling.effort import effort
from hwmodel.tiling.level_by_level import level_by_level
from hwmodel.tiling.optimal.terms import Certificate, Options, Together
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.rows import TOUCHED, RowRule, at_borders, block_rows, most_of
from hwmodel.work.problem import LONGEST_LOOP, OPERANDS, Extents, Operand, Problem, Window
from hwmodel.work.tensor import Factor, product

MOST_TAPS = 2**12  # of an axis that has as many outputs
WIDEST_BORDER = 2**15  # outputs that meet padding, or taps of which some outputs do
WIDEST_STRIDE = 2**10  # of a layer that is trained
MANY_CLASSES = 2**30  # from which the search keeps shorter lists

__all__ = ["Room", "Tiling", "check_known", "check_size", "counts", "footprints", "tile"]
__all__ += ["tile_rows", "touched_elements"]


class Tiling(NamedTuple):
    """A mapping, and its certificate; None where nothing is known of the optimum."""

    mapping: Mapping
    certificate: Certificate | None


class Room(NamedTuple):
    """What a tile takes of one memory: of each operand that lies there, a product of factors."""

    memory: str
    parts: tuple[tuple[Factor, ...], ...]  # [bit]
    capacity: int | None  # [bit]; None: no end

    @property
    def used(self) -> int:
        """The bits that the parts take together."""
        return sum(map(product, self.parts))


@lru_cache(maxsize=2**16)
def tile(problem: Problem, memories: Memories, options: SearchOptions) -> Tiling:
    """Search the tiling of a problem; its arguments are all that it depends on, and its key.

    Raises: Infeasible, TooLarge, HwmodelError for a chip that the options do not know.
    """
    check_known(memories, options)
    check_size(problem, options.rule)
    if options.search == "level-by-level":
        return Tiling(level_by_level(problem, memories, options.sizes), None)
    chosen = Options(
        partial_sum_bits=options.partial_sum_bits,
        stationary=options.stationary,
        rule=options.rule,
        transfers=options.transfers,
        budget=Options.budget // options.share,
        spare=options.spare,
        slack=options.slack,
    )
    n = problem.extent
    if isqrt(n.N) * isqrt(n.M) * isqrt(n.C) > MANY_CLASSES:  # a loop has 2 sqrt(length) of them
        chosen = replace(chosen, limit=chosen.limit // 10)
    # What zeros save is known after tiles, and moves none.
    dense = memories._replace(zeros="none", codings=())
    key = problem, dense, (options if memories.spatial else chosen)
    found = look_up(key)
    if found is None:  # the searches are loaded where one is made, which takes a while
        if memories.spatial:
            from hwmodel.tiling.spatial.mapper import mapped

            found = mapped(problem, memories, options)
        else:
            from hwmodel.tiling.optimal.search import optimal

            ask = _together if options.share == 1 else None
            mapping, certificate = optimal(problem, memories, chosen, ask)
            found = mapping, certificate
        store(key, found)
        effort.found += 1
    return Tiling(*found)


def _together(
    problem: Problem, memories: Memories, options: Options, known: float, bound: float
) -> Together:
    """`together`, which is loaded where a search asks for it."""
    from hwmodel.tiling.spatial.together import together

    return together(problem, memories, options, known, bound)


@lru_cache(maxsize=2**10)
def check_known(memories: Memories, options: SearchOptions) -> None:
    """See that the rules of counting and of search know such a chip. Raises: HwmodelError."""
    if not memories.spatial:
        if options.transfers == "both" and options.counting == "paper":
            raise HwmodelError(
                "transfers both: counting paper knows only what is asked of the upper memory; use "
                "counting exact"
            )
        return
    old = {"counting": "paper", "search": "level-by-level"}
    stated = [f"{field} {word}" for field, word in old.items() if getattr(options, field) == word]
    if stated:
        raise HwmodelError(
            f"{', '.join(stated)}: the source has no chip with a fanout, an array or a level that "
            "an operand passes by; use accounting full"
        )


@lru_cache(maxsize=2**12)
def check_size(problem: Problem, rule: RowRule) -> None:
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


def counts(problem: Problem, mapping: Mapping, options: SearchOptions) -> list[Traffic]:
    """Elements asked of every level by the counting rule of the options, outermost first."""
    return traffic(problem, mapping, options.counting, options.rule)


def footprints(
    problem: Problem, mapping: Mapping, memories: Memories, level: int, options: SearchOptions
) -> list[Room]:
    """Return what a mapping takes of each memory of a level below the outermost.

    A capacity of None has no end. I counts with its halo, where that is widest; sums count,
    unfinished, only where the boundary above holds them, and at level 0 of a chip with an array,
    where they rest between cycles.

    Source: docs/model.md section 3; docs/tiling.md; rows from `tile_rows`.
    """
    tile, held = mapping.tiles[level - 1], mapping.held[level - 1]
    sum_bits = partial_sum_bits(problem, options.partial_sum_bits)
    together = mapping.together(level)
    several = (Factor("g", together, "side by side below"),) if together > 1 else ()
    rows, columns = tile_rows(problem, tile, options)
    loops = {loop: Factor(loop, length) for loop, length in tile._asdict().items()}

    def part(*names: str) -> tuple[Factor, ...]:
        return *several, *(loops[name] for name in names)

    parts: dict[Operand, tuple[Factor, ...]] = {
        "I": (Factor("b_I", problem.bits.I), *part("N", "C"), Factor("rows", rows),
              Factor("columns", columns)),
        "F": (Factor("b_F", problem.bits.F), *part("M", "C", "HF", "WF")),
        "O": (Factor("b_sum", sum_bits), *part("N", "M", "HO", "WO")),
    }  # fmt: skip
    resting = memories.array is not None and level == len(memories.levels) - 1
    kept = [operand for operand in OPERANDS if operand != "O" or held == "O" or resting]
    return [
        Room(
            buffer.name,
            tuple(parts[operand] for operand in kept if operand in buffer.holds),
            buffer.capacity_bits,
        )
        for buffer in memories.levels[level].buffers
        if not buffer.passed
    ]


def tile_rows(problem: Problem, tile: Extents, options: SearchOptions) -> tuple[int, int]:
    """Rows and columns of I that a tile must have room for, as the search has it.

    Level by level: those of the source's HI_i; optimal: the most that a tile can need.
    """
    n, rule = problem.extent, options.rule

    def rows(window: Window, outs: tuple[int, int], taps: tuple[int, int]) -> int:
        if options.search == "level-by-level":
            return int(paper_extent(window, outs[1], taps[1]))
        whole = int(block_rows(window, rule, 0, outs[0], 0, taps[0]))
        return most_of(window, rule, whole, outs[1], taps[1])

    return (
        rows(problem.height, (n.HO, tile.HO), (n.HF, tile.HF)),
        rows(problem.width, (n.WO, tile.WO), (n.WF, tile.WF)),
    )


def touched_elements(problem: Problem) -> int:
    """Count the elements of I that some window touches: each must be moved once at least."""
    n = problem.extent
    rows = int(block_rows(problem.height, TOUCHED, 0, n.HO, 0, n.HF))
    columns = int(block_rows(problem.width, TOUCHED, 0, n.WO, 0, n.WF))
    return problem.groups * n.N * n.C * rows * columns
