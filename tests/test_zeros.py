"""Zeros of maps: stated by a network, saved where a chip codes or gates; everything by hand."""

from fractions import Fraction

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.model.residency.run import Streamed
from hwmodel.model.workload import At, Task
from hwmodel.specs.coding import RunLength
from hwmodel.specs.files import load, validate
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import memories
from hwmodel.vary.paths import Inputs, changed, replaced, replaced_all
from hwmodel.views.explain.explanation import explanation
from hwmodel.work.tensor import Direction, Factor, Pass, Tensor
from hwmodel.work.work import Move
from tests.test_number_formats import FULL, of

LAYERS = [
    {"name": "a", "kind": "conv", "channels": 8, "kernel": 3, "padding": 1},
    {"name": "act", "kind": "activation"},
    {"name": "pool", "kind": "max-pool", "kernel": 2},
    {"name": "b", "kind": "conv", "channels": 4, "kernel": 3, "padding": 1},
    {"name": "b.act", "kind": "activation"},
    {"name": "flat", "kind": "reshape", "shape": [64, 1, 1]},
    {"name": "fc", "kind": "linear", "features": 10},
]
# A run of at most one zero and a word of 16 bit: 18 bit for 1 + z words.
CODE = RunLength(word_bits=16, run_bits=1, packed_bits=18, source="made-up")


def net(zeros=None, **more):
    values = {"version": 1, "name": "net", "title": "t", "input": [8, 8, 8], "layers": LAYERS}
    return validate(Network, values | ({} if zeros is None else {"zeros": zeros}) | more, "net")


def chip(how="none", code=None):
    found = replaced(load(Hardware, "horowitz45"), "zeros", how)
    top, *rest = found.levels
    return found.model_copy(update={"levels": (top.model_copy(update={"coding": code}), *rest)})


def run(network, hardware, method="fp16", mode="inference", **more):
    return evaluate(network, hardware, method, accounting=FULL, mode=mode, **more)


def outermost(report, **cells):
    top = report.hardware.levels[0].name
    return of(report, memory=top, **cells)


def test_a_share_of_zeros_is_that_of_what_is_read_next():
    """Stated at act and b.act; a pool gives the largest, of which nobody knows how many are 0."""
    nodes = {n.layer.name: n for n in net({"input": 0.25, "act": 0.5, "b.act": 0.75}).nodes()}
    assert {name: n.zeros for name, n in nodes.items()} == {
        "a": 0, "act": 0.5, "pool": 0, "b": 0, "b.act": 0.75, "flat": 0.75, "fc": 0,
    }  # fmt: skip
    assert nodes["a"].input_zeros == (0.25,)
    every = {n.layer.name: n.zeros for n in net(0.5).nodes()}
    assert [name for name, zeros in every.items() if zeros] == ["act", "b.act", "flat"]


def test_joined_maps_have_the_mean_of_their_zeros():
    """8 channels at 0.5 and 24 at 0.1: (8 x 0.5 + 24 x 0.1) / 32 = 0.2."""
    layers = [
        {"name": "x", "kind": "conv", "channels": 8, "kernel": 1},
        {"name": "y", "kind": "conv", "channels": 24, "kernel": 1, "inputs": ["input"]},
        {"name": "both", "kind": "concat", "inputs": ["x", "y"]},
    ]
    joined = net({"x": 0.5, "y": 0.1}, layers=layers).nodes()[-1]
    assert joined.zeros == pytest.approx(0.2)


def test_words_that_cross_a_memory_that_codes_by_hand():
    """Words of act: 18 / 1.5 = 12 bit instead of 16, written once and read once by the pool."""
    report = run(net({"act": 0.5}), chip(code=CODE))
    plain = run(net({"act": 0.5}), chip())
    words = 8 * 8 * 8
    for name, direction in (("act", "write"), ("pool", "read")):
        (coded,) = outermost(report, layer=name, direction=direction)
        (usual,) = outermost(plain, layer=name, direction=direction)
        assert (coded.elements, coded.bits, coded.count) == (words, 12, 12 * words)
        assert (usual.elements, usual.bits, usual.count) == (words, 16, 16 * words)
    # Nothing else moves: not weights, not what b reads of the pool, not the memories below.
    moved = {
        (e.layer, e.direction) for e, old in zip(
            report.ledger.entries, plain.ledger.entries, strict=True) if e != old
    }  # fmt: skip
    assert moved == {("act", "write"), ("pool", "read")}
    price = plain.hardware.levels[0].read_energy_per_bit
    assert plain.energy - report.energy == pytest.approx(2 * 4 * words * price)


def test_bits_of_all_words_are_rounded_up():
    """A quarter of them 0: 18 / (5/4) = 14.4 bit a word; 64 words of b.act are 921.6."""
    report = run(net({"b.act": 0.25}), chip(code=CODE))
    (written,) = outermost(report, layer="b.act", direction="write")
    assert written.bits == Fraction(72, 5) and written.count == 922


def test_products_read_coded_words_of_a_map_and_plain_ones_of_weights():
    report = run(net({"pool": 0.5, "flat": 0.5}), chip(code=CODE))
    assert {e.bits for e in outermost(report, layer="b", tensor="I")} == {12}
    assert {e.bits for e in outermost(report, layer="b", tensor="F")} == {16}
    assert {e.bits for e in outermost(report, layer="fc", tensor="I")} == {12}


@pytest.mark.parametrize(("method", "bits"), [("fp", {32}), ("int8", {8}), ("fp16", {12})])
def test_words_of_another_width_are_not_coded(method, bits):
    """A code of 16-bit words is none of others; it is the same for every method that has them."""
    report = run(net({"pool": 0.5}), chip(code=CODE), method)
    assert {e.bits for e in outermost(report, layer="b", tensor="I", direction="read")} == bits


def test_a_code_that_is_longer_than_words_is_not_used():
    """At 0.05: 18 / 1.05 = 17.1 bit."""
    report = run(net({"act": 0.05}), chip(code=CODE))
    assert {e.bits for e in outermost(report, layer="act", direction="write")} == {16}


@pytest.mark.parametrize(("how", "weights"), [("operations", 1), ("operations-and-level-0", 0.25)])
def test_products_by_zero_that_a_chip_gates(how, weights):
    """Three quarters of the map are 0: a quarter of 4 x 8 x 9 x 16 MACs, and of weights' reads."""
    gated, plain = run(net({"pool": 0.75}), chip(how)), run(net({"pool": 0.75}), chip())
    macs = 4 * 8 * 9 * 16
    for report, left in ((plain, 1), (gated, 0.25)):
        (done,) = of(report, layer="b", component="product", direction="operate")
        assert done.elements == left * macs
    inner = plain.hardware.levels[-1].name
    read = [
        sum(e.elements for e in of(r, layer="b", tensor="F", memory=inner, direction="read"))
        for r in (plain, gated)
    ]
    assert read[1] == weights * read[0]
    assert [e for e in gated.ledger.entries if e.layer != "b"] == [
        e for e in plain.ledger.entries if e.layer != "b"
    ]


def test_operations_are_rounded_to_the_nearest():
    """0.3 of 4,608 MACs are 3,225.6 that are left."""
    report = run(net({"pool": 0.3}), chip("operations"))
    (done,) = of(report, layer="b", component="product", direction="operate")
    assert done.elements == 3226


def test_a_training_iteration_gates_where_the_map_is_multiplied():
    """Forward and for the weights; for the input the signal is, of which nothing is stated."""
    report = run(net({"pool": 0.75}), chip("operations"), mode="training")
    macs = 4 * 8 * 9 * 16
    done = {
        str(e.pass_): e.elements
        for e in of(report, layer="b", component="product", direction="operate")
    }
    assert done == {
        "forward": macs // 4, "backward_input": macs, "backward_weight": macs // 4,
    }  # fmt: skip


def test_signs_are_never_zero():
    """Of a Boolean method the maps between are signs: whatever is stated, nothing is saved."""
    straight = [one for one in LAYERS if one["name"] != "pool"]
    straight[-2] = straight[-2] | {"shape": [256, 1, 1]}
    for layers, zeros in ((LAYERS, {"act": 0.9, "pool": 0.9}), (straight, {"act": 0.9})):
        for how in ("operations", "operations-and-level-0"):
            one, other = (
                run(net(shares, layers=layers), chip(how, CODE), "bold", "training")
                for shares in (zeros, {})
            )
            assert one.energy == other.energy


def test_nothing_is_saved_without_a_share_or_a_chip_that_saves():
    stated, silent = net({"act": 0.9}), net()
    assert run(stated, chip()).energy == run(silent, chip()).energy
    assert run(silent, chip("operations-and-level-0", CODE)).energy == run(silent, chip()).energy


def test_the_share_is_told_where_it_counts():
    network = net({"pool": 0.75})
    told = explanation(run(network, chip("operations", CODE)), "b")
    assert "words of 16 bit of which 0.75 are 0, as DRAM codes them: made-up" in told
    assert "share of I that is not 0; on a chip with zeros: operations" in told
    nothing = run(net(), chip("operations", CODE)).not_counted
    assert any("zeros of maps" in line for line in nothing)
    some = run(network, chip("operations", CODE)).not_counted
    assert not any(line.startswith("zeros of maps:") for line in some)


def test_tensors_that_stay_cost_what_the_ledger_says():
    """Under residency, too, what is chosen is priced as it is entered; no bound is claimed."""
    stays = replaced_all(FULL, {
        "counting.search": "optimal", "counting.stationary": "filter",
        "counting.residency": "tensors",
    })  # fmt: skip
    shares = {"input": 0.5, "act": 0.5, "b.act": 0.5}
    report = evaluate(net(shares), chip(code=CODE), "fp16", accounting=stays, mode="training")
    found = report.residency
    assert found is not None and found.lower_bound is None
    memories = sum(e.count * report.prices.value(e.key) for e in report.ledger.entries if e.memory)
    assert found.energy == pytest.approx(memories, rel=1e-9)
    assert any(e.bits == 12 for e in report.ledger.entries if e.component == "product")


def test_a_share_is_a_path_that_sweeps_can_move():
    inputs = Inputs(net({"act": 0.5}), chip(), load_method(), FULL)
    assert changed(inputs, {"network.zeros.act": 0.25}).network.zeros == {"act": 0.25}
    assert changed(inputs, {"network.zeros": 0.25}).network.zeros == 0.25


def load_method():
    from hwmodel.specs.method import Method

    return load(Method, "fp16")


@pytest.mark.parametrize(
    ("zeros", "said"),
    [
        ({"act": 1.5}, "zeros.act 1.5: must be at most 1"),
        ({"act": -0.1}, "zeros.act -0.1: must be at least 0"),
        (-0.1, "zeros -0.1: must be at least 0"),
        ({"atc": 0.5}, "no layer is called 'atc'; did you mean 'act'?"),
        ("half", "zeros"),
        ({"act": "half"}, "must be a number"),
    ],
)
def test_what_cannot_be_is_refused(zeros, said):
    with pytest.raises(SpecError) as refused:
        net(zeros)
    assert said in str(refused.value)


def test_a_file_names_the_line_of_a_share(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(
        "version: 1\nname: net\ntitle: t\ninput: [8, 8, 8]\nzeros:\n  input: 0.5\n"
        "  block.2.act: 0.5\nlayers:\n  - name: block\n    repeat: 2\n    layers:\n"
        "      - {name: conv, kind: conv, channels: 8, kernel: 1}\n"
        "      - {name: act, kind: activation}\n"
    )
    with pytest.raises(SpecError, match=r"net.yaml:7: .*no layer is called 'block.2.act'"):
        load_network(path)
    path.write_text(path.read_text().replace("block.2", "block.1"))
    read = load_network(path)
    assert [n.zeros for n in read.nodes()] == [0, 0, 0, 0.5]
    again = tmp_path / "again.yaml"
    read.save(again)
    assert load_network(again) == read


def test_spikes_have_a_rate():
    layers = [{"name": "spike", "kind": "spiking", "rate": 0.25}]
    with pytest.raises(SpecError, match="spike spikes: its rate says"):
        net({"spike": 0.5}, layers=layers)


def test_zeros_that_a_trace_measured():
    """Of conv-small: what conv2 reads is 0 to 60 %, whatever the network states."""
    from hwmodel.specs.trace import Trace
    from tests.traces import trace

    document = trace(method="binaryconnect", weights="binary").model_dump(mode="json")
    for epoch in document["epochs"]:
        epoch["layers"][1]["input_zeros"] = 0.6
    measured = Trace.model_validate(document)
    stated = replaced(load_network("conv-small"), "zeros", 0.2)
    report = run(stated, chip("operations"), "binaryconnect", "training", trace=measured)
    assert report.nodes[[n.layer.name for n in report.nodes].index("conv2")].input_zeros
    for layer, left in (("conv2", 0.4), ("conv3", 0.8)):
        node = next(n for n in report.nodes if n.layer.name == layer)
        (done,) = of(report, layer=layer, component="product", pass_="forward", direction="operate")
        assert done.elements == round(4 * left * node.macs)


def test_a_move_that_may_stay_is_priced_as_it_is_coded():
    """512 words of 12 bit in DRAM, of 16 in the memories below."""
    coder = chip(code=CODE)
    words = Tensor("I", (Factor("C", 512),), 16, nonzero=0.5)
    move = Move(Pass.FORWARD, Direction.READ, words)
    found = Streamed.of(Task("act", move, At(stored=(("a:act",), (), ()))), memories(coder), "both")
    prices = [level.buffers[0].read_energy_per_bit for level in memories(coder).levels]
    assert found.levels == pytest.approx(
        [512 * bits * price for bits, price in zip((12, 16, 16, 16), prices, strict=True)]
    )
    writes = [level.buffers[0].write_energy_per_bit for level in memories(coder).levels[1:]]
    brought = [0, *(512 * 16 * price for price in writes)]  # where it is read from, nothing
    assert found.writes == pytest.approx(brought)
