"""A training run: how many iterations of which batch, and what only the trainer needs beside."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hwmodel.errors import NameUnknown, SpecError
from hwmodel.specs.files import (
    Flag,
    Name,
    NamedSpec,
    Number,
    SpecModel,
    Whole,
    bundled,
    load,
)

__all__ = ["PJ_PER_KWH", "Recipe", "Training"]

PJ_PER_KWH = 3.6e18  # 1 kWh = 3.6e6 J

Rate = Annotated[Number, Field(gt=0)]


class Recipe(SpecModel):
    """How weights are moved; `hwmodel train` reads it, and no price depends on it.

    Rates are those of the first step. Where nothing is said all is as published; docs/trainer.md
    says which field is a variant of what.

    Source: BOLD (arXiv:2405.16339), appendix on experimental details.
    """

    boolean_rate: Rate = Field(default=12.0, description="eta of weights that flip, no batch norm")
    boolean_rate_with_batch_norm: Rate = Field(default=150.0, description="the same with them")
    adam_rate: Rate = Field(default=1e-3, description="of everything else that is learned")
    reweighting: Flag = Field(
        default=True, description="tanh' of the pre-activation on signals that pass a threshold"
    )
    scaling: Flag | None = Field(
        default=None,
        description="sqrt factors on signals sent upstream; none: where there is no batch norm, "
        "which divides the signal by the deviation of the sums and so does the same",
    )
    signal: Literal["real", "boolean"] = "real"
    logic: Literal["xnor", "xor"] = "xnor"
    outside: Literal["nothing", "true", "false"] = Field(
        default="nothing", description="what Boolean inputs are outside the image"
    )
    bias: Flag = Field(
        default=False, description="one more weight a Boolean neuron, which no price knows"
    )
    flip_threshold: Annotated[Number, Field(ge=0)] = Field(
        default=1.0,
        description="a weight flips where its accumulator times its sign is at least this; "
        "0: where the two agree at all",
    )
    beta: Literal["unchanged"] | Annotated[Number, Field(ge=0, le=1)] = Field(
        default="unchanged",
        description="what is kept of an accumulator from step to step: the share of the layer's "
        "weights that the last step left as they were, or a number",
    )
    reset: Literal["zero", "keep"] = Field(
        default="zero", description="what an accumulator is after a flip: 0, or what it was"
    )
    tau: Number = Field(default=0.0, description="threshold of activations, in units of +1 and -1")
    schedule: Literal["cosine", "linear", "constant"] = Field(
        default="cosine", description="of all rates, from the first step to the last"
    )
    networks: tuple[Name, ...] = Field(
        default=(), description="whose usual training it is, on so many images"
    )


class Training(NamedSpec):
    """Epochs over a data set, in batches; the last one may be smaller and counts as whole."""

    KIND: ClassVar[str] = "training"
    FOLDER: ClassVar[str] = "trainings"

    epochs: Whole = Field(ge=1, le=10**6)
    images: Whole = Field(ge=1, le=10**12)
    batch: Whole = Field(ge=1, le=2**31)
    after: Name | None = Field(
        default=None,
        description="a bundled training run whose weights this one starts from; its iterations are "
        "paid, too, as those of the network and method at hand",
    )
    recipe: Recipe = Recipe()

    def check_references(self) -> None:
        """See that the run before exists and ends somewhere. Raises: NameUnknown, SpecError."""
        self.stages()

    def stages(self) -> tuple[Training, ...]:
        """The runs one after another, this one last. Raises: NameUnknown, SpecError."""
        found: list[Training] = [self]
        while (before := found[0].after) is not None:
            if before in (one.name for one in found):
                raise SpecError(f"training {self.name}: {before} comes after itself")
            if before not in bundled(Training):
                raise NameUnknown(self.KIND, before, bundled(Training))
            found.insert(0, load(Training, before))
        return tuple(found)

    def iterations(self, batch: int) -> int:
        """Iterations of the whole run with batches of `batch` images, those before included."""
        return sum(one.epochs * -(-one.images // batch) for one in self.stages())
