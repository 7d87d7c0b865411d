"""What the source leaves open, all ways at once: which reading gives which of its energy rows.

    reading = signal bits x vote bits x batch x price of an addition x tiles
    residual of a row = 100 (ours / published - 1)          [%]
    rms of a column   = root of the mean square of its rows' residuals

All else is as in the accounting that follows the source. Nothing is chosen by a number that comes
out: every reading is computed, and every row of every table that has energies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import fsum, sqrt
from typing import Literal, NamedTuple

from hwmodel.importers.load import load_network
from hwmodel.model.plans import all_tasks
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.published import PublishedTable, published_tables
from hwmodel.vary.counted import Counted

__all__ = ["FOLLOWS", "NEAR", "PRICES", "Reading", "Readings", "Row", "all_readings"]
__all__ += ["published_rows", "readings", "rms"]

NEAR = 10.0  # a reading gives a row that it meets within so many percent
BITS = (1, 16)
BATCHES = (1, 100, 300)
FOLLOWS, PRICES = "paper", "full"  # accountings: what all readings share; who has a relative price

Addition = Literal["of-mac", "relative"]
Tiles = Literal["quotients", "integers", "optimal"]


class Reading(NamedTuple):
    """One way to read what the source leaves open."""

    signal_bits: int
    vote_bits: int
    batch: int
    addition: Addition  # an operation of the chip's MAC, or as a published table has it
    tiles: Tiles  # of the level-by-level search; or optimal ones, counted exactly


class Row(NamedTuple):
    """A published energy."""

    table: str
    network: str
    method: str
    hardware: str
    published: float  # percent of the table's baseline

    @property
    def column(self) -> tuple[str, str]:
        """The table and chip."""
        return self.table, self.hardware


class Readings(NamedTuple):
    """Every row under every reading [% of the baseline]; None where nothing could be computed."""

    rows: tuple[Row, ...]
    percents: dict[Reading, tuple[float | None, ...]]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Tables and chips, in order."""
        return tuple(dict.fromkeys(row.column for row in self.rows))

    def residuals(self, reading: Reading) -> list[float | None]:
        """Residuals of all rows under a reading [%]."""
        pairs = zip(self.rows, self.percents[reading], strict=True)
        return [None if p is None else 100 * (p / row.published - 1) for row, p in pairs]

    def of_column(self, reading: Reading, column: tuple[str, str]) -> list[float | None]:
        """Residuals of one column under a reading."""
        pairs = zip(self.rows, self.residuals(reading), strict=True)
        return [residual for row, residual in pairs if row.column == column]

    def of_row(self, row: Row) -> dict[Reading, float]:
        """Residuals of one row, by reading."""
        at = self.rows.index(row)
        found = {reading: self.residuals(reading)[at] for reading in self.percents}
        return {reading: value for reading, value in found.items() if value is not None}

    def given(self, reading: Reading) -> int:
        """How many rows a reading gives."""
        return sum(value is not None and abs(value) <= NEAR for value in self.residuals(reading))


def rms(residuals: Sequence[float | None]) -> float | None:
    """Return the root of the mean square; None where one is not known."""
    known = [value for value in residuals if value is not None]
    if len(known) < len(residuals) or not known:
        return None
    return sqrt(fsum(value * value for value in known) / len(known))


def all_readings() -> Iterator[Reading]:
    """Every combination, those that share counts next to each other."""
    tiles: tuple[Tiles, ...] = ("quotients", "integers", "optimal")
    additions: tuple[Addition, ...] = ("of-mac", "relative")
    for batch, tile, signal, vote, addition in product(BATCHES, tiles, BITS, BITS, additions):
        yield Reading(signal, vote, batch, addition, tile)


def accounting_of(reading: Reading) -> Accounting:
    """Return the accounting that counts by a reading."""
    base, priced = load(Accounting, FOLLOWS), load(Accounting, PRICES)
    widths = {
        "boolean_signal_bits": reading.signal_bits,
        "boolean_vote_bits": reading.vote_bits,
    }
    counting: dict[str, str] = {"tile_sizes": "quotients"}
    if reading.tiles == "optimal":
        counting |= {"search": "optimal", "counting": "exact", "rows": "touched"}
        counting |= {"padding": "skipped"}
    else:
        counting["tile_sizes"] = reading.tiles
    prices: dict[str, object] = {}
    if reading.addition == "relative":
        prices = {"addition_price": "relative", "relative_prices": priced.prices.relative_prices}
    return base.model_copy(
        update={
            "widths": base.widths.model_copy(update=widths),
            "counting": base.counting.model_copy(update=counting),
            "prices": base.prices.model_copy(update=prices),
        }
    )


def published_rows() -> tuple[Row, ...]:
    """Published energies but those of baselines, table by table and chip by chip; each once."""
    found: dict[Row, None] = {}
    for table in published_tables().values():
        if any(figure.energy_percent for figure in table.figures):
            for chip in table.chips:
                found |= dict.fromkeys(_rows(table, chip))
    return tuple(found)


def _rows(table: PublishedTable, chip: str) -> Iterator[Row]:
    """Rows of a table on a chip; a second figure of equal network and energy is the same row."""
    base, seen = (table.baseline.network, table.baseline.method), set()
    for figure in table.figures:
        if figure.modelled is None or figure.modelled == base:
            continue
        if chip in figure.energy_percent:
            published = figure.energy_percent[chip]
            if (figure.network, published) not in seen:
                seen.add((figure.network, published))
                yield Row(table.name, *figure.modelled, chip, published)


def readings(
    chosen: Sequence[Reading] | None = None,
    *,
    watch: Callable[[Sequence[Reading]], Iterable[Reading]] = iter,
) -> Readings:
    """Compute every row of the source's energy tables under several readings.

    Args:
        chosen: the readings; by default all.
        watch: hands the readings on, as they are computed.

    Raises: HwmodelError.
    """
    rows, counted = published_rows(), Counted()
    chips = {name: load(Hardware, name) for name in dict.fromkeys(row.hardware for row in rows)}
    several = list(all_readings() if chosen is None else chosen)
    return Readings(rows, {one: _percents(one, rows, chips, counted) for one in watch(several)})


def _percents(
    reading: Reading, rows: Sequence[Row], chips: dict[str, Hardware], counted: Counted
) -> tuple[float | None, ...]:
    """Return every row under one reading, in percent of its baseline."""
    tables, accounting = published_tables(), accounting_of(reading)
    bases = {
        table.name: (table.baseline.network, table.baseline.method) for table in tables.values()
    }
    pairs = dict.fromkeys(x for r in rows for x in (bases[r.table], (r.network, r.method)))
    paid = {pair: _energies(pair, accounting, reading.batch, chips, counted) for pair in pairs}
    found: list[float | None] = []
    for row in rows:
        ours = paid[row.network, row.method][row.hardware]
        whole = paid[bases[row.table]][row.hardware]
        found.append(100 * ours / whole if ours is not None and whole else None)
    return tuple(found)


def _energies(
    pair: tuple[str, str],
    accounting: Accounting,
    batch: int,
    chips: dict[str, Hardware],
    counted: Counted,
) -> dict[str, float | None]:
    """Return the energy of a training iteration on each chip; None where no tile fits."""
    network, method = load_network(pair[0]), load(Method, pair[1])
    job = Job(method, accounting, batch, "training", None)
    tasks = all_tasks(network, job)
    costs = counted.costs((tasks, accounting.counting), tasks, network, job, [*chips.values()])
    return {name: cost.energy for name, cost in zip(chips, costs, strict=True)}
