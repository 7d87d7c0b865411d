"""Memories side by side and an array of MACs, as a chip's file states them.

Source: docs/chips.md, 'How a chip is described'.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from hwmodel.errors import nearest
from hwmodel.specs.files import Flag, Name, NamedSpec, SpecModel, Text, Whole
from hwmodel.specs.mistakes import Contradiction, show
from hwmodel.specs.rates import Rate, Rates
from hwmodel.specs.stated import AccessEnergy, Clock, Energy, OperationEnergy, StaticPower
from hwmodel.work.flattening import TOGETHER
from hwmodel.work.problem import Extents

__all__ = ["AXES", "ArraySpec", "Spread", "Timed", "check_spread", "told_apart"]

MOST = 2**31  # memories under one, or MACs along one axis
# Loops that lie along an axis together.
AXES: dict[str, tuple[str, ...]] = {
    **{loop: (loop,) for loop in Extents._fields},
    **TOGETHER,
}
_FIELDS = ("fanout", "multicast", "reduction", "hop_energy")


def _fanout(value: Any) -> int | dict[str, int]:
    """A number of memories, or sizes of axes. Raises: ValueError."""
    if isinstance(value, dict):
        for axis in value:
            if axis not in AXES:
                raise ValueError(f"{show(axis)} is no loop or axis; {nearest(str(axis), AXES)}")
        sizes = {axis: _number(size, f"{axis}: ") for axis, size in value.items()}
        if not sizes:
            raise ValueError("names no axis; write them as in {M: 12, positions: 14}, or a number")
        named_once(sizes)
        return sizes
    return _number(value, "")


def _number(value: Any, at: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise ValueError(f"{at}{show(value)} must be a whole number from 1 to {MOST}")
    return value


def named_once(axes: Sequence[str] | dict[str, int]) -> None:
    """See that no loop lies on two axes. Raises: ValueError."""
    of: dict[str, str] = {}
    for axis in axes:
        for loop in AXES[axis]:
            if loop in of:
                raise ValueError(f"names the loop {loop} twice, in {of[loop]} and in {axis}")
            of[loop] = axis


_SIZE = {"type": "integer", "minimum": 1, "maximum": MOST}
_AXIS_SIZES = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": dict.fromkeys(AXES, _SIZE),
}
Fanout = Annotated[
    int | dict[str, int],
    BeforeValidator(_fanout),
    WithJsonSchema({"anyOf": [_SIZE, _AXIS_SIZES]}),
]
Width = Annotated[Whole, Field(ge=1, le=MOST)]


def told_apart(axes: Collection[str]) -> set[str]:
    """Return loops that axes do not take together, so that none may stand for all of them."""
    return {name for name, loops in TOGETHER.items() if any(axis in loops for axis in axes)}


class Spread(SpecModel):
    """A level: its name, its number, and how many memories of it lie side by side."""

    name: Name
    level: Whole | None = Field(default=None, ge=0, le=15, description="0 is next to the MACs")
    fanout: Fanout | None = Field(
        default=None,
        description="memories of this level under each memory of the level above: a number, over "
        "which any loops are spread, or axes as in {M: 12, positions: 14}",
    )
    multicast: Flag | None = Field(
        default=None,
        description="true (default): one read of the level above serves all memories that want the "
        "element at a moment; false: each is served by a read of its own",
    )
    reduction: Flag | None = Field(
        default=None,
        description="true (default): sums of memories that share an output are added on their way "
        "up; false: they arrive one after the other",
    )
    hop_energy: AccessEnergy | None = Field(
        default=None,
        description="of a bit that is delivered to a memory, and of a bit of a sum that leaves one",
    )

    @property
    def instances(self) -> int:
        """Memories of this level under each memory of the level above."""
        if isinstance(self.fanout, dict):
            number = 1
            for size in self.fanout.values():
                number *= size
            return number
        return self.fanout or 1


class ArraySpec(SpecModel):
    """The MACs under each memory of level 0: how many work side by side in a cycle, and on what."""

    N: Width | None = None
    M: Width | None = None
    C: Width | None = None
    HO: Width | None = None
    WO: Width | None = None
    HF: Width | None = None
    WF: Width | None = None
    positions: Width | None = Field(default=None, description="N, HO and WO together")
    reduction: Width | None = Field(default=None, description="C, HF and WF together")
    holds: Literal["I", "F", "O", "none"] = Field(
        default="none",
        description="the operand that rests in registers of the MACs from cycle to cycle; O: "
        "accumulators; none: all move in every cycle",
    )
    operand_bits: Whole | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="of a lane of C, which narrower operands share",
    )
    cycle_energy: OperationEnergy | None = Field(
        default=None, description="of a cycle of each array, beside its MACs"
    )
    source: Text | None = None

    @property
    def axes(self) -> dict[str, int]:
        """MACs along the axes that are stated."""
        return {axis: size for axis in AXES if (size := getattr(self, axis)) is not None}

    @property
    def macs(self) -> int:
        """MACs under each memory of level 0, each with operands that fill its lane."""
        number = 1
        for size in self.axes.values():
            number *= size
        return number


class Timed(NamedSpec):
    """A chip's MACs, and what its time costs."""

    array: ArraySpec | None = Field(
        default=None, description="MACs under each memory of level 0; {}: one of them"
    )
    energy_unit: Literal["pJ", "MAC"]
    clock: Clock | None = None
    macs_per_cycle: Rates | None = Field(
        default=None,
        description="of the whole chip, by the width of the wider operand [bit], where it has no "
        "array; a width that is not stated takes the next wider",
    )
    operations_per_cycle: dict[Literal["logic"], Rate] | None = Field(
        default=None, description="Boolean operations of the whole chip"
    )
    static_power: StaticPower | None = Field(default=None, description="of the whole chip")
    static_energy_per_cycle: OperationEnergy | None = Field(
        default=None, description="of the whole chip, in the place of static_power with clock"
    )

    def check_time(self, leaking: tuple[str | int, ...] | None) -> None:
        """See that static energy can be told: by the cycles of an array, in the chip's unit.

        Args:
            leaking: the way to a memory that states its leakage, if one does.
        """
        stated = [x for x in ("static_power", "static_energy_per_cycle") if getattr(self, x)]
        if len(stated) > 1:
            raise Contradiction("is the same as static_energy_per_cycle; give one", "static_power")
        if leaking:
            self._check_leakage((*leaking, "leakage"))
        if self.array is not None and self.macs_per_cycle:
            raise Contradiction("is what the array says already", "macs_per_cycle")
        timed = stated == ["static_power"] and bool(self.macs_per_cycle)
        if stated and self.array is None and not timed:
            rule = "is paid in each cycle of an array; state one ('array: {}' is one MAC)"
            raise Contradiction(rule, stated[0])
        if self.static_power and self.energy_unit != "pJ":
            rule = f"is in W, but energy_unit is {self.energy_unit}; give static_energy_per_cycle"
            raise Contradiction(rule, "static_power")
        if self.static_power and self.clock is None:
            raise Contradiction("is an energy only with a clock, as in '1530 MHz'", "static_power")

    def _check_leakage(self, way: tuple[str | int, ...]) -> None:
        """See that leakage has a time. Raises: Contradiction."""
        if self.energy_unit != "pJ":
            raise Contradiction(f"is in W, but energy_unit is {self.energy_unit}", *way)
        if self.static_energy_per_cycle:
            raise Contradiction("is in static_energy_per_cycle; give static_power beside it", *way)
        if self.clock is None or (self.array is None and not self.macs_per_cycle):
            rule = "is an energy only with a clock, and an array or macs_per_cycle"
            raise Contradiction(rule, *way)

    @property
    def leakage(self) -> float:
        """Power of all memories at rest, of which the file states it [W]."""
        return 0.0

    @property
    def static_watts(self) -> float:
        """Static power of the whole chip, leakage of its memories with it [W]."""
        return (self.static_power.watts if self.static_power else 0.0) + self.leakage

    @property
    def static_energy(self) -> float:
        """Static energy of a cycle of the whole chip [chip's unit]; 0 where none is stated."""
        if self.clock and self.static_watts:
            return self.static_watts / self.clock.hertz * 1e12
        return self.static_energy_per_cycle.value if self.static_energy_per_cycle else 0.0

    def energies_of_time(self) -> Iterator[tuple[Energy, tuple[str, ...]]]:
        """Yield the energies of a cycle that are stated, each with its way in the file."""
        if self.array is not None and self.array.cycle_energy is not None:
            yield self.array.cycle_energy, ("array", "cycle_energy")
        if self.static_energy_per_cycle is not None:
            yield self.static_energy_per_cycle, ("static_energy_per_cycle",)


def check_spread(levels: Sequence[Any], array: ArraySpec | None) -> None:
    """See that fields of memories side by side stand where they mean something.

    Args:
        levels: of `Hardware`, the outermost first.

    Raises: Contradiction.
    """
    for place, level in enumerate(levels):
        stated = [field for field in _FIELDS if getattr(level, field) is not None]
        if stated and not place:
            raise Contradiction(
                "the outermost level is there once; fanout and what goes with it belong to levels "
                "below it", "levels", place, stated[0],
            )  # fmt: skip
        if stated and level.fanout is None:
            raise Contradiction(
                "says how memories side by side are served; state their fanout, too",
                "levels", place, stated[0],
            )  # fmt: skip
        if level.buffers != (level,):
            _check_members(level, place)
    if array is not None:
        try:
            named_once(array.axes)
        except ValueError as error:
            raise Contradiction(str(error), "array") from None


def _check_members(level: Any, place: int) -> None:
    for k, member in enumerate(level.split):
        for field in _FIELDS:
            if getattr(member, field) is not None:
                raise Contradiction(
                    f"belongs to the level {level.name}, not to one memory of its split",
                    "levels", place, "split", k, field,
                )  # fmt: skip
