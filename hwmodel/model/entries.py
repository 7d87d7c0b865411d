"""Makes the entries of a work: one for each memory and direction, and for its operations."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from hwmodel.model.ledger import Component, Entry, entry
from hwmodel.model.prices import ARRAY_CYCLE, CHIP_CYCLE, Key
from hwmodel.model.workload import At
from hwmodel.tiling.accesses import Asked, Mapping, asked
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.spatial import asked as spatial
from hwmodel.tiling.spatial.asked import time
from hwmodel.work.problem import OPERANDS, Operand
from hwmodel.work.tensor import Direction, Factor, Role
from hwmodel.work.work import Move, Multiply, Operate

__all__ = ["UNFINISHED", "moved", "multiplied", "operated"]

UNFINISHED = (Role.UNFINISHED, Role.DRAINED, Role.RETURNED)
READ, WRITE, OPERATE = Direction.READ, Direction.WRITE, Direction.OPERATE
NOWHERE = At()


def moved(layer: str, work: Move, chip: Memories, at: At = NOWHERE) -> Iterator[Entry]:
    """Enter a move: in the outermost memory that holds the tensor, then through the others.

    There it is read where ifmaps lie, and written where ofmaps lie, level by level; levels that
    these pass by are not asked.

    Args:
        chip: the memories as `work.kinds` lie in them.
        at: the place of the work in a schedule.
    """
    operand: Operand = "I" if work.direction == READ else "O"
    tensor, factors = work.tensor, (Factor("times", work.times, work.why), *work.tensor.shape)
    for level in range(len(chip.levels) if work.through else 1):
        if not chip.levels[level].holds(operand):
            continue
        key = Key(work.direction, chip.holder(level, operand).name)
        yield entry(
            layer, work.pass_, Component.ELEMENTWISE, str(tensor), tensor.role, key, tensor.bits,
            factors, at.step, at.stored[0],
        )  # fmt: skip


def operated(layer: str, work: Operate, full: int, at: At = NOWHERE) -> Entry:
    """Enter operations for each element of a tensor.

    Multiply-adds and special functions are in full precision (`full` bits). Additions are as wide
    as the widest word; those of integers are Boolean operations, 2b - 1 for b bit.

    Source: docs/model.md section 5.
    """
    kind, bits = work.kind, full
    factors = (Factor("operations for each", work.times, work.why), *work.each.shape)
    if kind in ("add", "logic"):
        widest = max(work.operands, key=lambda tensor: (tensor.bits, tensor.floating))
        bits = full if widest.word else ceil(widest.bits)  # words of a format are expanded first
        if kind == "logic" or (bits < full and not widest.floating):
            why = f"logic operations of an adder of b = {bits} bit, the width of {widest.title}"
            factors = (*factors, Factor("2b - 1", 2 * bits - 1, why))
            kind, bits = "logic", 1
    return entry(
        layer, work.pass_, Component.ELEMENTWISE, str(work.each), work.each.role,
        Key(OPERATE, kind, bits), bits, factors, at.step,
    )  # fmt: skip


def multiplied(
    layer: str,
    work: Multiply,
    mapping: Mapping,
    chip: Memories,
    options: SearchOptions,
    at: At = NOWHERE,
) -> Iterator[Entry]:
    """Enter a product: the accesses of every level, then its operations, then its time.

    A read pays the read energy of its memory, a write the write energy, what goes into one of
    several memories of a level the level's hop. An unfinished sum is never narrower than a
    finished one. Finished sums that an operator takes as they are made move nowhere.

    Args:
        chip: the memories as `work.kinds` lie in them.
        at: the place of the work in a schedule.
    """
    stored = dict(zip(OPERANDS, at.stored, strict=True))
    fewer_operations, fewer_reads = _gated(work, chip)
    inner = {x: max(n for n, one in enumerate(chip.levels) if one.holds(x)) for x in OPERANDS}
    for level, asks in enumerate(_levels(work, mapping, chip, options)):
        for operand, direction, role, factors in asks:
            if operand == "O" and role == Role.OPERAND and not work.leaves:
                continue
            tensor = work.operands[operand]
            last = direction == READ and level == inner[operand]
            yield from _expansion(layer, work, operand if last else "O", factors, at)
            factors = (*factors, *fewer_reads[operand] * last)
            unfinished = role in UNFINISHED
            bits = max(options.partial_sum_bits, tensor.bits) if unfinished else tensor.bits
            hop = direction == Direction.HOP
            name = chip.levels[level].name if hop else chip.holder(level, operand).name
            key = Key(direction, name)
            yield entry(
                layer, work.pass_, Component.PRODUCT, str(tensor), role, key, bits, factors,
                at.step, stored[operand],
            )  # fmt: skip
    what = str(work.O), Role.OPERAND
    for kind, bits, factors, narrow, format_ in work.operations:
        factors = (*factors, *fewer_operations)
        key = Key(OPERATE, kind, bits, narrow, format_)
        yield entry(layer, work.pass_, Component.PRODUCT, *what, key, bits, factors, at.step)
    taken = time(work.problem, mapping, chip, options.rule)
    if taken is not None:
        for name, each in ((ARRAY_CYCLE, taken.cycles), (CHIP_CYCLE, taken.moments)):
            yield entry(
                layer, work.pass_, Component.PRODUCT, str(work.O), Role.OPERAND,
                Key(OPERATE, name), 0, each, at.step,
            )  # fmt: skip


def _expansion(
    layer: str, work: Multiply, operand: Operand, factors: tuple[Factor, ...], at: At
) -> Iterator[Entry]:
    """Enter a multiply-add for each packed word that leaves its last memory for a product."""
    if operand in work.expanded:
        tensor, key = str(work.operands[operand]), Key(OPERATE, "mac", work.full)
        what = layer, work.pass_, Component.ELEMENTWISE, tensor, Role.EXPANDED
        yield entry(*what, key, work.full, factors, at.step)


def _gated(
    work: Multiply, chip: Memories
) -> tuple[tuple[Factor, ...], dict[Operand, tuple[Factor, ...]]]:
    """What inputs that are 0 leave of operations, and of reads of weights at their last level."""
    reads: dict[Operand, tuple[Factor, ...]] = {"I": (), "F": (), "O": ()}
    if work.nonzero == 1 or chip.zeros == "none":
        return (), reads
    why = f"of the inputs, which spike; on a chip with zeros: {chip.zeros}"
    rate = (Factor("rate", work.nonzero, why),)
    return rate, reads | ({"F": rate} if chip.zeros == "operations-and-level-0" else {})


def _levels(
    work: Multiply, mapping: Mapping, chip: Memories, options: SearchOptions
) -> Iterator[list[Asked]]:
    if chip.spatial or options.transfers == "both":
        return spatial.asked(work.problem, mapping, chip, options.rule, options.transfers)
    return asked(work.problem, mapping, options.counting, options.rule)
