"""Prices of operations, as a chip's file states them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from hwmodel.specs.files import SpecModel, Text, Whole
from hwmodel.specs.stated import Energy, OperationEfficiency, OperationEnergy
from hwmodel.work.tensor import format_bits

__all__ = ["Price", "Reference"]


class Price(SpecModel):
    """The energy of one operation on operands of `bits`."""

    operation: Literal["mac", "int-mac", "add", "int-add", "logic"]
    bits: Whole = Field(ge=1, le=128)
    operations: Whole = Field(
        default=1, ge=1, le=1024, description="operations in it, where per operation"
    )
    format: str | None = Field(
        default=None,
        pattern=r"^e[1-9]m[0-9]+( x e[1-9]m[0-9]+)?$",
        description="of a mac's operands, e4m3 or e4m3 x e5m2; none: the usual one of so many bits",
    )
    sum_bits: Whole | None = Field(
        default=None,
        ge=1,
        le=128,
        description="of an int-mac: width of the addition that is in its price; none: of its bits",
    )
    energy: OperationEnergy | None = None
    efficiency: OperationEfficiency | None = None
    source: Text

    @model_validator(mode="after")
    def _one_energy(self) -> Price:
        if (self.energy is None) == (self.efficiency is None):
            raise ValueError("give energy (of the whole) or efficiency (of one operation in it)")
        if self.sum_bits is not None and self.operation != "int-mac":
            raise ValueError("sum_bits is of an int-mac, whose price has an addition in it")
        if self.sum_bits is not None and self.sum_bits < self.bits:
            raise ValueError(f"sum_bits {self.sum_bits}: a sum is no narrower than {self.bits} bit")
        if self.format and (self.operation != "mac" or self.bits != self._format_bits):
            raise ValueError(f"format {self.format} is of a mac of {self._format_bits} bits")
        return self

    @property
    def _format_bits(self) -> int:
        return max(map(format_bits, (self.format or "").split(" x ")))

    @property
    def pair(self) -> str:
        """The formats of both operands; "" for the usual ones."""
        if not self.format or " x " in self.format:
            return self.format or ""
        return f"{self.format} x {self.format}"

    @property
    def stated(self) -> Energy:
        """The stated energy: of the whole, or of each of its `operations`."""
        stated = self.energy or self.efficiency
        assert stated is not None
        return stated

    @property
    def energy_per_operation(self) -> float:
        """Energy of the whole (of one MAC, one addition …) [chip's unit]."""
        return self.stated.value * (1 if self.energy else self.operations)


class Reference(SpecModel):
    """The multiply-accumulate that is 1 MAC on a chip whose costs are normalised."""

    operation: Literal["mac", "int-mac"] = Field(description="floating-point, or of integers")
    bits: Whole = Field(ge=1, le=128)
