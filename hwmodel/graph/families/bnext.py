"""BNext-18: Bi-Real Net's layout with adaptive recoupling and attention in every block.

Source: Guo et al., Join the High Accuracy Club on ImageNet with a Binary Neural Network Ticket,
2022, and the authors' code (hpi-xnor/BNext, src/birealnet.py). A block is an attention module,
whose output is multiplied by its shortcut, and a second module; one binary 3 x 3 convolution each.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import Wiring
from hwmodel.graph.layers import Scale

__all__ = ["network"]


def network(*, reduction: int = 8, image: int = 224, classes: int = 1000) -> dict[str, Any]:
    """Input and layers; `reduction` divides the channels in squeeze-and-excitation.

    Args:
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x = net.stem(64)
    for stage in range(4):
        width = 64 * 2**stage
        for index in range(2):
            name = f"layer{stage + 1}.{index}"
            stride = 2 if index == 0 and stage > 0 else 1
            x = _attention(net, f"{name}.attention", x, width, stride, reduction)
            x = _second(net, f"{name}.ffn", x, width, reduction)
    net.classifier(net.act("last.prelu", x, "prelu"), classes)
    return {"input": (3, image, image), "layers": net.layers}


def _attention(net: Wiring, name: str, x: str, width: int, stride: int, reduction: int) -> str:
    shortcut = net.act(f"{name}.shortcut.prelu", x, "prelu")
    if stride == 2:
        shortcut = net.average_pool(f"{name}.shortcut.pool", shortcut, 2)
        shortcut = net.conv_bn(f"{name}.shortcut", shortcut, width, 1, role="shortcut")
    path = _recoupled(net, name, x, shortcut, width, stride, reduction)
    path = net.bn(f"{name}.bn2", net.multiply(f"{name}.attended", path, shortcut))
    return net.add(f"{name}.sum", path, shortcut)


def _second(net: Wiring, name: str, x: str, width: int, reduction: int) -> str:
    path = _recoupled(net, name, x, x, width, 1, reduction)
    return net.add(f"{name}.sum", net.bn(f"{name}.bn2", path), x)


def _recoupled(
    net: Wiring, name: str, x: str, shortcut: str, width: int, stride: int, reduction: int
) -> str:
    """Shifted sign, convolution, batch norm, PReLU, and a factor for each channel.

    The factor is computed from a learned mixture of input and output, s * I + (1 - s) * O for each
    channel, which is O + s * (I - O): one factor, two sums.
    """
    path = net.conv_bn(f"{name}.conv", net.act(f"{name}.sign", x, "rsign"), width, stride=stride)
    path = net.act(f"{name}.prelu", path, "prelu")
    mix = net.add(f"{name}.difference", shortcut, path)
    mix = net.put(Scale(name=f"{name}.share", kind="scale", inputs=(mix,)))
    mix = net.add(f"{name}.mixture", path, mix)
    factor = net.squeeze_excite(f"{name}.se", mix, width // reduction, width, "sigmoid")
    return net.multiply(f"{name}.excited", path, factor)
