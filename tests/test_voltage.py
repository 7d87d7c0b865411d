"""The supply at which a chip runs, beside that of its prices: what goes with its square."""

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.errors import SpecWarning
from hwmodel.model.prices import Key, Prices, value
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import memories
from hwmodel.vary.paths import leaves, replaced
from hwmodel.work.tensor import Direction
from tests.specs import CHIP, written

HALF = ("arithmetic:", "voltage: {priced: 1.2 V, run: 600 mV, source: me}\narithmetic:")
FULL = load(Accounting, "full")
TINY = """\
version: 1
name: tiny
title: One layer of eight weights
input: [4, 1, 1]
layers:
  - {name: fc1, kind: linear, features: 2}
"""


def chip(folder, *changes):
    return load(Hardware, written(folder, CHIP, *changes))


@pytest.fixture
def half(tmp_path):
    """A chip at half the supply of its prices: a quarter of what each of them says."""
    fields = "array: {cycle_energy: 30 pJ}\nclock: 1600 MHz\nstatic_power: 50 W\narithmetic:"
    pes = "{level: 0, name: RF, fanout: 256, hop_energy: 2 pJ/B, "
    return chip(tmp_path, HALF, ("{level: 0, name: RF, ", pes), ("arithmetic:", fields))


@pytest.mark.parametrize(
    ("key", "price"),
    [
        (Key(Direction.READ, "DRAM"), 50 / 8),  # off the chip: as stated
        (Key(Direction.WRITE, "DRAM"), 50 / 8),
        (Key(Direction.READ, "SRAM"), 5 / 8 / 4),
        (Key(Direction.WRITE, "RF"), 0.5 / 8 / 4),
        (Key(Direction.HOP, "RF"), 2 / 8 / 4),
        (Key(Direction.OPERATE, "mac", 32), 4.6 / 4),
        (Key(Direction.OPERATE, "int-add", 8), 0.006522 * 4.6 / 4),  # a relative price
        (Key(Direction.OPERATE, "array-cycle"), 30 / 4),
        (Key(Direction.OPERATE, "chip-cycle"), 50 / 1.6e9 * 1e12),  # power x time: as stated
    ],
    ids=str,
)
def test_a_price_goes_with_the_square_of_the_supply(half, key, price):
    assert Prices(half, FULL).value(key) == pytest.approx(price, rel=1e-12)


@pytest.mark.parametrize(("stated", "left"), [("true", 0.25), ("false", 1)])
def test_an_outermost_memory_may_be_on_the_chip(tmp_path, stated, left):
    """And one further in may be on another."""
    line = "name: DRAM, ", f"name: DRAM, on_chip: {stated}, "
    sram = "name: SRAM, ", f"name: SRAM, on_chip: {stated}, "
    one = chip(tmp_path, HALF, line, sram)
    for name, pj in (("DRAM", 50 / 8), ("SRAM", 5 / 8)):
        assert Prices(one, FULL).value(Key(Direction.READ, name)) == left * pj
        places = (b for level in memories(one).levels for b in level.buffers)
        assert next(b for b in places if b.name == name).read_energy_per_bit == left * pj


def test_the_price_says_so(half):
    factor = Prices(half, FULL).of(Key(Direction.READ, "SRAM"))[-1]
    assert factor == ("(0.6 V / 1.2 V)^2", 0.25, "hardware chip, voltage: me")
    assert len(Prices(half, FULL).of(Key(Direction.READ, "DRAM"))) == 1


def test_a_search_sees_the_prices_that_are_paid(half):
    """What a mapping is chosen by is what the ledger is priced by."""
    prices, places = Prices(half, FULL), memories(half)
    for level in places.levels:
        for one in level.buffers:
            asked = value(prices.of(Key(Direction.READ, one.name)))
            assert one.read_energy_per_bit == pytest.approx(asked, rel=1e-12)
            assert one.write_energy_per_bit == pytest.approx(asked, rel=1e-12)
    assert places.levels[2].hop_energy_per_bit == 2 / 8 / 4
    assert places.array.cycle_energy == 7.5
    assert places.moment_energy == 31250


def test_a_run_by_hand(tmp_path):
    """Inference of 4 inputs and 2 outputs of 32 bit, counted as the source does.

    DRAM moves 4 + 8 + 2 words, 448 bit of 50/8 pJ: 2,800 pJ. SRAM is read for 12 words, 384 bit of
    5/8 pJ: 240; so is the register file: 24. Eight MACs: 36.8. Half the supply leaves a quarter of
    the last three.
    """
    network = str(written(tmp_path, TINY, name="net.yaml"))
    for changes, wanted in ([], 2800 + 300.8), ([HALF], 2800 + 300.8 / 4):
        report = evaluate(
            network, chip(tmp_path, *changes), "fp", accounting="paper", mode="inference"
        )
        assert report.energy == pytest.approx(wanted, rel=1e-12)


def test_the_same_supply_moves_nothing(tmp_path):
    same = chip(tmp_path, HALF, ("600 mV", "1200 mV"))
    for key in (Key(Direction.READ, "SRAM"), Key(Direction.OPERATE, "mac", 32)):
        assert Prices(same, FULL).value(key) == Prices(chip(tmp_path), FULL).value(key)


def test_a_path_moves_it(half):
    found = {leaf.path: (leaf.value, leaf.unit) for leaf in leaves(half)}
    assert found["voltage.priced"] == (1.2, "V")
    assert found["voltage.run"] == (0.6, "V")
    for new in ("0.3 V", 0.3):
        moved = Prices(replaced(half, "voltage.run", new), FULL)
        assert moved.value(Key(Direction.READ, "SRAM")) == pytest.approx(5 / 8 / 16)


def test_what_is_no_supply_is_refused(tmp_path):
    for run, sentence in (
        ("0.6", "voltage.run: 0.6 has no unit; write one as in '0.9 V'"),
        ("0.6 W", "voltage.run: '0.6 W': 'W' is no voltage; use one of mV, V"),
        ("0 V", "voltage.run: '0 V': must be from"),
        ("600 V", "voltage.run: 600 V is no supply of logic, which has 0.05 to 50 V"),
    ):
        with pytest.raises(SpecError) as refused:
            chip(tmp_path, HALF, ("run: 600 mV", f"run: {run}"))
        assert f"file.yaml:10: {sentence}" in str(refused.value)
    with pytest.raises(SpecError, match=r"10: voltage\.source is missing"):
        chip(tmp_path, HALF, ("600 mV, source: me", "600 mV"))


def test_it_moves_joules_alone(tmp_path):
    macs = [
        ("pJ\n", "MAC\n"), ("50 pJ/B", "50 MAC/B"), ("5 pJ/B", "5 MAC/B"),
        ("0.5 pJ/B", "0.5 MAC/B"), ("4.6 pJ", "1 MAC"), HALF,
    ]  # fmt: skip
    with pytest.raises(SpecError, match="voltage: moves energies in joules, but energy_unit is MA"):
        chip(tmp_path, *macs)


def test_supplies_far_apart_are_doubted(tmp_path):
    with pytest.warns(SpecWarning, match="0.5 V / 1.2 V is more than a factor of 2; is it right"):
        chip(tmp_path, HALF, ("600 mV", "500 mV"))


def test_it_shows(tmp_path, hwmodel):
    path = str(written(tmp_path, CHIP, HALF))
    network = str(written(tmp_path, TINY, name="net.yaml"))
    code, shown, _ = hwmodel("hardware", "show", path)
    assert code == 0
    assert "(0.6 V / 1.2 V)^2 = 0.25 of what the file states" in shown
    asked = ["--layer", "fc1", "--hardware", path, "--method", "fp", "--accounting", "paper"]
    code, told, _ = hwmodel("explain", network, *asked, "--pass", "forward")
    assert code == 0
    assert "| 0.15625 | 0.15625 |" in told  # of the SRAM [pJ/bit]
    assert "0.25 = 1.15` pJ" in told  # in the price of a MAC


def test_no_bundled_chip_states_one():
    """Figures held against measurements were fixed before the field was there."""
    assert not any(load(Hardware, name).voltage for name in bundled(Hardware))
