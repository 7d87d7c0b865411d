"""What an explanation consists of: sections of sentences, tables, loop nests and computations.

A `Step` is one thing that a reader can do on a pocket calculator: a formula, the same with its
numbers, and what comes out. Everything in it is text already, so that every view shows the same.
A step is made by `computed`, which does the sum that it prints and refuses one that does not come
out as the report has it.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

__all__ = ["TIMES", "Explanation", "Section", "Step", "Table", "added", "computed", "count"]
__all__ += ["energy", "exact", "times"]

TIMES = "\N{MULTIPLICATION SIGN}"
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: dict[str, Callable[..., Fraction | int]] = {
    "ceil": ceil,
    "floor": floor,
    "min": min,
    "max": max,
    "round": Fraction,
}  # fmt: skip  (rounding is left to the comparison: half a unit, a tie either way)


class Step(NamedTuple):
    """One computation. `numbers` and `result` are two sides of an equation in plain numbers.

    `numbers` is made of numbers, brackets, the four operations and ceil, floor, round, min, max.
    """

    text: str  # what is computed, in words
    formula: str = ""  # in the symbols of docs/model.md
    numbers: str = ""  # the formula with its numbers put in; "" where there is nothing to do
    result: str = ""
    unit: str = ""
    source: str = ""  # of the formula, or of the constants in it
    row: int = 0  # the row of the report's table that this is the energy of; 0: of none


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


def count(number: float) -> str:
    """A count in full: whole, or the shortest decimals that mean the same.

    >>> count(1769472), count(36.0), count(38.4)
    ('1,769,472', '36', '38.4')
    """
    return f"{int(number):,}" if number == int(number) else repr(float(number))


def exact(factor: float) -> str:
    """A constant that others are multiplied by, to twelve digits.

    >>> exact(1 / 39.2)
    '0.0255102040816'
    """
    return _short(f"{factor:.12g}")


def energy(value: float) -> str:
    """An energy to six digits.

    >>> energy(30093.0612), energy(1234567890.0)
    ('30,093.1', '1.23457e9')
    """
    return _short(f"{value:,.6g}")


def _short(number: str) -> str:
    """Without the padding of an exponent.

    >>> _short("1.2e+09"), _short("1.2e-05")
    ('1.2e9', '1.2e-5')
    """
    return number.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def times(*factors: float | str) -> str:
    """A product in numbers; counts are written out, text is taken as it is."""
    return f" {TIMES} ".join(f if isinstance(f, str) else count(f) for f in factors)


def computed(
    text: str,
    formula: str,
    numbers: str,
    value: float,
    unit: str = "",
    *,
    show: Callable[[float], str] = count,
    source: str = "",
    row: int = 0,
) -> Step:
    """A step whose sum is done as printed, and must come to the `value` that the report has.

    Counts must agree exactly, or to half a unit where `numbers` rounds; other numbers to ten
    digits, since constants are printed to twelve.

    Raises: AssertionError where they differ: the explanation would not be true.
    """
    plain = re.sub(r"(?<=[0-9]),(?=[0-9]{3})", "", numbers).replace(TIMES, "*")
    found = _calculated(ast.parse(plain, mode="eval").body)
    slack = abs(value) * (0.0 if show is count and value == int(value) else 1e-10)
    if "round(" in numbers:
        slack = 0.5 + abs(value) * 1e-10
    if abs(found - Fraction(value)) > slack:
        raise AssertionError(f"{text}: {numbers} is {float(found)!r}, but the report has {value!r}")
    return Step(text, formula, numbers, show(value), unit, source, row)


def added(text: str, parts: Iterable[float], value: float, unit: str) -> Step:
    """A sum of energies, each to six digits, so that the last digit may differ."""
    return Step(text, "", " + ".join(map(energy, parts)), energy(value), unit)


def _calculated(node: ast.expr) -> Fraction:
    """The value of an arithmetic expression in exact fractions."""
    if isinstance(node, ast.Constant):
        return Fraction(str(node.value))
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_calculated(node.left), _calculated(node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return Fraction(_FUNCTIONS[node.func.id](*map(_calculated, node.args)))
    raise AssertionError(f"no arithmetic: {ast.dump(node)}")
