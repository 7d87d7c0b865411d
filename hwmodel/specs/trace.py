"""A trace: the measurements of a training run, which the energy model can read.

A trace names the run, the extents of every layer that computes sums, and what each of them did in
every epoch. It holds no date and nothing of the machine, so that equal runs give equal files; but
one that was recorded around another's loop (`hwmodel.record`) says how much slower that made it.

Version 2 has votes, and widths of sums of +1 and -1 in the representation of `sum_bits`; version 1
is read as a trace that lacks votes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from hwmodel.errors import DataError, SpecError
from hwmodel.specs.files import Flag, Name, Number, SpecModel, Text, Whole, validate, whole_file
from hwmodel.specs.inputs import MAX_JSON, read_text
from hwmodel.specs.limits import Limits
from hwmodel.specs.mistakes import Contradiction

__all__ = ["Epoch", "LayerEpoch", "LayerShape", "Magnitudes", "Range", "Recording", "Run"]
__all__ += ["Trace", "Way"]
__all__ += ["dumps", "loads", "named", "read_trace", "short_name", "steps_to", "sum_bits"]
__all__ += ["two_complement_bits", "which", "write_trace"]

VERSION = 2
OCTAVES = 16
HOLDS = 0.01  # relative rms error at which a width "holds the values"

MOST = 2**53  # up to which float64 holds whole numbers
LARGEST = 3.5e38  # above all of float32
SLACK = 1 + 1e-6  # that rounding may add

Count = Annotated[Whole, Field(ge=0, le=MOST)]
Extent = Annotated[Whole, Field(ge=1, le=MOST)]
Bits = Annotated[Whole, Field(ge=1, le=64)]
Share = Annotated[Number, Field(ge=0, le=1)]
Rate = Annotated[Number, Field(ge=0)]
Value = Annotated[Number, Field(ge=-LARGEST, le=LARGEST)]
Size = Annotated[Number, Field(ge=0, le=LARGEST)]
Way = Literal["crop", "flip"]  # in which training images are changed
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Recording(SpecModel):
    """How a run was recorded that is not one of `hwmodel train`."""

    recorded_by: Text
    every: Extent = Field(description="steps of which one is measured whole")
    steps_measured: Extent = Field(
        description="steps that all but ranges and flips, which are of every step, are of"
    )
    steps_left_out: Count = Field(
        default=0, description="steps that are not measured: their gradients were no numbers"
    )
    overhead: Annotated[Number, Field(ge=1)] = Field(
        description="time of the loop / the same without what the recorder's hooks took"
    )


class Run(SpecModel):
    """Everything on which a run's result depends; null is what a recorder cannot know."""

    tool: Text = Field(description="version of hwmodel")
    network: Name
    method: Name
    dataset: Name
    seed: Count | None
    epochs: Extent = Field(description="epochs planned; the schedule ends with them")
    batch: Extent = Field(description="images a step")
    train_images: Extent | None
    test_images: Extent | None
    validation_images: Count = Field(
        default=0, description="last images of the training part, on which nothing is trained"
    )
    learning_rate: Rate | None
    adam_rate: Rate | None
    frozen: Flag = Field(description="Boolean weights kept as drawn: the control")
    reweighting: Flag | None = Field(description="pre-activations are kept for the backward pass")
    scaling: Flag | None
    signal: Literal["real", "boolean"] | None
    logic: Literal["xnor", "xor"] | None
    signal_error: Annotated[Number, Field(gt=0, lt=1)] = Field(
        description="error at which widths are stated: rms of the rounding / rms of the values"
    )
    augment: tuple[Way, ...] = Field(
        default=(), description="how training images were changed at random"
    )
    network_digest: Digest | None = Field(description="SHA-256 of the network as validated")
    method_digest: Digest | None
    data_digest: Digest | None = Field(description="SHA-256 of the images and labels used")
    widths: Limits | None = Field(default=None, description="at which the run was held")
    training: Name | None = Field(default=None, description="none: a trace from before there were")
    training_digest: Digest | None = None
    recording: Recording | None = Field(default=None, description="null: trained by hwmodel")

    @model_validator(mode="after")
    def _known(self) -> Run:
        unknown = [x for x in UNRECORDED if getattr(self, x) is None] if not self.recording else []
        if unknown:
            raise Contradiction("is null, as of a recorded run alone", unknown[0])
        return self


# What a recorder around another's loop cannot know.
UNRECORDED = (
    "seed", "train_images", "test_images", "learning_rate", "adam_rate", "reweighting", "scaling",
    "signal", "logic", "network_digest", "method_digest", "data_digest",
)  # fmt: skip


class LayerShape(SpecModel):
    """A layer that computes sums: extents of its forward pass for one step [elements]."""

    name: Name
    kind: Literal["conv", "linear", "add"]
    weights: Literal["boolean", "binary", "real", "none"]
    N: Extent
    M: Extent
    C: Extent
    HO: Extent
    WO: Extent
    HF: Extent
    WF: Extent
    stride: Extent | tuple[Extent, Extent] = Field(description="rows, columns, if they differ")
    padding: Count | tuple[Count, Count, Count, Count] = Field(
        description="before rows and columns, then after them, if they differ"
    )
    dilation: Extent | tuple[Extent, Extent] = 1
    groups: Extent = 1
    fan_in: Extent = Field(description="terms of one sum: C HF WF / groups, and the bias")
    parameters: Count
    worst_sum_bits: Bits | None = Field(
        description="bits of any sum of fan_in values of +1 and -1; null where terms are others"
    )


class Range(SpecModel):
    """Pre-activations of an epoch, in units of +1 and -1 where the layer is Boolean."""

    lowest: Value
    highest: Value
    mean: Value
    deviation: Size

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.lowest > self.highest:
            raise Contradiction(f"{self.lowest:g} is above highest {self.highest:g}", "lowest")
        return self


class Magnitudes(SpecModel):
    """Sizes of a tensor's values, over every step of an epoch.

    Of a recorded run all but `largest` are of the steps that were measured.
    """

    largest: Size
    rms: Size = Field(description="root of the mean square")
    mean: Value | None = Field(default=None, description="null in older traces")
    zero_share: Share = Field(description="values that are exactly 0")
    bits: Bits = Field(description="smallest width that keeps the stated error in every step")
    holds_bits: Bits | None = Field(
        default=None, description="the same at 1 % error: holds the values; null in older traces"
    )
    rounded_zero_share: Share = Field(description="values that are 0 at that width")
    octaves: tuple[Share, ...] = Field(
        min_length=OCTAVES,
        max_length=OCTAVES,
        description="share of the nonzero values in [1/2, 1), [1/4, 1/2), … of the power of two "
        "above each step's largest; the last holds everything smaller",
    )

    @model_validator(mode="after")
    def _sizes_agree(self) -> Magnitudes:
        if self.rms > self.largest * SLACK:
            raise Contradiction(f"{self.rms:g} is above largest {self.largest:g}", "rms")
        return self


class LayerEpoch(SpecModel):
    """Flips, sums and signals of one layer in one epoch."""

    name: Name
    flip_rate: Share | None = Field(description="mean share of weights flipped in a step")
    input_zeros: Share | None = Field(
        default=None,
        description="share of what it reads that is 0; null where that is signs, and in older "
        "traces",
    )
    preactivation: Range
    sum_bits: Bits | None = Field(
        description="bits of the sums that occurred, without the lowest, which never changes; "
        "null where they are real"
    )
    signal: Magnitudes = Field(description="received: the loss's derivative by the sums")
    sent: Magnitudes | None = Field(description="sent upstream; null for the first layer")
    vote: Magnitudes | None = Field(
        default=None, description="votes on the Boolean weights, before the rate; null without any"
    )
    optimizer_state: Magnitudes | None = Field(
        description="the Boolean optimizer's accumulator; null without Boolean weights"
    )

    @model_validator(mode="after")
    def _sums_need_their_bits(self) -> LayerEpoch:
        low, high = self.preactivation.lowest, self.preactivation.highest
        needed = two_complement_bits(low, high)
        if self.sum_bits is not None and self.sum_bits > needed:
            raise Contradiction(
                f"{self.sum_bits} is more than sums from {low:g} to {high:g} need, {needed}",
                "sum_bits",
            )
        return self


class Epoch(SpecModel):
    """One pass over the training images and the test after it."""

    epoch: Extent
    steps: Extent = Field(description="steps since the start of the run")
    loss: Size = Field(description="mean cross-entropy of the training images [nat]")
    train_accuracy: Share | None
    accuracy: Share = Field(description="share of test images that are classified rightly")
    validation_accuracy: Share | None = Field(
        default=None, description="the same of the validation images; null without any"
    )
    layers: tuple[LayerEpoch, ...]


class Trace(SpecModel):
    """A run, its layers, and its epochs in order."""

    version: Annotated[Whole, Field(ge=VERSION, le=VERSION)] = VERSION
    run: Run
    layers: tuple[LayerShape, ...] = Field(min_length=1)
    epochs: tuple[Epoch, ...]

    @model_validator(mode="after")
    def _epochs_follow_one_another(self) -> Trace:
        names = [layer.name for layer in self.layers]
        if len(set(names)) < len(names):
            raise ValueError("two layers have one name")
        if len(self.epochs) > self.run.epochs:
            planned = f"{self.run.epochs} is fewer than the {len(self.epochs)} listed"
            raise Contradiction(planned, "run", "epochs")
        steps = 0
        for index, epoch in enumerate(self.epochs, start=1):
            if epoch.epoch != index or epoch.steps <= steps:
                raise ValueError(f"epoch {epoch.epoch} does not follow epoch {index - 1}")
            if [layer.name for layer in epoch.layers] != names:
                raise ValueError(f"epoch {index} has other layers than the trace")
            steps = epoch.steps
        self._see_held()
        return self

    def _see_held(self) -> None:
        """See that what holds values at a smaller error is no narrower."""
        if self.run.signal_error < HOLDS:
            return
        for i, epoch in enumerate(self.epochs):
            for j, layer in enumerate(epoch.layers):
                for what in ("signal", "sent", "vote", "optimizer_state"):
                    one = getattr(layer, what)
                    if one and one.holds_bits is not None and one.holds_bits < one.bits:
                        at = ("epochs", i, "layers", j, what, "holds_bits")
                        raise Contradiction(f"{one.holds_bits} is below bits {one.bits}", *at)

    def write(self, path: str | Path) -> None:
        """Write the trace as JSON, whole or not at all.

        Raises: HwmodelError where the place cannot be written.
        """
        with whole_file(Path(path)) as stream:
            stream.write(dumps(self))


def named(run: Run) -> str:
    """Name a run in a message."""
    control = ", Boolean weights frozen" if run.frozen else ""
    return f"{run.network} by {run.method}, {which(run)}{control}"


def which(run: Run) -> str:
    """Say which of the runs of a method it is."""
    return "recorded" if run.seed is None else f"seed {run.seed}"


def short_name(run: Run) -> str:
    """Name a run among the inputs of a table.

    Runs of one method differ in their seed.
    """
    return f"{run.method} {which(run)}"


def steps_to(trace: Trace, accuracy: float, sustain: int = 1) -> int | None:
    """Return the steps after which the validation accuracy first reached `accuracy`, if any.

    Args:
        accuracy: a share, stated before any run.
        sustain: evaluations in a row, of which the first counts, that must reach it. A first touch
            alone is an accident of the seed: it can reverse which of two methods is cheaper.

    Raises: DataError for a run without a validation split.
    """
    found = [epoch.validation_accuracy for epoch in trace.epochs]
    if None in found:
        raise DataError(
            f"the trace of {named(trace.run)} has no validation accuracy, and a target is never "
            "one of the test images; train with --validation 0.2"
        )
    reached = [share is not None and share >= accuracy for share in found]
    starts = range(len(reached) - sustain + 1)
    return next((trace.epochs[i].steps for i in starts if all(reached[i : i + sustain])), None)


def dumps(trace: Trace) -> str:
    """Return the text of a trace file, with each list of numbers on one line."""
    document = trace.model_dump(mode="json")
    head = json.dumps({k: document[k] for k in ("version", "run")}, indent=1, allow_nan=False)
    layers = ",\n  ".join(json.dumps(x, allow_nan=False) for x in document["layers"])
    epochs = ",\n  ".join(_epoch_text(x) for x in document["epochs"])
    return f'{head[:-2]},\n "layers": [\n  {layers}\n ],\n "epochs": [\n  {epochs}\n ]\n}}\n'


def _epoch_text(epoch: dict[str, Any]) -> str:
    layers = ",\n   ".join(json.dumps(x, allow_nan=False) for x in epoch.pop("layers"))
    return f'{json.dumps(epoch, allow_nan=False)[:-1]}, "layers": [\n   {layers}]}}'


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace as JSON, whole or not at all.

    Raises: HwmodelError where the place cannot be written.
    """
    trace.write(path)


def read_trace(path: Path) -> Trace:
    """Read the trace of a file.

    Raises: DataError, naming the file, the field and what is wrong with it.
    """
    return loads(read_text(path, MAX_JSON), path)


def loads(text: str, path: Path) -> Trace:
    """Read a trace from a text; messages name `path` as its file. Raises: DataError."""
    try:
        values = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}: is not a trace: {error.msg}"
        raise DataError(message) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not a trace: {error}") from None
    version = values.get("version") if isinstance(values, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise DataError(f"{path}: is a trace of version {version}; this hwmodel reads {VERSION}")
    if version == 1:
        try:
            _of_version_1(values)
        except (ArithmeticError, AttributeError, LookupError, TypeError):
            raise DataError(f"{path}: is a damaged trace of version 1; train anew") from None
    try:
        return validate(Trace, values, path)
    except SpecError as error:
        raise DataError(f"{error}; is it a trace?" if version is None else str(error)) from None


def _of_version_1(values: dict[str, Any]) -> None:
    """Turn a trace of version 1 into one without votes, with widths of sums as they are now."""
    for layer in values["layers"]:
        if layer.pop("worst_accumulator_bits") is None:
            layer["worst_sum_bits"] = None
        else:
            layer["worst_sum_bits"] = sum_bits(-layer["fan_in"], layer["fan_in"])
    for epoch in values["epochs"]:
        for layer in epoch["layers"]:
            sums = layer["preactivation"]
            whole = layer.pop("accumulator_bits") is not None
            layer["sum_bits"] = sum_bits(sums["lowest"], sums["highest"]) if whole else None
    values["version"] = VERSION


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no number a trace holds")


def sum_bits(lowest: float, highest: float) -> int:
    """Return the width that holds every sum s of +1 and -1 in a range [bit].

    Where s has m terms it is odd or even as m is, so that its lowest bit never changes and
    floor(s / 2) is all that is stored. Over the whole range -m to m that is the width of a count
    of Trues from 0 to m, which an accounting assumes.

    >>> [sum_bits(-m, m) == m.bit_length() for m in (1, 7, 8, 288)]
    [True, True, True, True]
    """
    return two_complement_bits(math.floor(lowest / 2), math.floor(highest / 2))


def two_complement_bits(lowest: float, highest: float) -> int:
    """Return the least width whose two's complement holds every integer in the range [bit].

    Partial sums may leave the range: two's complement wraps round and comes back.

    >>> two_complement_bits(-64, 63), two_complement_bits(-64, 64)
    (7, 8)
    """
    size = max(-math.floor(lowest), math.ceil(highest) + 1, 1)
    return (size - 1).bit_length() + 1
