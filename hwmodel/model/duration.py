"""The time of a run, step by step, between two bounds: all overlapped, and one after the other.

    T_mac = cycles of the MACs / clock                 T_l = bytes through memory l / bandwidth of l
    overlapped   T_s = max(T_mac, T_l over the memories that state a bandwidth)
                 and a whole cycle where that is less and not 0
    serial       T_s = T_mac + sum of T_l

Both are sums over the steps; nothing overlaps across steps. Operators have no MACs: their bytes
alone take time. Source: docs/model.md section 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from hwmodel.errors import SpecError
from hwmodel.model.ledger import Component, Entry
from hwmodel.model.prices import CHIP_CYCLE
from hwmodel.specs.hardware import Buffer, Hardware
from hwmodel.work.tensor import Direction

__all__ = [
    "FREE",
    "MACS",
    "UNTIMED",
    "Demand",
    "Duration",
    "StepTime",
    "demands",
    "duration",
    "idle",
]
__all__ += ["untimed"]

FREE = (  # said of times on a chip that is `idle`
    "The tilings are the cheapest, and time is free to them, for the chip states no static energy "
    "(static_power): others that cost little more may take a fraction of it"
)
MACS = "MACs"  # what bounds a step that no memory does
UNTIMED: dict[str, float | None] = dict.fromkeys(
    ("time_overlapped_s", "time_serial_s", "power_w", "edp_js")
)
READ, WRITE, OPERATE = Direction.READ, Direction.WRITE, Direction.OPERATE


class Demand(NamedTuple):
    """What one step asks a chip for."""

    read: dict[str, int]  # by memory [bit]
    written: dict[str, int]
    macs: dict[int, int]  # by the width of the wider operand [bit]
    logic: int  # Boolean operations of products
    cycles: int  # of the whole chip, where it has an array


class StepTime(NamedTuple):
    """The time of one step [s]."""

    step: int
    compute: float
    memories: dict[str, float]  # of those that state a bandwidth
    overlapped: float
    serial: float
    bound: str  # the memory that it waits for, or MACS


@dataclass(frozen=True)
class Duration:
    """The time of a run of so many images, and what follows from it."""

    steps: tuple[StepTime, ...]
    images: int
    dynamic: float | None  # energy without static energy [J]; None: the chip's unit is a MAC
    static_power: float  # [W]

    @property
    def overlapped(self) -> float:
        """The lower bound of the time [s]."""
        return fsum(step.overlapped for step in self.steps)

    @property
    def serial(self) -> float:
        """The time of one that overlaps nothing [s]."""
        return fsum(step.serial for step in self.steps)

    @property
    def busy(self) -> float:
        """The share of the overlapped time in which MACs work."""
        return fsum(step.compute for step in self.steps) / self.overlapped

    def energy(self, time: float) -> float | None:
        """Energy of the run if it takes `time` [s], static energy included [J]."""
        return None if self.dynamic is None else self.dynamic + self.static_power * time

    @property
    def power(self) -> float | None:
        """Energy over the overlapped time [W]: the most that it can be."""
        energy = self.energy(self.overlapped)
        return None if energy is None else energy / self.overlapped

    @property
    def cells(self) -> dict[str, float | None]:
        """The columns of tables: both times, and of the overlapped one power and energy x time."""
        time, energy = self.overlapped, self.energy(self.overlapped)
        edp = None if energy is None else energy * time
        return dict(zip(UNTIMED, (time, self.serial, self.power, edp), strict=True))

    @property
    def bounds(self) -> dict[str, float]:
        """The share of the overlapped time that steps wait for each memory, or for MACs."""
        found: dict[str, float] = {}
        for step in self.steps:
            found[step.bound] = found.get(step.bound, 0.0) + step.overlapped
        return {name: time / self.overlapped for name, time in found.items()}


def demands(entries: Iterable[Entry]) -> dict[int, Demand]:
    """Sum what each step asks for."""
    found: dict[int, Demand] = {}
    kinds: dict[int, dict[str, dict[int, int]]] = {}
    for one in entries:
        here = found.setdefault(one.step, Demand({}, {}, {}, 0, 0))
        if one.direction in (READ, WRITE):
            moved = here.read if one.direction == READ else here.written
            moved[one.memory] = moved.get(one.memory, 0) + one.count
        elif one.operation == CHIP_CYCLE:
            found[one.step] = here._replace(cycles=here.cycles + one.elements)
        elif one.direction == OPERATE and one.component == Component.PRODUCT:
            by_width = kinds.setdefault(one.step, {}).setdefault(one.operation, {})
            by_width[one.key.bits] = by_width.get(one.key.bits, 0) + one.elements
    for step, of in kinds.items():
        found[step] = found[step]._replace(macs=_macs(of), logic=sum(of.get("logic", {}).values()))
    return found


def _macs(kinds: Mapping[str, Mapping[int, int]]) -> dict[int, int]:
    """Count multiply-accumulates by width: an int-mul and its int-add are one; an addition is."""
    macs: dict[int, int] = {}
    for kind in ("mac", "int-mac", "int-mul", "add", "int-add"):
        if kind == "int-add" and "int-mul" in kinds:
            continue
        for bits, number in kinds.get(kind, {}).items():
            macs[bits] = macs.get(bits, 0) + number
    return macs


def duration(asked: Mapping[int, Demand], chip: Hardware, images: int, energy: float) -> Duration:
    """Return the time of a run on a chip.

    Args:
        asked: what each step asks for.
        images: in the run.
        energy: of the run; static energy of cycles in it is paid by the time instead [chip's unit].

    Raises: SpecError for a chip that does not state what a time needs.
    """
    if lacks := untimed(chip):
        raise SpecError(lacks)
    steps = tuple(_time(step, asks, chip) for step, asks in sorted(asked.items()))
    energy -= chip.static_energy * sum(asks.cycles for asks in asked.values())
    joules = energy * 1e-12 if chip.unit == "pJ" else None
    return Duration(steps, images, joules, chip.static_watts)


def untimed(chip: Hardware) -> str:
    """Say what a chip does not state that a time needs; "" for nothing."""
    lacks = [] if chip.clock else ["a clock"]
    if chip.array is None and not (chip.macs_per_cycle or chip.operations_per_cycle):
        lacks.append("macs_per_cycle or an array")
    if not any(memory.rates for memory in chip.levels[0].buffers):
        lacks.append(f"a bandwidth of {chip.levels[0].buffers[0].name}")
    *before, last = lacks or [""]
    listed = f"{', '.join(before)}, and {last}" if before else last
    return f"hardware {chip.name}: a time needs {listed}" if lacks else ""


def idle(chip: Hardware) -> bool:
    """Whether time is free on a chip with an array: its tilings are the cheapest, however slow."""
    return chip.array is not None and not chip.static_energy


def _time(step: int, asks: Demand, chip: Hardware) -> StepTime:
    compute = _compute(asks, chip)
    memories: dict[str, float] = {}
    serial, times = compute, {MACS: compute}
    several = 1
    for level in chip.levels:
        several *= level.instances
        for memory in level.buffers:
            if rates := memory.rates:
                ports = _ports(memory, rates, asks, several)
                memories[memory.name] = times[memory.name] = max(ports)
                serial += fsum(ports)
    bound = max(times, key=lambda name: times[name])
    assert chip.clock is not None
    least = 1 / chip.clock.hertz if times[bound] else 0.0
    overlapped, serial = max(times[bound], least), max(serial, least)
    return StepTime(step, compute, memories, overlapped, serial, bound)


def _ports(memory: Buffer, rates: Sequence[float], asks: Demand, several: int) -> list[float]:
    """The time of each port of a memory [s]: of one for both ways, or of one for each."""
    read, written = (moved.get(memory.name, 0) / 8 for moved in (asks.read, asks.written))
    if memory.bandwidth is not None:
        return [(read + written) / (rates[0] * several)]
    return [read / (rates[0] * several), written / (rates[1] * several)]


def _compute(asks: Demand, chip: Hardware) -> float:
    """The time of a step's operations [s]. Raises: SpecError for a width without a rate."""
    assert chip.clock is not None  # untimed saw to it
    if chip.array is not None:
        return asks.cycles / chip.clock.hertz
    cycles = 0.0
    rates = chip.macs_per_cycle or {}
    for bits, number in asks.macs.items():
        wide = min((width for width in rates if width >= bits), default=None)
        if wide is None:
            raise SpecError(
                f"hardware {chip.name}: macs_per_cycle has no rate for {bits}-bit products"
            )
        cycles += number / rates[wide]
    if asks.logic:
        logic = (chip.operations_per_cycle or {}).get("logic")
        if logic is None:
            raise SpecError(
                f"hardware {chip.name}: Boolean products need operations_per_cycle: {{logic: ...}}"
            )
        cycles += asks.logic / logic
    return cycles / chip.clock.hertz
