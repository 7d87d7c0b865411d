"""Every choice of what is counted and how: what the source leaves open, as named fields.

A preset is a YAML file. A field is read in exactly one place of the code; changing it changes
that one thing. `docs/model.md` says for each what the alternatives do.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from hwmodel.specs.files import Flag, Name, NamedSpec, Number, SpecModel, Text, Whole
from hwmodel.specs.mistakes import Contradiction

__all__ = ["Accounting", "RelativePrice"]

Bits = Annotated[Whole, Field(ge=1, le=64)]


class RelativePrice(SpecModel):
    """What an operation costs on a chip that states no price of its own for it."""

    operation: Literal["mac", "int-mac", "add", "int-add"]
    bits: Bits
    macs: Number = Field(ge=0, le=1e6, description="multiples of the chip's full-precision MAC")
    source: Text


class Accounting(NamedSpec):
    """How a report counts. See `docs/model.md` for the effect of each choice."""

    KIND: ClassVar[str] = "accounting"
    FOLDER: ClassVar[str] = "accountings"

    baseline: Name = Field(description="method whose energy percentages refer to")
    # Tiles and accesses
    search: Literal["level-by-level", "optimal"] = Field(
        description="level-by-level: each level's cheapest tile in turn, from the top (greedy); "
        "optimal: the least memory energy over all levels at once, proved"
    )
    stationary: Literal["filter", "best"] = Field(
        description="filter: filters are held while ifmaps stream past, at every boundary; "
        "best: filters, ifmaps or ofmaps, whichever is cheapest at each (optimal search)"
    )
    weight_gradient: Literal["signal-as-filters", "best-of-two-roles"] = Field(
        description="what is held in backward_weight under stationary filter: the signal, which "
        "has the filters' role, or the better of signal and ifmaps (optimal search)"
    )
    counting: Literal["paper", "exact"] = Field(
        description="paper: the source's table, ceilings and ratios taken literally; exact: the "
        "real nested pieces, every transfer of a sum at every level"
    )
    rows: Literal["touched", "bounding"] = Field(
        description="rows and columns of ifmaps that no window touches: left out, or fetched"
    )
    padding: Literal["skipped", "counted"] = Field(description="zero padding as ifmap traffic")
    first_layer_input_gradient: Flag = Field(
        description="whether the first layer computes the gradient of the network's input"
    )
    # Widths that a method leaves to the accounting
    full_precision_bits: Bits = Field(description="a full-precision word")
    preactivation_bits: Bits = Field(
        description="a pre-activation written before a full-precision batch norm"
    )
    partial_sum_bits: Bits = Field(description="a sum that leaves unfinished")
    boolean_signal_bits: Bits = Field(
        description="backward signal of Boolean training, as stored and moved"
    )
    boolean_vote_bits: Bits = Field(
        description="a Boolean weight's vote, as written by the backward pass"
    )
    boolean_sum_bits: Bits | Literal["fan-in"] = Field(
        description="a Boolean sum that no threshold follows; fan-in: as wide as its terms need"
    )
    border_bits: Bits = Field(
        description="what the full-precision first layer of a Boolean network writes"
    )
    # Prices
    addition_price: Literal["operation-of-mac", "relative"] = Field(
        description="operation-of-mac: one of the operations that the chip's MAC consists of; "
        "relative: the chip's own price, else that of relative_prices"
    )
    boolean_price: Literal["share-of-mac", "adder"] = Field(
        description="share-of-mac: logic_price_macs for each XNOR with its share of the count; "
        "adder: the XNOR and 2n - 1 logic operations of the n-bit sum it is added to"
    )
    logic_price_macs: Number | None = Field(
        ge=0, le=1, description="one Boolean operation [MAC]; none: the chip's own price, else "
        "1/63 of a 32-bit integer addition"
    )  # fmt: skip
    relative_prices: tuple[RelativePrice, ...]
    special_function_macs: Number = Field(
        ge=0, le=1000, description="an exponential, division or root [MAC]"
    )
    # Work beside the products
    elementwise: Literal["preactivation-words", "streamed"] = Field(
        description="preactivation-words: DRAM words for each pre-activation that a method works "
        "on; streamed: every operator with its own reads, writes and operations"
    )
    preactivation_words: Whole = Field(ge=0, le=16)
    stored_activations: Flag = Field(
        description="streamed: whether what the way back needs again is read (and, where no "
        "tensor holds it, was written)"
    )
    optimizer: Literal["none", "sgd", "momentum", "adam"] = Field(
        description="update of full-precision and latent weights"
    )
    boolean_update: Flag = Field(description="whether Boolean weights pay for their update")
    accumulator_bits: Bits = Field(description="a Boolean weight's accumulator")
    flip_rate: Number = Field(
        ge=0, le=1, description="share of the Boolean weights that flip in an iteration"
    )
    teacher: Flag = Field(description="whether a distilling method pays for its teacher")
    not_counted: tuple[Text, ...] = Field(description="what every report under it leaves out")
    not_counted_in_training: tuple[Text, ...] = Field(
        default=(), description="what only a training iteration would have to pay"
    )

    @model_validator(mode="after")
    def _coherent(self) -> Accounting:
        if self.search == "optimal" and self.counting != "exact":
            raise Contradiction("optimal needs counting exact: it minimises exact counts", "search")
        if self.counting == "paper" and (self.rows, self.padding) != ("bounding", "counted"):
            raise Contradiction(
                "paper has rows bounding and padding counted, as its source", "counting"
            )
        free = (self.stationary, self.weight_gradient) != ("filter", "signal-as-filters")
        if self.search == "level-by-level" and free:
            raise Contradiction(
                "level-by-level is for stationary filter and weight_gradient signal-as-filters",
                "search",
            )
        return self
