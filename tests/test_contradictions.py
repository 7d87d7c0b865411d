"""All that does not go together in a file is told at once, each with its line."""

import pytest

from hwmodel.errors import SpecError
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from tests.specs import CHIP, METHOD, written


def said(kind, path):
    with pytest.raises(SpecError) as refused:
        load(kind, path)
    return str(refused.value)


def test_of_a_chip(tmp_path):
    """A unit at two memories, a price stated twice, static energy without a clock."""
    *_, price = [line for line in CHIP.splitlines() if "operation: mac" in line]
    path = written(
        tmp_path, CHIP, ("50 pJ/B", "50 MAC/B"), ("5 pJ/B", "5 MAC/B"), (price, f"{price}\n{price}"),
        ("name: chip", "name: chip\nstatic_power: 1 W"), name="chip.yaml",
    )  # fmt: skip
    lines = path.read_text().splitlines()
    told = said(Hardware, path)
    for name in ("DRAM", "SRAM"):
        place = next(n for n, line in enumerate(lines, 1) if f"name: {name}" in line)
        assert f"{place}: levels.{name}: is in MAC, but energy_unit is pJ" in told
    again = len(lines) - lines[::-1].index(price)
    assert f"{again}: arithmetic.2: prices a 32-bit mac a second time" in told
    assert "static_power: is paid in each cycle of an array" in told
    assert told.count("; line ") == 3 and told.count(str(path)) == 1


def test_of_a_method(tmp_path):
    """Two rules name no method, and one has states of no optimizer."""
    rules = (
        "  - {where: {position: [first]}, precision: fpp, source: me}\n"
        "  - {where: {position: [last]}, precision: bfp, states: [8, 8], source: me}\n"
    )
    path = written(tmp_path, METHOD, ("layers:\n", f"layers:\n{rules}"), name="method.yaml")
    told = said(Method, path)
    assert "no method is called 'fpp'" in told and "no method is called 'bfp'" in told
    assert "2 widths, and no optimizer named has 0 states" in told
    assert told.count("; line ") == 2


def test_of_an_accounting(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "version: 1\nname: own\ntitle: own\nbased_on: chip\n"
        "counting: {transfers: both, counting: paper}\nextras: {update_order: fused}\n"
    )
    told = said(Accounting, path)
    assert "(: as in" not in told
    for rule in (
        "optimal needs counting exact",
        "paper counts what is asked of the upper memory alone",
        "tensors needs counting exact",
        "fused needs counting exact",
    ):
        assert rule in told
    assert told.count("; line ") == 6  # rows, attention, and elementwise work, too: as in chip
