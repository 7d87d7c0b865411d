"""What is said of a call that is no call: one line, with the nearest option or command."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from hwmodel.errors import HwmodelError, nearest

__all__ = ["Commands", "UsageError", "usage_sentence"]

# The base of all of the parser's complaints; it has been in two packages, but this is public.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """A group of commands that names the nearest one, and shows its help if none is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the parser does; nothing at all is a call for help, with exit code 2."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called. Raises: HwmodelError."""
        word = args[0]
        if word not in self.commands and not word.startswith("-") and not ctx.resilient_parsing:
            raise HwmodelError(
                f"{word!r} is no command of {ctx.command_path}; {nearest(word, self.commands)}"
            )
        return super().resolve_command(ctx, args)


def usage_sentence(error: Any) -> str:
    """A complaint of the parser as one sentence in our words."""
    path = error.ctx.command_path if error.ctx else "hwmodel"
    if hasattr(error, "possibilities"):  # an option that there is not
        options = [word for p in error.ctx.command.params for word in p.opts if word[0] == "-"]
        return f"{error.option_name} is no option of {path}; {nearest(error.option_name, options)}"
    flag, value = _flag(error)
    if flag:
        return f"{flag} {value!r}: {flag} is a flag, which takes no value; see {path} --help"
    if hasattr(error, "option_name"):
        return f"{error.option_name}: needs a value; see {path} --help"
    option, value = _given(error)
    if value:
        return f"{option} {value!r}: {_rule(error.message)}"
    said = " ".join(error.format_message().split()).rstrip(".")
    said = re.sub(r"argument(s|\(s\)) \(", "argument (", said)  # as versions have it
    return f"{path}: {said[:1].lower()}{said[1:]}; see {path} --help"


def _flag(error: Any) -> tuple[str, str]:
    """The flag that was given a value, joined or apart, and the value; else two times nothing."""
    words = sys.argv[1:]
    option = getattr(error, "option_name", None)
    if option:
        joined = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
        return (option, joined[-1]) if joined and "not take" in error.message else ("", "")
    params = error.ctx.command.params if error.ctx else []
    flags = {word for p in params if getattr(p, "is_flag", False) for word in p.opts}
    surplus = re.search(r"unexpected extra argument.* \((.*)\)$", error.message)
    for before, word in pairwise(words):
        if surplus and before in flags and word in surplus[1].split():
            return before, word
    return "", ""


def _rule(said: str) -> str:
    """What the parser says of a value, which differs from version to version, in our words."""
    least = re.search(r"(?:x>=|greater than or equal to )(-?\d+)", said)
    if least:
        return f"must be {least[1]} or more"
    if "valid int" in said:
        return "must be a whole number"
    if "valid number" in said or "valid float" in said:
        return "must be a number"
    return said.replace("Input should be", "must be").rstrip(".")


def _given(error: Any) -> tuple[str, str]:
    """The option whose value is refused and the word it was given, which the error does not say."""
    words = sys.argv[1:]
    for option in getattr(getattr(error, "param", None), "opts", ()):
        joined = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
        apart = [word for before, word in pairwise(words) if before == option]
        if joined + apart:
            return option, (joined + apart)[-1]
    return "", ""
