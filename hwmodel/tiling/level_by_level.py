"""The source's level-by-level search for the tiles of a problem.

Levels are settled in turn from the top: among the tiles that fit the next level, the one of least
energy at this step. It is a greedy rule; nothing says that it ends at the least total.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf, isqrt, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import Infeasible, TooLarge
from hwmodel.tiling.accesses import (
    Count,
    Cut,
    Mapping,
    Tile,
    between,
    paper_cut,
    paper_extent,
    paper_top,
)
from hwmodel.tiling.options import Memories, Sizes
from hwmodel.work.problem import Extents, Operand, Problem

__all__ = ["Greedy", "footprint_bits", "greedy", "level_by_level", "level_costs"]

MAX_TILES = 2**22  # of one level; a thousand times what a large image and batch take
FEW = 2**13  # of one level, that are remembered for other prices
MOST_REMEMBERED = 2**11  # levels of a problem that are remembered as they were settled


class LevelCost(NamedTuple):
    """All of a chip on which the tile of one level depends."""

    capacity_I: float  # of the memory that holds I [bit]; infinite: unlimited
    capacity_F: float
    shared: bool  # whether that is one memory
    read_I: float  # from the level above [chip's unit/bit]
    read_F: float  # from this level [chip's unit/bit]


class Settled:
    """A tile that is settled, and those of the next level that have been settled within it."""

    def __init__(self, cut: Cut, tiles: tuple[Extents, ...]) -> None:
        self.cut, self.tiles = cut, tiles
        self.mapping = Mapping(tiles, tuple("F" for _ in tiles))
        self.below: dict[LevelCost, Settled] = {}
        self.same: dict[Extents, Settled] = {}  # the same ones by their tiles


class Greedy:
    """The greedy search of one problem; what was settled once is remembered."""

    def __init__(self, problem: Problem, sizes: Sizes) -> None:
        self.problem, self.sizes = problem, sizes
        self._forget()

    def _forget(self) -> None:
        self.top, self.remembered = Settled(paper_top(self.problem), ()), 0

    def mapping(self, costs: Sequence[LevelCost], hardware: Memories) -> Mapping:
        """Return the tiling on a chip; equal ones are one object. Raises: Infeasible, TooLarge.

        Args:
            costs: of the hardware, as `level_costs` lists them.
        """
        at = self.top
        for cost in costs:
            at = at.below.get(cost) or self._settle(at, cost, hardware)
        return at.mapping

    def _settle(self, above: Settled, cost: LevelCost, hardware: Memories) -> Settled:
        """Settle the level below a tile."""
        level = len(above.tiles) + 1
        above_tile = above.tiles[-1] if above.tiles else self.problem.extent
        try:
            found = _settled(Step(self.problem, above.cut, above_tile, cost, self.sizes))
        except TooLarge as error:
            error.what = f"tiles of {hardware.levels[level].name} to compare"
            raise
        if found is None:
            raise _infeasible(self.problem, hardware, level)
        tile, cut = found
        if tile not in above.same:
            above.same[tile] = Settled(cut, (*above.tiles, tile))
        settled = above.below[cost] = above.same[tile]
        self.remembered += 1
        if self.remembered > MOST_REMEMBERED:
            self._forget()
        return settled


class Step(NamedTuple):
    """Everything on which the tile of one level depends."""

    problem: Problem
    above: Cut
    above_tile: Extents
    cost: LevelCost
    sizes: Sizes  # that are tried


def level_by_level(problem: Problem, hardware: Memories, sizes: Sizes = "quotients") -> Mapping:
    """Search tiles by the source's greedy rule, filters held at every boundary.

    Args:
        sizes: the extents that are tried: the values of ceil(D / k), or every integer.

    Source: BOLD, appendix, algorithm of the tiling search (docs/model.md section 3).
    Raises: Infeasible, TooLarge.
    """
    return greedy(problem, sizes).mapping(level_costs(hardware), hardware)


@lru_cache(maxsize=2**10)
def greedy(problem: Problem, sizes: Sizes) -> Greedy:
    """Return the search of a problem."""
    return Greedy(problem, sizes)


def level_costs(hardware: Memories) -> tuple[LevelCost, ...]:
    """List what tiles depend on at every level below the outermost."""
    found = []
    for level in range(1, len(hardware.levels)):
        I, F = hardware.holder(level, "I"), hardware.holder(level, "F")  # noqa: E741
        found.append(
            LevelCost(
                capacity_I=inf if I.capacity_bits is None else float(I.capacity_bits),
                capacity_F=inf if F.capacity_bits is None else float(F.capacity_bits),
                shared=I is F,
                read_I=hardware.holder(level - 1, "I").read_energy_per_bit,
                read_F=F.read_energy_per_bit,
            )
        )
    return tuple(found)


def footprint_bits(problem: Problem, tile: Tile, operand: Operand) -> Count:
    """Return the bits that an operand of a tile takes, I with its halo."""
    if operand == "I":
        rows = paper_extent(problem.height, tile.HO, tile.HF)
        columns = paper_extent(problem.width, tile.WO, tile.WF)
        return problem.bits.I * tile.N * tile.C * rows * columns
    if operand == "F":
        return problem.bits.F * tile.M * tile.C * tile.HF * tile.WF
    return problem.bits.O * tile.N * tile.M * tile.HO * tile.WO


def _settled(step: Step) -> tuple[Extents, Cut] | None:
    """Choose the tile of a level; return it with its cut, or None where no tile fits.

    The cost of a tile is n^I_{i+1} eps_{i+1} |I| b^I + n^F_i eps_i |F| b^F with this level's own
    factors n, those of the levels above left out. Partial sums cost the same for all tiles that
    are compared. Of equal tiles the one that is largest in M, then N, HO, WO is taken. The
    reduction is cut only where nothing fits otherwise.
    """
    problem, above, above_tile = step.problem, step.above, step.above_tile
    tried = _few_tried if _number(above_tile, step.sizes) <= FEW else _tried
    # Prices move no candidate, so that steps that differ in them alone share those.
    found = tried(step._replace(cost=step.cost._replace(read_I=0.0, read_F=0.0)))
    if found is None:
        return None
    whole, tiles, I_reads, F_reads = found
    top = paper_top(problem)
    area, there = above.rows * above.columns, top.rows * top.columns
    visits_I = above.M * area / there if there else above.M  # nothing is read
    visits_F = above.N * above.HO * above.WO
    price_I = step.cost.read_I * problem.bits.I / visits_I
    price_F = step.cost.read_F * problem.bits.F / visits_F
    cost = I_reads * price_I + F_reads * price_F
    equal = np.flatnonzero(cost == cost.min())
    equal = equal[tiles.M[equal] == tiles.M[equal].max()]
    least = tiles._replace(**{d: getattr(tiles, d)[equal] for d in ("N", "M", "HO", "WO")})
    if step.sizes == "integers":
        least = least._replace(N=_most_images(step, whole, least))
    best = np.lexsort((least.WO, least.HO, least.N))[-1]
    tile = whole._replace(**{d: int(getattr(least, d)[best]) for d in ("N", "M", "HO", "WO")})
    return tile, paper_cut(problem, above, above_tile, tile)


def _tried(step: Step) -> tuple[Extents, Tile, Count, Count] | None:
    """Return the candidates for a level, whatever the prices; None where no tile fits.

    Returns: the tile that they are in, whose reduction they share; they; and how many elements of
        I come from the level above and of F go to the level below for each of them.
    """
    problem, above, above_tile = step.problem, step.above, step.above_tile
    for whole in _reductions(above_tile):
        tiles = _fitting(step, whole)
        if tiles.M.size:
            cut = paper_cut(problem, above, above_tile, tiles)
            reads = between(problem, above, cut).I_reads, between(problem, cut, cut).F_reads
            return whole, tiles, *reads
    return None


_few_tried = lru_cache(maxsize=128)(_tried)  # of some 400 kilobytes at most


def _reductions(above_tile: Extents) -> Iterator[Extents]:
    """Yield tiles with the reduction whole, C in 2, 4, 8 ... parts, then the taps by halves."""
    yield above_tile
    for dimension in ("C", "HF", "WF"):
        whole, parts = getattr(above_tile, dimension), 1
        while getattr(above_tile, dimension) > 1:
            parts *= 2
            above_tile = above_tile._replace(**{dimension: -(-whole // parts)})
            yield above_tile


@lru_cache(maxsize=1024)
def candidates(extent: int) -> NDArray[np.int64]:
    """Return the distinct values of ceil(extent / k), k = 1 ... extent, the largest first.

    >>> candidates(9).tolist()
    [9, 5, 3, 2, 1]
    """
    k = np.arange(1, isqrt(extent) + 1)
    quotients = (extent - 1) // k  # ceil(D / k) = floor((D - 1) / k) + 1, all of them different
    found = np.concatenate([quotients, np.arange(quotients[-1] - 1, -1, -1)]) + 1
    found.flags.writeable = False  # every caller gets the same
    return found


def integers(extent: int) -> NDArray[np.int64]:
    """Return every length up to an extent, the largest first."""
    return np.arange(extent, 0, -1)


def _lengths(whole: Extents, sizes: Sizes) -> tuple[NDArray[np.int64], ...]:
    """Return the extents of N, HO and WO that are tried."""
    of_maps = integers if sizes == "integers" else candidates
    return candidates(whole.N), of_maps(whole.HO), of_maps(whole.WO)


def _number(whole: Extents, sizes: Sizes) -> int:
    """Count the tiles that are compared at most."""
    return prod(extents.size for extents in _lengths(whole, sizes))


def _fitting(step: Step, whole: Extents) -> Tile:
    """Return the tiles within `whole` that fit the level and may be the best, as arrays [tile].

    For each (N, HO, WO) only the largest M that fits: filters are held while ifmaps pass once
    for every block of them, so a larger M never costs more. Where every integer is tried, of
    those N that cut the images into as many blocks only the smallest: it costs the same and
    leaves the most room. Entries are floats, which count further than 64-bit integers.

    Raises: TooLarge.
    """
    every = step.sizes == "integers"
    axes = [extents.astype(float) for extents in _lengths(whole, step.sizes)]
    count = _number(whole, step.sizes)
    if count > MAX_TILES:
        raise TooLarge("tiles of a level to compare", count, MAX_TILES)
    N, HO, WO = np.meshgrid(*axes, indexing="ij", sparse=True)
    problem: Problem = step.problem
    tile: Tile = whole
    bits_I = footprint_bits(problem, tile._replace(N=N, HO=HO, WO=WO), "I")
    bits_of_one_M = footprint_bits(problem, whole._replace(M=1), "F")
    room_F = step.cost.capacity_F - bits_I * step.cost.shared
    fits = (bits_I <= step.cost.capacity_I) & (room_F >= bits_of_one_M)
    N, HO, WO = (np.broadcast_to(axis, fits.shape)[fits] for axis in (N, HO, WO))
    most = np.broadcast_to(room_F, fits.shape)[fits] / max(bits_of_one_M, 1)
    if every:
        return tile._replace(N=N, M=np.minimum(np.floor(most), whole.M), HO=HO, WO=WO)
    M = candidates(whole.M)[::-1].astype(float)
    return tile._replace(N=N, M=M[np.searchsorted(M, most, side="right") - 1], HO=HO, WO=WO)


def _most_images(step: Step, whole: Extents, tiles: Tile) -> NDArray[np.float64]:
    """Return for each tile the most images that it can have at its cost: in as many blocks."""
    blocks = -(-whole.N // tiles.N)
    as_many = np.where(blocks > 1, -(-whole.N // np.maximum(blocks - 1, 1)) - 1, whole.N)
    of_one = footprint_bits(step.problem, tiles._replace(N=1), "I")
    room = np.minimum(
        step.cost.capacity_I,
        step.cost.capacity_F - footprint_bits(step.problem, tiles, "F")
        if step.cost.shared
        else inf,
    )
    most: NDArray[np.float64] = np.minimum(as_many, np.floor(room / of_one))
    return most


def _infeasible(problem: Problem, hardware: Memories, level: int) -> Infeasible:
    """Make the error that names the memory too small for one element of each of its operands."""
    for buffer in hardware.levels[level].buffers:
        operands = [operand for operand in ("I", "F") if operand in buffer.holds]
        needs = sum(getattr(problem.bits, operand) for operand in operands)
        if buffer.capacity_bits is not None and needs > buffer.capacity_bits:
            return Infeasible(buffer.name, " and ".join(operands), needs, buffer.capacity_bits)
    raise AssertionError("a tile of one element fits every buffer, yet none was found")
