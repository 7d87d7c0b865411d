"""The bundled networks: lines of `families/zoo.yaml`, each a family and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import signature
from typing import Any

from pydantic import ConfigDict, ValidationError, validate_call

from hwmodel.errors import NameUnknown, SpecError, nearest
from hwmodel.graph.families import FAMILIES
from hwmodel.specs.files import SpecModel, Text, Version, bundled_spec, folder

__all__ = ["family_arguments", "member", "zoo"]


class _Member(SpecModel):
    """One line of the zoo; the fields beyond these are the family's arguments."""

    model_config = ConfigDict(frozen=True, extra="allow")

    family: Text
    title: Text
    source: Text


class _Zoo(SpecModel):
    version: Version
    members: dict[str, _Member]


@cache
def zoo() -> dict[str, _Member]:
    """Bundled networks by name."""
    path = folder("graph/families") / "zoo.yaml"
    return bundled_spec(_Zoo, path).members


def _line(name: str) -> _Member:
    members = zoo()
    if name not in members:
        raise NameUnknown("network", name, members)
    return members[name]


def _family(line: _Member) -> Any:
    return FAMILIES[line.family]


def family_arguments(name: str) -> dict[str, Any]:
    """Return the arguments of a bundled network's family, defaults too. Raises: NameUnknown."""
    line = _line(name)
    parameters = signature(_family(line)).parameters.values()
    return {p.name: p.default for p in parameters} | (line.model_extra or {})


def member(name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a bundled network, some arguments of its family changed.

    Raises: NameUnknown; SpecError for an argument that its family does not have or cannot take.
    """
    line = _line(name)
    if changes:
        _check(name, changes)
    try:
        family = validate_call(config={"strict": True})(_family(line))
        wired = family(**{**(line.model_extra or {}), **changes})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SpecError(f"network {name}: {place} {first['input']!r}: {first['msg']}") from None
    except (ArithmeticError, LookupError, ValueError) as error:
        raise SpecError(f"network {name}: its family cannot take {changes}: {error}") from None
    sources = {"definition": line.source}
    return {"version": 1, "name": name, "title": line.title, "sources": sources, **wired}


def _check(name: str, changes: Mapping[str, Any]) -> None:
    """See that the family has these arguments, and that numbers of things are not below 1."""
    usual = family_arguments(name)
    for argument, value in changes.items():
        if argument not in usual:
            raise SpecError(f"network {name}: {argument}: {nearest(argument, usual)}")
        old = usual[argument]
        if isinstance(value, int) and isinstance(old, int) and value < 1 <= old:
            raise SpecError(f"network {name}: {argument} {value!r}: must be at least 1")
