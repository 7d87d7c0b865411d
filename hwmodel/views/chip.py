"""A chip drawn as text: its levels, how many memories each has, the array, the operands' paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hwmodel.specs.hardware import Buffer, Hardware
from hwmodel.tiling.options import Memories, memories
from hwmodel.work.flattening import TOGETHER, spelled
from hwmodel.work.problem import OPERANDS

__all__ = ["drawing", "size"]

_UNITS = (("GiB", 8 * 2**30), ("MiB", 8 * 2**20), ("KiB", 8 * 2**10), ("B", 8), ("bit", 1))
_AS_ONE = "the innermost memories are read as by an unlimited broadcast; no array is stated"


def drawing(chip: Hardware) -> str:
    """Draw a chip, the outermost level first, each line as a comment of YAML."""
    return "\n".join(f"# {line}".rstrip() for line in _lines(chip))


def _lines(chip: Hardware) -> Iterator[str]:
    yield "The chip, outermost level first:"
    times = 1
    for depth, level in enumerate(chip.levels):
        times *= level.instances
        indent = "   " * depth
        yield f"{indent}{'|' if depth else ''}"
        yield f"{indent}+- {_level(level, times)}"
        for memory in level.buffers if level.buffers != (level,) else ():
            yield f"{indent}   |  {memory.name}: {_memory(memory, times)}"
        for line in _between(level, chip.unit):
            yield f"{indent}   |  {line}"
    indent = "   " * len(chip.levels)
    yield f"{indent}|"
    yield from (f"{indent}{line}" for line in _array(chip, times))
    if chip.voltage is not None:
        yield ""
        yield (
            f"Voltage: what is below {chip.levels[0].name} costs ({chip.voltage.ratio})^2 = "
            f"{chip.scale:.6g} of what the file states; {chip.levels[0].name} and static energy do "
            "not move"
        )
    yield ""
    yield from _paths(memories(chip))
    for name in sorted(chip.told_apart):
        yield ""
        loops = spelled(TOGETHER[name])
        yield f"{loops} are never one loop: an axis takes one of them alone (docs/tiling.md)"


def _level(level: Any, times: int) -> str:
    side = f"{level.instances:,} x " if level.instances > 1 else ""
    under = f" ({times:,} in all)" if times > level.instances > 1 else ""
    what = f": {_memory(level, times)}" if isinstance(level, Buffer) else ""
    return f"{side}{level.name}{under}{what}"


def _memory(memory: Buffer, times: int) -> str:
    """Its capacity, in all if there are several, and what it holds."""
    bits = memory.capacity_bits
    room = "unlimited" if bits is None else size(bits)
    if bits is not None and times > 1:
        room += f" each, {size(bits * times)} in all"
    return f"{room}; holds {', '.join(memory.holds)}"


def size(bits: int, digits: int = 6) -> str:
    """A size in the largest unit of which it is at least one."""
    unit, of = next((unit, of) for unit, of in _UNITS if bits >= of)
    return f"{bits / of:,.{digits}g} {unit}"


def _between(level: Any, unit: str) -> Iterator[str]:
    """How several memories of a level are served."""
    if level.instances == 1:
        return
    if isinstance(level.fanout, dict):
        axes = ", ".join(f"{axis} {size:,}" for axis, size in level.fanout.items())
        yield f"axes: {axes}"
    yield (
        "one read serves all that want an element"
        if level.multicast is not False
        else ("each is served by a read of its own")
    )
    yield (
        "their sums are added on the way up"
        if level.reduction is not False
        else ("their sums arrive one after the other")
    )
    if level.hop_energy is not None:
        yield f"hop: {level.hop_energy.value:.6g} {unit}/bit"


def _array(chip: Hardware, times: int) -> Iterator[str]:
    """The MACs under each innermost memory."""
    array = chip.array
    if array is None:
        yield f"+- MACs ({_AS_ONE})"
        return
    axes = ", ".join(f"{axis} {size:,}" for axis, size in array.axes.items()) or "none"
    number = "one MAC" if array.macs == 1 else f"{array.macs:,} MACs"
    yield f"+- {number} a memory, {array.macs * times:,} in all; side by side: {axes}"
    rests = "nothing" if array.holds == "none" else array.holds
    yield f"   {rests} rests in them from cycle to cycle"
    if array.operand_bits is not None:
        yield f"   narrower operands share lanes of {array.operand_bits} bit along C"
    if array.cycle_energy is not None:
        yield f"   a cycle of each array: {array.cycle_energy.value:.6g} {chip.unit}"
    if chip.static_energy:
        yield f"   static energy: {chip.static_energy:.6g} {chip.unit} a cycle of the chip"


def _paths(chip: Memories) -> Iterator[str]:
    """The memories through which each operand goes."""
    for x in OPERANDS:
        names = [chip.holder(i, x).name for i, level in enumerate(chip.levels) if level.holds(x)]
        way = " -> ".join([*names, "MACs"]) if x != "O" else " <- ".join([*names, "MACs"])
        yield f"{x}: {way}"
