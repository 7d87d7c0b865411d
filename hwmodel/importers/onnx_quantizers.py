"""Quantizers, operators that only state a width: ONNX's own pair, and those of QONNX.

Source: onnx.ai, "QuantizeLinear"; Pappalardo et al., QONNX, 2022, table 1.
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
    """Return the width of QONNX's Quant (its fourth operand) or Trunc (its fifth)."""
    found = operands[-1] if len(operands) == 5 else operands[3] if len(operands) > 3 else None
    number = found.number if isinstance(found, Constant) else None
    return None if number is None or not 1 <= number <= 64 else round(number + 0.49)


Width = Callable[[Sequence[Operand | None], Sequence[Any]], int | None]
QUANTIZERS: dict[tuple[str, str], Width] = {("QuantizeLinear", ""): _quantize_width}
for _domain in ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"):
    QUANTIZERS |= {
        ("Quant", _domain): _quant_width,
        ("IntQuant", _domain): _quant_width,
        ("Trunc", _domain): _quant_width,
        ("BipolarQuant", _domain): lambda operands, attributes: 1,
    }

# Of constants they are constants of the same elements, in another shape or width.
IN_PLACE = frozenset(
    {
        "BipolarQuant", "Cast", "CastLike", "DequantizeLinear", "Dropout", "Flatten", "Identity",
        "IntQuant", "Quant", "QuantizeLinear", "Reshape", "Squeeze", "Transpose", "Unsqueeze",
    }
)  # fmt: skip
