"""A network: layers whose inputs are named, tensors on the edges, shapes inferred.

A user's network is one flat YAML file. A bundled one is a line of `networks/zoo.yaml`: a family,
which is a Python module that wires the layers, and its arguments.
"""

from __future__ import annotations

from functools import cache
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
from hwmodel.layers import INPUT, Layer, Shape

__all__ = ["INPUT", "Network", "Node", "load_network", "zoo"]

MAX_LAYERS = 10_000
Positive = Annotated[Whole, Field(ge=1, le=2**31)]


class Node(NamedTuple):
    """A layer at its place in the graph. Shapes are (C, H, W) of one image."""

    layer: Layer
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    output_shape: Shape
    position: str  # among the layers with weights: "first", "last" or "middle"
    feeds: tuple[str, ...]  # kinds of layers that take the output, seen through pools and views
    consumers: tuple[str, ...]  # layers that take the output
    input_terms: int  # terms of +-1 that one element of an input can be the sum of, at most
    terms: int  # the same of the output
    signal_to: tuple[bool, ...]  # for each input, whether something before it is learned

    @property
    def weights(self) -> int:
        """Elements of F."""
        return self.layer.weights(self.input_shapes)

    @property
    def other_parameters(self) -> int:
        """Elements of biases, scales and shifts."""
        return self.layer.other_parameters(self.input_shapes)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one pass over one image."""
        return self.layer.macs(self.input_shapes)


class _Placed(NamedTuple):
    """A layer whose inputs are found and whose shapes are known."""

    layer: Layer
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    output_shape: Shape


# Kinds behind which the tensor is the same to its reader, but for its shape.
_SEEN_THROUGH = frozenset({"max-pool", "reshape", "slice", "pixel-shuffle", "pixel-unshuffle"})


class Network(NamedSpec):
    """Layers in an order in which each comes after its inputs."""

    KIND: ClassVar[str] = "network"
    FOLDER: ClassVar[str] = "networks"

    input: tuple[Positive, Positive, Positive] = Field(description="C, H, W of one image")
    layers: tuple[Layer, ...] = Field(min_length=1, max_length=MAX_LAYERS)

    def nodes(self, omitted: frozenset[str] = frozenset()) -> tuple[Node, ...]:
        """Every layer at its place; layers of the `omitted` kinds are as if not there.

        A layer with a role has its own reason to be there, and stays.

        Raises: ShapeError for a name used twice, an input that does not come before, or shapes
            that do not fit.
        """
        placed = self._placed(omitted)
        weighted = [p.layer.name for p in placed if p.layer.weights(p.input_shapes)]
        # A network with one such layer has its first and last in one: it counts as the first.
        ends = {weighted[-1]: "last", weighted[0]: "first"} if weighted else {}
        takers: dict[str, list[Layer]] = {}
        for p in placed:
            for name in p.inputs:
                takers.setdefault(name, []).append(p.layer)
        feeds: dict[str, tuple[str, ...]] = {}
        for p in reversed(placed):
            kinds: dict[str, None] = {}
            for taker in takers.get(p.layer.name, ()):
                through = taker.kind in _SEEN_THROUGH
                kinds |= dict.fromkeys(feeds[taker.name] if through else (taker.kind,))
            feeds[p.layer.name] = tuple(kinds)
        terms: dict[str, int] = {INPUT: 1}
        learned = {INPUT: False}
        nodes = []
        for p in placed:
            name = p.layer.name
            before = [terms[i] for i in p.inputs]
            terms[name] = p.layer.terms(p.input_shapes, before)
            signal_to = tuple(learned[i] for i in p.inputs)
            own = p.layer.weights(p.input_shapes) + p.layer.other_parameters(p.input_shapes)
            learned[name] = own > 0 or any(signal_to)
            position = ends.get(name, "middle")
            consumers = tuple(taker.name for taker in takers.get(name, ()))
            nodes.append(
                Node(*p, position, feeds[name], consumers, max(before), terms[name], signal_to)
            )
        return tuple(nodes)

    def _placed(self, omitted: frozenset[str]) -> list[_Placed]:
        """Layers with their inputs' names and shapes resolved."""
        shapes: dict[str, Shape] = {INPUT: self.input}
        stands_for = {INPUT: INPUT}  # an omitted layer stands for its input
        before = INPUT
        placed = []
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
            before = layer.name
            found = tuple(stands_for[name] for name in inputs)
            gone = layer.kind in omitted and layer.role is None and len(found) == 1
            stands_for[layer.name] = found[0] if gone else layer.name
            if not gone:
                placed.append(_Placed(layer, found, given, shapes[layer.name]))
        return placed


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
