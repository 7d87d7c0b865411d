"""A question to the model: the words of a command, and the values they stand for.

The command line and `verify` ask in the same words and take the same way from there, so that what
a table states as its command is what made it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hwmodel.errors import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.importers.onnx import input_shapes
from hwmodel.model.compare import Comparison, Reached, compare, reached, reproduce
from hwmodel.model.evaluate import Report, evaluate
from hwmodel.model.widths import method_inputs, method_specs
from hwmodel.model.workload import Mode
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import NamedSpec, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.provenance import Command, Input, Provenance, digest, input_of, written
from hwmodel.specs.published import PublishedTable, published_table, published_tables
from hwmodel.specs.trace import Trace, read_trace
from hwmodel.specs.training import Training

__all__ = [
    "OPTIONS",
    "Question",
    "Reproduction",
    "names",
    "question",
    "reproduction",
    "whole",
]

# Options that change numbers, in the order in which a command is written.
OPTIONS = {
    "report": (
        "--hardware", "--method", "--accounting", "--batch", "--mode", "--training", "--trace",
        "--input-shape",
    ),
    "compare": (
        "--hardware", "--methods", "--baseline", "--accounting", "--batch", "--mode",
        "--training", "--trace", "--accuracy", "--input-shape",
    ),
    "reproduce": ("--accounting", "--batch"),
    "sensitivity": (
        "--hardware", "--methods", "--accounting", "--batch", "--mode", "--input-shape",
        "--samples", "--seed", "--ranges",
    ),
    "sweep": (),  # its file says all
    "explain": (
        "--layer", "--hardware", "--method", "--accounting", "--batch", "--mode", "--pass",
        "--trace", "--input-shape",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What `report`, `explain` (one of each) or `compare` (one or several) is asked."""

    command: Command  # with every default written out
    network: Network
    hardware: tuple[Hardware, ...]
    methods: tuple[Method, ...]
    accountings: tuple[Accounting, ...]
    baseline: Method | None  # None: each accounting's own
    batch: int
    mode: Mode
    training: Training | None
    traces: tuple[Trace, ...]
    accuracy: float | None  # to be reached, as a share

    def specs(self) -> Iterator[NamedSpec]:
        """Everything with a file of its own that the numbers depend on."""
        yield from (self.network, *self.hardware)
        for method in self.methods:
            yield from method_specs(method)
        yield from self.accountings
        if self.command.name == "compare":
            for accounting in self.accountings:
                yield from method_specs(self.baseline or load(Method, accounting.baseline))
        yield from [self.training] if self.training else []

    def inputs(self) -> tuple[Input, ...]:
        """Everything that the numbers depend on, each once."""
        found = [*map(input_of, self.specs())]
        found += [Input("trace", trace.run.method, digest(trace)) for trace in self.traces]
        return tuple(dict.fromkeys(found))

    def provenance(self, date: str | None = None) -> Provenance:
        """What outputs say of where they come from."""
        return Provenance(self.command, self.inputs(), date=date)

    def report(self, *, traced: bool = True) -> Report:
        """The answer of `report`; without what the trace says if not `traced`."""
        return evaluate(
            self.network, self.hardware[0], self.methods[0],
            accounting=self.accountings[0], batch=self.batch, mode=self.mode,
            trace=self.traces[0] if traced and self.traces else None,
        )  # fmt: skip

    def lines(self) -> Iterator[Comparison]:
        """The answer of `compare`, line by line."""
        return compare(
            self.network, self.hardware, self.methods,
            baseline=self.baseline, accounting=self.accountings, batch=self.batch,
            mode=self.mode, traces=self.traces,
        )  # fmt: skip

    def baseline_words(self) -> str:
        """What percentages refer to."""
        named = [self.baseline.name] if self.baseline else [x.baseline for x in self.accountings]
        return " or ".join(dict.fromkeys(named))

    def ends(self, lines: list[Comparison]) -> list[Reached]:
        """What the traces say of each line; empty without traces."""
        return reached(lines, self.traces, self.accuracy) if self.traces else []


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` is asked: published tables, as values."""

    command: Command
    tables: tuple[PublishedTable, ...]
    accountings: tuple[Accounting, ...]
    batch: int

    def inputs(self) -> tuple[Input, ...]:
        """Each table, with all that its figures are of, and the accountings."""
        tables = [Input("table", table.name, _table_digest(table)) for table in self.tables]
        return (*tables, *map(input_of, self.accountings))

    def provenance(self, date: str | None = None) -> Provenance:
        """What outputs say of where they come from."""
        return Provenance(self.command, self.inputs(), date=date)

    def baseline_words(self) -> str:
        """What percentages refer to."""
        wholes = (f"{x.baseline.network} under {x.baseline.method}" for x in self.tables)
        return " or ".join(dict.fromkeys(wholes))

    def lines(self, table: PublishedTable) -> Iterator[Comparison]:
        """The answer for one of the tables, line by line."""
        return reproduce(table.name, accounting=self.accountings, batch=self.batch)


def _table_digest(table: PublishedTable) -> str:
    """SHA-256 of a published table's hash and those of its networks, methods and chips."""
    pairs = [(table.baseline.network, table.baseline.method)]
    pairs += [(figure.network, figure.method) for figure in table.figures]
    networks, methods = (dict.fromkeys(column) for column in zip(*pairs, strict=True))
    found = [input_of(load(Hardware, chip)) for chip in table.chips]
    found += [input_of(load_network(network)) for network in networks]
    found += [given for method in methods for given in method_inputs(load(Method, method))]
    hashes = dict.fromkeys((digest(table), *(given.sha256 for given in found)))
    return hashlib.sha256(" ".join(hashes).encode("ascii")).hexdigest()


def reproduction(command: Command) -> Reproduction:
    """The values behind the words of a `reproduce`. Raises: HwmodelError."""
    asked = command.argument
    tables = [published_table(asked)] if asked else list(published_tables().values())
    presets = names(command.one("--accounting"), "--accounting")
    batch = whole(command, "--batch", 1)
    stated = {"--accounting": ",".join(presets), "--batch": str(batch)}
    accountings = tuple(load(Accounting, name) for name in presets)
    return Reproduction(_canonical(command, stated), tuple(tables), accountings, batch)


def question(command: Command) -> Question:
    """The values behind the words of a `report`, `explain` or `compare`. Raises: HwmodelError."""
    compares = command.name == "compare"
    listed = {
        option: names(command.one(option), option) if compares else [command.one(option)]
        for option in ("--hardware", "--methods" if compares else "--method", "--accounting")
    }
    training, baseline = command.one("--training"), command.one("--baseline")
    run = load(Training, training) if training else None
    accuracy = _accuracy(command)
    traces = _traces(command, several=compares)
    usual = traces[0].run.batch if compares and traces else run.batch if run else 1
    batch = whole(command, "--batch", usual)
    hardware, methods, accountings = listed.values()
    stated = dict(command.options) | {option: ",".join(of) for option, of in listed.items()}
    return Question(
        command=_canonical(command, stated | {"--batch": str(batch)}),
        network=load_network(command.argument, input_shapes(command.all("--input-shape"))),
        hardware=tuple(load(Hardware, name) for name in hardware),
        methods=tuple(load(Method, name) for name in methods),
        accountings=tuple(load(Accounting, name) for name in accountings),
        baseline=load(Method, baseline) if baseline else None,
        batch=batch,
        mode=cast(Mode, command.one("--mode") or "training"),  # which `evaluate` checks
        training=run,
        traces=traces,
        accuracy=accuracy,
    )


def _canonical(command: Command, stated: dict[str, str]) -> Command:
    """The same command with its options in one order, each with what is stated of it."""
    several = {"--input-shape": command.all("--input-shape")}
    options = {option: stated.get(option) for option in OPTIONS[command.name]} | several
    return written(command.name, command.argument, options)


def whole(command: Command, option: str, usual: int) -> int:
    """The value of an option that is a whole number. Raises: HwmodelError."""
    text = command.one(option)
    try:
        return int(text) if text else usual
    except ValueError:
        raise HwmodelError(f"{option} {text!r}: must be a whole number") from None


def _accuracy(command: Command) -> float | None:
    text = command.one("--accuracy")
    try:
        share = float(text) if text else None
    except ValueError:
        share = -1.0
    if share is not None and not (command.one("--trace") and 0 < share <= 1):
        raise HwmodelError(f"--accuracy {text}: a share above 0, at most 1, with --trace")
    return share


def _traces(command: Command, *, several: bool) -> tuple[Trace, ...]:
    """Traces of as many methods. Raises: DataError, HwmodelError where two are of one."""
    text = command.one("--trace")
    if not text:
        return ()
    files = names(text, "--trace") if several else [text]
    traces = tuple(read_trace(Path(name)) for name in files)
    methods = [trace.run.method for trace in traces]
    if len(set(methods)) < len(methods):
        raise HwmodelError(f"--trace {text}: two of the traces are of one method")
    return traces


def names(listed: str, option: str) -> list[str]:
    """Names separated by commas, each once; a file may have commas in its name.

    Raises: HwmodelError.
    """
    pieces, names = listed.split(","), []
    while pieces:
        whole = range(len(pieces), 1, -1)
        taken = next((n for n in whole if os.path.isfile(",".join(pieces[:n]).strip())), 1)
        names.append(",".join(pieces[:taken]).strip())
        del pieces[:taken]
    if not all(names):
        raise HwmodelError(f"{option} {listed!r}: names separated by commas, none of them empty")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise HwmodelError(f"{option} {listed!r}: {twice[0]} stands there twice")
    return names
