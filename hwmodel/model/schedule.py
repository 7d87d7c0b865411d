"""The schedule of a run: its work in order, step by step, and the tensors that each step uses.

A **step** is one product, or all other work of one layer in one pass. Steps go forward layer by
layer; then back from the last layer to the first: the sum of several signals, the operator's own
way back, the product backward_weight, the product backward_input; then come the updates.

Tasks, which are counted, and uses, by which tensors live, know the same steps and names. Uses are
of everything that a run needs, tasks of what its accounting counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hwmodel.graph.layers import INPUT
from hwmodel.graph.node import Node
from hwmodel.model.ledger import Component
from hwmodel.model.names import Lying, Names, Part
from hwmodel.model.widths import Edge
from hwmodel.model.workload import At, Job, Task, workload
from hwmodel.work.tensor import Direction, Pass, Role
from hwmodel.work.work import Move, Multiply, Operate, Work

__all__ = ["Schedule", "Step", "Use", "everything", "schedule"]

FORWARD, BACK, WEIGHT, UPDATE = Pass
READ, WRITE = Direction.READ, Direction.WRITE
PRODUCT, ELEMENTWISE = Component


class Step(NamedTuple):
    """One product, or all other work of a layer in a pass."""

    layer: str
    pass_: Pass
    component: Component

    def __str__(self) -> str:
        return f"{self.pass_} of {self.layer}"


class Use(NamedTuple):
    """A tensor is read or written at a step."""

    name: str
    part: Part
    bits: int  # of all elements that it has [bit]
    direction: Direction


@dataclass(frozen=True)
class Schedule:
    """The steps of a run, what each uses, and the tasks that are counted, layer by layer."""

    steps: tuple[Step, ...]
    uses: tuple[tuple[Use, ...], ...]  # of each step
    tasks: tuple[Task, ...]  # `at.step` is the place among the steps


class _Slot(NamedTuple):
    """A place in the order: a step, and whether it adds up signals of several takers."""

    step: Step
    forks: bool = False


class _Placed(NamedTuple):
    """A work at its place in the order, with the tensors that it uses."""

    slot: _Slot
    work: Work
    lying: tuple[tuple[Lying, ...], ...]  # at I, F and O, or of a move


def everything(job: Job) -> Job:
    """Return the job with nothing left out that needs memory, whether or not it is counted.

    Operators stream, what the way back needs is stored, Boolean weights have accumulators, a
    teacher runs. An optimizer `none` is one without states.
    """
    extras = job.accounting.extras
    optimizer = "sgd" if extras.optimizer == "none" else extras.optimizer
    whole = {"elementwise": "streamed", "stored_activations": True, "boolean_update": True}
    more = extras.model_copy(update={**whole, "optimizer": optimizer, "teacher": True})
    return job._replace(accounting=job.accounting.model_copy(update={"extras": more}))


def schedule(
    nodes: Sequence[Node], edges: Mapping[str, Edge], job: Job, prefix: str = ""
) -> Schedule:
    """Put the work of a run in order.

    Args:
        prefix: of the names of layers and tensors, where several networks run.
    """
    nodes, whole = tuple(nodes), everything(job)
    works: dict[str, list[Work]] = {node.layer.name: [] for node in nodes}
    needed = workload(nodes, edges, whole)
    for task in needed:
        works[task.layer].append(task.work)
    names = Names(nodes, edges, whole, works)
    needs = [_placed(task, names) for task in needed]
    counted = workload(nodes, edges, job)
    counts = needs if counted == needed else [_placed(task, names) for task in counted]
    uses: dict[_Slot, list[Use]] = {}
    for one in needs:
        uses.setdefault(one.slot, []).extend(_uses(one))
    for slot, use in _beside(nodes, names):
        uses.setdefault(slot, []).append(use)
    _see_ends(nodes, names, uses, whole)
    taken = {*uses, *(one.slot for one in counts)}
    slots = [slot for slot in _order(nodes, whole) if slot in taken] or list(taken)
    places = {slot: number for number, slot in enumerate(slots)}
    tasks = (
        Task(f"{prefix}{one.slot.step.layer}", one.work, _at(places[one.slot], one.lying, prefix))
        for one in counts
    )
    return Schedule(
        tuple(s.step._replace(layer=f"{prefix}{s.step.layer}") for s in slots),
        tuple(tuple(_prefixed(use, prefix) for use in uses.get(slot, ())) for slot in slots),
        tuple(tasks),
    )


def _prefixed(use: Use, prefix: str) -> Use:
    return use._replace(name=f"{prefix}{use.name}") if prefix else use


def _at(step: int, lying: tuple[tuple[Lying, ...], ...], prefix: str) -> At:
    stored = (" + ".join(f"{prefix}{one.name}" for one in parts) for parts in lying)
    return At(step, tuple(stored))


def _placed(task: Task, names: Names) -> _Placed:
    layer, work, _ = task
    forks = False
    if not isinstance(work, Multiply):
        tensor = work.each if isinstance(work, Operate) else work.tensor
        forks = tensor.role == Role.FORK
    component = PRODUCT if isinstance(work, Multiply) else ELEMENTWISE
    return _Placed(_Slot(Step(layer, work.pass_, component), forks), work, names.of(layer, work))


def _order(nodes: Sequence[Node], job: Job) -> Iterator[_Slot]:
    """Every place that a step may have, in order."""
    for node in nodes:
        for component in Component:
            yield _Slot(Step(node.layer.name, FORWARD, component))
    if not job.trains:
        return
    for node in reversed(nodes):
        name = node.layer.name
        yield _Slot(Step(name, BACK, ELEMENTWISE), forks=True)
        yield _Slot(Step(name, BACK, ELEMENTWISE))
        yield _Slot(Step(name, WEIGHT, PRODUCT))
        yield _Slot(Step(name, WEIGHT, ELEMENTWISE))
        yield _Slot(Step(name, BACK, PRODUCT))
    for node in nodes:
        yield _Slot(Step(node.layer.name, UPDATE, ELEMENTWISE))


def _uses(one: _Placed) -> Iterator[Use]:
    if isinstance(one.work, Multiply):
        ways = [READ, READ, WRITE]
    else:
        ways = [one.work.direction] if isinstance(one.work, Move) else []
    for parts, way in zip(one.lying, ways, strict=True):
        yield from (Use(*part, way) for part in parts)


def _beside(nodes: Sequence[Node], names: Names) -> Iterator[tuple[_Slot, Use]]:
    """What is used by no work: of operators without a model, and of parameters beside weights."""
    for node in nodes:
        name, trains = node.layer.name, names.job.trains
        if node.layer.kind == "uncounted":
            yield from _unknown(node, names)
        if node.other_parameters:
            used = Use(*names.parameters(node, "P", names.full), READ)
            yield _Slot(Step(name, FORWARD, ELEMENTWISE)), used
        if node.learned_parameters and trains:
            used = Use(*names.parameters(node, "dP", names.full), WRITE)
            yield _Slot(Step(name, WEIGHT, ELEMENTWISE)), used


def _unknown(node: Node, names: Names) -> Iterator[tuple[_Slot, Use]]:
    """What an operator without a model uses: it reads its inputs, and writes its output."""
    name = node.layer.name
    forward, back = (_Slot(Step(name, pass_, ELEMENTWISE)) for pass_ in (FORWARD, BACK))
    for source in node.inputs:
        yield forward, Use(*names.given(source), READ)
    yield forward, Use(*names.maps[name], WRITE)
    for one in names.signals.get(name, ()):
        yield back, Use(*one, READ)
    for place, wanted in enumerate(node.signal_to):
        for one in names.passed(node, place) if wanted and names.job.trains else ():
            yield back, Use(*one, WRITE)


def _see_ends(nodes: Sequence[Node], names: Names, uses: dict[_Slot, list[Use]], job: Job) -> None:
    """Let what the network gives be taken, and its signals be there when the way back begins."""
    ends = [node.layer.name for node in nodes if node.layer.name not in names.takers]
    used = [slot for slot in _order(nodes, job) if slot in uses]
    forward = [slot for slot in used if slot.step.pass_ == FORWARD]
    if not forward:  # views alone
        forward = [_Slot(Step(ends[-1] if ends else INPUT, FORWARD, ELEMENTWISE))]
    # A loss, or whoever asked, takes what the network gives.
    uses.setdefault(forward[-1], []).extend(Use(*names.maps[name], READ) for name in ends)
    back = next((slot for slot in used if slot.step.pass_ in (BACK, WEIGHT)), None)
    if back is not None:
        learned = [name for name in ends if names.named[name].learns]
        uses[back][:0] = [Use(*one, WRITE) for name in learned for one in names.signals[name]]
