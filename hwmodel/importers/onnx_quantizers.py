"""Quantizers, operators that only state a width: ONNX's own pair, and those of QONNX.

Source: onnx.ai, "QuantizeLinear"; Pappalardo et al., QONNX, 2022, table 1; FloatQuant and the
operands of the second version of Trunc as Brevitas 0.13.4 exports them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from hwmodel.importers.graph import Blocks, Constant, Operand
from hwmodel.importers.onnx_constants import WIDTHS
from hwmodel.specs.formats import Format
from hwmodel.work.tensor import Stated, stated_bits

__all__ = ["IN_PLACE", "QUANTIZERS", "blocks"]


def _quantize_width(operands: Sequence[Operand | None], attributes: Sequence[Any]) -> Stated | None:
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


def _float_width(operands: Sequence[Operand | None], attributes: Sequence[Any]) -> Stated | None:
    """Return the format of QONNX's FloatQuant: bits of exponent and of fraction.

    Of full precision and beyond nothing is stated.
    """
    parts = [_number(one) for one in operands[2:4]]
    known = [part for part in parts if part is not None and part >= 0]
    if len(known) < 2:
        return None
    exponent, fraction = map(ceil, known)
    if exponent not in range(1, 10):  # no exponent: an integer with a sign
        return _whole_width(1 + exponent + fraction)
    return None if 1 + exponent + fraction >= 32 else f"e{exponent}m{fraction}"


def blocks(operands: Sequence[Operand | None], attributes: Sequence[Any]) -> Blocks | None:
    """Return the blocks of weights that DequantizeLinear scales; None: one scale for all or a row.

    Source: onnx.ai, "DequantizeLinear" 21 and later: block_size elements along an axis.
    """
    stated = {a.name: a.i for a in attributes}
    words, scales, zeros = (*operands, None, None)[:3]
    size = stated.get("block_size", 0)
    if size < 1 or not isinstance(words, Constant) or not isinstance(scales, Constant):
        return None
    if words.bits is None or not words.dims:
        return None
    own = Format(
        bits=stated_bits(words.bits),
        float=words.bits if isinstance(words.bits, str) else None,
        block=size,
        scale_bits=_stored_bits(scales),
        zero_bits=_stored_bits(zeros) if isinstance(zeros, Constant) else 0,
        source="ONNX, DequantizeLinear with block_size",
    )
    return Blocks(words.dims[stated.get("axis", 1) % len(words.dims)], own)


def _stored_bits(constant: Constant) -> int:
    return constant.float_bits if constant.bits is None else stated_bits(constant.bits)


def _number(operand: Operand | None) -> float | None:
    return operand.number if isinstance(operand, Constant) else None


def _whole_width(number: float | None) -> int | None:
    return None if number is None or not 1 <= number <= 64 else round(number + 0.49)


Width = Callable[[Sequence[Operand | None], Sequence[Any]], Stated | None]
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
