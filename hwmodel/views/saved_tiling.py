"""Tilings in files: what `tile --save` writes, and what `--tiles` reads back."""

from __future__ import annotations

import json
import warnings
from math import prod
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, StrictInt

from hwmodel.errors import DataError, HwmodelError, SpecWarning, nearest
from hwmodel.specs.files import SpecModel, Text, validate
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.inputs import read_text
from hwmodel.tiling.accesses import Mapping
from hwmodel.views.posed import Posed
from hwmodel.views.rooms import ALONE, Residents, parsed_residents
from hwmodel.work.flattening import Loops
from hwmodel.work.problem import Extents, Operand, Problem

__all__ = ["Saved", "read_mapping", "sizes"]


# What `tile --save` writes; of other fields a name is misspelt.
WRITTEN = (
    "energy", "unit", "lower_bound", "gap", "proved", "space", "examined", "fits", "loops",
    "resident", "free_bits", "level_by_level_energy", "tiles", "accesses", "cycle", "groups",
    "cycles", "moments", "utilisation", "energy_of_cycles", "energy_of_moments",
)  # fmt: skip
_Whole = Annotated[StrictInt, Field(ge=1)]


class _Sizes(SpecModel):
    M: _Whole
    N: _Whole
    C: _Whole
    H: _Whole
    W: _Whole
    HF: _Whole
    WF: _Whole

    @property
    def extents(self) -> Extents:
        return Extents(self.N, self.M, self.C, self.H, self.W, self.HF, self.WF)


class _Tile(_Sizes):
    level: Text
    held: Operand
    union: _Sizes | None = None


class _Saved(SpecModel):
    """A saved tiling, as far as it is read back."""

    tiles: Annotated[tuple[_Tile, ...], Field(min_length=1)]
    cycle: _Sizes | None = None
    groups: tuple[_Whole, ...] = ()  # side by side, of each level's boundary
    loops: Loops = "apart"
    resident: dict[Operand, Text] = Field(default={})
    free_bits: dict[Text, _Whole] = Field(default={})


class Saved(NamedTuple):
    """A tiling from a file."""

    mapping: Mapping
    posed: Posed  # with its loops one as the file has it
    residents: Residents

    def beside(self, stated: Residents, path: Path) -> Residents:
        """Return what stays by the file or by the command line. Raises: HwmodelError if both do."""
        if ALONE not in (self.residents, stated) and self.residents != stated:
            raise HwmodelError(
                f"{path}: was saved with other --resident and --free than are stated here; leave "
                "them out, or state the same"
            )
        return self.residents if stated == ALONE else stated


def read_mapping(path: Path, posed: Posed, hardware: Hardware) -> Saved:
    """Read a tiling that `tile --save` or `--json` wrote; check it against a problem and a chip.

    Raises: DataError where tiles do not nest, fit or match the chip's levels.
    """
    try:
        values = json.loads(read_text(path, 2**20))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON: {error}") from None
    kept = values
    if isinstance(values, dict):
        for name in values:
            if name not in WRITTEN:
                raise DataError(
                    f"{path}: {name!r} is no field of a tiling; {nearest(name, WRITTEN)}"
                )
        kept = {"tiles": values.get("tiles")}
        own = ("cycle", "groups", "loops", "resident", "free_bits")
        kept |= {field: values[field] for field in own if values.get(field) is not None}
    saved = validate(_Saved, kept, path)
    posed = posed._replace(loops=saved.loops, asked=posed.loops)
    problem = posed.problem
    tiles = tuple(tile.extents for tile in saved.tiles)
    unions = tuple(tile.union.extents if tile.union else tile.extents for tile in saved.tiles)
    _check_parts(saved, problem, hardware, path)
    cycle = saved.cycle.extents if saved.cycle else None
    named = [(f"tiles {i}", size) for i, pair in enumerate(zip(unions, tiles, strict=True), 1)
             for size in pair]  # fmt: skip
    above = problem.extent
    for where, inside in [*named, *([("cycle", cycle)] if cycle else [])]:
        for loop, outer, inner in zip(Extents._fields, above, inside, strict=True):
            if inner > outer:
                raise DataError(
                    f"{path}: {where}: {loop} {inner} is more than the {outer} above it"
                    f"{_loops(saved.loops) if loop != 'M' else ''}"
                )
        above = inside
    held = tuple(tile.held for tile in saved.tiles)
    sides = unions if unions != tiles or cycle else ()
    mapping = Mapping(tiles, held, sides, cycle, saved.groups)
    return Saved(mapping, posed, _residents(saved, hardware, path))


def _loops(loops: Loops) -> str:
    return f"; loops are {loops} in the file, which have to be one, or apart, as its tiles are"


def _residents(saved: _Saved, hardware: Hardware, path: Path) -> Residents:
    """What stays on the chip beside a saved tiling. Raises: DataError."""
    stay = [f"{operand}={level}" for operand, level in saved.resident.items()]
    free = [f"{level}={room} bit" for level, room in saved.free_bits.items()]
    try:
        return parsed_residents(stay, free, hardware)
    except HwmodelError as error:
        raise DataError(f"{path}: saved with {error}") from None


def _check_parts(saved: _Saved, problem: Problem, hardware: Hardware, path: Path) -> None:
    """See that a saved tiling has what the chip has. Raises: DataError."""
    levels, name = len(hardware.levels), hardware.name
    if len(saved.tiles) != levels - 1:
        raise DataError(
            f"{path}: has tiles of {len(saved.tiles)} levels, {name} has {levels}"
            " with the outermost, which has none"
        )
    own, there = ([one.level for one in saved.tiles], [one.name for one in hardware.levels[1:]])
    if own != there:
        warnings.warn(
            f"{path}: tiles of levels {', '.join(own)} are taken for those of {', '.join(there)}",
            SpecWarning,
            stacklevel=2,
        )
    if (saved.cycle is None) != (hardware.array is None):
        raise DataError(
            f"{path}: has {'no' if saved.cycle is None else 'a'} cycle of an array, "
            f"{name} has {'none' if hardware.array is None else 'one'}"
        )
    if saved.groups and len(saved.groups) != len(saved.tiles):
        raise DataError(f"{path}: groups: has {len(saved.groups)}, one a level is needed")
    if prod(saved.groups) > problem.groups:
        side = f"{prod(saved.groups):,} side by side"
        raise DataError(f"{path}: groups: {side}, more than the {problem.groups:,} there are")


def sizes(tile: Extents) -> dict[str, int]:
    """A tile in the words of saved tilings."""
    return {
        "M": tile.M, "N": tile.N, "C": tile.C, "H": tile.HO, "W": tile.WO, "HF": tile.HF,
        "WF": tile.WF,
    }  # fmt: skip
