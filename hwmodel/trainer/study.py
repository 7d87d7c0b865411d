"""A study: methods and seeds of one network trained alike, their control, and what they reached.

A target is an accuracy on validation images, stated before any run, and reached by the first of
several evaluations in a row at or above it. A run that does not reach it takes steps without end.
The energy is the steps times that of an iteration of the network that was trained.

Source: docs/trainer.md, "Several seeds and a target".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from hwmodel.model.evaluate import evaluate
from hwmodel.model.reached import SUSTAIN, Spread, spread
from hwmodel.model.traced import see_alike, see_trained
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.limits import Limits
from hwmodel.specs.method import Method
from hwmodel.specs.trace import Trace, steps_to
from hwmodel.trainer.checkpoint import checkpoint_path
from hwmodel.trainer.data import Dataset
from hwmodel.trainer.stack import stack
from hwmodel.trainer.train import Progress, Settings, see_free, train

__all__ = ["WIDTHS", "Outcome", "arms", "at_widths", "outcome", "priced", "trained", "unlearned"]

# Accumulators, votes and signals [bit] of a sweep, beside no limit at all.
WIDTHS = (
    (16, 16, 16), (8, 8, 8), (8, 8, 4), (6, 4, 4), (4, 4, 4), (16, 1, 16), (8, 1, 8),
    (16, 16, 3), (16, 16, 2), (16, 16, 1),
)  # fmt: skip
DROPPED = (8, 8, 8)  # once more, the low bits dropped: rounding matters more than width


class Outcome(NamedTuple):
    """What the runs of one method reached; columns of the study's table.

    Lows and highs are quartiles by nearest rank, middles medians, of five runs and more; of fewer
    they are the extremes, and there is no middle. None: not reached, not asked for, not priced.
    """

    network: str
    dataset: str
    method: str
    frozen: bool  # the control: Boolean weights as drawn
    runs: int
    batch: int
    planned_steps: int  # the schedule ends with them
    steps_between_evaluations: int
    train_images: int
    validation_images: int
    spread: Spread
    test_low: float  # accuracy after the last epoch [%]
    test_middle: float | None
    test_high: float
    test_mean: float
    test_deviation: float | None  # over runs (n - 1)
    validation_low: float | None = None
    validation_middle: float | None = None
    validation_high: float | None = None
    validation_mean: float | None = None
    validation_deviation: float | None = None
    hardware: str | None = None
    accounting: str | None = None
    energy_iteration: float | None = None  # of the network that was trained [unit]
    unit: str | None = None
    target_percent: float | None = None  # on the validation images
    sustain: int | None = None
    runs_reached: int | None = None
    steps_low: int | None = None
    steps_middle: int | None = None
    steps_high: int | None = None
    energy_low: float | None = None  # steps times the energy of an iteration
    energy_middle: float | None = None
    energy_high: float | None = None


def arms(base: Settings, methods: Sequence[Method], seeds: int) -> list[list[Settings]]:
    """Return the runs of each method, and last of a control: the first that flips, frozen.

    Seeds are those of `base` and after it, alike in all.
    """
    of = [replace(base, method=method, freeze=False) for method in methods]
    of += [replace(one, freeze=True) for one in of if _flips(one)][:1]
    return [[replace(one, seed=base.seed + n) for n in range(seeds)] for one in of]


def _flips(settings: Settings) -> bool:
    return stack(settings.network, settings.method).flips


def at_widths(method: Method) -> list[Method]:
    """Return the method at each of `WIDTHS`, rounded to the nearest, and at `DROPPED` by floor.

    The first is the method as it is stated; if that limits widths, one without limits is next.
    Names of the others end in the widths of accumulators, votes and signals.
    """
    free = {"name": f"{method.name}-unlimited", "widths": None}
    cases = [(bits, "nearest") for bits in WIDTHS] + [(DROPPED, "floor")]
    return [
        method,
        *([method.model_copy(update=free)] if method.widths else []),
        *(_held_at(method, bits, rounding) for bits, rounding in cases),
    ]


def _held_at(method: Method, bits: tuple[int, ...], rounding: str) -> Method:
    parts = zip(("accumulator", "vote", "signal"), bits, strict=True)
    limits = {part: {"bits": b, "rounding": rounding} for part, b in parts}
    words = [method.name, *map(str, bits), *([rounding] if rounding == "floor" else [])]
    stated = {"name": "-".join(words), "widths": Limits.model_validate(limits)}
    return method.model_copy(update=stated)


def trained(
    plan: Sequence[Sequence[Settings]],
    data: Dataset,
    folder: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[list[Trace]]:
    """Train one run after another, each with a trace in the folder; yield those of each method.

    Args:
        resume: take finished traces as they are, and go on with a run that was stopped.
        stop: asked after every epoch; the method that is under way then ends with what it has.

    Raises: HwmodelError, as `train`.
    """
    if not (resume or overwrite):
        for one in (one for runs in plan for one in runs):
            see_free(_path(folder, one))
    for runs in plan:
        done: list[Trace] = []
        for one in runs:
            path = _path(folder, one)
            done.append(
                train(
                    one, data, path, resume=resume and path.exists(), overwrite=overwrite,
                    report=report, stop=stop,
                )
            )  # fmt: skip
            if len(done[-1].epochs) < done[-1].run.epochs:
                break
            checkpoint_path(path).unlink(missing_ok=True)  # nothing is left to go on with
        see_alike(done)
        yield done


def _path(folder: Path, one: Settings) -> Path:
    frozen = "_frozen" if one.freeze else ""
    return folder / f"{one.network.name}_{one.method.name}{frozen}_seed{one.seed}.json"


def priced(
    settings: Settings, trace: Trace, hardware: Hardware, accounting: Accounting
) -> tuple[float, str]:
    """Return the energy of an iteration of what was trained, and its unit.

    Widths are the method's and the accounting's: those at which the run was held, or wide enough
    to hold it. Layers are those of the trace, one by one.

    Raises: HwmodelError, as `evaluate`; DataError where other layers were trained.
    """
    found = evaluate(
        settings.network, hardware, settings.method, accounting=accounting, batch=trace.run.batch
    )
    see_trained(trace, settings.network, found.nodes, settings.method, accounting)
    return found.energy, found.unit


def outcome(
    traces: Sequence[Trace],
    target: float | None = None,
    sustain: int = SUSTAIN,
    price: tuple[float, str] | None = None,
    at: tuple[str, str] | None = None,
) -> Outcome:
    """Return what runs of one method reached.

    Args:
        target: on the validation images [share].
        price: energy of an iteration, and its unit.
        at: names of the chip and the accounting of it.

    Raises: DataError for a target without validation images.
    """
    run, first = traces[0].run, traces[0].epochs[0]
    assert run.train_images is not None  # of recorded runs alone
    test = [100 * trace.epochs[-1].accuracy for trace in traces]
    kind, *tested = spread(test)
    found = Outcome(
        run.network, run.dataset, run.method, run.frozen, len(traces), run.batch,
        first.steps * run.epochs, first.steps, run.train_images, run.validation_images, kind,
        tested[0] or 0.0, tested[1], tested[2] or 0.0, *_mean(test),
    )  # fmt: skip
    ends = [_validation(trace) for trace in traces]
    known = [100 * end for end in ends if end is not None]
    if len(known) == len(ends):
        _, low, middle, high = spread(known)
        mean, deviation = _mean(known)
        found = found._replace(
            validation_low=low, validation_middle=middle, validation_high=high,
            validation_mean=mean, validation_deviation=deviation,
        )  # fmt: skip
    if price and at:
        found = found._replace(
            hardware=at[0], accounting=at[1], energy_iteration=price[0], unit=price[1]
        )
    return found if target is None else _to(found, traces, target, sustain)


def _to(found: Outcome, traces: Sequence[Trace], target: float, sustain: int) -> Outcome:
    """Add what it took to reach a target."""
    steps = [steps_to(trace, target, sustain) for trace in traces]
    _, *ranks = spread([inf if n is None else n for n in steps])
    whole = [None if n is None else int(n) for n in ranks]
    cost = found.energy_iteration
    energies = [None if n is None or cost is None else n * cost for n in whole]
    return found._replace(
        target_percent=100 * target, sustain=sustain,
        runs_reached=sum(n is not None for n in steps),
        steps_low=whole[0], steps_middle=whole[1], steps_high=whole[2],
        energy_low=energies[0], energy_middle=energies[1], energy_high=energies[2],
    )  # fmt: skip


def _validation(trace: Trace) -> float | None:
    return trace.epochs[-1].validation_accuracy


def unlearned(found: Sequence[Outcome]) -> list[str]:
    """Methods of one network that are no better than the control, on the mean of test images."""
    controls = [one.test_mean for one in found if one.frozen]
    return [o.method for o in found if controls and not o.frozen and o.test_mean <= controls[0]]


def _mean(values: Sequence[float]) -> tuple[float, float | None]:
    return fmean(values), stdev(values) if len(values) > 1 else None
