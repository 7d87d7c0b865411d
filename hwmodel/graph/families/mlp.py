"""A chain of fully connected layers with activations between them."""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring

__all__ = ["network"]


def network(*, features: list[int]) -> dict[str, Any]:
    """Input and layers; `features` of the input, of each hidden layer and of the output."""
    net, x = Wiring(), INPUT
    for number, count in enumerate(features[1:], start=1):
        x = net.linear(f"fc{number}", x, count)
        if number < len(features) - 1:
            x = net.act(f"fc{number}.act", x)
    return {"input": (features[0], 1, 1), "layers": net.layers}
