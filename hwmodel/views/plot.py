"""Figures of tables that this tool made: the kinds there are, and how each is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodel.errors import DataError, HwmodelError, nearest
from hwmodel.graph.network import zoo
from hwmodel.specs.files import bundled, whole_file
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.provenance import COLUMNS as PROVENANCE
from hwmodel.views.colours import looks_of, named, specs_named
from hwmodel.views.figures.bars import (
    layers_figure,
    levels_figure,
    method_passes_figure,
    methods_figure,
    passes_figure,
)
from hwmodel.views.figures.canvas import (
    DRAFT,
    STYLES,
    Style,
    boxes_told,
    foot,
    settings,
    settle,
    title_of,
)
from hwmodel.views.figures.grouping import GROUPINGS
from hwmodel.views.figures.heat import level_tensor_figure
from hwmodel.views.figures.pareto import accuracy, pareto_figure
from hwmodel.views.figures.records import Page, Record, Table, read_records, table_of, unique
from hwmodel.views.figures.roofline import roofline_figure
from hwmodel.views.formats import FIGURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PLOTS", "draw", "draw_training", "fitting", "read_records"]
__all__ += ["see_figure", "write_figure"]

# What is drawn of which table. The first of a table is what is drawn when no kind is asked for.
PLOTS: dict[str, dict[Table, Callable[[Page], Figure]]] = {
    "methods": {"compare": methods_figure},
    "layers": {"report": layers_figure},
    "levels": {"report": levels_figure},
    "passes": {"compare": method_passes_figure, "report": passes_figure},
    "level-tensor": {"report": level_tensor_figure},
    "pareto": {"compare": pareto_figure},
    "roofline": {"report": roofline_figure},
}
# What is drawn of other tables, each by a function of its own.
OF_OTHERS = {
    "tornado": "a CSV of `hwmodel sensitivity`",
    "lines": "a table of `hwmodel sweep`",
    "heatmap": "a table of `hwmodel sweep`",
    "training": "a trace",
    "signals": "a trace",
    "study": "a study of `hwmodel train`",
    "measured": "a table of `hwmodel reproduce --measured`",
}


def fitting(records: Sequence[Record]) -> list[str]:
    """List the kinds of figures that can be drawn of a table alone."""
    kinds = [kind for kind, tables in PLOTS.items() if table_of(records) in tables]
    own = records[0]["network"] not in zoo() or records[0]["hardware"] not in bundled(Hardware)
    without = {"roofline"} if own else set()
    if all(accuracy(record) is None for record in records if "percent_of_baseline" in record):
        without.add("pareto")
    return [kind for kind in kinds if kind not in without]


def draw(
    records: Sequence[Record],
    *paths: Path,
    kind: str = "",
    style: Style = STYLES[DRAFT],
    network: str = "",
    hardware: Sequence[str] = (),
    layers_by: str = "",
    accuracies: Mapping[str, float] | None = None,
) -> str:
    """Write a figure; the ending of each path says in which format. Return its caption.

    Args:
        kind: a name of `PLOTS`; by default "methods" for a comparison and "layers" for a report.
        style: one of `STYLES`, or of `styled`.
        layers_by: how layers are put together, of `GROUPINGS`; "" is as fine as there is room.
        accuracies: of methods, by name, label or file [percent], before those traced or published.
        network, hardware: files of what is not bundled; a roofline needs the network's MACs and
            the chip's prices, which the table has not.

    Raises: HwmodelError for an unknown kind, style or format, DataError where the table has not
        what the figure shows.
    """
    for path in paths:
        _ending(path)
    table = table_of(records)
    kind = kind or next(kind for kind, tables in PLOTS.items() if table in tables)
    _see_kind(kind, table)
    if layers_by and kind != "layers":
        raise HwmodelError(f"--group {layers_by}: is of a figure of layers, not of {kind}")
    if layers_by and layers_by not in GROUPINGS:
        raise HwmodelError(f"no grouping is called {layers_by!r}: {nearest(layers_by, GROUPINGS)}")
    if accuracies and kind != "pareto":
        raise HwmodelError(f"--accuracy: is of a figure of kind pareto, not of {kind}")
    page = Page(records, style, network, hardware, layers_by=layers_by)
    stated = all(column in records[0] for column in PROVENANCE)
    stamp = ["; ".join(unique(records, column)) for column in PROVENANCE] if stated else []
    methods = unique(records, "method")
    made = PLOTS[kind][table]

    def figure(own: Style) -> Figure:
        given = {
            named([word], methods, "--accuracy")[0]: percent
            for word, percent in (accuracies or {}).items()
        }
        return made(page._replace(style=own, accuracies=given))

    return write_figure(figure, *paths, stamp=stamp, style=style, methods=methods)


def _see_kind(kind: str, table: Table) -> None:
    """See that a kind of figure is drawn of such tables. Raises: HwmodelError."""
    if kind in OF_OTHERS:
        raise DataError(
            f"a plot of {kind} is drawn of {OF_OTHERS[kind]}; this is a table of `{table}`"
        )
    if kind not in PLOTS:
        raise HwmodelError(f"no plot is called {kind!r}: {nearest(kind, PLOTS)}")
    if table not in PLOTS[kind]:
        fitting = ", ".join(kind for kind, tables in PLOTS.items() if table in tables)
        raise DataError(
            f"a plot of {kind} needs a CSV of `hwmodel {' or '.join(PLOTS[kind])}`; "
            f"of `{table}` there are {fitting}"
        )


def write_figure(
    made: Callable[[Style], Figure],
    *paths: Path,
    stamp: Sequence[str] = (),
    style: Style = STYLES[DRAFT],
    methods: Sequence[str] = (),
) -> str:
    """Make a figure in a style and write it; the endings say in which formats.

    Returns: the caption, which a style without titles does not draw.

    Args:
        made: the figure in a style, in which methods that are ours stand by name.
        stamp: version, inputs and command that made what it shows, or nothing.
        methods: that the figure shows; those that are ours are among them.

    Raises: HwmodelError for an unknown format, for what is ours and not shown, and what `made`
        raises.
    """
    endings = [_ending(path) for path in paths]
    command = stamp[-1] if stamp else ""
    with settings(style), boxes_told(*paths), looks_of(specs_named(command)):
        figure = made(style._replace(ours=named(style.ours, methods, "--ours")))
        settle(figure)
        if stamp and style.stamped:
            foot(figure, *stamp)
        for path, ending in zip(paths, endings, strict=True):
            _save(figure, path, ending, style.dpi, *stamp)
        return title_of(figure)


def _save(
    figure: Figure,
    path: Path,
    ending: str,
    dpi: int,
    version: str = "",
    inputs: str = "",
    command: str = "",
) -> None:
    """Write a figure with what made it among its metadata, and no date. Raises: HwmodelError."""
    tool = f"hwmodel {version}".rstrip()
    known: dict[str, dict[str, str | None]] = {
        "png": {"Software": tool, "Description": command, "Inputs": inputs},
        "svg": {"Creator": tool, "Description": command, "Identifier": inputs, "Date": None},
        "pdf": {"Creator": tool, "Subject": command, "Keywords": inputs, "CreationDate": None},
    }
    metadata = {key: value for key, value in known[ending].items() if value != ""}
    with whole_file(path, "wb") as stream:
        figure.savefig(stream, format=ending, dpi=dpi, metadata=metadata)


def draw_training(trace: Path, path: Path, kind: str = "", style: Style = STYLES[DRAFT]) -> str:
    """Draw a trace over its epochs: loss, accuracy and flips, or signals. Return its caption.

    Raises: HwmodelError.
    """
    from hwmodel.specs.trace import read_trace
    from hwmodel.views.figures.training import signals_figure, training_figure

    kinds = {"training": training_figure, "signals": signals_figure}
    if kind and kind not in kinds:
        raise DataError(f"{trace}: a trace is drawn as kind {' or '.join(kinds)}, not {kind}")
    _ending(path)
    found = read_trace(trace)
    return write_figure(
        lambda own: kinds[kind or "training"](found, own),
        path,
        style=style,
        methods=[found.run.method],
    )


def see_figure(path: Path) -> None:
    """See that a figure can have this name. Raises: HwmodelError."""
    _ending(path)


def _ending(path: Path) -> str:
    ending = path.suffix.removeprefix(".").lower()
    if f".{ending}" not in FIGURES:
        raise HwmodelError(f"{path}: a figure ends in {', '.join(FIGURES)}")
    return ending
