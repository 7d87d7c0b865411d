"""Tables made by this tool -> figures. Each figure takes the tidy records of a CSV."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import fsum
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from hwmodel.errors import DataError, HwmodelError, nearest
from hwmodel.evaluation import COLUMNS
from hwmodel.files import whole_file
from hwmodel.provenance import COLUMNS as PROVENANCE
from hwmodel.published import accuracy_percent
from hwmodel.quantity import ENERGY_UNITS
from hwmodel.views.colours import looks
from hwmodel.views.tables import COMPARED, NATURE, read_csv, scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "PLOTS", "draw", "draw_training", "read_records", "write_figure"]

FORMATS = ("png", "svg", "pdf")
_PART_COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb")

Record = dict[str, str]
_OF_COMPARISONS = ("methods", "pareto")


def read_records(path: Path) -> list[Record]:
    """Rows of a CSV that `compare` or `report` wrote. Raises: DataError."""
    header, records = read_csv(path)
    if header[: len(COMPARED)] != COMPARED and header[: len(COLUMNS)] != COLUMNS:
        raise DataError(f"{path}:1: has not the columns of a `compare` or a `report` CSV")
    if not records:
        raise DataError(f"{path}: has no rows")
    for line, record in enumerate(records, start=2):
        _check(record, f"{path}:{line}")
    _check_together(records, path)
    return records


def _check(record: Record, where: str) -> None:
    """Every cell is there, the energy is a finite number and its unit is known."""
    if None in record or None in record.values():
        raise DataError(f"{where}: has not as many cells as the header")
    if record["unit"] not in ENERGY_UNITS:
        raise DataError(f"{where}: unit {record['unit']!r} is none of {', '.join(ENERGY_UNITS)}")
    for field in ("energy", "percent_of_baseline", "source_percent"):
        text = record.get(field, "")
        try:
            value = float(text or 0)
        except ValueError:
            value = float("nan")
        if not 0 <= value < float("inf"):
            raise DataError(f"{where}: {field} {text!r} is no energy")


def _check_together(records: Sequence[Record], path: Path) -> None:
    """The rows are of one run: nothing that must not be added up or set side by side."""
    compared = "percent_of_baseline" in records[0]
    alike = ("network", "batch") if compared else ("network", "batch", "hardware", "method", "unit")
    for field in alike:
        if len(several := _unique(records, field)) > 1:
            raise DataError(f"{path}: has rows of more than one {field}: {', '.join(several[:3])}")
    parts = ("method", "hardware", "accounting", "mode")
    lines = {tuple(record.get(part, "") for part in parts) for record in records}
    if compared and len(lines) < len(records):
        raise DataError(f"{path}: has two rows of one method, chip, accounting and mode")


def draw(records: Sequence[Record], path: Path, kind: str | None = None) -> None:
    """Write a figure; the ending of `path` says in which format.

    Args:
        kind: a name of `PLOTS`; by default "methods" for a comparison and "layers" for a report.

    Raises: HwmodelError for an unknown kind or format, DataError where the table has not what
        the figure shows.
    """
    _ending(path)
    compared = "method" in records[0] and "percent_of_baseline" in records[0]
    kind = kind or ("methods" if compared else "layers")
    if kind not in PLOTS:
        raise HwmodelError(f"no plot is called {kind!r}: {nearest(kind, PLOTS)}")
    if (kind in _OF_COMPARISONS) != compared:
        needed = "compare" if kind in _OF_COMPARISONS else "report"
        raise DataError(f"a plot of {kind} needs a CSV of `hwmodel {needed}`")
    stamp = [records[0].get(column) or "" for column in PROVENANCE]
    write_figure(lambda: PLOTS[kind](records), path, stamp)


def write_figure(made: Callable[[], Figure], path: Path, stamp: Sequence[str] = ()) -> None:
    """Make a figure in the style of all of them and write it; the ending says in which format.

    Args:
        stamp: version, inputs and command that made what it shows, or nothing.

    Raises: HwmodelError for an unknown format, and what `made` raises.
    """
    ending = _ending(path)
    with _style(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font lacks, say: no matter of ours
        figure = made()
        if stamp:
            _stamp(figure, *stamp)
        _save(figure, path, ending, *stamp)


def _style() -> AbstractContextManager[None]:
    import matplotlib

    matplotlib.use("agg")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    return matplotlib.rc_context(
        {
            "text.parse_math": False,  # a name is a name, dollars and all
            "svg.hashsalt": "hwmodel",  # the same table gives the same bytes
            "svg.fonttype": "none",
            "pdf.fonttype": 42,
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
        }
    )


def _stamp(figure: Figure, version: str, inputs: str, command: str) -> None:
    """A small line at the foot of a figure: what made the table that it shows."""
    if version and command:
        text = f"hwmodel {version}: {command}\ninputs {inputs}"
        width = 2.2 * figure.get_figwidth() * 12  # characters of this size in a line
        lines = [part for line in text.split("\n") for part in wrap(line, int(width))]
        figure.supxlabel("\n".join(lines), x=0.01, ha="left", size=4.5, color="0.45")


def _save(
    figure: Figure, path: Path, ending: str, version: str = "", inputs: str = "", command: str = ""
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
        figure.savefig(stream, format=ending, dpi=200, metadata=metadata)


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _unique(records: Sequence[Record], field: str) -> list[str]:
    return list(dict.fromkeys(record[field] for record in records))


def methods_figure(records: Sequence[Record]) -> Figure:
    """Percent of the baseline: a group of bars per chip, a bar per method, published as marks."""
    groups = list(dict.fromkeys((r["hardware"], r["accounting"]) for r in records))
    methods, several = _unique(records, "method"), len(_unique(records, "accounting")) > 1
    figure, axes = _figure(max(6.4, 0.55 * len(groups) * len(methods) + 1.5), 3.6)
    colour = looks(methods)
    width = 0.84 / len(methods)
    published = None
    for i, method in enumerate(methods):
        for j, group in enumerate(groups):
            found = [
                r
                for r in records
                if r["method"] == method and (r["hardware"], r["accounting"]) == group
            ]
            if not found or not found[0]["percent_of_baseline"]:
                continue
            x = j + (i - (len(methods) - 1) / 2) * width
            percent = float(found[0]["percent_of_baseline"])
            source = float(found[0]["source_percent"] or 0)
            bar = axes.bar(x, percent, 0.92 * width, color=colour[method].colour)
            top = (x, max(percent, source))  # the number stands above the bar and above the mark
            axes.annotate(
                f"{percent:.3g}", top, (0, 4), textcoords="offset points", ha="center", size=7
            )
            if j == 0:
                bar.set_label(method)
            if source:
                (published,) = axes.plot(x, source, "_", color="k", ms=11, mew=1.4)
    if published:
        published.set_label("published")
    axes.set_xticks(
        range(len(groups)), [", ".join(group) if several else group[0] for group in groups]
    )
    axes.set_ylabel("energy, % of the baseline on the same chip")
    axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
    axes.grid(axis="y", color="0.9")
    _title(axes, records)
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def _title(axes: Axes, records: Sequence[Record]) -> None:
    first = records[0]
    mode = f"{first['mode']}, " if "mode" in first else ""
    axes.set_title(
        f"{first['network']}, {mode}batch {first['batch']}, "
        f"accounting {', '.join(_unique(records, 'accounting'))} ({NATURE})",
        loc="left",
        fontsize=8,
        color="0.3",
    )


def _stacked(
    records: Sequence[Record], along: str, parts: Callable[[Record], str], xlabel: str
) -> Figure:
    """Stacked bars of energy: one bar per value of the column `along`, cut by `parts`."""
    places = _unique(records, along)
    names = list(dict.fromkeys(parts(record) for record in records))
    found: dict[tuple[str, str], list[float]] = {}
    for record in records:
        found.setdefault((parts(record), record[along]), []).append(float(record["energy"]))
    sums = {name: [fsum(found.get((name, p), ())) for p in places] for name in names}
    totals = [fsum(column) for column in zip(*sums.values(), strict=True)]
    divisor, unit = scale(max(totals), records[0]["unit"])
    figure, axes = _figure(max(6.4, 0.32 * len(places) + 2.5), 3.6)
    bottom = [0.0] * len(places)
    for index, name in enumerate(names):
        heights = [energy / divisor for energy in sums[name]]
        shade = _PART_COLOURS[index % len(_PART_COLOURS)]
        hatch = "" if index < len(_PART_COLOURS) else "//"
        axes.bar(range(len(places)), heights, 0.75, bottom, color=shade, hatch=hatch, label=name)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    crowded = len(places) > 6
    axes.set_xticks(range(len(places)), places, rotation=60 if crowded else 0,
                    ha="right" if crowded else "center")  # fmt: skip
    axes.set_ylabel(f"energy, {unit}")
    axes.set_xlabel(xlabel)
    axes.grid(axis="y", color="0.9")
    _title(axes, records)
    figure.legend(loc="outside right upper", frameon=False, reverse=True)
    return figure


def layers_figure(records: Sequence[Record]) -> Figure:
    """Energy of each layer, cut by pass."""
    return _stacked(records, "layer", lambda r: r["pass"].replace("_", " "), _of(records))


def levels_figure(records: Sequence[Record]) -> Figure:
    """Energy at each level, cut by tensor; operations by pass are their own bar."""
    return _stacked(records, "level", lambda r: r["tensor"] or "operations", _of(records))


def _of(records: Sequence[Record]) -> str:
    return f"{records[0]['method']} on {records[0]['hardware']}"


def pareto_figure(records: Sequence[Record]) -> Figure:
    """Accuracy against energy: as traced, where the CSV has it, else as published."""
    figure, axes = _figure(6.4, 3.8)
    colour, found = looks(_unique(records, "method")), 0
    markers = dict(zip(_unique(records, "hardware"), "osD^vPX", strict=False))
    traced = any(record.get("energy_to_accuracy") for record in records)
    energies = [float(record["energy_to_accuracy"] or 0) for record in records] if traced else []
    divisor, unit = scale(max(energies), records[0]["unit"]) if traced else (1.0, "")
    for record in records:
        accuracy = record.get("trace_accuracy_percent") or accuracy_percent(
            record["network"], record["method"]
        )
        energy = record["energy_to_accuracy"] if traced else record["percent_of_baseline"]
        if not accuracy or not energy:
            continue
        found += 1
        x, y = float(energy) / divisor, float(accuracy)
        marker = markers.get(record["hardware"], "o")
        axes.plot(x, y, marker, color=colour[record["method"]].colour, ms=7)
        axes.annotate(f" {record['method']}", (x, y), (5, 3), textcoords="offset points", size=7)
    if not found:
        raise DataError("no row has both an energy and an accuracy, traced or published")
    for hardware, marker in markers.items():
        axes.plot([], [], marker, color="0.4", label=hardware)
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    to_reach = f"energy to the accuracy asked for, {unit}"
    axes.set_xlabel(to_reach if traced else "energy of an iteration, % of the baseline")
    axes.set_ylabel("test accuracy, %")
    axes.grid(color="0.9")
    axes.legend(frameon=False)
    _title(axes, records)
    return figure


def plain_ticks(axis: Axis) -> None:
    """Numbers on a logarithmic axis as they are: powers would need the mathematics that is off."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def draw_training(trace: Path, path: Path, kind: str = "") -> None:
    """Loss, accuracy and flip rates of a trace over its epochs. Raises: HwmodelError."""
    from hwmodel.trace import read_trace
    from hwmodel.trainer.plot import training_figure

    if kind not in ("", "training"):
        raise DataError(f"{trace}: a trace is drawn as kind training, not {kind}")
    _ending(path)
    found = read_trace(trace)
    write_figure(lambda: training_figure(found), path)


def _ending(path: Path) -> str:
    ending = path.suffix.removeprefix(".").lower()
    if ending not in FORMATS:
        raise HwmodelError(f"{path}: a figure ends in {', '.join('.' + f for f in FORMATS)}")
    return ending


PLOTS: dict[str, Callable[[Sequence[Record]], Figure]] = {
    "methods": methods_figure,
    "layers": layers_figure,
    "levels": levels_figure,
    "pareto": pareto_figure,
}
