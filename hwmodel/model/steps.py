"""The steps of a run, their order, and works at their places with the tensors that they use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hwmodel.graph.node import Node
from hwmodel.model.ledger import Component
from hwmodel.model.names import Lying
from hwmodel.model.workload import Job
from hwmodel.work.tensor import Direction, Pass, Role
from hwmodel.work.work import Move, Multiply, Operate, Work

__all__ = ["Placed", "Slot", "Step", "order", "slot_of"]

FORWARD, BACK, WEIGHT, UPDATE, RECOMPUTE = Pass
PRODUCT, ELEMENTWISE = Component


class Step(NamedTuple):
    """One product, or all other work of a layer in a pass."""

    layer: str
    pass_: Pass
    component: Component

    def __str__(self) -> str:
        return f"{self.pass_} of {self.layer}"


class Slot(NamedTuple):
    """A place in the order: a step, and whether it adds up signals of several takers."""

    step: Step
    forks: bool = False


class Placed(NamedTuple):
    """A work at its place in the order, with the tensors that it uses."""

    slot: Slot
    layer: str  # that does it; a fused one at the step of another
    work: Work
    lying: tuple[tuple[Lying, ...], ...]  # at I, F and O, or of a move

    @property
    def read(self) -> tuple[Lying, ...]:
        """The tensors that it reads."""
        if isinstance(self.work, Multiply):
            return (*self.lying[0], *self.lying[1])
        moves = isinstance(self.work, Move) and self.work.direction == Direction.READ
        return self.lying[0] if moves else ()

    @property
    def written(self) -> tuple[Lying, ...]:
        """The tensors that it writes."""
        if isinstance(self.work, Multiply):
            return self.lying[2] if self.work.leaves else ()
        moves = isinstance(self.work, Move) and self.work.direction == Direction.WRITE
        return self.lying[0] if moves else ()


def slot_of(layer: str, work: Work) -> Slot:
    """Return the place of a layer's work."""
    if isinstance(work, Multiply):
        return Slot(Step(layer, work.pass_, PRODUCT))
    tensor = work.each if isinstance(work, Operate) else work.tensor
    return Slot(Step(layer, work.pass_, ELEMENTWISE), tensor.role == Role.FORK)


def order(nodes: Sequence[Node], job: Job, again: Mapping[str, Sequence[Node]]) -> Iterator[Slot]:
    """Yield every place that a step may have, in order.

    Args:
        again: layers that go forward once more, by the last of them, before whose way back they do.
    """
    yield from _forward(nodes, FORWARD)
    if not job.trains:
        return
    at_once = job.accounting.extras.update_order != "after-iteration"
    for node in reversed(nodes):
        name = node.layer.name
        yield from _forward(again.get(name, ()), RECOMPUTE)
        yield Slot(Step(name, BACK, ELEMENTWISE), forks=True)
        yield Slot(Step(name, BACK, ELEMENTWISE))
        yield Slot(Step(name, WEIGHT, PRODUCT))
        yield Slot(Step(name, WEIGHT, ELEMENTWISE))
        yield Slot(Step(name, BACK, PRODUCT))
        if at_once:
            yield Slot(Step(name, UPDATE, ELEMENTWISE))
    for node in () if at_once else nodes:
        yield Slot(Step(node.layer.name, UPDATE, ELEMENTWISE))


def _forward(nodes: Sequence[Node], pass_: Pass) -> Iterator[Slot]:
    for node in nodes:
        for component in Component:
            yield Slot(Step(node.layer.name, pass_, component))
