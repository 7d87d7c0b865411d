"""list, show and check for every kind of file."""

from __future__ import annotations

from typing import Annotated

import typer

from hwmodel.cli.options import bundled_names
from hwmodel.errors import printable

__all__ = ["catalogue"]


def catalogue(word: str, what: str, *, plain: bool = True) -> typer.Typer:
    """The commands for one kind of file; show and check only where they are `plain`."""
    group = typer.Typer(help=f"Bundled and own {what}.", no_args_is_help=True)

    @group.command("list", help=f"Bundled {word} names, one a line, with their titles.")
    def list_() -> None:
        from hwmodel.views.catalogue import titles

        known = titles(word)
        width = max(map(len, known))
        for name, title in known.items():
            typer.echo(f"{name:{width}}  {title}")

    if not plain:
        return group

    named = typer.Argument(
        help="A bundled name, or a YAML file.",
        show_default=False,
        autocompletion=bundled_names(word),
    )

    @group.command("show", help=f"What one {word} consists of.")
    def show_(name: str = named) -> None:
        from hwmodel.views.catalogue import description

        typer.echo(description(word, name))

    @group.command(help=f"Whether a file of kind {word} is right; if not, where it is wrong.")
    def check(file: Annotated[str, typer.Argument(help="A YAML file, or a name.")]) -> None:
        from hwmodel.views.catalogue import checked

        typer.echo(f"{printable(file)}: {word} {checked(word, file).name} is right")

    return group
