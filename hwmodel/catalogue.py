"""What there is: bundled chips, networks, methods and accountings, and a user's own files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodel.accounting import Accounting
from hwmodel.files import NamedSpec, bundled, is_path, load
from hwmodel.hardware import Hardware
from hwmodel.method import Method
from hwmodel.network import Network, load_network, zoo
from hwmodel.report import table
from hwmodel.training import Training

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["checked", "description", "titles"]

_FILES: dict[str, type[NamedSpec]] = {
    kind.KIND: kind for kind in (Hardware, Method, Accounting, Training)
}


def titles(word: str) -> dict[str, str]:
    """Bundled names of one kind and their titles."""
    if word == Network.KIND:
        return {name: member.title for name, member in zoo().items()}
    return {name: load(_FILES[word], name).title for name in bundled(_FILES[word])}


def checked(word: str, what: str) -> NamedSpec:
    """The value behind a name or file, everything it refers to included. Raises: HwmodelError."""
    if word == Network.KIND:
        return load_network(what)
    spec = load(_FILES[word], what)
    if isinstance(spec, Method):
        spec.check_references()
    if isinstance(spec, Accounting):
        load(Method, spec.baseline)
    return spec


def description(word: str, what: str) -> Iterator[RenderableType | str]:
    """A network as a table of its layers, anything else as its file. Raises: HwmodelError."""
    spec = checked(word, what)
    if isinstance(spec, Network):
        yield network_table(spec)
    else:
        path = Path(what) if is_path(what) else bundled(_FILES[word])[what]
        yield path.read_text(encoding="utf-8").rstrip()


def network_table(network: Network) -> Table:
    """Layer, kind, inputs, output shape, weights and MACs of one pass over one image."""
    C, H, W = network.input
    listed = table(
        f"{network.name}: {network.title}; input {C} x {H} x {W}; one image",
        ["layer", "kind", "inputs"],
        ["output C x H x W", "weights", "MACs"],
    )
    nodes = network.nodes()
    weights = [node.layer.weights(node.input_shapes) for node in nodes]
    macs = [node.layer.macs(node.input_shapes) for node in nodes]
    for node, F, count in zip(nodes, weights, macs, strict=True):
        shape = " x ".join(map(str, node.output_shape))
        cells = (", ".join(node.inputs), shape, f"{F:,}", f"{count:,}")
        listed.add_row(node.layer.name, node.layer.kind, *cells)
    listed.add_row("all layers", "", "", "", f"{sum(weights):,}", f"{sum(macs):,}", style="bold")
    return listed
