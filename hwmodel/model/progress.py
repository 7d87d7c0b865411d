"""How far a long computation of the model is, for whoever shows it; nobody needs to."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["counted", "place"]

Item = TypeVar("Item")


class Place:
    """Items done of how many; of none where nothing is counted now."""

    what, done, total = "", 0, 0
    started = 0.0  # by `time.monotonic` [s]


place = Place()


def counted(what: str, items: Iterable[Item], total: int) -> Iterator[Item]:
    """Yield items; those that are done are counted in `place` meanwhile.

    >>> for _ in counted("products", ["conv1", "fc1"], 2):
    ...     print(place.what, place.done, "of", place.total)
    products 0 of 2
    products 1 of 2
    >>> place.total
    0
    """
    place.what, place.done, place.started, place.total = what, 0, time.monotonic(), total
    try:
        for item in items:
            yield item
            place.done += 1
    finally:
        place.total = 0
