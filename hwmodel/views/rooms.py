"""What `tile` is told of the rest of a run: operands that stay on the chip, and room left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from types import MappingProxyType
from typing import NamedTuple

from hwmodel.errors import HwmodelError, nearest
from hwmodel.model.residency.plan import NO_END, residency_levels
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.quantity import QuantityError, bits
from hwmodel.tiling.accesses import Mapping as Cuts
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.spatial.asked import asked
from hwmodel.tiling.tile import footprints
from hwmodel.tiling.view import NOWHERE, Homes, resting
from hwmodel.work.problem import OPERANDS, Problem

__all__ = ["ALONE", "Residents", "lacking", "left", "parsed_residents", "staying", "with_room"]


NO_ROOM: Mapping[int, int] = MappingProxyType({})


class Residents(NamedTuple):
    """Operands that stay on the chip while a product runs, and the room that others leave."""

    homes: Homes = NOWHERE
    free: Mapping[int, int] = NO_ROOM  # as stated, by the number of a level [bit]
    room: Mapping[int, int] = NO_ROOM  # the same, and where nothing is stated what they leave

    def named(self, hardware: Hardware) -> dict[str, str]:
        """Where operands stay, by the names of levels."""
        stay = zip(OPERANDS, self.homes, strict=True)
        return {x: hardware.levels[home].name for x, home in stay if home is not None}

    def stated(self, hardware: Hardware) -> dict[str, int]:
        """The room that is stated, by the names of levels [bit]."""
        return {hardware.levels[level].name: room for level, room in self.free.items()}


ALONE = Residents()


def parsed_residents(resident: Sequence[str], free: Sequence[str], hardware: Hardware) -> Residents:
    """Parse where operands stay, as I=L2, and the room that is left, as L2=3MiB.

    Raises: HwmodelError.
    """
    return Residents(_homes(resident, hardware), _free(free, hardware))


def _homes(stated: Sequence[str], hardware: Hardware) -> Homes:
    levels = {hardware.levels[number].name: number for number in residency_levels(hardware)}
    homes: dict[str, int] = {}
    for text in stated:
        operand, equals, name = (part.strip() for part in text.partition("="))
        if operand not in OPERANDS or operand in homes or not equals:
            raise HwmodelError(f"--resident {text!r}: write I, F or O, each once, as in I=L2")
        if name not in levels:
            known = nearest(name, levels) if levels else f"{hardware.name} has none"
            raise HwmodelError(
                f"--resident {text!r}: {name!r} is no memory in which tensors stay; {known}"
            )
        homes[operand] = levels[name]
    return Homes(**homes)


def _free(stated: Sequence[str], hardware: Hardware) -> dict[int, int]:
    levels = residency_levels(hardware)
    named = {hardware.levels[number].name: number for number in levels}
    rooms: dict[int, int] = {}
    for text in stated:
        name, _, size = (part.strip() for part in text.partition("="))
        if name not in named or named[name] in rooms:
            known = nearest(name, named) if named else f"{hardware.name} has none"
            known = f"{name} stands there twice" if name in named else known
            raise HwmodelError(
                f"--free {text!r}: write a memory in which tensors stay, each once, as in "
                f"L2=3MiB; {known}"
            )
        try:
            room = bits(size)
        except QuantityError as error:
            raise HwmodelError(f"--free {text!r}: {error}") from None
        if not 0 < room <= levels[named[name]]:
            most = f"{name} has {levels[named[name]] // 8:,} B in all"
            raise HwmodelError(f"--free {text!r}: {most if room > 0 else 'must be above 0'}")
        rooms[named[name]] = room
    return rooms


def with_room(stated: Residents, problem: Problem, hardware: Hardware) -> Residents:
    """Take what stays at a level from its room, where none is stated.

    Args:
        problem: with its loops apart, so that each operand is there as a whole.

    Raises: HwmodelError where what stays, or the stated room beside it, is more than the level has.
    """
    elements = (problem.I_elements, problem.F_elements, problem.O_elements)
    parts = zip(OPERANDS, stated.homes, elements, problem.bits, strict=True)
    whole: dict[int, dict[str, int]] = {}
    for operand, home, number, width in parts:
        if home is not None:
            whole.setdefault(home, {})[operand] = ceil(number * width)
    free = dict(stated.free)
    for level, capacity in residency_levels(hardware).items():
        taken, name = sum(whole.get(level, {}).values()), hardware.levels[level].name
        if taken + free.get(level, 0) > capacity:
            each = ", ".join(f"{x} {-(-room // 8):,} B" for x, room in whole[level].items())
            beside = f" beside {free[level] // 8:,} B that are free" if level in free else ""
            lacks = -((capacity - taken - free.get(level, 0)) // 8)
            raise HwmodelError(
                f"{' '.join(f'--resident {x}={name}' for x in whole[level])}: {each} do not fit "
                f"{name}, which has {capacity // 8:,} B{beside}: {lacks:,} B too few"
            )
        if taken and capacity < NO_END:
            free.setdefault(level, capacity - taken)
    return stated._replace(room=free)


def lacking(
    residents: Residents,
    problem: Problem,
    mapping: Cuts,
    places: Memories,
    options: SearchOptions,
) -> Iterator[str]:
    """Say which memories tiles do not fit, and where sums of O that stay have no room beside them.

    Args:
        places: of the chip, as a product sees it whose operands stay.
    """
    for level in range(1, len(mapping.tiles) + 1):
        for room in footprints(problem, mapping, places, level, options):
            if room.capacity is not None and room.used > room.capacity:
                missing = -((room.capacity - room.used) // 8)
                yield f"{room.memory} holds {missing:,} B too few for this tiling"
    home = residents.homes.O
    if home is None or home not in residents.room:
        return
    levels = asked(problem, mapping, places, options.rule, options.transfers)
    wider = ceil(partial_sum_bits(problem, options.partial_sum_bits) - problem.bits.O)
    every = [(level, one) for level, several in enumerate(levels) for one in several]
    more = resting(problem, mapping, every, home, wider)
    rooms = footprints(problem, mapping, places, home, options)
    used = sum(room.used for room in rooms if room.capacity is not None)
    lacks = used + more - residents.room[home]
    if more and lacks > 0:
        yield (
            f"{places.levels[home].name} holds {-(-lacks // 8):,} B too few for the sums of O that "
            f"stay there unfinished, {wider} bit wider than finished ones; the search does not "
            "know of it"
        )


def staying(residents: Residents, hardware: Hardware) -> Iterator[str]:
    """Say where operands stay, and the room that is left, if some do."""
    named, room = residents.named(hardware), residents.room
    if named:
        stay = ", ".join(f"{operand} in {name}" for operand, name in named.items())
        yield f"{stay}: stays there, on its way home nothing is paid"
    if room:
        yield f"tiles find {left(residents, hardware)}, and how full a level is is told of that"


def left(residents: Residents, hardware: Hardware) -> str:
    """The room that is left to tiles, level by level."""
    return ", ".join(
        f"{room // 8:,} B of {hardware.levels[level].name}"
        for level, room in residents.room.items()
    )
