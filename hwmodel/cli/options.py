"""Options declared once: a model's fields become what the command line takes, and back.

A command's function takes models, as `asked: ReportAsked, to: Files`; `command` gives the parser a
function that takes each field as an option of its own, and checks what was given by the models.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from pydantic.fields import FieldInfo

from hwmodel.rerun.asked import Names, Options, Says, checked, flag, repeated, said_of

if TYPE_CHECKING:
    from hwmodel.views.figures.canvas import Style

__all__ = ["Drawn", "Files", "Ours", "Strict", "Study", "Tables", "bundled_names"]
__all__ += ["command"]


class Study(Options):
    """Where the tables and figures of a study go."""

    csv: Annotated[
        str,
        Says("Write every row as CSV, beside other files; '-' is standard output."),
    ] = ""
    out: Annotated[
        Path | None,
        Says("Folder for the CSV and the figures.", usual="reports, unless one file is asked for"),
    ] = None
    date: Annotated[bool, Says("Put the date (UTC) into what is written.")] = False


class Drawn(Options):
    """How a figure is drawn."""

    style: Annotated[
        str,
        Says(
            "draft (what made it at the foot), paper, neurips, icml, ieee or slides.",
            usual="draft; of reproduce slides",
        ),
    ] = ""
    width: Annotated[
        str, Says("Of the figure: 5.5in, 14cm, 140mm, 397pt.", usual="the style's")
    ] = ""
    no_title: Annotated[
        bool, Says("No caption above the drawing; it is said when the figure is written.")
    ] = False
    font: Annotated[str, Says("sans, or serif: like Times.", usual="sans")] = ""
    ours: Annotated[Names, Says("Methods to be set off, separated by commas.", names="method")] = ()

    def as_style(self, usual: str = "draft") -> Style:
        """Return the style, by default `usual`. Raises: HwmodelError."""
        from hwmodel.views.figures.canvas import styled

        return styled(
            self.style or usual,
            width=self.width,
            title=not self.no_title,
            font=self.font,
            ours=self.ours,
        )


class Tables(Study):
    """Where a table goes, and in which format."""

    format: Annotated[
        str,
        Says(
            "markdown or latex (tables for print), csv, json, parquet or excel (every row); only "
            "this goes to standard output, and no figures are drawn. With -o, to that file.",
            usual="the ending of -o",
        ),
    ] = ""
    label: Annotated[
        str, Says("Of a LaTeX table, which \\ref names.", usual="tab: and all names")
    ] = ""
    caption: Annotated[
        str, Says("Of a table for print, as plain text.", usual="what the figures are")
    ] = ""
    output: Annotated[
        tuple[str, ...],
        Says(
            "Write one file, .md, .tex, .csv, .json, .parquet or .xlsx, or a figure, .pdf, .svg or "
            ".png, and nothing else; repeatable.",
            short="-o",
        ),
    ] = ()


class Files(Tables):
    """Where a table goes, and a page of its own."""

    html: Annotated[
        str, Says("Write one HTML file that needs nothing beside it, and no figures.")
    ] = ""
    style: Annotated[
        str,
        Says(
            "Of figures: draft, paper, neurips, icml, ieee or slides; `plot` has more.",
            usual="draft",
        ),
    ] = ""


Ours = Annotated[
    str,
    typer.Option(
        help="Methods that are ours, separated by commas: heavy in tables for print and figures.",
        metavar="<str>",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse operators that have no model.")]


def bundled_names(word: str) -> Callable[[str], list[str]]:
    """For the `autocompletion` of an option or argument that takes names of one kind of file.

    Of names separated by commas the last is completed. Where no name fits, the shell goes on to
    names of files.
    """

    def offered(incomplete: str) -> list[str]:
        from hwmodel.views.catalogue import names

        before, comma, begun = incomplete.rpartition(",")
        return [before + comma + name for name in names(word) if name.startswith(begun)]

    return offered


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make the function that the parser calls, with each field of the models as an option."""
    hints = get_type_hints(function, include_extras=True)
    kinds: dict[str, type[Options]] = {}
    taken: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and issubclass(hint, Options):
            kinds[name] = hint
            taken += [_parameter(*field) for field in hint.model_fields.items()]
        else:
            taken.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))

    def called(**given: Any) -> None:
        models = {}
        for name, kind in kinds.items():
            mine = {field: given.pop(field) for field in kind.model_fields}
            models[name] = checked(
                kind, {f: value for f, value in mine.items() if value is not None}
            )
        function(**models, **given)

    called.__name__, called.__doc__ = function.__name__, function.__doc__
    called.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
    return called


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    """Describe a field to the parser: as a flag, or as text, which the model checks."""
    said, value = said_of(field), field.get_default()
    kind: Any = bool if field.annotation is bool else list[str] if repeated(field) else str
    default: Any = inspect.Parameter.empty
    if not field.is_required():
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        default = value if kind is bool else None if value in (None, ()) else text
        if default and repeated(field):
            default = [text]
    common: dict[str, Any] = {
        "help": said.help,
        "metavar": said.metavar or None,
        "show_default": said.usual or True,
        "autocompletion": bundled_names(said.names) if said.names else None,
    }
    if said.argument:
        of_parser = typer.Argument(**common)
    else:
        (word, *_) = get_args(field.annotation) or (field.annotation,)
        common["metavar"] = None if kind is bool else f"<{word.__name__.lower()}>"
        of_parser = typer.Option(flag(name), *filter(None, [said.short]), **common)
    if default is None:
        kind |= None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, of_parser],
    )
