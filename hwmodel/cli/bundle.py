"""bundle: a table and all that its command reads, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.screen import say
from hwmodel.errors import many, printable

__all__ = ["bundle"]


def bundle(
    table: Annotated[
        Path, typer.Argument(help="A CSV, JSON or Parquet file that a command wrote.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The zip file to write.")],
) -> None:
    """Put a table and the files that its command names into one file, to be verified anywhere.

    Files are looked for from the present folder, and refused if they have changed since the table
    was made. The bundle locks the versions of Python, hwmodel and numpy.
    """
    from hwmodel.rerun.bundle import bundle as bundled

    lock = bundled(table, output)
    for given in lock.inputs:
        typer.echo(f"{printable(given.named)}  {given.sha256}")
    say(printable(f"wrote {output}: {table.name}, {many(len(lock.inputs), 'input')}, a lock"))
