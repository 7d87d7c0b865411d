"""Mixtral: Llama's attention, and of several experts those that a router chooses for a token.

Source: Jiang et al., Mixtral of Experts, arXiv:2401.04088, table 1 and equation of section 2.1;
configuration of the published checkpoint. Which experts a batch meets is expected for even routing.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import Wiring
from hwmodel.graph.families.llama import attention
from hwmodel.graph.layers import Combine, Dispatch, Linear

__all__ = ["network"]


def network(
    *,
    blocks: int,
    features: int,
    heads: int,
    kv_heads: int,
    hidden: int,
    vocabulary: int,
    experts: int,
    active: int,
    tokens: int = 512,
) -> dict[str, Any]:
    """Input and layers.

    Args:
        kv_heads: heads of keys and values.
        hidden: features of an expert's inner layers.
        experts, active: those that there are, and those that a token goes to.
        tokens: length of a sequence.
    """
    net = Wiring()
    x = parts.table(net, "embedding", vocabulary, features)
    for index in range(blocks):
        name = f"layers.{index}"
        x = attention(net, name, x, features, heads, kv_heads)
        y = parts.rms_norm(net, f"{name}.norm2", x)
        x = net.add(f"{name}.sum2", _experts(net, name, y, hidden, experts, active, features), x)
    parts.head(net, parts.rms_norm(net, "norm", x), vocabulary, None)
    return {"input": (1, tokens, 1), "layers": net.layers}


def _experts(
    net: Wiring, name: str, x: str, hidden: int, experts: int, active: int, features: int
) -> str:
    scores = parts.linear(net, f"{name}.router", x, experts, "router")
    scores = net.act(f"{name}.chances", scores, "softmax")
    sent = net.put(
        Dispatch(name=f"{name}.sent", kind="dispatch", inputs=(x, scores), active=active)
    )
    gate = _linear(net, f"{name}.gate", sent, hidden, experts)
    up = _linear(net, f"{name}.up", sent, hidden, experts)
    y = net.multiply(f"{name}.gated", net.act(f"{name}.swish", gate, "swish"), up)
    y = _linear(net, f"{name}.down", y, features, experts)
    return net.put(Combine(name=f"{name}.out", kind="combine", inputs=(y, scores), active=active))


def _linear(net: Wiring, name: str, x: str, features: int, experts: int) -> str:
    return net.put(
        Linear(
            name=name, kind="linear", inputs=(x,), role="experts", over="channels",
            features=features, experts=experts,
        )
    )  # fmt: skip
