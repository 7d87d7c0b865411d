"""Products with homes: their tilings in a view, what these cost, and the room that they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from hwmodel.errors import Infeasible, TooLarge
from hwmodel.model.entries import Stay, code_of, paid, width
from hwmodel.model.workload import Task
from hwmodel.tiling.accesses import Mapping as Cuts
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.tile import Tiling, footprints, tile
from hwmodel.tiling.view import NOWHERE, Homes, view, widened
from hwmodel.work.problem import OPERANDS, Operand
from hwmodel.work.tensor import Direction, Role, product
from hwmodel.work.work import Multiply

__all__ = ["Product", "Tiled"]

KNOWN = 16  # tilings found before that are looked at again
SIXTEENTHS = 16  # of a capacity: room that is left is rounded down to them, to be searched once


class Tiled(NamedTuple):
    """A product's tiling beside what stays on the chip."""

    tiling: Tiling  # of the whole chip
    stay: Stay
    energy: float  # of its memories, hops and cycles [chip's unit]
    rooms: dict[int, int]  # that it takes at the levels at which tensors may stay [bit]
    resting: dict[int, int]  # and what unfinished sums take more there than finished ones [bit]


@dataclass(eq=False)
class Product:
    """A product of a run, and the chip as its tensors lie in it."""

    task: Task
    chip: Memories
    options: SearchOptions
    capacities: Mapping[int, int]  # of the levels at which tensors may stay [bit]
    searches: int = 0
    _known: dict[object, Tiled | None] = field(default_factory=dict)
    _tilings: dict[Cuts, Tiling] = field(default_factory=dict)

    @property
    def work(self) -> Multiply:
        """The product itself."""
        assert isinstance(self.task.work, Multiply)
        return self.task.work

    def tiled(self, stay: Stay, free: Mapping[int, int]) -> Tiled | None:
        """Return a tiling that fits beside what stays; None where none is found.

        First as if all room were free; if what is found does not fit, with the room that is left,
        rounded down, then exactly. Where unfinished sums alone have no room at home, once more for
        sums that come there finished.

        Args:
            free: room that is left at each level [bit].
        """
        parts = {k: max(self.capacities[k] // SIXTEENTHS, 1) for k in free}
        rounded = {k: bits // parts[k] * parts[k] or bits for k, bits in free.items()}
        for room in (self.capacities, rounded, free):
            found = self._searched(stay, room, finished=False)
            if found is not None and found.resting and _fits(found._replace(resting={}), free):
                found = found if _fits(found, free) else self._searched(stay, room, finished=True)
            if found is not None and _fits(found, free):
                certificate = found.tiling.certificate
                return found if certificate and certificate.proved else self._best(stay, free)
        return self._best(stay, free)

    def _best(self, stay: Stay, free: Mapping[int, int]) -> Tiled | None:
        """The best that fits of the tilings found so far, whatever stayed when they were."""
        key = stay, tuple(free.items()), len(self._tilings)
        if key not in self._known:
            some = [*self._tilings.values()][-KNOWN:]
            priced = (self.priced(tiling, stay) for tiling in some)
            fitting = (one for one in priced if _fits(one, free))
            self._known[key] = min(fitting, key=lambda one: one.energy, default=None)
        return self._known[key]

    @property
    def _unfinished(self) -> int:
        """Bits by which an unfinished sum is wider than a finished one."""
        return max(0, self.options.partial_sum_bits - ceil(self.work.O.bits))

    def _searched(self, stay: Stay, free: Mapping[int, int], *, finished: bool) -> Tiled | None:
        key = stay, tuple(free.items()), finished
        if key not in self._known:
            self.searches += 1
            self._known[key] = self._search(stay, free, finished=finished)
        return self._known[key]

    def _search(self, stay: Stay, free: Mapping[int, int], *, finished: bool) -> Tiled | None:
        homes = stay.homes
        seen = view(self.chip, homes, free, finished=finished)
        try:
            found = tile(self.work.problem, seen, self.options)
        except (Infeasible, TooLarge):
            return None
        mapping = widened(self.work.problem, found.mapping, homes)
        tiling = self._tilings.setdefault(mapping, Tiling(mapping, found.certificate))
        return self.priced(tiling, stay)

    def priced(self, tiling: Tiling, stay: Stay) -> Tiled:
        """Price a tiling of the whole chip beside what stays."""
        resting, energy = self._resting(tiling, stay.homes), self.energy(tiling, stay)
        return Tiled(tiling, stay, energy, self.rooms(tiling, stay.homes), resting)

    def energy(self, tiling: Tiling, stay: Stay) -> float:
        """Energy of memories and hops [chip's unit]."""
        chip, total = self.chip, 0.0
        asked = paid(self.work, tiling.mapping, chip, self.options, stay)
        for level, (operand, direction, role, factors) in asked:
            each = width(self.work, operand, role, self.options)
            if chip.codings and direction != Direction.HOP:
                name = chip.holder(level, operand).name
                code = code_of(self.work.operands[operand], role, chip, name)
                each = code.bits if code else each
            total += product(factors) * each * self._price(level, operand, direction)
        return total

    def _price(self, level: int, operand: Operand, direction: Direction) -> float:
        if direction == Direction.HOP:
            return self.chip.levels[level].hop_energy_per_bit
        memory = self.chip.holder(level, operand)
        read = direction == Direction.READ
        return memory.read_energy_per_bit if read else memory.write_energy_per_bit

    def rooms(self, tiling: Tiling, homes: Homes) -> dict[int, int]:
        """Return the room that tiles of what does not stay take [bit]."""
        mapping = tiling.mapping
        found = {}
        for level in self.capacities:
            held = mapping.held[level - 1]
            problem, wide = self.work.problem, self.options
            (room,) = footprints(problem, mapping, self.chip, level, wide)
            kept = [x for x in OPERANDS if x != "O" or _counts_sums(self.chip, level, held)]
            bits = 0
            for operand, part in zip(kept, room.parts, strict=True):
                home = homes.of(operand)
                if home is None or home < level:
                    bits += product(part)
            found[level] = bits
        return found

    def _resting(self, tiling: Tiling, homes: Homes) -> dict[int, int]:
        """Return what unfinished sums take more than finished ones at the home of O [bit].

        Nothing where sums arrive finished there. Else those of one tile, if each leaves the level
        but once; else all.
        """
        home = homes.O
        if home is None or not self._unfinished:
            return {}
        asked = paid(self.work, tiling.mapping, self.chip, self.options)
        arrive = {
            level: product(one.factors)
            for level, one in asked
            if (one.operand, one.role, one.direction) == ("O", Role.UNFINISHED, Direction.WRITE)
        }
        if not arrive.get(home):
            return {}
        if any(arrive.get(level) for level in range(home)):
            return {home: self.work.problem.O_elements * self._unfinished}
        n = tiling.mapping.tiles[home - 1]
        return {home: n.N * n.M * n.HO * n.WO * self._unfinished}

    # -- what an access costs outside of a level ----------------------------------------------

    def outside(self, tiling: Tiling, operand: Operand, home: int) -> float:
        """Energy that a home of one operand would save under a tiling [chip's unit]."""
        homes = NOWHERE._replace(**{operand: home})
        return self.energy(tiling, Stay()) - self.energy(tiling, Stay(homes))


def _counts_sums(chip: Memories, level: int, held: Operand) -> bool:
    return held == "O" or (chip.array is not None and level == len(chip.levels) - 1)


def _fits(one: Tiled, free: Mapping[int, int]) -> bool:
    return all(one.rooms[k] + one.resting.get(k, 0) <= bits for k, bits in free.items())
