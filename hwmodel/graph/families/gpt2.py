"""GPT-2: learned positions, blocks of causal attention and of two linear layers, norms before both.

Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019, table 2 and
section 2.3, as in the published checkpoint: one layer for queries, keys and values, biases, GELU,
and a head that uses the table of tokens. Token and position numbers are one input of the same
length.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import Wiring

__all__ = ["network"]

VOCABULARY, POSITIONS = 50257, 1024


def network(*, blocks: int, features: int, heads: int, tokens: int = 1024) -> dict[str, Any]:
    """Input and layers.

    Args:
        tokens: length of a sequence, at most 1,024.
    """
    if tokens > POSITIONS:
        raise ValueError(f"tokens {tokens}: its table has {POSITIONS} positions")
    net = Wiring()
    words = parts.table(net, "embedding.token", VOCABULARY, features)
    places = parts.table(net, "embedding.position", POSITIONS, features, role="positions")
    x = net.add("embedding", words, places)
    for index in range(blocks):
        x = parts.pre_norm(net, f"layers.{index}", x, features, heads, causal=True, cache=True)
    parts.head(net, parts.layer_norm(net, "norm", x), VOCABULARY, words)
    return {"input": (1, tokens, 1), "layers": net.layers}
