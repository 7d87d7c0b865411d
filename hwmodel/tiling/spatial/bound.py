"""A lower bound of the energy on a chip with memories side by side.

Terms of three kinds are bounded apart; those of the first two by machines of one memory a level,
whose optimum the search for these proves or bounds:

1.  What the memories above are asked for. All instances that are served by one read hold, together,
    a union tile; so it fits one memory of as many times the capacity. Instances that are not
    merged are each served for their own tile.
2.  What crosses into the instances of a level, from a memory in which everything lies: their tile
    fits one instance, and a held operand is brought once at least.
3.  What the MACs ask for: each product takes part in it, shared by as many as the array has.

At level 0 each sum that begins saves a read; so where sums leave it as they arrive above, the first
machine has that much off its price of an arriving sum, elsewhere the second. Further out, instances
that share a reduction begin a sum each, and where the upper memory alone pays, nothing is set
against the reads that this saves: sums are read there for nothing in the first machine.

Source: docs/chips.md, 'The search'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.search import Options, at_least, optimal
from hwmodel.tiling.options import Bound as Spread
from hwmodel.tiling.options import Memories, Memory, MemoryLevel, SearchOptions
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.rows import products
from hwmodel.tiling.spatial.paths import Axis, Step, meetings, rows
from hwmodel.work.problem import OPERANDS, Extents, Operand, Problem

__all__ = ["Bound", "bound", "closer"]

ELEMENTS = (Step(1, True),)
LONG = 2**17  # pairs of an output and a tap of an axis, by which budgets fall


class Bound(NamedTuple):
    """A lower bound, and the mappings by which its parts came about."""

    energy: float  # [chip's unit]
    above: Mapping  # union tiles of all levels
    inside: dict[int, Mapping]  # the tile of one instance, by level
    proved: dict[int, float]  # parts that no budget makes higher, by level; 0: of what is above


class _Sums(NamedTuple):
    """How what the MACs ask for of O is parted."""

    arrives: float  # more for a sum that arrives above level 0 [chip's unit/bit]
    leaves: float  # for a sum that leaves an instance of level 0 [chip's unit/bit]
    energy: float  # for all else, a lower bound [chip's unit]


def bound(problem: Problem, chip: Memories, options: SearchOptions, share: int = 1) -> Bound:
    """Return a lower bound of memories, hops, arrays and time.

    Holds for: rows that are touched; bounding rows of parts may be fewer than those of the whole.

    Args:
        share: of a search's budget, one part in so many goes into each machine.

    Raises: Infeasible, TooLarge.
    """
    macs, own = _Macs(problem, chip, options), _own(problem, options, share)
    total, mappings, proved = macs.energy(), {}, {}
    for level, machine in _machines(macs):
        found = optimal(problem, machine, own)
        mappings[level] = found.mapping
        least = found.certificate.lower_bound
        total += least
        if found.certificate.proved:
            proved[level] = least
    return Bound(max(0.0, total), mappings.pop(0), mappings, proved)


def closer(problem: Problem, chip: Memories, options: SearchOptions, known: Bound) -> float:
    """Return the energy of `bound` with all of a search's budget, from one that is known.

    Raises: Infeasible, TooLarge.
    """
    macs, own = _Macs(problem, chip, options), _own(problem, options, 1)
    total = macs.energy()
    for level, machine in _machines(macs):
        least = known.proved.get(level)
        total += at_least(problem, machine, own) if least is None else least
    return max(0.0, total)


def _own(problem: Problem, options: SearchOptions, share: int) -> Options:
    """The options of each machine's search; on long axes each tiling takes longer."""
    n = problem.extent
    share *= 1 + max(n.HO * n.HF, n.WO * n.WF) // LONG
    return Options(
        partial_sum_bits=options.partial_sum_bits,
        stationary=options.stationary,
        rule=options.rule,
        budget=Options.budget // share,
    )


def _machines(macs: _Macs) -> Iterator[tuple[int, Memories]]:
    """Machines of one memory a level: 0, of what is above; and by level, of what is inside."""
    chip, sums = macs.chip, macs.sums()
    yield 0, _pooled(chip, sums.arrives, _begun_apart(macs))
    for level in range(1, len(chip.levels)):
        leaves = sums.leaves if level == len(chip.levels) - 1 else None
        machine = _entered(chip, level, macs.options, leaves)
        if machine is not None:
            yield level, machine


def _begun_apart(macs: _Macs) -> frozenset[int]:
    """Levels between the outermost and level 0 in whose instances sums of one output may begin."""
    chip, n = macs.chip, macs.problem.extent
    if macs.options.transfers == "both":  # each that leaves pays a read
        return frozenset()
    summed = {loop for loop in ("C", "HF", "WF") if getattr(n, loop) > 1}
    found, apart = set(), False
    for i, level in enumerate(chip.levels[:-1]):
        axes = level.axes or (Spread(Extents._fields, level.fanout),)
        apart |= level.fanout > 1 and any(summed & set(a.loops) and a.most > 1 for a in axes)
        if apart:
            found.add(i)
    return frozenset(found)


def _pooled(chip: Memories, arrives: float, begun: frozenset[int]) -> Memories:
    """One memory a level, as large as all its instances that are served together.

    Args:
        arrives: what a sum that arrives above level 0 costs more [chip's unit/bit].
        begun: levels at which reads of sums may be saved.
    """
    last = len(chip.levels) - 1
    above = max(i for i, level in enumerate(chip.levels[:last]) if level.holds("O"))
    levels = []
    for i, level in enumerate(chip.levels):
        apart: tuple[Operand, ...] = OPERANDS if i == last else _straight_to_macs(chip, i)
        if chip.array is None and level.fanout == 1:
            apart = ()
        times = level.fanout if level.multicast or level.reduction else 1
        whole = _whole(level, times, apart)
        if i == above and arrives:
            buffers = [_dearer(b, arrives) if "O" in b.holds else b for b in whole.buffers]
            whole = MemoryLevel(level.name, tuple(buffers))
        if i in begun:
            whole = MemoryLevel(level.name, tuple(_unread(whole)))
        levels.append(whole)
    return Memories(tuple(levels))


def _straight_to_macs(chip: Memories, level: int) -> tuple[Operand, ...]:
    """Operands that a level gives straight to an array, which is counted there."""
    inside = chip.levels[level + 1 :]
    here = chip.levels[level]
    return tuple(
        x for x in OPERANDS if here.holds(x) and not any(inner.holds(x) for inner in inside)
    )


def _unread(level: MemoryLevel) -> Iterator[Memory]:
    """The memories of a level with sums apart, as if they had the room for themselves, and reads
    of them for nothing.
    """
    for memory in level.buffers:
        if "O" not in memory.holds:
            yield memory
            continue
        name = f"{memory.name} O"
        yield memory._replace(name=name, holds=("O",), read_energy_per_bit=0.0)
        if others := tuple(x for x in memory.holds if x != "O"):
            yield memory._replace(holds=others)


def _dearer(memory: Memory, more: float) -> Memory:
    return memory._replace(write_energy_per_bit=memory.write_energy_per_bit + more)


def _whole(level: MemoryLevel, times: int, apart: tuple[Operand, ...]) -> MemoryLevel:
    """A level as one memory of several times its size; what passes it by has room for nothing.

    Args:
        apart: operands whose accesses are counted elsewhere; as if each had the room for itself.
    """
    buffers = []
    for memory in level.buffers:
        bits = memory.capacity_bits
        here = memory._replace(capacity_bits=None if bits is None else times * bits)
        free = here._replace(read_energy_per_bit=0.0, write_energy_per_bit=0.0)
        if set(memory.holds) <= set(apart):
            buffers.append(free)
            continue
        kept = tuple(x for x in memory.holds if x not in apart)
        buffers.append(here._replace(holds=kept))
        buffers += [
            free._replace(name=f"{memory.name} {x}", holds=(x,)) for x in memory.holds if x in apart
        ]
    passing = tuple(x for x in OPERANDS if not level.holds(x))
    if passing:
        buffers.append(Memory("passed by", passing, None, 0.0, 0.0))
    return MemoryLevel(level.name, tuple(buffers))


def _entered(
    chip: Memories, level: int, options: SearchOptions, leaves: float | None
) -> Memories | None:
    """A memory in which everything lies, and one instance of a level; None if nothing is paid."""
    inner, last = chip.levels[level], level == len(chip.levels) - 1
    hop = inner.hop_energy_per_bit
    both = last and options.transfers == "both"
    prices: dict[Operand, tuple[float, float]] = {}
    for x in OPERANDS:
        if not inner.holds(x):
            prices[x] = (0.0, 0.0)
        elif x == "O":
            prices[x] = (0.0, hop if leaves is None else leaves)
        else:
            written = chip.holder(level, x).write_energy_per_bit
            prices[x] = (hop + (written if both else 0.0), 0.0)
    free = not last or chip.array is not None or inner.fanout == 1
    if free and not any(map(any, prices.values())):
        return None
    top = tuple(Memory(f"all {x}", (x,), None, *prices[x]) for x in OPERANDS)
    return Memories((MemoryLevel("everything", top), _whole(inner, 1, OPERANDS if free else ())))


class _Macs(NamedTuple):
    """What the MACs ask for, at least."""

    problem: Problem
    chip: Memories
    options: SearchOptions

    def energy(self) -> float:
        """Energy of all that no machine counts."""
        return self.sums().energy + self.time() + self.reads("I") + self.reads("F")

    def reads(self, x: Operand) -> float:
        """Energy of what the MACs read of I or of F; 0 where a machine counts it."""
        if self.chip.array is None:
            return 0.0
        level, merged = self._holder(x, multicast=True)
        bits: int = getattr(self.problem.bits, x)
        energy = self.chip.holder(level, x).read_energy_per_bit * bits
        n, (height, width) = self.problem.extent, self._axes()
        if self.chip.array.holds == x:
            if x == "I":
                elements = n.N * n.C * rows(height, (), ()) * rows(width, (), ())
            else:
                elements = n.M * n.C
                elements *= prod(meetings(axis, (), ELEMENTS).taps for axis in (height, width))
            return energy * self.problem.groups * elements
        if x == "I":
            shared = self._most(("M",)) * min(self._most(("HO",)), self._most(("HF",)))
            shared *= min(self._most(("WO",)), self._most(("WF",)))
        else:
            shared = self._most(("N", "HO", "WO"))
        return energy * self._products() / (shared * merged)

    def sums(self) -> _Sums:
        """What the MACs write and read of O, and what leaves level 0.

        With W writes, of which B begin a sum, D sums leaving level 0 and F finished:

            w (W - F) + w F + r (W - B),  B <= D, B <= W, F <= |O|

        where r B is set against what D costs, and where that is too little, against W.
        """
        last = len(self.chip.levels) - 1
        inner, wide = (
            self.chip.levels[last],
            partial_sum_bits(self.problem, self.options.partial_sum_bits),
        )
        level, merged = self._holder("O", multicast=False)
        memory = self.chip.holder(level, "O")
        r, w = memory.read_energy_per_bit, memory.write_energy_per_bit
        leaves = inner.hop_energy_per_bit if level == last else 0.0
        if level == last and self.options.transfers == "both":
            leaves += r
        if self.chip.array is None:
            return _Sums(0.0, leaves, 0.0)
        narrow = (wide - self.problem.bits.O) * self.problem.O_elements
        if self.chip.array.holds == "O":
            n, done = self.problem.extent, 1
            for axis in self._axes():
                done *= meetings(axis, ELEMENTS, ()).outs
            finished = self.problem.groups * n.N * n.M * done
            return _Sums(0.0, leaves, w * self.problem.bits.O * finished)
        written = self._products() / (self._most(("C", "HF", "WF")) * merged)
        if level != last:
            return _Sums(0.0, 0.0, w * (wide * written - narrow))
        arrives, rest = 0.0, r
        used = min(leaves, rest)
        leaves, rest = leaves - used, rest - used
        above = max(i for i, x in enumerate(self.chip.levels[:last]) if x.holds("O"))
        alike = above == last - 1 and (inner.fanout == 1 or not inner.reduction)
        if alike and self.options.transfers == "upper":
            arrives = -min(self.chip.holder(above, "O").write_energy_per_bit, rest)
            rest += arrives
        return _Sums(arrives, leaves, (w + r - rest) * wide * written - (w + r) * narrow)

    def time(self) -> float:
        """Energy of cycles and moments, each of which makes as many products as it can."""
        array = self.chip.array
        if array is None:
            return 0.0
        side = prod(level.fanout for level in self.chip.levels)
        cycles = self._products() / self._most(Extents._fields)
        return cycles * array.cycle_energy + cycles / side * self.chip.moment_energy

    def _holder(self, x: Operand, *, multicast: bool) -> tuple[int, int]:
        """The level that serves the MACs, and how many innermost instances it serves at once."""
        merged = 1
        for level in range(len(self.chip.levels) - 1, -1, -1):
            there = self.chip.levels[level]
            if there.holds(x):
                break
            merged *= there.fanout if (there.multicast if multicast else there.reduction) else 1
        return level, merged

    def _most(self, loops: Iterable[str]) -> int:
        """The most of some loops together that a cycle of an array takes."""
        array, n = self.chip.array, self.problem.extent
        assert array is not None
        lanes = array.lanes(self.problem.lane)
        together = set(loops)
        found = 1
        free = together - {loop for bound in array.axes for loop in bound.loops}
        for axis in array.axes:
            here = together & set(axis.loops)
            if here:
                most = axis.most * (lanes if "C" in axis.loops else 1)
                found *= min(most, prod(getattr(n, loop) for loop in here))
        return found * (min(lanes, n.C) if "C" in free else 1)

    def _products(self) -> int:
        n, (height, width) = self.problem.extent, self._axes()
        met = [products(axis.window, axis.rule, axis.outs, axis.taps) for axis in (height, width)]
        return self.problem.groups * n.N * n.M * n.C * prod(met)

    def _axes(self) -> tuple[Axis, Axis]:
        n, rule = self.problem.extent, self.options.rule
        return (
            Axis(self.problem.height, rule, n.HO, n.HF),
            Axis(self.problem.width, rule, n.WO, n.WF),
        )
