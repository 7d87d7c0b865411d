"""Greedy tiles are not silent: beside them stands what optimal ones would cost."""

import csv
import io
from math import fsum

import pytest

from hwmodel.model.compare import compare
from hwmodel.model.evaluate import evaluate
from hwmodel.model.optimal_tiles import exchanged, optimal_tiles, with_optimal_tiles
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.vary.paths import replaced_all
from hwmodel.views.explain.lines import energy
from hwmodel.work.tensor import Pass

PAPER = load(Accounting, "paper")
SAID = (
    "search optimal for level-by-level, counting exact for paper, rows touched for bounding, "
    "padding skipped for counted"
)
NET = "mlp-784-512-512-10"


def by_hand(accounting=PAPER):
    """The same accounting as a user would write it."""
    return replaced_all(
        accounting,
        {
            "counting.search": "optimal",
            "counting.counting": "exact",
            "counting.rows": "touched",
            "counting.padding": "skipped",
        },
    )


def test_case_b9_of_resnet18_at_batch_256():
    """fp's backward_weight is 8,781 mJ, 906 with optimal tiles; BOLD 1.34 % against 4.57 %."""
    fp, bold = compare("resnet18", ["ascend"], ["fp", "bold"], accounting="paper", batch=256)
    assert fp.backward_weight == pytest.approx(8.781e12, rel=1e-3)
    assert bold.percent_of_baseline == pytest.approx(1.34, abs=0.005)
    assert fp.percent_of_baseline_optimal_tiles == 100
    assert bold.percent_of_baseline_optimal_tiles == pytest.approx(4.57, abs=0.005)
    other = evaluate("resnet18", "ascend", "fp", accounting=by_hand(), batch=256)
    assert other.by("pass")["backward_weight"] == pytest.approx(906e9, rel=1e-3)
    assert fp.energy_optimal_tiles == other.energy
    assert not fp.optimal.proof.unproved and not bold.optimal.proof.unproved


def test_what_is_exchanged_is_said():
    assert exchanged(PAPER) == SAID
    assert exchanged(load(Accounting, "full")) == ""
    assert with_optimal_tiles(load(Accounting, "full")) is None
    greedy = replaced_all(
        load(Accounting, "full"),
        {
            "counting.search": "level-by-level",
            "counting.stationary": "filter",
            "counting.weight_gradient": "signal-as-filters",
        },
    )
    assert exchanged(greedy) == "search optimal for level-by-level"
    report = evaluate("vgg-small-1fc", "v100", "fp", accounting=greedy)
    assert optimal_tiles(report).energy <= report.energy  # the counts are the same


def test_optimal_tiles_move_nothing_else():
    with_them = list(compare(NET, ["ascend"], ["fp", "bold"], accounting="paper"))
    without = list(
        compare(NET, ["ascend"], ["fp", "bold"], accounting="paper", optimal_tiles=False)
    )
    added = ("energy_optimal_tiles", "percent_of_baseline_optimal_tiles", "optimal", "report")
    for one, other in zip(with_them, without, strict=True):
        assert other.energy_optimal_tiles is None
        mine, its = one._asdict(), other._asdict()
        assert {k: v for k, v in mine.items() if k not in added} == {
            k: v for k, v in its.items() if k not in added
        }


def test_tiles_that_are_optimal_stand_for_themselves():
    (full,) = compare(NET, ["ascend"], ["bold"], accounting="full")
    assert full.optimal is None and full.energy_optimal_tiles == full.energy


ASKED = ("compare", NET, "--hardware", "ascend", "--methods", "fp,bold", "--accounting", "paper")


def test_every_view_of_a_comparison_says_it(hwmodel, tmp_path):
    lines = list(compare(NET, ["ascend"], ["fp", "bold"], accounting="paper"))
    percent = f"{lines[1].percent_of_baseline_optimal_tiles:.2f}"
    _, out, _ = hwmodel(*ASKED)
    assert "tiles greedy" in out and "optimal tiles, %" in out and SAID in out and percent in out
    _, text, _ = hwmodel(*ASKED, "--format", "csv")
    row = list(csv.DictReader(io.StringIO(text)))[1]
    assert float(row["energy_optimal_tiles"]) == lines[1].energy_optimal_tiles
    for form in ("markdown", "latex"):
        _, text, _ = hwmodel(*ASKED, "--format", form)
        assert "optimal tiles" in text and SAID in text and percent in text
    hwmodel(*ASKED, "--html", "c.html")
    page = (tmp_path / "c.html").read_text()
    assert SAID in page and "%, optimal tiles" in page and f">{percent}<" in page
    hwmodel(*ASKED, "--out", "there")
    (figure,) = (tmp_path / "there").glob("*_methods.svg")
    assert "with optimal tiles in place of greedy ones" in figure.read_text()


def test_it_can_be_left_out_and_the_table_says_so(hwmodel, tmp_path):
    _, out, _ = hwmodel(*ASKED, "--optimal-tiles", "no", "--csv", "t.csv")
    assert "tiles greedy" in out and "optimal tiles" not in out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert [row["energy_optimal_tiles"] for row in rows] == ["", ""]
    assert rows[0]["command"].endswith("--optimal-tiles no")
    assert hwmodel("verify", "t.csv")[0] == 0
    code, _, err = hwmodel(*ASKED, "--optimal-tiles", "perhaps")
    assert (code, err) == (2, "hwmodel: --optimal-tiles 'perhaps': yes or no\n")


def test_a_comparison_of_before_is_verified_and_drawn_without(hwmodel, tmp_path):
    hwmodel(*ASKED, "--csv", "t.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    new = ("energy_optimal_tiles", "percent_of_baseline_optimal_tiles")
    with (tmp_path / "t.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [name for name in rows[0] if name not in new])
        writer.writeheader()
        writer.writerows({k: v for k, v in row.items() if k not in new} for row in rows)
    code, out, _ = hwmodel("verify", "t.csv")
    assert code == 0 and "2 rows equal" in out
    assert hwmodel("plot", "t.csv", "-o", "f.svg")[0] == 0
    assert "with optimal tiles" not in (tmp_path / "f.svg").read_text()


def test_a_report_says_it_in_a_line(hwmodel):
    where = NET, "--hardware", "ascend", "--method", "fp", "--accounting"
    _, out, _ = hwmodel("report", *where, "paper")
    report = evaluate(NET, "ascend", "fp", accounting="paper")
    other = evaluate(NET, "ascend", "fp", accounting=by_hand())
    times = f"{report.energy / other.energy:.3g} times less"
    (line,) = [x for x in out.splitlines() if "greedy" in x]
    assert SAID in line and (times in line or other.energy > report.energy)
    for words in (("paper", "--optimal-tiles", "no"), ("full",)):
        assert "greedy" not in hwmodel("report", *where, *words)[1]


def test_a_study_and_a_sweep_say_it(hwmodel, tmp_path):
    where = NET, "--hardware", "ascend", "--methods", "fp,bold", "--accounting", "paper"
    _, out, _ = hwmodel("sensitivity", *where, "--samples", "0", "--csv", "s.csv")
    assert SAID in out and "bold " in out and " instead of " in out
    (tmp_path / "s.yaml").write_text(
        f"version: 1\nname: s\ntitle: t\nnetwork: {NET}\nhardware: ascend\nmethod: fp\n"
        "accounting: [paper, full]\nbatch: [1]\n"
    )
    _, _, err = hwmodel("sweep", "s.yaml", "--out", "s.csv", "--jobs", "1")
    assert "1 of 2 points: tiles are greedy" in err
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert [row["tiles"] for row in rows] == ["greedy", "optimal"]
    assert "1 of 2 points: tiles are greedy" in hwmodel("best", "s.csv")[2]


def test_a_single_tiling_says_how_far_it_is_from_the_optimum(hwmodel):
    conv = ("--hardware", "ascend", "--conv", "N=16,M=64,C=64,H=14,W=14,K=3,pad=1")
    one = ("--bits", "32,32,32", "--search", "level-by-level", "--stationary", "filter")
    _, out, _ = hwmodel("tile", *conv, *one)
    (line,) = [x for x in out.splitlines() if x.startswith("optimal tiles")]
    _, best, _ = hwmodel("tile", *conv, "--bits", "32,32,32", "--stationary", "filter")
    (energy,) = [x for x in best.splitlines() if x.startswith("memory energy")]
    assert energy.split()[2] in line


def test_an_explanation_says_it_of_each_pass_and_the_layers_add_up(hwmodel):
    """What is said of a layer's passes is its part of the table's figure, and nothing is lost."""
    report = evaluate(NET, "ascend", "fp", accounting="paper")
    parts = [
        optimal_tiles(report, layer, pass_).energy
        for layer in {entry.layer for entry in report.ledger.entries}
        for pass_ in Pass
    ]
    assert fsum(parts) == pytest.approx(optimal_tiles(report).energy, rel=1e-12)
    layer = report.tilings[0][0].layer
    words = ["explain", NET, "--layer", layer, "--hardware", "ascend", "--method", "fp"]
    _, said, _ = hwmodel(*words, "--accounting", "paper")
    figure = optimal_tiles(report, layer, "forward").energy
    assert f"- forward with optimal tiles: {energy(figure)} pJ" in said
    assert "with optimal tiles" not in hwmodel(*words, "--accounting", "full")[1]
