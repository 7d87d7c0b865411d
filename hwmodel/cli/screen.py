"""What commands print and write: tables and notes on the screen, files whole or not at all."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from hwmodel.cli.signs import at, drawn, remaining, silent, within
from hwmodel.errors import HwmodelError, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from hwmodel.cli.options import Study
    from hwmodel.model.runs import Each, Reported, Run
    from hwmodel.rerun.asked import Asked
    from hwmodel.views.formats import Result, Target

__all__ = ["REPORTS", "Destination", "console", "deliver", "destination", "handed", "progress"]
__all__ += ["say", "shared_out", "show", "stem_of", "told", "watched"]

REPORTS = Path("reports")
LONGEST_STEM = 120  # characters of a file's name before its ending
_IN_STEM = {"network", "hardware", "methods", "method", "accounting", "mode", "batch", "table"}
LONG = 10.0  # seconds from which on answers are told as they come
WIDEST = 10_000  # characters of a line that nobody's screen breaks
PIECE = 2**20  # characters
Item = TypeVar("Item")


class Destination(NamedTuple):
    """Where the options of a command send its results."""

    printed: str  # format of what standard output gets in place of tables; "" is none
    files: tuple[Target, ...]  # tables
    figures: tuple[Path, ...]
    html: Path | None
    out: Path | None  # folder for the CSV and the figures; by default `REPORTS`
    date: str | None  # to be put into what is written
    style: str  # of figures; "" is the usual one
    label: str = ""  # of tables for print; "": of their names
    caption: str = ""

    @property
    def folder(self) -> Path | None:
        """Where the CSV and the figures go; None where single files are asked for instead."""
        single = self.printed or self.files or self.figures or self.html
        return self.out or (None if single else REPORTS)


def destination(to: Study, *, draws: bool = False) -> Destination:
    """The same from the options.

    Args:
        draws: whether figures are drawn of the table.

    Raises: HwmodelError where they contradict one another.
    """
    from hwmodel.cli.outputs import see_apart
    from hwmodel.specs.provenance import now
    from hwmodel.views.formats import ENDINGS, FIGURE, targets

    usual = {"format": "", "output": (), "html": "", "style": "", "label": "", "caption": ""}
    said = usual | dict(to)
    html = said["html"]
    if html and not html.lower().endswith((".html", ".htm")):
        raise HwmodelError(f"--html {html}: an HTML file ends in .html or .htm")
    if to.out is not None and not to.out.is_dir():
        if to.out.exists():
            raise HwmodelError(f"--out {to.out}: is a file; --out names a folder")
        if to.out.suffix.lower() in {*chain.from_iterable(ENDINGS.values()), ".html"}:
            option = "--html" if to.out.suffix.lower() == ".html" else "-o"
            raise HwmodelError(
                f"--out {to.out}: --out names a folder; one file is {option} {to.out}"
            )
    found = targets(to.csv, said["format"], said["output"])
    printed = next((one.format for one in found if one.path is None), "")
    files = tuple(one for one in found if one.path and one.format != FIGURE)
    figures = tuple(one.path for one in found if one.path and one.format == FIGURE)
    if figures and not draws:
        raise HwmodelError(f"-o {figures[0]}: no figure is drawn of this table here")
    page = Path(html) if html else None
    named = ["--csv"] * bool(to.csv) + ["-o"] * len(said["output"]), [one.path for one in found]
    see_apart([*zip(*named, strict=False), ("--html", page)])
    date = now() if to.date else None
    words = said["style"], said["label"], said["caption"]
    where = Destination(printed, files, figures, page, to.out, date, *words)
    if where.style:
        _see_style(where)
    _see_words(where)
    return where


def _see_style(where: Destination) -> None:
    """See that a style is one, and that something is drawn in it. Raises: HwmodelError."""
    from hwmodel.views.figures.canvas import styled

    styled(where.style)
    if not where.figures and where.folder is None:
        raise HwmodelError(f"--style {where.style}: no figure is drawn here; add -o FILE.pdf")


def _see_words(where: Destination) -> None:
    """See that label and caption are some, of a table that has them. Raises: HwmodelError."""
    formats = {where.printed, *(one.format for one in where.files)}
    for option, words, of, ending in (
        ("--label", where.label, {"latex"}, "tex"),
        ("--caption", where.caption, {"latex", "markdown"}, "tex or -o FILE.md"),
    ):
        if words and not formats & of:
            raise HwmodelError(f"{option} {words}: no table for print here; add -o FILE.{ending}")
    if where.label and not re.fullmatch(r"[A-Za-z0-9:._+/-]+", where.label):
        raise HwmodelError(
            f"--label {where.label!r}: letters, digits and : . _ + / - alone, as tab:energy"
        )


def stem_of(asked: Asked, *words: Sequence[str]) -> str:
    """Name the files of a question as those of no other are.

    The name is what they hold; where this is long, or files or further options are part of it, the
    beginning of the command's hash follows.

    Args:
        words: names of the inputs, alternatives joined by plus signs.
    """
    from hashlib import sha256

    from hwmodel.rerun.asked import command_line
    from hwmodel.specs.files import is_path

    stem = "_".join([asked.NAME, *map("+".join, words)])
    usual = {name: field.default for name, field in type(asked).model_fields.items()}
    others = [name for name, value in asked if name not in _IN_STEM and value != usual[name]]
    values = [value for name, value in asked if name in _IN_STEM]
    each = (value if isinstance(value, tuple) else (value,) for value in values)
    names = [str(name) for several in each for name in several]
    files = [name for name in names if is_path(name) or name.lower().endswith(".onnx")]
    if len(stem) <= LONGEST_STEM and not others and not files:
        return stem
    if len(stem) > LONGEST_STEM:
        counts = (f"+{len(several) - 1}" if several[1:] else "" for several in words)
        short = [f"{several[0]}{more}" for several, more in zip(words, counts, strict=True)]
        stem = "_".join([asked.NAME, *short])[:LONGEST_STEM]
    return f"{stem}_{sha256(command_line(asked).encode()).hexdigest()[:8]}"


def deliver(
    tables: Iterable[RenderableType | str],
    notes: Callable[[Mapping[str, Sequence[str]]], str],
    result: Result,
    to: Destination,
    *,
    stem: str,
    kinds: Sequence[str],
    page: str = "",
    ours: Sequence[str] = (),
) -> None:
    """Tables to the screen, the result where it is wanted, CSV and figures to a folder.

    Args:
        notes: of what is not counted; they end what is on the screen, or go to standard error
            where the result itself goes to standard output, without what that says already.
        stem: name of the files in the folder.
        kinds: figures to draw where no folder is named; in one that is, all that fit are drawn.
        page: what the HTML file is to hold, where one is asked for.
        ours: methods that figures of methods set off.
    """
    from hwmodel.rerun.tables import NATURE
    from hwmodel.views.formats import LISTING, WRITERS

    paper = result.paper
    if to.caption:  # of one's own, so what has to be said stands below
        said = f"{NATURE.capitalize()} (hwmodel {result.provenance.version})."
        paper = paper._replace(caption=to.caption, notes=(*paper.notes, said))
    result = replace(result, paper=paper._replace(label=to.label or paper.label))
    end = notes({} if to.printed in LISTING else result.not_counted)
    lost = told(tables, f"{end}\n{result.provenance}", lambda form: WRITERS[form](result), to)
    if to.html is not None:
        handed(page, to.html)
    _figures(result, to, kinds[0] if kinds else "", ours)
    if to.folder is not None:
        _to_folder(result, to, to.folder / stem, kinds, ours)
    if lost is not None:
        raise lost


def _figures(result: Result, to: Destination, kind: str, ours: Sequence[str]) -> None:
    """Draw the figures that are asked for one by one; without a kind, who asked draws them."""
    if not (to.figures and kind):
        return
    from hwmodel.views.figures.canvas import DRAFT, styled
    from hwmodel.views.figures.records import records_of
    from hwmodel.views.plot import draw

    records = records_of(result.table.stamped(result.provenance))
    draw(records, *to.figures, kind=kind, style=styled(to.style or DRAFT, ours=ours))
    for path in to.figures:
        say(printable(f"wrote {path}"))


def _to_folder(
    result: Result, to: Destination, stem: Path, kinds: Sequence[str], ours: Sequence[str]
) -> None:
    """Write the CSV and the figures, called by a stem."""
    from hwmodel.specs.files import write
    from hwmodel.views.formats import WRITERS

    made = stem.parent / f"{stem.name}.csv"
    write(made, WRITERS["csv"](result))
    from hwmodel.views.figures.canvas import DRAFT, styled
    from hwmodel.views.plot import draw, fitting, read_records

    records = read_records(made) if kinds else []
    if records and to.out:
        kinds = fitting(records)
    for kind in kinds:
        files = [stem.parent / f"{stem.name}_{kind}.{ending}" for ending in ("png", "svg")]
        draw(records, *files, kind=kind, style=styled(to.style or DRAFT, ours=ours))
    figures = f", and {', '.join(kinds)} as .png and .svg beside it" if kinds else ""
    say(printable(f"wrote {made}{figures}"))


def told(
    tables: Iterable[RenderableType | str],
    notes: str,
    written: Callable[[str], str | bytes],
    to: Destination,
) -> OSError | None:
    """The part of `deliver` that is tables: on the screen or standard output, and in files.

    Returns: why the screen took no more: a pipe that is closed, a full disk; None if it did.

    Args:
        written: the table in a format.
    """
    from hwmodel.specs.inputs import refuse_input

    named = [one.path for one in to.files if one.path]
    for path in (*named, *to.figures):  # before anything is written
        refuse_input(path)
    contents = [written(one.format) for one in to.files]
    lost: OSError | None = None
    if to.printed:
        text = str(written(to.printed))
        for start in range(0, len(text), PIECE):  # so that it is not there twice, as bytes, too
            sys.stdout.write(text[start : start + PIECE])
        say(notes)
    else:
        lost = _shown(tables, notes, bool(named or to.figures or to.html or to.folder))
    for path, content in zip(named, contents, strict=True):
        handed(content, path)
    return lost


def _shown(tables: Iterable[RenderableType | str], notes: str, more: bool) -> OSError | None:
    """Print tables and notes; return what broke, as `head` leaves a pipe.

    Args:
        more: whether there are files to be written, which do not depend on it. Else it is raised.
    """
    try:
        show(tables)
        typer.echo(notes)
        sys.stdout.flush()
    except (OSError, SystemExit) as error:  # a library makes an exit of a closed pipe
        broken = error if isinstance(error, OSError) else error.__context__
        if not (more and isinstance(broken, OSError)):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return broken
    return None


def handed(content: str | bytes, to: str | Path, more: str = "") -> None:
    """Content to a file, whole or not at all, or to standard output where `to` is "-"."""
    from hwmodel.specs.files import write

    if str(to) == "-":
        typer.echo(content, nl=False)
    else:
        write(Path(to), content)
        say(printable(f"wrote {to}{more}"))


def show(pieces: Iterable[RenderableType | str]) -> None:
    """Print tables, and text as it is: no line of a file is broken."""
    screen = console()
    for piece in pieces:
        if isinstance(piece, str):
            typer.echo(piece)
        else:
            _widen(screen, piece)
            _entitle(screen, piece)
            screen.print(piece)


def _widen(screen: Console, table: RenderableType) -> None:
    """See that no number is cut: the lines of a table that is too wide run over the edge."""
    from rich.table import Table

    if isinstance(table, Table):
        for column in table.columns:
            if column.justify == "right":
                texts = *map(str, column.cells), *str(column.header).split()
                column.min_width = max(map(len, texts), default=0)
        least = screen.measure(table, options=screen.options.update(max_width=WIDEST)).minimum
        screen.width = max(screen.width, least)


def _entitle(screen: Console, table: RenderableType) -> None:
    """Print a title whole where no screen is, before its table, which would break it at its own
    width."""
    from rich.table import Table

    if isinstance(table, Table) and table.title and not screen.is_terminal:
        typer.echo(str(table.title))
        table.title = None


def console() -> Console:
    """Standard output; a pipe or a file has no width of its own, and rows stay whole there."""
    from rich.console import Console

    screen = Console(highlight=False, markup=False)
    if not screen.is_terminal:
        screen.width = WIDEST
    return screen


def progress(
    items: Iterator[Item],
    total: int,
    what: str,
    alike: int = 0,
    said: Callable[[Item], str] | None = None,
) -> list[Item]:
    """All items; while they come, a bar on standard error, or a line of it now and then.

    Args:
        alike: items in a row that take about as long, as those of one chip; 0: all.
        said: what is said of an item when it comes, where all take long.
    """
    return list(_with_bar(items, total, what, alike, said))


def shared_out(jobs: int, what: str) -> Each:
    """Who computes the reports of a comparison: processes, with signs of life in between."""
    from hwmodel.cli.processes import shared

    def each(function: Callable[[Run], Reported], runs: Sequence[Run]) -> Iterator[Reported]:
        return iter(_with_bar(shared(function, runs, jobs), len(runs), what))

    return each


def watched(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The items one by one, with the bar of `progress` while they are worked on."""
    yield from _with_bar(iter(items), len(items), what)


def _told(items: Iterator[Item], total: int, what: str, alike: int) -> Iterator[Item]:
    """The items, each of which is said to be done."""
    at(what, 0, total, alike)
    for done, item in enumerate(items, start=1):
        yield item
        at(what, done, total, alike)


def _saying(
    items: Iterable[Item], said: Callable[[Item], str] | None, tell: Callable[[str], None]
) -> Iterator[Item]:
    """The items; what there is to be said of them is told from `LONG` on."""
    began = time.monotonic()
    for item in items:
        text = said(item) if said else ""
        if text and time.monotonic() - began > LONG and not silent():
            tell(printable(f"hwmodel: {text}"))
        yield item


def _with_bar(
    items: Iterator[Item],
    total: int,
    what: str,
    alike: int = 0,
    said: Callable[[Item], str] | None = None,
) -> Iterable[Item]:
    steps = _told(items, total, what, alike)
    if not sys.stderr.isatty():
        yield from _saying(steps, said, say)
        return
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Within(ProgressColumn):
        """What is left, and what moves within a step."""

        max_refresh = 0.5  # seconds

        def render(self, task: Task) -> Text:
            return Text("; ".join(filter(None, (remaining(), within()))))

    errors: Any = Console(stderr=True)
    usual = [x for x in Progress.get_default_columns() if not isinstance(x, TimeRemainingColumn)]
    columns = *usual, Within(table_column=Column(no_wrap=True))
    with drawn(), Progress(*columns, transient=True, console=errors) as bar:
        shown = bar.track(steps, total, description=what)
        yield from _saying(shown, said, lambda text: errors.print(Text(text)))


def say(message: str) -> None:
    """A message to the person, apart from what the command prints."""
    typer.echo(message, err=True)
