"""FCN-32s: a classifier slid over the image, its scores interpolated to the image's size.

Source: Long et al., Fully Convolutional Networks for Semantic Segmentation, CVPR 2015, and the
authors' network (VGG-16, input padded by 100). The interpolation's filters are fixed there, and
its crop included: a bilinear resize here. On ResNet-18 (chosen) the scores follow the last stage.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring
from hwmodel.graph.families.resnet import trunk
from hwmodel.graph.families.vgg import convolutions

__all__ = ["network"]


def network(*, backbone: str, image: int, classes: int = 21) -> dict[str, Any]:
    """Input and layers.

    Args:
        backbone: "vgg16" or "resnet18".
        image: rows and columns of the input [elements].
    """
    net = Wiring()
    if backbone == "vgg16":
        x = convolutions(net, INPUT, padding=100, partial=True)
        x = net.act("fc6.act", net.conv("fc6", x, 4096, 7, padding=0, bias=True))
        x = net.act("fc7.act", net.conv("fc7", x, 4096, 1, bias=True))
    else:
        x = trunk(net, [2, 2, 2, 2], False)[-1]
    x = net.conv("score", x, classes, 1, bias=True, role="head")
    net.resize("resize", x, image, image)
    return {"input": (3, image, image), "layers": net.layers}
