"""What every memory, hop and array is asked for under a given mapping, level by level.

The links of `links` give the counts; here they are told apart by who pays: the memory above a link
for what is asked of it, the hop into a level for what is delivered there, and under `both` the
memory below for its side of each transfer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from hwmodel.tiling.accesses import Asked, Mapping
from hwmodel.tiling.options import Memories, Transfers
from hwmodel.tiling.rows import RowRule
from hwmodel.tiling.spatial.links import Counted, Link, Nest, links
from hwmodel.work.problem import OPERANDS, Problem
from hwmodel.work.tensor import Direction, Factor, Role, product

__all__ = ["Time", "asked", "time"]

READ, WRITE, HOP = Direction.READ, Direction.WRITE, Direction.HOP


class Time(NamedTuple):
    """What a mapping takes in time, on a chip with an array."""

    cycles: tuple[Factor, ...]  # of all arrays
    moments: tuple[Factor, ...]  # cycles of the whole chip
    products: int
    possible: int  # products that all MACs could do in these moments

    @property
    def utilisation(self) -> float:
        """Products over possible ones; 0 where all may be padding."""
        return self.products / self.possible if self.possible else 0.0


@lru_cache(maxsize=2**10)  # layers that are alike, and the same question again
def asked(
    problem: Problem, mapping: Mapping, chip: Memories, rule: RowRule, transfers: Transfers
) -> tuple[tuple[Asked, ...], ...]:
    """List what is asked for at every level, the outermost first; what is nothing is left out.

    Of a sum, S of each output arrive and T begin anew: S - T find one resting, which is read.
    Under `both` these come back: the memory below is written and read once for each.

    Source: docs/chips.md, 'What is counted'.
    """
    nest = _Counts(Nest(problem, mapping, chip, rule))
    ways = [link for x in OPERANDS for link in links(chip, x)]
    found = (
        [one for link in ways for one in _at(nest, link, level, transfers)]
        for level in range(len(chip.levels))
    )
    return tuple(tuple(one for one in asks if product(one.factors)) for asks in found)


class _Counts:
    """The counts of a nest, each made once: a link asks for the same at both of its ends."""

    def __init__(self, nest: Nest) -> None:
        self.chip, self._ways, self._counted = nest.chip, nest.ways, cache(nest.counted)

    def crossing(self, link: Link, at: int) -> Counted:
        return self._counted(self._ways.crossing(link, at))

    def begun(self, link: Link) -> Counted:
        return self._counted(self._ways.begun(link))

    def finished(self, link: Link) -> Counted:
        return self._counted(self._ways.finished(link))


def _at(nest: _Counts, link: Link, level: int, transfers: Transfers) -> Iterator[Asked]:
    """What one link asks for at one level."""
    x = link.operand
    if level == link.above and x == "O":
        yield Asked(x, READ, Role.UNFINISHED, _again(nest, link))
        yield from _sums(nest, link, link.above, WRITE, Role.UNFINISHED)
    elif level == link.above:
        yield Asked(x, READ, Role.OPERAND, nest.crossing(link, level).factors)
    elif link.above < level <= link.below and nest.chip.levels[level].fanout > 1:
        if x == "O":
            yield from _sums(nest, link, level, HOP, Role.UNFINISHED)
        else:
            yield Asked(x, HOP, Role.OPERAND, nest.crossing(link, level).factors)
    if level == link.below and transfers == "both":
        if x == "O":
            yield from _sums(nest, link, level, READ, Role.DRAINED)
            for direction in (WRITE, READ):
                yield Asked(x, direction, Role.RETURNED, _again(nest, link))
        else:
            yield Asked(x, WRITE, Role.OPERAND, nest.crossing(link, level).factors)


def _sums(
    nest: _Counts, link: Link, level: int, direction: Direction, role: Role
) -> Iterator[Asked]:
    """Sums that go up: the last one of each output is finished, all others are not."""
    going, last = nest.crossing(link, level), nest.finished(link)
    yield Asked("O", direction, role, _difference(going, last, "S - 1", "all but the last"))
    yield Asked("O", direction, Role.OPERAND, last.factors)


def _again(nest: _Counts, link: Link) -> tuple[Factor, ...]:
    """Sums that find one resting above."""
    return _difference(
        nest.crossing(link, link.above), nest.begun(link), "S - T", "those that find one resting"
    )


def _difference(more: Counted, less: Counted, name: str, why: str) -> tuple[Factor, ...]:
    """The difference of two counts that go for the same elements."""
    arrive = f"S = {more.number:,} arrive, T = {less.number:,}" if name == "S - T" else ""
    arrive = arrive or f"{more.number:,} go, {less.number:,} of them at last"
    return (*more.once, Factor(name, more.number - less.number, f"{arrive}: {why}"))


def time(problem: Problem, mapping: Mapping, chip: Memories, rule: RowRule) -> Time | None:
    """Count cycles and moments; None without an array, where nothing says what a cycle does.

    Source: docs/chips.md, 'Time'.
    """
    if chip.array is None:
        return None
    nest = Nest(problem, mapping, chip, rule)
    cycles, moments = nest.made(places=True), nest.made(places=False)
    return Time(cycles, moments, nest.products, product(moments) * chip.macs(problem.lane))
