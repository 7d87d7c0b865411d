"""Boolean ResNet-18: convolutions between activations, summed as integers, of any base width.

Source: Nguyen et al., BOLD, NeurIPS 2024, appendix "Ablation Study on Image Classification". An
activation follows the max-pool, none the stem's convolution. Batch norms stand after every
convolution, as in ResNet; methods without batch norm omit them. What the appendix draws but does
not tabulate is chosen here and said at each block.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from hwmodel.graph.families._wiring import Wiring

__all__ = ["BLOCKS", "Place", "block_1", "block_2", "network", "trunk"]

BLOCKS = (2, 2, 2, 2)


class Place(NamedTuple):
    """A block's place in the network: its name, width, stride and dilation."""

    name: str
    width: int
    stride: int
    dilation: int
    changes: bool  # whether the output has another shape than the input


def network(
    *,
    base: int,
    block: Literal["I", "II"],
    shortcut: int = 1,
    image: int = 224,
    classes: int = 1000,
) -> dict[str, Any]:
    """Input and layers of the member whose stages are `base` times 1, 2, 4 and 8 wide.

    Args:
        shortcut: kernel of block I's convolutions on shortcuts [elements].
        image: rows and columns of the input [elements].
        classes: features of the last layer.
    """
    net = Wiring()
    wire = partial(block_1, kernel=shortcut) if block == "I" else block_2
    x = trunk(net, base, wire)
    net.classifier(net.act("last.act", x), classes)
    return {"input": (3, image, image), "layers": net.layers}


def trunk(
    net: Wiring,
    base: int,
    wire: Callable[[Wiring, str, Place], str],
    *,
    dilated: tuple[int, ...] = (),
) -> str:
    """Wire everything before the last activation; return the name of the integer sum it sees.

    Stages that are `dilated` keep their map, and convolutions from there on are dilated.
    """
    x, dilation = net.stem(base), 1
    for stage, count in enumerate(BLOCKS, start=1):
        for index in range(count):
            changes = index == 0 and stage > 1
            stride = 2 if changes else 1
            if changes and stage in dilated:
                stride, dilation = 1, dilation * 2
            width = base * 2 ** (stage - 1)
            x = wire(net, x, Place(f"layer{stage}.{index}", width, stride, dilation, changes))
    return x


def block_1(net: Wiring, x: str, at: Place, *, kernel: int) -> str:
    """Block I: the path and the convolution on its shortcut see the same Boolean tensor.

    The source draws that convolution in every block, whether the map halves or not (appendix, the
    two Boolean blocks). It is not dilated, as the source says of its segmentation network.
    """
    x = net.act(f"{at.name}.act1", x)
    path = net.conv_bn(f"{at.name}.conv1", x, at.width, stride=at.stride, dilation=at.dilation)
    path = net.act(f"{at.name}.act2", path)
    path = net.conv_bn(f"{at.name}.conv2", path, at.width, dilation=at.dilation)
    x = net.conv_bn(f"{at.name}.shortcut", x, at.width, kernel, stride=at.stride, role="shortcut")
    return net.add(f"{at.name}.sum", path, x)


def block_2(net: Wiring, x: str, at: Place) -> str:
    """Block II: two residual modules of one convolution, with integers on their shortcuts.

    Where the map halves, its places become channels before the first convolution, which so has
    four times the weights. Chosen: the shortcut there is a 2 x 2 max-pool of the Boolean tensor
    and a 1 x 1 Boolean convolution.
    """
    for number in (1, 2):
        seen = net.act(f"{at.name}.act{number}", x)
        if at.changes and number == 1:
            x = net.max_pool(f"{at.name}.pool", seen, 2, 2)
            x = net.conv_bn(f"{at.name}.shortcut", x, at.width, 1, role="shortcut")
            seen = net.unshuffle(f"{at.name}.reshape", seen, 2)
        path = net.conv_bn(f"{at.name}.conv{number}", seen, at.width)
        x = net.add(f"{at.name}.sum{number}", path, x)
    return x
