"""Tensors with their accesses in order, and the stays on chip that may be chosen: items.

An **item** keeps a tensor at one level: **whole**, from its first use to its last, so that nothing
of it moves outside; or a **segment**, from one access to the next, which then reads on the chip.
What is read before it is written (the network's input, the signal of the loss) has segments alone,
and so has what the network gives, which is always written. Weights and states that stay whole stay
through the whole iteration and on to the next.

Source: docs/model.md section 11.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from hwmodel.model.memory import Stored
from hwmodel.model.workload import Task
from hwmodel.work.problem import OPERANDS, Operand
from hwmodel.work.tensor import Direction, Role
from hwmodel.work.work import Move, Multiply

__all__ = ["Access", "Item", "Tracked", "items", "tracked"]


class Access(NamedTuple):
    """A work reads or writes a tensor."""

    task: int  # number of the task
    place: int  # of I, F and O of a product; of a part of a move
    step: int
    writes: bool

    @property
    def operand(self) -> Operand:
        """The operand of a product."""
        return OPERANDS[self.place]


Touch = tuple[Access, ...]  # accesses of one tensor in one step and direction


class Item(NamedTuple):
    """A tensor that stays at a level, from the first step to the last, both included."""

    name: str
    bits: int
    level: int  # from the outermost, which is 0
    first: int
    last: int
    saves: Touch  # accesses of which nothing is paid outside the level
    begins: Touch  # the access with which a segment begins, which is paid outside once
    finds: Touch  # others of that step, which find there what one read has brought
    whole: bool


@dataclass(frozen=True)
class Tracked:
    """A tensor, and what touches it, in order."""

    stored: Stored
    touches: tuple[Touch, ...]
    is_given: bool  # to whoever asked

    @property
    def begins_read(self) -> bool:
        """Whether it is there before the run, or comes from outside."""
        return not self.touches[0][0].writes


def tracked(
    tasks: Sequence[Task], tensors: Collection[Stored], given: Collection[str]
) -> list[Tracked]:
    """Collect the accesses of every tensor; without those of which parts move that are not told.

    Args:
        given: names of tensors that whoever asked takes.
    """
    found: dict[str, dict[tuple[int, bool], list[Access]]] = {}
    hidden: set[str] = set()
    for number, task in enumerate(tasks):
        for place, name, writes, is_told in _accesses(task):
            access = Access(number, place, task.at.step, writes)
            found.setdefault(name, {}).setdefault((access.step, writes), []).append(access)
            if not is_told:
                hidden.add(name)
    result = []
    for stored in tensors:
        touches = found.get(stored.name)
        if not touches or stored.name in hidden or not stored.bits:
            continue
        # In its first step a tensor is written first; what is kept is read, then written anew.
        made = min(touches)[0] if not stored.part.is_kept else -1
        order = sorted(touches, key=lambda at: (at[0], at[1] != (at[0] == made)))
        result.append(
            Tracked(stored, tuple(tuple(touches[at]) for at in order), stored.name in given)
        )
    return result


def _accesses(task: Task) -> Iterator[tuple[int, str, bool, bool]]:
    """The tensors that a work uses: place, name, whether written, whether the part is told."""
    work, stored = task.work, task.at.stored
    if isinstance(work, Multiply):
        for place, names in enumerate(stored):
            writes = place == 2
            if writes and not work.leaves:
                continue
            yield from ((place, name, writes, len(names) == 1) for name in names)
    elif isinstance(work, Move) and work.times:
        several = work.tensor.role in (Role.FORK, Role.SHARED) and len(stored[0]) == work.times
        for place, name in enumerate(stored[0]):
            is_told = len(stored[0]) == 1 or several
            yield place, name, work.direction == Direction.WRITE, is_told


def items(tensors: Sequence[Tracked], capacities: Mapping[int, int], last: int) -> list[Item]:
    """List every item that fits its level alone.

    Args:
        capacities: of the levels at which tensors may stay [bit].
        last: number of the last step.
    """
    return [
        item
        for one in tensors
        for level, capacity in capacities.items()
        if one.stored.bits <= capacity
        for item in _of(one, level, last)
    ]


def _of(one: Tracked, level: int, last: int) -> Iterator[Item]:
    name, _, bits, first, end = one.stored
    touches, is_kept = one.touches, one.stored.part.is_kept
    is_read = any(not touch[0].writes for touch in touches)
    if is_read and not one.is_given and (is_kept or not one.begins_read):
        life = (0, last) if is_kept else (first, end)
        every = tuple(access for touch in touches for access in touch)
        yield Item(name, bits, level, *life, every, (), (), whole=True)
    for before, after in pairwise(touches):
        if not after[0].writes:
            steps = before[0].step, after[0].step
            first = len(before) if before[0].writes else 1
            found = before[:first], before[first:]
            yield Item(name, bits, level, *steps, after, *found, whole=False)
