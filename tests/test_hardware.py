"""Chips: the bundled ones number by number, and what a chip's file may not say."""

import re

import pytest

from hwmodel import SpecError
from hwmodel.errors import SpecWarning
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.plausible import ranges
from tests.specs import CHIP, written

OF_SPLIT = "known: fanout, hop_energy, level, multicast, name, reduction, split"

KIB = 8 * 1024
SRAM = "  - {level: 1, name: SRAM, capacity: 64 KiB, access_energy: 5 pJ/B, source: me}\n"
DRAM = (
    "  - {level: 2, name: DRAM, holds: [I, F, O], capacity: unlimited, access_energy: 50 pJ/B, "
    "source: me}\n"
)
PRICE = "arithmetic:\n  - {operation: mac, bits: 32, energy: 4.6 pJ, source: me}\n"
ACCESS = (
    "is no access energy; use one of fJ, pJ, nJ, uJ, MAC per bit, B or a number of bits, "
    "as in '50 pJ/B' or '10 pJ/64bit'"
)


def memories(hardware):
    found = [buffer for level in hardware.levels for buffer in level.buffers]
    return {
        b.name: (b.capacity_bits, b.read_energy_per_bit, b.write_energy_per_bit, "".join(b.holds))
        for b in found
    }


def test_the_ascend_is_the_published_one():
    """Efficiencies 0.02, 0.2, 0.4, 4.9, 3.5, 5.4 GB/s/mW are so many bytes a pJ; 1.7 TOPS/W."""
    hardware = load(Hardware, "ascend")
    expected = {
        "L3": (None, 1 / 0.02 / 8, "IFO"),
        "L2": (8192 * KIB, 1 / 0.2 / 8, "IFO"),
        "L1": (1024 * KIB, 1 / 0.4 / 8, "IFO"),
        "L0-A": (64 * KIB, 1 / 4.9 / 8, "I"),
        "L0-B": (64 * KIB, 1 / 3.5 / 8, "F"),
        "L0-C": (256 * KIB, 1 / 5.4 / 8, "O"),
    }
    assert memories(hardware) == {
        name: (capacity, pytest.approx(energy, rel=1e-12), pytest.approx(energy, rel=1e-12), holds)
        for name, (capacity, energy, holds) in expected.items()
    }
    assert hardware.energy_unit == "pJ"
    assert hardware.price("mac", 32).energy_per_operation == pytest.approx(2 / 1.7, rel=1e-12)
    assert hardware.price("mac", 16) is None


def test_the_v100_is_the_published_one_per_32_bit_word():
    hardware = load(Hardware, "v100")
    assert memories(hardware) == {
        "DRAM": (None, 200 / 32, 200 / 32, "IFO"),
        "L2": (6144 * KIB, 6 / 32, 6 / 32, "IFO"),
        "L1": (5120 * KIB, 2 / 32, 2 / 32, "IFO"),
        "RF": (80 * 256 * KIB, 1 / 32, 1 / 32, "IFO"),
    }
    assert hardware.energy_unit == "MAC"
    assert hardware.price("mac", 32).energy_per_operation == 1


def test_every_number_of_a_bundled_chip_has_a_known_source():
    for name in bundled(Hardware):
        hardware = load(Hardware, name)
        stated = [b.source for level in hardware.levels for b in level.buffers]
        stated += [price.source for price in hardware.arithmetic]
        for source in stated:
            assert re.split("[;:, ]", source)[0] in hardware.sources, (name, source)


@pytest.mark.parametrize(
    ("stated", "per_bit"),
    [("access_energy: 50 pJ/B", 6.25), ("efficiency: 0.02 GB/s/mW", 6.25), ("access_energy: 1e-1", 0.1),
     ("access_energy: 1.0e-1", 0.1), ("access_energy: 010", 10), ("access_energy: 0", 0),
     ("read_energy: 8 pJ/B, write_energy: 16 pJ/B", 1)],
)  # fmt: skip
def test_an_energy_may_be_stated_in_several_ways(tmp_path, stated, per_bit):
    path = written(tmp_path, CHIP, ("access_energy: 5 pJ/B", stated))
    sram = load(Hardware, path).holder(1, "I")
    assert sram.read_energy_per_bit == pytest.approx(per_bit, rel=1e-15)
    assert sram.write_energy_per_bit == pytest.approx(
        2 if "write" in stated else per_bit, rel=1e-15
    )


def test_an_efficiency_is_of_each_operation_an_energy_of_the_whole(tmp_path):
    one = written(tmp_path, CHIP, ("energy: 4.6 pJ", "efficiency: 2 TOPS/W, operations: 2"))
    assert load(Hardware, one).price("mac", 32).energy_per_operation == 1.0
    whole = written(tmp_path, CHIP, ("energy: 4.6 pJ", "energy: 4.6 pJ, operations: 2"))
    assert load(Hardware, whole).price("mac", 32).energy_per_operation == 4.6


def test_a_capacity_is_read_in_bits(tmp_path):
    assert load(Hardware, written(tmp_path, CHIP)).holder(1, "F").capacity_bits == 524_288


KINDS = (
    "each of weights, maps, signals, gradients, state exactly once (F: weights; I and O, together: "
    "all others)"
)
AMBIGUOUS = (
    "here, at the outermost level, an O of one layer is an I of the next: hold I and O in one "
    "memory, or each of weights, maps, signals, gradients, state in one"
)


def split(*holds):
    """An outermost level of several memories."""
    parts = "".join(
        f"      - {{name: M{i}, holds: {held}, capacity: 1 MiB, access_energy: {i}, source: me}}\n"
        for i, held in enumerate(holds)
    )
    return f"  - level: 2\n    name: off\n    split:\n{parts}"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        # unknown, missing
        ("name: SRAM,", "name: SRAM, capcity: 3 B,",
         ":8: levels.SRAM.capcity is not a field; did you mean 'capacity'?"),
        ("name: SRAM,", "name: SRAM, wdith: 3,",
         ":8: levels.SRAM.wdith is not a field; known: access_energy, bandwidth, capacity, coding, "
         "efficiency, energy, fanout, holds, hop_energy, leakage, level, multicast, name, on_chip, read_bandwidth, read_energy, "
         "reduction, source, stays, write_bandwidth, write_energy"),
        ("capacity: 64 KiB, ", "", ":8: levels.SRAM.capacity is missing"),
        ("energy: 5 pJ/B, source: me", "energy: 5 pJ/B", ":8: levels.SRAM.source is missing"),
        (SRAM, "", ":6: levels: are numbered [2, 0], outermost first: level 1 is missing"),
        ("level: 1,", "level: 3,",
         ":6: levels: are numbered [2, 3, 0], outermost first: level 1 is missing"),
        (PRICE, "", ":1: arithmetic is missing"),
        ("levels:\n", "levels: []\nzzz:\n",
         ":7: zzz is not a field; known: arithmetic, array, clock, energy_unit, label, levels, macs_per_cycle, name, notes, operations_per_cycle, path_prices, "
         "reference, sources, static_energy_per_cycle, static_power, title, version, voltage, zeros; line 6: levels a list of 0: must have at least 2"),
        (SRAM, "  - 5\n" + SRAM, ":8: levels.2 5: must be 'field: value' lines"),
        ("capacity: 1 KiB,", "capacity: 1 KiB, split: [],",
         f":9: levels.RF.capacity is not a field; {OF_SPLIT}; line 9: levels.RF.access_energy is "
         f"not a field; {OF_SPLIT}; line 9: levels.RF.source is not a field; {OF_SPLIT}; "
         "line 9: levels.RF.split a list of 0: must have at least 2"),
        # capacities
        ("64 KiB", "0", ":8: levels.SRAM.capacity: 0 has no unit; write a size as in '64 KiB', or "
                        "'unlimited'"),
        ("64 KiB", "0 KiB", ":8: levels.SRAM.capacity: '0 KiB': a capacity must be above 0, or "
                            "'unlimited'"),
        ("64 KiB", "-1 KiB", ":8: levels.SRAM.capacity: '-1 KiB': a capacity must be above 0, or "
                             "'unlimited'"),
        ("64 KiB", "64", ":8: levels.SRAM.capacity: 64 has no unit; write a size as in '64 KiB', or "
                         "'unlimited'"),
        ("64 KiB", "64 kb", ":8: levels.SRAM.capacity: '64 kb': 'kb' is no size; use one of bit, B, "
                            "KiB, MiB, GiB"),
        ("64 KiB", "64KB", ":8: levels.SRAM.capacity: '64KB': 'KB' means 1000 to some and 1024 to "
                           "others; write KiB for powers of 1024, or plain B"),
        ("64 KiB", "~", ":8: levels.SRAM.capacity: None has no unit; write a size as in '64 KiB', or "
                        "'unlimited'"),
        ("64 KiB", "1e305 GiB", ":8: levels.SRAM.capacity: '1e305 GiB': the number is too large"),
        # energies
        ("5 pJ/B", "-5 pJ/B", ":8: levels.SRAM.access_energy: '-5 pJ/B': an energy must be finite and "
                              "at least 0"),
        ("5 pJ/B", "-1", ":8: levels.SRAM.access_energy: -1: an energy must be finite and at least 0"),
        ("5 pJ/B", ".nan", ":8: levels.SRAM.access_energy: nan: an energy must be finite and at "
                           "least 0"),
        ("5 pJ/B", ".inf", ":8: levels.SRAM.access_energy: inf: an energy must be finite and at "
                           "least 0"),
        ("5 pJ/B", "NaN", ":8: levels.SRAM.access_energy: 'NaN': write a number and a unit, as in "
                          "'50 pJ/B'"),
        ("5 pJ/B", "NaN pJ/B", ":8: levels.SRAM.access_energy: 'NaN pJ/B': write a number and a unit, "
                               "as in '50 pJ/B'"),
        ("5 pJ/B", "1e400 pJ/B", ":8: levels.SRAM.access_energy: '1e400 pJ/B': the number is too "
                                 "large"),
        ("5 pJ/B", "1" + "0" * 400, ":8: levels.SRAM.access_energy: 1" + "0" * 400 +
         ": an energy must be finite and at least 0"),
        ("5 pJ/B", "2e100", ":8: levels.SRAM.access_energy: 2e+100: an energy must be at most 1e+100"),
        ("access_energy: 5 pJ/B", "efficiency: 1e-102 GB/s/mW",
         ":8: levels.SRAM.efficiency: '1e-102 GB/s/mW': an energy must be at most 1e+100"),
        ("5 pJ/B", "false", ":8: levels.SRAM.access_energy: False is no energy; write one as in "
                            "'50 pJ/B' or '0.9 pJ'"),
        ("5 pJ/B", "[5]", ":8: levels.SRAM.access_energy: [5] is no energy; write one as in "
                          "'50 pJ/B' or '0.9 pJ'"),
        ("5 pJ/B", "no", ":8: levels.SRAM.access_energy: 'no': write a number and a unit, as in "
                         "'50 pJ/B'"),
        ("5 pJ/B", "12:30", f":8: levels.SRAM.access_energy: '12:30': ':30' {ACCESS}"),
        ("5 pJ/B", "5 kJ/B", f":8: levels.SRAM.access_energy: '5 kJ/B': 'kJ/B' {ACCESS}"),
        ("5 pJ/B", "1V", f":8: levels.SRAM.access_energy: '1V': 'V' {ACCESS}"),
        ("5 pJ/B", "5 MAC/B", ":8: levels.SRAM: is in MAC, but energy_unit is pJ"),
        ("5 pJ/B", "~", ":8: levels.SRAM: give one of access_energy, efficiency, energy, or read_energy with "
                        "write_energy; here: none of them"),
        ("access_energy: 5 pJ/B", "read_energy: 5 pJ/B",
         ":8: levels.SRAM: give one of access_energy, efficiency, energy, or read_energy with write_energy; "
         "here: read_energy"),
        ("access_energy: 5 pJ/B", "efficiency: 0 GB/s/mW",
         ":8: levels.SRAM.efficiency: '0 GB/s/mW': an efficiency must be above 0"),
        ("access_energy: 5 pJ/B", "efficiency: 0.2",
         ":8: levels.SRAM.efficiency: 0.2 has no unit; write one as in '4.9 GB/s/mW' or '1.7 TOPS/W'"),
        ("energy_unit: pJ", "energy_unit: joule", ":4: energy_unit 'joule': must be 'pJ' or 'MAC'"),
        ("energy_unit: pJ", "energy_unit: J", ":4: energy_unit: 'J': must be 'pJ', in which energies are told, or 'MAC'; prices may be written in any: 1.5 nJ, 20 pJ/bit"),
        ("energy_unit: pJ", "energy_unit: MAC", ":7: levels.DRAM: is in pJ, but energy_unit is MAC"),
        # what is held
        ("[I, F, O]", "[I, F]", ":7: levels.DRAM: holds F, I; each of I, F, O exactly once"),
        ("[I, F, O]", "[I, F, X]", ":7: levels.DRAM.holds.3 'X': must be 'I', 'F', 'O', "
                                    "'weights', 'maps', 'signals', 'gradients' or 'state'"),
        ("[I, F, O]", "[I, F, O, maps]", f":7: levels.DRAM: holds F, I, O, maps; {KINDS}"),
        ("[I, F, O]", "[weights, maps]", f":7: levels.DRAM: holds maps, weights; {KINDS}"),
        ("[I, F, O]", "[F, I, signals, gradients, maps, state]",
         f":7: levels.DRAM: holds F, I, gradients, maps, signals, state; {KINDS}"),
        ("[I, F, O]", "[I, F, O, F]", ":7: levels.DRAM: holds F, F, I, O; each of I, F, O exactly "
                                      "once"),
        (DRAM, split("[I]", "[F, O]"), f":7: levels.off: holds F, I, O; {AMBIGUOUS}"),
        (DRAM, split("[F, I]", "[O]"), f":7: levels.off: holds F, I, O; {AMBIGUOUS}"),
        (DRAM, split("[F]", "[I, O, state]"), f":7: levels.off: holds F, I, O, state; {KINDS}"),
        ("name: SRAM,", "name: SRAM, holds: [weights, I, O],",
         ":8: levels.SRAM: holds I, O, weights; each of I, F, O at most once; the outermost level "
         "alone holds kinds of tensors"),
        ("[I, F, O]", "[]", ":7: levels.DRAM.holds a list of 0: must have at least 1"),
        ("name: SRAM", "name: DRAM", ":8: levels.DRAM: a memory before it has the same name"),
        # arithmetic
        ("operation: mac", "operation: add", ":10: arithmetic: has no price for a 'mac'"),
        ("operation: mac", "operation: multiply",
         ":11: arithmetic.1.operation 'multiply': must be 'mac', 'int-mac', 'add', 'int-add' or 'logic'"),
        ("bits: 32", "bits: 0", ":11: arithmetic.1.bits 0: must be at least 1"),
        ("bits: 32", "bits: 32.0", ":11: arithmetic.1.bits 32.0: must be a whole number"),
        ("energy: 4.6 pJ, source", "source", ":11: arithmetic.1: give energy (of the whole) or "
                                             "efficiency (of one operation in it)"),
        ("energy: 4.6 pJ", "energy: 1 MAC", ":11: arithmetic.1: is in MAC, but energy_unit is pJ"),
        ("energy: 4.6 pJ", "efficiency: 1.7 GB/s/mW",
         ":11: arithmetic.1.efficiency: '1.7 GB/s/mW': 'GB/s/mW' is no operation efficiency; use one "
         "of TOPS/W, GOPS/W"),
        (PRICE, PRICE + PRICE.split("\n")[1],
         ":12: arithmetic.2: prices a 32-bit mac a second time"),
        ('sources: {me: "me, 2024"}', "sources: {}",
         ":5: sources: names no source; list them (key: publication) or leave it out"),
        ('sources: {me: "me, 2024"}', "sources: {me: me}",
         ":5: sources.me: 'me' stands for itself: say which publication, file or choice it is"),
    ],
)  # fmt: skip
def test_a_chip_that_cannot_be_is_refused_in_one_sentence(tmp_path, old, new, sentence):
    path = written(tmp_path, CHIP, (old, new))
    with pytest.raises(SpecError) as caught:
        load(Hardware, path)
    assert str(caught.value) == f"{path}{sentence}"


@pytest.mark.parametrize(
    ("old", "new", "doubt"),
    [
        ("0.5 pJ/B, source: me", "0.5 pJ/B, source: mee",
         "source 'mee' names none of the file's sources; did you mean 'me'?"),
        ("4.6 pJ, source: me", "4.6 pJ, source: 'Smith, 2020'",
         "source 'Smith, 2020' names none of the file's sources; known: me"),
        ("4.6 pJ, source: me", "4.6 pJ, source: 'me: 3.7 + 0.9'", None),
        ("4.6 pJ, source: me", "4.6 pJ, source: 'table 2 of me'", None),
        ('sources: {me: "me, 2024"}\n', "", None),  # then every source stands for itself
        ("1 KiB", "65 KiB", "RF: is larger than SRAM, the memory above it; no tile in it can be"),
        ("1 KiB", "64 KiB", None),
        ("1 KiB", "unlimited",
         "RF: is larger than SRAM, the memory above it; no tile in it can be"),
        ("64 KiB", "unlimited", None),
    ],
)  # fmt: skip
def test_what_is_improbable_is_told_and_nothing_stops(hwmodel, tmp_path, old, new, doubt):
    written(tmp_path, CHIP, (old, new), name="chip.yaml")
    code, out, err = hwmodel("hardware", "check", "chip.yaml")
    assert (code, out) == (0, "chip.yaml: hardware chip is right\n")
    assert err == ("" if doubt is None else f"hwmodel: warning: chip.yaml: {doubt}\n")


def test_sizes_are_compared_operand_by_operand(hwmodel, tmp_path):
    """The split memory of I may be as large as that above it has room, whatever the others are."""
    split = """\
  - level: 0
    name: RF
    split:
      - {name: RF-I, holds: [I], capacity: 65 KiB, access_energy: 1 pJ/B, source: me}
      - {name: RF-FO, holds: [F, O], capacity: 1 KiB, access_energy: 1 pJ/B, source: me}
"""
    line = next(line for line in CHIP.splitlines() if "name: RF" in line)
    written(tmp_path, CHIP, (f"{line}\n", split), name="chip.yaml")
    _, _, err = hwmodel("hardware", "check", "chip.yaml")
    assert err == (
        "hwmodel: warning: chip.yaml: RF-I: is larger than SRAM, the memory above it; "
        "no tile in it can be\n"
    )


@pytest.mark.parametrize("kind", [Hardware, Method, Accounting])
def test_bundled_files_have_no_source_that_is_not_listed(kind):
    for name in bundled(kind):
        assert not [doubt for doubt in load(kind, name).doubts() if "source" in doubt]


# Prices far from any


def test_ranges_of_prices_are_those_of_the_bundled_chips():
    found = {}
    for name in bundled(Hardware):
        chip = load(Hardware, name)
        if chip.energy_unit != "pJ" or name == "mcu-m4":
            continue
        for level in chip.levels:
            for memory in level.buffers:
                outermost = level is chip.levels[0]
                if outermost and memory.capacity_bits is not None:
                    continue
                kind = "unlimited outermost memory" if outermost else "memory on the chip"
                found.setdefault(kind, []).extend(e.value for e in memory.energies if e.value)
        for price in chip.arithmetic:
            if not price.format:
                kind = f"{price.bits}-bit {price.operation}"
                found.setdefault(kind, []).append(price.energy_per_operation)
    assert {kind: (min(few), max(few)) for kind, few in found.items()} == {
        kind: pytest.approx((one.least, one.most), rel=1e-4) for kind, one in ranges().items()
    }


def test_a_copy_of_a_processor_is_not_doubted(hwmodel, tmp_path):
    (tmp_path / "copy.yaml").write_text(hwmodel("hardware", "show", "mcu-m4")[1])
    code, _, err = hwmodel("hardware", "check", "copy.yaml")
    assert code == 0 and "times the most" not in err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("50 pJ/B", "50 nJ/B", "DRAM: 6250 pJ per bit is 296 times the most that bundled chips pay "
         "for a memory of this kind, 21.1 (v100-board's HBM2); is the unit right?"),
        ("5 pJ/B", "5 fJ/B", "SRAM: 0.000625 pJ per bit is 1/37 of the least that bundled chips "
         "pay for a memory of this kind, 0.02315 (ascend's L0-C); is the unit right?"),
        ("4.6 pJ", "4600", "32-bit mac: 4600 pJ per operation is 133 times the most that bundled "
         "chips pay for it alone, 34.6 (v100-pcie-board); instructions cost 12.3 to 854 (mcu-m4); "
         "is the unit right? A bare number is in pJ per operation"),
        ("50 pJ/B", "500 nJ/B", "DRAM: 62500 pJ per bit is 2,960 times the most that bundled chips "
         "pay for a memory of this kind, 21.1 (v100-board's HBM2); is the unit right?"),
        ("access_energy: 5 pJ/B", "read_energy: 5 pJ/B, write_energy: 5 fJ/B",
         "SRAM, written: 0.000625 pJ per bit is 1/37 of the least that bundled chips pay for a "
         "memory of this kind, 0.02315 (ascend's L0-C); is the unit right?"),
        ("4.6 pJ", "30 pJ", ""), ("4.6 pJ", "800 pJ", ""),  # an instruction of a processor
    ],
)  # fmt: skip
def test_a_unit_that_is_wrong_by_a_thousand_is_doubted(tmp_path, before, after, said):
    path = written(tmp_path, CHIP, (before, after), name="chip.yaml")
    if not said:
        load(Hardware, path)
        return
    with pytest.warns(SpecWarning) as warned:
        load(Hardware, path)
    assert [str(one.message) for one in warned] == [f"{path}: {said}"]
