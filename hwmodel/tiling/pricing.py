"""Energy of traffic: elements x bits x energy per bit of the memory that is read or written.

The one formula of memory energy; reports call it with numbers, the search with arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

from hwmodel.tiling.accesses import Traffic
from hwmodel.tiling.options import Memories, Transfers
from hwmodel.work.problem import OPERANDS, Problem

__all__ = ["added", "level_energies", "level_energy", "memory_energy", "partial_sum_bits", "rates"]


def rates(
    problem: Problem,
    hardware: Memories,
    level: int,
    unfinished_bits: int,
    transfers: Transfers = "upper",
) -> Traffic:
    """Return the energy of one element of each kind of traffic at a level [chip's unit/element].

    Reads are priced as reads and sums that arrive as writes. Where both sides of a transfer pay,
    an element that is read here is written one level in, and a sum that arrives is read there; one
    that comes back is written there, and read when the next product is added to it. The MACs have
    no memory that could pay.

    Source: BOLD, eps_i times bits; reads and writes as in docs/model.md section 5.
    """
    bits, partial = problem.bits, partial_sum_bits(problem, unfinished_bits)
    I, F, O = (hardware.holder(level, operand) for operand in OPERANDS)  # noqa: E741
    upper = Traffic(
        I_reads=bits.I * I.read_energy_per_bit,
        F_reads=bits.F * F.read_energy_per_bit,
        O_partial_reads=partial * O.read_energy_per_bit,
        O_partial_writes=partial * O.write_energy_per_bit,
        O_writes=bits.O * O.write_energy_per_bit,
    )
    if transfers == "upper" or level + 1 == len(hardware.levels):
        return upper
    pays = (not hardware.holder(level, operand).passed for operand in OPERANDS)
    I_pays, F_pays, O_pays = pays
    I, F, O = (hardware.holder(level + 1, operand) for operand in OPERANDS)  # noqa: E741
    read, write = O_pays * O.read_energy_per_bit, O_pays * O.write_energy_per_bit
    return Traffic(
        I_reads=upper.I_reads + I_pays * bits.I * I.write_energy_per_bit,
        F_reads=upper.F_reads + F_pays * bits.F * F.write_energy_per_bit,
        O_partial_reads=upper.O_partial_reads + partial * (write + read),
        O_partial_writes=upper.O_partial_writes + partial * read,
        O_writes=upper.O_writes + bits.O * read,
    )


def partial_sum_bits(problem: Problem, unfinished_bits: int) -> int | float:
    """Return the width of an unfinished sum [bit]: at least that of a finished one."""
    return max(unfinished_bits, problem.bits.O)


def level_energies(traffic: Traffic, rates: Traffic) -> tuple[Any, Any, Any]:
    """Return the energy of one level's traffic of I, of F and of O [chip's unit]."""
    I, F, fetched, left, finished = (n * rate for n, rate in zip(traffic, rates, strict=True))  # noqa: E741
    return I, F, fetched + left + finished


def level_energy(traffic: Traffic, rates: Traffic) -> Any:
    """Return the energy of one level's traffic [chip's unit]; an array if the traffic is."""
    return added(level_energies(traffic, rates))


def memory_energy(
    problem: Problem,
    traffics: Sequence[Traffic],
    hardware: Memories,
    unfinished_bits: int,
    transfers: Transfers = "upper",
) -> float:
    """Return the energy of all levels [chip's unit]; `accesses.traffic` gives `traffics`."""
    levels: Iterable[float] = (
        level_energy(asked, rates(problem, hardware, level, unfinished_bits, transfers))
        for level, asked in enumerate(traffics)
    )
    return float(added(levels))


def added(energies: Iterable[Any]) -> Any:
    """Add energies one by one, from the left.

    Not sum(): from Python 3.12 on it rounds numbers otherwise than before, and than arrays.
    """
    return reduce(add, energies, 0)
