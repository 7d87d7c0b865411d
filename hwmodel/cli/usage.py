"""What is said of a call that is no call: one line, in the parser's words."""

from __future__ import annotations

from typing import Any

import typer

from hwmodel.errors import nearest

__all__ = ["UsageError", "usage_sentence"]

# The base of all of the parser's complaints; it has been in two packages, but this is public.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def usage_sentence(error: Any) -> str:
    """A complaint of the parser as one sentence, with the nearest option where there is none."""
    path = error.ctx.command_path if error.ctx else "hwmodel"
    if hasattr(error, "possibilities") and hasattr(error, "option_name"):
        options = [word for p in error.ctx.command.params for word in p.opts if word[0] == "-"]
        return f"{error.option_name} is no option of {path}; {nearest(error.option_name, options)}"
    said = " ".join(error.format_message().split())
    return f"{path}: {said[:1].lower()}{said[1:].rstrip('.')}; see {path} --help"
