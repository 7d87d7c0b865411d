"""Widths of all tensors of a network under a method: its rules, applied to the layers.

The first rule that matches a layer applies, and a layer that none matches is an error. Widths
that are a matter of accounting (the full-precision word, the Boolean signal) are looked up there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from hwmodel.errors import SpecError, SpecWarning
from hwmodel.graph.layers import Layer, Shape, no_such_layer
from hwmodel.graph.network import INPUT
from hwmodel.graph.node import Node
from hwmodel.importers.load import load_network
from hwmodel.model.measured import Measures
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import NamedSpec, bundled, load, said_of
from hwmodel.specs.formats import Format, fraction
from hwmodel.specs.limits import Limits
from hwmodel.specs.method import (
    AS_INPUT,
    Arithmetic,
    ExtraWork,
    LayerRule,
    Method,
    TensorRule,
    Update,
    Where,
    referred,
)
from hwmodel.specs.provenance import Input, input_of
from hwmodel.work.optimizers import Optimizer
from hwmodel.work.problem import ProductPass
from hwmodel.work.tensor import Bits, Stated, Word, format_bits, shown

__all__ = [
    "Applied",
    "Copy",
    "Edge",
    "Treatment",
    "Wide",
    "doubts",
    "edges",
    "extra_work",
    "kept_bits",
]
__all__ += ["layer_rules", "limits_of", "matches", "method_inputs", "method_specs", "named_widths"]
__all__ += ["tell_doubts", "tell_unread", "tensor_rule", "treatment", "unlearned", "unpriced"]

Rule = TypeVar("Rule", LayerRule, TensorRule)
NO_LIMITS = Limits()


class Applied(NamedTuple, Generic[Rule]):
    """The rule of a method that holds for a layer, and where it stands."""

    method: str
    part: str  # of the method's file
    number: int  # in that part, from 1
    rule: Rule


class Wide(NamedTuple):
    """A width: bits of an element with its share of scales, and of a format what is multiplied."""

    bits: Bits
    word: Word | None = None


class Copy(NamedTuple):
    """Narrower words of a tensor, which products read."""

    bits: Bits
    word: Word | None = None
    passes: tuple[bool, bool] = (True, False)  # whether forward, whether backward_weight reads it

    def copies(self, trains: bool) -> int:
        """How many there are: blocks of scales run along the reduction, which differs by pass."""
        forward, back = self.passes[0], self.passes[1] and trains
        blocks = bool(self.word and self.word.block)
        return forward + back if blocks else int(forward or back)


class Edge(NamedTuple):
    """One tensor of the graph: the output of a layer."""

    bits: Bits  # of an element going forward [bit]
    signal_bits: Bits  # of an element of the signal that comes back [bit]
    sum_bits: int  # of the +-1 sum that it is or was taken from [bit]
    floating: bool = False  # whether words narrower than full precision are floating-point
    copies: tuple[Copy, ...] = ()  # narrower words that products read
    word: Word | None = None  # what products multiply of an element in a format
    signal_word: Word | None = None
    nonzero: float = 1.0  # share of the elements going forward that are not 0, as far as known

    def also_read(self, treatment: Treatment, place: int) -> Edge:
        """Add the copies that products under a treatment read, if narrower than the tensor."""
        known = {(copy.bits, copy.word): copy for copy in self.copies}
        asked = (treatment.read(self.bits, place), treatment.read_back(self.bits, place))
        for back, wide in enumerate(asked):
            if wide.bits < self.bits:
                forward, also = known.get(wide, Copy(*wide, (False, False))).passes
                passes = forward or not back, also or bool(back)
                known[wide] = Copy(*wide, passes)
        copies = sorted(known.values(), key=lambda copy: (copy.bits, str(copy.word)))
        return self._replace(copies=tuple(copies))


class Treatment(NamedTuple):
    """Widths, arithmetic and update of the products of one layer under a method."""

    weight_bits: Bits
    weight_signal_bits: Bits
    arithmetic: dict[ProductPass, Arithmetic]
    update: Update
    inputs: tuple[Wide, ...] = ()  # of each input, at most what products read; (): all of it
    inputs_back: tuple[Wide, ...] = ()  # the same of backward_weight; (): as forward
    weight_word: Word | None = None
    weight_back: Wide | None = None  # F as backward_input reads it; None: as forward
    signal: Wide | None = None  # at most what products read of dO; None: all of it
    latent: int | None = None  # of a weight that is stepped [bit]; None: full precision
    optimizer: Optimizer | None = None  # None: the accounting's
    states: tuple[int, ...] = ()  # widths of what it remembers [bit]; (): its own

    @property
    def input_bits(self) -> Bits | None:
        """At most what the products read of an element of the first input; None: all of it."""
        return self.inputs[0].bits if self.inputs else None

    def read(self, bits: Bits, place: int = 0) -> Wide:
        """Return what forward products read of an input of `bits`; `Wide(bits)` is all of it."""
        return _narrower(self.inputs, bits, place)

    def read_back(self, bits: Bits, place: int = 0) -> Wide:
        """Return the same of backward_weight."""
        return _narrower(self.inputs_back or self.inputs, bits, place)


def _narrower(widths: tuple[Wide, ...], bits: Bits, place: int) -> Wide:
    own = widths[place] if widths else Wide(bits)
    return own if own.bits < bits else Wide(bits)


def matches(where: Where, node: Node) -> bool:
    """Whether a rule means the layer at `node`: all layers that it feeds must be in `feeds`."""
    has = {
        "kind": node.layer.kind,
        "position": node.position,
        "role": node.layer.role,
        "function": getattr(node.layer, "function", None),
    }
    if any(
        wanted is not None and has[name] not in wanted
        for name in has
        for wanted in [getattr(where, name)]
    ):
        return False
    if where.learned is not None and where.learned != (node.layer.learned is True):
        return False
    if where.stated is not None and where.stated != node.stated:
        return False
    if where.feeds_role is not None:
        roles = {layer.role for layer in node.consumers}
        if roles.isdisjoint(where.feeds_role):
            return False
    return where.feeds is None or (bool(node.feeds) and set(node.feeds) <= set(where.feeds))


def tensor_rule(method: Method, node: Node) -> Applied[TensorRule]:
    """Return the rule that sets the widths of a layer's output and signal. Raises: SpecError."""
    return _first(method, method.tensors, node, "tensors")


def layer_rules(method: Method, node: Node) -> list[Applied[LayerRule]]:
    """Return the rule for a layer's products; behind it the one that it takes over, and so on.

    Only bundled methods can be referred to, and a test sees that those end.

    Raises: SpecError where no rule holds, NameUnknown where `precision` is no method.
    """
    found = _first(method, method.layers, node, "layers")
    if found.rule.precision is None:
        return [found]
    return [found, *layer_rules(referred(found.rule.precision), node)]


def treatment(
    method: Method, node: Node, accounting: Accounting, measured: Measures | None = None
) -> Treatment:
    """Widths [bit], arithmetic and update of a layer with products.

    Args:
        measured: measurements of traces, in the place of the accounting's votes.

    Raises: SpecError where no rule matches, NameUnknown where `precision` is no method.
    """
    rule = _resolved(method, node)
    assert rule.weights is not None and rule.weight_signal is not None and rule.update
    votes = _width_of(rule.weight_signal, 1, method, accounting)
    if measured is not None and rule.weight_signal == "boolean_vote" and not limits_of(method).vote:
        votes = measured[node.layer.name].vote_bits or votes

    def wide(
        word: float | str, shape: tuple[int, int], in_file: Stated | Format | None = None
    ) -> Wide:
        return _wide(word, 1, method, accounting, shape, in_file)

    def of_inputs(word: float | str | None) -> tuple[Wide, ...]:
        shapes = () if word is None else node.input_shapes
        return tuple(wide(word or 0, _rows(shape)) for shape in shapes)

    along, across = _matrix(node)
    weights = wide(rule.weights, along, node.weight_bits)
    back = None
    if rule.weights_backward is not None:
        back = wide(rule.weights_backward, across, node.weight_bits)
        if back == weights and not (back.word and back.word.block):
            back = None  # the same words; only blocks of scales run along a reduction
    if back and rule.update == "boolean" and node.learned_weights:
        raise SpecError(
            f"method {method.name}: weights_backward of {node.layer.name}: Boolean weights have no "
            "latent ones of which other words could be made; leave it out"
        )
    signal = None if rule.signal is None else wide(rule.signal, _rows(node.output_shape))
    as_it_is = rule.arithmetic["backward_input"] != "mac" or (signal and signal.word)
    if back is None and weights.word and weights.word.block and as_it_is:
        back = wide(
            rule.weights, across, node.weight_bits
        )  # expanded words need no blocks along the outputs
    return Treatment(
        weights.bits,
        votes,
        rule.arithmetic,
        rule.update,
        of_inputs(rule.inputs),
        of_inputs(rule.inputs_backward),
        weights.word,
        back,
        signal,
        rule.latent,
        rule.optimizer or method.optimizer,
        rule.states or (),
    )


def _rows(shape: Shape) -> tuple[int, int]:
    """Rows and channels of a map of one image; blocks of a format run along channels."""
    C, H, W = shape
    return H * W, C


def _matrix(node: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and lengths of weights along the inputs, and along the outputs of a group."""
    nest = node.layer.loops(node.input_shapes, 1)["forward"]
    weights = max(node.layer.weights(node.input_shapes), 1)
    C, M = nest.extent.C, nest.extent.M
    return (max(weights // C, 1), C), (max(weights // M, 1), M)


def edges(
    method: Method,
    nodes: tuple[Node, ...],
    accounting: Accounting,
    measured: Measures | None = None,
) -> dict[str, Edge]:
    """Widths of every tensor, by the name of the layer it comes from.

    Args:
        measured: measurements of traces, in the place of the accounting's signals and sums.

    Raises: SpecError.
    """
    full = accounting.widths.full_precision_bits
    found = {INPUT: Edge(full, full, full, nonzero=_nonzero_input(nodes, measured))}
    for node in nodes:
        name, rule = node.layer.name, tensor_rule(method, node).rule
        ins = [found[source] for source in node.inputs]
        sums = _sum_bits(method, node, ins, accounting, measured)
        shape = _rows(node.output_shape)
        bits, word = _wide(rule.bits, sums, method, accounting, shape, node.bits)
        if rule.bits == AS_INPUT:
            bits, word = max(
                ((e.bits, e.word) for e in ins), key=itemgetter(0), default=(full, None)
            )
        signal, signal_word = _wide(rule.signal, sums, method, accounting, shape)
        is_free = rule.signal == "boolean_signal" and not limits_of(method).signal
        if measured is not None and is_free and ins:
            signal = _measured_signal(node, measured, ins[0]) or signal
        if node.rate is not None:  # spikes, whatever the method
            bits, word = 1, None
        floating = rule.format == "floating"
        nonzero = _nonzero(node, bits, measured)
        found[name] = Edge(bits, signal, sums, floating, (), word, signal_word, nonzero)
    for node in nodes:
        for place, source in enumerate(node.inputs if node.macs else ()):
            read = treatment(method, node, accounting)
            found[source] = found[source].also_read(read, place)
    return found


def _nonzero(node: Node, bits: Bits, measured: Measures | None) -> float:
    """Share of a layer's output that is not 0: of spikes, or as traces or the network say.

    Other words of 1 bit are signs, and a sign is never 0.
    """
    if node.rate is not None:
        return node.rate
    return 1.0 if bits == 1 else _beside_zeros(node.consumers, node.zeros, measured)


def _nonzero_input(nodes: tuple[Node, ...], measured: Measures | None) -> float:
    """The same of the network's input."""
    takers = [
        (node.layer, zeros)
        for node in nodes
        for name, zeros in zip(node.inputs, node.input_zeros, strict=True)
        if name == INPUT
    ]
    stated = takers[0][1] if takers else 0.0
    return _beside_zeros([layer for layer, _ in takers], stated, measured)


def _beside_zeros(takers: Sequence[Layer], stated: float, measured: Measures | None) -> float:
    """What is left beside zeros: as traces measured them at a layer that reads them, or stated."""
    of = [(measured or {}).get(layer.name) for layer in takers]
    found = [one.map_zeros for one in of if one and one.map_zeros is not None]
    return 1 - (found[0] if found else stated)


def kept_bits(method: Method, node: Node, edges: Mapping[str, Edge], accounting: Accounting) -> int:
    """Return the width of the sum stored beside a layer's input [bit]; 0 if none is stored."""
    rule = next((rule for rule in method.kept if matches(rule.where, node)), None)
    if rule is None or rule.bits == "none":
        return 0
    return _width_of(rule.bits, edges[node.inputs[0]].sum_bits, method, accounting)


def extra_work(method: Method, node: Node) -> list[ExtraWork]:
    """List the work on a layer's output that the graph does not show."""
    return [work for work in method.extra_work if matches(work.where, node)]


def tell_doubts(method: Method, *, every: bool = False) -> None:
    """Warn of rules of a user's method that can hold for no layer, of the first or of every one.

    Bundled ones have none, and a test sees to it.
    """
    found = [] if method.name in bundled(Method) else doubts(method)
    for doubt in said_of(found, Method, every):
        warnings.warn(f"method {method.name}: {doubt}", SpecWarning, stacklevel=2)


def tell_unread(method: Method, nodes: Sequence[Node], found: Mapping[str, Edge]) -> None:
    """Warn of a user's rule whose `inputs` is wider than all that its products read.

    Args:
        found: the widths of all tensors, as `edges` gives them.
    """
    if method.name in bundled(Method):
        return
    of_rules: dict[int, list[tuple[Node, Bits, float]]] = {}
    for node in nodes if method.layers else ():
        if not node.macs:
            continue
        number, rule = layer_rules(method, node)[0][2:]
        asked = getattr(rule, "inputs", None)
        if isinstance(asked, (int, float)):
            widest = max(found[name].bits for name in node.inputs)
            of_rules.setdefault(number, []).append((node, widest, asked))
    for number, several in of_rules.items():
        if all(widest < asked for _, widest, asked in several):
            node, widest, asked = several[0]
            warnings.warn(
                f"method {method.name}: inputs {asked:g} of rule {number} of layers changes "
                f"nothing in this network: what {node.layer.name} reads has {shown(widest)} bit; "
                "how wide a tensor is, rules of tensors say",
                SpecWarning,
                stacklevel=2,
            )


def doubts(method: Method) -> list[str]:
    """List the rules that can hold for no layer."""
    rules: tuple[Any, ...] = (*method.layers, *method.tensors, *method.kept, *method.extra_work)
    asked = [{"kind": method.omits}, *(rule.where.model_dump() for rule in rules)]
    return list(dict.fromkeys(chain(*map(no_such_layer, asked))))


def method_inputs(method: Method) -> Iterator[Input]:
    """Yield a method, the methods its rules name, and its teacher, as inputs."""
    return map(input_of, method_specs(method))


def method_specs(method: Method) -> Iterator[NamedSpec]:
    """Yield a method, the methods its rules name, and its teacher, as specs.

    A teacher runs forward alone, and so without a teacher of its own.
    """
    yield from (method, *method.references())
    if method.teacher is not None:
        taught_by = load(Method, method.teacher.method)
        yield load_network(method.teacher.network)
        yield from (taught_by, *taught_by.references())


def _sum_bits(
    method: Method,
    node: Node,
    ins: list[Edge],
    accounting: Accounting,
    measured: Measures | None,
) -> int:
    """Return the width of a layer's sums: as many bits as its terms of +1 and -1 need.

    A width that traces have measured comes first. Sums of other terms, a full-precision word among
    them, are full-precision words.
    """
    full = accounting.widths.full_precision_bits
    own = measured[node.layer.name].sum_bits if measured and node.layer.name in measured else None
    if node.weights:
        logic = treatment(method, node, accounting).arithmetic["forward"] == "logic"
        return (own or node.terms.bit_length()) if logic else full
    if node.layer.kind == "add":
        widest = [edge.sum_bits for edge in ins if edge.bits > 1]
        return own or max([node.terms.bit_length(), *widest])
    return max((edge.sum_bits for edge in ins), default=full)


def _resolved(method: Method, node: Node) -> LayerRule:
    """Return the rule for a layer, filled in from the rules that it refers to."""
    *taking, (*_, rule) = layer_rules(method, node)
    names = set(LayerRule.model_fields) - {"where", "precision", "arithmetic", "source"}
    for *_, taker in reversed(taking):
        own = {name: value for name in names if (value := getattr(taker, name))}
        rule = rule.model_copy(update=own | {"arithmetic": rule.arithmetic | taker.arithmetic})
    return rule


def _first(method: Method, rules: tuple[Rule, ...], node: Node, part: str) -> Applied[Rule]:
    for number, rule in enumerate(rules, 1):
        if matches(rule.where, node):
            return Applied(method.name, part, number, rule)
    raise SpecError(
        f"method {method.name}: no rule of its {part} holds for {node.layer.name} "
        f"(kind {node.layer.kind}, position {node.position})"
    )


def _wide(
    word: float | str,
    sum_bits: int,
    method: Method,
    accounting: Accounting,
    shape: tuple[int, int],
    in_file: Stated | Format | None = None,
) -> Wide:
    """Return a width's word as bits; of a format, for a tensor of so many rows and channels."""
    if word == "stated" and isinstance(in_file, str):
        return Wide(format_bits(in_file), Word(format_bits(in_file), in_file))
    stated = in_file if word == "stated" and isinstance(in_file, Format) else None
    if found := stated or method.format_of(word):
        return Wide(found.width(*shape), found.word)
    if isinstance(word, float):
        return Wide(fraction(word))
    whole = in_file if isinstance(in_file, int) else None
    return Wide(_width_of(word, sum_bits, method, accounting, whole))


def _width_of(
    word: float | str,
    sum_bits: int,
    method: Method,
    accounting: Accounting,
    in_file: int | None = None,
) -> int:
    """Return the bits of a width's word; `sum_bits` are those of a Boolean sum.

    "stated" is what the network's file says (`in_file`), and a full-precision word where it says
    nothing.
    """
    if word == AS_INPUT:
        return 0
    if not isinstance(word, str):
        return int(word)
    if word == "stated":
        return in_file or accounting.widths.full_precision_bits
    bits = named_widths(accounting, method)[word]
    return sum_bits if bits == "fan-in" else int(bits)


def limits_of(method: Method) -> Limits:
    """Return the widths that a method limits; without any, none is."""
    return method.widths or NO_LIMITS


def named_widths(accounting: Accounting, method: Method) -> dict[str, int | str]:
    """What each word for a width means [bit]; a Boolean sum may be "fan-in".

    What a method limits is as wide as it says, whatever the accounting.
    """
    signal, vote = limits_of(method).signal, limits_of(method).vote
    return {
        "full_precision": accounting.widths.full_precision_bits,
        "preactivation": accounting.widths.preactivation_bits,
        "boolean_signal": signal.bits if signal else accounting.widths.boolean_signal_bits,
        "boolean_vote": vote.bits if vote else accounting.widths.boolean_vote_bits,
        "boolean_sum": accounting.widths.boolean_sum_bits,
        "border": accounting.widths.border_bits,
    }


def unpriced(method: Method, accounting: Accounting) -> Iterator[str]:
    """List what training by a method takes that is not paid: of limited widths, and a teacher."""
    limits, teacher = limits_of(method), method.teacher
    if teacher and not accounting.extras.teacher:
        run = f"{teacher.network} under {teacher.method}"
        yield f"the forward pass of a teacher, {run} ({method.name})"
    scaled = [width for width in (limits.signal, limits.vote) if width]
    roundings = {width.rounding for width in scaled}
    if limits.accumulator:
        roundings.add(limits.accumulator.rounding)
    if any(width.scale == "step" for width in scaled):
        yield f"sums that wait at full width for the largest of their tensor ({method.name})"
    if "stochastic" in roundings:
        yield f"random bits of stochastic rounding ({method.name})"


def unlearned(method: Method, accounting: Accounting) -> str:
    """A sentence on signals with which no run here has learned; "" if there are none."""
    own = limits_of(method).signal
    if not method.flips or named_widths(accounting, method)["boolean_signal"] != 1:
        return ""
    whose = f"method {method.name}" if own else f"accounting {accounting.name}"
    return (
        f"Signals of 1 bit, as {whose} has them, price something that did not learn in any form "
        "tried here (docs/trainer.md)."
    )


def _measured_signal(node: Node, measured: Measures, source: Edge) -> Bits | None:
    """Return the width of the signal that comes back to a tensor, as traces measured it.

    A layer with weights receives the signal; an activation receives what the layers after it
    send; other layers pass it on, so that it is as wide as at the layer before.
    """
    if node.weights:
        own = measured.get(node.layer.name)
        return own.signal_bits if own else None
    if node.layer.kind != "activation":
        return source.signal_bits
    after = [measured[taker.name] for taker in node.consumers if taker.name in measured]
    return max((one.sent_bits for one in after if one.sent_bits), default=None)
