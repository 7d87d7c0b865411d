"""Families of networks: each module has one function `network(...)` that wires its layers.

A new family is a module and an import here; `_wiring` is what families share and is none.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from hwmodel.graph.families import (  # noqa: F401
    alexnet,
    bert,
    birealnet,
    bnext,
    bool_resnet,
    convnet,
    convnext,
    deeplabv3,
    densenet,
    edsr,
    fcn32s,
    gpt2,
    llama,
    lstm_lm,
    mamba,
    meliusnet,
    mixtral,
    mlp,
    mobilenet,
    pokebnn,
    real2binary,
    resnet,
    swin,
    unet_block,
    vgg,
    vgg_small,
    vit,
)

__all__ = ["FAMILIES"]

FAMILIES: dict[str, Callable[..., Any]] = {
    name: module.network
    for name, module in [*globals().items()]
    if isinstance(module, ModuleType) and hasattr(module, "network")
}
