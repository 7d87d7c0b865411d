"""What one operation costs on a chip, by the chip's own prices and the accounting's rules."""

from __future__ import annotations

from typing import Any, Literal

from hwmodel.errors import SpecError
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Priced

__all__ = ["OperationKind", "adder_operations", "price"]

OperationKind = Literal["mac", "int-mac", "add", "int-add", "logic", "special"]
LOGIC_OF_INT32_ADD = 63  # an n-bit integer addition is 2n - 1 logic operations (spec section 7)


def adder_operations(bits: int) -> int:
    """Logic operations of one integer addition of `bits`: 2n - 1 (spec section 7)."""
    return 2 * bits - 1


def price(kind: OperationKind, bits: int, hardware: Priced, accounting: Accounting) -> Any:
    """Energy of one operation on operands of `bits` [chip's unit]; an array for chips side by side.

    In this order: the chip's own price for the operation at that width; the accounting's rule;
    the accounting's relative price, in multiples of the chip's full-precision MAC.

    Raises: SpecError where none of them says what it costs.
    """
    mac = _full_mac(hardware, accounting)
    if kind == "logic":
        return _logic(hardware, accounting)
    if kind == "special":
        return accounting.prices.special_function_macs * mac
    if kind == "add" and accounting.prices.addition_price == "operation-of-mac":
        whole = hardware.price("mac", accounting.widths.full_precision_bits)
        return mac / (whole.operations if whole else 1)
    own = hardware.price(kind, bits)
    if own is not None:
        return own.energy_per_operation
    relative = _relative(kind, bits, accounting)
    if relative is not None:
        return relative * mac
    if kind == "int-add":
        return adder_operations(bits) * _logic(hardware, accounting)
    raise SpecError(
        f"hardware {hardware.name}: states no price of a {bits}-bit {kind}, and accounting "
        f"{accounting.name} no relative one"
    )


def _full_mac(hardware: Priced, accounting: Accounting) -> Any:
    bits = accounting.widths.full_precision_bits
    own = hardware.price("mac", bits)
    if own is None:
        raise SpecError(
            f"hardware {hardware.name}: states no price of a {bits}-bit mac, which accounting "
            f"{accounting.name} asks for"
        )
    return own.energy_per_operation


def _relative(kind: str, bits: int, accounting: Accounting) -> float | None:
    """Multiples of the full-precision MAC, if the accounting states them."""
    if (kind, bits) == ("mac", accounting.widths.full_precision_bits):
        return 1.0
    for entry in accounting.prices.relative_prices:
        if (entry.operation, entry.bits) == (kind, bits):
            return entry.macs
    return None


def _logic(hardware: Priced, accounting: Accounting) -> Any:
    """One Boolean operation: as the accounting says, or the chip's own, or part of an addition."""
    mac = _full_mac(hardware, accounting)
    if accounting.prices.logic_price_macs is not None:
        return accounting.prices.logic_price_macs * mac
    own = hardware.price("logic", 1)
    if own is not None:
        return own.energy_per_operation
    stated = hardware.price("int-add", 32)
    relative = _relative("int-add", 32, accounting)
    if stated is None and relative is None:
        raise SpecError(
            f"accounting {accounting.name}: prices no logic operation, and no 32-bit int-add to "
            f"derive it from on hardware {hardware.name}"
        )
    addition = stated.energy_per_operation if stated else (relative or 0.0) * mac
    return addition / LOGIC_OF_INT32_ADD
