"""A network: layers whose inputs are named, tensors on the edges, shapes inferred.

A user's network is one flat YAML file. A bundled one is a line of `networks/zoo.yaml`: a family,
which is a Python module that wires the layers, and its arguments.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from pydantic import ConfigDict, Field

from hwmodel.errors import NameUnknown, ShapeError
from hwmodel.files import (
    NamedSpec,
    SpecModel,
    Text,
    Version,
    Whole,
    folder,
    is_path,
    load,
    read_yaml,
    validate,
)
from hwmodel.layers import Layer, Shape

__all__ = ["INPUT", "Network", "Node", "load_network", "zoo"]

INPUT = "input"  # what layers call the network's own input
MAX_LAYERS = 10_000
Positive = Annotated[Whole, Field(ge=1, le=2**31)]


class Node(NamedTuple):
    """A layer at its place: what it is given and what it gives, (C, H, W) of one image."""

    layer: Layer
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    output_shape: Shape
    position: str  # among the layers with weights: "first", "last" or "middle"


class Network(NamedSpec):
    """Layers in an order in which each comes after its inputs."""

    KIND: ClassVar[str] = "network"
    FOLDER: ClassVar[str] = "networks"

    input: tuple[Positive, Positive, Positive] = Field(description="C, H, W of one image")
    layers: tuple[Layer, ...] = Field(min_length=1, max_length=MAX_LAYERS)

    def nodes(self) -> tuple[Node, ...]:
        """Every layer with its shapes.

        Raises: ShapeError for a name used twice, an input that does not come before, or shapes
            that do not fit.
        """
        shapes: dict[str, Shape] = {INPUT: self.input}
        before = INPUT
        found: list[tuple[Layer, tuple[str, ...], tuple[Shape, ...]]] = []
        for layer in self.layers:
            if layer.name == INPUT:
                raise ShapeError(f"{self.name}: {INPUT!r} is the network's own input, no layer")
            if layer.name in shapes:
                raise ShapeError(f"{self.name}: two layers are called {layer.name!r}")
            inputs = layer.inputs or (before,)
            unknown = [name for name in inputs if name not in shapes]
            if unknown:
                raise ShapeError(
                    f"{self.name}: layer {layer.name} takes {unknown[0]!r}, "
                    "which is no layer before it"
                )
            given = tuple(shapes[name] for name in inputs)
            shapes[layer.name] = layer.output_shape(given)
            found.append((layer, inputs, given))
            before = layer.name
        weighted = [layer.name for layer, _, given in found if layer.weights(given)]
        # A network with one such layer has its first and last in one: it counts as the first.
        ends = {weighted[-1]: "last", weighted[0]: "first"} if weighted else {}
        return tuple(
            Node(layer, inputs, given, shapes[layer.name], ends.get(layer.name, "middle"))
            for layer, inputs, given in found
        )


class _Member(SpecModel):
    """One line of the zoo; the fields beyond these are the family's arguments."""

    model_config = ConfigDict(frozen=True, extra="allow")

    family: Text
    title: Text
    source: Text


class _Zoo(SpecModel):
    version: Version
    members: dict[str, _Member]


def zoo() -> dict[str, _Member]:
    """Bundled networks by name."""
    path = folder(Network.FOLDER) / "zoo.yaml"
    return validate(_Zoo, read_yaml(path), path).members


def load_network(what: str | Path | Network) -> Network:
    """The network behind a bundled name, a path to a YAML file, or a network itself.

    Raises: NameUnknown, SpecError, ShapeError.
    """
    if isinstance(what, str) and not is_path(what):
        members = zoo()
        if what not in members:
            raise NameUnknown(Network.KIND, what, members)
        member = members[what]
        family = import_module(f"hwmodel.networks.{member.family}")
        network = Network(
            version=1,
            name=what,
            title=member.title,
            sources={"definition": member.source},
            **family.network(**(member.model_extra or {})),
        )
    else:
        network = load(Network, what)
    network.nodes()  # a wrong graph is refused where it is read
    return network
