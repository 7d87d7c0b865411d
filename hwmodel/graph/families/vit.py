"""ViT: patches of an image as tokens, a class token, learned positions, blocks as GPT-2's.

Source: Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021, table 1 and equations 1 to 4;
Touvron et al., DeiT, ICML 2021, table 1, for the smaller ones; as in torchvision.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import INPUT, Wiring

__all__ = ["network"]


def network(
    *,
    patch: int,
    blocks: int,
    features: int,
    heads: int,
    image: int = 224,
    classes: int = 1000,
) -> dict[str, Any]:
    """Input and layers.

    Args:
        patch: rows and columns of a patch [elements].
        image: rows and columns of the input [elements], which `patch` divides.
        classes: features of the last layer.
    """
    if image % patch:
        raise ValueError(f"image {image} is no multiple of the {patch} of a patch")
    net, places = Wiring(), (image // patch) ** 2
    x = net.conv("patches", INPUT, features, patch, stride=patch, padding=0, bias=True)
    x = parts.reshape(net, "tokens", x, (features, places, 1))
    first = parts.source(net, "class-token", (features, 1, 1), learned=True)
    x = net.rows("with-class", first, x)
    positions = parts.source(net, "positions", (features, places + 1, 1), learned=True)
    x = net.add("embedding", x, positions)
    for index in range(blocks):
        x = parts.pre_norm(net, f"layers.{index}", x, features, heads)
    x = parts.first_row(net, "first-token", parts.layer_norm(net, "norm", x))
    net.linear("head", x, classes, role="head")
    return {"input": (3, image, image), "layers": net.layers}
