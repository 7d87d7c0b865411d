"""best: the points of a sweep, or the lines of a comparison, that cost least."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.screen import handed, say, show
from hwmodel.errors import HwmodelError, many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwmodel.vary.sweep.results import Row

__all__ = ["best"]

FEW = 4  # rows that are named
MIXED = "energy", "time_overlapped_s", "time_serial_s", "edp_js"  # are of whole iterations


def best(
    table: Annotated[Path, typer.Argument(help="A table that sweep or compare wrote.")],
    by: Annotated[
        str, typer.Option(help="Column whose least values are wanted; also time, edp, peak.")
    ] = "energy",
    where: Annotated[
        str, typer.Option(help="Conditions, as in 'batch <= 16 and peak <= 256 KiB'.")
    ] = "",
    top: Annotated[int, typer.Option(help="How many rows.")] = 10,
    csv: Annotated[
        str, typer.Option("--csv", help="Write the rows here; '-': to standard output.")
    ] = "",
) -> None:
    """The points of a sweep or lines of a comparison with the least energy, or another column."""
    from hwmodel.rerun.tables import csv_text
    from hwmodel.vary.sweep.conditions import SHORT, conditions, holds
    from hwmodel.vary.sweep.results import kept, lowest, numbers, read_results, varied
    from hwmodel.views.sweep_tables import best_table, greedy_points

    if top < 1:
        raise HwmodelError(f"--top {top}: must be at least 1")
    results, by = read_results(table), SHORT.get(by, by)
    wanted = conditions(where, results.columns)
    without = [row for row in results.rows if row["energy"] is None]
    _tell_left_out([row for row in without if holds(wanted, row, absent=True)], "energy")
    rows = _having(kept(results, where), by)
    found = lowest(rows, numbers(rows, by, results.columns), top)
    beside = ("time_overlapped_s", "power_w") if by == "edp_js" else ()
    columns = ["point", *varied(rows, results.columns), by, *beside, "energy", "unit"]
    columns = [name for name in dict.fromkeys(columns) if name == "point" or name in rows[0]]
    if csv:
        text = csv_text(columns, [[row[name] for name in columns] for row in found])
        handed(text, csv)
        if csv == "-":
            return
    of = many(len(rows), "point") + (f" where {where}" if where else "")
    show([best_table(found, columns, f"least {by} of {of}")])
    if by == "edp_js":
        say("hwmodel: EDP is power_w x time_overlapped_s^2: static energy is in it, too")
    if by in ("edp_js", "time_overlapped_s", "power_w"):
        say(
            "hwmodel: a time is the least of the tilings of least energy, a power the most: what "
            "moves in memories of which a chip states no bandwidth takes none, and time is free to "
            "tilings on arrays without static energy (compare and report name both)"
        )
    mixed = _mixed(rows, found[0]) if by in MIXED else ""
    for note in filter(None, (mixed, greedy_points(rows))):
        say(f"hwmodel: {note}")


def _mixed(rows: Sequence[Row], first: Row) -> str:
    """Say what energies of one list are of, where it has several batches, networks or chips."""
    names = [name for name in ("batch", "network", "hardware") if len({r[name] for r in rows}) > 1]
    if not names:
        return ""
    image = "; --by energy_per_image is of one image" if "energy_per_image" in first else ""
    return (
        f"the list has several values of {' and of '.join(names)}, and energies and times are of "
        f"whole iterations; --where '{names[0]} == {first[names[0]]}' leaves those of one"
        f"{image if names[0] == 'batch' else ''}"
    )


def _having(rows: list[Row], by: str) -> list[Row]:
    """The rows with a number in a column; the others are told.

    Raises: HwmodelError where no chip has a time that is asked for.
    """
    without = [row for row in rows if row.get(by, "") is None]
    if len(without) == len(rows):
        from hwmodel.model.duration import UNTIMED

        if by in UNTIMED:
            chips = ", ".join(dict.fromkeys(str(row["hardware"]) for row in rows))
            raise HwmodelError(
                f"no row has {by}: {chips} states no rates that a time needs (`report` says which)"
            )
        return rows
    _tell_left_out(without, by)
    return [row for row in rows if row.get(by, "") is not None]


def _tell_left_out(rows: Sequence[Row], by: str) -> None:
    """Say which rows have no such number, if some have none."""
    if not rows:
        return
    names = ("network", "method", "hardware", "accounting", "batch")
    each = dict.fromkeys(", ".join(str(row[name]) for name in names if name in row) for row in rows)
    some = "; ".join([*each][:FEW]) + ("; ..." if len(each) > FEW else "")
    say(f"hwmodel: {many(len(rows), 'row')} without {by} left out: {some}")
