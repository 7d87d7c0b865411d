"""What may be compared with what is said alike in every view; energies of all chips have one unit."""

import csv
import json
import re

import pytest

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.views.latex import _text
from hwmodel.views.remarks import _static
from tests.page import parsed
from tests.specs import CHIP, GREEDY, NETWORK, written

ALIKE = "Figures of one column may be compared; across chips only percentages may"
STEPS = "Not stepped alike under accounting greedy: fp by adam; lion by lion."


def _after_doctype(path):
    return path.read_text().partition(">")[2]


@pytest.fixture
def made(hwmodel, tmp_path):
    """Every output of one comparison; the second chip costs a fiftieth of the first."""
    prices = [(f" {n} pJ", f" {n / 50:g} pJ") for n in (50, 5, 0.5, 4.6)]
    small = (("name: chip", "name: small"), *prices)
    for name, text, changes in (
        ("chip", CHIP, ()), ("small", CHIP, small), ("net", NETWORK, ()), ("greedy", GREEDY, ()),
    ):  # fmt: skip
        written(tmp_path, text, *changes, name=f"{name}.yaml")
    words = ("--hardware", "chip.yaml,small.yaml", "--accounting", "greedy.yaml", "--batch", "2")
    files = [x for name in ("t.tex", "t.md", "t.json") for x in ("-o", name)]
    code, out, err = hwmodel(
        "compare", "net.yaml", "--methods", "fp,lion", *words, "--optimal-tiles", "no",
        "--csv", "c.csv", "--html", "c.html", *files,
    )  # fmt: skip
    assert code == 0, err
    assert hwmodel("appendix", "c.csv", "-o", "a.html")[0] == 0
    pages = (parsed(_after_doctype(tmp_path / name)).text for name in ("c.html", "a.html"))
    texts = [(tmp_path / name).read_text() for name in ("t.tex", "t.md")]
    return dict(zip(("tex", "md", "html", "appendix"), (*texts, *pages), strict=True), screen=out)


def test_every_view_says_what_may_be_compared_and_who_steps_otherwise(made, tmp_path):
    for view, text in made.items():
        told = _text if view == "tex" else str
        assert told(STEPS) in text, view
        assert ALIKE in text, view
    assert json.loads((tmp_path / "t.json").read_text())["remarks"] == [STEPS]


def test_energies_of_all_chips_have_one_unit_and_the_least_three_digits(made, tmp_path):
    """The numbers are those of the CSV."""
    with (tmp_path / "c.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    lines = made["tex"].splitlines()
    units = re.findall(r"\((.*?)\)", next(x for x in lines if re.match(r" +& \(", x)))
    divisor = {"nJ": 1e3, "pJ": 1.0}[units[0]]
    assert units == [units[0], units[0], r"\%"] * 2
    body = {line.split("&")[0].strip(): line.replace(r" \\", "").split("&")[1:] for line in lines}
    for row in rows:
        at = 0 if row["hardware"] == "chip" else 3
        cells = [float(re.sub(r"\\textbf{(.*)}", r"\1", x.strip())) for x in body[row["method"]]]
        energy = float(row["energy"]) / divisor
        assert cells[at] == pytest.approx(energy, abs=0.051)
        assert cells[at + 1] == pytest.approx(energy / 2, rel=0.005)
    energies = [float(row["energy"]) for row in rows]
    assert max(energies) > 30 * min(energies)  # of units of their own they would have two


def test_static_energy_that_some_chips_have_in_theirs_is_said():
    v100, other, plain = (load(Hardware, name) for name in ("v100-board", "h100-board", "ascend"))
    full, paper = load(Accounting, "full"), load(Accounting, "paper")
    assert _static([v100, other, plain], full) == (
        "Static energy is in the energies of v100-board (accounting full); of h100-board it stands "
        "beside the time alone."
    )
    assert _static([v100, plain], full).endswith("of v100-board (accounting full) alone.")
    for chips, accounting in (([v100], full), ([other, plain], full), ([v100, plain], paper)):
        assert _static(chips, accounting) == ""
