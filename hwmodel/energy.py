"""Accesses and operations times their prices: the rows of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from hwmodel.accesses import Mapping, traffic
from hwmodel.accounting import Accounting
from hwmodel.errors import SpecError
from hwmodel.hardware import Buffer, Hardware
from hwmodel.problem import Problem

__all__ = ["COMPUTE", "Product", "Row", "Stream", "product_rows", "stream_rows"]

Component = Literal["memory", "compute", "elementwise", "update"]
COMPUTE = "compute"  # the `level` of rows that are operations and not accesses


@dataclass(frozen=True)
class Product:
    """A loop nest to be tiled, and the operations it takes: one pass of one layer."""

    layer: str
    phase: str  # the column `pass`; the word is Python's
    problem: Problem
    tensors: tuple[str, ...]  # what its I, F and O are called in this pass
    macs: int
    arithmetic: str


@dataclass(frozen=True)
class Stream:
    """Elements that are moved once between the outermost memory and the operators."""

    layer: str
    phase: str
    component: Component
    tensor: str
    reads: int  # [elements]
    writes: int  # [elements]
    bits: int  # of one element [bit]


class Row(NamedTuple):
    """One line of the tidy table."""

    layer: str
    phase: str
    component: Component
    tensor: str
    level: str
    accesses: int  # [elements]
    bits: int  # moved [bit]
    operations: int
    energy: float  # [the chip's unit]


def product_rows(
    work: Product, mapping: Mapping, hardware: Hardware, accounting: Accounting
) -> list[Row]:
    """Rows of one product: every tensor at every level, then its operations.

    A read costs the read energy of the memory that is asked, a write its write energy (spec
    section 6). A level that a tensor does not ask has no row.
    """
    rows = []
    I, F, O = work.tensors  # noqa: E741
    bits = work.problem.bits
    partial_bits = max(accounting.partial_sum_bits, bits.O)
    for index, level in enumerate(traffic(work.problem, mapping, accounting.counting)):
        partial = [(level.O_partial_reads, partial_bits), (level.O_partial_writes, partial_bits)]
        moves = {
            I: (hardware.holder(index, "I"), [(level.I_reads, bits.I)], []),
            F: (hardware.holder(index, "F"), [(level.F_reads, bits.F)], []),
            O: (hardware.holder(index, "O"), partial[:1], [*partial[1:], (level.O_writes, bits.O)]),
        }
        for tensor, (memory, reads, writes) in moves.items():
            rows += _moved(work, "memory", tensor, memory, reads, writes)
    operations, price = _operations(work, hardware, accounting)
    energy = operations * price
    rows.append(Row(work.layer, work.phase, "compute", "", COMPUTE, 0, 0, operations, energy))
    return rows


def stream_rows(work: Stream, hardware: Hardware) -> list[Row]:
    """Rows of elements that are only moved, from and to the outermost memory."""
    reads, writes = [(work.reads, work.bits)], [(work.writes, work.bits)]
    return _moved(work, work.component, work.tensor, hardware.holder(0, "O"), reads, writes)


def _moved(
    work: Product | Stream,
    component: Component,
    tensor: str,
    memory: Buffer,
    reads: list[tuple[int, int]],
    writes: list[tuple[int, int]],
) -> list[Row]:
    """The row of (elements, bits of one) read from and written to a memory; none if it is idle."""
    accesses = sum(elements for elements, _ in reads + writes)
    read_bits = sum(elements * bits for elements, bits in reads)
    written_bits = sum(elements * bits for elements, bits in writes)
    energy = read_bits * memory.read_energy_per_bit + written_bits * memory.write_energy_per_bit
    moved = read_bits + written_bits
    row = Row(work.layer, work.phase, component, tensor, memory.name, accesses, moved, 0, energy)
    return [row] if accesses else []


def _operations(work: Product, hardware: Hardware, accounting: Accounting) -> tuple[int, float]:
    """Operations of a product and the price of one [chip's unit] (spec sections 7 and 9).

    `mac` and `add` are one operation a MAC; `logic` is one Boolean operation, its share of the
    count included; to `accumulate` a b-bit number takes 2b - 1 Boolean operations.

    Raises: SpecError where the chip has no MAC of the full-precision width.
    """
    mac = hardware.price("mac", accounting.full_precision_bits)
    if mac is None:
        raise SpecError(
            f"hardware {hardware.name}: states no price of a {accounting.full_precision_bits}-bit "
            f"mac, which accounting {accounting.name} asks for"
        )
    whole = mac.energy_per_operation
    if work.arithmetic == "mac":
        return work.macs, whole
    if work.arithmetic == "add":
        return work.macs, whole / mac.operations
    signal_bits = _signal_bits(work) if work.arithmetic == "accumulate" else 1
    return work.macs * (2 * signal_bits - 1), whole * accounting.logic_price_macs


def _signal_bits(work: Product) -> int:
    """Width of the backward signal dO among a product's operands [bit]."""
    return work.problem.bits[work.tensors.index("dO")]
