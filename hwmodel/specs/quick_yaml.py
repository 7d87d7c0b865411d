"""YAML read by libyaml, without the lines of values, in a fifteenth of the time.

Only for files that are right: a user's file is read by `files.read_yaml`, which knows lines and
what no spec may have. Both give the same values of every bundled file; a test reads them all.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

__all__ = ["quickly_read"]

# What is no text in YAML 1.2, and with what it begins. PyYAML's own are of 1.1: 1e-3 is text there.
_RESOLVED = {
    "null": (r"null|~|", "n~"),
    "bool": (r"true|false", "tf"),
    "int": (r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    "float": (r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?", "-+0123456789"),
}


def quickly_read(text: str) -> Any:
    """Read a YAML 1.2 document. Raises: ValueError."""
    import yaml

    try:
        return yaml.load(text, _loader())
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


@cache
def _loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # not every build has libyaml

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    for kind, (form, begins) in _RESOLVED.items():
        first = [*begins, ""] if kind == "null" else [*begins]
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(f"({form})$"), first)
    return Loader
