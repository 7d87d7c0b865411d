"""Says in one sentence what pydantic finds wrong with a file: file, line, field, value, rule.

A mistake belongs to a field or to several that do not go together; of these, the one to look at
is named by `Contradiction.at`. Lines are those of the YAML reader; other values have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from hwmodel.errors import near, nearest

__all__ = ["Contradiction", "alternatives", "line_of", "refuse", "sentence", "show", "together"]

Location = Sequence[int | str]
MOST = 10  # mistakes that are told
LISTED = 8  # words up to which all are told


class Contradiction(ValueError):
    """Fields that do not go together, raised while a model is validated.

    Args:
        at: the way to the field to look at, from the model: names, and places in lists.

    Attributes:
        others: further ones of the model, which are told with it.
    """

    others: tuple[Contradiction, ...] = ()

    def __init__(self, message: str, *at: int | str) -> None:
        super().__init__(message)
        self.at = at


def refuse(found: Iterable[Contradiction]) -> None:
    """Raise what was found, the first with all others; nothing where there is none."""
    every = [*found]
    if every:
        every[0].others = tuple(every[1:])
        raise every[0]


def together(*checks: Callable[[], object]) -> None:
    """Make checks of which each may raise a `Contradiction`; raise those of all of them."""
    found: list[Contradiction] = []
    for check in checks:
        try:
            check()
        except Contradiction as error:
            found += (error, *error.others)
    refuse(found)


# What pydantic calls a mistake, and how it is said here; its `ctx` fills in the rest.
_RULES = {
    "bool_type": "must be true or false",
    "dict_type": "must be 'field: value' lines",
    "finite_number": "must be finite",
    "float_type": "must be a number",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_type": "must be a whole number",
    "less_than": "must be below {lt}",
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
KEY = "[key]"  # the last step to a name that a mapping does not take
_UNKNOWN = ("extra_forbidden", "invalid_key")
_MUST = ": must be "


def sentence(error: ValidationError, kind: type[BaseModel], values: Any, path: Path | str) -> str:
    """Return `file:line: field: what is wrong, with the value and what is accepted`, of all."""
    errors = sorted(_independent([*_each(error)], values), key=_rank)
    if errors[0]["loc"] == ("version",) and errors[0]["type"] != "missing":
        errors = errors[:1]  # another version explains all the others
    found: dict[object, tuple[int, str]] = {}
    for one in errors:
        line, text = _said(one, errors, kind, values)
        own = one["type"] in ("missing", "value_error")  # of a place there may be several
        key = text if own else tuple(_place(one, values))
        if key not in found:
            found[key] = line, text
        elif _is_of_shape(one["type"]):  # the value has none of several shapes
            more = text.rpartition(_MUST)[2]
            if more not in found[key][1]:
                found[key] = line, f"{found[key][1]}, or {more}"
    (line, first), *rest = found.values()
    others = sorted(rest, key=lambda one: one[0])
    told = [f"{path}:{line}: {first}" if line else f"{path}: {first}"]
    told += [f"line {line}: {text}" if line else text for line, text in others[: MOST - 1]]
    return "; ".join(told) + (f" (and {len(others) - MOST + 1} more)" if others[MOST - 1 :] else "")


def _said(
    mistake: Any, errors: Sequence[Any], kind: type[BaseModel], values: Any
) -> tuple[int, str]:
    """Return a mistake's line, and it in words; fields missing beside each other are one."""
    wrong, location, context = mistake["type"], mistake["loc"], mistake.get("ctx", {})
    if wrong.startswith("union_tag"):  # the field that should tell alternatives apart
        location = (*location, context["discriminator"].strip("'"))
        wrong = "missing" if wrong == "union_tag_not_found" else wrong
    named = wrong in (*_UNKNOWN, "missing")
    if isinstance(context.get("error"), Contradiction):
        location, named = (*location, *context["error"].at), True
    trail, value, line = _follow(location, values, named=named)
    field = ".".join(trail)
    if location[-1:] == (KEY,) and wrong == "literal_error":
        return line, f"{field} is not a field; {nearest(trail[-1], _words(context))}"
    if wrong in _UNKNOWN:
        hint = _meant(trail[-1], kind, *_fields_at(kind, values, location))
        return line, f"{field} is not a field; {hint}"
    if mistake["type"] == "union_tag_not_found":  # its name may be there, with a mistake in it
        _, beside, _ = _follow(location[:-1], values, named=False)
        if close := near(trail[-1], beside):
            place = _follow((*location[:-1], close), values, named=False)
            return place[2], f"{'.'.join(place[0])} is not a field; did you mean {trail[-1]!r}?"
    if wrong == "missing":
        beside = [e["loc"] for e in errors if e["type"] == "missing"]
        beside = [loc for loc in beside if loc[:-1] == location[:-1]] or [location]
        more = "; write 'version: 1'" if ("version",) in beside else ""
        names = [str(n + 1) if isinstance(n, int) else _word(n) for *_, n in beside]
        listed = ".".join([*trail[:-1], ", ".join(names)])
        return line, f"{listed} {'are' if names[1:] else 'is'} missing{more}"
    problem = _rule(mistake, value)
    shown = field if wrong == "value_error" else f"{field} {show(value)}"  # ours show it
    return line, ": ".join(part for part in (shown, problem) if part)


def _each(error: ValidationError) -> Iterator[Any]:
    """Yield the mistakes, each of several contradictions of a model as one."""
    for one in error.errors():
        yield one
        context = one.get("ctx", {})
        for other in getattr(context.get("error"), "others", ()):
            yield one | {"ctx": context | {"error": other}}


def _rank(error: Any) -> int:
    """Rank a mistake: an unknown version explains all others and is told first, then typos."""
    if error["loc"] == ("version",):
        return 0
    return 1 if error["type"] in _UNKNOWN else 2


def _rule(error: Any, value: Any) -> str:
    """Return the broken rule; of a long list of words only the one that was meant, if any."""
    context = error.get("ctx", {})
    words = _words(context)
    close = near(value, words) if isinstance(value, str) and len(words) > LISTED else ""
    if close:
        return f"is not known; did you mean {close!r}?"
    rule: str = _RULES.get(error["type"], error["msg"])
    return rule.format_map(context)


def _words(context: Any) -> list[str]:
    """List the words that a field takes; pydantic tells them in no other form."""
    listed = context.get("expected_tags") or context.get("expected") or ""
    return re.findall(r"'([^']*)'", listed)


def line_of(values: Any, location: Location) -> int:
    """Return the line of a field of a YAML document; 0 where it has none."""
    return _follow(location, values, named=False)[2]


def _independent(errors: list[Any], values: Any) -> list[Any]:
    """Drop mistakes that only follow from another one deeper in the same value.

    A list is too short for pydantic once one of its entries is wrong; and where a value may have
    several shapes (a whole number or a list of them), each shape that it has not is a mistake,
    though what is within the shape that it has is the one that was made. A field that is missing
    may be there under a name with a mistake in it.
    """
    places = [_place(error, values) for error in errors]
    unknown = [p for e, p in zip(errors, places, strict=True) if e["type"] in _UNKNOWN]
    return [
        error
        for error, place in zip(errors, places, strict=True)
        if not _is_of_shape(error["type"])
        or not any(len(p) > len(place) and p[: len(place)] == place for p in places)
        if error["type"] != "missing"
        or not any(p[:-1] == place[:-1] and near(p[-1], place[-1:]) for p in unknown)
    ]


def _is_of_shape(wrong: str) -> bool:
    return wrong in ("too_short", "literal_error") or wrong.endswith("_type")


def _place(error: Any, values: Any) -> list[str]:
    """List the names along the way to a mistake, as the file has them."""
    return _follow(error["loc"], values, named=error["type"] in (*_UNKNOWN, "missing"))[0]


def _follow(location: Location, values: Any, *, named: bool) -> tuple[list[str], Any, int]:
    """Return the names along an error's location, the value there, and its line.

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
            values = _as_read(values[step])
            trail.append(_word(step))
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            line = marks.item(step)[0] + 1 if marks else line
            values = _as_read(values[step])
            has_name = isinstance(values, dict) and isinstance(values.get("name"), str)
            trail.append(_word(values["name"]) if has_name else str(step + 1))
        elif named and step == location[-1]:
            line = marks.line + 1 if marks and not line else line
            trail.append(str(step + 1) if isinstance(step, int) else _word(step))
    return trail, values, line


def _as_read(value: Any) -> Any:
    """Return a value, or the fields of a part that was validated before and did not change."""
    if isinstance(value, BaseModel):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _word(key: Any) -> str:
    """Return a key of a file as it is, or in quotes where it would break the line."""
    text = str(key)
    return text if text.isprintable() and len(text) <= 60 else show(text)


def _meant(word: str, kind: type[BaseModel], here: list[str], others: list[str]) -> str:
    """The hint for a word that is no field: the nearest here, or else one elsewhere.

    Elsewhere is the top of the file, and one level below it, as far as there is one such place.

    Args:
        here: fields accepted in this place.
        others: those accepted here, too, if other fields beside it were others.
    """
    if word in others:  # right in its spelling, and not of this kind
        return f"known: {', '.join(sorted(here))}"
    if near(word, here):
        return nearest(word, here)
    if near(word, others):
        return nearest(word, others)
    whole = kind.model_json_schema(by_alias=True)
    elsewhere: dict[str, set[str]] = {name: {name} for name in whole["properties"]}
    for group, inner in whole["properties"].items():
        for model in alternatives(inner, whole):
            for name in model.get("properties", {}):
                elsewhere.setdefault(name, set()).add(f"{group}.{name}")
    places = elsewhere.get(near(word, (name for name in elsewhere if name not in here)), set())
    return f"did you mean {places.pop()!r}?" if len(places) == 1 else nearest(word, here)


def _fields_at(
    kind: type[BaseModel], values: Any, location: Location
) -> tuple[list[str], list[str]]:
    """List the fields accepted in the place of the last step of `location`, which is none.

    Found by a walk along the schema. Where it allows for several models, the one is meant whose
    words stand there (as `kind: conv`), or that knows most of the fields that do; the second list
    has the fields of all of them.
    """
    whole = kind.model_json_schema(by_alias=True)
    models = [*alternatives(whole, whole)]
    for step in location[:-1]:
        if isinstance(values, list) or (isinstance(values, dict) and step in values):
            values = values[step]  # type: ignore[index]
            inner = [_inner(model, step) for model in models]
            models = [a for schema in inner if schema for a in alternatives(schema, whole)]
    every = dict.fromkeys(name for m in models for name in m.get("properties", {}))
    properties = [m.get("properties", {}) for m in models]
    properties = [fields for fields in properties if location[-1] not in fields]

    def fits(fields: dict[str, Any]) -> tuple[int, int]:
        alike = [n for n in fields if "const" in fields[n] and fields[n]["const"] == values.get(n)]
        return len(alike), len(fields.keys() & set(values))

    return list(max(properties, key=fits, default=())), list(every)


def _inner(model: dict[str, Any], step: int | str) -> Any:
    """Return the schema of a field, of an entry of a list, or of one of a mapping."""
    named = model.get("properties", {}).get(step) or model.get("items")
    patterns = [*model.get("patternProperties", {}).values(), model.get("additionalProperties")]
    return named or next((one for one in patterns if isinstance(one, dict)), None)


def alternatives(schema: dict[str, Any], whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema without references; where it allows for several, each of them."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].split("/")[-1]]
    inner = [s for word in ("anyOf", "oneOf", "allOf") for s in schema.get(word, [])]
    for alternative in inner:
        yield from alternatives(alternative, whole)
    if not inner:
        yield schema


def show(value: Any) -> str:
    """Quote a value for a message: short, and on one line."""
    text = repr(value) if isinstance(value, (str, int, float, bool)) or value is None else ""
    if isinstance(value, dict):
        text = "a mapping"
    elif isinstance(value, list):
        text = f"a list of {len(value)}"
    return text if len(text) <= 60 else f"{text[:57]}..."
