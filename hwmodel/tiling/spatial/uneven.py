"""A lower bound of all tilings in which each operand has tiles of its own.

In a list of loops, outermost first, each operand has a place at each level: what lies below it is
its tile there. While loops pass that do not index an operand, its tile stays; so it is counted at
the highest place that it reaches by passing such loops. At one level the three places lie in some
order, one above the other, and so do their tiles; the MACs are fed by the innermost. Sums take room
but where theirs is the innermost: then they go up at once. Tiles that operands share, with one of
them held, are such a list: the held operand's place is the outermost, the others' are one.

The energy under each order of each level is bounded as in `relaxed`.

Source: docs/tiling.md, 'Tiles of their own'. Holds for: chips without memories side by side, arrays
and levels passed by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations, product

from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.spatial.counts import Tables
from hwmodel.tiling.spatial.links import Plan
from hwmodel.tiling.spatial.powers import Former
from hwmodel.tiling.spatial.products import ONE, WHOLE, Key, Power, over, power
from hwmodel.tiling.spatial.relaxed import sure
from hwmodel.tiling.spatial.space import Space
from hwmodel.work.problem import OPERANDS, Operand, Problem

__all__ = ["uneven"]

Order = tuple[Operand, ...]  # of the places at a level, the outermost first


def uneven(problem: Problem, chip: Memories, options: SearchOptions) -> float:
    """Return an energy that no tiling costs less than, whatever tiles each operand has.

    Returns: [chip's unit]; 0 where nothing is known.
    """
    space = Space(problem, chip, options)
    tables = {last: Tables(space.axes) for last in OPERANDS}
    several = [
        _Own(space, ("-",) * space.depth, tables[orders[-1][-1]], False, orders)  # type: ignore[arg-type]
        for orders in product(permutations(OPERANDS), repeat=space.depth)
    ]
    return min(one.energy for one in sure(several))


@dataclass
class _Own(Former):
    """The energy under an order of places at each level, the outermost level first."""

    places: tuple[Order, ...]
    alike = False

    def _own(self, loop: str, step: int, operand: Operand) -> Key:
        """The variable of an operand's tile."""
        _, place = self.size(loop, step)
        if place < 0:
            return loop, place
        return loop, 3 * place + OPERANDS.index(operand)

    def outside(self, key: Key) -> tuple[int, int]:
        """Where a variable stands among the sizes of its loop, the outermost first."""
        place, operand = divmod(key[1], 3)
        return place, self.places[place].index(OPERANDS[operand])

    def in_plan(self, loop: str, step: int, plan: Plan) -> Key:
        """An operand counts by its own tile, but where the MACs are fed: by the innermost."""
        depth = self.space.depth
        operand = plan.operand
        assert operand is not None  # cycles are of arrays
        if len(plan.kept) > depth and step // 2 == depth - 1 and operand != "O":
            operand = self.places[-1][-1]
        return self._own(loop, step, operand)

    def in_room(self, loop: str, step: int, operand: Operand) -> Key:
        """An operand has room for its own tile."""
        return self._own(loop, step, operand)

    def sums_rest(self, level: int) -> bool:
        """Sums take room but where their place is the innermost."""
        return self.places[level - 1][-1] != "O"

    def orders(self) -> Iterator[Power]:
        """Products of powers that are at most 1: of places at a level, and of an operand's."""
        for loop, length in self.space.problem.extent._asdict().items():
            if length == 1:
                continue
            ends = ((loop, WHOLE), (loop, ONE))
            tiles = {
                x: [self._own(loop, 2 * i + 1, x) for i in range(self.space.depth)]
                for x in OPERANDS
            }
            pairs = [pair for own in tiles.values() for pair in pairwise([ends[0], *own, ends[1]])]
            pairs += [
                pair
                for i, order in enumerate(self.places)
                for pair in pairwise([tiles[x][i] for x in order])
            ]
            yield from (power([self.of(inner), over(self.of(outer))]) for outer, inner in pairs)
