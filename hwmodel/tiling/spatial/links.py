"""Which components of a path a count keeps: the one rule of memories side by side.

An operand goes from memory to memory along links. A link runs from a level that holds the operand
to the next one inwards that does, or to the MACs; levels between pass it by. Under one parent the
instances of a level hold, at one moment, a union tile together and a tile each. So an index of a
loop has the path

    (time, place) of the outermost boundary, ..., (time, place) of level 0, cycle

and what crosses a link is the number of different values of some of these components:

    above the link      all of them
    levels passed by    time; place, unless the requests of the instances are merged
    the link's own      time, of a held operand in the loops that index it alone;
                        place, where the instances' sides are counted, or requests are not merged

`multicast` merges requests for I and F, `reduction` sums on their way up. Elements of F and of O
count as they are, however cut; of I the rows count that the paths taken together touch.

Source: ours; docs/chips.md. Holds for: every tile, stride, dilation, padding and pass; equal to
the simulator of the tests, whose instances are sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import Memories
from hwmodel.tiling.rows import TOUCHED, RowRule, products
from hwmodel.tiling.spatial.paths import Axis, Step, Steps, meetings, rows, values
from hwmodel.work.problem import Operand, Problem
from hwmodel.work.tensor import Factor

__all__ = ["Counted", "Link", "Nest", "links"]

INDEXED: dict[Operand, tuple[str, ...]] = {
    "I": ("N", "C", "HO", "WO", "HF", "WF"),
    "F": ("M", "C", "HF", "WF"),
    "O": ("N", "M", "HO", "WO"),
}


class Link(NamedTuple):
    """The way of an operand from a memory to the next one inwards that holds it."""

    operand: Operand
    above: int  # level, from the outermost, which is 0
    below: int  # level; one more than there are: the MACs


def links(chip: Memories, operand: Operand) -> Iterator[Link]:
    """List the links of an operand, the outermost first."""
    holders = [i for i, level in enumerate(chip.levels) if level.holds(operand)]
    for above, below in pairwise((*holders, len(chip.levels))):
        yield Link(operand, above, below)


class Counted(NamedTuple):
    """Elements as a product: of what there is, and of how often it goes."""

    once: tuple[Factor, ...]
    times: tuple[Factor, ...]

    @property
    def number(self) -> int:
        """How often each of `once` goes."""
        return prod(int(factor.value) for factor in self.times)

    @property
    def elements(self) -> int:
        """All elements that go."""
        return prod(int(factor.value) for factor in self.once) * self.number


class Kept(NamedTuple):
    """What is kept of one boundary: time and place, in loops that index an operand or not."""

    time: bool  # in the other loops; in those that index it always
    place: bool  # in the other loops
    indexed_place: bool = True


class Nest(NamedTuple):
    """A problem under a mapping on a chip: all that counts depend on."""

    problem: Problem
    mapping: Mapping
    chip: Memories
    rule: RowRule = TOUCHED

    def crossing(self, link: Link, at: int) -> Counted:
        """Count what crosses a link at the instances of level `at`.

        At `link.above` it is what the upper memory is asked for, or the sums that arrive there; at
        `link.below` what is delivered to the instances, or the sums that leave them.

        Raises: TooLarge.
        """
        plan = [Kept(time=True, place=True)] * link.above
        for level in range(link.above + 1, min(link.below, len(self.chip.levels) - 1) + 1):
            apart = level <= at or not self._merges(link.operand, level)
            held = level == link.below and self.mapping.held[level - 1] == link.operand
            plan.append(Kept(not held, apart, apart or link.operand != "I"))
        if link.below == len(self.chip.levels):
            plan.append(Kept(time=not self._rests(link.operand), place=False))
        return self._counted(link, plan)

    def begun(self, link: Link) -> Counted:
        """Count the sums that begin in the upper memory of a link of O.

        The first of them to arrive there finds none; one in each visit of that memory. Above the
        MACs of an array, in each that makes a cycle of it.
        """
        plan = [Kept(time=True, place=True)] * link.above
        if link.above and self.mapping.held[link.above - 1] == "O":
            plan[-1] = Kept(time=False, place=True)
        return self._counted(link, self._filled(plan))

    def finished(self, link: Link) -> Counted:
        """Count the outputs themselves; above the MACs of an array, those that have a product."""
        return self._counted(link, self._filled([]))

    def made(self, *, places: bool) -> tuple[Factor, ...]:
        """Return the cycles of all arrays or, without `places`, the moments of the chip."""
        plan = [Kept(time=True, place=places, indexed_place=places)] * (len(self.mapping.tiles) + 1)
        height, width = (meetings(*self._axis(i, None, plan)).pairs for i in (0, 1))
        return (
            Factor("g", self.problem.groups),
            *self._values(("N", "M", "C"), None, plan),
            Factor("HO HF", height, "pairs of pieces of outputs and taps that touch a row"),
            Factor("WO WF", width),
        )

    @property
    def products(self) -> int:
        """Products of all groups: pairs of an output and a tap that meet a row, in both axes."""
        n = self.problem.extent
        down = products(self.problem.height, self.rule, n.HO, n.HF)
        across = products(self.problem.width, self.rule, n.WO, n.WF)
        return self.problem.groups * n.N * n.M * n.C * down * across

    def _filled(self, plan: list[Kept]) -> list[Kept]:
        rest = len(self.mapping.tiles) + 1 - len(plan)
        return [*plan, *[Kept(time=False, place=False)] * rest]

    def _merges(self, operand: Operand, level: int) -> bool:
        """Whether instances of a level that want the same, or give to one sum, count once."""
        merging = self.chip.levels[level]
        return merging.reduction if operand == "O" else merging.multicast

    def _rests(self, operand: Operand) -> bool:
        """Whether an operand stays in the MACs; without an array filters and sums do."""
        array = self.chip.array
        return operand != "I" if array is None else array.holds == operand

    def _counted(self, link: Link, plan: Sequence[Kept]) -> Counted:
        """Multiply what there is of an operand with the different paths of the other loops."""
        n, operand = self.problem.extent, link.operand
        array = link.below == len(self.chip.levels) and self.chip.array is not None
        once = INDEXED[operand]
        others = [loop for loop in n._fields if loop not in once]
        met: tuple[Factor, ...] = ()
        if operand == "I":
            once = ("N", "C")
            down, across = (rows(*self._axis(i, operand, plan)) for i in (0, 1))
            met = Factor("rows", down), Factor("columns", across)
        elif array:  # a cycle that meets nothing is not made
            once = once[:2] if operand == "F" else ("N", "M")
            others = [loop for loop in others if loop in ("N", "M", "C")]
            pairs = [meetings(*self._axis(i, operand, plan)) for i in (0, 1)]
            if operand == "F":
                met = tuple(Factor(x, m.taps) for x, m in zip(("HF", "WF"), pairs, strict=True))
            else:
                met = tuple(Factor(x, m.outs) for x, m in zip(("HO", "WO"), pairs, strict=True))
        groups = Factor("g", self.problem.groups)
        whole = (groups, *(Factor(loop, getattr(n, loop)) for loop in once))
        return Counted(whole, (*met, *self._values(others, operand, plan)))

    def _values(
        self, loops: Sequence[str], operand: Operand | None, plan: Sequence[Kept]
    ) -> tuple[Factor, ...]:
        n = self.problem.extent
        return tuple(
            Factor(f"#{d}", values(getattr(n, d), self.steps(d, operand, plan))) for d in loops
        )

    def _axis(
        self, axis: int, operand: Operand | None, plan: Sequence[Kept]
    ) -> tuple[Axis, Steps, Steps]:
        n = self.problem.extent
        window = (self.problem.height, self.problem.width)[axis]
        out, tap = (("HO", "HF"), ("WO", "WF"))[axis]
        return (
            Axis(window, self.rule, getattr(n, out), getattr(n, tap)),
            self.steps(out, operand, plan),
            self.steps(tap, operand, plan),
        )

    def steps(self, loop: str, operand: Operand | None, plan: Sequence[Kept]) -> Steps:
        """Return the cuts of a loop down to the last boundary of a plan; of each, if it is kept."""
        indexed = operand is not None and loop in INDEXED[operand]
        tiles, unions = self.mapping.tiles, self.mapping.unions or self.mapping.tiles
        found: list[Step] = []
        for boundary, kept in enumerate(plan):
            time = indexed or kept.time
            if boundary == len(tiles):
                found.append(Step(self._cycle(loop, operand), time))
                break
            place = kept.indexed_place if indexed else kept.place
            found.append(Step(getattr(unions[boundary], loop), time))
            found.append(Step(getattr(tiles[boundary], loop), place))
        return tuple(found)

    def _cycle(self, loop: str, operand: Operand | None) -> int:
        """Return the piece of a loop that one cycle takes.

        Without an array, as by an unlimited broadcast: an element of I serves all filters of the
        innermost tile.
        """
        if self.mapping.cycle is not None:
            return int(getattr(self.mapping.cycle, loop))
        innermost = self.mapping.tiles[-1] if self.mapping.tiles else self.problem.extent
        return innermost.M if loop == "M" and operand == "I" else 1
