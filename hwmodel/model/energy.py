"""Accesses and operations times their prices: the rows of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from hwmodel.model.prices import OperationKind, price
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Priced, PricedMemory
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.pricing import level_energies, partial_sum_bits, rates
from hwmodel.tiling.tile import counts
from hwmodel.work.problem import OPERANDS, Problem

__all__ = ["COMPUTE", "Component", "Operation", "Product", "Row", "Stream", "product_rows"]
__all__ += ["stream_rows"]

Component = Literal["memory", "compute", "elementwise", "update"]
COMPUTE = "compute"  # the `level` of rows that are operations and not accesses


class Operation(NamedTuple):
    """So many operations of one kind, on operands of so many bits."""

    kind: OperationKind
    bits: int
    times: int


@dataclass(frozen=True)
class Product:
    """A loop nest to be tiled, and the operations it takes: one pass of one layer."""

    layer: str
    phase: str  # the column `pass`; the word is Python's
    problem: Problem
    tensors: tuple[str, ...]  # what its I, F and O are called in this pass
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Stream:
    """A tensor that passes once between the outermost memory and the operators, and operations."""

    layer: str
    phase: str
    component: Component
    tensor: str
    reads: int = 0  # [elements]
    writes: int = 0  # [elements]
    bits: int = 1  # of one element [bit]
    through: bool = True  # whether every level on the way is paid for, or the outermost alone
    operations: tuple[Operation, ...] = ()


class Row(NamedTuple):
    """One line of the tidy table. Operations have their kind in the place of the tensor."""

    layer: str
    phase: str
    component: Component
    tensor: str
    level: str
    accesses: int  # [elements]
    bits: int  # moved [bit]
    operations: int
    energy: Any  # [the chip's unit]; of chips side by side an array [chip]


Moves = list[tuple[int, int]]  # (elements, bits of one)


def product_rows(
    work: Product, mapping: Mapping, hardware: Priced, accounting: Accounting
) -> list[Row]:
    """Rows of one product: every tensor at every level, then its operations.

    A read costs the read energy of the memory that is asked, a write its write energy (spec
    section 6). A level that a tensor does not ask has no row.
    """
    rows = []
    bits = work.problem.bits
    partial_bits = partial_sum_bits(work.problem, accounting.widths.partial_sum_bits)
    for index, asked in enumerate(counts(work.problem, mapping, accounting)):
        rate = rates(work.problem, hardware, index, accounting.widths.partial_sum_bits)
        partial = asked.O_partial_reads + asked.O_partial_writes
        elements = asked.I_reads, asked.F_reads, partial + asked.O_writes
        moved = (
            asked.I_reads * bits.I,
            asked.F_reads * bits.F,
            partial * partial_bits + asked.O_writes * bits.O,
        )
        energies = level_energies(asked, rate)
        for operand, tensor, accesses, size, energy in zip(
            OPERANDS, work.tensors, elements, moved, energies, strict=True
        ):
            if accesses:
                name = hardware.holder(index, operand).name
                rows.append(
                    Row(work.layer, work.phase, "memory", tensor, name, accesses, size, 0, energy)
                )
    return rows + _operated(work, "compute", hardware, accounting)


def stream_rows(work: Stream, hardware: Priced, accounting: Accounting) -> list[Row]:
    """Rows of a tensor that passes once, level by level, then the operations on it."""
    rows = []
    for index in range(len(hardware.levels) if work.through else 1):
        source, target = hardware.holder(index, "I"), hardware.holder(index, "O")
        reads, writes = [(work.reads, work.bits)], [(work.writes, work.bits)]
        if source is target:
            rows += _moved(work, work.component, work.tensor, source, reads, writes)
        else:
            rows += _moved(work, work.component, work.tensor, source, reads, [])
            rows += _moved(work, work.component, work.tensor, target, [], writes)
    return rows + _operated(work, work.component, hardware, accounting)


def _moved(
    work: Product | Stream,
    component: Component,
    tensor: str,
    memory: PricedMemory,
    reads: Moves,
    writes: Moves,
) -> list[Row]:
    """The row of elements read from and written to a memory; none if it is idle."""
    accesses = sum(elements for elements, _ in reads + writes)
    read_bits = sum(elements * bits for elements, bits in reads)
    written_bits = sum(elements * bits for elements, bits in writes)
    energy = read_bits * memory.read_energy_per_bit + written_bits * memory.write_energy_per_bit
    moved = read_bits + written_bits
    row = Row(work.layer, work.phase, component, tensor, memory.name, accesses, moved, 0, energy)
    return [row] if accesses else []


def _operated(
    work: Product | Stream, component: Component, hardware: Priced, accounting: Accounting
) -> list[Row]:
    rows = []
    for kind, bits, times in work.operations:
        energy = times * price(kind, bits, hardware, accounting)
        rows.append(Row(work.layer, work.phase, component, kind, COMPUTE, 0, 0, times, energy))
    return [row for row in rows if row.operations]
