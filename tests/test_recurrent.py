"""LSTM, GRU and RNN: every row of recurrent_lora.csv, by torch's own counter and autograd there.

Files say one layer; what it stands for are the layers that its rows are of.
"""

import csv
import re
from pathlib import Path

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.graph.network import NetworkFile
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.vary.paths import replaced
from tests.test_number_formats import FULL, of

ROWS = [
    row
    for row in csv.DictReader(
        (Path(__file__).parent / "data" / "today" / "recurrent_lora.csv").read_text().splitlines()
    )
    if row["item"] == "recurrent"
]


def network(kind, inputs, features, T, layers=1, wanted=False, **more):
    """Layers one after another; before them, where a signal is wanted, a norm that learns."""
    one = {"kind": kind, "features": features, **more}
    listed = [{"name": f"r{i}"} | one for i in range(layers)]
    first = [{"name": "norm", "kind": "layer-norm"}] if wanted else []
    values = {"version": 1, "name": "net", "title": "t", "input": [inputs, T, 1]}
    return validate(NetworkFile, values | {"layers": [*first, *listed]}, "net").network()


def of_row(row):
    said = dict(re.findall(r"(\w+)=(\d+)", row["case"]))
    kind, wanted = row["case"].split()[0].lower(), "wants" in row["case"]
    more = {"projection": int(said["proj"])} if "proj" in said else {}
    net = network(kind, int(said["in"]), int(said["hidden"]), int(said["steps"]),
                  int(said["layers"]), wanted, **more)  # fmt: skip
    return net, int(said["batch"])


def macs(report):
    return sum(e.elements for e in of(report, component="product", operation="mac"))


def test_all_rows_are_here():
    assert len(ROWS) == 21 and all(row["expected"] == row["independent_check"] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['case'][:34]}, {r['quantity']}")
def test_a_row_is_what_torch_has(row):
    net, batch = of_row(row)
    nodes = [node for node in net.nodes() if node.layer.name != "norm"]
    expected = int(row["expected"])
    if row["quantity"] == "parameters":
        assert sum(n.weights + n.other_parameters for n in nodes) == expected
    elif row["quantity"] == "forward MACs":
        assert batch * sum(node.macs for node in nodes) == expected
        run = evaluate(net, "ascend", "fp", accounting=FULL, batch=batch, mode="inference")
        assert macs(run) == expected
    else:
        assert macs(evaluate(net, "ascend", "fp", accounting=FULL, batch=batch)) == expected


def test_weights_of_what_goes_from_step_to_step_are_read_in_each():
    """C8: 4 x 128 x 256 MACs a step; those of the inputs are there once."""
    steps, run = 32, {"accounting": FULL, "mode": "inference"}
    found = evaluate(network("lstm", 128, 128, steps), "ascend", "fp", **run)
    outermost = found.hardware.levels[0].buffers[0].name
    (inputs,) = of(found, layer="r0.input", tensor="F", memory=outermost)
    (state,) = of(found, layer="r0", tensor="F", memory=outermost)
    assert (inputs.elements, state.elements) == (4 * 128 * 128, steps * 4 * 128 * 128)
    assert macs(found) == steps * 4 * 128 * 256
    one = evaluate(network("lstm", 128, 128, 1), "ascend", "fp", **run)
    assert [e.elements for e in of(one, layer="r0", tensor="F", memory=outermost)] == [65_536]


@pytest.mark.parametrize(
    ("kind", "adds", "specials", "forward", "back"),
    [("lstm", 11, 10, 3, 16), ("gru", 7, 6, 2, 11), ("rnn", 3, 2, 0, 2)],
)
def test_a_cell_by_hand(kind, adds, specials, forward, back):
    """A sigmoid is A and 2 S, a tanh 2 A and 2 S; sums and products as docs/model.md has them."""
    found = evaluate(network(kind, 8, 16, 5), "ascend", "fp", accounting=FULL, batch=3)
    each = 3 * 5 * 16

    def done(pass_, operation):
        own = of(found, layer="r0", component="elementwise", pass_=pass_, operation=operation)
        return sum(e.elements for e in own) / each

    assert (done("forward", "add"), done("forward", "special")) == (adds, specials)
    assert (done("forward", "mac"), done("backward_input", "mac")) == (forward, back)
    outermost = found.hardware.levels[0].buffers[0].name
    kept = of(found, layer="r0", role="kept sum", memory=outermost, direction="write")
    assert sum(e.elements for e in kept) / each == {"lstm": 5, "gru": 4, "rnn": 0}[kind]
    run = evaluate(network(kind, 8, 16, 5), "ascend", "fp", accounting=FULL, mode="inference")
    assert not of(run, role="kept sum")


def test_two_directions_biases_and_the_last_step():
    """Parameters of torch.nn.LSTM(8, 16, bidirectional=True): 2 (4 16 (8 + 16) + 2 4 16) = 3,328."""
    net = network("lstm", 8, 16, 5, directions=2)
    assert sum(n.weights + n.other_parameters for n in net.nodes()) == 3328
    assert net.nodes()[-1].output_shape == (32, 5, 1)
    keras = network("lstm", 8, 16, 5, biases=1, returns="last", steps=5)
    assert sum(n.other_parameters for n in keras.nodes()) == 4 * 16
    assert keras.nodes()[-1].output_shape == (16, 1, 1)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"directions": 3}, "directions 3: must be at most 2"),
        ({"returns": "last"}, "returns last: say how many steps there are"),
        ({"projection": 16}, "a projection is of an lstm, to fewer features"),
        ({"biases": 3}, "biases 3: must be at most 2"),
        ({"directions": True}, "directions True: must be a whole number"),
        ({"biases": True}, "biases True: must be a whole number"),
        ({"biases": 1.0}, "biases 1.0: must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused(more, said):
    with pytest.raises(SpecError) as refused:
        network("lstm", 8, 16, 5, **more)
    assert said in str(refused.value)


def test_one_step_without_its_recurrent_product_is_a_linear_layer():
    found = evaluate(network("rnn", 8, 16, 1), "ascend", "fp", accounting=FULL)
    linear = {
        "version": 1,
        "name": "net",
        "title": "t",
        "input": [8, 1, 1],
        "layers": [
            {"name": "r0.input", "kind": "linear", "features": 16, "over": "channels", "bias": True}
        ],
    }
    alone = validate(NetworkFile, linear, "net").network()
    whole = evaluate(alone, "ascend", "fp", accounting=FULL)
    mine = found.energies("layer", "pass")
    assert mine["r0.input", "forward"] == whole.energies("layer", "pass")["r0.input", "forward"]
    assert not of(found, layer="r0", pass_="backward_input", component="product")


def test_weights_that_stay_on_the_chip_are_not_read_in_each_step():
    """Under `chip` they lie where all of them fit: 32 steps read them there, none outside."""
    chip = load(Accounting, "chip")
    steps, weights = 32, 4 * 128 * 128
    net = network("lstm", 128, 128, steps)
    found = evaluate(net, "ascend", "fp", accounting=chip, mode="inference")
    read = {e.memory: e.elements for e in of(found, layer="r0", tensor="F", direction="read")}
    assert "L3" not in read and read["L1"] == steps * weights
    moved = sum(e.count * found.prices.value(e.key) for e in found.ledger.entries if e.memory)
    assert found.residency.energy == pytest.approx(moved, rel=1e-12)
    assert found.residency.gap is not None and 0 <= found.residency.gap < 0.2


def test_a_stay_that_begins_in_a_first_step_is_paid_once():
    """Weights of 512 features leave the chip for the update: brought in once, read in 20 steps."""
    chip = replaced(load(Accounting, "chip"), "extras.update_order", "after-iteration")
    found = evaluate(network("lstm", 512, 512, 20), "ascend", "fp", accounting=chip)
    assert found.residency.lower_bound <= found.residency.energy
    moved = sum(e.count * found.prices.value(e.key) for e in found.ledger.entries if e.memory)
    assert found.residency.energy == pytest.approx(moved, rel=1e-12)
