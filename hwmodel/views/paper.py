"""Results as tables for print: few columns, rounded numbers, a caption that says what they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from math import fsum
from typing import NamedTuple

from hwmodel.model.compare import Comparison
from hwmodel.model.report import Report
from hwmodel.rerun.tables import (
    NATURE,
    common_scale,
    decimals_of,
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
from hwmodel.views.remarks import asides, said_of

__all__ = ["Column", "Heading", "Paper", "comparison_paper", "places_asides", "printed"]
__all__ += ["report_paper"]

LONGEST_LABEL = 100  # characters
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
    apart: frozenset[int] = frozenset()  # rows with which another network or batch begins
    ours: frozenset[int] = frozenset()  # rows that are ours
    best: frozenset[tuple[int, int]] = frozenset()  # (row, column) of the lowest of each column
    notes: tuple[str, ...] = ()  # sentences below the table
    blanks: tuple[str, ...] = ()  # why numbers are missing, where no aside is printed
    asides: tuple[str, ...] = ()  # of single rows, for whoever sets the table


def printed(paper: Paper) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield rows with rounded numbers, commas between thousands; "" where one is not known."""
    for words, numbers in paper.rows:
        pairs = zip(numbers, paper.columns, strict=True)
        yield words, ["" if n is None else _printed(n, column.decimals) for n, column in pairs]


def _printed(number: float, decimals: int) -> str:
    return f"{number:,.{decimals}f}" if abs(number) < 1e15 else f"{number:.4e}"


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
    chips = list(dict.fromkeys(line.hardware for line in lines))
    sizes = [f"batch{batch}" for batch in dict.fromkeys(line.batch for line in lines)]
    of = "the networks listed" if several else called(networks[0], "network")
    iteration, _, listed = of_batches(lines).partition(" of the batch listed")
    at = f", at the batch listed{listed}," if batches else ""
    where = _listed(called(name, "hardware") for name in chips)
    caption = (
        f"Energy of one {iteration} of {of}{at} on {where}, and its percentage of "
        f"{baseline} on the same chip, under accounting {_listed(accountings)}"
    )
    caption += f". {said_of(lines)}"
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
        _label([provenance.task], networks, chips, methods, accountings, [lines[0].mode], sizes),
        words,
        tuple(columns),
        [(text, tuple(row)) for text, row in zip(texts, cells, strict=True)],
        ours=frozenset(i for i, (_, method, _) in enumerate(keys) if method in ours),
        best=frozenset() if several else _best(cells, [batch for _, _, batch in keys]),
        notes=tuple(notes),
        apart=frozenset(_begins([(network, batch) for network, _, batch in keys])),
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
        for lacks in (True, False):
            missing = [x for x in here if x.energy is None and bool(x.lacking_memory) == lacks]
            if missing:
                why = "no room in memory" if lacks else "no energy, for a reason told in comments"
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
    step = common_scale(_energies(alike), unit)
    found = [_scaled("energy", _energies(here), step)]
    if all(line.images > 1 for line in lines):
        energies = _energies(alike, 1)
        beside = decimals_of(min((x for x in energies if x), default=0.0) / step[0])
        own = common_scale(energies, unit) if beside > MOST else (*step[:2], beside)
        found.append(_scaled("an image", _energies(here, 1), own))
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
        found.append(_scaled(run.name, mine, common_scale(all_, unit)))
    return found


def _energies(lines: Sequence[Comparison], images: int = 0) -> list[float | None]:
    """Energies of iterations, or with `images` of that many images."""
    return [
        None if x.energy is None else x.energy * images / x.images if images else x.energy
        for x in lines
    ]


def _scaled(
    text: str, energies: list[float | None], to: tuple[float, str, int]
) -> tuple[Heading, int, list[float | None]]:
    """Scale energies to a unit with its decimals, as `common_scale` gives them."""
    divisor, unit, decimals = to
    numbers = [None if energy is None else energy / divisor for energy in energies]
    return Heading(text, unit), decimals, numbers


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
    run = report.mode, f"batch{report.batch}"
    caption = (
        f"Energy of one {what(report.mode, report.batch)} of {called(names[0], 'network')} under "
        f"{called(names[2])} on {called(names[1], 'hardware')} by layer and pass, under "
        f"accounting {report.accounting.name}"
    )
    for said in filter(None, (remark.removesuffix("."), report.attention)):
        caption += f". {said[0].upper()}{said[1:]}"
    return Paper(
        _caption(caption, provenance),
        _label([provenance.task], *([name] for name in (*names, report.accounting.name, *run))),
        ("layer",),
        tuple(columns),
        [*rows, row("all layers", totals)],
        ends_in_sum=True,
        asides=(f"{report.staying}.",) if report.staying else (),
    )


def _caption(text: str, provenance: Provenance) -> str:
    return f"{text}; {NATURE} (hwmodel {provenance.version})."


def _label(*words: Sequence[str]) -> str:
    """Make the label that a text refers to: of all names, so that no two tables share one.

    Where this is long, of the first of alternatives and how many there are beside it.
    """
    joined = "-".join(chain(*words))
    if len(joined) > LONGEST_LABEL:
        short = (f"{first}+{len(more)}" if more else first for first, *more in words)
        joined = "-".join(short)
    return "tab:" + re.sub("[^A-Za-z0-9+]+", "-", joined).strip("-").lower()


def _begins(rows: Sequence[tuple[str, str]]) -> Iterator[int]:
    """Yield the rows but the first that are of another network or batch than those above."""
    yield from (i for i, pair in enumerate(pairwise(rows), start=1) if pair[0] != pair[1])


def _listed(names: Iterable[str]) -> str:
    """Join names as a sentence lists them; by semicolons where one has a comma."""
    *before, last = names
    if any("," in name for name in (*before, last)):
        return "; ".join((*before, last))
    return f"{', '.join(before)} and {last}" if before else last
