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

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    WithJsonSchema,
)

from hwmodel.errors import HwmodelError, NameUnknown, SpecError, nearest

__all__ = ["Flag", "Name", "Number", "SpecModel", "Text", "Version", "Whole", "alternatives"]
__all__ += ["bundled", "folder", "load", "read_yaml", "validate", "whole_file"]

# YAML 1.2 knows numbers, booleans and text; none of them may stand in for another.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = StrictInt
Flag = StrictBool
Text = Annotated[StrictStr, Field(min_length=1)]
Name = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=80)]

MAX_SPEC_BYTES = 2**20  # of a spec or network file; some ten thousand layers
MAX_DEPTH = 20  # of mappings and lists in each other


def _version(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value != 1:
        raise ValueError(f"{value!r} is no version of the file format that is known here; use 1")
    return value


Version = Annotated[
    int, BeforeValidator(_version), WithJsonSchema({"const": 1, "description": "of the format"})
]


class SpecModel(BaseModel):
    """Base of everything read from a file: frozen, and no key is ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class NamedSpec(SpecModel):
    """A file of its own: which format it has, what it is called, where its numbers come from."""

    KIND: ClassVar[str]  # the word for it in messages and on the command line
    FOLDER: ClassVar[str]  # the folder of the bundled ones

    version: Version
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
        with path.open("rb") as stream:
            raw = stream.read(MAX_SPEC_BYTES + 1)
        if len(raw) > MAX_SPEC_BYTES:
            raise SpecError(f"{path}: is longer than {MAX_SPEC_BYTES:,} B, the most a spec has")
        text = raw.decode("utf-8")
        _refuse(text, path)
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


def _refuse(text: str, path: Path) -> None:
    """Anchors, aliases, tags and merges: a spec says every value where it stands. Deep nests, too.

    The parser's time grows with the square of the depth.
    """
    from ruamel.yaml import YAML, tokens

    blocks = (tokens.BlockMappingStartToken, tokens.BlockSequenceStartToken)
    starts = (*blocks, tokens.FlowMappingStartToken, tokens.FlowSequenceStartToken)
    ends = (tokens.BlockEndToken, tokens.FlowMappingEndToken, tokens.FlowSequenceEndToken)
    references = (tokens.AliasToken, tokens.AnchorToken, tokens.TagToken)
    depth = 0
    for token in YAML(typ="rt", pure=True).scan(text):
        where = f"{path}:{token.start_mark.line + 1}"
        depth += isinstance(token, starts) - isinstance(token, ends)
        if depth > MAX_DEPTH:
            raise SpecError(f"{where}: is nested more than {MAX_DEPTH} deep")
        if isinstance(token, references):
            word = type(token).__name__.removesuffix("Token").lower()
            raise SpecError(f"{where}: has a YAML {word}; write the value out instead")
        if isinstance(token, tokens.ScalarToken) and token.plain and token.value == "<<":
            raise SpecError(f"{where}: has a YAML merge; write the fields out instead")


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


# What pydantic calls a mistake, and how it is said here; its `ctx` fills in the rest.
_RULES = {
    "bool_type": "must be true or false",
    "dict_type": "must be 'field: value' lines",
    "finite_number": "must be finite",
    "float_type": "must be a number",
    "greater_than_equal": "must be at least {ge}",
    "int_type": "must be a whole number",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "model_attributes_type": "must be 'field: value' lines",
    "model_type": "must be 'field: value' lines",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "string_type": "must be text",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length}",
    "tuple_type": "must be a list",
    "union_tag_invalid": "must be one of {expected_tags}",
    "value_error": "{error}",
}
_UNKNOWN = ("extra_forbidden", "invalid_key")


def _sentence(error: ValidationError, kind: type[SpecModel], values: Any, path: Path | str) -> str:
    """`file:line: field: what is wrong, with the value and what is accepted`."""
    errors = _independent(error.errors())
    first = min(errors, key=lambda e: e["type"] not in _UNKNOWN)  # typos first
    wrong, location, context = first["type"], first["loc"], first.get("ctx", {})
    if wrong.startswith("union_tag"):  # the field that should tell alternatives apart
        location = (*location, context["discriminator"].strip("'"))
        wrong = "missing" if wrong == "union_tag_not_found" else wrong
    trail, value, line = _follow(location, values, named=wrong in (*_UNKNOWN, "missing"))
    where = f"{path}:{line}" if line else f"{path}"
    field = ".".join(trail)
    if wrong in _UNKNOWN:
        hint = nearest(trail[-1], _fields_at(kind, values, location))
        return f"{where}: {field} is not a field; {hint}"
    if wrong == "missing":
        return f"{where}: {field} is missing"
    problem = _RULES.get(wrong, first["msg"]).format_map(context)
    shown = field if wrong == "value_error" else f"{field} {_show(value)}"  # ours show it
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return ": ".join(part for part in (where, shown, problem) if part) + more


def _independent(errors: list[Any]) -> list[Any]:
    """Without those that pydantic adds about a list because one of its entries is wrong."""
    inner = {error["loc"][:n] for error in errors for n in range(len(error["loc"]))}
    return [error for error in errors if error["type"] != "too_short" or error["loc"] not in inner]


def _follow(
    location: tuple[int | str, ...], values: Any, *, named: bool
) -> tuple[list[str], Any, int]:
    """Names along an error's location, the value there, and its line.

    A list entry is called by its `name` where it has one; steps that pydantic adds to tell
    alternatives apart do not stand in the file and are passed over. A last step that does not
    stand there either is part of the name if it is `named`: it is what is missing.
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
            has_name = isinstance(values, dict) and isinstance(values.get("name"), str)
            trail.append(values["name"] if has_name else str(step + 1))
        elif named and step == location[-1]:
            line = marks.line + 1 if marks and not line else line
            trail.append(str(step + 1) if isinstance(step, int) else step)
    return trail, values, line


def _fields_at(kind: type[SpecModel], values: Any, location: tuple[int | str, ...]) -> list[str]:
    """Fields accepted in the place of the last step of `location`, which is none of them.

    Found by a walk along the schema. Where it allows for several models, the one is meant that
    knows most of the fields that stand there.
    """
    whole = kind.model_json_schema(by_alias=True)
    models = [*alternatives(whole, whole)]
    for step in location[:-1]:
        if isinstance(values, list) or (isinstance(values, dict) and step in values):
            values = values[step]  # type: ignore[index]
            inner = [m.get("properties", {}).get(step) or m.get("items") for m in models]
            models = [a for schema in inner if schema for a in alternatives(schema, whole)]
    properties = [m.get("properties", {}) for m in models]
    properties = [fields for fields in properties if location[-1] not in fields]
    return list(max(properties, key=lambda fields: len(fields.keys() & set(values)), default=()))


def alternatives(schema: dict[str, Any], whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema without references; where it allows for several, each of them."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].split("/")[-1]]
    inner = schema.get("anyOf", []) + schema.get("oneOf", [])
    for alternative in inner:
        yield from alternatives(alternative, whole)
    if not inner:
        yield schema


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
    A link is followed, a file keeps its permissions, and what is no file (a device, a pipe) is
    written to as it is.

    Raises: HwmodelError where the place cannot be written.
    """
    binary = "b" in mode
    text: dict[str, Any] = {} if binary else {"encoding": "utf-8", "newline": ""}
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            with target.open(mode, **text) as stream:
                yield stream
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:80]}.", dir=target.parent)
        try:
            with os.fdopen(handle, mode, **text) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, _permissions(target))
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise HwmodelError(f"{path}: cannot be written: {error.strerror or error}") from None


def _permissions(target: Path) -> int:
    """Those the file has, or those a new file would have."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
