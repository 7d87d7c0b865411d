"""Parts that families of transformers share: tables, norms, attention, layers at each token."""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring
from hwmodel.graph.layers import (
    AttentionContext,
    AttentionScores,
    Embedding,
    LayerNorm,
    Linear,
    Reshape,
    RMSNorm,
    Slice,
    Source,
)

__all__ = ["attend", "first_row", "head", "layer_norm", "linear", "packed", "pre_norm", "reshape"]
__all__ += ["rms_norm", "source", "table", "two_layers"]


def table(
    net: Wiring, name: str, rows: int, features: int, x: str = INPUT, role: str | None = None
) -> str:
    """A row of a table for each token number."""
    fields = {"name": name, "kind": "embedding", "inputs": (x,), "role": role}
    return net.put(Embedding.model_validate(fields | {"vocabulary": rows, "features": features}))


def source(net: Wiring, name: str, shape: tuple[int, int, int], *, learned: bool) -> str:
    """A learned constant, or a further input."""
    return net.put(Source(name=name, kind="source", shape=shape, learned=learned))


def layer_norm(net: Wiring, name: str, x: str) -> str:
    """A layer norm with scale and shift."""
    return net.put(LayerNorm(name=name, kind="layer-norm", inputs=(x,)))


def rms_norm(net: Wiring, name: str, x: str) -> str:
    """An RMS norm with a scale."""
    return net.put(RMSNorm(name=name, kind="rms-norm", inputs=(x,)))


def linear(net: Wiring, name: str, x: str, features: int, role: str, *, bias: bool = False) -> str:
    """A fully connected layer at each token or place."""
    return net.linear(name, x, features, tokens=True, bias=bias, role=role)


def head(net: Wiring, x: str, rows: int, owner: str | None) -> str:
    """Scores of all rows of the vocabulary, by weights of their own or those of `owner`."""
    fields = {"name": "head", "kind": "linear", "inputs": (x,), "role": "head", "over": "channels"}
    return net.put(Linear.model_validate(fields | {"features": rows, "shares": owner}))


def reshape(net: Wiring, name: str, x: str, shape: tuple[int, int, int]) -> str:
    """Other lengths, the same elements."""
    return net.put(Reshape(name=name, kind="reshape", inputs=(x,), shape=shape))


def first_row(net: Wiring, name: str, x: str) -> str:
    """The first token alone."""
    fields = {"name": name, "kind": "slice", "inputs": (x,), "axis": "rows"}
    return net.put(Slice.model_validate(fields | {"start": 0, "stop": 1}))


def packed(net: Wiring, name: str, x: str, features: int) -> tuple[str, str, str]:
    """Queries, keys and values of one layer with biases, as slices of what it gives."""
    x = linear(net, f"{name}.qkv", x, 3 * features, "attention", bias=True)
    q, k, v = (
        net.channels(f"{name}.{part}", x, i * features, (i + 1) * features)
        for i, part in enumerate("qkv")
    )
    return q, k, v


def attend(
    net: Wiring, name: str, q: str, k: str, v: str, heads: int, *, bias: str = "", **more: Any
) -> str:
    """Scores, softmax and context.

    Args:
        bias: a layer that is added to the scores.
        more: further fields of both products.
    """
    fields = {"heads": heads, **more}
    scores = {"name": f"{name}.scores", "kind": "attention-scores", "inputs": (q, k)}
    x = net.put(AttentionScores.model_validate(scores | fields))
    if bias:
        x = net.add(f"{name}.biased", x, bias)
    x = net.act(f"{name}.softmax", x, "softmax")
    context = {"name": f"{name}.context", "kind": "attention-context", "inputs": (x, v)}
    return net.put(AttentionContext.model_validate(context | fields))


def two_layers(net: Wiring, name: str, x: str, features: int) -> str:
    """Norm, two layers with biases around GELU, four times as wide between them, and shortcut."""
    y = layer_norm(net, f"{name}.norm2", x)
    y = linear(net, f"{name}.up", y, 4 * features, "feed-forward", bias=True)
    y = net.act(f"{name}.gelu", y, "gelu")
    y = linear(net, f"{name}.down", y, features, "feed-forward", bias=True)
    return net.add(f"{name}.sum2", y, x)


def pre_norm(net: Wiring, name: str, x: str, features: int, heads: int, **more: Any) -> str:
    """A block with norms before attention and before its two layers; biases everywhere."""
    q, k, v = packed(net, name, layer_norm(net, f"{name}.norm1", x), features)
    y = attend(net, name, q, k, v, heads, **more)
    y = linear(net, f"{name}.o", y, features, "attention", bias=True)
    return two_layers(net, name, net.add(f"{name}.sum1", y, x), features)
