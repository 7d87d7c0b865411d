"""generate: a language model's tokens, one by one behind a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hwmodel.cli.options import Drawn
from hwmodel.cli.screen import handed, say, show
from hwmodel.errors import printable
from hwmodel.rerun.asked import GenerateAsked, Says

__all__ = ["generate"]


class GenerateOptions(GenerateAsked):
    """What is generated, and where tables and figures go."""

    csv: Annotated[str, Says("A row for each phase and part; '-' is standard output.")] = ""
    plot: Annotated[
        Path | None, Says("FILE.png, .svg or .pdf: energy a token over cache length and batch.")
    ] = None


def generate(options: GenerateOptions, drawn: Drawn) -> None:
    """Energy a generated token: prefill and decoding, by weights, cache, maps and scores."""
    from hwmodel.cli.outputs import see_apart
    from hwmodel.rerun.generations import generations
    from hwmodel.views.generation import generation_figure, generation_tables
    from hwmodel.views.plot import see_figure, write_figure

    style = drawn.as_style()
    if options.plot is not None:
        see_figure(options.plot)
    own = options.model_dump(include={*GenerateAsked.model_fields})
    asked = generations(GenerateAsked.model_validate(own))
    table = Path(options.csv) if options.csv not in ("", "-") else None
    see_apart([("--csv", table), ("--plot", options.plot)])  # what is read is known by now
    found = asked.found()
    if options.csv != "-":
        show(generation_tables(found))
    if options.csv:
        handed(asked.table(found).csv(asked.provenance()), options.csv)
    if options.plot is not None:
        write_figure(
            lambda own: generation_figure(found, own), options.plot, style=style,
            methods=[asked.method.name],
        )  # fmt: skip
        say(printable(f"wrote {options.plot}"))
