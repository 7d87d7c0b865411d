"""What `tile` is told of the rest of a run: operands that stay on the chip, and room left."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodel.errors import HwmodelError, nearest
from hwmodel.model.residency.plan import residency_levels
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.quantity import QuantityError, bits
from hwmodel.tiling.view import Homes
from hwmodel.work.problem import OPERANDS

__all__ = ["Rooms", "parsed_homes", "parsed_rooms"]

Rooms = dict[int, int]  # by the number of a level [bit]


def parsed_homes(stated: Sequence[str], hardware: Hardware) -> Homes:
    """Parse where operands stay, as I=L2. Raises: HwmodelError."""
    levels = {hardware.levels[number].name: number for number in residency_levels(hardware)}
    homes: dict[str, int] = {}
    for text in stated:
        operand, _, name = (part.strip() for part in text.partition("="))
        if operand not in OPERANDS or operand in homes:
            raise HwmodelError(f"--resident {text!r}: write I, F or O, each once, as in I=L2")
        if name not in levels:
            known = nearest(name, levels) if levels else f"{hardware.name} has none"
            raise HwmodelError(
                f"--resident {text!r}: {name!r} is no memory in which tensors stay; {known}"
            )
        homes[operand] = levels[name]
    return Homes(**homes)


def parsed_rooms(stated: Sequence[str], hardware: Hardware) -> Rooms:
    """Parse the room that is left, as L2=3MiB, by level [bit]. Raises: HwmodelError."""
    levels = residency_levels(hardware)
    named = {hardware.levels[number].name: number for number in levels}
    rooms: dict[int, int] = {}
    for text in stated:
        name, _, size = (part.strip() for part in text.partition("="))
        if name not in named or named[name] in rooms:
            known = nearest(name, named) if named else f"{hardware.name} has none"
            raise HwmodelError(
                f"--free {text!r}: write a memory in which tensors stay, each once, as in "
                f"L2=3MiB; {known}"
            )
        try:
            room = bits(size)
        except QuantityError as error:
            raise HwmodelError(f"--free {text!r}: {error}") from None
        if not 0 < room <= levels[named[name]]:
            raise HwmodelError(f"--free {text!r}: {name} has {levels[named[name]] // 8:,} B in all")
        rooms[named[name]] = room
    return rooms
