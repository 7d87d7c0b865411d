"""EDSR: residual blocks at low resolution, then pixel shuffles to the high one.

Source: Lim et al., Enhanced Deep Residual Networks for Single Image Super-Resolution, CVPR
Workshops 2017, figures 2 and 3. The constant that scales a block's output is not a layer: it folds
into the weights. The Boolean network (Nguyen et al., BOLD, NeurIPS 2024, figure "Small EDSR")
exchanges the residual blocks alone; chosen: for block I with a 3 x 3 convolution on every shortcut.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring
from hwmodel.graph.families.bool_resnet import Place, block_1

__all__ = ["network"]


def network(
    *, scale: int, blocks: int, channels: int = 256, boolean: bool = False, image: int = 96
) -> dict[str, Any]:
    """Input and layers of the member that makes images `scale` times as large.

    Args:
        boolean: whether the residual blocks are Boolean.
        image: rows and columns of the output [elements]; the input has `scale` times fewer.
    """
    if image % scale:
        raise ValueError(f"an output of {image} rows is no multiple of {scale}, its scale")
    net = Wiring()
    first = x = net.conv("head", INPUT, channels, bias=True)
    for index in range(blocks):
        x = _block(net, f"body.{index}", x, channels, boolean)
    x = net.conv("body.end", x, channels, bias=True, role="body-end")
    x = net.add("body.sum", x, first)
    for step, factor in enumerate((2, 2) if scale == 4 else (scale,), start=1):
        name = f"upsampler{step}"
        x = net.conv(name, x, channels * factor**2, bias=True, role="upsampler")
        x = net.shuffle(f"{name}.shuffle", x, factor)
    net.conv("tail", x, 3, bias=True)
    return {"input": (3, image // scale, image // scale), "layers": net.layers}


def _block(net: Wiring, name: str, x: str, channels: int, boolean: bool) -> str:
    if boolean:
        return block_1(net, x, Place(name, channels, 1, 1, False), kernel=3)
    path = net.act(f"{name}.act", net.conv(f"{name}.conv1", x, channels, bias=True))
    path = net.conv(f"{name}.conv2", path, channels, bias=True)
    return net.add(f"{name}.sum", path, x)
