"""The derivation of what is merely moved: operators, words for pre-activations, weight updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from hwmodel.graph.node import Node
from hwmodel.model.energy import COMPUTE, Operation, Row, Stream
from hwmodel.model.evaluate import Report
from hwmodel.model.prices import price
from hwmodel.views.explain.products import NumberedRow
from hwmodel.views.explain.steps import TIMES, Section, Step, computed, count, energy, exact, times

__all__ = ["stream_sections"]

_STREAMS = "docs/model.md section 6"
_TITLES = {
    ("elementwise", "forward"): "Operators, forward",
    ("elementwise", "backward_input"): "Operators, on the way back",
    ("elementwise", "backward_weight"): "Gradients that no product sums up",
    ("update", "update"): "Weight update",
}
Pairs = Sequence[tuple[Stream, Sequence[NumberedRow]]]


def stream_sections(pairs: Pairs, node: Node, report: Report) -> Iterator[Section]:
    """What every stream moves and what it costs, streams of one kind in one section."""
    moving = [(stream, rows) for stream, rows in pairs if rows]
    for part in dict.fromkeys((stream.component, stream.phase) for stream, _ in moving):
        here = [pair for pair in moving if (pair[0].component, pair[0].phase) == part]
        steps: list[Step] = []
        base = _Base("", (), 0)
        for stream, rows in here:
            base = _base(stream, base, node, report)
            bits = _adder_bits(stream, [other for other, _ in here], node, report)
            steps += _Moved(stream, base, bits, node, report).steps(rows)
        text = _text(part, [stream for stream, _ in here], report)
        yield Section(_TITLES[part], text=text, steps=tuple(steps))


def _text(part: tuple[str, str], streams: Sequence[Stream], report: Report) -> str:
    """What is counted here by the accounting's choice."""
    accounting = report.accounting
    if any(stream.tensor == "accumulator" for stream in streams):
        source = "as a trace measured" if report.measured else f"accounting {accounting.name}"
        return (
            "A Boolean step: the vote dF is added to the accumulator, which is compared, and the "
            f"weights that flip are written; accumulator bits and flip rate: {source}."
        )
    if part == ("elementwise", "backward_weight"):
        return (
            "Gradients are dense: all of dF is written. A table's is zero at first, and the rows "
            "looked up are then read, added to and written, once for each time; a constant's is "
            "the sum over the images; a sharer's is added to that of the weights' owner."
        )
    if part[0] == "update":
        return (
            f"A step of the optimizer, accounting {accounting.name}: {accounting.extras.optimizer}."
        )
    if accounting.extras.elementwise == "streamed":
        return "A tensor passes through every level between the outermost memory and the operators."
    return (
        f"Accounting {accounting.name}: preactivation_words "
        f"{accounting.extras.preactivation_words} of {accounting.widths.full_precision_bits} bit, "
        "in the outermost memory alone."
    )


def _adder_bits(stream: Stream, beside: Sequence[Stream], node: Node, report: Report) -> int:
    """Width of the additions that are priced as integer logic [bit]."""
    if stream.component == "update":
        return max((other.bits for other in beside if other.tensor == "accumulator"), default=1)
    if stream.tensor.endswith(" copy"):
        return report.edges[node.layer.name].bits
    if stream.tensor:  # sums of signals, of shared gradients: moves and operations in one stream
        return stream.bits
    edges = [report.edges[name] for name in (*node.inputs, node.layer.name)]
    forward = stream.phase == "forward"
    return max(edge.bits if forward else edge.signal_bits for edge in edges)


class _Base(NamedTuple):
    """The elements that a stream passes over: in words, as factors, and how many."""

    word: str
    factors: tuple[int, ...]
    elements: int


def _base(stream: Stream, before: _Base, node: Node, report: Report) -> _Base:
    """What `stream` passes over; in an update, what the gradient it began with has."""
    if stream.component == "update":
        if stream.tensor != "dF":
            return before
        others = before.elements or stream.reads != node.weights
        word = "biases, scales, shifts and tables" if others else "weights"
        return _Base(word, (stream.reads,), stream.reads)
    if stream.tensor == "dF" and stream.reads != stream.writes:  # all of it, not rows looked up
        layer, shapes = node.layer, node.input_shapes
        if weights := layer.weights(shapes):
            return _Base("weights", (weights,), weights)
        parameters = layer.other_parameters(shapes)
        return _Base("|F|", (parameters,), parameters)
    tensor = stream.tensor.removeprefix("saved ").removeprefix("d")
    if tensor[:1] == "I":
        shape = node.input_shapes[int(tensor[1:] or 1) - 1]
    else:
        tensor, shape = "O", node.output_shape
    places = stream.writes // report.batch
    if stream.tensor == "dO" and places and places < prod(shape):  # a sum of signals
        word = f"places of O that {stream.reads // stream.writes} layers take"
        return _Base(f"N {TIMES} {word}", (report.batch, places), stream.writes)
    factors = (report.batch, *shape)
    return _Base(f"|{tensor}|", factors, prod(factors))


class _Moved(NamedTuple):
    """A stream, what it passes over, how wide it adds, and where it stands."""

    stream: Stream
    base: _Base
    adder_bits: int
    node: Node
    report: Report

    def steps(self, rows: Sequence[NumberedRow]) -> Iterator[Step]:
        """Reads and writes, their energy at every level, the operations and theirs."""
        for verb, elements in (("read", self.stream.reads), ("written", self.stream.writes)):
            if elements:
                yield self._passes(verb, elements)
        operations = iter([operation for operation in self.stream.operations if operation.times])
        for number, row in rows:
            if row.level == COMPUTE:
                yield from self._operated(next(operations), number, row)
            else:
                yield self._energy(number, row)

    def _passes(self, verb: str, elements: int) -> Step:
        """How often a tensor is read or written, times its elements."""
        base, often = self.base, elements // self.base.elements
        text = f"{self.stream.tensor}, elements {verb}, {self.stream.bits} bit each"
        text += f" ({self._width})"
        if elements % base.elements:  # not all of them: the weights that flip
            numbers = f"round({self._flip_rate!r} {TIMES} {count(base.elements)})"
            return computed(text, f"flip rate {TIMES} {base.word}", numbers, elements)
        formula, factors = (f"{often} {base.word}", [often]) if often > 1 else (base.word, [])
        numbers = times(*factors, *base.factors)
        return computed(text, formula, numbers, elements, source=_STREAMS)

    @property
    def _width(self) -> str:
        """What sets the bits of an element."""
        tensor, accounting = self.stream.tensor, self.report.accounting
        if tensor == "kept sum":
            return f"method {self.report.method.name}, kept"
        if tensor.endswith(" copy"):
            return f"method {self.report.method.name}, inputs of what reads it"
        if tensor == "accumulator":
            or_trace = ", or measured" if self.report.measured else ""
            return f"accounting {accounting.name}, accumulator_bits{or_trace}"
        if tensor in ("dF", "F") and self.base.word == "weights":
            return "as F above"
        if tensor.removeprefix("saved ").lstrip("d")[:1] in ("I", "O"):
            return "as above"
        return f"accounting {accounting.name}, full_precision_bits"

    @property
    def _flip_rate(self) -> float:
        layer, measured = self.node.layer, self.report.measured
        found = measured.of(layer.name, layer.kind) if measured else None
        if found is None or found.flip_rate is None:
            return self.report.accounting.extras.flip_rate
        return found.flip_rate

    def _energy(self, number: int, row: Row) -> Step:
        """Reads are paid where ifmaps are, writes where ofmaps are."""
        stream, unit = self.stream, self.report.unit
        buffers = [buffer for level in self.report.hardware.levels for buffer in level.buffers]
        memory = next(buffer for buffer in buffers if buffer.name == row.level)
        reads, writes = stream.reads * ("I" in memory.holds), stream.writes * ("O" in memory.holds)
        terms = [
            ("reads b e_read", reads, memory.read_energy_per_bit),
            ("writes b e_write", writes, memory.write_energy_per_bit),
        ]
        terms = [term for term in terms if term[1]]
        return computed(
            f"{stream.tensor}, energy in {row.level}",
            " + ".join(formula for formula, *_ in terms),
            " + ".join(times(elements, stream.bits, exact(price)) for _, elements, price in terms),
            row.energy, unit, show=energy, source=memory.source, row=number,
        )  # fmt: skip

    def _operated(self, operation: Operation, number: int, row: Row) -> Iterator[Step]:
        """Operations for each element, and their energy."""
        report, base = self.report, self.base
        each = 2 * self.adder_bits - 1 if operation.kind == "logic" else 1
        often, rest = divmod(operation.times, each * base.elements)
        assert not rest, f"{self.node.layer.name}: {operation} is no multiple of {base}"
        formula, numbers = f"{often} {base.word}", times(often, *base.factors)
        if operation.kind == "logic":
            formula += " (2b - 1)"
            numbers += f" {TIMES} (2 {TIMES} {self.adder_bits} - 1)"
        yield computed(
            f"operations of kind {operation.kind}, {often} for each element", formula, numbers,
            operation.times, source=_STREAMS,
        )  # fmt: skip
        paid = price(operation.kind, operation.bits, report.hardware, report.accounting)
        yield computed(
            f"energy of the operations of kind {operation.kind}", "operations e_operation",
            times(operation.times, exact(paid)), row.energy, report.unit, show=energy, row=number,
        )  # fmt: skip
