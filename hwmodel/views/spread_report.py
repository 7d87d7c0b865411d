"""One problem on a chip with memories side by side: its nest, what moves, what time it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum, prod
from typing import TYPE_CHECKING, NamedTuple

from hwmodel.model.entries import left_at_home
from hwmodel.rerun.tables import NATURE, scale
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.pricing import partial_sum_bits
from hwmodel.tiling.spatial.asked import Time, asked, time
from hwmodel.tiling.spatial.grouped import narrowed
from hwmodel.tiling.spatial.space import Space
from hwmodel.tiling.tile import Tiling
from hwmodel.views.loop_nest import loop_nest
from hwmodel.views.posed import Posed
from hwmodel.views.rooms import ALONE, Residents, lacking, staying
from hwmodel.views.saved_tiling import sizes
from hwmodel.views.screen_tables import table
from hwmodel.work.problem import Extents, Problem
from hwmodel.work.tensor import Direction, Role, product, titled

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Spread", "spread"]


class _Row(NamedTuple):
    level: str
    what: str  # read, write or hop
    tensor: str
    elements: int
    bits: int | float
    energy: float  # [chip's unit]


@dataclass(frozen=True)
class Spread:
    """A mapping with all that moves under it, its time, energy and certificate."""

    posed: Posed
    hardware: Hardware
    places: Memories
    options: SearchOptions
    tiling: Tiling
    rows: tuple[_Row, ...]
    time: Time | None
    residents: Residents = ALONE

    @property
    def problem(self) -> Problem:
        """The problem that is tiled."""
        return self.posed.problem

    @property
    def energy(self) -> float:
        """Energy of memories, hops, arrays and time [chip's unit]."""
        return fsum((*(row.energy for row in self.rows), *self._timed()))

    def _timed(self) -> tuple[float, float]:
        """Energy of the cycles of arrays, and of the moments of the chip [chip's unit]."""
        if self.time is None or self.places.array is None:
            return 0.0, 0.0
        cycles, moments = product(self.time.cycles), product(self.time.moments)
        return cycles * self.places.array.cycle_energy, moments * self.places.moment_energy

    @property
    def overflows(self) -> list[str]:
        """Lines on what the mapping does not fit: memories, fan-outs, the array."""
        mapping = self.tiling.mapping
        beside = self.problem, mapping, self.places, self.options
        lines = list(lacking(self.residents, *beside))
        pairs = list(zip(mapping.unions or mapping.tiles, mapping.tiles, strict=True))
        sizes = [tile for pair in pairs for tile in pair]
        sizes += [mapping.cycle] if mapping.cycle else []
        places = self.places
        if mapping.groups:
            places = narrowed(self.problem, places, mapping.groups)
        limits = Space(self.problem, places, self.options).limits
        for limit in limits:
            outer, one = sizes[limit.outer], Extents(*[1] * 7)
            inner = one if limit.inner is None else sizes[limit.inner]
            side = prod(-(-getattr(outer, x) // getattr(inner, x)) for x in limit.bound.loops)
            if side > limit.bound.most:
                loops = ", ".join(limit.bound.loops)
                lines.append(
                    f"{side:,} pieces of {loops} side by side, more than {limit.bound.most:,}"
                )
        for level, (outer, inner) in zip(places.levels[1:], pairs, strict=True):
            on = {x for bound in level.axes or () for x in bound.loops}
            lines += [
                f"{x} is spread over the memories of {level.name}, on none of whose axes it lies"
                for x, size in outer._asdict().items()
                if level.axes is not None and x not in on and size > getattr(inner, x)
            ]
        if mapping.cycle and places.array:
            taken = {x for limit in limits if limit.inner is None for x in limit.bound.loops}
            lines += [
                f"{size:,} of {x} in a cycle, of which the array takes one"
                for x, size in mapping.cycle._asdict().items()
                if size > 1 and x not in taken
            ]
        return lines

    def json(self) -> str:
        """Write one object: energy, unit, lower_bound, gap, proved, tiles, accesses and more."""
        proof, mapping = self.tiling.certificate, self.tiling.mapping
        names = [level.name for level in self.hardware.levels]
        unions = mapping.unions or mapping.tiles
        of_cycles, of_moments = self._timed()
        tiles = [
            {"level": name, **sizes(tile), "held": held, "union": sizes(union)}
            for name, tile, held, union in zip(
                names[1:], mapping.tiles, mapping.held, unions, strict=True
            )
        ]
        fields = {
            "energy": self.energy,
            "unit": self.hardware.unit,
            "lower_bound": proof.lower_bound if proof else None,
            "gap": proof.gap if proof else None,
            "proved": proof.proved if proof else False,
            "space": proof.space if proof else None,
            "examined": proof.examined if proof else None,
            "fits": not self.overflows,
            "loops": self.posed.loops,
            "resident": self.residents.named(self.hardware),
            "free_bits": self.residents.stated(self.hardware),
            "tiles": tiles,
            "cycle": sizes(mapping.cycle) if mapping.cycle else None,
            "groups": list(mapping.groups) or None,  # side by side, at each boundary
            "accesses": [row._asdict() for row in self.rows],
            "cycles": product(self.time.cycles) if self.time else None,
            "moments": product(self.time.moments) if self.time else None,
            "utilisation": self.time.utilisation if self.time else None,
            "energy_of_cycles": of_cycles,
            "energy_of_moments": of_moments,
        }
        return json.dumps(fields, indent=2) + "\n"

    def pieces(self) -> Iterator[RenderableType | str]:
        """Yield the tables and lines that `hwmodel tile` prints."""
        yield from self.posed.note(self.hardware)
        yield loop_nest(self.problem, self.tiling.mapping, self.places, self.options) + "\n"
        divisor, unit = scale(self.energy, self.hardware.unit)
        listed = table(
            f"what moves, and its energy, {unit}", ["level", "what", "of"],
            ["elements", "bits", "energy"],
        )  # fmt: skip
        for row in self.rows:
            cells = f"{row.elements:,}", f"{row.bits}", f"{row.energy / divisor:,.3f}"
            listed.add_row(row.level, row.what, row.tensor, *cells)
        yield listed
        yield from self._sentences()

    def _sentences(self) -> Iterator[str]:
        divisor, unit = scale(self.energy, self.hardware.unit)
        plain = f"{self.energy!r} {self.hardware.unit}"
        if self.time is not None:
            cycles, moments = product(self.time.cycles), product(self.time.moments)
            yield f"{cycles:,} cycles of arrays, {moments:,} moments of the chip; utilisation " + (
                f"{100 * self.time.utilisation:.2f} %"
            )
            timed = self._timed()
            if any(timed):
                paid = " and ".join(f"{energy / divisor:,.4f} {unit}" for energy in timed)
                yield f"cycles and moments pay {paid}"
        else:
            yield "innermost reads: as by an unlimited broadcast, for the chip states no array"
        yield f"energy of memories, hops and time {self.energy / divisor:,.4f} {unit} ({plain})"
        proof = self.tiling.certificate
        if proof is None:
            yield "no certificate: this tiling is not from the search"
        else:
            found = "proved optimal" if proof.proved else f"NOT proved: gap {100 * proof.gap:.4f} %"
            yield (
                f"{found}; lower bound {proof.lower_bound / divisor:,.4f} {unit}; "
                f"{proof.space:.3g} tilings in the space, {proof.examined:,} examined"
            )
        yield from (f"DOES NOT FIT: {overflow}" for overflow in self.overflows)
        yield from staying(self.residents, self.hardware)
        yield f"Operations are not part of it. All figures are {NATURE}."


def spread(
    posed: Posed,
    hardware: Hardware,
    places: Memories,
    options: SearchOptions,
    tiling: Tiling,
    residents: Residents = ALONE,
) -> Spread:
    """Count what moves under a mapping, its time, and what both cost. Raises: TooLarge."""
    problem, mapping = posed.problem, tiling.mapping
    wide = partial_sum_bits(problem, options.partial_sum_bits)
    rows, homes = [], residents.homes
    levels = asked(problem, mapping, places, options.rule, options.transfers)
    for level, several in enumerate(levels):
        left = (x for one in several for x in left_at_home(one, level, homes.of(one.operand)))
        for operand, direction, role, factors in left:
            bits = getattr(problem.bits, operand) if role == Role.OPERAND else wide
            elements = product(factors)
            if direction == Direction.HOP:
                name, price = places.levels[level].name, places.levels[level].hop_energy_per_bit
            else:
                memory = places.holder(level, operand)
                name, price = memory.name, memory.read_energy_per_bit
                price = price if direction == Direction.READ else memory.write_energy_per_bit
            energy = elements * bits * price
            rows.append(_Row(name, direction, titled(operand, role), elements, bits, energy))
    taken = time(problem, mapping, places, options.rule)
    return Spread(posed, hardware, places, options, tiling, tuple(rows), taken, residents)
