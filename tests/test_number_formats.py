"""Number formats: every row of tests/data/today/formats.csv, bits that move, what is multiplied.

Rows say with what they were measured: bytes that public packages allocate, and the layout by hand.
"""

import csv
import re
from fractions import Fraction
from pathlib import Path

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.graph.network import Network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.formats import Format, formats
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.vary.paths import replaced_all
from hwmodel.work.optimizers import state_bits, step_of

TODAY = Path(__file__).parent / "data" / "today"
ROWS = {
    row["format"]: row for row in csv.DictReader((TODAY / "formats.csv").read_text().splitlines())
}
FORMATS = {
    "gguf Q4_0": "q4_0", "gguf Q8_0": "q8_0", "gguf Q4_K": "q4_k", "gguf Q6_K": "q6_k",
    "gguf TQ1_0": "tq1_0", "gguf TQ2_0": "tq2_0", "gguf MXFP4": "mxfp4", "gguf NVFP4": "nvfp4",
    "NF4 block 64": "nf4", "NF4 block 64 double quantized": "nf4-double",
    "FP8 E4M3": "e4m3", "FP8 E5M2": "e5m2", "MXFP8 (torchao)": "mxfp8",
    "MXFP4 (torchao)": "mxfp4", "NVFP4 (torchao)": "nvfp4",
}  # fmt: skip
STATES = {
    "state sgd": "sgd", "state momentum": "momentum", "state adam": "adam", "state adamw": "adamw",
    "state lion": "lion", "state adafactor, no momentum 1024x1024": "adafactor",
    "state torch adafactor 1024x1024": "adafactor", "state adam-8bit": "adam-8bit",
    "state galore adam, 1024x4096, rank 128 (words)": "galore",
}  # fmt: skip
# Tiles are not the subject here.
FULL = replaced_all(
    load(Accounting, "full"),
    {
        "counting.search": "level-by-level", "counting.stationary": "filter",
        "counting.weight_gradient": "signal-as-filters",
    },
)  # fmt: skip
ONE = validate(
    Network,
    {
        "version": 1, "name": "one", "title": "t", "input": [256, 16, 1],
        "layers": [{"name": "fc", "kind": "linear", "features": 256, "over": "channels"}],
    },
    "one",
)  # fmt: skip


def method(weights="16", rest="    inputs: 16", own="", name="mine", forward="mac"):
    import ruamel.yaml

    text = f"""
version: 1
name: {name}
title: t
{own}
layers:
  - precision: fp
    weights: {weights}
    arithmetic: {{forward: {forward}}}
    source: me
{rest}
tensors:
  - {{bits: 16, signal: 16, format: floating, source: me}}
"""
    return validate(Method, ruamel.yaml.YAML().load(text), "mine.yaml")


def of(report, **wanted):
    return [
        e
        for e in report.ledger.entries
        if all(str(getattr(e, name)) == value for name, value in wanted.items())
    ]


def test_every_row_of_the_table_is_here():
    assert ROWS.keys() == FORMATS.keys() | STATES.keys() | {"E8M0 scale"}
    assert formats()["mxfp8"].scale_bits == int(ROWS["E8M0 scale"]["bits_per_element"])


@pytest.mark.parametrize("row", FORMATS)
def test_bits_of_an_element_are_those_that_packages_allocate(row):
    """On a matrix of 4096 x 4096, as the rows of bitsandbytes say; a scale of the tensor apart."""
    found = formats()[FORMATS[row]]
    bits = found.model_copy(update={"tensor_scale_bits": 0}).width(4096, 4096)
    assert bits == Fraction(ROWS[row]["bits_per_element"])


@pytest.mark.parametrize("row", STATES)
def test_states_are_those_of_real_optimizers(row):
    m, n = (1024, 4096) if "4096" in row else (1024, 1024)
    bits = state_bits(step_of(STATES[row], (m, n), rank=128), m * n, 32)
    words = bits * m * n / 32 if "(words)" in row else bits
    assert words == Fraction(ROWS[row]["bits_per_element"])


@pytest.mark.parametrize(
    ("name", "rows", "channels", "bits"),
    [
        ("int4-g32", 256, 256, 262_144 + 16 * 2_048),  # by hand, networks.md section 6
        ("mxfp4", 1, 100, 432),  # 400 + 4 x 8: the last block is not full
        ("nvfp4", 2, 32, 2 * (4 * 32 + 2 * 8) + 32),
        ("int4-g128", 1, 4096, 4096 * 4 + 32 * (16 + 4)),  # 4.15625 an element
        ("mxfp6", 3, 64, 3 * (6 * 64 + 2 * 8)),
        ("int8-row", 5, 77, 5 * (77 * 8 + 16)),
        ("ternary-5-in-8", 1, 10, 16),
    ],
)
def test_bits_of_a_tensor_by_hand(name, rows, channels, bits):
    assert formats()[name].total(rows, channels) == bits


def test_a_matrix_of_4_bits_in_blocks_moves_its_scales_and_is_expanded_at_the_unit():
    """256 x 256 words in 294,912 bit; each expanded whenever it leaves the innermost memory."""
    report = evaluate(ONE, "tpuv4i", method("int4-g32"), accounting=FULL, mode="inference")
    assert {entry.bits for entry in of(report, tensor="F", direction="read")} == {Fraction(9, 2)}
    outermost = report.hardware.levels[0].buffers[0].name
    (top,) = of(report, tensor="F", direction="read", memory=outermost)
    assert (top.elements, top.count) == (65_536, 294_912)
    inner = report.hardware.levels[-1].buffers
    fed = sum(
        e.elements
        for e in of(report, tensor="F", role="operand", direction="read")
        if e.memory in {buffer.name for buffer in inner}
    )
    (expanded,) = of(report, role="expanded")
    assert (expanded.operation, expanded.bits) == ("mac", 32)
    assert expanded.elements == fed >= 65_536
    (product,) = of(report, component="product", direction="operate")
    assert (product.operation, product.bits, product.elements) == ("mac", 16, 16 * 256 * 256)
    # A plain width of so many bits moves the same, and is not expanded.
    plain = evaluate(ONE, "tpuv4i", method("4.5"), accounting=FULL, mode="inference")
    (same,) = of(plain, tensor="F", direction="read", memory=outermost)
    assert same.count == top.count and not of(plain, role="expanded")


def test_bits_are_rounded_up_once_for_what_is_moved():
    """Words of 1.6 bit: 65,536 of them in 104,857.6 bit, hence 104,858."""
    report = evaluate(ONE, "tpuv4i", method("ternary-5-in-8", forward="int-add"), accounting=FULL,
                      mode="inference")  # fmt: skip
    outermost = report.hardware.levels[0].buffers[0].name
    (top,) = of(report, tensor="F", direction="read", memory=outermost)
    assert (top.bits, top.count) == (Fraction(8, 5), 104_858)
    assert all(isinstance(entry.count, int) for entry in report.ledger.entries)
    assert report.table["bits"].isin([1.6, 16, 24]).all()
    report.memory.peak()


def test_a_block_that_never_ends_is_a_row_and_width_8_is_a_format_of_8_bits():
    own = "formats: {eight: {bits: 8, source: me}, long: {bits: 8, block: 100000, scale_bits: 16, source: me}}"
    eight = method("eight", own=own, forward="int-mac", rest="    inputs: 8")
    plain = method("8", own=own, forward="int-mac", rest="    inputs: 8")
    run = {"accounting": FULL, "mode": "inference"}
    assert (
        evaluate(ONE, "tpuv4i", eight, **run).energy == evaluate(ONE, "tpuv4i", plain, **run).energy
    )
    assert eight.format_of("long").width(1, 256) == 8 + Fraction(16, 256)


FP8 = "{operation: mac, bits: 8, format: e4m3, energy: 1.1 pJ, source: unit of 28 nm}"


def chip(*prices):
    import ruamel.yaml

    found = load(Hardware, "tpuv4i")
    more = [ruamel.yaml.YAML(typ="safe").load(price) for price in prices]
    values = {name: getattr(found, name) for name in found.model_fields_set}
    return validate(Hardware, values | {"arithmetic": [*found.arithmetic, *more]}, "chip")


def test_products_of_formats_cost_what_the_chip_says_of_the_pair_else_of_the_wider_twice():
    """MACs of 16 x 256 x 256: forward e4m3 x e4m3, back e5m2 x e4m3."""
    found = evaluate(MIDDLE, chip(FP8), "fp8", accounting=FULL)
    paid = {
        str(e.key): (e.elements, found.prices.value(e.key))
        for e in of(found, layer="b", component="product", direction="operate")
    }
    assert paid == {
        "e4m3 x e4m3 mac": (16 * 256 * 256, 1.1),
        "e5m2 x e4m3 mac": (16 * 256 * 256, 1.1),
        "e4m3 x e5m2 mac": (16 * 256 * 256, 1.1),
    }
    exact = FP8.replace("format: e4m3", "format: e4m3 x e5m2").replace("1.1", "1.3")
    both = evaluate(MIDDLE, chip(FP8, exact), "fp8", accounting=FULL)
    prices = {str(e.key): both.prices.value(e.key) for e in of(both, layer="b", operation="mac")}
    assert prices["e5m2 x e4m3 mac"] == prices["e4m3 x e5m2 mac"] == 1.3
    assert prices["e4m3 x e4m3 mac"] == 1.1


MIDDLE = validate(
    Network,
    {
        "version": 1, "name": "middle", "title": "t", "input": [256, 16, 1],
        "layers": [
            {"name": name, "kind": "linear", "features": 256, "over": "channels"} for name in "abc"
        ],
    },
    "middle",
)  # fmt: skip


def test_a_price_that_nobody_states_is_refused_by_both_names_or_is_that_of_the_next_wider():
    with pytest.raises(SpecError) as refused:
        evaluate(MIDDLE, "tpuv4i", "mxfp4", accounting=FULL)
    assert "states no price of a e2m1 x e2m1 mac; state one" in str(refused.value)
    assert "accounting field prices.narrow_floats expanded" in str(refused.value)
    mixed = method("e4m3", rest="    inputs: mxfp6")
    with pytest.raises(SpecError, match="of a e2m3 x e4m3 mac, nor of e4m3 x e4m3; state one"):
        evaluate(ONE, "tpuv4i", mixed, accounting=FULL, mode="inference")
    wider = replaced_all(FULL, {"prices.narrow_floats": "expanded"})
    found = evaluate(MIDDLE, "tpuv4i", "mxfp4", accounting=wider)
    (key,) = {e.key for e in of(found, layer="b", component="product", direction="operate")}
    assert found.prices.value(key) == found.hardware.price("mac", 16).energy_per_operation


def test_blocks_run_along_the_reduction_so_that_two_passes_take_two_copies():
    """Of b in mxfp4: weights, inputs and signals twice, 4.25 bit each; scales of sums by hand."""
    wider = replaced_all(FULL, {"prices.narrow_floats": "expanded"})
    found = evaluate(MIDDLE, "tpuv4i", "mxfp4", accounting=wider)
    outermost = found.hardware.levels[0].buffers[0].name
    words, maps = 256 * 256, 256 * 16

    def moved(layer, tensor, **rest):
        return sum(e.count for e in of(found, layer=layer, tensor=tensor, memory=outermost, **rest))

    written = {"direction": "write", "pass_": "update"}
    assert moved("b", "F", role="operand", **written) == words * 17 // 4
    assert moved("b", "F", role="copy", **written) == words * 17 // 4
    assert moved("b", "F", role="latent", **written) == words * 32
    assert moved("a", "O", role="copy", direction="write") == 2 * maps * 17 // 4
    assert moved("b", "dO", role="copy", direction="write") == 2 * maps * 17 // 4
    # Sums of ceil(256 / 32) blocks an output forward and back; of one block of 16 positions.
    scaled = {e.pass_: e.elements for e in of(found, layer="b", role="scaled")}
    assert scaled == {"forward": 8 * maps, "backward_input": 8 * maps, "backward_weight": words}


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("{bits: 4, scale_bits: 8, source: me}", "are of blocks: give block"),
        ("{bits: 0.5, source: me}", "must be at least 1"),
        ("{states: 3, packed: 1.5, source: me}", "3 states need 1.585 bit"),
        ("{bits: 4, states: 3, source: me}", "give bits, or states and how they are packed"),
        ("{bits: 4, float: m3, source: me}", "must match"),
        ("{bits: 4, block: 0, source: me}", "must be at least 1"),
        (
            "{bits: 1.5, float: e2m3, source: me}",
            "bits 1.5 do not hold float e2m3, which has 6: 1 + 2",
        ),
        ("{bits: 7, float: e4m3, source: me}", "bits 7 do not hold float e4m3, which has 8: 1 + 4"),
    ],
)
def test_formats_that_cannot_be_are_refused(stated, said):
    with pytest.raises(SpecError) as refused:
        method("f", own=f"formats: {{f: {stated}}}")
    assert said in str(refused.value)


def test_bits_in_memory_may_be_more_than_those_of_the_float():
    assert Format(bits=8, float="e2m3", source="me").total(1, 3) == 24
    for one in (found for found in formats().values() if found.float):
        exponent, fraction = one.float[1:].split("m")
        assert one.bits == 1 + int(exponent) + int(fraction)


def test_methods_for_inference_refuse_training_and_states_are_the_optimizers():
    with pytest.raises(Exception, match="method w8a8 is for inference; use --mode inference"):
        evaluate(ONE, "tpuv4i", "w8a8", accounting=FULL)
    with pytest.raises(SpecError, match="1 widths, and adam has 2 states"):
        method("16", own="optimizer: adam", rest="    states: [8]")
    with pytest.raises(SpecError, match="an optimizer, and trains false"):
        method("16", own="trains: false\noptimizer: adam")


def test_a_format_keeps_what_it_says():
    one = Format(states=3, packed=2, tensor_scale_bits=32, source="me")
    assert one.word.bits == 2 and one.is_scaled and one.width(1, 16) == 4


BLOCK_ROWS = [
    row
    for row in csv.DictReader(
        (TODAY / "onnx_fused_blocks.csv").read_text(encoding="utf-8").splitlines()
    )
    if row["item"] == "block format"
]


@pytest.mark.parametrize("row", BLOCK_ROWS, ids=lambda row: row["case"])
def test_bits_of_a_tensor_are_those_of_a_loop_over_its_elements(row):
    rows, channels, bits, block, scale = map(int, re.findall(r"\d+", row["case"]))
    form = Format(bits=bits, block=block, scale_bits=scale, source="me")
    assert form.total(rows, channels) == int(row["expected"]) == int(row["independent_check"])


def with_widths(**widths):
    """Layers a, b and c, with a width of weights and one of the output as a file states them."""
    layers = tuple(
        layer.model_copy(update=dict(zip(("weight_bits", "bits"), widths[layer.name], strict=True)))
        for layer in MIDDLE.layers
    )
    return MIDDLE.model_copy(update={"layers": layers})


def test_what_a_file_states_as_floating_is_multiplied_as_floating():
    """b is e4m3 x e4m3, 16 x 256 x 256 MACs of 1.1 pJ; a and c have one full-precision operand."""
    network = with_widths(a=("e4m3", "e4m3"), b=("e4m3", "e4m3"), c=(None, None))
    run = {"accounting": FULL, "mode": "inference"}
    report = evaluate(network, chip(FP8), "as-stated", **run)
    (product,) = of(report, layer="b", component="product", direction="operate")
    assert (str(product.key), product.elements) == ("e4m3 x e4m3 mac", 16 * 256 * 256)
    assert report.prices.value(product.key) == 1.1
    found = of(report, layer="b", component="product", tensor="F", memory="HBM")
    assert [e.count for e in found] == [256 * 256 * 8]
    for name in "ac":
        (product,) = of(report, layer=name, component="product", direction="operate")
        assert str(product.key) == "32-bit mac"
    with pytest.raises(SpecError, match="tpuv4i: states no price of a e4m3 x e4m3 mac"):
        evaluate(network, "tpuv4i", "as-stated", **run)
    wider = replaced_all(FULL, {"prices.narrow_floats": "expanded"})
    expanded = evaluate(network, "tpuv4i", "as-stated", accounting=wider, mode="inference")
    (product,) = of(expanded, layer="b", component="product", direction="operate")
    price = expanded.hardware.price("mac", 16).energy_per_operation
    assert expanded.prices.value(product.key) == price


def test_an_integer_times_a_float_is_no_product_of_integers():
    network = with_widths(a=("e4m3", "e4m3"), b=(8, 8), c=(8, 8))
    with pytest.raises(SpecError, match="states no price of an 8-bit mac"):
        evaluate(network, chip(FP8), "as-stated", accounting=FULL, mode="inference")


def test_formats_beyond_every_price_are_refused_though_narrow_floats_are_expanded():
    network = with_widths(a=("e8m23", "e8m23"), b=("e8m23", "e8m23"), c=("e8m23", "e8m23"))
    wider = replaced_all(FULL, {"prices.narrow_floats": "expanded"})
    with pytest.raises(SpecError, match="states no price of a e8m23 x e8m23 mac"):
        evaluate(network, "tpuv4i", "as-stated", accounting=wider, mode="inference")
