"""Branches of an ONNX graph that are known beforehand: the one that is taken stands in their place.

Exporters write If where a shape decides, as of a squeeze; once shapes are known, so is the branch.
"""

from __future__ import annotations

from typing import Any

from hwmodel.errors import SpecError
from hwmodel.importers.onnx_shapes import inferred_shapes, known_values
from hwmodel.importers.wire import MAX_NODES

__all__ = ["with_chosen_branches"]

ROUNDS = 20  # branches within branches


def with_chosen_branches(model: Any, where: str) -> Any:
    """Return the model with every branch that is known in the place of its If.

    Raises: ShapeError where shapes do not fit; SpecError where that is more than a network can be.
    """
    for _ in range(ROUNDS):
        if not any(node.op_type == "If" for node in model.graph.node):
            break
        inferred = inferred_shapes(model, where, computed=True)
        if not _choose(model, known_values(inferred)):
            break
        if len(model.graph.node) > MAX_NODES:
            raise SpecError(f"{where}: more than {MAX_NODES:,} operators once branches are chosen")
    return model


def _choose(model: Any, values: dict[str, Any]) -> bool:
    """Put the nodes of branches in the place of the Ifs that are known; say whether any is."""
    graph, nodes = model.graph, []
    chosen = False
    for node in graph.node:
        branch = _branch(node, values)
        if branch is None:
            nodes.append(node)
        else:
            _rename(branch, f"{node.output[0]}/")
            nodes += _nodes_of(branch, node)
            graph.initializer.extend(branch.initializer)
            chosen = True
    if chosen:
        copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
    return chosen


def _branch(node: Any, values: dict[str, Any]) -> Any:
    """The graph that runs; None where that is not known."""
    condition = values.get(node.input[0]) if node.op_type == "If" and node.input else None
    if condition is None or condition.size != 1 or node.domain:
        return None
    word = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
    for attribute in node.attribute:
        branch = attribute.g
        if attribute.name == word and len(branch.output) == len(node.output):
            return None if branch.input else branch
    return None


def _rename(branch: Any, prefix: str) -> None:
    """Give what a branch makes names of its own: another branch may have the same."""
    made = [name for node in branch.node for name in node.output if name]
    names = {name: f"{prefix}{name}" for name in (*made, *(t.name for t in branch.initializer))}
    graphs = [branch]
    while graphs:
        graph = graphs.pop()
        for tensor in (*graph.initializer, *graph.output):
            tensor.name = names.get(tensor.name, tensor.name)
        for node in graph.node:
            for listed in (node.input, node.output):
                for index, name in enumerate(listed):
                    listed[index] = names.get(name, name)
            for attribute in node.attribute:
                graphs += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())]


def _nodes_of(branch: Any, node: Any) -> list[Any]:
    """The nodes of a branch, whose results have the names of the If's own behind them."""
    from onnx import helper

    pairs = zip(branch.output, node.output, strict=True)
    ends = [helper.make_node("Identity", [inner.name], [outer]) for inner, outer in pairs if outer]
    return [*branch.node, *ends]
