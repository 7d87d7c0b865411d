"""What a bundle says of itself: the file `lock.json` in it, and the bounds of a bundle."""

from __future__ import annotations

import platform
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from hwmodel import __version__
from hwmodel.specs.files import SpecModel, Text, Version

__all__ = ["LOCK", "MAX_BYTES", "MAX_FILES", "Held", "Input", "Lock", "Made", "made_here"]
__all__ += ["may_be_held"]

LOCK = "lock.json"
MAX_BYTES = 2**30  # of a bundle, and of all that it holds
MAX_FILES = 1000


class Made(SpecModel):
    """Versions of what a bundle was made with."""

    python: Text
    hwmodel: Text
    numpy: Text

    def __str__(self) -> str:
        return f"Python {self.python}, hwmodel {self.hwmodel}, numpy {self.numpy}"


class Held(SpecModel):
    """A file of a bundle."""

    file: Text = Field(description="its name in the bundle")
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="of its bytes")]


class Input(Held):
    """A file that the table's command names."""

    named: Text = Field(description="its name in the command, or in a file that this names")


class Lock(SpecModel):
    """The table of a bundle, its inputs, and what it was made with."""

    version: Version
    made_with: Made
    table: Held
    inputs: Annotated[tuple[Input, ...], Field(max_length=MAX_FILES)]


def made_here() -> Made:
    """Return the versions that are installed."""
    import numpy

    return Made(python=platform.python_version(), hwmodel=__version__, numpy=numpy.__version__)


def may_be_held(name: str) -> bool:
    r"""Whether a file may be called so in a bundle: it stays inside a folder on every system.

    >>> [may_be_held(name) for name in ("chips/a.yaml", "../a.yaml", "/a.yaml", "C:\\a.yaml")]
    [True, False, False, False]
    """
    inside = PurePosixPath(name).as_posix() == name and not name.startswith("/")
    parts = name.split("/")
    return inside and ".." not in parts and name.isprintable() and not {*name} & {*'\\:*?"<>|'}
