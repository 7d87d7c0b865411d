"""Boolean layers against the plain rules, on shapes that fill no word."""

import math

import numpy as np
import plain_rules as plain
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.trainer import kernels, layers
from hwmodel.trainer.layers import BoolConv, BoolLinear, Rules, Threshold
from hwmodel.trainer.real import MaxPool
from hwmodel.trainer.windows import Window

seeds = st.integers(0, 2**32 - 1)
logics = st.sampled_from(["xnor", "xor"])
booleans = st.booleans()


def truths(rng, *shape):
    return rng.random(shape) < 0.5


def signal(rng, kind, shape):
    if kind == "boolean":
        return np.where(truths(rng, *shape), 1, -1).astype(np.float32)
    if kind == "three-valued":
        return rng.integers(-1, 2, shape).astype(np.float32)
    return rng.standard_normal(shape).astype(np.float32)


def agree(ours, expected, kind):
    """To the integer for Boolean signals; to 1e-6 of the sum's size for real ones."""
    assert ours.shape == expected.shape
    if kind != "real":
        assert (ours == expected).all()
    else:
        assert np.allclose(ours, expected, rtol=1e-5, atol=1e-6 * max(1, np.abs(expected).max()))


def sign(values):
    return np.where(values, 1.0, -1.0)


kinds = st.sampled_from(["boolean", "three-valued", "real"])


@given(seeds, logics, kinds, booleans, st.integers(1, 6), st.integers(1, 150), st.integers(1, 9))
def test_a_linear_layer_follows_the_rules(seed, logic, kind, bias, batch, m, n):
    rng = np.random.default_rng(seed)
    layer = BoolLinear(m, n, rng, Rules(logic, bias=bias), scale=1.0)
    x, z = truths(rng, batch, m), signal(rng, kind, (batch, n))
    w = sign(layer.boolean[0].values)
    b = sign(layer.boolean[1].values)[:, 0] if bias else None

    s = layer.forward(x)
    assert s.dtype.kind == "i"
    assert (s == plain.linear(logic, sign(x), w, b)).all()
    agree(layer.backward(z), plain.linear_sent(logic, z, w), kind)
    agree(layer.boolean[0].votes, plain.linear_votes(logic, z, sign(x)), kind)
    if bias:
        agree(layer.boolean[1].votes, z.astype(float).sum(0)[:, None], kind)


windows = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2))


@given(
    seeds, logics, kinds, booleans, windows, st.sampled_from(["nothing", "true", "false"]),
    st.integers(1, 3), st.integers(3, 6), st.integers(3, 6), st.integers(1, 70), st.integers(1, 4),
)  # fmt: skip
def test_a_convolution_follows_the_rules(
    seed, logic, kind, bias, window, outside, batch, rows, columns, channels, outs
):
    rng = np.random.default_rng(seed)
    size, stride, padding = window
    layer = BoolConv(channels, outs, Window(*window), rng, Rules(logic, bias=bias), padding=outside)
    x = truths(rng, batch, rows, columns, channels)
    w = sign(layer.boolean[0].values).reshape(outs, size, size, channels)
    b = sign(layer.boolean[1].values)[:, 0] if bias else None
    fill = {"nothing": 0, "true": 1, "false": -1}[outside]
    expected = plain.conv(logic, sign(x), w, stride, padding, fill, b)

    s = layer.forward(x)
    assert s.dtype.kind == "i"
    assert (s == expected).all()
    z = signal(rng, kind, s.shape)
    votes, sent = plain.conv_backward(logic, z.astype(float), sign(x), w, stride, padding, fill)
    agree(layer.backward(z), sent, kind)
    agree(layer.boolean[0].votes, votes.reshape(outs, -1), kind)


@given(
    seeds, windows, st.sampled_from(["nothing", "true", "false"]), st.integers(1, 3),
    st.integers(3, 5), st.integers(1, 70), st.integers(1, 4),
)  # fmt: skip
def test_words_and_products_give_a_convolution_the_same_integers(
    seed, window, outside, batch, rows, channels, outs
):
    rng = np.random.default_rng(seed)
    layer = BoolConv(channels, outs, Window(*window), rng, padding=outside)
    layer.forward(truths(rng, batch, rows, rows + 1, channels))
    assert (layer.by_words() == layer.by_product()).all()


def test_a_large_convolution_is_done_in_blocks_with_no_image_lost(monkeypatch):
    rng = np.random.default_rng(0)
    layer = BoolConv(3, 2, Window(3, 1, 1), rng)
    x, z = truths(rng, 7, 4, 4, 3), rng.standard_normal((7, 4, 4, 2)).astype(np.float32)
    whole = layer.forward(x), layer.backward(z), layer.boolean[0].votes
    monkeypatch.setattr("hwmodel.trainer.windows.BLOCK_ELEMENTS", 2 * 16 * 27)
    parts = layer.forward(x), layer.backward(z), layer.boolean[0].votes
    assert (layer.by_words() == layer.by_product()).all()
    for a, b in zip(whole, parts, strict=True):
        assert np.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("way", ["words", "product"])
def test_a_linear_layer_has_one_result_by_either_way(way, monkeypatch):
    rng = np.random.default_rng(4)
    layer = BoolLinear(131, 7, rng)
    x = truths(rng, 5, 131)
    expected = plain.linear("xnor", sign(x), sign(layer.boolean[0].values))
    monkeypatch.setattr(layers, "fastest", lambda case, ways: ways[way]())
    monkeypatch.setattr(layers, "PRODUCT_ELEMENTS", 300)  # two neurons at a time
    assert (layer.forward(x) == expected).all()


def test_large_cases_are_counted_by_the_compiled_loop_where_it_is_there(monkeypatch):
    called = []
    monkeypatch.setattr(kernels, "compiled_sums", lambda x, w, m: called.append(m))
    monkeypatch.setattr(kernels, "find_spec", lambda name: True)
    small, large = np.zeros((2, 1), np.uint64), np.zeros((1024, 8), np.uint64)
    kernels.count_agreements(small, small, 64)
    assert called == []
    kernels.count_agreements(large, large, 512)
    assert called == [512]
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert (kernels.count_agreements(large, large, 512) == 512).all()


@given(seeds, logics, st.integers(1, 4), st.integers(1, 90), st.integers(1, 4))
def test_a_flipped_weight_changes_the_sums_as_its_variation_says(seed, logic, batch, m, n):
    """Finite differences: with any loss linear in s, loss' - loss = -2 e(w) q, exactly."""
    rng = np.random.default_rng(seed)
    layer = BoolLinear(m, n, rng, Rules(logic))
    x = truths(rng, batch, m)
    z = rng.integers(-4, 5, (batch, n)).astype(np.float32)
    before = layer.forward(x)
    layer.backward(z)
    votes, w = layer.boolean[0].votes.copy(), sign(layer.boolean[0].values)
    j, i = rng.integers(n), rng.integers(m)
    flip = np.zeros((n, m), bool)
    flip[j, i] = True
    layer.boolean[0].flip(flip)
    change = layer.forward(x) - before
    assert (z * change).sum() == -2 * w[j, i] * votes[j, i]
    others = np.delete(change, j, axis=1)
    assert (np.abs(change[:, j]) == 2).all() and (others == 0).all()


@given(seeds, logics, st.integers(1, 3), st.integers(1, 20))
def test_a_flipped_input_changes_the_loss_as_the_signal_sent_says(seed, logic, batch, channels):
    rng = np.random.default_rng(seed)
    layer = BoolConv(channels, 5, Window(3, 2, 1), rng, Rules(logic), scale=0.5)
    x = truths(rng, batch, 5, 6, channels)
    before = layer.forward(x)
    z = rng.integers(-4, 5, before.shape).astype(np.float32)
    sent = layer.backward(z)
    at = tuple(rng.integers(n) for n in x.shape)
    old = sign(x[at])
    x = x.copy()
    x[at] = ~x[at]
    assert (z * (layer.forward(x) - before)).sum() == -2 * old * sent[at] / 0.5


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda c: BoolLinear(30, 8, np.random.default_rng(2), scale=c), (4, 30)),
        (lambda c: BoolConv(3, 8, Window(3), np.random.default_rng(2), scale=c), (2, 5, 5, 3)),
    ],
)
def test_the_scale_is_on_what_is_sent_and_not_on_the_votes(make, shape):
    rng = np.random.default_rng(1)
    x = truths(rng, *shape)
    results = []
    z = None
    for layer in (make(1.0), make(0.25)):
        s = layer.forward(x)
        z = rng.standard_normal(s.shape).astype(np.float32) if z is None else z
        results.append((layer.backward(z), layer.boolean[0].votes))
    assert np.allclose(results[1][0], 0.25 * results[0][0])
    assert (results[1][1] == results[0][1]).all()


def test_the_published_scales():
    assert layers.linear_scale(50) == pytest.approx(0.2)
    assert layers.conv_scale(64, 3, 2, False) == pytest.approx(math.sqrt(4 / 576))
    assert layers.conv_scale(64, 3, 1, True) == pytest.approx(2 * math.sqrt(2 / 576))
    assert layers.window_slope(12) == pytest.approx(math.pi / 12)


@given(seeds, st.integers(1, 600), st.sampled_from([0.0, 3.0, -2.0]))
def test_the_threshold_and_its_reweighting(seed, m, tau):
    rng = np.random.default_rng(seed)
    layer = Threshold(layers.window_slope(m), tau)
    s = rng.integers(-m, m + 1, (5, 7)).astype(np.int32)
    z = rng.standard_normal((5, 7)).astype(np.float32)
    y = layer.forward(s)
    assert (y == (s >= tau)).all() and y.dtype == bool
    assert np.allclose(layer.backward(z), plain.reweighted(z, s, tau, m), rtol=0, atol=1e-6)


def test_equality_with_the_threshold_is_true_and_weighs_in_full():
    layer = Threshold(0.5)
    assert layer.forward(np.zeros((1, 1), np.int32)).all()
    assert layer.backward(np.full((1, 1), 3, np.float32)) == 3


def test_without_reweighting_the_signal_passes():
    layer = Threshold(None)
    layer.forward(np.array([[100, -100]], np.int32))
    assert layer.backward(np.array([[1, 2]], np.float32)).tolist() == [[1, 2]]


def test_a_boolean_signal_is_the_sign_of_what_arrives():
    rng = np.random.default_rng(3)
    layer = BoolLinear(20, 4, rng, Rules(signal="boolean"))
    x, z = truths(rng, 6, 20), rng.standard_normal((6, 4)).astype(np.float32)
    layer.forward(x)
    sent = layer.backward(z)
    w = sign(layer.boolean[0].values)
    assert (sent == plain.linear_sent("xnor", np.sign(z), w)).all()
    trues = (plain.connect("xnor", np.sign(z)[:, :, None], sign(x)[:, None, :]) > 0).sum(0)
    assert (layer.boolean[0].votes == 2 * trues - len(x)).all()


@given(seeds, st.integers(2, 5), st.integers(2, 5), st.integers(1, 3))
def test_pooling_and_where_its_signal_goes(seed, rows, columns, channels):
    rng = np.random.default_rng(seed)
    s = rng.integers(-2, 3, (2, rows, columns, channels)).astype(np.int32)  # many ties
    layer = MaxPool()
    out = layer.forward(s)
    z = rng.standard_normal(out.shape).astype(np.float32)
    expected, sent = plain.max_pool(s, z)
    assert (out == expected).all() and out.dtype == s.dtype
    assert (layer.backward(z) == sent).all()
