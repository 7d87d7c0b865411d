"""Tables of a sweep's results, on screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hwmodel.rerun.tables import scale
from hwmodel.vary.sweep.results import ENERGIES, Row, unit_of
from hwmodel.views.chip import size

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["GREEDY", "best_table", "greedy_points"]

GREEDY = (
    "tiles are greedy: each level's in turn, which may cost several times what optimal ones do; an "
    "accounting with counting.search optimal (as full has) gives those"
)


def greedy_points(rows: Sequence[Row]) -> str:
    """Say of how many of some points tiles are greedy; "" if of none, or if it is not known."""
    number = sum(row.get("tiles") == "greedy" for row in rows)
    return f"{number:,} of {len(rows):,} points: {GREEDY}" if number else ""


def best_table(rows: Sequence[Row], columns: Sequence[str], title: str) -> Table:
    """Tabulate rows in their order and columns as asked for; scale energies of one unit."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    units = {str(row["unit"]) for row in rows}
    same = len(units) == 1
    steps = {}
    for name in columns:
        values = [row[name] for row in rows if row[name] is not None]
        if name in ENERGIES and same and all(isinstance(v, int | float) for v in values):
            steps[name] = scale(max(values, default=0), *units)
    sizes: set[str] = set()
    shown = [name for name in columns if name != "unit" or not same]
    for name in shown:
        is_text = any(isinstance(row[name], str) for row in rows)
        unit = steps[name][1] if name in steps else unit_of(name, *units) if same else ""
        is_size = unit == "bit" and name.rpartition(".")[2].startswith("capacity")
        heading = f"{name}, {unit}" if unit and not (is_size and not is_text) else name
        table.add_column(heading, justify="left" if is_text else "right", overflow="fold")
        sizes |= {name} if is_size else set()
    for row in rows:
        table.add_row(
            *(
                size(row[name])
                if name in sizes and isinstance(row[name], int) and row[name]
                else _shown(row[name], *steps.get(name, (1,))[:1])
                for name in shown
            )
        )
    return table


def _shown(value: Any, divisor: float = 1) -> str:
    if isinstance(value, float) or (value is not None and divisor != 1):
        return f"{value / divisor:,.6g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
