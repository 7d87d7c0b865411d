"""A sweep file: the fields that are varied, their values, and the constraints."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from hwmodel.specs import usual
from hwmodel.specs.files import Flag, NamedSpec, Number, SpecModel, Text, Whole

__all__ = ["Derived", "Sample", "SweepFile", "Times", "Value"]

MAX_VALUES = 10_000  # of one axis

# What a file may set a field to; a list is an argument of a network's family.
Value = Flag | Whole | Number | Text | tuple[Whole, ...] | None
Names = Text | Annotated[tuple[Text, ...], Field(min_length=1)]
Batch = Annotated[Whole, Field(ge=1, le=2**31)]
Mode = Literal["training", "inference"]


class Times(SpecModel):
    """Multiples of what each spec itself states."""

    times: tuple[Annotated[Number, Field(ge=0)], ...] = Field(min_length=1, max_length=MAX_VALUES)


Values = Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_VALUES)]


class Derived(SpecModel):
    """A field that follows another one of the same spec."""

    of: Text = Field(description="path of the field that it follows")
    times: Annotated[Number, Field(ge=0)] = 1


class Sample(SpecModel):
    """Points drawn from the grid, none of them twice."""

    points: Annotated[Whole, Field(ge=1, le=1_000_000)]  # which are held in memory
    seed: Annotated[Whole, Field(ge=0)]


class SweepFile(NamedSpec):
    """A grid of points, or a sample of it. See `docs/sweeps.md`."""

    KIND: ClassVar[str] = "sweep"
    FOLDER: ClassVar[str] = "sweeps"

    network: Names = Field(description="one name or file, or several")
    hardware: Names = Field(description="likewise")
    method: Names = Field(description="likewise")
    accounting: Names = Field(default=usual.OF_MANY, description="likewise")
    batch: Batch | Annotated[tuple[Batch, ...], Field(min_length=1)] = 1
    mode: Mode | Annotated[tuple[Mode, ...], Field(min_length=1)] = "training"
    baseline: Text | None = Field(
        default=None, description="method that is 100 % at every point; none: no such column"
    )
    axes: tuple[dict[Text, Values | Times], ...] = Field(
        default=(),
        description="each a field, or several that advance together: path -> its values",
    )
    derived: dict[Text, Derived] = Field(
        default={}, description="path -> the field that it follows, in the order of computing"
    )
    constraints: tuple[Text, ...] = Field(
        default=(), description="points that break one are left out: 'path <= path or value'"
    )
    sample: Sample | None = Field(default=None, description="none: every point of the grid")

    @model_validator(mode="after")
    def _advance_together(self) -> SweepFile:
        for number, axis in enumerate(self.axes, start=1):
            lengths = {
                path: len(values.times if isinstance(values, Times) else values)
                for path, values in axis.items()
            }
            if not lengths:
                raise ValueError(f"axes.{number} varies no field")
            if len(set(lengths.values())) > 1:
                stated = ", ".join(f"{path} has {n}" for path, n in lengths.items())
                raise ValueError(f"axes.{number}: fields of one axis advance together: {stated}")
        paths = [path for axis in self.axes for path in axis] + list(self.derived)
        twice = [path for path in paths if paths.count(path) > 1]
        if twice:
            raise ValueError(f"{twice[0]} is set in two places")
        return self
