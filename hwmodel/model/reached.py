"""Energy to an accuracy: the steps of traced runs times the energy of an iteration, with spread."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, isfinite
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from hwmodel.model.compare import Comparison
from hwmodel.model.traced import see_comparable
from hwmodel.specs.trace import Trace, steps_to

__all__ = ["QUARTILED", "SUSTAIN", "Reached", "quantile", "reached"]

SUSTAIN = 3  # evaluations in a row at or above a target that reach it
QUARTILED = 5  # runs from which on a median and quartiles are stated

Spread = Literal["one run", "extremes", "quartiles"]


class Reached(NamedTuple):
    """What the runs of a line's method reached, beside the line; None where there are no runs.

    A run that does not reach the target takes steps without end: a quartile or an extreme that
    falls on one is None.
    """

    runs: int
    trace_accuracy_percent: float | None = None  # mean over runs at their end, on test images
    trace_accuracy_deviation: float | None = None  # over runs (n - 1); None of one run
    target_accuracy_percent: float | None = None
    runs_reached: int | None = None
    spread: Spread | None = None  # what low and high are: quartiles from QUARTILED runs on
    steps_low: int | None = None
    steps_middle: int | None = None  # the median; None of several runs below QUARTILED
    steps_high: int | None = None
    energy_low: float | None = None  # steps times the energy of an iteration
    energy_middle: float | None = None
    energy_high: float | None = None


def reached(
    lines: Sequence[Comparison],
    traces: Sequence[Trace],
    target: float | None,
    sustain: int = SUSTAIN,
) -> list[Reached]:
    """Return for each line what the runs of its method reached, and at which energy.

    Args:
        target: test accuracy that must be reached [share]; by default the lowest of the last
            `sustain` evaluations of any run, so that every run has reached it.
        sustain: evaluations in a row that must reach it.

    Raises: DataError where the runs are of different images, or of another batch than a line.
    """
    for line in lines:
        see_comparable(traces, line.batch)
    ends = [epoch.accuracy for trace in traces for epoch in trace.epochs[-sustain:]]
    goal = min(ends, default=None) if target is None else target
    return [
        _of_line(
            line, [t for t in traces if t.epochs and t.run.method == line.method], goal, sustain
        )
        for line in lines
    ]


def _of_line(
    line: Comparison, traces: Sequence[Trace], goal: float | None, sustain: int
) -> Reached:
    if not traces or goal is None:
        return Reached(0)
    ends = [100 * trace.epochs[-1].accuracy for trace in traces]
    steps = [steps_to(trace, goal, sustain) for trace in traces]
    spread, low, middle, high = _spread([inf if n is None else n for n in steps])
    energies = [None if n is None or line.energy is None else n * line.energy
                for n in (low, middle, high)]  # fmt: skip
    return Reached(
        len(traces),
        fmean(ends),
        stdev(ends) if len(ends) > 1 else None,
        100 * goal,
        sum(n is not None for n in steps),
        spread,
        low,
        middle,
        high,
        *energies,
    )


def _spread(steps: Sequence[float]) -> tuple[Spread, int | None, int | None, int | None]:
    """Return a lower, a middle and an upper number of steps, and what they are."""
    if len(steps) >= QUARTILED:
        found = [quantile(steps, share) for share in (0.25, 0.5, 0.75)]
        return "quartiles", *(int(n) if isfinite(n) else None for n in found)  # type: ignore[return-value]
    low, high = (int(n) if isfinite(n) else None for n in (min(steps), max(steps)))
    return ("one run", low, low, high) if len(steps) == 1 else ("extremes", low, None, high)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the least value that at least `share` of the values do not exceed: nearest rank.

    >>> quantile([4, 1, 3, 2, 5], 0.25), quantile([4, 1, 3, 2, 5], 0.5)
    (2, 3)
    """
    return sorted(values)[ceil(share * len(values)) - 1]
