"""Answers a command that a table states: makes the table that it makes today."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from hwmodel.rerun.question import question, reproduction, whole
from hwmodel.rerun.tables import (
    Table,
    comparison_table,
    effects_table,
    report_table,
    spreads_table,
)
from hwmodel.specs.files import load
from hwmodel.specs.provenance import COLUMNS, Command, Provenance, input_of_file
from hwmodel.vary.sensitivity import sensitivity
from hwmodel.vary.sweep.file import SweepFile
from hwmodel.vary.sweep.plan import plan
from hwmodel.vary.sweep.results import read_results
from hwmodel.vary.sweep.run import run

__all__ = ["answer"]


DRAWS = ("--samples", "--seed", "--ranges")


def answer(command: Command, columns: Collection[str]) -> tuple[Table, Provenance]:
    """Make the table of a command, and its provenance.

    Args:
        columns: of the table asked for; `sensitivity` makes two.

    Raises: HwmodelError.
    """
    if command.name == "sensitivity":
        return _moved(command, columns)
    if command.name == "sweep":
        return _swept(command)
    if command.name == "reproduce":
        asked = reproduction(command)
        found = [line for table in asked.tables for line in asked.lines(table)]
        return comparison_table(found), asked.provenance()
    one = question(command)
    if command.name == "report":
        return report_table(one.report()), one.provenance()
    lines = list(one.lines())
    return comparison_table(lines, one.training, one.ends(lines)), one.provenance()


def _moved(command: Command, columns: Collection[str]) -> tuple[Table, Provenance]:
    """Make the table of all moves, or that of the samples' percentiles."""
    plain = tuple(pair for pair in command.options if pair[0] not in DRAWS)
    asked = question(Command("compare", command.argument, plain))
    ranges = Path(command.one("--ranges")) if command.one("--ranges") else None
    found = sensitivity(
        asked.network, asked.hardware, asked.methods, accounting=asked.accountings[0],
        batch=asked.batch, mode=asked.mode, samples=whole(command, "--samples", 0),
        seed=whole(command, "--seed", 0), ranges=ranges,
    )  # fmt: skip
    files = (input_of_file("ranges", ranges),) if ranges else ()
    of_samples = "field" not in columns
    table = spreads_table(found.sampled) if of_samples else effects_table(found.effects)
    return table, Provenance(command, (*asked.inputs(), *files))


def _swept(command: Command) -> tuple[Table, Provenance]:
    """Compute all points of a sweep in this process; yes and no stand as its CSV writes them."""
    planned = plan(load(SweepFile, Path(command.argument)))
    with TemporaryDirectory() as folder:
        made = Path(folder) / "table.csv"
        run(planned, made, command, jobs=1, progress=lambda what, done, total: None)
        results = read_results(made)
    header = tuple(name for name in results.columns if name not in COLUMNS)
    words = {True: "true", False: "false"}
    rows = [
        tuple(words[v] if isinstance(v, bool) else v for v in (row[name] for name in header))
        for row in results.rows
    ]
    return Table(header, rows), Provenance(command, planned.inputs)
