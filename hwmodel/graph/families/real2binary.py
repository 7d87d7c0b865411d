"""Real-to-Binary Net: binary convolutions whose outputs are scaled by what went into them.

Source: Martinez et al., Training Binary Neural Networks with Real-to-Binary Convolutions, ICLR
2020, figure 1 and section 4.3; order of layers and the stem's PReLU as in larq_zoo
(literature/real_to_bin_nets.py). Batch norm, sign, convolution, scale, PReLU, sum.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import Wiring

__all__ = ["network"]


def network(*, reduction: int = 8, image: int = 224, classes: int = 1000) -> dict[str, Any]:
    """Input and layers; `reduction` divides the channels within the scaling branch.

    Args:
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x = net.stem(64, "prelu")
    before = 64
    for stage in range(4):
        width = 64 * 2**stage
        for index in range(4):
            name = f"layer{stage + 1}.{index}"
            x = _block(net, name, x, before, width, reduction)
            before = width
    net.classifier(x, classes)
    return {"input": (3, image, image), "layers": net.layers}


def _block(net: Wiring, name: str, x: str, before: int, width: int, reduction: int) -> str:
    stride = 1 if before == width else 2
    seen = net.bn(f"{name}.bn", x)
    path = net.act(f"{name}.sign", seen, "sign")
    path = net.conv(f"{name}.conv", path, width, stride=stride)
    path = net.multiply(f"{name}.scaled", path, _scale(net, name, seen, before // reduction, width))
    path = net.act(f"{name}.prelu", path, "prelu")
    if stride == 2:
        x = net.average_pool(f"{name}.shortcut.pool", x, 2)
        x = net.conv_bn(f"{name}.shortcut", x, width, 1, role="shortcut")
    return net.add(f"{name}.sum", path, x)


def _scale(net: Wiring, name: str, x: str, narrow: int, width: int) -> str:
    """A factor for each channel: mean, two linear layers without biases, sigmoid."""
    x = net.global_pool(f"{name}.scale.pool", x)
    for number, features, function in ((1, narrow, "relu"), (2, width, "sigmoid")):
        x = net.conv(f"{name}.scale.fc{number}", x, features, 1, role="squeeze-excite")
        x = net.act(f"{name}.scale.{function}", x, function)
    return x
