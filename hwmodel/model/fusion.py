"""Operators fused with what makes their input: what leaves a group moves, nothing inside it does.

A group begins with a product, or with an operator that cannot be applied to results one by one, and
takes in every operator that can. Three rules, for all methods alike:

1.  What is read as it is made is not read: the main input of a fused operator, and on the way back
    the signal to its output. Of several inputs of a sum or a product the one that is made last is
    the main one; of several signals that are added up, likewise. What a layer takes twice going
    forward it reads once.
2.  A norm has its sums from its input as that is made, and reads it once more for the result; so
    on the way back. A row of a layer norm or a softmax stays on the chip between both.
3.  A map or signal that then nobody reads is not written, at any level; sums of a product that
    leave unfinished are. What the network gives is always written.

A group is one step. Operations stay as they are. Source: docs/model.md section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from hwmodel.graph.layers import INPUT
from hwmodel.graph.layers.reshaping import AveragePool, MaxPool
from hwmodel.graph.node import Node
from hwmodel.model.ledger import Component
from hwmodel.model.names import Lying, Part
from hwmodel.model.steps import Placed, Slot
from hwmodel.work.tensor import Direction, Pass, Role
from hwmodel.work.work import Move, Multiply

__all__ = ["Fused", "fused", "stepped_at_once"]

FORWARD, BACK, WEIGHT, UPDATE, RECOMPUTE = Pass
ONWARD = (FORWARD, RECOMPUTE)
READ = Direction.READ
DROPPABLE = (Part.ACTIVATIONS, Part.SIGNALS)
# Applied to results one by one as they leave.
_ONE_BY_ONE = frozenset(
    {
        "activation", "add", "concat", "global-average-pool", "multiply", "rotary", "scale",
        "batch-norm",
    }
)  # fmt: skip


class Fused(NamedTuple):
    """Works after fusion, each at the step of its group; and tensors of which parts come before."""

    works: list[Placed]
    groups: dict[Slot, Slot]  # the step of a group, by the places that are in it
    begun: list[tuple[Slot, Lying]]  # parts of a joined tensor, at the steps that make them


@dataclass
class _Made:
    """What has been made so far: by the tensor's name, in which order and at which step."""

    nodes: Mapping[str, Node]
    order: Mapping[Slot, int]
    at: dict[str, Slot] = field(default_factory=dict)

    def when(self, parts: Sequence[Lying]) -> int:
        """The number of the place at which the last part of a tensor is made; -1 if not all are."""
        if not parts or any(one.name not in self.at for one in parts):
            return -1
        return max(self.order[self.at[one.name]] for one in parts)

    def of(self, names: Iterable[str]) -> list[int]:
        """The numbers of the places at which some of the tensors are made."""
        return [self.order[self.at[name]] for name in names if name in self.at]

    def after(self, number: int) -> _Made:
        """What has been made after a place."""
        late = {name: slot for name, slot in self.at.items() if self.order[slot] > number}
        return _Made(self.nodes, self.order, late)

    def all(self, parts: Sequence[Lying]) -> bool:
        """Whether every part of a tensor is made in the run."""
        return self.when(parts) >= 0


def fused(
    works: Sequence[Placed], nodes: Mapping[str, Node], places: Sequence[Slot], taken: Set[str]
) -> Fused:
    """Fuse the works of a run.

    Args:
        places: every place, in order.
        taken: names of tensors that somebody reads beside these works.
    """
    order = {slot: number for number, slot in enumerate(places)}
    # What is done again takes as it is made what is made again, nothing of the first time.
    first, second = _Made(nodes, order), _Made(nodes, order)
    found = dict(enumerate(works))
    groups: dict[Slot, Slot] = {}
    begun: list[tuple[Slot, Lying]] = []
    slots: dict[Slot, list[int]] = {}
    for i, one in enumerate(works):
        slots.setdefault(one.slot, []).append(i)
    for slot in sorted(slots, key=order.__getitem__):
        here = [works[i] for i in slots[slot]]
        run = second if slot.step.pass_ == RECOMPUTE else first
        # The way back waits for what it reads to be made again: nothing before is fused with it.
        awaited = [] if run is second else second.of(t.name for one in here for t in one.read)
        made = run.after(max(awaited)) if awaited else run
        less = _less(here, made)
        group = _group(slot, less, made)
        begun += _begun(group, less, made)
        groups[slot] = group
        for i, (_, one) in zip(slots[slot], less, strict=True):
            found[i] = one._replace(slot=group)
            for tensor in () if _is_extra(one) else one.written:  # which is made before that
                run.at[tensor.name] = group
    left = [one for one in found.values() if not isinstance(one.work, Move) or one.work.times]
    read = {tensor.name for one in left for tensor in one.read} | taken | {f"d:{INPUT}"}
    return Fused(list(_without_writes(left, read)), groups, begun)


def _is_extra(one: Placed) -> bool:
    return isinstance(one.work, Move) and one.work.tensor.role == Role.EXTRA


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


def _less(here: Sequence[Placed], made: _Made) -> list[tuple[Lying | None, Placed]]:
    """Return the works of a place as often as they are done after rules 1 and 2.

    Beside each stands the tensor that it no longer reads, since it takes it as it is made.
    """
    inputs = {_place(one): one.lying[0] for one in here if _reads(one, "I", *ONWARD)}
    main = _main_input(here, made)
    found: list[tuple[Lying | None, Placed]] = []
    for one in here:
        work = one.work
        if not isinstance(work, Move):
            found.append((None, one))
        elif work.tensor.role == Role.FORK and work.direction == READ:
            found.append(_fork(one, work, made))
        else:
            again = _reads(one, "I", *ONWARD) and _is_read_twice(_place(one), main, inputs)
            is_less = work.times > 0 and (_is_less(one, work, made, main) or again)
            times = work.times - is_less
            at_once = is_less and not times and work.direction == READ and made.all(one.lying[0])
            last = max(one.lying[0], key=lambda t: made.when([t])) if at_once else None
            found.append((last, one._replace(work=work._replace(times=times))))
    return found


def _group(slot: Slot, less: Sequence[tuple[Lying | None, Placed]], made: _Made) -> Slot:
    """Return the step at which the works of a place are done: where their main input is made.

    Copies are made as their tensor is.
    """
    mains = [made.at[tensor.name] for tensor, _ in less if tensor is not None]
    if mains:
        return max(mains, key=made.order.__getitem__)
    product = Slot(slot.step._replace(component=Component.PRODUCT))
    moves = [one.work for _, one in less if isinstance(one.work, Move)]
    copies = bool(moves) and all(move.tensor.role == Role.COPY for move in moves)
    own = made.nodes[slot.step.layer].macs and slot.step.component != Component.PRODUCT
    return product if copies and own else slot


def _begun(
    group: Slot, less: Sequence[tuple[Lying | None, Placed]], made: _Made
) -> Iterator[tuple[Slot, Lying]]:
    """Yield what several makers write parts of, at those before the last."""
    first = less[0][1]
    joins = made.nodes[first.layer].layer.kind == "concat"
    if joins and first.work.pass_ in ONWARD:
        for slot in {made.at[tensor.name] for tensor, _ in less if tensor} - {group}:
            yield from ((slot, tensor) for _, one in less for tensor in one.written)


def _main_input(here: Sequence[Placed], made: _Made) -> int:
    """Return which input of a sum or product of maps is made last, from 0; the last of equals.

    -1 for none: an input that is not made in the run is never the main one.
    """
    inputs = [one for one in here if _reads(one, "I", *ONWARD)]
    when = {_place(one): made.when(one.lying[0]) for one in inputs}
    last = max(when, key=lambda place: (when[place], place), default=-1)
    return last if when.get(last, -1) >= 0 else -1


def _is_read_twice(place: int, main: int, inputs: Mapping[int, Sequence[Lying]]) -> bool:
    """Whether an input of a layer is another of its inputs, read or taken as it is made."""
    others = [main] if main >= 0 and main != place else range(place)
    return any(inputs.get(other) == inputs[place] for other in others)


def _place(one: Placed) -> int:
    """Which input of its layer a move is of, from 0."""
    assert isinstance(one.work, Move)
    return max(one.work.tensor.index, 1) - 1


def _reads(one: Placed, letter: str, *passes: Pass) -> bool:
    """Whether a work reads an input, or the signal to the output, of its own layer."""
    work = one.work
    if not isinstance(work, Move) or work.pass_ not in passes or work.direction != READ:
        return False
    return work.tensor.name == letter and work.tensor.role == Role.OPERAND


def _is_less(one: Placed, work: Move, made: _Made, main: int) -> bool:
    """Whether a work is done once less than by an operator that stands alone."""
    node, is_made = made.nodes[one.layer], made.all(one.lying[0])
    if work.tensor.role == Role.EXTRA:  # behind what its layer does
        return is_made
    if _by_rows(node):
        again = work.tensor.role in (Role.SAVED, Role.OPERAND)
        return work.direction == READ and again and work.times > 1
    if not _one_by_one(node):
        return False
    if _reads(one, "I", *ONWARD):
        of_several = node.layer.kind in ("add", "multiply")
        return _place(one) == main if of_several else is_made
    return _reads(one, "dO", BACK) and is_made  # of a norm that learns, once of two times


def _by_rows(node: Node) -> bool:
    """Whether a row stays on the chip until all of it is known."""
    softmax = getattr(node.layer, "function", "") == "softmax"
    return softmax or node.layer.kind in ("layer-norm", "rms-norm")


def _one_by_one(node: Node) -> bool:
    """Whether an operator can be applied to results as they leave; a pool, if windows part them."""
    layer = node.layer
    if isinstance(layer, (AveragePool, MaxPool)):
        return layer.stride in (None, layer.kernel) and not any(layer.padding)
    return layer.kind in _ONE_BY_ONE


def _fork(one: Placed, work: Move, made: _Made) -> tuple[Lying | None, Placed]:
    """Signals of several takers: added to the one that is made last, as that is made."""
    parts = one.lying[0]
    if len(parts) != work.times:  # slices: takers of parts
        return None, one
    number, last = max((made.when([tensor]), i) for i, tensor in enumerate(parts))
    if number < 0:
        return None, one
    others = tuple(tensor for i, tensor in enumerate(parts) if i != last)
    less = one._replace(work=work._replace(times=work.times - 1), lying=(others,))
    return parts[last], less


def _without_writes(works: Sequence[Placed], read: Set[str]) -> Iterator[Placed]:
    """Yield works after rule 3."""
    for one in works:
        work, written = one.work, one.written
        unread = written and all(t.part in DROPPABLE and t.name not in read for t in written)
        if not unread:
            yield one
        elif isinstance(work, Multiply):
            yield one._replace(work=work._replace(leaves=False))
