"""Points that share their work: tiled chip by chip, counted once a tiling, priced side by side.

Every row of a point's report is computed by the formulas of `energy`, with arrays of energies in
the place of one; sums are exactly rounded (`math.fsum`), whatever their order. So a point has the
energy that `evaluate` gives for it, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

from hwmodel.errors import SpecError
from hwmodel.model.energy import COMPUTE, Product, Row, Stream, product_rows, stream_rows
from hwmodel.model.evaluate import place, stationary
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping
from hwmodel.vary.sweep.chips import Chips, Memories, shape_of, side_by_side
from hwmodel.vary.sweep.tilings import Key, NoTile, Tilings, choices_of

__all__ = ["PARTS", "Chip", "Energies", "energies"]

PARTS = ("forward", "backward_input", "backward_weight", "update", "elementwise")


class Chip(NamedTuple):
    """A chip, and what its tilings depend on."""

    hardware: Hardware
    memories: Memories


class Energies(NamedTuple):
    """What one point costs [chip's unit], or why there is no figure."""

    energy: float | None = None
    parts: tuple[float, ...] = ()  # in the order of PARTS; they sum to `energy`
    compute: float | None = None  # operations of all parts
    memory: float | None = None  # movement of all parts
    unproved: int = 0  # tilings that the optimal search did not prove
    reason: str = ""


@dataclass
class _Point:
    """Rows of one point so far: energies of memory and of operations, by part."""

    memory: tuple[list[float], ...] = field(default_factory=lambda: tuple([] for _ in PARTS))
    compute: tuple[list[float], ...] = field(default_factory=lambda: tuple([] for _ in PARTS))
    unproved: int = 0
    reason: str = ""

    def summed(self) -> Energies:
        if self.reason:
            return Energies(reason=self.reason)
        parts = [[*m, *c] for m, c in zip(self.memory, self.compute, strict=True)]
        return Energies(
            fsum(e for part in parts for e in part),
            tuple(fsum(part) for part in parts),
            fsum(e for part in self.compute for e in part),
            fsum(e for part in self.memory for e in part),
            self.unproved,
        )


def energies(
    works: Sequence[Product | Stream],
    chips: Sequence[Chip],
    accounting: Accounting,
    tilings: Tilings,
) -> list[Energies]:
    """What the works cost on each of the chips."""
    points = [_Point() for _ in chips]
    shapes: dict[tuple[object, ...], list[int]] = {}
    for index, chip in enumerate(chips):
        shapes.setdefault(shape_of(chip.hardware), []).append(index)
    for places in shapes.values():
        _price(works, [chips[i] for i in places], [points[i] for i in places], accounting, tilings)
    return [point.summed() for point in points]


def _price(
    works: Sequence[Product | Stream],
    chips: Sequence[Chip],
    points: Sequence[_Point],
    accounting: Accounting,
    tilings: Tilings,
) -> None:
    """Add the rows of all works on chips of one shape to their points."""
    every = side_by_side([chip.hardware for chip in chips])
    for work in works:
        alive = [i for i, point in enumerate(points) if not point.reason]
        try:
            if isinstance(work, Stream):
                some = every if len(alive) == len(points) else every.taken(alive)
                _add(stream_rows(work, some, accounting), [points[i] for i in alive])
            else:
                _add_product(work, chips, points, alive, every, accounting, tilings)
        except SpecError as error:  # an operation that these chips do not price
            for i in alive:
                points[i].reason = points[i].reason or str(error)


def _add_product(
    work: Product,
    chips: Sequence[Chip],
    points: Sequence[_Point],
    alive: Iterable[int],
    every: Chips,
    accounting: Accounting,
    tilings: Tilings,
) -> None:
    """Add the rows of a product: chips with the same tiling are counted once."""
    choices, held = choices_of(accounting), stationary(work, accounting)
    groups: dict[Mapping, list[int]] = {}
    for i in alive:
        key = Key(work.problem, held, chips[i].memories, choices)
        found = tilings.of(key, chips[i].hardware, accounting)
        if isinstance(found, NoTile):
            points[i].reason = str(found.error(place(work, chips[i].hardware)))
            continue
        certificate = found.certificate
        points[i].unproved += bool(certificate and certificate.gap)
        groups.setdefault(found.mapping, []).append(i)
    for mapping, places in groups.items():
        rows = product_rows(work, mapping, every.taken(places), accounting)
        _add(rows, [points[i] for i in places])


def _add(rows: Iterable[Row], points: Sequence[_Point]) -> None:
    for row in rows:
        part = row.phase if row.component in ("memory", "compute") else row.component
        number = PARTS.index(part)
        for point, energy in zip(points, row.energy.tolist(), strict=True):
            (point.compute if row.level == COMPUTE else point.memory)[number].append(energy)
