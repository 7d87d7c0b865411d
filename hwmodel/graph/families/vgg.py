"""VGG-16: thirteen 3 x 3 convolutions with pools between them, three fully connected layers.

Source: Simonyan and Zisserman, Very Deep Convolutional Networks, ICLR 2015, configuration D.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring

__all__ = ["convolutions", "network"]

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def network(*, image: int = 224, classes: int = 1000) -> dict[str, Any]:
    """Input and layers.

    Args:
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x = convolutions(net, INPUT)
    x = net.act("fc1.act", net.linear("fc1", x, 4096))
    x = net.act("fc2.act", net.linear("fc2", x, 4096))
    net.linear("fc3", x, classes)
    return {"input": (3, image, image), "layers": net.layers}


def convolutions(net: Wiring, x: str, *, padding: int = 1, partial: bool = False) -> str:
    """Wire the thirteen convolutions and their pools; `padding` is the first one's."""
    for stage, (width, count) in enumerate(STAGES, start=1):
        for index in range(1, count + 1):
            name = f"conv{stage}_{index}"
            pad = padding if (stage, index) == (1, 1) else 1
            x = net.act(f"{name}.act", net.conv(name, x, width, padding=pad, bias=True))
        x = net.max_pool(f"pool{stage}", x, 2, 2, partial=partial)
    return x
