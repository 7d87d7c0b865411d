from itertools import pairwise, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.tiling.accesses import axis_rows, pieces
from hwmodel.tiling.optimal.bounds import _axis, _cheapest_partition, reloads
from hwmodel.tiling.optimal.chain_rows import chain_rows, summed_rows
from hwmodel.tiling.rows import RowRule, block_rows
from hwmodel.work.problem import Window
from tests.strategies import row_rules

windows = st.builds(
    Window,
    st.integers(1, 30),
    *[st.integers(1, 3)] * 2,
    st.integers(-1, 6),
    st.just(0),
    st.integers(1, 2),
)


def of_tile(smallest, tile):
    """The class of a tile: the first whose smallest tile is no larger."""
    return next(i for i, least in enumerate(smallest) if least <= tile)


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
        assert axis.rows[of_tile(axis.outs, out), of_tile(axis.taps, tap)] <= rows


def test_cuts_near_the_border_load_less():
    """7 taps at stride 2 and padding 3: a cut within loads 5 rows anew, the first one 4."""
    axis = _axis(Window(224, 2, 1, 3, 3), RowRule(), 112, 7)
    assert axis.by_out[0] == 4 and set(axis.by_out[1:-1].tolist()) == {5}
    # Tiles of 37, the largest that leave four pieces, cut last before output 111: 4 rows again.
    assert axis.rows[of_tile(axis.outs, 37), 0] == 224 + 5 + 5 + 4


dilated = st.builds(
    Window,
    st.integers(1, 30),
    *[st.integers(1, 4)] * 2,
    st.integers(-1, 6),
    st.just(0),
    st.integers(1, 3),
)
paddings = st.sampled_from(["skipped", "counted"])


@settings(max_examples=60, deadline=None)
@given(dilated, paddings, st.integers(2, 9), st.integers(1, 4))
def test_the_cheapest_partition_is_that_of_all_partitions(window, padding, outs, taps):
    """Every way to cut the outputs, its rows counted piece by piece."""
    rule = RowRule("touched", padding)
    fewest = dict.fromkeys(range(1, outs + 1), 10**9)  # by the longest piece allowed
    for cuts in product((False, True), repeat=outs - 1):
        ends = [0, *(at for at, cut in enumerate(cuts, 1) if cut), outs]
        own = [int(block_rows(window, rule, a, b - a, 0, taps)) for a, b in pairwise(ends)]
        for longest in range(max(b - a for a, b in pairwise(ends)), outs + 1):
            fewest[longest] = min(fewest[longest], sum(own))
    whole = int(block_rows(window, rule, 0, outs, 0, taps))
    found = _cheapest_partition(reloads(window, rule, outs, taps), np.array([*fewest]))
    assert (whole + found).tolist() == [*fewest.values()]


@settings(max_examples=60, deadline=None)
@given(dilated, paddings, st.integers(1, 40), st.integers(1, 7), st.booleans(), st.data())
def test_rows_of_many_chains_are_those_of_each(window, padding, many, few, turn, data):
    rule = RowRule("touched", padding)
    outs, taps = (few, many) if turn else (many, few)
    out, tap = (
        np.array([sorted(data.draw(st.tuples(*[st.integers(1, n)] * 3)), reverse=True)] * 2)
        for n in (outs, taps)
    )
    out[1], tap[1] = np.maximum(out[1] - 1, 1), np.maximum(tap[1] - 1, 1)
    each = [
        axis_rows(window, rule, outs, taps, tuple(zip(o, t, strict=True)))[1:]
        for o in out.tolist()
        for t in tap.tolist()
    ]
    assert chain_rows(rule, window, outs, taps, out, tap).tolist() == [[*rows] for rows in each]
    axis = _axis(window, rule, outs, taps)
    cut = np.column_stack([np.broadcast_to(n, 2) for n in pieces(outs, list(out.T))[1:]])
    alone = chain_rows(rule, window, outs, taps, out, np.full((1, 3), taps))
    assert (summed_rows(axis, axis.by_out, out, cut) == alone).all()
