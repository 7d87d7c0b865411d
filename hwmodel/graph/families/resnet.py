"""ResNet: stages of residual blocks, the first block of a later stage halving the map.

Source: He et al., Deep Residual Learning for Image Recognition, CVPR 2016, table 1 and figure 5;
as in torchvision, whose bottleneck has its stride in the 3 x 3 convolution and whose shortcuts are
1 x 1 convolutions wherever the shape changes. Activations are the method's own.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import Wiring

__all__ = ["network", "trunk"]


def network(
    *, blocks: list[int], bottleneck: bool = False, image: int = 224, classes: int = 1000
) -> dict[str, Any]:
    """Input and layers of the member with so many `blocks` in its four stages.

    Args:
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x = trunk(net, blocks, bottleneck)[-1]
    net.classifier(x, classes)
    return {"input": (3, image, image), "layers": net.layers}


def trunk(
    net: Wiring, blocks: list[int], bottleneck: bool, *, dilated: tuple[int, ...] = ()
) -> list[str]:
    """Wire everything before the classifier; return the names of the four stages' outputs.

    Stages that are `dilated` keep their map; their convolutions but the first block's, which still
    sees the map as it was, are dilated as much more as the map would have shrunk.
    """
    x = net.stem(64, "method")
    dilation, before, outputs = 1, 64, []
    for stage, count in enumerate(blocks, start=1):
        width = 64 * 2 ** (stage - 1)
        channels = width * 4 if bottleneck else width
        for index in range(count):
            stride = 2 if index == 0 and stage > 1 else 1
            seen = dilation
            if stride == 2 and stage in dilated:
                stride, dilation = 1, dilation * 2
            wire = _bottleneck if bottleneck else _basic
            name = f"layer{stage}.{index}"
            out = wire(net, name, x, width, stride, seen)
            if stride > 1 or before != channels:
                x = net.conv_bn(f"{name}.shortcut", x, channels, 1, stride=stride, role="shortcut")
            x = net.act(f"{name}.act", net.add(f"{name}.sum", out, x))
            before = channels
        outputs.append(x)
    return outputs


def _basic(net: Wiring, name: str, x: str, width: int, stride: int, dilation: int) -> str:
    """Two 3 x 3 convolutions."""
    x = net.conv_bn(f"{name}.conv1", x, width, stride=stride, dilation=dilation)
    x = net.act(f"{name}.conv1.act", x)
    return net.conv_bn(f"{name}.conv2", x, width, dilation=dilation)


def _bottleneck(net: Wiring, name: str, x: str, width: int, stride: int, dilation: int) -> str:
    """1 x 1, 3 x 3 and 1 x 1 to four times the width."""
    x = net.act(f"{name}.conv1.act", net.conv_bn(f"{name}.conv1", x, width, 1))
    x = net.conv_bn(f"{name}.conv2", x, width, stride=stride, dilation=dilation)
    x = net.act(f"{name}.conv2.act", x)
    return net.conv_bn(f"{name}.conv3", x, width * 4, 1)
