"""Results in the formats that others read: one function a format, listed in `WRITERS`.

Markdown and LaTeX are tables for print; the others hold every row with every digit. None of them
holds a date that was not asked for, so that equal results are equal bytes.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hwmodel.errors import HwmodelError, nearest
from hwmodel.rerun.tables import Table
from hwmodel.specs.provenance import Provenance
from hwmodel.views.latex import environment
from hwmodel.views.paper import Paper, printed

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ENDINGS", "FIGURE", "FIGURES", "LISTING", "WRITERS", "Result", "Target", "targets"]

ENDINGS = {
    "markdown": (".md", ".markdown"),
    "latex": (".tex",),
    "csv": (".csv",),
    "json": (".json",),
    "parquet": (".parquet",),
    "excel": (".xlsx",),
}
FIGURE, FIGURES = "figure", (".png", ".svg", ".pdf")  # the format of a target, and its endings
LISTING = ("markdown", "latex", "json")  # texts that say themselves what is not counted
_PACKAGES = {"parquet": "pyarrow", "excel": "xlsxwriter"}  # the extra's name is the format's
_INPUTS = (".yaml", ".yml", ".onnx")  # endings of what a command reads
_EXCEL_ROWS = 2**20
_EPOCH = datetime(1980, 1, 1)  # when every workbook was made: equal results, equal bytes
_EXACT = 2**63  # integers below it, and above its negative, have a type of their own in Parquet


@dataclass(frozen=True)
class Result:
    """The result of a command, as every writer takes it."""

    table: Table  # tidy, without its provenance
    paper: Paper
    not_counted: Mapping[str, Sequence[str]]  # by accounting
    provenance: Provenance


class Target(NamedTuple):
    """The place to which a result goes, and its format."""

    format: str
    path: Path | None  # None: to standard output


def targets(csv: str, format: str, outputs: Sequence[str]) -> list[Target]:
    """Return the targets that --csv, --format and every -o ask for together.

    Raises: HwmodelError where they contradict one another, or a package is missing.
    """
    if format and len(outputs) > 1:
        raise HwmodelError(f"--format {format}: is of one -o; of several each ending says its own")
    asked = [("csv", csv, "--csv")] if csv else []
    asked += [(format, one, "-o") for one in outputs or ([""] if format else [])]
    found = [_target(*one) for one in asked]
    if sum(one.path is None for one in found) > 1:
        raise HwmodelError("standard output takes one table; write the other to a file, -o FILE")
    return found


def _target(format: str, output: str, option: str) -> Target:
    """Return the target that an option names. Raises: HwmodelError."""
    if format and format not in WRITERS:
        raise HwmodelError(f"--format {format!r}: {nearest(format, WRITERS)}")
    path = None if output in ("", "-") else Path(output)
    found = _by_ending(path, format, option) if path else format
    if not found:
        raise HwmodelError(f"-o -: needs a --format, {', '.join(WRITERS)}")
    package = _PACKAGES.get(found)
    if package and path is None:
        raise HwmodelError(f"--format {found}: is no text; name a file, -o FILE{ENDINGS[found][0]}")
    if package and find_spec(package) is None:
        raise HwmodelError(
            f"--format {found}: needs the package {package}: pip install 'hwmodel[{found}]'"
        )
    return Target(found, path)


def _by_ending(path: Path, format: str, option: str) -> str:
    """Return the format of a file, by its ending where none is stated. Raises: HwmodelError."""
    ending, said = path.suffix.lower(), f"{option} {path}"
    meant = next((name for name, endings in ENDINGS.items() if ending in endings), "")
    if path.is_dir():
        raise HwmodelError(f"{said}: is a folder, which --out names; {option} names a file")
    if ending in _INPUTS:
        raise HwmodelError(f"{said}: would be written over what looks like an input")
    if ending in FIGURES:
        if format:
            raise HwmodelError(f"{said}: ends as a figure does, which is asked for by -o {path}")
        return FIGURE
    if format and meant not in ("", format):
        stated = "which -o alone writes" if option == "--csv" else f"but --format is {format}"
        raise HwmodelError(f"{said}: ends as {meant} does, {stated}")
    if ending in (".html", ".htm"):
        raise HwmodelError(f"{said}: a page is asked for by --html {path}, where a command has one")
    if not format and not meant:
        tables = ", ".join(ends for endings in ENDINGS.values() for ends in endings)
        raise HwmodelError(
            f"{said}: the ending says what is written: {tables} (tables), {', '.join(FIGURES)} "
            f"(figures), as in -o {path.stem}.tex; or state a --format"
        )
    return format or meant


def csv(result: Result) -> str:
    """Write every row; provenance in the last columns."""
    return result.table.csv(result.provenance)


def json_(result: Result) -> str:
    """Write provenance, what is not counted, and every row as an object on its own line."""
    table = result.table.stamped(result.provenance)

    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    rows = ",\n  ".join(text(dict(zip(table.header, row, strict=True))) for row in table.rows)
    lines = [f"{text(key)}: {text(value)}" for key, value in _head(result).items()]
    lines.append(f'"rows": [\n  {rows}\n ]')
    return "{" + ",\n ".join(lines) + "}\n"


def _head(result: Result) -> dict[str, Any]:
    """Return what a file of rows says of all of them."""
    return {
        "provenance": result.provenance.document,
        "not_counted": dict(result.not_counted),
        "remarks": [*result.paper.notes, *result.paper.asides],
    }


def markdown(result: Result) -> str:
    """Write a table for print, its caption above, what is not counted below."""
    paper = result.paper
    heads = [*paper.words, *(", ".join(filter(None, _heads(paper, i))) for i in _indices(paper))]
    lines = [_markdown(paper.caption), "", _pipes(map(_markdown, heads))]
    lines.append(_pipes([":--"] * len(paper.words) + ["--:"] * len(paper.columns)))
    for place, (words, numbers) in enumerate(printed(paper)):
        named = [*map(_markdown, words)]
        if place in paper.ours:
            name = paper.words.index("method")
            named[name] = f"**{named[name]}**"
        best = [i for row, i in paper.best if row == place]
        cells = (f"**{text}**" if i in best else text or "-" for i, text in enumerate(numbers))
        lines.append(_pipes([*named, *cells]))
    for note in (*paper.notes, *paper.asides):
        lines += ["", _markdown(note)]
    for accounting, items in result.not_counted.items():
        lines += ["", f"Not counted under accounting {_markdown(accounting)}:", ""]
        lines += [f"- {_markdown(item)}" for item in items]
    made = result.provenance
    date = f", {made.date}" if made.date else ""
    lines += ["", f"Made by {_code(made.command)} (inputs {made.inputs_sha256}{date})."]
    return "\n".join(lines) + "\n"


def _indices(paper: Paper) -> range:
    return range(len(paper.columns))


def _heads(paper: Paper, index: int) -> Iterator[str]:
    """Yield the headings of a column's group and of the column, with their units."""
    column = paper.columns[index]
    for heading in (column.group, column.heading):
        yield ", ".join(filter(None, heading))


def _pipes(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    """Escape a text for Markdown."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    """Put a text between more backticks than it has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    ticks, space = "`" * (longest + 1), " " if longest else ""
    return f"{ticks}{space}{' '.join(text.split())}{space}{ticks}"


def latex(result: Result) -> str:
    """Write a LaTeX `table` with its caption; comments say what is not counted and what made it."""
    notes = [str(result.provenance), *result.paper.asides]
    for accounting, items in result.not_counted.items():
        notes += [f"not counted under accounting {accounting}:", *(f"  - {x}" for x in items)]
    return environment(result.paper, notes)


def parquet(result: Result) -> bytes:
    """Write every row in typed columns; provenance and what is not counted in the schema, too."""
    import pyarrow
    from pyarrow import parquet

    table = result.table.stamped(result.provenance)
    columns = zip(*table.rows, strict=True)
    arrays = [_arrow(list(column)) for column in columns]
    about = _head(result).items()
    metadata = {key: json.dumps(value, ensure_ascii=False) for key, value in about}
    found = pyarrow.table(dict(zip(table.header, arrays, strict=True)), metadata=metadata)
    stream = io.BytesIO()
    parquet.write_table(found, stream)
    return stream.getvalue()


def _arrow(values: list[Any]) -> pyarrow.Array:
    """Make a column of text, whole numbers (decimals beyond 64 bits), or numbers."""
    import pyarrow

    known = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in known):
        return pyarrow.array(values, pyarrow.string())
    if not known or any(isinstance(value, float) for value in known):
        return pyarrow.array(values, pyarrow.float64())
    if max(map(abs, known)) < _EXACT:
        return pyarrow.array(values, pyarrow.int64())
    wide = [None if value is None else Decimal(value) for value in values]
    return pyarrow.array(wide, pyarrow.decimal256(76, 0))


def excel(result: Result) -> bytes:
    """Write a sheet with every row, and one that says what they are. Raises: HwmodelError."""
    import xlsxwriter

    table = result.table.stamped(result.provenance)
    if len(table.rows) >= _EXCEL_ROWS:
        raise HwmodelError(f"{len(table.rows):,} rows; an Excel sheet has at most {_EXCEL_ROWS:,}")
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, {"in_memory": True}) as book:
        book.set_properties({"created": _EPOCH, "comments": str(result.provenance)})
        bold = book.add_format()
        bold.set_bold()
        rows, about = book.add_worksheet("rows"), book.add_worksheet("about")
        rows.freeze_panes(1, 0)
        for index, name in enumerate(table.header):
            column = [row[index] for row in table.rows]
            form = book.add_format({"num_format": _number_format(name, column)})
            rows.set_column(index, index, _width(name, column))
            rows.write_string(0, index, name, bold)
            for line, value in enumerate(column, start=1):
                if isinstance(value, str):
                    rows.write_string(line, index, value)  # never a formula or a link
                elif isinstance(value, (int, float)):
                    rows.write_number(line, index, value, form)
        about.set_column(0, 0, 30)
        about.set_column(1, 1, 100)
        for line, (what, text) in enumerate(_about(result)):
            about.write_string(line, 0, what, bold)
            about.write_string(line, 1, text)
    return stream.getvalue()


def _number_format(name: str, values: Sequence[object]) -> str:
    """Return the format in which a spreadsheet shows a column; its cells keep all digits."""
    floats = [value for value in values if isinstance(value, float)]
    if not floats:
        return "#,##0"
    small = max(map(abs, floats)) < 1
    return "0.00" if "percent" in name else "0.000E+00" if small else "#,##0.00"


def _width(name: str, values: Sequence[object]) -> int:
    """Return a column's width [characters]; a long command leaves the others on the screen."""
    longest = max((len(f"{v:,.2f}" if isinstance(v, float) else str(v)) for v in values), default=0)
    return min(max(len(name), longest) + 2, 40)


def _about(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the lines of the second sheet: name and text."""
    made = result.provenance
    yield "what", result.paper.caption
    yield "version", f"hwmodel {made.version}"
    yield "command", made.command
    if made.date:
        yield "date", made.date
    for given in made.inputs:
        yield f"sha256 of {given}", given.sha256
    for remark in (*result.paper.notes, *result.paper.asides):
        yield "remark", remark
    for accounting, items in result.not_counted.items():
        for item in items:
            yield f"not counted under {accounting}", item


WRITERS: dict[str, Callable[[Result], str | bytes]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": csv,
    "json": json_,
    "parquet": parquet,
    "excel": excel,
}
