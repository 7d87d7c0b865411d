"""What commands print and write: tables and notes on the screen, files whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from hwmodel.errors import HwmodelError, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from hwmodel.cli.options import Study
    from hwmodel.views.formats import Result, Target

__all__ = ["REPORTS", "Destination", "console", "deliver", "destination", "handed", "progress"]
__all__ += ["say", "show", "told"]

REPORTS = Path("reports")
PIECE = 2**20  # characters
Item = TypeVar("Item")


class Destination(NamedTuple):
    """Where the options of a command send its results."""

    target: Target | None  # one file or standard output, in one format
    html: Path | None
    out: Path | None  # folder for the CSV and the figures; by default `REPORTS`
    date: str | None  # to be put into what is written


def destination(to: Study) -> Destination:
    """The same from the options. Raises: HwmodelError where they contradict one another."""
    from hwmodel.specs.provenance import now
    from hwmodel.views.formats import target

    said = {"format": "", "output": "", "html": ""} | dict(to)
    html = said["html"]
    if html and not html.lower().endswith((".html", ".htm")):
        raise HwmodelError(f"--html {html}: an HTML file ends in .html or .htm")
    one = target(to.csv, said["format"], said["output"])
    return Destination(one, Path(html) if html else None, to.out, now() if to.date else None)


def deliver(
    tables: Iterable[RenderableType | str],
    notes: Callable[[Mapping[str, Sequence[str]]], str],
    result: Result,
    to: Destination,
    *,
    stem: str,
    kinds: Sequence[str],
    page: str = "",
) -> None:
    """Tables to the screen, the result where it is wanted, CSV and figures to a folder.

    Args:
        notes: of what is not counted; they end what is on the screen, or go to standard error
            where the result itself goes to standard output, without what that says already.
        stem: name of the files in the folder.
        kinds: figures to draw where no folder is named; in one that is, all that fit are drawn.
        page: what the HTML file is to hold, where one is asked for.
    """
    from hwmodel.specs.files import write
    from hwmodel.views.formats import LISTING, WRITERS

    written = WRITERS[to.target.format](result) if to.target else ""
    listed = to.target and to.target.path is None and to.target.format in LISTING
    end = notes({} if listed else result.not_counted)
    folder = told(tables, f"{end}\n{result.provenance}", written, to)
    if to.html is not None:
        handed(page, to.html)
    if folder is None:
        return
    made = folder / f"{stem}.csv"
    write(made, WRITERS["csv"](result))
    from hwmodel.views.plot import draw, fitting, read_records

    records = read_records(made) if kinds else []
    if records and to.out:
        kinds = fitting(records)
    for kind in kinds:
        draw(records, *(folder / f"{stem}_{kind}.{ending}" for ending in ("png", "svg")), kind=kind)
    figures = f", and {', '.join(kinds)} as .png and .svg beside it" if kinds else ""
    say(printable(f"wrote {made}{figures}"))


def told(
    tables: Iterable[RenderableType | str], notes: str, written: str | bytes, to: Destination
) -> Path | None:
    """The part of `deliver` before the folder, and the folder; None where none is wanted."""
    if to.target and to.target.path is None:
        text = str(written)
        for start in range(0, len(text), PIECE):  # so that it is not there twice, as bytes, too
            sys.stdout.write(text[start : start + PIECE])
        say(notes)
    else:
        show(tables)
        typer.echo(notes)
    if to.target and to.target.path is not None:
        handed(written, to.target.path)
    return to.out or (None if to.target or to.html else REPORTS)


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
            screen.print(piece)


def console() -> Console:
    """Standard output; a pipe or a file has no width of its own, and rows stay whole there."""
    from rich.console import Console

    screen = Console(highlight=False, markup=False)
    if not screen.is_terminal:
        screen.width = 200
    return screen


def progress(items: Iterator[Item], total: int, what: str) -> list[Item]:
    """All items, with a bar on standard error while they come, if somebody is watching."""
    if not sys.stderr.isatty():
        return list(items)
    from rich.console import Console
    from rich.progress import track

    errors: Any = Console(stderr=True)
    return list(track(items, what, total, transient=True, console=errors))


def say(message: str) -> None:
    """A message to the person, apart from what the command prints."""
    typer.echo(message, err=True)
