"""Llama: blocks of grouped attention with rotary embeddings, and of gated linear layers.

Source: Touvron et al., Llama 2, arXiv:2307.09288, section 2.2; Grattafiori et al., The Llama 3 Herd
of Models, arXiv:2407.21783, table 3; sizes as in the published checkpoints' configurations. The
scores' constant factor folds into the queries' weights. A layer counts a causal mask's pairs
whole unless an accounting says that a kernel skips them.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import Wiring
from hwmodel.graph.layers import Rotary

__all__ = ["attention", "feed_forward", "network"]


def network(
    *,
    blocks: int,
    features: int,
    heads: int,
    kv_heads: int,
    hidden: int,
    vocabulary: int,
    tied: bool = False,
    tokens: int = 512,
) -> dict[str, Any]:
    """Input and layers.

    Args:
        kv_heads: heads of keys and values.
        hidden: features of the feed-forward layers.
        tied: whether the head uses the embedding's table.
        tokens: length of a sequence.
    """
    net = Wiring()
    x = parts.table(net, "embedding", vocabulary, features)
    for index in range(blocks):
        name = f"layers.{index}"
        x = attention(net, name, x, features, heads, kv_heads)
        y = parts.rms_norm(net, f"{name}.norm2", x)
        x = net.add(f"{name}.sum2", feed_forward(net, name, y, features, hidden), x)
    x = parts.rms_norm(net, "norm", x)
    parts.head(net, x, vocabulary, "embedding" if tied else None)
    return {"input": (1, tokens, 1), "layers": net.layers}


def attention(net: Wiring, name: str, x: str, features: int, heads: int, kv_heads: int) -> str:
    """Norm, attention and shortcut; keys and values are kept in a cache."""
    y = parts.rms_norm(net, f"{name}.norm1", x)
    narrow = features // heads * kv_heads
    q, k, v = (
        parts.linear(net, f"{name}.{part}", y, width, "attention")
        for part, width in (("q", features), ("k", narrow), ("v", narrow))
    )
    q, k = _turned(net, q, heads), _turned(net, k, kv_heads)
    y = parts.attend(net, name, q, k, v, heads, kv_heads=kv_heads, causal=True, cache=True)
    y = parts.linear(net, f"{name}.o", y, features, "attention")
    return net.add(f"{name}.sum1", y, x)


def feed_forward(net: Wiring, name: str, x: str, features: int, hidden: int) -> str:
    """SwiGLU: one layer through Swish times another, and one back."""
    gate = parts.linear(net, f"{name}.gate", x, hidden, "feed-forward")
    up = parts.linear(net, f"{name}.up", x, hidden, "feed-forward")
    y = net.multiply(f"{name}.gated", net.act(f"{name}.swish", gate, "swish"), up)
    return parts.linear(net, f"{name}.down", y, features, "feed-forward")


def _turned(net: Wiring, x: str, heads: int) -> str:
    return net.put(Rotary(name=f"{x}.rotary", kind="rotary", inputs=(x,), heads=heads))
