"""A network: layers whose inputs are named, tensors on the edges, shapes inferred.

A user's network is one flat YAML file, or an ONNX file. A bundled one is a line of
`families/zoo.yaml`: a family, which is a Python module that wires the layers, and its arguments.
In a file, `repeat: n` around a list of layers stands for the list n times over; it is the only
construct, and it is gone once the file is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from operator import mul
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from hwmodel.errors import HwmodelError, ShapeError, SpecError, near, nearest
from hwmodel.graph.attended import scores_by_layer
from hwmodel.graph.layers import INPUT, KINDS, Combine, Dispatch, Layer, Linear, Shape
from hwmodel.graph.layers.base import MAX_EXTENT
from hwmodel.graph.node import Node
from hwmodel.graph.recurrent import CELLS, Recurrent
from hwmodel.graph.renaming import BEFORE, renamed
from hwmodel.graph.yaml import network_yaml
from hwmodel.graph.zoo import member, zoo
from hwmodel.specs.files import (
    Label,
    Name,
    NamedSpec,
    Number,
    SpecModel,
    Whole,
    validate,
    write,
)
from hwmodel.specs.formats import Format
from hwmodel.specs.lately import lately
from hwmodel.specs.mistakes import Contradiction, show
from hwmodel.work.tensor import Stated

__all__ = [
    "BEFORE",
    "INPUT",
    "MAY_BE_CONSTANT",
    "Network",
    "NetworkFile",
    "Repeat",
    "family_member",
    "zoo",
]

MAX_LAYERS = 10_000
Positive = Annotated[Whole, Field(ge=1, le=MAX_EXTENT)]
Share = Annotated[Number, Field(ge=0, le=1)]
Zeros = Share | dict[Name, Share]
ZEROS = (
    "share of the elements of a map that are 0, by the name of the layer that gives it, input for "
    "the network's own; or one number, of every ReLU's. What a chip saves of it, its file says: "
    "zeros, coding"
)


class _Placed(NamedTuple):
    """A layer whose inputs are found and whose shapes are known."""

    layer: Layer
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    output_shape: Shape


# Kinds behind which the tensor is the same to its reader, but for its shape.
_SEEN_THROUGH = frozenset(
    {"expand", "max-pool", "pixel-shuffle", "pixel-unshuffle", "reshape", "slice"}
)


# Kinds whose output has the elements of their inputs, in the mean; a pool's are the largest.
_SAME_ELEMENTS = frozenset(
    {"concat", "expand", "pixel-shuffle", "pixel-unshuffle", "reshape", "slice"}
)


# Kinds that may be frozen without parameters: constants, and norms whose statistics then are.
MAY_BE_CONSTANT = frozenset({"batch-norm", "layer-norm", "rms-norm", "scale", "source"})


class Network(NamedSpec):
    """Layers in an order in which each comes after its inputs."""

    KIND: ClassVar[str] = "network"
    FOLDER: ClassVar[str] = "graph/families"

    label: Label | None = None
    input: tuple[Positive, Positive, Positive] = Field(description="C, H, W of one image")
    steps: Annotated[Whole, Field(ge=1, le=2**20)] = Field(
        default=1, description="in each of which every layer runs: time of a spiking network"
    )
    zeros: Zeros = Field(default={}, description=ZEROS)
    layers: tuple[Layer, ...] = Field(min_length=1, max_length=MAX_LAYERS)

    @field_validator("layers", mode="after")
    @classmethod
    def _shortest(cls, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Drop an input that is the layer before, so that equal graphs are equal."""
        befores = [INPUT, *(layer.name for layer in layers)]
        return tuple(
            layer.model_copy(update={"inputs": None}) if layer.inputs == (before,) else layer
            for layer, before in zip(layers, befores, strict=False)
        )

    @model_validator(mode="after")
    def _see_zeros(self) -> Network:
        _see_zeros(self.zeros, {layer.name: layer.kind for layer in self.layers})
        return self

    def save(self, path: str | Path) -> None:
        """Write it as a network file, which every command takes. Nothing is replaced.

        Raises: HwmodelError where the name ends otherwise than in .yaml or .yml, or is taken.
        """
        where = Path(path)
        if where.suffix.lower() not in (".yaml", ".yml"):
            raise HwmodelError(
                f"{where}: would not be read as a network file; end its name in .yaml or .yml"
            )
        if where.exists():
            raise HwmodelError(f"{where}: is there already; give another name")
        write(where, network_yaml(self))

    def nodes(self, omitted: frozenset[str] = frozenset()) -> tuple[Node, ...]:
        """Return every layer at its place; layers of the `omitted` kinds are skipped.

        A layer with a role has its own reason to be there, and stays.

        Raises: ShapeError for a name used twice, an input that does not come before, or shapes
            that do not fit.
        """
        return _nodes_of(self, omitted)

    def _nodes(self, omitted: frozenset[str]) -> tuple[Node, ...]:
        placed = self._placed(omitted)
        try:
            scores_by_layer(placed)
        except ShapeError as error:
            error.where = error.where or self.name
            told = (f"layer {layer.name}: " in str(error) for layer in self.layers)
            error.place = next((n for n, here in enumerate(told) if here), None)
            raise
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
        stated: dict[str, Stated | None] = {INPUT: None}
        rates: dict[str, float | None] = {INPUT: None}
        weight_bits: dict[str, Stated | Format | None] = {}
        zeros = {INPUT: self._zeros(INPUT)}
        nodes = []
        for p in placed:
            name = p.layer.name
            before = [terms[i] for i in p.inputs]
            terms[name] = p.layer.terms(p.input_shapes, before)
            signal_to = tuple(learned[i] for i in p.inputs)
            own = getattr(p.layer, "weight_format", None) or getattr(p.layer, "weight_bits", None)
            weight_bits[name] = own or weight_bits.get(p.layer.shares or "")
            position = ends.get(name, "middle")
            consumers = tuple(takers.get(name, ()))
            most = max(before, default=1)
            bits = tuple(stated[i] for i in p.inputs)
            given = tuple(zeros[i] for i in p.inputs)
            zeros[name] = self._zeros(name, p, given)
            node = Node(
                *p, position, feeds[name], consumers, most, terms[name], signal_to, bits,
                weight_bits[name], tuple(rates[i] for i in p.inputs), self.steps, given,
                zeros[name],
            )  # fmt: skip
            learned[name], stated[name], rates[name] = node.learns, node.bits, node.rate
            nodes.append(node)
        back = {node.layer.shares for node in nodes if any(node.signal_to)}
        return tuple(node._replace(lent=node.layer.name in back) for node in nodes)

    def _zeros(self, name: str, p: _Placed | None = None, given: Sequence[float] = ()) -> float:
        """Share of a map that is 0: as stated, or that of the maps whose elements it has."""
        if not isinstance(self.zeros, dict):
            if p and p.layer.kind == "activation" and p.layer.function in ("method", "relu"):
                return self.zeros
        elif name in self.zeros:
            return self.zeros[name]
        if p is None or p.layer.kind not in _SAME_ELEMENTS:
            return 0.0
        sizes = [prod(shape) for shape in p.input_shapes]
        alike = len(set(given)) == 1  # exactly as they are
        return given[0] if alike else sum(map(mul, given, sizes)) / sum(sizes)

    def _placed(self, omitted: frozenset[str]) -> list[_Placed]:
        """Layers with their inputs' names and shapes resolved.

        Raises: ShapeError, of all layers that are wrong and take nothing from one that is.
        """
        walk = _Walk(omitted, {INPUT: self.input}, {INPUT: INPUT})
        before, faults, wrong = INPUT, list[ShapeError](), set[str]()
        for place, layer in enumerate(self.layers):
            try:
                if wrong.isdisjoint((*(layer.inputs or (before,)), layer.shares or "")):
                    walk.add(layer, before)
                else:  # nobody knows what it is given
                    walk.see_name(layer, wrong)
                    wrong.add(layer.name)
            except ShapeError as error:
                error.where, error.place = error.where or self.name, place
                faults.append(error)
                wrong.add(layer.name)
            before = layer.name
        if faults:
            first, *others = faults
            first.others = tuple(others)
            raise first
        return list(walk.placed.values())


@lately(8)  # by the method; every table of a report asks for them again
def _nodes_of(network: Network, omitted: frozenset[str]) -> tuple[Node, ...]:
    return network._nodes(omitted)


def _see_zeros(zeros: float | Mapping[str, float], kinds: Mapping[str, str]) -> None:
    """See that shares of zeros are of maps that there are. Raises: Contradiction.

    Args:
        kinds: of the layers, by their names.
    """
    for name in zeros if isinstance(zeros, Mapping) else ():
        if name not in (INPUT, *kinds):
            close = near(name, (INPUT, *kinds))
            hint = f"; did you mean {close!r}?" if close else ""
            raise Contradiction(f"no layer is called {name!r}{hint}", "zeros", name)
        if kinds.get(name) == "spiking":
            raise Contradiction(f"{name} spikes: its rate says how much of it is 0", "zeros", name)


@dataclass
class _Walk:
    """The layers placed so far, on the way from the first to the last."""

    omitted: frozenset[str]  # kinds of layers that are as if not there
    shapes: dict[str, Shape]
    stands_for: dict[str, str]  # an omitted layer stands for its input, any other for itself
    placed: dict[str, _Placed] = field(default_factory=dict)
    # The dispatch of whose tokens a tensor is; None where it is of all of them.
    sent: dict[str, Dispatch | None] = field(default_factory=lambda: {INPUT: None})

    def add(self, layer: Layer, before: str) -> None:
        """Place the next layer; `before` is the one before it. Raises: ShapeError."""
        self.see_name(layer)
        inputs = layer.inputs or (() if layer.kind == "source" else (before,))
        unknown = next((name for name in inputs if name not in self.shapes), None)
        if unknown is not None:
            close = near(unknown, self.shapes)
            hint = f"; did you mean {close!r}?" if close else ""
            raise ShapeError(
                f"layer {layer.name} takes {unknown!r}, which is no layer before it{hint}"
            )
        given = tuple(self.shapes[name] for name in inputs)
        shape = self.shapes[layer.name] = layer.output_shape(given)
        if max(shape) > MAX_EXTENT:
            raise ShapeError(
                f"layer {layer.name}: its output {shape} is longer than {MAX_EXTENT:,}"
            )
        found = tuple(self.stands_for[name] for name in inputs)
        gone = layer.kind in self.omitted and layer.role is None and len(found) == 1
        self.stands_for[layer.name] = found[0] if gone else layer.name
        layer = self._routed(layer, inputs)
        if layer.shares:
            layer = self._as_owner(layer, layer.shares, given)
        elif layer.learned is not True and layer.kind not in MAY_BE_CONSTANT:
            self._see_parameters(layer, given)
        if gone:
            self._stand_in(found[0], layer)
        else:
            self.placed[layer.name] = _Placed(layer, found, given, self.shapes[layer.name])

    def see_name(self, layer: Layer, others: Collection[str] = ()) -> None:
        """See that a layer's name is its own. Raises: ShapeError."""
        if layer.name == INPUT:
            raise ShapeError(f"{INPUT!r} is the network's own input, no layer")
        if layer.name in self.shapes or layer.name in others:
            raise ShapeError(f"two layers are called {layer.name!r}")

    def _stand_in(self, name: str, omitted: Layer) -> None:
        """Make what stands for an omitted layer a checkpoint, if that was one."""
        if omitted.checkpoint and name in self.placed:
            layer = self.placed[name].layer.model_copy(update={"checkpoint": True})
            self.placed[name] = self.placed[name]._replace(layer=layer)

    def _routed(self, layer: Layer, inputs: tuple[str, ...]) -> Layer:
        """The layer, one of experts told by which dispatch its tokens came. Raises: ShapeError."""
        of_all = isinstance(layer, Combine) or not inputs
        sent = layer if isinstance(layer, Dispatch) else None if of_all else self.sent[inputs[0]]
        self.sent[layer.name] = sent
        if not isinstance(layer, Linear) or not layer.experts:
            return layer
        layer = layer.behind(sent)
        if sent and layer.experts != (scores := self.shapes[sent.inputs[1]][0]):
            raise ShapeError(
                f"layer {layer.name}: {layer.experts} experts, but {sent.name} chooses among "
                f"{scores}, the channels of {sent.inputs[1]}"
            )
        return layer

    @staticmethod
    def _see_parameters(layer: Layer, given: tuple[Shape, ...]) -> None:
        """See that a frozen layer has anything that could be trained. Raises: ShapeError."""
        said = f"layer {layer.name}: learned: {str(layer.learned).lower()} is said of a layer "
        if layer.learned == "biases" and not getattr(layer, "bias", False):
            raise ShapeError(f"{said}without biases")
        if not layer.weights(given) and not layer.other_parameters(given):
            raise ShapeError(f"{said}without weights and other parameters")

    def _as_owner(self, layer: Layer, shares: str, given: tuple[Shape, ...]) -> Layer:
        """The layer, frozen if the one whose weights it uses is. Raises: ShapeError.

        That one has to have as many weights.
        """
        owner = self.placed.get(shares)
        wanted = layer.weights(given) or layer.other_parameters(given)
        own = owner and (
            owner.layer.weights(owner.input_shapes),
            owner.layer.other_parameters(owner.input_shapes),
        )
        if not own or wanted not in own:
            raise ShapeError(
                f"layer {layer.name} shares {wanted:,} weights of {shares!r}, "
                f"which is no layer before it that has as many"
            )
        assert owner is not None
        if "learned" in layer.model_fields_set and layer.learned != owner.layer.learned:
            raise ShapeError(
                f"layer {layer.name} shares the weights of {shares}, of which learned is "
                f"{str(owner.layer.learned).lower()}: one tensor is trained or is not"
            )
        return layer.model_copy(update={"learned": owner.layer.learned})


class Repeat(SpecModel):
    """A list of layers that is repeated several times.

    In round k (from `first`) a layer of the list is called `<name>.<k>.<its name>`. As an input,
    the name of a layer of the list means that of the same round, `before` what stands before the
    round (the last layer of the round before), any other name a layer outside.
    """

    name: Name
    repeat: Annotated[Whole, Field(ge=1, le=MAX_LAYERS)] = Field(description="how many rounds")
    first: Annotated[Whole, Field(ge=0, le=MAX_LAYERS)] = Field(
        default=0, description="number of the first round"
    )
    layers: tuple[Layer, ...] = Field(min_length=1, max_length=MAX_LAYERS)

    @field_validator("layers", mode="after")
    @classmethod
    def _before_is_taken(cls, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        if any(layer.name == BEFORE for layer in layers):
            raise ValueError(f"no layer of the list may be called {BEFORE!r}, which means another")
        return layers

    def rounds(self, before: str) -> Iterator[Layer]:
        """Yield the layers one by one; `before` is the layer before the list."""
        own = {layer.name for layer in self.layers}
        for k in range(self.first, self.first + self.repeat):
            known = {name: f"{self.name}.{k}.{name}" for name in own} | {BEFORE: before}
            for layer in self.layers:
                yield renamed(layer, known)
            before = known[self.layers[-1].name]


def _entry(value: Any) -> str:
    """Tell a layer from a repeated list and from a recurrent layer, by its fields."""
    if isinstance(value, dict):
        repeats, kind = "repeat" in value, value.get("kind")
    else:
        repeats, kind = isinstance(value, Repeat), getattr(value, "kind", None)
    if repeats:
        return "repeated list"
    return "recurrent layer" if kind in CELLS else "one layer"


def _known_kind(value: Any) -> Any:
    """See that an entry is of some kind, a recurrent one among them. Raises: Contradiction."""
    kind = value.get("kind") if isinstance(value, dict) and "repeat" not in value else None
    known = (*KINDS.values(), *CELLS)
    if isinstance(kind, str) and kind not in known:
        raise Contradiction(f"{show(kind)} is no kind of layer; {nearest(kind, known)}", "kind")
    return value


Entry = Annotated[
    Annotated[Layer, Tag("one layer")]
    | Annotated[Repeat, Tag("repeated list")]
    | Annotated[Recurrent, Tag("recurrent layer")],
    Discriminator(_entry),
    BeforeValidator(_known_kind),
]


class NetworkFile(NamedSpec):
    """A network file: layers, some of them in repeated lists."""

    KIND: ClassVar[str] = Network.KIND
    FOLDER: ClassVar[str] = Network.FOLDER

    label: Label | None = None
    input: tuple[Positive, Positive, Positive] = Field(description="C, H, W of one image")
    steps: Annotated[Whole, Field(ge=1, le=2**20)] = Field(
        default=1, description="in each of which every layer runs: time of a spiking network"
    )
    zeros: Zeros = Field(default={}, description=ZEROS)
    layers: tuple[Entry, ...] = Field(min_length=1, max_length=MAX_LAYERS)

    @model_validator(mode="after")
    def _see_zeros(self) -> NetworkFile:
        if self.zeros and self._length <= MAX_LAYERS:
            _see_zeros(self.zeros, {layer.name: layer.kind for layer in self._written_out()})
        return self

    def network(self) -> Network:
        """Write every repeated list out. Raises: SpecError where the network gets too long."""
        if self._length > MAX_LAYERS:
            raise SpecError(f"{self.name}: {self._length:,} layers; at most {MAX_LAYERS:,}")
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return Network(**fields | {"layers": tuple(self._written_out())})

    @property
    def _length(self) -> int:
        """Layers, every repeated list written out."""
        return sum(e.repeat * len(e.layers) if isinstance(e, Repeat) else 1 for e in self.layers)

    def _written_out(self) -> list[Layer]:
        layers: list[Layer] = []
        for entry in self.layers:
            before = layers[-1].name if layers else INPUT
            if isinstance(entry, Repeat):
                layers += entry.rounds(before)
            else:
                layers += entry.layers(before) if isinstance(entry, Recurrent) else [entry]
        return layers

    def way_to(self, place: int) -> tuple[str | int, ...]:
        """Return the way in the file to the layer at `place`, counted with lists written out."""
        for number, entry in enumerate(self.layers):
            length = entry.repeat * len(entry.layers) if isinstance(entry, Repeat) else 1
            if isinstance(entry, Recurrent):
                length = len(list(entry.layers(INPUT)))
            if place < length:
                inner = place % len(entry.layers) if isinstance(entry, Repeat) else None
                return ("layers", number, *(() if inner is None else ("layers", inner)))
            place -= length
        return ("layers",)


def family_member(name: str, changes: Mapping[str, Any] | None = None) -> Network:
    """A bundled network, some arguments of its family changed.

    Raises: NameUnknown; SpecError for an argument that its family does not have or cannot take.
    """
    return validate(Network, member(name, changes or {}), f"network {name}")
