"""Bi-Real Net and ReActNet on its layout: a real-valued shortcut past every binary convolution.

Source: Liu et al., Bi-Real Net, ECCV 2018 and IJCV 2020, and the authors' code for 18, 34 and 50
layers; Liu et al., ReActNet, ECCV 2020, and the authors' code on ResNet-18, which shifts before
every sign and every PReLU. 1 x 1 convolutions on shortcuts are real, after a 2 x 2 average pool.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import Wiring

__all__ = ["network"]


def network(
    *,
    blocks: list[int],
    bottleneck: bool = False,
    shifted: bool = False,
    image: int = 224,
    classes: int = 1000,
) -> dict[str, Any]:
    """Input and layers of the member with so many `blocks` (of ResNet) in its four stages.

    Args:
        shifted: whether activations are ReActNet's, with learned shifts.
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x = net.stem(64)
    x = _bottlenecks(net, x, blocks) if bottleneck else _basics(net, x, blocks, shifted)
    net.classifier(x, classes)
    return {"input": (3, image, image), "layers": net.layers}


def _basics(net: Wiring, x: str, blocks: list[int], shifted: bool) -> str:
    """One 3 x 3 convolution a block, so that each of ResNet's blocks is two."""
    before = 64
    for stage, count in enumerate(blocks, start=1):
        width = 64 * 2 ** (stage - 1)
        for index in range(2 * count):
            name = f"layer{stage}.{index}"
            stride = 1 if width == before else 2
            path = net.act(f"{name}.sign", x, "rsign" if shifted else "sign")
            path = net.conv_bn(f"{name}.conv", path, width, stride=stride)
            if stride == 2:
                x = _halved(net, f"{name}.shortcut", x, width)
            x = net.add(f"{name}.sum", path, x)
            if shifted:
                x = net.act(f"{name}.act", x, "rprelu")
            before = width
    return x


def _bottlenecks(net: Wiring, x: str, blocks: list[int]) -> str:
    """Three convolutions a block, each with its shortcut.

    The narrow sum after a block's 3 x 3 convolution goes past the next block's first convolution,
    the wide one past the whole block. The very first 1 x 1 convolution is real and sees a clipped
    input; the authors' clip leaks a tenth, here it is a hard one.
    """
    wide = narrow = x
    for stage, count in enumerate(blocks, start=1):
        width = 64 * 2 ** (stage - 1)
        for index in range(count):
            name = f"layer{stage}.{index}"
            start, changes = stage == 1 and index == 0, index == 0
            stride = 2 if changes and not start else 1
            seen = net.act(f"{name}.sign1", wide, "hardtanh" if start else "sign")
            role = "stem" if start else None
            path = net.conv_bn(f"{name}.conv1", seen, width, 1, role=role)
            if not start:
                if changes:
                    narrow = net.conv(f"{name}.narrow", narrow, width, 1, role="shortcut")
                path = net.add(f"{name}.sum1", path, narrow)
            seen = net.act(f"{name}.sign2", path, "sign")
            middle = net.conv_bn(f"{name}.conv2", seen, width, stride=stride)
            if stride == 2:
                path = net.average_pool(f"{name}.pool", path, 2)
            narrow = net.add(f"{name}.sum2", middle, path)
            seen = net.act(f"{name}.sign3", narrow, "sign")
            path = net.conv_bn(f"{name}.conv3", seen, width * 4, 1)
            if changes:
                halved = _halved if stride == 2 else _widened
                wide = halved(net, f"{name}.shortcut", wide, width * 4)
            wide = net.add(f"{name}.sum3", path, wide)
    return wide


def _halved(net: Wiring, name: str, x: str, channels: int) -> str:
    return _widened(net, name, net.average_pool(f"{name}.pool", x, 2), channels)


def _widened(net: Wiring, name: str, x: str, channels: int) -> str:
    return net.conv_bn(name, x, channels, 1, role="shortcut")
