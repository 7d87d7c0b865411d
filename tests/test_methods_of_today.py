"""Every row of methods.csv, optimizers.csv and prices.csv of tests/data/today, against what runs.

The rows were read in papers and public code, or measured on real objects, as their columns say.
"""

import csv
import re
from fractions import Fraction
from pathlib import Path

import pytest

from hwmodel import evaluate
from hwmodel.graph.freezing import frozen
from hwmodel.graph.network import Network
from hwmodel.model import widths
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load, validate
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.vary.paths import replaced_all
from hwmodel.work.optimizers import OPTIMIZERS, state_bits, step_of
from tests.test_number_formats import FULL, MIDDLE, chip, of

TODAY = Path(__file__).parent / "data" / "today"


def rows(name):
    return list(csv.DictReader((TODAY / name).read_text().splitlines()))


WIDER = replaced_all(FULL, {"prices.narrow_floats": "expanded"})
METHODS = {
    ("bf16", "train"): "bf16", ("bf16-pure", "train"): "bf16-pure", ("fp8", "train"): "fp8",
    ("mxfp8", "train"): "mxfp8", ("mxfp4-backward", "train"): "mxfp4-backward",
    ("mxfp4", "train"): "mxfp4", ("nvfp4", "train"): "nvfp4",
    ("bitnet-b158", "train"): "bitnet-b158", ("bitnet-b158", "inference"): "bitnet-b158",
    ("int4-weights (W4A16, groups of 128)", "inference"): "int4-weights",
    ("w8a8 (SmoothQuant)", "inference"): "w8a8",
    ("qat-int8", "train"): "qat-int8", ("qat-int8", "inference"): "int8",
    ("dorefa-1-2-6", "train"): "dorefa", ("twn", "train"): "twn", ("ttq", "train"): "ttq",
    ("adam-8bit", "train"): "adam-8bit", ("lion", "train"): "lion",
    ("adafactor", "train"): "adafactor", ("galore", "train"): "galore",
    ("lora", "train"): "bf16", ("qlora", "train"): "qlora", ("fp8-lm", "train"): "fp8-lm",
}  # fmt: skip
# Of a frozen base, whose dF and states the rows call none.
ADAPTED = {"lora", "qlora"}


def numbers(cell):
    """The numbers of a cell as widths; "as bf16" is 16; "(hi)" of formats e4m3 are none."""
    cell = cell.replace("as bf16", "16").replace("3 bit", "")
    cell = re.sub(r"e\dm\d", "", cell)
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", cell)]


def near(bits, cell):
    """A scale of 32 bit a tensor, or of 16 a row, is less than 1 % of an element here."""
    return any(-0.001 < float(bits) - number < 0.1 for number in numbers(cell))


WORDS = {"mac": "mac", "int-add": "int-add", "int-mac": "int-mac", "logic": "logic", "add": "add"}


def test_every_row_of_the_table_has_its_method():
    assert {(row["method"], row["mode"]) for row in rows("methods.csv")} == METHODS.keys()
    assert set(METHODS.values()) <= set(bundled(Method))


@pytest.mark.parametrize("row", rows("methods.csv"), ids=lambda r: f"{r['method']}-{r['mode']}")
def test_a_method_has_the_widths_and_the_arithmetic_of_its_row(row):
    """Of the middle one of three linear layers of 256 x 256."""
    method = load(Method, METHODS[row["method"], row["mode"]])
    net = frozen(MIDDLE, freeze=["b"]) if row["method"] in ADAPTED else MIDDLE
    nodes = {node.layer.name: node for node in net.nodes()}
    found = widths.treatment(method, nodes["b"], FULL)
    edges = widths.edges(method, net.nodes(), FULL)
    incoming = edges["a"].bits
    assert near(found.weight_bits, row["weights_forward"])
    read = found.read(incoming).bits
    assert near(read, row["inputs_forward"])
    said = row["product_forward"].replace(":", "").replace(",", "").split()[0]
    assert found.arithmetic["forward"] == said
    assert near(edges["b"].bits, row["output"])
    if row["mode"] == "inference":
        return
    back = found.weight_back.bits if found.weight_back else found.weight_bits
    assert near(back, row["weights_backward_input"])
    signal = min(edges["b"].signal_bits, found.signal.bits) if found.signal else 0
    assert near(signal or edges["b"].signal_bits, row["signal"])
    assert near(found.read_back(incoming).bits, row["inputs_backward_weight"])
    for phase in ("backward_input", "backward_weight"):
        said = row[f"product_{phase}"].replace(":", "").split()[0]
        assert found.arithmetic[phase] == said, phase
    if row["method"] in ADAPTED:
        return  # what comes of a frozen base is a test of its own
    assert near(found.weight_signal_bits, row["dF"])
    assert near(found.latent or 32, row["latent_weights"].replace("none for the base;", ""))
    assert method.optimizer == row["optimizer"].split()[0].rstrip(",").replace("-adam", "")


@pytest.mark.parametrize(
    "row",
    [r for r in rows("methods.csv") if r["mode"] == "train" and r["method"] not in ADAPTED],
    ids=lambda r: r["method"],
)
def test_states_that_the_update_moves_are_those_of_the_row(row):
    """Bits written of all moments of b, 256 x 256, for each weight."""
    name = METHODS[row["method"], "train"]
    found = evaluate(MIDDLE, "tpuv4i", name, accounting=WIDER)
    outermost = found.hardware.levels[0].buffers[0].name
    moments = of(found, layer="b", role="moment", memory=outermost, direction="read")
    bits = Fraction(sum(e.count for e in moments), 256 * 256)
    stated = row["state_bits"].split("(chosen)")[0]
    if name == "galore":  # r = 128 of m = n = 256
        assert bits == Fraction(64 * 128, 256) + Fraction(32 * 128, 256)
    elif name == "adafactor":
        assert bits == Fraction(32 * (256 + 256), 256 * 256)
    else:
        assert bits == sum(Fraction(part) for part in stated.split("+"))
    latent = of(found, layer="b", role="latent", memory=outermost, direction="write")
    weights = of(found, layer="b", pass_="update", tensor="F", role="operand", direction="write")
    assert near(sum(e.bits for e in latent) or weights[0].bits, row["latent_weights"])


def test_the_base_of_an_adapted_network_keeps_no_state_and_is_expanded_both_ways():
    """A frozen matrix in NF4, 4.12695 bit: read in forward and backward_input, a MAC a word."""
    half = {"name": "half", "title": "t", "input": [256, 16, 1], "version": 1, "layers": [
        {"name": "a", "kind": "linear", "features": 256, "over": "channels"},
        {"name": "base", "kind": "linear", "features": 256, "over": "channels", "learned": False},
        {"name": "c", "kind": "linear", "features": 256, "over": "channels"},
    ]}  # fmt: skip
    found = evaluate(validate(Network, half, "half"), "tpuv4i", "qlora", accounting=FULL)
    expanded = {e.pass_: e.elements for e in of(found, layer="base", role="expanded")}
    assert expanded.keys() == {"forward", "backward_input"}
    assert min(expanded.values()) >= 256 * 256
    assert not of(found, layer="base", pass_="update")
    assert not of(found, layer="base", pass_="backward_weight")
    outermost = found.hardware.levels[0].buffers[0].name
    (read,) = of(found, layer="base", pass_="forward", tensor="F", memory=outermost)
    blocks = 256 * 256 // 64
    assert read.count == 256 * 256 * 4 + 8 * blocks + 32 * blocks // 256


OPTIMIZER_ROWS = {
    "sgd": "sgd", "sgd, weight decay": "sgd-decay", "momentum": "momentum", "adam": "adam",
    "adamw": "adamw", "lion": "lion", "adafactor, no momentum, m x n": "adafactor",
    "adafactor with momentum, m x n": "adafactor-momentum", "adam-8bit": "adam-8bit",
    "lion-8bit": "lion-8bit", "galore adam, m x n (m <= n), rank r": "galore",
}  # fmt: skip


def test_every_optimizer_of_the_table_is_known():
    """But for lora, which is what of a network learns (tests/test_freezing.py)."""
    names = {row["optimizer"] for row in rows("optimizers.csv")}
    assert names == OPTIMIZER_ROWS.keys() | {"lora, qlora"}
    assert set(OPTIMIZER_ROWS.values()) == set(OPTIMIZERS)


@pytest.mark.parametrize(
    "row",
    [r for r in rows("optimizers.csv") if r["optimizer"] in OPTIMIZER_ROWS],
    ids=lambda r: r["optimizer"],
)
def test_a_step_is_what_the_row_says_of_a_weight(row):
    m, n, r = 1024, 4096, 128
    step = step_of(OPTIMIZER_ROWS[row["optimizer"]], (m, n), r)

    def value(formula):
        formula = re.sub(r"(\d|\)) ?([rmn(])", r"\1 * \2", formula).replace("(mn)", "(m * n)")
        return Fraction(eval(re.sub(r"(\d+(\.\d+)?)", r"F('\1')", formula),
                             {"F": Fraction, "m": m, "n": n, "r": r}))  # fmt: skip

    assert step.macs == value(row["multiply_adds"])
    assert step.adds == value(row["additions_comparisons"])
    assert step.specials == value(row["roots_divisions"])
    assert state_bits(step, m * n, 32) == value(row["state_bits_a_parameter"])
    read = row["words_read"].split(" (both")[0].replace(" x n)", "")
    scales = sum("scale" in part for part in row["words_read"].split(","))
    assert len(step.states) + 2 == len(read.split(",")) - scales
    assert step.gradient_reads == 1 + ("twice" in row["words_read"])
    scales = sum("scale" in part for part in row["words_written"].split(","))
    written = len(row["words_written"].split(",")) - scales
    assert 1 + sum(state.written for state in step.states) == written


def test_small_tensors_and_vectors_have_plain_states():
    """Below 4,096 elements bitsandbytes keeps 32 bit; a vector has no rows and no low rank."""
    assert step_of("adam-8bit", (32, 64)) == step_of("adam", (32, 64))
    assert state_bits(step_of("adafactor", (1, 100)), 100, 32) == 32
    assert step_of("galore", (1, 4096), 128) == step_of("adam", (1, 4096))
    assert step_of("galore", (64, 4096), 128) == step_of("adam", (64, 4096))


def test_a_rule_of_the_method_comes_before_its_own_and_that_before_the_accounting():
    """And none in the accounting counts no update at all."""

    def moments(method, accounting=WIDER):
        found = evaluate(MIDDLE, "tpuv4i", method, accounting=accounting)
        return {e.tensor for e in of(found, layer="b", role="moment")}, found

    assert moments("fp")[0] == {"m(F)", "v(F)"}
    assert moments("lion")[0] == {"m(F)"}
    sgd = replaced_all(WIDER, {"extras.optimizer": "sgd"})
    assert moments("fp", sgd)[0] == set() and moments("lion", sgd)[0] == {"m(F)"}
    none = replaced_all(WIDER, {"extras.optimizer": "none"})
    assert not of(moments("lion", none)[1], pass_="update")


PRICES = rows("prices.csv")
STATED = {
    ("int8 mac", "45 nm"): ("horowitz45", "int-mac", 8),
    ("fp16 mac", "45 nm"): ("horowitz45", "mac", 16),
    ("fp32 mac", "45 nm"): ("horowitz45", "mac", 32),
    ("int8 mac", "7 nm"): ("tpuv4i", "int-mac", 8),
}
UNITS = {"mxint8 mac": None, "mxfp8/6 mac": "e4m3", "mxfp4 mac": "e2m1", "fp8 mac": "e4m3"}


@pytest.mark.parametrize("row", PRICES, ids=lambda r: f"{r['operation']}-{r['node']}"[:40])
def test_a_price_is_the_chips_own_or_asked_for_and_never_made_up(row):
    key = row["operation"], row["node"]
    energy = row["pJ_a_mac"]
    if key in STATED:
        name, kind, bits = STATED[key]
        assert load(Hardware, name).price(kind, bits).energy_per_operation == pytest.approx(
            float(energy)
        )
    elif row["node"] == "7 nm":  # bf16 and fp16 of the TPUv4i
        both = {0.32: (0.21, 0.11), 0.5: (0.34, 0.16)}[float(energy)]
        assert sum(both) == pytest.approx(float(energy))
        own = load(Hardware, "tpuv4i")
        assert own.price("mac", 16).energy_per_operation == 0.32  # fp16 is for a chip that says so
        other = replaced_all(own, {"arithmetic.mac.16": sum(both)})
        found = evaluate(MIDDLE, other, "fp16", accounting=FULL)
        (key,) = {e.key for e in of(found, layer="b", operation="mac", component="product")}
        assert found.prices.value(key) == pytest.approx(float(energy))
    elif UNITS.get(row["operation"]):
        word = UNITS[row["operation"]]
        bits = 8 if word == "e4m3" else 4
        own = f"{{operation: mac, bits: {bits}, format: {word}, energy: {energy} pJ, source: s}}"
        found = evaluate(MIDDLE, chip(own), {8: "mxfp8", 4: "mxfp4"}[bits], accounting=FULL)
        (key,) = {e.key for e in of(found, layer="b", operation="mac", component="product")}
        assert found.prices.value(key) == pytest.approx(float(energy), rel=1e-12)
    else:  # of whole accelerators, ratios, areas, instructions: no price of a unit
        kinds = {p.format for name in bundled(Hardware) for p in load(Hardware, name).arithmetic}
        assert kinds == {None}
        for name in bundled(Accounting):
            assert load(Accounting, name).prices.narrow_floats == "refused"
