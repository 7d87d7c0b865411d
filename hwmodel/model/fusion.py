"""Operators fused with what makes their input: what leaves a group moves, nothing inside it does.

A group begins with a product, or with an operator that cannot be applied to results one by one, and
takes in every operator that can. Three rules, for all methods alike:

1.  What is read as it is made is not read: the main input of a fused operator, and on the way back
    the signal to its output. Of several inputs of a sum or a product the one that is made last is
    the main one; of several signals that are added up, likewise.
2.  A norm has its sums from its input as that is made, and reads it once more for the result; so
    on the way back. A row of a layer norm or a softmax stays on the chip between both.
3.  A map or signal that then nobody reads is not written, at any level; sums of a product that
    leave unfinished are. What the network gives is always written.

Operations stay as they are. Source: docs/model.md section 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from hwmodel.graph.layers import INPUT
from hwmodel.graph.layers.reshaping import AveragePool, MaxPool
from hwmodel.graph.node import Node
from hwmodel.model.names import Lying, Part
from hwmodel.model.steps import Placed, Slot
from hwmodel.work.tensor import Direction, Pass, Role
from hwmodel.work.work import Move, Multiply

__all__ = ["fused", "stepped_at_once"]

FORWARD, BACK, WEIGHT, UPDATE = Pass
READ = Direction.READ
DROPPABLE = (Part.ACTIVATIONS, Part.SIGNALS)
# Applied to results one by one as they leave.
_ONE_BY_ONE = frozenset(
    {"activation", "add", "concat", "global-average-pool", "multiply", "scale", "batch-norm"}
)


@dataclass(frozen=True)
class _Made:
    """Where tensors are made last, in a run of which each layer is known."""

    nodes: Mapping[str, Node]
    at: Mapping[str, int]  # the number of the place, by the tensor's name

    def all(self, parts: Sequence[Lying]) -> bool:
        """Whether every part of a tensor is made in the run."""
        return bool(parts) and all(one.name in self.at for one in parts)


def fused(
    works: Sequence[Placed],
    nodes: Mapping[str, Node],
    order: Mapping[Slot, int],
    taken: Set[str],
) -> list[Placed]:
    """Fuse the works of a run.

    Args:
        order: the number of every place.
        taken: names of tensors that somebody reads beside these works.
    """
    at: dict[str, int] = {}
    for one in works:
        extra = isinstance(one.work, Move) and one.work.tensor.role == Role.EXTRA
        for tensor in () if extra else one.written:  # which is made before that
            at[tensor.name] = max(at.get(tensor.name, 0), order[one.slot])
    made = _Made(nodes, at)
    main = _main_inputs(works, made)
    left = [less for one in works if (less := _without_reads(one, made, main))]
    read = {tensor.name for one in left for tensor in one.read} | taken | {f"d:{INPUT}"}
    return list(_without_writes(left, read))


def stepped_at_once(works: Sequence[Placed]) -> Iterator[Placed]:
    """Yield works with each weight of a product stepped as its gradient is made.

    That is then neither written nor read. Gradients that no product makes still are.
    """
    for one in works:
        work = one.work
        if isinstance(work, Multiply) and work.pass_ == WEIGHT and not work.O.second:
            yield one._replace(work=work._replace(leaves=False))
        elif not (
            isinstance(work, Move)
            and (work.pass_, work.direction, work.tensor.name) == (UPDATE, READ, "dF")
        ):
            yield one


def _main_inputs(works: Sequence[Placed], made: _Made) -> dict[str, int]:
    """Return which input of each sum and product of maps is made last, from 0; the last of equals.

    An input that is not made in the run is never the main one.
    """
    found: dict[str, tuple[int, int]] = {}
    for one in works:
        layer = one.slot.step.layer
        if not _reads(one, "I", FORWARD) or made.nodes[layer].layer.kind not in ("add", "multiply"):
            continue
        if made.all(one.lying[0]):
            assert isinstance(one.work, Move)
            place = max(one.work.tensor.index, 1) - 1
            last = max(made.at[tensor.name] for tensor in one.lying[0])
            found[layer] = max(found.get(layer, (-1, -1)), (last, place))
    return {layer: place for layer, (_, place) in found.items()}


def _reads(one: Placed, letter: str, pass_: Pass) -> bool:
    """Whether a work reads an input, or the signal to the output, of its own layer."""
    work = one.work
    if not isinstance(work, Move) or (work.pass_, work.direction) != (pass_, READ):
        return False
    return work.tensor.name == letter and work.tensor.role == Role.OPERAND


def _without_reads(one: Placed, made: _Made, main: Mapping[str, int]) -> Placed | None:
    """Return a work as often as it is done after rules 1 and 2; None for not at all."""
    work = one.work
    if not isinstance(work, Move):
        return one
    if work.tensor.role == Role.FORK and work.direction == READ:
        return _fork(one, work, made)
    if work.tensor.role == Role.EXTRA:
        less = made.all(one.lying[0])  # it is behind what its layer does
    elif _reads(one, "I", FORWARD):
        less = _forward(one, work, made, main)
    else:
        less = _back(one, work, made)
    times = work.times - less
    return one._replace(work=work._replace(times=times)) if times else None


def _forward(one: Placed, work: Move, made: _Made, main: Mapping[str, int]) -> bool:
    """Whether an input is read once less than by an operator that stands alone."""
    node, is_made = made.nodes[one.slot.step.layer], made.all(one.lying[0])
    if _by_rows(node):
        return work.times > 1
    if not _one_by_one(node):
        return False
    if node.layer.kind in ("add", "multiply"):
        return main.get(node.layer.name) == max(work.tensor.index, 1) - 1
    return is_made  # of a norm that learns statistics, once of two times


def _back(one: Placed, work: Move, made: _Made) -> bool:
    """Whether a signal, or what was saved, is read once less."""
    node = made.nodes[one.slot.step.layer]
    if _by_rows(node):
        again = work.tensor.role == Role.SAVED or _reads(one, "dO", BACK)
        return work.direction == READ and again and work.times > 1
    return _reads(one, "dO", BACK) and _one_by_one(node) and made.all(one.lying[0])


def _by_rows(node: Node) -> bool:
    """Whether a row stays on the chip until all of it is known."""
    softmax = getattr(node.layer, "function", "") == "softmax"
    return softmax or node.layer.kind == "layer-norm"


def _one_by_one(node: Node) -> bool:
    """Whether an operator can be applied to results as they leave; a pool, if windows part them."""
    layer = node.layer
    if isinstance(layer, (AveragePool, MaxPool)):
        return layer.stride in (None, layer.kernel) and not any(layer.padding)
    return layer.kind in _ONE_BY_ONE


def _fork(one: Placed, work: Move, made: _Made) -> Placed:
    """Signals of several takers: added to the one that is made last, as that is made."""
    parts = one.lying[0]
    last = max((made.at.get(tensor.name, -1), i) for i, tensor in enumerate(parts))
    if len(parts) != work.times or last[0] < 0:  # slices: takers of parts
        return one
    others = tuple(tensor for i, tensor in enumerate(parts) if i != last[1])
    return one._replace(work=work._replace(times=work.times - 1), lying=(others,))


def _without_writes(works: Sequence[Placed], read: Set[str]) -> Iterator[Placed]:
    """Yield works after rule 3."""
    for one in works:
        work, written = one.work, one.written
        unread = written and all(t.part in DROPPABLE and t.name not in read for t in written)
        if not unread:
            yield one
        elif isinstance(work, Multiply):
            yield one._replace(work=work._replace(leaves=False))
