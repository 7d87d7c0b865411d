"""Shapes, weights and MACs of the layers, and the three passes of a training iteration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel import ShapeError
from hwmodel.graph.layers import Activation, Conv, Linear, MaxPool
from hwmodel.work.problem import Extents
from tests.simulator import execute
from tests.strategies import convolutions, problem


def conv(channels, kernel, **more):
    return Conv(name="x", kind="conv", channels=channels, kernel=kernel, **more)


@pytest.mark.parametrize(
    ("layer", "shape", "output", "weights", "macs"),
    [  # public layers that other tools got wrong; the last two by plain formula where not published
        (conv(256, 5, padding=2, groups=2), (96, 27, 27), (256, 27, 27), 307_200, 223_948_800),
        (conv(96, 11, stride=4), (3, 224, 224), (96, 54, 54), 34_848, 34_848 * 54 * 54),
        (conv(96, 11, stride=4), (3, 227, 227), (96, 55, 55), 34_848, 34_848 * 55 * 55),
        (conv(96, 11, stride=4, padding=2), (3, 224, 224), (96, 55, 55), 34_848, 34_848 * 55 * 55),
        (conv(64, 11, stride=4), (3, 227, 227), (64, 55, 55), 23_232, 70_276_800),
        (conv(32, 3, padding=1, groups=32), (32, 112, 112), (32, 112, 112), 288, 3_612_672),
        (conv(512, 3, padding=1, groups=512), (512, 13, 13), (512, 13, 13), 4_608, 778_752),
        (conv(64, 7, stride=2, padding=3), (3, 224, 224), (64, 112, 112), 9_408, 118_013_952),
        (conv(64, 3, stride=2), (3, 224, 224), (64, 111, 111), 1_728, 1_728 * 111 * 111),
        (conv(12, 3, padding=1), (300, 16, 16), (12, 16, 16), 32_400, 8_294_400),
        (conv(64, 7, stride=2, padding=3), (3, 600, 1000), (64, 300, 500), 9_408, 1_411_200_000),
        (conv(24, 3, groups=24), (24, 224, 224), (24, 222, 222), 216, 216 * 222 * 222),
        (conv(64, 3, stride=2, padding=1), (64, 56, 56), (64, 28, 28), 36_864, 28_901_376),
        (conv(128, 3), (1, 128, 128), (128, 126, 126), 1_152, 18_289_152),
        (conv(128, 3, padding=1), (1, 128, 128), (128, 128, 128), 1_152, 18_874_368),
        (conv(7, 3, padding=1), (5, 11, 13), (7, 11, 13), 315, 45_045),
        (conv(1, 3, padding=[1, 2, 0, 3]), (1, 224, 224), (1, 223, 227), 9, 9 * 223 * 227),
        (conv(1, 3, stride=[2, 1], padding=1), (1, 224, 224), (1, 112, 224), 9, 9 * 112 * 224),
        (conv(1, 3, dilation=18, padding=18), (1, 32, 32), (1, 32, 32), 9, 9 * 32 * 32),
        # a prime for every dimension: kernel 3 x 5, stride 2 x 1, dilation 2 x 3, padding 1 and 2
        (conv(7, [3, 5], stride=[2, 1], dilation=[2, 3], padding=[1, 2]), (11, 23, 29), (7, 11, 21),
         1_155, 1_155 * 11 * 21),
        (Linear(name="x", kind="linear", features=7), (3, 5, 11), (7, 1, 1), 1_155, 1_155),
        (MaxPool(name="x", kind="max-pool", kernel=2), (3, 7, 11), (3, 3, 5), 0, 0),
        (MaxPool(name="x", kind="max-pool", kernel=3, stride=2, padding=1), (64, 112, 112),
         (64, 56, 56), 0, 0),
        (MaxPool(name="x", kind="max-pool", kernel=[2, 3], stride=[1, 2]), (5, 7, 11), (5, 6, 5), 0, 0),
        (Activation(name="x", kind="activation"), (3, 5, 7), (3, 5, 7), 0, 0),
    ],
)  # fmt: skip
def test_shapes_weights_and_macs(layer, shape, output, weights, macs):
    assert layer.output_shape([shape]) == output
    assert layer.weights([shape]) == weights
    assert layer.macs([shape]) == macs


def test_padding_stands_for_all_sides_for_rows_and_columns_or_for_top_left_bottom_right():
    assert conv(1, 3, padding=2).padding == (2, 2, 2, 2)
    assert conv(1, 3, padding=[1, 2]).padding == (1, 2, 1, 2)
    assert conv(1, 3, padding=[1, 2, 0, 3]).padding == (1, 2, 0, 3)


@pytest.mark.parametrize(
    ("layer", "shape", "sentence"),
    [
        (conv(64, 3, dilation=18), (3, 32, 32),
         "layer x: the effective kernel spans 37 rows, more than the 32 of its input (3, 32, 32) with padding "
         "[0, 0, 0, 0]"),
        (conv(64, [1, 9], padding=[0, 1, 0, 2]), (3, 32, 5),
         "layer x: the effective kernel spans 9 columns, more than the 8 of its input (3, 32, 5) with padding "
         "[0, 1, 0, 2]"),
        (conv(63, 3, groups=3), (64, 8, 8),
         "layer x: groups 3 does not divide the 64 input channels (input (64, 8, 8), channels 63)"),
        (conv(64, 3, groups=3), (63, 8, 8),
         "layer x: groups 3 does not divide the 64 output channels (input (63, 8, 8), channels 64)"),
        (MaxPool(name="x", kind="max-pool", kernel=3), (3, 2, 2),
         "layer x: the effective kernel spans 3 rows, more than the 2 of its input (3, 2, 2) with padding "
         "[0, 0, 0, 0]"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_with_both_shapes(layer, shape, sentence):
    with pytest.raises(ShapeError) as caught:
        layer.output_shape([shape])
    assert str(caught.value) == sentence


@pytest.mark.parametrize("layer", [conv(1, 1), Activation(name="x", kind="activation")])
def test_a_layer_of_one_input_takes_no_two(layer):
    with pytest.raises(ShapeError) as caught:
        layer.output_shape([(1, 1, 1), (1, 1, 1)])
    assert str(caught.value) == "layer x: takes 1 input, is given 2"


def test_the_loops_of_each_pass_with_a_prime_for_every_dimension():
    """Batch 19, C = 11, M = 7, 23 x 29 -> 11 x 21 by 3 x 5."""
    layer = conv(7, [3, 5], stride=[2, 1], dilation=[2, 3], padding=[1, 2, 1, 2])
    loops = layer.loops([(11, 23, 29)], 19)
    assert loops["forward"].extent == Extents(19, 7, 11, 11, 21, 3, 5)
    assert loops["backward_input"].extent == Extents(19, 11, 7, 23, 29, 3, 5)
    assert loops["backward_weight"].extent == Extents(11, 7, 19, 3, 5, 11, 21)


def test_groups_share_nothing_and_cost_one_gth():
    whole, grouped = (conv(8, 3, groups=g).loops([(12, 9, 9)], 2) for g in (1, 4))
    for phase in whole:
        assert grouped[phase].groups == 4
        assert np.prod(grouped[phase].extent) * 4 == np.prod(whole[phase].extent) / 4


def test_a_linear_layer_is_a_convolution_on_one_pixel():
    layer = Linear(name="x", kind="linear", features=7)
    assert layer.loops([(3, 5, 11)], 2)["forward"].extent == Extents(2, 7, 165, 1, 1, 1, 1)


def test_elements_of_the_operands():
    nest = problem(conv(6, [3, 5], padding=1, groups=2), (4, 11, 13), 7, "forward")
    assert nest.I_elements == 7 * 4 * 11 * 13  # padding is no element
    assert nest.F_elements == 6 * 2 * 3 * 5
    assert nest.O_elements == 7 * 6 * 11 * 11


everything = convolutions(strides=(1, 2, 3), kernels=(1, 2, 3), dilations=(1, 2))


def whole_numbers(rng, *shape):
    return rng.integers(-9, 10, shape)


@settings(max_examples=100, deadline=None)
@given(everything, st.integers(0, 2**32 - 1))
def test_the_forward_nest_is_the_textbook_convolution(convolution, seed):
    layer, shape, batch = convolution
    nest = problem(layer, shape, batch, "forward")
    n, rng = nest.extent, np.random.default_rng(seed)
    i = whole_numbers(rng, n.N, n.C, *shape[1:])
    f = whole_numbers(rng, n.M, n.C, *layer.kernel)
    top, left, bottom, right = layer.padding
    padded = np.pad(i, ((0, 0), (0, 0), (top, bottom), (left, right)))
    expected = np.zeros((n.N, n.M, *layer.output_shape([shape])[1:]), int)
    (sh, sw), (dh, dw) = layer.stride, layer.dilation
    for ho in range(expected.shape[2]):
        for wo in range(expected.shape[3]):
            patch = padded[:, :, ho * sh :, wo * sw :][:, :, ::dh, ::dw]
            patch = patch[:, :, : layer.kernel[0], : layer.kernel[1]]
            expected[:, :, ho, wo] = np.einsum("nchw,mchw->nm", patch, f)
    assert np.array_equal(execute(nest, i, f), expected)


@settings(max_examples=100, deadline=None)
@given(everything, st.integers(0, 2**32 - 1))
def test_the_three_passes_are_adjoint(convolution, seed):
    """<dO, conv(I, F)> = <dI, I> = <dF, F>: a convolution is linear in I and in F.

    One group stands for all: they share nothing.
    """
    layer, shape, batch = convolution
    forward, to_input, to_weight = (
        problem(layer, shape, batch, phase)
        for phase in ("forward", "backward_input", "backward_weight")
    )
    n, rng = forward.extent, np.random.default_rng(seed)
    i = whole_numbers(rng, n.N, n.C, *shape[1:])
    f = whole_numbers(rng, n.M, n.C, n.HF, n.WF)
    d_o = whole_numbers(rng, n.N, n.M, n.HO, n.WO)
    o = np.array(execute(forward, i, f))
    d_i = np.array(execute(to_input, d_o, f[:, :, ::-1, ::-1].swapaxes(0, 1)))
    d_f = np.array(execute(to_weight, i.swapaxes(0, 1), d_o.swapaxes(0, 1))).swapaxes(0, 1)
    assert d_i.shape == i.shape
    assert d_f.shape == f.shape
    assert (d_o * o).sum() == (d_i * i).sum() == (d_f * f).sum()
