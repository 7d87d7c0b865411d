"""The three truth tables of the calculus, written out in full."""

import itertools

import numpy as np
import pytest

from hwmodel.trainer.logic import FALSE, NONE, TRUE, delta, truth, variation, xnor, xor

T, F, O = TRUE, FALSE, NONE  # noqa: E741

XNOR = {
    (T, T): T,
    (T, F): F,
    (F, T): F,
    (F, F): T,
    (O, T): O,
    (O, F): O,
    (T, O): O,
    (F, O): O,
    (O, O): O,
}


def test_the_values_stand_for_their_numbers():
    assert (T, F, O) == (1, -1, 0)


@pytest.mark.parametrize(("a", "b"), list(itertools.product((T, F, O), repeat=2)))
def test_connectives_over_three_values(a, b):
    assert xnor(a, b) == XNOR[a, b]
    assert xor(a, b) == -XNOR[a, b]


@pytest.mark.parametrize("a", (T, F, O))
@pytest.mark.parametrize("x", (-2.5, -1.0, 0.0, 0.5, 3.0))
def test_a_connective_of_a_truth_value_and_a_number(a, x):
    """The magnitude is |a||x|; the sign is the connective's of a and the sign of x."""
    sign = XNOR[a, int(np.sign(x))]
    assert xnor(a, x) == sign * abs(a) * abs(x)
    assert xor(a, x) == -sign * abs(a) * abs(x)


def test_the_change_from_one_value_to_another():
    table = {(F, T): T, (T, F): F, (T, T): O, (F, F): O}
    assert {pair: delta(*pair) for pair in table} == table


@pytest.mark.parametrize("a", (T, F))
@pytest.mark.parametrize("x", (T, F))
def test_variations_of_the_connectives(a, x):
    """xor(x, a)' = not a, xnor(x, a)' = a, at either x."""
    assert variation(lambda value: int(xor(value, a)), x) == -a
    assert variation(lambda value: int(xnor(value, a)), x) == a


FUNCTIONS = [
    dict(zip((T, F), values, strict=True)) for values in itertools.product((T, F), repeat=2)
]


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("g", FUNCTIONS)
@pytest.mark.parametrize("x", (T, F))
def test_the_chain_rule_over_all_functions_of_one_value(f, g, x):
    outer = variation(g.__getitem__, f[x])
    inner = variation(f.__getitem__, x)
    assert variation(lambda value: g[f[value]], x) == xnor(outer, inner)


def test_a_sign_is_a_truth_value():
    assert truth([-3, -0.1, 0, 2]).tolist() == [-1, -1, 0, 1]
