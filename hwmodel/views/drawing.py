"""Figures of results in Python: drawn from the same records as those of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hwmodel.errors import HwmodelError
from hwmodel.model.compare import Comparison
from hwmodel.model.notebook import Lines
from hwmodel.model.report import Report
from hwmodel.rerun.tables import comparison_table, report_table
from hwmodel.views.colours import looks_of
from hwmodel.views.figures.canvas import DRAFT, styled
from hwmodel.views.figures.records import Record, records_of
from hwmodel.views.plot import draw

__all__ = ["Drawing", "plot"]


class Drawing:
    """A figure; a notebook shows it, and `save` writes it."""

    def __init__(self, records: Sequence[Record], kind: str, specs: Any, look: dict[str, Any]):
        self._records, self._kind, self._specs, self._look = records, kind, specs, look

    def save(self, path: str | Path) -> str:
        """Write it; the ending, .png, .svg or .pdf, is the format. Return its caption.

        Raises: HwmodelError.
        """
        with looks_of(self._specs):
            return draw(self._records, Path(path), kind=self._kind, style=styled(**self._look))

    def _repr_svg_(self) -> str:
        with TemporaryDirectory() as folder:
            self.save(Path(folder) / "figure.svg")
            return (Path(folder) / "figure.svg").read_text(encoding="utf-8")


def plot(
    result: Report | Lines[Comparison] | Sequence[Report],
    kind: str = "",
    *,
    style: str = DRAFT,
    width: str = "",
    title: bool = True,
    font: str = "",
    ours: Sequence[str] = (),
) -> Drawing:
    """Draw a report, several side by side, or a comparison.

    Args:
        kind: as of `hwmodel plot --kind`; "" is `layers` of a report, `methods` of a comparison.
        style, width, title, font, ours: as of `hwmodel plot`.

    Raises: HwmodelError for what is neither, and for what is no style; kinds are seen when drawn.
    """
    look: dict[str, Any] = {
        "name": style,
        "width": width,
        "title": title,
        "font": font,
        "ours": ours,
    }
    styled(**look)
    if isinstance(result, Lines):
        lines = result.every
        reports = [line.report for line in lines if line.report is not None]
        records = records_of(comparison_table(lines))
    else:
        reports = [result] if isinstance(result, Report) else [*result]
        if not reports or not all(isinstance(one, Report) for one in reports):
            raise HwmodelError("a plot is of a Report, several of them, or what compare gives")
        records = [record for one in reports for record in records_of(report_table(one))]
    specs = [spec for one in reports for spec in (one.method, one.network)]
    return Drawing(records, kind, specs, look)
