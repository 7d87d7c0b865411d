"""The ledger: one entry for every read, every write and every kind of operation of a pass.

An entry says how much of one price is paid, and by which factors that came about. It holds no
price. So a ledger is counted once for a mapping, and is then worth

    energy = counts . prices                [chip's unit]
    energies of many chips = counts . matrix of prices
    energy's derivative by a price = the count itself

and what is printed, compared, swept or drawn is a group-by of the same entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import fsum
from operator import attrgetter
from typing import TYPE_CHECKING

from hwmodel.model.prices import ARRAY_CYCLE, CHIP_CYCLE, Key, Prices
from hwmodel.work.tensor import Bits, Direction, Factor, Pass, Role, product, whole_bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "NAME",
    "OPERATIONS",
    "PLACES",
    "STATIC",
    "Component",
    "Counts",
    "Entry",
    "Ledger",
    "Part",
    "place_of",
]

READ, WRITE, OPERATE = Direction.READ, Direction.WRITE, Direction.OPERATE
# The columns of the tidy table that name an entry; no two entries have one name.
NAME = ("layer", "pass", "component", "tensor", "role", "memory", "operation", "direction")


class Component(StrEnum):
    """Products, which are tiled, and elementwise work, which is not. Any pass may have both."""

    PRODUCT = "product"
    ELEMENTWISE = "elementwise"


class Part(StrEnum):
    """What energy is spent on: any two have nothing in common, and all sum to the whole."""

    COMPUTE = "compute"  # operations, and cycles of arrays
    MEMORY = "memory"  # reads, writes and hops
    STATIC = "static"  # cycles of the whole chip


# What stands in the place of a memory where none is asked; no name is like one of them.
OPERATIONS, ARRAYS, STATIC = "(operations)", "(cycles of arrays)", "(static energy)"
PLACES = OPERATIONS, ARRAYS, STATIC
_OF_CYCLES = {ARRAY_CYCLE: ARRAYS, CHIP_CYCLE: STATIC}


@dataclass(frozen=True, slots=True)
class Entry:
    """So many elements read or written, or so many operations: `count` times one price."""

    layer: str
    pass_: Pass  # the column `pass`; the word is Python's
    component: Component
    tensor: str  # in the source's letters: I, F, O, dI2
    role: Role
    key: Key  # of the price
    bits: Bits  # of one element, or of an operation's wider operand [bit]
    factors: tuple[Factor, ...]  # of the elements, or of the operations
    elements: int  # that are moved, or operations that are done: the product of the factors
    step: int = 0  # of the schedule
    stored: str = ""  # the tensor in memory, `names.Names`; "" for an operation

    @property
    def count(self) -> int:
        """The number by which the price is multiplied: bits moved, rounded up; or operations."""
        if self.key.direction == OPERATE:
            return self.elements
        return whole_bits(self.elements, self.bits)

    def again(self, times: tuple[Factor, ...]) -> Entry:
        """Return the entry as often as further factors say; without any, as it is."""
        if not times:
            return self
        factors = (*self.factors, *times)
        return replace(self, factors=factors, elements=self.elements * product(times))

    @property
    def way(self) -> Pass:
        """The pass, but that a second forward is a forward one."""
        return self.pass_.way

    @property
    def direction(self) -> Direction:
        """The direction: read, write or operate."""
        return self.key.direction

    @property
    def memory(self) -> str:
        """The memory that is asked; "" for an operation."""
        return "" if self.key.direction == OPERATE else self.key.name

    @property
    def operation(self) -> str:
        """The kind of operation; "" for a move."""
        return self.key.name if self.key.direction == OPERATE else ""

    @property
    def place(self) -> str:
        """Where its energy goes: a memory, or what stands in the place of one."""
        return self.memory or place_of(self.operation)

    @property
    def part(self) -> Part:
        """The part of the energy that it is of."""
        if self.memory:
            return Part.MEMORY
        return Part.STATIC if self.operation == CHIP_CYCLE else Part.COMPUTE

    @property
    def name(self) -> tuple[str, ...]:
        """The cells that tell it apart from all other entries: the columns `NAME`."""
        what = self.layer, self.pass_, self.component, self.tensor, self.role
        return *what, self.memory, self.operation, self.direction


def place_of(operation: str) -> str:
    """Return what stands in the place of a memory for a kind of operation."""
    return _OF_CYCLES.get(operation, OPERATIONS)


def entry(
    layer: str,
    pass_: Pass,
    component: Component,
    tensor: str,
    role: Role,
    key: Key,
    bits: Bits,
    factors: tuple[Factor, ...],
    step: int = 0,
    stored: str = "",
) -> Entry:
    """Make an entry; multiply its factors once."""
    what = layer, pass_, component, tensor, role, key, bits, factors
    return Entry(*what, product(factors), step, stored)


@dataclass(frozen=True)
class Counts:
    """Counts by group and by price: how often each price is paid, in whole numbers without end."""

    groups: dict[tuple[str, ...], dict[Key, int]]

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The prices that are paid, in order of appearance."""
        return tuple(dict.fromkeys(key for counts in self.groups.values() for key in counts))

    def energies(self, prices: Prices) -> dict[tuple[str, ...], float]:
        """Price the counts: return the energy of each group [chip's unit]."""
        paid = {key: prices.value(key) for key in self.keys}
        return {
            group: fsum(count * paid[key] for key, count in counts.items())
            for group, counts in self.groups.items()
        }

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The counts [group, key], to be multiplied by prices [key] or [key, point]."""
        import numpy as np

        rows = [[float(c.get(key, 0)) for key in self.keys] for c in self.groups.values()]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.keys))


@dataclass(frozen=True)
class Ledger:
    """The entries of a run, in the order in which the work is done."""

    entries: tuple[Entry, ...]

    def by(self, *columns: str) -> Counts:
        """Sum the counts of entries that agree in `columns`; without any, of all entries.

        The one sum of the house: every table, figure and comparison is one of these.

        Args:
            columns: of `NAME`, or any other attribute of an entry: `step`, `place`, `part`.
        """
        label = _label(columns)
        groups: dict[tuple[str, ...], dict[Key, int]] = {} if columns else {(): {}}
        for one in self.entries:
            counts = groups.setdefault(label(one), {})
            counts[one.key] = counts.get(one.key, 0) + one.count
        return Counts(groups)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The prices that are paid, in order of appearance."""
        return tuple(dict.fromkeys(one.key for one in self.entries))

    def where(self, chosen: Callable[[Entry], bool]) -> Ledger:
        """Return the entries for which `chosen` holds."""
        return Ledger(tuple(filter(chosen, self.entries)))


def _label(columns: Iterable[str]) -> Callable[[Entry], tuple[str, ...]]:
    fields = ["pass_" if column == "pass" else column for column in columns]
    if not fields:
        return lambda entry: ()
    if len(fields) == 1:
        one = attrgetter(fields[0])
        return lambda entry: (one(entry),)
    return attrgetter(*fields)
