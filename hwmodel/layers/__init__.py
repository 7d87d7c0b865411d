"""Kinds of layers; `Layer` is any of them, told apart by `kind`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hwmodel.layers.base import INPUT, PASSES, BaseLayer, Cost, LoopNest, Pass, Shape, Tensor
from hwmodel.layers.elementwise import (
    Activation,
    Add,
    BatchNorm,
    Embedding,
    LayerNorm,
    Multiply,
    Scale,
)
from hwmodel.layers.products import AttentionContext, AttentionScores, Conv, ConvTranspose, Linear
from hwmodel.layers.reshaping import (
    AveragePool,
    Concat,
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

__all__ = [
    "INPUT",
    "PASSES",
    "Activation",
    "Add",
    "AttentionContext",
    "AttentionScores",
    "AveragePool",
    "BaseLayer",
    "BatchNorm",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Cost",
    "Embedding",
    "GlobalAveragePool",
    "Layer",
    "LayerNorm",
    "Linear",
    "LoopNest",
    "MaxPool",
    "Multiply",
    "Pass",
    "PixelShuffle",
    "PixelUnshuffle",
    "Reshape",
    "Scale",
    "Shape",
    "Slice",
    "Source",
    "Tensor",
    "Uncounted",
    "Upsample",
]

_Product = Conv | ConvTranspose | Linear | AttentionScores | AttentionContext
_Elementwise = BatchNorm | LayerNorm | Activation | Add | Multiply | Scale | Embedding
_Pool = MaxPool | AveragePool | GlobalAveragePool
_View = PixelShuffle | PixelUnshuffle | Upsample | Concat | Slice | Reshape

_Other = Source | Uncounted

Layer = Annotated[_Product | _Elementwise | _Pool | _View | _Other, Field(discriminator="kind")]
