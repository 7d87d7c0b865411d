"""What stands on the screen: columns that hold something, numbers that can be read."""

import os
import re
import subprocess
import sys

import pytest

from tests.specs import CHIP, written
from tests.test_architecture import PACKAGE


def test_a_batch_has_its_energy_an_image(hwmodel):
    words = ("--hardware", "ascend", "--accounting", "paper", "--optimal-tiles", "no")
    net = "mlp-784-512-512-10"
    eight = hwmodel("compare", net, "--methods", "fp", "--batch", "8", *words, "--csv", "c.csv")[1]
    head = next(line for line in eight.splitlines() if "an image, " in line)
    row = next(line for line in eight.splitlines() if line.strip().startswith("fp "))
    names = re.split(r"\s{2,}", head.strip())
    assert names[1:3] == ["energy, µJ", "an image, µJ"]
    whole, each = (float(number) for number in row.split()[1:3])
    assert each == pytest.approx(whole / 8, abs=0.01)
    assert (
        "an image, " not in hwmodel("compare", net, "--methods", "fp", *words, "--csv", "c.csv")[1]
    )
    report = hwmodel("report", net, "--method", "fp", "--batch", "8", *words, "--csv", "r.csv")[1]
    rows = [re.split(r"\s{2,}", line.strip()) for line in report.splitlines()]
    sums = {row[0]: row[4] for row in rows if row[0] in ("all layers", "an image")}
    assert float(sums["an image"]) == pytest.approx(float(sums["all layers"]) / 8, abs=0.01)


def test_a_title_longer_than_its_table_is_one_line_in_a_pipe(hwmodel):
    words = ("--hardware", "ascend", "--accounting", "paper", "--optimal-tiles", "no")
    more = ("--method", "fp", "--mode", "inference", "--csv", "r.csv")
    out = hwmodel("report", "mlp-784-512-512-10", *words, *more)[1]
    title, _, _, rule = out.splitlines()[:4]
    assert title.startswith("mlp-784-512-512-10 on ascend under fp: ") and "─" in rule
    assert title.endswith(", accounting paper, µJ") and len(title) > len(rule)


def test_what_is_published_of_nothing_has_no_column(hwmodel):
    words = (
        "--hardware",
        "ascend",
        "--accounting",
        "paper",
        "--optimal-tiles",
        "no",
        "--csv",
        "c.csv",
    )
    out = hwmodel("compare", "mlp-784-512-512-10", "--methods", "fp,int8", *words)[1]
    assert "published" not in out and "residual" not in out
    assert "published" in hwmodel("compare", "vgg-small", "--methods", "fp,bold", *words)[1]


def test_numbers_beyond_counting_have_a_power_and_not_all_their_digits(hwmodel, tmp_path):
    written(tmp_path, CHIP, ("4.6 pJ", "1e100 pJ"), name="dear.yaml")
    words = ("--hardware", "dear.yaml", "--accounting", "paper", "--optimal-tiles", "no")
    net = "mlp-784-512-512-10"
    for more in (("--csv", "c.csv"), ("--format", "latex"), ("--format", "markdown")):
        code, out, err = hwmodel("compare", net, "--methods", "fp", *words, *more)
        assert code == 0, err
        shown = re.sub(r"% hwmodel.*|inputs.*", "", out)
        assert "e+9" in shown and not re.search(r"[\d,]{25}", shown)


def test_a_terminal_of_ascii_has_uj_in_place_of_a_question_mark(tmp_path):
    command = (sys.executable, "-m", "hwmodel", "compare", "mlp-784-512-512-10")
    words = ("--hardware", "ascend", "--methods", "fp", "--accounting", "paper", "--csv", "c.csv")
    ascii_ = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([*command, *words, "--optimal-tiles", "no"], env=ascii_, cwd=tmp_path, capture_output=True)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert b"energy, uJ" in run.stdout and b"?" not in run.stdout
