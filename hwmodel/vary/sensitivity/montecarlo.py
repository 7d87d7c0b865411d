"""Constants drawn at random from stated ranges, all at once: how far percentages spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hwmodel.errors import SpecError, nearest
from hwmodel.specs.files import read_yaml
from hwmodel.vary.paths import Inputs, Leaf, Scalar, changed
from hwmodel.vary.sensitivity.costs import Outcome, overtaken
from hwmodel.vary.sensitivity.moves import FACTORS, fields, is_number

__all__ = ["PERCENTILES", "Range", "Sampled", "Spread", "default_ranges", "draws", "read_ranges"]
__all__ += ["sampled"]

PERCENTILES = (5, 50, 95)


class Range(NamedTuple):
    """A range from which a number is drawn, evenly on a logarithmic scale."""

    leaf: Leaf
    low: float
    high: float


class Spread(NamedTuple):
    """Percent of the baseline over the samples in which a method can be computed."""

    hardware: str
    accounting: str
    method: str
    samples: int  # in which it could be computed
    percentile_5: float | None
    percentile_50: float | None
    percentile_95: float | None


class Sampled(NamedTuple):
    """Spread of each method over the samples of one chip, and how often the ranking holds."""

    hardware: str
    drawn: int  # constants
    ranges: str  # where from, in words
    seed: int
    spreads: tuple[Spread, ...]
    samples: int
    complete: int  # samples in which every method could be computed
    ranking_held: int  # of the complete ones


def default_ranges(inputs: Inputs) -> list[Range]:
    """Return ranges from half to double for every energy, price and capacity.

    An energy that the chip's file states for reading and writing alike is drawn once.
    """
    low, high = FACTORS
    return [
        Range(leaf, float(leaf.value) * low, float(leaf.value) * high)
        for leaf in fields(inputs)
        if is_number(leaf.value) and leaf.value and not leaf.part_of
        if leaf.path.startswith("hardware.") or leaf.unit == "MAC"
        if leaf.unit  # a price has one; in how many operations it is stated has not
    ]


def read_ranges(path: Path, points: Sequence[Inputs]) -> list[list[Range]]:
    """Read a file's ranges, for each chip: lines `hardware.levels.L1.capacity: [32 KiB, 1 MiB]`.

    A bound is a number in the unit of the field, or text with a unit as in a chip's file. A path
    need not hold for every chip, but for one.

    Raises: SpecError.
    """
    stated = read_yaml(path)
    if not isinstance(stated, dict) or not stated:
        raise SpecError(f"{path}: holds no 'dotted.path: [low, high]' lines")
    found: list[list[Range]] = [[] for _ in points]
    for name, bounds in stated.items():
        where = f"{path}: {name}"
        if not isinstance(bounds, list) or len(bounds) != 2:
            raise SpecError(f"{where}: must be [low, high]")
        known = [{leaf.path: leaf for leaf in fields(inputs)} for inputs in points]
        if not any(name in leaves for leaves in known):
            every = {path for leaves in known for path in leaves}
            raise SpecError(f"{where}: is no path to a number; {nearest(str(name), every)}")
        for ranges, inputs, leaves in zip(found, points, known, strict=True):
            if name in leaves:
                low, high = (_bound(inputs, leaves[name], bound, where) for bound in bounds)
                if not (0 < low <= high and high / low < math.inf):
                    raise SpecError(
                        f"{where}: [{low:g}, {high:g}]: needs 0 < low <= high <= 1e308 low"
                    )
                ranges.append(Range(leaves[name], low, high))
    return found


def _bound(inputs: Inputs, leaf: Leaf, bound: Any, where: str) -> float:
    """Return a bound in the unit of its field, if the field allows it."""
    try:
        there = changed(inputs, {leaf.path: bound})
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None
    value = next(other.value for other in fields(there) if other.path == leaf.path)
    if not is_number(value):
        raise SpecError(f"{where}: {bound!r} is no number")
    return float(value)


def draws(ranges: Sequence[Range], samples: int, seed: int) -> list[dict[str, Scalar]]:
    """Draw so many points, each a value for every range; equal seeds give equal points."""
    import numpy as np

    shares = np.random.default_rng(seed).random((samples, len(ranges))).tolist()
    return [
        {x.leaf.path: _value(x, share) for x, share in zip(ranges, row, strict=True)}
        for row in shares
    ]


def _value(x: Range, share: float) -> int | float:
    value: float = x.low * (x.high / x.low) ** share
    return round(value) if x.leaf.whole else value


def sampled(
    inputs: Inputs, names: Sequence[str], before: Outcome, outcomes: Sequence[Outcome]
) -> tuple[tuple[Spread, ...], int, int, int]:
    """Return percentiles of each method, and numbers of samples: all, complete, same ranking."""
    import numpy as np

    spreads = []
    for name, percents in zip(
        names, zip(*(o.percents for o in outcomes), strict=True), strict=True
    ):
        known = [percent for percent in percents if percent is not None]
        cuts: list[Any] = np.percentile(known, PERCENTILES).tolist() if known else [None] * 3
        spreads.append(
            Spread(inputs.hardware.name, inputs.accounting.name, name, len(known), *cuts)
        )
    complete = [o for o in outcomes if None not in o.percents]
    held = sum(not overtaken(before.percents, o.percents) for o in complete)
    return tuple(spreads), len(outcomes), len(complete), held
