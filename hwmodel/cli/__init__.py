"""The command line. What a command needs is imported inside it, so that `--help` is instant."""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from errno import ENOENT
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from hwmodel import __version__
from hwmodel.cli.appendix import appendix
from hwmodel.cli.best import best
from hwmodel.cli.bundle import bundle
from hwmodel.cli.catalogue import catalogue
from hwmodel.cli.compare import compare
from hwmodel.cli.doctor import doctor
from hwmodel.cli.explain import explain
from hwmodel.cli.generate import generate
from hwmodel.cli.memory import memory
from hwmodel.cli.network import network, schema
from hwmodel.cli.options import command
from hwmodel.cli.plot import plot
from hwmodel.cli.report import report
from hwmodel.cli.reproduce import reproduce
from hwmodel.cli.running import INTERRUPTED, untold
from hwmodel.cli.screen import say
from hwmodel.cli.sensitivity import sensitivity
from hwmodel.cli.signs import pulse
from hwmodel.cli.sweep import sweep
from hwmodel.cli.tile import tile
from hwmodel.cli.train import train
from hwmodel.cli.usage import Plain, UsageError, usage_sentence
from hwmodel.cli.verify import verify
from hwmodel.errors import HwmodelError, SpecWarning, one_line
from hwmodel.specs.inputs import inputs_kept

__all__ = ["app", "main"]

PLAIN = "hwmodel.plain"  # how streams write what their encoding lacks
_late: list[tuple[int, threading.Timer]] = []  # ends that were hidden, and asked for again
AGAIN = 0.05  # s until an end that was asked for and hidden is asked for again
_ASKED = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}
_LETTERS = {"µ": "u", "→": "->", "≥": ">=", "≤": "<=", "±": "+-", "…": "...", "│": "|"}
_LETTERS |= {"\u00d7": "x", "\u2013": "-", "\u2014": "-", "\u2500": "-", "\u2501": "-"}
_LETTERS |= {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
_LETTERS |= dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))
CLOSED_PIPE = 141  # what shells report of a program that writes to a pipe without a reader

app = typer.Typer(
    name="hwmodel",
    help="What energy does this network cost on this chip, trained or run with this arithmetic?",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: in half the time of what draws frames
    pretty_exceptions_enable=False,
)


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


for _command in (
    compare,
    report,
    explain,
    memory,
    generate,
    sensitivity,
    reproduce,
    tile,
    sweep,
    best,
    train,
    plot,
    schema,
    verify,
    bundle,
    appendix,
    doctor,
):
    _short = str(_command.__doc__).splitlines()[0]
    app.command(short_help=_short, cls=Plain)(command(_command))

for _word, _what in (
    ("hardware", "chips: memories and prices"),
    ("method", "methods: widths and arithmetic"),
    ("accounting", "accountings: what is counted and how"),
    ("training", "training runs: epochs, images and batch"),
):
    app.add_typer(catalogue(_word, _what), name=_word)
app.add_typer(network, name="network")


def main() -> NoReturn:
    """Entry point: a user's mistake is one message on standard error and exit code 2."""
    lost = _opened()
    _prepare()
    try:
        code = _ended()
        if lost is not None and lost.tell():
            code = code or _told("standard output is closed: what was to be printed is lost")
        sys.stdout.flush()  # at the exit itself nothing could be said of a failure any more
    except BrokenPipeError:
        code = CLOSED_PIPE
    except OSError as error:  # a disk that is full, or a present folder that was removed
        nameless = "the present folder" if error.errno == ENOENT else "standard output"
        code = _told(f"{error.filename or nameless}: {error.strerror or error}")
    if code in (2, CLOSED_PIPE):
        _let_go()
    sys.exit(code)


def _opened() -> io.StringIO | None:
    """See that there are standard streams; what was printed where standard output is closed.

    The next file that is opened would have the number of a stream that is closed, and get its text.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = lost = io.StringIO()
        return lost
    return None


def _ended() -> int:
    """Do what the command line says; what a library makes of an end that was hidden is that end."""
    try:
        return _called()
    except Exception:
        if not _late:
            raise
        number, again = _late[-1]
        again.cancel()
        return _stopped() if number == signal.SIGINT else 128 + number


def _called() -> int:
    """Do what the command line says; the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", SpecWarning)
            warnings.showwarning = _warned  # type: ignore[assignment]
            with inputs_kept(), pulse():
                code = _parser()(prog_name="hwmodel", standalone_mode=False)
        if code == INTERRUPTED and untold:  # what Typer makes of Ctrl-C
            return _stopped()
        return code if isinstance(code, int) else 0
    except HwmodelError as error:
        return _stopped() if untold else _told(str(error))
    except UsageError as error:
        return _told(usage_sentence(error))
    except typer.Abort:  # Ctrl-C
        return _stopped()
    except SystemExit as end:  # the libraries below make 1 of a closed pipe
        if isinstance(end.__context__, BrokenPipeError):
            return CLOSED_PIPE
        raise


@cache
def _parser() -> Callable[..., Any]:
    """The parser of all commands, made once: it takes as long as a small report."""
    return typer.main.get_command(app)


def _told(mistake: str) -> int:
    """One line on standard error; the exit code of mistakes."""
    with suppress(OSError):  # nobody listens
        say(one_line(f"hwmodel: {mistake}"))
    return 2


def _stopped() -> int:
    _told(f"interrupted: {kept()}")
    return INTERRUPTED


def kept() -> str:
    """Say what is left of a command that was interrupted, and how it goes on."""
    from hwmodel.tiling.cache import folder

    whole = "no file is half written"
    if folder() is None:
        return f"{whole}, and the same command begins anew"
    return f"{whole}; tilings found are kept, and the same command goes on from them"


def _let_go() -> None:
    """Drop what standard output did not take, which would be tried again at the exit."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _prepare() -> None:
    """Streams that print what they can, and signals that take back what was being written.

    What goes to a pipe or a file is UTF-8 in every locale, as are the files that commands write.
    """
    codecs.register_error(PLAIN, _plainer)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            kept = stream.isatty() or "PYTHONIOENCODING" in os.environ
            encoding = stream.encoding if kept else "utf-8"
            stream.reconfigure(encoding=encoding, errors=PLAIN)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    for name in ("SIGTERM", "SIGHUP"):  # the second where there are terminals that hang up
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminated)
    sys.unraisablehook = _hidden


def _hidden(lost: Any) -> None:
    """Ask once more for an end that came where nothing can be raised, as in what C calls."""
    number = _ASKED.get(lost.exc_type)
    if number is None:
        sys.__unraisablehook__(lost)
    else:
        again = threading.Timer(AGAIN, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        _late.append((number, again))


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Write a letter that a terminal lacks as one that it has: uJ is an energy, ?J is none."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_LETTERS.get(letter, "?") for letter in letters), error.end


def _interrupted(number: int, frame: Any) -> NoReturn:
    untold.append(number)
    raise KeyboardInterrupt


def _warned(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """A doubt about a file is one line; what libraries warn of keeps its form."""
    if issubclass(category, SpecWarning):
        say(one_line(f"hwmodel: warning: {message}"))
    else:
        sys.stderr.write(warnings.formatwarning(message, category, *place[:2]))


def _terminated(number: int, frame: object) -> NoReturn:
    """Leave as on Ctrl-C: what was being written is taken back."""
    sys.exit(128 + number)
