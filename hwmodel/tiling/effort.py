"""What the searches of this process have done so far, for whoever shows that they go on."""

from __future__ import annotations

__all__ = ["effort"]


class _Effort:
    """Counts since the process began; whether code is being compiled now."""

    found = 0  # tilings that a search found
    looked = 0.0  # tilings looked at, as budgets count them; with memories side by side chains
    elsewhere = 0  # other processes that search now
    compiling = False
    compiled = 0.0  # seconds that went into compiling


effort = _Effort()
