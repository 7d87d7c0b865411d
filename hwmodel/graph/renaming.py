"""Layers under other names, as those of the rounds of a repeated list are."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodel.graph.layers import Layer

__all__ = ["BEFORE", "renamed"]

BEFORE = "before"  # what layers of a repeated list call what comes into their round


def renamed(layer: Layer, names: Mapping[str, str]) -> Layer:
    """Rename a layer and the layers that it refers to, where `names` knows them."""
    new = {"name": names.get(layer.name, layer.name)}
    inputs = layer.inputs and tuple(names.get(name, name) for name in layer.inputs)
    shares = layer.shares and names.get(layer.shares, layer.shares)
    return layer.model_copy(update={**new, "inputs": inputs, "shares": shares})
