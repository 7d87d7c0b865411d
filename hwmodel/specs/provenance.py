"""Provenance of an output: the version, the inputs by their hashes, the command that makes it.

Nothing here depends on when, where or by whom the command was run, so that a rerun gives the same
bytes. A hash is of the values of an input as they were validated: comments, the order of keys,
units that mean the same and the file's path do not change it.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from hwmodel import __version__
from hwmodel.errors import DataError, nearest, printable
from hwmodel.specs.files import NamedSpec, SpecModel

__all__ = [
    "COLUMNS",
    "Command",
    "Input",
    "Provenance",
    "digest",
    "input_of",
    "input_of_file",
    "now",
]
__all__ += ["read_command", "written"]

COLUMNS = ("version", "inputs_sha256", "command")  # at the end of every row of a table
SHORT = 8  # hexadecimal digits of an input's hash in a table: enough to see a change


class Input(NamedTuple):
    """An input of a command: a spec or a file on which its numbers depend."""

    kind: str  # network, hardware, method, accounting, training, trace …
    name: str
    sha256: str  # of its canonical content, 64 hexadecimal digits

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Command(NamedTuple):
    """A command of hwmodel as its words; options that change no number are left out."""

    name: str  # report, compare …
    argument: str  # the network or table; "" if there is none
    options: tuple[tuple[str, str], ...]  # ("--hardware", "ascend"), … in the order written

    def __str__(self) -> str:
        """As one types it, quoted for a POSIX shell; what cannot be printed is written out."""
        words = [self.argument] if self.argument else []
        words += [word for pair in self.options for word in pair]
        return shlex.join(["hwmodel", self.name, *map(printable, words)])

    def all(self, option: str) -> list[str]:
        """Every value given to an option."""
        return [value for name, value in self.options if name == option]

    def one(self, option: str) -> str:
        """The value given to an option, the last if there are several; "" if there is none."""
        return next(reversed(self.all(option)), "")


class Provenance(NamedTuple):
    """Version, inputs and command of an output."""

    command: Command
    inputs: tuple[Input, ...]
    version: str = __version__
    date: str | None = None  # only where asked for

    @property
    def inputs_sha256(self) -> str:
        """The first digits of each input's hash, in the order of the inputs, joined by hyphens."""
        return "-".join(given.sha256[:SHORT] for given in self.inputs)

    @property
    def accounting(self) -> str:
        """Names of the accountings."""
        return ", ".join(given.name for given in self.inputs if given.kind == "accounting")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of `cells`."""
        return (*COLUMNS, "date") if self.date else COLUMNS

    @property
    def cells(self) -> tuple[str, ...]:
        """The last cells of every row."""
        stated = (self.version, self.inputs_sha256, str(self.command))
        return (*stated, self.date) if self.date else stated

    @property
    def document(self) -> dict[str, object]:
        """Return version, inputs and command as plain values."""
        stated: dict[str, object] = {
            "version": self.version,
            "accounting": self.accounting,
            "command": str(self.command),
            "inputs": [given._asdict() for given in self.inputs],
        }
        return stated | ({"date": self.date} if self.date else {})

    def __str__(self) -> str:
        """One line."""
        date = f", {self.date}" if self.date else ""
        return f"hwmodel {self.version}, inputs {self.inputs_sha256}{date}: {self.command}"


def digest(spec: SpecModel) -> str:
    """SHA-256 of a validated value, 64 hexadecimal digits.

    Of its JSON in ASCII with sorted keys and no spaces; fields that are as by default are left
    out, so that a new optional field changes no hash.
    """
    values = spec.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def input_of(spec: NamedSpec) -> Input:
    """Return a spec as an input."""
    return Input(spec.KIND, spec.name, digest(spec))


def input_of_file(kind: str, path: Path) -> Input:
    """Return a file that is no spec as an input, by its bytes. Raises: DataError."""
    try:
        return Input(kind, path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def now() -> str:
    """The time in UTC, to the second, as ISO 8601 writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written(name: str, argument: str, options: Mapping[str, object]) -> Command:
    """Make a command of the values of its options; None, empty lists and "" are left out."""
    pairs: list[tuple[str, str]] = []
    for option, value in options.items():
        several: Iterable[object] = value if isinstance(value, (list, tuple)) else [value]
        pairs += [(option, str(one)) for one in several if one not in (None, "")]
    return Command(name, argument, tuple(pairs))


def read_command(text: str, known: Mapping[str, Sequence[str]]) -> Command:
    """The command that a table states. Nothing is run, and no shell sees it.

    Args:
        known: options by the command they belong to; each takes one value.

    Raises: DataError for what is no such command, DataError for an option it does not have.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise DataError(f"command {text!r}: cannot be read: {error}") from None
    if len(words) < 2 or words[0] != "hwmodel" or words[1] not in known:
        of = ", ".join(f"hwmodel {name}" for name in known)
        raise DataError(f"command {text!r}: is none of {of}")
    name, rest = words[1], words[2:]
    argument = rest.pop(0) if rest and not rest[0].startswith("-") else ""
    for option in rest[::2]:
        if option not in known[name]:
            hint = nearest(option, known[name])
            raise DataError(f"command {text!r}: hwmodel {name} has no option {option} here; {hint}")
    if len(rest) % 2:
        raise DataError(f"command {text!r}: {rest[-1]} has no value")
    return Command(name, argument, tuple(zip(rest[::2], rest[1::2], strict=True)))
