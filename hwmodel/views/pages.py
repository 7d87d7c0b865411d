"""Sections of text and tables on pages of A4: the first across the page, the others in two columns.

The type is the largest in which one page holds all; where none does, the largest that takes no more
pages than a usual one. No column ends in a heading.
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
KEPT = 3  # lines, of which a heading is the first, that stay together
ROUNDING = 1e-9  # of a width, relative
_UNDATED: dict[str, Any] = {"CreationDate": None}
Rows = Sequence[Sequence[str]]


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


Line = tuple[list[tuple[float, str]], int]  # texts, each at an x [inch], and their weight


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
    top: list[Line] = [([(0.0, title)], HEAVY), *_section(found[0], width, size), ([], PLAIN)]
    pages: list[list[Placed]] = []
    while len(top) > most:  # a first section of more than a page
        pages.append(_placed(top[:most], 0.0, 0, high))
        top = top[most:]
    pages.append(_placed(top, 0.0, 0, high))
    rest = [line for section in found[1:] for line in _section(section, column, size)]
    start = len(top)
    while rest := rest if not rest or rest[0][0] else rest[1:]:
        room = most - start
        if len(rest) <= 2 * room - KEPT:  # the last columns are as long as each other
            room = min(room, (len(rest) + 1) // 2 + 1)
        for side in range(2):
            rest = rest if not rest or rest[0][0] else rest[1:]  # no empty line begins a column
            taken = _fitting(rest, room if side == 0 else most - start)
            pages[-1] += _placed(rest[:taken], side * (column + GAP), start, high)
            rest = rest[taken:]
        if rest:
            pages.append([])
            start = 0
    return pages


def _fitting(lines: Sequence[Line], most: int) -> int:
    """Count the lines of a column: a heading goes on to the next with what follows it."""
    if len(lines) <= most:
        return len(lines)
    most = max(0, most)
    for end in range(most, max(0, most - KEPT), -1):
        if lines[end - 1][1] == HEAVY:
            return end - 1
    return most


def _placed(lines: Sequence[Line], left: float, start: int, high: float) -> list[Placed]:
    """Put lines one below the other, from a place on."""
    return [
        Placed(MARGIN + left + x, MARGIN + number * high, text, weight)
        for number, (cells, weight) in enumerate(lines, start=start)
        for x, text in cells
        if text
    ]


def _section(section: Section, width: float, size: float) -> Iterator[Line]:
    """Yield the lines of a section."""
    yield [], PLAIN
    yield [(0.0, section.title)], HEAVY
    hung = size / 72 if section.texts[1:] else 0.0  # so that one is told from the next
    for text in section.texts:
        first, *more = _wrapped(text, width, size, hung)
        yield [(0.0, first)], PLAIN
        yield from (([(hung, line)], PLAIN) for line in more)
    yield from _tables([table for table in section.tables if table], width, size)


def _tables(tables: Sequence[Rows], width: float, size: float) -> Iterator[Line]:
    """Yield the lines of tables, as many side by side as have room."""
    apart = APART * size / 72
    left = [*tables]
    while left:
        beside: list[list[list[tuple[float, str]]]] = []
        taken = 0.0
        while left:
            columns = _columns(left[0], size)
            its = sum(columns) + (len(columns) - 1) * apart
            if beside and taken + its > width:
                break
            table = left.pop(0)
            rows = list(_rows(table, _narrowed(table, columns, width, apart, size), apart, size))
            beside.append([[(taken + x, text) for x, text in cells] for cells in rows])
            taken += its + 2 * apart
        for line in range(max(map(len, beside))):
            yield [cell for one in beside for cell in (one[line] if line < len(one) else [])], PLAIN
        if left:
            yield [], PLAIN


def _columns(rows: Rows, size: float) -> list[float]:
    """Return the width of every column, unbroken [inch]."""
    return [max(_width(text, size) for text in column) for column in zip(*rows, strict=True)]


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
    return min(tried, key=lambda found: len([*_rows(rows, found, apart, size)]))


def _rows(
    rows: Rows, columns: Sequence[float], apart: float, size: float
) -> Iterator[list[tuple[float, str]]]:
    """Yield the lines of a table; a cell takes as many as it needs."""
    edges = [0.0, *accumulate(width + apart for width in columns[:-1])]
    right = numeric(rows)
    for row in rows:
        cells = [_wrapped(text, width, size) for text, width in zip(row, columns, strict=True)]
        for line in range(max(map(len, cells))):
            yield [
                (edge + (columns[at] - _width(lines[line], size)) * (at in right), lines[line])
                for at, (edge, lines) in enumerate(zip(edges, cells, strict=True))
                if line < len(lines)
            ]


def numeric(rows: Rows) -> frozenset[int]:
    """Return the columns in which numbers stand below the heading, and nothing else."""
    below = zip(*rows[1:], strict=True)
    return frozenset(i for i, column in enumerate(below) if all(map(_is_number, column)))


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+]?[0-9][0-9,.]*|-", text))


def _wrapped(text: str, width: float, size: float, hung: float = 0.0) -> list[str]:
    """Break a text between words into lines no wider than that; within a word that is wider.

    Args:
        hung: by how much all lines but the first are narrower [inch].
    """
    lines: list[str] = []
    line, room = "", width * (1 + ROUNDING)
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if _width(longer, size) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
            room = (width - hung) * (1 + ROUNDING)
        while _width(word, size) > room and len(word) > 1:
            fits = next(n for n in range(len(word) - 1, 0, -1)
                        if n == 1 or _width(word[:n], size) <= room)  # fmt: skip
            lines.append(word[:fits])
            word, room = word[fits:], (width - hung) * (1 + ROUNDING)
        line = word
    return [*lines, line]


def _width(text: str, size: float) -> float:
    """Return the width of a text: of its words and the blanks between them [inch]."""
    words = text.split(" ")
    return size * (sum(map(_of_word, words)) + (len(words) - 1) * _of_word("n n", "nn"))


@lru_cache(maxsize=2**14)
def _of_word(word: str, without: str = "") -> float:
    """Return the width of a word in type of one point, less that of another [inch]."""
    whole = width_of(word, 100.0) if word else 0.0
    return (whole - (width_of(without, 100.0) if without else 0.0)) / 100
