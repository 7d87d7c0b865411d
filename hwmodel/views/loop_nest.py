"""A tiling as its loop nest: level by level, the outermost first."""

from __future__ import annotations

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.tile import footprints
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
    times = f", {problem.groups:,} groups one by one" if problem.groups > 1 else ""
    lines = [f"{memories.levels[0].name}: all of {_shown(problem.extent)}{times}"]
    above, depth = problem.extent, 0
    for index, (tile, held) in enumerate(zip(mapping.tiles, mapping.held, strict=True), 1):
        for loop in _ORDER[held]:
            outer, inner = getattr(above, loop), getattr(tile, loop)
            if inner < outer:
                depth += 1
                lines.append(f"{'  ' * depth}for {loop} in blocks of {inner}:")
        depth += 1
        full = ", ".join(
            f"{room.memory} {100 * room.used / room.capacity:.1f} %"
            if room.capacity
            else f"{room.memory} unlimited"
            for room in footprints(problem, tile, memories, index, options, held)
        )
        lines.append(f"{'  ' * depth}{memories.levels[index].name}: {_shown(tile)}")
        lines[-1] += f"  # {held} held; {full} full"
        above = tile
    return "\n".join(lines)


def _shown(tile: Extents) -> str:
    return " ".join(f"{loop}={extent}" for loop, extent in tile._asdict().items())
