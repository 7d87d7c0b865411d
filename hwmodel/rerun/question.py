"""A question to the model: what a command is asked, and the values that its words stand for.

The command line and `verify` ask by the same models and take the same way from there, so that what
a table states as its command is what made it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, cast

from hwmodel.errors import HwmodelError
from hwmodel.graph.checkpointing import checkpointed
from hwmodel.graph.freezing import frozen
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.model.compare import Comparison, compare, reproduce
from hwmodel.model.evaluate import evaluate, read_traces
from hwmodel.model.not_counted import of_accounting
from hwmodel.model.reached import SUSTAIN, Reached, reached
from hwmodel.model.report import Report
from hwmodel.model.runs import Each
from hwmodel.model.traced import common_batch
from hwmodel.model.widths import method_inputs, method_specs, unlearned, unpriced
from hwmodel.model.workload import Mode
from hwmodel.rerun.asked import (
    Asked,
    CompareAsked,
    MeasuredAsked,
    ReadingsAsked,
    ReproduceAsked,
    SensitivityAsked,
    command_line,
)
from hwmodel.rerun.moved import moved, moved_words
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import NamedSpec, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.measured import MeasuredTable, measured_table, measured_tables
from hwmodel.specs.method import Method
from hwmodel.specs.provenance import Input, Provenance, digest, input_of, input_of_file
from hwmodel.specs.published import PublishedTable, published_table, published_tables
from hwmodel.specs.trace import Trace, short_name
from hwmodel.specs.training import Training

if TYPE_CHECKING:
    from hwmodel.vary.sensitivity.study import Sensitivity, Watch

__all__ = ["Measurements", "Question", "Reproduction", "measurements", "question"]
__all__ += ["readings_provenance", "reproduction"]

Called = Callable[[str, str], str]  # of a name and its kind, what stands for it


@dataclass(frozen=True)
class Question:
    """What `report` and `explain` (one of each), `compare` or `sensitivity` (one batch) are asked:
    values.
    """

    asked: Asked  # with every default written out
    network: Network
    hardware: tuple[Hardware, ...]
    methods: tuple[Method, ...]
    accountings: tuple[Accounting, ...]
    baseline: Method | None  # None: each accounting's own
    batches: tuple[int, ...]
    mode: Mode
    training: Training | None
    traces: tuple[Trace, ...]
    accuracy: float | None = None  # to be reached, as a share
    sustain: int = SUSTAIN  # evaluations in a row that reach it
    baseline_network: Network | None = None  # None: the same

    def specs(self) -> Iterator[NamedSpec]:
        """Everything with a file of its own that the numbers depend on."""
        yield from (self.network, *self.hardware)
        yield from [self.baseline_network] if self.baseline_network else []
        for method in self.methods:
            yield from method_specs(method)
        yield from self.accountings
        if isinstance(self.asked, (CompareAsked, SensitivityAsked)):
            for accounting in self.accountings:
                yield from method_specs(self.baseline or load(Method, accounting.baseline))
        yield from self.training.stages() if self.training else ()

    def inputs(self) -> tuple[Input, ...]:
        """Everything that the numbers depend on, each once."""
        found = [*map(input_of, self.specs())]
        for trace in self.traces:
            found.append(Input("trace", short_name(trace.run), digest(trace)))
        if isinstance(self.asked, SensitivityAsked) and self.asked.ranges:
            found.append(input_of_file("ranges", self.asked.ranges))
        return tuple(dict.fromkeys(found))

    def provenance(self, date: str | None = None) -> Provenance:
        """What outputs say of where they come from."""
        return Provenance(command_line(self.asked), self.inputs(), date=date)

    def report(self, *, traced: bool = True) -> Report:
        """The answer of `report`; without what the trace says if not `traced`."""
        return evaluate(
            self.network, self.hardware[0], self.methods[0],
            accounting=self.accountings[0], batch=self.batches[0], mode=self.mode,
            trace=self.traces if traced and self.traces else None,
        )  # fmt: skip

    def lines(self, optimal_tiles: bool = True, each: Each = map) -> Iterator[Comparison]:
        """The answer of `compare`, line by line; without optimal tiles beside greedy ones if not
        `optimal_tiles`, or if it was asked without. `each` computes the reports.
        """
        return compare(
            self.network, self.hardware, self.methods,
            baseline=self.baseline, baseline_network=self.baseline_network,
            accounting=self.accountings, batch=self.batches, mode=self.mode, traces=self.traces,
            optimal_tiles=optimal_tiles and getattr(self.asked, "optimal_tiles", "") != "no",
            each=each,
        )  # fmt: skip

    def study(self, jobs: int = 1, watch: Watch = lambda items, total, what: items) -> Sensitivity:
        """The answer of `sensitivity`."""
        from hwmodel.vary.sensitivity import sensitivity

        draws = cast(SensitivityAsked, self.asked)
        return sensitivity(
            self.network, self.hardware, self.methods, accounting=self.accountings[0],
            batch=self.batches[0], mode=self.mode, samples=draws.samples, seed=draws.seed,
            ranges=draws.ranges, jobs=jobs, watch=watch,
        )  # fmt: skip

    def baseline_words(self, called: Called = lambda name, kind: name) -> str:
        """What percentages refer to; `called` says what a name of a kind is called."""
        named = [self.baseline.name] if self.baseline else [x.baseline for x in self.accountings]
        words = " or ".join(called(name, Method.KIND) for name in dict.fromkeys(named))
        if self.baseline_network is None:
            return words
        return f"{called(self.baseline_network.name, Network.KIND)} under {words}"

    def moved_words(self, called: Called = lambda name, kind: name) -> str:
        """What was moved, of which chips and accountings; "" where nothing was."""
        moves: tuple[str, ...] = getattr(self.asked, "move", ())
        return moved_words(moves, self.hardware, self.accountings, called)

    def ends(self, lines: list[Comparison]) -> list[Reached]:
        """What the traces say of each line; empty without traces."""
        if not self.traces:
            return []
        return reached(lines, self.traces, self.accuracy, self.sustain)


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` is asked: published tables, as values."""

    asked: ReproduceAsked
    tables: tuple[PublishedTable, ...]
    accountings: tuple[Accounting, ...]
    batch: int | None  # None: as each accounting has it

    def inputs(self) -> tuple[Input, ...]:
        """Each table, with all that its figures are of, and the accountings."""
        tables = [Input("table", table.name, _table_digest(table)) for table in self.tables]
        return (*tables, *map(input_of, self.accountings))

    def provenance(self, date: str | None = None) -> Provenance:
        """What outputs say of where they come from."""
        return Provenance(command_line(self.asked), self.inputs(), date=date)

    def baseline_words(self) -> str:
        """What percentages refer to."""
        wholes = (f"{x.baseline.network} under {x.baseline.method}" for x in self.tables)
        return " or ".join(dict.fromkeys(wholes))

    @staticmethod
    def merged(tables: Iterable[Iterable[Comparison]]) -> list[Comparison]:
        """The lines of several tables, each once: some share rows, all of one baseline."""
        found: dict[object, Comparison] = {}
        for lines in tables:
            for line in lines:
                found.setdefault(line.key, line)
        return list(found.values())

    def lines(
        self, table: PublishedTable, optimal_tiles: bool = True, each: Each = map
    ) -> Iterator[Comparison]:
        """The answer for one of the tables, line by line; the rest as for a question."""
        return reproduce(
            table.name, accounting=self.accountings, batch=self.batch,
            optimal_tiles=optimal_tiles and self.asked.optimal_tiles != "no", each=each,
        )  # fmt: skip

    def not_counted(self) -> dict[str, tuple[str, ...]]:
        """What each accounting leaves out of every network, and of a method."""
        return {
            one.name: (
                *of_accounting(one, "training"),
                *(x for method in self._methods() for x in unpriced(method, one)),
            )
            for one in self.accountings
        }

    def unlearned(self) -> list[str]:
        """Sentences on signals with which no run here has learned."""
        pairs = product(self.accountings, self._methods())
        return [x for x in dict.fromkeys(unlearned(method, one) for one, method in pairs) if x]

    def _methods(self) -> list[Method]:
        """Methods of all rows."""
        names = dict.fromkeys(method for table in self.tables for _, method in table.modelled)
        return [load(Method, name) for name in names]

    def chosen_prices(self) -> list[str]:
        """Say which accountings have prices that were chosen knowing the source's columns."""
        from hwmodel.vary.readings import FOLLOWS

        ours, found = load(Accounting, FOLLOWS).prices, dict[str, list[str]]()
        for preset in self.accountings:
            its = preset.prices
            same = {
                "an addition": its.addition_price == ours.addition_price,
                "a Boolean operation": its.logic_price_macs == ours.logic_price_macs,
            }
            if any(same.values()):
                priced = " and of ".join(what for what, is_same in same.items() if is_same)
                found.setdefault(priced, []).append(preset.name)
        return [
            f"Chosen, knowing the source's column for VGG-small: the price of {what} under "
            f"{', '.join(names)} (docs/model.md sections 5 and 7)."
            for what, names in found.items()
        ]


@dataclass(frozen=True)
class Measurements:
    """What `reproduce --measured` is asked: tables of measurements, as values."""

    asked: MeasuredAsked
    tables: tuple[MeasuredTable, ...]

    def inputs(self) -> tuple[Input, ...]:
        """Each table, with the hashes of all that its rows are computed of."""
        return tuple(Input("measured", t.name, _measured_digest(t)) for t in self.tables)

    def provenance(self, date: str | None = None) -> Provenance:
        """What outputs say of where they come from."""
        return Provenance(command_line(self.asked), self.inputs(), date=date)


def measurements(asked: MeasuredAsked) -> Measurements:
    """The values behind what `reproduce --measured` is asked. Raises: HwmodelError."""
    every = measured_tables().values()
    tables = (measured_table(asked.table),) if asked.table else tuple(every)
    return Measurements(asked, tables)


def _measured_digest(table: MeasuredTable) -> str:
    """SHA-256 of a table's hash and those of its networks, methods, chips and accountings."""
    from hwmodel.vary.against import network_of

    found: dict[str, None] = {digest(table): None}
    for run in dict.fromkeys(one.run.within(table.run).model_dump_json() for one in table.rows):
        made = type(table.run).model_validate_json(run)
        specs: list[NamedSpec] = [
            network_of(made),
            load(Hardware, made.hardware or ""),
            load(Accounting, made.accounting or ""),
        ]
        hashes = [input_of(spec).sha256 for spec in specs]
        hashes += [given.sha256 for given in method_inputs(load(Method, made.method or ""))]
        found |= dict.fromkeys(hashes)
    return hashlib.sha256(" ".join(found).encode("ascii")).hexdigest()


def _table_digest(table: PublishedTable) -> str:
    """SHA-256 of a published table's hash and those of its networks, methods and chips."""
    pairs = [(table.baseline.network, table.baseline.method), *table.modelled]
    networks, methods = (dict.fromkeys(column) for column in zip(*pairs, strict=True))
    found = [input_of(load(Hardware, chip)) for chip in table.chips]
    found += [input_of(load_network(network)) for network in networks]
    found += [given for method in methods for given in method_inputs(load(Method, method))]
    hashes = dict.fromkeys((digest(table), *(given.sha256 for given in found)))
    return hashlib.sha256(" ".join(hashes).encode("ascii")).hexdigest()


def readings_provenance(date: str | None = None) -> Provenance:
    """What outputs say of where all readings come from."""
    from hwmodel.vary.readings import FOLLOWS, PRICES, published_rows

    tables = tuple(dict.fromkeys(row.table for row in published_rows()))
    accountings = tuple(load(Accounting, name) for name in (FOLLOWS, PRICES))
    every = Reproduction(ReproduceAsked(), tuple(map(published_table, tables)), accountings, None)
    return Provenance(command_line(ReadingsAsked()), every.inputs(), date=date)


def reproduction(asked: ReproduceAsked) -> Reproduction:
    """The values behind what `reproduce` is asked. Raises: HwmodelError."""
    tables = [published_table(asked.table)] if asked.table else list(published_tables().values())
    accountings = tuple(load(Accounting, name) for name in asked.accounting)
    return Reproduction(asked, tuple(tables), accountings, asked.batch)


def question(asked: Asked) -> Question:
    """The values behind what a command on a network is asked.

    Raises: HwmodelError, of all names and files that are wrong together.
    """
    said: dict[str, Any] = dict(asked)  # without options that the command has not
    try:
        return _question(asked, said)
    except HwmodelError as first:
        every = dict.fromkeys((str(first), *_faults(said)))
        if len(every) == 1:
            raise
        raise HwmodelError("; ".join(every)) from None


def _faults(said: dict[str, Any]) -> Iterator[str]:
    """What is wrong with each name and file that stands for something."""
    named: list[tuple[type[NamedSpec], str]] = [
        (Hardware, "hardware"), (Method, "methods"), (Method, "method"), (Method, "baseline"),
        (Accounting, "accounting"), (Training, "training"),
    ]  # fmt: skip

    def network() -> Network:
        return load_network(said["network"], _shapes(said["input_shape"]))

    loads: list[Callable[[], object]] = [
        network,
        lambda: frozen(network(), said["freeze"], said["train_only"]),
        lambda: checkpointed(network(), said["checkpoint"]),
    ]
    loads += [
        partial(load, kind, name)
        for kind, option in named
        for name in _each(said.get(option) or ())
    ]
    for loaded in loads:
        try:
            loaded()
        except HwmodelError as error:
            yield str(error)


def _question(asked: Asked, said: dict[str, Any]) -> Question:
    """Load all that a command names. Raises: HwmodelError for the first that is wrong."""
    training, baseline = said.get("training"), said.get("baseline")
    run = load(Training, training) if training else None
    traces = read_traces("trace", _each(said.get("trace") or ()))
    batch = said["batch"]
    if batch in (None, ()):
        batch = common_batch(traces) or (run.batch if run else 1)
    batches: tuple[int, ...] = batch if isinstance(batch, tuple) else (batch,)
    chips = tuple(load(Hardware, name) for name in _each(said["hardware"]))
    rules = tuple(load(Accounting, name) for name in _each(said["accounting"]))
    if moves := said.get("move"):
        chips, rules = moved(moves, chips, rules)
    return Question(
        asked=asked.model_copy(
            update={"batch": batches if isinstance(asked, CompareAsked) else batches[0]}
        ),
        network=_network(said),
        hardware=chips,
        methods=tuple(load(Method, x) for x in _each(said.get("methods") or said["method"])),
        accountings=_accumulated(rules, said),
        baseline=load(Method, baseline) if baseline else None,
        batches=batches,
        mode=said["mode"],  # which `evaluate` checks
        training=run,
        traces=traces,
        accuracy=said.get("accuracy"),
        sustain=said.get("sustain") or SUSTAIN,
        baseline_network=load_network(whole) if (whole := said.get("baseline_network")) else None,
    )


def _network(said: dict[str, Any]) -> Network:
    """The network, with what is frozen and what is a checkpoint. Raises: HwmodelError."""
    network = load_network(said["network"], _shapes(said["input_shape"]))
    network = frozen(network, said["freeze"], said["train_only"])
    return checkpointed(network, said["checkpoint"])


def _accumulated(rules: tuple[Accounting, ...], said: dict[str, Any]) -> tuple[Accounting, ...]:
    """The accountings, with as many iterations for one update as is asked. Raises: HwmodelError."""
    times = said.get("accumulate")
    if times is None:
        return rules
    if said["mode"] != "training" or said.get("training"):
        whole = "a whole run counts updates of one iteration each" if said.get("training") else ""
        raise HwmodelError(f"--accumulate {times}: {whole or 'inference has no update'}")
    from hwmodel.vary.paths import replaced  # a comparison without it is to start without it

    return tuple(replaced(one, "extras.accumulate", times) for one in rules)


def _shapes(stated: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of an ONNX file's inputs, whose reader is imported only where there are some."""
    if not stated:
        return {}
    from hwmodel.importers.onnx import input_shapes

    return input_shapes(stated)


def _each(given: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names of an option that takes one, or several."""
    return (given,) if isinstance(given, str) else given
