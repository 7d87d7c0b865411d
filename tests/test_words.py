"""docs/extend.md lists every word that a user may write in a file: those of the schemas, no others."""

import json
import re
from pathlib import Path

from hwmodel.specs.formats import formats

DOCS = Path(__file__).parent.parent / "docs"
FILES = {"hardware": "chip", "method": "method", "network": "network"}
FILES |= {"accounting": "accounting", "training": "training"}


def of(schema):
    """Words that a value may be, whatever else it may."""
    yield from schema.get("enum", [])
    yield from [schema["const"]] if "const" in schema else []
    inner = [x for word in ("anyOf", "oneOf", "allOf") for x in schema.get(word, [])]
    inner += [
        schema[x] for x in ("items", "additionalProperties") if isinstance(schema.get(x), dict)
    ]
    for one in inner:
        yield from of(one)


def fields(schema):
    """The words of each field, and those that may stand as fields within it."""
    found = {}
    for model in (schema, *schema.get("$defs", {}).values()):
        for name, field in model.get("properties", {}).items():
            for own, some in ((name, field), (f"{name}:", field.get("propertyNames", {}))):
                for word in of(some):
                    if isinstance(word, str):
                        found.setdefault(own, {})[word] = None
    return {name: list(those) for name, those in found.items()}


def rows():
    """The lines of the table; fields of a file that take the same words stand together."""
    for kind, file in FILES.items():
        schema = json.loads((DOCS / "schemas" / f"{kind}.json").read_text(encoding="utf-8"))
        together = {}
        for name, those in fields(schema).items():
            if (kind, name) != ("network", "kind"):  # which docs/networks.md lists
                together.setdefault(tuple(those), []).append(name)
        for those, names in together.items():
            listed = ", ".join(f"`{word}`" for word in those).replace("|", "\\|")
            yield f"| {file} | {', '.join(f'`{name}`' for name in names)} | {listed} |"


def test_every_word_of_a_field_is_listed_and_no_other():
    text = (DOCS / "extend.md").read_text(encoding="utf-8")
    table = text.split("\n## Words that files take\n")[1].split("\n## ")[0]
    assert [x for x in table.splitlines() if re.match(r"\| (?!file|-)", x)] == [*rows()]
    named = re.search(r"bundled formats: (.*)\.", table)[1]
    assert re.findall(r"`([^`]+)`", named) == sorted(formats())


def test_every_kind_of_layer_is_listed():
    schema = json.loads((DOCS / "schemas" / "network.json").read_text(encoding="utf-8"))
    text = (DOCS / "networks.md").read_text(encoding="utf-8")
    assert [kind for kind in fields(schema)["kind"] if f"`{kind}`" not in text] == []
