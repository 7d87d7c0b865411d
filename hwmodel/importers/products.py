"""Convolutions, matrix products and tables, as layers of a `Graph`; see `operators`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from hwmodel.errors import ShapeError
from hwmodel.graph.layers import (
    Activation,
    Add,
    AttentionContext,
    AttentionScores,
    Conv,
    ConvTranspose,
    Embedding,
    Expand,
    Linear,
    Scale,
    Source,
)
from hwmodel.importers.graph import (
    Constant,
    Dims,
    Graph,
    Operand,
    Value,
    as_value,
    combined,
    frames,
    learned_of,
    pair,
    tokens,
)

__all__ = ["attention", "conv", "embedding", "linear", "matmul", "scores_of"]

FARTHEST = 100  # layers before a tensor that are looked at
_USUAL = {word: field.default for word, field in Conv.model_fields.items()}


def conv(
    graph: Graph,
    name: str,
    x: Value,
    weights: Constant,
    dims: Dims | None,
    *,
    bias: bool,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    transposed: bool = False,
    output_padding: Sequence[int] = (),
    learned: Mapping[str, Any] | None = None,
) -> Value:
    """Add a convolution along one to three axes, or its transpose; along more it has no model.

    Args:
        weights: (M, C/g, taps …), of a transposed one (C, M/g, taps …).
        padding: before each axis, then after each.
        learned: the field of the layer, where it is not as usual.
    """
    axes = len(weights.dims) - 2
    if axes not in (1, 2, 3):
        operator = f"{'ConvTranspose' if transposed else 'Conv'} along {axes} axes"
        outs = x.known[-axes:] if transposed else (dims or ())[-axes:]
        macs = prod(weights.dims) * prod(outs) if outs else None
        biases = bias * (weights.dims[1] * groups if transposed else weights.dims[0])
        return graph.uncounted(name, operator, [x, weights], dims, macs=macs, biases=biases)
    if axes == 3:
        others = {"bias": bias, "stride": stride, "padding": padding, "dilation": dilation}
        along_three = _transposed_of_frames if transposed else _conv_of_frames
        return along_three(
            graph, name, x, weights, Value(dims, name, (1, 1, 1)).known, groups=groups,
            output_padding=output_padding, learned=learned, **others,
        )  # fmt: skip
    number, shape = frames(x.known, axes)
    pads = (padding[0], 0, padding[1], 0) if axes == 1 else tuple(padding)
    fields = {
        "channels": weights.dims[1] * groups if transposed else weights.dims[0],
        "kernel": pair(weights.dims[2:]),
    }
    others = {
        "stride": pair(stride),
        "padding": pads,
        "dilation": pair(dilation),
        "groups": groups,
        "frames": number,
        "bias": bias,
        "weight_bits": weights.bits,
        "shares": graph.owner(weights),
    }
    channels = weights.dims[0] if transposed else weights.dims[1] * groups
    _see_channels(graph, name, shape[0] // number, channels)
    if transposed and any(output_padding):
        fields["output_padding"] = pair(output_padding, 0)
    # what goes without saying need not be checked
    fields |= {word: value for word, value in others.items() if value != _USUAL[word]}
    if learned and fields.get("shares") is None:  # else as the owner's
        fields |= learned
    kind = ConvTranspose if transposed else Conv
    made = graph.put(kind, name, [graph.seen(x, shape)], dims, **fields)
    if not bias:
        graph.open[made.layer] = {"Add": "bias"}
    return graph.owned(weights, made)


def _conv_of_frames(
    graph: Graph, name: str, x: Value, weights: Constant, dims: Dims, **fields: Any
) -> Value:
    """Add a convolution along three axes: of each frame of the result, in two.

    Its channels are those of all frames under the window. Products and weights are those of three
    axes; an element is read anew for each frame of the result that it is a part of, and so are the
    zeros of frames before the first and after the last.
    """
    (M, C, depth, *taps), (*_, given, D, H, W), DO = weights.dims, x.known, dims[-3]
    number = prod(x.known[:-4]) * DO
    shape = (number * given * depth, H, W)
    if DO * depth == D and depth in (1, fields["stride"][0]):
        source = graph.seen(x, shape)
    else:
        frames_ = [graph.seen(x)]
        put = graph.put(Expand, f"{name}.frames", frames_, None, shape=shape, overlapping=True)
        source = put.layer
    seen = Value((number, given * depth, H, W), source, shape)
    flat = weights._replace(dims=(M, C * depth, *taps))
    return conv(graph, name, seen, flat, dims, **_of_two(fields))


def _transposed_of_frames(
    graph: Graph, name: str, x: Value, weights: Constant, dims: Dims, **fields: Any
) -> Value:
    """Add a transposed convolution along three axes: of each frame, in two, to several frames.

    Where these overlap their sum has no model, and a bias with several frames has none.
    """
    (C, M, depth, *taps), (*_, given, D, H, W) = weights.dims, x.known
    number, groups = prod(x.known[:-4]) * D, fields["groups"]
    shape = (number * given, H, W)
    seen = Value((number, given, H, W), graph.seen(x, shape), shape)
    flat = weights._replace(dims=(C, M * depth, *taps))
    apart, bias = D * depth == dims[-3] and depth in (1, fields["stride"][0]), fields["bias"]
    own = _of_two(fields) | {"bias": bias and depth == 1, "transposed": True}
    made = conv(graph, name, seen, flat, dims if apart else None, **own)
    if apart and (depth == 1 or not bias):
        return made
    biases = M * groups * (bias and depth > 1)
    return graph.uncounted(f"{name}.sum", "sum of frames", [made], dims, macs=0, biases=biases)


def _of_two(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a convolution along three axes that are of the last two."""
    before, after = fields["padding"][1:3], fields["padding"][4:6]
    last = {word: fields[word][1:] for word in ("stride", "dilation", "output_padding")}
    return {**fields, **last, "padding": (*before, *after)}


def _see_channels(graph: Graph, name: str, given: int, wanted: int) -> None:
    if given != wanted:
        raise ShapeError(
            f"{graph.where}: {name}: its weights are for {wanted} channels, its input has {given}"
        )


def linear(
    graph: Graph,
    name: str,
    x: Value,
    weights: Constant,
    features: tuple[int, int],
    bias: bool,
    dims: Dims | None,
    learned: Mapping[str, Any] | None = None,
) -> Value:
    """Add a product of weights (C, M) with the last axis of `x`, at each of its places."""
    C, M = features
    _see_channels(graph, name, x.known[-1] if x.known else 1, C)
    fields: dict[str, Any] = {} if learned is None else dict(learned)
    fields |= {"bias": bias, "shares": graph.owner(weights), **_widths(weights, C)}
    if fields["shares"]:  # it is trained as its owner is
        fields.pop("learned", None)
    if prod(x.known) == C:
        source = graph.seen(x)
        if graph.shapes[source][2] == 1 < graph.shapes[source][1]:  # looks like a sequence
            fields["over"] = "all"
    else:
        source = graph.seen(x, tokens(x.known))
        fields["over"] = "channels"
    made = graph.put(Linear, name, [source], dims, features=M, **fields)
    if not bias:
        graph.open[made.layer] = {"Add": "bias"}
    return graph.owned(weights, made)


def _widths(weights: Constant, C: int) -> dict[str, Any]:
    """The width that is stated of weights; with scales of blocks, if they lie along the C sums."""
    if weights.blocks and weights.blocks.along == C:
        return {"weight_format": weights.blocks.format}
    return {"weight_bits": weights.bits}


def matmul(graph: Graph, name: str, a: Operand, b: Operand, dims: Dims | None) -> Value:
    """Add a matrix product, batched along all axes but the last two; one may be a constant."""
    if isinstance(a, Value) and isinstance(b, Constant) and len(b.dims) <= 2:
        M = b.dims[1] if len(b.dims) == 2 else 1
        return linear(graph, name, a, b, (b.dims[0], M), False, dims, learned_of([b]))
    if isinstance(b, Value) and isinstance(a, Constant) and len(a.dims) == 2:
        return _weights_first(graph, name, a, b, dims)
    first, second = (as_value(graph, name, operand, dims) for operand in (a, b))
    return _product(graph, name, first, second, dims)


def _weights_first(graph: Graph, name: str, a: Constant, b: Value, dims: Dims | None) -> Value:
    """Add a product W X, in which the rows of X are channels and its columns places."""
    rows = b.known[-2] if len(b.known) > 1 else b.known[0]
    places = prod(b.known) // rows
    _see_channels(graph, name, rows, a.dims[1])
    source = graph.seen(b, (rows, places, 1))
    fields = {"shares": graph.owner(a), **_widths(a, a.dims[1])}
    fields |= {"features": a.dims[0], "over": "channels"}
    if not fields["shares"]:
        fields |= learned_of([a])
    return graph.owned(a, graph.put(Linear, name, [source], dims, **fields))


def _product(graph: Graph, name: str, a: Value, b: Value, dims: Dims | None) -> Value:
    """Add a product of two activations, as attention has two of.

    A (heads, L, C) with C the scores' S is taken for the weights of a context where it comes from
    scores; any other product for scores. Both are the same loops.
    """
    left, right = _matrix(a.known, 0), _matrix(b.known, 1)
    heads, L, C = prod(left[:-2]), left[-2], left[-1]
    if right[-2] != C:
        _see_channels(graph, name, C, right[-2])
    M = right[-1]
    if prod(right[:-2]) == 1 and heads > 1:
        heads, L = 1, heads * L
    if prod(right[:-2]) != heads or (dims is not None and prod(dims) != heads * L * M):
        macs = None if dims is None else prod(dims) * C
        return graph.uncounted(name, "MatMul of unlike batches", [a, b], dims, macs=macs)
    graph.settle(a)
    if a.shape == (heads, L, C) and _from_scores(graph, a.layer):
        names = [graph.seen(a), graph.seen(b, (heads * M, C, 1))]
        return graph.put(AttentionContext, name, names, dims, heads=heads)
    names = [graph.seen(a, (heads * C, L, 1)), graph.seen(b, (heads * C, M, 1))]
    return graph.put(AttentionScores, name, names, dims, heads=heads)


def _matrix(dims: Dims, column: int) -> Dims:
    """Return dimensions of at least two axes; a vector is a row, or a column."""
    if len(dims) > 1:
        return dims
    return (dims[0], 1) if column else (1, dims[0])


def scores_of(graph: Graph, value: Value) -> bool:
    """Whether a tensor is made of attention scores, element by element."""
    graph.settle(value)
    return _from_scores(graph, value.layer)


def _from_scores(graph: Graph, layer: str) -> bool:
    """Whether a tensor is made of attention scores, element by element."""
    for _ in range(6):
        found = graph.layer(layer)
        if found is None or found.kind == "attention-scores":
            return found is not None
        if found.kind not in ("activation", "scale", "add", "multiply", "uncounted"):
            return False
        layer = graph.inputs[layer][0]
    return False


def attention(
    graph: Graph,
    name: str,
    qkv: tuple[Value, Value, Value],
    heads: int,
    dims: Dims | None,
    *,
    kv_heads: int | None = None,
    causal: bool = False,
    past: int = 0,
    window: int | None = None,
    softcap: bool = False,
    bias: Operand | None = None,
) -> Value:
    """Add scores, softmax and context; masks that are tensors and the constant factor are left out.

    Queries, keys and values are (N, heads, L, d) or (N, L, D), keys and values of as many heads or
    of fewer.

    Args:
        causal: whether query i of as many queries as new keys sees these up to i.
        past: keys and values of earlier tokens beside.
        window: keys that a query of a causal one sees at most, its own among them.
        softcap: whether scores are bounded by a tanh, between two factors of which one folds into
            the scores' own.
        bias: what is added to the scores; left out unless it is learned or made by what learns.
    """
    query, key, value = qkv
    D = prod(query.known) // query.known[-2]
    L, S = query.known[-2], key.known[-2]
    fields: dict[str, Any] = {"heads": heads}
    if kv_heads not in (None, heads):
        fields["kv_heads"] = kv_heads
    if causal and L == S:
        fields |= {"causal": True} | ({"window": window} if window else {})
    if past:
        fields |= {"cache": True, "past": past}
    names = [graph.seen(query, (D, L, 1)), graph.seen(key, (prod(key.known) // S, S, 1))]
    scores = graph.put(AttentionScores, f"{name}.scores", names, None, **fields)
    if softcap:
        scores = graph.put(Activation, f"{name}.softcap", [scores.layer], None, function="tanh")
        scores = graph.put(Scale, f"{name}.cap", [scores.layer], None, learned=False)
    if bias is not None and _learns(graph, bias):
        own = (1, heads, L, past + S)
        added = as_value(graph, f"{name}.bias", bias)
        scores = combined(
            graph, f"{name}.biased", Add, [Value(own, scores.layer, scores.shape), added], own
        )
    weights = graph.put(Activation, f"{name}.softmax", [scores.layer], None, function="softmax")
    names = [weights.layer, graph.seen(value, (prod(value.known) // S, S, 1))]
    return graph.put(AttentionContext, f"{name}.context", names, dims, **fields)


def _learns(graph: Graph, operand: Operand) -> bool:
    """Whether a tensor is a parameter, or made of tables or products by weights."""
    if isinstance(operand, Constant):
        return operand.learned
    names, met = [graph.seen(operand)], 0
    while names and met < FARTHEST:
        name, met = names.pop(), met + 1
        layer = graph.layer(name)
        if layer is None:
            continue
        if layer.kind in ("embedding", "linear") or (layer.kind == "source" and layer.learned):
            return True
        names += graph.inputs[name]
    return False


def embedding(graph: Graph, name: str, x: Operand, table: Constant, dims: Dims | None) -> Value:
    """Add a lookup of rows of a table by number; numbers that are constants, as positions are, too.

    So a table of which only some rows are read is stored and trained whole.
    """
    if isinstance(x, Constant):
        rows = prod(x.dims)
        x = graph.put(Source, f"{name}.numbers", [], (rows,), shape=(1, rows, 1))
    source = graph.seen(x, (1, prod(x.known), 1))
    shares = graph.owner(table)
    fields = {"vocabulary": table.dims[0], "features": prod(table.dims[1:]), "shares": shares}
    if shares is None:
        fields |= learned_of([table])
    return graph.owned(table, graph.put(Embedding, name, [source], dims, **fields))
