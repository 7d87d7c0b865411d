"""Whole-number passes, one signal at a time, against the float32 product; pools against a plain one."""

import importlib.util

import numpy as np
import plain_rules as plain
import pytest
import small

from hwmodel.specs.limits import TensorWidth
from hwmodel.specs.trace import dumps
from hwmodel.trainer import events, pooled
from hwmodel.trainer.layers import BoolConv, Rules
from hwmodel.trainer.pooled import Pooled, dense, pool
from hwmodel.trainer.real import Conv, Linear, MaxPool
from hwmodel.trainer.rounding import Limiter
from hwmodel.trainer.train import train
from hwmodel.trainer.windows import Window

needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="the extra [compiled] is not installed"
)


def without_numba(monkeypatch):
    for module in (events, pooled):
        monkeypatch.setattr(module, "find_spec", lambda name: None)


def always(monkeypatch):
    for module in (events, pooled):
        monkeypatch.setattr(module, "WORTH_COMPILING", 0)


@needs_numba
@pytest.mark.parametrize("kind", [np.int32, np.float32])
@pytest.mark.parametrize("shape", [(2, 6, 4, 3), (1, 5, 7, 2), (3, 2, 2, 1)])
def test_a_pool_passes_the_first_largest_compiled_or_not(monkeypatch, kind, shape):
    """Few values, so that ties are met; the plain pool goes through every pixel."""
    x = np.random.default_rng(0).integers(-2, 3, shape).astype(kind)
    z = np.random.default_rng(1).standard_normal((shape[0], shape[1] // 2, shape[2] // 2, shape[3]))
    z = z.astype(np.float32)
    y, sent = plain.max_pool(x, z)
    for prepare in (always, without_numba):
        prepare(monkeypatch)
        layer = MaxPool()
        assert (layer.forward(x) == y).all() and layer.forward(x).dtype == kind
        assert (layer.backward(z) == sent).all()
        layer.folded = True
        assert (dense(layer.backward(z)) == sent).all()


def test_a_pool_of_truth_values():
    x = np.random.default_rng(0).random((2, 4, 4, 3)) < 0.3
    y, choice = pool(x)
    assert y.dtype == np.bool_ and choice.dtype == np.uint8
    assert (y == plain.max_pool(x.astype(int), np.zeros(y.shape))[0]).all()


CASES = [
    # bits, window, channels, filters, images, rows, padding, logic, bias
    (8, Window(3, 1, 1), 16, 32, 4, 12, "nothing", "xnor", False),
    (8, Window(3, 1, 1), 5, 7, 3, 7, "true", "xor", True),
    (4, Window(2, 1, 0), 3, 4, 2, 6, "nothing", "xnor", False),
    (2, Window(5, 2, 2), 4, 6, 2, 11, "false", "xnor", False),
    (1, Window(1, 1, 0), 9, 5, 2, 4, "nothing", "xor", False),
    (16, Window(3, 1, 1), 8, 24, 2, 8, "nothing", "xnor", True),  # sums beyond 2^24: float64
    (12, Window(3, 2, 1), 8, 9, 2, 9, "nothing", "xnor", False),
]


def limited(rng, shape, bits, like):
    """A signal on a grid, as a net rounds it, with zeros; and its exponent."""
    z = rng.standard_normal(shape).astype(np.float32) * np.float32(like)
    z[rng.random(shape) < 0.3] = 0
    limiter = Limiter(TensorWidth(bits=bits, scale="step"), (0,))
    return limiter(z), limiter.finest


@needs_numba
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-bit-{case[1].size}")
def test_votes_and_signals_are_those_of_the_product_bit_by_bit(monkeypatch, case):
    bits, window, channels, filters, images, rows, padding, logic, bias = case
    always(monkeypatch)
    rng = np.random.default_rng(3)
    layer = BoolConv(
        channels, filters, window, rng, Rules(logic, bias=bias, bits=bits), 0.37, padding
    )
    layer.forward(rng.random((images, rows, rows, channels)) < 0.5)
    out = layer.out[0]
    z, exponent = limited(rng, (images, out // 2, out // 2, filters), bits, 1e-4)
    choice = rng.integers(0, 4, z.shape).astype(np.uint8)
    signal = Pooled(z, choice, (images, out, out, filters), exponent)

    sent = layer.backward(signal)
    votes = [weights.votes.copy() for weights in layer.boolean]
    wanted = layer.backward(dense(signal))
    assert sent.dtype == wanted.dtype and np.array_equal(sent, wanted)
    for ours, weights in zip(votes, layer.boolean, strict=True):
        assert ours.dtype == weights.votes.dtype and np.array_equal(ours, weights.votes)
    assert np.abs(votes[0]).max() > 0 and np.abs(sent).max() > 0


@pytest.mark.parametrize(
    ("window", "filters", "side"),
    [(Window(3, 1, 1), 5, 4), (Window(2), 3, 4), (Window(5, 2, 2), 4, 4)],
)
def test_no_sum_leaves_its_word(window, filters, side):
    """The loops as they stand, all signals the largest and all signs +1: nothing is larger.

    NumPy's single numbers warn where they overflow, which is an error here. The largest sums are
    counted by hand in plain whole numbers, whatever pixels the pool has passed on.
    """
    channels, rng = 1, np.random.default_rng(0)
    rows = (2 * side - 1) * window.stride + window.size
    for trial in range(6):
        choice = rng.integers(0, 4, (1, side, side, filters)).astype(np.uint8)
        if trial < 2:  # all towards one corner
            choice[...] = 3 * trial
        reached = np.zeros((rows, rows), np.int64)
        for i, j, m in np.ndindex(choice.shape[1:]):
            top, left = ((2 * at + bit) * window.stride for at, bit in
                         ((i, choice[0, i, j, m] >> 1), (j, choice[0, i, j, m] & 1)))  # fmt: skip
            reached[top : top + window.size, left : left + window.size] += 1
        reach = -(-window.size // window.stride) // 2 + 1
        assert reached.max() <= filters * reach**2
        for most in (2**7 - 1, (2**15 - 1) // (filters * reach**2), 2**15 - 1):
            vote, word = events.lanes(most, window, filters, side * side)
            k = np.full(choice.shape, most, np.int32)
            votes = np.zeros((filters, window.size, window.size * channels), np.int64)
            sent = np.zeros((1, rows, rows * channels), word)
            x, w = np.ones((1, rows, rows), np.int16), np.ones(votes.shape, np.int16)
            with np.errstate(over="raise"):
                events.loops(window.size, window.stride, channels, vote, word)(
                    k, choice.astype(np.int64), x, w, votes, sent
                )
            assert (votes == most * side * side).all()
            assert (sent[0] == most * reached).all()


def test_words_are_as_wide_as_the_largest_sum():
    """8 bit, 3 x 3: 127 * 64 * 4 = 32,512 and 127 * 36 fit 16 bit; 127 * 65 * 4 does not."""
    window = Window(3, 1, 1)
    assert events.lanes(127, window, 64, 36) == (np.int16, np.int16)
    assert events.lanes(127, window, 65, 258) == (np.int16, np.int32)
    assert events.lanes(127, window, 1, 259) == (np.int32, np.int16)
    assert events.lanes(2**15 - 1, window, 2**14 + 1, 1) == (np.int16, np.int64)


@needs_numba
@pytest.mark.parametrize("name", ["bold-8", "bold-1-1-16"])
def test_a_run_is_the_same_compiled_and_not(monkeypatch, name):
    pools = (
        "  - {name: act2, kind: activation}\n",
        "  - {name: pool2, kind: max-pool, kernel: 2}\n  - {name: act2, kind: activation}\n",
    )
    network = small.network(pools, ("kernel: 1, stride: 2, inputs: [act1]", "kernel: 3, stride: 4, padding: 1, inputs: [act1]"), ("  - {name: pool, kind: max-pool, kernel: 2}\n", ""), ("[1, 6, 6]", "[1, 12, 12]"))  # fmt: skip
    settings = small.Settings(network, small.method(name), small.training(2))
    data = small.images()
    data = data._replace(x=np.tile(data.x, (1, 2, 2, 1)), test_x=np.tile(data.test_x, (1, 2, 2, 1)))
    runs, calls = [], []
    real = events.by_events
    monkeypatch.setattr(
        "hwmodel.trainer.layers.by_events", lambda *given: calls.append(1) or real(*given)
    )
    for prepare in (always, without_numba):
        prepare(monkeypatch)
        runs.append(dumps(train(settings, data)))
    assert runs[0] == runs[1]
    assert len(calls) == 10  # conv2 of both epochs' five steps, compiled alone


def test_the_first_layer_sends_nothing_and_learns_the_same():
    rng = np.random.default_rng(0)
    x, z = (rng.standard_normal((3, 6, 6, n)).astype(np.float32) for n in (2, 4))
    for make, given, received in (
        (lambda: Conv(2, 4, Window(3, 1, 1), np.random.default_rng(1), bias=True), x, z),
        (lambda: Linear(72, 4, np.random.default_rng(1), bias=True), x, z[:, 0, 0]),
    ):
        first, other = make(), make()
        first.sends = False
        for layer in (first, other):
            layer.forward(given)
        assert first.backward(received).size == 0 and other.backward(received).shape == x.shape
        for ours, theirs in zip(first.real, other.real, strict=True):
            assert np.array_equal(ours.gradient, theirs.gradient)
    net = small.net()
    assert [node.name for node in net.nodes if not node.layer.sends] == ["conv1"]
