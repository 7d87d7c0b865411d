"""What a call must be, beyond its options: each once and none empty; and what is said of others."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from hwmodel.errors import HwmodelError, nearest

__all__ = ["Plain", "UsageError", "usage_sentence"]

# The base of all of the parser's complaints; it has been in two packages, but this is public.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Plain(TyperCommand):
    """A command of which each option means what it says: given twice it would be the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line. Raises: HwmodelError for an option without a value, or with two."""
        values, _, order = self.make_parser(ctx).parse_args(list(args))
        for option in order:
            name = option.opts[0]
            if option.param_type_name != "option" or option.is_eager:
                if values.get(option.name) == "" and not option.required:
                    raise HwmodelError(f"{name} '': is empty; leave it out for its default")
                continue
            if order.count(option) > 1 and not (
                option.multiple or getattr(option, "is_flag", False)
            ):
                raise HwmodelError(f"{name} is given {order.count(option)} times; it has one value")
            given = values.get(option.name)
            if "" in (given if isinstance(given, list) else [given]):
                raise HwmodelError(f"{name} '': is empty; leave the option out for its default")
        return super().parse_args(ctx, args)


def usage_sentence(error: Any) -> str:
    """A complaint of the parser as one sentence, with the nearest option where there is none."""
    path = error.ctx.command_path if error.ctx else "hwmodel"
    if hasattr(error, "possibilities") and hasattr(error, "option_name"):
        options = [word for p in error.ctx.command.params for word in p.opts if word[0] == "-"]
        return f"{error.option_name} is no option of {path}; {nearest(error.option_name, options)}"
    said = " ".join(error.format_message().split())
    return f"{path}: {said[:1].lower()}{said[1:].rstrip('.')}; see {path} --help"
