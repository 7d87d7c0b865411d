"""Real layers against finite differences of a loss, and the baselines' straight-through rules."""

import numpy as np
import pytest

from hwmodel.trainer.nets import logits_signal
from hwmodel.trainer.real import Add, BatchNorm, Conv, Linear, MaxPool, Relu, SignThrough
from hwmodel.trainer.windows import Window

STEP = 1e-2


def slope(loss, array, at):
    """Central difference of a loss by one element of an array, changed in place."""
    old = array[at]
    array[at] = old + STEP
    up = loss()
    array[at] = old - STEP
    down = loss()
    array[at] = old
    return (up - down) / (2 * STEP)


def layers():
    rng = np.random.default_rng(5)
    norm = BatchNorm(3)
    norm.training = True
    norm.real[0].value[:] = [0.5, 1.5, -1]
    return [
        (Linear(7, 3, rng), (4, 7)),
        (Linear(12, 3, rng, bias=True), (4, 2, 2, 3)),
        (Conv(2, 3, Window(3, 2, 1), rng, bias=True), (2, 5, 6, 2)),
        (Conv(2, 3, Window(2, 1, 0), rng), (2, 4, 3, 2)),
        (norm, (6, 3)),
        (norm, (2, 3, 3, 3)),
        (Relu(), (3, 5)),
        (MaxPool(), (2, 5, 4, 2)),
    ]


@pytest.mark.parametrize("case", range(8))
def test_gradients_are_the_slopes_of_the_loss(case):
    layer, shape = layers()[case]
    rng = np.random.default_rng(case)
    x = rng.standard_normal(shape).astype(np.float32)
    c = rng.standard_normal(layer.forward(x).shape).astype(np.float32)

    def loss():
        return float((c.astype(np.float64) * layer.forward(x)).sum())

    sent = layer.backward(c)
    gradients = [p.gradient.copy() for p in layer.real]
    for values, gradient in [
        (x, sent),
        *((p.value, g) for p, g in zip(layer.real, gradients, strict=True)),
    ]:
        for _ in range(6):
            at = tuple(rng.integers(n) for n in values.shape)
            assert slope(loss, values, at) == pytest.approx(gradient[at], abs=2e-2)


def test_the_loss_and_its_signal():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((5, 4)).astype(np.float32)
    labels = rng.integers(0, 4, 5)
    loss, z = logits_signal(logits, labels)
    p = np.exp(logits.astype(float))
    p /= p.sum(1, keepdims=True)
    assert loss == pytest.approx(-np.log(p[range(5), labels]).mean(), rel=1e-5)
    for _ in range(8):
        at = (rng.integers(5), rng.integers(4))
        got = slope(lambda: logits_signal(logits, labels)[0], logits, at)
        assert got == pytest.approx(z[at], abs=1e-4)


def test_huge_logits_give_a_finite_loss():
    loss, z = logits_signal(np.array([[1e30, 0]], np.float32), np.array([0]))
    assert loss == 0 and np.isfinite(z).all()


def test_latent_weights_multiply_by_their_sign_and_learn_straight_through():
    rng = np.random.default_rng(1)
    layer = Linear(3, 2, rng, binary=True)
    layer.real[0].value[:] = [[0.2, -0.3, 0.0], [-0.9, 0.1, 0.4]]
    x = np.array([[1, 2, 3]], np.float32)
    assert layer.forward(x).tolist() == [[2, 4]]
    assert layer.backward(np.array([[1, 10]], np.float32)).tolist() == [[-9, 9, 11]]
    assert layer.real[0].gradient.tolist() == [[1, 2, 3], [10, 20, 30]]
    assert len(layer.real) == 1 and layer.real[0].clip == 1


def test_truth_values_are_taken_as_plus_and_minus_one():
    layer = Linear(2, 1, np.random.default_rng(2))
    x = np.array([[True, False]])
    assert (layer.forward(x) == layer.forward(np.array([[1, -1]], np.float32))).all()


def test_the_straight_through_window():
    layer = SignThrough()
    s = np.array([-2, -1, -0.5, 0, 1, 1.5], np.float32)
    assert layer.forward(s).tolist() == [False, False, False, True, True, True]
    assert layer.backward(np.ones(6, np.float32)).tolist() == [0, 1, 1, 1, 1, 0]


def test_batch_norm_outside_training_uses_running_moments():
    layer = BatchNorm(1)
    layer.training = True
    layer.forward(np.array([[1], [3]], np.float32))
    assert layer.mean == pytest.approx(0.2) and layer.variance == pytest.approx(1.0)
    layer.training = False
    assert layer.forward(np.array([[0.2]], np.float32)) == pytest.approx(0)


def test_both_branches_of_a_sum_receive_its_signal():
    layer = Add()
    a = np.array([1, 2], np.int32)
    assert layer.forward((a, a)).tolist() == [2, 4]
    assert layer.backward(np.array([3, 4], np.float32)).tolist() == [3, 4]


def test_a_sum_of_truth_values_is_one_of_plus_and_minus_one():
    a, b = np.array([True, True, False]), np.array([True, False, False])
    assert Add().forward((a, b)).tolist() == [2, 0, -2]
