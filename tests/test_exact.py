from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.accesses import Mapping, traffic
from hwmodel.problem import Window
from hwmodel.rows import block_rows, most_rows, products
from tests import simulator
from tests.strategies import problems, row_rules, tile_chains


@settings(max_examples=800, deadline=None)
@given(st.data(), problems, row_rules)
def test_equals_the_simulator_to_the_element(data, problem, rule):
    tiles = data.draw(tile_chains(problem.extent))
    held = tuple(data.draw(st.sampled_from("FIO")) for _ in tiles)
    counted = traffic(problem, Mapping(tiles, held), "exact", rule)
    assert [t._asdict() for t in counted] == simulator.simulate(problem, tiles, held, rule)


wide = st.builds(
    Window, st.integers(1, 40), *[st.integers(1, 6)] * 2, st.integers(-3, 12), st.just(0),
    st.integers(1, 6),
)  # fmt: skip


@settings(max_examples=1500, deadline=None)
@given(wide, row_rules, *[st.integers(0, 12), st.integers(1, 15)] * 2)
def test_rows_of_a_block_are_those_that_are_met(window, rule, out, outs, tap, taps):
    rows = simulator.needed(window, rule, (out, out + outs), (tap, tap + taps))
    assert block_rows(window, rule, out, outs, tap, taps) == len(rows)
    met = simulator.met(window, rule, (0, outs), (0, taps))
    assert products(window, rule, outs, taps) == len(met)


@settings(max_examples=300, deadline=None)
@given(wide, row_rules, st.integers(1, 12), st.integers(1, 6), st.data())
def test_no_block_needs_more_than_the_most(window, rule, outs, taps, data):
    n, k = data.draw(st.integers(1, outs)), data.draw(st.integers(1, taps))
    whole = int(block_rows(window, rule, 0, outs, 0, taps))
    needed = [
        len(simulator.needed(window, rule, (a, a + n), (b, b + k)))
        for a in range(outs - n + 1)
        for b in range(taps - k + 1)
    ]
    most = int(most_rows(window, rule, whole, n, k))
    assert max(needed) <= most <= whole
    assert most <= int(most_rows(window, rule, whole, n + 1, k))
