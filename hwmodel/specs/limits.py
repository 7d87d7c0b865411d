"""Limited widths of a method's Boolean layers: of signals, votes and accumulators.

One file gives energy and accuracy: the energy model prices these widths, the trainer rounds to
them (`hwmodel/trainer/rounding.py`). A part that is left out is not limited: the trainer keeps
float32 there, and the accounting or a trace says what is priced.
"""

from __future__ import annotations

from math import frexp
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hwmodel.specs.files import Number, SpecModel, Whole

__all__ = ["AccumulatorWidth", "Limits", "Rounding", "Scale", "TensorWidth"]

Rounding = Literal["nearest", "stochastic", "truncate", "floor"]
Scale = Literal["step", "delayed", "static"]

ROUNDING = (
    "nearest, half to even; stochastic; truncate, towards 0; floor, the low bits of two's "
    "complement dropped"
)


class AccumulatorWidth(SpecModel):
    """The optimizer's memory of a Boolean weight: k steps of range * 2^(1 - bits)."""

    bits: Annotated[Whole, Field(ge=2, le=32)]
    range: Annotated[Number, Field(gt=0)] = Field(
        default=1.0, description="largest magnitude; a power of two"
    )
    rounding: Rounding = Field(default="nearest", description=ROUNDING)

    @model_validator(mode="after")
    def _power(self) -> AccumulatorWidth:
        if frexp(self.range)[0] != 0.5:
            raise ValueError(f"range {self.range:g} is no power of two")
        return self


class TensorWidth(SpecModel):
    """A signal or a vote: -L to L steps with L = 2^(bits - 1) - 1, one power of two a tensor."""

    bits: Annotated[Whole, Field(ge=1, le=16)]
    rounding: Rounding = Field(default="nearest", description=ROUNDING)
    scale: Scale = Field(
        default="delayed",
        description="exponent of the step: step, of the tensor's own largest value, for which the "
        "sums have to wait at full width; delayed, of the tensor a step before; static, of the "
        "first steps. Values beyond it are the largest there is",
    )

    @model_validator(mode="after")
    def _signs(self) -> TensorWidth:
        if self.bits == 1 and self.rounding in ("floor", "truncate"):
            raise ValueError(f"one bit is a sign, which is not rounded by {self.rounding}")
        return self


class Limits(SpecModel):
    """Widths of what Boolean layers send, vote and remember; without a line, not limited."""

    accumulator: AccumulatorWidth | None = None
    vote: TensorWidth | None = None
    signal: TensorWidth | None = Field(
        default=None,
        description="received and sent, those at the borders of full-precision layers included",
    )
