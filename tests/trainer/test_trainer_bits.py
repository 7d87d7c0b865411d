import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.trainer import bits, kernels
from hwmodel.trainer.weights import BoolWeights

seeds = st.integers(0, 2**32 - 1)


def draw(seed, *shape):
    return np.random.default_rng(seed).random(shape) < 0.5


@given(seeds, st.integers(1, 5), st.integers(1, 200))
def test_packing_and_unpacking_give_the_values_back(seed, rows, m):
    x = draw(seed, rows, m)
    packed = bits.pack(x)
    assert packed.shape == (rows, -(-m // 64)) and packed.dtype == np.uint64
    assert (bits.unpack(packed, 1, m) == x).all()


def test_the_first_value_is_the_lowest_bit_and_the_rest_is_false():
    x = np.zeros((1, 70), bool)
    x[0, [0, 3, 65]] = True
    assert bits.pack(x).tolist() == [[0b1001, 0b10]]


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.integers(1, 300))
def test_sums_of_agreements_equal_a_count_one_by_one(seed, rows, outs, m):
    x, w = draw(seed, rows, m), draw(seed + 1, outs, m)
    plain = [[sum(1 if a == b else -1 for a, b in zip(r, v, strict=True)) for v in w] for r in x]
    assert bits.xnor_sums(bits.pack(x), bits.pack(w), m).tolist() == plain
    assert bits.xor_sums(bits.pack(x), bits.pack(w), m).tolist() == (-np.array(plain)).tolist()


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 100])
def test_blocks_of_rows_leave_no_row_out(rows):
    x, w = draw(1, rows, 70), draw(2, 1000, 70)
    signs = x * 2 - 1, w * 2 - 1
    assert (bits.xnor_sums(bits.pack(x), bits.pack(w), 70) == signs[0] @ signs[1].T).all()


def test_more_inputs_than_16_bits_count():
    """70,000 disagreements do not fit a 16-bit plane."""
    x, w = np.ones((1, 70_000), bool), np.zeros((2, 70_000), bool)
    assert bits.xnor_sums(bits.pack(x), bits.pack(w), 70_000).tolist() == [[-70_000, -70_000]]


def test_the_compiled_form_gives_the_same_integers():
    pytest.importorskip("numba")
    for seed, (rows, outs, m) in enumerate([(1, 1, 1), (3, 5, 64), (7, 33, 130), (2, 9, 1000)]):
        x, w = bits.pack(draw(seed, rows, m)), bits.pack(draw(seed + 9, outs, m))
        assert (kernels.compiled_sums(x, w, m) == bits.xnor_sums(x, w, m)).all()


@given(seeds, st.integers(1, 4), st.integers(1, 5), st.integers(1, 70))
def test_flips_negate_the_chosen_weights_and_no_other(seed, outs, taps, inputs):
    weights = BoolWeights.of(draw(seed, outs, taps, inputs))
    before, where = weights.values, draw(seed + 1, outs, taps * inputs)
    weights.flip(where)
    assert (weights.values == (before ^ where)).all()


def test_the_fastest_way_is_kept_for_a_case():
    calls = []

    def way(name, seconds):
        def compute():
            calls.append(name)
            time.sleep(seconds)
            return np.zeros((1, 1), np.int32)

        return compute

    ways = {"slow": way("slow", 0.02), "quick": way("quick", 0.001)}
    kernels.fastest(("test", "kept"), ways)
    assert calls.count("slow") == calls.count("quick") - 1 >= 2
    calls.clear()
    kernels.fastest(("test", "kept"), ways)
    assert calls == ["quick"]


def test_one_way_is_taken_without_trying():
    calls = []
    kernels.fastest(("test", "alone"), {"only": lambda: calls.append(1)})
    assert calls == [1]
