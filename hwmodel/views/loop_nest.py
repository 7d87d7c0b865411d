"""A tiling as its loop nest: level by level, the outermost first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import Memories, MemoryLevel, SearchOptions
from hwmodel.tiling.tile import Room, footprints
from hwmodel.work.problem import Extents, Operand, Problem

__all__ = ["loop_nest"]

# Loops over the blocks of a level, the outermost first, by the operand that is held.
_ORDER: dict[Operand, tuple[str, ...]] = {
    "F": ("C", "HF", "WF", "M", "N", "HO", "WO"),
    "I": ("C", "HF", "WF", "N", "HO", "WO", "M"),
    "O": ("M", "N", "HO", "WO", "C", "HF", "WF"),
}


def loop_nest(
    problem: Problem, mapping: Mapping, memories: Memories, options: SearchOptions
) -> str:
    """Write the loops as they run, one inside the other, with each level's tile and filling."""
    times = ""
    if problem.groups > 1:
        number = prod(mapping.groups)
        pace = f"{number:,} at a time" if number > 1 else "one by one"
        times = f", {problem.groups:,} groups {pace}"
    lines = [f"{memories.levels[0].name}: all of {_shown(problem.extent)}{times}"]
    above, depth = problem.extent, 0
    unions = mapping.unions or mapping.tiles
    parts = zip(unions, mapping.tiles, mapping.held, strict=True)
    for index, (union, tile, held) in enumerate(parts, 1):
        for loop in _ORDER[held]:
            if getattr(union, loop) < getattr(above, loop):
                depth += 1
                lines.append(f"{'  ' * depth}for {loop} in blocks of {getattr(union, loop)}:")
        side = _side_by_side(union, tile, mapping.groups[index - 1] if mapping.groups else 1)
        if side:
            depth += 1
            lines.append(f"{'  ' * depth}{side}")
        depth += 1
        rooms = footprints(problem, mapping, memories, index, options)
        lines.append(f"{'  ' * depth}{memories.levels[index].name}: {_shown(tile)}")
        lines[-1] += f"  # {'; '.join([f'{held} held', *_filled(rooms, memories.levels[index])])}"
        above = tile
    return "\n".join([*lines, *_cycles(above, mapping, memories, depth)])


def _filled(rooms: Sequence[Room], level: MemoryLevel) -> Iterator[str]:
    """Say how full memories are; what stays there as a whole has a memory without end (`view`)."""
    there = [memory for memory in level.buffers if not memory.passed]
    shares: list[str] = []
    endless: list[str] = []
    stays: dict[str, list[Operand]] = {}
    for room, memory in zip(rooms, there, strict=True):
        if room.capacity:
            shares.append(f"{room.memory} {100 * room.used / room.capacity:.1f} %")
        elif len(there) > 1 and len(memory.holds) == 1:
            stays.setdefault(room.memory, []).extend(memory.holds)
        else:
            endless.append(f"{room.memory} unlimited")
    if shares:
        yield f"{', '.join(shares)} full"
    yield from endless
    yield from (f"{', '.join(operands)} in {name} all the time" for name, operands in stays.items())


def _side_by_side(union: Extents, tile: Extents, groups: int) -> str:
    """Loops over which several memories are spread; "" where there is one."""
    pairs = zip(Extents._fields, union, tile, strict=True)
    pieces = [(loop, inner, -(-outer // inner)) for loop, outer, inner in pairs if inner < outer]
    pieces += [("g", 1, groups)] if groups > 1 else []
    times = prod(number for *_, number in pieces)
    spread = ", ".join(f"{loop} in blocks of {inner}" for loop, inner, _ in pieces)
    return f"parallel-for {spread}:  # {times:,} memories" if pieces else ""


def _cycles(tile: Extents, mapping: Mapping, memories: Memories, depth: int) -> list[str]:
    """What an array does: its cycles one after the other, and its MACs in one of them."""
    if mapping.cycle is None or memories.array is None:
        return []
    lines = []
    rests = memories.array.holds
    for loop in Extents._fields if rests == "none" else _ORDER[rests]:
        inner = getattr(mapping.cycle, loop)
        if inner < getattr(tile, loop):
            depth += 1
            lines.append(f"{'  ' * depth}for {loop} in blocks of {inner}:")
    resting = "nothing rests" if rests == "none" else f"{rests} rests"
    lines.append(f"{'  ' * (depth + 1)}a cycle: {_shown(mapping.cycle)}  # {resting} in the MACs")
    return lines


def _shown(tile: Extents) -> str:
    return " ".join(f"{loop}={extent}" for loop, extent in tile._asdict().items())
