"""JSON Schemas of every kind of file, for editors: they complete and check while one writes.

The models that read the files give the schemas; `docs/schemas/` holds what they give.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from hwmodel.errors import NameUnknown
from hwmodel.graph.network import NetworkFile
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.training import Training
from hwmodel.vary.sweep.file import SweepFile

__all__ = ["KINDS", "schema", "schema_text"]

KINDS: dict[str, type[BaseModel]] = {
    kind.KIND: kind for kind in (Hardware, NetworkFile, Method, Accounting, Training, SweepFile)
}


def schema(kind: str) -> dict[str, Any]:
    """Return the schema of one kind of file. Raises: NameUnknown."""
    if kind not in KINDS:
        raise NameUnknown("kind of file", kind, KINDS)
    found = KINDS[kind].model_json_schema(by_alias=True)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"hwmodel {kind}"}
    return head | {key: value for key, value in found.items() if key != "title"}


def schema_text(kind: str) -> str:
    """Return the text of a schema's file. Raises: NameUnknown."""
    return json.dumps(schema(kind), indent=1, ensure_ascii=False) + "\n"
