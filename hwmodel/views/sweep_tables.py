"""Tables of a sweep's results, on screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hwmodel.sweep.results import Row

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["best_table"]


def best_table(rows: Sequence[Row], columns: Sequence[str], title: str) -> Table:
    """Rows as they come, columns as asked for."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in columns:
        is_text = any(isinstance(row[name], str) for row in rows)
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*(_shown(row[name]) for name in columns))
    return table


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
