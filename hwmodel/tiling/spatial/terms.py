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

__all__ = ["terms"]

Weighted = tuple[Plan, float]


def terms(
    problem: Problem, chip: Memories, held: tuple[Operand, ...], options: SearchOptions
) -> dict[Plan, float]:
    """Return the plans that are paid, with their weights [chip's unit]; without zeros.

    Source: docs/chips.md, 'What is paid'; equal to the entries of `asked.asked`, as a test holds.
    """
    ways = Ways(chip, held)
    found: dict[Plan, float] = defaultdict(float)
    for operand in OPERANDS:
        for link in links(chip, operand):
            several = _sums if operand == "O" else _operand
            for plan, weight in several(problem, ways, link, options):
                found[plan] += weight
    if chip.array is not None:
        found[ways.made(places=True)] += chip.array.cycle_energy
        found[ways.made(places=False)] += chip.moment_energy
    return {plan: problem.groups * weight for plan, weight in found.items() if weight}


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
