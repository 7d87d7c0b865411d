"""Quantizers, operators that only state a width: ONNX's own pair, and those of QONNX.

Source: onnx.ai, "QuantizeLinear"; Pappalardo et al., QONNX, 2022, table 1; FloatQuant and the
operands of the second version of Trunc as Brevitas 0.13.4 exports them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hwmodel.importers.graph import Constant, Operand
from hwmodel.importers.onnx_constants import WIDTHS

__all__ = ["IN_PLACE", "QUANTIZERS"]


def _quantize_width(operands: Sequence[Operand | None], attributes: Sequence[Any]) -> int | None:
    """Return the width of QuantizeLinear: of the zero point's type, or as stated, or 8 bit."""
    zero = operands[2] if len(operands) > 2 else None
    if isinstance(zero, Constant) and zero.bits:
        return zero.bits
    stated = next((a.i for a in attributes if a.name == "output_dtype"), 0)
    return WIDTHS.get(stated, 8)


def _quant_width(operands: Sequence[Operand | None], attributes: Sequence[Any]) -> int | None:
    """Return the width of QONNX's Quant (its fourth operand) or Trunc (its last)."""
    if len(operands) < 4:
        return None
    return _whole_width(_number(operands[-1] if len(operands) > 4 else operands[3]))


def _float_width(operands: Sequence[Operand | None], attributes: Sequence[Any]) -> int | None:
    """Return the width of QONNX's FloatQuant: a sign, its third operand, and its fourth."""
    parts = [_number(one) for one in operands[2:4]]
    known = [part for part in parts if part is not None]
    return _whole_width(1 + sum(known)) if len(known) == 2 else None


def _number(operand: Operand | None) -> float | None:
    return operand.number if isinstance(operand, Constant) else None


def _whole_width(number: float | None) -> int | None:
    return None if number is None or not 1 <= number <= 64 else round(number + 0.49)


Width = Callable[[Sequence[Operand | None], Sequence[Any]], int | None]
QUANTIZERS: dict[tuple[str, str], Width] = {("QuantizeLinear", ""): _quantize_width}
for _domain in ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"):
    QUANTIZERS |= {
        ("Quant", _domain): _quant_width,
        ("IntQuant", _domain): _quant_width,
        ("Trunc", _domain): _quant_width,
        ("FloatQuant", _domain): _float_width,
        ("BipolarQuant", _domain): lambda operands, attributes: 1,
    }

# Of constants they are constants of the same elements, in another shape or width.
IN_PLACE = frozenset(
    {
        "BipolarQuant", "Cast", "CastLike", "DequantizeLinear", "Dropout", "Flatten", "FloatQuant",
        "Identity", "IntQuant", "Quant", "QuantizeLinear", "Reshape", "Squeeze", "Transpose",
        "Unsqueeze",
    }
)  # fmt: skip
