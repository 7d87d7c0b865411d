"""Provenance of an output: the version, the inputs by their hashes, the command that makes it.

Nothing here depends on when, where or by whom the command was run, so that a rerun gives the same
bytes. A hash is of the values of an input as they were validated: comments, the order of keys,
units that mean the same and the file's path do not change it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from hwmodel import __version__
from hwmodel.errors import DataError, printable
from hwmodel.specs.files import NamedSpec, SpecModel, folder
from hwmodel.specs.inputs import note_input

__all__ = ["COLUMNS", "FORMAT", "SHORT", "Input", "Provenance", "code_digest", "digest", "input_of"]
__all__ += ["input_of_file", "now", "refuse_old"]

COLUMNS = ("version", "inputs_sha256", "command")  # at the end of every row of a table
FORMAT = 2  # of the tables of all commands (docs/tables.md)
# A column that tables of format 1 had, and one that stands in its place since.
_SINCE = {"level": "direction", "elementwise": "forward_product"}
# A constant that every study moves, as format 1 called it, and its path since.
_SINCE |= {"accounting.flip_rate": "accounting.extras.flip_rate"}
_SHOWING = {"cli", "rerun", "views", "docs"}  # wings that decide no number
_DECIDING = {".py", ".yaml"}
SHORT = 8  # hexadecimal digits of an input's hash in a table: enough to see a change


class Input(NamedTuple):
    """An input of a command: a spec or a file on which its numbers depend."""

    kind: str  # network, hardware, method, accounting, training, trace …
    name: str
    sha256: str  # of its canonical content, 64 hexadecimal digits

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Provenance(NamedTuple):
    """Version, inputs and command of an output."""

    command: str  # that makes the same, of options that change numbers
    inputs: tuple[Input, ...]
    version: str = __version__
    date: str | None = None  # only where asked for

    @property
    def task(self) -> str:
        """Name of the command: report, compare ..."""
        return self.command.split()[1]

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
        stated = (self.version, self.inputs_sha256, self.command)
        return (*stated, self.date) if self.date else stated

    @property
    def document(self) -> dict[str, object]:
        """Return version, inputs and command as plain values."""
        stated: dict[str, object] = {
            "version": self.version,
            "accounting": self.accounting,
            "command": self.command,
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
    """Return a spec as an input."""
    return Input(spec.KIND, spec.name, digest(spec))


def input_of_file(kind: str, path: Path) -> Input:
    """Return a file that is no spec as an input, by its bytes. Raises: DataError."""
    try:
        return Input(kind, path.name, sha256(note_input(path).read_bytes()).hexdigest())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def now() -> str:
    """The time in UTC, to the second, as ISO 8601 writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def refuse_old(path: Path, columns: Collection[str], command: str = "") -> None:
    """See that a table is of the present format; its columns tell.

    Args:
        command: that made the table, as it states it; "" if it does not.

    Raises: DataError, which says how to make the table anew.
    """
    if any(old in columns and new not in columns for old, new in _SINCE.items()):
        raise DataError(
            f"{path}: is a table of format 1, and format {FORMAT} is read: make it anew"
            + (f", {printable(command)}" if command else "")
        )
