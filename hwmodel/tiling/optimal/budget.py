"""The budget of a search, counted and not timed, so that reruns end in the same place."""

from __future__ import annotations

from hwmodel.tiling.effort import effort

__all__ = ["ENTRIES", "NEST", "STEPS", "Budget", "TooMany"]

ENTRIES = 10  # of a list of numbers that take as long as one tiling that is looked at
STEPS = 350  # of a compiled loop, likewise
NEST = 500  # tilings that take as long as to meet a nest, or to join lists


class TooMany(Exception):
    """A list would be longer than the search's limit; caught there."""


class Budget:
    """A search's budget, as it is spent [tilings looked at, a few microseconds each]."""

    def __init__(self, tilings: int) -> None:
        self.whole = tilings
        self.left = float(tilings)

    def renew(self) -> None:
        """Give back all that was spent, for what is done when a search has ended."""
        self.left = float(self.whole)

    def raise_(self, times: int) -> None:
        """Make it so many times as large."""
        self.left += (times - 1) * self.whole
        self.whole *= times

    def spend(self, tilings: float) -> None:
        """Take the work of looking at so many tilings, be it done or given up."""
        self.left -= tilings
        effort.looked += tilings

    @property
    def is_spent(self) -> bool:
        """Whether the search should end."""
        return self.left < 0
