"""What each layer has to do in one iteration: its products, and what is merely moved.

Nothing here knows a chip. Products become loop nests with widths; operators, stored activations
and weight updates become streams of elements with operations on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Literal, NamedTuple

from hwmodel.graph.layers import Cost
from hwmodel.graph.node import Node
from hwmodel.model import widths
from hwmodel.model.energy import Operation, Product, Stream
from hwmodel.model.measured import Measures
from hwmodel.model.prices import adder_operations
from hwmodel.model.widths import Edge, Treatment
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.method import Method
from hwmodel.work.problem import PASSES, LoopNest, Pass, Problem, Widths

__all__ = ["MODES", "Job", "Mode", "works"]

Mode = Literal["training", "inference"]
MODES: dict[Mode, tuple[Pass, ...]] = {"training": tuple(PASSES), "inference": ("forward",)}


class Job(NamedTuple):
    """What is done: how, how it is counted, on how many images, forward only or not."""

    method: Method
    accounting: Accounting
    batch: int
    mode: Mode
    measured: Measures | None = None

    @property
    def trains(self) -> bool:
        """Whether there is a way back."""
        return self.mode == "training"


def works(node: Node, edges: Mapping[str, Edge], job: Job) -> Iterator[Product | Stream]:
    """The work of one layer in one iteration."""
    loops = node.layer.loops(node.input_shapes, job.batch)
    treatment = widths.treatment(job.method, node, job.accounting) if loops else None
    if treatment:
        yield from _products(node, loops, edges, treatment, job)
    yield from _extra_words(node, job)
    if job.accounting.extras.elementwise == "streamed":
        yield from _operator(node, edges, job)
        yield from _copies(node, edges, job)
        yield from _extra_streams(node, job)
        if job.trains:
            yield from _broadcast(node, edges, job)
            yield from _gradients(node, treatment, edges, job)
        yield from _fork(node, edges, job)
    if job.trains:
        yield from _weight_update(node, treatment, job)


def _products(
    node: Node,
    loops: Mapping[Pass, LoopNest],
    edges: Mapping[str, Edge],
    treatment: Treatment,
    job: Job,
) -> Iterator[Product]:
    ins, out = [edges[name] for name in node.inputs], edges[node.layer.name]
    second = ins[1] if len(ins) > 1 else None  # of an attention product: no weights, a tensor
    bits_of = {
        "I": treatment.read(ins[0].bits),
        "F": treatment.read(second.bits) if second else treatment.weight_bits,
        "O": out.bits,
        "dI": ins[0].signal_bits,
        "dF": second.signal_bits if second else treatment.weight_signal_bits,
        "dO": out.signal_bits,
    }
    for phase in MODES[job.mode]:
        first = job.accounting.counting.first_layer_input_gradient and node.position == "first"
        if phase == "backward_input" and not (node.signal_to[0] or first):
            continue
        nest = loops[phase]
        bits = Widths(*(bits_of[tensor] for tensor in nest.tensors))
        problem = Problem(nest.extent, nest.height, nest.width, bits, nest.groups)
        macs = job.batch * node.macs
        arithmetic = treatment.arithmetic[phase]
        operation = _operation(arithmetic, macs, problem, bits_of["dO"], job.accounting)
        yield Product(node.layer.name, phase, problem, nest.tensors, (operation,))


def _operation(
    arithmetic: str, macs: int, problem: Problem, signal_bits: int, accounting: Accounting
) -> Operation:
    """The operations of a product (spec sections 7 and 9).

    A MAC or an addition is as wide as its wider operand. A shift and an addition (one operand is
    a power of two) is an integer addition to the partial sum. `logic` is one Boolean operation a
    MAC, or the XNOR and the logic of the adder that counts; to `accumulate` a b-bit signal takes
    2b - 1 Boolean operations.
    """
    bits = max(problem.bits.I, problem.bits.F)
    if arithmetic in ("mac", "int-mac", "add"):
        return Operation(arithmetic, bits, macs)  # type: ignore[arg-type]
    if arithmetic == "shift-add":
        return Operation("int-add", accounting.widths.partial_sum_bits, macs)
    if arithmetic == "accumulate":
        return Operation("logic", 1, macs * adder_operations(signal_bits))
    n = problem.extent
    terms = n.C * n.HF * n.WF
    adder = accounting.counting.boolean_price == "adder"
    return Operation("logic", 1, macs * (1 + adder * adder_operations(terms.bit_length())))


def _extra_words(node: Node, job: Job) -> Iterator[Stream]:
    """A method's full-precision work on pre-activations, as words moved through DRAM."""
    if job.accounting.extras.elementwise != "preactivation-words":
        return
    for work in widths.extra_work(job.method, node):
        words = work.words * job.accounting.extras.preactivation_words * job.batch
        yield Stream(
            node.layer.name, "forward", "elementwise", work.what,
            writes=words * prod(node.output_shape),
            bits=job.accounting.widths.full_precision_bits, through=False,
        )  # fmt: skip


def _extra_streams(node: Node, job: Job) -> Iterator[Stream]:
    """The same, where operators are streamed: on the output of the layer, in full precision."""
    full = job.accounting.widths.full_precision_bits
    for work in widths.extra_work(job.method, node):
        if work.streamed is not None:
            size = job.batch * prod(node.output_shape)
            tensor = _Tensor(work.what, size, full, full)
            cost = Cost(**work.streamed.model_dump())
            yield from _streams(node.layer.name, cost, [tensor], tensor, (True,), True, 0, job)


def _copies(node: Node, edges: Mapping[str, Edge], job: Job) -> Iterator[Stream]:
    """The narrower copies that products read of a tensor, made as it is written.

    A copy of 1 bit takes a comparison, a wider one a multiply-add, which scales. Those of the
    network's input belong to the loading of data, which no accounting counts.
    """
    edge = edges[node.layer.name]
    tensor = _tensor("O", job.batch * prod(node.output_shape), edge)
    for bits in edge.copies:
        counts = (1, 0, 0) if bits == 1 else (0, 1, 0)
        yield Stream(
            node.layer.name, "forward", "elementwise", f"{bits}-bit copy",
            writes=tensor.elements, bits=bits, operations=_counted(counts, [tensor], tensor, job),
        )  # fmt: skip


class _Tensor(NamedTuple):
    name: str
    elements: int
    bits: int
    signal_bits: int
    floating: bool = False  # whether words narrower than full precision are floating-point


def _tensor(name: str, elements: int, edge: Edge) -> _Tensor:
    """The tensor of an edge of the graph."""
    return _Tensor(name, elements, edge.bits, edge.signal_bits, edge.floating)


def _operator(node: Node, edges: Mapping[str, Edge], job: Job) -> Iterator[Stream]:
    """An operator that is no product: reads, writes and operations, forward and back."""
    cost = node.layer.cost(node.input_shapes)
    if cost is None:
        return
    batch, name = job.batch, node.layer.name
    out = _tensor("O", batch * prod(node.output_shape), edges[name])
    ins = [
        _tensor("I" if len(node.inputs) == 1 else f"I{i}", batch * prod(shape), edges[source])
        for i, (source, shape) in enumerate(zip(node.inputs, node.input_shapes, strict=True), 1)
    ]
    if node.layer.kind == "activation" and ins[0].bits == out.bits == 1:
        cost = cost._replace(reads=0, writes=0, saved_input=0)  # thresholded as it was written
    kept = 0
    if job.accounting.extras.stored_activations and ins:
        kept = widths.kept_bits(job.method, node, edges, job.accounting)
    if kept:  # the sum says what the input and the output would
        cost = cost._replace(saved_input=0, saved_output=0)
    yield from _streams(name, cost, ins, out, node.signal_to, node.learns, kept, job)


def _streams(
    name: str,
    cost: Cost,
    ins: list[_Tensor],
    out: _Tensor,
    signal_to: tuple[bool, ...],
    goes_back: bool,
    kept_bits: int,
    job: Job,
) -> Iterator[Stream]:
    def stream(phase: str, tensor: str, reads: int, writes: int, bits: int) -> Stream:
        return Stream(name, phase, "elementwise", tensor, reads, writes, bits)

    reads = cost.reads
    if not job.trains and cost.inference_reads is not None:
        reads = cost.inference_reads
    for tensor in ins:
        yield stream("forward", tensor.name, reads * tensor.elements, 0, tensor.bits)
    table = cost.table_reads * out.elements
    yield stream("forward", "F", table, 0, job.accounting.widths.full_precision_bits)
    yield stream("forward", out.name, 0, cost.writes * out.elements, out.bits)
    counts = (cost.adds, cost.macs, cost.specials)
    yield Stream(name, "forward", "elementwise", "", operations=_counted(counts, ins, out, job))
    if not (job.trains and goes_back):
        return
    keeps = job.accounting.extras.stored_activations
    if kept_bits:
        yield stream("forward", "kept sum", 0, out.elements, kept_bits)
        yield stream("backward_input", "kept sum", out.elements, 0, kept_bits)
    signal = cost.signal_reads * out.elements
    yield stream("backward_input", "dO", signal, 0, out.signal_bits)
    for tensor, wanted in zip(ins, signal_to, strict=True):
        saved = keeps * cost.saved_input * tensor.elements
        yield stream("backward_input", f"saved {tensor.name}", saved, 0, tensor.bits)
        sent = wanted * cost.signal_writes * tensor.elements
        yield stream("backward_input", f"d{tensor.name}", 0, sent, tensor.signal_bits)
    saved = keeps * cost.saved_output * out.elements
    yield stream("backward_input", f"saved {out.name}", saved, 0, out.bits)
    counts = (cost.signal_adds, cost.signal_macs, 0)
    signals = [tensor._replace(bits=tensor.signal_bits) for tensor in (*ins, out)]
    operations = _counted(counts, signals[:-1], signals[-1], job)
    yield Stream(name, "backward_input", "elementwise", "", operations=operations)


def _counted(
    counts: tuple[int, int, int], ins: list[_Tensor], out: _Tensor, job: Job
) -> tuple[Operation, ...]:
    """Additions, multiply-adds and special functions for each element of the output.

    Additions are as wide as the widest word, and floating-point if that is: a full-precision
    one, or one whose rule says so. Others are integer logic. Multiply-adds and special functions
    are in full precision.
    """
    adds, macs, specials = (count * out.elements for count in counts)
    full = job.accounting.widths.full_precision_bits
    bits = max(tensor.bits for tensor in (*ins, out))
    floating = any(tensor.floating for tensor in (*ins, out) if tensor.bits == bits)
    add = Operation("add", bits, adds)
    if bits < full and not floating:
        add = Operation("logic", 1, adds * adder_operations(bits))
    return add, Operation("mac", full, macs), Operation("special", full, specials)


def _broadcast(node: Node, edges: Mapping[str, Edge], job: Job) -> Iterator[Stream]:
    """Where a sum adds one tensor to many places, its signal is the sum of theirs."""
    if node.layer.kind != "add":
        return
    name, edge = node.layer.name, edges[node.layer.name]
    size = job.batch * prod(node.output_shape)
    signal = _tensor("dO", size, edge)._replace(bits=edge.signal_bits)
    inputs = zip(node.inputs, node.input_shapes, node.signal_to, strict=True)
    for i, (source, shape, wanted) in enumerate(inputs, 1):
        if not wanted or shape == node.output_shape:
            continue
        yield Stream(
            name, "backward_input", "elementwise", "dO", reads=size, bits=signal.bits,
            operations=_counted((1, 0, 0), [signal], signal, job),
        )  # fmt: skip
        yield Stream(
            name, "backward_input", "elementwise", f"dI{i}", writes=job.batch * prod(shape),
            bits=edges[source].signal_bits,
        )  # fmt: skip


def _gradients(
    node: Node, treatment: Treatment | None, edges: Mapping[str, Edge], job: Job
) -> Iterator[Stream]:
    """Gradients that no product sums up: of tables and constants, and of shared weights.

    A layer that shares its weights makes a gradient of its own, which is added to the owner's.
    """
    layer, edge = node.layer, edges[node.layer.name]
    cost = layer.cost(node.input_shapes)
    weights = layer.weights(node.input_shapes)
    bits = treatment.weight_signal_bits if treatment else job.accounting.widths.full_precision_bits
    if cost is not None and cost.gradient_adds:
        weights = layer.other_parameters(node.input_shapes)
        out = _tensor("dO", job.batch * prod(node.output_shape), edge)
        yield from _dense_gradient(layer.name, cost, weights, out, job)
    if layer.shares and weights:
        dF = _Tensor("dF", weights, bits, bits, edge.floating)
        yield Stream(
            layer.name, "backward_weight", "elementwise", "dF", 2 * weights, weights, bits,
            operations=_counted((1, 0, 0), [dF], dF, job),
        )  # fmt: skip


def _dense_gradient(
    name: str, cost: Cost, parameters: int, out: _Tensor, job: Job
) -> Iterator[Stream]:
    """The gradient of a table or of a learned constant, which is written as a whole.

    A table's is zero at first; each signal of a row that was looked up is added to its row, which
    is read and written. The signals of a constant are summed over the images before they are
    written.
    """
    full = job.accounting.widths.full_precision_bits

    def stream(tensor: str, reads: int, writes: int, bits: int) -> Stream:
        return Stream(name, "backward_weight", "elementwise", tensor, reads, writes, bits)

    added, looked_up = cost.gradient_adds * out.elements, cost.table_reads * out.elements
    yield stream("dF", 0, parameters, full)
    yield stream("dO", added, 0, out.signal_bits)
    yield stream("dF", looked_up, looked_up, full)
    dF = out._replace(bits=full)
    signal = out._replace(bits=out.signal_bits)
    operations = _counted((cost.gradient_adds, 0, 0), [dF], signal, job)
    yield Stream(name, "backward_weight", "elementwise", "", operations=operations)


def _fork(node: Node, edges: Mapping[str, Edge], job: Job) -> Iterator[Stream]:
    """What several layers take: their signals are added up on the way back.

    Parts that one layer alone takes, as slices that do not overlap, have nothing to be added to.
    """
    if not job.trains or not node.learns:
        return
    name, edge = node.layer.name, edges[node.layer.name]
    for layers, places in sorted(node.taken.items()):
        if layers < 2:
            continue
        size = job.batch * places
        tensor = _tensor("dO", size, edge)._replace(bits=edge.signal_bits)
        operations = _counted((layers - 1, 0, 0), [tensor], tensor, job)
        yield Stream(
            name, "backward_input", "elementwise", "dO",
            reads=layers * size, writes=size, bits=tensor.bits, operations=operations,
        )  # fmt: skip


# States besides the weight, multiply-adds and special functions for each weight.
_OPTIMIZERS: dict[str, tuple[tuple[str, ...], int, int]] = {
    "sgd": ((), 1, 0),
    "momentum": (("momentum",), 2, 0),
    "adam": (("m", "v"), 6, 2),
}


def _weight_update(node: Node, treatment: Treatment | None, job: Job) -> Iterator[Stream]:
    """One step on every weight and every other parameter of a layer (spec section 7)."""
    weights, others, accounting = node.weights, node.other_parameters, job.accounting
    if treatment is not None and treatment.update == "boolean":
        if accounting.extras.boolean_update:
            yield from _boolean_step(node, treatment, job)
    elif treatment is not None and weights:
        yield from _optimizer_step(node.layer.name, weights, treatment, accounting)
    if others:
        full = accounting.widths.full_precision_bits
        plain = Treatment(full, full, {}, "optimizer")
        yield from _optimizer_step(node.layer.name, others, plain, accounting)


def _optimizer_step(
    name: str, weights: int, treatment: Treatment, accounting: Accounting
) -> Iterator[Stream]:
    """Latent weight and states are read and written, the gradient read, a narrow copy written."""
    if accounting.extras.optimizer == "none":
        return
    full = accounting.widths.full_precision_bits
    states, macs, specials = _OPTIMIZERS[accounting.extras.optimizer]
    narrow = treatment.weight_bits < full

    def stream(tensor: str, reads: int, writes: int, bits: int) -> Stream:
        return Stream(name, "update", "update", tensor, reads * weights, writes * weights, bits)

    yield stream("dF", 1, 0, treatment.weight_signal_bits)
    yield stream("latent F" if narrow else "F", 1, 1, full)
    for state in states:
        yield stream(state, 1, 1, full)
    if narrow:
        yield stream("F", 0, 1, treatment.weight_bits)
    counted = (
        Operation("mac", full, macs * weights),
        Operation("special", full, specials * weights),
    )
    yield Stream(name, "update", "update", "", operations=counted)


def _boolean_step(node: Node, treatment: Treatment, job: Job) -> Iterator[Stream]:
    """Read the vote, read and write the accumulator, compare, write the weights that flip."""
    name, weights = node.layer.name, node.weights
    bits, flip_rate = job.accounting.extras.accumulator_bits, job.accounting.extras.flip_rate
    if job.measured is not None and (found := job.measured.of(name, node.layer.kind)):
        bits = found.accumulator_bits or bits
        flip_rate = flip_rate if found.flip_rate is None else found.flip_rate
    flips = round(flip_rate * weights)
    yield Stream(name, "update", "update", "dF", weights, 0, treatment.weight_signal_bits)
    yield Stream(name, "update", "update", "accumulator", weights, weights, bits)
    yield Stream(name, "update", "update", "F", weights, flips, treatment.weight_bits)
    logic = Operation("logic", 1, 2 * weights * adder_operations(bits))  # an addition, a comparison
    yield Stream(name, "update", "update", "", operations=(logic,))
