"""The bundled methods: all run everywhere, and say of each tensor what their papers say."""

import os
from typing import Any

import pytest

from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.importers.load import load_network
from hwmodel.model import widths
from hwmodel.model.evaluate import evaluate as evaluate_any
from hwmodel.model.report import Report
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling.options import memories
from hwmodel.vary.paths import replaced_all
from tests.rows import merged

METHODS = tuple(bundled(Method))
# Of language models, on small networks below; products of narrow floats need a chip that has them.
TODAY = tuple(m for m in METHODS if (spec := load(Method, m)).optimizer or not spec.trains)
# The source's accounting knows no memories side by side and no arrays; tests/test_chips.py has them.
# Boards of one recipe are alike, and GAP9 has no room for a training of VGG-small.
ALIKE = {"a100-sxm-board", "a40-board", "v100-pcie-board", "gap9"}
if os.environ.get("HWMODEL_TESTS") != "thorough":
    ALIKE |= {"h100-board", "horowitz45", "tpuv4i"}
CHIPS = tuple(
    name
    for name in bundled(Hardware)
    if not memories(load(Hardware, name)).spatial and name not in ALIKE
)
PAPER = load(Accounting, "paper")
RELATIVE = (
    ("add", 32, 0.9), ("add", 16, 0.4), ("int-add", 32, 0.1), ("int-add", 16, 0.05),
    ("int-add", 8, 0.03),
)  # fmt: skip
EVERYTHING = {
    "version": 1, "name": "everything", "title": "Everything", "based_on": "paper",
    "counting": {"boolean_price": "adder"},
    "widths": {
        "boolean_signal_bits": 16, "boolean_vote_bits": 16, "boolean_sum_bits": "fan-in",
        "border_bits": 32,
    },
    "prices": {"addition_price": "relative", "logic_price_macs": None, "relative_prices": [
        *(price.model_dump() for price in PAPER.prices.relative_prices),
        *(
            {"operation": kind, "bits": bits, "macs": pj / 4.6, "source": "Horowitz"}
            for kind, bits, pj in RELATIVE
        ),
    ]},
    "extras": {
        "elementwise": "streamed", "stored_activations": True, "optimizer": "adam",
        "boolean_update": True, "flip_rate": 0.01,
    },
}  # fmt: skip
FULL = Accounting.model_validate(EVERYTHING)

# A residual block that halves the map, with a real shortcut, a squeeze and an attention block.
RESIDUAL = Network.model_validate(
    {
        "version": 1, "name": "residual", "title": "t", "input": [3, 16, 16],
        "layers": [
            {"name": "stem", "kind": "conv", "channels": 8, "kernel": 3, "padding": 1},
            {"name": "stem.bn", "kind": "batch-norm"},
            {"name": "stem.act", "kind": "activation"},
            {"name": "pool", "kind": "max-pool", "kernel": 2},
            {"name": "sign", "kind": "activation", "function": "rsign"},
            {"name": "conv", "kind": "conv", "channels": 16, "kernel": 3, "padding": 1,
             "stride": 2},
            {"name": "bn", "kind": "batch-norm"},
            {"name": "halved", "kind": "average-pool", "kernel": 2, "inputs": ["pool"]},
            {"name": "short", "kind": "conv", "channels": 16, "kernel": 1, "role": "shortcut"},
            {"name": "sum", "kind": "add", "inputs": ["bn", "short"]},
            {"name": "prelu", "kind": "activation", "function": "rprelu"},
            {"name": "mean", "kind": "global-average-pool"},
            {"name": "squeeze", "kind": "conv", "channels": 4, "kernel": 1,
             "role": "squeeze-excite"},
            {"name": "relu", "kind": "activation", "function": "relu"},
            {"name": "excite", "kind": "conv", "channels": 16, "kernel": 1,
             "role": "squeeze-excite"},
            {"name": "factor", "kind": "activation", "function": "sigmoid"},
            {"name": "scaled", "kind": "multiply", "inputs": ["prelu", "factor"]},
            {"name": "fc", "kind": "linear", "features": 10},
        ],
    }
)  # fmt: skip
TRANSFORMER = Network.model_validate(
    {
        "version": 1, "name": "transformer", "title": "t", "input": [1, 6, 1],
        "layers": [
            {"name": "words", "kind": "embedding", "vocabulary": 50, "features": 8},
            {"name": "norm", "kind": "layer-norm"},
            *(
                {"name": name, "kind": "linear", "features": 8, "over": "channels",
                 "inputs": ["norm"]}
                for name in ("query", "key", "value")
            ),
            {"name": "scores", "kind": "attention-scores", "heads": 2,
             "inputs": ["query", "key"]},
            {"name": "softmax", "kind": "activation", "function": "softmax"},
            {"name": "context", "kind": "attention-context", "heads": 2,
             "inputs": ["softmax", "value"]},
            {"name": "out", "kind": "linear", "features": 8, "over": "channels"},
            {"name": "sum", "kind": "add", "inputs": ["out", "norm"]},
            {"name": "norm1", "kind": "layer-norm"},
            {"name": "up", "kind": "linear", "features": 32, "over": "channels"},
            {"name": "gelu", "kind": "activation", "function": "gelu"},
            {"name": "down", "kind": "linear", "features": 8, "over": "channels"},
            {"name": "sum1", "kind": "add", "inputs": ["down", "norm1"]},
            {"name": "norm2", "kind": "layer-norm"},
            {"name": "classifier", "kind": "linear", "features": 2, "over": "all"},
        ],
    }
)  # fmt: skip
LATENT_BINARY = (
    "bi-realnet", "bibert", "binarybert", "binarynet", "bit", "bnext", "ir-net", "lab",
    "meliusnet", "pokebnn", "rad", "rbnn", "reactnet", "real2binary", "slb", "xnor-net",
)  # fmt: skip
BOOLEAN = ("bold", "bold-bert", "bold-bn")


def evaluate(network: str | Network, chip: str, method: str,
             accounting: Accounting = PAPER, **options: Any) -> Report:  # fmt: skip
    return evaluate_any(network, chip, method, accounting=accounting, **options)


def nodes(network: str | Network, method: str) -> dict[str, Node]:
    omitted = frozenset(load(Method, method).omits)
    return {node.layer.name: node for node in load_network(network).nodes(omitted)}


def moved(method: str, layer: str, phase: str, network: str | Network = "vgg-small",
          accounting: Accounting = PAPER) -> dict[str, int]:  # fmt: skip
    """Bits of one element of every tensor that a product moves."""
    rows = merged(evaluate(network, "ascend", method, accounting=accounting))
    mine = [r for r in rows if (r.layer, r.phase, r.component) == (layer, phase, "memory")]
    return {row.tensor: row.bits // row.accesses for row in mine}


def arithmetic(method: str, layer: str, network: str | Network = "vgg-small") -> list[str]:
    """Forward, backward-input, backward-weight."""
    treatment = widths.treatment(load(Method, method), nodes(network, method)[layer], PAPER)
    return [treatment.arithmetic[p] for p in ("forward", "backward_input", "backward_weight")]


@pytest.mark.parametrize("accounting", [PAPER, FULL], ids=["paper", "everything"])
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("method", [method for method in METHODS if method not in TODAY])
def test_every_method_trains_and_runs_vgg_small_on_every_chip(method, chip, accounting):
    train = evaluate("vgg-small", chip, method, accounting=accounting)
    run = evaluate("vgg-small", chip, method, accounting=accounting, mode="inference")
    assert 0 < run.energy < train.energy < float("inf")
    assert min(row.energy for row in merged(train)) >= 0


@pytest.mark.parametrize("accounting", [PAPER, FULL], ids=["paper", "everything"])
@pytest.mark.parametrize("network", [RESIDUAL, TRANSFORMER], ids=lambda n: n.name)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_rule_for_every_layer_of_other_networks(method, network, accounting):
    wider = replaced_all(accounting, {"prices.narrow_floats": "expanded"})
    train = load(Method, method).trains
    run = {"accounting": wider, "mode": "training" if train else "inference"}
    assert evaluate(network, "horowitz45", method, **run).energy > 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_names_its_paper_and_what_it_refers_to(method):
    spec = load(Method, method)
    spec.check_references()
    assert spec.sources
    keys = set(spec.sources)
    rules = (*spec.layers, *spec.tensors, *spec.kept, *spec.extra_work)
    cited = [rule.source for rule in rules] + [spec.teacher.source for _ in (1,) if spec.teacher]
    for source in cited:
        words = source.replace(";", ",").split(",")
        assert words[0].strip() in keys, source


def test_every_method_has_a_colour_of_its_own():
    colours = [load(Method, method).colour for method in METHODS]
    assert None not in colours
    assert len(set(colours)) == len(METHODS)


def test_colours_are_the_sources_where_it_has_one_but_for_one_that_red_green_blind_eyes_confuse():
    source = {
        "binarynet": "#bcbd22", "binaryconnect": "#17becf",
        "bi-realnet": "#e377c2", "real2binary": "#8c564b", "reactnet": "#9467bd",
        "meliusnet": "#7f7f7f", "bnext": "#ff7f0e", "pokebnn": "#1f77b4", "bold": "#d62728",
        "fp": "#000000",
    }  # fmt: skip
    assert {name: load(Method, name).colour for name in source} == source


@pytest.mark.parametrize("method", LATENT_BINARY)
def test_binary_methods_with_latent_weights_read_bits_and_send_words_back(method):
    assert moved(method, "conv3", "forward") == {"I": 1, "F": 1, "O": 32}
    assert moved(method, "conv3", "backward_input") == {"dO": 32, "F": 1, "dI": 32}
    assert moved(method, "conv3", "backward_weight") == {"I": 1, "dO": 32, "dF": 32}
    assert arithmetic(method, "conv3") == ["logic", "add", "add"]


@pytest.mark.parametrize("method", sorted({*LATENT_BINARY, "binaryconnect"} - {"pokebnn"}))
def test_their_first_and_last_layer_are_in_full_precision(method):
    for layer in ("conv1", "fc3"):
        assert moved(method, layer, "forward")["F"] == 32
        assert arithmetic(method, layer) == ["mac", "mac", "mac"]


def test_pokebnn_has_8_bit_ends_and_4_bit_scaling():
    for layer in ("stem", "fc"):
        assert moved("pokebnn", layer, "forward", RESIDUAL) == {"I": 8, "F": 8, "O": 32}
        assert arithmetic("pokebnn", layer, RESIDUAL) == ["int-mac", "mac", "mac"]
    assert moved("pokebnn", "squeeze", "forward", RESIDUAL) == {"I": 4, "F": 4, "O": 32}
    assert moved("pokebnn", "conv", "forward", RESIDUAL) == {"I": 1, "F": 1, "O": 32}


@pytest.mark.parametrize("method", BOOLEAN)
def test_boolean_methods_move_one_bit_everywhere_under_paper(method):
    assert moved(method, "conv3", "forward") == {"I": 1, "F": 1, "O": 1}
    assert moved(method, "conv3", "backward_input") == {"dO": 1, "F": 1, "dI": 1}
    assert moved(method, "conv3", "backward_weight") == {"I": 1, "dO": 1, "dF": 1}
    assert arithmetic(method, "conv3") == ["logic", "accumulate", "accumulate"]


@pytest.mark.parametrize("method", BOOLEAN)
def test_boolean_methods_send_back_16_bit_where_everything_is_counted(method):
    assert moved(method, "conv3", "backward_input", accounting=FULL) == {"dO": 16, "F": 1, "dI": 16}
    assert moved(method, "conv3", "backward_weight", accounting=FULL)["dF"] == 16


def test_fp32_is_full_precision_of_32_bit():
    ours, theirs = (
        evaluate("vgg-small", "ascend", name, accounting="paper") for name in ("fp32", "fp")
    )
    assert merged(ours) == merged(theirs)


def test_fp16_halves_every_word_and_keeps_32_bit_masters():
    for layer in ("conv1", "conv3"):
        assert moved("fp16", layer, "backward_weight") == {"I": 16, "dO": 16, "dF": 16}
        assert arithmetic("fp16", layer) == ["mac", "mac", "mac"]
    assert state_bits("fp16") == 16 + 3 * 32


def test_int8_reads_8_bit_operands_in_all_three_passes():
    assert moved("int8", "conv1", "forward") == {"I": 8, "F": 8, "O": 8}
    assert moved("int8", "conv3", "backward_input") == {"dO": 8, "F": 8, "dI": 32}
    assert moved("int8", "conv3", "backward_weight") == {"I": 8, "dO": 8, "dF": 32}
    assert arithmetic("int8", "conv3") == ["int-mac"] * 3


def test_luq_multiplies_4_bit_forward_and_shifts_backward():
    assert moved("luq", "conv3", "forward") == {"I": 4, "F": 4, "O": 32}
    assert moved("luq", "conv3", "backward_input") == {"dO": 4, "F": 4, "dI": 32}
    assert arithmetic("luq", "conv3") == ["int-mac", "shift-add", "shift-add"]


@pytest.mark.parametrize(
    ("method", "weights"),
    [("binarynet", 1), ("bi-realnet", 32), ("reactnet", 32), ("real2binary", 32), ("bold", 1)],
)
def test_convolutions_on_shortcuts_are_real_where_the_paper_says_so(method, weights):
    assert moved(method, "short", "forward", RESIDUAL)["F"] == weights


def test_a_binary_product_reads_one_bit_of_a_real_shortcut():
    assert moved("binarynet", "short", "forward", RESIDUAL)["I"] == 1
    assert moved("bi-realnet", "short", "forward", RESIDUAL)["I"] == 32


def test_a_pooled_tensor_is_as_wide_as_before():
    edges = widths.edges(
        load(Method, "xnor-net"), tuple(nodes(RESIDUAL, "xnor-net").values()), PAPER
    )
    assert edges["stem.act"].bits == edges["pool"].bits == 1


def test_shifted_activations_between_convolutions_stay_real():
    edges = widths.edges(
        load(Method, "reactnet"), tuple(nodes(RESIDUAL, "reactnet").values()), PAPER
    )
    assert (edges["sign"].bits, edges["prelu"].bits) == (1, 32)


@pytest.mark.parametrize("method", ["binarybert", "bibert", "bit"])
def test_binary_transformers_binarize_every_product_but_the_classifier(method):
    assert moved(method, "query", "forward", TRANSFORMER) == {"I": 1, "F": 1, "O": 1}
    assert moved(method, "scores", "forward", TRANSFORMER) == {"I": 1, "F": 1, "O": 32}
    assert moved(method, "context", "forward", TRANSFORMER) == {"I": 1, "F": 1, "O": 32}
    assert moved(method, "down", "backward_weight", TRANSFORMER) == {"I": 1, "dO": 32, "dF": 32}
    assert moved(method, "classifier", "forward", TRANSFORMER) == {"I": 32, "F": 32, "O": 32}
    edges = widths.edges(load(Method, method), tuple(nodes(TRANSFORMER, method).values()), PAPER)
    assert {edges[name].bits for name in ("query", "key", "value", "softmax", "gelu")} == {1}
    assert {edges[name].bits for name in ("norm", "scores", "up", "sum1", "norm2")} == {32}


def test_boolean_transformers_keep_norms_and_residual_sums_real():
    edges = widths.edges(
        load(Method, "bold-bert"), tuple(nodes(TRANSFORMER, "bold-bert").values()), PAPER
    )
    assert {edges[name].bits for name in ("words", "norm", "sum", "norm1")} == {32}
    assert {edges[name].bits for name in ("query", "softmax", "up", "gelu")} == {1}
    assert moved("bold-bert", "query", "forward", TRANSFORMER) == {"I": 1, "F": 1, "O": 1}


def state_bits(method: str, **changes: object) -> float:
    """Bits stored for one weight of a middle layer between two iterations (lowbit D7)."""
    accounting = replaced_all(FULL, {f"extras.{name}": value for name, value in changes.items()})
    report = evaluate("vgg-small", "ascend", method, accounting=accounting)
    (node,) = [n for n in report.network.nodes() if n.layer.name == "conv3"]
    rows = [r for r in merged(report) if (r.layer, r.component) == ("conv3", "update")]
    bits = {r.tensor: r.bits / r.accesses for r in rows if r.level == "L3"}
    assert bits.pop("dF")
    assert node.weights == 128 * 256 * 9
    return sum(bits.values())


@pytest.mark.parametrize("method", [*LATENT_BINARY, "binaryconnect"])
def test_a_latent_binary_weight_takes_97_bits_with_adam_and_33_with_sgd(method):
    assert state_bits(method) == 97
    assert state_bits(method, optimizer="sgd") == 33


@pytest.mark.parametrize("method", BOOLEAN)
@pytest.mark.parametrize("accumulator", [32, 16, 8])
def test_a_boolean_weight_takes_one_bit_and_its_accumulator(method, accumulator):
    assert state_bits(method, accumulator_bits=accumulator) == 1 + accumulator


@pytest.mark.parametrize(
    "method",
    ["xnor-net", "bi-realnet", "real2binary", "reactnet", "meliusnet", "bnext", "bold-bn"],
)
def test_full_precision_work_costs_a_word_in_dram_for_each_pre_activation(method):
    rows = [
        r
        for r in merged(evaluate("vgg-small", "ascend", method, accounting="paper"))
        if r.component == "elementwise"
    ]
    pre_activations = 2 * 128 * 32**2 + 2 * 256 * 16**2 + 2 * 512 * 8**2 + 2 * 1024 + 10
    assert sum(row.bits for row in rows) == 32 * pre_activations
    assert {row.level for row in rows} == {"L3"}


def test_distilling_methods_name_their_teacher():
    teachers = {m: load(Method, m).teacher for m in METHODS}
    named = {m: (t.network, t.method) for m, t in teachers.items() if t}
    assert named == {
        "real2binary": ("resnet34", "fp"), "reactnet": ("resnet34", "fp"),
        "bnext": ("resnet34", "fp"), "pokebnn": ("resnet50", "int8"),
        "binarybert": ("bert-base", "fp"), "bibert": ("bert-base", "fp"),
        "bit": ("bert-base", "fp"), "bold-bert": ("bert-base", "fp"),
        "bold-kd": ("resnet34", "fp"), "bold-bn-kd": ("resnet34", "fp"),
    }  # fmt: skip


def test_int8_costs_less_at_the_same_counts():
    eight, full = (
        evaluate("vgg-small", "horowitz45", m, accounting="paper") for m in ("int8", "fp")
    )
    count = [sum(r.operations for r in merged(report)) for report in (eight, full)]
    assert count[0] == count[1]
    compute = [sum(r.energy for r in merged(x) if r.component == "compute") for x in (eight, full)]
    assert compute[0] / compute[1] == pytest.approx(0.23 / 4.6)


@pytest.mark.parametrize(
    ("method", "kind", "each"), [("fp16", "add", 0.4 / 4.6), ("int8", "logic", 15 / 46 / 63)]
)
def test_narrow_words_are_added_as_what_they_are(method, kind, each):
    """131,072 additions in bn1's statistics: 0.4 pJ of 4.6 (Horowitz, fp16); or 2 x 8 - 1 of the 63
    logic operations in an int32 addition of 0.1 pJ of 4.6."""
    report = evaluate_any("vgg-small", "ascend", method, accounting="full")
    (row,) = [
        r for r in merged(report)
        if (r.layer, r.phase, r.level) == ("bn1", "forward", "compute") and r.tensor in ("add", "logic")
    ]  # fmt: skip
    assert row.tensor == kind
    assert row.energy == pytest.approx(128 * 32 * 32 * each * 2 / 1.7, rel=1e-4)
