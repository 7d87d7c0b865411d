"""Groups of a grouped convolution side by side, in memories of which there are several.

Groups share nothing. So where s of them lie side by side below a level, what each memory is asked
for stays as it is, and three things change: a memory further out holds the tiles of s groups at a
time; the instances that are spread over groups are not spread over other loops; and the groups take
ceil(g / s) rounds of time instead of g. A problem with groups side by side is therefore the problem
with groups one by one on a narrower chip.

An axis of M takes pieces of groups as it takes pieces of M: both are filters.

Source: ours; docs/chips.md, 'Groups'. Holds for: every tile, pass and chip.
"""

from __future__ import annotations

from itertools import product
from math import prod

from hwmodel.tiling.accesses import rounds
from hwmodel.tiling.options import Bound, Memories, MemoryLevel
from hwmodel.work.problem import Extents, Problem

__all__ = ["every", "few", "most_groups", "narrowed"]

Groups = tuple[int, ...]  # side by side, by boundary, the outermost first


def most_groups(problem: Problem, chip: Memories) -> Groups:
    """Return the most groups that may lie side by side; one where nothing takes time."""
    if chip.array is None:
        return (1,) * (len(chip.levels) - 1)
    return tuple(min(problem.groups, _places(level)) for level in chip.levels[1:])


def every(most: Groups) -> list[Groups]:
    """List all ways to lie side by side; one by one comes first."""
    return sorted(product(*(range(1, limit + 1) for limit in most)), key=prod)


def few(groups: int, most: Groups) -> list[Groups]:
    """List some of them: at a boundary one group, or as many as there are places or groups for."""
    found = set()
    for full in product((False, True), repeat=len(most)):
        left, ways = groups, []
        for limit, spread in zip(most, full, strict=True):
            ways.append(min(limit, left) if spread else 1)
            left = -(-left // ways[-1])
        found.add(tuple(ways))
    return sorted(found, key=lambda ways: (prod(ways), ways))


def _places(level: MemoryLevel) -> int:
    """How many groups may lie side by side at a level."""
    if level.axes is None:
        return level.fanout
    return max((bound.most for bound in level.axes if "M" in bound.loops), default=1)


def narrowed(problem: Problem, chip: Memories, groups: Groups) -> Memories:
    """Return what one group has of a chip, and pays for its time."""
    if prod(groups) == 1:
        return chip
    levels = [chip.levels[0]]
    for number, (level, side) in enumerate(zip(chip.levels[1:], groups, strict=True), 1):
        together = prod(groups[number:])
        buffers = tuple(
            memory._replace(capacity_bits=memory.capacity_bits // together)
            if memory.capacity_bits is not None
            else memory
            for memory in level.buffers
        )
        axes = tuple(
            Bound(bound.loops, bound.most // side) if "M" in bound.loops else bound
            for bound in level.axes or (Bound(Extents._fields, level.fanout),)
        )
        levels.append(level._replace(buffers=buffers, axes=axes))
    paid = chip.moment_energy * rounds(problem.groups, groups) / problem.groups
    return chip._replace(levels=tuple(levels), moment_energy=paid)
