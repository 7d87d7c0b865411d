"""A network as a table: every layer with its shape, parameters, MACs, widths and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, prod
from typing import TYPE_CHECKING, NamedTuple

from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.model import widths
from hwmodel.model.widths import Edge, Wide
from hwmodel.rerun.tables import csv_text
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.method import Method
from hwmodel.views.screen_tables import table
from hwmodel.work.tensor import plain, whole_bits

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Line", "macs_by_width", "summary", "summary_csv", "summary_tables"]


class Line(NamedTuple):
    """One layer, for one image; the fields are the columns of the CSV."""

    layer: str
    kind: str
    inputs: str
    C: int  # of the output
    H: int
    W: int
    weights: int
    other_parameters: int
    learned: int  # parameters of both kinds that are trained
    macs: int
    bops: int  # bit operations: MACs times the bits of both operands, as the product reads them
    weight_bits: int | float | None  # None: it has no weights
    input_bits: int | float  # the widest it is given [bit]
    activation_bits: int | float  # of an element of its output [bit]
    parameter_bytes: int  # weights at their width, other parameters in full precision
    activation_bytes: int


def summary(network: Network, method: Method, accounting: Accounting) -> list[Line]:
    """List every layer of the network under a method. Raises: SpecError where no rule holds."""
    nodes = network.nodes(frozenset(method.omits))
    edges = widths.edges(method, nodes, accounting)
    return [_line(node, edges, method, accounting) for node in nodes]


def _line(node: Node, edges: Mapping[str, Edge], method: Method, accounting: Accounting) -> Line:
    multiplies = bool(node.layer.loops(node.input_shapes, 1))
    treatment = widths.treatment(method, node, accounting) if multiplies else None
    bits = edges[node.layer.name].bits
    ins = [edges[name].bits for name in node.inputs]
    F = treatment.weight_bits if treatment and node.layer.weights(node.input_shapes) else None
    read = [treatment.read(one, i) for i, one in enumerate(ins)] if treatment else []
    words = [*([] if F is None or not treatment else [Wide(F, treatment.weight_word)]), *read]
    pair = [wide.word.bits if wide.word else ceil(wide.bits) for wide in words]
    full = accounting.widths.full_precision_bits
    parameters = whole_bits(node.weights, F or 0) + node.other_parameters * full
    return Line(
        node.layer.name, node.layer.kind, " ".join(node.inputs), *node.output_shape,
        node.weights, node.other_parameters, node.learned_weights + node.learned_parameters,
        node.macs, node.macs * prod(pair[:2]), None if F is None else plain(F),
        plain(max(ins, default=bits)), plain(bits),
        -(-parameters // 8), -(-whole_bits(prod(node.output_shape), bits) // 8),
    )  # fmt: skip


def macs_by_width(lines: list[Line]) -> dict[tuple[float, float], int]:
    """Sum the MACs of one image for each pair of widths (weight, activation) [bit].

    A product of two activations counts under the width of the wider one, twice.
    """
    counts: dict[tuple[float, float], int] = {}
    for line in lines:
        if line.macs:
            pair = (line.weight_bits or line.input_bits, line.input_bits)
            counts[pair] = counts.get(pair, 0) + line.macs
    return counts


def summary_csv(lines: list[Line]) -> str:
    """Write one row a layer; a cell is empty where there is no weight."""
    return csv_text(Line._fields, ([("" if v is None else v) for v in line] for line in lines))


def summary_tables(network: Network, method: Method, lines: list[Line]) -> Iterator[RenderableType]:
    """Yield a table of layers with totals, then MACs for each pair of widths."""
    C, H, W = network.input
    learned, stored = (
        sum(line.learned for line in lines),
        sum(line.weights + line.other_parameters for line in lines),
    )
    of = "one image" if network.steps == 1 else f"one of {network.steps} steps of one image"
    some = "" if learned == stored else f"; {learned:,} of {stored:,} parameters learn"
    title = f"{network.name}: {network.title}; input {C} x {H} x {W}; {of}"
    listed = table(
        f"{title}, method {method.name}{some}",
        ["layer", "kind", "inputs"],
        ["output C x H x W", "parameters", *(["learned"] if some else []), "MACs", "BOPs",
         "weight bits", "activation bits", "parameters, B", "activation, B"],
    )  # fmt: skip
    for line in lines:
        listed.add_row(
            line.layer, line.kind, line.inputs.replace(" ", ", "),
            f"{line.C} x {line.H} x {line.W}",
            f"{line.weights + line.other_parameters:,}", *([f"{line.learned:,}"] if some else []),
            f"{line.macs:,}", f"{line.bops:,}",
            "-" if line.weight_bits is None else f"{line.weight_bits:.6g}",
            f"{line.activation_bits:.6g}",
            f"{line.parameter_bytes:,}", f"{line.activation_bytes:,}",
        )  # fmt: skip
    totals = [
        stored,
        sum(line.macs for line in lines),
        sum(line.bops for line in lines),
        sum(line.parameter_bytes for line in lines),
        sum(line.activation_bytes for line in lines),
    ]
    parameters, macs, bops, held, active = (f"{total:,}" for total in totals)
    trained = [f"{learned:,}"] if some else []
    cells = "", "", "", parameters, *trained, macs, bops, "", "", held, active
    listed.add_row("all layers", *cells, style="bold")
    yield listed
    pairs = table(
        f"MACs of {of} by width in memory", ["weight bits x activation bits"], ["MACs", "%"]
    )
    for (weight, activation), count in macs_by_width(lines).items():
        pairs.add_row(
            f"{weight:.6g} x {activation:.6g}", f"{count:,}", f"{100 * count / totals[1]:.1f}"
        )
    yield pairs
