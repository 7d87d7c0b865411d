"""Tables: prices of integers, one meaning of the passes, rows of their own (B3 to B7, B10 to B12).

The sums here are made of the cells of a report's CSV alone: of each price how often it is paid, a
whole number, then counts times prices.
"""

import csv
import io
import subprocess
import sys
from math import fsum
from pathlib import Path
from typing import get_args

import pytest

from hwmodel.errors import DataError
from hwmodel.model.ledger import Component
from hwmodel.model.reached import Reached
from hwmodel.model.report import COLUMNS
from hwmodel.rerun.tables import COMPARED
from hwmodel.rerun.verify import stated
from hwmodel.specs.files import bundled
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.provenance import COLUMNS as PROVENANCE
from hwmodel.specs.provenance import FORMAT
from hwmodel.vary.sweep.results import read_results
from hwmodel.views.plot import read_records
from hwmodel.work.tensor import Direction, Pass, Role
from hwmodel.work.work import Kind
from tests.page import number, parsed, rows

DATA = Path(__file__).parent.parent / "data" / "turn2"
PASSES = ("forward", "backward_input", "backward_weight", "update")
COMPONENTS = ("product", "elementwise")
NAME = ("layer", "pass", "component", "tensor", "role", "memory", "operation", "direction")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def summed(lines, **where):
    """Energy of the rows that match: how often each price is paid, times the price."""
    counts = {}
    for line in lines:
        if all(line[column.rstrip("_")] == value for column, value in where.items()):
            width = line["bits"] if line["operation"] else ""
            key = line["direction"], line["memory"], line["operation"], width, line["price"]
            counts[key] = counts.get(key, 0) + int(line["count"])
    return fsum(count * float(key[-1]) for key, count in counts.items())


# B3 to B6: additions, accumulation, multipliers of two widths, bit operations


def operations(lines, layer, pass_="forward"):
    """Of a product's pass: kind -> (width, count, price), one row each."""
    found = [
        line for line in lines
        if (line["layer"], line["pass"], line["component"]) == (layer, pass_, "product")
        and line["operation"]
    ]  # fmt: skip
    cells = {x["operation"]: (int(x["bits"]), int(x["count"]), float(x["price"])) for x in found}
    assert len(cells) == len(found)
    return cells


def test_an_8_bit_addition_costs_no_more_than_an_8_bit_multiply_add(hwmodel):
    """B3: a MAC of 2 / 1.7 pJ; 8 bit a twentieth, an addition 2 x 8 - 1 logic of a thousandth."""
    asked = ("vgg-small", "--hardware", "ascend", "--method", DATA / "tern.yaml")
    lines = table(hwmodel("report", *asked, "--accounting", "paper", "--csv", "-")[1])
    macs, mac = 128 * 128 * 9 * 32 * 32, 2 / 1.7
    for pass_ in ("forward", "backward_input"):
        ((bits, count, price),) = operations(lines, "conv2", pass_).values()
        assert (bits, count) == (8, macs)
        assert price == pytest.approx(15 * 0.001 * mac)
    assert operations(lines, "conv2", "backward_weight") == {
        "int-mac": (8, macs, pytest.approx(0.05 * mac))
    }


TERNARY = (DATA / "c_ffn.yaml", "--mode", "inference", "--csv", "-")
BITNET = (DATA / "c_bitnet.yaml").read_text(encoding="utf-8")
DOWN = 6912 * 2560  # multiply-adds of the layer, of sums of 6,912 terms: 13 bit


@pytest.mark.parametrize("word", ["add", "int-add"])
@pytest.mark.parametrize(
    ("accounting", "bits", "pj"),
    [("paper", 8, 0.007), ("full", 8 + 13, 0.007 + 13 / 24 * (0.03 - 0.007))],
)
def test_ternary_weights_are_integer_additions(hwmodel, tmp_path, word, accounting, bits, pj):
    """B4: the chip states 0.007 pJ of 8 bit and 0.03 of 32; 21 bit lie between them."""
    (tmp_path / "m.yaml").write_text(BITNET.replace("forward: add", f"forward: {word}"))
    asked = (*TERNARY, "--hardware", "tpuv4i", "--method", "m.yaml", "--accounting", accounting)
    found = operations(table(hwmodel("report", *asked)[1]), "down")
    assert found == {"int-add": (bits, DOWN, pytest.approx(pj, rel=1e-12))}


def test_the_published_ratio_of_ternary_to_half_words_comes_out(hwmodel, tmp_path):
    """B4: (0.16 + 0.34) / 0.007 = 71.4, of operations at the width of the inputs."""
    chip = bundled(Hardware)["tpuv4i"].read_text(encoding="utf-8")
    assert "energy: 0.32 pJ" in chip  # bf16; the ratio is of fp16
    (tmp_path / "chip.yaml").write_text(chip.replace("energy: 0.32 pJ", "energy: 0.50 pJ"))
    spent = []
    for method in ("fp16", DATA / "c_bitnet.yaml"):
        asked = (*TERNARY, "--hardware", "chip.yaml", "--method", method, "--accounting", "paper")
        lines = table(hwmodel("report", *asked)[1])
        spent.append(summed(lines, layer="down", direction="operate"))
    assert spent[0] / spent[1] == pytest.approx((0.16 + 0.34) / 0.007)
    assert spent[0] / spent[1] == pytest.approx(71.4, abs=0.05)


GROUPED = """\
version: 1
name: grouped
title: Two groups, then a stride
input: [8, 8, 8]
layers:
  - {name: first, kind: conv, channels: 64, kernel: 1}
  - {name: conv, kind: conv, channels: 32, kernel: 3, padding: 1, groups: 2}
  - {name: strided, kind: conv, channels: 16, kernel: 3, padding: 1, stride: 2}
  - {name: last, kind: linear, features: 4}
"""


def int_add_at_45_nm(bits):
    """Horowitz: 0.03, 0.05 and 0.1 pJ at 8, 16 and 32 bit; between them a straight line."""
    assert 16 <= bits <= 32
    return pytest.approx(0.05 + (bits - 16) / 16 * 0.05, rel=1e-12)


@pytest.mark.parametrize(
    ("layer", "pass_", "macs", "fan_in"),
    [
        ("conv", "forward", 32 * 32 * 9 * 64, 32 * 9),  # C/g K K
        ("conv", "backward_input", 32 * 32 * 9 * 64, 16 * 9),  # M/g K K
        ("conv", "backward_weight", 32 * 32 * 9 * 64, 4 * 8 * 8),  # N HO WO
        ("strided", "forward", 16 * 32 * 9 * 16, 32 * 9),
        ("strided", "backward_input", 16 * 32 * 9 * 16, 16 * 4),  # 2 x 2 taps of 3 x 3 meet no zero
        ("strided", "backward_weight", 16 * 32 * 9 * 16, 4 * 4 * 4),
    ],
)
def test_every_product_pays_for_its_sum_at_the_width_of_the_accumulator(
    hwmodel, tmp_path, layer, pass_, macs, fan_in
):
    """B5: 8 x 8 bit are 16, and a bit more for each doubling of the terms."""
    (tmp_path / "n.yaml").write_text(GROUPED)
    asked = ("n.yaml", "--hardware", "horowitz45", "--method", "int8", "--batch", "4")
    lines = table(hwmodel("report", *asked, "--accounting", "full", "--csv", "-")[1])
    bits = 16 + {288: 9, 144: 8, 256: 8, 64: 6}[fan_in]
    assert operations(lines, layer, pass_) == {
        "int-mul": (8, 4 * macs, pytest.approx(0.2)),
        "int-add": (bits, 4 * macs, int_add_at_45_nm(bits)),
    }


def test_a_boolean_signal_is_accumulated_as_wide_as_its_sum(hwmodel, tmp_path):
    """B5: 16-bit signals, sums of 144 and 256 terms: 24 bit, so 47 logic operations a MAC."""
    (tmp_path / "n.yaml").write_text(GROUPED)
    asked = ("n.yaml", "--hardware", "horowitz45", "--method", "bold", "--batch", "4")
    lines = table(hwmodel("report", *asked, "--accounting", "full", "--csv", "-")[1])
    for pass_ in ("backward_input", "backward_weight"):
        ((bits, count, price),) = operations(lines, "conv", pass_).values()
        assert (bits, count) == (1, 4 * 32 * 32 * 9 * 64 * 47)
        assert price == pytest.approx(0.1 / 63)
    ((_, count, _),) = operations(lines, "conv").values()
    assert count == 4 * 32 * 32 * 9 * 64 * 18  # an XNOR and 2 x 9 - 1, for sums of 288 terms


def test_a_shifted_word_is_added_as_wide_as_the_shift_reaches(hwmodel, tmp_path):
    """B5: 4 bit by a power of two of 4 bit, a sign and 3 of exponent: 7 places, then the terms."""
    (tmp_path / "n.yaml").write_text(GROUPED)
    asked = ("n.yaml", "--hardware", "horowitz45", "--method", "luq", "--batch", "4")
    lines = table(hwmodel("report", *asked, "--accounting", "full", "--csv", "-")[1])
    for pass_, terms in (("backward_input", 8), ("backward_weight", 8)):  # of 144 and 256
        ((bits, _, price),) = operations(lines, "conv", pass_).values()
        assert bits == 4 + 7 + terms and price == int_add_at_45_nm(bits)
    assert operations(lines, "conv")["int-mul"][::2] == (4, pytest.approx(0.2 / 4))


def test_a_sum_is_as_wide_as_it_may_leave(hwmodel, tmp_path):
    """B5: sums of 25 and 24 bit in accumulators of 20."""
    (tmp_path / "n.yaml").write_text(GROUPED)
    (tmp_path / "a.yaml").write_text(
        "version: 1\nname: a\ntitle: A\nbased_on: full\nwidths: {partial_sum_bits: 20}\n"
    )
    asked = ("n.yaml", "--hardware", "horowitz45", "--method", "int8", "--accounting", "a.yaml")
    lines = table(hwmodel("report", *asked, "--csv", "-")[1])
    for pass_ in ("forward", "backward_input"):
        assert operations(lines, "conv", pass_)["int-add"][::2] == (20, int_add_at_45_nm(20))


WIDTHS = """\
version: 1
name: w{bits}a8
title: Weights of {bits} bit, inputs of 8
sources: {{me: "made up"}}
layers:
  - {{where: {{position: [first, last]}}, precision: fp, source: me}}
  - {{precision: int8, weights: {bits}, source: me}}
tensors:
  - {{bits: 8, signal: full_precision, source: me}}
"""


def test_a_multiplier_costs_by_both_widths(hwmodel, tmp_path):
    """B6: 2, 4 and 8 of the 8 x 8 cells of 0.2 pJ; sums of 6,912 terms, 13 bit."""
    spent, said = {}, {}
    for bits in (2, 4, 8):
        (tmp_path / f"w{bits}.yaml").write_text(WIDTHS.format(bits=bits))
        method = ("--method", f"w{bits}.yaml")
        asked = (*TERNARY, "--hardware", "horowitz45", *method, "--accounting", "full")
        _, out, said[bits] = hwmodel("report", *asked)
        found = operations(table(out), "down")
        total = bits + 8 + 13
        assert found == {
            "int-mul": (8, DOWN, pytest.approx(0.2 * bits / 8)),
            "int-add": (total, DOWN, int_add_at_45_nm(total)),
        }
        spent[bits] = summed(table(out), layer="down", direction="operate")
        shown = table(hwmodel("network", "show", TERNARY[0], *method, "--csv", "-")[1])
        bops = {line["layer"]: int(line["bops"]) for line in shown}
        assert bops["down"] == DOWN * bits * 8
        assert bops["a"] == 2560 * 64 * 32 * 32  # in full precision, the network's input, too
    assert spent[2] < spent[4] < spent[8]
    assert (
        "by width (docs/model.md section 5): int-add of 23 bit; int-mul of 2 x 8 bit; an int-mac of 8 bit is "
        in said[2]
    )


def test_bit_operations_of_all_passes_stand_beside_the_energy(hwmodel):
    """B6: MACs x 8 x 8 for each pass of int8, and the sum of the layers."""
    asked = ("mlp-784-512-512-10", "--hardware", "ascend", "--method", "int8", "--csv", "t.csv")
    out = hwmodel("report", *asked)[1]
    last = {line.split()[0]: line.split()[-1] for line in out.splitlines() if line.split()}
    macs = {"fc1": 784 * 512, "fc2": 512 * 512, "fc3": 512 * 10}
    passes = {"fc1": 2, "fc2": 3, "fc3": 3}  # nothing wants a signal before the first layer
    wanted = {name: 64 * passes[name] * macs[name] for name in macs}
    assert {name: last[name] for name in macs} == {n: f"{x:,}" for n, x in wanted.items()}
    assert last["all"] == f"{sum(wanted.values()):,}"


# B7: one meaning of the passes


@pytest.mark.parametrize("accounting", ["paper", "full"])
@pytest.mark.parametrize(
    ("network", "methods"),
    [
        ("vgg-small", ("fp", "bold", "bold-bn", "xnor-net")),
        ("resnet18", ("fp", "bold", "binaryconnect")),
        ("mlp-784-512-512-10", ("fp", "bold")),
    ],
)
def test_compare_has_the_sums_of_the_report_to_the_last_digit(
    hwmodel, network, methods, accounting
):
    asked = (network, "--hardware", "ascend", "--accounting", accounting, "--csv", "-")
    lines = table(hwmodel("compare", *asked, "--methods", ",".join(methods))[1])
    assert [line["method"] for line in lines] == list(methods)
    for line in lines:
        own = table(hwmodel("report", *asked, "--method", line["method"])[1])
        read, written = (summed(own, direction=way) for way in ("read", "write"))
        wanted = {
            "energy": summed(own),
            **{name: summed(own, pass_=name) for name in PASSES},
            **{
                f"{name}_{part}": summed(own, pass_=name, component=part)
                for name in PASSES[:3]
                for part in COMPONENTS
            },
            "compute": summed(own, direction="operate"),
            "memory": fsum((read, written)),
        }
        assert {name: line[name] for name in wanted} == {n: repr(e) for n, e in wanted.items()}
        for name in PASSES[:3]:
            parts = fsum(float(line[f"{name}_{part}"]) for part in COMPONENTS)
            assert parts == pytest.approx(float(line[name]), rel=1e-12)
        assert summed(own, pass_="update", component="product") == 0
        energies = fsum(float(row["energy"]) for row in own)
        assert energies == pytest.approx(float(line["energy"]), rel=1e-12)


def test_a_page_says_of_a_pass_the_same_in_all_its_tables(hwmodel, tmp_path):
    asked = ("vgg-small", "--hardware", "ascend", "--method", "bold", "--accounting", "full")
    assert hwmodel("report", *asked, "--html", "r.html", "--csv", "r.csv")[0] == 0
    own = table((tmp_path / "r.csv").read_text())
    tree = parsed((tmp_path / "r.html").read_text(encoding="utf-8"))
    _, *parts = dict(rows(tree.one("table", id="c1-parts")))["bold"]
    *parts, step, _, _ = map(number, parts)
    beside = [*(fsum(parts[i : i + 2]) for i in (0, 2, 4)), step]
    cells = [*tree.one("table", id="d1-layers").one("tfoot").all("td")]
    foot = [number(cell) for cell in cells[1:5]]
    wanted = [summed(own, pass_=name) for name in PASSES]
    assert beside == pytest.approx(wanted, rel=1e-8)
    assert foot == pytest.approx(wanted, rel=1e-8)


# B10: names of users and words of the tool


@pytest.mark.parametrize("chip", ["hw_lvl_compute", "hw_ok"])
def test_a_memory_may_be_called_as_the_tool_calls_operations(hwmodel, chip):
    """VGG-small-1fc has 607,600,640 MACs; thrice, without the signal of conv1's 3,538,944."""
    asked = ("vgg-small-1fc", "--hardware", DATA / f"{chip}.yaml", "--csv", "-")
    (line,) = table(hwmodel("compare", *asked, "--methods", "fp", "--accounting", "paper")[1])
    macs = 3 * 607_600_640 - 3_538_944
    assert float(line["compute"]) == pytest.approx(8_368_609_689.6, rel=1e-12)
    assert macs * 4.6 == pytest.approx(8_368_609_689.6, rel=1e-12)
    own = table(hwmodel("report", *asked, "--method", "fp", "--accounting", "paper")[1])
    assert {row["operation"] for row in own if row["direction"] == "operate"} == {"mac"}
    assert sum(int(row["count"]) for row in own if row["operation"]) == macs
    assert {row["memory"] for row in own} == {"", "DRAM", {"hw_ok": "L0"}.get(chip, "compute")}


def test_the_name_of_a_memory_moves_no_number(hwmodel):
    said = {}
    for chip in ("hw_lvl_compute", "hw_ok"):
        asked = ("vgg-small-1fc", "--hardware", DATA / f"{chip}.yaml", "--methods", "fp,bold")
        lines = table(hwmodel("compare", *asked, "--accounting", "paper,full", "--csv", "-")[1])
        said[chip] = [list(line.values())[4:-3] for line in lines]
    assert said["hw_lvl_compute"] == said["hw_ok"]


# B11: reads and writes have rows, and prices, of their own


def test_every_price_of_a_memory_is_one_of_its_two(hwmodel):
    """Read at 1 pJ a bit, written at 10."""
    asked = ("vgg-small-1fc", "--hardware", DATA / "nvm.yaml", "--method", "fp")
    own = table(hwmodel("report", *asked, "--accounting", "full", "--csv", "-")[1])
    paid = {(row["direction"], row["price"]) for row in own if row["memory"] == "NVM"}
    assert paid == {("read", "1.0"), ("write", "10.0")}
    for row in own:
        width = 1 if row["operation"] else int(row["bits"])
        assert int(row["count"]) == int(row["elements"]) * width
        assert float(row["energy"]) == int(row["count"]) * float(row["price"])


# B12: no two rows have one name


@pytest.mark.parametrize("network", [DATA / "dup.yaml", "bert-base"])
@pytest.mark.parametrize("method", ["fp", "bold"])
def test_no_two_rows_have_one_name(hwmodel, network, method):
    asked = (network, "--hardware", "ascend", "--method", method, "--accounting", "full")
    own = table(hwmodel("report", *asked, "--csv", "-")[1])
    names = [tuple(row[column] for column in NAME) for row in own]
    assert len(set(names)) == len(names) > 50


# Tables of the format before


OLD = {
    "report": "network,layer,pass,component,tensor,level,accesses,bits,energy,unit\n"
    "n,a,forward,memory,I,L2,1,8,1.0,pJ\n",
    "compare": "network,method,energy,unit,forward,elementwise,compute\nn,fp,1.0,pJ,1.0,0.0,0.0\n",
    "sweep": "point,network,energy,unit,forward,elementwise,reason\n0,n,1.0,pJ,1.0,0.0,\n",
}
MADE = ("version,inputs_sha256,command", "0.1,abc,hwmodel compare n --methods fp")


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("report", ("verify",)), ("compare", ("verify",)), ("sweep", ("verify",)),
        ("report", ("plot", "-o", "x.svg")), ("compare", ("plot", "-o", "x.svg")),
        ("sweep", ("plot", "-o", "x.svg", "--x", "energy", "--y", "forward")), ("sweep", ("best",)),
    ],
)  # fmt: skip
def test_a_table_of_format_1_is_told_and_how_to_make_it_anew(hwmodel, tmp_path, kind, words, made):
    lines = OLD[kind].splitlines()
    if made:
        lines = [f"{line},{more}" for line, more in zip(lines, MADE, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    end = ", hwmodel compare n --methods fp" if made else ""
    assert hwmodel(words[0], "t.csv", *words[1:]) == (
        2, "", f"hwmodel: t.csv: is a table of format 1, and format 2 is read: make it anew{end}\n"
    )  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_table_of_another_tool_is_not_taken_for_an_old_one(tmp_path):
    """A column called `level` or `elementwise` alone says nothing where the new ones stand, too."""
    path = tmp_path / "t.csv"
    path.write_text("level,direction,x\n1,2,3\n")
    for read in (read_records, stated, read_results):
        with pytest.raises(DataError) as told:
            read(path)
        assert "format" not in str(told.value)


# What a CSV for a pipe needs


@pytest.mark.parametrize(
    "words",
    [
        ("report", "mlp-784-512-512-10", "--hardware", "ascend", "--method", "bold"),
        ("compare", "mlp-784-512-512-10", "--hardware", "ascend", "--methods", "fp,bold"),
    ],
)
def test_a_csv_for_a_pipe_needs_neither_pandas_nor_matplotlib(tmp_path, words):
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(('pandas', 'matplotlib'))  # to import them is an error\n"
        "from hwmodel.cli import main\nmain()\n"
    )
    command = [sys.executable, "-c", code, *words, "--csv", "-"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": ":".join(sys.path), "HWMODEL_CACHE": "off"}, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(table(done.stdout)) > 1


# What is said of tables


def test_the_page_of_tables_has_every_column_role_and_the_format():
    text = (DATA.parent.parent.parent / "docs" / "tables.md").read_text(encoding="utf-8")
    assert f"**format {FORMAT}**" in text
    passes = [c for c in COMPARED if c.endswith(("_product", "_elementwise"))]
    assert len(passes) == 6  # told by the first two
    told = {*COLUMNS, *COMPARED, *Reached._fields, *PROVENANCE} - {*passes[2:]}
    for word in (*told, *Role, *Pass, *Component, *Direction, *get_args(Kind)):
        assert f"`{word}`" in text, word
