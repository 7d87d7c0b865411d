"""Every number of the README's table, made anew."""

import csv
import re
from pathlib import Path

import pytest

from hwmodel import evaluate
from hwmodel.graph.network import zoo
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.published import published_tables
from hwmodel.vary.paths import leaves
from hwmodel.vary.readings import all_readings
from hwmodel.views.figures.canvas import STYLES
from tests.test_figures import EXAMPLE

ROOT = Path(__file__).parent.parent
TABLE = (ROOT / "README.md").read_text(encoding="utf-8").split("## What it does beyond")[1]
ROWS = [line for line in TABLE.split("\n## ")[0].splitlines() if line.startswith("| ")]


def said(words):
    """The numbers of the only row that says so, without those within words."""
    (row,) = (line for line in ROWS if words in line)
    return [
        float(number)
        for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])", row.split("|")[2])
    ]


def test_percentages_are_those_of_the_example():
    """Whose table `tests/test_docs.py` makes anew."""
    with EXAMPLE.open(encoding="utf-8") as stream:
        rows = [
            r for r in csv.DictReader(stream) if (r["method"], r["hardware"]) == ("bold", "ascend")
        ]
    of = {row["accounting"]: round(float(row["percent_of_baseline"]), 2) for row in rows}
    assert said("whole training iteration") == [of["paper"], of["chip"]]


def test_counts_are_what_there_is():
    tables = published_tables().values()
    energies = sum(len(figure.energy_percent) for table in tables for figure in table.figures)
    assert said("row by row") == [len(tables), energies]
    assert said("every reading") == [len(list(all_readings()))]
    with (ROOT / "tests" / "data" / "third_party_spatial.csv").open() as stream:
        counts = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    assert said("what other tools count") == [len(counts)]
    assert len({row["tool"] for row in counts}) == 6
    assert said("draws and sets") == [len(STYLES)]
    over(
        said("moves every constant"),
        leaves(load(Hardware, "ascend")),
        leaves(load(Accounting, "full")),
    )
    over(said("comes with"), zoo(), bundled(Method), bundled(Hardware))


def test_measured_figures_are_counted_as_the_page_counts_them():
    """Whose counts `tests/test_measured_chips.py` makes of the rows."""
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    (counts,) = re.findall(
        r"(?s)All (\d+) figures .*?Of the figures (\d+) within 10 %, (\d+) within 25 %, (\d+) within "
        r"a factor of two, (\d+) off",
        page,
    )
    total, tenth, quarter, twice, off = map(float, counts)
    assert said("measured chips") == [total, tenth, 10, quarter, 25, twice, off]


def over(numbers, *collections):
    """See that there are more than is said."""
    for number, found in zip(numbers, collections, strict=True):
        assert number < len(found)


def test_rows_of_a_layer_are_those_of_its_report():
    rows = evaluate("vgg-small", "ascend", "bold", accounting="paper").table
    assert said("shows every factor") == [len(rows.query("layer == 'conv3'"))]


@pytest.mark.parametrize("path", ["docs/index.md", "docs/tutorial.ipynb"])
def test_the_five_minutes_are_there(path):
    assert path in TABLE and (ROOT / path).is_file()
