"""Bounds and searches of layers whose rows bend, whose cycles do not divide, and of long axes."""

from dataclasses import replace

import numpy as np
import pytest

from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import (
    Array,
    Bound,
    Memories,
    Memory,
    MemoryLevel,
    SearchOptions,
    memories,
)
from hwmodel.tiling.rows import RowRule
from hwmodel.tiling.spatial import mapper
from hwmodel.tiling.spatial.choices import holdings
from hwmodel.tiling.spatial.mapper import mapped
from hwmodel.tiling.spatial.minorants import loaded
from hwmodel.tiling.spatial.neighbours import TILES, neighbours
from hwmodel.tiling.spatial.parted import Parts
from hwmodel.tiling.spatial.paths import Axis
from hwmodel.tiling.spatial.space import GROUPS, Space, candidates
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.test_spatial_search import energy, fits

RULE = RowRule("touched", "skipped")
ASKED = SearchOptions(
    search="optimal",
    stationary="best",
    counting="exact",
    rows="touched",
    padding="skipped",
    partial_sum_bits=32,
    transfers="upper",
)


def parts(problem, chip):
    space = Space(problem, chip, ASKED)
    return Parts.of(space, holdings("best", space.depth), apart=False)


@pytest.mark.parametrize("tile", [24, 16, 12, 8, 6, 4, 2])
def test_planes_know_the_halo_of_each_cut_by_hand(tile):
    """48 rows, taken 3 by 3 from 48 places, padded by one: each cut of the places loads two anew."""
    planes = loaded(Axis(Window(48, 1, 1, 1, 1), RULE, 3, 48))
    height = np.exp((planes.constant + planes.slopes @ np.log([3, tile])).max())
    rows = 48 + 2 * (48 // tile - 1)
    assert 0.99 * rows <= height <= rows * (1 + 1e-9)


@pytest.mark.parametrize(("channels", "cycles"), [(3, 2), (4, 2), (5, 3), (7, 4)])
@pytest.mark.parametrize("fanout", [1, 6])
def test_an_array_cuts_channels_into_whole_cycles_by_hand(channels, cycles, fanout):
    """Nothing is paid but cycles, or moments, of an array that takes two channels at once."""
    free = Memory("free", ("I", "F", "O"), None, 0.0, 0.0)
    levels = tuple(MemoryLevel(f"L{i}", (free,), n) for i, n in enumerate((1, fanout)))
    array = Array((Bound(("C",), 2),), "none", None, 1.0)
    problem = Problem(Extents(2, 3, channels, 4, 1, 1, 1), Window(4), Window(1), Widths(8, 8, 8), 1)
    least = parts(problem, Memories(levels, array)).least
    assert least == pytest.approx(2 * 3 * 4 * cycles, rel=1e-3)
    moments = Memories(levels, array._replace(cycle_energy=0.0), 1.0)
    assert parts(problem, moments).least == pytest.approx(24 * cycles / fanout, rel=1e-3)


def test_rows_that_fall_at_once_are_looked_at_part_by_part():
    """Three taps twelve rows apart: tiles of up to 12 outputs share no row, larger ones do."""
    window = Window(65, 1, 12, 12, 12)
    problem = Problem(Extents(16, 2048, 256, 65, 65, 3, 3), window, window, Widths(32, 32, 32), 1)
    chip = memories(load(Hardware, "eyeriss"))
    every = parts(problem, chip)
    before = every.least
    every.cut(np.inf)
    assert every.least >= 1.05 * before
    assert mapped(problem, chip, ASKED)[1].energy >= every.least


def test_a_bound_is_found_where_rows_lie_far_apart():
    """Newton's method ended before it came near: the bound was 0, and sizes were chance."""
    window = Window(16, 1, 1, 13, 13, 14)  # patches of 14 x 14, backwards
    problem = Problem(Extents(16, 3, 1024, 224, 224, 14, 14), window, window, Widths(8, 8, 8), 1)
    chip = memories(load(Hardware, "v100-board"))
    assert parts(problem, chip).least >= 0.85 * mapped(problem, chip, ASKED)[1].energy


LONG = Problem(  # ten taps of a signal five apart, backwards
    Extents(2, 1, 8, 20_000, 1, 10, 1), Window(3999, 1, 1, 9, 9, 5), Window(1),
    Widths(32, 32, 32), 1,
)  # fmt: skip


def test_long_axes_are_counted_where_they_were_estimated():
    """The energy is that of the mapping, and its bound is near."""
    chip = memories(load(Hardware, "v100-board"))
    mapping, proof = mapped(LONG, chip, ASKED)
    assert proof.energy == pytest.approx(energy(LONG, mapping, chip, ASKED), rel=1e-12)
    assert proof.gap <= 0.05


@pytest.mark.parametrize("taps", [10, 9])
@pytest.mark.parametrize("chip", ["v100-board", "eyeriss", "ascend-cube"])
def test_estimates_of_long_axes_are_near_their_counts(chip, taps):
    """Of every plan, where sizes are multiples of the period of rows, or the whole loop."""
    problem = replace(LONG, extent=LONG.extent._replace(HF=taps))
    space = Space(problem, memories(load(Hardware, chip)), ASKED)
    rough = space.roughly
    assert rough.rough and space.roughly == replace(space, rough=True)
    group = GROUPS.index(("HO", "HF"))
    for outs in ((20_000, 5_000, 500, 100, 20), (10_000, 10_000, 2_000, 50, 5)):
        free = space.columns["HO"].chosen
        sizes = tuple(
            space.chain(loop, np.array([chosen], np.int64))
            for loop, chosen in (
                ("HO", (*outs, 1)[-free:] if free > 5 else outs[:free]),
                ("HF", (taps,) * space.columns["HF"].chosen),
            )
        )
        for held in holdings("best", space.depth):
            for plan in space.paid.terms(held):
                counted = space.count(group, plan, sizes)
                assert rough.count(group, plan, sizes) == pytest.approx(counted, rel=0.05)


def test_a_short_axis_is_not_estimated():
    short = LONG.extent._replace(HO=500)
    problem = replace(LONG, extent=short, height=Window(99, 1, 1, 9, 9, 5))
    space = Space(problem, memories(load(Hardware, "v100-board")), ASKED)
    assert space.roughly is space


def test_chains_around_one_have_multiples_of_what_is_inside_by_hand():
    """Of 50, 50 and 5 with a cycle of 20 the tiles are 40: 50 would leave a rest of 10 in each."""
    space = Space(
        Problem(Extents(256, 1, 1, 1, 1, 1, 1), Window(1), Window(1), Widths(8, 8, 8), 1),
        memories(load(Hardware, "ascend-cube")),
        ASKED,
    )
    near = {tuple(chain) for chain in neighbours(space, 0, ((256, 50, 50, 5),)).tolist()}
    cycles = [n for n in (*candidates(256, TILES), *candidates(50, TILES)) if n < 50 and 50 % n]
    assert len(cycles) > 5
    for cycle in cycles:
        assert (256, 50, 50, cycle) in near
        tile = 50 // cycle * cycle
        assert (256, tile, tile, cycle) in near


# Signals back through every fifth sample: four of five taps meet nothing.
STRIDED = Problem(
    Extents(1, 64, 32, 1, 2500, 1, 9), Window(1), Window(500, 1, 1, 4, 4, 5), Widths(16, 16, 16), 1
)


def test_chains_around_one_have_whole_beats_by_hand():
    """Seven even parts of 2,500 are of 358, and 14 of 179: in whole fives of 360 and 180."""
    space = Space(STRIDED, memories(load(Hardware, "v100-board")), ASKED)
    chosen = space.columns["WO"].chosen
    own = ((2500,) * chosen, (9,) * space.columns["WF"].chosen)
    near = neighbours(space, 4, own)[:, :chosen]
    tiles = candidates(2500, TILES)
    assert {358, 179} <= set(tiles)
    found = set(near[:, -1].tolist())
    assert {360, 180, 1} <= found and not {n for n in tiles if n > 1 and n % 5} & found


def resized(mapping, place, size):
    """A mapping with one size of WO changed, those outside and inside of it kept in order."""
    steps = [one for pair in zip(mapping.unions, mapping.tiles, strict=True) for one in pair]
    cycle = [mapping.cycle] if mapping.cycle is not None else []
    sizes = [
        max(one.WO, size) if i < place else min(one.WO, size) if i > place else size
        for i, one in enumerate([*steps, *cycle])
    ]
    new = [one._replace(WO=n) for one, n in zip([*steps, *cycle], sizes, strict=True)]
    tiles, unions = tuple(new[1 : len(steps) : 2]), tuple(new[0 : len(steps) : 2])
    return replace(mapping, tiles=tiles, unions=unions, cycle=new[-1] if cycle else None)


def test_no_size_of_whole_beats_is_cheaper_than_what_is_found():
    chip = memories(load(Hardware, "v100-board"))
    mapping, proof = mapped(STRIDED, chip, ASKED)
    tried = [
        one
        for place in (4, 5)  # of the lanes: together, and of one
        for size in range(5, 61, 5)
        if fits(STRIDED, one := resized(mapping, place, size), chip, ASKED)
    ]
    assert len(tried) > 10
    least = min(energy(STRIDED, one, chip, ASKED) for one in tried)
    assert least >= proof.energy * (1 - 1e-3)


def test_rows_between_those_that_are_touched_are_no_part_of_the_bound(monkeypatch):
    """Two outputs two rows apart touch two rows, but bound three; of single outputs one is read."""
    monkeypatch.setattr(mapper, "WALKED", 0)
    problem = Problem(Extents(1, 1, 1, 2, 1, 1, 1), Window(3, 2), Window(1), Widths(8, 8, 8), 1)
    outer = Memory("outer", ("I", "F", "O"), None, 100.0, 0.0)
    inner = Memory("inner", ("F", "O"), None, 1.0, 0.0)
    levels = MemoryLevel("L0", (outer,)), MemoryLevel("L1", (inner,), 2)
    chip = Memories(levels, Array((Bound(("C",), 1),), "none"))
    asked = replace(ASKED, rows="bounding", partial_sum_bits=8)
    mapping, proof = mapped(problem, chip, asked)
    assert 0 < proof.lower_bound <= proof.energy
    assert proof.energy == pytest.approx(energy(problem, mapping, chip, asked), rel=1e-12)


def test_sums_that_take_no_room_fit_a_memory_without_any(monkeypatch):
    """One bit, shared by four groups side by side, is none for each: nothing was divided by it."""
    monkeypatch.setattr(mapper, "WALKED", 0)
    problem = Problem(Extents(4, 1, 1, 1, 1, 1, 1), Window(1), Window(1), Widths(1, 1, 1), 4)
    outer = Memory("outer", ("I", "F", "O"), None, 100.0, 0.0)
    sums = Memory("sums", ("O",), 1, 1.0, 0.0)
    inner = Memory("inner", ("I", "F", "O"), 100, 1.0, 0.0)
    levels = MemoryLevel("L0", (outer,)), MemoryLevel("L1", (sums,)), MemoryLevel("L2", (inner,), 4)
    chip = Memories(levels, Array((Bound(("C",), 1),), "none"), 1.0)
    asked = replace(ASKED, partial_sum_bits=1)
    mapping, proof = mapped(problem, chip, asked)
    assert fits(problem, mapping, chip, asked)
    assert proof.lower_bound <= proof.energy
