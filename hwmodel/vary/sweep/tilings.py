"""Tilings of a whole sweep: equal ones are searched once, and can be sent and kept as text.

A tiling depends on the problem, on capacities and energies of the chip's memories, and on the
accounting's choices of the search. Together they are its `Key`: exact values, so that equal keys
have equal tilings to the last tile, and nothing that could move a tiling is left out of it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, NamedTuple

from hwmodel.errors import Infeasible, TooLarge
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.search import Certificate, Stationary
from hwmodel.tiling.tile import Tiling, tile
from hwmodel.vary.sweep.chips import Memories
from hwmodel.work.problem import Extents, Problem

__all__ = ["Choices", "Found", "Key", "NoTile", "Search", "Tilings", "choices_of", "dumps", "loads"]
__all__ += ["solve"]

MOST = 400_000  # tilings that a worker remembers; some hundred bytes each

Choices = tuple[object, ...]


class NoTile(NamedTuple):
    """That a search ended with an error: it travels between processes, the error does not."""

    infeasible: bool  # else too large
    details: tuple[Any, ...]

    def error(self, where: str) -> Infeasible | TooLarge:
        """As the search raised it, with the place named."""
        error = Infeasible(*self.details) if self.infeasible else TooLarge(*self.details)
        error.where = where
        return error


Found = Tiling | NoTile


class Key(NamedTuple):
    """All that a tiling depends on."""

    problem: Problem
    stationary: Stationary | None
    memories: Memories
    choices: Choices


class Search(NamedTuple):
    """A tiling to be found."""

    problem: Problem
    stationary: Stationary | None
    hardware: Hardware
    accounting: Accounting


def choices_of(accounting: Accounting) -> Choices:
    """What of an accounting the search depends on."""
    chosen, sums = accounting.counting, accounting.widths.partial_sum_bits
    return (chosen.search, chosen.stationary, sums, chosen.rows, chosen.padding)


def solve(searches: Iterable[Search]) -> list[Found]:
    """The tiling of each."""
    return [_solved(search) for search in searches]


def _solved(search: Search) -> Found:
    try:
        return tile(search.problem, search.hardware, search.accounting, search.stationary)
    except Infeasible as error:
        details = (error.level, error.operand, error.needs_bits, error.holds_bits)
        return NoTile(True, details)
    except TooLarge as error:
        return NoTile(False, (error.what, error.number, error.most))


class Tilings:
    """Tilings that were found, the oldest forgotten first."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._found: OrderedDict[Key, Found] = OrderedDict()

    def add(self, found: dict[Key, Found]) -> None:
        """Take in what others have found."""
        self._found.update(found)

    def of(self, key: Key, hardware: Hardware, accounting: Accounting) -> Found:
        """The tiling of a key, which is that of the chip and the accounting."""
        found = self._found.get(key)
        if found is None:
            found = _solved(Search(key.problem, key.stationary, hardware, accounting))
            self._found[key] = found
            if len(self._found) > self.most:
                self._found.popitem(last=False)
        return found


def dumps(found: Iterable[Found]) -> str:
    """As text: a line of JSON each."""
    return "".join(f"{json.dumps(_plain(one))}\n" for one in found)


def _plain(found: Found) -> list[Any]:
    if isinstance(found, NoTile):
        return [found.infeasible, found.details]
    mapping, certificate = found
    return ["".join(mapping.held), mapping.tiles, certificate and [*asdict(certificate).values()]]


def loads(text: str) -> list[Found]:
    """What `dumps` wrote."""
    found: list[Found] = []
    for line in text.splitlines():
        match json.loads(line):
            case [str(held), tiles, certificate]:
                mapping = Mapping(tuple(Extents(*t) for t in tiles), tuple(held))  # type: ignore[arg-type]
                found.append(Tiling(mapping, Certificate(*certificate) if certificate else None))
            case [bool(infeasible), details]:
                found.append(NoTile(infeasible, tuple(details)))
            case other:
                raise ValueError(f"{other!r} is no tiling")
    return found
