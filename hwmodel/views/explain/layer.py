"""What a layer is before anything is counted: its shapes, its widths and what set them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hwmodel.graph.layers import Shape
from hwmodel.graph.network import INPUT
from hwmodel.graph.node import Node
from hwmodel.model import widths
from hwmodel.model.widths import Applied, Edge
from hwmodel.model.workload import Job
from hwmodel.specs.method import LayerRule, TensorRule, Where
from hwmodel.views.explain.lines import table
from hwmodel.work.tensor import shown

__all__ = ["Place", "layer_lines"]


class Place(NamedTuple):
    """A layer in its network, as a job has it."""

    job: Job
    edges: Mapping[str, Edge]
    nodes: tuple[Node, ...]
    node: Node


def layer_lines(at: Place) -> Iterator[str]:
    """Describe a layer: kind, shapes and widths, each width with the rule that set it."""
    node = at.node
    yield f"## Layer {node.layer.name}\n"
    text = (
        f"A layer of kind {node.layer.kind} at position {node.position}; shapes are (C, H, W) of "
        f"one image, the batch is {at.job.batch:,}. bits are of an element going forward, signal "
        "bits of the loss signal with respect to it."
    )
    if at.job.measured is not None:
        text += (
            " Widths of Boolean sums, signals and votes are measured ones where traces have them."
        )
    yield f"{text}\n"
    several = len(node.inputs) > 1
    of = {known.layer.name: known for known in at.nodes}
    rows = [
        _tensor(at, f"I{i}" if several else "I", name, shape, of.get(name))
        for i, (name, shape) in enumerate(zip(node.inputs, node.input_shapes, strict=True), 1)
    ]
    rows.append(_tensor(at, "O", node.layer.name, node.output_shape, node))
    if node.layer.loops(node.input_shapes, at.job.batch):
        rows.append(_filters(at))
    yield from table(("tensor", "shape", "bits", "signal bits", "set by", "source"), rows)
    yield ""


def _tensor(at: Place, word: str, name: str, shape: Shape, source: Node | None) -> tuple[str, ...]:
    """Make the line of an input or of the output; `source` is the layer that writes it."""
    edge = at.edges[name]
    cells = (f"{word}, from {name}", str(shape), shown(edge.bits), shown(edge.signal_bits))
    if name == INPUT or source is None:
        return *cells, "the network's input: a full-precision word", ""
    found = widths.tensor_rule(at.job.method, source)
    stated = {"bits": found.rule.bits, "signal": found.rule.signal}
    return *cells, _rule(at, found, stated), f"{found.method}: {found.rule.source}"


def _filters(at: Place) -> tuple[str, ...]:
    """Make the line of F: the rule for the layer, and the rules that it takes over."""
    node, treatment = (
        at.node,
        widths.treatment(at.job.method, at.node, at.job.accounting, at.job.measured),
    )
    rules = widths.layer_rules(at.job.method, node)
    by = ", which takes over ".join(
        _rule(at, found, found.rule.model_dump(include={"weights", "weight_signal", "inputs"}))
        for found in rules
    )
    first = at.edges[node.inputs[0]].bits
    read = treatment.read(first).bits
    if read != first:
        by += f"; of I the products read {shown(read)} bit"
    bits, signal = treatment.weight_bits, treatment.weight_signal_bits
    shape = f"{node.layer.weights(node.input_shapes):,} weights"
    if len(node.inputs) > 1:
        second = at.edges[node.inputs[1]]
        shape, bits, signal = (
            "the second input",
            treatment.read(second.bits, 1).bits,
            second.signal_bits,
        )
    sources = "; ".join(f"{found.method}: {found.rule.source}" for found in rules)
    return "F", shape, shown(bits), shown(signal), by, sources


def _rule(
    at: Place,
    found: Applied[LayerRule] | Applied[TensorRule],
    stated: Mapping[str, float | str | None],
) -> str:
    """Name a rule, what it asks for and what it says; of a word, what the accounting says."""
    means = widths.named_widths(at.job.accounting, at.job.method)
    limits = widths.limits_of(at.job.method)
    own = {"boolean_signal": limits.signal, "boolean_vote": limits.vote}
    asked = [(field, word, means.get(str(word))) for field, word in stated.items() if word]
    says = {False: f"accounting {at.job.accounting.name}", True: f"method {at.job.method.name}"}
    words = ", ".join(
        f"{field} {word} ({says[own.get(str(word)) is not None]}: {meant})"
        if meant
        else f"{field} {word}"
        for field, word, meant in asked
    )
    rule = f"{found.method}, {found.part} rule {found.number}{_shown(found.rule.where)}"
    return f"{rule}: {words}" if words else rule


def _shown(where: Where) -> str:
    """List the properties that a rule asks for."""
    asked = where.model_dump(exclude_none=True)
    listed = ", ".join(
        f"{name} {value if isinstance(value, bool) else ' or '.join(value)}"
        for name, value in asked.items()
    )
    return f" ({listed})" if listed else ""
