"""Accounting `full`: operators, stored activations and updates, each row by hand."""

import pytest

from hwmodel import ShapeError, evaluate
from hwmodel.graph.network import Network
from hwmodel.model.not_counted import refuse_unknown
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.vary.paths import replaced_all
from tests.rows import merged, row_table

FULL = load(Accounting, "full")
DRAM = 50 / 8  # pJ per bit on the Ascend

BLOCK = {
    "version": 1,
    "name": "block",
    "title": "A shortcut around a convolution",
    "input": [3, 8, 8],
    "layers": [
        {"name": "first", "kind": "conv", "channels": 16, "kernel": 3, "padding": 1},
        {"name": "act", "kind": "activation"},
        {"name": "conv", "kind": "conv", "channels": 16, "kernel": 3, "padding": 1},
        {"name": "bn", "kind": "batch-norm"},
        {"name": "sum", "kind": "add", "inputs": ["bn", "act"]},
        {"name": "last_act", "kind": "activation"},
        {"name": "fc", "kind": "linear", "features": 10},
    ],
}
N, MAP = 2, 16 * 8 * 8  # images; elements of a map


def network(**changes):
    return validate(Network, BLOCK | changes, "block")


def rows(method, network_=None, mode="training", **changes):
    accounting = replaced_all(FULL, {f"extras.{name}": value for name, value in changes.items()})
    report = evaluate(
        network_ or network(), "ascend", method, accounting=accounting, batch=N, mode=mode
    )
    return row_table(report)


def at(table, layer, level="L3", **where):
    found = table[(table.layer == layer) & (table.level == level)]
    for column, value in where.items():
        found = found[found[column if column != "phase" else "pass"] == value]
    return found.set_index("tensor")


def test_a_boolean_weight_pays_for_vote_accumulator_and_flips():
    weights = 16 * 16 * 9
    found = at(rows("bold"), "conv", component="update")
    assert found.bits.to_dict() == {
        "dF": 16 * weights,
        "accumulator": 2 * 16 * weights,  # read and written
        "F": weights + round(0.01 * weights),  # read, and one in a hundred written
    }
    assert found.energy["accumulator"] == pytest.approx(2 * 16 * weights * DRAM)


@pytest.mark.parametrize(
    ("optimizer", "states"), [("sgd", ()), ("momentum", ("momentum",)), ("adam", ("m", "v"))]
)
def test_a_full_precision_weight_pays_for_its_optimizer_s_states(optimizer, states):
    weights = 16 * 8 * 8 * 10
    found = at(rows("fp", optimizer=optimizer), "fc", component="update").bits.to_dict()
    assert found == {"dF": 32 * weights, "F": 2 * 32 * weights} | {
        state: 2 * 32 * weights for state in states
    }


def test_a_latent_weight_also_writes_its_narrow_copy():
    found = at(rows("binaryconnect"), "conv", component="update").bits
    weights = 16 * 16 * 9
    assert found["latent F"] == 2 * 32 * weights
    assert found["F"] == weights


def test_batch_norm_reads_twice_each_way_and_updates_scale_and_shift():
    table = rows("fp")
    forward = at(table, "bn", phase="forward").accesses
    back = at(table, "bn", phase="backward_input").accesses
    assert forward.to_dict() == {"I": 2 * N * MAP, "O": N * MAP}
    assert back.to_dict() == {"dO": 2 * N * MAP, "saved I": 2 * N * MAP, "dI": N * MAP}
    assert at(table, "bn", component="update").accesses["dF"] == 2 * 16
    assert at(rows("fp", mode="inference"), "bn").accesses.to_dict() == {"I": N * MAP, "O": N * MAP}


def test_where_two_layers_take_a_tensor_their_signals_are_added():
    found = at(rows("fp"), "act", phase="backward_input", component="elementwise")
    fork = found[found.accesses == 3 * N * MAP]  # two read, one written
    assert fork.index.tolist() == ["dO"]


@pytest.mark.parametrize(
    ("takers", "parts"),
    [
        ([(0, 8), (8, 16)], {}),  # nothing is added to anything
        ([(0, 4), (12, 16)], {}),
        ([(0, 12), (8, 16)], {2: 4 * 64}),  # channels 8 to 11
        ([(0, 8), None], {2: 8 * 64}),
        ([(0, 8), (4, 12), None], {2: 8 * 64, 3: 4 * 64}),
        ([(0, 8), (0, 3, "rows")], {2: 8 * 3 * 8}),
        ([None, (0, 8), (6, 8, "rows")], {2: 8 * 6 * 8 + 8 * 2 * 8, 3: 8 * 2 * 8}),
    ],
)  # fmt: skip
def test_signals_are_added_where_slices_overlap_and_nowhere_else(takers, parts):
    """What k layers take is read k times, added k - 1 times, written once."""
    layers = [*BLOCK["layers"][:2]]
    for number, part in enumerate(takers):
        cut = {"name": f"part{number}", "kind": "activation", "inputs": ["act"]}
        if part:
            cut |= {
                "kind": "slice",
                "start": part[0],
                "stop": part[1],
                "axis": [*part, "channels"][2],
            }
        ends = [{"name": f"pool{number}", "kind": "global-average-pool", "inputs": [cut["name"]]}]
        layers += [cut, *ends]
    layers += [
        {"name": "all", "kind": "concat", "inputs": [f"pool{n}" for n in range(len(takers))]},
        {"name": "fc", "kind": "linear", "features": 10},
    ]
    table = rows("fp", network(layers=layers))
    found = at(table, "act", phase="backward_input", component="elementwise")
    moved = [
        N * MAP,
        *((k + 1) * N * n for k, n in parts.items()),
    ]  # the activation's own read first
    assert sorted(found[found.index == "dO"].accesses) == sorted(moved)
    back = table[(table.layer == "act") & (table["pass"] == "backward_input")]
    added = sum((k - 1) * N * n for k, n in parts.items())
    assert back.operations.sum() == N * MAP + added  # its own: a comparison of each element


def test_a_sum_reads_both_its_terms_and_sends_its_signal_on_for_nothing():
    table = rows("fp")
    assert at(table, "sum", phase="forward").accesses.to_dict() == {
        "I1": N * MAP,
        "I2": N * MAP,
        "O": N * MAP,
    }
    assert at(table, "sum", phase="backward_input").empty


def test_a_boolean_sum_is_as_wide_as_its_terms_need():
    """conv sums 16 x 9 = 144 terms: 8 bit; with the shortcut's one, 145: 8 bit."""
    method = "bold-bn"
    report = evaluate(network(), "ascend", method, accounting="full")
    assert report.edges["conv"].bits == 8
    assert report.edges["sum"].bits == 1  # it feeds a threshold
    assert report.edges["first"].bits == 1  # so does the first layer


def test_a_copy_that_products_read_of_a_wider_tensor_is_written_once_and_compared():
    """A sum of 8 bit (145 terms) that two convolutions read as its sign: one copy of 1 bit.

    A comparison is an addition of 8 bit, as is that of the sum itself: 2 x 8 - 1 operations each.
    """
    conv = {"kind": "conv", "channels": 16, "kernel": 3, "padding": 1}
    forked = network(layers=[
        *BLOCK["layers"][:3],
        {"name": "sum", "kind": "add", "inputs": ["conv", "act"]},
        conv | {"name": "one", "inputs": ["sum"]},
        conv | {"name": "other", "inputs": ["sum"]},
        {"name": "both", "kind": "add", "inputs": ["one", "other"]},
        {"name": "last_act", "kind": "activation"},
        {"name": "fc", "kind": "linear", "features": 10},
    ])  # fmt: skip
    for mode in ("training", "inference"):
        table = rows("bold", forked, mode)
        for level in ("L3", "L2", "L1", "L0-C"):
            written = at(table, "sum", level, phase="forward").loc["1-bit copy"]
            assert (written.accesses, written.bits) == (N * MAP, N * MAP)
        done = table[(table.layer == "sum") & (table["pass"] == "forward")].operations.sum()
        assert done == 2 * N * MAP * (2 * 8 - 1)
        for layer in ("one", "other"):
            read = at(table, layer, phase="forward").loc["I"]
            assert read.bits == read.accesses
        assert table.tensor.str.contains("copy").sum() == 4  # thresholds make no copy


def test_a_copy_of_several_bits_is_scaled():
    """LUQ reads 4 bit of a ReLU's 32. The image's copies belong to the loading of data."""
    table = rows("luq")
    written = at(table, "act", phase="forward").loc["4-bit copy"]
    assert (written.accesses, written.bits) == (N * MAP, 4 * N * MAP)
    macs = table[(table.layer == "act") & (table.tensor == "mac") & (table["pass"] == "forward")]
    assert macs.operations.tolist() == [N * MAP]
    assert set(rows("fp16").tensor[rows("fp16").tensor.str.contains("copy")]) == set()


def test_a_sum_of_full_precision_products_is_a_full_precision_word():
    """The first layer is not Boolean: 27 products of reals are no sum of 27 signs."""
    table = rows("bold")
    for layer, bits in (("act", 32), ("last_act", 8)):  # the other: 144 signs and the shortcut's
        kept = at(table, layer).loc["kept sum"]
        assert kept.bits.tolist() == [N * MAP * bits] * 2  # written, and read on the way back


def test_switches_take_their_rows_away_and_nothing_else():
    whole = rows("bold")
    without = rows("bold", boolean_update=False)
    assert not ((without.component == "update") & (without.layer == "conv")).any()
    assert whole[whole.component != "update"].equals(
        without[without.component != "update"].reset_index(drop=True)
    ) or (
        whole[whole.component != "update"].energy.sum()
        == pytest.approx(without[without.component != "update"].energy.sum(), rel=1e-12)
    )
    unsaved = rows("bold", stored_activations=False)
    assert not unsaved.tensor.str.contains("saved|kept").any()
    assert whole.tensor.str.contains("kept").any()


def test_everything_is_counted_once_and_every_tiling_is_proved():
    report = evaluate("vgg-small", "v100", "bold-bn", accounting="full")
    assert report.energy == pytest.approx(row_table(report).energy.sum(), rel=1e-12)
    assert all(tiling.certificate.proved for _, tiling in report.tilings)
    assert (row_table(report).accesses >= 0).all() and (row_table(report).energy >= 0).all()


def test_full_counts_the_update_that_paper_leaves_out():
    """The spec: counting the optimizer moves BOLD from 2.5 to about 17 percent."""
    percent = {}
    for accounting in ("paper", "full"):
        whole, bold = (
            evaluate("vgg-small", "ascend", method, accounting=accounting).energy
            for method in ("fp", "bold")
        )
        percent[accounting] = 100 * bold / whole
    assert percent["paper"] == pytest.approx(2.53, rel=0.02)
    assert percent["full"] == pytest.approx(17, rel=0.2)


def test_an_operator_without_a_model_is_listed_with_its_share_and_strict_refuses_it():
    layers = [*BLOCK["layers"], {"name": "odd", "kind": "uncounted", "operator": "FFT"}]
    found = network(layers=layers)
    left = evaluate(found, "ascend", "fp", accounting="full").not_counted
    elements = 10
    whole = 6 * MAP + 2 * 10
    assert left[0] == (
        "FFT, an operator without a model: 1 layer, no parameters, unknown multiply-accumulates, "
        f"{elements} output elements ({100 * elements / whole:.1f} % of all) an image"
    )
    with pytest.raises(ShapeError, match="layer odd is the operator 'FFT', which has no model"):
        refuse_unknown(found)


def test_a_teacher_adds_its_forward_pass_where_it_is_asked_for():
    alone = evaluate(network(), "ascend", "reactnet", accounting="full", batch=N)
    taught = evaluate(
        network(),
        "ascend",
        "reactnet",
        accounting=replaced_all(FULL, {"extras.teacher": True}),
        batch=N,
    )
    teacher = evaluate("resnet34", "ascend", "fp", accounting="full", batch=N, mode="inference")
    assert taught.energy == pytest.approx(alone.energy + teacher.energy, rel=1e-12)
    assert {row.layer.split(":")[0] for row in merged(taught)[len(merged(alone)) :]} == {"resnet34"}


def test_a_max_pool_keeps_the_index_of_the_largest_and_not_what_it_was():
    """Of 2 x 2 elements an index has 2 bit: 4 x 4 x 4 of them an image, written, then read."""
    pool = {"name": "pool", "kind": "max-pool", "kernel": 2}
    layers = [{"name": "conv", "kind": "conv", "channels": 4, "kernel": 3, "padding": 1}, pool]
    values = {"version": 1, "name": "net", "title": "t", "input": [3, 8, 8], "layers": layers}
    layers.append({"name": "last", "kind": "linear", "features": 2})
    pooled = validate(Network, values, "net")

    def index(mode="training", net=pooled):
        report = evaluate(net, "ascend", "fp", accounting=FULL, batch=N, mode=mode)
        kept = [e for e in report.ledger.entries if (e.layer, e.tensor) == ("pool", "index")]
        return {(e.pass_, e.direction, e.count) for e in kept if e.memory == "L3"}

    bits = 2 * N * 4 * 4 * 4
    assert index() == {("forward", "write", bits), ("backward_input", "read", bits)}
    assert index("inference") == set()
    unlearned = validate(Network, values | {"layers": layers[1:]}, "net")
    assert index(net=unlearned) == set()  # no signal comes back to the image
