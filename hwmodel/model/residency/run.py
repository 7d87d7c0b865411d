"""A run with tensors that stay on the chip: what it costs, step by step, for a choice of items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from hwmodel.model.entries import AWAY, Stay, code_of
from hwmodel.model.progress import counted
from hwmodel.model.residency.items import Access, Item
from hwmodel.model.residency.products import Product, Tiled
from hwmodel.model.residency.tilings import ROUNDING
from hwmodel.model.workload import Task
from hwmodel.tiling.options import Memories
from hwmodel.work.problem import OPERANDS, Operand
from hwmodel.work.tensor import Direction, product
from hwmodel.work.work import Move

__all__ = ["Known", "Outcome", "Run", "Streamed", "Stuck"]


@dataclass(frozen=True)
class Streamed:
    """A move, and what one of its parts costs at each level [chip's unit]."""

    move: Move
    parts: int
    levels: tuple[float, ...]
    writes: tuple[float, ...]  # to bring it in; nothing where one side of a transfer pays
    times: int  # how often a part is moved

    @classmethod
    def of(cls, task: Task, chip: Memories, transfers: str) -> Streamed:
        """Price a move's task.

        Args:
            transfers: "upper", or "both" sides of one pay.
        """
        move = task.work
        assert isinstance(move, Move)
        operand: Operand = "I" if move.direction == Direction.READ else "O"
        parts = len(task.at.stored[0])
        times = max(move.times // max(parts, 1), 1)
        words = product(move.tensor.shape) * move.times / max(parts, 1)
        levels, writes = [], []
        for number, level in enumerate(chip.levels):
            there = level.holds(operand) and (move.through or not number)
            memory = chip.holder(number, operand) if there else None
            reads = move.direction == Direction.READ
            price = paid = 0.0
            if memory is not None:
                code = code_of(move.tensor, move.tensor.role, chip, memory.name)
                bits = float(code.bits if code else move.tensor.bits)
                price = memory.read_energy_per_bit if reads else memory.write_energy_per_bit
                price *= bits
                if reads and number and transfers == "both":
                    paid = memory.write_energy_per_bit * bits
            levels.append(words * price)
            writes.append(words / times * paid)
        return cls(move, parts, tuple(levels), tuple(writes), times)

    def energy(self, stay: Stay) -> float:
        """What all parts cost, of which some stay, or are brought to where they do."""
        into = sum(self.into(home) for home in stay.brought if home is not None)
        if not stay.parts:
            return self.parts * sum(self.levels) + into
        return sum(sum(self.levels[home or 0 :]) for home in stay.parts) + into

    def into(self, level: int) -> float:
        """What it costs that the first of all reads of a part brings it to where it stays.

        That is what is written on the way, less what the others no longer read outside.
        """
        others = self.outside(level) * (self.times - 1) / self.times
        return sum(self.writes[: level + 1]) - others

    def outside(self, level: int) -> float:
        """What a part costs outside a level."""
        return sum(self.levels[:level])


class Outcome(NamedTuple):
    """What a choice of items costs, and the tilings that belong to it."""

    chosen: frozenset[int]
    energy: float  # of memories, hops and cycles [chip's unit]
    tilings: dict[int, Tiled]  # by task
    stays: dict[int, Stay]  # of tasks of which something stays


class Stuck(NamedTuple):
    """A step at which a choice of items leaves no room for any tiling."""

    step: int


class Known(NamedTuple):
    """A choice of items, and its energy with the best of known tilings."""

    chosen: list[int]
    energy: float  # [chip's unit]


@dataclass(eq=False)
class Run:
    """The tasks of a run, and the items that may be chosen."""

    tasks: Sequence[Task]
    products: Mapping[int, Product]  # by task
    moves: Mapping[int, Streamed]
    items: Sequence[Item]
    capacities: Mapping[int, int]  # of the levels at which tensors may stay [bit]
    chosen: dict[object, Known] = field(default_factory=dict)  # by the tilings known then
    most_saved: float | None = None  # of passes that items save, by any choice [chip's unit]
    _known: dict[object, tuple[float, dict[int, Tiled]] | None] = field(default_factory=dict)

    @cached_property
    def steps(self) -> dict[int, list[int]]:
        """The tasks of each step that move anything."""
        found: dict[int, list[int]] = {}
        for number in sorted({*self.products, *self.moves}):
            found.setdefault(self.tasks[number].at.step, []).append(number)
        return found

    def outcome(self, chosen: Iterable[int]) -> Outcome | Stuck:
        """Return what a choice of items costs."""
        picked = frozenset(chosen)
        some = [self.items[i] for i in sorted(picked)]
        stays, energy = self.stays(some), 0.0
        tilings: dict[int, Tiled] = {}
        used = self._used(some)
        what = "steps beside what may stay on the chip"
        for step, tasks in counted(what, self.steps.items(), len(self.steps)):
            free = {k: bits - used[k].get(step, 0) for k, bits in self.capacities.items()}
            found = self._step(step, tasks, stays, free)
            if found is None:
                return Stuck(step)
            energy += found[0]
            tilings |= found[1]
        return Outcome(picked, energy, tilings, stays)

    def spared(self, one: Outcome) -> Outcome:
        """Search once more every tiling of a choice that spared something, now sparing nothing."""
        for own in self.products.values():
            own.spare = own.slack = 0.0
        proofs = ((number, tiled.tiling.certificate) for number, tiled in one.tilings.items())
        return self._again(one, [number for number, proof in proofs if proof and proof.gap])

    def closer(self, one: Outcome, worth: float) -> Outcome:
        """Search once more tilings of a choice that may cost much too much.

        What was found for other room, or for rounded room, was taken if it fitted.

        Args:
            worth: what a tiling may save of the run's energy, by the bound that is known of it.
        """
        free = self.free(one)
        found = []
        for number, tiled in one.tilings.items():
            least = self.products[number].floor(tiled.stay.homes, free[number])
            if tiled.energy - least > worth * one.energy:
                found.append(number)
        return self._again(one, found)

    def _again(self, one: Outcome, numbers: Iterable[int]) -> Outcome:
        """A choice with tilings searched once more, in exactly the room that is left."""
        free, tilings, saved = self.free(one), dict(one.tilings), 0.0
        for number in numbers:
            tiled = tilings[number]
            found = self.products[number].again(tiled.stay, free[number])
            if found is not None and found.energy < tiled.energy:
                tilings[number] = found
                saved += tiled.energy - found.energy
        return one._replace(energy=one.energy - saved, tilings=tilings)

    def free(self, one: Outcome) -> dict[int, dict[int, int]]:
        """Room that a choice leaves to each product at each level [bit]."""
        used = self._used([self.items[i] for i in sorted(one.chosen)])
        return {
            number: {
                k: bits - used[k].get(self.tasks[number].at.step, 0)
                for k, bits in self.capacities.items()
            }
            for number in one.tilings
        }

    def certified(self, one: Outcome) -> dict[int, Tiled]:
        """The tilings of a choice with what is known of each beside what stays, in its room."""
        free, found = self.free(one), {}
        for number, tiled in sorted(one.tilings.items()):
            proof, product = tiled.tiling.certificate, self.products[number]
            if proof is not None:
                least = product.least(tiled.stay, free[number])
                gap = 1 - least / tiled.energy if tiled.energy > least else 0.0
                gap = gap if gap > ROUNDING - 1 else 0.0
                bound = least if gap else tiled.energy
                proof = replace(
                    proof, energy=tiled.energy, lower_bound=bound, gap=gap, proved=not gap
                )
                tiled = tiled._replace(tiling=tiled.tiling._replace(certificate=proof))
            found[number] = tiled
        return found

    @property
    def searches(self) -> int:
        """Tilings that have been searched."""
        return sum(product.searches for product in self.products.values())

    def _used(self, some: Sequence[Item]) -> dict[int, dict[int, int]]:
        """Bits of items at each level and step [bit]."""
        found: dict[int, dict[int, int]] = {level: {} for level in self.capacities}
        last = max(self.steps, default=0)
        change = {level: [0] * (last + 2) for level in self.capacities}
        until: dict[tuple[int, str], int] = {}  # a tensor that stays on takes its room once
        for one in sorted(some, key=lambda item: item.first):
            there = until.get((one.level, one.name), -1)
            first, end = max(one.first, there + 1), min(one.last, last)
            if first <= end:
                change[one.level][first] += one.bits
                change[one.level][end + 1] -= one.bits
                until[one.level, one.name] = end
        for level, changes in change.items():
            bits = 0
            for step, more in enumerate(changes):
                bits += more
                found[level][step] = bits
        return found

    def _step(
        self, step: int, tasks: Sequence[int], stays: Mapping[int, Stay], free: Mapping[int, int]
    ) -> tuple[float, dict[int, Tiled]] | None:
        if any(bits < 0 for bits in free.values()):
            return None
        here = tuple(stays.get(number, AWAY) for number in tasks)
        key = step, here, tuple(free.values())
        if key not in self._known:
            self._known[key] = self._costs(tasks, here, free)
        return self._known[key]

    def _costs(
        self, tasks: Sequence[int], stays: Sequence[Stay], free: Mapping[int, int]
    ) -> tuple[float, dict[int, Tiled]] | None:
        energy, tilings = 0.0, {}
        for number, stay in zip(tasks, stays, strict=True):
            if number in self.moves:
                energy += self.moves[number].energy(stay)
                continue
            found = self.products[number].tiled(stay, free)
            if found is None:
                return None
            tilings[number] = found
            energy += found.energy
        return energy, tilings

    def stays(self, some: Sequence[Item]) -> dict[int, Stay]:
        """Where the tensors of each task stay under some items."""
        homes: dict[Access, int] = {}
        saved: set[Access] = set()
        brought: set[Access | None] = set()
        for item in some:
            saved.update((*item.saves, *item.finds))
            brought.add(self.brings(item))
            homes |= dict.fromkeys((*item.saves, *item.begins, *item.finds), item.level)
        found: dict[int, Stay] = {}
        for access, home in homes.items():
            before = found.get(access.task, AWAY)
            if access.task in self.products:
                operand = access.operand
                at = before.homes._replace(**{operand: home})
                once = () if access in saved else (operand,)
                found[access.task] = Stay(at, _ordered((*before.once, *once)))
                continue
            nowhere = (None,) * self.moves[access.task].parts
            if access in saved:
                parts = list(before.parts or nowhere)
                parts[access.place] = home
                found[access.task] = before._replace(parts=tuple(parts))
            elif access in brought:
                parts = list(before.brought or nowhere)
                parts[access.place] = home
                found[access.task] = before._replace(brought=tuple(parts))
        return found

    def brings(self, item: Item) -> Access | None:
        """The read of a move with which a segment begins, if it begins with one."""
        moves = (a for a in item.begins[:1] if a.task in self.moves and not a.writes)
        return next(moves, None)

    def values(self, tilings: Mapping[int, Tiled]) -> list[float]:
        """What each item saves with given tilings: what its accesses cost outside its level."""
        found = []
        for item in self.items:
            saved = 0.0
            for access in item.saves:
                if access.task in self.moves:
                    saved += self.moves[access.task].outside(item.level)
                else:
                    energy = self.products[access.task].costs(tilings[access.task].tiling).energy
                    saved += energy[access.operand, None] - energy[access.operand, item.level]
            found.append(saved)
        return found

    def by_place(
        self, part: Literal["saves", "begins", "finds"]
    ) -> dict[tuple[Access, int], list[int]]:
        """The items of which accesses are such a part, by access and level."""
        found: dict[tuple[Access, int], list[int]] = {}
        for i, item in enumerate(self.items):
            for access in getattr(item, part):
                found.setdefault((access, item.level), []).append(i)
        return found

    @cached_property
    def neighbours(self) -> list[tuple[int, int]]:
        """Pairs of items that would move a tensor from one level to another."""
        begun: dict[Access, list[int]] = {}
        for i, item in enumerate(self.items):
            if item.begins:
                begun.setdefault(item.begins[0], []).append(i)
        return [
            (i, j)
            for i, item in enumerate(self.items)
            for access in item.saves[:1]
            for j in begun.get(access, ())
            if self.items[j].level != item.level
        ]

    @cached_property
    def by_access(self) -> dict[Access, list[int]]:
        """The items that save each access."""
        found: dict[Access, list[int]] = {}
        for i, item in enumerate(self.items):
            for access in item.saves:
                found.setdefault(access, []).append(i)
        return found

    def again(self, living: Iterable[int]) -> list[list[int]]:
        """Segments of one tensor among items of a level and step: one goes on where another ends.

        They take the tensor's room once.
        """
        found: dict[str, list[int]] = {}
        for i in sorted(living, key=lambda i: self.items[i].first):
            if not self.items[i].whole:
                found.setdefault(self.items[i].name, []).append(i)
        return [several for several in found.values() if len(several) > 1]

    def alive(self, level: int) -> dict[int, list[int]]:
        """The items that can live at a level, by step."""
        found: dict[int, list[int]] = {}
        for i, item in enumerate(self.items):
            if item.level == level:
                for step in range(item.first, item.last + 1):
                    found.setdefault(step, []).append(i)
        return found


def _ordered(operands: Iterable[Operand]) -> tuple[Operand, ...]:
    given = set(operands)
    return tuple(x for x in OPERANDS if x in given)
