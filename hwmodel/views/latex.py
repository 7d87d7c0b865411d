"""A table for print as LaTeX, with rules by booktabs; one beyond a page by longtable.

Numbers of a column have equally many decimals, so that columns set flush right stand point under
point, in heavy type, too, whatever the version of a package for numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from hwmodel.views.paper import Column, Paper, printed

__all__ = ["environment"]

SIDE_BY_SIDE = 4  # groups of columns in one tabular: chips, each under an accounting
LINE = 62  # characters of a line of an article, with two for each gap between columns
SMALL_LINE = 84  # of the same in small type
WIDE = 7  # columns of numbers beyond which a table takes both columns of a page, in small type
NARROW = 11  # characters of a heading above one column
LONG = 45  # rows beyond which a table is longer than a page
_UNITS = {"µJ": r"$\mu$J", "%": r"\%"}
_POWERS = {"10¹²": "12", "10⁹": "9", "10⁶": "6", "10³": "3"}  # of MACs


def environment(paper: Paper, notes: Sequence[str]) -> str:
    """Write a complete `table`, `table*` or `longtable` with caption and label, after comments.

    Groups of columns stand side by side in one tabular, `SIDE_BY_SIDE` of them; what is more stands
    below.

    Args:
        notes: lines of the comments.
    """
    long = len(paper.rows) > LONG
    needs = r"needs \usepackage{booktabs" + (",longtable}" if long else "}")
    lines = [f"% {' '.join(note.splitlines())}" for note in (*notes, needs)]
    return "\n".join([*lines, *(_long(paper) if long else _floating(paper))]) + "\n"


def _parts(paper: Paper) -> list[list[int]]:
    """The columns of numbers that stand in one tabular, of each."""
    groups = list(dict.fromkeys(column.group for column in paper.columns))
    together = (groups[at : at + SIDE_BY_SIDE] for at in range(0, len(groups), SIDE_BY_SIDE))
    return [[i for i, c in enumerate(paper.columns) if c.group in some] for some in together]


def _floating(paper: Paper) -> list[str]:
    """The lines of a table that floats."""
    parts = _parts(paper)
    name = "table*" if _is_wide(paper, parts) else "table"
    lines = [rf"\begin{{{name}}}", r"  \centering"]
    lines += [rf"  \caption{{{_text(paper.caption)}}}", rf"  \label{{{paper.label}}}"]
    lines += [r"  \smallskip"]
    lines += [rf"  {order}" for order in _type(paper, parts)]
    for number, indices in enumerate(parts):
        lines += [r"  \par\medskip"] if number else []
        inside = [
            r"\toprule",
            *_heads(paper, indices),
            r"\midrule",
            *_body(paper, indices),
            r"\bottomrule",
        ]
        lines += [rf"  \begin{{tabular}}{{{_format(paper, indices)}}}"]
        lines += [*(f"    {line}" for line in inside), r"  \end{tabular}"]
    lines += [rf"  \par\smallskip{note}" for note in _notes(paper)]
    return [*lines, rf"\end{{{name}}}"]


def _long(paper: Paper) -> list[str]:
    """The lines of a table that runs over pages, one a part."""
    lines: list[str] = []
    for number, indices in enumerate(_parts(paper)):
        columns = len(paper.words) + len(indices)
        caption = rf"\caption{{{_text(paper.caption)}}}\label{{{paper.label}}}"
        heads = [r"\toprule", *_heads(paper, indices), r"\midrule"]
        orders = _type(paper, [indices])
        inside = [
            caption + r" \\[\smallskipamount]" if not number else r"\caption[]{(continued)} \\",
            *heads,
            r"\endfirsthead",
            rf"\multicolumn{{{columns}}}{{@{{}}l}}{{Table~\ref{{{paper.label}}}, continued}} \\",
            *heads,
            r"\endhead",
            r"\midrule",
            rf"\multicolumn{{{columns}}}{{r@{{}}}}{{on the next page}} \\",
            r"\endfoot",
            r"\bottomrule",
            r"\endlastfoot",
            *_body(paper, indices),
        ]
        lines += [rf"\begingroup{''.join(orders)}"] if orders else []
        lines += [rf"\begin{{longtable}}{{{_format(paper, indices)}}}"]
        lines += [*(f"    {line}" for line in inside), r"\end{longtable}"]
        lines += [r"\endgroup"] if orders else []
    return [*lines, *_notes(paper)]


def _notes(paper: Paper) -> list[str]:
    """The line of the notes below a table, where it has some."""
    said = " ".join(map(_text, (*paper.blanks, *paper.notes)))
    return [rf"{{\footnotesize\noindent\raggedright {said}\par}}"] if said else []


def _type(paper: Paper, parts: Sequence[Sequence[int]]) -> list[str]:
    """Give the size of type and the gaps in which a table's parts fit their line."""
    if _is_wide(paper, parts):
        return [r"\footnotesize", r"\setlength{\tabcolsep}{3pt}"]
    small = _characters(paper, parts) > LINE
    return [r"\small", r"\setlength{\tabcolsep}{4pt}"] if small else []


def _is_wide(paper: Paper, parts: Sequence[Sequence[int]]) -> bool:
    """Say whether a table takes both columns of a page."""
    return max(map(len, parts), default=0) > WIDE or _characters(paper, parts) > SMALL_LINE


def _characters(paper: Paper, parts: Sequence[Sequence[int]]) -> int:
    """Count the characters of the widest part's lines, with two for each gap."""
    rows = [*printed(paper)]
    heads = [column.heading for column in paper.columns]
    texts = zip(*(words for words, _ in rows), strict=True)
    named = sum(max(map(len, column)) for column in texts)
    numbers = [
        max(len(head.text), len(head.unit) + 2, *(len(cells[i]) for _, cells in rows)) + 2
        for i, head in enumerate(heads)
    ]
    return named + max((sum(numbers[i] for i in part) for part in parts), default=0)


def _format(paper: Paper, indices: Sequence[int]) -> str:
    return f"@{{}}{'l' * len(paper.words)}{'r' * len(indices)}@{{}}"


def _heads(paper: Paper, indices: Sequence[int]) -> list[str]:
    """The rows of headings: of groups, of columns, and their units."""
    columns = [paper.columns[i] for i in indices]
    heads = [_text(column.heading.text) for column in columns]
    units = [f"({_unit(c.heading.unit)})" if c.heading.unit else "" for c in columns]
    return [
        *_groups(paper, columns),
        _row([*(_text(word) for word in paper.words), *heads]),
        *([_row([*[""] * len(paper.words), *units])] if any(units) else []),
    ]


def _body(paper: Paper, indices: Sequence[int]) -> list[str]:
    """The rows of numbers; our name and the best in heavy type."""
    body = []
    for place, (words, numbers) in enumerate(printed(paper)):
        named = [_text(word) for word in words]
        if place in paper.ours:
            name = paper.words.index("method")
            named[name] = rf"\textbf{{{named[name]}}}"
        cells = [_cell(numbers[i], (place, i) in paper.best) for i in indices]
        body += [r"\addlinespace"] if place in paper.apart else []
        body.append(_row([*named, *cells]))
    if paper.ends_in_sum:
        body.insert(-1, r"\midrule")
    return body


def _cell(number: str, best: bool) -> str:
    if not number:
        return "--"
    spaced = number.replace(",", r"\,")  # in no language's style of thousands
    return rf"\textbf{{{spaced}}}" if best else spaced


def _unit(unit: str) -> str:
    """Write a unit of `scale`; of MACs with the format of one, as in 10^6 MAC (fp32)."""
    power, _, rest = unit.partition(" ")
    if power in _POWERS:
        return rf"$10^{{{_POWERS[power]}}}$\,{_text(rest)}"
    return _UNITS.get(unit) or _text(unit)


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _groups(paper: Paper, columns: Sequence[Column]) -> Iterator[str]:
    """Yield the row of headings that columns share, and the rules below; nothing if none is."""
    at, cells, rules = len(paper.words) + 1, [""] * len(paper.words), []
    for group, members in groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        unit = f" ({_unit(group.unit)})" if group.unit else ""
        heading = _stacked(group.text, NARROW * width)
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{heading}{unit}}}")
        rules += [rf"\cmidrule(lr){{{at}-{at + width - 1}}}"] if group.text else []
        at += width
    if rules:
        yield _row(cells)
        yield " ".join(rules)


def _stacked(text: str, most: int) -> str:
    """Escape a heading; one longer than the columns below it stands in several lines."""
    lines = wrap(text, most, break_long_words=False) or [""]
    if len(lines) == 1:
        return _text(text)
    return r"\shortstack{" + r" \\ ".join(map(_text, lines)) + "}"


_LETTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "µ": r"$\mu$",
    "<": r"\textless{}",  # in fonts of TeX's own encoding these three are other letters
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{letter: f"\\{letter}" for letter in "{}$&#_%"},
}


def _text(text: str) -> str:
    """Escape a text for LaTeX."""
    quoted = re.sub(r'"([^"]*)"', r"``\1''", text)  # a quotation mark alone is a closing one
    return "".join(_LETTERS.get(letter, letter) for letter in quoted.replace('"', "''"))
