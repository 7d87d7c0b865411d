"""explain: the whole derivation of one layer's energy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hwmodel.cli.screen import console, handed
from hwmodel.errors import HwmodelError
from hwmodel.rerun.asked import ExplainAsked

if TYPE_CHECKING:
    from hwmodel.model.report import Report
    from hwmodel.rerun.question import Question

__all__ = ["explain"]


def explain(
    options: ExplainAsked,
    share: Annotated[
        bool,
        typer.Option(
            "--share",
            help="Every row's share of the layer and of the whole, the baseline's beside it.",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write the Markdown to this .md file.")
    ] = None,
) -> None:
    """One layer's energy, formula by formula with its numbers, down to the report's rows."""
    if output is not None and output.suffix.lower() != ".md":
        raise HwmodelError(f"--output {output}: an explanation is written to a .md file")
    from hwmodel.rerun.question import question
    from hwmodel.views.colours import looks_of
    from hwmodel.views.explain.explanation import explanation
    from hwmodel.views.explain.share import shares

    asked = question(options)
    report, pass_ = asked.report(), options.pass_.replace("-", "_") or None
    with looks_of(asked.specs()):
        if share:
            text = shares(report, _baseline(asked, report), options.layer, pass_)
        else:
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


def _baseline(asked: Question, report: Report) -> Report:
    """The report of the accounting's baseline on the same chip; of no trace."""
    from dataclasses import replace

    from hwmodel.specs.files import load
    from hwmodel.specs.method import Method

    base = load(Method, report.accounting.baseline)
    if base.name == report.method.name:
        return report
    return replace(asked, methods=(base,), traces=()).report()
