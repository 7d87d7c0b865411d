"""What memories and operations cost on a chip, each constant with its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hwmodel.model.prices import LOGIC_OF_INT32_ADD, OperationKind, price
from hwmodel.specs.accounting import Accounting, RelativePrice
from hwmodel.specs.hardware import Buffer, Hardware, Price
from hwmodel.views.explain.steps import TIMES, Section, Step, Table, computed, exact

__all__ = ["memories", "operation_prices"]

_RULES = "docs/model.md section 5"


def memories(hardware: Hardware) -> Section:
    """Every memory, its capacity, and what a bit costs there."""
    unit = hardware.energy_unit
    header = (
        "level", "memory", "holds", "capacity [bit]", f"e_read [{unit}/bit]",
        f"e_write [{unit}/bit]", "which is", "source",
    )  # fmt: skip
    rows = tuple(
        (
            str(level.level),
            buffer.name,
            ", ".join(buffer.holds),
            "unlimited" if buffer.capacity_bits is None else f"{buffer.capacity_bits:,}",
            exact(buffer.read_energy_per_bit),
            exact(buffer.write_energy_per_bit),
            _stated(buffer, unit),
            buffer.source,
        )
        for level in hardware.levels
        for buffer in level.buffers
    )
    return Section("What memories cost", table=Table(header, rows))


def _stated(buffer: Buffer, unit: str) -> str:
    """The energy in the units that files use: of a read, where a write costs something else."""
    read = buffer.read_energy_per_bit
    if buffer.efficiency is not None:
        return f"1 / (8 {TIMES} {exact(1 / read / 8)} GB/s/mW)"
    return f"{exact(8 * read)} {unit}/B, {exact(32 * read)} {unit}/32bit"


def operation_prices(
    operations: Iterable[tuple[OperationKind, int]], hardware: Hardware, accounting: Accounting
) -> Section:
    """The price of every operation that a layer needs, and how it comes about."""
    prices = _Prices(hardware, accounting)
    steps: list[Step] = [prices.full_mac()]
    for kind, bits in dict.fromkeys(operations):
        steps += prices.of(kind, bits)
    return Section("What operations cost", steps=tuple(dict.fromkeys(steps)))


class _Prices:
    """The rules of `prices.price` in words and numbers; each result is compared with it."""

    def __init__(self, hardware: Hardware, accounting: Accounting) -> None:
        self.hardware, self.accounting = hardware, accounting
        self.full_bits = accounting.widths.full_precision_bits
        self.mac = exact(self.price("mac", self.full_bits))

    def price(self, kind: OperationKind, bits: int) -> float:
        return float(price(kind, bits, self.hardware, self.accounting))

    def full_mac(self) -> Step:
        """The full-precision MAC, of which other prices are multiples."""
        (step,) = self.of("mac", self.full_bits)
        return step

    def of(self, kind: OperationKind, bits: int) -> Iterator[Step]:
        """The steps to one price."""
        accounting = self.accounting
        whole = self.hardware.price("mac", self.full_bits)
        assert whole is not None  # or the report would have none
        if kind == "logic":
            yield from self._logic()
        elif kind == "special":
            share = exact(accounting.prices.special_function_macs)
            yield self._step(
                kind,
                bits,
                f"special_function_macs {TIMES} MAC",
                f"{share} {TIMES} {self.mac}",
                self._choice("special_function_macs", self.accounting.prices.special_function_macs),
            )
        elif kind == "add" and accounting.prices.addition_price == "operation-of-mac":
            yield self._step(
                kind,
                bits,
                "MAC / operations in it",
                f"{self.mac} / {whole.operations}",
                self._choice("addition_price", self.accounting.prices.addition_price),
            )
        elif own := self.hardware.price(kind, bits):
            yield self._own(own, kind, bits)
        elif relative := self._relative(kind, bits):
            yield self._of_mac(relative, kind, bits)
        else:  # an integer addition of a width that nobody prices
            yield from self._logic()
            yield self._step(kind, bits, "(2b - 1) logic",
                             f"(2 {TIMES} {bits} - 1) {TIMES} {exact(self.price('logic', 1))}",
                             _RULES)  # fmt: skip

    def _logic(self) -> Iterator[Step]:
        """One Boolean operation: a share of a MAC, the chip's own, or part of an addition."""
        share = self.accounting.prices.logic_price_macs
        if share is not None:
            numbers = f"{exact(share)} {TIMES} {self.mac}"
            source = self._choice("logic_price_macs", self.accounting.prices.logic_price_macs)
            yield self._step("logic", 1, f"logic_price_macs {TIMES} MAC", numbers, source)
        elif own := self.hardware.price("logic", 1):
            yield self._own(own, "logic", 1)
        else:
            yield from self.of("int-add", 32)
            addition = exact(self.price("int-add", 32))
            numbers = f"{addition} / {LOGIC_OF_INT32_ADD}"
            source = f"an n-bit integer addition is 2n - 1 logic operations; {_RULES}"
            yield self._step("logic", 1, "int-add of 32 bit / 63", numbers, source)

    def _own(self, own: Price, kind: OperationKind, bits: int) -> Step:
        """The chip's own price, per operation or of the whole."""
        source = f"hardware {self.hardware.name}: {own.source}"
        if own.efficiency is not None:
            numbers = f"{own.operations} / {exact(1 / own.stated.value)}"
            return self._step(kind, bits, "operations in it / (TOPS/W)", numbers, source)
        return self._step(kind, bits, "as stated", exact(own.stated.value), source)

    def _of_mac(self, entry: RelativePrice, kind: OperationKind, bits: int) -> Step:
        """The accounting's price in multiples of the MAC."""
        numbers = f"{exact(entry.macs)} {TIMES} {self.mac}"
        source = f"accounting {self.accounting.name}, relative_prices: {entry.source}"
        return self._step(kind, bits, f"relative price {TIMES} MAC", numbers, source)

    def _relative(self, kind: str, bits: int) -> RelativePrice | None:
        wanted = (kind, bits)
        entries = self.accounting.prices.relative_prices
        return next((e for e in entries if (e.operation, e.bits) == wanted), None)

    def _choice(self, field: str, chosen: object) -> str:
        return f"accounting {self.accounting.name}, {field}: {chosen}"

    def _step(
        self, kind: OperationKind, bits: int, formula: str, numbers: str, source: str
    ) -> Step:
        width = "" if kind in ("logic", "special") else f"{bits}-bit "
        text = f"one {width}{kind}"
        unit = self.hardware.energy_unit
        return computed(
            text, formula, numbers, self.price(kind, bits), unit, show=exact, source=source
        )
