"""An SRAM's energy and leakage by its capacity: points of its own kind, and lines between them.

Between two points both go with a power of the capacity, a straight line in log-log; outside them
the outermost power is carried on, by a factor of four at most.

Source: CACTI's results for 2 to 512 KiB at 45 nm (`docs/model.md`, section 5): from points at 8, 64
and 512 KiB the others come out within 13 %, from one power law within 21 %.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from hwmodel.specs import quantity
from hwmodel.specs.files import SpecModel
from hwmodel.specs.stated import AccessEnergy, Energy, StaticPower

__all__ = ["NODES", "Leakage", "Points", "ScaledEnergy", "at_capacity"]

BEYOND = 4  # times the outermost capacities, to which prices are carried on


def _points(value: Any) -> Any:
    """See that capacities rise. Raises: ValueError."""
    if not isinstance(value, dict) or len(value) < 2:
        raise ValueError("give two points or more, as in {8 KiB: 10 pJ/64bit, 1 MiB: 100 pJ/64bit}")
    return _rising(value)


def _powers(value: Any) -> Any:
    """See that capacities rise; one alone is of that capacity. Raises: ValueError."""
    if not isinstance(value, dict) or not value:
        raise ValueError("give a point or more, as in {64 KiB: 40 mW}")
    return _rising(value)


def _rising(value: dict[Any, Any]) -> dict[Any, Any]:
    sizes = [quantity.bits(str(size)) for size in value]
    for (text, size), before in zip(list(zip(value, sizes, strict=True))[1:], sizes, strict=False):
        if size <= before:
            raise ValueError(f"{text}: capacities must rise from point to point")
    if sizes[0] <= 0:
        raise ValueError("a capacity must be above 0")
    return value


def _schema(least: int, what: str) -> WithJsonSchema:
    values = {"type": ["string", "number"]}
    described = f"capacity -> {what}, in rising order"
    return WithJsonSchema(
        {
            "type": "object",
            "minProperties": least,
            "additionalProperties": values,
            "description": described,
        }
    )


Points = Annotated[dict[str, AccessEnergy], BeforeValidator(_points), _schema(2, "energy")]
Powers = Annotated[dict[str, StaticPower], BeforeValidator(_powers), _schema(1, "power")]


# Reads and writes of 64 bit [pJ], CACTI 7 (github.com/HewlettPackard/cacti @ 1ffd8df): scratch RAM,
# one read-write port, one bank, itrs-hp, 350 K, least dynamic power. A generator's estimate, not
# silicon. Other capacities of the table come out within 28 %; its writes fall from 64 to 128 KiB.
_SIZES = ("1 KiB", "8 KiB", "64 KiB", "512 KiB", "8 MiB")
_ACCESSES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "45nm": (
        (1.434, 5.288, 24.586, 45.888, 162.241),
        (2.906, 6.502, 20.281, 39.859, 160.006),
    ),
    "22nm": (
        (0.354, 1.504, 4.689, 12.562, 48.8),
        (0.757, 1.686, 4.013, 11.886, 47.491),
    ),
}
NODES: dict[str, tuple[dict[str, Energy], dict[str, Energy]]] = {
    node: (
        {size: Energy(pj / 64, "pJ") for size, pj in zip(_SIZES, reads, strict=True)},
        {size: Energy(pj / 64, "pJ") for size, pj in zip(_SIZES, writes, strict=True)},
    )
    for node, (reads, writes) in _ACCESSES.items()
}


class ScaledEnergy(SpecModel):
    """Energies of an access at several capacities; reading and writing together, or each."""

    scale: Literal["sram"]
    node: Literal["45nm", "22nm"] | None = Field(
        default=None,
        description="in the place of points of one's own: CACTI 7's for 64-bit words, one port and "
        "one bank; the memory's source must name cacti",
    )
    at: Points | None = None
    read: Points | None = None
    write: Points | None = None

    @model_validator(mode="after")
    def _coherent(self) -> ScaledEnergy:
        given = sum(one is not None for one in (self.node, self.at, self.read or self.write))
        if given != 1 or (self.read is None) != (self.write is None):
            raise ValueError("give points as at, or as read and write, or a node")
        for points in self.of:
            energies = list(points.values())
            for (size, energy), before in zip(list(points.items())[1:], energies, strict=False):
                if energy.value < before.value:
                    raise ValueError(f"{size}: its price is below that of a smaller capacity")
            units = {
                energy.unit for energy in energies if energy.unit
            }  # a bare number has the chip's
            for size, energy in points.items():
                if energy.unit and len(units) > 1 and energy.unit != _unit(points):
                    raise ValueError(f"{size}: its price is in another unit")
            if energies[0].value <= 0:
                raise ValueError("a price must be above 0: there is no line from 0 in log-log")
        return self

    @property
    def of(self) -> tuple[Points, Points]:
        """The points of reading and of writing."""
        if self.node is not None:
            return NODES[self.node]
        read, write = self.at or self.read, self.at or self.write
        assert read is not None and write is not None  # _coherent saw to it
        return read, write

    def see(self, capacity: int | None) -> None:
        """See that a capacity is near enough to the points [bit]. Raises: ValueError."""
        for points in self.of:
            _see(points, capacity)


class Leakage(SpecModel):
    """The power of an SRAM that does nothing, at one capacity or at several."""

    at: Powers

    @model_validator(mode="after")
    def _rises(self) -> Leakage:
        stated = list(self.at.items())
        for (size, power), (_, before) in zip(stated[1:], stated, strict=False):
            if power.watts < before.watts:
                raise ValueError(f"{size}: leaks less than a smaller capacity")
        return self

    def see(self, capacity: int | None) -> None:
        """See that a capacity is near enough to the points [bit]. Raises: ValueError."""
        if len(self.at) == 1 and capacity not in list(_sizes(self.at)):
            raise ValueError(
                f"has one point, which is of {next(iter(self.at))} alone; give two for others"
            )
        _see(self.at, capacity)

    def watts(self, capacity: int) -> float:
        """Return the power at a capacity [bit]."""
        powers = [power.watts for power in self.at.values()]
        return _on_line(list(_sizes(self.at)), powers, capacity)


def _see(points: Mapping[str, object], capacity: int | None) -> None:
    if capacity is None:
        raise ValueError("is scaled by the capacity, which is unlimited")
    sizes = list(_sizes(points))
    if not sizes[0] <= BEYOND * capacity or not capacity <= BEYOND * sizes[-1]:
        first, last = next(iter(points)), next(reversed(list(points)))
        raise ValueError(
            f"has points from {first} to {last}, which go for a quarter of the one to four "
            f"times the other; {capacity:,} bit is outside"
        )


def _sizes(points: Mapping[str, object]) -> Iterator[int]:
    return (quantity.bits(size) for size in points)


def _unit(points: Points) -> str | None:
    """The unit of all points; None, the chip's, where they are bare numbers."""
    return next((energy.unit for energy in points.values() if energy.unit), None)


def at_capacity(points: Points, capacity: int) -> Energy:
    """Return the energy per bit at a capacity [bit].

    Holds for: 64-bit accesses of 10, 20 and 100 pJ at 8 KiB, 32 KiB and 1 MiB: at 256 KiB
    20 pJ x 8^(log 5 / log 32) = 52.5 pJ.
    """
    energies = [energy.value for energy in points.values()]
    return Energy(_on_line(list(_sizes(points)), energies, capacity), _unit(points))


def _on_line(sizes: Sequence[int], values: Sequence[float], capacity: int) -> float:
    """Return the value at a capacity: as stated, or on the straight line in log-log."""
    if capacity in sizes:
        return values[sizes.index(capacity)]
    above = min(max(bisect_right(sizes, capacity), 1), len(sizes) - 1)
    (c1, c2), (e1, e2) = sizes[above - 1 : above + 1], values[above - 1 : above + 1]
    power = log(e2 / e1) / log(c2 / c1)
    return float(e1 * (capacity / c1) ** power)
