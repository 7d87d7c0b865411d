"""Names or paths -> validated values, and outputs that are written whole or not at all.

Every kind of spec is one pydantic model and one folder of bundled YAML files; wherever a name is
taken, so is a path. A mistake in a file becomes one sentence with file, line, field and rule.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from hwmodel.errors import HwmodelError, NameUnknown, SpecError, nearest

__all__ = ["Flag", "Name", "Number", "SpecModel", "Text", "Whole", "bundled", "folder", "load"]
__all__ += ["read_yaml", "validate", "whole_file"]

# YAML 1.2 knows numbers, booleans and text; none of them may stand in for another.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = StrictInt
Flag = StrictBool
Text = Annotated[StrictStr, Field(min_length=1)]
Name = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=80)]

MAX_SPEC_BYTES = 8 * 2**20  # a spec or network file larger than this is a mistake


class SpecModel(BaseModel):
    """Base of everything read from a file: frozen, and no key is ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class NamedSpec(SpecModel):
    """A file of its own: which format it has, what it is called, where its numbers come from."""

    KIND: ClassVar[str]  # the word for it in messages and on the command line
    FOLDER: ClassVar[str]  # the folder of the bundled ones

    version: Whole = Field(ge=1, le=1, description="version of the file format")
    name: Name
    title: Text
    sources: dict[Name, Text] = Field(default={}, description="key -> publication")


Spec = TypeVar("Spec", bound=NamedSpec)
Model = TypeVar("Model", bound=SpecModel)


def folder(name: str) -> Path:
    """Where bundled files of one kind are: in the installed package, or in a source checkout.

    `hardware_specs` stands beside the package in a checkout and inside it in a wheel.
    """
    package = Path(__file__).parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def bundled(kind: type[NamedSpec]) -> dict[str, Path]:
    """Names of the bundled specs of one kind and their files, in order of name."""
    return {path.stem: path for path in sorted(folder(kind.FOLDER).glob("*.yaml"))}


def is_path(text: str) -> bool:
    """Whether a user's word is meant as a file and not as a bundled name."""
    return text.endswith((".yaml", ".yml")) or os.sep in text


def load(kind: type[Spec], what: str | Path | Spec) -> Spec:
    """The spec behind a bundled name, a path to a YAML file, or a spec itself.

    Raises: NameUnknown, SpecError.
    """
    if isinstance(what, kind):
        return what
    text = os.fspath(what) if isinstance(what, (str, Path)) else repr(what)
    if isinstance(what, Path) or is_path(text):
        return _named(kind, Path(text))
    found: Spec = _bundled(kind, text)
    return found


@cache
def _bundled(kind: type[NamedSpec], name: str) -> Any:
    """A bundled spec, read once: its file is part of the program."""
    known = bundled(kind)
    if name not in known:
        raise NameUnknown(kind.KIND, name, known)
    return _named(kind, known[name])


def _named(kind: type[Spec], path: Path) -> Spec:
    return validate(kind, read_yaml(path), path)


def read_yaml(path: Path) -> Any:
    """A YAML 1.2 document with the line of every key; duplicate keys and tags are refused.

    Raises: SpecError, with the line where the parser knows it.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="rt", pure=True)
    try:
        raw = path.read_bytes()
        if len(raw) > MAX_SPEC_BYTES:
            raise SpecError(f"{path}: {len(raw):,} B; a spec has at most {MAX_SPEC_BYTES:,}")
        text = raw.decode("utf-8")
        _refuse_references(text, path)
        return yaml.load(text)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem = (error.problem or error.context or "is not YAML").split("\n")[0]
        raise SpecError(f"{path}{line}: {problem}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        first = (str(error).splitlines() or ["nested too deeply"])[0]
        raise SpecError(f"{path}: is not YAML that can be read: {first}") from None


def _refuse_references(text: str, path: Path) -> None:
    """Anchors, aliases and tags: a spec says every value where it stands."""
    from ruamel.yaml import YAML
    from ruamel.yaml.tokens import AliasToken, AnchorToken, TagToken

    for token in YAML(typ="rt", pure=True).scan(text):
        if isinstance(token, (AliasToken, AnchorToken, TagToken)):
            line = token.start_mark.line + 1
            word = type(token).__name__.removesuffix("Token").lower()
            raise SpecError(f"{path}:{line}: has a YAML {word}; write the value out instead")


def validate(kind: type[Model], values: Any, path: Path | str) -> Model:
    """A checked value of `kind`, or the first mistake as one sentence.

    Raises: SpecError.
    """
    if not isinstance(values, dict):
        raise SpecError(f"{path}: holds {_show(values)}, not 'field: value' lines")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise SpecError(_sentence(error, kind, values, path)) from None


def _sentence(error: ValidationError, kind: type[SpecModel], values: Any, path: Path | str) -> str:
    """`file:line: field: what is wrong, with the value and what is accepted`."""
    first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")  # typos first
    trail, value, line = _follow(first["loc"], values)
    where = f"{path}:{line}" if line else f"{path}"
    field = ".".join(trail) or "file"
    if first["type"] == "extra_forbidden":
        hint = nearest(trail[-1], _fields_at(kind, values, first["loc"]))
        return f"{where}: {field} is not a field; {hint}"
    if first["type"] == "missing":
        return f"{where}: {field} is missing"
    problem = first["msg"].removeprefix("Value error, ")
    shown = "" if first["type"] == "value_error" and _show(value) in problem else _show(value)
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {field} {shown}: {problem}{more}".replace(" :", ":")


def _follow(location: tuple[int | str, ...], values: Any) -> tuple[list[str], Any, int]:
    """Names along an error's location, the value there, and its line.

    A list entry is called by its `name` where it has one; steps that pydantic adds to tell
    alternatives apart do not stand in the file and are passed over.
    """
    trail: list[str] = []
    line = 0
    for step in location:
        marks = getattr(values, "lc", None)
        if isinstance(values, dict) and step in values:
            line = marks.key(step)[0] + 1 if marks else line
            values = values[step]
            trail.append(str(step))
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            line = marks.item(step)[0] + 1 if marks else line
            values = values[step]
            named = isinstance(values, dict) and isinstance(values.get("name"), str)
            trail.append(values["name"] if named else str(step + 1))
        elif step == location[-1] and isinstance(step, str) and step != "[key]":
            line = marks.line + 1 if marks and not line else line
            trail.append(step)
            values = None
    return trail, values, line


def _fields_at(kind: type[SpecModel], values: Any, location: tuple[int | str, ...]) -> list[str]:
    """Fields that the model owning the last step of `location` accepts.

    Asked of pydantic by a schema walk: definitions are searched for the model whose required
    fields the mapping there fits best, which is exact for the models of this package.
    """
    schema = kind.model_json_schema(by_alias=True)
    models = [schema, *schema.get("$defs", {}).values()]
    for step in location[:-1]:
        if isinstance(values, list) or (isinstance(values, dict) and step in values):
            values = values[step]  # type: ignore[index]
    keys = set(values) if isinstance(values, dict) else set()
    best = max(models, key=lambda m: len(keys & set(m.get("properties", {}))))
    return list(best.get("properties", {}))


def _show(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, int, float, bool)) or value is None else ""
    if isinstance(value, dict):
        text = "a mapping"
    elif isinstance(value, list):
        text = f"a list of {len(value)}"
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextmanager
def whole_file(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file handle whose content replaces `path` only once everything has been written.

    Written beside the target, synced, then renamed over it: readers see the old file or the new.

    Raises: HwmodelError where the place cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:80]}.", dir=path.parent)
        try:
            encoding = None if "b" in mode else "utf-8"
            newline = None if "b" in mode else ""
            with os.fdopen(handle, mode, encoding=encoding, newline=newline) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise HwmodelError(f"{path}: cannot be written: {error.strerror or error}") from None
