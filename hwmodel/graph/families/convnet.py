"""A chain of convolutions, then of linear layers, with batch norm and activation between them.

A pool, where one is asked for, stands between a convolution and its batch norm, as in VGG-small;
the first layer and the last have biases. Source: docs/trainer.md; `hwmodel train` trains these.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring

__all__ = ["network"]


def network(*, image: int, convs: list[list[int]], linears: list[int]) -> dict[str, Any]:
    """Input and layers.

    Args:
        image: rows and columns of the one-channel input [elements].
        convs: channels, kernel, stride, padding and whether a 2 x 2 pool follows (1 or 0), for each
            convolution.
        linears: features of the linear layers.
    """
    net, x = Wiring(), INPUT
    last = len(convs) + len(linears)
    for number, (channels, kernel, stride, padding, pooled) in enumerate(convs, start=1):
        x = net.conv(
            f"conv{number}", x, channels, kernel, stride=stride, padding=padding, bias=number == 1
        )
        if pooled:
            x = net.max_pool(f"pool{number}", x, 2, 2)
        x = net.act(f"act{number}", net.bn(f"bn{number}", x))
    for number, features in enumerate(linears, start=len(convs) + 1):
        x = net.linear(f"fc{number}", x, features, bias=number in (1, last))
        if number < last:
            x = net.act(f"act{number}", net.bn(f"bn{number}", x))
    return {"input": (1, image, image), "layers": net.layers}
