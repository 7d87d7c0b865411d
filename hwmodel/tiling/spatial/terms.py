"""The energy of a mapping as a sum of terms, each a weight times a product over five axes.

Every count is a product of what it is in N, in M, in C, in rows (HO with HF) and in columns (WO
with WF). So the energy of memories, hops, arrays and time is

    sum over plans of weight x factor(N) x factor(M) x factor(C) x factor(rows) x factor(columns)

and weights depend on the chip and on what its boundaries hold alone, not on tiles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.spatial.links import Link, Plan, Ways, links
from hwmodel.work.problem import OPERANDS, Operand, Problem

__all__ = ["Paid", "terms"]

Weighted = tuple[Plan, float]


def terms(
    problem: Problem, chip: Memories, held: tuple[Operand, ...], options: SearchOptions
) -> dict[Plan, float]:
    """Return the plans that are paid, with their weights [chip's unit]; without zeros.

    Source: docs/chips.md, 'What is paid'; equal to the entries of `asked.asked`, as a test holds.
    """
    return Paid(problem, chip, options).terms(held)


class Paid:
    """What is paid under each choice of what is held; what several have in common is made once."""

    def __init__(self, problem: Problem, chip: Memories, options: SearchOptions) -> None:
        self._problem, self._chip, self._options = problem, chip, options
        self._links = [link for operand in OPERANDS for link in links(chip, operand)]
        self._along: dict[tuple[Link, tuple[Operand, ...]], list[Weighted]] = {}
        self._found: dict[tuple[Operand, ...], dict[Plan, float]] = {}

    def terms(self, held: tuple[Operand, ...]) -> dict[Plan, float]:
        """Return `terms` of one choice."""
        if held not in self._found:
            self._found[held] = self._terms(held)
        return self._found[held]

    def _terms(self, held: tuple[Operand, ...]) -> dict[Plan, float]:
        chip, found = self._chip, defaultdict[Plan, float](float)
        for link in self._links:
            for plan, weight in self._paid(link, held):
                found[plan] += weight
        if chip.array is not None:
            ways = Ways(chip, held)
            found[ways.made(places=True)] += chip.array.cycle_energy
            found[ways.made(places=False)] += chip.moment_energy
        return {plan: self._problem.groups * weight for plan, weight in found.items() if weight}

    def _paid(self, link: Link, held: tuple[Operand, ...]) -> list[Weighted]:
        """What is paid along a link: it depends on what its two boundaries hold alone."""
        here = link, tuple(held[at - 1] for at in (link.above, link.below) if 0 < at <= len(held))
        if here not in self._along:
            several = _sums if link.operand == "O" else _operand
            ways = Ways(self._chip, held)
            self._along[here] = list(several(self._problem, ways, link, self._options))
        return self._along[here]


def _operand(
    problem: Problem, ways: Ways, link: Link, options: SearchOptions
) -> Iterator[Weighted]:
    """What I or F costs along a link: reads above, hops, and writes below."""
    chip, bits = ways.chip, getattr(problem.bits, link.operand)
    above = chip.holder(link.above, link.operand)
    yield ways.crossing(link, link.above), bits * above.read_energy_per_bit
    for level in _hops(chip, link):
        yield ways.crossing(link, level), bits * chip.levels[level].hop_energy_per_bit
    if options.transfers == "both" and link.below < len(chip.levels) and not above.passed:
        below = chip.holder(link.below, link.operand)
        yield ways.crossing(link, link.below), bits * below.write_energy_per_bit


def _sums(problem: Problem, ways: Ways, link: Link, options: SearchOptions) -> Iterator[Weighted]:
    """What sums cost along a link; those that are finished are as wide as O."""
    chip, wide = ways.chip, partial_sum_bits(problem, options.partial_sum_bits)
    above = chip.holder(link.above, "O")
    again = above.read_energy_per_bit
    going = [(link.above, above.write_energy_per_bit)]
    going += [(level, chip.levels[level].hop_energy_per_bit) for level in _hops(chip, link)]
    if options.transfers == "both" and link.below < len(chip.levels) and not above.passed:
        below = chip.holder(link.below, "O")
        again += below.read_energy_per_bit + below.write_energy_per_bit
        going.append((link.below, below.read_energy_per_bit))
    for level, energy in going:
        yield ways.crossing(link, level), wide * energy
        yield ways.finished(link), (problem.bits.O - wide) * energy
    yield ways.crossing(link, link.above), wide * again
    yield ways.begun(link), -wide * again


def _hops(chip: Memories, link: Link) -> range:
    """The levels into which a link goes, passed by or not."""
    return range(link.above + 1, min(link.below, len(chip.levels) - 1) + 1)
