"""A chip: memories from the outermost inwards, and prices of operations.

Files state capacities, energies and efficiencies in the units of their source. The properties
here are in bits and in energy per bit, in the chip's own unit: pJ, or multiples of one MAC, whose
format is part of the unit's name: a 16-bit and a 32-bit MAC are two units.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from hwmodel.specs.arithmetic import Price, Reference
from hwmodel.specs.coding import RunLength
from hwmodel.specs.files import Flag, Label, Text, Whole
from hwmodel.specs.mistakes import Contradiction, refuse, together
from hwmodel.specs.plausible import doubt
from hwmodel.specs.quantity import normalised
from hwmodel.specs.rates import Rated
from hwmodel.specs.scaled import Leakage, ScaledEnergy, at_capacity
from hwmodel.specs.spread import Spread, check_spread, told_apart
from hwmodel.specs.stated import (
    MOST_BITS,
    AccessEfficiency,
    AccessEnergy,
    Energy,
    Size,
)
from hwmodel.specs.voltage import Supplied
from hwmodel.work.problem import OPERANDS, Operand
from hwmodel.work.tensor import KINDS, TensorKind

__all__ = ["Buffer", "Hardware", "Level", "Price", "Reference", "SplitLevel"]


# Operands of a loop nest; kinds of tensors at the outermost level, where letters are short forms.
Holding = Literal["I", "F", "O", "weights", "maps", "signals", "gradients", "state"]
_OF_I_AND_O = [kind for kind in KINDS if kind != TensorKind.WEIGHTS]
# What may lie at each place of a loop nest, over all layers and passes.
_AT: dict[Operand, tuple[TensorKind, ...]] = {
    "I": (TensorKind.MAPS, TensorKind.SIGNALS),
    "F": (TensorKind.WEIGHTS, TensorKind.MAPS, TensorKind.SIGNALS),
    "O": (TensorKind.MAPS, TensorKind.SIGNALS, TensorKind.GRADIENTS),
}


class Buffer(Rated, Spread):
    """One memory: a level of its own, or a part of a split level.

    The outermost level holds kinds of tensors, a level further in the operands of a loop nest.
    """

    # A memory of a file serves as `tiling.options.Memory`; what is passed by is told of runs alone.
    passed: ClassVar[bool] = False

    holds: tuple[Holding, ...] = Field(
        default=OPERANDS,
        min_length=1,
        description="I, F, O; at the outermost level kinds of tensors: weights, maps, signals, "
        "gradients, state, or F for weights and I, O for all others",
    )
    capacity: Size = Field(description="size with its unit, or 'unlimited'")
    access_energy: AccessEnergy | None = None
    efficiency: AccessEfficiency | None = None
    read_energy: AccessEnergy | None = None
    write_energy: AccessEnergy | None = None
    energy: ScaledEnergy | None = Field(
        default=None, description="in the place of the others: by the capacity, through points"
    )
    leakage: Leakage | None = Field(
        default=None,
        description="power of one such memory at rest, by its capacity; beside static_power, which "
        "is then of all the rest",
    )
    stays: Flag | None = Field(
        default=None,
        description="false: no tensor stays here from step to step, whatever the accounting",
    )
    on_chip: Flag | None = Field(
        default=None,
        description="whether the chip's voltage moves its prices; none: of all but the outermost "
        "memories",
    )
    coding: RunLength | None = Field(
        default=None,
        description="of maps that cross it, in words as wide as it states: zeros are told by their "
        "number; of shares of zeros that the network states or a trace measured",
    )
    source: Text

    @model_validator(mode="after")
    def _one_energy(self) -> Buffer:
        names = ("access_energy", "efficiency", "energy", "read_energy", "write_energy")
        given = [name for name in names if getattr(self, name) is not None]
        if given not in (*([name] for name in names[:3]), list(names[3:])):
            raise ValueError(
                "give one of access_energy, efficiency, energy, or read_energy with write_energy; "
                f"here: {', '.join(given) or 'none of them'}"
            )
        if self.energy is not None:
            try:
                self.energy.see(self.capacity)
            except ValueError as error:
                raise Contradiction(str(error), "energy") from None
            if self.energy.node is not None and "cacti" not in self.source.lower():
                raise Contradiction("a node has prices of CACTI's: name cacti as source", "source")
        if self.leakage is not None:
            try:
                self.leakage.see(self.capacity)
            except ValueError as error:
                raise Contradiction(str(error), "leakage") from None
        return self

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The memories of this level: itself."""
        return (self,)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands of a loop nest that it holds, below the outermost level."""
        return tuple(one for one in OPERANDS if one in self.holds)

    @property
    def kinds(self) -> tuple[TensorKind, ...]:
        """The kinds of tensors that it holds at the outermost level.

        The letter F is the weights, I and O together all others.
        """
        found = [TensorKind(one) for one in self.holds if one not in OPERANDS]
        found += [TensorKind.WEIGHTS] if "F" in self.holds else []
        found += _OF_I_AND_O if {"I", "O"} <= set(self.holds) else []
        return tuple(sorted(found, key=KINDS.index))

    @property
    def capacity_bits(self) -> int | None:
        """Capacity [bit]; None is unlimited."""
        return self.capacity

    @cached_property
    def energies(self) -> tuple[Energy, Energy]:
        """Energy of reading and of writing one bit."""
        if self.energy is not None and self.capacity is not None:
            read, write = (at_capacity(points, self.capacity) for points in self.energy.of)
            return read, write
        both = self.access_energy or self.efficiency
        each = self.read_energy or both, self.write_energy or both
        assert each[0] is not None and each[1] is not None  # _one_energy saw to it
        return each[0], each[1]

    @property
    def read_energy_per_bit(self) -> float:
        """Energy of reading one bit [chip's unit/bit]."""
        return self.energies[0].value

    @property
    def write_energy_per_bit(self) -> float:
        """Energy of writing one bit [chip's unit/bit]."""
        return self.energies[1].value


class SplitLevel(Spread):
    """A level of several memories: Ascend's L0-A, L0-B, L0-C; a controller's flash and SRAM."""

    level: Whole = Field(ge=0, le=15)
    split: tuple[Buffer, ...] = Field(min_length=2, max_length=len(KINDS))

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The memories of this level."""
        return self.split


def _level_tag(values: Any) -> str:
    split = "split" in values if isinstance(values, dict) else isinstance(values, SplitLevel)
    return "split-level" if split else "shared-level"


def _told_unit(unit: object) -> object:
    """Refuse other units of energy by saying where they may stand."""
    if isinstance(unit, str) and re.fullmatch(r"[afpnuµm]?J", unit) and unit != "pJ":
        raise ValueError(
            f"{unit!r}: must be 'pJ', in which energies are told, or 'MAC'; prices may be written "
            "in any: 1.5 nJ, 20 pJ/bit"
        )
    return unit


Level = Annotated[
    Annotated[Buffer, Tag("shared-level")] | Annotated[SplitLevel, Tag("split-level")],
    Discriminator(_level_tag),
]


class Hardware(Supplied):
    """Memories, outermost first, and arithmetic. Levels are numbered down to 0 without a gap."""

    KIND: ClassVar[str] = "hardware"
    FOLDER: ClassVar[str] = "hardware_specs"

    label: Label | None = None
    energy_unit: Annotated[Literal["pJ", "MAC"], BeforeValidator(_told_unit)]
    reference: Reference | None = Field(
        default=None,
        description="which operation is 1 MAC; by default the first mac or int-mac that costs 1",
    )
    levels: tuple[Level, ...] = Field(min_length=2, max_length=8)
    arithmetic: tuple[Price, ...] = Field(min_length=1)
    zeros: Literal["none", "operations", "operations-and-level-0"] = Field(
        default="none",
        description="what an input of a product saves that is 0, a spike that is not there among "
        "them: nothing; its operations; those, and reading the weights for them from level 0",
    )
    path_prices: Flag = Field(
        default=False,
        description="true: the price of a memory was measured with the whole path from it to the "
        "one below, so the memory that is asked pays for both sides of a transfer, under "
        "`transfers: both`, too",
    )
    notes: tuple[Text, ...] = Field(default=(), description="what is assumed, what it is good for")

    @model_validator(mode="after")
    def _coherent(self) -> Hardware:
        together(
            self._check_levels,
            lambda: check_spread(self.levels, self.array),
            self._check_static,
            self.check_voltage,
            self._check_units,
            lambda: refuse(self._wrong_prices()),
        )
        return self

    def _check_static(self) -> None:
        """See that there is a time by which static energy is paid."""
        leaking = next((at for b, at in self._placed() if b.leakage), None)
        self.check_time(leaking)
        outermost = self.levels[0].buffers
        if self.array is None and self.static_watts and not any(b.rates for b in outermost):
            rule = f"is an energy only with a bandwidth of {outermost[0].name}"
            raise Contradiction(rule, *((*leaking, "leakage") if leaking else ("static_power",)))

    def _wrong_prices(self) -> Iterator[Contradiction]:
        """Yield operations that are priced twice, and that none is a MAC."""
        if not any(price.operation == "mac" for price in self.arithmetic):
            yield Contradiction("has no price for a 'mac'", "arithmetic")
        known: set[tuple[str, int, str]] = set()
        for place, price in enumerate(self.arithmetic):
            if (price.operation, price.bits, price.pair) in known:
                again = f"prices a {price.bits}-bit {price.operation} a second time"
                yield Contradiction(again, "arithmetic", place)
            known.add((price.operation, price.bits, price.pair))

    def _check_levels(self) -> None:
        numbers = [level.level for level in self.levels]
        wanted = list(range(len(numbers) - 1, -1, -1))
        if numbers != wanted:
            top = max((n for n in numbers if n is not None), default=0)
            missing = sorted(set(range(top + 1)) - set(numbers), reverse=True)
            gap = f"level {missing[0]} is missing" if missing else "they must fall by one to 0"
            raise Contradiction(f"are numbered {numbers}, outermost first: {gap}", "levels")
        self._check_outermost()
        for place, level in enumerate(self.levels[1:], 1):
            held = sorted(operand for buffer in level.buffers for operand in buffer.holds)
            unknown = set(held) - set(OPERANDS)
            if unknown or len(set(held)) < len(held):
                rule = "each of I, F, O at most once"
                if unknown:
                    rule += "; the outermost level alone holds kinds of tensors"
                raise Contradiction(f"holds {', '.join(held)}; {rule}", "levels", place)
        names: set[str] = set()
        for buffer, at in self._placed():
            if buffer.name in names:
                raise Contradiction("a memory before it has the same name", *at)
            names.add(buffer.name)

    def _check_outermost(self) -> None:
        """See that each kind of tensor has one memory, and that no letter is ambiguous."""
        buffers = self.levels[0].buffers
        words = [word for buffer in buffers for word in buffer.holds]
        held = [kind for buffer in buffers for kind in buffer.kinds]
        alone = any(("I" in buffer.holds) != ("O" in buffer.holds) for buffer in buffers)
        if sorted(held) == sorted(KINDS) and len(set(words)) == len(words) and not alone:
            return
        rule = "each of I, F, O exactly once"
        if alone and sorted(words) == sorted(OPERANDS):
            rule = (
                "here, at the outermost level, an O of one layer is an I of the next: hold I and O "
                f"in one memory, or each of {', '.join(KINDS)} in one"
            )
        elif set(words) - set(OPERANDS):
            rule = f"each of {', '.join(KINDS)} exactly once"
            rule += " (F: weights; I and O, together: all others)"
        raise Contradiction(f"holds {', '.join(sorted(words))}; {rule}", "levels", 0)

    def _placed(self) -> list[tuple[Buffer, tuple[str | int, ...]]]:
        """Every memory and the way to it in the file."""
        return [
            (buffer, ("levels", i, *(("split", k) if len(level.buffers) > 1 else ())))
            for i, level in enumerate(self.levels)
            for k, buffer in enumerate(level.buffers)
        ]

    def _check_units(self) -> None:
        refuse(self._wrong_units())
        self._check_reference()

    def _wrong_units(self) -> Iterator[Contradiction]:
        stated = [(energy, at) for buffer, at in self._placed() for energy in buffer.energies]
        stated += [(price.stated, ("arithmetic", i)) for i, price in enumerate(self.arithmetic)]
        hops = [(level.hop_energy, ("levels", i)) for i, level in enumerate(self.levels)]
        stated += [(energy, (*at, "hop_energy")) for energy, at in hops if energy]
        stated += self.energies_of_time()
        other = [one for one in stated if one[0].unit not in (None, self.energy_unit)]
        if len(other) == sum(energy.unit is not None for energy, _ in stated):
            other = other[:1]  # it is energy_unit that is another
        for energy, at in dict.fromkeys(other):
            yield Contradiction(f"is in {energy.unit}, but energy_unit is {self.energy_unit}", *at)

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
        return [*found, *self._references(), *self.doubts_of_voltage()]

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
        found = []
        for x in OPERANDS:
            outermost = (self.keepers[kind] for kind in _AT[x])
            most = max(outermost, key=lambda b: b.capacity_bits or MOST_BITS)
            inside = (level[x] for level in self.holders[1:] if x in level)
            found += [(one, above) for above, one in pairwise((most, *inside))]
        return list(
            dict.fromkeys(
                f"{one.name}: is larger than {most.name}, the memory above it; no tile in it can be"
                for one, most in found
                if most.capacity_bits is not None
                and (one.capacity_bits is None or one.capacity_bits > most.capacity_bits)
            )
        )

    def _energies(self) -> list[str]:
        """List energies in pJ that are far from any memory or circuit: mistaken units, mostly."""
        if self.energy_unit != "pJ":
            return []
        found = [
            doubt(b.name + way, self._place_of(b, writes), e.value, "bit", e.unit is None)
            for b, _ in self._placed()
            for writes, e in enumerate(b.energies)
            for way in [f", {('read', 'written')[writes]}" * (len({*b.energies}) > 1)]
        ]
        for price in self.arithmetic:
            name, bare = f"{price.bits}-bit {price.operation}", price.stated.unit is None
            kind = "" if price.format else name
            found.append(doubt(name, kind, price.energy_per_operation, "operation", bare))
        return [one for one in dict.fromkeys(found) if one]

    def _place_of(self, memory: Buffer, writes: int) -> str:
        """What a memory is compared with, of `plausible.ranges`: a flash's writes with nothing."""
        if memory not in self.levels[0].buffers:
            return "memory on the chip"
        bounded = memory.capacity_bits is not None
        return "" if bounded or writes else "unlimited outermost memory"

    def holder(self, level: int, operand: Operand) -> Buffer:
        """Return the memory that holds `operand` at `levels[level]`, in a forward pass at 0.

        Raises: KeyError, where the operand passes the level by.
        """
        return self.holders[level][operand]

    @cached_property
    def holders(self) -> tuple[dict[Operand, Buffer], ...]:
        """The memories of every level by what they hold; of the outermost in a forward pass."""
        forward = {x: self.keepers[kinds[0]] for x, kinds in _AT.items()}
        inner = [{x: b for b in level.buffers for x in b.operands} for level in self.levels[1:]]
        return forward, *inner

    def memory(self, name: str) -> Buffer:
        """The memory of a name, which no two have."""
        return next(b for level in self.levels for b in level.buffers if b.name == name)

    def scale_of(self, memory: Buffer) -> float:
        """The factor of the voltage on a memory's prices: 1 for one that is on another chip."""
        return self.scale if self.voltage is not None and self.is_on_chip(memory) else 1.0

    def is_on_chip(self, memory: Buffer) -> bool:
        """Whether a memory is on the chip: as its file says, else all but the outermost are."""
        stated = memory.on_chip
        return memory not in self.levels[0].buffers if stated is None else stated

    @cached_property
    def leakage(self) -> float:
        """Power of all memories at rest, of which the file states it [W]."""
        watts, several = 0.0, 1
        for level in self.levels:
            several *= level.instances
            for one in level.buffers:
                if one.leakage and one.capacity is not None:
                    watts += several * one.leakage.watts(one.capacity)
        return watts

    @property
    def told_apart(self) -> set[str]:
        """Loops of which an axis of memories or MACs takes one alone."""
        axes = [x for one in self.levels if isinstance(one.fanout, dict) for x in one.fanout]
        return told_apart([*axes, *(self.array.axes if self.array else ())])

    @property
    def is_bounded(self) -> bool:
        """Whether an outermost memory has an end, so that a run may have no room."""
        return any(buffer.capacity_bits is not None for buffer in self.levels[0].buffers)

    @cached_property
    def keepers(self) -> dict[TensorKind, Buffer]:
        """The outermost memories by the kinds of tensors that they hold."""
        return {kind: b for b in self.levels[0].buffers for kind in b.kinds}

    def price(self, operation: str, bits: int) -> Price | None:
        """Return the stated price of an operation at a width, of no format, if there is one."""
        wanted = (operation, bits, "")
        return next((p for p in self.arithmetic if (p.operation, p.bits, p.pair) == wanted), None)
