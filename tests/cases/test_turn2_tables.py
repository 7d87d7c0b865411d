"""Tables: one meaning of the passes, and rows whose names and prices are their own (B7, B10 to B12).

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
from hwmodel.model.evaluate import COLUMNS
from hwmodel.model.ledger import Component
from hwmodel.model.reached import Reached
from hwmodel.rerun.tables import COMPARED
from hwmodel.rerun.verify import stated
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
    (line,) = table(hwmodel("compare", *asked, "--methods", "fp")[1])
    macs = 3 * 607_600_640 - 3_538_944
    assert float(line["compute"]) == pytest.approx(8_368_609_689.6, rel=1e-12)
    assert macs * 4.6 == pytest.approx(8_368_609_689.6, rel=1e-12)
    own = table(hwmodel("report", *asked, "--method", "fp")[1])
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
        ("report", "vgg-small-1fc", "--hardware", "ascend", "--method", "bold"),
        ("compare", "vgg-small-1fc", "--hardware", "ascend", "--methods", "fp,bold"),
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
