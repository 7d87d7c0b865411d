import math

import numpy as np
import plain_rules as plain
import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.specs.training import Recipe
from hwmodel.trainer.layers import Threshold
from hwmodel.trainer.optim import FlipRule, adam_step, boolean_step, scheduled
from hwmodel.trainer.train import Settings, train
from hwmodel.trainer.weights import BoolWeights, RealWeights


def sign(values):
    return np.where(values, 1.0, -1.0)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 70), st.floats(0.1, 20))
def test_three_steps_follow_the_rule_weight_by_weight(seed, outs, m, eta):
    """Powers of two as votes and rates keep the arithmetic exact, so that ties are met."""
    rng = np.random.default_rng(seed)
    eta = 2.0 ** round(math.log2(eta))
    layer = [BoolWeights.random(outs, 1, m, rng)]
    w, memory, beta = sign(layer[0].values), np.zeros((outs, m)), 1.0
    for _ in range(3):
        q = rng.integers(-8, 9, (outs, m)) / 32
        layer[0].votes = q.astype(np.float32)
        before = w
        w, memory, beta = plain.optimizer_step(w, memory, beta, q, eta)
        assert boolean_step(layer, eta) == (before != w).sum()
        assert (sign(layer[0].values) == w).all()
        assert np.allclose(layer[0].accumulator, memory, rtol=1e-5, atol=1e-6)
        assert layer[0].ratio == pytest.approx(beta, abs=1e-12)


@pytest.mark.parametrize("threshold", [0, 0.5, 2])
@pytest.mark.parametrize("beta", [None, 0.75])
@pytest.mark.parametrize("keeps", [False, True])
def test_variants_of_the_rule_weight_by_weight(threshold, beta, keeps):
    """Votes of 0 among them: at a threshold of 0 what is 0 agrees with nothing."""
    rng = np.random.default_rng(4)
    layer = [BoolWeights.random(3, 1, 40, rng)]
    w, memory, kept = sign(layer[0].values), np.zeros((3, 40)), 1.0
    total = 0
    rule = FlipRule(threshold, "unchanged" if beta is None else beta, "keep" if keeps else "zero")
    for _ in range(4):
        q = rng.integers(-8, 9, (3, 40)) / 4
        layer[0].votes = q.astype(np.float32)
        before = w
        w, memory, kept = plain.optimizer_step(w, memory, kept, q, 1.0, threshold, beta, keeps)
        flips = (before != w).sum()
        assert boolean_step(layer, 1.0, rule=rule) == flips
        total += flips
        assert (sign(layer[0].values) == w).all()
        assert np.allclose(layer[0].accumulator, memory, rtol=1e-5, atol=1e-6)
        assert layer[0].ratio == pytest.approx(kept)
    assert total > 0


def test_a_recipe_states_the_variants():
    """Each moves a run; what is left out is as published."""
    assert Recipe().flip_threshold == 1 and Recipe().beta == "unchanged"
    variants = ({}, {"flip_threshold": 0.5}, {"beta": 0.5}, {"reset": "keep"}, {"tau": 2.0},
                {"schedule": "linear"}, {"schedule": "constant"})  # fmt: skip
    runs = [
        train(Settings(small.network(), small.method(), small.training(**v)), small.images())
        for v in variants
    ]
    assert len({str(run.epochs) for run in runs}) == len(variants)
    nets = [small.net(tau=tau) for tau in (0.0, 2.0)]
    taus = [{n.layer.tau for n in net.nodes if isinstance(n.layer, Threshold)} for net in nets]
    assert taus == [{0.0}, {2.0}]


@pytest.mark.parametrize("wrong", [
    {"flip_threshold": -1}, {"beta": 1.5}, {"beta": "all"}, {"reset": "half"}, {"schedule": "step"},
])  # fmt: skip
def test_no_other_variant_is_known(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Recipe.model_validate(wrong)


def test_a_memory_of_exactly_one_flips_and_is_cleared():
    layer = [BoolWeights.of(np.array([[[True, True, False, False]]]))]
    layer[0].votes = np.array([[1, 0.99, -1, 1]], np.float32)
    assert boolean_step(layer, 1.0) == 2
    assert layer[0].values.tolist() == [[False, True, True, False]]
    assert layer[0].accumulator.tolist() == [[0, np.float32(0.99), 0, 1]]
    assert layer[0].ratio == 0.5


def test_bias_and_weights_share_the_ratio_of_their_layer():
    layer = [BoolWeights.of(np.ones((1, 1, 3), bool)), BoolWeights.of(np.ones((1, 1, 1), bool))]
    layer[1].votes = np.ones((1, 1), np.float32)
    assert boolean_step(layer, 1.0) == 1
    assert [w.ratio for w in layer] == [0.75, 0.75]


def test_the_ratio_scales_the_memory_of_the_next_step():
    layer = [BoolWeights.of(np.ones((1, 1, 2), bool))]
    layer[0].votes = np.array([[1, 0.5]], np.float32)
    boolean_step(layer, 1.0)
    layer[0].votes = np.zeros((1, 2), np.float32)
    boolean_step(layer, 1.0)
    assert layer[0].accumulator.tolist() == [[0, 0.25]]


def test_adam_against_its_formula():
    p = RealWeights(np.array([1.0, -2.0], np.float32))
    value, mean, square = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for t, g in enumerate(([0.5, -1.0], [0.25, 3.0], [-1.0, 0.0]), start=1):
        p.gradient = np.array(g, np.float32)
        adam_step([p], 0.01)
        mean = 0.9 * mean + 0.1 * np.array(g)
        square = 0.999 * square + 0.001 * np.array(g) ** 2
        value = value - 0.01 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-7)
        assert np.allclose(p.value, value, atol=1e-5)


def test_latent_weights_stay_within_their_clip():
    p = RealWeights(np.array([0.99], np.float32), clip=1.0)
    p.gradient = np.array([-1], np.float32)
    adam_step([p], 0.5)
    assert p.value.tolist() == [1]


def test_the_cosine_begins_at_the_rate_and_ends_at_nothing():
    assert scheduled(12, 0, 100) == 12
    assert scheduled(12, 25, 100) == pytest.approx(6 * (1 + math.sqrt(0.5)))
    assert scheduled(12, 50, 100) == pytest.approx(6)
    assert scheduled(12, 100, 100) == pytest.approx(0)


def test_other_schedules():
    assert [scheduled(12, n, 100, "linear") for n in (0, 25, 100)] == [12, 9, 0]
    assert [scheduled(12, n, 100, "constant") for n in (0, 25, 100)] == [12, 12, 12]
