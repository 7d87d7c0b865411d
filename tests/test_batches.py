"""Several batches of one comparison: each is what it is alone, and every output tells them apart."""

import csv
import json
import re

import pytest

import hwmodel as package
from hwmodel import HwmodelError, compare

NETWORK, CHIPS, METHODS = "vgg-small-1fc", ("ascend", "v100"), ("fp", "bold")
COMPARE = ("compare", NETWORK, "--hardware", ",".join(CHIPS), "--methods", ",".join(METHODS))
PAPER = ("--accounting", "paper", "--optimal-tiles", "no")


def rows(path):
    with path.open() as stream:
        return list(csv.DictReader(stream))


def made(hwmodel, name, *more):
    code, out, err = hwmodel(*COMPARE, *PAPER, *more, "-o", name)
    assert code == 0, err
    return out


def test_each_batch_has_the_numbers_that_it_has_alone(hwmodel, tmp_path):
    made(hwmodel, "both.csv", "--batch", "1,64")
    both, found = rows(tmp_path / "both.csv"), []
    for batch in ("1", "64"):
        made(hwmodel, "one.csv", "--batch", batch)
        alone = rows(tmp_path / "one.csv")
        assert {row["batch"] for row in alone} == {batch}
        found += alone
    places = [
        (chip, batch, method) for chip in CHIPS for batch in ("1", "64") for method in METHODS
    ]
    assert [(row["hardware"], row["batch"], row["method"]) for row in both] == places
    numbers = [c for c in both[0] if c not in ("inputs_sha256", "command")]
    by_place = {(row["hardware"], row["batch"], row["method"]): row for row in found}
    for row in both:
        alone = by_place[row["hardware"], row["batch"], row["method"]]
        assert [row[c] for c in numbers] == [alone[c] for c in numbers]
    assert "--batch 1,64 " in both[0]["command"]


@pytest.mark.parametrize("accumulated", [(), ("--accumulate", "3")])
def test_the_table_on_the_screen_names_the_batch_of_each_line(hwmodel, accumulated):
    code, out, err = hwmodel(*COMPARE, *PAPER, "--batch", "1,64", *accumulated)
    assert code == 0, err
    assert out.count("energy of one training iteration of the batch listed") == len(CHIPS)
    assert ("3 of them added up" in out) == bool(accumulated)
    lines = re.findall(r"^ *(fp|bold) +(\d+) ", out, re.MULTILINE)
    assert lines == [(m, b) for _ in CHIPS for b in ("1", "64") for m in METHODS]
    assert "_training_batch1+64_" in err


def test_one_batch_has_no_column_of_its_own_on_the_screen(hwmodel):
    _, out, _ = hwmodel(*COMPARE, *PAPER, "--batch", "64", "--csv", "c.csv")
    assert "iteration of 64 images" in out and "batch listed" not in out


def test_verify_bundle_and_appendix_know_the_batches(hwmodel, tmp_path):
    made(hwmodel, "both.csv", "--batch", "1,64")
    assert hwmodel("verify", "both.csv")[0] == 0
    assert hwmodel("bundle", "both.csv", "-o", "b.zip")[0] == 0
    assert hwmodel("verify", "b.zip")[0] == 0
    assert hwmodel("appendix", "both.csv", "-o", "a.html")[0] == 0
    page = (tmp_path / "a.html").read_text()
    assert "batch 1 and 64, accounting paper; analytical" in page
    for words in ("fp (batch 1)", "bold (batch 64)"):
        assert page.count(words) == len(CHIPS)
    text = (tmp_path / "both.csv").read_text()
    energy = next(row["energy"] for row in rows(tmp_path / "both.csv") if row["batch"] == "64")
    (tmp_path / "wrong.csv").write_text(text.replace(energy, f"1{energy}"))
    code, out, _ = hwmodel("verify", "wrong.csv")
    assert code == 1 and "64" in out


def test_latex_html_json_and_figures_tell_batches_apart(hwmodel, tmp_path):
    outputs = [x for name in ("t.tex", "t.json", "t.svg") for x in ("-o", name)]
    code, _, err = hwmodel(
        *COMPARE, *PAPER, "--batch", "1,64", "--mode", "inference", *outputs, "--html", "t.html"
    )
    assert code == 0, err
    tex = (tmp_path / "t.tex").read_text()
    assert ", at the batch listed, on " in tex
    assert len(re.findall(r"^ *(?:fp|bold) *& *(?:1|64) *&", tex, re.MULTILINE)) == 4
    page = (tmp_path / "t.html").read_text()
    assert "<h3>ascend, accounting paper, batch 64</h3>" in page
    listed = json.loads((tmp_path / "t.json").read_text())
    assert [row["batch"] for row in listed["rows"]].count(64) == 4
    drawn = (tmp_path / "t.svg").read_text()
    assert "ascend, batch 64" in drawn and "batch 1 and 64" in drawn


def test_a_table_of_several_batches_is_drawn_again_by_every_kind_of_its_bars(hwmodel, tmp_path):
    made(hwmodel, "both.csv", "--batch", "1,64")
    for kind in ("methods", "passes"):
        code, _, err = hwmodel("plot", "both.csv", "--kind", kind, "-o", f"{kind}.svg")
        assert code == 0, err
        assert (tmp_path / f"{kind}.svg").read_text().count("batch 64") >= len(CHIPS)


def test_from_python_a_batch_is_one_or_several():
    both = compare(NETWORK, CHIPS, METHODS, accounting="paper", batch=[1, 64], optimal_tiles=False)
    for chip in CHIPS:
        for batch in (1, 64):
            alone = compare(
                NETWORK, chip, METHODS, accounting="paper", batch=batch, optimal_tiles=False
            )
            here = [x for x in both if (x.hardware, x.batch) == (chip, batch)]
            assert [x.percent_of_baseline for x in here] == [x.percent_of_baseline for x in alone]
    assert "<th>batch</th>" in both._repr_html_()
    assert package.plot(both, "methods") is not None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("1,1", "--batch '1,1': 1 stands there twice"),
        ("1,x", "--batch 'x': must be a whole number"),
        ("1,", "--batch '1,': names separated by commas, none of them empty"),
        ("1,0", "batch 0: must be a whole number from 1 to 2147483648"),
    ],
)
def test_what_is_no_batch_is_refused(hwmodel, tmp_path, given, said):
    code, out, err = hwmodel(*COMPARE, *PAPER, "--batch", given, "-o", "c.csv")
    assert (code, out) == (2, "") and said in err
    assert not (tmp_path / "c.csv").exists()


@pytest.mark.parametrize("given", [[], [1, 1], "1,64", [1, 2.5]])
def test_what_is_no_batch_is_refused_from_python(given):
    with pytest.raises(HwmodelError, match="batch"):
        compare(NETWORK, "ascend", "fp", accounting="paper", batch=given)
