"""The arithmetic of a product: kinds, widths and numbers of its operations.

Source: docs/model.md section 5.
"""

from __future__ import annotations

from math import gcd

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.method import Arithmetic
from hwmodel.work.problem import Extents, LoopNest, Operand
from hwmodel.work.tensor import Factor, Tensor
from hwmodel.work.work import Operation

__all__ = ["expanded", "operations", "scaled_sums"]

Factors = tuple[Factor, ...]
LONGEST_SHIFT = 2**16  # longer than any sum that is kept


def operations(
    arithmetic: Arithmetic,
    nest: LoopNest,
    I: Tensor,  # noqa: E741
    F: Tensor,
    macs: Factors,
    accounting: Accounting,
) -> tuple[Operation, ...]:
    """Return the operations of one pass of a product, of one kind or of two.

    Floating-point words are multiplied and added as wide as the wider operand. Integers are
    multiplied in both widths and added as wide as their sum, or are one MAC as wide as the wider
    operand (`accumulation: operand-width`). Boolean words take logic operations.

    Args:
        I: ifmaps, as wide as the product reads them.
        F: filters.
        macs: multiply-accumulates, as factors.
    """
    words = I.operand_bits, F.operand_bits
    wide = max(words)
    integers = wide < accounting.widths.full_precision_bits and not (I.floating or F.floating)
    if arithmetic == "mac" or (arithmetic == "add" and not integers):
        return (Operation(arithmetic, wide, macs, format=_formats(I, F)),)
    if arithmetic == "logic":
        pairs = I.operand_bits * F.operand_bits
        why = f"a bit of I with a bit of F: {I.operand_bits} x {F.operand_bits}"
        several = (Factor("pairs of bits", pairs, why),) if pairs > 1 else ()
        return (_logic(nest, (*macs, *several), accounting),)
    signal = I if nest.tensors[0] == "dO" else F  # forward: the weights
    if arithmetic == "accumulate":
        bits, grown = _sum(nest, signal.operand_bits, 0, accounting)
        why = f"logic operations that accumulate a signal in b = {bits} bit"
        return (Operation("logic", 1, (*macs, *grown, Factor("2b - 1", 2 * bits - 1, why))),)
    if arithmetic == "shift-add":
        bits, grown = _shifted(nest, min(words), signal.operand_bits, accounting)
        return (Operation("int-add", bits, (*macs, *grown)),)
    if arithmetic == "int-mac":
        return _multiplied(nest, wide, min(words), macs, accounting)
    bits, grown = _sum(nest, wide, 0, accounting)
    return (Operation("int-add", bits, (*macs, *grown)),)


def expanded(arithmetic: Arithmetic, I: Tensor, F: Tensor) -> tuple[Operand, ...]:  # noqa: E741
    """Return the operands that a product cannot take in their format, at the places I and F.

    A `mac` of two floating-point formats and integer products take words as they are; any other
    `mac` expands words of a format to the width of the other operand.
    """
    if arithmetic != "mac" or _formats(I, F):
        return ()
    return tuple(place for place, one in (("I", I), ("F", F)) if one.word)  # type: ignore[misc]


def scaled_sums(nest: LoopNest, I: Tensor, F: Tensor, wide: tuple[Operand, ...]) -> int:  # noqa: E741
    """Return how often an output's sum is scaled: once for each block along its reduction."""
    of = [("I", I), ("F", F)]
    blocks = [one.word.block for place, one in of if place not in wide and one.word]
    block = min((block for block in blocks if block), default=0)
    return _terms(nest._replace(extent=_in_blocks(nest.extent, block))) if block else 0


def _in_blocks(extent: Extents, block: int) -> Extents:
    return extent._replace(C=-(-extent.C // block))


def _formats(I: Tensor, F: Tensor) -> str:  # noqa: E741
    """Name the pair of formats of a floating-point product, if both operands have one."""
    if I.word and F.word and I.word.floating and F.word.floating:
        return f"{I.word.floating} x {F.word.floating}"
    return ""


def _multiplied(
    nest: LoopNest, wide: int, narrow: int, macs: Factors, accounting: Accounting
) -> tuple[Operation, ...]:
    """Multiply integers in both widths and add as wide as the sum, or do both in one MAC."""
    if accounting.counting.accumulation == "operand-width":
        return (Operation("int-mac", wide, macs),)
    bits, grown = _sum(nest, wide, narrow, accounting)
    return Operation("int-mul", wide, macs, narrow), Operation("int-add", bits, (*macs, *grown))


def _shifted(nest: LoopNest, bits: int, power: int, accounting: Accounting) -> tuple[int, Factors]:
    """Add words shifted by a power of two, which is a sign and an exponent of power - 1 bit."""
    if accounting.counting.accumulation == "operand-width":
        return accounting.widths.partial_sum_bits, ()
    return _sum(nest, bits, min(2 ** (power - 1), LONGEST_SHIFT) - 1, accounting)


def _sum(nest: LoopNest, bits: int, more: int, accounting: Accounting) -> tuple[int, Factors]:
    """Return the width of a sum of words of bits + more [bit], and a factor that says why.

    Every doubling of the terms takes a bit. A sum is no wider than one that leaves unfinished, and
    no narrower than the operand of `bits`.
    """
    if accounting.counting.accumulation == "operand-width":
        return bits, ()
    terms = _terms(nest)
    most = max(accounting.widths.partial_sum_bits, bits)
    found = bits + more + (terms - 1).bit_length()
    words = f"{bits} + {more}" if more else str(bits)
    why = f"a sum of {terms:,} terms of {words} bit has {found} bit"
    if found > most:
        why += f", of which partial_sum_bits keeps {most}"
    return min(found, most), (Factor("sums", 1, why),)


def _logic(nest: LoopNest, macs: Factors, accounting: Accounting) -> Operation:
    """Count a Boolean operation a MAC with its share of the count, or with the adder it takes."""
    if accounting.counting.boolean_price == "share-of-mac":
        return Operation("logic", 1, macs)
    terms = _terms(nest)
    bits = terms.bit_length()
    why = f"an XNOR, and 2b - 1 to add it to a sum of C HF WF = {terms:,} terms, b = {bits} bit"
    return Operation("logic", 1, (*macs, Factor("2b", 2 * bits, why)))


def _terms(nest: LoopNest) -> int:
    """Return the most terms that a sum of a nest has: C HF WF, without zeros between rows.

    >>> from hwmodel.work.problem import Extents, Window
    >>> spread = Window(8, spread=2)
    >>> _terms(LoopNest(Extents(1, 1, 64, 16, 16, 3, 3), spread, spread, 1, ("dO", "F", "dI")))
    256
    """
    taps = 1
    for length, window in ((nest.extent.HF, nest.height), (nest.extent.WF, nest.width)):
        apart = window.spread // gcd(window.spread, window.dilation)
        taps *= -(-length // apart)
    return nest.extent.C * taps
