"""Families of networks: each module has one function `network(...)` that wires its layers.

A new family is a module and a line here; `_wiring` is what families share and is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hwmodel.graph.families import (
    alexnet,
    bert,
    birealnet,
    bnext,
    bool_resnet,
    convnet,
    deeplabv3,
    densenet,
    edsr,
    fcn32s,
    meliusnet,
    mlp,
    mobilenet,
    pokebnn,
    real2binary,
    resnet,
    vgg,
    vgg_small,
)

__all__ = ["FAMILIES"]

_MODULES = (
    alexnet,
    bert,
    birealnet,
    bnext,
    bool_resnet,
    convnet,
    deeplabv3,
    densenet,
    edsr,
    fcn32s,
    meliusnet,
    mlp,
    mobilenet,
    pokebnn,
    real2binary,
    resnet,
    vgg,
    vgg_small,
)
FAMILIES: dict[str, Callable[..., Any]] = {
    module.__name__.rpartition(".")[2]: module.network for module in _MODULES
}
