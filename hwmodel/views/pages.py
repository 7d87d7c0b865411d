"""Sections of text and tables on pages of A4: the first across the page, the others in two columns.

The type is the largest in which one page holds all; where none does, the largest that takes no more
pages than a usual one. No column ends in a heading, and a table that goes on in another has its
head there again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from hwmodel.specs.files import whole_file
from hwmodel.views.figures.canvas import HEAVY, PLAIN, STYLES, boxes_told, settings, width_of

__all__ = ["A4", "SIZES", "Placed", "Section", "laid_out", "numeric", "write_pages"]

A4 = 8.27, 11.69  # inch
MARGIN = 0.5  # inch
GAP = 0.25  # between columns [inch]
SIZES = (9.0, 8.5, 8.0, 7.5, 7.0)  # of type [point], the largest first
USUAL = 8.0
LEADING = 1.18  # from line to line, in sizes
APART = 1.5  # between columns of a table, in sizes
SPLITS = 20  # of the width of two columns of a table that are to share it
LEAST = 6  # lines of columns that begin below the first section
ROUNDING = 1e-9  # of a width, relative
_UNDATED: dict[str, Any] = {"CreationDate": None}
Rows = Sequence[Sequence[str]]
Cells = list[tuple[float, str]]  # of a line: texts, each at an x [inch]


class Section(NamedTuple):
    """A heading, sentences, and tables below them, of which each first row is its head."""

    title: str
    texts: Sequence[str]
    tables: Sequence[Rows] = ()


class Placed(NamedTuple):
    """A text on a page: its left upper corner [inch], from that of the page."""

    x: float
    y: float
    text: str
    weight: int


class Line(NamedTuple):
    """Texts side by side, each at an x [inch].

    Args:
        stays: on the page or column of the line that follows.
        head: lines of the head of the table whose body this is, which stand above it again where it
            begins a column.
    """

    cells: Sequence[tuple[float, str]] = ()
    weight: int = PLAIN
    stays: bool = False
    head: tuple[Line, ...] = ()


EMPTY = Line()


def write_pages(title: str, found: Sequence[Section], output: Path) -> None:
    """Write sections as a PDF. Raises: HwmodelError."""
    with settings(STYLES["paper"]), boxes_told(output):
        from matplotlib.backends.backend_pdf import PdfPages
        from matplotlib.figure import Figure

        size, pages = laid_out(title, found)
        with whole_file(output, "wb") as stream, PdfPages(stream, metadata=_UNDATED) as written:
            for page in pages:
                figure = Figure(figsize=A4)
                for x, y, text, weight in page:
                    at = x / A4[0], 1 - y / A4[1]
                    figure.text(*at, text, size=size, va="top", weight=weight)
                written.savefig(figure)


def laid_out(title: str, found: Sequence[Section]) -> tuple[float, list[list[Placed]]]:
    """Return the size of type [point], and pages of texts; in the font that is set."""
    every = {size: _pages(title, found, size) for size in SIZES}
    least = 1 if len(every[SIZES[-1]]) == 1 else len(every[USUAL])
    return next((size, pages) for size, pages in every.items() if len(pages) <= least)


def _pages(title: str, found: Sequence[Section], size: float) -> list[list[Placed]]:
    """Lay sections out in type of one size."""
    width, high = A4[0] - 2 * MARGIN, LEADING * size / 72
    column = (width - GAP) / 2
    most = int((A4[1] - 2 * MARGIN) / high)
    top: list[Line] = [Line([(0.0, title)], HEAVY), *_section(found[0], width, size), EMPTY]
    pages: list[list[Placed]] = []
    while len(top) > most:  # a first section of more than a page
        taken, top = _taken(top, most)
        pages.append(_placed(taken, 0.0, 0, high))
    pages.append(_placed(top, 0.0, 0, high))
    rest = [line for section in found[1:] for line in _section(section, column, size)]
    start = len(top)
    if rest and most - start < LEAST:
        pages.append([])
        start = 0
    while rest := _begun(rest):
        room = most - start
        if len(rest) <= 2 * room - LEAST:  # the last columns are as long as each other
            room = min(room, (len(rest) + 1) // 2 + 1)
        for side in range(2):
            taken, rest = _taken(_begun(rest), room if side == 0 else most - start)
            pages[-1] += _placed(taken, side * (column + GAP), start, high)
        if rest:
            pages.append([])
            start = 0
    return pages


def _begun(lines: list[Line]) -> list[Line]:
    """The lines without empty ones before them, which begin no column."""
    return next((lines[i:] for i, line in enumerate(lines) if line.cells), [])


def _taken(lines: list[Line], most: int) -> tuple[list[Line], list[Line]]:
    """Take the lines of a column, and return the others; a table's head stands above these, too."""
    if len(lines) <= most:
        return lines, []
    end = most
    while end and lines[end - 1].stays:
        end -= 1
    end = end or max(1, most)  # what stays together is longer than a column
    rest = _begun(lines[end:])
    return lines[:end], [*(rest[0].head if rest else ()), *rest]


def _placed(lines: Sequence[Line], left: float, start: int, high: float) -> list[Placed]:
    """Put lines one below the other, from a place on."""
    return [
        Placed(MARGIN + left + x, MARGIN + number * high, text, line.weight)
        for number, line in enumerate(lines, start=start)
        for x, text in line.cells
        if text
    ]


def _section(section: Section, width: float, size: float) -> Iterator[Line]:
    """Yield the lines of a section."""
    yield EMPTY
    yield Line([(0.0, section.title)], HEAVY, stays=True)
    hung = size / 72 if section.texts[1:] else 0.0  # so that one is told from the next
    for text in section.texts:
        first, *more = _wrapped(text, width, size, hung)
        yield Line([(0.0, first)], stays=bool(more))
        yield from (Line([(hung, line)]) for line in more)
    tables = [table for table in section.tables if table]
    if section.texts and tables:
        yield EMPTY
    yield from _tables(tables, width, size)


def _tables(tables: Sequence[Rows], width: float, size: float) -> Iterator[Line]:
    """Yield the lines of tables, as many side by side as have room."""
    apart = APART * size / 72
    left = [*tables]
    while left:
        beside: list[list[list[Cells]]] = []  # of each table its rows, and of these their lines
        taken = 0.0
        while left:
            columns = _columns(left[0], size)
            its = sum(columns) + (len(columns) - 1) * apart
            if beside and taken + its > width:
                break
            table = left.pop(0)
            narrow = _narrowed(table, columns, width, apart, size)
            rows = [[[(taken + x, text) for x, text in line] for line in row]
                    for row in _rows(table, narrow, apart, size)]  # fmt: skip
            beside.append(rows)
            taken += its + 2 * apart
        yield from _beside(beside)
        if left:
            yield EMPTY


def _beside(tables: Sequence[Sequence[Sequence[Cells]]]) -> Iterator[Line]:
    """Yield the lines of tables side by side, row by row, of which each first row is its head."""
    head: tuple[Line, ...] = ()
    for number in range(max(map(len, tables))):
        row = [table[number] if number < len(table) else [] for table in tables]
        high = max(map(len, row))
        lines = [[cell for one in row for cell in (one[at] if at < len(one) else [])]
                 for at in range(high)]  # fmt: skip
        if number == 0:
            head = tuple(Line(cells, HEAVY, stays=True) for cells in lines)
            yield from head
            continue
        yield from (Line(cells, stays=at < high, head=head if at == 1 else ())
                    for at, cells in enumerate(lines, start=1))  # fmt: skip


def _columns(rows: Rows, size: float) -> list[float]:
    """Return the width of every column, unbroken [inch]."""
    return [
        max(_width(text, size, PLAIN if at else HEAVY) for at, text in enumerate(column))
        for column in zip(*rows, strict=True)
    ]


def _narrowed(
    rows: Rows, columns: Sequence[float], width: float, apart: float, size: float
) -> list[float]:
    """Narrow the last column and the widest other, until they have room, to the fewest lines."""
    room = width - (len(columns) - 1) * apart
    if sum(columns) <= room or len(columns) < 2:
        return [min(one, room) for one in columns]
    widest = max(range(len(columns) - 1), key=columns.__getitem__)
    both = room - sum(columns) + columns[widest] + columns[-1]  # for these two
    if both <= room / 4:  # all others are too wide, too
        return [room / len(columns)] * len(columns)
    tried = []
    for step in range(1, SPLITS):
        own = min(columns[widest], both * step / SPLITS)
        found = [*columns[:-1], min(columns[-1], both - own)]
        found[widest] = own
        tried.append(found)
    return min(tried, key=lambda found: sum(map(len, _rows(rows, found, apart, size))))


def _rows(rows: Rows, columns: Sequence[float], apart: float, size: float) -> Iterator[list[Cells]]:
    """Yield the rows of a table, of each its lines; a cell takes as many as it needs."""
    edges = [0.0, *accumulate(width + apart for width in columns[:-1])]
    right = numeric(rows)
    for number, row in enumerate(rows):
        weight = PLAIN if number else HEAVY
        cells = [_wrapped(text, width, size, weight=weight)
                 for text, width in zip(row, columns, strict=True)]  # fmt: skip
        yield [
            [
                (
                    edge + (columns[at] - _width(lines[line], size, weight)) * (at in right),
                    lines[line],
                )
                for at, (edge, lines) in enumerate(zip(edges, cells, strict=True))
                if line < len(lines)
            ]
            for line in range(max(map(len, cells)))
        ]


def numeric(rows: Rows) -> frozenset[int]:
    """Return the columns in which numbers stand below the heading, and nothing else."""
    below = zip(*rows[1:], strict=True)
    return frozenset(i for i, column in enumerate(below) if all(map(_is_number, column)))


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+]?[0-9][0-9,.]*|-", text))


def _wrapped(
    text: str, width: float, size: float, hung: float = 0.0, weight: int = PLAIN
) -> list[str]:
    """Break a text between words into lines no wider than that; within a word that is wider, after
    a hyphen where it has one.

    Args:
        hung: by how much all lines but the first are narrower [inch].
        weight: of the type.
    """
    lines: list[str] = []
    line, room = "", width * (1 + ROUNDING)
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if _width(longer, size, weight) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
            room = (width - hung) * (1 + ROUNDING)
        while _width(word, size, weight) > room and len(word) > 1:
            fits = next(n for n in range(len(word) - 1, 0, -1)
                        if n == 1 or _width(word[:n], size, weight) <= room)  # fmt: skip
            fits = word.rfind("-", 0, fits) + 1 or fits
            lines.append(word[:fits])
            word, room = word[fits:], (width - hung) * (1 + ROUNDING)
        line = word
    return [*lines, line]


def _width(text: str, size: float, weight: int = PLAIN) -> float:
    """Return the width of a text: of its words and the blanks between them [inch]."""
    words = text.split(" ")
    blank = _of_word("n n", weight) - _of_word("nn", weight)
    return size * (sum(_of_word(word, weight) for word in words) + (len(words) - 1) * blank)


@lru_cache(maxsize=2**14)
def _of_word(word: str, weight: int) -> float:
    """Return the width of a word in type of one point [inch]."""
    return width_of(word, 100.0, weight) / 100 if word else 0.0
