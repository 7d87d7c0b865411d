"""Makes the entries of a work: one for each memory and direction, and for its operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from hwmodel.model.ledger import Component, Entry, entry
from hwmodel.model.prices import ARRAY_CYCLE, CHIP_CYCLE, Key
from hwmodel.model.workload import At
from hwmodel.specs.accounting import Accounting
from hwmodel.tiling.accesses import Asked, Mapping, asked
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.spatial import asked as spatial
from hwmodel.tiling.spatial.asked import time
from hwmodel.tiling.view import NOWHERE, Homes
from hwmodel.work.problem import OPERANDS, Operand
from hwmodel.work.tensor import Bits, Direction, Factor, Role, Tensor, product
from hwmodel.work.work import Kernel, Move, Multiply, Operate

__all__ = ["AWAY", "UNFINISHED", "Stay", "brought", "code_of", "left_at_home", "moved"]
__all__ += ["multiplied", "operated", "paid", "search_options", "width"]

UNFINISHED = (Role.UNFINISHED, Role.DRAINED, Role.RETURNED)
READ, WRITE, OPERATE = Direction.READ, Direction.WRITE, Direction.OPERATE
SOMEWHERE = At()
_OF_MAPS = (Role.OPERAND, Role.SAVED, Role.COPY)


def search_options(accounting: Accounting, work: Multiply) -> SearchOptions:
    """Return the options with which a product's tiles are searched."""
    return SearchOptions.of(accounting, work.pass_, fused=work.kernel is not None)


class Stay(NamedTuple):
    """Where the tensors of a work stay on the chip: of a product, or of a move's parts."""

    homes: Homes = NOWHERE  # of a product
    # Operands that are brought home, or sent out from there, once: their stay begins here.
    once: tuple[Operand, ...] = ()
    parts: tuple[int | None, ...] = ()  # of a move; empty: nowhere
    brought: tuple[int | None, ...] = ()  # of a move's parts: to where they are written once


AWAY = Stay()


def moved(
    layer: str,
    work: Move,
    chip: Memories,
    at: At = SOMEWHERE,
    stay: Stay = AWAY,
    *,
    both: bool = False,
) -> Iterator[Entry]:
    """Enter a move: in the outermost memory that holds the tensor, then through the others.

    There it is read where ifmaps lie, and written where ofmaps lie, level by level; levels that
    these pass by are not asked.

    What stays on the chip is moved at its level and further in; what is brought home as it is read
    is written on its way, where both sides of a transfer pay. Where a move takes several parts,
    as often as there are, each has its own.

    Args:
        chip: the memories as `work.kinds` lie in them.
        at: the place of the work in a schedule.
        both: whether both sides of a transfer pay.
    """
    operand: Operand = "I" if work.direction == READ else "O"
    tensor, names = work.tensor, at.stored[0]
    nowhere = (None,) * len(names)
    homes, brought = stay.parts or nowhere, stay.brought or nowhere
    each = work.times // len(names) if names else 0
    for level in range(len(chip.levels) if work.through else 1):
        if not chip.levels[level].holds(operand):
            continue
        here = [
            (name, 1 if into is not None and level < into else each)
            for name, home, into in zip(names, homes, brought, strict=True)
            if home is None or home <= level
        ]
        whole = len(here) == len(names) and all(times == each for _, times in here)
        times = work.times if whole else sum(times for _, times in here)
        key = Key(work.direction, chip.holder(level, operand).name)
        code = code_of(tensor, tensor.role, chip, key.name)
        yield entry(
            layer, work.pass_, Component.ELEMENTWISE, str(tensor), tensor.role, key,
            code.bits if code else tensor.bits,
            (Factor("times", times, work.why), *tensor.shape, *(code.told if code else ())),
            at.step, " + ".join(name for name, _ in here),
        )  # fmt: skip
    for name, home in zip(names, brought, strict=True) if both else ():
        for level in range(1, (home or 0) + 1):
            if chip.levels[level].holds(operand):
                memory = chip.holder(level, operand).name
                code = code_of(tensor, tensor.role, chip, memory)
                yield entry(
                    layer, work.pass_, Component.ELEMENTWISE, str(tensor), tensor.role,
                    Key(WRITE, memory), code.bits if code else tensor.bits,
                    (Factor("times", 1, "brought to where it stays"),
                     *tensor.shape, *(code.told if code else ())),
                    at.step, name,
                )  # fmt: skip


def operated(layer: str, work: Operate, full: int, at: At = SOMEWHERE) -> Entry:
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
    at: At = SOMEWHERE,
    stay: Stay = AWAY,
) -> Iterator[Entry]:
    """Enter a product: the accesses of every level, then its operations, then its time.

    A read pays the read energy of its memory, a write the write energy, what goes into one of
    several memories of a level the level's hop. An unfinished sum is never narrower than a
    finished one. Finished sums that an operator takes as they are made move nowhere. An operand
    that stays on the chip moves nothing outside its level.

    Args:
        chip: the memories as `work.kinds` lie in them.
        at: the place of the work in a schedule.
    """
    stored = dict(zip(OPERANDS, map(" + ".join, at.stored), strict=True))
    fewer_operations, fewer_reads = _gated(work, chip)
    inner = {x: max(n for n, one in enumerate(chip.levels) if one.holds(x)) for x in OPERANDS}
    steps = _steps(work)
    for level, (operand, direction, role, factors) in paid(work, mapping, chip, options, stay):
        tensor = work.operands[operand]
        last = direction == READ and level == inner[operand]
        yield from _expansion(layer, work, operand if last else "O", factors, at)
        factors = (*factors, *fewer_reads[operand] * last)
        hop = direction == Direction.HOP
        name = chip.levels[level].name if hop else chip.holder(level, operand).name
        key, bits = Key(direction, name), width(work, operand, role, options)
        code = None if hop else code_of(tensor, role, chip, name)
        if code:
            bits, factors = code.bits, (*factors, *code.told)
        yield entry(
            layer, work.pass_, Component.PRODUCT, str(tensor), role, key, bits, factors,
            at.step, stored[operand],
        )  # fmt: skip
    what = str(work.O), Role.OPERAND
    for kind, bits, factors, narrow, format_ in work.operations:
        factors = (*factors, *fewer_operations, *steps)
        key = Key(OPERATE, kind, bits, narrow, format_)
        yield entry(layer, work.pass_, Component.PRODUCT, *what, key, bits, factors, at.step)
    taken = time(work.problem, mapping, chip, options.rule)
    if taken is not None:
        met = work.nest.times[1:2] if work.nest.times else ()
        for name, cycles in ((ARRAY_CYCLE, taken.cycles), (CHIP_CYCLE, taken.moments)):
            each = (*cycles, *met, *steps)
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
    left = work.I.nonzero
    if left == 1 or chip.zeros == "none":
        return (), reads
    why = f"share of {work.I.title} that is not 0; on a chip with zeros: {chip.zeros}"
    share = (Factor("not 0", left, why),)
    return share, reads | ({"F": share} if chip.zeros == "operations-and-level-0" else {})


class Code(NamedTuple):
    """Words as a memory codes them."""

    bits: Bits  # of an element in the mean
    told: tuple[Factor, ...]  # how that came about; it multiplies nothing


def code_of(tensor: Tensor, role: Role, chip: Memories, memory: str) -> Code | None:
    """Return the code in which a memory takes a tensor; None where it takes plain words.

    Coded are maps in words of the code's own width of which a share of zeros is known; sums and
    what a method adds are not. The mean is a fraction, and the bits of all elements are rounded up.
    """
    code = next((code for name, code in chip.codings if name == memory), None)
    if code is None or role not in _OF_MAPS:
        return None
    if tensor.bits != code.word_bits or tensor.nonzero == 1:
        return None
    bits = Fraction(code.bits(1 - tensor.nonzero)).limit_denominator(10**9)
    if bits >= tensor.bits:
        return None
    why = (
        f"words of {tensor.bits} bit of which {1 - tensor.nonzero:.6g} are 0, as {memory} codes "
        f"them: {code.source}"
    )
    return Code(bits, (Factor("code", 1, why),))


def width(work: Multiply, operand: Operand, role: Role, options: SearchOptions) -> Bits:
    """Return the bits of an element that a product moves [bit]."""
    bits = work.operands[operand].bits
    return max(options.partial_sum_bits, bits) if role in (*UNFINISHED, Role.RUNNING) else bits


def paid(
    work: Multiply, mapping: Mapping, chip: Memories, options: SearchOptions, stay: Stay = AWAY
) -> Iterator[tuple[int, Asked]]:
    """List what each level is asked for by a product of which operands may stay on the chip."""
    for level, asks in enumerate(_levels(work, mapping, chip, options)):
        for one in asks:
            settled = one.operand == "O" and one.role == Role.OPERAND
            if not (settled and not work.leaves):
                home = stay.homes.of(one.operand)
                yield from ((level, left) for left in left_at_home(one, level, home))
        for operand in stay.once:
            at_home = stay.homes.of(operand)
            assert at_home is not None
            if chip.levels[level].holds(operand):
                yield from ((level, one) for one in brought(work, operand, level, at_home, options))


def left_at_home(one: Asked, level: int, home: int | None) -> Iterator[Asked]:
    """Yield what is left of what a level is asked for, where an operand stays at home.

    Nothing outside; at home nothing that comes from outside or goes there. Each sum that is added
    to another there finds that resting: S - 1 of S.
    """
    if home is None or level > home:
        yield one
    elif level == home:
        if one.operand != "O":
            yield from [one] if one.direction == READ else []
        elif one.direction == WRITE and one.role in (Role.UNFINISHED, Role.OPERAND):
            yield one
            if one.role == Role.UNFINISHED:
                yield one._replace(direction=READ)


def brought(
    work: Multiply, operand: Operand, level: int, home: int, options: SearchOptions
) -> Iterator[Asked]:
    """Yield what a level is asked for by an operand on its way home, or by sums from there."""
    sums, shape = operand == "O", work.operands[operand].shape
    if level < home:
        yield Asked(operand, WRITE if sums else READ, Role.OPERAND, shape)
    if 0 < level <= home and options.transfers == "both":
        yield Asked(operand, READ if sums else WRITE, Role.OPERAND, shape)


def _levels(
    work: Multiply, mapping: Mapping, chip: Memories, options: SearchOptions
) -> Iterator[Sequence[Asked]]:
    found: Iterable[Sequence[Asked]]
    if chip.spatial or options.transfers == "both":
        found = spatial.asked(work.problem, mapping, chip, options.rule, options.transfers)
    else:
        found = asked(work.problem, mapping, options.counting, options.rule)
    if work.kernel:
        found = _in_kernel(work, work.kernel, mapping, chip, found)
    times = dict(zip(OPERANDS, work.nest.times or (), strict=False))
    steps = _steps(work)
    if not times and not steps:
        yield from found
        return
    for asks in found:
        yield [
            one._replace(factors=(*one.factors, *([times[one.operand]] if times else ()), *steps))
            for one in asks
        ]


def _steps(work: Multiply) -> tuple[Factor, ...]:
    """How often the nest is done, where it is more than once."""
    return (Factor("steps", work.repeats, "one after the other"),) if work.repeats > 1 else ()


def _in_kernel(
    work: Multiply,
    kernel: Kernel,
    mapping: Mapping,
    chip: Memories,
    found: Iterable[Sequence[Asked]],
) -> Iterator[Sequence[Asked]]:
    """What is left of what levels are asked for, of a product that runs in a kernel's blocks.

    Of what other products brought in, what MACs read; of a result that rests beside an operand,
    the sums that leave a block with it unfinished, and come back: S - 1 and S - T of an output.

    Source: docs/model.md section 7.
    """
    last = {x: max(n for n, one in enumerate(chip.levels) if one.holds(x)) for x in OPERANDS}
    inner, leaving = dict(zip(OPERANDS, (*kernel.inner, 1), strict=True)), 1
    above: tuple[int, int] | None = None  # sums that arrive and go on where they come from
    for level, asks in enumerate(found):
        left: list[Asked] = []
        for one in asks:
            x, to_macs = one.operand, level == last[one.operand] and one.direction == READ
            if to_macs and x != "O":
                again = Factor("products", inner[x], "of the same blocks multiply it")
                met = _met(kernel, x, None)
                more = (*((again,) if inner[x] != 1 else ()), *met)
                left += [one._replace(factors=(*one.factors, *more))] * (inner[x] > 0)
            elif x == "O" or x in kernel.moved:
                tile = mapping.unions or mapping.tiles
                block = tile[level] if level < len(tile) else None
                more = _met(kernel, x, block.M) if x == "I" and block else ()
                left.append(one._replace(factors=(*one.factors, *more)))
            if x == kernel.running and one.direction == WRITE and above:  # both sides pay
                left += _drained(work, *above)
            if x == kernel.running and one.direction == READ and not to_macs:
                size = work.O.elements
                arrive = product(one.factors) // size if size else 1
                left += _running(work, arrive, leaving)
                above, leaving = (arrive, leaving), arrive
        yield left


def _met(kernel: Kernel, operand: Operand, block: int | None) -> tuple[Factor, ...]:
    """The share of what streams past a block, or of what MACs read, that no mask hides."""
    if kernel.mask is None:
        return ()
    side, rows = kernel.mask
    share = side.share(rows, block or 1)
    why = "of them, since a mask hides the others"
    return (Factor("met", share, why),) if share != 1 else ()


def _running(work: Multiply, arrive: int, leaving: int) -> Iterator[Asked]:
    """Sums that rest beside an operand, and leave a block with it before they are finished."""
    yield from _of_sums(work, arrive, leaving, ((WRITE, "S - 1"), (READ, "S - T")))


def _drained(work: Multiply, arrive: int, leaving: int) -> Iterator[Asked]:
    """The same where they come from: read as they leave; written, and read, as they come back."""
    yield from _of_sums(work, arrive, leaving, ((READ, "S - 1"), (WRITE, "S - T"), (READ, "S - T")))


def _of_sums(
    work: Multiply, arrive: int, leaving: int, asks: Iterable[tuple[Direction, str]]
) -> Iterator[Asked]:
    why = f"S = {arrive:,} sums of an output arrive; T = {leaving:,} go on up"
    numbers = {"S - 1": arrive - 1, "S - T": arrive - leaving}
    for direction, name in asks:
        if numbers[name] > 0:
            factors = (*work.O.shape, Factor(name, numbers[name], why))
            yield Asked("O", direction, Role.RUNNING, factors)
