"""Readings of the source: residuals from an audit, sums by hand, sentences from their numbers."""

import os
import re
from math import sqrt
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from hwmodel import evaluate
from hwmodel.model.compare import reproduce
from hwmodel.specs.published import published_tables
from hwmodel.vary.readings import (
    Reading,
    Readings,
    Row,
    accounting_of,
    all_readings,
    published_rows,
    readings,
    rms,
)
from hwmodel.views.readings import readings_tables, sentences

PAGE = Path(__file__).parents[1] / "docs" / "readings.md"
THOROUGH = os.environ.get("HWMODEL_TESTS") == "thorough"
TILES = ("quotients", "integers", "optimal")

AS_PAPER = Reading(1, 1, 1, "of-mac", "quotients")
STATED = Reading(16, 1, 1, "of-mac", "quotients")
HOROWITZ = Reading(1, 1, 1, "relative", "quotients")
LARGE = Reading(1, 1, 300, "of-mac", "quotients")


@pytest.fixture(scope="module")
def few():
    return readings([AS_PAPER, STATED, HOROWITZ, LARGE])


def residual(found, reading, network, method, chip):
    (row,) = [r for r in found.rows if (r.network, r.method, r.hardware) == (network, method, chip)]
    return found.of_row(row)[reading]


@pytest.mark.parametrize(
    ("reading", "method", "chip", "expected"),
    [
        # An audit against the source: 16-bit signals on the Ascend; Horowitz' addition on the V100,
        # where BinaryConnect is 39.4 for a published 48.49.
        (STATED, "bold", "ascend", 5.7),
        (STATED, "bold-bn", "ascend", -6.4),
        (HOROWITZ, "binaryconnect", "v100", 100 * (39.4 / 48.49 - 1)),
    ],
)
def test_residuals_are_those_of_an_audit(few, reading, method, chip, expected):
    assert residual(few, reading, "vgg-small", method, chip) == pytest.approx(expected, abs=0.1)


def test_each_chip_s_column_of_vgg_small_has_a_reading_and_it_is_another(few):
    """The audit: within 7 % on the Ascend with 16-bit signals, 8 % on the V100 with 1 bit."""
    ascend, v100 = ("cifar10_vgg_small", "ascend"), ("cifar10_vgg_small", "v100")
    assert all(abs(x) < 7 for x in few.of_column(STATED, ascend))
    assert all(abs(x) < 8 for x in few.of_column(AS_PAPER, v100))
    assert any(abs(x) > 10 for x in few.of_column(AS_PAPER, ascend))
    assert any(abs(x) > 10 for x in few.of_column(STATED, v100))


def test_a_residual_is_that_of_reproduce(few):
    for table in ("cifar10_vgg_small", *(("imagenet_resnet18",) if THOROUGH else ())):
        for line in reproduce(table, accounting=["paper"], optimal_tiles=False):
            twice = line.method == "bold-kd"  # equal network and figures: one row
            if line.residual_percent and not twice:
                found = residual(few, AS_PAPER, line.network, line.method, line.hardware)
                assert found == pytest.approx(line.residual_percent, abs=1e-9)


@pytest.mark.parametrize("reading", [LARGE, Reading(16, 16, 1, "relative", "integers")])
def test_a_reading_is_an_accounting(few, reading):
    found = few if reading == LARGE else readings([reading])
    by = {"accounting": accounting_of(reading), "batch": reading.batch}
    ours = evaluate("vgg-small", "ascend", "bold-bn", **by).energy
    whole = evaluate("vgg-small", "ascend", "fp", **by).energy
    expected = 100 * (100 * ours / whole / 4.87 - 1)
    assert residual(found, reading, "vgg-small", "bold-bn", "ascend") == pytest.approx(expected)


def test_rows_are_all_published_energies_but_the_baselines_each_once():
    rows = published_rows()
    assert len(rows) == len(set(rows)) == 2 * 5 + 2 * 7
    stated = {
        (f.network, chip, percent)
        for table in published_tables().values()
        for f in table.figures
        for chip, percent in f.energy_percent.items()
        if percent != 100
    }
    assert {(r.network, r.hardware, r.published) for r in rows} == stated


def test_all_readings_are_every_combination_once():
    found = list(all_readings())
    assert len(found) == len(set(found)) == 2 * 2 * 3 * 2 * 3


def test_rms_by_hand():
    assert rms([3.0, -4.0]) == sqrt((9 + 16) / 2)
    assert rms([1.0, None]) is None
    assert rms([]) is None


def made(residuals):
    """Two rows of one column, published 50 %, under made-up residuals [%]."""
    rows = tuple(Row("cifar10_vgg_small", "vgg-small", m, "ascend", 50.0) for m in ("bold", "fp"))
    percents = [tuple(None if r is None else 50 + r / 2 for r in row) for row in residuals]
    return Readings(rows, dict(zip(all_readings(), percents, strict=False)))


@pytest.mark.parametrize(
    ("residuals", "said"),
    [
        ([(5.0, 5.0), (50.0, 50.0)], ("A reading gives them all.", "2 rows have a reading")),
        ([(5.0, 50.0), (50.0, -10.0)], ("No reading gives them all: the most is 1", "2 rows have")),
        (
            [(50.0, 50.0), (11.0, 9.0)],
            ("1 rows have", "No reading gives vgg-small under bold on ascend."),
        ),
        ([(None, 1.0), (30.0, 40.0)], ("least rms 35.4 %",)),
    ],
)
def test_sentences_follow_from_the_numbers(residuals, said):
    for sentence in said:
        assert sentence in sentences(made(residuals))


@pytest.mark.parametrize(
    "words",
    [("--accounting", "paper"), ("--batch", "3"), ("glue",), ("--figure", "1"),
     ("--optimal-tiles", "no")],
)  # fmt: skip
def test_readings_take_only_options_that_say_where_their_table_is_written(refused, words):
    said = refused("reproduce", "--readings", *words)
    assert said == (
        "--readings is of all tables with energies, and of accountings of its own; beside it go "
        "only options that say where its table is written"
    )


@pytest.mark.parametrize("words", [("--csv", "a.csv", "-o", "a.csv"), ("-o", "a.txt")])
def test_readings_see_where_they_are_written_before_they_compute(refused, words):
    assert words[-1] in refused("reproduce", "--readings", *words)


FEW = [Reading(1, 1, 1, "of-mac", "quotients"), Reading(16, 1, 300, "relative", "optimal")]
PERCENTS = [(25.0, 55.0), (None, 40.0)]  # of rows published at 50 %


@pytest.fixture
def few_made(monkeypatch):
    rows = tuple(Row("cifar10_vgg_small", "vgg-small", m, "ascend", 50.0) for m in ("bold", "fp"))
    found = Readings(rows, dict(zip(FEW, PERCENTS, strict=True)))
    for place in ("hwmodel.vary.readings.readings", "hwmodel.rerun.answers.readings"):
        monkeypatch.setattr(place, lambda *_, **__: found)
    return found


def test_readings_are_written_as_every_table_is(few_made, hwmodel, tmp_path):
    """Residuals by hand: 25 is half of 50, 55 a tenth more, 40 a fifth less."""
    code, out, err = hwmodel("reproduce", "--readings", "--csv", "-")
    assert (code, "\nhwmodel " in err) == (0, True)
    header, *rows = [line.split(",") for line in out.splitlines()]
    assert header == [
        "table", "hardware", "network", "method", "signal_bits", "vote_bits", "batch", "addition",
        "tiles", "source_percent", "percent_of_baseline", "residual_percent", "version",
        "inputs_sha256", "command",
    ]  # fmt: skip
    first = ["cifar10_vgg_small", "ascend", "vgg-small"]
    small, large = ["1", "1", "1", "of-mac", "quotients"], ["16", "1", "300", "relative", "optimal"]
    assert [row[:11] for row in rows] == [
        [*first, "bold", *small, "50.0", "25.0"], [*first, "fp", *small, "50.0", "55.0"],
        [*first, "bold", *large, "50.0", ""], [*first, "fp", *large, "50.0", "40.0"],
    ]  # fmt: skip
    assert rows[2][11] == ""
    residuals = [float(row[11]) for row in rows if row[11]]
    assert residuals == [pytest.approx(x, abs=1e-9) for x in (-50, 10, -20)]
    assert {row[-1] for row in rows} == {"hwmodel reproduce --readings"}


@pytest.mark.parametrize("ending", ["csv", "json", "md", "tex"])
def test_readings_go_to_one_file_of_any_format(few_made, hwmodel, tmp_path, ending):
    code, _, err = hwmodel("reproduce", "--readings", "-o", f"r.{ending}")
    assert (code, err) == (0, f"wrote r.{ending}\n")
    text = (tmp_path / f"r.{ending}").read_text(encoding="utf-8")
    assert "hwmodel reproduce --readings" in text
    assert [p.name for p in tmp_path.iterdir()] == [f"r.{ending}"]


def test_readings_go_to_a_folder_and_are_verified(few_made, hwmodel, tmp_path):
    hwmodel("reproduce", "--readings", "--out", "there")
    made = tmp_path / "there" / "reproduce_readings.csv"
    code, out, _ = hwmodel("verify", made)
    assert code == 0 and "4 rows equal, 0 moved, 0 missing, 0 extra" in out
    made.write_text(made.read_text().replace(",25.0,", ",26.0,"))
    code, out, _ = hwmodel("verify", made)
    assert code == 1 and "percent_of_baseline 26.0 -> 25.0" in out


def test_readings_that_cannot_be_written_leave_nothing(few_made, hwmodel, tmp_path):
    (tmp_path / "there").write_text("a file")
    code, _, err = hwmodel("reproduce", "--readings", "--out", "there")
    assert code == 2 and err.count("\n") == 1 and "Traceback" not in err
    assert (tmp_path / "there").read_text() == "a file"


# What documents say follows from the page that the command prints

DOCS = Path(__file__).parent.parent / "docs"


def printed_rows():
    """Readings page: (chip, network, method) -> published, rms, near, best, reading."""
    text = (DOCS / "readings.md").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines()]
    return {tuple(r[:3]): r[3:] for r in rows if len(r) >= 12 and r[0] in ("ascend", "v100")}


def test_the_summary_in_the_model_s_page_is_of_the_readings_page():
    page = (DOCS / "readings.md").read_text(encoding="utf-8")
    most, many, reached = re.search(
        r"readings of (?P<many>\d+) rows.*the most is (?P<most>\d+),.*\n(?P<reached>\d+) rows have",
        page,
    ).group("most", "many", "reached")
    model = (
        (DOCS / "model.md").read_text(encoding="utf-8").partition("## 8 ")[2].partition("## 9 ")[0]
    )
    validation = (DOCS / "validation.md").read_text(encoding="utf-8")
    assert f"The most is {most} of {many}:" in model
    assert f"Of the {many} rows with a published energy {reached} come within 10 %" in validation
    assert f"no\nreading gives more than {most}" in validation
    rows = printed_rows()
    assert len(rows) == int(many)
    never = {network for (_, network, _), cells in rows.items() if cells[2] == "0"}
    assert never == {"resnet18-base192"} and "Base 192 comes out under no reading" in model


def test_residuals_in_the_model_s_page_are_those_computed(few):
    """Every signed percentage of the list: which reading, which row."""
    model = (
        (DOCS / "model.md").read_text(encoding="utf-8").partition("## 8 ")[2].partition("## 9 ")[0]
    )
    stated = [
        (STATED, "vgg-small", "bold", "ascend"), (STATED, "vgg-small", "bold-bn", "ascend"),
        (AS_PAPER, "vgg-small", "bold", "ascend"), (AS_PAPER, "vgg-small", "bold-bn", "ascend"),
        (STATED, "vgg-small", "bold", "v100"), (STATED, "vgg-small", "bold-bn", "v100"),
        (LARGE, "resnet18-base64", "bold-bn", "v100"), (LARGE, "bi-realnet-18", "bi-realnet", "v100"),
        (LARGE, "bi-realnet-34", "bi-realnet", "v100"), (LARGE, "bnext-18", "bnext", "v100"),
    ]  # fmt: skip
    for one in stated:
        assert f"{residual(few, *one):+.1f}" in model, (one, residual(few, *one))
    for chip, low, high in (("ascend", -14, 23), ("v100", -27, 164)):
        found = few.of_column(AS_PAPER, ("imagenet_resnet18", chip))
        assert (round(min(found)), round(max(found))) == (low, high)
        assert f"{low} to +{high} %" in model


def test_rows_of_the_page_are_what_is_computed(tmp_path):
    """One; of each kind of tiles, and in test_docs all, under HWMODEL_TESTS=thorough."""
    every = list(all_readings())
    kinds = TILES if os.environ.get("HWMODEL_TESTS") == "thorough" else TILES[:1]
    drawn = [Random(5).choice([x for x in every if x.tiles == t]) for t in kinds]
    with open(tmp_path / "told", "w", encoding="utf-8") as file:
        screen = Console(file=file, width=250)
        screen.print(next(iter(readings_tables(readings(drawn)))))
    page = {" ".join(line.split()) for line in PAGE.read_text(encoding="utf-8").splitlines()}
    told = (tmp_path / "told").read_text(encoding="utf-8").splitlines()
    rows = [" ".join(line.split()) for line in told if line.strip()[:1].isdigit()]
    assert len(rows) == len(drawn) == len(kinds) and set(rows) <= page
