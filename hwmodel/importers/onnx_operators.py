"""ONNX operators, one small function each, in a table from an operator's name to its function."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hwmodel.graph.layers import Activation, PixelShuffle, PixelUnshuffle, Scale
from hwmodel.importers import operators as ops
from hwmodel.importers import products
from hwmodel.importers.graph import Constant, Operand, Value, plain
from hwmodel.importers.onnx_call import Call, Result, dims_of, window
from hwmodel.importers.onnx_contents import STANDARD
from hwmodel.importers.onnx_language import LANGUAGE
from hwmodel.importers.onnx_products import PRODUCTS
from hwmodel.importers.onnx_quantizers import QUANTIZERS
from hwmodel.importers.onnx_recurrent import RECURRENT

__all__ = ["convert"]


def convert(call: Call) -> list[Operand]:
    """Return a node's outputs; the first output of an operator without a model is uncounted."""
    key = call.operator if call.domain in STANDARD else f"{call.domain}:{call.operator}"
    found = _TABLE.get(key, _quantized)(call)
    if found is None:
        found = _uncounted(call)
    return [found] if isinstance(found, (Value, Constant)) else list(found)


def _uncounted(call: Call) -> list[Operand]:
    """Every output is one; the parameters are the first's, and so are products where known.

    Every matrix of a recurrent layer, of which the first axis is the direction, is multiplied once
    a step.
    """
    name = call.operator if call.domain in STANDARD else f"{call.domain}.{call.operator}"
    macs = None
    if name in ("GRU", "LSTM", "RNN"):
        matrices = [m for m in (call.constant(1), call.constant(2)) if m is not None]
        macs = prod(call.value.known[:-1]) * sum(prod(m.dims) for m in matrices)
    first = [call.graph.uncounted(call.name, name, call.x, call.dims[0], macs=macs)]
    rest = [call.graph.uncounted(call.name, name, call.x, dims, macs=0) for dims in call.dims[1:]]
    return [*first, *rest]


def _quantized(call: Call) -> Operand | None:
    """Return a quantizer's tensor, as wide as it states; None for any other operator."""
    width = QUANTIZERS.get((call.operator, call.domain))
    if width is None:
        return None
    bits = width(call.x, list(call.attributes.values()))
    return ops.quantized(call.graph, call.name, call.value, bits, call.dims[0])


# Norms and activations


def _batch_norm(call: Call) -> Value:
    return ops.batch_norm(call.graph, call.name, call.value, call.dims[0])


def _layer_norm(call: Call) -> Value | None:
    """Convert a layer or RMS norm; without a shift, a layer norm's factor is a layer of its own."""
    x = call.value
    axis = call.number("axis", -1) % len(x.known)
    affine = call.has(1) and call.has(2)
    if axis != len(x.known) - 1:
        whole = prod(x.known[axis:])
        x = Value((*x.known[:axis], whole), call.graph.seen(x), x.shape)
    if call.operator != "LayerNormalization":
        made = ops.rms_norm(call.graph, call.name, x, None, affine=call.has(1))
        return Value(call.dims[0], made.layer, made.shape)
    made = ops.layer_norm(call.graph, call.name, x, None, affine=affine)
    if call.has(1) and not affine:
        made = call.graph.put(Scale, f"{call.name}.factor", [made.layer], None)
    return Value(call.dims[0], made.layer, made.shape)


def _group_norm(call: Call) -> Value:
    """Convert an instance or group norm, which has a factor and a shift for each channel."""
    x = call.value
    return ops.layer_norm_of_channels(call.graph, call.name, x, call.dims[0])


def _function(word: str) -> Callable[[Call], Value]:
    return lambda call: ops.activation(call.graph, call.name, call.value, word, call.dims[0])


def _elementary(call: Call) -> Value:
    return ops.unary(call.graph, call.name, call.operator, call.value, call.dims[0])


def _reduce(call: Call) -> Value | None:
    """Convert a mean or maximum: part of a norm or softmax along the last axis, else a pool."""
    x, axes = call.value, call.axes()
    rank, kept = len(x.known), call.number("keepdims", 1)
    if axes == (rank - 1,) and kept and call.operator in ("ReduceMean", "ReduceSum", "ReduceMax"):
        return ops.unary(call.graph, call.name, call.operator, x, call.dims[0])
    if call.operator in ("ReduceMean", "ReduceMax"):
        largest = call.operator == "ReduceMax"
        return ops.reduced(call.graph, call.name, x, axes, call.dims[0], largest=largest)
    return None


def _binary(call: Call) -> Value:
    a, b = call.needed(0), call.needed(1)
    return ops.binary(call.graph, call.name, call.operator, a, b, call.dims[0])


def _largest(call: Call) -> Value | None:
    """Convert Max and Min of two operands; of more they have no model."""
    return _binary(call) if call.has(1) and not call.has(2) else None


def _clip(call: Call) -> Value:
    """Convert Clip; its bounds are attributes or operands, and may be missing."""
    low, high = (
        _bound(call, word, index, far)
        for word, index, far in (("min", 1, float("-inf")), ("max", 2, float("inf")))
    )
    return ops.clipped(call.graph, call.name, call.value, low, high, call.dims[0])


def _bound(call: Call, word: str, index: int, far: float) -> float:
    attribute = call.attributes.get(word)
    if attribute is not None:
        return float(attribute.f)
    constant = call.constant(index)
    return far if constant is None or constant.number is None else constant.number


def _hard_sigmoid(call: Call) -> Value:
    attribute = call.attributes.get("alpha")
    slope = 0.2 if attribute is None else attribute.f
    return ops.hard_sigmoid(call.graph, call.name, call.value, slope, call.dims[0])


def _prelu(call: Call) -> Value:
    return ops.prelu(call.graph, call.name, call.value, call.operand(1), call.dims[0])


# Pools


def _pool(call: Call) -> Result:
    x, kernel = call.value, call.ints("kernel_shape")
    axes = len(kernel)
    return ops.pool(
        call.graph, call.name, x, dims_of(call),
        largest=call.operator == "MaxPool", kernel=kernel,
        stride=call.ints("strides", (1,) * axes),
        padding=window(call, kernel),
        partial=bool(call.number("ceil_mode", 0)), dilated=set(call.ints("dilations", (1,))) != {1},
    )  # fmt: skip


def _global_pool(call: Call) -> Value:
    largest = call.operator == "GlobalMaxPool"
    return ops.global_pool(call.graph, call.name, call.value, call.dims[0], largest=largest)


# Shapes


def _same(call: Call) -> Operand:
    """Convert an operator that changes no element: reshape, transpose, cast, dropout."""
    return ops.same(call.graph, call.value, call.dims[0])


def _shape(call: Call) -> Constant:
    """Return a tensor's shape as a constant."""
    dims = call.value.dims
    if dims is None:  # an initial state may be made of it, which needs no more than to be there
        return Constant((), call.name)
    return Constant((len(dims),), call.name, elements=tuple(map(float, dims)))


def _expand(call: Call) -> Operand | None:
    """Convert Expand: a view, also where it repeats elements."""
    return ops.expanded(call.graph, call.name, call.value, call.dims[0])


def _concat(call: Call) -> Value:
    operands = [x for x in call.x if x is not None]
    dims = dims_of(call)
    return ops.concat(call.graph, call.name, operands, call.number("axis", 0) % len(dims), dims)


def _sum(call: Call) -> Value:
    operands = [x for x in call.x if x is not None]
    if len(operands) == 1:
        return call.value
    return ops.sum_of(call.graph, call.name, operands, call.dims[0])


def _slice(call: Call) -> Result | None:
    """Slice along each axis that gets shorter, in turn; steps have no model."""
    x, dims = call.value, dims_of(call)
    steps = call.constant(4)
    if call.has(4) and (steps is None or set(steps.whole or (0,)) != {1}):
        return None
    stated = call.constant(1)
    starts = call.ints("starts") or (stated.whole if stated and stated.whole else ())
    listed = call.constant(3)
    axes = call.ints("axes") or (listed.whole if listed and listed.whole else range(len(starts)))
    first = {axis % len(dims): start for axis, start in zip(axes, starts, strict=False)}
    known = list(x.known)
    for axis, (length, left) in enumerate(zip(x.known, dims, strict=True)):
        if left == length:
            continue
        start = first.get(axis, 0)
        start = min(max(start + length if start < 0 else start, 0), length - left)
        known[axis] = left
        x = ops.sliced(call.graph, call.name, x, axis, start, tuple(known))
    return Value(dims, call.graph.seen(x), x.shape)


def _split(call: Call) -> list[Operand]:
    """Convert Split to one slice for each part."""
    x = call.value
    axis = call.number("axis", 0) % len(x.known)
    start, parts = 0, []
    for index, dims in enumerate(call.dims):
        name = f"{call.name}.{index}" if len(call.dims) > 1 else call.name
        parts.append(ops.sliced(call.graph, name, x, axis, start, dims))
        start += dims[axis] if dims else 0
    return list(parts)


def _gather(call: Call) -> Value | None:
    """Convert Gather: rows of a table of constants, or one place of a tensor."""
    table, numbers = call.operand(0), call.operand(1)
    if isinstance(table, Constant) and isinstance(numbers, Value):
        if call.number("axis", 0) % max(len(table.dims), 1):
            return None
        return products.embedding(call.graph, call.name, numbers, table, call.dims[0])
    if isinstance(numbers, Constant) and prod(numbers.dims) == 1 and numbers.number is not None:
        x = call.value
        axis = call.number("axis", 0) % len(x.known)
        start = int(numbers.number) % x.known[axis]
        return ops.sliced(call.graph, call.name, x, axis, start, call.dims[0])
    return None


def _resize(call: Call) -> Value:
    mode = call.text("mode", "nearest")
    word = {"nearest": "nearest", "linear": "bilinear", "bilinear": "bilinear"}.get(mode)
    return ops.upsample(call.graph, call.name, call.value, dims_of(call), word)


def _shuffle(call: Call) -> Value:
    kind = PixelShuffle if call.operator == "DepthToSpace" else PixelUnshuffle
    source = call.graph.seen(call.value, plain(call.value.known))
    factor = call.number("blocksize", 1)
    return call.graph.put(kind, call.name, [source], call.dims[0], factor=factor)


def _softmax(call: Call) -> Value:
    return call.graph.put(
        Activation, call.name, [call.graph.seen(call.value)], call.dims[0], function="softmax"
    )


_SAME = (
    "Identity", "Cast", "CastLike", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
    "Dropout", "DequantizeLinear",
)  # fmt: skip
_ELEMENTARY = (
    "Abs", "Erf", "Exp", "Log", "Neg", "Reciprocal", "Sigmoid", "Softplus", "Sqrt", "Tanh"
)  # fmt: skip
_FUNCTIONS = {
    "Relu": "relu", "LeakyRelu": "leaky-relu", "Elu": "elu", "Selu": "elu", "Celu": "elu",
    "Gelu": "gelu", "HardSwish": "hardswish", "Swish": "swish", "Sign": "sign",
    "LogSoftmax": "softmax", "ThresholdedRelu": "relu", "com.microsoft:Gelu": "gelu",
    "com.microsoft:FastGelu": "gelu", "com.microsoft:QuickGelu": "gelu",
}  # fmt: skip

_TABLE: dict[str, Callable[[Call], Result | None]] = {
    "AveragePool": _pool,
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Concat": _concat,
    "DepthToSpace": _shuffle,
    "Expand": _expand,
    "Gather": _gather,
    "GlobalAveragePool": _global_pool,
    "GlobalMaxPool": _global_pool,
    "GroupNormalization": _group_norm,
    "HardSigmoid": _hard_sigmoid,
    "InstanceNormalization": _group_norm,
    "LayerNormalization": _layer_norm,
    "Max": _largest,
    "MaxPool": _pool,
    "Min": _largest,
    "PRelu": _prelu,
    "RMSNormalization": _layer_norm,
    "Resize": _resize,
    "Shape": _shape,
    "Size": _shape,
    "Slice": _slice,
    "Softmax": _softmax,
    "SpaceToDepth": _shuffle,
    "Split": _split,
    "Sum": _sum,
    "Upsample": _resize,
}
_TABLE |= dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow"), _binary)
_TABLE |= dict.fromkeys(_ELEMENTARY, _elementary)
_TABLE |= dict.fromkeys(("ReduceMean", "ReduceSum", "ReduceMax"), _reduce)
_TABLE |= {operator: _function(word) for operator, word in _FUNCTIONS.items()}
_TABLE |= dict.fromkeys(_SAME, _same)
_TABLE |= PRODUCTS
_TABLE |= RECURRENT
_TABLE |= LANGUAGE
