"""Where an output comes from: the version, the inputs by their hashes, the command that makes it.

Nothing here depends on when, where or by whom the command was run, so that a rerun gives the same
bytes. A hash is of the values of an input as they were validated: comments, the order of keys,
units that mean the same and the file's path do not change it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from hwmodel import __version__
from hwmodel.errors import DataError, nearest, printable
from hwmodel.specs.files import NamedSpec, SpecModel, folder

__all__ = [
    "COLUMNS",
    "Command",
    "Input",
    "Provenance",
    "code_digest",
    "digest",
    "input_of",
    "input_of_file",
    "now",
]
__all__ += ["read_command", "written"]

COLUMNS = ("version", "inputs_sha256", "command")  # at the end of every row of a table
_SHOWING = {"cli", "rerun", "views", "docs"}  # wings that decide no number
_DECIDING = {".py", ".yaml"}
SHORT = 8  # hexadecimal digits of an input's hash in a table: enough to see a change


class Input(NamedTuple):
    """One thing that the numbers depend on."""

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
    """What every output says of itself."""

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
        """What stands at the end of every row."""
        stated = (self.version, self.inputs_sha256, str(self.command))
        return (*stated, self.date) if self.date else stated

    @property
    def document(self) -> dict[str, object]:
        """All of it as plain values."""
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


@cache
def code_digest() -> str:
    """SHA-256 of all in this program that decides numbers: its code and bundled files."""
    package = Path(__file__).parent.parent
    places = [place for place in package.iterdir() if place.name not in _SHOWING]
    found = [p for place in places for p in (place, *place.rglob("*")) if p.suffix in _DECIDING]
    found += folder("hardware_specs").glob("*.yaml")
    each = {sha256(path.name.encode() + path.read_bytes()).hexdigest() for path in found}
    return sha256("".join(sorted(each)).encode()).hexdigest()


def digest(spec: SpecModel) -> str:
    """SHA-256 of a validated value, 64 hexadecimal digits.

    Of its JSON in ASCII with sorted keys and no spaces; fields that are as by default are left
    out, so that a new optional field changes no hash.
    """
    values = spec.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode("ascii")).hexdigest()


def input_of(spec: NamedSpec) -> Input:
    """A spec as an input."""
    return Input(spec.KIND, spec.name, digest(spec))


def input_of_file(kind: str, path: Path) -> Input:
    """A file that is no spec, by its bytes. Raises: DataError."""
    try:
        return Input(kind, path.name, sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def now() -> str:
    """The time in UTC, to the second, as ISO 8601 writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written(name: str, argument: str, options: Mapping[str, object]) -> Command:
    """A command from the values of its options; what is None, empty or "" is left out."""
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
