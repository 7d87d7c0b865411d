"""What an explanation consists of: sections of sentences, tables, loop nests and computations.

A `Step` is one thing that a reader can do on a pocket calculator: a formula, the same with its
numbers, and what comes out. Everything here is text already, so that every view shows the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Explanation", "Section", "Step", "Table"]


class Step(NamedTuple):
    """One computation. `numbers` and `result` are two sides of an equation in plain numbers.

    `numbers` is made of numbers, brackets, the four operations and ceil, round, min and max.
    """

    text: str  # what is computed, in words
    formula: str = ""  # in the symbols of docs/model.md
    numbers: str = ""  # the formula with its numbers put in
    result: str = ""
    unit: str = ""
    source: str = ""  # of the formula, or of the constants in it


class Table(NamedTuple):
    """A header and rows of text, each as long as the header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Section(NamedTuple):
    """One part of an explanation: its sentences, then its code, its table and its steps."""

    title: str
    depth: int = 2  # of the heading: 2 for parts, 3 for what belongs to the part before
    text: str = ""
    code: str = ""  # lines to be shown as they are (a loop nest)
    table: Table | None = None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """How the energy of one layer comes about; `energy` is that of the report's rows."""

    layer: str
    title: str
    sections: tuple[Section, ...]
    energy: float  # [`unit`]
    unit: str
