"""Spiking networks: every row of spiking.csv, and what zeros, time and training do, by hand."""

import csv
from pathlib import Path

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.specs.files import load, validate
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import replaced, replaced_all
from tests.test_number_formats import FULL, of

ROWS = list(
    csv.DictReader(
        (Path(__file__).parent / "data" / "today" / "spiking.csv").read_text().splitlines()
    )
)
RUN = {"accounting": FULL, "mode": "inference"}


def network(steps, *layers, shape=(8, 4, 4)):
    values = {"version": 1, "name": "net", "title": "t", "input": list(shape), "steps": steps}
    return validate(Network, values | {"layers": list(layers)}, "net")


def neuron(name="spike", **fields):
    return {"name": name, "kind": "spiking", **fields}


def conv(name, channels=8):
    return {"name": name, "kind": "conv", "channels": channels, "kernel": 3, "padding": 1}


def gating(how):
    return replaced(load(Hardware, "horowitz45"), "zeros", how)


def additions(report, layer):
    own = of(report, layer=layer, component="product", direction="operate")
    assert {e.operation for e in own} <= {"add", "int-add"}
    return sum(e.elements for e in own)


def test_all_rows_are_here():
    assert len(ROWS) == 6


def test_vgg_small_in_four_steps():
    """Row 1: every layer but the first is fed by spikes; T x rate x MACs, whole additions."""
    row = ROWS[0]
    plain = load_network("vgg-small")
    first = next(node.layer.name for node in plain.nodes() if node.macs)
    layers = [
        layer if layer.kind != "activation" else neuron(layer.name, rate=0.15)
        for layer in plain.layers
        if layer.kind != "batch-norm"
    ]
    values = {"version": 1, "name": "net", "title": "t", "input": plain.input, "steps": 4}
    net = validate(Network, values | {"layers": [
        one if isinstance(one, dict) else one.model_dump(exclude_unset=True) for one in layers
    ]}, "net")  # fmt: skip
    macs = {node.layer.name: node.macs for node in net.nodes() if node.macs}
    assert str(sum(macs.values())) == row["case"].rpartition("=")[2]
    found = evaluate(net, gating("operations"), "fp", **RUN)
    fed = {name: number for name, number in macs.items() if name != first}
    for name, number in fed.items():
        assert additions(found, name) == round(4 * 0.15 * number)
    # The row has all layers: the first one, on an image, multiplies.
    (product,) = of(found, layer=first, component="product", direction="operate")
    assert (product.operation, product.elements) == ("mac", 4 * macs[first])
    every = sum(additions(found, name) for name in fed) + 4 * 0.15 * macs[first]
    assert every == pytest.approx(float(row["expected"]), abs=len(fed))


def test_one_step_at_rate_1_is_the_network_of_additions():
    """Row 2: 1,000 MACs, T = 1, nothing gated away."""
    net = network(1, neuron(), {"name": "fc", "kind": "linear", "features": 10}, shape=(100, 1, 1))
    for chip in ("horowitz45", gating("operations"), gating("operations-and-level-0")):
        assert additions(evaluate(net, chip, "fp", **RUN), "fc") == float(ROWS[1]["expected"])


def test_a_neuron_by_hand():
    """Rows 3 to 5: LIF, 1,000 neurons, T = 4; membranes move where time is outermost."""
    assert ROWS[2]["expected"] == "(4000, 8000)"
    net = network(4, neuron(reset="subtract", membrane_bits=16), shape=(1000, 1, 1))
    inner = evaluate(net, "horowitz45", "fp", **RUN)
    done = {e.operation: e.elements for e in of(inner, layer="spike", direction="operate")}
    assert done == {"mac": 4000, "add": 8000}
    outermost = inner.hardware.levels[0].buffers[0].name
    outer = evaluate(
        net,
        "horowitz45",
        "fp",
        **RUN | {"accounting": replaced(FULL, "extras.time_steps", "outer")},
    )
    for report, row in ((outer, ROWS[3]), (inner, ROWS[4])):
        moved = of(report, layer="spike", role="membrane", memory=outermost)
        assert sum(e.count for e in moved) == int(row["expected"])
    hard = network(4, neuron(neuron="if"), shape=(1000, 1, 1))
    found = evaluate(hard, "horowitz45", "fp", **RUN)
    done = {e.operation: e.elements for e in of(found, layer="spike", direction="operate")}
    assert done == {"add": 8000}


def test_sew_resnet_as_published():
    """Row 6: 0.50 G multiply-adds at 4.6 pJ wait for 2.75 G additions at 0.9: one of the two.

    The sum 0.50 x 0.9 + 2.75 x 4.6 = 13.1 mJ is the row's; its operations are additions, then MACs.
    """
    chip = load(Hardware, "horowitz45")
    add, mac = (chip.price(kind, 32).energy_per_operation for kind in ("add", "mac"))
    assert (0.50e9 * add + 2.75e9 * mac) * 1e-9 == pytest.approx(float(ROWS[5]["expected"]))


def test_zeros_save_what_the_chip_gates():
    """T = 3 at 0.25: additions, or the reads of weights at level 0, too; traffic is dense."""
    net = network(3, conv("a"), neuron(rate=0.25), {"name": "pool", "kind": "max-pool", "kernel": 2},
                  conv("b"))  # fmt: skip
    macs = 3 * 8 * 8 * 9 * 4
    none, some, both = (
        evaluate(net, gating(how), "fp", **RUN)
        for how in ("none", "operations", "operations-and-level-0")
    )
    assert [additions(x, "b") for x in (none, some, both)] == [macs, macs // 4, macs // 4]
    inner = none.hardware.levels[-1].buffers[0].name

    def read(report):
        return sum(e.elements for e in of(report, layer="b", tensor="F", memory=inner,
                                          direction="read"))  # fmt: skip

    assert read(none) == read(some) == 4 * read(both)
    outer = [e for e in none.ledger.entries if e.memory not in ("", inner)]
    assert outer == [e for e in both.ledger.entries if e.memory not in ("", inner)]
    # Spikes have 1 bit, through the pool, whatever the method.
    assert [none.edges[name].bits for name in ("a", "spike", "pool", "b")] == [32, 1, 1, 32]


def test_time_innermost_reads_weights_once_and_outermost_in_each_step():
    net = network(5, conv("a"), neuron(), conv("b"))
    outer = replaced(FULL, "extras.time_steps", "outer")
    once, each = (
        evaluate(net, "horowitz45", "fp", accounting=accounting, mode="inference")
        for accounting in (FULL, outer)
    )
    top = once.hardware.levels[0].buffers[0].name
    (a,), (b,) = (of(r, layer="b", tensor="F", memory=top) for r in (once, each))
    assert (a.elements, b.elements) == (8 * 8 * 9, 5 * 8 * 8 * 9)
    assert additions(once, "b") == additions(each, "b") == 5 * 8 * 8 * 9 * 16


def test_training_through_time():
    """Products back T times with multiply-adds; membranes of all steps kept; surrogate 2 M."""
    net = network(4, conv("a"), neuron(membrane_bits=16), conv("b"))
    found = evaluate(net, "horowitz45", "fp", accounting=FULL, batch=2)
    neurons = 2 * 4 * 8 * 16
    top = found.hardware.levels[0].buffers[0].name
    kept = of(found, layer="spike", role="kept sum", memory=top)
    assert sorted((str(e.direction), e.count) for e in kept) == [
        ("read", 16 * neurons), ("write", 16 * neurons),
    ]  # fmt: skip
    (surrogate,) = of(found, layer="spike", pass_="backward_input", operation="mac")
    assert surrogate.elements == 2 * neurons
    back = of(found, layer="b", component="product", operation="mac")
    assert {e.elements for e in back} == {2 * 4 * 8 * 8 * 9 * 16} and len(back) == 2


def test_what_cannot_be_is_refused():
    with pytest.raises(SpecError, match=r"rate 1.5: must be at most 1"):
        network(2, neuron(rate=1.5))
    with pytest.raises(SpecError, match="steps 0: must be at least 1"):
        network(0, neuron())
    chip = replaced_all(load(Hardware, "ascend"), {"zeros": "operations"})  # of maps, it may be
    net = network(2, neuron(rate=0.5), conv("a"))
    with pytest.raises(SpecError, match="needs a price of an add or int-add, which the spikes"):
        evaluate(net, chip, "fp", **RUN)
