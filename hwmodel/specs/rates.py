"""How fast a chip is, as its file states it: operations a cycle, and bytes a second of a memory."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from hwmodel.specs.files import Number, SpecModel
from hwmodel.specs.mistakes import Contradiction
from hwmodel.specs.stated import Bandwidth

__all__ = ["Rate", "Rated", "Rates"]


def _rates(value: Any) -> Any:
    """Widths in bit, written as text or as numbers."""
    if not isinstance(value, dict) or not value:
        raise ValueError("names no width; write rates as in {32: 5120, 16: 40960}")
    if any(not str(width).isdigit() or not 1 <= int(width) <= 64 for width in value):
        raise ValueError("widths are whole numbers of bits, from 1 to 64")
    return {int(width): rate for width, rate in value.items()}


Rate = Annotated[Number, Field(gt=0, le=1e15)]
Rates = Annotated[dict[int, Rate], BeforeValidator(_rates)]


class Rated(SpecModel):
    """The bandwidth of one memory: of one port for both ways, or of one for each."""

    bandwidth: Bandwidth | None = Field(default=None, description="of reads and writes together")
    read_bandwidth: Bandwidth | None = None
    write_bandwidth: Bandwidth | None = None

    @model_validator(mode="after")
    def _one_bandwidth(self) -> Rated:
        names = ["bandwidth", "read_bandwidth", "write_bandwidth"]
        given = [name for name in names if getattr(self, name) is not None]
        if given not in ([], names[:1], names[1:]):
            rule = "give bandwidth, of both ways together, or read_bandwidth with write_bandwidth"
            raise Contradiction(rule, given[0])
        return self

    @property
    def rates(self) -> tuple[float, float] | None:
        """Bandwidths of reading and of writing [B/s]; None where none is stated."""
        read, write = self.read_bandwidth or self.bandwidth, self.write_bandwidth or self.bandwidth
        return (read.value, write.value) if read and write else None
