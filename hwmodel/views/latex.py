"""A table for print as LaTeX, with rules by booktabs and numbers by siunitx."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hwmodel.views.paper import Column, Paper, printed

__all__ = ["environment"]

SIDE_BY_SIDE = 2  # groups of columns
_NEEDS = r"needs \usepackage{booktabs,siunitx}"
_UNITS = {
    "J": r"\si{\joule}",
    "mJ": r"\si{\milli\joule}",
    "µJ": r"\si{\micro\joule}",
    "nJ": r"\si{\nano\joule}",
    "pJ": r"\si{\pico\joule}",
    "%": r"\%",
}
_POWERS = {"10¹²": "12", "10⁹": "9", "10⁶": "6", "10³": "3"}  # of MACs


def environment(paper: Paper, notes: Sequence[str]) -> str:
    """Write a complete `table` environment with caption and label, after comments.

    Groups of columns stand side by side two by two, the next two below, so that a page is wide
    enough.

    Args:
        notes: lines of the comments.
    """
    groups = list(dict.fromkeys(column.group for column in paper.columns))
    lines = [f"% {' '.join(note.splitlines())}" for note in (*notes, _NEEDS)]
    lines += [r"\begin{table}", r"  \centering", rf"  \caption{{{_text(paper.caption)}}}"]
    lines += [rf"  \label{{{paper.label}}}"]
    for at in range(0, len(groups), SIDE_BY_SIDE):
        lines += [r"  \par\medskip"] if at else []
        part = groups[at : at + SIDE_BY_SIDE]
        lines += _tabular(paper, [i for i, c in enumerate(paper.columns) if c.group in part])
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _tabular(paper: Paper, indices: Sequence[int]) -> list[str]:
    """Return the lines of a `tabular` with all columns of words and some columns of numbers."""
    columns = [paper.columns[i] for i in indices]
    rows = [(words, [numbers[i] for i in indices]) for words, numbers in printed(paper)]
    formats = [
        f"S[table-format={_digits([numbers[i] for _, numbers in rows])}.{column.decimals}]"
        for i, column in enumerate(columns)
    ]
    body = [
        _row([*map(_text, words), *(number or "{--}" for number in numbers)])
        for words, numbers in rows
    ]
    if paper.ends_in_sum:
        body.insert(-1, r"\midrule")
    heads = [f"{{{_text(column.heading.text)}}}" for column in columns]
    units = [f"{{({_unit(c.heading.unit)})}}" if c.heading.unit else "" for c in columns]
    inside = [
        r"\toprule",
        *_groups(paper, columns),
        _row([*(_text(word) for word in paper.words), *heads]),
        *([_row([*[""] * len(paper.words), *units])] if any(units) else []),
        r"\midrule",
        *body,
        r"\bottomrule",
    ]
    return [
        rf"  \begin{{tabular}}{{@{{}}{'l' * len(paper.words)}{''.join(formats)}@{{}}}}",
        *(f"    {line}" for line in inside),
        r"  \end{tabular}",
    ]


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
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{_text(group.text)}{unit}}}")
        rules += [rf"\cmidrule(lr){{{at}-{at + width - 1}}}"] if group.text else []
        at += width
    if rules:
        yield _row(cells)
        yield " ".join(rules)


def _digits(numbers: Sequence[str]) -> int:
    """Count the digits before the point of the longest printed number."""
    return max((len(number.split(".")[0]) for number in numbers), default=1) or 1


_LETTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "{}$&#_%"},
}


def _text(text: str) -> str:
    """Escape a text for LaTeX."""
    return "".join(_LETTERS.get(letter, letter) for letter in text)
