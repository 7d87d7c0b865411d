"""What a layer is before anything is counted: its shapes, its widths and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeVar

from hwmodel.graph.layers import Shape
from hwmodel.graph.network import INPUT
from hwmodel.graph.node import Node
from hwmodel.model import widths
from hwmodel.model.energy import Product
from hwmodel.model.evaluate import Report
from hwmodel.specs.files import load
from hwmodel.specs.method import LayerRule, Method, TensorRule, Where
from hwmodel.views.explain.steps import Section, Step, Table, computed, times
from hwmodel.work.problem import OPERANDS

__all__ = ["layer_section"]

AnyRule = TypeVar("AnyRule", LayerRule, TensorRule)


def layer_section(node: Node, products: Sequence[Product], report: Report) -> Section:
    """Kind, shapes and widths of a layer's tensors, each width with the rule that set it."""
    layer = node.layer
    rows = list(_tensors(node, report))
    if products:
        rows += _weights(node, products, report)
    text = (
        f"A layer of kind {layer.kind} at position {node.position}; shapes are (C, H, W) of one "
        f"image, the batch is {report.batch:,}. bits are of an element going forward, signal bits "
        "of the loss signal with respect to it."
    )
    if report.measured is not None:
        text += " Widths of Boolean sums and signals are measured ones where the trace has them."
    header = ("tensor", "shape", "bits", "signal bits", "set by", "source")
    return Section(f"Layer {layer.name}", text=text, table=Table(header, tuple(rows)),
                   steps=tuple(_macs(node, report)) if products else ())  # fmt: skip


def _tensors(node: Node, report: Report) -> Iterator[tuple[str, ...]]:
    """A line for every input and for the output."""
    several = len(node.inputs) > 1
    of = {known.layer.name: known for known in report.nodes}
    for i, (name, shape) in enumerate(zip(node.inputs, node.input_shapes, strict=True), 1):
        yield _tensor(f"I{i}" if several else "I", name, shape, of.get(name), report)
    yield _tensor("O", node.layer.name, node.output_shape, node, report)


def _tensor(
    word: str, name: str, shape: Shape, source: Node | None, report: Report
) -> tuple[str, ...]:
    edge = report.edges[name]
    cells = (f"{word}, from {name}", str(shape), str(edge.bits), str(edge.signal_bits))
    if name == INPUT or source is None:
        return (*cells, "the network's input: a full-precision word", "")
    number, rule = _first(report.method.tensors, source)
    words = ", ".join(
        f"{field} {_width(word, report)}"
        for field, word in (("bits", rule.bits), ("signal", rule.signal))
    )
    by = f"tensors rule {number}{_shown(rule.where)}: {words}"
    return (*cells, by, f"{report.method.name}: {rule.source}")


def _width(word: int | str, report: Report) -> str:
    """A width as a rule states it; of a word, what the accounting makes of it."""
    chosen = widths.named_widths(report.accounting).get(str(word))
    return (
        str(word) if chosen is None else f"{word} (accounting {report.accounting.name}: {chosen})"
    )


def _weights(node: Node, products: Sequence[Product], report: Report) -> Iterator[tuple[str, ...]]:
    """A line for F: the rule for the layer, and the rules that it takes over."""
    treatment = widths.treatment(report.method, node, report.accounting)
    method, names, sources = report.method, [], []
    while True:
        number, rule = _first(method.layers, node)
        words = [
            f"{field} {_width(word, report)}"
            for field in ("weights", "weight_signal", "inputs")
            if (word := getattr(rule, field)) is not None
        ]
        stated = f": {', '.join(words)}" if words else ""
        names.append(f"{method.name}, layers rule {number}{_shown(rule.where)}{stated}")
        sources.append(f"{method.name}: {rule.source}")
        if rule.precision is None:
            break
        method = load(Method, rule.precision)
    by = ", which takes over ".join(names)
    forward = products[0]
    tensors = dict(zip(forward.tensors, OPERANDS, strict=True))
    read = getattr(forward.problem.bits, tensors["I"])
    if read != report.edges[node.inputs[0]].bits:
        by += f"; of I the products read {read} bit"
    if len(node.inputs) > 1:
        second = report.edges[node.inputs[1]]
        bits, signal, shape = second.bits, second.signal_bits, "the second input"
    else:
        bits, signal = treatment.weight_bits, treatment.weight_signal_bits
        shape = f"{node.layer.weights(node.input_shapes):,} weights"
    yield "F", shape, str(bits), str(signal), by, "; ".join(sources)


def _first(rules: Sequence[AnyRule], node: Node) -> tuple[int, AnyRule]:
    """The first rule that matches, and its number in the file."""
    return next((i, rule) for i, rule in enumerate(rules, 1) if widths.matches(rule.where, node))


def _shown(where: Where) -> str:
    """The properties that a rule asks for."""
    asked = where.model_dump(exclude_none=True)
    listed = ", ".join(
        f"{name} {value if isinstance(value, bool) else ' or '.join(value)}"
        for name, value in asked.items()
    )
    return f" ({listed})" if listed else ""


def _macs(node: Node, report: Report) -> Iterator[Step]:
    """Multiply-accumulates of every pass: the loops of the pass that puts no zeros in."""
    loops = node.layer.loops(node.input_shapes, report.batch)
    plain = next(nest for nest in loops.values() if nest.height.spread == nest.width.spread == 1)
    n = plain.extent
    groups = [plain.groups] if plain.groups > 1 else []
    letters = f"{'g ' if groups else ''}{' '.join(n._fields)}"
    formula = "MACs = " + letters
    yield computed(
        "multiply-accumulates of each pass", formula, times(*groups, *n),
        report.batch * node.macs, source="docs/model.md section 1",
    )  # fmt: skip
    assert prod(n) * plain.groups == report.batch * node.macs
