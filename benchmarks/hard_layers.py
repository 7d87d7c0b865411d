"""Layers on which a tiling search is hard: large, ragged, strided, dilated, or with many ties.

One or a few of each network; extents as the networks' publications have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from hwmodel.work.flattening import Loops, flattened
from hwmodel.work.problem import PASSES as TENSORS
from hwmodel.work.problem import Extents, LoopNest, Problem, Widths, Window

__all__ = ["BATCHES", "LAYERS", "PASSES", "WIDTHS", "Layer", "cases", "nest"]

PASSES = ("forward", "backward-input", "backward-weight")
BATCHES = 1, 16, 256, 4096
WIDTHS = Widths(32, 32, 32), Widths(16, 16, 16), Widths(8, 8, 8), Widths(1, 1, 16), Widths(1, 1, 1)


class Layer(NamedTuple):
    """A convolution of M filters on C channels of H x W; a product has H = W = K = 1."""

    name: str
    C: int
    M: int
    H: int = 1
    W: int = 1
    KH: int = 1
    KW: int = 1
    stride: int = 1
    pad_h: int = 0
    pad_w: int = 0
    dilation: int = 1
    groups: int = 1


def square(
    name: str, C: int, M: int, H: int, K: int = 1, stride: int = 1, pad: int = 0,
    dilation: int = 1, groups: int = 1,
) -> Layer:  # fmt: skip
    """A layer whose rows are as its columns."""
    return Layer(name, C, M, H, H, K, K, stride, pad, pad, dilation, groups)


LAYERS = (
    square("resnet50.stem", 3, 64, 224, 7, 2, 3),
    square("resnet50.reduce", 256, 64, 56),
    square("resnet50.3x3", 64, 64, 56, 3, 1, 1),
    square("resnet50.shortcut", 256, 512, 56, 1, 2),
    square("resnet152.3x3", 256, 256, 14, 3, 1, 1),
    square("resnet152.expand", 512, 2048, 7),
    square("densenet121.grow", 128, 32, 28, 3, 1, 1),
    square("densenet121.bottleneck", 992, 128, 14),
    square("mobilenet.pointwise", 512, 512, 14),
    square("mobilenet.depthwise", 1, 1, 112, 3, 1, 1, groups=32),
    square("efficientnet.b7.stem", 3, 64, 600, 3, 2, 1),
    square("efficientnet.b0.depthwise", 1, 1, 14, 5, 1, 2, groups=480),
    square("vit-l14.patch", 3, 1024, 224, 14, 14),
    Layer("vit-l16.qkv", 1024, 3072, 197),
    Layer("swin.mlp", 96, 384, 3136),
    Layer("gpt2.head", 768, 50257, 1024),
    Layer("gpt3.ff", 12288, 49152),
    Layer("llama.ff", 4096, 11008, 512),
    square("unet.in", 1, 64, 572, 3),
    square("unet.second", 64, 64, 570, 3),
    square("unet.up", 1024, 512, 28, 2),
    square("diffusion.3x3", 320, 320, 64, 3, 1, 1),
    square("deeplab.rate6", 2048, 256, 65, 3, 1, 6, 6),
    square("deeplab.rate12", 2048, 256, 65, 3, 1, 12, 12),
    square("deeplab.rate18", 2048, 256, 65, 3, 1, 18, 18),
    square("deeplab.rate36", 2048, 256, 65, 3, 1, 36, 36),
    Layer("deeplab.wide", 2048, 256, 64, 128, 3, 3, 1, 12, 12, 12),
    square("alexnet.conv1", 3, 96, 227, 11, 4),
    Layer("inception.1x7", 192, 192, 17, 17, 1, 7, 1, 0, 3),
    square("convnext.depthwise", 1, 1, 56, 7, 1, 3, groups=96),
    square("fcn.conv6", 512, 4096, 22, 7),
    square("edsr.3x3", 256, 256, 48, 3, 1, 1),
    square("yolo.stride2", 32, 64, 416, 3, 2, 1),
    Layer("conv1d.wave", 1, 32, 160000, 1, 10, 1, 5),
)


def nest(layer: Layer, batch: int, phase: str) -> LoopNest:
    """The loop nest of one pass over a batch."""
    rows = layer.H, layer.KH, layer.stride, layer.pad_h, layer.dilation
    flat = layer.W == layer.KW == 1
    columns = layer.W, layer.KW, 1 if flat else layer.stride, layer.pad_w, layer.dilation
    windows, outs, taps = [], [], []
    for size, kernel, stride, pad, dilation in (rows, columns):
        reach = dilation * (kernel - 1) + 1
        out = (size + 2 * pad - reach) // stride + 1
        if phase == "forward":
            windows.append(Window(size, stride, dilation, pad, pad))
            outs.append(out)
            taps.append(kernel)
        elif phase == "backward-input":
            turned = reach - 1 - pad
            windows.append(Window(out, 1, dilation, turned, turned, stride))
            outs.append(size)
            taps.append(kernel)
        else:
            windows.append(Window(size, dilation, stride, pad, pad))
            outs.append(kernel)
            taps.append(out)
    n, m, c = {
        "forward": (batch, layer.M, layer.C),
        "backward-input": (batch, layer.C, layer.M),
        "backward-weight": (layer.C, layer.M, batch),
    }[phase]
    extent = Extents(n, m, c, outs[0], outs[1], taps[0], taps[1])
    tensors = {name.replace("_", "-"): own for name, own in TENSORS.items()}[phase]
    return LoopNest(extent, windows[0], windows[1], layer.groups, tensors)


def cases(
    every: int = 1, loops: Loops = "flattened"
) -> Iterator[tuple[dict[str, object], Problem]]:
    """Every case, or each `every`-th of them, with what it is called.

    Args:
        loops: which are one where nothing couples them.
    """
    all_of_them = list(product(LAYERS, BATCHES, PASSES, WIDTHS))
    for layer, batch, phase, bits in all_of_them[::every]:
        label = {"layer": layer.name, "batch": batch, "pass": phase}
        n = flattened(nest(layer, batch, phase), loops, touched=True)
        case = Problem(n.extent, n.height, n.width, bits, n.groups)
        yield label | {"bits": ",".join(map(str, bits))}, case
