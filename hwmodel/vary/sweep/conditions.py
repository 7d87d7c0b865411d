"""Comparisons joined by `and`: constraints of a sweep, conditions of `best` and `plot`.

Nothing is evaluated but this: a name, a relation, a name or a value. A value is a number, a size
with its unit ("256 KiB"), true or false, or a word. Sizes are compared in bit; a number beside a
column of bytes is one of bytes. Beside a time or a power a value may have a unit of these ("2 ms").
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError, nearest
from hwmodel.specs.quantity import QuantityError, bits, power, seconds

__all__ = ["SHORT", "Condition", "conditions", "holds", "is_size"]

# Short for columns.
SHORT = {"time": "time_overlapped_s", "edp": "edp_js", "peak": "peak_bytes"}

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile(r"(.+?)(<=|>=|==|!=|<|>)(.+)")
_SIZE = re.compile(r"[-+]?[\d._]+(?:[eE][-+]?\d+)?\s*[A-Za-zµ]+")
# Readers of values with a unit, by the end of a column's name.
_UNITS: dict[str, Callable[[str], float]] = {"_s": seconds, "_w": power}


class Condition(NamedTuple):
    """One comparison."""

    name: str
    relation: str
    other: str | None  # a name; None: `value` is meant
    value: Any
    text: str  # as it was written


def conditions(text: str, known: Collection[str], later: Collection[str] = ()) -> list[Condition]:
    """Parse the comparisons of a text; "" has none.

    Args:
        known: names that may stand in them.
        later: names of what is known only once a point is computed.

    Raises: HwmodelError, with the nearest name.
    """
    parts = re.split(r"\s+and\s+", text.strip()) if text.strip() else []
    return [_condition(part.strip(), known, later) for part in parts]


def _condition(text: str, known: Collection[str], later: Collection[str]) -> Condition:
    match = _COMPARISON.fullmatch(text)
    if not match:
        relations = ", ".join(_RELATIONS)
        raise HwmodelError(
            f"{text!r} is no comparison: write 'name relation value', joined by 'and'; "
            f"relations are {relations}"
        )
    left, relation, right = (part.strip() for part in match.groups())
    left, right = (SHORT[x] if SHORT.get(x) in known else x for x in (left, right))
    _see_known(left, text, known, later)
    if right in known:
        return Condition(left, relation, right, None, text)
    if (read := _UNITS.get(left[-2:])) and _SIZE.fullmatch(right):
        return Condition(left, relation, None, _quantity(read, right, text), text)
    value = _value(right, text, known)
    if _SIZE.fullmatch(right):
        if not is_size(left):
            raise HwmodelError(f"{text!r}: {left} is no size, so that {right!r} is none of it")
    elif isinstance(value, (int, float)):
        value = _in_bits(left, value)
    return Condition(left, relation, None, value, text)


def _see_known(name: str, text: str, known: Collection[str], later: Collection[str]) -> None:
    """Refuse a name that is none, or stands for what is not computed yet. Raises: HwmodelError."""
    if name in known:
        return
    if SHORT.get(name, name) in later:
        raise HwmodelError(
            f"{text!r}: {name} is a result, and constraints choose points before any is computed; "
            f"choose among results: hwmodel best TABLE --where {text!r}"
        )
    short = [word for word, full in SHORT.items() if full in known]
    raise HwmodelError(f"{text!r}: {name!r} is no name here; {nearest(name, [*known, *short])}")


def is_size(name: str) -> bool:
    """Tell whether a column or path holds a size, in bit or bytes."""
    last = name.rpartition(".")[2]
    return last in ("capacity", "capacity_bits") or last.endswith(("_bits", "_bytes"))


def _in_bits(name: str, value: Any) -> Any:
    """A value as it is compared: one of bytes in bit."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return 8 * value if number and name.endswith("_bytes") else value


def _value(word: str, text: str, known: Collection[str]) -> Any:
    """Parse a number, a size in bits, true or false, or a word."""
    if word in ("true", "false"):
        return word == "true"
    try:
        return float(word) if not re.fullmatch(r"[-+]?\d+", word) else int(word)
    except ValueError:
        pass
    if _SIZE.fullmatch(word):
        return _quantity(bits, word, text)
    if re.search(r"[<>=!]", word) or not word:
        raise HwmodelError(f"{text!r}: {word!r} is no value")
    if re.match(r"(hardware|method|accounting|network)\.", word):
        raise HwmodelError(f"{text!r}: {word!r} is no name here; {nearest(word, known)}")
    return word.strip("'\"")


def _quantity(read: Callable[[str], float], word: str, text: str) -> float:
    """Read a value with its unit. Raises: HwmodelError."""
    try:
        return read(word)
    except QuantityError as error:
        raise HwmodelError(f"{text!r}: {error}") from None


def holds(wanted: Sequence[Condition], values: Mapping[str, Any], *, absent: bool) -> bool:
    """Say whether all comparisons hold for some values.

    Args:
        absent: the result of a comparison with a value that is not there.

    Raises: HwmodelError where a number would be compared with a word.
    """
    return all(_holds(condition, values, absent) for condition in wanted)


def _holds(condition: Condition, values: Mapping[str, Any], absent: bool) -> bool:
    left = _in_bits(condition.name, values.get(condition.name))
    right = condition.value
    if condition.other is not None:
        right = _in_bits(condition.other, values.get(condition.other))
    if left is None or right is None:
        return absent
    words = isinstance(left, str), isinstance(right, str)
    if words[0] != words[1]:
        raise HwmodelError(f"{condition.text!r} compares {left!r} with {right!r}")
    if words[0] and condition.relation not in ("==", "!="):
        raise HwmodelError(f"{condition.text!r}: words are equal or not, none is less")
    return _RELATIONS[condition.relation](left, right)
