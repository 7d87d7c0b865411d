"""explain: the whole derivation of one layer's energy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hwmodel.cli.screen import console, handed
from hwmodel.errors import HwmodelError
from hwmodel.rerun.asked import ExplainAsked

__all__ = ["explain"]


def explain(
    options: ExplainAsked,
    output: Annotated[
        Path | None, typer.Option(help="Write the Markdown to this .md file.")
    ] = None,
) -> None:
    """One layer's energy, formula by formula with its numbers, down to the report's rows."""
    if output is not None and output.suffix.lower() != ".md":
        raise HwmodelError(f"--output {output}: an explanation is written to a .md file")
    from hwmodel.rerun.question import question
    from hwmodel.views.explain.explanation import explanation

    asked = question(options)
    report, pass_ = asked.report(), options.pass_.replace("-", "_") or None
    text = explanation(report, options.layer, pass_)
    text += f"\nMade by {asked.provenance()}\n"
    if output is not None:
        handed(text, output)
        return
    screen = console()
    if screen.is_terminal:
        from rich.markdown import Markdown

        screen.print(Markdown(text))
    else:
        typer.echo(text, nl=False)
