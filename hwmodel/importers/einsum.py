"""Einsum of two operands as the product that it is: rows of one times columns of the other.

A letter that both have and the result has not is summed over; one that all have is a batch; one
that only an operand and the result have is of its rows or columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters
from typing import NamedTuple

from hwmodel.graph.layers import Multiply
from hwmodel.importers.graph import (
    Constant,
    Dims,
    Graph,
    Operand,
    Value,
    combined,
    learned_of,
)
from hwmodel.importers.operators import same
from hwmodel.importers.products import linear, matmul, scores_of

__all__ = ["einsum"]


class _Terms(NamedTuple):
    """Letters of the operands and of the result."""

    operands: list[str]
    result: str


def einsum(
    graph: Graph, name: str, equation: str, operands: Sequence[Operand], dims: Dims | None
) -> Value | None:
    """Add the product; None where it is none: of more operands, of diagonals, of sums of one."""
    terms = _terms(equation, [len(_known(one)) for one in operands])
    if terms is None or dims is None:
        return None
    if len(operands) == 1 and sorted(terms.operands[0]) == sorted(terms.result):
        return same(graph, operands[0], dims) if isinstance(operands[0], Value) else None
    if len(operands) != 2:
        return None
    lengths = {
        letter: length
        for term, one in zip(terms.operands, operands, strict=True)
        for letter, length in zip(term, _known(one), strict=True)
    }
    return _of_two(graph, name, terms, (operands[0], operands[1]), lengths, dims)


def _known(operand: Operand) -> Dims:
    return operand.known if isinstance(operand, Value) else operand.dims


def _terms(equation: str, ranks: Sequence[int]) -> _Terms | None:
    """Read an equation, "..." written out in letters that it has not; None if it is none."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        return None
    free = [letter for letter in ascii_letters if letter not in equation]
    if not arrow:  # letters that stand once, in order
        letters = left.replace(",", "").replace(".", "")
        result = "..." * ("..." in left)
        result += "".join(sorted(one for one in set(letters) if letters.count(one) == 1))
    longest = 0
    written = []
    for term, rank in zip(terms, ranks, strict=True):
        more = rank - len(term.replace("...", "")) if "..." in term else 0
        longest = max(longest, more)
        written.append(term.replace("...", "".join(reversed(free[: max(more, 0)]))))
    result = result.replace("...", "".join(reversed(free[:longest])))
    fits = all(len(term) == rank for term, rank in zip(written, ranks, strict=True))
    fits = fits and all(len(set(term)) == len(term) for term in (*written, result))
    return _Terms(written, result) if fits and "." not in "".join(written) + result else None


def _of_two(
    graph: Graph,
    name: str,
    terms: _Terms,
    operands: tuple[Operand, Operand],
    lengths: dict[str, int],
    dims: Dims,
) -> Value | None:
    first, second = map(set, terms.operands)
    result = set(terms.result)
    batch, summed = first & second & result, (first & second) - result
    rows, columns = first - second, second - first
    if not rows | columns <= result or not result <= first | second:
        return None
    B, C, L, M = (
        prod(lengths[letter] for letter in some) for some in (batch, summed, rows, columns)
    )
    a, b = operands
    if isinstance(a, Constant) or (isinstance(b, Value) and scores_of(graph, b)):
        a, b, L, M = b, a, M, L
    if not isinstance(a, Value):
        return None
    if isinstance(b, Constant) and B == 1:
        graph.settle(a)
        x = Value((1, L, C), a.layer, a.shape)
        made = linear(graph, name, x, b, (C, M), False, None, learned_of([b]))
        return Value(dims, made.layer, made.shape)
    if isinstance(b, Value) and (C, L, M) == (1, 1, 1):
        return combined(graph, name, Multiply, [a, b], dims)
    left = _seen_as(graph, a, (1, B, L, C))
    right = _seen_as(graph, b, (1, B, C, M))
    made = matmul(graph, name, left, right, (1, B, L, M))
    return Value(dims, made.layer, made.shape)


def _seen_as(graph: Graph, operand: Operand, dims: Dims) -> Operand:
    """The same elements in other dimensions: a transposition moves nothing."""
    if isinstance(operand, Constant):
        return operand._replace(dims=dims)
    graph.settle(operand)
    return Value(dims, operand.layer, operand.shape)
