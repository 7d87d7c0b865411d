"""What the graph of an ONNX file holds, each field read once.

A field of a message that is read from Python costs a good part of a microsecond, and a list of
names costs it once for each; so the fields that are asked for often become plain tuples first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Contents", "Node", "contents_of"]


class Node(NamedTuple):
    """An operator; its name and its attributes stay in the message."""

    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
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
        [Node(n.op_type, n.domain, tuple(n.input), tuple(n.output), n) for n in graph.node],
        stored,
        sparse,
        [given for given in graph.input if given.name not in known],
    )
