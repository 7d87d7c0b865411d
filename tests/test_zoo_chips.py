"""The bundled chips: prices as published, by hand."""

import pytest

from hwmodel.errors import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.model.evaluate import evaluate
from hwmodel.model.prices import Key, Prices
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import replaced_all
from hwmodel.work.tensor import Direction
from tests.rows import merged
from tests.specs import STACKED

CHIPS = tuple(bundled(Hardware))
PAPER = load(Accounting, "paper")
RELATIVE = replaced_all(
    PAPER, {"prices.addition_price": "relative", "prices.logic_price_macs": None}
)


def price(kind, bits, chip, accounting):
    return Prices(chip, accounting).value(Key(Direction.OPERATE, kind, bits))


def read_energies(chip: str) -> list[float]:
    """Of one bit, the outermost level first [chip's unit/bit]."""
    levels = load(Hardware, chip).levels
    return [buffer.read_energy_per_bit for level in levels for buffer in level.buffers]


@pytest.mark.parametrize("chip", CHIPS)
def test_every_number_of_a_chip_has_a_source_of_the_file(chip):
    spec = load(Hardware, chip)
    buffers = [buffer for level in spec.levels for buffer in level.buffers]
    for item in (*buffers, *spec.arithmetic):
        assert any(key in item.source for key in spec.sources), item
    assert spec.notes


@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip_prices_a_full_precision_mac(chip):
    assert price("mac", PAPER.widths.full_precision_bits, load(Hardware, chip), PAPER) > 0


@pytest.mark.parametrize("chip", [STACKED, "horowitz45", "tpuv4i"])
def test_what_lies_farther_out_costs_more_and_holds_more(chip):
    energies = read_energies(chip)
    assert energies == sorted(energies, reverse=True)
    capacities = [level.capacity_bits for level in load(Hardware, chip).levels[1:]]
    assert capacities == sorted(capacities, reverse=True)


def test_an_8_kb_buffer_costs_a_pj_and_a_quarter_a_byte():
    """C8: 10 pJ is the energy of a 64-bit access, not of a byte or of a 32-bit word."""
    pj_per_byte = [8 * energy for energy in read_energies("horowitz45")]
    assert pj_per_byte == pytest.approx([1300 / 8, 12.5, 2.5, 1.25])
    megabyte = 2**20 * pj_per_byte[-1]
    assert megabyte == pytest.approx(1.31072e6)  # 1.31 uJ


def test_widths_and_energy_units_give_energies_of_a_bit():
    """C10: an energy has a unit and an access width; the energy of a bit follows."""
    assert read_energies("eyeriss") == pytest.approx([12.5, *2 * [6 / 16], *3 * [1 / 16]])
    assert read_energies("tpuv4i") == pytest.approx([3.92, 14 / 64, 8.5 / 64, 7.5 / 64])
    assert load(Hardware, "eyeriss").unit == "MAC (int16)"  # isca: 16-bit fixed point
    assert load(Hardware, "v100").unit == "MAC (fp32)"
    assert load(Hardware, "horowitz45").unit == load(Hardware, "tpuv4i").unit == "pJ"


def test_capacities_are_the_published_ones():
    published = {
        "horowitz45": [2**23, 2**18, 2**16],
        "tpuv4i": [2**30, 2**27, 2**20],
    }
    for chip, capacities in published.items():
        assert [v.capacity_bits for v in load(Hardware, chip).levels[1:]] == capacities


@pytest.mark.parametrize(
    ("kind", "bits", "pj"),
    [
        ("mac", 32, 3.7 + 0.9), ("mac", 16, 1.1 + 0.4), ("int-mac", 8, 0.2 + 0.03),
        ("int-mac", 4, 0.065), ("add", 32, 0.9), ("add", 16, 0.4), ("int-add", 32, 0.1),
        ("int-add", 16, 0.05), ("int-add", 8, 0.03), ("logic", 1, 0.1 / 63),
    ],
)  # fmt: skip
def test_operations_at_45_nm_cost_what_is_published(kind, bits, pj):
    assert price(kind, bits, load(Hardware, "horowitz45"), RELATIVE) == pytest.approx(pj, rel=3e-3)


@pytest.mark.parametrize(
    ("kind", "bits", "pj"),
    [
        ("mac", 32, 1.69), ("mac", 16, 0.32), ("int-mac", 8, 0.077), ("add", 32, 0.38),
        ("add", 16, 0.11), ("int-add", 32, 0.03), ("logic", 1, 0.03 / 63),
    ],
)  # fmt: skip
def test_operations_at_7_nm_cost_what_is_published(kind, bits, pj):
    assert price(kind, bits, load(Hardware, "tpuv4i"), RELATIVE) == pytest.approx(pj)


def test_a_32_bit_mac_on_a_16_bit_chip_is_derived_from_the_published_ratio():
    chip = load(Hardware, "eyeriss")
    assert price("mac", 16, chip, PAPER) == price("int-mac", 16, chip, PAPER) == 1
    assert price("mac", 32, chip, PAPER) == pytest.approx(4.6 / 1.5, rel=1e-4)


def test_the_macs_of_resnet_18_take_8_millijoule_at_45_nm():
    """C24: 1,814,073,344 MACs of 3.7 + 0.9 pJ, as one layer of so many."""
    macs = 1_814_073_344
    layers = [{"name": "fc", "kind": "linear", "features": macs // 2**12}]
    network = Network.model_validate(
        {"version": 1, "name": "n", "title": "t", "input": [2**12, 1, 1], "layers": layers}
    )
    report = evaluate(network, "horowitz45", "fp", mode="inference", accounting="paper")
    compute = [row for row in merged(report) if row.component == "compute"]
    assert sum(row.operations for row in compute) == macs // 2**12 * 2**12
    assert sum(row.energy for row in compute) == pytest.approx(8.345e9, rel=1e-4)


def test_eyeriss_has_the_memories_of_the_chip_that_was_built():
    """JSSC 2017: 12, 224 and 24 words of 16 bit in each of 12 x 14 PEs; 25 banks of 4 KiB and 8."""
    buffer, pe = load(Hardware, "eyeriss").levels[1:]
    assert [b.capacity_bits for b in buffer.buffers] == [25 * 512 * 64, 8 * 8192]
    assert [b.capacity_bits for b in pe.buffers] == [12 * 16, 224 * 16, 24 * 16]
    assert pe.instances == 12 * 14


@pytest.mark.parametrize("name", ["horowitz45", "tpuv4i"])
def test_a_chip_with_an_array_is_the_one_without_and_its_array(name):
    without, its = load(Hardware, name), load(Hardware, f"{name}-array")
    assert (without.levels, without.arithmetic) == (its.levels, its.arithmetic)
    assert without.array is None and its.array is not None


def test_a_microcontroller_pays_what_the_board_was_measured_to_take():
    """MLPerf Tiny v1.0: 10,681.623 uJ for 12,501,632 MACs, 47.095 mW at 120 MHz."""
    chip = load(Hardware, "mcu-m4")
    assert price("int-mac", 8, chip, PAPER) == pytest.approx(10_681.623e6 / 12_501_632, rel=1e-3)
    cycle = 47.095e-3 / 120e6 * 1e12
    assert price("add", 32, chip, RELATIVE) == pytest.approx(cycle, rel=2e-3)
    assert price("logic", 1, chip, RELATIVE) == pytest.approx(cycle / 32, rel=5e-3)
    flash, sram = chip.levels[0].buffers
    assert flash.write_energy_per_bit == pytest.approx(3.4e-3 * 1.8 * 81.7e-6 / 64 * 1e12, rel=1e-3)
    assert flash.read_energy_per_bit == pytest.approx(3 * sram.read_energy_per_bit, rel=5e-3)


def test_a_binary_chip_does_230_tera_operations_a_joule_and_has_no_room_for_vgg_small():
    chip = load(Hardware, "binareye")
    assert price("logic", 1, chip, RELATIVE) == pytest.approx(1e12 / 230e12, rel=1e-4)
    weights, maps = chip.levels[0].buffers
    assert (weights.capacity_bits + maps.capacity_bits) / 8192 == 328
    with pytest.raises(HwmodelError, match=r"does not fit binareye.*weights has to hold"):
        evaluate("vgg-small", "binareye", "bold", mode="inference", accounting="full")
