"""Chips side by side: what pricing asks of a chip, with arrays in the place of numbers.

The formulas of `energy` and `prices` take either. An element of an array goes through the same
operations in the same order as the number would, so its energy is the same to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.specs.hardware import Hardware
from hwmodel.work.problem import Operand

__all__ = ["Chips", "Memories", "memories_of", "shape_of", "side_by_side"]

Floats = NDArray[np.float64]
Memories = tuple[tuple[tuple[object, ...], ...], ...]


class _Memory(NamedTuple):
    """One memory of every chip."""

    name: str
    holds: tuple[Operand, ...]
    read_energy_per_bit: Floats  # [chip]
    write_energy_per_bit: Floats


class _Price(NamedTuple):
    """One stated price of every chip."""

    operations: Floats  # [chip]
    energy_per_operation: Floats


class Chips(NamedTuple):
    """Chips that differ in numbers only."""

    name: str
    levels: tuple[tuple[_Memory, ...], ...]  # outermost first
    prices: dict[tuple[str, int], _Price]

    def holder(self, level: int, operand: Operand) -> _Memory:
        """The memory that holds `operand` at `levels[level]`."""
        return next(memory for memory in self.levels[level] if operand in memory.holds)

    def price(self, operation: str, bits: int) -> _Price | None:
        """The stated price of an operation at a width, if the chips have one."""
        return self.prices.get((operation, bits))

    def taken(self, places: Sequence[int]) -> Chips:
        """Some of the chips."""
        index = np.array(places, np.intp)
        levels = tuple(
            tuple(_Memory(m.name, m.holds, m[2][index], m[3][index]) for m in memories)
            for memories in self.levels
        )
        prices = {key: _Price(p[0][index], p[1][index]) for key, p in self.prices.items()}
        return Chips(self.name, levels, prices)


def shape_of(chip: Hardware) -> tuple[object, ...]:
    """What must be equal of chips that are put side by side."""
    memories = tuple(tuple((b.name, b.holds) for b in level.buffers) for level in chip.levels)
    return chip.name, memories, tuple((p.operation, p.bits) for p in chip.arithmetic)


def memories_of(chip: Hardware) -> Memories:
    """All that a tiling depends on, of a chip: equal memories have equal tilings."""
    return tuple(
        tuple(
            (b.name, b.holds, b.capacity_bits, b.read_energy_per_bit, b.write_energy_per_bit)
            for b in level.buffers
        )
        for level in chip.levels
    )


def side_by_side(chips: Sequence[Hardware]) -> Chips:
    """Chips of one shape."""
    first = chips[0]
    levels = tuple(
        tuple(
            _Memory(
                buffer.name,
                buffer.holds,
                np.array([c.levels[i].buffers[j].read_energy_per_bit for c in chips], float),
                np.array([c.levels[i].buffers[j].write_energy_per_bit for c in chips], float),
            )
            for j, buffer in enumerate(level.buffers)
        )
        for i, level in enumerate(first.levels)
    )
    prices: dict[tuple[str, int], _Price] = {
        (price.operation, price.bits): _Price(
            np.array([c.arithmetic[i].operations for c in chips], float),
            np.array([c.arithmetic[i].energy_per_operation for c in chips], float),
        )
        for i, price in enumerate(first.arithmetic)
    }
    return Chips(first.name, levels, prices)
