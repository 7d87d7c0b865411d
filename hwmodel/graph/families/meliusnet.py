"""MeliusNet: binary blocks that add 64 channels, each then improved by a second convolution.

Source: Bethge et al., MeliusNet, WACV 2021, figures 1 to 3 and table 1; channels after each
transition, the max-pools and batch norms with scale and shift from the authors' code (hpi-xnor's
binary models, meliusnet.py); larq_zoo's batch norms have neither.
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring

__all__ = ["network"]

GROWTH = 64


def network(
    *, blocks: list[int], transitions: list[int], image: int = 224, classes: int = 1000
) -> dict[str, Any]:
    """Input and layers of the member with so many `blocks` in its four stages.

    Args:
        transitions: channels after each stage but the last.
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x, channels = _grouped_stem(net), 64
    for stage, count in enumerate(blocks, start=1):
        for index in range(count):
            x = _dense_and_improvement(net, f"stage{stage}.{index}", x, channels)
            channels += GROWTH
        if stage <= len(transitions):
            name, channels = f"transition{stage}", transitions[stage - 1]
            x = net.max_pool(f"{name}.pool", net.bn(f"{name}.bn", x), 2, 2)
            x = net.act(f"{name}.relu", x, "relu")
            x = net.conv(f"{name}.conv", x, channels, 1, role="transition")
    x = net.act("last.relu", net.bn("last.bn", x), "relu")
    net.classifier(x, classes)
    return {"input": (3, image, image), "layers": net.layers}


def _grouped_stem(net: Wiring) -> str:
    """Three 3 x 3 convolutions in the place of one 7 x 7, the later two in groups."""
    x = INPUT
    stem = ((32, 2, 1, None), (32, 1, 4, "stem"), (64, 1, 8, "stem"))
    for number, (channels, stride, groups, role) in enumerate(stem, start=1):
        name = f"stem{number}"
        x = net.conv_bn(name, x, channels, stride=stride, groups=groups, role=role)
        x = net.act(f"{name}.relu", x, "relu")
    return net.max_pool("stem.pool", x, 3, 2, padding=1)


def _dense_and_improvement(net: Wiring, name: str, x: str, channels: int) -> str:
    """New channels join the old ones; a second convolution then adds to the new ones."""
    new = net.act(f"{name}.dense.sign", net.bn(f"{name}.dense.bn", x), "sign")
    new = net.conv(f"{name}.dense.conv", new, GROWTH)
    x = net.concat(f"{name}.dense", x, new)
    better = net.act(f"{name}.better.sign", net.bn(f"{name}.better.bn", x), "sign")
    better = net.conv(f"{name}.better.conv", better, GROWTH)
    old = net.channels(f"{name}.old", x, 0, channels)
    new = net.channels(f"{name}.new", x, channels, channels + GROWTH)
    return net.concat(f"{name}.better", old, net.add(f"{name}.sum", new, better))
