"""DenseNet: every layer sees the outputs of all before it in its block.

Source: Huang et al., Densely Connected Convolutional Networks, CVPR 2017, table 1 (DenseNet-BC,
growth 32, compression 1/2); as in torchvision. A transition's output is in every later concat of
its block. Each concat is a copy of its own, as in the plain implementation.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import Wiring

__all__ = ["network"]

GROWTH = 32


def network(*, blocks: list[int], image: int = 224, classes: int = 1000) -> dict[str, Any]:
    """Input and layers of the member with so many layers in each of its `blocks`.

    Args:
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x, channels = net.stem(64, "method"), 64
    for number, count in enumerate(blocks, start=1):
        parts = [x]
        for index in range(1, count + 1):
            name = f"block{number}.{index}"
            seen = net.act(f"{name}.act1", net.bn(f"{name}.bn1", x))
            new = net.conv_bn(f"{name}.conv1", seen, 4 * GROWTH, 1)
            new = net.conv(f"{name}.conv2", net.act(f"{name}.act2", new), GROWTH)
            parts.append(new)
            x = net.concat(f"{name}.joined", *parts)
        channels += count * GROWTH
        name = f"transition{number}"
        x = net.act(f"{name}.act", net.bn(f"{name}.bn", x))
        if number < len(blocks):
            channels //= 2
            x = net.average_pool(f"{name}.pool", net.conv(f"{name}.conv", x, channels, 1), 2)
    net.classifier(x, classes)
    return {"input": (3, image, image), "layers": net.layers}
