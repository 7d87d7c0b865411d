"""Layers frozen by patterns: the same as a file that states it, by hand, and what is refused."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hwmodel import HwmodelError, evaluate
from hwmodel.graph.freezing import frozen
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.vary.paths import replaced_all

DATA = Path(__file__).parent / "data"
TARGETS = YAML(typ="safe").load(DATA / "schedule_targets.yaml")["frozen"]
# The figures are of filters held at every boundary, and of the asking memory charged.
THEN = replaced_all(
    load(Accounting, "full"),
    {"counting.stationary": "filter", "counting.transfers": "upper"},
)


def lora():
    """The four adapters beside their base layers, all of which learn."""
    found = load_network(DATA / "turn2" / "lora4.yaml")
    layers = [layer.model_copy(update={"learned": True}) for layer in found.layers]
    return found.model_copy(update={"layers": tuple(layers)})


def macs(report):
    """Multiply-accumulates of all products, their factors multiplied out."""
    done = [e for e in report.ledger.entries if e.component == "product" and e.operation == "mac"]
    return sum(one.elements for one in done)


def test_lora_by_hand_base_frozen_by_a_pattern_or_adapters_trained_alone():
    """4 x 128 x (1024^2 + 2 x 8 x 1024) forward; docs/model.md section 6 has the way back."""
    whole = evaluate(lora(), "tpuv4i", "fp16", accounting=THEN)
    forward = 4 * 128 * (1024**2 + 2 * 8 * 1024)
    assert macs(whole) == TARGETS["lora4"]["macs_all"] == 3 * forward - 128 * (1024**2 + 8 * 1024)
    assert whole.energy / 1e6 == pytest.approx(TARGETS["lora4"]["energy_all"], rel=1e-3)
    stated = evaluate(
        load_network(DATA / "turn2" / "lora4.yaml"), "tpuv4i", "fp16", accounting=THEN
    )
    base = frozen(lora(), freeze=["base*"])
    adapters = frozen(lora(), train_only=["A?", "B[0-9]"])
    assert base == adapters and base.name == "lora4-frozen"
    found = evaluate(base, "tpuv4i", "fp16", accounting=THEN)
    assert macs(found) == TARGETS["lora4"]["macs_base_frozen"] == 963_641_344
    assert found.energy == stated.energy
    assert found.energy / 1e6 == pytest.approx(TARGETS["lora4"]["energy_base_frozen"], rel=1e-4)


def test_the_energy_of_lora_follows_from_words_by_hand():
    """Words of HBM, layer by layer: D x D frozen, D x r and r x D learned, L tokens, n blocks.

    Back, the first block has a signal for its B alone; the sums of blocks are read by three.
    """
    n, D, r, L, bit = 4, 1024, 8, 128, 3.92
    W, A, X, R = D * D, D * r, L * D, L * r
    forward = n * (W + 2 * A) + 2 * n * (2 * X + R) + 5 * n * X
    back = (n - 1) * (W + A) + n * A + (7 * X + 3 * R) + (6 * X + 4 * R) + (3 * n + 9) * X
    weights = 2 * n * (X + R) + 2 * n * A
    update = 2 * 2 * n * A
    wide = 6 * 2 * n * A  # weights and two moments, read and written
    found = evaluate(load_network(DATA / "turn2" / "lora4.yaml"), "tpuv4i", "fp16",
                     accounting="full")  # fmt: skip
    hbm = sum(e.count for e in found.ledger.entries if e.memory == "HBM")
    assert hbm == 16 * (forward + back + weights + update) + 32 * wide
    energy = sum(e.count * found.prices.value(e.key) for e in found.ledger.entries
                 if e.memory == "HBM")  # fmt: skip
    assert energy == pytest.approx(bit * hbm, rel=1e-12)
    assert found.energy / 1e6 == pytest.approx(1786.6, abs=0.05)


@pytest.mark.parametrize(("method", "key"), [("fp", "fp_last_layer"), ("bold", "bold_last_layer")])
def test_vgg_small_with_its_last_layer_trained_alone(method, key):
    found = frozen(load_network("vgg-small"), train_only=["fc3"])
    energy = evaluate(found, "ascend", method, accounting=THEN).energy
    assert energy / 1e6 == pytest.approx(TARGETS["vgg_small_ascend_full_batch1"][key], rel=2e-4)


NET = {
    "version": 1, "name": "net", "title": "t", "input": [4, 4, 4],
    "layers": [
        {"name": "one.conv", "kind": "conv", "channels": 4, "kernel": 1, "bias": True},
        {"name": "one.bn", "kind": "batch-norm", "affine": False},
        {"name": "one.scale", "kind": "scale"},
        {"name": "one.half", "kind": "scale", "learned": False},
        {"name": "two.conv", "kind": "conv", "channels": 4, "kernel": 1, "shares": "one.conv",
         "bias": True},
        {"name": "fc", "kind": "linear", "features": 2},
    ],
}  # fmt: skip


def learned(network):
    return {layer.name: layer.learned for layer in network.layers}


def test_each_kind_of_layer_is_frozen_in_its_own_words():
    net = validate(Network, NET, "net")
    found = frozen(net, freeze=["one.*", "two.*"])
    assert learned(found) == {
        "one.conv": False, "one.bn": False, "one.scale": "frozen", "one.half": False,
        "two.conv": True, "fc": True,  # two.conv goes with its owner
    }  # fmt: skip
    nodes = {node.layer.name: node for node in found.nodes()}
    assert [name for name, node in nodes.items() if node.learned_weights] == ["fc"]
    assert not any(node.learned_parameters for node in nodes.values())
    assert nodes["one.scale"].other_parameters == 4  # still parameters, as in a file of them
    assert nodes["one.half"].other_parameters == 0
    assert frozen(net) is net


@pytest.mark.parametrize(
    ("freeze", "train_only", "said"),
    [
        (
            ["one.con"],
            [],
            "freeze 'one.con': matches no layer of net with parameters; did you mean",
        ),
        ([], ["tow.*"], "train-only 'tow.*': matches no layer of net with parameters"),
        (["one.half"], [], "freeze 'one.half': matches no layer of net with parameters"),
        (["two.*"], [], "two.conv would be frozen and one.conv not: layer two.conv uses the"),
        ([], ["two.*", "fc"], "one.conv would be frozen and two.conv not: layer two.conv uses"),
    ],
)
def test_what_cannot_be_frozen_is_refused(freeze, train_only, said):
    with pytest.raises(HwmodelError) as refused:
        frozen(validate(Network, NET, "net"), freeze, train_only)
    assert said in str(refused.value)


def test_commands_take_patterns_and_a_table_states_them(hwmodel):
    rest = "--hardware", "ascend", "--method", "bold"
    code, out, err = hwmodel("network", "show", "vgg-small", "--train-only", "fc3", "--csv", "-")
    rows = [line.split(",") for line in out.splitlines()]
    column = rows[0].index("learned")
    assert {row[0]: int(row[column]) for row in rows[1:] if int(row[column])} == {"fc3": 10_240}
    _, out, _ = hwmodel("network", "show", "vgg-small", "--freeze", "conv*", "--freeze", "fc*")
    cells = next(line.split() for line in out.splitlines() if line.split()[:1] == ["conv1"])
    assert cells[cells.index("3,456") + 1] == "0"
    code, out, err = hwmodel("report", "vgg-small", *rest, "--train-only", "fc3", "--csv", "t.csv")
    assert code == 0 and "--train-only fc3" in Path("t.csv").read_text()
    assert hwmodel("verify", "t.csv")[0] == 0
    for command in (
        ("report", "vgg-small", *rest),
        ("memory", "vgg-small", "--method", "bold"),
        ("explain", "vgg-small", *rest, "--layer", "fc3"),
        ("compare", "vgg-small", "--hardware", "ascend", "--methods", "bold"),
        ("sensitivity", "vgg-small", "--hardware", "ascend", "--methods", "fp,bold"),
    ):
        said = "hwmodel: freeze 'fc9': matches no layer of vgg-small with parameters; did you mean"
        code, out, err = hwmodel(*command, "--freeze", "fc9")
        assert (code, out) == (2, "") and err.startswith(said)
    code, out, err = hwmodel("report", "vgg-small", *rest, "--freeze", "*")
    said = "hwmodel: vgg-small-frozen: nothing in it learns; use --mode inference\n"
    assert (code, out, err) == (2, "", said)


def test_a_frozen_network_beside_the_whole_one(hwmodel):
    code, out, _ = hwmodel(
        "compare", "vgg-small", "--hardware", "ascend", "--methods", "bold", "--train-only", "fc3",
        "--baseline-network", "vgg-small", "--accounting", "full", "--csv", "-",
    )  # fmt: skip
    assert code == 0
    assert [line.split(",")[:2] for line in out.splitlines()[1:]] == [
        ["vgg-small", "fp"], ["vgg-small-frozen", "bold"]
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["lora", "LoRA"])
def test_that_lora_is_no_method_is_said_with_what_it_is(name):
    with pytest.raises(HwmodelError) as refused:
        evaluate("bert-base", "ascend", name)
    assert str(refused.value) == (
        f"no method is called {name!r}: its adapters are layers of the network's own, and the "
        "layers that they adapt are frozen by --freeze; any method prices them (docs/networks.md)"
    )
