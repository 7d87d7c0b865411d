"""Text with a unit <-> numbers: sizes in bits, energies in the chip's own unit. Units live here.

A chip states its energies in joules (reported in pJ) or normalised to one multiply-accumulate
(reported in "MAC (fp32)", say); no two units mix, so every reader says which of them it got.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

__all__ = [
    "QuantityError",
    "access_energy",
    "bandwidth",
    "bits",
    "efficiency",
    "frequency",
    "normalised",
    "not_to_compare",
    "operation_energy",
    "power",
    "refuse_mixed",
    "refuse_unit",
    "seconds",
    "voltage",
]

_SIZE_BITS = {"bit": 1, "B": 8, "KiB": 8 * 2**10, "MiB": 8 * 2**20, "GiB": 8 * 2**30}
_NORMALISED = {"mac": "MAC (fp{})", "int-mac": "MAC (int{})"}  # the unit, by its operation
_REPORTED = re.compile(r"pJ|MAC \((fp|int)[1-9][0-9]{0,2}\)")
_ENERGY = {
    "fJ": (1e-3, "pJ"),
    "pJ": (1.0, "pJ"),
    "nJ": (1e3, "pJ"),
    "uJ": (1e6, "pJ"),
    "MAC": (1.0, "MAC"),
}
# 1 GB/s/mW = 1e9 B/s / 1e-3 J/s = 1e12 B/J = 1 B/pJ = 8 bit/pJ; 1 TOPS/W = 1e12 op/J = 1 op/pJ.
_BITS_PER_PJ = {"GB/s/mW": 8.0, "GBPS/mW": 8.0}
_OPERATIONS_PER_PJ = {"TOPS/W": 1.0, "GOPS/W": 1e-3}

_HERTZ = {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}
_BYTES_A_SECOND = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_WATTS = {"uW": 1e-6, "mW": 1e-3, "W": 1.0, "kW": 1e3}
_VOLTS = {"mV": 1e-3, "V": 1.0}

_NUMBER = re.compile(r"([-+]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)", re.DOTALL)


class QuantityError(ValueError):
    """A quantity that cannot be read; the message names what is accepted."""


def _split(text: str, example: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        raise QuantityError(f"{text!r}: write a number and a unit, as in {example!r}")
    value = float(match[1])
    if not math.isfinite(value):
        raise QuantityError(f"{text!r}: the number is too large")
    return value, match[2].strip()


def _one_of(*tables: Mapping[str, object]) -> str:
    return ", ".join(name for table in tables for name in table)


def bits(text: str) -> int:
    """A size [bit], a whole number of them.

    >>> bits("64 KiB"), bits("64KiB")
    (524288, 524288)
    """
    number, unit = _split(text, "64 KiB")
    if unit in {"KB", "kB", "MB", "GB", "TB"}:
        raise QuantityError(
            f"{text!r}: {unit!r} means 1000 to some and 1024 to others; "
            f"write {unit[0].upper()}iB for powers of 1024, or plain B"
        )
    if unit not in _SIZE_BITS:
        raise QuantityError(f"{text!r}: {unit!r} is no size; use one of {_one_of(_SIZE_BITS)}")
    size = number * _SIZE_BITS[unit]
    if not math.isfinite(size):
        raise QuantityError(f"{text!r}: the number is too large")
    if size != round(size):
        raise QuantityError(f"{text!r}: is {size} bit, not a whole number of bits")
    return round(size)


def access_energy(text: str) -> tuple[float, str]:
    """Energy of moving one bit, and its unit, from an energy per amount of data.

    The amount is a size unit or a number of bits, because published figures are per access.

    >>> access_energy("50 pJ/B"), access_energy("200 MAC/32bit"), access_energy("10 pJ/64bit")
    ((6.25, 'pJ'), (6.25, 'MAC'), (0.15625, 'pJ'))
    """
    number, unit = _split(text, "50 pJ/B")
    energy, slash, per = unit.partition("/")
    width = re.fullmatch(r"(\d{0,6})\s*bit", per.strip())
    amount = int(width[1] or 1) if width else _SIZE_BITS.get(per.strip(), 0)
    if energy.strip() not in _ENERGY or not slash or not amount:
        raise QuantityError(
            f"{text!r}: {unit!r} is no access energy; use one of {_one_of(_ENERGY)} "
            f"per bit, B or a number of bits, as in '50 pJ/B' or '10 pJ/64bit'"
        )
    factor, base = _ENERGY[energy.strip()]
    return number * factor / amount, base


def operation_energy(text: str) -> tuple[float, str]:
    """Energy of one operation, and its unit.

    >>> operation_energy("900 fJ"), operation_energy("1 MAC")
    ((0.9, 'pJ'), (1.0, 'MAC'))
    """
    number, unit = _split(text, "0.9 pJ")
    if unit not in _ENERGY:
        raise QuantityError(f"{text!r}: {unit!r} is no energy; use one of {_one_of(_ENERGY)}")
    factor, base = _ENERGY[unit]
    return number * factor, base


def efficiency(text: str, *, of: str) -> float:
    """Energy [pJ] of moving one bit (`of="access"`) or of one operation (`of="operation"`).

    >>> efficiency("0.02 GB/s/mW", of="access"), efficiency("2 TOPS/W", of="operation")
    (6.25, 0.5)
    """
    table = {"access": _BITS_PER_PJ, "operation": _OPERATIONS_PER_PJ}[of]
    number, unit = _split(text, f"4.9 {next(iter(table))}")
    if unit not in table:
        raise QuantityError(
            f"{text!r}: {unit!r} is no {of} efficiency; use one of {_one_of(table)}"
        )
    if number <= 0:
        raise QuantityError(f"{text!r}: an efficiency must be above 0")
    energy = 1 / number / table[unit]
    if not math.isfinite(energy):
        raise QuantityError(f"{text!r}: the number is too small")
    return energy


def bandwidth(text: str) -> float:
    """Bytes that pass a memory in a second [B/s]; prefixes are powers of 1000.

    >>> bandwidth("900 GB/s")
    900000000000.0
    """
    return _scaled(text, "900 GB/s", _BYTES_A_SECOND, "bandwidth")


def frequency(text: str) -> float:
    """A frequency [Hz].

    >>> frequency("1530 MHz")
    1530000000.0
    """
    return _scaled(text, "1530 MHz", _HERTZ, "frequency")


def power(text: str) -> float:
    """A power [W].

    >>> power("50 W"), power("250 mW")
    (50.0, 0.25)
    """
    return _scaled(text, "50 W", _WATTS, "power")


def seconds(text: str) -> float:
    """A time [s].

    >>> seconds("0.5 s"), seconds("2 ms")
    (0.5, 0.002)
    """
    return _scaled(text, "0.1 ms", _SECONDS, "time")


def voltage(text: str) -> float:
    """A voltage [V].

    >>> voltage("0.65 V"), voltage("650 mV")
    (0.65, 0.65)
    """
    return _scaled(text, "0.9 V", _VOLTS, "voltage")


def _scaled(text: str, example: str, units: Mapping[str, float], what: str) -> float:
    number, unit = _split(text, example)
    if unit not in units:
        raise QuantityError(f"{text!r}: {unit!r} is no {what}; use one of {_one_of(units)}")
    return number * units[unit]


def normalised(operation: str, bits: int) -> str:
    """The unit of energies that are multiples of one multiply-accumulate.

    >>> normalised("mac", 32), normalised("int-mac", 16)
    ('MAC (fp32)', 'MAC (int16)')
    """
    return _NORMALISED[operation].format(bits)


def refuse_unit(unit: object) -> str:
    """Say what is wrong with the unit of an energy in a table; "" if it is one.

    >>> refuse_unit("MAC (fp32)"), refuse_unit("J")
    ('', "unit 'J' is none: pJ, or MAC with its format, as in 'MAC (fp32)'")
    """
    if isinstance(unit, str) and _REPORTED.fullmatch(unit):
        return ""
    if unit == "MAC":
        return "unit 'MAC' does not say of which MAC, as tables of before did; make it anew"
    return f"unit {unit!r} is none: pJ, or MAC with its format, as in 'MAC (fp32)'"


def not_to_compare(units: Iterable[str]) -> str:
    """Say which energies are not to be compared; "" where all have one unit.

    >>> not_to_compare(["pJ", "MAC (fp32)", "pJ"]), not_to_compare(["pJ"])
    ('energies in pJ and in MAC (fp32) are not to be compared', '')
    """
    found = list(dict.fromkeys(units))
    return f"energies in {' and in '.join(found)} are not to be compared" if found[1:] else ""


def refuse_mixed(units: Iterable[str]) -> str:
    """Say that energies of several units cannot be compared; "" if there is one.

    >>> refuse_mixed(["MAC (fp32)", "MAC (fp32)"]), refuse_mixed(["MAC (int16)", "pJ"])
    ('', 'energies in MAC (int16) and in pJ, which cannot be compared')
    """
    found = sorted(set(units))
    if len(found) < 2:
        return ""
    return f"energies in {' and in '.join(found)}, which cannot be compared"
