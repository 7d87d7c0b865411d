"""Comparisons joined by `and`: constraints of a sweep, conditions of `best` and `plot`.

Nothing is evaluated but this: a name, a relation, a name or a value. A value is a number, a size
with its unit ("256 KiB", taken in bit), true or false, or a word.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError, nearest
from hwmodel.specs.quantity import QuantityError, bits

__all__ = ["Condition", "conditions", "holds"]

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile(r"(.+?)(<=|>=|==|!=|<|>)(.+)")
_SIZE = re.compile(r"[-+]?[\d._]+(?:[eE][-+]?\d+)?\s*[A-Za-z]+")


class Condition(NamedTuple):
    """One comparison."""

    name: str
    relation: str
    other: str | None  # a name; None: `value` is meant
    value: Any
    text: str  # as it was written


def conditions(text: str, known: Collection[str]) -> list[Condition]:
    """Parse the comparisons of a text; "" has none.

    Args:
        known: names that may stand in them.

    Raises: HwmodelError, with the nearest name.
    """
    parts = re.split(r"\s+and\s+", text.strip()) if text.strip() else []
    return [_condition(part.strip(), known) for part in parts]


def _condition(text: str, known: Collection[str]) -> Condition:
    match = _COMPARISON.fullmatch(text)
    if not match:
        relations = ", ".join(_RELATIONS)
        raise HwmodelError(
            f"{text!r} is no comparison: write 'name relation value', joined by 'and'; "
            f"relations are {relations}"
        )
    left, relation, right = (part.strip() for part in match.groups())
    if left not in known:
        raise HwmodelError(f"{text!r}: {left!r} is no name here; {nearest(left, known)}")
    if right in known:
        return Condition(left, relation, right, None, text)
    return Condition(left, relation, None, _value(right, text, known), text)


def _value(word: str, text: str, known: Collection[str]) -> Any:
    """Parse a number, a size in bits, true or false, or a word."""
    if word in ("true", "false"):
        return word == "true"
    try:
        return float(word) if not re.fullmatch(r"[-+]?\d+", word) else int(word)
    except ValueError:
        pass
    if _SIZE.fullmatch(word):
        try:
            return bits(word)
        except QuantityError as error:
            raise HwmodelError(f"{text!r}: {error}") from None
    if re.search(r"[<>=!]", word) or not word:
        raise HwmodelError(f"{text!r}: {word!r} is no value")
    if re.match(r"(hardware|method|accounting|network)\.", word):
        raise HwmodelError(f"{text!r}: {word!r} is no name here; {nearest(word, known)}")
    return word.strip("'\"")


def holds(wanted: Sequence[Condition], values: Mapping[str, Any], *, absent: bool) -> bool:
    """Say whether all comparisons hold for some values.

    Args:
        absent: the result of a comparison with a value that is not there.

    Raises: HwmodelError where a number would be compared with a word.
    """
    return all(_holds(condition, values, absent) for condition in wanted)


def _holds(condition: Condition, values: Mapping[str, Any], absent: bool) -> bool:
    left = values.get(condition.name)
    right = condition.value if condition.other is None else values.get(condition.other)
    if left is None or right is None:
        return absent
    words = isinstance(left, str), isinstance(right, str)
    if words[0] != words[1]:
        raise HwmodelError(f"{condition.text!r} compares {left!r} with {right!r}")
    if words[0] and condition.relation not in ("==", "!="):
        raise HwmodelError(f"{condition.text!r}: words are equal or not, none is less")
    return _RELATIONS[condition.relation](left, right)
