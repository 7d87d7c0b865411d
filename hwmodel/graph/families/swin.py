"""Swin: attention within windows of 7 x 7 places, in four stages, each half as long as the last.

Source: Liu et al., Swin Transformer, ICCV 2021, section 3 (T: 96 features, blocks 2, 2, 6, 2), as
in torchvision. The places of a window are the rows of an attention, windows are further heads of
it; which place lies in which window is a matter of addresses, and so is the shift of every second
block. A table of 13 x 13 rows is added to the scores by the distance of two places. The mask of
shifted windows is left out.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import INPUT, Wiring
from hwmodel.graph.layers import Expand

__all__ = ["network"]

WINDOW = 7


def network(
    *, features: int, blocks: list[int], heads: list[int], image: int = 224, classes: int = 1000
) -> dict[str, Any]:
    """Input and layers.

    Args:
        features: of the first stage; each stage has twice those of the last.
        blocks, heads: of each stage.
        image: rows and columns of the input [elements], a multiple of 224.
        classes: features of the last layer.
    """
    if image % 224:
        raise ValueError(f"image {image}: windows fit into multiples of 224")
    net, size = Wiring(), image // 4
    x = net.conv("patches", INPUT, features, 4, stride=4, padding=0, bias=True)
    x = parts.layer_norm(net, "patches.norm", x)
    for stage, (count, number) in enumerate(zip(blocks, heads, strict=True)):
        if stage:
            x, features, size = _merged(net, f"merge{stage}", x, features), 2 * features, size // 2
        for index in range(count):
            name = f"stage{stage}.{index}"
            x = _attention(net, name, x, features, number, size)
            x = parts.two_layers(net, name, x, features)
    net.linear("head", net.global_pool("pool", parts.layer_norm(net, "norm", x)), classes)
    return {"input": (3, image, image), "layers": net.layers}


def _merged(net: Wiring, name: str, x: str, features: int) -> str:
    """Four neighbours become one place of twice the features."""
    x = net.unshuffle(f"{name}.neighbours", x, 2)
    return parts.linear(net, name, parts.layer_norm(net, f"{name}.norm", x), 2 * features, "merge")


def _attention(net: Wiring, name: str, x: str, features: int, heads: int, size: int) -> str:
    windows, places = (size // WINDOW) ** 2, WINDOW**2
    y = parts.layer_norm(net, f"{name}.norm1", x)
    q, k, v = (
        parts.reshape(net, f"{part}.windows", part, (features * windows, places, 1))
        for part in parts.packed(net, name, y, features)
    )
    index = parts.source(net, f"{name}.distances", (1, places**2, 1), learned=False)
    table = parts.table(net, f"{name}.bias-table", (2 * WINDOW - 1) ** 2, heads, index)
    bias = parts.reshape(net, f"{name}.bias", table, (heads, places, places))
    shape = (heads * windows, places, places)
    bias = net.put(Expand(name=f"{name}.biases", kind="expand", inputs=(bias,), shape=shape))
    y = parts.attend(net, name, q, k, v, heads * windows, bias=bias)
    y = parts.reshape(net, f"{name}.joined", y, (features, size, size))
    y = parts.linear(net, f"{name}.o", y, features, "attention", bias=True)
    return net.add(f"{name}.sum1", y, x)
