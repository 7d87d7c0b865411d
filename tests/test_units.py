"""A normalised energy says of which multiply-accumulate it is a multiple; no two units mix."""

import pytest

from hwmodel.errors import SpecError
from hwmodel.model.evaluate import evaluate
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import leaves, replaced
from tests.specs import STACKED

CHIP = """\
version: 1
name: norm
title: Normalised
energy_unit: MAC
{reference}levels:
  - {{level: 1, name: DRAM, capacity: unlimited, access_energy: 200 MAC/16bit, source: s}}
  - {{level: 0, name: RF, capacity: 4 KiB, access_energy: 1 MAC/16bit, source: s}}
arithmetic:
  - {{operation: mac, bits: 32, energy: {wide} MAC, source: s}}
  - {{operation: {format}, bits: 16, energy: {narrow} MAC, source: s}}
"""


@pytest.fixture
def norm(tmp_path):
    def norm(wide="3", narrow="1", format="mac", reference=""):
        text = CHIP.format(wide=wide, narrow=narrow, format=format, reference=reference)
        (tmp_path / "norm.yaml").write_text(text)
        return tmp_path / "norm.yaml"

    return norm


def test_the_one_price_of_1_is_the_reference(norm):
    assert load(Hardware, norm()).unit == "MAC (fp16)"
    assert load(Hardware, norm(format="int-mac")).unit == "MAC (int16)"
    assert load(Hardware, norm(wide="1", narrow="0.3")).unit == "MAC (fp32)"
    assert load(Hardware, "ascend").unit == "pJ"


def test_where_no_price_is_1_the_file_says_which_is_meant(norm):
    with pytest.raises(SpecError) as caught:
        load(Hardware, norm(narrow="2"))
    assert str(caught.value).endswith(
        "norm.yaml:8: arithmetic: no mac costs 1 MAC; say which is meant, as in reference: "
        "{operation: mac, bits: 32}"
    )
    chip = load(Hardware, norm(narrow="2", reference="reference: {operation: int-mac, bits: 8}\n"))
    assert chip.unit == "MAC (int8)"


def test_what_is_doubtful_of_a_reference_is_told(norm):
    with pytest.warns(match="32-bit mac, 16-bit mac cost 1 MAC each; MAC .fp32. is taken"):
        load(Hardware, norm(wide="1"))
    with pytest.warns(match="1 MAC is a 32-bit mac, whose price is 3 MAC"):
        load(Hardware, norm(reference="reference: {operation: mac, bits: 32}\n"))
    with pytest.raises(SpecError, match="reference: is for energy_unit MAC"):
        replaced(load(Hardware, "ascend"), "reference", {"operation": "mac", "bits": 32})


def test_1_mac_stays_what_it_is_where_its_price_is_moved(norm):
    """A study asks what a dearer MAC would do beside the memories, which keep their unit."""
    chip = load(Hardware, norm())
    moved = replaced(chip, "arithmetic.mac.16", 2.0)
    assert moved.unit == chip.unit == "MAC (fp16)"
    assert {leaf.unit for leaf in leaves(chip) if "_energy" in leaf.path} == {"MAC (fp16)/bit"}
    assert not [leaf.path for leaf in leaves(moved) if "reference" in leaf.path]


def test_16_bit_macs_are_3_times_fewer_in_32_bit_macs():
    """Case B8: by the chip's own two prices, 4.6 / 1.5 = 3.0667 (horowitz)."""
    small = evaluate("mlp-784-512-512-10", STACKED, "fp", accounting="paper")
    wide = evaluate("mlp-784-512-512-10", "v100", "fp", accounting="paper")
    assert (small.unit, wide.unit) == ("MAC (int16)", "MAC (fp32)")
    # 669,706 weights: 512 x (784 + 512 + 10); each is multiplied three times, but for the signal
    # of the first layer's input, in 32 bit
    macs = 3 * 512 * (784 + 512 + 10) - 784 * 512
    assert small.by("direction")["operate"] == pytest.approx(3.0667 * macs)
    assert wide.by("direction")["operate"] == pytest.approx(macs)


HEAD = "point,network,hardware,method,accounting,batch,baseline,mode,energy,unit,reason,hardware.levels.DRAM.access_energy"
MIXED = [
    "0,n,eyeriss,fp,a,1,fp,training,300,MAC (int16),,12.5",
    "1,n,v100,fp,a,1,fp,training,200,MAC (fp32),,6.25",
]


def table(tmp_path, *rows):
    (tmp_path / "t.csv").write_text("\n".join([HEAD, *rows]) + "\n")


def test_energies_in_two_macs_are_not_ranked(hwmodel, tmp_path):
    """300 16-bit MACs are 98 32-bit ones: less than 200, and would come second."""
    table(tmp_path, *MIXED)
    said = "column energy has energies in MAC (fp32) and in MAC (int16), which cannot be compared"
    for command in (
        ("best", "t.csv"),
        ("plot", "t.csv", "--kind", "lines", "--x", "batch", "-o", "f.svg"),
        ("plot", "t.csv", "--kind", "heatmap", "--x", "batch", "--y", "point", "-o", "f.svg"),
        ("plot", "t.csv", "--kind", "pareto", "--x", "batch", "-o", "f.svg"),
    ):
        code, out, err = hwmodel(*command)
        assert (code, out) == (2, "") and said in err and err.count("\n") == 1
    assert hwmodel("best", "t.csv", "--where", "hardware == v100")[0] == 0


def test_every_energy_of_best_and_of_a_heat_map_has_its_unit(hwmodel, tmp_path):
    table(tmp_path, MIXED[1], MIXED[1].replace("1,n", "2,n", 1).replace("6.25", "7"))
    _, out, _ = hwmodel("best", "t.csv")
    assert "hardware.levels.DRAM.access_energy, MAC (fp32)/bit" in out
    assert "energy, MAC (fp32)" in out
    axis = "hardware.levels.DRAM.access_energy"
    code, *_ = hwmodel(
        "plot", "t.csv", "--kind", "heatmap", "--x", axis, "--y", "point", "-o", "f.svg"
    )
    assert code == 0
    assert "DRAM.access energy, MAC (fp32)/bit" in (tmp_path / "f.svg").read_text()


def test_a_table_of_before_is_refused_in_one_line(hwmodel, tmp_path):
    where = "mlp-784-512-512-10", "--hardware", "v100", "--method", "fp"
    assert hwmodel("report", *where, "--csv", "t.csv", "--accounting", "paper")[0] == 0
    text = (tmp_path / "t.csv").read_text()
    (tmp_path / "t.csv").write_text(text.replace("MAC (fp32)", "MAC"))
    for command in (("verify", "t.csv"), ("plot", "t.csv", "-o", "f.svg")):
        code, out, err = hwmodel(*command)
        assert (code, out) == (2, "") and err.count("\n") == 1
        assert "unit 'MAC' does not say of which MAC, as tables of before did; make it anew" in err


def test_units_of_print_say_of_which_mac(hwmodel):
    where = "mlp-784-512-512-10", "--methods", "fp", "--hardware", f"{STACKED},v100"
    _, tex, _ = hwmodel("compare", *where, "--format", "latex", "--accounting", "paper")
    assert r"$10^{6}$\,MAC (int16)" in tex and r"$10^{6}$\,MAC (fp32)" in tex
    _, text, _ = hwmodel("compare", *where, "--format", "markdown", "--accounting", "paper")
    assert "10⁶ MAC (int16)" in text and "10⁶ MAC (fp32)" in text
