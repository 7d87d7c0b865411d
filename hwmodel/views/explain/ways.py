"""In which of two ways the attention of a layer runs, and what both cost."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodel.model.report import Report
from hwmodel.views.explain.lines import energy

__all__ = ["ways_lines"]


def ways_lines(report: Report, layer: str) -> Iterator[str]:
    """Say in which way the block of attention runs that a layer belongs to; nothing for others."""
    for one in report.ways:
        if layer not in one.layers:
            continue
        runs = "as separate products" if one.is_separate else "in one kernel"
        costs = [
            f"{how} {'has no room' if paid is None else f'{energy(paid)} {report.unit}'}"
            for how, paid in (("in one kernel", one.kernel), ("as separate products", one.separate))
        ]
        yield f"## Attention of {one.scores}\n"
        alone = report.accounting.counting.residency == "none"
        why, where = "costs less", "in runs in which all attention is alike"
        if alone:
            where = "alone, what enters and leaves them in the outermost memory"
        if None in (one.kernel, one.separate):
            why = "is the only way"
        yield (
            f"It runs {runs}, which {why}. Its layers ({', '.join(one.layers)}) {where}: "
            f"{', '.join(costs)} (docs/model.md section 7).\n"
        )
