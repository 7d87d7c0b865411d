"""Checks the arguments of the library's functions; a wrong one is one sentence."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, SupportsIndex

from pydantic import BaseModel

from hwmodel.errors import HwmodelError, one_line

__all__ = ["expect", "path_of", "quoted", "several", "whole", "word"]

LONGEST = 60  # characters of a value that is quoted


def quoted(value: object) -> str:
    """A value as a message quotes it: short, and on one line.

    >>> quoted(["vgg"])
    "['vgg']"
    """
    text = one_line(repr(value))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def expect(kind: type | tuple[type, ...], name: str, value: object, rule: str) -> None:
    """See that an argument is of a kind. Raises: HwmodelError, with what it must be."""
    if not isinstance(value, kind):
        raise HwmodelError(f"{name} {quoted(value)}: must be {rule}")


def whole(name: str, value: SupportsIndex, least: int, most: int) -> int:
    """A whole number, of NumPy, too; no float and no truth value. Raises: HwmodelError."""
    try:
        truth = type(value).__name__ in ("bool", "bool_")  # NumPy's, too
        number = None if truth else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise HwmodelError(f"{name} {quoted(value)}: must be a whole number from {least} to {most}")
    return number


def word(name: str, value: object, known: Collection[str]) -> None:
    """See that an argument is one of some words. Raises: HwmodelError."""
    if not isinstance(value, str) or value not in known:
        raise HwmodelError(f"{name} {quoted(value)}: must be one of {', '.join(known)}")


def path_of(name: str, value: str | Path) -> Path:
    """A path that may be given as text. Raises: HwmodelError."""
    expect((str, Path), name, value, "a path")
    if "\0" in str(value):
        raise HwmodelError(f"{name} {quoted(str(value))}: must be a path, which has no zero byte")
    return Path(value)


def several(name: str, value: Iterable[Any], rule: str) -> list[Any]:
    """The entries of a list. Raises: HwmodelError for one thing alone.

    Text and specs could be gone through, too, but letters and fields are not what is meant.
    """
    alone = isinstance(value, (str, bytes, Mapping, BaseModel)) or not isinstance(value, Iterable)
    if alone:
        raise HwmodelError(f"{name} {quoted(value)}: must be {rule}")
    return list(value)
