"""The command line. What a command needs is imported inside it, so that `--help` is instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hwmodel import __version__
from hwmodel.errors import HwmodelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, RenderableType

__all__ = ["app", "main"]

app = typer.Typer(
    name="hwmodel",
    help="What energy does this network cost on this chip, trained or run with this arithmetic?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Network = Annotated[str, typer.Argument(help="A bundled network, or a YAML file.")]
Accounting = Annotated[str, typer.Option(help="What is counted and how: a preset, or a YAML file.")]
Batch = Annotated[int, typer.Option(help="Images in the iteration.")]
Mode = Annotated[str, typer.Option(help="training (all passes) or inference (forward only).")]
Csv = Annotated[str, typer.Option("--csv", help="Write only this CSV; '-' is standard output.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder for the CSV and the figures.", show_default="reports")
]
REPORTS = Path("reports")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hwmodel {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


@app.command()
def compare(
    network: Network,
    hardware: Annotated[str, typer.Option(help="Chips, by name or file, separated by commas.")],
    methods: Annotated[str, typer.Option(help="Methods, by name or file, separated by commas.")],
    baseline: Annotated[str, typer.Option(help="Method that is 100 %.", show_default="fp")] = "",
    batch: Batch = 1,
    accounting: Accounting = "paper",
    mode: Mode = "training",
    csv: Csv = "",
    out: Out = None,
) -> None:
    """Methods side by side: energy, percent of the baseline, published figures where they exist."""
    from hwmodel.accounting import Accounting as Preset
    from hwmodel.comparison import compare as compared
    from hwmodel.evaluation import not_counted
    from hwmodel.files import load
    from hwmodel.method import Method
    from hwmodel.network import load_network
    from hwmodel.report import comparison_csv, comparison_tables

    chosen, preset = load_network(network), load(Preset, accounting)
    reference = load(Method, baseline or preset.baseline)
    lines = list(
        compared(
            chosen,
            _names(hardware, "--hardware"),
            _names(methods, "--methods"),
            baseline=reference,
            accounting=preset,
            batch=batch,
            mode=mode,  # type: ignore[arg-type]  # checked where it is used
        )
    )
    missing = not_counted(chosen, preset, mode)  # type: ignore[arg-type]
    stem = f"compare_{chosen.name}_{preset.name}_{mode}_batch{batch}"
    tables = comparison_tables(lines, reference.name, parts=_console().width >= 150)
    _deliver(tables, missing, comparison_csv(lines), csv, out, stem, ["methods"])


@app.command()
def report(
    network: Network,
    hardware: Annotated[str, typer.Option(help="The chip, by name or file.")],
    method: Annotated[str, typer.Option(help="The method, by name or file.")],
    batch: Batch = 1,
    accounting: Accounting = "paper",
    mode: Mode = "training",
    csv: Csv = "",
    out: Out = None,
) -> None:
    """One network on one chip under one method: by layer, pass, tensor and level."""
    from hwmodel.evaluation import evaluate
    from hwmodel.report import report_csv, report_tables

    found = evaluate(
        network,
        hardware,
        method,
        accounting=accounting,
        batch=batch,
        mode=mode,  # type: ignore[arg-type]  # checked where it is used
    )
    inputs = (found.network.name, found.hardware.name, found.method.name, found.accounting.name)
    stem = f"report_{'_'.join(inputs)}_{mode}_batch{batch}"
    tables, text = report_tables(found), report_csv(found)
    _deliver(tables, found.not_counted, text, csv, out, stem, ["layers", "levels"])


@app.command()
def plot(
    table: Annotated[Path, typer.Argument(help="A CSV that compare or report wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.png, .svg or .pdf.")],
    kind: Annotated[
        str, typer.Option(help="methods, layers or levels.", show_default="what the CSV is of")
    ] = "",
) -> None:
    """Draw a figure from a CSV made earlier."""
    from hwmodel.plot import draw, read_records

    draw(read_records(table), output, kind or None)
    _say(f"wrote {output}")


def _catalogue(word: str, what: str) -> typer.Typer:
    """The commands list, show and check for one kind of file."""
    group = typer.Typer(help=f"Bundled and own {what}.", no_args_is_help=True)

    @group.command("list", help=f"Bundled {word} names, one a line, with their titles.")
    def list_() -> None:
        from hwmodel.catalogue import titles

        known = titles(word)
        width = max(map(len, known))
        for name, title in known.items():
            typer.echo(f"{name:{width}}  {title}")

    @group.command(help=f"What one {word} consists of.")
    def show(name: Annotated[str, typer.Argument(help="A bundled name, or a YAML file.")]) -> None:
        from hwmodel.catalogue import description

        _show(description(word, name))

    @group.command(help=f"Whether a {word} file is right; if not, where it is wrong.")
    def check(file: Annotated[str, typer.Argument(help="A YAML file, or a name.")]) -> None:
        from hwmodel.catalogue import checked

        typer.echo(f"{file}: {word} {checked(word, file).name} is right")

    return group


for _word, _what in (
    ("hardware", "chips: memories and prices"),
    ("network", "networks: layers and shapes"),
    ("method", "methods: widths and arithmetic"),
    ("accounting", "accountings: what is counted and how"),
):
    app.add_typer(_catalogue(_word, _what), name=_word)


def _names(listed: str, option: str) -> list[str]:
    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise HwmodelError(f"{option} {listed!r}: names separated by commas, none of them empty")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise HwmodelError(f"{option} {listed!r}: {twice[0]} stands there twice")
    return names


def _deliver(
    tables: Iterable[RenderableType],
    not_counted: Sequence[str],
    text: str,
    csv: str,
    out: Path | None,
    stem: str,
    kinds: Sequence[str],
) -> None:
    """Tables to the screen, the CSV where it is wanted, figures beside the CSV in a folder."""
    from hwmodel.plot import draw, read_records
    from hwmodel.report import notes, write_text

    if csv == "-":
        sys.stdout.write(text)
        _say(notes(not_counted))
    else:
        _show(tables)
        typer.echo(notes(not_counted))
    if csv not in ("", "-"):
        write_text(Path(csv), text)
        _say(f"wrote {csv}")
    folder = out or (None if csv else REPORTS)
    if folder is None:
        return
    made = folder / f"{stem}.csv"
    write_text(made, text)
    records = read_records(made)
    for kind in kinds:
        for ending in ("png", "svg"):
            draw(records, folder / f"{stem}_{kind}.{ending}", kind)
    _say(f"wrote {made}, and {', '.join(kinds)} as .png and .svg beside it")


def _show(tables: Iterable[RenderableType]) -> None:
    console = _console()
    for table in tables:
        console.print(table)


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 200  # a pipe or a file has no width of its own; rows stay whole
    return console


def _say(message: str) -> None:
    typer.echo(message, err=True)


def main() -> NoReturn:
    """Entry point: a user's mistake is one message on standard error and exit code 2."""
    try:
        app()
    except HwmodelError as error:
        _say(f"hwmodel: {error}")
        sys.exit(2)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
        sys.exit(0)
    raise AssertionError("app() ends with SystemExit")
