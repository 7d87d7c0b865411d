"""VGG-small: six 3 x 3 convolutions in pairs of one width, a 2 x 2 pool after each pair.

Source: Courbariaux et al., BinaryConnect (2015) and BinaryNet (2016), CIFAR-10 network
2x128C3-MP2-2x256C3-MP2-2x512C3-MP2-2x1024FC-10; with one fully connected layer as in Qin et al.,
IR-Net (2020). Convolution, pool, batch norm, activation is the order of BinaryNet's code.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.layers import Activation, BatchNorm, Conv, Layer, Linear, MaxPool

__all__ = ["network"]


def network(*, fc: int, image: int = 32, classes: int = 10) -> dict[str, Any]:
    """Input and layers of the member with `fc` fully connected layers.

    Args:
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    layers: list[Layer] = []
    for index, channels in enumerate((128, 128, 256, 256, 512, 512), start=1):
        layers.append(
            Conv(
                name=f"conv{index}", kind="conv", channels=channels, kernel=(3, 3), padding=(1,) * 4
            )
        )
        if index % 2 == 0:
            layers.append(MaxPool(name=f"pool{index // 2}", kind="max-pool", kernel=(2, 2)))
        layers.append(BatchNorm(name=f"bn{index}", kind="batch-norm"))
        layers.append(Activation(name=f"act{index}", kind="activation"))
    for index, features in enumerate([1024] * (fc - 1) + [classes], start=1):
        layers.append(Linear(name=f"fc{index}", kind="linear", features=features))
        if index < fc:
            layers.append(BatchNorm(name=f"fc{index}_bn", kind="batch-norm"))
            layers.append(Activation(name=f"fc{index}_act", kind="activation"))
    return {"input": (3, image, image), "layers": tuple(layers)}
