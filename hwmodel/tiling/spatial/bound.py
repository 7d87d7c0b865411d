"""A lower bound of the energy on a chip with memories side by side.

Terms of three kinds are bounded apart, by machines of one memory a level, whose optimum the search
for these proves or bounds:

1.  What the memories above are asked for. All instances that are served by one read hold, together,
    a union tile; so it fits one memory of as many times the capacity. Instances that are not
    merged are each served for their own tile.
2.  What crosses into the instances of a level, from a memory in which everything lies: their tile
    fits one instance, and a held operand is brought once at least.
3.  What the MACs ask for: each product takes part in it, shared by as many as the array has.

Source: docs/chips.md, 'The bound'.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.options import Memories, Memory, MemoryLevel, SearchOptions
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.rows import products
from hwmodel.tiling.spatial.links import links
from hwmodel.work.problem import OPERANDS, Operand, Problem

__all__ = ["Bound", "bound"]


class Bound(NamedTuple):
    """A lower bound, and the mappings by which its parts came about."""

    energy: float  # [chip's unit]
    above: Mapping  # union tiles of all levels
    inside: dict[int, Mapping]  # the tile of one instance, by level


class _Sums(NamedTuple):
    """What a sum that leaves a memory of level 0 costs or saves, and what was left out by that."""

    leaves: float  # for each that leaves [chip's unit/bit]
    bound: float  # of what the MACs ask for [chip's unit]


def bound(problem: Problem, chip: Memories, options: SearchOptions) -> Bound:
    """Return a lower bound of memories, hops, arrays and time. Raises: Infeasible."""
    own = Options(
        partial_sum_bits=options.partial_sum_bits, stationary=options.stationary, rule=options.rule
    )
    total = _time(problem, chip, options)
    total += sum(_asked(problem, chip, options, x) for x in ("I", "F"))
    last = len(chip.levels) - 1
    together = _counts_alike(chip, last)  # sums leave level 0 as they arrive above
    sums = _sums_of_macs(problem, chip, options)
    total += sums.bound
    pooled = _pooled(chip, sums.leaves if together else 0.0)
    first = optimal(problem, pooled, own)
    total += first.certificate.lower_bound
    inside = {}
    for level in range(1, len(chip.levels)):
        machine = _entered(chip, level, options, 0.0 if together or level < last else sums.leaves)
        if machine is not None:
            found = optimal(problem, machine, own)
            total += found.certificate.lower_bound
            inside[level] = found.mapping
    return Bound(max(0.0, total), first.mapping, inside)
