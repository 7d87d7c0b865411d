"""What a notebook shows of results: tables of HTML, lines as a frame, figures by the front door."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Lines", "html_table"]


Line = TypeVar("Line")  # a named tuple
_LEFT_OUT = ("reason", "report", "optimal", "baseline")  # are for other views than a table


class Lines(Iterator[Line], Generic[Line]):
    """Lines of a comparison, computed one by one as they are asked for, and kept; and their frame.

    `for line in lines` gives the lines, each time from the first; `next(lines)` the first that was
    not asked for yet. All else that a `pandas.DataFrame` can be asked, as `lines["energy"]`,
    `lines.query(...)` and `len(lines)`, is asked of `table`, for which all are computed. `table` is
    a frame of its own each time: to change one, give it a name.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self._rest, self._taken = iter(lines), list[Line]()

    def __next__(self) -> Line:
        line = next(self._rest)
        self._taken.append(line)
        return line

    def __iter__(self) -> Iterator[Line]:
        at = 0
        while True:
            if at == len(self._taken):
                try:
                    next(self)
                except StopIteration:
                    return
            yield self._taken[at]
            at += 1

    def __len__(self) -> int:
        return len(self.every)

    def __getitem__(self, key: Any) -> Any:
        """As of the frame: a column, several, or the rows of a condition."""
        return self.table[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols that are asked of every object
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.table, name)

    def __dir__(self) -> list[str]:
        """List the names of a frame, too, so that a notebook completes them; compute nothing."""
        import pandas as pd

        return sorted({*super().__dir__(), *dir(pd.DataFrame)})

    @property
    def every(self) -> tuple[Line, ...]:
        """All lines, those that are still to be computed, too."""
        return tuple(iter(self))

    @property
    def table(self) -> pd.DataFrame:
        """A row a line: the columns of the CSV of `hwmodel compare` (docs/tables.md)."""
        import pandas as pd

        rows = self._rows()
        return pd.DataFrame([{k: v for k, v in row.items() if k not in _LEFT_OUT} for row in rows])

    def _rows(self) -> list[dict[str, Any]]:
        of_lines: Any = self.every
        return [line._asdict() for line in of_lines]

    def plot(self, kind: str = "", **look: Any) -> Any:
        """Draw them: `methods`, `passes` or `pareto`; see `hwmodel.plot`."""
        import hwmodel

        lines: Any = self
        return hwmodel.plot(lines, kind, **look)

    def _repr_html_(self) -> str:
        """Show energy and percentage of every line; whatever a name holds is text."""
        lines = self._rows()
        several = ("batch",) if len({of["batch"] for of in lines}) > 1 else ()
        names = ("network", "method", "hardware", "accounting", *several)
        head = (*names, "energy", "unit", "% of baseline")
        rows = []
        for of in lines:
            percent, energy = of["percent_of_baseline"], of["energy"]
            rows.append((
                *(of[name] for name in names),
                "" if energy is None else f"{energy:,.6g}", of["unit"],
                "" if percent is None else f"{percent:.2f}",
            ))  # fmt: skip
        return html_table("analytical, not measured", head, rows)


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as HTML; texts are escaped.

    >>> html_table("a < b", ["x"], [[1]])
    '<table><caption>a &lt; b</caption><tr><th>x</th></tr>\\n<tr><td>1</td></tr></table>'
    """

    def row(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    lines = [row(head, "th"), *(row(cells, "td") for cells in rows)]
    return f"<table><caption>{escape(caption)}</caption>{chr(10).join(lines)}</table>"
