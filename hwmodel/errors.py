"""The errors a user can cause or act on; everything else is a bug and keeps its traceback.

HwmodelError
├── SpecError      a file says something that cannot be: file, line, field, value, rule
├── NameUnknown    no such network, chip, method, accounting …: kind, name, nearest, all
├── ShapeError     two layers do not fit together: layer and both shapes
├── Infeasible     no tile fits a buffer: level, operand, missing bits
│   └── NoRoom     what a run keeps does not fit an outermost memory: bytes, largest tensors
├── TooLarge       more than is searched, or counted exactly: of what, how many, how many at most
└── DataError      a CSV or trace handed back to the tool is not one it wrote

SpecWarning        a file says something improbable: told once, nothing stops
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["DataError", "HwmodelError", "Infeasible", "Lack", "NameUnknown", "NoRoom", "ShapeError"]
__all__ += ["SpecError", "SpecWarning", "TooLarge", "many", "near", "nearest", "one_line"]
__all__ += ["printable"]

LONGEST = 1000  # characters of a message
NAMED = 4  # tensors, or layers, that a refusal names


def near(word: str, known: Iterable[str]) -> str:
    """The known word that was most likely meant; "" if none is close.

    >>> near("efficency", ["efficiency", "source"])
    'efficiency'
    """
    by_small = {name.lower(): name for name in sorted(map(str, known))}
    close = get_close_matches(str(word).lower(), by_small, n=1, cutoff=0.6)
    return by_small[close[0]] if close else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The hint that ends a message about an unknown word: the nearest one, or all of them.

    >>> nearest("efficency", ["efficiency", "source"])
    "did you mean 'efficiency'?"
    """
    names = sorted(map(str, known))
    if close := near(word, names):
        return f"did you mean {close!r}?"
    return f"known: {', '.join(names)}" if names else "none is known"


def many(count: int, thing: str) -> str:
    """Write a number of things in words.

    >>> many(1, "layer"), many(2000, "layer")
    ('1 layer', '2,000 layers')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def printable(text: str) -> str:
    """Write out the characters of a text that cannot be printed: a name may be of any bytes.

    >>> printable("a\\nb")
    'a\\\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(message: str) -> str:
    """Strip a message of line breaks and control characters, and cut it in the middle if long.

    A message may quote a user or a file, and a terminal obeys control characters.
    """
    text = printable(message)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 4 :]}"


def _again(kind: type[HwmodelError], args: tuple[Any, ...], held: dict[str, Any]) -> HwmodelError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(held)
    return error


class HwmodelError(Exception):
    """An error that the command line prints as one message, with exit code 2.

    Attributes:
        at: the way to the field of a file that is wrong, for whoever knows the file.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Come from another process as it was: by what it holds, not by how it was made."""
        return _again, (type(self), self.args, self.__dict__)

    at: tuple[str | int, ...] = ()


class SpecError(HwmodelError):
    """A field of a file breaks a rule; the message begins with file, line and field."""


class SpecWarning(UserWarning):
    """A field of a file is possible but improbable; the command line says so and goes on."""


class NameUnknown(HwmodelError):
    """A name that stands for nothing bundled and is no path to a file."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        known = sorted(known)
        hint = hint or ("one is expected here" if "," in name else nearest(name, known))
        try:
            if Path(f"{name}.yaml").is_file():
                hint = f"give the file that is here, {name}.yaml"
        except (OSError, ValueError):  # no name of a file, as one with a null in it
            pass
        super().__init__(f"no {kind} is called {name!r}: {hint}")
        self.kind, self.name, self.known = kind, name, known


class ShapeError(HwmodelError):
    """A layer cannot take the tensor it is given.

    Attributes:
        where: network, or file and line, filled in by whoever knows them.
        place: of the layer among those of its network, where it is known.
        others: what is wrong with further layers of the network, which this one does not explain.
    """

    where = ""
    place: int | None = None
    others: tuple[ShapeError, ...] = ()

    def __str__(self) -> str:
        own = f"{self.where}: {super().__str__()}" if self.where else super().__str__()
        told = "; ".join((own, *map(str, self.others[: NAMED - 1])))
        left = len(self.others) - (NAMED - 1)
        return f"{told} (and {left:,} more)" if left > 0 else told


class DataError(HwmodelError):
    """A table or trace that cannot be read back."""


class Infeasible(HwmodelError):
    """Not even the smallest tile fits.

    Attributes:
        level: name of the memory that is too small.
        operand: the tensor (or tensors, as "I and F") that must share it.
        missing_bits: how far the smallest tile exceeds the capacity [bit].
        where: layer, pass and chip, filled in by whoever knows them.
    """

    def __init__(self, level: str, operand: str, needs_bits: float, holds_bits: int) -> None:
        self.level, self.operand, self.where = level, operand, ""
        needs_bits = ceil(needs_bits)
        self.needs_bits, self.holds_bits = needs_bits, holds_bits
        self.missing_bits = needs_bits - holds_bits
        super().__init__()

    def __str__(self) -> str:
        missing_bytes = -(-self.missing_bits // 8)
        place = f"{self.where}: " if self.where else ""
        return (
            f"{place}no tile fits: one element of {self.operand} needs {self.needs_bits:,} bit, "
            f"{self.level} holds {self.holds_bits:,} ({missing_bytes:,} B too few)"
        )


class Lack(NamedTuple):
    """An outermost memory that has no room, when most is kept in it."""

    memory: str
    step: str  # a pass of a layer
    needs_bits: int
    holds_bits: int
    tensors: tuple[tuple[str, int], ...]  # (name, bits) of all that is kept, the largest first

    def __str__(self) -> str:
        needs, holds = -(-self.needs_bits // 8), self.holds_bits // 8
        named = [f"{name} {-(-bits // 8):,} B" for name, bits in self.tensors[:NAMED]]
        rest = len(self.tensors) - len(named)
        named += [many(rest, "more tensor")] if rest else []
        return (
            f"at {self.step}, {self.memory} has to hold {needs:,} B and holds {holds:,} "
            f"({needs - holds:,} B too few): {', '.join(named)}"
        )


class NoRoom(Infeasible):
    """What a run keeps at one time does not fit the outermost memories.

    Attributes:
        level: name of the memory that misses most.
        operand: names of the largest tensors that are kept there.
        lacks: every memory that has no room.
        peak_bytes: what the run keeps at most in all outermost memories.
    """

    def __init__(self, run: str, chip: str, lacks: Iterable[Lack], peak_bytes: int) -> None:
        self.run, self.chip, self.lacks = run, chip, tuple(lacks)
        self.peak_bytes = peak_bytes
        worst = max(self.lacks, key=lambda lack: lack.needs_bits - lack.holds_bits)
        largest = ", ".join(name for name, _ in worst.tensors[:NAMED])
        super().__init__(worst.memory, largest, worst.needs_bits, worst.holds_bits)

    def __str__(self) -> str:
        return f"{self.run} does not fit {self.chip}: {'; '.join(map(str, self.lacks))}"


class TooLarge(HwmodelError):
    """A problem is larger than what is searched, or counted exactly.

    Attributes:
        what: of which there are too many.
        where: layer, pass and chip, filled in by whoever knows them.
        advice: what to make smaller, said otherwise by whoever takes neither batch nor image.
    """

    advice = "make the batch or the image smaller"

    def __init__(self, what: str, number: int, most: int) -> None:
        self.what, self.number, self.most, self.where = what, number, most, ""
        super().__init__()

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.number:,} {self.what}, more than {self.most:,}; {self.advice}"
