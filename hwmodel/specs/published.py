"""Published figures: data to be set beside the model's results, never put into the model."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from hwmodel.errors import NameUnknown
from hwmodel.specs.arguments import expect
from hwmodel.specs.files import Name, NamedSpec, Number, SpecModel, Text, bundled_yaml, validate

__all__ = ["Figure", "PublishedTable", "accuracy_percent", "energy_percent", "published_table"]
__all__ += ["published_tables"]


class Figure(SpecModel):
    """A published result of one network under one method."""

    network: Name
    method: Name
    accuracy_percent: Number | None = None
    energy_percent: dict[Name, Number] = Field(default={}, description="of the baseline, by chip")


class Baseline(SpecModel):
    """The network and method that are 100 percent in a published table."""

    network: Name
    method: Name


class Remark(SpecModel):
    """The reason why figures of some methods on a chip do not come out."""

    hardware: Name
    methods: tuple[Name, ...]
    text: Text


class PublishedTable(SpecModel):
    """One table of a publication."""

    name: Name
    title: Text
    baseline: Baseline
    source: Text
    figures: tuple[Figure, ...]
    remarks: tuple[Remark, ...] = ()

    @property
    def chips(self) -> tuple[str, ...]:
        """Chips that the table has figures for."""
        return tuple(dict.fromkeys(chip for f in self.figures for chip in f.energy_percent))


class _Published(NamedSpec):
    KIND: ClassVar[str] = "table of published figures"
    FOLDER: ClassVar[str] = "."

    tables: tuple[PublishedTable, ...]


@cache
def published_tables() -> dict[str, PublishedTable]:
    """All tables by name."""
    path = Path(__file__).parent / "published.yaml"
    return {table.name: table for table in validate(_Published, bundled_yaml(path), path).tables}


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
                if (figure.network, figure.method) == (network, method):
                    return figure.energy_percent.get(hardware)
    return None


def accuracy_percent(network: str, method: str) -> float | None:
    """Return the published accuracy of a network under a method; None where there is none."""
    for table in published_tables().values():
        for figure in table.figures:
            if (figure.network, figure.method) == (network, method):
                return figure.accuracy_percent
    return None
