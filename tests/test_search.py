"""The level-by-level search against a brute force written down from the model's description."""

from itertools import product
from math import ceil

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwmodel import Infeasible, TooLarge, evaluate
from hwmodel.graph.layers import Conv
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.tiling.level_by_level import candidates, level_by_level
from hwmodel.vary.paths import replaced_all
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.specs import NETWORK, chip, written
from tests.strategies import convolutions, problem

energies = st.tuples(st.integers(1, 50), st.integers(1, 50))


@st.composite
def chips(draw):
    """One or two shared memories under DRAM, perhaps a split one; small, so that tiles are cut."""
    inner = [(draw(st.integers(64, 6000)), *draw(energies)) for _ in range(draw(st.integers(1, 2)))]
    parts = [(draw(st.integers(32, 2000)), *draw(energies)) for _ in "IFO"]
    return chip((None, *draw(energies)), *inner, split=draw(st.sampled_from([None, parts])))


def covered(window, outs, taps):
    return (outs - 1) * window.step + (taps - 1) * window.dilation + 1  # HI_i of the source


def needs(nest, tile):
    """Bits of I and of F in a tile."""
    rows = covered(nest.height, tile.HO, tile.HF)
    columns = covered(nest.width, tile.WO, tile.WF)
    return (
        nest.bits.I * tile.N * tile.C * rows * columns,
        nest.bits.F * tile.M * tile.C * tile.HF * tile.WF,
    )


def fits(nest, tile, hardware, level):
    needed = needs(nest, tile)
    of_I, of_F = (hardware.holder(level, x) for x in "IF")
    if of_I is of_F:
        return sum(needed) <= of_I.capacity_bits
    return all(n <= b.capacity_bits for n, b in zip(needed, (of_I, of_F), strict=True))


def cost(nest, above, tile, is_top, hardware, level):
    """n^I_{i+1} eps_{i+1} |I| b^I + n^F_i eps_i |F| b^F, the ratios alpha written out.

    Every block of taps sees all ifmap blocks again.
    """
    size = [w.size + w.pad + w.pad_end for w in (nest.height, nest.width)]
    HI, WI = size if is_top else (
        covered(nest.height, above.HO, above.HF), covered(nest.width, above.WO, above.WF)
    )  # fmt: skip
    alpha_v, alpha_h = above.HO / HI, above.WO / WI
    alpha_v_i = tile.HO / covered(nest.height, tile.HO, tile.HF)
    alpha_h_i = tile.WO / covered(nest.width, tile.WO, tile.WF)
    taps = ceil(above.HF / tile.HF) * ceil(above.WF / tile.WF)
    n_I = ceil(above.M / tile.M) * (alpha_v / alpha_v_i) * (alpha_h / alpha_h_i) * taps
    n_F = ceil(above.N / tile.N) * ceil(above.HO / tile.HO) * ceil(above.WO / tile.WO)
    n = nest.extent
    of_I = nest.groups * n.N * n.C * size[0] * size[1] * nest.bits.I
    of_F = nest.groups * n.M * n.C * n.HF * n.WF * nest.bits.F
    eps_I = hardware.holder(level - 1, "I").read_energy_per_bit
    eps_F = hardware.holder(level, "F").read_energy_per_bit
    return n_I * eps_I * of_I + n_F * eps_F * of_F


def every(extent):
    return range(extent, 0, -1)


def first_of_the_least(nest, above, is_top, hardware, level):
    """The source's loops over M, N, H, W, each from its largest; a tile wins if it costs less."""
    for C, HF, WF in reductions(above):
        least, best = None, None
        for M, N, HO, WO in product(*(every(d) for d in (above.M, above.N, above.HO, above.WO))):
            tile = Extents(N, M, C, HO, WO, HF, WF)
            if fits(nest, tile, hardware, level):
                paid = cost(nest, above, tile, is_top, hardware, level)
                if least is None or paid < least * (1 - 1e-12):
                    least, best = paid, tile
        if best is not None:
            return best
    return None


def brute_force(nest, above, is_top, hardware, level):
    """The least cost, over every tile that fits, and the reduction at which one fits first."""
    for C, HF, WF in reductions(above):
        options = (
            Extents(N, M, C, HO, WO, HF, WF)
            for N, M, HO, WO in product(*(cuts(d) for d in (above.N, above.M, above.HO, above.WO)))
        )
        found = [tile for tile in options if fits(nest, tile, hardware, level)]
        if found:
            least = min(cost(nest, above, tile, is_top, hardware, level) for tile in found)
            return least, (C, HF, WF)
    return None


def cuts(extent):
    return sorted({ceil(extent / k) for k in range(1, extent + 1)})


def reductions(above):
    """Whole; C in 2, 4, 8 ... parts; then the taps by halves."""
    C, HF, WF = above.C, above.HF, above.WF
    yield C, HF, WF
    for C in halves(above.C):
        yield C, HF, WF
    C = 1
    for HF in halves(above.HF):
        yield C, HF, WF
    HF = 1
    for WF in halves(above.WF):
        yield C, HF, WF


def halves(extent):
    part, parts = extent, 1
    while part > 1:
        parts *= 2
        part = ceil(extent / parts)
        yield part


@settings(max_examples=150, deadline=None)
@given(convolutions(), st.sampled_from(["forward", "backward_input", "backward_weight"]), chips(),
       st.tuples(*[st.sampled_from([1, 8, 32])] * 3))  # fmt: skip
def test_every_level_has_the_cheapest_tile_that_fits(convolution, phase, hardware, widths):
    layer, shape, batch = convolution
    assume(phase != "backward_input" or layer.stride == (1, 1))
    nest = problem(layer, shape, batch, phase, widths)
    above = nest.extent
    try:
        tiles = level_by_level(nest, hardware).tiles
    except Infeasible:
        assert any(
            b.capacity_bits < nest.bits.I + nest.bits.F
            for x in hardware.levels[1:]
            for b in x.buffers
        )
        return
    assert len(tiles) == len(hardware.levels) - 1
    for level, tile in enumerate(tiles, start=1):
        least, reduction = brute_force(nest, above, level == 1, hardware, level)
        assert reduction == (tile.C, tile.HF, tile.WF)
        assert all(extent in cuts(whole) for extent, whole in zip(tile[:2], above[:2], strict=True))
        assert fits(nest, tile, hardware, level)
        assert cost(nest, above, tile, level == 1, hardware, level) == pytest.approx(
            least, rel=1e-12
        )
        above = tile


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.sampled_from(["forward", "backward_input", "backward_weight"]), chips(),
       st.tuples(*[st.sampled_from([1, 8, 32])] * 3))  # fmt: skip
def test_of_all_integers_the_first_of_the_source_s_loops_wins(convolution, phase, hardware, widths):
    layer, shape, batch = convolution
    assume(phase != "backward_input" or layer.stride == (1, 1))
    nest = problem(layer, shape, batch, phase, widths)
    above = nest.extent
    assume(above.M * above.N * above.HO * above.WO <= 4000)
    try:
        tiles = level_by_level(nest, hardware, "integers").tiles
    except Infeasible:
        return
    for level, tile in enumerate(tiles, start=1):
        assert tile == first_of_the_least(nest, above, level == 1, hardware, level)
        above = tile


@pytest.mark.parametrize(("network", "more"), [("vgg-small", 2.45), ("resnet18", 4.35)])
def test_all_integers_raise_full_precision_on_the_ascend(network, more):
    """Source: an audit of the reconstruction against the source's algorithm."""
    paper = load(Accounting, "paper")
    every_one = replaced_all(paper, {"counting.tile_sizes": "integers"})
    few, all_ = (evaluate(network, "ascend", "fp", accounting=a).energy for a in (paper, every_one))
    assert 100 * (all_ / few - 1) == pytest.approx(more, abs=0.005)


@given(st.integers(1, 3000))
def test_candidates_are_the_distinct_ceilings(extent):
    assert candidates(extent).tolist() == cuts(extent)[::-1]


def test_a_layer_that_fits_whole_is_not_cut():
    nest = problem(Conv(name="x", kind="conv", channels=5, kernel=3), (3, 9, 7), 2, "forward")
    assert level_by_level(nest, chip((None, 1, 1), (10**6, 1, 1))).tiles == (nest.extent,)


def test_filters_stay_whole_where_cutting_rows_is_cheaper():
    """I has 64 x 1024 bit, F 64 x 64. Room for one of 2 M and all rows, or all M and 1/2 rows.

    Two M blocks would fetch I twice from DRAM; two row blocks fetch F twice from the next level.
    """
    nest = Problem(Extents(1, 64, 64, 1024, 1, 1, 1), Window(1024), Window(1), Widths(1, 1, 1))
    hardware = chip((None, 10, 10), (64 * 64 + 64 * 512, 1, 1))
    assert level_by_level(nest, hardware).tiles == (Extents(1, 64, 64, 512, 1, 1, 1),)


def test_the_reduction_is_cut_only_where_nothing_else_fits():
    """12 channels of 32 bit; one position and one filter of 12, 6, 3 channels: 768, 384, 192 bit."""
    nest = Problem(Extents(1, 2, 12, 2, 2, 1, 1), Window(2), Window(2), Widths(32, 32, 32))
    for capacity, C in ((768, 12), (767, 6), (384, 6), (383, 3), (192, 3), (191, 2), (64, 1)):
        assert level_by_level(nest, chip((None, 1, 1), (capacity, 1, 1))).tiles[0].C == C


def test_taps_are_halved_after_the_channels():
    nest = Problem(Extents(1, 1, 2, 1, 1, 3, 3), Window(3), Window(3), Widths(1, 1, 1))
    tile = level_by_level(nest, chip((None, 1, 1), (6, 1, 1))).tiles[0]
    assert tile == Extents(1, 1, 1, 1, 1, 1, 3)  # 3 + 3 bit; 2 x 3 taps would need 6 + 6


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((31, 32), "no tile fits: one element of I needs 32 bit, SI holds 31 (1 B too few)"),
        ((32, 15), "no tile fits: one element of F needs 32 bit, SF holds 15 (3 B too few)"),
    ],
)
def test_infeasible_names_the_memory_the_tensor_and_the_missing_bytes(parts, sentence):
    nest = Problem(Extents(1, 1, 1, 1, 1, 1, 1), Window(1), Window(1), Widths(32, 32, 32))
    hardware = chip((None, 1, 1), split=[(parts[0], 1, 1), (parts[1], 1, 1), (1, 1, 1)])
    with pytest.raises(Infeasible) as caught:
        level_by_level(nest, hardware)
    assert str(caught.value) == sentence
    assert caught.value.missing_bits == 32 - min(parts)


def test_infeasible_names_the_layer_the_pass_and_the_chip(tmp_path):
    with pytest.raises(Infeasible) as caught:
        evaluate(
            written(tmp_path, NETWORK),
            chip((None, 1, 1), (40, 1, 1)),
            "binaryconnect",
            accounting="paper",
        )
    assert str(caught.value) == (
        "conv1, forward on made: no tile fits: one element of I and F needs 64 bit, L1 holds 40 "
        "(3 B too few)"
    )
    assert (caught.value.level, caught.value.operand) == ("L1", "I and F")


def test_tiles_fit_however_large_the_problem(tmp_path):
    """Its whole tile has more than 2^63 bits, which must not pass for few."""
    path = written(tmp_path, NETWORK, ("[3, 8, 8]", "[2147483647, 9000, 9000]"))
    node = load_network(path).nodes()[0]
    nest = problem(node.layer, node.input_shapes[0], 1, "forward")
    hardware = chip((None, 1, 1), (10**6, 1, 1))
    tile = level_by_level(nest, hardware).tiles[0]
    assert fits(nest, tile, hardware, 1)


def test_a_memory_of_any_size_can_be_searched():
    nest = problem(Conv(name="x", kind="conv", channels=5, kernel=3), (3, 9, 7), 2, "forward")
    assert level_by_level(nest, chip((None, 1, 1), (10**30, 1, 1))).tiles == (nest.extent,)


def test_more_tiles_than_can_be_compared_are_refused(tmp_path):
    path = written(tmp_path, NETWORK, ("[3, 8, 8]", "[3, 2147483647, 2147483647]"))
    with pytest.raises(TooLarge) as caught:
        evaluate(path, chip((None, 1, 1), (10**6, 1, 1)), "fp", accounting="paper")
    assert str(caught.value) == (
        "conv1, forward on made: 8,589,767,761 tiles of L1 to compare, more than 4,194,304; "
        "make the batch or the image smaller"
    )
