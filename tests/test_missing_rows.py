"""Rows without an energy, and tables with rows of several kinds: what views say of them.

A network of 16, 128, 128 and 8 values has 8 + 64 + 4 KiB of weights in full precision, 8 + 2 + 4
under BOLD; the small chip's outermost memory has 32 KiB.
"""

import csv

import pytest

from tests.test_chips import CHIP, written

SIZES = {"a": 128, "b": 128, "c": 8}
LAYERS = ", ".join(f"{{name: {n}, kind: linear, features: {size}}}" for n, size in SIZES.items())
COMPARE = ("compare", "n.yaml", "--hardware", "small.yaml,large.yaml", "--methods", "fp,bold")
ONE = ("--accounting", "full", "--mode", "inference", "--batch", "1,2")
ACCURATE = ("--accuracy", "fp=92", "--accuracy", "bold=90")


@pytest.fixture
def table(hwmodel, tmp_path):
    named = CHIP.splitlines()
    name = next(line for line in named if line.startswith("name:"))
    outermost = next(line for line in named if "capacity: unlimited" in line)
    for size, capacity in (("small", "32 KiB"), ("large", "unlimited")):
        own = (name, f"name: {size}"), (outermost, outermost.replace("unlimited", capacity))
        written(tmp_path, CHIP, *own, name=f"{size}.yaml")
    (tmp_path / "n.yaml").write_text(
        f"{{version: 1, name: n, title: n, input: [16, 1, 1], layers: [{LAYERS}]}}"
    )
    code, out, err = hwmodel(*COMPARE, *ONE, "-o", "t.csv", "-o", "t.tex")
    assert code == 1 and out.count("No room in ") == 1
    assert "2 lines of 8 without an energy" in err and "No room" not in err  # told once
    return tmp_path / "t.csv"


def energies(table):
    return {
        (row["hardware"], row["method"], row["batch"]): row["energy"]
        for row in csv.DictReader(table.read_text().splitlines())
    }


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_latex_says_below_the_table_why_a_cell_is_empty(table):
    missing = [key for key, energy in energies(table).items() if not energy]
    assert missing == [("small", "fp", "1"), ("small", "fp", "2")]
    tex = table.with_suffix(".tex").read_text()
    printed = "\n".join(line for line in tex.splitlines() if not line.startswith("%"))
    assert "-- on small: no room in memory (fp)." in printed


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_what_has_no_room_has_a_peak_and_bars_say_so(hwmodel, table):
    """76 KiB of weights, and at the second layer 128 words in and 128 out of each image, in 32."""
    rows = [*csv.DictReader(table.read_text().splitlines())]
    unfit = [row for row in rows if not row["energy"]]
    lacking = {row["batch"]: (row["lacking_memory"], row["lacking_bytes"]) for row in unfit}
    assert lacking == {"1": ("DRAM", str(45 * 2**10)), "2": ("DRAM", str(46 * 2**10))}
    assert {row["lacking_bytes"] for row in rows if row["energy"]} == {""}
    peaks = {row["batch"]: int(row["peak_bytes"]) for row in unfit}
    assert peaks == {batch: 76 * 2**10 + int(batch) * 256 * 4 for batch in ("1", "2")}
    for kind in ("methods", "passes"):
        assert hwmodel("plot", "t.csv", "-o", "a.svg", "--kind", kind, "--no-title")[0] == 0
        drawn = (table.parent / "a.svg").read_text()
        assert "DRAM lacks 45 KiB" in drawn and "DRAM lacks 46 KiB" in drawn
        assert "no energy" not in drawn


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_rows_of_a_comparison_are_chosen_for_a_figure(hwmodel, table):
    """What is drawn of the rows that stay is what is drawn of a table of these alone."""
    words = ("--where", "batch == 2 and hardware == large", "--no-title")
    assert hwmodel("plot", "t.csv", "-o", "a.svg", *words)[0] == 0
    lines = table.read_text().splitlines(keepends=True)
    kept = [
        line for line in lines if line.startswith("network,") or ",large,full,inference,2," in line
    ]
    assert len(kept) == 3
    (table.parent / "b.csv").write_text("".join(kept))
    assert hwmodel("plot", "b.csv", "-o", "b.svg", "--no-title")[0] == 0
    assert (table.parent / "a.svg").read_bytes() == (table.parent / "b.svg").read_bytes()
    code, _, err = hwmodel("plot", "t.csv", "-o", "c.svg", "--where", "method == binarynet")
    assert (code, err.splitlines()[-1]) == (
        2, "hwmodel: no row keeps 'method == binarynet'; method is by name, not by label: bold, fp"
    )  # fmt: skip
    code, _, err = hwmodel("plot", "t.csv", "-o", "c.svg", "--where", "bach == 2")
    assert code == 2 and "batch" in err
    assert not (table.parent / "c.svg").exists()


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_a_panel_in_which_nothing_has_a_point_is_told_and_not_drawn(hwmodel, table):
    words = ("--kind", "pareto", *ACCURATE, "--no-title")
    rows = table.read_text().splitlines(keepends=True)
    table.write_text("".join(row for row in rows if ",bold,small" not in row))
    code, out, err = hwmodel("plot", "t.csv", "-o", "a.svg", *words)
    assert code == 0
    assert "; no point on small, batch 1 and small, batch 2" in out + err
    drawn = (table.parent / "a.svg").read_text()
    assert drawn.count("large, batch") == 2 and "small, batch" not in drawn


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_best_says_that_energies_are_of_batches_and_chips_that_differ(hwmodel, table):
    _, out, err = hwmodel("best", "t.csv")
    said = out + err
    assert "several values of batch and of hardware" in said
    assert "--where 'batch == " in said
    _, out, err = hwmodel("best", "t.csv", "--where", "batch == 1 and hardware == large")
    assert "several values" not in out + err


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_what_fits_nowhere_has_a_table_all_the_same(hwmodel, table, tmp_path):
    words = ("--hardware", "small.yaml", "--methods", "fp", *ONE)
    code, out, err = hwmodel(
        "compare", "n.yaml", *words, "-o", "f.csv", "-o", "f.pdf", "-o", "f.tex"
    )
    assert code == 1 and "2 lines of 2 without an energy" in err
    said = "fp at batch 1 (45 KiB too much), fp at batch 2 (46 KiB too much)"
    assert f"No room in DRAM for {said}: `hwmodel memory`" in out
    rows = [*csv.DictReader((tmp_path / "f.csv").read_text().splitlines())]
    assert [row["energy"] for row in rows] == ["", ""] and all(r["lacking_bytes"] for r in rows)
    assert (tmp_path / "f.pdf").stat().st_size
    assert "-- on small: no room in memory (fp)." in (tmp_path / "f.tex").read_text()
    assert hwmodel("verify", "f.csv")[0] == 0
    code, out, _ = hwmodel("compare", "n.yaml", *words[:-2], "--batch", "1")
    assert code == 1 and "forward of b, DRAM has to hold" in out  # of one run it is said in full


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_best_tells_of_rows_left_out_those_that_keep_the_condition(hwmodel, table):
    assert "2 rows without energy left out" in hwmodel("best", "t.csv")[2]
    assert "left out" not in hwmodel("best", "t.csv", "--where", "hardware == large")[2]
    said = hwmodel("best", "t.csv", "--where", "batch == 2")[2]
    assert "1 row without energy left out: n, fp, small, full, 2" in said


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_two_accuracies_of_one_method_are_refused(hwmodel, table):
    words = ("--kind", "pareto", "--accuracy", "fp=92,bold=90")
    assert hwmodel("plot", "t.csv", "-o", "a.svg", *words)[0] == 0
    code, _, err = hwmodel("plot", "t.csv", "-o", "b.svg", *words, "--accuracy", "fp=93")
    assert code == 2 and "--accuracy fp=93: fp has 92 already" in err
    assert not (table.parent / "b.svg").exists()
