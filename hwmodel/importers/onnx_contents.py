"""Contents of an ONNX file's graph, each field read once.

A field of a message that is read from Python costs a good part of a microsecond, and a list of
names costs it once for each; so the fields that are asked for often become plain lists first.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from hwmodel.importers.graph import Dims

__all__ = ["STANDARD", "Contents", "Node", "TensorType", "Types", "contents_of", "forget_files"]


STANDARD = ("", "ai.onnx")
_WITH_GRAPHS = ("If", "Loop", "Scan", "SequenceMap")  # of the standard operators


class Node(NamedTuple):
    """An operator; its name and its attributes stay in the message."""

    operator: str
    domain: str
    inputs: list[str]  # those that its own graphs take from around them come last
    outputs: list[str]
    message: Any


class Contents(NamedTuple):
    """Nodes in order, stored tensors by name, and the inputs that are not stored."""

    nodes: list[Node]
    stored: dict[str, Any]
    sparse: list[Any]
    inputs: list[Any]


def contents_of(graph: Any) -> Contents:
    """The contents of a graph's message."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    sparse = list(graph.sparse_initializer)
    known = stored.keys() | {tensor.values.name for tensor in sparse}
    return Contents(
        [Node(n.op_type, n.domain, _taken(n), n.output[:], n) for n in graph.node],
        stored,
        sparse,
        [given for given in graph.input if given.name not in known],
    )


def _taken(node: Any) -> list[str]:
    """List all tensors that a node takes; graphs within it may take any that is in sight."""
    inputs: list[str] = node.input[:]
    if node.op_type not in _WITH_GRAPHS and node.domain in STANDARD:
        return inputs
    graphs = [g for a in node.attribute for g in (*a.graphs, *([a.g] if a.HasField("g") else ()))]
    outer = chain.from_iterable(map(_from_around, graphs))
    return [*inputs, *dict.fromkeys(name for name in outer if name and name not in inputs)]


def _from_around(graph: Any) -> list[str]:
    """List the tensors that a graph within a node takes and does not make."""
    made = {one.name for one in (*graph.input, *graph.initializer)}
    made |= {one.values.name for one in graph.sparse_initializer}
    made.update(chain.from_iterable(node.output for node in graph.node))
    taken = chain(*map(_taken, graph.node), (one.name for one in graph.output))
    return [name for name in taken if name not in made]


def forget_files(model: Any) -> None:
    """Take every path of other files out of a message: no tensor's elements are outside it then.

    What reads an element later finds none. Tensors are in graphs, in attributes, in graphs within
    these and in functions.
    """
    holders = [model.graph, *model.functions]
    holders += chain.from_iterable((t.initialization, t.algorithm) for t in model.training_info)
    while holders:
        holder = holders.pop()
        tensors = [*getattr(holder, "initializer", ())]
        sparse = [*getattr(holder, "sparse_initializer", ())]
        for attribute in chain.from_iterable(node.attribute for node in holder.node):
            tensors += [*attribute.tensors, *([attribute.t] if attribute.HasField("t") else ())]
            sparse += [*attribute.sparse_tensors]
            sparse += [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            holders += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())]
        tensors += chain.from_iterable((one.values, one.indices) for one in sparse)
        for tensor in tensors:
            if tensor.external_data or tensor.data_location:
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")


class TensorType(NamedTuple):
    """Element type and dimensions of a tensor, as far as the file states them."""

    dims: Dims  # 0 where a length is open
    element: int  # number of the type of an element
    known: bool  # whether all dimensions are
    wrong: bool  # whether a length is stated that cannot be one


class Types:
    """Types of tensors by name. Few differ, and equal bytes are the same type: it is read once."""

    def __init__(self, graph: Any) -> None:
        self._infos = {info.name: info for info in chain(graph.value_info, graph.output)}
        self._read: dict[bytes, TensorType] = {}

    def get(self, name: str) -> TensorType | None:
        """The type of a tensor; None where the graph says nothing of it."""
        info = self._infos.get(name)
        if info is None:
            return None
        stored = info.type.SerializeToString()
        found = self._read.get(stored)
        if found is None:
            found = self._read[stored] = _type_of(info.type.tensor_type)
        return found


def _type_of(tensor: Any) -> TensorType:
    lengths = tensor.shape.dim
    dims = tuple([length.dim_value for length in lengths])
    known = min(dims) > 0 if dims else tensor.HasField("shape")
    wrong = not known and any(d.HasField("dim_value") and d.dim_value < 1 for d in lengths)
    return TensorType(dims, tensor.elem_type, known, wrong)
