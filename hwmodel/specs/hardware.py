"""A chip: memories from the outermost inwards, and prices of operations.

Files state capacities, energies and efficiencies in the units of their source. The properties
here are in bits and in energy per bit, in the chip's own unit: pJ, or multiples of one MAC, whose
format is part of the unit's name: a 16-bit and a 32-bit MAC are two units.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from hwmodel.specs.files import SpecModel, Text, Whole
from hwmodel.specs.mistakes import Contradiction
from hwmodel.specs.quantity import normalised
from hwmodel.specs.spread import Spread, Timed, check_spread
from hwmodel.specs.stated import (
    AccessEfficiency,
    AccessEnergy,
    Energy,
    OperationEfficiency,
    OperationEnergy,
    Size,
)
from hwmodel.work.problem import OPERANDS, Operand

__all__ = ["Buffer", "Hardware", "Level", "Price", "Reference", "SplitLevel"]


# Between what is known of a bit in a register or a Boolean operation and one word over a network,
# with room on both sides [pJ].
PLAUSIBLE_PJ = 1e-4, 1e5


class Buffer(Spread):
    """One memory: a level of its own, or the part of a split level that holds some operands."""

    holds: tuple[Operand, ...] = Field(default=OPERANDS, min_length=1)
    capacity: Size = Field(description="size with its unit, or 'unlimited'")
    access_energy: AccessEnergy | None = None
    efficiency: AccessEfficiency | None = None
    read_energy: AccessEnergy | None = None
    write_energy: AccessEnergy | None = None
    source: Text

    @model_validator(mode="after")
    def _one_energy(self) -> Buffer:
        names = ("access_energy", "efficiency", "read_energy", "write_energy")
        given = [name for name in names if getattr(self, name) is not None]
        if given not in (["access_energy"], ["efficiency"], ["read_energy", "write_energy"]):
            raise ValueError(
                "give one of access_energy, efficiency, or read_energy with write_energy; "
                f"here: {', '.join(given) or 'none of them'}"
            )
        return self

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The memories of this level: itself."""
        return (self,)

    @property
    def capacity_bits(self) -> int | None:
        """Capacity [bit]; None is unlimited."""
        return self.capacity

    @cached_property
    def energies(self) -> tuple[Energy, Energy]:
        """Energy of reading and of writing one bit."""
        both = self.access_energy or self.efficiency
        read, write = self.read_energy or both, self.write_energy or both
        assert read is not None and write is not None  # _one_energy saw to it
        return read, write

    @property
    def read_energy_per_bit(self) -> float:
        """Energy of reading one bit [chip's unit/bit]."""
        return self.energies[0].value

    @property
    def write_energy_per_bit(self) -> float:
        """Energy of writing one bit [chip's unit/bit]."""
        return self.energies[1].value


class SplitLevel(Spread):
    """A level whose operands lie in memories of their own (Ascend's L0-A, L0-B, L0-C)."""

    level: Whole = Field(ge=0, le=15)
    split: tuple[Buffer, ...] = Field(min_length=2, max_length=3)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The memories of this level."""
        return self.split


def _level_tag(values: Any) -> str:
    split = "split" in values if isinstance(values, dict) else isinstance(values, SplitLevel)
    return "split-level" if split else "shared-level"


Level = Annotated[
    Annotated[Buffer, Tag("shared-level")] | Annotated[SplitLevel, Tag("split-level")],
    Discriminator(_level_tag),
]


class Price(SpecModel):
    """The energy of one operation on operands of `bits`."""

    operation: Literal["mac", "int-mac", "add", "int-add", "logic"]
    bits: Whole = Field(ge=1, le=128)
    operations: Whole = Field(
        default=1, ge=1, le=1024, description="operations in it, where per operation"
    )
    energy: OperationEnergy | None = None
    efficiency: OperationEfficiency | None = None
    source: Text

    @model_validator(mode="after")
    def _one_energy(self) -> Price:
        if (self.energy is None) == (self.efficiency is None):
            raise ValueError("give energy (of the whole) or efficiency (of one operation in it)")
        return self

    @property
    def stated(self) -> Energy:
        """The stated energy: of the whole, or of each of its `operations`."""
        stated = self.energy or self.efficiency
        assert stated is not None
        return stated

    @property
    def energy_per_operation(self) -> float:
        """Energy of the whole (of one MAC, one addition …) [chip's unit]."""
        return self.stated.value * (1 if self.energy else self.operations)


class Reference(SpecModel):
    """The multiply-accumulate that is 1 MAC on a chip whose costs are normalised."""

    operation: Literal["mac", "int-mac"] = Field(description="floating-point, or of integers")
    bits: Whole = Field(ge=1, le=128)


class Hardware(Timed):
    """Memories, outermost first, and arithmetic. Levels are numbered down to 0 without a gap."""

    KIND: ClassVar[str] = "hardware"
    FOLDER: ClassVar[str] = "hardware_specs"

    energy_unit: Literal["pJ", "MAC"]
    reference: Reference | None = Field(
        default=None,
        description="which operation is 1 MAC; by default the first mac or int-mac that costs 1",
    )
    levels: tuple[Level, ...] = Field(min_length=2, max_length=8)
    arithmetic: tuple[Price, ...] = Field(min_length=1)
    notes: tuple[Text, ...] = Field(default=(), description="what is assumed, what it is good for")

    @model_validator(mode="after")
    def _coherent(self) -> Hardware:
        self._check_levels()
        check_spread(self.levels, self.array)
        self.check_time()
        self._check_units()
        self._check_reference()
        if not any(price.operation == "mac" for price in self.arithmetic):
            raise Contradiction("has no price for a 'mac'", "arithmetic")
        known: set[tuple[str, int]] = set()
        for place, price in enumerate(self.arithmetic):
            if (price.operation, price.bits) in known:
                raise Contradiction(
                    f"prices a {price.bits}-bit {price.operation} a second time",
                    "arithmetic",
                    place,
                )
            known.add((price.operation, price.bits))
        return self

    def _check_levels(self) -> None:
        numbers = [level.level for level in self.levels]
        wanted = list(range(len(numbers) - 1, -1, -1))
        if numbers != wanted:
            top = max((n for n in numbers if n is not None), default=0)
            missing = sorted(set(range(top + 1)) - set(numbers), reverse=True)
            gap = f"level {missing[0]} is missing" if missing else "they must fall by one to 0"
            raise Contradiction(f"are numbered {numbers}, outermost first: {gap}", "levels")
        for place, level in enumerate(self.levels):
            held = sorted(operand for buffer in level.buffers for operand in buffer.holds)
            if held != sorted(OPERANDS) and (not place or len(set(held)) < len(held)):
                often = "at most once" if place else "exactly once"
                raise Contradiction(
                    f"holds {', '.join(held)}; each of I, F, O {often}", "levels", place
                )
        if any(buffer.capacity_bits is not None for buffer in self.levels[0].buffers):
            raise Contradiction("is the outermost; its capacity is 'unlimited'", "levels", 0)
        names: set[str] = set()
        for buffer, at in self._placed():
            if buffer.name in names:
                raise Contradiction("a memory before it has the same name", *at)
            names.add(buffer.name)

    def _placed(self) -> list[tuple[Buffer, tuple[str | int, ...]]]:
        """Every memory and the way to it in the file."""
        return [
            (buffer, ("levels", i, *(("split", k) if len(level.buffers) > 1 else ())))
            for i, level in enumerate(self.levels)
            for k, buffer in enumerate(level.buffers)
        ]

    def _check_units(self) -> None:
        stated = [(energy, at) for buffer, at in self._placed() for energy in buffer.energies]
        stated += [(price.stated, ("arithmetic", i)) for i, price in enumerate(self.arithmetic)]
        hops = [(level.hop_energy, ("levels", i)) for i, level in enumerate(self.levels)]
        stated += [(energy, (*at, "hop_energy")) for energy, at in hops if energy]
        for energy, at in (*stated, *self.energies_of_time()):
            if energy.unit not in (None, self.energy_unit):
                raise Contradiction(
                    f"is in {energy.unit}, but energy_unit is {self.energy_unit}", *at
                )

    def _check_reference(self) -> None:
        in_macs = self.energy_unit == "MAC"
        if self.reference and not in_macs:
            raise Contradiction("is for energy_unit MAC", "reference")
        if in_macs and self.reference is None and not self._ones():
            raise Contradiction(
                "no mac costs 1 MAC; say which is meant, as in reference: "
                "{operation: mac, bits: 32}",
                "arithmetic",
            )

    def _ones(self) -> list[Reference]:
        """List the multiply-accumulates that cost 1."""
        macs = [p for p in self.arithmetic if p.operation in ("mac", "int-mac")]
        return [
            Reference.model_validate({"operation": p.operation, "bits": p.bits})
            for p in macs
            if p.energy_per_operation == 1
        ]

    @cached_property
    def normalised_to(self) -> Reference | None:
        """The operation that is 1 MAC; None on a chip that states joules."""
        if self.energy_unit == "pJ":
            return None
        return self.reference or self._ones()[0]

    @property
    def unit(self) -> str:
        """Unit of the chip's energies: "pJ", or as in "MAC (fp32)", "MAC (int16)"."""
        one = self.normalised_to
        return normalised(one.operation, one.bits) if one else self.energy_unit

    def doubts(self) -> list[str]:
        """List what is possible but improbable.

        That is unnamed sources, sizes that fall outwards, energies far from any that is known,
        additions dearer than what they are part of, and a MAC of which it is not clear which it
        is.
        """
        found = [*super().doubts(), *self._sizes(), *self._energies(), *self._additions()]
        return [*found, *self._references()]

    def _additions(self) -> list[str]:
        """List additions dearer than the multiply-add of their width, of which they are a part."""
        pairs = {"add": "mac", "int-add": "int-mac"}
        found = [
            (part, whole)
            for part in self.arithmetic
            for whole in self.arithmetic
            if (pairs.get(part.operation), part.bits) == (whole.operation, whole.bits)
            and part.energy_per_operation > whole.energy_per_operation
        ]
        return [
            f"a {part.bits}-bit {part.operation} at {part.energy_per_operation:g} "
            f"{self.energy_unit} is dearer than the {whole.operation} of its width, of which it is "
            f"a part; it is priced at {whole.energy_per_operation:g}"
            for part, whole in found
        ]

    def _references(self) -> list[str]:
        """List what is doubtful in what 1 MAC is."""
        if self.energy_unit == "pJ":
            return []
        one, ones = self.normalised_to, self._ones()
        assert one is not None
        stated = self.price(one.operation, one.bits)
        if stated and stated.energy_per_operation != 1:
            price = f"{stated.energy_per_operation:g} MAC"
            return [f"reference: 1 MAC is a {one.bits}-bit {one.operation}, whose price is {price}"]
        if self.reference is None and len(ones) > 1:
            words = ", ".join(f"{x.bits}-bit {x.operation}" for x in ones)
            return [f"arithmetic: {words} cost 1 MAC each; {self.unit} is taken: state a reference"]
        return []

    def _sizes(self) -> list[str]:
        """List memories larger than the one above, which no tile can fill."""
        ways = [[level[x] for level in self.holders if x in level] for x in OPERANDS]
        pairs = {
            (inner.name, outer.name): (inner.capacity_bits, outer.capacity_bits)
            for way in ways
            for outer, inner in pairwise(way)
        }
        return [
            f"{name}: is larger than {above}, the memory above it; no tile in it can be"
            for (name, above), (bits, most) in pairs.items()
            if most is not None and (bits is None or bits > most)
        ]

    def _energies(self) -> list[str]:
        """List energies in pJ that are far from any memory or circuit: mistaken units, mostly."""
        if self.energy_unit != "pJ":
            return []
        stated = [(b.name, e, e.value, "bit") for b, _ in self._placed() for e in b.energies]
        stated += [
            (f"{p.bits}-bit {p.operation}", p.stated, p.energy_per_operation, "operation")
            for p in self.arithmetic
        ]
        least, most = PLAUSIBLE_PJ
        found = dict.fromkeys(
            f"{name}: {value:g} pJ per {per} is outside {least:g} to {most:g}; is the unit right?"
            + (f" A bare number is in pJ per {per}" if energy.unit is None else "")
            for name, energy, value, per in stated
            if value and not least <= value <= most
        )
        return list(found)

    def holder(self, level: int, operand: Operand) -> Buffer:
        """Return the memory that holds `operand` at `levels[level]` (0 is the outermost).

        Raises: KeyError, where the operand passes the level by.
        """
        return self.holders[level][operand]

    def memory(self, name: str) -> Buffer:
        """The memory of a name, which no two have."""
        return next(b for level in self.levels for b in level.buffers if b.name == name)

    @cached_property
    def holders(self) -> tuple[dict[Operand, Buffer], ...]:
        """The memories of every level by what they hold."""
        return tuple({x: b for b in level.buffers for x in b.holds} for level in self.levels)

    def price(self, operation: str, bits: int) -> Price | None:
        """Return the stated price of an operation at a width, if the file has one."""
        wanted = (operation, bits)
        return next((p for p in self.arithmetic if (p.operation, p.bits) == wanted), None)
