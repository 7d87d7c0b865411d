"""Prices of integers by width, the cap on additions, and the operations of a product, by hand.

Horowitz, 45 nm: multiplications 0.2 (8 bit) and 3.1 pJ (32), additions 0.03, 0.05 and 0.1 pJ at 8,
16 and 32 bit. TPUv4i, 7 nm: 0.07 pJ and 0.007, 0.03 pJ at 8 and 32 bit.
"""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from hwmodel.errors import SpecError, SpecWarning
from hwmodel.model.prices import Key, Prices
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.hardware import Hardware, Price
from hwmodel.work.tensor import Direction
from tests.specs import CHIP, written

FULL, PAPER = load(Accounting, "full"), load(Accounting, "paper")
OPERATE = Direction.OPERATE


def price(hardware, kind, bits, narrow=0, accounting=FULL):
    spec = hardware if isinstance(hardware, Hardware) else load(Hardware, hardware)
    return Prices(spec, accounting).value(Key(OPERATE, kind, bits, narrow))


def with_prices(*stated):
    """A chip of one memory with prices of (operation, bits, pJ), and a MAC of 32 bit."""
    entries = [
        {"operation": kind, "bits": bits, "energy": energy, "source": "me"}
        for kind, bits, energy in (("mac", 32, 4.6), *stated)
    ]
    return Hardware.model_validate(
        {"version": 1, "name": "made", "title": "Made", "energy_unit": "pJ", "levels": LEVELS,
         "arithmetic": entries}
    )  # fmt: skip


LEVELS = [
    {"level": 1, "name": "DRAM", "capacity": "unlimited", "access_energy": 1, "source": "me"},
    {"level": 0, "name": "RF", "capacity": "1 MiB", "access_energy": 1, "source": "me"},
]


@pytest.mark.parametrize(
    ("hardware", "kind", "widths", "pj"),
    [
        ("horowitz45", "int-mul", (8, 8), 0.2), ("horowitz45", "int-mul", (8, 4), 0.1),
        ("horowitz45", "int-mul", (8, 2), 0.05), ("horowitz45", "int-mul", (32, 32), 3.1),
        ("horowitz45", "int-mul", (4, 4), 0.2 / 4), ("horowitz45", "int-mul", (64, 64), 3.1 * 4),
        # a fifth of the way from 8^2 to 32^2: 16^2 = 64 + 960 / 5
        ("horowitz45", "int-mul", (16, 16), 0.2 + (3.1 - 0.2) / 5),
        ("mcu-m4", "int-mul", (8, 4), 854 - 392), ("mcu-m4", "int-mul", (4, 1), 854 - 392),
        ("horowitz45", "int-add", (8,), 0.03), ("horowitz45", "int-add", (20,), 0.0625),
        ("horowitz45", "int-add", (25,), 0.05 + 9 / 16 * 0.05),
        ("horowitz45", "int-add", (4,), 0.015), ("horowitz45", "int-add", (64,), 0.2),
        ("tpuv4i", "int-mul", (8, 2), 0.07 / 4), ("tpuv4i", "int-mul", (4, 4), 0.07 / 4),
        ("tpuv4i", "int-add", (8,), 0.007), ("tpuv4i", "int-add", (20,), 0.0185),
        # it prices its own 16-bit MAC, 1, and an addition is 0.05 / 4.6 of its 32-bit MAC
        ("eyeriss", "int-mul", (8, 8), (1 - 3.0667 * 0.010870) / 4),
    ],
)  # fmt: skip
def test_integers_are_priced_by_both_widths(hardware, kind, widths, pj):
    assert price(hardware, kind, *widths) == pytest.approx(pj, rel=1e-12)


@pytest.mark.parametrize(
    ("hardware", "pj"),
    [
        # an 8-bit MAC is measured whole, 854 pJ, whatever its sum of up to 32 bit
        ("mcu-m4", (854 - 392, 392)),
        # 2 pJ with a 32-bit addition, which is 0.1 of 4.6 of its 32-bit MAC of 8 pJ
        ("gap9", (2 - 8 * 0.1 / 4.6, 8 * 0.0625 / 4.6)),
        ("a100-sxm-board", (0.7 - 2.8 * 0.1 / 4.6, 2.8 * 0.0625 / 4.6)),
    ],
)
def test_a_mac_that_states_the_sum_in_its_price_pays_no_second_one(hardware, pj):
    found = price(hardware, "int-mul", 8, 8), price(hardware, "int-add", 20)
    assert found == pytest.approx(pj, rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"operation": "mac", "bits": 8, "sum_bits": 32}, "sum_bits is of an int-mac"),
        ({"operation": "int-mac", "bits": 8, "sum_bits": 4}, "no narrower than 8 bit"),
        ({"operation": "int-mac", "bits": 8, "sum_bits": 0}, "must be at least 1"),
    ],
)
def test_a_sum_that_cannot_be_in_a_price_is_refused(fields, said):
    with pytest.raises(SpecError, match=said):
        validate(Price, {**fields, "energy": "1 pJ", "source": "me"}, "price")


@pytest.mark.parametrize("hardware", ["ascend", "v100"])
def test_a_chip_that_prices_no_integers_has_the_published_ratios(hardware):
    """To the digits that the accounting states them with."""
    mac = price(hardware, "mac", 32)
    for kind, widths, pj in (
        ("int-mul", (8, 2), 0.05), ("int-mul", (8, 8), 0.2), ("int-add", (20,), 0.0625),
    ):  # fmt: skip
        assert price(hardware, kind, *widths) == pytest.approx(mac * pj / 4.6, rel=1e-4)


@pytest.mark.parametrize("hardware", ["ascend", "v100", "eyeriss", "horowitz45", "tpuv4i"])
def test_more_bits_never_cost_less(hardware):
    for narrow in (1, 2, 4, 8):
        products = [price(hardware, "int-mul", bits, narrow) for bits in range(8, 65)]
        assert products == sorted(products)
    sums = [price(hardware, "int-add", bits) for bits in range(1, 65)]
    assert sums == sorted(sums)
    two, four, eight = (price(hardware, "int-mul", 8, bits) for bits in (2, 4, 8))
    assert (two, four) == pytest.approx((eight / 4, eight / 2))


@settings(max_examples=25, deadline=None)
@given(
    stated=some.dictionaries(some.integers(1, 64), some.floats(1.0, 1e3), min_size=1, max_size=4)
)
def test_a_wider_operand_never_costs_less(stated):
    """Where it is so of the MACs that a chip states; its additions cost a hundredth of the least."""
    prices = dict(zip(sorted(stated), sorted(stated.values()), strict=True))
    adders = [("int-add", width, 0.01) for width in prices]
    hardware = with_prices(*adders, *(("int-mac", *one) for one in prices.items()))
    for bits in (1, 3, 16):
        products = [price(hardware, "int-mul", max(bits, b), min(bits, b)) for b in range(1, 65)]
        assert all(a <= b * (1 + 1e-12) for a, b in pairwise(products))
    for width, pj in prices.items():
        assert price(hardware, "int-mul", width, width) == pytest.approx(pj - 0.01)


KINDS = ("mac", "int-mac", "add", "int-add")


@settings(max_examples=60, deadline=None)
@given(
    stated=some.dictionaries(
        some.tuples(some.sampled_from(KINDS), some.integers(1, 64)),
        some.floats(1e-3, 1e3),
        max_size=8,
    ),
    accounting=some.sampled_from([FULL, PAPER]),
)
def test_an_addition_is_never_dearer_than_the_multiply_add_of_its_width(stated, accounting):
    stated.pop(("mac", 32), None)
    hardware = with_prices(*((kind, bits, pj) for (kind, bits), pj in stated.items()))
    for bits in range(1, 65):
        paid = {}
        for kind in KINDS:
            try:
                paid[kind] = price(hardware, kind, bits, accounting=accounting)
            except SpecError:
                continue
        assert paid["int-add"] <= paid["int-mac"] * (1 + 1e-12)
        assert price(hardware, "int-mul", bits, bits, accounting) >= 0
        if "add" in paid and "mac" in paid:
            assert paid["add"] <= paid["mac"]
        elif "add" in paid and ("int-mac", bits) in stated:
            assert paid["add"] <= paid["int-mac"]


def test_a_multiplication_and_its_addition_are_the_stated_mac_again():
    """Nothing is paid twice: an int-mac holds an addition of its width."""
    for bits, pj in ((8, 0.23), (32, 3.2)):
        parts = price("horowitz45", "int-mul", bits, bits), price("horowitz45", "int-add", bits)
        assert sum(parts) == pytest.approx(pj, rel=1e-12)
        assert price("horowitz45", "int-mac", bits) == pj


def test_a_mac_that_nobody_states_is_its_two_parts():
    """Beside a stated 16-bit MAC that is cheaper than the 8-bit one, too."""
    chip = with_prices(("int-mac", 8, 2.0), ("int-mac", 16, 1.0), ("int-add", 8, 0.025))
    parts = price(chip, "int-mul", 12, 12) + price(chip, "int-add", 12)
    assert price(chip, "int-mac", 12) == pytest.approx(parts, rel=1e-12)
    assert price(chip, "int-mul", 12, 12) >= price(chip, "int-mul", 8, 8)


def test_an_addition_that_a_file_states_dearer_is_told_and_capped(tmp_path):
    more = (
        "  - {operation: int-mac, bits: 8, energy: 0.02 pJ, source: me}\n"
        "  - {operation: int-add, bits: 8, energy: 0.03 pJ, source: me}\n"
    )
    path = written(tmp_path, CHIP + more)
    with pytest.warns(SpecWarning, match=r"8-bit int-add at 0\.03 pJ is dearer than the int-mac"):
        stated = load(Hardware, path)
    assert price(stated, "int-add", 8) == 0.02
    assert price(stated, "int-mul", 8, 8) == 0


def test_narrow_floating_point_words_have_no_price_that_is_made_up():
    for kind in ("mac", "add"):
        with pytest.raises(SpecError, match=f"states no price of an 8-bit {kind}"):
            price("tpuv4i", kind, 8)


def test_a_mac_that_nobody_states_is_a_multiplication_and_an_addition():
    """6 bit between 4 and 8: (36 - 16) / (64 - 16) of the way; an addition of 6/8 of 8 bit."""
    hardware = with_prices(
        ("int-mac", 4, 0.065), ("int-mac", 8, 0.23), ("int-add", 4, 0.015), ("int-add", 8, 0.03)
    )  # fmt: skip
    multiplied = 0.05 + 20 / 48 * 0.15
    assert price(hardware, "int-mac", 6) == pytest.approx(multiplied + 0.0225)


def test_what_is_made_of_widths_is_named_and_nothing_else():
    prices = Prices(load(Hardware, "tpuv4i"), FULL)
    stated = [("mac", 32), ("int-mac", 8), ("int-add", 8), ("int-add", 32), ("add", 16)]
    assert prices.derived(Key(OPERATE, *one) for one in stated) == ""
    made = [("int-add", 20), ("int-mul", 8, 8), ("int-mul", 8, 2), ("int-mac", 6)]
    assert prices.derived(Key(OPERATE, *one) for one in (*stated, *made)) == (
        "int-add of 20 bit; int-mac of 6 bit; int-mul of 2 x 8, 8 x 8 bit"
    )


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
@pytest.mark.parametrize(("summed", "said"), [("", True), (", sum_bits: 32", False)])
def test_prices_that_are_not_as_stated_are_told(hwmodel, tmp_path, summed, said):
    """fp16's MAC is 1.5 / 4.6 of the chip's 32-bit one; an int-mac adds no more than it says."""
    stated = "arithmetic:\n  - {operation: int-mac, bits: 8, energy: 2 pJ, source: me"
    written(tmp_path, CHIP, ("arithmetic:", f"{stated}{summed}}}"), name="c.yaml")
    words = ("--hardware", "c.yaml", "--accounting", "full", "--mode", "inference")
    _, out, err = hwmodel("compare", "mlp-784-512-512-10", "--methods", "fp,fp16,int8", *words)
    told = " ".join((out + err).split())
    assert f"in 32-bit MACs: a 16-bit one {1.5 / 4.6:.4g}" in told
    assert ("an int-mac of 8 bit is taken to add words of its own width" in told) == said
