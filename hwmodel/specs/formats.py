"""Number formats: bits of an element with what its block shares, and what is multiplied of it.

A format is a line of `formats.yaml`, or of a method's own `formats`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil, log2
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hwmodel.specs.files import (
    Name,
    Number,
    SpecModel,
    Text,
    Version,
    Whole,
    bundled_spec,
    folder,
)
from hwmodel.work.tensor import Bits, Word, format_bits

__all__ = ["Format", "Second", "formats", "fraction"]

Block = Annotated[Whole, Field(ge=1, le=2**31)]
Scale = Annotated[Whole, Field(ge=0, le=64)]


class Second(SpecModel):
    """Scales of the scales: one for so many blocks."""

    block: Block = Field(description="blocks of elements that share it")
    scale_bits: Scale


class Format(SpecModel):
    """Bits of an element, and of what a block of them or the whole tensor shares."""

    bits: Annotated[Whole | Number, Field(ge=1, le=64)] | None = Field(
        default=None, description="of an element as it lies in memory, scales apart"
    )
    states: Annotated[Whole, Field(ge=2, le=256)] | None = Field(
        default=None, description="values that an element has, in the place of bits"
    )
    packed: Literal["ideal"] | Annotated[Whole | Number, Field(ge=1, le=64)] = Field(
        default="ideal", description="bits of an element of so many states; ideal: their logarithm"
    )
    float: Annotated[Text, Field(pattern=r"^e[1-9]m[0-9]+$")] | None = Field(
        default=None, description="e4m3: exponent and fraction; none: an integer"
    )
    block: Block | None = Field(
        default=None, description="elements along the reduction that share a scale; none: no scale"
    )
    scale_bits: Scale = 0
    zero_bits: Scale = Field(default=0, description="of a zero point, one a block")
    second: Second | None = None
    tensor_scale_bits: Scale = Field(default=0, description="of one scale a tensor")
    source: Text

    @model_validator(mode="after")
    def _whole(self) -> Format:
        if (self.bits is None) == (self.states is None):
            raise ValueError("give bits, or states and how they are packed")
        if self.states is not None and self._element < Fraction(log2(self.states)) - Fraction(
            1, 10**9
        ):
            raise ValueError(f"{self.states} states need {log2(self.states):.4g} bit")
        if self.float and self.bits is not None and self.bits < format_bits(self.float):
            exponent, _, rest = self.float[1:].partition("m")
            raise ValueError(
                f"bits {self.bits:g} do not hold float {self.float}, which has "
                f"{format_bits(self.float)}: 1 + {exponent} + {rest} (sign, exponent, fraction)"
            )
        if self.block is None and (self.scale_bits or self.zero_bits or self.second):
            raise ValueError("scale_bits, zero_bits and second are of blocks: give block")
        return self

    @property
    def _element(self) -> Fraction:
        """Bits of an element alone [bit]."""
        if self.states is None:
            assert self.bits is not None
            return fraction(self.bits)
        return Fraction(log2(self.states)) if self.packed == "ideal" else fraction(self.packed)

    @property
    def word(self) -> Word:
        """What products multiply of an element."""
        states = self.states
        bits = ceil(self._element) if states is None else (states - 1).bit_length()
        return Word(bits, self.float or "", self.block or 0)

    @property
    def is_scaled(self) -> bool:
        """Whether elements have a scale beside them."""
        return bool(self.block or self.tensor_scale_bits)

    def total(self, rows: int, channels: int) -> Fraction:
        """Return the bits of a tensor of so many rows of channels, before rounding up [bit].

        >>> Format(bits=4, block=32, scale_bits=8, source="MX").total(1, 100)
        Fraction(432, 1)
        """
        found = rows * channels * self._element + self.tensor_scale_bits
        if self.block is not None:
            blocks = rows * -(-channels // self.block)
            found += blocks * (self.scale_bits + self.zero_bits)
            if self.second is not None:
                found += -(-blocks // self.second.block) * self.second.scale_bits
        return found

    def width(self, rows: int, channels: int) -> Bits:
        """Return the bits of an element of such a tensor, with its share of scales [bit]."""
        each = self.total(rows, channels) / (rows * channels)
        return int(each) if each.denominator == 1 else each


def fraction(number: float) -> Fraction:
    """Return a decimal as it is written.

    >>> fraction(1.6)
    Fraction(8, 5)
    """
    return Fraction(str(number))


class _Formats(SpecModel):
    version: Version
    sources: dict[Name, Text]
    formats: dict[Name, Format]


@cache
def formats() -> dict[str, Format]:
    """Bundled formats by name."""
    path = folder("specs") / "formats.yaml"
    return dict(bundled_spec(_Formats, path).formats)
