"""ConvNeXt: blocks of a depthwise 7 x 7 convolution and two layers at each place.

Source: Liu et al., A ConvNet for the 2020s, CVPR 2022, section 2 and appendix A.1 (T: blocks 3, 3,
9, 3; 96 to 768 features), as in torchvision, with its factor for each channel of a branch.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families import _transformer as parts
from hwmodel.graph.families._wiring import INPUT, Wiring
from hwmodel.graph.layers import Scale

__all__ = ["network"]


def network(
    *, features: list[int], blocks: list[int], image: int = 224, classes: int = 1000
) -> dict[str, Any]:
    """Input and layers.

    Args:
        features, blocks: of each stage.
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x = net.conv("stem", INPUT, features[0], 4, stride=4, padding=0, bias=True, role="stem")
    x = parts.layer_norm(net, "stem.norm", x)
    for stage, (width, count) in enumerate(zip(features, blocks, strict=True)):
        if stage:
            x = parts.layer_norm(net, f"halve{stage}.norm", x)
            x = net.conv(f"halve{stage}", x, width, 2, stride=2, padding=0, bias=True)
        for index in range(count):
            x = _block(net, f"stage{stage}.{index}", x, width)
    x = parts.layer_norm(net, "norm", net.global_pool("pool", x))
    net.linear("head", x, classes, role="head")
    return {"input": (3, image, image), "layers": net.layers}


def _block(net: Wiring, name: str, x: str, features: int) -> str:
    y = net.conv(f"{name}.conv", x, features, 7, groups=features, bias=True, role="depthwise")
    y = parts.layer_norm(net, f"{name}.norm", y)
    y = parts.linear(net, f"{name}.up", y, 4 * features, "feed-forward", bias=True)
    y = net.act(f"{name}.gelu", y, "gelu")
    y = parts.linear(net, f"{name}.down", y, features, "feed-forward", bias=True)
    y = net.put(Scale(name=f"{name}.factor", kind="scale", inputs=(y,)))
    return net.add(f"{name}.sum", y, x)
