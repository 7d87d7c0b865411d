"""Operators that shape inference does not know, and what stands in for them meanwhile.

A quantizer or a norm keeps the shape; a product changes the last axis; of an operator that nobody
knows it is assumed that it keeps the shape, and the operator is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from hwmodel.graph.layers.base import MAX_EXTENT
from hwmodel.importers.onnx_contents import STANDARD, Node

__all__ = ["as_they_were", "stand_in"]

# Operators of ONNX Runtime that are written under the standard domain.
_UNDER_STANDARD = frozenset({"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"})
_SKIPPING = frozenset({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})


def stand_in(graph: Any, nodes: Sequence[Node]) -> None:
    """Put known operators in the place of others, while shapes are inferred."""
    sums = []
    for index, node in enumerate(nodes):
        unknown = node.domain not in STANDARD or node.operator in _UNDER_STANDARD
        if unknown and node.inputs and node.outputs:
            _replace(graph, node)
            if _gives_sum(node):
                sums.append((index, node))
        elif node.domain in STANDARD[1:]:
            node.message.domain = STANDARD[0]
    for index, node in reversed(sums):  # their sum is as large as the norm
        graph.node.insert(index + 1, _identity(node.inputs[0], node.outputs[3]))


def as_they_were(nodes: Sequence[Node], before: Sequence[Node]) -> list[Node]:
    """Put nodes back that others stood in for; nodes that became constants stay so."""
    return [
        old if old.operator != new.operator and new.operator != "Constant" else new
        for new, old in zip(_first(nodes, before), before, strict=True)
    ]


def _first(nodes: Sequence[Node], before: Sequence[Node]) -> list[Node]:
    """All nodes but those that were inserted; nothing else gives the same tensor."""
    sums = {node.outputs[3] for node in before if _gives_sum(node)}
    return [
        node for node in nodes if node.outputs[:1] != node.outputs or not sums & {*node.outputs}
    ]


def _gives_sum(node: Node) -> bool:
    return node.operator in _SKIPPING and len(node.outputs) > 3 and bool(node.outputs[3])


def _identity(given: str, result: str) -> Any:
    from onnx import helper

    return helper.make_node("Identity", [given], [result])


def _replace(graph: Any, node: Node) -> None:
    message = node.message
    features = _features(graph, node)
    if features is not None and not 0 < min(features) <= max(features) <= MAX_EXTENT:
        features = None  # the converter names them
    if features is not None:
        weights = graph.initializer.add(name=f"{node.outputs[0]}.stand-in", data_type=1)
        weights.dims.extend(features)
        message.op_type = "MatMul"
        del message.input[1:]
        message.input.append(weights.name)
    else:
        message.op_type = "Identity"
        if node.operator in _SKIPPING:
            del message.output[1:]
    message.domain = ""


def _features(graph: Any, node: Node) -> tuple[int, int] | None:
    """Features before and behind an operator that changes them, where that is known."""
    stated = {a.name: a.i for a in node.message.attribute}
    if node.operator == "MatMulNBits":
        return stated.get("K", 0), stated.get("N", 0)
    if node.operator == "GroupQueryAttention" and len(node.inputs) > 2 and not node.inputs[1]:
        heads, kv_heads = stated.get("num_heads", 0), stated.get("kv_num_heads", 0)
        d = _head(graph, node.inputs)
        return None if d is None else ((heads + 2 * kv_heads) * d, heads * d)
    return None


def _head(graph: Any, inputs: Sequence[str]) -> int | None:
    """Features of a head, as keys of the past or a table of cosines have them."""
    dims: dict[str, list[int]]
    dims = {one.name: [d.dim_value for d in one.type.tensor_type.shape.dim] for one in graph.input}
    dims |= {one.name: list(one.dims) for one in graph.initializer}
    infos = chain(graph.value_info, graph.output)
    dims |= {one.name: [d.dim_value for d in one.type.tensor_type.shape.dim] for one in infos}
    past, cosines = (dims.get(inputs[i], []) if len(inputs) > i else [] for i in (3, 7))
    if len(past) == 4 and past[3] > 0:
        return past[3]
    return 2 * cosines[-1] if cosines and cosines[-1] > 0 else None
