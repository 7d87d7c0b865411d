"""Readings of the source as tables: columns by reading, rows by their best reading, and a count.

Every sentence is made of the numbers above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hwmodel.rerun.tables import NATURE
from hwmodel.specs.provenance import Provenance
from hwmodel.specs.published import published_table
from hwmodel.vary.readings import NEAR, Reading, Readings, Row, rms
from hwmodel.views.paper import Column, Heading, Paper
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["readings_paper", "readings_tables", "sentences"]

_ADDITIONS = {"of-mac": "of the MAC", "relative": "Horowitz"}
_FIELDS = ("signal", "vote", "batch", "addition", "tiles")


def readings_tables(found: Readings) -> Iterator[RenderableType | str]:
    """Yield the table of readings, the table of rows, and what follows from both."""
    yield _by_reading(found)
    yield _by_row(found)
    yield sentences(found)


def readings_paper(found: Readings, provenance: Provenance) -> Paper:
    """Make the table of readings for print; its caption says what follows from it."""
    columns = [Column(Heading("rms", "%"), Heading(_column(*x)), 1) for x in found.columns]
    columns.append(Column(Heading(""), Heading(f"rows within {NEAR:g} %"), 0))
    rows: list[tuple[tuple[str, ...], tuple[float | None, ...]]] = [
        (_words(x), (*(rms(found.of_column(x, c)) for c in found.columns), found.given(x)))
        for x in found.percents
    ]
    said = " ".join(sentences(found).splitlines()).removesuffix(".")
    caption = f"Readings of the source and its energies, one training iteration. {said}; {NATURE}"
    caption += f" (hwmodel {provenance.version})."
    return Paper(caption, "tab:readings", _FIELDS, tuple(columns), rows)


def _by_reading(found: Readings) -> RenderableType:
    listed = table(
        "Root of the mean square of residuals, %, and rows within "
        f"{NEAR:g} %; one training iteration, bits of signal and vote",
        _FIELDS,
        [*(_column(*column) for column in found.columns), "rows"],
    )
    for reading in found.percents:
        errors = [rms(found.of_column(reading, column)) for column in found.columns]
        numbers = ["-" if error is None else f"{error:.1f}" for error in errors]
        listed.add_row(*_words(reading), *numbers, str(found.given(reading)))
    return listed


def _column(name: str, chip: str) -> str:
    return f"{published_table(name).baseline.network}, {chip}"


def _words(reading: Reading) -> tuple[str, ...]:
    bits = str(reading.signal_bits), str(reading.vote_bits)
    return (*bits, str(reading.batch), _ADDITIONS[reading.addition], reading.tiles)


def _by_row(found: Readings) -> RenderableType:
    listed = table(
        "Every row: its residuals over all readings, %, and the reading that comes nearest",
        ["chip", "network", "method"],
        ["published", "rms", f"within {NEAR:g} %", "best", *_FIELDS],
    )
    for row in found.rows:
        mine = found.of_row(row)
        error = rms([*mine.values()])
        near = sum(abs(residual) <= NEAR for residual in mine.values())
        best = _best(found, row)
        listed.add_row(
            row.hardware, row.network, row.method, f"{row.published:.2f}",
            "-" if error is None else f"{error:.1f}", str(near),
            f"{mine[best]:+.1f}", *_words(best),
        )  # fmt: skip
    return listed


def _best(found: Readings, row: Row) -> Reading:
    """The reading that comes nearest to a row; the first of several."""
    mine = found.of_row(row)
    return min(mine, key=lambda reading: abs(mine[reading]))


def sentences(found: Readings) -> str:
    """Say how many rows a reading gives at most, and which rows none gives."""
    many, counts = len(found.rows), {x: found.given(x) for x in found.percents}
    most = max(counts.values())
    of_most = [", ".join(_said(x)) for x, count in counts.items() if count == most]
    reached = [row for row in found.rows if any(abs(x) <= NEAR for x in found.of_row(row).values())]
    missed = [
        f"{row.network} under {row.method} on {row.hardware}"
        for row in found.rows
        if row not in reached
    ]
    first = f"{len(found.percents)} readings of {many} rows. "
    first += "A reading gives them all." if most == many else "No reading gives them all: "
    if most < many:
        first += f"the most is {most}, with {'; or '.join(of_most)}."
    lines = [first, f"{len(reached)} rows have a reading that gives them within {NEAR:g} %."]
    if missed:
        lines.append(f"No reading gives {'; '.join(missed)}.")
    for column in found.columns:
        errors = {x: rms(found.of_column(x, column)) for x in found.percents}
        known = {x: error for x, error in errors.items() if error is not None}
        best = min(known, key=lambda x: known[x])
        lines.append(
            f"{_column(*column)}: least rms {known[best]:.1f} %, with {', '.join(_said(best))}."
        )
    return "\n".join(lines)


def _said(reading: Reading) -> tuple[str, ...]:
    return (
        f"signals of {reading.signal_bits} bit",
        f"votes of {reading.vote_bits} bit",
        f"batch {reading.batch}",
        f"an addition {_ADDITIONS[reading.addition]}",
        f"tiles {reading.tiles}",
    )
