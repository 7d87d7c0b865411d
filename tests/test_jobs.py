"""Processes beside each other compute what one does, and answers are told as they come."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import pytest

import hwmodel as package
from hwmodel.cli.processes import cores, shared
from hwmodel.errors import (
    HwmodelError,
    Infeasible,
    Lack,
    NameUnknown,
    NoRoom,
    SpecWarning,
    TooLarge,
)
from tests.specs import NETWORK, written


def slow(number):
    """A task whose result and warning are its argument's."""
    if number % 2:
        warnings.warn("odd ones are doubtful", SpecWarning, stacklevel=1)
    return -number


@pytest.mark.parametrize("jobs, alone", [(1, 0.0), (2, 0.0), (2, 60.0), (5, 0.0)])
def test_results_come_in_the_order_of_the_arguments_and_warnings_with_them(jobs, alone):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = list(shared(slow, [3, 1, 4, 1, 5, 9, 2, 6], jobs, alone))
    assert found == [-3, -1, -4, -1, -5, -9, -2, -6]
    assert {str(one.message) for one in caught} == {"odd ones are doubtful"}


def test_cores_are_at_least_one():
    assert 1 <= cores() <= 256


def test_a_comparison_is_the_same_whoever_computes_its_reports(afresh, tmp_path):
    ask = partial(
        package.compare, written(tmp_path, NETWORK, name="net.yaml"), ["ascend", "v100"], ["fp", "bold"],
        accounting=["paper", "full"], batch=[1, 3],
    )  # fmt: skip
    alone, beside = ask().table, ask(each=partial(shared, jobs=2, alone=0.0)).table
    assert len(alone) == 16
    assert beside.equals(alone)


def test_what_has_no_room_is_said_alike_from_another_process():
    missing = Infeasible("L0", "I and F", 4096.5, 100)
    missing.where = "conv1, forward, chip"
    wide = TooLarge("iterations of the loop N", 5, 4)
    lacks = NoRoom("training", "chip", [Lack("DRAM", "forward of conv1", 10, 8, (("I", 10),))], 2)
    for error in (missing, wide, lacks, NameUnknown("method", "bald", ["bold"]), HwmodelError("x")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)


@pytest.mark.parametrize("accounting", ["full", "chip"])
def test_a_chip_without_room_leaves_the_other_lines(tmp_path, accounting):
    small = tmp_path / "small.yaml"
    small.write_text(
        "version: 1\nname: small\ntitle: no room\nenergy_unit: pJ\nsources: {own: made up}\n"
        "levels:\n"
        "  - {level: 2, name: DRAM, capacity: unlimited, access_energy: 9 pJ/bit, source: own}\n"
        "  - {level: 1, name: L1, capacity: 64 KiB, access_energy: 2 pJ/bit, source: own}\n"
        "  - {level: 0, name: RF, capacity: 1 B, access_energy: 1 pJ/bit, source: own}\n"
        "arithmetic:\n  - {operation: mac, bits: 32, energy: 4.6 pJ, source: own}\n"
    )
    lines = list(package.compare(
        "conv-mnist", [str(small), "ascend"], ["fp", "bold"], accounting=accounting,
        mode="inference",
        each=partial(shared, jobs=2, alone=0.0),
    ))  # fmt: skip
    assert lines[0].energy is None
    assert all(line.energy for line in lines if line.hardware == "ascend")
    assert "RF holds 8" in lines[0].reason


def test_lines_are_told_before_the_tables_where_all_take_long(hwmodel, monkeypatch):
    from hwmodel.cli import screen

    words = ("compare", "conv-mnist", "--hardware", "ascend,v100", "--methods", "fp,bold")
    words += ("--accounting", "paper", "--csv", "-", "--jobs", "1")
    assert "accounting paper, batch 1: fp" not in hwmodel(*words)[2]
    monkeypatch.setattr(screen, "LONG", -1.0)
    monkeypatch.setenv("HWMODEL_PROGRESS", "on")
    _, out, err = hwmodel(*words)
    (told,) = [line for line in err.splitlines() if "accounting paper, batch 1" in line]
    monkeypatch.setenv("HWMODEL_PROGRESS", "off")
    assert "accounting paper, batch 1: fp" not in hwmodel(*words)[2]
    assert told.startswith("hwmodel: ascend, accounting paper, batch 1: fp ")
    bold = next(row.split(",") for row in out.splitlines() if ",bold,ascend," in row)
    head = out.splitlines()[0].split(",")
    assert f"({float(bold[head.index('percent_of_baseline')]):.2f} %)" in told


@pytest.mark.parametrize("jobs", ["0", "257"])
@pytest.mark.parametrize(
    "command", ["compare conv-mnist --hardware ascend --methods fp", "verify x.csv"]
)
def test_a_number_of_processes_that_cannot_be_is_refused(hwmodel, command, jobs):
    code, _, err = hwmodel(*command.split(), "--jobs", jobs)
    assert (code, err.strip()) == (2, f"hwmodel: --jobs {jobs}: 1 to 256 processes")
