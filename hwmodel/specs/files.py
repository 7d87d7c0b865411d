"""Names or paths -> validated values, and outputs that are written whole or not at all.

Every kind of spec is one pydantic model and one folder of bundled YAML files; wherever a name is
taken, so is a path. A mistake in a file becomes one sentence with file, line, field and rule.
"""

from __future__ import annotations

import os
import re
import secrets
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, Self, TypeVar
from unicodedata import category

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from hwmodel.errors import HwmodelError, NameUnknown, SpecError, SpecWarning, nearest
from hwmodel.specs.arguments import expect
from hwmodel.specs.inputs import read_text, refuse_input
from hwmodel.specs.mistakes import Contradiction, sentence, show
from hwmodel.specs.quick_yaml import quickly_read

__all__ = ["Flag", "Label", "Name", "Number", "SpecModel", "Text", "Version", "Whole", "bundled"]
__all__ += ["bundled_spec", "folder", "load", "read_yaml", "said_of", "scalar", "validate"]
__all__ += ["whole_file", "write"]


def _printable(text: str) -> str:
    """Refuse control characters, which a terminal would obey, and halves of a character."""
    for letter in "" if text.isprintable() else text:
        if letter not in "\n\t" and category(letter) in ("Cc", "Cs"):
            raise ValueError(f"has the control character {letter!r}")
    return text


# YAML 1.2 knows numbers, booleans and text; none of them may stand in for another.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = StrictInt
Flag = StrictBool
Text = Annotated[StrictStr, Field(min_length=1), AfterValidator(_printable)]
Label = Annotated[
    StrictStr,
    Field(
        pattern=r"^[^\n\t]+$",
        max_length=40,
        description="what tables and figures call it in place of its name",
    ),
    AfterValidator(_printable),
]
Name = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=80)]

MAX_SPEC_BYTES = 2**20  # of a spec or network file; some ten thousand layers
MAX_VALUES = 100_000  # of a file, names among them; reading them takes some seconds
MAX_DEPTH = 20  # of mappings and lists in each other
# Fields by which a file of another kind is known.
_ONLY_OF = {"levels": "hardware", "tensors": "method", "input": "network", "axes": "sweep"}
_ONLY_OF |= {"counting": "accounting", "based_on": "accounting", "epochs": "training"}
MAX_DIGITS = 500  # of a number; Python writes out at most 4300


def _version(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value != 1:
        raise ValueError(f"{value!r} is no version of the file format that is known here; use 1")
    return value


Version = Annotated[
    int, BeforeValidator(_version), WithJsonSchema({"const": 1, "description": "of the format"})
]


class SpecModel(BaseModel):
    """Base of everything read from a file: frozen, and no key is ignored."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )


class NamedSpec(SpecModel):
    """A spec with a file of its own: its format, its name, the sources of its numbers."""

    KIND: ClassVar[str]  # the word for it in messages and on the command line
    FOLDER: ClassVar[str]  # the folder of the bundled ones
    ELSEWHERE: ClassVar[Mapping[str, str]] = {}  # a name that none has -> how it is stated

    version: Version
    name: Name
    title: Text
    sources: dict[Name, Text] = Field(default={}, description="key -> publication")

    @model_validator(mode="after")
    def _see_sources(self) -> Self:
        """See that a list of sources lists some, and that each says more than its own key."""
        if "sources" in self.model_fields_set and not self.sources:
            raise Contradiction(
                "names no source; list them (key: publication) or leave it out", "sources"
            )
        own = next((key for key, text in self.sources.items() if text.strip() == key), None)
        if own is not None:
            raise Contradiction(
                f"{own!r} stands for itself: say which publication, file or choice it is",
                "sources",
                own,
            )
        return self

    @classmethod
    def as_now(cls, values: Any, path: Path) -> Any:
        """What a file says, in the form that files have now; `path` is for what is told of it."""
        return values

    def doubts(self) -> list[str]:
        """List what is possible but improbable in the file, to be told when it is read."""
        unknown = [text for text in _cited(self) if not _names_one(text, self.sources)]
        return [
            f"source {text!r} names none of the file's sources; {nearest(text, self.sources)}"
            for text in dict.fromkeys(unknown)
        ]


def _names_one(text: str, sources: Collection[str]) -> bool:
    """Whether a text refers to one of the sources; where none is listed, it stands for itself."""
    words = re.findall(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", text)
    return not sources or any(word in sources or word.rstrip(".") in sources for word in words)


def _cited(value: Any) -> Iterator[str]:
    """Yield the texts of the fields `source` of a spec and of its parts."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _cited(part)
    elif isinstance(value, SpecModel):
        for name in type(value).model_fields:
            part = getattr(value, name)
            if name == "source" and isinstance(part, str):
                yield part
            else:
                yield from _cited(part)


Spec = TypeVar("Spec", bound=NamedSpec)
Model = TypeVar("Model", bound=SpecModel)


def folder(name: str) -> Path:
    """Return the folder of bundled files of one kind, installed or in a source checkout.

    `hardware_specs` stands beside the package in a checkout and inside it in a wheel.
    """
    package = Path(__file__).parent.parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


@cache  # asked at every evaluation, and part of the program
def bundled(kind: type[NamedSpec]) -> Mapping[str, Path]:
    """Names of the bundled specs of one kind and their files, in order of name."""
    found = sorted(folder(kind.FOLDER).glob("*.yaml"), key=attrgetter("name"))
    return {path.stem: path for path in found}


def is_path(text: str) -> bool:
    """Whether a user's word is meant as a file and not as a bundled name."""
    return text.endswith((".yaml", ".yml")) or os.sep in text


def load(kind: type[Spec], what: str | Path | Spec, *, every: bool = False) -> Spec:
    """Return the spec of a bundled name or of a YAML file; or a spec as it is.

    Args:
        every: whether to warn of every doubt of a file; else of the first, and how many more.

    Raises: NameUnknown, SpecError; HwmodelError for what is neither.
    """
    if isinstance(what, kind):
        return what
    expect((str, Path), kind.KIND, what, f"a name, a path or a {kind.__name__}")
    text = str(what)
    if isinstance(what, Path) or is_path(text):
        return _named(kind, Path(text), every)
    found: Spec = _bundled(kind, text)
    return found


@cache
def _bundled(kind: type[NamedSpec], name: str) -> Any:
    """Return a bundled spec, read once: its file is part of the program."""
    known = bundled(kind)
    if name not in known:
        raise NameUnknown(kind.KIND, name, known, kind.ELSEWHERE.get(name.lower(), ""))
    return bundled_spec(kind, known[name])


def _named(kind: type[Spec], path: Path, every: bool) -> Spec:
    """Read the spec of a user's file, and warn of its doubts."""
    spec = validate(kind, kind.as_now(read_yaml(path), path), path)
    for doubt in said_of(spec.doubts(), kind, every):
        warnings.warn(f"{path}: {doubt}", SpecWarning, stacklevel=2)  # `load`: once a file
    return spec


def said_of(doubts: Sequence[str], kind: type[NamedSpec], every: bool) -> Sequence[str]:
    """Every doubt of a file, or the first with how many more there are and what lists them."""
    if every or len(doubts) < 2:
        return doubts
    return [f"{doubts[0]} (and {len(doubts) - 1} more: hwmodel {kind.KIND} check)"]


def read_yaml(path: Path) -> Any:
    """Read a YAML 1.2 document with the line of every key; refuse duplicate keys and tags.

    Raises: SpecError, with the line where the parser knows it.
    """
    return _parsed(read_text(path, MAX_SPEC_BYTES, SpecError), path)


def bundled_spec(kind: type[Model], path: Path) -> Model:
    """Read a bundled file, which is part of the program and no input of a command.

    Raises: SpecError, with the line, where somebody has changed it.
    """
    text = path.read_text(encoding="utf-8")
    try:
        return validate(kind, quickly_read(text), path)
    except (SpecError, ValueError):
        return validate(kind, _parsed(text, path), path)


def scalar(text: str) -> bool | int | float | str | None:
    """Read one value as a file states it: a number, true, false or null; all else is text.

    >>> [scalar(text) for text in ("2", "1e-3", "true", "null", "4 pJ/bit", "x0.5")]
    [2, 0.001, True, None, '4 pJ/bit', 'x0.5']
    """
    try:
        found = _parsed(text, Path("value"))
    except SpecError:
        return text
    for kind in (bool, int, float):  # the reader's own numbers remember how they were written
        if isinstance(found, kind):
            return kind(found)
    return None if found is None and text.lower() in ("null", "~") else text


def _parsed(text: str, path: Path) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="rt", pure=True)
    yaml.Scanner = _scanner()
    try:
        return yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem = (error.problem or error.context or "is not YAML").split("\n")[0]
        raise SpecError(f"{path}{line}: {problem}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        first = (str(error).splitlines() or ["nested too deeply"])[0]
        raise SpecError(f"{path}: is not YAML that can be read: {first}") from None


@cache
def _scanner() -> Any:
    """Return the class that gives the YAML reader its tokens, and refuses those that no spec has.

    That is anchors, aliases, tags and merges, as a spec says every value where it stands; deep
    nests, as the parser's time grows with the square of the depth; and more than it can hold.
    """
    from ruamel.yaml import tokens
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.scanner import RoundTripScanner

    blocks = (tokens.BlockMappingStartToken, tokens.BlockSequenceStartToken)
    starts = (*blocks, tokens.FlowMappingStartToken, tokens.FlowSequenceStartToken)
    ends = (tokens.BlockEndToken, tokens.FlowMappingEndToken, tokens.FlowSequenceEndToken)
    references = (tokens.AliasToken, tokens.AnchorToken, tokens.TagToken)

    class Scanner(RoundTripScanner):
        depth = values = 0

        def get_token(self) -> Any:
            token = super().get_token()
            self.depth += isinstance(token, starts) - isinstance(token, ends)
            self.values += isinstance(token, tokens.ScalarToken)
            problem = ""
            if self.depth > MAX_DEPTH:
                problem = f"is nested more than {MAX_DEPTH} deep"
            elif self.values > MAX_VALUES:
                problem = f"has more than {MAX_VALUES:,} names and values"
            elif isinstance(token, references):
                word = type(token).__name__.removesuffix("Token").lower()
                problem = f"has a YAML {word}; write the value out instead"
            elif isinstance(token, tokens.ScalarToken) and token.plain:
                problem = _wrong_scalar(token.value)
            if problem:
                raise MarkedYAMLError(problem=problem, problem_mark=token.start_mark)
            return token

    return Scanner


def _wrong_scalar(text: str) -> str:
    """Say what is wrong with a scalar without quotes: a merge, or too long a number; else ""."""
    if text == "<<":
        return "has a YAML merge; write the fields out instead"
    is_number = text.lstrip("+-.")[:1].isdigit() and " " not in text
    return f"has a number of more than {MAX_DIGITS} digits" * (is_number and len(text) > MAX_DIGITS)


def validate(kind: type[Model], values: Any, path: Path | str) -> Model:
    """Return a checked value of `kind`; the first mistake is one sentence.

    Raises: SpecError.
    """
    if not isinstance(values, dict):
        raise SpecError(f"{path}: holds {show(values)}, not 'field: value' lines")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        wanted = getattr(kind, "KIND", "")
        kinds = {_ONLY_OF[field] for field in _ONLY_OF.keys() & values.keys()}
        if wanted in _ONLY_OF.values() and len(kinds) == 1 and wanted not in kinds:
            raise SpecError(
                f"{path}: is a file of kind {kinds.pop()}, by its fields; one of kind {wanted} is "
                "expected here"
            ) from None
        raise SpecError(sentence(error, kind, values, path)) from None


@contextmanager
def whole_file(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Give a file handle whose content replaces `path` once everything has been written.

    Written beside the target, synced, then renamed over it: readers see the old file or the new.
    A link is followed, a file keeps its permissions, and what is no file (a device, a pipe) is
    written to as it is.

    Raises: HwmodelError where the place cannot be written.
    """
    binary = "b" in mode
    text: dict[str, Any] = {} if binary else {"encoding": "utf-8", "newline": ""}
    refuse_input(path)
    try:
        if path.exists() and not path.is_file():  # /dev/stdout may lead to a pipe without a path
            with path.open(mode, **text) as stream:
                yield stream
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f".{target.name[:80]}.{secrets.token_hex(8)}"
        try:  # named before it is there, so that Ctrl-C at any moment finds what to remove
            with temporary.open(mode.replace("w", "x"), **text) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o777)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise HwmodelError(f"{path}: cannot be written: {error.strerror or error}") from None


def write(path: Path, content: str | bytes) -> None:
    """Write a whole file or none. Raises: HwmodelError."""
    with whole_file(path, "w" if isinstance(content, str) else "wb") as stream:
        stream.write(content)
