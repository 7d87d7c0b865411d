"""D: low-bit and binary networks."""

import csv
import io

import pytest

from tests.conftest import total
from tests.specs import CHIP, written

BOOLEAN_WEIGHTS = 4_571_136  # of VGG-small with one linear layer: its five inner convolutions


def test_D1_and_D2_binary_operations_are_told_by_a_command(hwmodel, shown):
    """64 of them stand for one: 37,748,736 / 64 = 589,824. The first and last layers are not among them."""
    layers = [
        {"name": name, "kind": "conv", "channels": 64, "kernel": 3, "padding": 1}
        for name in ("first", "inner", "last")
    ]
    act = [{"name": f"act{i}", "kind": "activation"} for i in range(2)]
    ordered = [layers[0], act[0], layers[1], act[1], layers[2]]
    rows = shown(ordered, (64, 32, 32), method="binarynet")
    (binary,) = [
        row for row in rows.values() if (row["weight_bits"], row["input_bits"]) == ("1", "1")
    ]
    assert binary["layer"] == "inner"
    assert int(binary["macs"]) / 64 == 589_824
    out = hwmodel("network", "show", "net.yaml", "--method", "binarynet")[1]
    (line,) = [line.split() for line in out.splitlines() if line.split()[:3] == ["1", "x", "1"]]
    assert line[3] == "37,748,736"


def test_D4_eight_bits_change_the_energy_and_not_the_counts(reported):
    full, eight = (reported("vgg-small-1fc", method=method) for method in ("fp", "int8"))
    counts = [
        {(r["layer"], r["pass"]): r["count"] for r in rows if r["operation"]}
        for rows in (full, eight)
    ]
    assert counts[0] == counts[1]
    assert (
        total(eight, "energy", direction="operate") < total(full, "energy", direction="operate") / 4
    )
    assert {r["operation"] for r in eight if r["operation"]} == {"int-mac"}


def test_D5_the_summary_of_a_model_is_a_csv_with_shape_widths_macs_and_memory(hwmodel):
    code, out, _ = hwmodel("network", "show", "vgg-small", "--method", "bold", "--csv", "-")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    conv2 = next(row for row in rows if row["layer"] == "conv2")
    assert [conv2[x] for x in ("C", "H", "W", "macs", "weight_bits", "input_bits")] == [
        "128", "32", "32", "150994944", "1", "1",
    ]  # fmt: skip
    assert int(conv2["parameter_bytes"]) == 128 * 128 * 9 // 8
    assert int(conv2["activation_bytes"]) == 128 * 32 * 32 // 8


def test_D6_the_widths_that_are_used_are_told_layer_by_layer(shown):
    """Bi-Real Net: 33.6 Mbit are published; layers that stay in full precision show themselves."""
    rows = shown("bi-realnet-18", method="bi-realnet")
    full = {name for name, row in rows.items() if row["weight_bits"] == "32"}
    assert {"conv1", "fc"} <= full
    assert {row["weight_bits"] for row in rows.values()} == {"32", "1", ""}
    bits = 8 * total(rows.values(), "parameter_bytes")
    assert bits == pytest.approx(33.6e6, rel=0.02)


@pytest.mark.parametrize(
    ("method", "bits"),
    [
        (
            "binarynet",
            {"latent F": 64, "moment m(F)": 64, "moment v(F)": 64, "operand F": 1},
        ),
        ("bold", {"accumulator F": 32, "operand F": 1.01}),
    ],
)
def test_D7_the_state_of_a_weight_is_what_training_moves(reported, method, bits):
    """Adam's BNN keeps 32 + 32 + 32 + 1 = 97 bits a weight, Boolean training 16 + 1; each but the
    binary copy, which is written (BNN) or read and flipped in one of a hundred (Boolean), goes both ways."""
    rows = reported("vgg-small-1fc", "--accounting", "full", method=method)
    moved = {}
    for r in rows:
        if (r["layer"], r["pass"], r["memory"]) == ("conv2", "update", "L3") and r[
            "tensor"
        ] != "dF":
            name = f"{r['role']} {r['tensor']}"
            moved[name] = moved.get(name, 0) + int(r["count"]) / 147_456
    assert moved == pytest.approx(bits, abs=1e-4)


@pytest.mark.parametrize(
    ("method", "millijoule", "within"), [("bold", 0.61, 0.01), ("binarynet", 3.46, 0.01)]
)
def test_D8_the_accumulator_is_paid_for(reported, tmp_path, hwmodel, method, millijoule, within):
    """4,571,136 weights at 3.9 pJ a bit of DRAM: 34 bits of Boolean state, 194 of Adam's, a step.

    All weights flip here, so that the weight is read and written; a BNN's binary copy is only written.
    """
    everything = hwmodel("accounting", "show", "full")[1]
    written(
        tmp_path,
        everything,
        ("flip_rate: 0.01", "flip_rate: 1"),
        ("name: full", "name: all"),
        name="all.yaml",
    )
    written(tmp_path, CHIP, ("50 pJ/B", "3.9 pJ/bit"), name="chip.yaml")
    rows = reported(
        "vgg-small-1fc", "--accounting", "all.yaml", hardware="chip.yaml", method=method
    )
    inner = [
        r for r in rows
        if r["layer"] in {f"conv{i}" for i in range(2, 7)}
        and (r["pass"], r["memory"]) == ("update", "DRAM") and r["tensor"] != "dF"
    ]  # fmt: skip
    reads = 34 if method == "bold" else 193
    assert total(inner, "count") == reads * BOOLEAN_WEIGHTS
    assert total(inner, "energy") * 1e-9 == pytest.approx(millijoule, rel=within)


def test_D10_what_costs_nothing_is_told_and_zeros_are_never_discounted(hwmodel, reported):
    asked = ("report", "vgg-small-1fc", "--hardware", "ascend", "--method", "fp", "--csv", "-")
    said = hwmodel(*asked, "--accounting", "paper")[2]
    # two for each of 2 x (128 + 256 + 512) channels
    assert (
        "batch-norm: 6 layers, 3,584 parameters (" in said and "286,720 output elements (" in said
    )
    counted = hwmodel(*asked, "--accounting", "full")
    assert "batch-norm" not in counted[2]
    rows = list(csv.DictReader(io.StringIO(counted[1])))
    assert total(rows, "energy", layer="bn1", component="elementwise") > 0
    macs = total(rows, "count", component="product", direction="operate", pass_="forward")
    assert macs == 607_600_640  # all of them: no share of zeros anywhere
