"""Prices of a bit read, a bit written and an operation: products of factors, as counts are.

A price keeps the factors that it is made of, each with its source, so that it can be printed as it
came about. Beside energy, other prices of the same keys make other totals.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from hwmodel.errors import SpecError
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.hardware import Price as StatedPrice
from hwmodel.work.tensor import Direction, Factor

__all__ = ["Key", "Price", "Prices", "value"]

ARRAY_CYCLE, CHIP_CYCLE = "array-cycle", "chip-cycle"  # operations that are time
LOGIC_OF_INT32_ADD = 63  # 2n - 1 operations for an addition of n bit (docs/model.md section 5)
Price = tuple[Factor, ...]


class Key(NamedTuple):
    """The key of a price: a bit read from or written to a memory, a hop, or one operation."""

    direction: Direction
    name: str  # of the memory, the level that is hopped into, or the kind of operation
    bits: int = 0  # of an operation's wider operand; 0 for a memory, a level and a cycle

    def __str__(self) -> str:
        if self.direction != Direction.OPERATE:
            return f"{self.direction} {self.name}"
        return f"{self.bits}-bit {self.name}" if self.bits else self.name


def value(price: Price) -> float:
    """Multiply a price's factors [chip's unit per bit, or per operation]."""
    return float(prod(factor.value for factor in price))


class Prices(NamedTuple):
    """The prices of a chip under an accounting."""

    chip: Hardware
    accounting: Accounting

    def value(self, key: Key) -> float:
        """Return a price [chip's unit per bit, or per operation]. Raises: SpecError."""
        return value(self.of(key))

    def of(self, key: Key) -> Price:
        """Return a price as its factors.

        The price of an operation is, in this order, the chip's own at that width; by a rule of the
        accounting; the accounting's relative price, in multiples of the full-precision MAC.

        Raises: SpecError where neither states it.
        """
        if key.direction == Direction.OPERATE:
            return self._operation(key.name, key.bits)
        if key.direction == Direction.HOP:
            return self._hop(key.name)
        memory = self.chip.memory(key.name)
        read = key.direction == Direction.READ
        energy = memory.read_energy_per_bit if read else memory.write_energy_per_bit
        unit = f"{self.chip.unit} a bit"
        return (Factor(unit, energy, f"hardware {self.chip.name}: {memory.source}"),)

    def _hop(self, name: str) -> Price:
        """Price a bit on its way into a memory of a level, or out of it."""
        level = next(level for level in self.chip.levels if level.name == name)
        energy = level.hop_energy.value if level.hop_energy else 0.0
        where = ", ".join(buffer.source for buffer in level.buffers)
        unit = f"{self.chip.unit} a bit"
        return (Factor(unit, energy, f"hardware {self.chip.name}, hop_energy: {where}"),)

    def _time(self, kind: str) -> Price:
        """Price a cycle: of each array that works in it, or of the whole chip."""
        chip, array = self.chip, self.chip.array
        unit = f"{chip.unit} a cycle"
        if kind == ARRAY_CYCLE:
            energy = array.cycle_energy.value if array and array.cycle_energy else 0.0
            source = array.source if array and array.source else ""
            return (Factor(unit, energy, f"hardware {chip.name}, array.cycle_energy: {source}"),)
        if chip.static_power and chip.clock:
            watts = Factor("W", chip.static_power.watts, f"hardware {chip.name}, static_power")
            period = Factor("ps", 1e12 / chip.clock.hertz, "1 / clock; W ps = pJ")
            return watts, period
        return (Factor(unit, chip.static_energy, f"hardware {chip.name}, static_energy_per_cycle"),)

    def _operation(self, kind: str, bits: int) -> Price:
        accounting = self.accounting
        if kind in (ARRAY_CYCLE, CHIP_CYCLE):
            return self._time(kind)
        if kind == "logic":
            return self._logic()
        if kind == "special":
            return self._macs(accounting.prices.special_function_macs, "special_function_macs")
        if kind == "add" and accounting.prices.addition_price == "operation-of-mac":
            mac = self.chip.price("mac", self._full)
            parts = mac.operations if mac else 1
            return self._macs(1 / parts, f"addition_price: one of {parts} operations of a MAC")
        stated = self._stated(kind, bits)
        if stated:
            return stated
        if kind == "int-add":
            adder = f"logic operations of an adder of b = {bits} bit; docs/model.md section 5"
            return (Factor("2b - 1", 2 * bits - 1, adder), *self._logic())
        raise SpecError(
            f"hardware {self.chip.name}: states no price of a {bits}-bit {kind}, and accounting "
            f"{self.accounting.name} no relative one"
        )

    @property
    def _full(self) -> int:
        return self.accounting.widths.full_precision_bits

    def _stated(self, kind: str, bits: int) -> Price:
        """Return the chip's own price, else the accounting's in multiples of a MAC, else ()."""
        own = self.chip.price(kind, bits)
        if own is not None:
            return self._own(own)
        if (kind, bits) == ("mac", self._full):
            return self._macs(1.0, "")  # refuses, for the chip states none
        for entry in self.accounting.prices.relative_prices:
            if (entry.operation, entry.bits) == (kind, bits):
                return self._macs(entry.macs, f"relative_prices: {entry.source}")
        return ()

    def _macs(self, share: float, why: str) -> Price:
        """Return a multiple of the full-precision MAC. Raises: SpecError where it has no price."""
        mac = self.chip.price("mac", self._full)
        if mac is None:
            raise SpecError(
                f"hardware {self.chip.name}: states no price of a {self._full}-bit mac, which "
                f"accounting {self.accounting.name} asks for"
            )
        return Factor("MACs", share, f"accounting {self.accounting.name}, {why}"), *self._own(mac)

    def _own(self, stated: StatedPrice) -> Price:
        """Return a price of the chip's file: of the whole, or of each of the operations in it."""
        unit, source = self.chip.unit, f"hardware {self.chip.name}: {stated.source}"
        energy = stated.stated.value
        if stated.efficiency is None:
            return (Factor(f"{unit} of a {stated.bits}-bit {stated.operation}", energy, source),)
        parts = Factor("operations in it", stated.operations, f"a {stated.operation} is so many")
        efficiency = f"1 / ({1 / energy:.12g} TOPS/W), {source}"
        return parts, Factor(f"{unit} an operation", energy, efficiency)

    def _logic(self) -> Price:
        """Price a Boolean operation: a share of a MAC, the chip's own, or part of an adder."""
        share = self.accounting.prices.logic_price_macs
        if share is not None:
            return self._macs(share, "logic_price_macs")
        own = self._stated("logic", 1)
        if own:
            return own
        adder = self._stated("int-add", 32)
        if not adder:
            raise SpecError(
                f"accounting {self.accounting.name}: prices no logic operation, and no 32-bit "
                f"int-add to derive it from on hardware {self.chip.name}"
            )
        part = f"1 / {LOGIC_OF_INT32_ADD} of a 32-bit int-add, which is 2 x 32 - 1 of them"
        part += "; docs/model.md section 5"
        return (Factor("share", 1 / LOGIC_OF_INT32_ADD, part), *adder)
