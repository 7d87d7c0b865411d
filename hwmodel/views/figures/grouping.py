"""Layers put together for a figure: with the product before them, by block, by stage.

A table has names and no graph. A name with dots says where its layer stands, as PyTorch writes it:
`layer1.0.conv1.bn` is in the block `layer1.0` of the stage `layer1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hwmodel.model.ledger import Component
from hwmodel.views.figures.records import Record

__all__ = ["GROUPINGS", "layer_groups"]

# What a caption says of each, the finest first.
GROUPINGS = {
    "layer": "",
    "product": "; norms, activations and sums with the product before them",
    "block": "; by block",
    "stage": "; by stage",
}
_WRAPPERS = re.compile(r"^(?:(?:module|model|features|backbone|encoder)\.)+(?=.*\.)")


def layer_groups(records: Sequence[Record]) -> dict[str, dict[str, str]]:
    """Return for each of `GROUPINGS` the group of every layer, by the layer's name."""
    layers = list(dict.fromkeys(record["layer"] for record in records))
    products = {r["layer"] for r in records if r["component"] == Component.PRODUCT}
    heads: dict[str, str] = {}
    first = next((layer for layer in layers if layer in products), layers[0])
    head = first  # what comes before any product belongs to the first
    for layer in layers:
        head = layer if layer in products else head
        heads[layer] = head
    return {
        "layer": {layer: layer for layer in layers},
        "product": heads,
        "block": {layer: _block(heads[layer]) for layer in layers},
        "stage": {layer: _stage(heads[layer]) for layer in layers},
    }


def _block(name: str) -> str:
    """Return the block of a layer: its name up to the last number that is a step of its own.

    >>> _block("layer1.0.conv1"), _block("conv1"), _block("layer3.query"), _block("body.4.conv1")
    ('layer1.0', 'conv1', 'layer3', 'body.4')
    """
    steps = name.split(".")
    numbered = [i for i, step in enumerate(steps[:-1]) if re.search(r"\d$", step)]
    return ".".join(steps[: numbered[-1] + 1]) if numbered else ".".join(steps[:-1]) or name


def _stage(name: str) -> str:
    """Return the stage of a layer: the first step of its name that is not all there is.

    >>> _stage("layer1.0.conv1"), _stage("conv1"), _stage("model.layers.3.mlp.up")
    ('layer1', 'conv1', 'layers')
    """
    return _WRAPPERS.sub("", name).split(".")[0]
