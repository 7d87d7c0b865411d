"""Finds the points that keep the constraints; equal values are compared once.

What a name stands for at a point is decided by a few of the axes. So a grid of millions of points
has few different values, and few pairs of them to be compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.specs.files import NamedSpec
from hwmodel.vary.sweep.axes import SPECS, Axis, Specs, fields_of
from hwmodel.vary.sweep.conditions import Condition, holds

__all__ = ["Column", "kept"]

CHUNK = 2**20  # points that are looked at together: some ten megabytes

Whole = NDArray[np.int64]


class Column(NamedTuple):
    """A name's values: the axes on which they depend, and its value at some digits of these."""

    deciding: tuple[int, ...]  # numbers of axes
    value: Callable[[tuple[int, ...]], Any]


def kept(
    axes: Sequence[Axis],
    specs: Specs,
    drawn: Sequence[int],
    wanted: Sequence[Condition],
    computed: Mapping[str, Column],
) -> Sequence[int]:
    """Return the points that keep every comparison; a value that a spec lacks breaks none.

    Args:
        computed: what no spec states, by name.
    """
    names = dict.fromkeys(name for c in wanted for name in (c.name, c.other) if name)
    columns = {name: computed.get(name) or _column(name, axes, specs) for name in names}
    found = array("q")
    for start in range(0, len(drawn), CHUNK):
        points = np.array(drawn[start : start + CHUNK], np.int64)
        for condition in wanted:
            points = points[_holding(condition, columns, axes, points)]
        found.frombytes(points.tobytes())
    return found


def _column(name: str, axes: Sequence[Axis], specs: Specs) -> Column:
    root = name.partition(".")[0]
    deciding = [
        number
        for number, axis in enumerate(axes)
        if axis.name == root
        or any(s.path == name for options in axis.settings.values() for o in options for s in o)
    ]
    if name == root:
        stated = [s.name if isinstance(s, NamedSpec) else s for s in specs[root]]
    else:
        stated = [fields_of(root, spec).get(name) for spec in specs[root]]
    return Column(tuple(deciding), partial(_value, name, tuple(deciding), stated, axes))


def _holding(
    condition: Condition, columns: dict[str, Column], axes: Sequence[Axis], points: Whole
) -> NDArray[np.bool_]:
    """Say for each point whether a comparison holds. Raises: HwmodelError, as `holds`."""
    names = [name for name in (condition.name, condition.other) if name]
    values, places = zip(*(_values(columns[name], axes, points) for name in names), strict=True)
    keys = places[0] if len(names) == 1 else places[0] * len(values[1]) + places[1]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    pairs = zip(*(place[first].tolist() for place in places), strict=True)
    answers = [
        holds([condition], {n: v[i] for n, v, i in zip(names, values, pair, strict=True)},
              absent=True)
        for pair in pairs
    ]  # fmt: skip
    return np.array(answers, bool)[inverse]


def _values(column: Column, axes: Sequence[Axis], points: Whole) -> tuple[list[Any], Whole]:
    """Return the different values of a name, and the index of each point's value among them."""
    keys = np.zeros_like(points)
    for number in column.deciding:
        below = prod(axis.length for axis in axes[number + 1 :])
        keys = keys * axes[number].length + points // below % axes[number].length
    different, places = np.unique(keys, return_inverse=True)
    lengths = [axes[number].length for number in column.deciding]
    digits = zip(*(d.tolist() for d in np.unravel_index(different, lengths)), strict=True)
    return [column.value(of) for of in digits], places


def _value(
    name: str,
    deciding: tuple[int, ...],
    stated: Sequence[Any],
    axes: Sequence[Axis],
    digits: tuple[int, ...],
) -> Any:
    """Return the value of a name for some digits of the axes on which it depends.

    Args:
        stated: by the number of the spec, or the plain values.
    """
    root = name.partition(".")[0]
    chosen = dict(zip(deciding, digits, strict=True))
    which = next(digit for number, digit in chosen.items() if axes[number].name == root)
    value = stated[which]
    key = root, which if root in SPECS else 0
    for number, digit in chosen.items():
        options = axes[number].settings.get(key)
        for setting in options[digit] if options else ():
            value = setting.shown if setting.path == name else value
    return value
