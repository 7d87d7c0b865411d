"""Readings of the source: residuals from an audit, sums by hand, sentences from their numbers."""

from math import sqrt

import pytest

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
from hwmodel.views.readings import sentences

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
    for table in ("cifar10_vgg_small", "imagenet_resnet18"):
        for line in reproduce(table, accounting=["paper"], optimal_tiles=False):
            twice = line.method == "bold-kd"  # equal network and figures: one row
            if line.residual_percent and not twice:
                found = residual(few, AS_PAPER, line.network, line.method, line.hardware)
                assert found == pytest.approx(line.residual_percent, abs=1e-9)


@pytest.mark.parametrize("reading", [LARGE, Reading(16, 16, 1, "relative", "integers")])
def test_a_reading_is_an_accounting(reading):
    found = readings([reading])
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
    """Two rows of one column under made-up residuals."""
    rows = tuple(Row("cifar10_vgg_small", "vgg-small", m, "ascend", 1.0) for m in ("bold", "fp"))
    return Readings(rows, dict(zip(all_readings(), residuals, strict=False)))


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


def test_readings_go_with_no_option(refused):
    said = refused("reproduce", "--readings", "--accounting", "paper")
    assert said == "--readings prints what it finds, of all tables; it goes with no option"
