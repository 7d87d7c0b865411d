"""Every choice of what is counted and how: what the source leaves open, as named fields.

A preset is a YAML file. A field is read in exactly one place of the code; changing it changes
that one thing. `docs/model.md` says for each what the alternatives do.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from hwmodel.files import Flag, Name, NamedSpec, Number, Text, Whole

__all__ = ["Accounting"]


class Accounting(NamedSpec):
    """How a report counts. See `docs/model.md` for the effect of each choice."""

    KIND: ClassVar[str] = "accounting"
    FOLDER: ClassVar[str] = "accountings"

    baseline: Name = Field(description="method whose energy percentages refer to")
    search: Literal["level-by-level"] = Field(
        description="level-by-level: each level's cheapest tile in turn, from the top (greedy)"
    )
    counting: Literal["paper"] = Field(
        description="paper: the source's table, ceilings and ratios taken literally"
    )
    first_layer_input_gradient: Flag = Field(
        description="whether the first layer computes the gradient of the network's input"
    )
    full_precision_bits: Whole = Field(ge=1, le=64, description="a full-precision word")
    boolean_signal_bits: Whole = Field(
        ge=1, le=64, description="backward signal of Boolean training, as stored and moved"
    )
    boolean_vote_bits: Whole = Field(
        ge=1, le=64, description="a Boolean weight's vote, as written by the backward pass"
    )
    preactivation_bits: Whole = Field(
        ge=1, le=64, description="a pre-activation written before a full-precision batch norm"
    )
    partial_sum_bits: Whole = Field(ge=1, le=64, description="a sum that leaves unfinished")
    addition_price: Literal["operation-of-mac"] = Field(
        description="operation-of-mac: one of the operations that the chip's MAC consists of"
    )
    logic_price_macs: Number = Field(
        ge=0, le=1, description="one Boolean operation, XNOR with its share of counting [MAC]"
    )
    preactivation_words: Whole = Field(
        ge=0,
        le=16,
        description="DRAM words per pre-activation where a method adds full-precision work to it",
    )
    not_counted: tuple[Text, ...] = Field(description="what every report under it leaves out")
    not_counted_in_training: tuple[Text, ...] = Field(
        default=(), description="what only a training iteration would have to pay"
    )
