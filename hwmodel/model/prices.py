"""Prices of a bit read, a bit written and an operation: products of factors, as counts are.

A price keeps the factors that it is made of, each with its source, so that it can be printed as it
came about. Beside energy, other prices of the same keys make other totals.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, prod
from typing import NamedTuple

from hwmodel.errors import SpecError
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.hardware import Price as StatedPrice
from hwmodel.specs.lately import lately
from hwmodel.work.flattening import without
from hwmodel.work.tensor import Direction, Factor, format_bits

__all__ = [
    "ARRAY_CYCLE",
    "CHIP_CYCLE",
    "Key",
    "Price",
    "Prices",
    "of_paths",
    "paid_once",
    "read_by",
    "value",
]

ARRAY_CYCLE, CHIP_CYCLE = "array-cycle", "chip-cycle"  # operations that are time
LOGIC_OF_INT32_ADD = 63  # 2n - 1 operations for an addition of n bit (docs/model.md section 5)
Price = tuple[Factor, ...]


class Key(NamedTuple):
    """The key of a price: a bit read from or written to a memory, a hop, or one operation."""

    direction: Direction
    name: str  # of the memory, the level that is hopped into, or the kind of operation
    bits: int = 0  # of an operation's wider operand, of a sum; 0 for a memory, a level, a cycle
    narrow: int = 0  # of the narrower operand of an integer multiplication
    format: str = ""  # of both operands, "e4m3 x e5m2"; "": of no format

    def __str__(self) -> str:
        if self.direction != Direction.OPERATE:
            return f"{self.direction} {self.name}"
        if self.format:
            return f"{self.format} {self.name}"
        return f"{self.width}-bit {self.name}" if self.bits else self.name

    @property
    def width(self) -> str:
        """The bits of an operation, of both operands where both have a say: "8", "2 x 8"."""
        return f"{self.narrow} x {self.bits}" if self.narrow else str(self.bits)


def a_width(bits: int) -> str:
    """Write a width with its article: "a 16", "an 8"."""
    return f"{'an' if str(bits)[0] == '8' or bits in (11, 18) else 'a'} {bits}"


def value(price: Price) -> float:
    """Multiply a price's factors [chip's unit per bit, or per operation]."""
    return float(prod(factor.value for factor in price))


def of_paths(chip: Hardware, accounting: Accounting) -> bool:
    """Say whether a chip's prices hold both sides of a transfer, where both are to be paid."""
    return chip.path_prices and accounting.counting.transfers == "both"


@lately(8)
def read_by(chip: Hardware, accounting: Accounting) -> Accounting:
    """Return an accounting as it is on a chip.

    Where the price of a memory is that of the whole path from it, the memory that is asked pays
    for both sides of a transfer, and the one below for none. Loops that an axis of the chip tells
    apart are not tiled as one.
    """
    chosen = accounting.counting
    loops = without(chosen.loops, chip.told_apart)
    transfers = "upper" if of_paths(chip, accounting) else chosen.transfers
    counting = chosen.model_copy(update={"loops": loops, "transfers": transfers})
    return (
        accounting.model_copy(update={"counting": counting}) if counting != chosen else accounting
    )


def paid_once(chip: Hardware, accounting: Accounting) -> str:
    """Say that the memory asked pays for both sides of a transfer, where that is so; "" else."""
    if not of_paths(chip, accounting):
        return ""
    return (
        "prices are of whole paths, both sides of a transfer, so the memory that is asked pays "
        f"for both; of chips without path_prices each side pays (accounting {accounting.name})"
    )


class Prices(NamedTuple):
    """The prices of a chip under an accounting."""

    chip: Hardware
    accounting: Accounting

    def value(self, key: Key) -> float:
        """Return a price [chip's unit per bit, or per operation]. Raises: SpecError."""
        return value(self.of(key))

    def of(self, key: Key) -> Price:
        """Return a price as its factors, the last of them the chip's voltage, if it states one.

        The price of an operation is, in this order, the chip's own at that width; by a rule of the
        accounting; the accounting's relative price, in multiples of the full-precision MAC. Of
        integers, what the chip prices at other widths comes before relative prices. An addition is
        at most the multiply-add of its width, of which it is a part.

        Source: docs/model.md section 5.
        Raises: SpecError where none of them states it.
        """
        return *self._at_stated(key), *self._voltage(key)

    def _voltage(self, key: Key) -> Price:
        """The factor of the supply at which the chip runs: on all but DRAM and static energy."""
        voltage = self.chip.voltage
        if voltage is None or key.name == CHIP_CYCLE:
            return ()
        if key.direction not in (Direction.READ, Direction.WRITE):
            scale = self.chip.scale
        else:
            scale = self.chip.scale_of(self.chip.memory(key.name))
        if scale == 1:
            return ()
        why = f"hardware {self.chip.name}, voltage: {voltage.source}"
        return (Factor(f"({voltage.ratio})^2", voltage.factor, why),)

    def _at_stated(self, key: Key) -> Price:
        """Return a price at the supply for which the chip's file states it."""
        if key.direction == Direction.OPERATE:
            if key.name in (ARRAY_CYCLE, CHIP_CYCLE):
                return self._time(key.name)
            return self._of_formats(key) if key.format else self._operation(key)
        if key.direction == Direction.HOP:
            return self._hop(key.name)
        memory = self.chip.memory(key.name)
        read = key.direction == Direction.READ
        energy = memory.read_energy_per_bit if read else memory.write_energy_per_bit
        unit = f"{self.chip.unit} a bit"
        why = f"hardware {self.chip.name}: {memory.source}"
        if memory.energy is not None:
            size = f"{memory.capacity_bits:,} bit"
            why += f"; at {size}, on the line through points in log-log (docs/model.md section 5)"
        return (Factor(unit, energy, why),)

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
            source = f": {array.source}" if array and array.source else ", which names no source"
            return (Factor(unit, energy, f"hardware {chip.name}, array.cycle_energy{source}"),)
        if chip.static_watts and chip.clock:
            stated = ["static_power"] * bool(chip.static_power) + ["leakage"] * bool(chip.leakage)
            why = f"hardware {chip.name}, {' and '.join(stated)}"
            watts = Factor("W", chip.static_watts, why)
            period = Factor("ps", 1e12 / chip.clock.hertz, "1 / clock; W ps = pJ")
            return watts, period
        return (Factor(unit, chip.static_energy, f"hardware {chip.name}, static_energy_per_cycle"),)

    def derived(self, keys: Iterable[Key]) -> str:
        """Name the operations priced by width, "int-add of 20 and 21 bit"; "" for none."""
        found: dict[str, list[Key]] = {}
        for key in sorted(key for key in keys if key.direction == Direction.OPERATE):
            if key.name == "int-mac":
                stated = bool(self._stated(key.name, key.bits))
            else:
                stated = key.name != "int-mul" and key.bits in self._widths(key.name)
            if key.name.startswith("int-") and not stated:
                found.setdefault(key.name, []).append(key)
        return "; ".join(
            f"{kind} of {', '.join(key.width for key in alike)} bit"
            for kind, alike in found.items()
        )

    def dearer(self, keys: Iterable[Key]) -> str:
        """Say of an integer product by width that it costs more than a wider MAC of the chip.

        The chip may then state MACs of units that it states no integers of; "" for none.
        """
        stated = {
            p.bits: value(self._own(p))
            for p in self.chip.arithmetic
            if p.operation == "mac" and not p.format
        }
        for key in sorted(k for k in keys if k.name in ("int-mul", "int-mac")):
            own = value(self._operation(key))
            wider = {b: price for b, price in stated.items() if b > key.bits and price < own}
            if wider:
                bits = min(wider)
                unit = self.chip.unit
                return (
                    f"one {key} costs {own:.3g} {unit}, more than the {wider[bits]:.3g} {unit} "
                    f"that the chip states of a {bits}-bit mac: that is of units whose price for "
                    "integers it does not state"
                )
        return ""

    def relative(self, keys: Iterable[Key]) -> str:
        """Name the MACs that the accounting prices in full-precision ones; "" for none."""
        own = {p.bits for p in self.chip.arithmetic if p.operation == "mac" and not p.format}
        used = {key.bits for key in keys if key.name == "mac" and not key.format} - own
        shares = {
            p.bits: f"a {p.bits}-bit one {p.macs:.4g}"
            for p in self.accounting.prices.relative_prices
            if p.operation == "mac" and p.bits in used
        }
        told = ", ".join(shares[bits] for bits in sorted(shares))
        return f"in {self._full}-bit MACs: {told}" if told else ""

    def unsummed(self, keys: Iterable[Key]) -> str:
        """Name integer MACs of the chip beside which a wider sum is paid; "" for none."""
        own = {p.bits for p in self.chip.arithmetic if p.operation == "int-mac" and not p.sum_bits}
        bits = sorted(own & {key.bits for key in keys if key.name == "int-mul"})
        if not bits:
            return ""
        return (
            f"an int-mac of {' and '.join(map(str, bits))} bit is taken to add words of its own "
            "width, and a product's wider sum is paid beside it (sum_bits says what it adds)"
        )

    def _operation(self, key: Key) -> Price:
        kind, bits, accounting = key.name, key.bits, self.accounting
        if kind == "logic":
            return self._logic()
        if kind == "special":
            return self._macs(accounting.prices.special_function_macs, "special_function_macs")
        if kind == "int-add":
            return self._int_add(bits)
        if kind == "int-mul":
            return self._int_mul(bits, key.narrow)
        if kind == "add" and accounting.prices.addition_price == "operation-of-mac":
            mac = self.chip.price("mac", self._full)
            parts = mac.operations if mac else 1
            price = self._macs(1 / parts, f"addition_price: one of {parts} operations of a MAC")
        else:
            price = self._stated(kind, bits)
        if kind == "int-mac" and not price:
            return self._int_mac(bits)
        if not price:
            raise self._unpriced(kind, bits)
        return self._at_most(price, bits, "mac", "int-mac") if kind == "add" else price

    def _of_formats(self, key: Key) -> Price:
        """Price a product of floating-point formats: of the pair, of the wider format twice.

        Else as the accounting says: refused, or as the next wider multiply-add that has a price,
        which both words are expanded to. Raises: SpecError.
        """
        pair = key.format.split(" x ")
        for asked in (key.format, " x ".join(reversed(pair))):
            if found := self._in_format(key.name, asked):
                return found
        wide = max(map(format_bits, pair))
        twice = [f"{one} x {one}" for one in pair if format_bits(one) == wide]
        for asked in twice:
            if found := self._in_format(key.name, asked):
                return (Factor("of a pair", 1, f"{key.format} priced as {asked}"), *found)
        if self.accounting.prices.narrow_floats == "expanded" and (found := self._expanded(key)):
            return found
        others = " or ".join(one for one in twice if one != key.format)
        raise SpecError(
            f"hardware {self.chip.name}: states no price of a {key.format} {key.name}"
            f"{others and f', nor of {others}'}; state one under arithmetic (format: {pair[0]}), "
            "or let words be multiplied at the next width that is priced: accounting field "
            "prices.narrow_floats expanded"
        )

    def _expanded(self, key: Key) -> Price:
        """Price a product of formats as the narrowest multiply-add that is wider; () if none is."""
        own = {p.bits for p in self.chip.arithmetic if p.operation == key.name and not p.format}
        relative = {p.bits for p in self.accounting.prices.relative_prices if p.operation == "mac"}
        wider = sorted(bits for bits in {*own, *relative, self._full} if bits > key.bits)
        if not wider:
            return ()
        why = f"{key.format} expanded to {wider[0]} bit: narrow_floats expanded"
        return (Factor("of the next wider", 1, why), *self._stated(key.name, wider[0]))

    def _in_format(self, kind: str, pair: str) -> Price:
        own = next((p for p in self.chip.arithmetic if (p.operation, p.pair) == (kind, pair)), None)
        return self._own(own) if own else ()

    def _unpriced(self, kind: str, bits: int) -> SpecError:
        integer = {
            "add": "; an addition of integers is an int-add",
            "mac": "; a product of integers is an int-mac, which the method's rule says of each "
            "pass: arithmetic: {forward: int-mac, backward_input: int-mac, ...}" * (bits <= 8),
        }.get(kind, "")
        return SpecError(
            f"hardware {self.chip.name}: states no price of {a_width(bits)}-bit {kind}, and "
            f"accounting {self.accounting.name} no relative one{integer}; "
            f"{self._to_add(kind, bits)}"
        )

    def _to_add(self, kind: str, bits: int) -> str:
        """Say what states a price."""
        line = (
            f"{{operation: {kind}, bits: {bits}, energy: ... {self.chip.energy_unit}, source: ...}}"
        )
        return f"a line under arithmetic in the chip's file states one: {line}"

    # -- integers: what is not stated follows from the widths -----------------------------------

    def _int_add(self, bits: int) -> Price:
        price = self._adder(bits)
        if not price:
            adder = f"logic operations of an adder of b = {bits} bit; docs/model.md section 5"
            price = (Factor("2b - 1", 2 * bits - 1, adder), *self._logic())
        return self._at_most(price, bits, "int-mac")

    def _adder(self, bits: int) -> Price:
        """Return the price of an integer addition as stated, else by its width, else ()."""
        widths = self._widths("int-add")
        if bits in widths or not widths:
            return self._stated("int-add", bits)
        known = {w: value(self._int_add(w)) for w in widths}
        return (self._by_width("int-add", bits, known, 1, "an adder goes with its width"),)

    def _int_mul(self, bits: int, narrow: int) -> Price:
        """Price an integer multiplication: a cell for each pair of bits of its operands.

        It costs no less than what is within it: a square of the narrower width, and products of
        widths that have a price. An instruction takes what it takes whatever the width.
        """
        parts = (narrow, *(w for w in self._widths("int-mac") if w < bits))
        sizes = [(narrow, bits), *((min(narrow, wide), wide) for wide in parts)]
        found = [
            (self._square(wide), Factor(f"{n} / {wide}", n / wide, _cells(n, wide)))
            for n, wide in sizes
        ]
        best = max(range(len(found)), key=lambda i: value(found[i]))
        if not best:
            return found[0]
        why = f"{narrow} x {bits} bit have {sizes[best][0]} x {sizes[best][1]} in them"
        return (Factor("no cheaper than a part", 1, why), *found[best])

    def _square(self, bits: int) -> Factor:
        """Price a multiplication of two words of `bits`: the MAC without the addition in it."""
        own = self._widths("int-mac")
        within = {w: self._int_add(self._summed(w)) for w in own}  # the addition in each MAC
        known = {w: max(value(self._stated("int-mac", w)) - value(within[w]), 0.0) for w in own}
        if not known:
            raise self._unpriced("int-mac", bits)
        if bits in known:
            unit = self.chip.unit
            part = f"{value(within[bits]):.6g} {unit}"
            wide = f" of {self._summed(bits)} bit" if self._summed(bits) != bits else ""
            why = f"an int-mac without the int-add{wide} of {part} in it, {self._whose('int-mac')}"
            return Factor(f"{unit} of a {bits} x {bits}-bit multiplication", known[bits], why)
        rule = "a multiplier goes with the square of its width"
        return self._by_width("int-mul", bits, known, 2, rule)

    def _summed(self, bits: int) -> int:
        """Width of the addition in a stated int-mac [bit]."""
        stated = self.chip.price("int-mac", bits)
        return (stated.sum_bits if stated else None) or bits

    def _int_mac(self, bits: int) -> Price:
        """Price an integer MAC that nobody states as its two parts."""
        parts = value(self._int_mul(bits, bits)), value(self._int_add(bits))
        why = f"by width, a multiplication of {parts[0]:.6g} and an addition of {parts[1]:.6g}"
        return (Factor(f"{self.chip.unit} of a {bits}-bit int-mac", fsum(parts), why),)

    def _by_width(
        self, kind: str, bits: int, known: dict[int, float], power: int, rule: str
    ) -> Factor:
        """Price a width between its neighbours that have a price, or in proportion beyond them."""
        below = max((w for w in known if w <= bits), default=0)
        above = min((w for w in known if w >= bits), default=0)
        if below and above:
            share = (bits**power - below**power) / (above**power - below**power)
            energy = known[below] + share * (known[above] - known[below])
        else:
            energy = known[below or above] * (bits / (below or above)) ** power
        unit = self.chip.unit
        near = " and ".join(f"{known[w]:.6g} {unit} of {w} bit" for w in (below, above) if w)
        whose = self._whose(kind.replace("mul", "mac"))
        why = f"by width, from {near}, {whose}: {rule} (docs/model.md section 5)"
        return Factor(f"{unit} of a {bits}-bit {kind}", energy, why)

    def _whose(self, kind: str) -> str:
        """Say who states the prices that a width is priced from."""
        own = any(price.operation == kind for price in self.chip.arithmetic)
        return (
            f"prices of hardware {self.chip.name}"
            if own
            else f"relative_prices of accounting {self.accounting.name}"
        )

    def _widths(self, kind: str) -> list[int]:
        """List the widths that have a price: those of the chip, if it has any, else relative."""
        own = [p.bits for p in self.chip.arithmetic if p.operation == kind and not p.format]
        if own or not self.chip.price("mac", self._full):
            return sorted(own)
        return sorted(p.bits for p in self.accounting.prices.relative_prices if p.operation == kind)

    def _at_most(self, price: Price, bits: int, *whole: str) -> Price:
        """Return the price of an addition, or that of the multiply-add of its width if lower."""
        mac = next((found for kind in whole if (found := self._stated(kind, bits))), ())
        if not mac or value(price) <= value(mac):
            return price
        why = "an addition is part of a multiply-add of its width, and never dearer"
        return (Factor("of a multiply-add", 1, why), *mac)

    # -- prices that are stated -----------------------------------------------------------------

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
                f"accounting {self.accounting.name} asks for; {self._to_add('mac', self._full)}"
            )
        return Factor("MACs", share, f"accounting {self.accounting.name}, {why}"), *self._own(mac)

    def _own(self, stated: StatedPrice) -> Price:
        """Return a price of the chip's file: of the whole, or of each of the operations in it."""
        unit, source = self.chip.unit, f"hardware {self.chip.name}: {stated.source}"
        energy = stated.stated.value
        if stated.efficiency is None:
            what = stated.pair or f"{stated.bits}-bit"
            return (Factor(f"{unit} of a {what} {stated.operation}", energy, source),)
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
        adder = self._adder(32)
        if not adder:
            raise SpecError(
                f"accounting {self.accounting.name}: prices no logic operation, and no 32-bit "
                f"int-add to derive it from on hardware {self.chip.name}"
            )
        part = f"1 / {LOGIC_OF_INT32_ADD} of a 32-bit int-add, which is 2 x 32 - 1 of them"
        part += "; docs/model.md section 5"
        return (Factor("share", 1 / LOGIC_OF_INT32_ADD, part), *adder)


def _cells(narrow: int, bits: int) -> str:
    return f"a multiplier has a cell for each pair of bits: {narrow} x {bits} of {bits} x {bits}"
