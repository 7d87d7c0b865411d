"""Products with homes: their tilings in a view, what these cost, and the room that they take."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, fsum

from hwmodel.errors import Infeasible, TooLarge
from hwmodel.model.entries import AWAY, Stay, brought, code_of, left_at_home, paid, width
from hwmodel.model.residency.tilings import ROUNDING, Costs, Floor, Searched, Tiled, is_home
from hwmodel.model.workload import Task
from hwmodel.tiling.accesses import Asked
from hwmodel.tiling.accesses import Mapping as Cuts
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.spatial.asked import time
from hwmodel.tiling.tile import Tiling, footprints, tile, touched_elements
from hwmodel.tiling.view import Homes, resting, view, widened
from hwmodel.work.problem import OPERANDS, Operand, Problem, Widths
from hwmodel.work.tensor import Direction, plain, product
from hwmodel.work.work import Multiply

__all__ = ["CLOSE", "NEAR", "Costs", "Product", "Tiled"]

SIXTEENTHS = 16  # of a capacity: room that is left is rounded down to them, to be searched once
CLOSE = 5e-4  # of a bound: a tiling is taken as it is, no better one is searched
NEAR = CLOSE * ROUNDING  # a gap that is not above it


@dataclass(eq=False)
class Product:
    """A product of a run, and the chip as its tensors lie in it."""

    task: Task
    chip: Memories
    options: SearchOptions
    capacities: Mapping[int, int]  # of the levels at which tensors may stay [bit]
    is_bounded: bool = False  # no price falls outwards: bounds hold for other homes, too
    spare: float = 0.0  # of a tiling's energy: what a better one must save to be looked for
    slack: float = 0.0  # [chip's unit]: likewise
    is_coarse: bool = False  # room that is left is rounded down before it is searched
    searches: int = 0
    _known: dict[object, Searched] = field(default_factory=dict)
    _chosen: dict[object, Tiled | None] = field(default_factory=dict)
    _costs: dict[Cuts, Costs] = field(default_factory=dict)
    _floors: list[Floor] = field(default_factory=list)
    _tried: list[Floor] = field(default_factory=list)  # what searches came to, no bounds
    _passes: dict[Operand, list[float]] = field(default_factory=dict)

    @property
    def work(self) -> Multiply:
        """The product itself."""
        assert isinstance(self.task.work, Multiply)
        return self.task.work

    @property
    def tilings(self) -> list[Costs]:
        """The tilings found so far, in the order in which they were."""
        return [*self._costs.values()]

    def tiled(self, stay: Stay, free: Mapping[int, int]) -> Tiled | None:
        """Return a tiling that fits beside what stays; None where none is found.

        One that is known, if a bound says that no other is much better, or a search with as much
        room came to no less. Else first as if all room were free, unless more than half of some
        level is not; if what is found does not fit, with the room that is left, if need be rounded
        down first. Where unfinished sums alone have no room at home, once more for sums that come
        there finished. Of all tilings that fit the best.

        Args:
            free: room that is left at each level [bit].
        """
        rooms = [self._rounded(free), free] if self.is_coarse else [free]
        if not self.is_coarse or all(2 * bits >= self.capacities[k] for k, bits in free.items()):
            rooms.insert(0, self.capacities)
        for room in rooms:
            known = self._best(stay, free)
            if known is not None and self._is_close(known, room):
                return known
            found = self._searched(stay, room, finished=False)
            if found is not None and found.resting and _fits(found._replace(resting={}), free):
                found = found if _fits(found, free) else self._searched(stay, room, finished=True)
            if found is not None and _fits(found, free):
                break
        return self._best(stay, free)

    def _rounded(self, free: Mapping[int, int]) -> Mapping[int, int]:
        parts = {k: max(self.capacities[k] // SIXTEENTHS, 1) for k in free}
        return {k: bits // parts[k] * parts[k] or bits for k, bits in free.items()}

    def again(self, stay: Stay, free: Mapping[int, int]) -> Tiled | None:
        """Search once more, for whatever saves more than may be spared now."""
        self._searched(stay, free, finished=False)
        return self._best(stay, free)

    def explored(self, free: Mapping[int, int]) -> None:
        """Search a tiling with some room, if none is known that is about the best there."""
        known = self._best(AWAY, free)
        if known is None or not self._is_close(known, free):
            self._searched(AWAY, free, finished=False)

    def _is_close(self, known: Tiled, room: Mapping[int, int]) -> bool:
        homes, energy = known.stay.homes, known.energy - self._once(known.stay)
        tried = (  # with as much room, and they came to no less
            one
            for one in self._tried
            if one.homes == homes and all(bits <= one.free[k] for k, bits in room.items())
        )
        if any(energy <= one.energy * (1 + self.spare) for one in tried):  # no less than known
            return True
        least = self.floor(homes, room)
        near = max(least * (1 + max(CLOSE, self.spare)), least + self.slack)
        return self.is_bounded and energy <= near

    def _once(self, stay: Stay) -> float:
        """What it costs to bring operands home that come there once."""
        return sum(self.pass_to(x, stay.homes.of(x) or 0) for x in stay.once)

    def _best(self, stay: Stay, free: Mapping[int, int]) -> Tiled | None:
        """The best that fits of the tilings found so far, whatever stayed when they were."""
        key = stay, tuple(free.items()), len(self._costs)
        if key not in self._chosen:
            priced = (self.priced(costs, stay) for costs in self._costs.values())
            fitting = (one for one in priced if _fits(one, free))
            self._chosen[key] = min(fitting, key=lambda one: one.energy, default=None)
        return self._chosen[key]

    @property
    def _unfinished(self) -> int:
        """Bits by which an unfinished sum is wider than a finished one."""
        return max(0, self.options.partial_sum_bits - ceil(self.work.O.bits))

    def _searched(self, stay: Stay, free: Mapping[int, int], *, finished: bool) -> Tiled | None:
        key = stay, tuple(free.items()), finished
        known = self._known.get(key)
        if known is None or not known.is_enough(self._spare(known.energy)):
            self.searches += 1
            found = self._search(stay, free, finished=finished)
            proof = found.tiling.certificate if found else None
            gap, energy = (proof.gap, proof.energy) if proof else (0.0, 0.0)
            known = self._known[key] = Searched(found, gap, energy, self._spare(energy))
            if found is not None and not finished:
                self._tried.append(Floor(stay.homes, dict(free), found.energy - self._once(stay)))
        return known.found

    def _search(self, stay: Stay, free: Mapping[int, int], *, finished: bool) -> Tiled | None:
        homes = stay.homes
        seen = self._seen(homes, free, finished=finished)
        try:
            found = tile(self.work.problem, seen, self._options)
        except (Infeasible, TooLarge):
            return None
        if not finished and not self.work.kernel:
            self._found(found, homes, free, self._taken(self.work.problem, seen))
        mapping = widened(self.work.problem, found.mapping, homes)
        return self.priced(self.costs(Tiling(mapping, found.certificate)), stay)

    def _seen(self, homes: Homes, free: Mapping[int, int], *, finished: bool = False) -> Memories:
        """The view with no more room than the whole of what does not stay needs.

        So searches are the same wherever all of it fits.
        """
        if not self.chip.spatial:
            whole = {
                k: sum(bits for x, bits in parts.items() if not is_home(homes.of(x), k))
                for k, parts in self._whole.items()
            }
            free = {k: min(bits, whole[k]) if whole[k] else bits for k, bits in free.items()}
        return view(self.chip, homes, free, finished=finished)

    @cached_property
    def _whole(self) -> dict[int, dict[Operand, int]]:
        """Bits of each operand uncut, sums unfinished, at each level [bit]."""
        levels = len(self.chip.levels) - 1
        sums: Operand = "O"
        uncut = Cuts((self.work.problem.extent,) * levels, (sums,) * levels)
        return {level: self._parts(uncut, level) for level in self.capacities}

    @property
    def _options(self) -> SearchOptions:
        share = self.work.repeats * max(1.0, *(self._times(x) for x in OPERANDS))
        return replace(self.options, spare=self.spare, slack=self.slack / share)

    def _spare(self, energy: float) -> float:
        """What need not be saved of a tiling's energy in its view."""
        return max(self.spare, self._options.slack / energy if energy else 0.0)

    def _found(self, found: Tiling, homes: Homes, free: Mapping[int, int], taken: float) -> None:
        if found.certificate is not None:
            share = min((self._times(x) for x in OPERANDS), default=1.0)
            least = share * max(found.certificate.lower_bound - taken, 0.0) * self.work.repeats
            self._floors.append(Floor(homes, dict(free), least))

    def _taken(self, problem: Problem, seen: Memories) -> float:
        """What finished sums cost in a view that an operator takes as they are made: nothing."""
        if self.work.leaves:
            return 0.0
        there = [k for k, level in enumerate(seen.levels) if level.holds("O")]
        paid = []
        for here, below in zip(there, [*there[1:], None], strict=True):
            memory = seen.holder(here, "O")
            paid.append(memory.write_energy_per_bit)
            if self.options.transfers == "both" and below is not None and not memory.passed:
                paid.append(seen.holder(below, "O").read_energy_per_bit)
        return problem.O_elements * problem.bits.O * fsum(paid)

    def priced(self, costs: Costs, stay: Stay) -> Tiled:
        """Price a tiling of the whole chip beside what stays."""
        energy = costs.at(stay.homes)
        energy += self._once(stay)
        return Tiled(costs.tiling, stay, energy, costs.rooms(stay.homes), costs.more(stay.homes))

    def costs(self, tiling: Tiling) -> Costs:
        """Return what a tiling of the whole chip costs, wherever operands stay."""
        if tiling.mapping not in self._costs:
            asked = list(paid(self.work, tiling.mapping, self.chip, self.options))
            self._costs[tiling.mapping] = Costs(
                tiling,
                self._cycles(tiling.mapping),
                {
                    (x, home): fsum(
                        self._energy(level, left)
                        for level, one in asked
                        if one.operand == x
                        for left in left_at_home(one, level, home)
                    )
                    for x in OPERANDS
                    for home in (None, *self.capacities)
                },
                {level: self._parts(tiling.mapping, level) for level in self.capacities},
                {level: self._resting(tiling.mapping, asked, level) for level in self.capacities},
            )
        return self._costs[tiling.mapping]

    def _energy(self, level: int, one: Asked) -> float:
        words, each = product(one.factors), width(self.work, one.operand, one.role, self.options)
        if one.direction == Direction.HOP:
            return words * each * self.chip.levels[level].hop_energy_per_bit
        memory = self.chip.holder(level, one.operand)
        if self.chip.codings:
            tensor = self.work.operands[one.operand]
            code = code_of(tensor, one.role, self.chip, memory.name)
            each = code.bits if code else each
        read = one.direction == Direction.READ
        return words * each * (memory.read_energy_per_bit if read else memory.write_energy_per_bit)

    def _cycles(self, mapping: Cuts) -> float:
        taken = time(self.work.problem, mapping, self.chip, self.options.rule)
        if taken is None or self.chip.array is None:
            return 0.0
        met = (self.work.nest.times or ())[1:2]
        array = product((*taken.cycles, *met)) * self.chip.array.cycle_energy
        return self.work.repeats * (
            array + product((*taken.moments, *met)) * self.chip.moment_energy
        )

    def _parts(self, mapping: Cuts, level: int) -> dict[Operand, int]:
        """Bits of each operand's tile at a level [bit]."""
        held = mapping.held[level - 1]
        (room,) = footprints(self.work.problem, mapping, self.chip, level, self.options)
        kept = [x for x in OPERANDS if x != "O" or _counts_sums(self.chip, level, held)]
        return {x: product(part) for x, part in zip(kept, room.parts, strict=True)}

    def _resting(self, mapping: Cuts, asked: list[tuple[int, Asked]], home: int) -> int:
        """Bits that unfinished sums take more than finished ones at a home of O [bit]."""
        return resting(self.work.problem, mapping, asked, home, self._unfinished)

    # -- bounds -------------------------------------------------------------------------------

    def bounded(self, homes: Homes, free: Mapping[int, int]) -> None:
        """Search a bound with homes and room.

        Of the blocks that all products of a kernel share, its own part.
        """
        work = self.work
        if not work.kernel:
            self._searched(Stay(homes), free, finished=False)
            return
        moved = {x: work.operands[x].bits if x in work.kernel.moved else 0 for x in OPERANDS}
        bits = Widths(*map(plain, (moved["I"], moved["F"], 0)))
        problem, seen = replace(work.problem, bits=bits), self._seen(homes, free)
        with suppress(Infeasible, TooLarge):
            found = tile(problem, seen, self._options)
            self._found(found, homes, free, self._taken(problem, seen))

    def floor(self, homes: Homes, free: Mapping[int, int]) -> float:
        """Return what no tiling costs less than, of all that is known [chip's unit].

        A bound in a view with more room holds; and where operands stay further out, or nowhere,
        each pays one pass more at least from there to the home that it had in the view. That needs
        prices that do not fall outwards.
        """
        return max(
            (
                one.energy + self._passes_between(homes, one.homes)
                for one in self._floors
                if all(bits <= one.free[k] for k, bits in free.items())
                and all((x or 0) <= (y or 0) for x, y in zip(homes, one.homes, strict=True))
                and (self.is_bounded or homes == one.homes)
            ),
            default=0.0,
        )

    def least(self, stay: Stay, free: Mapping[int, int]) -> float:
        """Return what no tiling beside what stays costs less than, as far as is known."""
        return self.floor(stay.homes, free) + self._once(stay)

    def _times(self, operand: Operand) -> float:
        """How often what moves at an operand moves, where a nest stands for several; or in part."""
        times = self.work.nest.times
        return float(times[OPERANDS.index(operand)].value) if times else 1.0  # a share: not whole

    def _passes_between(self, outer: Homes, inner: Homes) -> float:
        pairs = zip(OPERANDS, outer, inner, strict=True)
        return sum(sum(self.passes(x)[outer_ or 0 : inner_ or 0]) for x, outer_, inner_ in pairs)

    def passes(self, operand: Operand) -> list[float]:
        """Return what one pass costs at each level below which an operand may stay, at least."""
        if operand not in self._passes:
            problem, both = self.work.problem, self.options.transfers == "both"
            elements = {
                "I": touched_elements(problem), "F": problem.F_elements, "O": problem.O_elements,
            }[operand]  # fmt: skip
            bits = elements * getattr(problem.bits, operand) * self._times(operand)
            found = []
            there = [k for k, level in enumerate(self.chip.levels) if level.holds(operand)]
            for level in range(max(self.capacities)):
                if level not in there:
                    found.append(0.0)
                    continue
                upper = self.chip.holder(level, operand)
                lower = self.chip.holder(there[there.index(level) + 1], operand)
                up, down = upper.read_energy_per_bit, lower.write_energy_per_bit
                if operand == "O":
                    up, down = upper.write_energy_per_bit, lower.read_energy_per_bit
                found.append(bits * (up + (down if both else 0.0)))
            self._passes[operand] = found
        return self._passes[operand]

    def pass_to(self, operand: Operand, home: int) -> float:
        """Return what it costs to bring an operand home once, or sums from there."""
        return sum(
            self._energy(level, one)
            for level in range(home + 1)
            if self.chip.levels[level].holds(operand)
            for one in brought(self.work, operand, level, home, self.options)
        )


def _counts_sums(chip: Memories, level: int, held: Operand) -> bool:
    return held == "O" or (chip.array is not None and level == len(chip.levels) - 1)


def _fits(one: Tiled, free: Mapping[int, int]) -> bool:
    return all(one.rooms[k] + one.resting.get(k, 0) <= bits for k, bits in free.items())
