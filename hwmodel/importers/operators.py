"""Operators as layers of a `Graph`: convolutions, products, norms and the rest.

Every function takes the graph, the name of the layer, its operands, and the dimensions that the
source's graph states for the result, and gives the value. Axes count from the batch, which is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hwmodel.graph.layers import (
    Activation,
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Expand,
    GlobalAveragePool,
    LayerNorm,
    MaxPool,
    Multiply,
    Reshape,
    RMSNorm,
    Scale,
    Slice,
    Upsample,
)
from hwmodel.importers.graph import (
    AFFINE,
    COMBINED,
    Constant,
    Dims,
    Graph,
    Operand,
    Value,
    as_value,
    combined,
    frames,
    function_of,
    of_one,
    pair,
    plain,
    tokens,
)
from hwmodel.importers.products import matmul
from hwmodel.importers.samples import BINARY, ROWS, UNARY, recognised
from hwmodel.work.tensor import Stated

__all__ = [
    "activation",
    "batch_norm",
    "binary",
    "clipped",
    "concat",
    "expanded",
    "gemm_of_values",
    "global_pool",
    "hard_sigmoid",
    "layer_norm",
    "layer_norm_of_channels",
    "may_own",
    "pool",
    "prelu",
    "quantized",
    "reduced",
    "rms_norm",
    "same",
    "sliced",
    "sum_of",
    "unary",
    "upsample",
]


def gemm_of_values(
    graph: Graph,
    name: str,
    operands: Sequence[Operand | None],
    bias: Operand | None,
    dims: Dims | None,
    transposed: tuple[int, int],
) -> Value:
    """Add a product of matrices, the second no constant, and a sum with its bias."""
    a, b = (
        _turned(operand, turn)
        for operand, turn in zip(operands, transposed, strict=True)
        if operand
    )
    made = matmul(graph, name, a, b, dims)
    if bias is None:
        return made
    return binary(graph, f"{name}.bias", "Add", made, bias, dims)


def _turned(operand: Operand, turn: int) -> Operand:
    """Transpose a matrix: only its dimensions change."""
    if not turn:
        return operand
    if isinstance(operand, Constant):
        return operand._replace(dims=operand.dims[::-1])
    return Value(operand.known[::-1], operand.layer, operand.shape, operand.form)


def batch_norm(
    graph: Graph, name: str, x: Value, dims: Dims | None, *, affine: bool = True
) -> Value:
    """Add a batch norm of axis 1; a factor and a shift for each channel after it become its own."""
    made = graph.put(BatchNorm, name, [_channels_first(graph, x)], dims, affine=affine)
    graph.open[made.layer] = dict(AFFINE)
    return made


def _channels_first(graph: Graph, x: Value) -> str:
    """Return the layer of a value with axis 1 as channels; what axis 0 holds makes more rows."""
    graph.settle(x)
    dims = x.known
    C = dims[1] if len(dims) > 1 else 1
    if x.shape[0] == C:
        return graph.seen(x)
    W = dims[-1] if len(dims) > 3 else 1
    return graph.seen(x, (C, prod(x.known) // (C * W), W))


def layer_norm(graph: Graph, name: str, x: Value, dims: Dims | None, *, affine: bool) -> Value:
    """Add a layer norm of the last axis."""
    return graph.put(LayerNorm, name, [graph.seen(x, tokens(x.known))], dims, affine=affine)


def rms_norm(graph: Graph, name: str, x: Value, dims: Dims | None, *, affine: bool) -> Value:
    """Add an RMS norm of the last axis."""
    return graph.put(RMSNorm, name, [graph.seen(x, tokens(x.known))], dims, affine=affine)


def layer_norm_of_channels(
    graph: Graph, name: str, x: Value, dims: Dims | None, *, affine: bool = True
) -> Value:
    """Add a group or instance norm, whose work and parameters are a layer norm's of axis 1."""
    return graph.put(LayerNorm, name, [_channels_first(graph, x)], dims, affine=affine)


def clipped(graph: Graph, name: str, x: Value, low: float, high: float, dims: Dims | None) -> Value:
    """Bound elements, as part of a chain or by itself: ReLU, ReLU6, hard tanh."""
    if low == 0 and high == float("inf"):
        return activation(graph, name, x, "relu", dims)
    found = graph.pending(name, "Clip", [x], lambda y: np.clip(y, low, high), dims)
    assert found is not None  # one part has one base
    if x.form is None and recognised(found.form.samples if found.form else ROWS) is None:
        return activation(graph, name, x, "hardtanh", dims)  # bounds beyond the samples
    return found


def hard_sigmoid(graph: Graph, name: str, x: Value, slope: float, dims: Dims | None) -> Value:
    """Add clip(slope x + 1/2, 0, 1)."""
    function = lambda y: np.clip(slope * y + 0.5, 0, 1)  # noqa: E731
    found = graph.pending(name, "HardSigmoid", [x], function, dims)
    assert found is not None  # one part has one base
    return found


def activation(graph: Graph, name: str, x: Value, function: str, dims: Dims | None) -> Value:
    """Add a function of each element (or of rows of elements: softmax)."""
    return graph.put(Activation, name, [graph.seen(x)], dims, function=function)


def prelu(graph: Graph, name: str, x: Value, slopes: Operand | None, dims: Dims | None) -> Value:
    """Add a PReLU, with one learned slope for each channel or one for all."""
    of_all = isinstance(slopes, Constant) and prod(slopes.dims) == 1
    fields = {"per_channel": False} if of_all else {}
    source = graph.seen(x) if of_all else _channels_first(graph, x)
    return graph.put(Activation, name, [source], dims, function="prelu", **fields)


def pool(
    graph: Graph,
    name: str,
    x: Value,
    dims: Dims | None,
    *,
    largest: bool,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    partial: bool = False,
    dilated: bool = False,
) -> Value:
    """Add a pool along one or two axes; windows of other kinds have no model.

    Args:
        padding: before each axis, then after each.
    """
    kind = MaxPool if largest else AveragePool
    pads = [padding[0], 0, padding[1], 0] if len(kernel) == 1 else list(padding)
    if len(kernel) > 2 or dilated:
        return graph.uncounted(name, kind.__name__, [x], dims)
    _, shape = frames(x.known, len(kernel))
    if not largest and tuple(kernel) == tuple(x.known[2:]) and not any(pads):
        return graph.put(GlobalAveragePool, name, [graph.seen(x, shape)], dims)
    fields = {
        "kernel": pair(kernel), "stride": pair(stride), "padding": tuple(pads), "partial": partial
    }  # fmt: skip
    made = graph.put(kind, name, [graph.seen(x, shape)], None, **fields)
    if dims is not None and prod(made.shape) != prod(dims):
        graph.undo(made.layer)
        return graph.uncounted(name, f"{kind.__name__} with other borders", [x], dims)
    return Value(dims, made.layer, made.shape)


def global_pool(graph: Graph, name: str, x: Value, dims: Dims | None, *, largest: bool) -> Value:
    """Add a pool of each whole channel: its mean, or its largest element."""
    number, C, *places = x.known
    return _pooled(graph, name, x, (number * C, *places), dims, largest=largest)


def _pooled(
    graph: Graph, name: str, x: Value, seen: Dims, dims: Dims | None, *, largest: bool
) -> Value:
    """Add a pool of a tensor seen as channels, rows and columns."""
    shape = plain((1, *seen)) if len(seen) < 4 else (seen[0], prod(seen[1:-1]), seen[-1])
    if largest:
        kernel = (shape[1], shape[2])
        return graph.put(MaxPool, name, [graph.seen(x, shape)], dims, kernel=kernel)
    return graph.put(GlobalAveragePool, name, [graph.seen(x, shape)], dims)


def reduced(
    graph: Graph, name: str, x: Value, axes: Sequence[int], dims: Dims | None, *, largest: bool
) -> Value | None:
    """Add a mean or maximum over all axes but the channels, which stand first, or last (tokens).

    None over other axes.
    """
    rank = len(x.known)
    if rank not in (3, 4, 5):
        return None
    if tuple(axes) == tuple(range(2, rank)):
        return global_pool(graph, name, x, dims, largest=largest)
    places = [length for axis, length in enumerate(x.known[:-1]) if axis in axes]
    if rank - 1 not in axes and prod(places) == prod(x.known[:-1]):  # the others are 1 long
        return _pooled(graph, name, x, (x.known[-1], *places), dims, largest=largest)
    return None


def unary(graph: Graph, name: str, operator: str, x: Value, dims: Dims | None) -> Value:
    """Take an elementary operator of one operand, which may be part of a longer chain."""
    found = graph.pending(name, operator, [x], UNARY[operator], dims)
    assert found is not None  # one part has one base
    return found


def binary(
    graph: Graph, name: str, operator: str, a: Operand, b: Operand, dims: Dims | None
) -> Value:
    """Take Add, Sub, Mul, Div, Pow … of two operands, one of which may be a constant."""
    if isinstance(a, Value) and isinstance(b, Value):
        return _ofpair(graph, name, operator, a, b, dims)
    value, constant = (a, b) if isinstance(a, Value) else (b, a)
    assert isinstance(value, Value) and isinstance(constant, Constant)
    if not constant.learned and constant.number is not None:
        function = function_of(operator, constant.number, first=value is a)
        found = graph.pending(name, operator, [value], function, dims)
        assert found is not None  # one part has one base
        return found
    return _with_constant(graph, name, operator, value, constant, dims)


def _ofpair(graph: Graph, name: str, operator: str, a: Value, b: Value, dims: Dims | None) -> Value:
    found = graph.pending(name, operator, [a, b], BINARY[operator], dims)
    if found is not None and (a.form or b.form):
        return found
    if operator in COMBINED:
        return combined(graph, name, COMBINED[operator], [a, b], dims)
    return graph.uncounted(name, operator, [a, b], dims)


_TO_CHANNELS = {"Add": "Add", "Sub": "Add", "Mul": "Mul", "Div": "Mul"}  # as a shift or factor


def _with_constant(
    graph: Graph, name: str, operator: str, x: Value, constant: Constant, dims: Dims | None
) -> Value:
    """Add or multiply a tensor of constants, as a part of the layer before where possible."""
    graph.settle(x)
    constant = of_one(graph, constant, dims)
    word = _TO_CHANNELS.get(operator)
    of_one_axis = sum(length > 1 for length in constant.dims) < 2
    per_channel = of_one_axis and prod(constant.dims) == x.shape[0]
    takes = word in graph.open.get(x.layer, ()) and per_channel and x.readers == 1
    if takes and may_own(graph, constant, graph.layer(x.layer).shares):
        return graph.owned(constant, _taken_in(graph, x, word or "", constant, dims))
    if word == "Mul" and (per_channel or prod(constant.dims) == 1):
        learned: bool | str = constant.learned and per_channel  # one number is part of a formula
        if learned and constant.frozen:
            learned = "frozen"
        return graph.put(Scale, name, [graph.seen(x)], dims, learned=learned)
    if word == "Mul":
        other = as_value(graph, name, constant, dims)
        return combined(graph, name, Multiply, [x, other], dims)
    if word == "Add":
        other = as_value(graph, name, constant, dims)
        return combined(graph, name, Add, [x, other], dims)
    return graph.uncounted(name, operator, [x, constant], dims)


def may_own(graph: Graph, bias: Operand | None, shares: str | None) -> bool:
    """Whether a layer may have this bias: one that shares weights shares their bias, too."""
    return isinstance(bias, Constant) and shares in (None, graph.owner(bias))


def _taken_in(graph: Graph, x: Value, word: str, constant: Constant, dims: Dims | None) -> Value:
    """Give the layer before a bias, or a norm its factor or shift."""
    field = graph.open[x.layer].pop(word)
    layer = graph.layer(x.layer)
    if not getattr(layer, field):
        graph.change(x.layer, **{field: True})
        if field == "affine" and constant.frozen:
            graph.change(x.layer, learned=False)
    if field == "bias" and layer.learned is False and not constant.frozen:
        graph.change(x.layer, learned="biases")
    return Value(dims, x.layer, x.shape)


def sum_of(graph: Graph, name: str, values: Sequence[Operand], dims: Dims | None) -> Value:
    """Add a sum of several tensors."""
    return combined(graph, name, Add, [as_value(graph, name, v, dims) for v in values], dims)


def concat(
    graph: Graph, name: str, operands: Sequence[Operand], axis: int, dims: Dims | None
) -> Value:
    """Join tensors along any axis."""
    operands = [x for x in operands if isinstance(x, Value) or 0 not in x.dims]
    values = [x for x in operands if isinstance(x, Value)]
    if len(values) < len(operands):  # constants become tensors of the same kind
        last = any(x.shape == tokens(x.known) for x in values)
        values = [as_value(graph, name, operand, last=last) for operand in operands]
    if len(values) == 1:
        return Value(dims, graph.seen(values[0]), values[0].shape)
    names = [graph.seen(value) for value in values]
    lengths = [value.known[axis] for value in values]
    shapes = [value.shape for value in values]
    for along, word in ((0, "channels"), (1, "rows")):
        others = {shape[:along] + shape[along + 1 :] for shape in shapes}
        if [shape[along] for shape in shapes] == lengths and len(others) == 1:
            return graph.put(Concat, name, names, dims, axis=word)
    outer, inner = prod(values[0].known[:axis]), prod(values[0].known[axis + 1 :])
    names = [
        graph.seen(value, (outer, length, inner) if outer > 1 else (length, inner, 1))
        for value, length in zip(values, lengths, strict=True)
    ]
    return graph.put(Concat, name, names, dims, axis="rows" if outer > 1 else "channels")


def sliced(graph: Graph, name: str, x: Value, axis: int, start: int, dims: Dims | None) -> Value:
    """Add a view of a contiguous part of one axis, from `start`.

    Channels or rows are cut where the axis is one of them, or an axis that channels were split by.
    """
    if dims is None:
        return graph.uncounted(name, "Slice", [x], dims)
    length, kept = x.known[axis], prod(dims) * x.known[axis] // prod(x.known)
    if kept == length:
        return Value(dims, graph.seen(x), x.shape)
    graph.settle(x)
    C, H, _ = x.shape
    last = axis == len(x.known) - 1
    rows = {"start": start, "stop": start + kept, "axis": "rows"}
    if length == C and (last or length != H or (axis, len(x.known)) == (1, 4)):
        return graph.put(Slice, name, [x.layer], dims, start=start, stop=start + kept)
    if length == H and not last:
        return graph.put(Slice, name, [x.layer], dims, **rows)
    if C % length == 0 and (axis == 0 or prod(x.known[axis:]) == C):
        block = {"start": start * C // length, "stop": (start + kept) * C // length}
        return graph.put(Slice, name, [x.layer], dims, **block)
    outer, inner = prod(x.known[:axis]), prod(x.known[axis + 1 :])
    return graph.put(Slice, name, [graph.seen(x, (outer, length, inner))], dims, **rows)


def every(
    graph: Graph, name: str, x: Value, axis: int, start: int, step: int, dims: Dims
) -> Value | None:
    """Add a view of every `step`-th place of an axis: of one place of each group of so many.

    None where the groups are not whole.
    """
    length = x.known[axis]
    if length % step or start >= step or dims[axis] * step != length:
        return None
    before, after = x.known[:axis], x.known[axis + 1 :]
    source = graph.seen(x)
    grouped = Value((*before, length // step, step, *after), source, x.shape)
    one = (*before, length // step, 1, *after)
    cut = sliced(graph, name, grouped, axis + 1, start, one)
    return Value(dims, cut.layer, cut.shape)


def same(graph: Graph, x: Value, dims: Dims | None) -> Value:
    """Return the value with other dimensions; a pending chain goes on if they stay as they are."""
    if dims != x.dims:
        graph.settle(x)
    return Value(dims, x.layer, x.shape, x.form if dims == x.dims else None)


def expanded(graph: Graph, name: str, x: Value, dims: Dims | None) -> Value:
    """Elements repeated along axes; a view, and nothing where there are no more than before."""
    if dims is None:
        return graph.uncounted(name, "Expand", [x], dims)
    times = prod(dims) // prod(x.known)
    if times <= 1:
        return same(graph, x, dims)
    graph.settle(x)
    C, H, W = x.shape
    seen = {plain(x.known): plain(dims), tokens(x.known): tokens(dims)}
    shape = seen.get(x.shape, (times * C, H, W))
    return graph.put(Expand, name, [x.layer], dims, shape=shape)


def upsample(graph: Graph, name: str, x: Value, dims: Dims, interpolation: str | None) -> Value:
    """Resize rows and columns; an interpolation of None has no model."""
    if interpolation is None or len(dims) not in (3, 4) or prod(dims[:2]) != prod(x.known[:2]):
        return graph.uncounted(name, "Resize", [x], dims)
    shape = plain(x.known)
    size = plain(dims)[1:]
    source = graph.seen(x, shape)
    return graph.put(Upsample, name, [source], dims, size=size, interpolation=interpolation)


def quantized(
    graph: Graph, name: str, x: Operand, bits: Stated | None, dims: Dims | None
) -> Operand:
    """Note on the tensor's layer that the tensor is `bits` wide."""
    if isinstance(x, Constant):
        return x._replace(bits=bits if bits is not None else x.bits)
    graph.settle(x)
    if bits is None:
        return Value(dims, x.layer, x.shape)
    if graph.layer(x.layer) is None:  # the network's input has no layer to say so
        return graph.put(Reshape, name, [x.layer], dims, shape=x.shape, bits=bits)
    graph.change(x.layer, bits=bits)
    return Value(dims, x.layer, x.shape)
