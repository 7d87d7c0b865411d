from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.problem import Window
from hwmodel.tiling.accesses import axis_rows
from hwmodel.tiling.bounds import _axis
from hwmodel.tiling.nests import stands
from hwmodel.tiling.rows import RowRule
from tests.strategies import row_rules

windows = st.builds(
    Window,
    st.integers(1, 30),
    *[st.integers(1, 3)] * 2,
    st.integers(-1, 6),
    st.just(0),
    st.integers(1, 2),
)


@settings(max_examples=500, deadline=None)
@given(windows, row_rules, st.integers(1, 14), st.integers(1, 7), st.data())
def test_no_chain_loads_fewer_rows_than_its_classes(window, rule, outs, taps, data):
    axis = _axis(window, rule, outs, taps)
    chain, out, tap = [], outs, taps
    for _ in range(2):
        out, tap = data.draw(st.integers(1, out)), data.draw(st.integers(1, tap))
        chain.append((out, tap))
    loaded = axis_rows(window, rule, outs, taps, tuple(chain))[1:]
    for (out, tap), rows in zip(chain, loaded, strict=True):
        assert axis.rows[stands(axis, -(-outs // out), -(-taps // tap))] <= rows


def test_cuts_near_the_border_load_less():
    """7 taps at stride 2 and padding 3: a cut within loads 5 rows anew, the first one 4."""
    axis = _axis(Window(224, 2, 1, 3, 3), RowRule(), 112, 7)
    assert axis.by_out[0] == 4 and set(axis.by_out[1:-1].tolist()) == {5}
    # Tiles of 37, the largest that leave four pieces, cut last before output 111: 4 rows again.
    assert axis.rows[stands(axis, 4, 1)] == 224 + 5 + 5 + 4
