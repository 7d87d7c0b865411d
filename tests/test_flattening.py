"""Loops that are one where nothing couples them: the same products, and tilings at least as good.

The truth is the nest itself, walked product by product with rows that are worked out here.
"""

import csv
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel import evaluate
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.optimal.terms import Options
from hwmodel.vary.sweep.file import SweepFile
from hwmodel.vary.sweep.part import columns, run_part
from hwmodel.vary.sweep.plan import plan
from hwmodel.work.flattening import flattened, merged, without
from hwmodel.work.problem import LONGEST_LOOP, PASSES, Extents, LoopNest, Problem, Widths, Window
from tests.exhaustive import least_energy
from tests.specs import written
from tests.strategies import chips, examples

MAY = {"apart": "", "positions": "N", "reduction": "C", "flattened": "NC"}
FULL = load(Accounting, "full")

windows = st.builds(
    Window,
    size=st.integers(1, 7),
    step=st.integers(1, 3),
    dilation=st.integers(1, 3),
    pad=st.integers(-2, 2),
    pad_end=st.integers(0, 1),
    spread=st.sampled_from((1, 1, 1, 2)),
)
ends = st.sampled_from(((1, 1), (1, 3), (1, 4), (2, 1), (5, 1), (3, 2), (2, 2)))


@st.composite
def nests(draw):
    """Nests of which many axes have one tap or one output."""
    (ho, hf), (wo, wf) = draw(ends), draw(ends)
    extent = Extents(draw(st.integers(1, 3)), 2, draw(st.integers(1, 3)), ho, wo, hf, wf)
    plain = [Window(max(outs, taps)) for outs, taps in ((ho, hf), (wo, wf))]
    found = [draw(st.one_of(windows, st.just(one))) for one in plain]
    return LoopNest(extent, *found, draw(st.integers(1, 2)), PASSES["forward"])


def row(window, out, tap):
    """The row that an output reads through a tap; None where there is none."""
    at = out * window.step + tap * window.dilation - window.pad
    if at % window.spread or not 0 <= at // window.spread < window.size:
        return None
    return at // window.spread


def elements(nest, n, m, c, ho, wo, hf, wf):
    """The elements of I, F and O of one product; None for an I that is not there."""
    hi, wi = row(nest.height, ho, hf), row(nest.width, wo, wf)
    I = None if hi is None or wi is None else (n, c, hi, wi)  # noqa: E741
    return I, (m, c, hf, wf), (n, m, ho, wo)


def at(index, lengths):
    """Where one loop is when several are at an index."""
    found = 0
    for i, length in zip(index, lengths, strict=True):
        found = found * length + i
    return found


@settings(max_examples=examples(3000, 6))
@given(nests(), st.sampled_from(sorted(MAY)), st.booleans())
def test_a_flattened_nest_has_the_same_products_of_the_same_elements(nest, loops, touched):
    """Elements of both are the same under other names: one to one, whatever is left out."""
    tiled = flattened(nest, loops, touched=touched)
    n, t = nest.extent, tiled.extent
    names = [{}, {}, {}]
    found = set()
    for index in product(*map(range, n)):
        N, M, C, HO, WO, HF, WF = index
        ho, hf = (0, 0) if (t.HO, t.HF) != (n.HO, n.HF) else (HO, HF)
        wo, wf = (0, 0) if (t.WO, t.WF) != (n.WO, n.WF) else (WO, WF)
        gone = [(HO - ho, HF - hf, n.HO, n.HF)] * ((t.HO, t.HF) != (n.HO, n.HF))
        gone += [(WO - wo, WF - wf, n.WO, n.WF)] * ((t.WO, t.WF) != (n.WO, n.WF))
        one = (
            at((N, *(x[0] for x in gone)), (n.N, *(x[2] for x in gone))),
            M,
            at((C, *(x[1] for x in gone)), (n.C, *(x[3] for x in gone))),
            *(ho, wo, hf, wf),
        )
        found.add(one)
        mine, theirs = elements(nest, *index), elements(tiled, *one)
        for own, other, name in zip(mine, theirs, names, strict=True):
            assert name.setdefault(own, other) == other
    for name in names:
        assert len(set(name.values())) == len(name)
    assert names[0].get(None) is None  # what is not there is not there
    assert found == set(product(*map(range, t)))
    assert (tiled.groups, tiled.tensors) == (nest.groups, nest.tensors)


@settings(max_examples=examples(3000, 6))
@given(nests(), st.sampled_from(sorted(MAY)), st.booleans())
def test_an_axis_is_put_together_exactly_where_each_row_is_read_once(nest, loops, touched):
    tiled = flattened(nest, loops, touched=touched)
    axes = (("HO", "HF", nest.height), ("WO", "WF", nest.width))
    for out, tap, window in axes:
        outs, taps = getattr(nest.extent, out), getattr(nest.extent, tap)
        rows = [row(window, o, k) for o in range(outs) for k in range(taps)]
        once = None not in rows and len(set(rows)) == len(rows)
        whole = window.size == len(rows) and (window.pad, window.pad_end) == (0, 0)
        may = ("N" if taps == 1 else "C") in MAY[loops] and min(outs, taps) == 1
        one = may and once and window.spread == 1 and (touched or whole)
        left = getattr(tiled.extent, out) * getattr(tiled.extent, tap)
        assert left == (1 if one else outs * taps)


@settings(max_examples=examples(300))
@given(st.data())
@pytest.mark.filterwarnings("ignore")
def test_no_tiling_of_loops_apart_is_better(data):
    """Every tiling of both nests is walked."""
    N, HO, M, C = (data.draw(st.integers(1, most)) for most in (3, 4, 2, 3))
    back = data.draw(st.booleans())
    extent = Extents(C, M, N, 1, 1, HO, 1) if back else Extents(N, M, C, HO, 1, 1, 1)
    nest = LoopNest(extent, Window(HO), Window(1), 1, PASSES["forward"])
    bits = data.draw(st.builds(Widths, *[st.sampled_from((1, 2, 8))] * 3))
    hardware = data.draw(chips(data.draw(st.integers(2, 3))))
    found = []
    for one in (nest, flattened(nest, "flattened", touched=True)):
        problem = Problem(one.extent, one.height, one.width, bits, 1)
        best = least_energy(problem, hardware, Options(stationary="best"))
        found.append(best and best[0])
    if found[0] is not None:
        assert found[1] <= found[0] * (1 + 1e-12)


@pytest.mark.parametrize(
    ("window", "outs", "taps", "one"),
    [
        (Window(7, 1, 3), 1, 3, True),  # rows 0, 3 and 6
        (Window(6, 1, 3), 1, 3, False),  # the last is not there
        (Window(5, 4, 1), 1, 5, True),  # a stride that nothing goes by
        (Window(5, 2, 3), 3, 1, True),  # rows 0, 2 and 4
        (Window(4, 2, 1), 3, 1, False),
        (Window(4, 1, 1, -1), 3, 1, True),  # rows 1 to 3
        (Window(4, 1, 1, -2), 3, 1, False),
        (Window(5, 1, 1, 1, 1), 7, 1, False),  # padding is read
        (Window(3, 1, 1, 0, 0, 2), 5, 1, False),  # every second one has no row
        (Window(5), 3, 3, False),  # windows overlap
    ],
)
def test_which_axes_are_put_together_by_hand(window, outs, taps, one):
    for down in (True, False):
        extent = (2, 3, 4, outs, 1, taps, 1) if down else (2, 3, 4, 1, outs, 1, taps)
        pair = (window, Window(1)) if down else (Window(1), window)
        nest = LoopNest(Extents(*extent), *pair, 1, PASSES["forward"])
        tiled = flattened(nest, "flattened", touched=True)
        assert tiled.extent == (Extents(2 * outs, 3, 4 * taps, 1, 1, 1, 1) if one else nest.extent)


def test_a_loop_stays_apart_where_it_would_be_too_long():
    nest = LoopNest(
        Extents(2**20, 4, 4, 2**12, 8, 1, 1), Window(2**12), Window(8), 1, PASSES["forward"]
    )
    assert nest.extent.N * nest.extent.HO > LONGEST_LOOP
    tiled = flattened(nest, "flattened", touched=True)
    assert tiled.extent == Extents(2**23, 4, 4, 2**12, 1, 1, 1)
    assert merged(nest.extent, tiled.extent) == [("N", (("N", 2**20), ("WO", 8)))]


def test_words_for_loops():
    assert [without("flattened", x) for x in ((), ("positions",), ("reduction", "positions"))] == [
        "flattened", "reduction", "apart",
    ]  # fmt: skip


# -- reports ---------------------------------------------------------------------------------

NETWORK = """\
version: 1
name: points
title: Products at each place
input: [24, 14, 10]
layers:
  - {name: narrow, kind: conv, channels: 40, kernel: 1}
  - {name: half, kind: conv, channels: 30, kernel: 1, stride: 2}
  - {name: whole, kind: conv, channels: 20, kernel: [7, 5]}
"""
CHIP = """\
version: 1
name: rows
title: Memories side by side
energy_unit: pJ
sources: {me: "made up"}
levels:
  - {level: 1, name: DRAM, capacity: unlimited, access_energy: 20 pJ/bit, source: me}
  - {level: 0, name: PE, capacity: 300 B, access_energy: 1 pJ/bit, fanout: AXES, source: me}
arithmetic:
  - {operation: mac, bits: 32, energy: 1 pJ, source: me}
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return str(written(tmp_path_factory.mktemp("points"), NETWORK, name="points.yaml"))


def chip_of(folder, axes):
    return str(written(folder, CHIP.replace("AXES", axes), name="rows.yaml"))


def with_loops(loops):
    counting = FULL.counting.model_copy(update={"loops": loops})
    return FULL.model_copy(update={"counting": counting})


def extents(report):
    return {(t.layer, str(t.work.pass_)): t.work.problem.extent for t, _ in report.tilings}


def test_a_report_tiles_loops_that_are_one(network):
    """By hand: which axes have one tap or one output, and no padding."""
    found = extents(evaluate(network, "v100", "fp", batch=3))
    assert found == {
        ("narrow", "forward"): Extents(3 * 14 * 10, 40, 24, 1, 1, 1, 1),
        ("narrow", "backward_weight"): Extents(24, 40, 3 * 14 * 10, 1, 1, 1, 1),
        ("half", "forward"): Extents(3 * 7 * 5, 30, 40, 1, 1, 1, 1),  # each second row, once
        ("half", "backward_input"): Extents(3, 40, 30, 14, 10, 1, 1),  # rows between have none
        ("half", "backward_weight"): Extents(40, 30, 3 * 7 * 5, 1, 1, 1, 1),
        ("whole", "forward"): Extents(3, 20, 30 * 7 * 5, 1, 1, 1, 1),
        ("whole", "backward_input"): Extents(3, 30, 20, 7, 5, 7, 5),
        ("whole", "backward_weight"): Extents(30 * 7 * 5, 20, 3, 1, 1, 1, 1),
    }
    apart = evaluate(network, "v100", "fp", batch=3, accounting=with_loops("apart"))
    assert extents(apart)["narrow", "forward"] == Extents(3, 40, 24, 14, 10, 1, 1)


def test_rows_between_those_of_a_stride_are_fetched_or_not_and_loops_follow(network):
    """Under `bounding` the rows between are fetched, but for those of other tiles; on one level."""
    counting = FULL.counting.model_copy(update={"rows": "bounding"})
    rules = FULL.model_copy(update={"counting": counting})
    found = extents(evaluate(network, "v100", "fp", batch=3, accounting=rules))
    assert found["half", "forward"] == Extents(3, 30, 40, 7, 5, 1, 1)
    assert found["half", "backward_weight"] == Extents(40, 30, 3, 1, 1, 7, 5)
    assert found["narrow", "forward"].N == 3 * 14 * 10


def test_level_by_level_loops_are_those_of_the_source(network):
    update = {"search": "level-by-level", "stationary": "filter", "residency": "none"}
    update |= {"weight_gradient": "signal-as-filters"}
    rules = FULL.model_copy(update={"counting": FULL.counting.model_copy(update=update)})
    found = extents(evaluate(network, "v100", "fp", batch=3, accounting=rules))
    assert found["narrow", "forward"] == Extents(3, 40, 24, 14, 10, 1, 1)


def test_explain_says_what_a_loop_stands_for(network, hwmodel):
    asked = ("explain", network, "--hardware", "v100", "--method", "fp", "--accounting", "full")
    code, out, err = hwmodel(*asked, "--layer", "narrow", "--batch", "3")
    assert code == 0, err
    assert "the loop N stands for N, HO and WO (3 x 14 x 10), which nothing couples" in out
    assert "the loop C stands for C, HF and WF (3 x 14 x 10), which nothing couples" in out


def test_explain_writes_rows_as_the_layer_has_them(network, hwmodel):
    """`half` has stride 2 and is one loop: its rows are those of the layer all the same."""
    asked = ("explain", network, "--hardware", "v100", "--method", "fp", "--accounting", "full")
    code, out, err = hwmodel(*asked, "--layer", "half", "--pass", "forward")
    assert code == 0, err
    assert "hi = 2 ho + 1 hf, of 14 rows; wi = 2 wo + 1 wf, of 10 columns" in out
    assert "operations are told by all seven" in out


@pytest.mark.parametrize("axes", ["{HO: 4}", "{M: 2, N: 2}", "{C: 4}", "{HF: 2, positions: 2}"])
def test_a_chip_that_takes_one_of_the_loops_alone_has_them_apart(network, tmp_path, axes):
    chip = chip_of(tmp_path, axes)
    found = evaluate(network, chip, "fp", batch=2, accounting="full")
    names = load(Hardware, chip).told_apart
    expected = evaluate(
        network, chip, "fp", batch=2, accounting=with_loops(without("flattened", names))
    )
    assert names == ({"reduction"} if "C" in axes or "HF" in axes else {"positions"})
    assert extents(found) == extents(expected)
    assert found.energy == expected.energy
    narrow = extents(found)["narrow", "forward"]
    assert (1 if names == {"reduction"} else 14) == narrow.HO


def test_axes_of_an_array_tell_loops_apart_too(tmp_path):
    text = CHIP.replace("fanout: AXES, ", "") + "array: {WO: 4, C: 2, source: me}\n"
    path = str(written(tmp_path, text, name="array.yaml"))
    assert load(Hardware, path).told_apart == {"positions", "reduction"}


@pytest.mark.parametrize("axes", ["8", "{positions: 8}", "{M: 2, reduction: 4}"])
def test_a_chip_that_takes_them_together_has_them_as_one(network, tmp_path, axes):
    chip = chip_of(tmp_path, axes)
    assert load(Hardware, chip).told_apart == set()
    assert extents(evaluate(network, chip, "fp", accounting="full"))["narrow", "forward"].N == 140


def test_chips_of_both_kinds_beside_one_another_cost_what_each_does_alone(network, tmp_path):
    """In sweeps chips share the work, but for the loops that one of them has apart."""
    chips = []
    for name, axes in (("one", "{positions: 8}"), ("two", "{HO: 8}")):
        text = CHIP.replace("AXES", axes).replace("name: rows", f"name: {name}")
        chips.append(str(written(tmp_path, text, name=f"{name}.yaml")))
    asked = {
        "version": 1, "name": "both", "title": "t", "network": network, "method": "fp",
        "accounting": "full", "hardware": tuple(chips), "axes": ({"batch": (2, 3)},),
    }  # fmt: skip
    planned = plan(SweepFile.model_validate(asked))
    lines = run_part(planned, planned.points()).splitlines()
    found = [dict(zip(columns(planned), row, strict=True)) for row in csv.reader(lines)]
    assert len(found) == 4
    for line in found:
        chip, batch = chips["two" in line["hardware"]], int(line["batch"])
        alone = evaluate(network, chip, "fp", batch=batch, accounting="full")
        assert float(line["energy"]) == alone.energy
