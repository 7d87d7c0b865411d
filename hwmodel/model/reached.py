"""Energy to an accuracy: the steps of traced runs times the energy of an iteration, with spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf, isfinite
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from hwmodel.model.compare import Comparison
from hwmodel.model.traced import see_comparable
from hwmodel.specs.trace import Trace, steps_to

__all__ = ["QUARTILED", "SUSTAIN", "Reached", "Spread", "noise", "quantile", "reached", "spread"]

SUSTAIN = 3  # evaluations in a row at or above a target that reach it
NOISE = 0.01  # a target nearer than this below what is reached in the end tells nothing
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
    target_accuracy_percent: float | None = None  # on validation images
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
        target: accuracy on validation images that must be reached [share], stated before any run;
            None: only what was reached at the end is told.
        sustain: evaluations in a row that must reach it.

    Raises: DataError where the runs are of different images, or of another batch than a line, or
        have no validation images.
    """
    for line in lines:
        see_comparable(traces, line.batch)
    by_method = {
        line.method: [t for t in traces if t.epochs and t.run.method == line.method]
        for line in lines
    }
    return [_of_line(line, by_method[line.method], target, sustain) for line in lines]


def _of_line(
    line: Comparison, traces: Sequence[Trace], goal: float | None, sustain: int
) -> Reached:
    if not traces:
        return Reached(0)
    ends = [100 * trace.epochs[-1].accuracy for trace in traces]
    deviation = stdev(ends) if len(ends) > 1 else None
    if goal is None:
        return Reached(len(traces), fmean(ends), deviation)
    steps = [steps_to(trace, goal, sustain) for trace in traces]
    kind, *ranks = spread([inf if n is None else n for n in steps])
    low, middle, high = (None if n is None else int(n) for n in ranks)
    energies = [None if n is None or line.energy is None else n * line.energy
                for n in (low, middle, high)]  # fmt: skip
    return Reached(
        len(traces),
        fmean(ends),
        deviation,
        100 * goal,
        sum(n is not None for n in steps),
        kind,
        low,
        middle,
        high,
        *energies,
    )


def spread(values: Sequence[float]) -> tuple[Spread, float | None, float | None, float | None]:
    """Return what is stated of several runs: what it is, and a low, a middle and a high.

    Of five runs and more they are quartiles and the median; of fewer the extremes, with no middle.
    What falls on an infinite value, a run that does not get there, is None.
    """
    if len(values) >= QUARTILED:
        low, middle, high = (_finite(quantile(values, share)) for share in (0.25, 0.5, 0.75))
        return "quartiles", low, middle, high
    low, high = _finite(min(values)), _finite(max(values))
    return ("one run", low, low, high) if len(values) == 1 else ("extremes", low, None, high)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def noise(by_method: Mapping[str, Sequence[Trace]], target: float) -> str:
    """A sentence on a target that is within the noise of what is reached in the end; "" if not.

    Args:
        by_method: runs that train, by what they are called; a control is none of them.
    """
    medians = {}
    for name, traces in by_method.items():
        every = (trace.epochs[-1].validation_accuracy for trace in traces)
        ends = [end for end in every if end is not None]
        if ends:
            medians[name] = quantile(ends, 0.5)
    if not medians or target <= min(medians.values()) - NOISE:
        return ""
    name = min(medians, key=lambda one: medians[one])
    return (
        f"{100 * target:g} % is at the noise: {100 * medians[name]:.1f} % is the median of "
        f"{name} in the end, and a target is {100 * NOISE:g} point below the lowest of them or "
        "further"
    )


def quantile(values: Sequence[float], share: float) -> float:
    """Return the least value that at least `share` of the values do not exceed: nearest rank.

    >>> quantile([4, 1, 3, 2, 5], 0.25), quantile([4, 1, 3, 2, 5], 0.5)
    (2, 3)
    """
    return sorted(values)[ceil(share * len(values)) - 1]
