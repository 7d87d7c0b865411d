"""Gradients of several iterations summed for one update; biases alone; the last layer; LoRA.

Right values are made by hand from the rows of one iteration, or with autograd.
"""

import csv
from pathlib import Path

import pytest

from hwmodel import HwmodelError, compare, evaluate
from hwmodel.graph.network import Network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.vary.paths import replaced
from hwmodel.vary.sweep.file import SweepFile
from hwmodel.vary.sweep.part import columns, run_part
from hwmodel.vary.sweep.plan import plan
from tests.specs import GREEDY, written
from tests.test_number_formats import FULL, of

ROWS = [
    row
    for row in csv.DictReader(
        (Path(__file__).parent / "data" / "today" / "recurrent_lora.csv").read_text().splitlines()
    )
    if row["item"] == "lora"
]
NET = {
    "version": 1, "name": "net", "title": "t", "input": [8, 6, 6],
    "layers": [
        {"name": "c1", "kind": "conv", "channels": 16, "kernel": 3, "padding": 1, "bias": True},
        {"name": "act", "kind": "activation"},
        {"name": "c2", "kind": "conv", "channels": 16, "kernel": 3, "bias": True},
        {"name": "fc", "kind": "linear", "features": 10, "bias": True},
    ],
}  # fmt: skip


def net(**learned):
    layers = [
        layer | ({"learned": learned[layer["name"]]} if layer["name"] in learned else {})
        for layer in NET["layers"]
    ]
    return validate(Network, NET | {"layers": layers}, "net")


def run(network, accounting=FULL, **rest):
    return evaluate(network, "ascend", "fp", accounting=accounting, batch=2, **rest)


def by_pass(report):
    return {pass_: energy for (pass_,), energy in report.energies("pass").items()}


def accumulated(k):
    return replaced(FULL, "extras.accumulate", k)


def test_k_iterations_and_one_update_by_hand():
    """K times all passes; between them each dF is read and added K - 1 times more."""
    one, four = run(net()), run(net(), accumulated(4))
    first, all_four = by_pass(one), by_pass(four)
    assert all_four["update"] == first["update"]
    for pass_ in ("forward", "backward_input"):
        assert all_four[pass_] == pytest.approx(4 * first[pass_], rel=1e-12)
    words = {"c1": 16 * 8 * 9, "c2": 16 * 16 * 9, "fc": 10 * 16 * 16}
    outermost = four.hardware.levels[0].buffers[0].name
    for layer, weights in words.items():
        (read,) = of(four, layer=layer, role="summed", memory=outermost)
        (added,) = of(four, layer=layer, role="summed", direction="operate")
        assert (read.elements, read.bits, str(read.direction)) == (3 * weights, 32, "read")
        assert (added.operation, added.elements) == ("add", 3 * weights)
    summed = sum(e.count * four.prices.value(e.key) for e in of(four, role="summed"))
    again = 4 * first["backward_weight"] + summed
    assert all_four["backward_weight"] == pytest.approx(again, rel=1e-12)


@pytest.mark.parametrize("learned", [True, False])
def test_tables_of_embeddings_are_added_up_as_weights_are(learned):
    """20 x 4 words of dF, three times more; of a frozen table none."""
    table = {"name": "words", "kind": "embedding", "vocabulary": 20, "features": 4}
    head = {"name": "head", "kind": "linear", "features": 20, "over": "channels"}
    text = {"version": 1, "name": "lm", "title": "t", "input": [1, 6, 1]}
    layers = [table | {"learned": learned}, head]
    found = run(validate(Network, text | {"layers": layers}, "lm"), accumulated(4))
    outermost = found.hardware.levels[0].buffers[0].name
    read = of(found, layer="words", role="summed", memory=outermost)
    added = of(found, layer="words", role="summed", direction="operate")
    wanted = [3 * 20 * 4] if learned else []
    assert [one.elements for one in read] == [one.elements for one in added] == wanted


def test_once_is_none_and_inference_has_no_update():
    assert run(net(), accumulated(1)).ledger == run(net()).ledger
    there = {"mode": "inference"}
    assert run(net(), accumulated(4), **there).ledger == run(net(), **there).ledger


def test_sums_are_counted_where_their_update_is():
    """Under `paper` no update is counted: K times all passes, and no sums of gradients."""
    paper = load(Accounting, "paper")
    four = replaced(paper, "extras.accumulate", 4)
    one, several = run(net(), paper), run(net(), four)
    assert several.energy == pytest.approx(4 * one.energy, rel=1e-12)
    assert not of(several, role="summed")


def test_compare_says_the_batch_and_the_iterations():
    (one,) = compare(net(), "ascend", "fp", accounting=accumulated(4), batch=2)
    assert (one.batch, one.accumulate, one.images) == (2, 4, 8)
    assert one.energy == run(net(), accumulated(4)).energy


def test_gradients_live_through_all_iterations():
    """Forward of the second iteration: its step has the maps of one, and all gradients."""
    early = replaced(FULL, "extras.update_order", "as-gradients-finish")
    one, two = run(net(), early), run(net(), replaced(early, "extras.accumulate", 2))
    ends = {t.name: (t.first, t.last) for t in two.memory.tensors}
    assert ends["dF:fc"] == (0, len(two.memory.steps) - 1)
    before = {t.name: (t.first, t.last) for t in one.memory.tensors}
    assert before["dF:fc"][0] > 0
    with pytest.raises(HwmodelError, match="accumulate has to be 1"):
        replaced(replaced(FULL, "extras.accumulate", 2), "extras.update_order", "fused")


def test_the_option_of_commands_is_stated_by_their_tables(hwmodel):
    rest = "vgg-small", "--hardware", "ascend", "--method", "fp", "--accounting", "paper"
    code, _, _ = hwmodel("report", *rest, "--accumulate", "3", "--csv", "t.csv")
    assert code == 0 and "--accumulate 3" in Path("t.csv").read_text()
    assert hwmodel("verify", "t.csv")[0] == 0
    code, out, err = hwmodel("report", *rest, "--accumulate", "0")
    assert (code, out) == (2, "") and "accumulate 0: must be at least 1" in err
    code, out, err = hwmodel("report", *rest, "--accumulate", "2", "--mode", "inference")
    assert (code, out, err) == (2, "", "hwmodel: --accumulate 2: inference has no update\n")


def test_biases_alone():
    """TinyTL (Cai et al., NeurIPS 2020): no dF and no kept inputs; dI down to the first bias.

    By hand: forward of all, dI of fc and c2 (c1 learns its biases, nothing before it does).
    """
    tiny = run(net(c1="biases", c2="biases", fc="biases"))
    macs = {"c1": 2 * 16 * 8 * 9 * 36, "c2": 2 * 16 * 16 * 9 * 16, "fc": 2 * 10 * 256}
    done = {
        (e.layer, str(e.pass_)): e.elements for e in of(tiny, component="product", operation="mac")
    }
    assert done == {
        **{(layer, "forward"): number for layer, number in macs.items()},
        ("fc", "backward_input"): macs["fc"],
        ("c2", "backward_input"): macs["c2"],
    }
    stepped = {e.layer: e.elements for e in of(tiny, pass_="update", operation="mac")}
    assert stepped == {"c1": 6 * 16, "c2": 6 * 16, "fc": 6 * 10}
    assert not of(tiny, tensor="dF") and not of(tiny, pass_="update", tensor="F")
    kept = {t.name for t in tiny.memory.tensors}
    assert not any(name.startswith("dF:") for name in kept)


def test_the_last_layer_alone():
    """Forward of all and the dF of the last: nothing goes back."""
    last = run(net(c1=False, c2=False))
    phases = {(e.layer, str(e.pass_)) for e in of(last, component="product", operation="mac")}
    assert phases == {
        ("c1", "forward"),
        ("c2", "forward"),
        ("fc", "forward"),
        ("fc", "backward_weight"),
    }
    assert {e.layer for e in of(last, pass_="update")} == {"fc"}


def block(before):
    """A Llama-3.1-8B block with adapters of rank 16 on q and v, everything else frozen."""

    def linear(name, features, source, learned=False):
        return {"name": name, "kind": "linear", "features": features, "over": "channels",
                "inputs": [source], "learned": learned}  # fmt: skip

    start = {"name": "start", "kind": "source", "channels": 4096, "rows": 128, "columns": 1}
    layers = [
        *([{"name": "first", "kind": "layer-norm", "inputs": ["input"]}] if before else []),
        {"name": "norm", "kind": "rms-norm", "learned": False,
         "inputs": ["first" if before else "input"]},
        *(linear(name, n, "norm") for name, n in (("q0", 4096), ("k", 1024), ("v0", 1024))),
        linear("qa", 16, "norm", True), linear("qb", 4096, "qa", True),
        linear("va", 16, "norm", True), linear("vb", 1024, "va", True),
        {"name": "q", "kind": "add", "inputs": ["q0", "qb"]},
        {"name": "v", "kind": "add", "inputs": ["v0", "vb"]},
        {"name": "qr", "kind": "rotary", "heads": 32, "inputs": ["q"]},
        {"name": "kr", "kind": "rotary", "heads": 8, "inputs": ["k"]},
        {"name": "scores", "kind": "attention-scores", "heads": 32, "kv_heads": 8,
         "inputs": ["qr", "kr"]},
        {"name": "softmax", "kind": "activation", "function": "softmax"},
        {"name": "context", "kind": "attention-context", "heads": 32, "kv_heads": 8,
         "inputs": ["softmax", "v"]},
        linear("o", 4096, "context"),
        {"name": "sum", "kind": "add", "inputs": ["o", "first" if before else "input"]},
        {"name": "norm2", "kind": "rms-norm", "learned": False},
        linear("gate", 14336, "norm2"), linear("up", 14336, "norm2"),
        {"name": "act", "kind": "activation", "function": "swish", "inputs": ["gate"]},
        {"name": "mul", "kind": "multiply", "inputs": ["act", "up"]},
        linear("down", 4096, "mul"),
        {"name": "out", "kind": "add", "inputs": ["down", "sum"]},
    ]  # fmt: skip
    del start
    values = {"version": 1, "name": "block", "title": "t", "input": [4096, 128, 1]}
    return validate(Network, values | {"layers": layers}, "block")


def test_every_row_of_lora_is_here():
    quantities = {row["quantity"] for row in ROWS}
    assert (
        quantities == {"forward MACs", "training MACs", "parameters that learn"} and len(ROWS) == 4
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['case'][-24:]}, {r['quantity']}")
def test_lora_on_a_llama_block_as_autograd_has_it(row):
    """K's projection and its product on the way back run only where something before learns."""
    network = block("something before" in row["case"])
    nodes = network.nodes()
    assert row["expected"] == row["independent_check"]
    if row["quantity"] == "parameters that learn":
        found = sum(node.learned_weights for node in nodes)
    elif row["quantity"] == "forward MACs":
        found = sum(node.macs for node in nodes)
    else:
        phases = ("forward", "backward_input", "backward_weight")
        found = sum(node.macs * node.wanted(phase) for node in nodes for phase in phases)
    assert found == int(row["expected"])


def test_a_sweep_s_energy_of_an_image_is_of_all_images_of_an_update(tmp_path):
    """K iterations of N images are for one update; the sweep divided by N."""
    swept = plan(
        SweepFile(
            version=1, name="s", title="t", network="mlp-784-512-512-10", hardware="ascend",
            method="fp", batch=2, accounting=str(written(tmp_path, GREEDY)),
            axes=[{"accounting.extras.accumulate": [1, 4]}],
        )
    )  # fmt: skip
    rows = csv.reader(run_part(swept, swept.points()).splitlines())
    for row in (dict(zip(columns(swept), cells, strict=True)) for cells in rows):
        images = 2 * int(row["accounting.extras.accumulate"])
        assert float(row["energy_per_image"]) == pytest.approx(float(row["energy"]) / images)
