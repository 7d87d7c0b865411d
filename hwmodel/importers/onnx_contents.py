"""What the graph of an ONNX file holds, each field read once.

A field of a message that is read from Python costs a good part of a microsecond, and a list of
names costs it once for each; so the fields that are asked for often become plain lists first.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from hwmodel.importers.graph import Dims

__all__ = ["Contents", "Node", "TensorType", "Types", "contents_of"]


class Node(NamedTuple):
    """An operator; its name and its attributes stay in the message."""

    operator: str
    domain: str
    inputs: list[str]
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
        [Node(n.op_type, n.domain, n.input[:], n.output[:], n) for n in graph.node],
        stored,
        sparse,
        [given for given in graph.input if given.name not in known],
    )


class TensorType(NamedTuple):
    """What is known of a tensor before anything runs."""

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
