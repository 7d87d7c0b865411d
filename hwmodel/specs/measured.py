"""What was measured on chips: data to be set beside the model's results.

`measured.yaml` has tables by name, each with its source, what is computed for it, and its rows.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from hwmodel.errors import NameUnknown
from hwmodel.specs.files import (
    Flag,
    Name,
    NamedSpec,
    Number,
    SpecModel,
    Text,
    Whole,
    bundled_spec,
)

__all__ = ["UNITS", "MeasuredTable", "Measurement", "Quantity", "Run", "measured_network"]
__all__ += ["measured_table", "measured_tables"]

Quantity = Literal[
    "energy", "rate", "bandwidth", "dram", "buffer", "time", "share", "levels"
]  # fmt: skip
# Units of published figures; {item} is the table's.
UNITS: dict[str, str] = {
    "energy": "J/{item}",
    "rate": "{item}s/s",
    "bandwidth": "GB/s",
    "dram": "MB",
    "buffer": "MB",
    "time": "ms",
    "share": "%",
    "levels": "10^9 MAC",
}


class Run(SpecModel):
    """What is computed for a row; what a row does not state is its table's."""

    network: Name | None = None
    hardware: Name | None = None
    method: Name | None = None
    batch: Whole | None = Field(default=None, ge=1, description="images")
    mode: Literal["training", "inference"] | None = None
    accounting: Name | None = None
    counting: dict[str, Any] = Field(default={}, description="changes of the accounting, by path")
    chip: dict[str, Any] = Field(default={}, description="changes of the chip, by path")

    def within(self, table: Run) -> Run:
        """The run of a row: what it states, and for the rest what its table states."""
        return table.model_copy(
            update={name: getattr(self, name) for name in self.model_fields_set}
        )


class Measurement(SpecModel):
    """Figures of one row, in the units of `UNITS`."""

    row: Text
    run: Run = Run()
    published: dict[Quantity, Number] = Field(min_length=1)
    rate: Number | None = Field(default=None, description="at which a bandwidth is needed [1/s]")
    active_pes: Whole | None = Field(default=None, description="MACs at work, as published")
    memory: Text | None = None
    direction: Literal["access", "hop"] | None = None
    calibration: Flag = Field(
        default=False,
        description="true: a constant of its chip is from this row, so it checks none",
    )
    why: Text | None = Field(default=None, description="known of its residual")


class MeasuredTable(SpecModel):
    """One set of measurements."""

    name: Name
    title: Text
    source: Text
    item: Name = Field(default="image", description="what an energy and a rate are of")
    run: Run
    left_out: tuple[Text, ...] = Field(min_length=1, description="what is measured and not counted")
    rows: tuple[Measurement, ...] = Field(min_length=1)


class _Measured(NamedSpec):
    KIND: ClassVar[str] = "table of measurements"
    FOLDER: ClassVar[str] = "."

    networks: dict[Name, dict[str, Any]]
    tables: tuple[MeasuredTable, ...]


@cache
def _measured() -> _Measured:
    path = Path(__file__).parent / "measured.yaml"
    return bundled_spec(_Measured, path)


def measured_tables() -> dict[str, MeasuredTable]:
    """All tables by name."""
    return {table.name: table for table in _measured().tables}


def measured_table(name: str) -> MeasuredTable:
    """One table. Raises: NameUnknown."""
    tables = measured_tables()
    if name not in tables:
        raise NameUnknown("table of measurements", name, tables)
    return tables[name]


def measured_network(name: str) -> dict[str, Any] | None:
    """The document of a network that measurements bring along; None for any other."""
    found = _measured().networks.get(name)
    return found and {"version": 1, "name": name, **found}
