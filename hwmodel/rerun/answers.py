"""Answers a command that a table states: makes the table that it makes today."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hwmodel.errors import DataError, HwmodelError
from hwmodel.model.runs import Each
from hwmodel.rerun.asked import (
    Asked,
    GenerateAsked,
    MeasuredAsked,
    ReadingsAsked,
    ReportAsked,
    ReproduceAsked,
    SensitivityAsked,
    SweepAsked,
    command_line,
)
from hwmodel.rerun.generations import generations
from hwmodel.rerun.question import (
    measurements,
    question,
    readings_provenance,
    reproduction,
)
from hwmodel.rerun.tables import (
    Table,
    against_table,
    comparison_table,
    effects_table,
    readings_table,
    report_table,
    spreads_table,
)
from hwmodel.specs.inputs import read_from
from hwmodel.specs.provenance import COLUMNS, Provenance
from hwmodel.vary.against import against
from hwmodel.vary.readings import readings
from hwmodel.vary.sweep.plan import read_plan
from hwmodel.vary.sweep.results import read_results
from hwmodel.vary.sweep.run import run

__all__ = ["answer", "provenance"]


@contextmanager
def _from_here() -> Iterator[None]:
    """Say of a file that is not there from where it is looked for."""
    try:
        yield
    except HwmodelError as error:
        missing = error.__context__
        if isinstance(missing, FileNotFoundError) and not os.path.isabs(missing.filename or "/"):
            raise DataError(
                f"{error}; a table names files from the folder that it was made in, and they are "
                "looked for from the present one"
            ) from None
        raise


@_from_here()
def provenance(asked: Asked) -> Provenance:
    """Return what the table of a command would say of where it comes from; nothing is computed.

    Raises: HwmodelError where an input cannot be read.
    """
    if isinstance(asked, SweepAsked):
        return Provenance(command_line(asked), read_plan(asked.file).inputs)
    if isinstance(asked, ReproduceAsked):
        return reproduction(asked).provenance()
    if isinstance(asked, ReadingsAsked):
        return readings_provenance()
    if isinstance(asked, MeasuredAsked):
        return measurements(asked).provenance()
    if isinstance(asked, GenerateAsked):
        return generations(asked).provenance()
    return question(asked).provenance()


@_from_here()
def answer(asked: Asked, columns: Collection[str], each: Each = map) -> tuple[Table, Provenance]:
    """Make the table of a command, and its provenance.

    Args:
        columns: of the table asked for; `sensitivity` makes two.
        each: who computes the reports of a comparison.

    Raises: HwmodelError.
    """
    if isinstance(asked, SweepAsked):
        return _swept(asked)
    if isinstance(asked, ReproduceAsked):
        these = reproduction(asked)
        found = these.merged(these.lines(table, each=each) for table in these.tables)
        return comparison_table(found), these.provenance()
    if isinstance(asked, ReadingsAsked):
        return readings_table(readings()), readings_provenance()
    if isinstance(asked, MeasuredAsked):
        these_chips = measurements(asked)
        lines_of = (line for table in these_chips.tables for line in against(table))
        return against_table(list(lines_of)), these_chips.provenance()
    if isinstance(asked, GenerateAsked):
        these_tokens = generations(asked)
        return these_tokens.table(these_tokens.found()), these_tokens.provenance()
    one = question(asked)
    if isinstance(asked, ReportAsked):
        return report_table(one.report()), one.provenance()
    if isinstance(asked, SensitivityAsked):
        study = one.study()
        of_moves = "field" in columns
        table = effects_table(study.effects) if of_moves else spreads_table(study.sampled)
        return table, one.provenance()
    lines = list(one.lines(each=each))
    return comparison_table(lines, one.training, one.ends(lines)), one.provenance()


def _swept(asked: SweepAsked) -> tuple[Table, Provenance]:
    """Compute all points of a sweep in this process; yes and no stand as its CSV writes them."""
    planned, command = read_plan(asked.file), command_line(asked)
    with TemporaryDirectory() as folder, read_from(None):  # all inputs are read
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
