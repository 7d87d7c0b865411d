"""The transformer block of a diffusion U-Net: attention to the image, to a text, and a gated layer.

Source: Rombach et al., Latent Diffusion, CVPR 2022, section 3.3 and appendix E.2.1, with the sizes
of Stable Diffusion 1.5 at its longest map, as in diffusers: no biases before attention, biases
after it, GELU times a half of a layer of 8 D features.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import INPUT, Wiring

__all__ = ["network"]


def network(
    *, features: int, heads: int, image: int, text: list[int], hidden: int
) -> dict[str, Any]:
    """Input and layers.

    Args:
        image: rows and columns of the map [elements].
        text: tokens and features of the text.
        hidden: features of the gated layer, of each half.
    """
    net, places = Wiring(), image**2
    words = parts.source(net, "text", (text[1], text[0], 1), learned=False)
    x = parts.reshape(net, "places", INPUT, (features, places, 1))
    for number, keys in enumerate(("", words), start=1):
        name = f"attention{number}"
        y = parts.layer_norm(net, f"{name}.norm", x)
        q, k, v = (
            parts.linear(net, f"{name}.{part}", given, features, "attention")
            for part, given in (("q", y), ("k", keys or y), ("v", keys or y))
        )
        y = parts.attend(net, name, q, k, v, heads)
        y = parts.linear(net, f"{name}.o", y, features, "attention", bias=True)
        x = net.add(f"{name}.sum", y, x)
    y = parts.layer_norm(net, "gated.norm", x)
    y = parts.linear(net, "up", y, 2 * hidden, "feed-forward", bias=True)
    value, gate = net.channels("value", y, 0, hidden), net.channels("gate", y, hidden, 2 * hidden)
    y = net.multiply("gated", value, net.act("gelu", gate, "gelu"))
    y = parts.linear(net, "down", y, features, "feed-forward", bias=True)
    parts.reshape(net, "image", net.add("sum", y, x), (features, image, image))
    return {"input": (features, image, image), "layers": net.layers}
