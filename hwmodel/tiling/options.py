"""Memories and options of a search: beside its problem, all that a tiling depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.coding import RunLength
from hwmodel.specs.hardware import Buffer, Hardware
from hwmodel.specs.spread import AXES, ArraySpec, Spread
from hwmodel.tiling.rows import RowRule
from hwmodel.work.problem import OPERANDS, PASSES, Operand, ProductPass, Widths
from hwmodel.work.tensor import Kinds, Pass, kind_of

__all__ = [
    "Array",
    "Bound",
    "Memories",
    "Memory",
    "MemoryLevel",
    "SearchOptions",
    "Sizes",
    "Stationary",
    "Transfers",
    "all_memories",
    "memories",
    "pass_kinds",
]

# What the boundaries may hold: filters at all of them; filters at all or ifmaps at all; anything.
Stationary = Literal["filter", "either", "best"]
Sizes = Literal["quotients", "integers"]  # extents that the level-by-level search tries


# Who pays for what moves: the memory that is asked, or the one below it, too.
Transfers = Literal["upper", "both"]


@dataclass(frozen=True)
class SearchOptions:
    """The choices that the search may make, and its rules of counting."""

    search: Literal["level-by-level", "optimal"]
    stationary: Stationary
    counting: Literal["paper", "exact"]
    rows: Literal["touched", "bounding"]
    padding: Literal["skipped", "counted"]
    partial_sum_bits: int
    sizes: Sizes = "quotients"
    transfers: Transfers = "upper"
    share: int = 1  # of the usual budget, one part in so many
    spare: float = 0.0  # of the energy: a tiling that saves less need not be found
    slack: float = 0.0  # [chip's unit]: likewise

    @classmethod
    def of(cls, accounting: Accounting, pass_: Pass, *, fused: bool = False) -> SearchOptions:
        """Return the options of one pass: in backward_weight either operand may stay.

        Args:
            fused: filters are held, as products need it that run through the same blocks.
        """
        held: Stationary = "filter" if fused else accounting.counting.stationary
        free = accounting.counting.weight_gradient == "best-of-two-roles"
        if held == "filter" and free and pass_ == Pass.BACKWARD_WEIGHT and not fused:
            held = "either"
        return cls(
            search=accounting.counting.search,
            stationary=held,
            counting=accounting.counting.counting,
            rows=accounting.counting.rows,
            padding=accounting.counting.padding,
            partial_sum_bits=accounting.widths.partial_sum_bits,
            sizes=accounting.counting.tile_sizes,
            transfers=accounting.counting.transfers,
        )

    @property
    def rule(self) -> RowRule:
        """The rule that says which rows of I are moved and stored."""
        return RowRule(self.rows, self.padding)


class Memory(NamedTuple):
    """One memory of a chip, as the search sees it."""

    name: str
    holds: tuple[Operand, ...]
    capacity_bits: int | None  # None: unlimited
    read_energy_per_bit: float  # [chip's unit/bit]
    write_energy_per_bit: float
    passed: bool = False  # a tensor stays further in: the memory below pays for no transfer


class Bound(NamedTuple):
    """So many pieces of some loops together, side by side or in one cycle."""

    loops: tuple[str, ...]
    most: int


class MemoryLevel(NamedTuple):
    """The memories of one level: of one of its instances, if there are several."""

    name: str
    buffers: tuple[Memory, ...]
    fanout: int = 1  # instances under each one of the level above
    axes: tuple[Bound, ...] | None = None  # over which loops are spread; None: any loops
    multicast: bool = True  # one read serves all instances that want an element at a moment
    reduction: bool = True  # sums of instances that share an output are added on their way up
    hop_energy_per_bit: float = 0.0  # delivered to an instance, or of a sum that leaves one

    def holds(self, operand: Operand) -> bool:
        """Whether an operand lies here, or passes this level by."""
        return any(operand in memory.holds for memory in self.buffers)


class Array(NamedTuple):
    """The MACs under one memory of level 0: what they do in one cycle."""

    axes: tuple[Bound, ...]
    holds: Operand | Literal["none"] = "none"  # rests in registers of the MACs
    operand_bits: int | None = None  # of a lane of C, which narrower operands share
    cycle_energy: float = 0.0  # [chip's unit]

    def lanes(self, bits: Widths) -> int:
        """Operands that share a lane of C.

        Source: docs/chips.md, 'The array of MACs'.
        """
        if self.operand_bits is None:
            return 1
        return max(1, int(self.operand_bits // max(bits.I, bits.F)))


class Memories(NamedTuple):
    """The levels of a chip, outermost first: all that a search asks of hardware."""

    levels: tuple[MemoryLevel, ...]
    array: Array | None = None  # None: level 0 is read as by an unlimited broadcast
    moment_energy: float = 0.0  # static energy of a cycle of the whole chip [chip's unit]
    zeros: str = "none"  # what inputs that are 0 save
    codings: tuple[tuple[str, RunLength], ...] = ()  # of memories by name: how maps cross them

    def macs(self, bits: Widths) -> int:
        """MACs of the whole chip that operands of these widths can use at a time."""
        if self.array is None:
            raise LookupError("no array says how many MACs there are")
        sizes = (bound.most for bound in self.array.axes)
        under = (level.fanout for level in self.levels)
        return prod(sizes) * prod(under) * self.array.lanes(bits)

    @property
    def spatial(self) -> bool:
        """Whether any memory is there several times or passed by, or MACs form an array."""
        whole = all(x.fanout == 1 and all(map(x.holds, OPERANDS)) for x in self.levels)
        return self.array is not None or not whole

    def holder(self, level: int, operand: Operand) -> Memory:
        """Return the memory that holds `operand` at `levels[level]` (0 is the outermost)."""
        for memory in self.levels[level].buffers:
            if operand in memory.holds:
                return memory
        raise LookupError(f"{self.levels[level].name} holds no {operand}")


def pass_kinds(pass_: ProductPass) -> Kinds:
    """Return the kinds of what is at I, F and O in a pass of a layer with weights.

    >>> [kind.value for kind in pass_kinds("backward_weight")]
    ['maps', 'signals', 'gradients']
    """
    at_I, at_F, at_O = map(kind_of, PASSES[pass_])
    return at_I, at_F, at_O


_FORWARD = pass_kinds("forward")


def memories(chip: Hardware, kinds: Kinds = _FORWARD) -> Memories:
    """Return the memories of a chip as a product of three tensors sees them.

    The outermost level is those of its memories in which the three lie. Whether they have room
    there is no matter of tiles: `model/memory.py` sees to it. Prices of arithmetic, sources and
    the chip's name are left out; those of what moves are at the voltage at which the chip runs.

    Args:
        kinds: of what is at I, F and O.
    """
    return all_memories(chip, (kinds,))[0]


def all_memories(chip: Hardware, several: Sequence[Kinds]) -> tuple[Memories, ...]:
    """Return `memories` for several products; what they share is made once."""
    inner = tuple(
        MemoryLevel(
            level.name,
            tuple(_memory(b, b.operands, b.capacity_bits, chip.scale_of(b)) for b in level.buffers),
            *_spread(level, chip.scale),
        )
        for level in chip.levels[1:]
    )
    every = (buffer for level in chip.levels for buffer in level.buffers)
    codings = tuple((one.name, one.coding) for one in every if one.coding)
    ends = _array(chip.array, chip.scale), chip.static_energy, chip.zeros, codings
    return tuple(Memories((_outermost(chip, kinds), *inner), *ends) for kinds in several)


def _outermost(chip: Hardware, kinds: Kinds) -> MemoryLevel:
    """The outermost memories in which tensors of three kinds lie."""
    places = zip(OPERANDS, kinds, strict=True)
    holders = [(chip.keepers[kind], operand) for operand, kind in places]
    buffers = [
        _memory(one, tuple(x for memory, x in holders if memory is one), None, chip.scale_of(one))
        for one in chip.levels[0].buffers
        if any(memory is one for memory, _ in holders)
    ]
    return MemoryLevel(chip.levels[0].name, tuple(buffers))


def _memory(
    buffer: Buffer, holds: tuple[Operand, ...], capacity_bits: int | None, scale: float
) -> Memory:
    read, write = buffer.read_energy_per_bit * scale, buffer.write_energy_per_bit * scale
    return Memory(buffer.name, holds, capacity_bits, read, write)


def _spread(level: Spread, scale: float) -> tuple[int, tuple[Bound, ...] | None, bool, bool, float]:
    """How a level's memories lie side by side, in the order of `MemoryLevel`."""
    return (
        level.instances,
        _bounds(level.fanout) if isinstance(level.fanout, dict) else None,
        level.multicast is not False,
        level.reduction is not False,
        scale * level.hop_energy.value if level.hop_energy else 0.0,
    )


def _bounds(axes: dict[str, int]) -> tuple[Bound, ...]:
    return tuple(Bound(AXES[axis], size) for axis, size in axes.items())


def _array(stated: ArraySpec | None, scale: float) -> Array | None:
    if stated is None:
        return None
    energy = scale * stated.cycle_energy.value if stated.cycle_energy else 0.0
    return Array(_bounds(stated.axes), stated.holds, stated.operand_bits, energy)
