"""Activation checkpointing: layers go forward once more, so that less is kept for the way back.

Layers after one checkpoint and up to the next are a **segment**. Of every segment but the last,
what the way back needs is made anew just before the segment's own way back begins: all of its
forward steps are done again, from what the checkpoint before it has kept. A tensor that is made
twice is two tensors in memory, `a:L` and `again a:L`. What a checkpoint gives, and narrower copies
of that, is kept. What serves the way back alone (kept sums, indices of pools) is stored the second
time alone.

A segment of which the way back needs nothing is not done again. Source: docs/model.md section 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hwmodel.errors import HwmodelError
from hwmodel.graph.layers import INPUT
from hwmodel.graph.node import Node
from hwmodel.model.names import Lying, Names, Part
from hwmodel.model.steps import Placed, Slot
from hwmodel.work.tensor import Direction, Pass
from hwmodel.work.work import Move

__all__ = ["NOTHING", "Again", "Use", "again"]

FORWARD, BACK, WEIGHT, _, RECOMPUTE = Pass
_KEPT = (Part.ACTIVATIONS, Part.COPIES)  # of a checkpoint
_FOR_THE_WAY_BACK = (Part.SUMS, Part.INDICES)


class Use(NamedTuple):
    """A tensor is read or written at a step."""

    name: str
    part: Part
    bits: int  # of all elements that it has [bit]
    direction: Direction


class Again(NamedTuple):
    """What is done again, and when."""

    segments: dict[str, tuple[Node, ...]]  # layers in order, by the last of them
    names: frozenset[str]  # tensors that are made twice

    @property
    def layers(self) -> frozenset[str]:
        """The layers that go forward twice."""
        return frozenset(node.layer.name for nodes in self.segments.values() for node in nodes)

    def works(self, works: Sequence[Placed]) -> list[Placed]:
        """Return works with those that are done again."""
        return [*self._once(works), *self._twice(works)]

    def _once(self, works: Sequence[Placed]) -> Iterator[Placed]:
        for one in works:
            if one.work.pass_ in (BACK, WEIGHT):
                yield one._replace(lying=self._anew(one.lying))
            elif not (isinstance(one.work, Move) and one.written and self._is_late(one.written)):
                yield one

    def _is_late(self, written: Sequence[Lying]) -> bool:
        return all(t.name in self.names and t.part in _FOR_THE_WAY_BACK for t in written)

    def _twice(self, works: Sequence[Placed]) -> Iterator[Placed]:
        layers = self.layers
        for one in works:
            if one.work.pass_ == FORWARD and one.layer in layers:
                work = one.work._replace(pass_=RECOMPUTE)
                yield Placed(_again(one.slot), one.layer, work, self._anew(one.lying))

    def _anew(self, lying: tuple[tuple[Lying, ...], ...]) -> tuple[tuple[Lying, ...], ...]:
        return tuple(
            tuple(one._replace(name=self._name(one.name)) for one in parts) for parts in lying
        )

    def _name(self, name: str) -> str:
        return f"again {name}" if name in self.names else name

    def uses(self, uses: Sequence[tuple[Slot, Use]]) -> list[tuple[Slot, Use]]:
        """Return what no work uses, with what is used again."""
        layers, found = self.layers, []
        for slot, use in uses:
            anew = use._replace(name=self._name(use.name))
            found.append((slot, anew if slot.step.pass_ in (BACK, WEIGHT) else use))
            if slot.step.pass_ == FORWARD and slot.step.layer in layers:
                found.append((_again(slot), anew))
        return found


NOTHING = Again({}, frozenset())


def _again(slot: Slot) -> Slot:
    return slot._replace(step=slot.step._replace(pass_=RECOMPUTE))


def again(
    nodes: Sequence[Node],
    names: Names,
    works: Sequence[Placed],
    beside: Sequence[tuple[Slot, Use]],
) -> Again:
    """Return what is done again in training, by the checkpoints of the layers.

    Args:
        works: all that the run needs.
        beside: what no work uses.

    Raises: HwmodelError where a segment takes what lies inside one before it, which is not kept.
    """
    segments = _segments(nodes)
    if not segments:
        return NOTHING
    made = _made(works, beside)
    last = [segment[-1].layer.name for segment in segments]
    kept = {names.maps[name].name for name in last}
    kept |= {t.name for name in last for t in made.get(name, ()) if t.part in _KEPT}
    _see_crossing(nodes, segments, names, kept)
    needed = {t.name for w in works if w.work.pass_ in (BACK, WEIGHT) for t in w.read}
    needed |= {
        use.name
        for slot, use in beside
        if slot.step.pass_ in (BACK, WEIGHT) and use.direction == Direction.READ
    }
    found: dict[str, tuple[Node, ...]] = {}
    twice: set[str] = set()
    for segment in segments:
        own = {t.name for node in segment for t in made.get(node.layer.name, ())} - kept
        if own & needed:
            found[segment[-1].layer.name] = segment
            twice |= own
    return Again(found, frozenset(twice))


def _segments(nodes: Sequence[Node]) -> list[tuple[Node, ...]]:
    """The layers up to each checkpoint, from the one before it; without those after the last."""
    found: list[tuple[Node, ...]] = []
    start = 0
    for number, node in enumerate(nodes, 1):
        if node.layer.checkpoint and number < len(nodes):
            found.append(tuple(nodes[start:number]))
            start = number
    return found


def _made(works: Sequence[Placed], beside: Sequence[tuple[Slot, Use]]) -> dict[str, list[Lying]]:
    """The tensors that each layer makes on the way forward."""
    found: dict[str, list[Lying]] = {}
    for one in works:
        if one.work.pass_ == FORWARD:
            found.setdefault(one.layer, []).extend(one.written)
    for slot, use in beside:
        if slot.step.pass_ == FORWARD and use.direction == Direction.WRITE:
            found.setdefault(slot.step.layer, []).append(Lying(*use[:3]))
    return found


def _see_crossing(
    nodes: Sequence[Node], segments: Sequence[Sequence[Node]], names: Names, kept: set[str]
) -> None:
    """See that segments take of others what checkpoints keep alone. Raises: HwmodelError."""
    number = {node.layer.name: k for k, segment in enumerate(segments) for node in segment}
    there = kept | {f"a:{INPUT}"} | {t.name for t in names.maps.values() if t.part.is_kept}
    for node in nodes:
        mine = number.get(node.layer.name, len(segments))
        for source in node.inputs:
            its = number.get(source, mine)
            if its < mine and names.maps[source].name not in there:
                between = segments[its][-1].layer.name
                raise HwmodelError(
                    f"checkpoint {between}: {node.layer.name} takes {source} around it, which is "
                    f"not kept; make {source} a checkpoint, too, or leave {between} out"
                )
