"""DeepLabv3 on a ResNet: the last stages keep their map, parallel dilated convolutions follow.

Source: Chen et al., Rethinking Atrous Convolution for Semantic Image Segmentation, 2017; layers of
the head as in torchvision. The Boolean network is that of Nguyen et al., BOLD, NeurIPS 2024,
appendix "Semantic Segmentation": output stride 8, rates 12, 24 and 36, block I with a 3 x 3
convolution on every shortcut; its pooling branch has a real ReLU and keeps batch norm (role
`aspp-norm`) where the rest does without.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from hwmodel.graph.families._wiring import Wiring
from hwmodel.graph.families.bool_resnet import block_1
from hwmodel.graph.families.bool_resnet import trunk as boolean_trunk
from hwmodel.graph.families.resnet import trunk

__all__ = ["network"]

RATES = (12, 24, 36)
DILATED = (3, 4)


def network(
    *,
    image: list[int],
    classes: int,
    blocks: list[int] | None = None,
    bottleneck: bool = False,
    auxiliary: bool = False,
    base: int = 64,
    boolean: Literal["pooled integers", "pooled Booleans"] | None = None,
) -> dict[str, Any]:
    """Input and layers; the output has the input's rows and columns.

    Args:
        image: rows and columns of the input [elements].
        blocks: blocks of ResNet's four stages; ResNet-18's when left out.
        auxiliary: whether a second classifier sees the third stage.
        base: width of the first stage of the Boolean network.
        boolean: a Boolean network, and what its pooling branch takes the mean of.
    """
    net = Wiring()
    rows, columns = image
    small = -(-rows // 8), -(-columns // 8)  # each of three steps rounds up
    if boolean is not None:
        x = boolean_trunk(net, base, partial(block_1, kernel=3), dilated=DILATED)
        x = _boolean_aspp(net, x, small, boolean == "pooled Booleans")
    else:
        stages = trunk(net, blocks or [2, 2, 2, 2], bottleneck, dilated=DILATED)
        if auxiliary:
            _classifier(net, "auxiliary", stages[2], 64 * 4 if bottleneck else 64, classes, image)
        x = _aspp(net, stages[3], small)
    _classifier(net, "classifier", x, 256, classes, image)
    return {"input": (3, rows, columns), "layers": net.layers}


def _classifier(net: Wiring, name: str, x: str, width: int, classes: int, image: list[int]) -> None:
    """A 3 x 3 convolution, a 1 x 1 convolution to the classes, bilinear interpolation."""
    x = net.act(f"{name}.act", net.conv_bn(f"{name}.conv", x, width, role="head"))
    x = net.conv(f"{name}.score", x, classes, 1, bias=True, role="head")
    net.resize(f"{name}.resize", x, *image)


def _aspp(net: Wiring, x: str, size: tuple[int, int]) -> str:
    branches = []
    for name, kernel, rate in _convolutions():
        branch = net.conv_bn(name, x, 256, kernel, dilation=rate, role="aspp")
        branches.append(net.act(f"{name}.act", branch))
    branch = net.conv_bn("aspp.pool.conv", net.global_pool("aspp.pool", x), 256, 1, role="aspp")
    branches.append(net.resize("aspp.pool.resize", net.act("aspp.pool.act", branch), *size))
    x = net.concat("aspp.joined", *branches)
    return net.act("aspp.project.act", net.conv_bn("aspp.project", x, 256, 1, role="aspp"))


def _boolean_aspp(net: Wiring, x: str, size: tuple[int, int], naive: bool) -> str:
    """Wire the Boolean head: an activation before and after each convolution, then the sum.

    Branches see a Boolean tensor. Chosen: the 1 x 1 projection and the classifier are as they are
    without Booleans.
    """
    seen = net.act("aspp.act", x)
    branches = []
    for name, kernel, rate in _convolutions():
        branch = net.conv(name, seen, 256, kernel, dilation=rate, role="aspp")
        branches.append(net.act(f"{name}.act", branch))
    branches.append(net.resize("aspp.pool.resize", _pooled(net, seen, x, naive), *size))
    x = net.conv("aspp.project", net.concat("aspp.joined", *branches), 256, 1, role="aspp")
    return net.act("aspp.project.act", x)


def _pooled(net: Wiring, seen: str, sums: str, naive: bool) -> str:
    """Wire the pooling branch: a mean, and a Boolean convolution between activations.

    The naive one takes the mean of the Boolean tensor `seen` and has no norm. The other takes the
    integers before it, `sums`, through a real ReLU and batch norm, and normalises before each of
    its activations (appendix "Semantic Segmentation", figures of the two designs).
    """
    if naive:
        x = net.act("aspp.pool.act1", net.global_pool("aspp.pool", seen))
        return net.act("aspp.pool.act2", net.conv("aspp.pool.conv", x, 256, 1, role="aspp"))
    x = net.act("aspp.pool.relu", sums, "relu", role="aspp-norm")
    x = net.bn("aspp.pool.bn", x, role="aspp-norm")
    x = net.global_pool("aspp.pool", x, role="aspp-norm")
    x = net.act("aspp.pool.act1", net.bn("aspp.pool.bn1", x, role="aspp-norm"))
    x = net.conv("aspp.pool.conv", x, 256, 1, role="aspp")
    return net.act("aspp.pool.act2", net.bn("aspp.pool.bn2", x, role="aspp-norm"))


def _convolutions() -> list[tuple[str, int, int]]:
    """List name, kernel and dilation of the four branches with convolutions."""
    dilated = [(f"aspp.rate{rate}", 3, rate) for rate in RATES]
    return [("aspp.point", 1, 1), *dilated]
