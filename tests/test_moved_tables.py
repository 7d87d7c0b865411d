"""What tables, figures and pages say of constants that were moved, of labels and the baseline."""

import csv

from hwmodel.views.colours import looks_of, specs_named
from hwmodel.views.figures.records import headline, label
from hwmodel.views.plot import read_records
from tests.page import parsed
from tests.specs import CHIP, METHOD, NETWORK

MOVE = "hardware.levels.DRAM.access_energy=x0.5"


def made(hwmodel, tmp_path, *words, methods="fp,mine.yaml", label="bold", chips="chip.yaml"):
    """A table of a method with a label, on chips of our own; what was said, and the rows."""
    (tmp_path / "net.yaml").write_text(NETWORK)
    (tmp_path / "chip.yaml").write_text(CHIP)
    other = CHIP.replace("name: chip", "name: other").replace("DRAM", "LPDDR")
    (tmp_path / "other.yaml").write_text(other.replace(" 5 pJ/B", " 1.2345678 pJ/B"))
    named = METHOD.replace("name: mine", f"name: mine\nlabel: {label}")
    (tmp_path / "mine.yaml").write_text(named)
    code, out, err = hwmodel(
        "compare", "net.yaml", "--methods", methods, "--hardware", chips,
        "--accounting", "paper", "--optimal-tiles", "no", *words,
    )  # fmt: skip
    assert code == 0, err
    return out


def titled(path):
    """The names of a table's lines in figures, and the caption that all have."""
    records = read_records(path)
    with looks_of(specs_named(records[0]["command"])):
        return [label(one, records) for one in records], headline(records)


def test_a_label_that_is_the_name_of_another_method_is_told_apart_in_figures(
    hwmodel, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    made(hwmodel, tmp_path, "--csv", "c.csv", methods="fp,bold,mine.yaml")
    assert titled(tmp_path / "c.csv")[0] == ["fp", "bold", "bold (mine)"]
    made(hwmodel, tmp_path, "--csv", "d.csv", label="fp")
    assert titled(tmp_path / "d.csv")[0] == ["fp", "fp (mine)"]


def test_every_caption_says_what_was_moved_and_of_which_chip(hwmodel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("--move", MOVE, "--csv", "c.csv", "--html", "c.html")
    chips = "chip.yaml,other.yaml"
    made(hwmodel, tmp_path, *words, chips=chips)
    said = f"{MOVE} of chip alone"
    assert said in (tmp_path / "c.html").read_text()
    assert titled(tmp_path / "c.csv")[1].endswith(f"moved, for methods and baseline: {said}")
    tex = made(hwmodel, tmp_path, "--move", MOVE, "--format", "latex", chips=chips)
    assert r"access\_energy=x0.5 of chip alone" in tex
    assert hwmodel("appendix", "c.csv", "-o", "a.html")[0] == 0
    tree = parsed((tmp_path / "a.html").read_text().removeprefix("<!doctype html>"))
    found = {}
    for table in tree.all("table"):
        head, *rows = [[c.text for c in r.children] for r in table.all("tr")]
        found |= {(head[0], row[0]): row[1:] for row in rows}
    assert found["chip", "DRAM"][0].endswith("3.125 pJ/bit")
    assert found["chip", "DRAM"][1] == f"moved: {MOVE}, of unlimited, 6.25 pJ/bit (me)"
    assert found["chip", "SRAM"][1] == "me"
    assert found["other", "SRAM"][0] == "64 KiB, 0.154320975 pJ/bit"


def test_the_baseline_is_called_by_its_label_and_said_where_it_is_chosen(
    hwmodel, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = ("--baseline", "mine.yaml")
    tex = made(hwmodel, tmp_path, *words, "--format", "latex", methods="fp", label="Ours (A4)")
    assert "percentage of Ours (A4) on the same chip" in tex
    made(hwmodel, tmp_path, *words, "--csv", "c.csv", methods="fp", label="Ours (A4)")
    assert "; 100 % is Ours (A4)" in titled(tmp_path / "c.csv")[1]
    tex = made(hwmodel, tmp_path, "--format", "latex", "--ours", "mine", label="Ours (A4)")
    assert r"\textbf{Ours (A4)}" in tex


def test_a_page_of_numbers_that_were_changed_is_refused(hwmodel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(hwmodel, tmp_path, "--csv", "c.csv")
    with (tmp_path / "c.csv").open() as stream:
        energy = [*csv.DictReader(stream)][1]["energy"]
    text = (tmp_path / "c.csv").read_text()
    (tmp_path / "c.csv").write_text(text.replace(f",{energy},", f",{float(energy) / 2!r},", 1))
    code, _, err = hwmodel("appendix", "c.csv", "-o", "a.html")
    assert code == 2 and "net mine chip" in err and "energy" in err
    assert not (tmp_path / "a.html").exists()


def test_chips_of_one_label_are_told_apart_in_the_appendix(hwmodel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(hwmodel, tmp_path)
    for name in ("chip", "other"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(path.read_text().replace("title:", "label: Edge\ntitle:", 1))
    words = ("--hardware", "chip.yaml,other.yaml", "--accounting", "paper", "--csv", "c.csv")
    assert hwmodel("compare", "net.yaml", "--methods", "fp", *words)[0] == 0
    assert hwmodel("appendix", "c.csv", "-o", "a.html")[0] == 0
    page = (tmp_path / "a.html").read_text()
    assert ">Edge (chip)</th>" in page and ">Edge (other)</th>" in page
    assert "<p>Edge (other) (A chip): " in page


def test_a_bundle_and_a_figure_of_another_table_say_what_they_want(hwmodel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(hwmodel, tmp_path, "--csv", "c.csv")
    for words in (("plot", "s.zip", "-o", "s.png"), ("appendix", "s.zip", "-o", "a.pdf")):
        code, _, err = hwmodel(*words)
        assert code == 2 and "s.zip: is a bundle; unpack it" in err
    code, _, err = hwmodel("plot", "c.csv", "-o", "s.png", "--kind", "tornado")
    assert code == 2 and "drawn of a CSV of `hwmodel sensitivity`" in err
