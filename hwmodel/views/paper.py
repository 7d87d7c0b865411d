"""Results as tables for print: few columns, rounded numbers, a caption that says what they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import floor, fsum, log10
from typing import NamedTuple

from hwmodel.model.compare import Comparison
from hwmodel.model.report import Report
from hwmodel.rerun.tables import (
    NATURE,
    greedy_notes,
    layer_sums,
    of_batches,
    scale,
    what,
    whole_run,
    whose,
)
from hwmodel.specs.provenance import Provenance
from hwmodel.specs.training import Training
from hwmodel.views.colours import baseline_of, called, named
from hwmodel.views.remarks import asides, comparable

__all__ = ["Column", "Heading", "Paper", "comparison_paper", "places_asides", "printed"]
__all__ += ["report_paper"]

MOST = 3  # decimals of an image's energy in the unit of an iteration's; beyond them in its own


class Heading(NamedTuple):
    """A heading, and the unit of the numbers below it: one of `scale`, "%", or "" for none."""

    text: str
    unit: str = ""


class Column(NamedTuple):
    """Numbers below each other; neighbours of an equal group share its heading."""

    group: Heading
    heading: Heading
    decimals: int


class Paper(NamedTuple):
    """A table for print. A number that is None is not known."""

    caption: str
    label: str
    words: tuple[str, ...]  # headings of the columns of text, which come first
    columns: tuple[Column, ...]
    rows: list[tuple[tuple[str, ...], tuple[float | None, ...]]]
    ends_in_sum: bool = False  # the last row is the sum of those above
    ours: frozenset[int] = frozenset()  # rows that are ours
    best: frozenset[tuple[int, int]] = frozenset()  # (row, column) of the lowest of each column
    notes: tuple[str, ...] = ()  # sentences below the table
    blanks: tuple[str, ...] = ()  # why numbers are missing, where no aside is printed
    asides: tuple[str, ...] = ()  # of single rows, for whoever sets the table


def printed(paper: Paper) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield rows with rounded numbers; "" where a number is not known."""
    for words, numbers in paper.rows:
        pairs = zip(numbers, paper.columns, strict=True)
        yield words, ["" if n is None else _printed(n, column.decimals) for n, column in pairs]


def _printed(number: float, decimals: int) -> str:
    return f"{number:.{decimals}f}" if abs(number) < 1e15 else f"{number:.4e}"


def comparison_paper(
    lines: Sequence[Comparison],
    run: Training | None,
    baseline: str,
    provenance: Provenance,
    ours: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Paper:
    """A row for each method, and for each chip its energy, percent of the baseline, published.

    Under several accountings there is such a group of columns for each chip and accounting, and
    with several networks a row for each network and method, with several batches for each of these.

    Args:
        baseline: what is 100 %, in words.
        ours: methods that are marked as such, by name or label.
        notes: sentences below the table.

    Raises: HwmodelError where one of ours is none of the lines'.
    """
    methods = list(dict.fromkeys(line.method for line in lines))
    ours = named(ours, methods, "--ours")
    networks = list(dict.fromkeys(line.network for line in lines))
    several, batches = len(networks) > 1, len({line.batch for line in lines}) > 1
    words = (*["network"] * several, "method", *["batch"] * batches)
    keys = list(dict.fromkeys(map(_row, lines)))
    columns: list[Column] = []
    cells: list[list[float | None]] = [[] for _ in keys]
    places = dict.fromkeys((line.hardware, line.accounting) for line in lines)
    accountings = list(dict.fromkeys(accounting for _, accounting in places))
    for hardware, accounting in places:
        here = [x for x in lines if (x.hardware, x.accounting) == (hardware, accounting)]
        chip = called(hardware, "hardware")
        group = chip if len(accountings) == 1 else f"{chip}, {accounting}"
        found = [*map(_row, here)]
        for heading, decimals, numbers in _quantities(here, lines, run):
            columns.append(Column(Heading(group), heading, decimals))
            values = dict(zip(found, numbers, strict=True))
            for row, key in zip(cells, keys, strict=True):
                row.append(values.get(key))
    chips = _listed(called(name, "hardware") for name in dict.fromkeys(x.hardware for x in lines))
    of = "the networks listed" if several else called(networks[0], "network")
    iteration, _, listed = of_batches(lines).partition(" of the batch listed")
    at = f", at the batch listed{listed}," if batches else ""
    caption = (
        f"Energy of one {iteration} of {of}{at} on {chips}, and its percentage of "
        f"{baseline} on the same chip, under accounting {_listed(accountings)}"
    )
    caption += f". {comparable(places, (line.unit for line in lines), several or batches)}"
    caption += "".join(f". {note.removesuffix('.')}" for note in greedy_notes(lines, called))
    texts = [
        (
            *([called(network, "network")] if several else []),
            _own(called(method)) if method in ours else called(method),
            *([batch] if batches else []),
        )
        for network, method, batch in keys
    ]
    return Paper(
        _caption(caption, provenance),
        _label(provenance.task, *networks[:1], *dict.fromkeys(x.hardware for x in lines)),
        words,
        tuple(columns),
        [(text, tuple(row)) for text, row in zip(texts, cells, strict=True)],
        ours=frozenset(i for i, (_, method, _) in enumerate(keys) if method in ours),
        best=frozenset() if several else _best(cells, [batch for _, _, batch in keys]),
        notes=tuple(notes),
        blanks=tuple(_blanks(lines)),
        asides=tuple(places_asides(lines)),
    )


def _own(label: str) -> str:
    """Say that a method is ours, where its label does not.

    >>> _own("W2A4"), _own("Ours (W2A4)"), _own("W2A4 (ours)")
    ('W2A4 (ours)', 'Ours (W2A4)', 'W2A4 (ours)')
    """
    return label if re.search(r"\bours\b", label, re.IGNORECASE) else f"{label} (ours)"


def _blanks(lines: Sequence[Comparison]) -> Iterator[str]:
    """Say in short which rows have no energy on which chip, and whether it is for want of room."""
    for hardware in dict.fromkeys(line.hardware for line in lines):
        here = [line for line in lines if line.hardware == hardware]
        for fits in (False, True):
            missing = [line for line in here if line.energy is None and line.fits == fits]
            if missing:
                why = "no energy, for a reason told in comments" if fits else "no room in memory"
                chip = called(hardware, "hardware")
                yield f"-- on {chip}: {why} ({whose(missing, here, called)})."


def places_asides(lines: Sequence[Comparison]) -> Iterator[str]:
    """Say what is to be known of single rows, and on which chips under which accountings."""
    said: dict[str, dict[str, list[str]]] = {}  # of chips, and of each the accountings
    for hardware, accounting in dict.fromkeys((line.hardware, line.accounting) for line in lines):
        here = [x for x in lines if (x.hardware, x.accounting) == (hardware, accounting)]
        for text in asides(here):
            said.setdefault(text, {}).setdefault(called(hardware, "hardware"), []).append(
                accounting
            )
    for text, under in said.items():
        alike: dict[str, list[str]] = {}
        for chip, accountings in under.items():
            alike.setdefault(", ".join(accountings), []).append(chip)
        at = (f"{', '.join(chips)}, accounting {those}" for those, chips in alike.items())
        yield f"{'; '.join(at)}. {text}"


def _best(
    cells: Sequence[Sequence[float | None]], batches: Sequence[str]
) -> frozenset[tuple[int, int]]:
    """Return the places of the lowest number of each column and batch, where several stand there.

    Args:
        batches: of each row.

    >>> sorted(_best([[2.0], [1.0], [5.0], [7.0]], ["1", "1", "64", "64"]))
    [(1, 0), (2, 0)]
    """
    found = set()
    for batch in dict.fromkeys(batches):
        own = [row for row, its in enumerate(batches) if its == batch]
        for column, numbers in enumerate(zip(*(cells[row] for row in own), strict=True)):
            known = [number for number in numbers if number is not None]
            if len(known) > 1 and min(known) < max(known):
                lowest = min(known)
                found |= {(row, column) for row in own if cells[row][column] == lowest}
    return frozenset(found)


def _row(line: Comparison) -> tuple[str, str, str]:
    return line.network, line.method, str(line.batch)


def _quantities(
    here: Sequence[Comparison], lines: Sequence[Comparison], run: Training | None
) -> list[tuple[Heading, int, list[float | None]]]:
    """Headings, decimals and numbers for the lines of one chip under one accounting.

    Args:
        lines: those of all chips, on which a quantity has one unit and as many decimals.
    """
    unit = here[0].unit
    alike = [line for line in lines if line.unit == unit]
    least = _least(_energies(alike))
    most = max((x.energy for x in alike if x.energy is not None), default=0.0)
    found = [_scaled("energy", _energies(here), least, _step(least, most, unit))]
    if all(line.images > 1 for line in lines):
        share = _least(_energies(alike, 1))
        steps = _step(least, most, unit), scale(share, unit)
        own = next((step for step in steps if _decimals(share / step[0]) <= MOST), steps[-1])
        found.append(_scaled("an image", _energies(here, 1), share, own))
    percents = [line.percent_of_baseline for line in here]
    found.append((Heading(f"of {baseline_of(here[0])}", "%"), 2, percents))
    if any(line.optimal and line.optimal.energy is not None for line in here):
        then = [line.percent_of_baseline_optimal_tiles for line in here]
        found.append((Heading("optimal tiles", "%"), 2, then))
    published = [line.source_percent for line in here]
    if any(percent is not None for percent in published):
        found.append((Heading("published", "%"), 2, published))
    if run is not None:
        mine, all_ = ([whole_run(line, run)[2] for line in some] for some in (here, alike))
        found.append(_scaled(run.name, mine, _least(all_), scale(_least(all_), unit)))
    return found


def _energies(lines: Sequence[Comparison], images: int = 0) -> list[float | None]:
    """Energies of iterations, or with `images` of that many images."""
    return [
        None if x.energy is None else x.energy * images / x.images if images else x.energy
        for x in lines
    ]


def _least(energies: Iterable[float | None]) -> float:
    return min((energy for energy in energies if energy is not None), default=0.0)


def _step(least: float, most: float, unit: str) -> tuple[float, str]:
    """The unit that suits the least, or the next where the largest has more than six digits."""
    step = scale(least, unit)
    return scale(1e4 * step[0], unit) if most >= 1e6 * step[0] else step


def _scaled(
    text: str, energies: list[float | None], least: float, to: tuple[float, str]
) -> tuple[Heading, int, list[float | None]]:
    """Scale energies to a unit, with the decimals by which the least of all chips is told."""
    divisor, unit = to
    numbers = [None if energy is None else energy / divisor for energy in energies]
    return Heading(text, unit), _decimals(least / divisor), numbers


def _decimals(least: float) -> int:
    """Count the decimals in which a number has three significant digits, one at least.

    >>> [_decimals(x) for x in (0.0, 0.0123, 1.23, 12.3, 1234.5)]
    [1, 4, 2, 1, 1]
    """
    return max(1, 2 - floor(log10(least))) if least > 0 else 1


def report_paper(report: Report, provenance: Provenance, remark: str = "") -> Paper:
    """A row for each layer with the energy of each pass, their sum and its share; a last row."""
    divisor, unit = scale(report.energy, report.unit)
    passes, sums = layer_sums(report)
    group = Heading("energy", unit)
    headings = [*(phase.replace("_", " ") for phase in passes), "sum"]
    columns = [Column(group, Heading(text), 2) for text in headings]
    columns.append(Column(Heading(""), Heading("share", "%"), 1))
    totals = [report.energies("pass")[(one,)] for one in passes]

    def row(name: str, energies: list[float]) -> tuple[tuple[str, ...], tuple[float | None, ...]]:
        total = fsum(energies)
        share = 100 * total / report.energy if report.energy else 0.0
        return (name,), (*(energy / divisor for energy in (*energies, total)), share)

    rows = [row(layer, energies) for layer, energies in sums.items()]
    names = (report.network.name, report.hardware.name, report.method.name)
    caption = (
        f"Energy of one {what(report.mode, report.batch)} of {called(names[0], 'network')} under "
        f"{called(names[2])} on {called(names[1], 'hardware')} by layer and pass, under "
        f"accounting {report.accounting.name}"
    )
    for said in filter(None, (remark.removesuffix("."), report.staying, report.attention)):
        caption += f". {said[0].upper()}{said[1:]}"
    return Paper(
        _caption(caption, provenance),
        _label(provenance.task, *names),
        ("layer",),
        tuple(columns),
        [*rows, row("all layers", totals)],
        ends_in_sum=True,
    )


def _caption(text: str, provenance: Provenance) -> str:
    return f"{text}; {NATURE} (hwmodel {provenance.version})."


def _label(*parts: str) -> str:
    return "tab:" + re.sub("[^A-Za-z0-9]+", "-", "-".join(parts)).strip("-").lower()


def _listed(names: Iterable[str]) -> str:
    """Join names as a sentence lists them; by semicolons where one has a comma."""
    *before, last = names
    if any("," in name for name in (*before, last)):
        return "; ".join((*before, last))
    return f"{', '.join(before)} and {last}" if before else last
