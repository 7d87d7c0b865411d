"""Fields that hold a quantity, as a chip's file states it: text with its unit, or a number."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, WithJsonSchema

from hwmodel.errors import near
from hwmodel.specs import quantity

__all__ = ["MOST_BITS", "AccessEfficiency", "AccessEnergy", "Bandwidth", "Clock", "Energy"]
__all__ += ["Frequency", "OperationEfficiency", "OperationEnergy", "Power", "Size", "StaticPower"]
__all__ += ["Supply", "Throughput", "Volts"]

MOST_BITS = 1e30  # of a memory; all that is stored in the world has some 1e24
LEAST_RATE, MOST_RATE = 1e-12, 1e18  # of a clock [Hz], a power [W] and a supply [V]
MOST_ENERGY = 1e100  # [chip's unit]; loops of 2^31 take at most some 1e66 bits


class Energy(NamedTuple):
    """An energy per bit or per operation; `unit` is None for a bare number (the chip's unit)."""

    value: float
    unit: str | None


class Frequency(NamedTuple):
    """A frequency."""

    hertz: float


class Throughput(NamedTuple):
    """A bandwidth [B/s]."""

    value: float


class Power(NamedTuple):
    """A power."""

    watts: float


class Volts(NamedTuple):
    """A voltage."""

    volts: float


def _size(value: Any) -> int | None:
    if value == "unlimited":
        return None
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write a size as in '64 KiB', or 'unlimited'")
    if near(value, ["unlimited"]):
        raise ValueError(f"{value!r}: did you mean 'unlimited'?")
    size = quantity.bits(value)
    if size <= 0:
        raise ValueError(f"{value!r}: a capacity must be above 0, or 'unlimited'")
    if size > MOST_BITS:
        raise ValueError(f"{value!r}: a capacity must be at most {MOST_BITS:g} bit, or 'unlimited'")
    return size


def _energy(value: Any, kind: Literal["access", "operation"]) -> Energy:
    if isinstance(value, Energy):
        energy = value
    elif isinstance(value, str):
        read = quantity.access_energy if kind == "access" else quantity.operation_energy
        energy = Energy(*read(value))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        energy = Energy(value, None)
    else:
        raise ValueError(f"{value!r} is no energy; write one as in '50 pJ/B' or '0.9 pJ'")
    return _bounded(energy, value)


def _bounded(energy: Energy, stated: Any) -> Energy:
    """See that an energy stays finite however often it is paid. Raises: ValueError."""
    if not 0 <= energy.value <= sys.float_info.max:  # also refuses NaN
        raise ValueError(f"{stated!r}: an energy must be finite and at least 0")
    if energy.value > MOST_ENERGY:
        raise ValueError(f"{stated!r}: an energy must be at most {MOST_ENERGY:g}")
    return Energy(float(energy.value), energy.unit)


def _efficiency(value: Any, kind: Literal["access", "operation"]) -> Energy:
    if isinstance(value, Energy):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write one as in '4.9 GB/s/mW' or '1.7 TOPS/W'")
    return _bounded(Energy(quantity.efficiency(value, of=kind), "pJ"), value)


_RATES: dict[str, tuple[Any, Any, str, str]] = {
    "clock": (quantity.frequency, Frequency, "1530 MHz", "Hz"),
    "power": (quantity.power, Power, "50 W", "W"),
    "voltage": (quantity.voltage, Volts, "0.9 V", "V"),
    "bandwidth": (quantity.bandwidth, Throughput, "900 GB/s", "B/s"),
}


def _scaled(value: Any, kind: str) -> Frequency | Power | Throughput | Volts:
    read, made, example, unit = _RATES[kind]
    if isinstance(value, made):
        found: Frequency | Power | Throughput | Volts = value
        return found
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write one as in '{example}'")
    number = read(value)
    if not LEAST_RATE <= number <= MOST_RATE:
        raise ValueError(f"{value!r}: must be from {LEAST_RATE:g} to {MOST_RATE:g} {unit}")
    found = made(number)
    return found


def _quantity(read: Any, *args: str) -> tuple[BeforeValidator, WithJsonSchema]:
    schema = {"type": ["string", "number"], "description": "a number with its unit"}
    return BeforeValidator(lambda value: read(value, *args)), WithJsonSchema(schema)


Size = Annotated[int | None, *_quantity(_size)]
AccessEnergy = Annotated[Energy, *_quantity(_energy, "access")]
AccessEfficiency = Annotated[Energy, *_quantity(_efficiency, "access")]
OperationEnergy = Annotated[Energy, *_quantity(_energy, "operation")]
OperationEfficiency = Annotated[Energy, *_quantity(_efficiency, "operation")]
Clock = Annotated[Frequency, *_quantity(_scaled, "clock")]
Bandwidth = Annotated[Throughput, *_quantity(_scaled, "bandwidth")]
StaticPower = Annotated[Power, *_quantity(_scaled, "power")]
Supply = Annotated[Volts, *_quantity(_scaled, "voltage")]
