"""The closed form of the accesses against the simulator, and the source's table by hand."""

import tracemalloc

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwmodel.graph.layers import Conv
from hwmodel.tiling.accesses import Mapping, Traffic, paper_top, traffic
from hwmodel.tiling.rows import TOUCHED, RowRule, Span, cut_rows
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.simulator import simulate
from tests.strategies import convolutions, dividing_tiles, problem

PASSES = ["forward", "backward_input", "backward_weight"]


PADDED = RowRule("bounding", "counted")  # the source moves padding and skipped rows


def counted(walked):
    """The source counts a sum where it rests: above the cut that made it, at last at the top."""
    top, *below = (Traffic(**level) for level in walked)
    return [top, *(t._replace(O_partial_writes=t.O_partial_reads, O_writes=0) for t in below)]


@settings(max_examples=120, deadline=None)
@given(st.data(), convolutions(), st.sampled_from(PASSES), st.integers(1, 3))
def test_the_closed_form_equals_the_simulator_where_tiles_divide(data, convolution, phase, levels):
    layer, shape, batch = convolution
    assume(phase != "backward_input" or layer.stride == (1, 1))
    nest = problem(layer, shape, batch, phase)
    assume(layer.macs([shape]) * batch <= 1500)
    tiles = data.draw(dividing_tiles(nest.extent, levels))
    held = tuple(data.draw(st.sampled_from("FI")) for _ in tiles)
    walked = simulate(nest, tiles, held, PADDED)
    assert traffic(nest, Mapping(tiles, held), "paper") == counted(walked)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
@pytest.mark.parametrize("phase", ["forward", "backward_weight"])
def test_every_kernel_and_stride_of_the_spec_is_judged(kernel, stride, phase):
    layer = Conv(
        name="x",
        kind="conv",
        channels=4,
        kernel=kernel,
        stride=stride,
        padding=kernel // 2,
        groups=2,
    )
    nest = problem(layer, (2, 11, 7), 3, phase)
    tiles = (nest.extent, nest.extent._replace(M=1, N=1), Extents(*[1] * 7))
    mapping = Mapping(tiles, ("F", "F", "F"))
    assert traffic(nest, mapping, "paper") == counted(simulate(nest, tiles, mapping.held, PADDED))


def test_the_source_s_table_by_hand():
    """3 images of 5 channels under 4 filters of 3 x 3 on 8 x 6 rows, nothing padded: O is 6 x 4.

    Tile: 1 image, 2 filters, 3 x 2 outputs, which lie over 5 x 4 positions.
    """
    nest = Problem(Extents(3, 4, 5, 6, 4, 3, 3), Window(8), Window(6), Widths(32, 32, 32))
    tile = Extents(1, 2, 5, 3, 2, 3, 3)
    top, last = traffic(nest, Mapping((tile,), ("F",)), "paper")
    blocks = 3 * (6 // 3) * (4 // 2)  # of ifmaps
    assert top == Traffic(
        I_reads=(4 // 2) * blocks * 5 * (5 * 4),  # every filter block sees all ifmap blocks
        F_reads=4 * 5 * 3 * 3,  # once
        O_partial_reads=0,
        O_partial_writes=0,
        O_writes=3 * 4 * 6 * 4,
    )
    assert last == Traffic(
        I_reads=(4 // 2) * 3 * 5 * 6 * 4 * 3 * 3,  # a tap a read, shared by the 2 filters
        F_reads=4 * 5 * 3 * 3 * blocks,  # again for every ifmap block
        O_partial_reads=0,
        O_partial_writes=0,
        O_writes=0,
    )


def test_a_sum_cut_in_k_leaves_and_returns_k_minus_one_times_at_the_level_above_the_cut():
    nest = Problem(Extents(1, 1, 12, 1, 1, 1, 1), Window(1), Window(1), Widths(1, 1, 1))
    tiles = tuple(Extents(1, 1, C, 1, 1, 1, 1) for C in (6, 2))
    top, middle, last = traffic(nest, Mapping(tiles, ("F", "F")), "paper")
    assert (top.O_partial_reads, top.O_partial_writes, top.O_writes) == (1, 1, 1)  # 2 parts
    assert (middle.O_partial_reads, middle.O_partial_writes) == (4, 4)  # 3 parts, twice
    assert (last.O_partial_reads, last.O_partial_writes, last.O_writes) == (0, 0, 0)


def test_ceilings_count_the_last_piece_as_a_whole_one():
    """5 filters by 2 are 3 blocks, 7 outputs by 3 count as 7/3 pieces of 5 rows each."""
    nest = Problem(Extents(1, 5, 1, 7, 1, 3, 1), Window(9), Window(1), Widths(32, 32, 32))
    top, last = traffic(nest, Mapping((Extents(1, 2, 1, 3, 1, 3, 1),), ("F",)), "paper")
    assert top.I_reads == round(3 * 7 * 5 / 3)  # ceil(M / M2) (HO / HI) (HI2 / HO2) |I|
    assert last.F_reads == 5 * 3 * 3  # |F| ceil(HO / HO2)


def test_ifmaps_have_the_padding_of_each_side():
    layer = Conv(name="x", kind="conv", channels=1, kernel=3, padding=[1, 2, 0, 3])
    top = paper_top(problem(layer, (1, 224, 224), 1, "forward"))
    assert (top.rows, top.columns) == (1 + 224 + 0, 2 + 224 + 3)
    back = paper_top(problem(layer, (1, 224, 224), 1, "backward_input"))  # K - 1 - p on each side
    assert (back.rows, back.columns) == (1 + 223 + 2, 0 + 227 - 1)


def test_backward_input_of_a_strided_layer_moves_no_inserted_zero():
    """2 x 2 stride 2 on 8 x 8: dO is 4 x 4, each of its elements meets 4 taps, C = 3, M = 5."""
    layer = Conv(name="x", kind="conv", channels=5, kernel=2, stride=2)
    nest = problem(layer, (3, 8, 8), 1, "backward_input")
    top, last = traffic(nest, Mapping((nest.extent,), ("F",)), "paper")
    assert top.I_reads == 5 * 4 * 4
    assert last.I_reads == 5 * 8 * 8 * 2 * 2 / 2**2
    assert (top.F_reads, last.F_reads, top.O_writes) == (3 * 5 * 4, 3 * 5 * 4, 3 * 8 * 8)


def test_rows_of_many_pieces_take_little_memory():
    """Single taps under single outputs load a row wherever that is one: counted output by output.

    Of 4.4 million pairs all at once, every array takes 35 MB, and there are a dozen.
    """
    outs, taps, size, pad = 2100, 2101, 2000, 1100
    window = Window(size, 1, 1, pad, pad, 1)
    out = [Span(i, 1, 1) for i in range(outs)]
    tap = [Span(i, 1, 1) for i in range(taps)]
    rows = sum(max(0, min(taps, size + pad - o) - max(0, pad - o)) for o in range(outs))
    tracemalloc.start()
    try:
        assert cut_rows(window, TOUCHED, out, tap) == rows
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
