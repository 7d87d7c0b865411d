"""A method: how wide each tensor is, and which arithmetic each pass needs.

Methods are data. Rules for `layers` say what the products of a layer need; rules for `tensors`
say how wide the output of a layer is, and the signal that comes back to it. The first rule that
matches applies, and a layer that none matches is an error. Widths that are a matter of
accounting (the full-precision word, the Boolean signal) are named, not numbered.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from hwmodel.accounting import Accounting
from hwmodel.errors import NameUnknown, SpecError
from hwmodel.files import Flag, Name, NamedSpec, SpecModel, Text, Whole, bundled, load
from hwmodel.layers import PASSES, Cost, Pass, no_such_layer
from hwmodel.measured import LayerMeasures, Measures
from hwmodel.network import INPUT
from hwmodel.node import Node

__all__ = ["Arithmetic", "Edge", "ExtraWork", "LayerRule", "Method", "Teacher", "TensorRule"]
__all__ += ["Treatment", "Update", "Where"]

Arithmetic = Literal["mac", "int-mac", "add", "shift-add", "logic", "accumulate"]
Update = Literal["optimizer", "boolean"]
Marker = Literal["o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d", "*"]
Hatch = Literal["/", "\\", ".", "x", "-", "|", "+", "o"]
NAMED_WIDTHS = (
    "full_precision", "preactivation", "boolean_signal", "boolean_vote", "boolean_sum", "border",
    "stated",
)  # fmt: skip


AS_INPUT = "input"  # a tensor as wide as the widest that its layer is given


def _width(value: Any) -> int | str:
    return _width_among(value, NAMED_WIDTHS)


def _tensor_width(value: Any) -> int | str:
    return _width_among(value, (*NAMED_WIDTHS, AS_INPUT))


def _width_among(value: Any, names: tuple[str, ...]) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 64:
        return value
    if value in names:
        return str(value)
    raise ValueError(f"{value!r} is no width; give 1 to 64 bit or one of {', '.join(names)}")


def _width_schema(*names: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"enum": list(names)}]})


Width = Annotated[int | str, BeforeValidator(_width), _width_schema(*NAMED_WIDTHS)]
TensorWidth = Annotated[
    int | str, BeforeValidator(_tensor_width), _width_schema(*NAMED_WIDTHS, AS_INPUT)
]
Words = Annotated[tuple[Name, ...], Field(min_length=1)]


class Where(SpecModel):
    """What a rule holds for; a property left out does not matter, a list means any of it."""

    kind: Words | None = None
    position: tuple[Literal["first", "middle", "last"], ...] | None = None
    role: Words | None = None
    function: Words | None = None
    feeds: Words | None = Field(default=None, description="kinds of layers that take the output")
    stated: Flag | None = Field(
        default=None, description="whether the network states the width of its weights and input"
    )

    def matches(self, node: Node) -> bool:
        """Whether the layer at `node` is meant; of what it feeds, all must be among `feeds`."""
        has = {
            "kind": node.layer.kind,
            "position": node.position,
            "role": node.layer.role,
            "function": getattr(node.layer, "function", None),
        }
        if any(
            wanted is not None and has[name] not in wanted
            for name in has
            for wanted in [getattr(self, name)]
        ):
            return False
        if self.stated is not None and self.stated != _is_stated(node):
            return False
        return self.feeds is None or (bool(node.feeds) and set(node.feeds) <= set(self.feeds))


def _is_stated(node: Node) -> bool:
    """Whether all that a product reads has a width in the network's file."""
    weights = not node.weights or getattr(node.layer, "weight_bits", None) is not None
    return weights and None not in node.input_bits


class LayerRule(SpecModel):
    """What the products of some layers need; or another method's rule, and what differs."""

    where: Where = Where()
    precision: Name | None = Field(default=None, description="a method whose rule is taken over")
    weights: Width | None = Field(default=None, description="F")
    weight_signal: Width | None = Field(default=None, description="dF")
    inputs: Width | None = Field(
        default=None, description="of a wider tensor the products read a copy as narrow as this"
    )
    arithmetic: dict[Pass, Arithmetic] = Field(default={})
    update: Update | None = Field(default=None, description="how the weights are updated")
    source: Text

    @model_validator(mode="after")
    def _complete(self) -> LayerRule:
        stated = {name: getattr(self, name) for name in ("weights", "weight_signal", "update")}
        missing = [name for name, value in stated.items() if value is None]
        missing += [name for name in PASSES if name not in self.arithmetic]
        if self.precision is None and missing:
            raise ValueError(f"says nothing of {', '.join(missing)}, and names no precision")
        return self


class TensorRule(SpecModel):
    """How wide the output of some layers is, and the signal that comes back to it."""

    where: Where = Where()
    bits: TensorWidth
    signal: Width
    format: Literal["integer", "floating"] = Field(
        default="integer",
        description="of words narrower than full precision, in which operators add",
    )
    source: Text


class SumRule(SpecModel):
    """How wide the sum is that is stored beside a layer's output for the way back."""

    where: Where = Where()
    bits: Width
    source: Text


AnyRule = TypeVar("AnyRule", LayerRule, TensorRule)


class Passes(SpecModel):
    """Work on a tensor: times each element is read and written, operations for each element."""

    reads: Whole = Field(default=0, ge=0)
    writes: Whole = Field(default=0, ge=0)
    adds: Whole = Field(default=0, ge=0)
    macs: Whole = Field(default=0, ge=0)
    signal_reads: Whole = Field(default=0, ge=0)
    signal_writes: Whole = Field(default=0, ge=0)
    signal_macs: Whole = Field(default=0, ge=0)

    def cost(self) -> Cost:
        """As the cost of a layer."""
        return Cost(**self.model_dump())


class ExtraWork(SpecModel):
    """Full-precision work on the output of some layers that the graph does not show."""

    what: Annotated[Text, Field(pattern=r"^[A-Za-z0-9]")]  # a cell of a table, so no formula
    where: Where = Where()
    words: Whole = Field(default=1, ge=0, description="in units of accounting.preactivation_words")
    streamed: Passes | None = Field(
        default=None, description="what it is when operators are streamed; none: the graph shows it"
    )
    source: Text


class Teacher(SpecModel):
    """A trained network that is run forward beside the one that learns (distillation)."""

    network: Name
    method: Name
    source: Text


class Edge(NamedTuple):
    """One tensor of the graph: the output of a layer."""

    bits: int  # of an element going forward [bit]
    signal_bits: int  # of an element of the signal that comes back [bit]
    sum_bits: int  # of the +-1 sum that it is or was taken from [bit]
    floating: bool = False  # whether words narrower than full precision are floating-point
    copies: tuple[int, ...] = ()  # narrower widths at which products read it [bit]

    def also_read(self, treatment: Treatment) -> Edge:
        """With the copy that products with such a treatment read, if it is narrower."""
        copies = {*self.copies, treatment.read(self.bits)} - {self.bits}
        return self._replace(copies=tuple(sorted(copies)))


class Treatment(NamedTuple):
    """What a method does with the products of one layer."""

    weight_bits: int
    weight_signal_bits: int
    arithmetic: dict[Pass, Arithmetic]
    update: Update
    input_bits: int | None = None  # at most what the products read of an element; None: all of it

    def read(self, bits: int) -> int:
        """What the products read of an element of a tensor of `bits` [bit]."""
        return min(bits, self.input_bits or bits)


class Method(NamedSpec):
    """How a network is trained or run."""

    KIND: ClassVar[str] = "method"
    FOLDER: ClassVar[str] = "methods"

    colour: str | None = Field(
        default=None, pattern=r"^#[0-9a-f]{6}$", description="in every figure; the source's"
    )
    marker: Marker | None = Field(default=None, description="in figures of points, as matplotlib's")
    hatch: Hatch | None = Field(default=None, description="of bars, as matplotlib's; none: plain")
    layers: tuple[LayerRule, ...] = Field(min_length=1)
    tensors: tuple[TensorRule, ...] = Field(min_length=1)
    omits: tuple[Name, ...] = Field(
        default=(), description="kinds of layers without a role that it does without"
    )
    kept: tuple[SumRule, ...] = Field(
        default=(), description="sums stored beside the tensor for the way back"
    )
    extra_work: tuple[ExtraWork, ...] = ()
    teacher: Teacher | None = None

    def doubts(self) -> list[str]:
        """Sources that are not listed, and rules for what no layer is."""
        rules: tuple[Any, ...] = (*self.layers, *self.tensors, *self.kept, *self.extra_work)
        asked = [{"kind": self.omits}, *(rule.where.model_dump() for rule in rules)]
        return [*super().doubts(), *dict.fromkeys(chain(*map(no_such_layer, asked)))]

    def treatment(self, node: Node, accounting: Accounting) -> Treatment:
        """Widths [bit], arithmetic and update of a layer with products.

        Raises: SpecError where no rule matches, NameUnknown where `precision` is no method.
        """
        rule = self._resolved(node)
        assert rule.weights is not None and rule.weight_signal is not None and rule.update
        return Treatment(
            _width_of(rule.weights, 1, accounting, getattr(node.layer, "weight_bits", None)),
            _width_of(rule.weight_signal, 1, accounting),
            rule.arithmetic,
            rule.update,
            None if rule.inputs is None else _width_of(rule.inputs, 1, accounting),
        )

    def edges(
        self,
        nodes: tuple[Node, ...],
        accounting: Accounting,
        measured: Measures | None = None,
    ) -> dict[str, Edge]:
        """Widths of every tensor, by the name of the layer it comes from.

        Args:
            measured: what a trace says, in the place of the accounting's Boolean signal and sums.

        Raises: SpecError.
        """
        full = accounting.full_precision_bits
        edges = {INPUT: Edge(full, full, full)}
        found = {node.layer.name: _measured(node, measured) for node in nodes}
        for node in nodes:
            name, rule = node.layer.name, self._first(self.tensors, node, "tensors")
            ins = [edges[source] for source in node.inputs]
            sums = self._sum_bits(node, ins, accounting, found[name])
            bits = _width_of(rule.bits, sums, accounting, node.layer.bits)
            if rule.bits == AS_INPUT:
                bits = max((edge.bits for edge in ins), default=full)
            signal = _width_of(rule.signal, sums, accounting)
            if measured is not None and rule.signal == "boolean_signal" and ins:
                signal = _measured_signal(node, found, ins[0]) or signal
            edges[name] = Edge(bits, signal, sums, rule.format == "floating")
        for node in nodes:
            for source in node.inputs if node.macs else ():
                edges[source] = edges[source].also_read(self.treatment(node, accounting))
        return edges

    def _sum_bits(
        self, node: Node, ins: list[Edge], accounting: Accounting, own: LayerMeasures | None
    ) -> int:
        """Width of a layer's sums: as many bits as its terms need, where these are +1 and -1.

        If a trace has measured it (`own`), that many. Elsewhere a full-precision word; so, too,
        where such a word is one of the terms.
        """
        full = accounting.full_precision_bits
        if node.weights:
            logic = self.treatment(node, accounting).arithmetic["forward"] == "logic"
            measured = own.sum_bits if own else None
            return (measured or node.terms.bit_length()) if logic else full
        if node.layer.kind == "add":
            return max([node.terms.bit_length(), *(edge.sum_bits for edge in ins if edge.bits > 1)])
        return max((edge.sum_bits for edge in ins), default=full)

    def kept_bits(self, node: Node, edges: Mapping[str, Edge], accounting: Accounting) -> int:
        """Width of the sum stored beside a layer's input for the way back [bit]; 0: none is."""
        rule = next((rule for rule in self.kept if rule.where.matches(node)), None)
        return _width_of(rule.bits, edges[node.inputs[0]].sum_bits, accounting) if rule else 0

    def extra(self, node: Node) -> list[ExtraWork]:
        """Work on a layer's output beyond what the graph shows."""
        return [work for work in self.extra_work if work.where.matches(node)]

    def check_references(self) -> None:
        """See that every method named by a rule exists. Raises: NameUnknown."""
        self.references()

    def references(self) -> tuple[Method, ...]:
        """Methods that its rules name, and those that theirs do. Raises: NameUnknown."""
        named = dict.fromkeys(rule.precision for rule in self.layers if rule.precision)
        found: list[Method] = []
        for method in map(_referred, named):
            found += [method, *method.references()]
        return tuple(found)

    def _resolved(self, node: Node) -> LayerRule:
        """The rule for a layer with what it takes over filled in.

        Only bundled methods can be referred to, and a test sees that those end.
        """
        rule = self._first(self.layers, node, "layers")
        if rule.precision is None:
            return rule
        other = _referred(rule.precision)._resolved(node)
        names = ("weights", "weight_signal", "inputs", "update")
        own = {name: value for name in names if (value := getattr(rule, name))}
        return other.model_copy(update=own | {"arithmetic": other.arithmetic | rule.arithmetic})

    def _first(self, rules: tuple[AnyRule, ...], node: Node, what: str) -> AnyRule:
        for rule in rules:
            if rule.where.matches(node):
                return rule
        raise SpecError(
            f"method {self.name}: no rule of its {what} holds for {node.layer.name} "
            f"(kind {node.layer.kind}, position {node.position})"
        )


def _width_of(
    word: int | str, sum_bits: int, accounting: Accounting, in_file: int | None = None
) -> int:
    """Bits that a width means [bit]; a Boolean sum's are `sum_bits` where it is counted so.

    "stated" is what the network's file says (`in_file`), and a full-precision word where it says
    nothing.
    """
    if isinstance(word, int) or word == AS_INPUT:
        return int(word) if isinstance(word, int) else 0
    if word == "stated":
        return in_file or accounting.full_precision_bits
    stated: int | str = getattr(accounting, f"{word}_bits")
    return sum_bits if stated == "fan-in" else int(stated)


def _measured(node: Node, measured: Measures | None) -> LayerMeasures | None:
    """What a trace says of a layer that computes sums."""
    sums = node.weights or node.layer.kind == "add"
    return measured.of(node.layer.name, node.layer.kind) if measured and sums else None


def _measured_signal(
    node: Node, found: Mapping[str, LayerMeasures | None], source: Edge
) -> int | None:
    """Width of the signal that comes back to a tensor, as a trace saw it.

    A layer with weights receives it; an activation gets what the layers it feeds send; what lies
    between passes on what comes from behind, so it is as wide as at the layer before.
    """
    if node.weights:
        own = found[node.layer.name]
        return own.signal_bits if own else None
    if node.layer.kind != "activation":
        return source.signal_bits
    sent = [m.sent_bits for taker in node.consumers if (m := found[taker.name]) and m.sent_bits]
    return max(sent, default=None)


@cache
def _referred(name: str) -> Method:
    """A bundled method; a name that looks like a path is none. Raises: NameUnknown."""
    known = bundled(Method)
    if name not in known:
        raise NameUnknown(Method.KIND, name, known)
    return load(Method, name)
