"""The catalogue: bundled chips, networks, methods and accountings, and a user's own files."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from hwmodel.graph.network import Network, zoo
from hwmodel.importers.load import load_network
from hwmodel.model.widths import tell_doubts
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import MAX_SPEC_BYTES, NamedSpec, bundled, is_path, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.inputs import read_text
from hwmodel.specs.method import Method
from hwmodel.specs.training import Training
from hwmodel.views.chip import drawing

__all__ = ["FILES", "checked", "description", "names", "titles"]

FILES: dict[str, type[NamedSpec]] = {
    kind.KIND: kind for kind in (Hardware, Method, Accounting, Training)
}


def names(word: str) -> list[str]:
    """List the bundled names of one kind."""
    return list(zoo() if word == Network.KIND else bundled(FILES[word]))


def titles(word: str) -> dict[str, str]:
    """Return the titles of bundled files of one kind, by name."""
    if word == Network.KIND:
        return {name: member.title for name, member in zoo().items()}
    return {name: load(FILES[word], name).title for name in names(word)}


def checked(word: str, what: str) -> NamedSpec:
    """Load a name or file, and check everything that it refers to; warn of every doubt.

    Raises: HwmodelError.
    """
    if word == Network.KIND:
        return load_network(what)
    spec = load(FILES[word], what, every=True)
    if isinstance(spec, Method):
        spec.check_references()
        tell_doubts(spec, every=True)
    return spec


def description(word: str, what: str) -> str:
    """Return the text of a spec's file, a chip's drawn below it. Raises: HwmodelError.

    What is based on another file is written in full; a bundled file says everything itself.
    """
    spec = checked(word, what)
    if isinstance(spec, Accounting) and spec.based_on:
        return _in_full(spec)
    path = Path(what) if is_path(what) else bundled(FILES[word])[what]
    text = read_text(path, MAX_SPEC_BYTES).rstrip()
    return f"{text}\n\n{drawing(spec)}" if isinstance(spec, Hardware) else text


def _in_full(spec: Accounting) -> str:
    """Write every field of an accounting that states a few, as a file that says the same."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 2**20  # no line of it is broken
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    own = None if spec.sources else {"sources"}  # an empty list of them is refused
    yaml.dump(spec.model_dump(mode="json", exclude=own), text)
    return f"# what the file does not state is as in {spec.based_on}\n{text.getvalue()}".rstrip()
