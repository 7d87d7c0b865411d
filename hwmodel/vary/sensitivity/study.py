"""A study from its inputs to its rows: moves, flips of the ranking, samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

from hwmodel.errors import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.model.compare import distinct, told_apart
from hwmodel.model.evaluate import check_run
from hwmodel.model.workload import Mode
from hwmodel.specs import usual
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import path_of, several, whole
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.vary.paths import Inputs, Scalar
from hwmodel.vary.sensitivity.costs import Costs, Outcome, Study, overtaken, ranks
from hwmodel.vary.sensitivity.flips import Flip, flip
from hwmodel.vary.sensitivity.montecarlo import (
    Range,
    Sampled,
    default_ranges,
    draws,
    read_ranges,
    sampled,
)
from hwmodel.vary.sensitivity.moves import Move, moves
from hwmodel.vary.sensitivity.parallel import Mapped, mapped_by
from hwmodel.vary.workers import MAX_JOBS

__all__ = ["Effect", "Reversal", "Sensitivity", "sensitivity"]

MAX_SAMPLES = 1_000_000
MAX_SEED = 2**63 - 1


class Effect(NamedTuple):
    """What one move does to one method: a row of the CSV."""

    network: str
    hardware: str
    accounting: str
    mode: str
    batch: int
    field: str  # the path that moves; several that move together are joined by " + "
    unit: str
    value_from: Scalar
    value_to: Scalar
    part_of: str  # path of the one figure by which the chip's file states this and another
    method: str
    percent_before: float | None
    percent_after: float | None
    change_points: float | None
    rank_before: int | None
    rank_after: int | None
    flips_at: float | None  # value from which on some pair of methods has changed places
    reason: str  # why there is no percentage


class Reversal(NamedTuple):
    """A move that changes the ranking."""

    hardware: str
    field: str
    unit: str
    value_from: Scalar
    value_to: Scalar
    flips_at: float | None  # None: a choice, with nothing between
    pairs: tuple[tuple[str, str], ...]  # (cheaper before, cheaper after)


class Sensitivity(NamedTuple):
    """The results of a study, chip by chip."""

    effects: tuple[Effect, ...]
    reversals: tuple[Reversal, ...]
    sampled: tuple[Sampled, ...]


Watch = Callable[[Iterator[Any], int, str], Iterable[Any]]


def sensitivity(
    network: str | Path | Network,
    hardware: Sequence[str | Path | Hardware],
    methods: Sequence[str | Path | Method],
    *,
    accounting: str | Path | Accounting = usual.OF_MANY,
    batch: SupportsIndex = 1,
    mode: Mode = "training",
    samples: SupportsIndex = 0,
    seed: SupportsIndex = 0,
    ranges: str | Path | None = None,
    jobs: SupportsIndex = 1,
    watch: Watch = lambda items, total, what: items,
) -> Sensitivity:
    """Every constant of the chips and every choice of the accounting moved, one at a time.

    Args:
        samples: points at which constants are drawn all at once; 0 for none.
        ranges: a file that says which are drawn and from where, by default
            `montecarlo.default_ranges`.
        jobs: processes; what is found does not depend on them.
        watch: shown the outcomes as they come: iterator, how many, of what.

    Raises: HwmodelError, as `evaluate`; also where no method can be computed unmoved.
    """
    images = check_run(batch, mode)
    drawn = whole("samples", samples, 0, MAX_SAMPLES), whole("seed", seed, 0, MAX_SEED)
    processes = whole("jobs", jobs, 1, MAX_JOBS)
    file = None if ranges is None else path_of("ranges", ranges)
    study = _study(load_network(network), hardware, methods, load(Accounting, accounting),
                   images, mode)  # fmt: skip
    draw = _Draw(*drawn, "from half to double", [*map(default_ranges, study.points)])
    if file is not None:
        draw = _Draw(*drawn, f"in the ranges of {file.name}", read_ranges(file, study.points))
    planned = [(i, move) for i, inputs in enumerate(study.points) for move in moves(inputs)]
    with mapped_by(study, processes) as mapped:
        before = _unmoved(mapped, study)
        then = f", then {draw.samples:,} samples" if draw.samples else ""
        after = _moved(mapped, planned, before, watch, f"moving{then}")
        flips = _flips(mapped, planned, before, after, watch)
        spreads = _sampled(mapped, study, before, draw, watch) if draw.samples else ()
    done = [
        _Done(study, i, move, before[i], there, at)
        for (i, move), there, at in zip(planned, after, flips, strict=True)
    ]
    effects = tuple(row for one in done for row in _effects(one))
    return Sensitivity(effects, tuple(row for one in done for row in _reversal(one)), spreads)


class _Draw(NamedTuple):
    """The samples to be drawn: how many, with which seed, from which ranges."""

    samples: int
    seed: int
    told: str  # where from, in words
    ranges: list[list[Range]]  # for each chip


class _Done(NamedTuple):
    """A move with its outcomes and its flip."""

    study: Study
    chip: int  # its number
    move: Move
    before: Outcome
    after: Outcome
    flip: Flip | None

    @property
    def values(self) -> tuple[Scalar, Scalar]:
        """The values moved from and to, in the words of a file; of choices moved together, both.

        The second is "" where no factor leads to another value.
        """
        leaf, value, along, _ = self.move
        nowhere = value is None and (leaf.value is None or None not in leaf.choices)
        pairs = [(leaf.value, "" if nowhere else value)]
        pairs += [(other.value, new) for other, new in along]
        unstated = "unlimited" if leaf.unit == "bit" else "null"
        worded = [(_worded(old, unstated), _worded(new, unstated)) for old, new in pairs]
        if not along:
            return worded[0]
        olds, news = zip(*worded, strict=True)
        return " + ".join(map(str, olds)), " + ".join(map(str, news))

    @property
    def unit(self) -> str:
        """The unit of both values."""
        return "" if self.move.along else self.move.leaf.unit

    @property
    def flips_at(self) -> float | None:
        """The value beyond which the ranking is another."""
        return None if self.flip is None else float(self.flip.value)


def _study(
    network: Network,
    hardware: Sequence[str | Path | Hardware],
    methods: Sequence[str | Path | Method],
    accounting: Accounting,
    batch: int,
    mode: Mode,
) -> Study:
    """Load all inputs, and see that their names differ. Raises: HwmodelError."""
    rule = "a list of names, paths or specs"
    chips = [load(Hardware, chip) for chip in several("hardware", hardware, rule)]
    rules = [load(Method, method) for method in several("methods", methods, rule)]
    for name, found in (("hardware", chips), ("methods", rules)):
        if not found:
            raise HwmodelError(f"{name}: names none; at least one is needed")
    baseline = load(Method, accounting.baseline)
    distinct([*chips])
    distinct([*rules])
    told_apart(rules, baseline)
    if all(rule == baseline for rule in rules):
        raise HwmodelError(
            f"methods {baseline.name}: that is the baseline, always 100 %; add one to compare"
        )
    points = tuple(Inputs(network, chip, baseline, accounting, batch) for chip in chips)
    return Study(network, tuple(rules), baseline, points, mode)


Planned = list[tuple[int, Move]]  # number of the chip, move


def _unmoved(mapped: Mapped, study: Study) -> list[Outcome]:
    """Compute the outcome of each chip unmoved. Raises: HwmodelError where no method has one."""
    before: list[Outcome] = list(mapped(Costs.at, [(i, {}) for i in range(len(study.points))]))
    for outcome in before:
        if all(percent is None for percent in outcome.percents):
            raise HwmodelError(outcome.reasons[0])
    return before


def _moved(
    mapped: Mapped, planned: Planned, before: Sequence[Outcome], watch: Watch, what: str
) -> list[Outcome]:
    """Compute the outcome of every move, or give the reason why rules refuse it."""
    tasks = [(i, move.changes) for i, move in planned if not move.refused]
    found = iter(watch(mapped(Costs.at, tasks), len(tasks), what))
    return [
        next(found)
        if not move.refused
        else Outcome((None,) * len(before[i].percents), (move.refused,) * len(before[i].percents))
        for i, move in planned
    ]


def _flips(
    mapped: Mapped,
    planned: Planned,
    before: Sequence[Outcome],
    after: Sequence[Outcome],
    watch: Watch,
) -> list[Flip | None]:
    """Find where moves of numbers reverse the ranking; None where they do not."""
    reverse = [
        move.of_number and bool(overtaken(before[i].percents, outcome.percents))
        for (i, move), outcome in zip(planned, after, strict=True)
    ]
    tasks = [one for one, reverses in zip(planned, reverse, strict=True) if reverses]
    found = iter(watch(mapped(flip, tasks), len(tasks), "bisecting") if tasks else ())
    return [next(found) if reverses else None for reverses in reverse]


def _worded(value: Scalar, unstated: str) -> Scalar:
    words = {None: unstated, False: "false", True: "true"}
    return words[value] if value is None or isinstance(value, bool) else value


def _sampled(
    mapped: Mapped, study: Study, before: Sequence[Outcome], draw: _Draw, watch: Watch
) -> tuple[Sampled, ...]:
    """Compute the samples of each chip, and their spread."""
    tasks = [
        (i, point)
        for i, ranges in enumerate(draw.ranges)
        for point in draws(ranges, draw.samples, draw.seed)
    ]
    found = list(watch(mapped(Costs.at, tasks), len(tasks), "sampling"))
    names, n = [method.name for method in study.methods], draw.samples
    return tuple(
        Sampled(inputs.hardware.name, len(draw.ranges[i]), draw.told, draw.seed,
                *sampled(inputs, names, before[i], found[i * n : (i + 1) * n]))
        for i, inputs in enumerate(study.points)
    )  # fmt: skip


def _effects(done: _Done) -> Iterator[Effect]:
    """Yield a row of a move for every method."""
    inputs = done.study.points[done.chip]
    olds, news = done.before.percents, done.after.percents
    reasons = zip(done.before.reasons, done.after.reasons, strict=True)
    for method, old, new, place, moved, (first, reason) in zip(
        done.study.methods, olds, news, ranks(olds), ranks(news), reasons, strict=True
    ):
        yield Effect(
            done.study.network.name,
            inputs.hardware.name,
            inputs.accounting.name,
            done.study.mode,
            inputs.batch,
            done.move.field,
            done.unit,
            *done.values,
            done.move.leaf.part_of,
            method.name,
            old,
            new,
            None if old is None or new is None else new - old,
            place,
            moved,
            done.flips_at,
            reason or (first and f"unmoved: {first}"),
        )


def _reversal(done: _Done) -> Iterator[Reversal]:
    """Yield a move's reversal, if it reverses the ranking."""
    methods = done.study.methods
    pairs = overtaken(done.before.percents, done.after.percents)
    first = done.flip.pairs if done.flip else pairs
    if pairs:
        yield Reversal(
            done.study.points[done.chip].hardware.name,
            done.move.field,
            done.unit,
            *done.values,
            done.flips_at,
            tuple((methods[a].name, methods[b].name) for a, b in first),
        )
