"""ATen operators, one small function each, in a table from an operator's name to its function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from hwmodel.errors import ShapeError
from hwmodel.graph.layers import PixelShuffle, PixelUnshuffle, Reshape, Rotary
from hwmodel.importers import operators as ops
from hwmodel.importers import products
from hwmodel.importers.einsum import einsum
from hwmodel.importers.graph import Constant, Operand, Value, as_value, plain
from hwmodel.importers.torch_ran import Ran, Result
from hwmodel.importers.torch_recurrent import RECURRENT

__all__ = ["CHANNELS_FIRST", "FILLED", "LAYERS", "TABLES", "convert"]

CHANNELS_FIRST = frozenset(
    {
        "avg_pool1d", "batch_norm", "conv1d", "conv_transpose1d", "convolution", "group_norm",
        "instance_norm", "max_pool1d", "adaptive_avg_pool1d",
    }
)  # fmt: skip


def convert(ran: Ran) -> list[Operand]:
    """Return an operator's outputs; an operator without a model is uncounted."""
    function = _TABLE.get(ran.operator)
    found = function(ran) if function else None
    if found is None:
        operands = [ran.found.get(node) for node in ran.node.all_input_nodes]
        flat = [o for one in operands for o in (one if isinstance(one, list) else [one])]
        found = _uncounted(ran, flat)
    return [found] if isinstance(found, (Value, Constant)) else list(found)


def _uncounted(ran: Ran, operands: Sequence[Operand | None]) -> list[Operand]:
    """A layer for each result that is taken; parameters and products are those of the first.

    Every matrix of a recurrent layer is multiplied once a step.
    """
    macs = None
    if ran.operator in RECURRENT or ran.operator.removesuffix("_cell") in RECURRENT:
        constants = [o for o in operands if isinstance(o, Constant) and o.learned]
        matrices = [o for o in constants if len(o.dims) == 2]
        macs = prod(ran.value.known[:-1]) * sum(prod(o.dims) for o in matrices)
    made: list[Operand] = []
    for index, dims in enumerate(ran.dims):
        if index and index not in ran.taken:
            made.append(Constant(()))
            continue
        known = 0 if index else macs
        made.append(ran.graph.uncounted(ran.name, ran.operator, operands, dims, macs=known))
    return made


# Convolutions and products


def _conv(ran: Ran) -> Value:
    x, weights = ran.value, ran.argument("weight")
    axes = len(weights.dims if isinstance(weights, Constant) else weights.known) - 2
    if not isinstance(weights, Constant):
        operator = f"{ran.operator} with computed weights"
        return ran.graph.uncounted(ran.name, operator, [x, weights], ran.dims[0])
    if len(x.known) == axes + 1:  # without a batch
        x = Value((1, *x.known), ran.graph.seen(x), x.shape, readers=x.readers)
    dilation, transposed = ran.numbers("dilation", axes, 1), "transpose" in ran.operator
    transposed = transposed or bool(ran.argument("transposed", False))
    return products.conv(
        ran.graph, ran.name, x, weights, ran.dims[0], bias=ran.argument("bias") is not None,
        learned=ran.learned("weight", "bias"),
        stride=ran.numbers("stride", axes, 1),
        padding=_padding(ran, weights.dims[2:], dilation),
        dilation=dilation,
        groups=ran.argument("groups", 1),
        transposed=transposed,
        output_padding=ran.numbers("output_padding", axes, 0) if transposed else (),
    )  # fmt: skip


def _padding(ran: Ran, taps: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Return the padding before every axis, then after; "same" puts the odd one after."""
    word = ran.argument("padding", 0)
    if isinstance(word, str):
        spans = [d * (k - 1) if word == "same" else 0 for k, d in zip(taps, dilation, strict=True)]
        return [span // 2 for span in spans] + [span - span // 2 for span in spans]
    return list(ran.numbers("padding", len(taps), 0)) * 2


def _linear(ran: Ran) -> Value:
    weights = ran.argument("weight")
    if not isinstance(weights, Constant):
        turned = Value(weights.known[::-1], weights.layer, weights.shape, weights.form)
        return products.matmul(ran.graph, ran.name, ran.value, turned, ran.dims[0])
    M, C = weights.dims
    bias = ran.argument("bias") is not None
    return products.linear(
        ran.graph, ran.name, ran.value, weights, (C, M), bias, ran.dims[0],
        learned=ran.learned("weight", "bias"),
    )  # fmt: skip


def _matmul(ran: Ran) -> Value:
    a, b = (ran.argument(name) for name in ran.fields[:2])
    return products.matmul(ran.graph, ran.name, a, b, ran.dims[0])


def _einsum(ran: Ran) -> Value | None:
    operands = ran.argument("tensors")
    return einsum(ran.graph, ran.name, ran.argument("equation"), operands, ran.dims[0])


def _addmm(ran: Ran) -> Value:
    made = products.matmul(
        ran.graph, ran.name, ran.argument("mat1"), ran.argument("mat2"), ran.dims[0]
    )
    return ops.binary(ran.graph, f"{ran.name}.bias", "Add", made, ran.argument("self"), ran.dims[0])


def _attention(ran: Ran) -> Value | None:
    query, key, value = (ran.argument(name) for name in ("query", "key", "value"))
    if not all(isinstance(part, Value) for part in (query, key, value)):
        return None
    heads, kv_heads = prod(query.known[:-2]), prod(key.known[:-2])
    shared = bool(ran.argument("enable_gqa", False)) and heads % kv_heads == 0
    if kv_heads != heads and not shared:
        return None
    masked = ran.is_causal("attn_mask")
    bias = None if masked else _operand(ran.argument("attn_mask"))
    return products.attention(
        ran.graph, ran.name, (query, key, value), heads, ran.dims[0], kv_heads=kv_heads,
        causal=masked or bool(ran.argument("is_causal", False)), bias=bias,
    )  # fmt: skip


def _embedding(ran: Ran) -> Value | None:
    table, numbers = ran.argument("weight"), ran.argument("indices")
    if not (isinstance(table, Constant) and isinstance(numbers, (Value, Constant))):
        return None
    return products.embedding(ran.graph, ran.name, numbers, table, ran.dims[0])


def _index(ran: Ran) -> Value | None:
    """Convert rows of a table by number (of a table of relative positions, say)."""
    table, numbers = ran.argument("self"), ran.argument("indices")
    if not isinstance(table, Constant) or not table.learned or len(table.dims) < 2:
        return None
    if len(numbers) != 1 or (isinstance(numbers[0], Value) and numbers[0].dims is None):
        return None
    return products.embedding(ran.graph, ran.name, numbers[0], table, ran.dims[0])


# Norms and activations


def _batch_norm(ran: Ran) -> Value:
    affine = ran.argument("weight") is not None
    made = ops.batch_norm(ran.graph, ran.name, ran.value, ran.dims[0], affine=affine)
    return _frozen(ran, made)


def _last_norm(norm: Callable[..., Value], ran: Ran) -> Value:
    """Convert a layer or RMS norm of the last axes, taken for one."""
    x, affine = ran.value, ran.argument("weight") is not None
    axes = len(ran.argument("normalized_shape"))
    whole = Value((*x.known[:-axes], prod(x.known[-axes:])), ran.graph.seen(x), x.shape)
    made = _frozen(ran, norm(ran.graph, ran.name, whole, None, affine=affine))
    return Value(ran.dims[0], made.layer, made.shape)


def _group_norm(ran: Ran) -> Value:
    made = ops.layer_norm_of_channels(
        ran.graph, ran.name, ran.value, ran.dims[0], affine=ran.argument("weight") is not None
    )
    return _frozen(ran, made)


def _frozen(ran: Ran, made: Value) -> Value:
    """The same layer, frozen if its weight and its bias are."""
    given = [ran.argument(name) for name in ("weight", "bias")]
    own = [one for one in given if isinstance(one, Constant) and one.learned]
    if own and all(one.frozen for one in own):
        ran.graph.change(made.layer, learned=False)
    return made


def _function(word: str, ran: Ran) -> Value:
    return ops.activation(ran.graph, ran.name, ran.value, word, ran.dims[0])


def _prelu(ran: Ran) -> Value:
    made = ops.prelu(ran.graph, ran.name, ran.value, ran.argument("weight"), ran.dims[0])
    return _frozen(ran, made)


def _elementary(word: str, ran: Ran) -> Value:
    return ops.unary(ran.graph, ran.name, word, ran.value, ran.dims[0])


def _binary(word: str, ran: Ran) -> Value | None:
    if word == "Mul" and ran.is_complex:
        return _turned(ran)
    a, b = (_operand(ran.argument(name)) for name in ran.fields[:2])
    if a is None or b is None or ran.argument("rounding_mode") is not None:
        return None
    if "rsub" in ran.operator:
        a, b = b, a
    return ops.binary(ran.graph, ran.name, word, a, b, ran.dims[0])


def _turned(ran: Ran) -> Value | None:
    """Convert a product of complex numbers, pairs of features, with a table: a rotary embedding."""
    x, table = ran.argument("self"), ran.argument("other")
    if not isinstance(x, Value) or not isinstance(table, Constant):
        return None
    size = 2 * prod(table.dims)
    places, d = size // (2 * x.known[-1]), 2 * x.known[-1]
    heads = 2 * prod(x.known) // size
    source = ran.graph.seen(x, (heads * d, places, 1))
    made = ran.graph.put(Rotary, ran.name, [source], None, heads=heads)
    return Value(ran.dims[0], made.layer, made.shape)


def _operand(given: Any) -> Operand | None:
    if isinstance(given, (Value, Constant)):
        return given
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return Constant((), elements=(float(given),)) if number else None


def _clamp(ran: Ran) -> Value | None:
    low, high = (ran.argument(word) for word in ("min", "max"))
    if not all(bound is None or isinstance(bound, (int, float)) for bound in (low, high)):
        return None
    bounds = (float("-inf") if low is None else low, float("inf") if high is None else high)
    return ops.clipped(ran.graph, ran.name, ran.value, *bounds, ran.dims[0])


# Pools


def _pool(ran: Ran) -> Result | None:
    axes = 2 if "2d" in ran.operator else 1
    kernel = ran.numbers("kernel_size", axes, 1)
    stride = ran.argument("stride")
    made = ops.pool(
        ran.graph, ran.name, ran.value, ran.dims[0],
        largest=ran.operator.startswith("max"), kernel=kernel,
        stride=kernel if stride in (None, []) else ran.numbers("stride", axes, 1),
        padding=list(ran.numbers("padding", axes, 0)) * 2,
        partial=bool(ran.argument("ceil_mode", False)),
        dilated=set(ran.numbers("dilation", axes, 1)) != {1},
    )  # fmt: skip
    return [made] if ran.several else made


def _adaptive(ran: Ran) -> Value | None:
    """Convert an adaptive pool: to one place a global one, else windows that divide the axes."""
    x, largest = ran.value, "max" in ran.operator
    ins, outs = x.known[2:], ran.known()[2:]
    if set(outs) == {1}:
        return ops.global_pool(ran.graph, ran.name, x, ran.dims[0], largest=largest)
    if any(size % out for size, out in zip(ins, outs, strict=True)):
        return None
    kernel = [size // out for size, out in zip(ins, outs, strict=True)]
    if set(kernel) == {1}:
        return _same(ran)
    return ops.pool(
        ran.graph, ran.name, x, ran.dims[0], largest=largest, kernel=kernel, stride=kernel,
        padding=[0] * 2 * len(kernel),
    )  # fmt: skip


def _mean(ran: Ran) -> Value | None:
    """Convert a mean: over places a global pool, over the last axis part of a norm."""
    x, axes = ran.value, ran.argument("dim")
    rank = len(x.known)
    axes = tuple(sorted(a % rank for a in (axes if isinstance(axes, list) else [axes or 0])))
    if axes == (rank - 1,) and ran.argument("keepdim", False):
        return ops.unary(ran.graph, ran.name, "ReduceMean", x, ran.dims[0])
    return ops.reduced(ran.graph, ran.name, x, axes, ran.dims[0], largest=False)


# Shapes


def _same(ran: Ran) -> Value:
    return ops.same(ran.graph, ran.value, ran.dims[0])


def _roll(ran: Ran) -> Value:
    """Convert a shift, a matter of addresses; not its input, for both may be added up."""
    source = ran.graph.seen(ran.value)
    return ran.graph.put(Reshape, ran.name, [source], ran.dims[0], shape=ran.value.shape)


def _expand(ran: Ran) -> Value | None:
    return ops.expanded(ran.graph, ran.name, ran.value, ran.dims[0])


def _repeat(ran: Ran) -> Value | None:
    """Convert a repetition of each place along an axis, which as a view reads it so often."""
    return _expand(ran) if isinstance(ran.argument("repeats"), int) else None


def _pad(ran: Ran) -> Value | None:
    """Convert a pad that adds nothing; any other has no model."""
    return _same(ran) if ran.known() == ran.value.known else None


def _cat(ran: Ran) -> Value:
    dims, tensors = ran.known(), ran.argument("tensors")
    axis = ran.argument("dim", 0) % len(dims)
    if ran.operator == "stack":
        tensors = [
            Value((*t.known[:axis], 1, *t.known[axis:]), ran.graph.seen(t), t.shape)
            for t in (as_value(ran.graph, ran.name, tensor) for tensor in tensors)
        ]
    return ops.concat(ran.graph, ran.name, tensors, axis, dims)


def _parts(ran: Ran) -> list[Operand]:
    """Convert a split to slices side by side, one for each part."""
    x = ran.value
    axis = ran.argument("dim", 0) % len(x.known)
    start, parts = 0, []
    for index, dims in enumerate(ran.dims):
        if dims is None:
            raise ShapeError(f"{ran.name}: the dimensions of its parts are not known")
        length = prod(dims) * x.known[axis] // prod(x.known)
        parts.append(ops.sliced(ran.graph, f"{ran.name}.{index}", x, axis, start, dims))
        start += length
    return list(parts)


def _slice(ran: Ran) -> Value | None:
    x = ran.value
    axis = ran.argument("dim", 0) % len(x.known)
    start = ran.argument("index", None)
    start = ran.argument("start", 0) if start is None else start
    if not isinstance(start, int):
        return None
    start = start + x.known[axis] if start < 0 else min(start, x.known[axis])
    step = ran.argument("step", 1) if ran.operator == "slice" else 1
    if step != 1:
        return ops.every(ran.graph, ran.name, x, axis, start, step, ran.known())
    return ops.sliced(ran.graph, ran.name, x, axis, start, ran.dims[0])


def _shuffle(kind: Any, word: str, ran: Ran) -> Value:
    source = ran.graph.seen(ran.value, plain(ran.value.known))
    return ran.graph.put(kind, ran.name, [source], ran.dims[0], factor=ran.argument(word))


def _upsample(word: str | None, ran: Ran) -> Value:
    return ops.upsample(ran.graph, ran.name, ran.value, ran.known(), word)


_FUNCTIONS = {
    "celu": "elu", "elu": "elu", "gelu": "gelu", "hardsigmoid": "hardsigmoid",
    "hardswish": "hardswish", "hardtanh": "hardtanh", "leaky_relu": "leaky-relu",
    "log_softmax": "softmax", "relu": "relu", "relu6": "hardtanh",
    "selu": "elu", "sign": "sign", "silu": "swish", "softmax": "softmax",
    "_softmax": "softmax", "rrelu": "leaky-relu",
}  # fmt: skip
_ELEMENTARY = {
    "abs": "Abs", "erf": "Erf", "exp": "Exp", "log": "Log", "neg": "Neg",
    "reciprocal": "Reciprocal", "sigmoid": "Sigmoid", "softplus": "Softplus", "sqrt": "Sqrt",
    "rsqrt": "Rsqrt", "tanh": "Tanh",
}  # fmt: skip
_BINARY = {
    "add": "Add", "sub": "Sub", "rsub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow",
    "maximum": "Max", "minimum": "Min",
}  # fmt: skip
_SAME = (
    "_conj", "_to_copy", "_unsafe_view", "alias", "alpha_dropout", "channel_shuffle", "clone",
    "conj", "contiguous", "detach", "dropout", "feature_alpha_dropout", "feature_dropout",
    "flatten", "lift_fresh", "lift_fresh_copy", "matrix_H", "moveaxis", "movedim", "mT",
    "native_channel_shuffle", "numpy_T", "permute", "pin_memory", "positive", "ravel", "real",
    "requires_grad", "reshape", "reshape_as", "resolve_conj", "resolve_neg", "squeeze",
    "swapaxes", "swapdims", "t", "to", "transpose", "type_as", "unflatten", "unsafe_view",
    "unsqueeze", "view", "view_as",
)  # fmt: skip

_TABLE: dict[str, Callable[[Ran], Result | None]] = {
    "addmm": _addmm,
    "batch_norm": _batch_norm,
    "bmm": _matmul,
    "cat": _cat,
    "chunk": _parts,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "einsum": _einsum,
    "embedding": _embedding,
    "broadcast_to": _expand,
    "expand": _expand,
    "expand_as": _expand,
    "group_norm": _group_norm,
    "index": _index,
    "instance_norm": _group_norm,
    "layer_norm": partial(_last_norm, ops.layer_norm),
    "linear": _linear,
    "matmul": _matmul,
    "mean": _mean,
    "mm": _matmul,
    "narrow": _slice,
    "pad": _pad,
    "constant_pad_nd": _pad,
    "repeat_interleave": _repeat,
    "view_as_complex": _same,
    "view_as_real": _same,
    "pixel_shuffle": partial(_shuffle, PixelShuffle, "upscale_factor"),
    "pixel_unshuffle": partial(_shuffle, PixelUnshuffle, "downscale_factor"),
    "prelu": _prelu,
    "rms_norm": partial(_last_norm, ops.rms_norm),
    "scaled_dot_product_attention": _attention,
    "roll": _roll,
    "select": _slice,
    "slice": _slice,
    "split": _parts,
    "split_with_sizes": _parts,
    "stack": _cat,
    "tensor_split": _parts,
    "unbind": _parts,
    "upsample_bilinear2d": partial(_upsample, "bilinear"),
    "upsample_nearest2d": partial(_upsample, "nearest"),
}
_CONVS = (
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "convolution",
)  # fmt: skip
_POOLS = ("avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d", "max_pool2d_with_indices")
_ADAPTIVE = ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
_TABLE |= dict.fromkeys(_CONVS, _conv) | dict.fromkeys(_POOLS, _pool)
_TABLE |= dict.fromkeys(_ADAPTIVE, _adaptive) | dict.fromkeys(_SAME, _same)
_TABLE |= {name: partial(_function, word) for name, word in _FUNCTIONS.items()}
_TABLE |= {name: partial(_elementary, word) for name, word in _ELEMENTARY.items()}
_TABLE |= RECURRENT
_TABLE |= {name: partial(_binary, word) for name, word in _BINARY.items()}

# Tensors that take no more than the shape and the kind of another.
FILLED = frozenset(
    {
        "empty_like", "full_like", "new_empty", "new_empty_strided", "new_full", "new_ones",
        "new_zeros", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like",
    }
)  # fmt: skip
# What stays a layer where its input is constant, for its weights are learned.
LAYERS = frozenset({*_CONVS, "batch_norm", "group_norm", "layer_norm", "linear", "rms_norm"})
TABLES = frozenset({"embedding", "index"})  # the same of a table that they read by constants
