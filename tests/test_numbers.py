"""Numbers without end: dimensions to 2^31, MACs beyond 10^18, energies from 1e-12 to 1e12."""

import csv
import io
import math
import os
from math import fsum, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel import HwmodelError, ShapeError, TooLarge, evaluate
from hwmodel.graph.network import Network
from hwmodel.tiling.optimal.bounds import Room
from hwmodel.tiling.optimal.chains import _fits
from hwmodel.tiling.rows import RowRule, Span, block_rows, cut_rows
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.rows import merged
from tests.strategies import examples

MOST = 2**31
RESULTS = {}


def net(given, *layers):
    listed = [{"name": f"l{i}"} | layer for i, layer in enumerate(layers)]
    return Network.model_validate(
        {"version": 1, "name": "n", "title": "t", "input": list(given), "layers": listed}
    )


def conv(channels, kernel, **fields):
    return {"kind": "conv", "channels": channels, "kernel": kernel} | fields


HUGE = {
    "M": (net((3, 8, 8), conv(MOST, 3, padding=1)), 1),
    "C": (net((MOST, 3, 3), conv(2, 3, padding=1)), 1),
    "C and M": (net((MOST, 3, 3), conv(MOST, 3, padding=1)), 1),
    "H": (net((3, MOST, 1), conv(4, [3, 1], padding=[1, 0])), 1),
    "kernel": (net((3, MOST, 4), conv(4, [MOST, 1])), 1),
    "dilation": (net((3, MOST, 4), conv(4, [3, 1], dilation=[2**30 - 1, 1])), 1),
    "groups": (net((MOST, 4, 4), conv(MOST, 3, groups=MOST)), 1),
    "batch": (net((3, 1, 8), conv(4, 1)), MOST),
    "matrices": (net((2**30, 1, 1), {"kind": "linear", "features": 2**30}), MOST),
}


def rows_of(name, accounting):
    """Reports of one huge layer, made once."""
    if (name, accounting) not in RESULTS:
        network, batch = HUGE[name]
        RESULTS[name, accounting] = evaluate(
            network, "ascend", "fp", accounting=accounting, batch=batch, mode="inference"
        )
    return RESULTS[name, accounting]


LONG = pytest.mark.skipif(
    os.environ.get("HWMODEL_TESTS") != "thorough",
    reason="15 s; such a search is in test_optimal.py",
)
REPORTS = [
    pytest.param(name, word, marks=LONG if (name, word) == ("matrices", "full") else ())
    for name in HUGE
    for word in ("paper", "full")
]


@pytest.mark.parametrize(("name", "accounting"), REPORTS)
def test_huge_layers_are_counted_in_whole_numbers_without_end(name, accounting):
    """MACs and compulsory traffic against Python's integers; level by level what is asked inside is
    never less than what comes in; nothing is negative, infinite or no number."""
    report = rows_of(name, accounting)
    network, batch = HUGE[name]
    (node,) = network.nodes()
    (M, HO, WO), (HF, WF) = node.output_shape, getattr(node.layer, "kernel", (1, 1))
    C = prod(node.input_shapes[0]) if node.layer.kind == "linear" else node.input_shapes[0][0]
    filters = M * (C // getattr(node.layer, "groups", 1)) * HF * WF
    macs = batch * filters * HO * WO
    assert (
        sum(
            r.operations for r in merged(report) if (r.phase, r.component) == ("forward", "compute")
        )
        == macs
    )
    asked = {
        (r.tensor, r.level): r
        for r in merged(report)
        if r.phase == "forward" and r.component == "memory"
    }
    assert asked["O", "L3"].accesses >= batch * M * HO * WO
    assert asked["F", "L3"].accesses >= filters
    assert (
        asked["F", "L3"].accesses % filters == 0
        and asked["F", "L3"].bits == 32 * asked["F", "L3"].accesses
    )
    for row in merged(report):
        assert (
            isinstance(row.accesses, int)
            and isinstance(row.bits, int)
            and isinstance(row.operations, int)
        )
        assert min(row.accesses, row.bits, row.operations) >= 0
        assert math.isfinite(row.energy) and row.energy >= 0
    for (tensor, level), row in asked.items():
        if tensor == "F" and level != "L0-B":
            assert row.accesses <= asked["F", "L0-B"].accesses
    assert math.isfinite(report.energy)


def test_more_than_64_bits_are_written_to_the_csv_to_the_last_digit(hwmodel, tmp_path):
    (tmp_path / "net.yaml").write_text(
        "version: 1\nname: n\ntitle: t\ninput: [1073741824, 1, 1]\n"
        "layers: [{name: l0, kind: linear, features: 1073741824}]\n"
    )
    asked = ("--hardware", "ascend", "--method", "fp", "--accounting", "paper", "--batch", MOST)
    code, out, err = hwmodel("report", "net.yaml", *asked, "--mode", "inference", "--csv", "-")
    assert code == 0, err
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {int(row["count"]) for row in rows if row["direction"] == "operate"} == {2**91}
    energy = rows_of("matrices", "paper").energy
    assert fsum(float(row["energy"]) for row in rows) == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("accounting", ["paper", "full"])
@pytest.mark.parametrize(
    ("network", "batch", "sentence"),
    [
        (net((MOST, MOST, MOST), {"kind": "linear", "features": MOST}), MOST,
         "l0, forward on ascend: 9,903,520,314,283,042,199,192,993,792 iterations of the loop C, more than "
         "2,147,483,648; make the batch or the image smaller"),
        (net((8, MOST, 1), {"kind": "linear", "features": 8, "over": "channels"}), 2,
         "l0, forward on ascend: 4,294,967,296 iterations of the loop N, more than 2,147,483,648; make the "
         "batch or the image smaller"),
        (net((3, 2**14, 1), conv(4, [2**13, 1])), 1,
         "l0, forward on ascend: 8,192 taps under as many outputs of one axis, more than 4,096; make the batch "
         "or the image smaller"),
        (net((3, 2**14, 1), conv(4, 1), conv(4, [2, 1], stride=[2**11, 1])), 1,
         "l1, backward_input on ascend: 2,048 rows of stride to go back through, more than 1,024; make the "
         "batch or the image smaller"),
    ],
)  # fmt: skip
def test_beyond_the_limits_is_one_sentence(network, batch, sentence, accounting):
    with pytest.raises(TooLarge) as caught:
        evaluate(network, "ascend", "fp", accounting=accounting, batch=batch)
    assert str(caught.value) == sentence


def test_borders_are_short_where_padding_is_skipped():
    """All outputs but 8 - 3 + 1 meet padding, and of each tap some output does."""
    with pytest.raises(TooLarge) as caught:
        evaluate(net((3, 8, 8), conv(4, 3, padding=2**16)), "ascend", "fp", accounting="full")
    assert str(caught.value) == (
        "l0, forward on ascend: 131,075 outputs and taps of one axis at its borders, more than "
        "32,768; make the batch or the image smaller"
    )


def test_what_layers_make_stays_within_the_largest_dimension():
    up = {"kind": "conv-transpose", "channels": 1, "kernel": 2, "stride": 2**16}
    with pytest.raises(ShapeError) as caught:
        net((1, 2**16, 2**16), up).nodes()
    assert str(caught.value).startswith(
        "n: layer l0: its output (1, 4294901762, 4294901762) is longer than"
    )


@pytest.mark.parametrize(
    "layer", [conv(4, 3), {"kind": "max-pool", "kernel": 2}, {"kind": "linear", "features": 9}]
)
def test_no_layer_is_too_large_for_a_message(layer):
    for accounting in ("paper", "full"):
        try:
            report = evaluate(
                net((MOST, MOST, MOST), layer), "v100", "bold", accounting=accounting, batch=MOST
            )
        except HwmodelError:
            continue
        assert math.isfinite(report.energy) and all(row.energy >= 0 for row in merged(report))


large = st.integers(1, 2**20)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(1, MOST), st.integers(1, 1024), st.integers(1, 2**20), st.integers(0, MOST), st.integers(1, 1024),
    st.integers(0, 2**10), st.integers(1, 2**10), st.integers(0, 20), st.integers(1, 20), st.booleans(),
)  # fmt: skip
def test_rows_of_huge_windows_do_not_overflow(
    size, step, dilation, pad, spread, out, outs, tap, taps, counted
):
    """A few outputs and taps of a window with huge numbers, row by row in Python's integers."""
    outs = min(outs, 40)
    window = Window(size, step, dilation, pad, 0, spread)
    rule = RowRule(padding="counted" if counted else "skipped")
    positions = {
        (o * step + k * dilation - pad) // spread
        for o in range(out, out + outs) for k in range(tap, tap + taps)
        if (o * step + k * dilation - pad) % spread == 0
    }  # fmt: skip
    wanted = sum(1 for row in positions if counted or 0 <= row < size)
    found = block_rows(
        window, rule, np.array([out]), np.array([outs]), np.array([tap]), np.array([taps])
    )
    assert found.tolist() == [wanted]


def test_rows_of_huge_windows_are_summed_beyond_64_bits():
    """2^31 outputs, each alone with three taps 2^31 apart: 2^32 + 1 rows from the first to the last."""
    window = Window(MOST, 1, MOST, MOST, MOST)
    rule = RowRule("bounding", "counted")
    rows = cut_rows(window, rule, [Span(0, 1, MOST)], [Span(0, 3, 1)])
    assert rows == (2**32 + 1) * MOST > 2**63


@pytest.mark.parametrize(
    "holds", [(True, False, False), (False, True, False), (False, False, True)]
)
def test_tiles_beyond_64_bits_do_not_fit_by_wrapping_round(holds):
    """32 x 2^31 x 2^31 bits are 2^67, which is 0 in 64 bits."""
    problem = Problem(
        Extents(MOST, MOST, MOST, 1, 1, 1, 1), Window(1), Window(1), Widths(32, 32, 32)
    )

    class Space:
        sum_bits = 32

    Space.problem = problem
    tile = Extents(*(np.array([n]) for n in problem.extent))
    assert not _fits(Space, (Room(2**62, *holds),), tile, np.array([1])).any()
    assert _fits(Space, (Room(2.0**67, *holds),), tile, np.array([1])).all()
