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

from hwmodel.tiling.accesses import Mapping, rounds
from hwmodel.tiling.options import Memories
from hwmodel.tiling.rows import TOUCHED, RowRule, products
from hwmodel.tiling.spatial.paths import Axis, Step, Steps, meetings, rows, values
from hwmodel.work.problem import Operand, Problem
from hwmodel.work.tensor import Factor

__all__ = ["AXES", "INDEXED", "Counted", "Link", "Nest", "Plan", "Ways", "axis_count", "links"]

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

    @property
    def factors(self) -> tuple[Factor, ...]:
        """All factors."""
        return (*self.once, *self.times)


class Kept(NamedTuple):
    """What is kept of one boundary: time and place, in loops that index an operand or not."""

    time: bool  # in the other loops; in those that index it always
    place: bool  # in the other loops
    indexed_place: bool = True


class Plan(NamedTuple):
    """What a count keeps of the boundaries, the outermost first, and what it counts."""

    operand: Operand | None  # None: cycles
    to_array: bool  # into an array, whose cycles are made only where they meet something
    kept: tuple[Kept, ...]

    def steps(self, loop: str, sizes: Sequence[int]) -> Steps:
        """Return the cuts of a loop; of each, whether it is kept.

        Args:
            sizes: of the union tile and the tile of every boundary, then of a cycle.
        """
        return tuple(map(Step, sizes, self.keeps(loop)))

    def keeps(self, loop: str) -> Iterator[bool]:
        """Say of the cuts of a loop, time and place of each boundary in turn, if they are kept."""
        indexed = self.operand is not None and loop in INDEXED[self.operand]
        for kept in self.kept:
            yield indexed or kept.time
            yield kept.indexed_place if indexed else kept.place


class Ways(NamedTuple):
    """A chip, and what its boundaries hold: all that plans depend on."""

    chip: Memories
    held: tuple[Operand, ...]

    def crossing(self, link: Link, at: int) -> Plan:
        """Plan what crosses a link at the instances of level `at`.

        At `link.above` it is what the upper memory is asked for, or the sums that arrive there; at
        `link.below` what is delivered to the instances, or the sums that leave them.
        """
        plan = [Kept(time=True, place=True)] * link.above
        for level in range(link.above + 1, min(link.below, len(self.chip.levels) - 1) + 1):
            apart = level <= at or not self._merges(link.operand, level)
            held = level == link.below and self.held[level - 1] == link.operand
            plan.append(Kept(not held, apart, apart or link.operand != "I"))
        if link.below == len(self.chip.levels):
            plan.append(Kept(time=not self._rests(link.operand), place=False))
        return self._plan(link, plan)

    def begun(self, link: Link) -> Plan:
        """Plan the sums that begin in the upper memory of a link of O.

        The first of them to arrive there finds none; one in each visit of that memory. Above the
        MACs of an array, in each that makes a cycle of it.
        """
        plan = [Kept(time=True, place=True)] * link.above
        if link.above and self.held[link.above - 1] == "O":
            plan[-1] = Kept(time=False, place=True)
        return self._plan(link, self._filled(plan))

    def finished(self, link: Link) -> Plan:
        """Plan the outputs themselves; above the MACs of an array, those that have a product."""
        return self._plan(link, self._filled([]))

    def made(self, *, places: bool) -> Plan:
        """Plan the cycles of all arrays or, without `places`, the moments of the chip."""
        kept = Kept(time=True, place=places, indexed_place=places)
        return Plan(None, to_array=True, kept=(kept,) * len(self.chip.levels))

    def _plan(self, link: Link, kept: Sequence[Kept]) -> Plan:
        to_array = link.below == len(self.chip.levels) and self.chip.array is not None
        return Plan(link.operand, to_array, tuple(kept))

    def _filled(self, plan: list[Kept]) -> list[Kept]:
        rest = len(self.chip.levels) - len(plan)
        return [*plan, *[Kept(time=False, place=False)] * rest]

    def _merges(self, operand: Operand, level: int) -> bool:
        """Whether instances of a level that want the same, or give to one sum, count once."""
        merging = self.chip.levels[level]
        return merging.reduction if operand == "O" else merging.multicast

    def _rests(self, operand: Operand) -> bool:
        """Whether an operand stays in the MACs; without an array filters and sums do."""
        array = self.chip.array
        return operand != "I" if array is None else array.holds == operand


class Nest(NamedTuple):
    """A problem under a mapping on a chip: all that counts depend on."""

    problem: Problem
    mapping: Mapping
    chip: Memories
    rule: RowRule = TOUCHED

    @property
    def ways(self) -> Ways:
        """The plans of all counts."""
        return Ways(self.chip, self.mapping.held)

    def crossing(self, link: Link, at: int) -> Counted:
        """Count what crosses a link at the instances of a level. Raises: TooLarge."""
        return self.counted(self.ways.crossing(link, at))

    def begun(self, link: Link) -> Counted:
        """Count the sums that begin in the upper memory of a link of O."""
        return self.counted(self.ways.begun(link))

    def finished(self, link: Link) -> Counted:
        """Count the outputs, above the MACs of an array those that have a product."""
        return self.counted(self.ways.finished(link))

    def made(self, *, places: bool) -> tuple[Factor, ...]:
        """Return the cycles of all arrays or, without `places`, the moments of the chip."""
        return self.counted(self.ways.made(places=places)).factors

    @property
    def products(self) -> int:
        """Products of all groups: pairs of an output and a tap that meet a row, in both axes."""
        n = self.problem.extent
        down = products(self.problem.height, self.rule, n.HO, n.HF)
        across = products(self.problem.width, self.rule, n.WO, n.WF)
        return self.problem.groups * n.N * n.M * n.C * down * across

    def counted(self, plan: Plan) -> Counted:
        """Multiply what there is of an operand with the different paths of the other loops.

        Raises: TooLarge.
        """
        n = self.problem.extent
        once = [loop for loop in n._fields if loop in ONCE[plan.operand, plan.to_array]]
        met = [
            Factor(
                name,
                axis_count(self._axis(i), plan, *self._steps(i, plan)),
                "; ".join(filter(None, (self._path(loop, plan) for loop in AXES[i]))),
            )
            for i, name in enumerate(MET[plan.operand])
            if plan.operand in ("I", None) or plan.to_array
        ]
        others = {"N", "M", "C"} if met else set(n._fields)
        if plan.operand is not None:
            others -= set(INDEXED[plan.operand])
        times = [
            Factor(
                f"#{d}",
                values(getattr(n, d), plan.steps(d, self._sizes(d, plan))),
                self._path(d, plan),
            )
            for d in n._fields
            if d in others
        ]
        whole = (self._groups(plan), *(Factor(loop, getattr(n, loop)) for loop in once))
        return Counted(whole, (*met, *times))

    def _groups(self, plan: Plan) -> Factor:
        """The groups, all of which are asked for; in time, those that follow one another."""
        groups, side = self.problem.groups, self.mapping.groups
        if plan.operand is None and side and not plan.kept[0].place:
            why = f"g = {groups:,}, {prod(side):,} side by side"
            return Factor("rounds of g", rounds(groups, side), why)
        return Factor("g", groups)

    def _axis(self, which: int) -> Axis:
        n, problem = self.problem.extent, self.problem
        if which:
            return Axis(problem.width, self.rule, n.WO, n.WF)
        return Axis(problem.height, self.rule, n.HO, n.HF)

    def _steps(self, which: int, plan: Plan) -> tuple[Steps, Steps]:
        out, tap = AXES[which]
        return plan.steps(out, self._sizes(out, plan)), plan.steps(tap, self._sizes(tap, plan))

    def _path(self, loop: str, plan: Plan) -> str:
        """The cuts of a loop in words; those between whose pieces a count does not tell."""
        parts, above = [], getattr(self.problem.extent, loop)
        whole = f"{loop} = {above:,}"
        last, innermost = len(self.mapping.tiles), "cycle" if self.chip.array else "MAC"
        for i, (tile, kept) in enumerate(plan.steps(loop, self._sizes(loop, plan))):
            if tile < above:
                kind = "place" if i % 2 else "time" if i < 2 * last else innermost
                level = f" at {self.chip.levels[i // 2 + 1].name}" if i < 2 * last else ""
                parts.append(f"{kind}{level} {tile:,}{'' if kept else ' (taken together)'}")
                above = tile
        return f"{whole} cut by {', '.join(parts)}" if parts else ""

    def _sizes(self, loop: str, plan: Plan) -> list[int]:
        """Return the union tile and the tile of every boundary, then the piece of one cycle.

        Without an array, as by an unlimited broadcast: an element of I serves all filters of the
        innermost tile.
        """
        tiles, unions = self.mapping.tiles, self.mapping.unions or self.mapping.tiles
        pairs = zip(unions, tiles, strict=True)
        sizes = [getattr(each, loop) for pair in pairs for each in pair]
        if self.mapping.cycle is not None:
            return [*sizes, getattr(self.mapping.cycle, loop)]
        together = loop == "M" and plan.operand == "I" and sizes
        return [*sizes, sizes[-1] if together else 1]


AXES = (("HO", "HF"), ("WO", "WF"))
# Loops that are counted in full, by operand and whether the link goes to an array.
ONCE: dict[tuple[Operand | None, bool], tuple[str, ...]] = {
    ("I", False): ("N", "C"),
    ("I", True): ("N", "C"),
    ("F", False): INDEXED["F"],
    ("F", True): ("M", "C"),
    ("O", False): INDEXED["O"],
    ("O", True): ("N", "M"),
    (None, True): (),
}
# What the two axes together are counted in, where outputs and taps are not apart.
MET: dict[Operand | None, tuple[str, str]] = {
    "I": ("rows", "columns"),
    "F": ("HF", "WF"),
    "O": ("HO", "WO"),
    None: ("HO HF", "WO WF"),
}


def axis_count(axis: Axis, plan: Plan, outs: Steps, taps: Steps) -> int:
    """Count what a plan counts of one axis: rows, or taps or outputs or pairs that touch one."""
    if plan.operand == "I":
        return rows(axis, outs, taps)
    found = meetings(axis, outs, taps)
    return {"F": found.taps, "O": found.outs, None: found.pairs}[plan.operand]
