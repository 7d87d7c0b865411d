"""BERT: embeddings and blocks of self-attention, with a classifier on the first token.

Source: Devlin et al., BERT, NAACL 2019, section 3 (base: 12 blocks, 768 features, 12 heads), as in
the published checkpoint bert-base-uncased; GELU as there. Token, position and segment numbers are
one input of the same length. Dropout and the attention mask are left out, the scores' constant
factor folds into the queries' weights. Methods that binarize it decide which linear layers.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring
from hwmodel.graph.layers import AttentionContext, AttentionScores, Embedding, LayerNorm, Slice

__all__ = ["network"]

TABLES = (("token", 30522), ("position", 512), ("segment", 2))


def network(
    *, blocks: int, features: int, heads: int, tokens: int = 128, classes: int = 2
) -> dict[str, Any]:
    """Input and layers.

    Args:
        tokens: length of a sequence.
        classes: features of the last layer.
    """
    net = Wiring()
    x = net.add("embedding", *[_table(net, name, rows, features) for name, rows in TABLES])
    x = _norm(net, "embedding.norm", x)
    for index in range(blocks):
        x = _block(net, f"layer{index}", x, features, heads)
    fields = {"name": "first-token", "kind": "slice", "inputs": (x,), "axis": "rows"}
    x = net.put(Slice.model_validate(fields | {"start": 0, "stop": 1}))
    x = net.act("pooler.act", net.linear("pooler", x, features, role="pooler"), "tanh")
    net.linear("classifier", x, classes, role="head")
    return {"input": (1, tokens, 1), "layers": net.layers}


def _table(net: Wiring, name: str, rows: int, features: int) -> str:
    return net.put(
        Embedding(
            name=f"embedding.{name}", kind="embedding", inputs=(INPUT,), vocabulary=rows,
            features=features,
        )
    )  # fmt: skip


def _norm(net: Wiring, name: str, x: str) -> str:
    return net.put(LayerNorm(name=name, kind="layer-norm", inputs=(x,)))


def _block(net: Wiring, name: str, x: str, features: int, heads: int) -> str:
    """Attention, then two linear layers; each with a shortcut and a norm after the sum."""
    query, key, value = (
        net.linear(f"{name}.{part}", x, features, tokens=True, role="attention")
        for part in ("query", "key", "value")
    )
    attention = {"inputs": (query, key), "heads": heads, "kind": "attention-scores"}
    scores = net.put(AttentionScores.model_validate(attention | {"name": f"{name}.scores"}))
    weights = net.act(f"{name}.softmax", scores, "softmax")
    attention = {"inputs": (weights, value), "heads": heads, "kind": "attention-context"}
    y = net.put(AttentionContext.model_validate(attention | {"name": f"{name}.context"}))
    y = net.linear(f"{name}.output", y, features, tokens=True, role="attention")
    x = _norm(net, f"{name}.norm1", net.add(f"{name}.sum1", y, x))
    y = net.linear(f"{name}.up", x, 4 * features, tokens=True, role="feed-forward")
    y = net.act(f"{name}.gelu", y, "gelu")
    y = net.linear(f"{name}.down", y, features, tokens=True, role="feed-forward")
    return _norm(net, f"{name}.norm2", net.add(f"{name}.sum2", y, x))
