"""Every choice of what is counted and how: what the source leaves open, as named fields.

The fields stand in four groups. A bundled file states them all; a user's file may name the bundled
one it is `based_on` and then states only what differs, so that it survives a field that is new.
`docs/model.md` says for each field what the alternatives do.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from hwmodel.errors import SpecWarning, nearest
from hwmodel.specs.files import (
    Flag,
    Name,
    NamedSpec,
    Number,
    SpecModel,
    Text,
    Whole,
    bundled,
    load,
)
from hwmodel.specs.mistakes import Contradiction, refuse, show
from hwmodel.work.flattening import Loops

__all__ = ["Accounting", "Counting", "Extras", "PriceRules", "RelativePrice", "WordWidths"]

Bits = Annotated[Whole, Field(ge=1, le=64)]


class RelativePrice(SpecModel):
    """What an operation costs on a chip that states no price of its own for it."""

    operation: Literal["mac", "int-mac", "add", "int-add"]
    bits: Bits
    macs: Number = Field(ge=0, le=1e6, description="multiples of the chip's full-precision MAC")
    source: Text


def _not_required(schema: dict[str, Any]) -> None:
    """Fields may be left to the accounting that a file is based on: `Accounting` requires them."""
    del schema["required"]


class _Group(SpecModel):
    model_config = ConfigDict(json_schema_extra=_not_required)


class Counting(_Group):
    """Tiles, accesses and operations of the products."""

    search: Literal["level-by-level", "optimal"] = Field(
        description="level-by-level: each level's cheapest tile in turn, from the top (greedy); "
        "optimal: the least memory energy over all levels at once, proved"
    )
    tile_sizes: Literal["quotients", "integers"] = Field(
        description="extents that the level-by-level search tries: ceil(D / k), k = 1 ... D, or "
        "every integer, as the source's algorithm; the optimal search has every integer",
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
    transfers: Literal["upper", "both"] = Field(
        default="upper",
        description="upper: the memory that is asked pays for a transfer; both: the lower memory "
        "pays, too, a write for what it is brought and a read for sums that it sends",
    )
    residency: Literal["none", "tensors"] = Field(
        default="none",
        description="tensors: whole tensors may stay on the chip between steps, in a memory that "
        "holds I, F and O and is one alone; those are chosen that save most",
    )
    loops: Loops = Field(
        default="apart",
        description="which loops are tiled as one where nothing couples them: apart, none; "
        "positions, N with HO and WO where there is one tap; reduction, C with HF and WF where "
        "there is one output; flattened, both (optimal search; not on a chip with an axis that "
        "takes one of these loops alone)",
    )
    rows: Literal["touched", "bounding"] = Field(
        description="rows and columns of ifmaps that no window touches: left out, or fetched"
    )
    padding: Literal["skipped", "counted"] = Field(description="zero padding as ifmap traffic")
    first_layer_input_gradient: Flag = Field(
        description="whether the first layer computes the gradient of the network's input"
    )
    boolean_price: Literal["share-of-mac", "adder"] = Field(
        description="share-of-mac: logic_price_macs for each XNOR with its share of the count; "
        "adder: the XNOR and 2n - 1 logic operations of the n-bit sum it is added to"
    )

    accumulation: Literal["operand-width", "fan-in"] = Field(
        default="fan-in",
        description="integer products: operand-width: one MAC or addition as wide as the wider "
        "operand; fan-in: a multiplication of both widths, and an addition as wide as its sum "
        "needs",
    )
    zero_signals: Literal["computed", "skipped"] = Field(
        default="computed",
        description="operations of the backward passes on signals that are 0, of the share that "
        "a trace measured: done like all others, or not at all; the zeros are moved",
    )
    masked_scores: Literal["computed", "skipped"] = Field(
        default="computed",
        description="pairs of a query and a key that a causal mask or a window hides: computed and "
        "moved like all others, or, as kernels that know the mask, not at all",
    )
    attention: Literal["separate", "fused", "cheaper"] = Field(
        default="separate",
        description="separate: scores and softmax are moved as what any layer gives; fused: they "
        "stay in a block of queries and keys, and are computed again on the way back; cheaper: of "
        "each block of attention the one that costs less on the chip",
    )


class WordWidths(_Group):
    """Widths that a method leaves to the accounting [bit]."""

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


class PriceRules(_Group):
    """What an operation costs where the chip does not say. No field moves a count or a tiling."""

    addition_price: Literal["operation-of-mac", "relative"] = Field(
        description="operation-of-mac: one of the operations that the chip's MAC consists of; "
        "relative: the chip's own price, else that of relative_prices"
    )
    logic_price_macs: Number | None = Field(
        ge=0, le=1, description="one Boolean operation [MAC]; none: the chip's own price, else "
        "1/63 of a 32-bit integer addition"
    )  # fmt: skip
    relative_prices: tuple[RelativePrice, ...]
    special_function_macs: Number = Field(
        ge=0, le=1000, description="an exponential, division or root [MAC]"
    )
    narrow_floats: Literal["refused", "expanded"] = Field(
        default="refused",
        description="products of floating-point formats that the chip does not price: refused, or "
        "done in the next wider multiply-add that has a price, to which both words are expanded",
    )


class Extras(_Group):
    """Work beside the products."""

    elementwise: Literal["preactivation-words", "streamed", "fused"] = Field(
        description="preactivation-words: DRAM words for each pre-activation that a method works "
        "on; streamed: every operator with its own reads, writes and operations; fused: an "
        "operator takes results of what is before it as they are made, and these move nowhere"
    )
    preactivation_words: Whole = Field(ge=0, le=16)
    stored_activations: Flag = Field(
        description="streamed: whether what the way back needs again is read (and, where no "
        "tensor holds it, was written)"
    )
    kept: Literal["minimal", "pytorch"] = Field(
        default="minimal",
        description="what lies in memory for the way back: minimal, what is read again; pytorch, "
        "of a max-pool its input and an index of 64 bit for each result, too",
    )
    optimizer: Literal["none", "sgd", "momentum", "adam"] = Field(
        description="update of full-precision and latent weights; a method may name its own, which "
        "holds unless this is none"
    )
    update_order: Literal["after-iteration", "as-gradients-finish", "fused"] = Field(
        default="after-iteration",
        description="when weights are stepped: all at the end; those of a layer as soon as its "
        "gradient is there, which changes what lives at one time; fused: each as its gradient is "
        "made, which then moves nowhere",
    )
    time_steps: Literal["inner", "outer"] = Field(
        default="inner",
        description="inner: all steps of a layer at once, so that weights are read once and "
        "membranes move nowhere; outer: all layers in each step",
    )
    accumulate: Whole = Field(
        default=1,
        ge=1,
        le=2**20,
        description="iterations of a batch whose gradients are added up for one update",
    )
    boolean_update: Flag = Field(description="whether Boolean weights pay for their update")
    accumulator_bits: Bits = Field(description="a Boolean weight's accumulator")
    flip_rate: Number = Field(
        ge=0, le=1, description="share of the Boolean weights that flip in an iteration"
    )
    teacher: Flag = Field(description="whether a distilling method pays for its teacher")


_GROUPS: dict[str, type[_Group]] = {
    "counting": Counting,
    "widths": WordWidths,
    "prices": PriceRules,
    "extras": Extras,
}
_OWN = ("version", "name", "title")  # what a file says of itself, whatever it is based on


def _required_of_a_whole_file(schema: dict[str, Any]) -> None:
    """Without `based_on`, everything is required."""
    required = [field for field in schema["required"] if field not in _OWN]
    schema["required"] = list(_OWN)
    schema["if"] = {"not": {"required": ["based_on"]}}
    inside = {name: {"required": list(group.model_fields)} for name, group in _GROUPS.items()}
    schema["then"] = {"required": required, "properties": inside}


class Accounting(NamedSpec):
    """How a report counts. See `docs/model.md` for the effect of each choice."""

    model_config = ConfigDict(json_schema_extra=_required_of_a_whole_file)

    KIND: ClassVar[str] = "accounting"
    FOLDER: ClassVar[str] = "accountings"

    based_on: Name | None = Field(
        default=None,
        exclude=True,  # a hash is of the values, wherever they are stated
        description="a bundled accounting, of which what is not stated here is taken",
    )
    baseline: Name = Field(description="method whose energy percentages refer to")
    counting: Counting = Field(description="tiles, accesses and operations of the products")
    widths: WordWidths = Field(description="widths that a method leaves to the accounting")
    prices: PriceRules = Field(description="what an operation costs where the chip does not say")
    extras: Extras = Field(description="work beside the products")
    published_run: Literal["one-image", "stated"] = Field(
        default="one-image",
        description="what reproduce takes unless a batch is asked for: one image of the bundled "
        "network's size, or batch and image size as the publication states them for the table",
    )
    not_counted: tuple[Text, ...] = Field(description="what every report under it leaves out")
    not_counted_in_training: tuple[Text, ...] = Field(
        default=(), description="what only a training iteration would have to pay"
    )

    @field_validator("baseline")
    @classmethod
    def _is_method(cls, name: str) -> str:
        from hwmodel.specs.method import Method  # accountings without methods are loaded, too

        if name not in (known := bundled(Method)):
            raise ValueError(f"{name!r}: no bundled method is called so; {nearest(name, known)}")
        return name

    @classmethod
    def as_now(cls, values: Any, path: Path) -> Any:
        """A file of before the groups, its fields put into them, and told so. For one release."""
        owners = {field: name for name, group in _GROUPS.items() for field in group.model_fields}
        if not isinstance(values, dict) or "based_on" in values or not owners.keys() & values:
            return values
        if any(isinstance(values.get(name), dict) for name in _GROUPS):
            return values
        from ruamel.yaml.comments import CommentedMap

        grouped: Any = CommentedMap()
        lines: Any = values  # read from YAML: each key with its line
        grouped.lc.line, grouped.lc.col = lines.lc.line, lines.lc.col
        for field, value in values.items():
            into, at = grouped, lines.lc.data[field]
            if field in owners:
                into = grouped.setdefault(owners[field], CommentedMap())
                if not into:
                    grouped.lc.add_kv_line_col(owners[field], at)
            into[field] = value
            into.lc.add_kv_line_col(field, at)
        if isinstance(grouped.get("counting"), dict):  # what no flat file had
            grouped["counting"]["tile_sizes"] = "quotients"
        warnings.warn(
            f"{path}: fields stand in groups now ({', '.join(_GROUPS)}), as 'hwmodel accounting "
            "show full' has them; the next version reads no others",
            SpecWarning,
            stacklevel=4,
        )
        return grouped

    @model_validator(mode="before")
    @classmethod
    def _based(cls, stated: Any) -> Any:
        """What is stated, over what the bundled accounting has that it is based on."""
        if not isinstance(stated, dict) or stated.get("based_on") is None:
            return stated
        name, known = stated["based_on"], bundled(cls)
        if not isinstance(name, str) or name not in known:
            raise Contradiction(
                f"{show(name)} is no bundled accounting; {nearest(name, known)}", "based_on"
            )
        base = load(cls, name)
        values = {field: value for field, value in base if field not in _OWN} | stated
        for group in ("sources", *_GROUPS):  # one level down, too
            if isinstance(stated.get(group), dict):
                values[group] = dict(getattr(base, group)) | stated[group]
        return values

    @model_validator(mode="after")
    def _coherent(self) -> Accounting:
        refuse(chain(self._wrong_counts(), self._wrong_residency(), self._wrong_fusion()))
        return self

    def _wrong_counts(self) -> Iterator[Contradiction]:
        """Yield choices of search and counts that do not go together."""
        chosen = self.counting
        if chosen.search == "optimal" and chosen.counting != "exact":
            yield self._refused(
                "optimal needs counting exact: it minimises exact counts", "search", "counting"
            )
        if chosen.counting == "paper" and (chosen.rows, chosen.padding) != ("bounding", "counted"):
            yield self._refused(
                "paper has rows bounding and padding counted, as its source",
                "counting", "rows", "padding",
            )  # fmt: skip
        if chosen.counting == "paper" and chosen.transfers == "both":
            yield self._refused(
                "paper counts what is asked of the upper memory alone", "transfers", "counting"
            )
        if chosen.counting == "paper" and chosen.attention != "separate":
            yield self._refused(f"{chosen.attention} needs counting exact", "attention", "counting")
        free = (chosen.stationary, chosen.weight_gradient) != ("filter", "signal-as-filters")
        if chosen.search == "level-by-level" and free:
            yield self._refused(
                "level-by-level is for stationary filter and weight_gradient signal-as-filters",
                "search", "stationary", "weight_gradient",
            )  # fmt: skip

    def _wrong_residency(self) -> Iterator[Contradiction]:
        """Yield why tensors cannot stay, beside counts that know no views."""
        if self.counting.residency == "none":
            return
        if self.counting.counting == "paper":
            yield self._refused("tensors needs counting exact", "residency", "counting")
        if self.counting.search == "level-by-level":
            yield self._refused("tensors needs search optimal", "residency", "search")

    def _wrong_fusion(self) -> Iterator[Contradiction]:
        """Yield why nothing can be fused: it is not counted."""
        for field in ("elementwise", "update_order"):
            if self.counting.counting == "paper" and getattr(self.extras, field) == "fused":
                rule = "fused needs counting exact: paper has no operators and no updates"
                yield Contradiction(rule, "extras", field)
        stepped = self.extras.optimizer != "none" and self.extras.boolean_update
        if self.extras.update_order == "fused" and not stepped:
            rule = "fused needs updates that are counted: optimizer and boolean_update"
            yield Contradiction(rule, "extras", "update_order")
        if self.extras.update_order == "fused" and self.extras.accumulate > 1:
            rule = "fused steps each weight as its gradient is made: accumulate has to be 1"
            yield Contradiction(rule, "extras", "update_order")

    def _refused(self, rule: str, *fields: str) -> Contradiction:
        """Say which fields of `counting` do not go together, at the first that the file states.

        What is taken over goes together in itself, so one of them is not.
        """
        at, taken = fields[0], ""
        if self.based_on:
            base = load(Accounting, self.based_on).counting
            own = [f for f in fields if getattr(base, f) != getattr(self.counting, f)]
            as_there = [f"{f} {getattr(base, f)}" for f in fields if f not in own]
            at = own[0]
            taken = f" ({', '.join(as_there)}: as in {self.based_on})" if as_there else ""
        return Contradiction(rule + taken, "counting", at)
