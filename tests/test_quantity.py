"""Units and their conversions, each number worked out here, and what no quantity is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodel.specs.quantity import QuantityError, access_energy, bits, efficiency, operation_energy


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1 bit", 1), ("1 B", 8), ("64 KiB", 64 * 1024 * 8), ("64KiB", 524_288), ("0.5 KiB", 4096),
        ("6 MiB", 6 * 1024**2 * 8), ("2 GiB", 2 * 1024**3 * 8), ("1e3 B", 8000), ("1_024 B", 8192),
        ("  3   bit ", 3), (".5 B", 4), ("+1 B", 8), ("0.125 B", 1), ("-1 B", -8),
    ],
)  # fmt: skip
def test_sizes_in_bits(text, size):
    assert bits(text) == size


def test_0_02_gbps_per_mw_is_50_pj_per_byte_is_6_25_pj_per_bit():
    assert efficiency("0.02 GBPS/mW", of="access") == 6.25
    assert efficiency("0.02 GB/s/mW", of="access") == 6.25
    assert access_energy("50 pJ/B") == (6.25, "pJ")
    assert access_energy("6.25 pJ/bit") == (6.25, "pJ")


@pytest.mark.parametrize(
    ("text", "energy", "unit"),
    [
        ("8 fJ/B", 0.001, "pJ"), ("8 nJ/B", 1000.0, "pJ"), ("8 uJ/B", 1e6, "pJ"),
        ("200 MAC/32bit", 6.25, "MAC"), ("10 pJ/64bit", 0.15625, "pJ"), ("10 pJ/64 bit", 0.15625, "pJ"),
        ("1 pJ/KiB", 1 / 8192, "pJ"), ("50 pJ / B", 6.25, "pJ"), ("1e-3 pJ/bit", 0.001, "pJ"),
    ],
)  # fmt: skip
def test_access_energies_per_bit(text, energy, unit):
    assert access_energy(text) == (pytest.approx(energy, rel=1e-15), unit)


@pytest.mark.parametrize(
    ("text", "energy", "unit"),
    [("900 fJ", 0.9, "pJ"), ("4.6 pJ", 4.6, "pJ"), ("1 nJ", 1000, "pJ"), ("2 MAC", 2, "MAC")],
)
def test_operation_energies(text, energy, unit):
    assert operation_energy(text) == (pytest.approx(energy, rel=1e-15), unit)


def test_efficiency_is_the_inverse_of_energy():
    assert efficiency("1.7 TOPS/W", of="operation") == pytest.approx(1 / 1.7, rel=1e-15)
    assert efficiency("1700 GOPS/W", of="operation") == pytest.approx(1 / 1.7, rel=1e-15)
    assert efficiency("4.9 GB/s/mW", of="access") == pytest.approx(0.204 / 8, rel=1e-3)
    assert efficiency("5.4 GB/s/mW", of="access") == pytest.approx(0.185 / 8, rel=2e-3)


@given(st.floats(1e-6, 1e6), st.sampled_from(["fJ", "pJ", "nJ", "uJ", "MAC"]))
def test_an_energy_per_byte_is_that_of_8_bits(number, unit):
    (per_byte, base), (per_bit, same) = (
        access_energy(f"{number} {unit}/{x}") for x in ("B", "bit")
    )
    assert per_byte * 8 == pytest.approx(per_bit, rel=1e-12)
    assert base == same == ("MAC" if unit == "MAC" else "pJ")


SIZES = "use one of bit, B, KiB, MiB, GiB"
ACCESS = (
    "is no access energy; use one of fJ, pJ, nJ, uJ, MAC per bit, B or a number of bits, "
    "as in '50 pJ/B' or '10 pJ/64bit'"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("64 kb", f"'64 kb': 'kb' is no size; {SIZES}"),
        ("64", f"'64': '' is no size; {SIZES}"),
        ("1__0 B", f"'1__0 B': '__0 B' is no size; {SIZES}"),
        ("64 KB", "'64 KB': 'KB' means 1000 to some and 1024 to others; write KiB for powers of 1024, "
                  "or plain B"),
        ("64 GB", "'64 GB': 'GB' means 1000 to some and 1024 to others; write GiB for powers of 1024, "
                  "or plain B"),
        ("KiB", "'KiB': write a number and a unit, as in '64 KiB'"),
        ("", "'': write a number and a unit, as in '64 KiB'"),
        ("nan B", "'nan B': write a number and a unit, as in '64 KiB'"),
        ("inf B", "'inf B': write a number and a unit, as in '64 KiB'"),
        ("0x10 B", f"'0x10 B': 'x10 B' is no size; {SIZES}"),
        ("0.1 bit", "'0.1 bit': is 0.1 bit, not a whole number of bits"),
        ("1e400 B", "'1e400 B': the number is too large"),
        ("1e305 GiB", "'1e305 GiB': the number is too large"),
    ],
)  # fmt: skip
def test_what_is_no_size_says_what_is(text, sentence):
    with pytest.raises(QuantityError) as caught:
        bits(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "unit",
    ["pJ", "pJ/", "kJ/B", "pJ/0bit", "pJ/b", "W", "GB/s/mW", "pj/B", "pJ/B/s", "pJ/9999999bit"],
)
def test_what_is_no_access_energy_says_what_is(unit):
    with pytest.raises(QuantityError) as caught:
        access_energy(f"5 {unit}")
    assert str(caught.value) == f"'5 {unit}': {unit!r} {ACCESS}"


@pytest.mark.parametrize(
    ("text", "of", "sentence"),
    [
        ("0.2 GB/s/W", "access",
         "'0.2 GB/s/W': 'GB/s/W' is no access efficiency; use one of GB/s/mW, GBPS/mW"),
        ("1.7 GB/s/mW", "operation",
         "'1.7 GB/s/mW': 'GB/s/mW' is no operation efficiency; use one of TOPS/W, GOPS/W"),
        ("0 TOPS/W", "operation", "'0 TOPS/W': an efficiency must be above 0"),
        ("-1 TOPS/W", "operation", "'-1 TOPS/W': an efficiency must be above 0"),
        ("1e-320 GB/s/mW", "access", "'1e-320 GB/s/mW': the number is too small"),
    ],
)  # fmt: skip
def test_what_is_no_efficiency_says_what_is(text, of, sentence):
    with pytest.raises(QuantityError) as caught:
        efficiency(text, of=of)
    assert str(caught.value) == sentence


def test_what_is_no_energy_says_what_is():
    with pytest.raises(QuantityError) as caught:
        operation_energy("1.7 W")
    assert str(caught.value) == "'1.7 W': 'W' is no energy; use one of fJ, pJ, nJ, uJ, MAC"
