"""PokeBNN: binary convolutions between a light 8-bit beginning and an 8-bit end.

Source: Zhang et al., PokeBNN: A Binary Pursuit of Lightweight Accuracy, CVPR 2022, figures 2 and
3, and the authors' code (google/aqt, jax_legacy/jax/imagenet/pokebnn.py), which has bottlenecks
on ResNet-50's layout. On ResNet-18's layout the same convolution stands twice in a basic block
(chosen: the source of that figure does not draw it).
"""

from __future__ import annotations

from typing import Any

from hwmodel.graph.families._wiring import INPUT, Wiring
from hwmodel.graph.layers import AveragePool, Reshape, Shape

__all__ = ["network"]

GROUPS, REDUCTION = 32, 8


def network(
    *, blocks: list[int], bottleneck: bool, image: int = 224, classes: int = 1000
) -> dict[str, Any]:
    """Input and layers of the member with so many `blocks` in its four stages.

    Args:
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    x = _start(net)
    size, before = image // 4, 64
    for stage, count in enumerate(blocks, start=1):
        width = 64 * 2 ** (stage - 1)
        for index in range(count):
            stride = 2 if index == 0 and stage > 1 else 1
            steps = [(3, width, stride), (3, width, 1)]
            if bottleneck:
                steps = [(1, width, 1), (3, width, stride), (1, width * 4, 1)]
            start, start_shape = x, (before, size, size)
            for number, (kernel, channels, step) in enumerate(steps, start=1):
                past = (start, start_shape) if number == len(steps) else None
                name = f"layer{stage}.{index}.{number}"
                x = _convolution(net, name, (x, (before, size, size)), past, channels, kernel, step)
                size, before = size // step, channels
    net.classifier(x, classes)
    return {"input": (3, image, image), "layers": net.layers}


def _start(net: Wiring) -> str:
    """Wire the beginning, which uses no pixel twice: 4 x 4 places become 32 channels, then 64."""
    x = net.conv("init1", INPUT, GROUPS, 4, stride=4, padding=0)
    x = net.act("init1.act", net.bn("init1.bn", x), "dprelu")
    x = net.conv_bn("init2", x, 64, groups=GROUPS, role="stem")
    return net.act("init2.act", x, "dprelu")


Placed = tuple[str, Shape]  # a tensor's name and shape


def _convolution(
    net: Wiring, name: str, x: Placed, past: Placed | None, channels: int, kernel: int, stride: int
) -> str:
    """A binary convolution, its own shortcut, the block's at its end, and a factor a channel.

    `x` comes in, `past` is the block's input at its last convolution.
    """
    out = net.act(f"{name}.sign", x[0], "sign")
    out = net.conv_bn(f"{name}.conv", out, channels, kernel, stride=stride)
    shape = (channels, x[1][1] // stride, x[1][2] // stride)
    out = _shortcut(net, f"{name}.local", x, out, shape, tile=False)
    if past is not None:
        out = _shortcut(net, f"{name}.long", past, out, shape, tile=True)
    out = net.act(f"{name}.act", out, "dprelu")
    factor = net.squeeze_excite(f"{name}.se", x[0], x[1][0] // REDUCTION, channels, "hardsigmoid")
    return net.bn(f"{name}.bn2", net.multiply(f"{name}.scaled", out, factor))


def _shortcut(net: Wiring, name: str, x: Placed, path: str, shape: Shape, *, tile: bool) -> str:
    """The sum of `path` and of `x` brought to its shape without a weight.

    Fewer channels: means of neighbours. More: the same again (`tile`), or none for the new ones.
    Fewer places: 3 x 3 means at every second.
    """
    (source, (C, H, W)), M = x, shape[0]
    if C > M:
        source = _neighbours(net, name, source, (C, H, W), M)
    elif C < M and tile:
        source = net.concat(f"{name}.tiled", *[source] * (M // C))
    if shape[1] < H:
        source = net.put(
            AveragePool(
                name=f"{name}.pool", kind="average-pool", inputs=(source,), kernel=(3, 3),
                stride=(2, 2), padding=(0, 0, 1, 1),
            )
        )  # fmt: skip
    if C < M and not tile:
        first = net.add(f"{name}.sum", net.channels(f"{name}.old", path, 0, C), source)
        return net.concat(f"{name}.joined", first, net.channels(f"{name}.new", path, C, M))
    return net.add(f"{name}.sum", path, source)


def _neighbours(net: Wiring, name: str, x: str, shape: Shape, channels: int) -> str:
    """Means of neighbouring channels, seen as rows."""
    C, H, W = shape
    many = C // channels
    rows = (channels, many, H * W)
    x = net.put(Reshape(name=f"{name}.rows", kind="reshape", inputs=(x,), shape=rows))
    x = net.put(
        AveragePool(name=f"{name}.mean", kind="average-pool", inputs=(x,), kernel=(many, 1))
    )
    back = (channels, H, W)
    return net.put(Reshape(name=f"{name}.places", kind="reshape", inputs=(x,), shape=back))
