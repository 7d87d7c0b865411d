"""MobileNetV1: depthwise 3 x 3 and pointwise 1 x 1 convolutions in turn.

Source: Howard et al., MobileNets: Efficient Convolutional Neural Networks for Mobile Vision
Applications, 2017, table 1.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring

__all__ = ["network"]

# Channels after each pair and the stride of its depthwise convolution.
PAIRS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2),
    (1024, 1),
)  # fmt: skip


def network(*, image: int = 224, classes: int = 1000) -> dict[str, Any]:
    """Input and layers.

    Args:
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x = net.act("conv.act", net.conv_bn("conv", INPUT, 32, stride=2))
    before = 32
    for number, (channels, stride) in enumerate(PAIRS, start=1):
        depth, point = f"depthwise{number}", f"pointwise{number}"
        x = net.conv_bn(depth, x, before, stride=stride, groups=before, role="depthwise")
        x = net.act(f"{depth}.act", x)
        x = net.act(f"{point}.act", net.conv_bn(point, x, channels, 1))
        before = channels
    net.classifier(x, classes)
    return {"input": (3, image, image), "layers": net.layers}
