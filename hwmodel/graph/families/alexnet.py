"""AlexNet: torchvision's without groups, and the first one's with groups of two.

Source: Krizhevsky, One Weird Trick for Parallelizing Convolutional Neural Networks, 2014, as in
torchvision; Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks,
NeurIPS 2012, in Eyeriss's shapes (227 x 227, no padding in the first layer). Its local response
normalisation is left out: there is no such layer kind, and Eyeriss's figures do not hold it.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring

__all__ = ["network"]


def network(
    *, image: int, channels: list[int], groups: int, padding: int, classes: int = 1000
) -> dict[str, Any]:
    """Input and layers.

    Args:
        image: rows and columns of the input [elements].
        channels: of the five convolutions; the second, fourth and fifth are in `groups`.
        padding: of the first convolution [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x, kernels = INPUT, (11, 5, 3, 3, 3)
    for number, (width, kernel) in enumerate(zip(channels, kernels, strict=True), start=1):
        first, grouped = number == 1, number in (2, 4, 5)
        x = net.conv(
            f"conv{number}", x, width, kernel, bias=True, stride=4 if first else 1,
            padding=padding if first else None, groups=groups if grouped else 1,
        )  # fmt: skip
        x = net.act(f"conv{number}.act", x)
        if number in (1, 2, 5):
            x = net.max_pool(f"pool{number}", x, 3, 2)
    for number, features in enumerate((4096, 4096, classes), start=1):
        x = net.linear(f"fc{number}", x, features)
        if number < 3:
            x = net.act(f"fc{number}.act", x)
    return {"input": (3, image, image), "layers": net.layers}
