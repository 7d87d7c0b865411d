"""Functions that an ONNX file defines for itself, written out where they are called.

Functions may call functions, so that a file of a few lines can stand for more operators than any
memory holds; how many there will be is counted before any is written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from hwmodel.errors import SpecError
from hwmodel.importers.wire import MAX_NODES

__all__ = ["inlined"]

MAX_BYTES = 2**27  # of the operators once they are written out
Key = tuple[str, str, str]  # domain, name, overload


class _Size(NamedTuple):
    nodes: int
    size: int  # [B]


def inlined(model: Any, where: str) -> Any:
    """Write the file's functions out. Raises: SpecError where that cannot be done.

    Source: onnx.ai, "Open Neural Network Exchange Intermediate Representation", functions.
    """
    if not model.functions:
        return model
    size = _written_out(model, where)
    if size.nodes > MAX_NODES or size.size > MAX_BYTES:
        raise SpecError(
            f"{where}: its functions, written out, are {size.nodes:,} operators of {size.size:,} B "
            f"in all; at most {MAX_NODES:,} and {MAX_BYTES:,} B"
        )
    from onnx.checker import ValidationError
    from onnx.inliner import inline_local_functions

    try:
        return inline_local_functions(model)
    except (ValidationError, RuntimeError, ValueError, TypeError) as error:
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        raise SpecError(f"{where}: its functions cannot be written out: {reason}") from None


def _written_out(model: Any, where: str) -> _Size:
    """Count operators and bytes of the graph with every function in the place of its calls."""
    calls = {
        (f.domain, f.name, f.overload): list(_with_inner(f.node)) for f in model.functions
    }  # each node once, however often its function is called
    order = TopologicalSorter({key: {called for called, _ in nodes if called in calls}
                               for key, nodes in calls.items()})  # fmt: skip
    sizes: dict[Key, _Size] = {}
    try:
        for key in order.static_order():
            sizes[key] = _sum(calls[key], sizes)
    except CycleError as error:
        names = " -> ".join(name for _, name, _ in error.args[1][:5])
        raise SpecError(f"{where}: its functions call themselves: {names}") from None
    return _sum(list(_with_inner(model.graph.node)), sizes)


def _sum(nodes: Sequence[tuple[Key, int]], sizes: dict[Key, _Size]) -> _Size:
    parts = [sizes.get(called, _Size(1, own)) for called, own in nodes]
    return _Size(sum(part.nodes for part in parts), sum(part.size for part in parts))


def _with_inner(nodes: Any) -> Iterator[tuple[Key, int]]:
    """Yield the name and length [B] of every operator, also of those in graphs within operators."""
    for node in nodes:
        yield (node.domain, node.op_type, node.overload), node.ByteSize()
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _with_inner(graph.node)
