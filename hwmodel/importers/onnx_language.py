"""ONNX operators of language models: attention, rotary embeddings, RMS norms, packed weights.

Source: onnx.ai, "Attention", "RotaryEmbedding", "RMSNormalization", version 23; ONNX Runtime,
ContribOperators.md, "GroupQueryAttention", "MultiHeadAttention", "RotaryEmbedding", "MatMulNBits",
"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from hwmodel.errors import ShapeError
from hwmodel.graph.layers import Rotary, Slice
from hwmodel.importers import operators as ops
from hwmodel.importers import products
from hwmodel.importers.graph import Constant, Operand, Value
from hwmodel.importers.onnx_call import Call, Result
from hwmodel.specs.formats import Format

__all__ = ["LANGUAGE"]

Three = tuple[Value, Value, Value]


def _attention(call: Call) -> Result | None:
    """Convert attention of (N, heads, L, d) or, with the numbers of heads, (N, L, D).

    Keys of the past (N, heads of keys, P, d) lie in a cache. What is handed on for the next call,
    all keys and all values, is that cache and no tensor of this network. The fourth result is the
    scores, or what softmax makes of them. Numbers of keys that are data have no model.
    """
    parts = [call.operand(i) for i in range(3)]
    if not all(isinstance(part, Value) for part in parts) or call.has(6):
        return None
    query, key, value = (part for part in parts if isinstance(part, Value))
    heads = query.known[1] if len(query.known) == 4 else call.number("q_num_heads", 1)
    kv_heads = key.known[1] if len(key.known) == 4 else call.number("kv_num_heads", 1)
    past = _past(call, 4)
    if heads % kv_heads or call.has(4) != bool(past) or call.has(4) != call.has(5):
        return None
    made = products.attention(
        call.graph, call.name, (query, key, value), heads, call.dims[0], kv_heads=kv_heads,
        causal=bool(call.number("is_causal", 0)), past=past, softcap=_capped(call),
    )  # fmt: skip
    results: list[Operand] = [made, *_handed(call, 3)]
    if len(call.dims) > 3:
        results.append(_scores(call, made))
    return results


def _past(call: Call, index: int) -> int:
    """Keys that lie in the cache, as an operand (N, heads of keys, P, d) has them."""
    before = call.operand(index)
    return before.known[2] if isinstance(before, Value) and len(before.known) == 4 else 0


def _capped(call: Call) -> bool:
    attribute = call.attributes.get("softcap")
    return attribute is not None and attribute.f > 0


def _handed(call: Call, most: int) -> list[Operand]:
    """Keys and values that are handed on: the cache."""
    words = zip(("keys", "values"), call.dims[1:most], strict=False)
    return [Constant(dims or (), f"{call.name}.{word}") for word, dims in words]


def _scores(call: Call, made: Value) -> Value:
    """The scores that leave: as they are, masked (the same here), capped, or after softmax."""
    graph, mode = call.graph, call.number("qk_matmul_output_mode", 0)
    chain = [graph.inputs[made.layer][0]]  # softmax and what is before it
    while graph.layer(chain[-1]).kind != "attention-scores":
        chain.append(graph.inputs[chain[-1]][0])
    layer = {2: chain[min(1, len(chain) - 1)], 3: chain[0]}.get(mode, chain[-1])
    return Value(call.dims[3], layer, graph.shapes[layer])


def _group_query_attention(call: Call) -> Result | None:
    """Convert grouped attention, causal; queries, keys and values may come packed in one tensor."""
    heads, kv_heads = call.number("num_heads", 1), call.number("kv_num_heads", 1)
    found = _unpacked(call, heads, kv_heads) if not call.has(1) else _three(call)
    if found is None or heads % kv_heads:
        return None
    query, key, value = found
    if call.number("do_rotary", 0):
        query, key = _turned(call, query, heads), _turned(call, key, kv_heads)
    window = call.number("local_window_size", -1)
    made = products.attention(
        call.graph, call.name, (query, key, value), heads, call.dims[0], kv_heads=kv_heads,
        causal=True, past=_past(call, 3), window=window if window > 0 else None,
        softcap=_capped(call),
    )  # fmt: skip
    results: list[Operand] = [made, *_handed(call, 3)]
    return results


def _three(call: Call) -> Three | None:
    query, key, value = (call.operand(i) for i in range(3))
    if isinstance(query, Value) and isinstance(key, Value) and isinstance(value, Value):
        return query, key, value
    return None


def _unpacked(call: Call, heads: int, kv_heads: int) -> Three:
    """Cut (N, L, (heads + 2 kv_heads) d). Raises: ShapeError."""
    x, graph = call.value, call.graph
    if len(x.known) != 3 or x.known[2] % (heads + 2 * kv_heads):
        raise ShapeError(
            f"{list(x.known)} is not queries of {heads} and keys and values of {kv_heads} heads "
            "side by side"
        )
    _, L, features = x.known
    d = features // (heads + 2 * kv_heads)
    source, start, parts = graph.seen(x, (features, L, 1)), 0, []
    for word, number in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
        stop = start + number * d
        made = graph.put(Slice, f"{call.name}.{word}", [source], None, start=start, stop=stop)
        parts.append(Value((1, L, number * d), made.layer, made.shape))
        start = stop
    return parts[0], parts[1], parts[2]


def _turned(call: Call, x: Value, heads: int) -> Value:
    """Add a rotary embedding of (N, L, heads d) or (N, heads, L, d)."""
    places = x.known[-2]
    source = call.graph.seen(x, (prod(x.known) // places, places, 1))
    made = call.graph.put(Rotary, f"{call.name}.rotary", [source], None, heads=heads)
    return Value(x.dims, made.layer, made.shape)


def _multi_head_attention(call: Call) -> Result | None:
    """Convert attention of (N, L, D) without a bias of its own, and without packed tensors."""
    found = _three(call)
    if found is None or call.has(3) or any(len(part.known) != 3 for part in found):
        return None
    made = products.attention(
        call.graph, call.name, found, call.number("num_heads", 1), call.dims[0],
        causal=bool(call.number("unidirectional", 0)), past=_past(call, 6),
    )  # fmt: skip
    results: list[Operand] = [made, *_handed(call, 3)]
    return results


def _rotary(call: Call) -> Value | None:
    """Convert a rotary embedding of all features of a head; one of a part has no model."""
    x, heads = call.value, call.number("num_heads", 0)
    contributed = call.domain == "com.microsoft"
    cosines = call.operand(2 if contributed else 1)
    if len(x.known) == 4:
        heads = x.known[1]
    elif not heads and cosines is not None and cosines.dims:
        heads = x.known[-1] // (2 * cosines.dims[-1])
    if len(x.known) not in (3, 4) or not heads:
        return None
    d = x.known[3] if len(x.known) == 4 else x.known[2] // heads
    return None if call.number("rotary_embedding_dim", 0) % d else _turned(call, x, heads)


def _rms_norm(call: Call) -> Value:
    return ops.rms_norm(call.graph, call.name, call.value, call.dims[0], affine=call.has(1))


def _skip_norm(call: Call) -> Result:
    """Convert a norm of a sum; the sum is the fourth result. A further operand is a bias of it."""
    rms = "Simplified" in call.operator
    at = 3 if rms else 4
    terms: list[Operand] = [call.needed(0), call.needed(1)]
    terms += [call.needed(at)] if call.has(at) else []
    total = ops.sum_of(call.graph, f"{call.name}.sum", terms, call.dims[0])
    norm: Callable[..., Value] = ops.rms_norm if rms else ops.layer_norm
    affine = rms or call.has(3)
    made = norm(call.graph, call.name, total, call.dims[0], affine=affine)
    before = Value(call.dims[0], total.layer, total.shape)
    results: list[Operand] = [made, *(Constant((), f"{call.name}.{i}") for i in (1, 2)), before]
    return results[: len(call.dims)]


def _matmul_n_bits(call: Call) -> Value | None:
    """Convert a product with weights of few bits, of which a block shares a scale and a zero point.

    Zero points are packed as wide as weights unless they are as wide as the scales.
    """
    packed, scales, zeros = (call.constant(i) for i in (1, 2, 3))
    C, M = call.number("K", 0), call.number("N", 0)
    bits, block = call.number("bits", 4), call.number("block_size", 0)
    if packed is None or scales is None:
        return None
    if min(C, M, block) < 1 or not 1 <= bits <= 8:
        raise ShapeError(f"K {C}, N {M}, block_size {block} and bits {bits} are no packed weights")
    zero_bits = 0 if zeros is None else bits if zeros.bits else zeros.float_bits
    source = "ONNX Runtime, com.microsoft.MatMulNBits"
    own = Format(
        bits=bits, block=block, scale_bits=scales.float_bits, zero_bits=zero_bits, source=source
    )
    weights = Constant((C, M), packed.key, learned=True)
    made = products.linear(
        call.graph, call.name, call.value, weights, (C, M), call.has(5), call.dims[0]
    )
    if call.graph.layer(made.layer).shares is None:
        call.graph.change(made.layer, weight_format=own)
    return made


_Table = dict[str, Callable[[Call], Result | None]]
_NORMS: Sequence[str] = (
    "SimplifiedLayerNormalization",
    "com.microsoft:SimplifiedLayerNormalization",
)
_SKIPPING: Sequence[str] = (
    "SkipSimplifiedLayerNormalization", "com.microsoft:SkipSimplifiedLayerNormalization",
    "com.microsoft:SkipLayerNormalization",
)  # fmt: skip
LANGUAGE: _Table = {
    "Attention": _attention,
    "RotaryEmbedding": _rotary,
    "com.microsoft:GroupQueryAttention": _group_query_attention,
    "com.microsoft:MatMulNBits": _matmul_n_bits,
    "com.microsoft:MultiHeadAttention": _multi_head_attention,
    "com.microsoft:RotaryEmbedding": _rotary,
}
LANGUAGE |= {name: _rms_norm for name in _NORMS} | {name: _skip_norm for name in _SKIPPING}
