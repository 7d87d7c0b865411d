"""Published figures: data to be set beside the model's results, never put into the model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from hwmodel.errors import NameUnknown
from hwmodel.specs.arguments import expect
from hwmodel.specs.files import (
    Name,
    NamedSpec,
    Number,
    SpecModel,
    Text,
    Whole,
    bundled_spec,
)

__all__ = ["Figure", "PublishedTable", "accuracy_percent", "energy_percent", "published_table"]
__all__ += ["published_tables"]


class Figure(SpecModel):
    """A published result of one network under one method."""

    network: Name | None = None
    method: Name | None = Field(default=None, description="none: it has no model here")
    title: Text | None = Field(default=None, description="what it is, where no network says so")
    ref: Name | None = Field(default=None, description="by which other rows refer to it")
    starts_from: Name | None = Field(default=None, description="row whose weights it starts from")
    training: Name | None = Field(default=None, description="its run, where not the table's")
    modality: Text | None = Field(default=None, description="how it is trained, as published")
    bits: Text | None = Field(
        default=None, pattern=r"^\d+/\d+/\d+$", description="of weights/activations/gradients"
    )
    scores: dict[Name, Number] = Field(min_length=1, description="by test set, in the table's unit")
    energy_percent: dict[Name, Number] = Field(default={}, description="of the baseline, by chip")
    why: Text | None = Field(default=None, description="there is no model of it")

    @model_validator(mode="after")
    def _has_a_model_or_a_reason(self) -> Figure:
        modelled = self.network is not None and self.method is not None
        if modelled == (self.why is not None):
            raise ValueError("has a network and a method, or says why it has no model")
        if self.network is None and self.title is None:
            raise ValueError("has neither a network nor a title")
        return self

    @property
    def modelled(self) -> tuple[str, str] | None:
        """The network and method; None where there is no model of them."""
        return (self.network, self.method) if self.network and self.method else None


class Baseline(SpecModel):
    """The network and method that are 100 percent in a published table."""

    network: Name
    method: Name


class StatedRun(SpecModel):
    """What the publication states of the iterations behind a table; what it does not, is none."""

    training: Name | None = Field(default=None, description="the training run")
    image: tuple[Whole, Whole] | None = Field(default=None, description="rows, columns")
    batch: Whole | None = Field(default=None, ge=1, description="images of an iteration")


class PublishedTable(SpecModel):
    """One table of a publication."""

    name: Name
    title: Text
    figure: Whole | None = Field(default=None, description="the publication's figure of it")
    metric: Text
    unit: Literal["%", "dB"]
    baseline: Baseline
    source: Text
    run: StatedRun
    figures: tuple[Figure, ...]

    @property
    def chips(self) -> tuple[str, ...]:
        """Chips that the table has energies for; without any, those of the tables that have."""
        own = _chips((self,))
        return own or _chips(published_tables().values())

    @property
    def modelled(self) -> tuple[tuple[str, str], ...]:
        """Networks and methods of its rows that have a model, each pair once."""
        return tuple(dict.fromkeys(f.modelled for f in self.figures if f.modelled))


def _chips(tables: Iterable[PublishedTable]) -> tuple[str, ...]:
    """Chips that some figure of the tables has an energy on."""
    found = [chip for table in tables for f in table.figures for chip in f.energy_percent]
    return tuple(dict.fromkeys(found))


class _Published(NamedSpec):
    KIND: ClassVar[str] = "table of published figures"
    FOLDER: ClassVar[str] = "."

    tables: tuple[PublishedTable, ...]


@cache
def published_tables() -> dict[str, PublishedTable]:
    """All tables by name."""
    path = Path(__file__).parent / "published.yaml"
    return {table.name: table for table in bundled_spec(_Published, path).tables}


def published_table(name: str) -> PublishedTable:
    """One table. Raises: NameUnknown."""
    expect(str, "table", name, "the name of a published table")
    tables = published_tables()
    if name not in tables:
        raise NameUnknown("published table", name, tables)
    return tables[name]


def energy_percent(network: str, method: str, hardware: str, baseline: str) -> float | None:
    """Published energy of a network, in percent of the same network under the method `baseline`."""
    for table in published_tables().values():
        if table.baseline == Baseline(network=network, method=baseline):
            for figure in table.figures:
                if figure.modelled == (network, method):
                    return figure.energy_percent.get(hardware)
    return None


def accuracy_percent(network: str, method: str) -> float | None:
    """Return the published accuracy of a network under a method; None where there is none.

    It is the first in the order of the tables, of those with one score in percent.
    """
    for table in published_tables().values():
        for figure in table.figures:
            if figure.modelled == (network, method) and len(figure.scores) == 1:
                (score,) = figure.scores.values()
                return score if table.unit == "%" else None
    return None
