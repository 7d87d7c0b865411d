"""What commands print and write: tables and notes on the screen, files whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from hwmodel.errors import HwmodelError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["REPORTS", "console", "deliver", "progress", "say", "show"]

REPORTS = Path("reports")
Item = TypeVar("Item")


def deliver(
    tables: Iterable[RenderableType | str],
    notes: str,
    text: str,
    *,
    csv: str,
    out: Path | None,
    stem: str,
    kinds: Sequence[str],
) -> None:
    """Tables to the screen, the CSV where it is wanted, figures beside the CSV in a folder.

    Args:
        text: the CSV.
        csv: "" for none, "-" for standard output (the notes then go to standard error), a path.
        out: folder for the CSV and the figures; by default `REPORTS` unless `csv` is given.
        stem: name of the files there.
        kinds: figures to draw where no folder is asked for; in `out` all that fit are drawn.
    """
    from hwmodel.views.plot import draw, fitting, read_records
    from hwmodel.views.tables import write_text

    if csv.endswith((".yaml", ".yml", ".onnx")):
        raise HwmodelError(f"--csv {csv}: would write a CSV over what looks like an input")
    if csv == "-":
        sys.stdout.write(text)
        say(notes)
    else:
        show(tables)
        typer.echo(notes)
    if csv not in ("", "-"):
        write_text(Path(csv), text)
        say(f"wrote {csv}")
    folder = out or (None if csv else REPORTS)
    if folder is None:
        return
    made = folder / f"{stem}.csv"
    write_text(made, text)
    records = read_records(made) if kinds else []
    if records and out:
        kinds = fitting(records)
    for kind in kinds:
        draw(records, *(folder / f"{stem}_{kind}.{ending}" for ending in ("png", "svg")), kind=kind)
    figures = f", and {', '.join(kinds)} as .png and .svg beside it" if kinds else ""
    say(f"wrote {made}{figures}")


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
