"""A language model of stacked LSTM layers: a table of words, the layers, scores of all words.

Source: Zaremba et al., Recurrent Neural Network Regularization, arXiv:1409.2329, section 4.1, as
PyTorch has it: two biases a gate, a head of its own with a bias. Dropout is no work.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import Wiring
from hwmodel.graph.recurrent import Recurrent

__all__ = ["network"]


def network(
    *, layers: int, features: int, vocabulary: int, biases: int = 2, tokens: int = 35
) -> dict[str, Any]:
    """Input and layers.

    Args:
        biases: for each gate, 0 to 2.
        tokens: steps through which a gradient goes back.
    """
    net = Wiring()
    x = parts.table(net, "embedding", vocabulary, features)
    for index in range(layers):
        name = f"layers.{index}"
        lstm = Recurrent(name=name, kind="lstm", features=features, biases=biases)
        for layer in lstm.layers(x):
            x = net.put(layer)
    parts.linear(net, "head", x, vocabulary, "head", bias=True)
    return {"input": (1, tokens, 1), "layers": net.layers}
