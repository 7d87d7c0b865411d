"""Kinds of layers; `Layer` is any of them, told apart by `kind`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args

from pydantic import Field

from hwmodel.errors import nearest
from hwmodel.graph.layers.attention import AttentionContext, AttentionScores, Rotary
from hwmodel.graph.layers.base import INPUT, BaseLayer, Shape
from hwmodel.graph.layers.elementwise import (
    Activation,
    Add,
    BatchNorm,
    Embedding,
    Function,
    LayerNorm,
    Multiply,
    RMSNorm,
    Scale,
)
from hwmodel.graph.layers.experts import Combine, Dispatch
from hwmodel.graph.layers.products import Conv, ConvTranspose, Linear
from hwmodel.graph.layers.recurrent import Recurrence, StepLinear
from hwmodel.graph.layers.reshaping import (
    AveragePool,
    Concat,
    Expand,
    GlobalAveragePool,
    MaxPool,
    PixelShuffle,
    PixelUnshuffle,
    Reshape,
    Slice,
    Source,
    Uncounted,
    Upsample,
)
from hwmodel.graph.layers.scan import Scan
from hwmodel.graph.layers.spiking import Spiking

__all__ = [
    "INPUT",
    "KINDS",
    "Activation",
    "Add",
    "AttentionContext",
    "AttentionScores",
    "AveragePool",
    "BaseLayer",
    "BatchNorm",
    "Combine",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Dispatch",
    "Embedding",
    "Expand",
    "GlobalAveragePool",
    "Layer",
    "LayerNorm",
    "Linear",
    "MaxPool",
    "Multiply",
    "PixelShuffle",
    "PixelUnshuffle",
    "RMSNorm",
    "Reshape",
    "Rotary",
    "Scale",
    "Scan",
    "Shape",
    "Slice",
    "Source",
    "Uncounted",
    "Upsample",
    "no_such_layer",
]

_Product = Conv | ConvTranspose | Linear | AttentionScores | AttentionContext
_Norm = BatchNorm | LayerNorm | RMSNorm
_Elementwise = Activation | Spiking | Add | Multiply | Scale | Embedding | Rotary
_Pool = MaxPool | AveragePool | GlobalAveragePool
_View = PixelShuffle | PixelUnshuffle | Upsample | Concat | Slice | Reshape | Expand

_Stepped = Recurrence | StepLinear
_Other = Source | Uncounted | Dispatch | Combine | Scan

Layer = Annotated[
    _Product | _Stepped | _Norm | _Elementwise | _Pool | _View | _Other, Field(discriminator="kind")
]
KINDS: dict[type[BaseLayer], str] = {
    kind: get_args(kind.model_fields["kind"].annotation)[0] for kind in get_args(get_args(Layer)[0])
}
_WORDS = {"kind": KINDS.values(), "feeds": KINDS.values(), "function": get_args(Function)}


def no_such_layer(asked: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each word of a rule's condition that is true of no layer."""
    for name, known in _WORDS.items():
        for word in asked.get(name) or ():
            if word not in known:
                what = "function" if name == "function" else "kind"
                yield f"no layer is of {what} {word!r}; {nearest(word, known)}"
