"""ONNX operators that multiply: convolutions, matrix products, attention, and those of integers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hwmodel.importers import operators as ops
from hwmodel.importers import products
from hwmodel.importers.einsum import einsum
from hwmodel.importers.graph import Constant, Operand, Value
from hwmodel.importers.onnx_call import Call, Result, dims_of, window

__all__ = ["PRODUCTS"]


def _conv(call: Call) -> Value:
    bias = call.computed(2)
    made = _convolution(call, call.constant(1), bias=call.has(2) and bias is None)
    return made if bias is None else _with_bias(call, made, bias)


def _with_bias(call: Call, made: Value, bias: Value) -> Value:
    """Add a computed bias, which is a tensor and no parameter."""
    of_channels = (*bias.known, *(1,) * (len(dims_of(call)) - 2))
    b = Value(of_channels, call.graph.seen(bias), bias.shape)
    return ops.binary(call.graph, f"{call.name}.bias", "Add", made, b, call.dims[0])


def _conv_integer(call: Call) -> Value:
    """Convert ConvInteger; its other operands are zero points."""
    return _convolution(call, call.constant(1), bias=False)


def _convolution(call: Call, weights: Constant | None, *, bias: bool) -> Value:
    x = call.value
    if weights is None or len(weights.dims) < 3:
        return call.graph.uncounted(
            call.name, f"{call.operator} with computed weights", call.x, call.dims[0]
        )
    axes = len(weights.dims) - 2
    return products.conv(
        call.graph, call.name, x, weights, dims_of(call), bias=bias,
        stride=call.ints("strides", (1,) * axes),
        padding=window(call, weights.dims[2:]),
        dilation=call.ints("dilations", (1,) * axes),
        groups=call.number("group", 1),
    )  # fmt: skip


def _conv_transpose(call: Call) -> Value:
    x, weights = call.value, call.constant(1)
    if weights is None or len(weights.dims) < 3:
        return call.graph.uncounted(
            call.name, "ConvTranspose with computed weights", call.x, call.dims[0]
        )
    axes = len(weights.dims) - 2
    stride, dilation = call.ints("strides", (1,) * axes), call.ints("dilations", (1,) * axes)
    outs, sizes, taps = dims_of(call)[2:], x.known[2:], weights.dims[2:]
    pads = list(call.ints("pads", (0,) * 2 * axes))
    bare = [(sizes[i] - 1) * stride[i] + (taps[i] - 1) * dilation[i] + 1 for i in range(len(sizes))]
    extra = [
        out - size + pads[i] + pads[i + axes]
        for i, (out, size) in enumerate(zip(outs, bare, strict=True))
    ]
    if (
        min(extra) < 0
        or call.text("auto_pad", "NOTSET").startswith("SAME")
        or "output_shape" in call.attributes
    ):
        cut = [max(size - out, 0) for size, out in zip(bare, outs, strict=True)]
        pads = [c // 2 for c in cut] + [c - c // 2 for c in cut]
        extra = [max(out - size, 0) for size, out in zip(bare, outs, strict=True)]
    bias = call.computed(2)
    made = products.conv(
        call.graph, call.name, x, weights, dims_of(call), bias=call.has(2) and bias is None,
        stride=stride, padding=pads, dilation=dilation, groups=call.number("group", 1),
        transposed=True, output_padding=extra,
    )  # fmt: skip
    return made if bias is None else _with_bias(call, made, bias)


def _gemm(call: Call) -> Result | None:
    """Convert Gemm: A times B, either transposed; C is a bias if it has one number a feature."""
    b = call.constant(1)
    if b is None or not isinstance(call.operand(0), Value) or call.number("transA", 0):
        return ops.gemm_of_values(call.graph, call.name, call.x[:2], call.operand(2), call.dims[0],
                                  (call.number("transA", 0), call.number("transB", 0)))  # fmt: skip
    if len(b.dims) != 2:
        return None
    features = b.dims[::-1] if call.number("transB", 0) else b.dims
    c, M = call.operand(2), features[1]
    own = isinstance(c, Constant) and prod(c.dims) == M == (*c.dims, M)[len(c.dims) - 1]
    own = own and ops.may_own(call.graph, c, call.graph.owner(b))
    made = products.linear(
        call.graph, call.name, call.value, b, (features[0], M), own, call.dims[0]
    )
    if c is None or own:
        return call.graph.owned(c, made) if isinstance(c, Constant) else made
    return ops.binary(call.graph, f"{call.name}.bias", "Add", made, c, call.dims[0])


def _matmul(call: Call) -> Value:
    a, b = call.needed(0), call.needed(1)
    return products.matmul(call.graph, call.name, a, b, call.dims[0])


def _einsum(call: Call) -> Value | None:
    operands = [one for one in call.x if one is not None]
    return einsum(call.graph, call.name, call.text("equation", ""), operands, call.dims[0])


# Products of integers: operands between which scales and zero points stand


def _qlinear_conv(call: Call) -> Value:
    made = _convolution(call, call.constant(3), bias=call.has(8))
    return _as_wide(call, made, call.constant(7))


def _qlinear_matmul(call: Call) -> Value:
    a, b = call.needed(0), call.needed(3)
    return _as_wide(
        call, products.matmul(call.graph, call.name, a, b, call.dims[0]), call.constant(7)
    )


def _as_wide(call: Call, made: Value, zero_point: Constant | None) -> Value:
    call.graph.change(made.layer, bits=zero_point.bits if zero_point and zero_point.bits else 8)
    return made


def _dynamic_quantize(call: Call) -> list[Operand]:
    """Return the tensor, 8 bits wide, its scale and its zero point."""
    wide = ops.quantized(call.graph, call.name, call.value, 8, call.dims[0])
    return [wide, Constant((), f"{call.name}.scale"), Constant((), f"{call.name}.zero")]


PRODUCTS: dict[str, Callable[[Call], Result | None]] = {
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "ConvTranspose": _conv_transpose,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
}
