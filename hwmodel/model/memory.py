"""What a run keeps in the outermost memories: every tensor from its first use to its last.

At a step there live all tensors whose first use is not after it and whose last use is not before
it; weights and states always live. The most bits that live at one step are the peak. All that a
run needs is kept, whether or not an accounting counts its moves (`schedule.everything`). Elements
lie without gaps: eight of 1 bit in a byte.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from hwmodel.errors import Lack, NoRoom
from hwmodel.model.names import Part
from hwmodel.model.schedule import Schedule
from hwmodel.model.steps import Step
from hwmodel.specs.hardware import Hardware
from hwmodel.work.tensor import KINDS, TensorKind

__all__ = ["Occupancy", "Peak", "Stored", "occupancy", "see_room"]


class Stored(NamedTuple):
    """A tensor, and the steps at which it lives."""

    name: str
    part: Part
    bits: int  # of all its elements [bit]
    first: int  # number of the step
    last: int


class Peak(NamedTuple):
    """The step at which most bits live, and what lives then."""

    number: int  # of the step, from 0
    step: Step
    bits: int
    tensors: tuple[Stored, ...]  # the largest first

    @property
    def size(self) -> int:
        """Whole bytes."""
        return -(-self.bits // 8)

    @property
    def parts(self) -> dict[Part, int]:
        """Bits of each class that is there [bit], in the order of `Part`."""
        found = {part: sum(t.bits for t in self.tensors if t.part == part) for part in Part}
        return {part: bits for part, bits in found.items() if bits}


@dataclass(frozen=True)
class Occupancy:
    """The steps of a run in order, and all of its tensors."""

    steps: tuple[Step, ...]
    tensors: tuple[Stored, ...]

    def bits(self, kinds: Collection[TensorKind] = KINDS) -> list[int]:
        """Bits of tensors of some kinds that live at each step [bit]."""
        change = [0] * (len(self.steps) + 1)
        for one in self.tensors:
            if one.part.kind in kinds:
                change[one.first] += one.bits
                change[one.last + 1] -= one.bits
        return list(accumulate(change))[:-1]

    def peak(self, kinds: Collection[TensorKind] = KINDS) -> Peak:
        """Return the first step at which the most bits of tensors of some kinds live."""
        bits = self.bits(kinds)
        at = bits.index(max(bits))
        living = [t for t in self.tensors if t.part.kind in kinds and t.bits]
        living = [t for t in living if t.first <= at <= t.last]
        return Peak(at, self.steps[at], bits[at], tuple(sorted(living, key=lambda one: -one.bits)))


def occupancy(runs: Sequence[Schedule]) -> Occupancy:
    """Return what the steps of runs keep, one run after the other."""
    steps = tuple(step for run in runs for step in run.steps)
    lives: dict[str, Stored] = {}
    for number, uses in enumerate(uses for run in runs for uses in run.uses):
        for name, part, bits, _ in uses:
            known = lives.get(name, Stored(name, part, bits, number, number))
            lives[name] = known._replace(bits=max(known.bits, bits), last=number)
    end = len(steps) - 1
    sums = any(run.sums_gradients for run in runs)
    kept = {
        name: t._replace(first=0, last=end)
        for name, t in lives.items()
        if t.part.is_kept or (sums and t.part == Part.GRADIENTS)
    }
    return Occupancy(steps, tuple((lives | kept).values()))


def see_room(chip: Hardware, kept: Occupancy, run: str) -> None:
    """See that a run has room in every outermost memory that has an end.

    Args:
        run: what it is called in the message.

    Raises: NoRoom.
    """
    lacks = []
    for memory in chip.levels[0].buffers:
        most = kept.peak(memory.kinds)
        if memory.capacity_bits is not None and most.bits > memory.capacity_bits:
            tensors = tuple((tensor.name, tensor.bits) for tensor in most.tensors)
            step = str(most.step)
            lacks.append(Lack(memory.name, step, most.bits, memory.capacity_bits, tensors))
    if lacks:
        raise NoRoom(run, chip.name, lacks, kept.peak().size)
