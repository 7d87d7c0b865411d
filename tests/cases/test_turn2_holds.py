"""Who holds what (B1), and outermost memories with an end (B2): each number by hand."""

import csv
import io
import re
from pathlib import Path

import pytest

from hwmodel import evaluate
from hwmodel.errors import Infeasible, NoRoom
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import memories, pass_kinds
from hwmodel.vary.paths import replaced

DATA = Path(__file__).parent.parent / "data" / "turn2"
MCU = DATA / "mcu.yaml"
MLP = "mlp-784-512-512-10"
FC1, FC2 = 784 * 512, 512 * 512  # weights
NAMES = "layer", "pass", "tensor", "memory"
FLASH_READ, FLASH_WRITE, SRAM = 120, 4000, 15  # pJ a 32-bit word


@pytest.fixture(scope="module")
def table():
    """Elements at the outermost level: (layer, pass, memory, direction) -> {tensor: elements}."""
    report = evaluate(MLP, MCU, "fp32", accounting="full")
    found = {}
    for entry in report.ledger.entries:
        if entry.memory in ("flash", "SRAM"):
            key = entry.layer, str(entry.pass_), entry.memory, str(entry.direction)
            tensors = found.setdefault(key, {})
            tensors[entry.tensor] = tensors.get(entry.tensor, 0) + entry.elements
    return found


# B1


def test_B1_the_update_reads_and_writes_weights_in_flash(table):
    """P are the biases, one of each of 512 features."""
    assert FC1 == 401_408
    states = {"m(F)": FC1, "v(F)": FC1, "m(P)": 512, "v(P)": 512}
    assert table["fc1", "update", "flash", "read"] == {"F": FC1, "P": 512}
    assert table["fc1", "update", "flash", "write"] == {"F": FC1, "P": 512}
    assert table["fc1", "update", "SRAM", "read"] == states | {"dF": FC1, "dP": 512}
    assert table["fc1", "update", "SRAM", "write"] == states


def test_B1_the_report_s_rows_are_1_654_mJ_in_flash(hwmodel):
    code, out, _ = hwmodel(
        "report", MLP, "--hardware", MCU, "--method", "fp32", "--accounting", "full",
        "--format", "csv", "-o", "-",
    )  # fmt: skip
    rows = [
        row
        for row in csv.DictReader(io.StringIO(out))
        if [row[name] for name in NAMES] == ["fc1", "update", "F", "flash"]
    ]
    energy = sum(float(row["energy"]) for row in rows)
    assert code == 0 and len(rows) == 2
    assert energy == pytest.approx(FC1 * (FLASH_READ + FLASH_WRITE), rel=1e-12)
    assert energy == pytest.approx(1.654e9, rel=1e-3)  # 1.654 mJ, as the sheet has it


def test_B1_forward_reads_each_weight_once_in_flash_and_nothing_else_there(table):
    """One image: no weight is used twice, whatever the tiles."""
    assert table["fc1", "forward", "flash", "read"] == {"F": FC1}
    assert ("fc1", "forward", "flash", "write") not in table
    assert table["fc1", "forward", "SRAM", "read"]["I"] >= 784
    assert table["fc1", "forward", "SRAM", "write"]["O"] >= 512


def test_B1_backward_input_reads_the_weights_in_flash_and_signals_in_sram(table):
    assert table["fc2", "backward_input", "flash", "read"] == {"F": FC2}
    assert ("fc2", "backward_input", "flash", "write") not in table
    assert table["fc2", "backward_input", "SRAM", "read"]["dO"] >= 512
    assert table["fc2", "backward_input", "SRAM", "write"]["dI"] >= 512


def test_B1_backward_weight_asks_nothing_of_flash(table):
    """The signal is in the filters' place, the gradient in the ofmaps'; neither is a weight."""
    of_fc1 = [key for key in table if key[:2] == ("fc1", "backward_weight")]
    assert {memory for *_, memory, _ in of_fc1} == {"SRAM"}
    reads = table["fc1", "backward_weight", "SRAM", "read"]
    assert set(reads) == {"I", "dO"} and reads["I"] >= 784 and reads["dO"] >= 512
    # One image: each element of dF is one product, written once.
    assert table["fc1", "backward_weight", "SRAM", "write"] == {"dF": FC1}


def test_B1_the_search_is_told_the_prices_of_what_is_multiplied():
    """In backward_weight all three lie in SRAM: one memory, and flash has no price in it."""
    chip = load(Hardware, MCU)
    forward = memories(chip, pass_kinds("forward")).levels[0].buffers
    assert [(b.name, b.holds, b.read_energy_per_bit * 32) for b in forward] == [
        ("flash", ("F",), pytest.approx(FLASH_READ)),
        ("SRAM", ("I", "O"), pytest.approx(SRAM)),
    ]
    (sram,) = memories(chip, pass_kinds("backward_weight")).levels[0].buffers
    assert (sram.name, sram.holds) == ("SRAM", ("I", "F", "O"))


@pytest.mark.parametrize(("pass_", "moves"), [("forward", True), ("backward-weight", False)])
def test_B1_tile_prices_a_pass_by_what_it_multiplies(hwmodel, tmp_path, pass_, moves):
    dearer = tmp_path / "dearer.yaml"
    dearer.write_text(MCU.read_text().replace("120 pJ", "1200 pJ"))
    conv = ("--conv", "N=1,M=4,C=4,H=6,W=6,K=3", "--bits", "32,32,32", "--pass", pass_, "--json")
    energies = [
        re.search(r'"energy": ([^,]+),', hwmodel("tile", "--hardware", chip, *conv)[1])[1]
        for chip in (MCU, dearer)
    ]
    assert (energies[0] != energies[1]) == moves


# B2


@pytest.mark.parametrize(
    ("file", "method", "memory", "needs"),
    [
        # Weights of ResNet-18 and scales and shifts of its batch norms, 32 bit each.
        ("hw_mcu.yaml", "fp", "flash", 4 * (11_679_912 + 9_600)),
        ("hw_mcu2.yaml", "fp", "sram", None),
    ],
)
def test_B2_a_finite_memory_is_accepted_and_what_does_not_fit_is_refused(
    hwmodel, file, method, memory, needs
):
    code, out, err = hwmodel(
        "report", "resnet18", "--hardware", DATA / file, "--method", method, "--accounting", "paper"
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "resnet18 under fp, training of 1 image, does not fit mcu: at " in err
    found = re.search(rf"{memory} has to hold ([\d,]+) B and holds ([\d,]+) ", err)
    asked, holds = (int(number.replace(",", "")) for number in found.groups())
    assert holds == {"flash": 2**20, "sram": 2**18}[memory]
    assert f"({asked - holds:,} B too few)" in err
    assert needs is None or asked == needs
    largest = 512 * 512 * 9 * 4  # bytes of the filters of a 3 x 3 convolution of 512 channels
    assert f"F:layer4.1.conv1 {largest:,} B" in err


def test_B2_inference_keeps_weights_and_two_maps(tmp_path):
    """In words, at fc1: weights and biases of all layers, the image, and what fc1 gives."""
    weights = 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10
    needs = 32 * (weights + 784 + 512)
    chip = load(Hardware, DATA / "hw_mcu2.yaml")
    fits = replaced(chip, "levels.sram.capacity", f"{needs} bit")
    assert evaluate(MLP, fits, "fp", accounting="paper", mode="inference").energy > 0
    with pytest.raises(NoRoom) as caught:
        less = replaced(chip, "levels.sram.capacity", f"{needs - 1} bit")
        evaluate(MLP, less, "fp", accounting="paper", mode="inference")
    assert caught.value.missing_bits == 1 and isinstance(caught.value, Infeasible)
    assert caught.value.lacks[0].step == "forward of fc1"
    assert caught.value.lacks[0].tensors[:2] == (("F:fc1", 32 * FC1), ("F:fc2", 32 * FC2))


def test_B2_a_comparison_has_a_line_with_the_reason(hwmodel):
    code, out, err = hwmodel(
        "compare", "resnet18", "--hardware", f"{DATA / 'hw_mcu2.yaml'},ascend",
        "--methods", "fp", "--accounting", "paper", "--format", "csv", "-o", "-",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(out)))
    refused, done = sorted(rows, key=lambda row: row["hardware"], reverse=True)
    assert (code, refused["hardware"], done["hardware"]) == (1, "mcu", "ascend")
    assert refused["energy"] == "" and "mcu, accounting paper. fp: resnet18 under fp" in err
    assert float(done["energy"]) > 0
