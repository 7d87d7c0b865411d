"""The schedule of a run: its work in order, step by step, and the tensors that each step uses.

A **step** is one product, or all other work of one layer in one pass. Steps go forward layer by
layer; then back from the last layer to the first: the sum of several signals, the operator's own
way back, the product backward_weight, the product backward_input; then come the updates. Before
layers up to a checkpoint go back they go forward once more (`model/recompute.py`).

Tasks, which are counted, and uses, by which tensors live, know the same steps and names. Uses are
of everything that a run needs, tasks of what its accounting counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hwmodel.errors import HwmodelError
from hwmodel.graph.layers import INPUT
from hwmodel.graph.node import Node
from hwmodel.model.fusion import Fused, fused, stepped_at_once
from hwmodel.model.ledger import Component
from hwmodel.model.names import Names
from hwmodel.model.recompute import NOTHING, Use, again
from hwmodel.model.steps import Placed, Slot, Step, order, slot_of
from hwmodel.model.tasks import workload
from hwmodel.model.widths import Edge
from hwmodel.model.workload import At, Job, Task
from hwmodel.work.tensor import Direction, Pass, Role
from hwmodel.work.work import Move, Work

__all__ = ["Schedule", "Use", "everything", "schedule"]

FORWARD, BACK, WEIGHT, UPDATE, _ = Pass
READ, WRITE = Direction.READ, Direction.WRITE
ELEMENTWISE = Component.ELEMENTWISE


@dataclass(frozen=True)
class Schedule:
    """The steps of a run, what each uses, and the tasks that are counted, layer by layer."""

    steps: tuple[Step, ...]
    uses: tuple[tuple[Use, ...], ...]  # of each step
    tasks: tuple[Task, ...]  # `at.step` is the place among the steps
    given: tuple[str, ...]  # tensors that whoever asked takes
    sums_gradients: bool = False  # over several iterations, so that they live through all of each


def everything(job: Job) -> Job:
    """Return the job with nothing left out that needs memory, whether or not it is counted.

    Operators stream, or are fused where the accounting says so; what the way back needs is stored,
    Boolean weights have accumulators, a teacher runs. An optimizer `none` is one without states.
    """
    extras = job.accounting.extras
    optimizer = "sgd" if extras.optimizer == "none" else extras.optimizer
    own = "fused" if extras.elementwise == "fused" else "streamed"
    whole = {"elementwise": own, "stored_activations": True, "boolean_update": True}
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
    beside, placed = list(_beside(nodes, names)), [_placed(task, names) for task in needed]
    twice = again(nodes, names, placed, beside) if job.trains else NOTHING
    beside, places = twice.uses(beside), list(order(nodes, job, twice.segments))
    needs = _fused(twice.works(placed), names, places, beside)
    counted, counts = workload(nodes, edges, job), needs.works
    if counted != needed:
        placed = [_placed(task, names) for task in counted]
        counts = _fused(twice.works(placed), names, places, beside).works
    uses: dict[Slot, list[Use]] = {}
    for one in needs.works:
        uses.setdefault(one.slot, []).extend(_uses(one))
    for slot, use in beside:
        uses.setdefault(needs.groups.get(slot, slot), []).append(use)
    for slot, tensor in needs.begun:
        uses[slot].append(Use(*tensor, WRITE))
    _see_ends(names, places, uses)
    taken = {*uses, *(one.slot for one in counts)}
    slots = [slot for slot in places if slot in taken] or list(taken)
    numbers = {slot: number for number, slot in enumerate(slots)}
    tasks = (
        Task(f"{prefix}{one.layer}", one.work, _at(numbers[one.slot], one, prefix, job))
        for one in counts
    )
    return Schedule(
        tuple(s.step._replace(layer=f"{prefix}{s.step.layer}") for s in slots),
        tuple(tuple(_prefixed(use, prefix) for use in uses.get(slot, ())) for slot in slots),
        tuple(tasks),
        tuple(f"{prefix}{names.maps[name].name}" for name in _ends(names)),
        job.trains and job.accounting.extras.accumulate > 1,
    )


def _prefixed(use: Use, prefix: str) -> Use:
    return use._replace(name=f"{prefix}{use.name}") if prefix else use


def _at(step: int, one: Placed, prefix: str, job: Job) -> At:
    stored = tuple(tuple(f"{prefix}{part.name}" for part in parts) for parts in one.lying)
    work, times = one.work, job.accounting.extras.accumulate if job.trains else 1
    tensor = work.tensor if isinstance(work, Move) else getattr(work, "each", None)
    once = work.pass_ == UPDATE or (tensor is not None and tensor.role == Role.SUMMED)
    return At(step, stored, 1 if once else times)


def _placed(task: Task, names: Names) -> Placed:
    layer, work, _ = task
    return Placed(slot_of(layer, work), layer, work, names.of(layer, work))


def _fused(
    works: list[Placed], names: Names, places: Sequence[Slot], beside: Sequence[tuple[Slot, Use]]
) -> Fused:
    """Fuse works where their accounting asks for it. Raises: HwmodelError."""
    extras = names.job.accounting.extras
    if extras.update_order == "fused":
        sharing = next((node.layer for node in names.named.values() if node.layer.shares), None)
        if sharing and names.job.trains:
            raise HwmodelError(
                f"update_order fused: layer {sharing.name} shares the weights of {sharing.shares}, "
                "whose gradient is a sum of several and cannot be used as it is made"
            )
        works = list(stepped_at_once(works))
    if extras.elementwise != "fused":
        return Fused(works, {}, [])
    taken = {names.maps[name].name for name in _ends(names)}
    taken |= {use.name for _, use in beside if use.direction == READ}
    return fused(works, names.named, places, taken)


def _uses(one: Placed) -> Iterator[Use]:
    yield from (Use(*part, READ) for part in one.read)
    yield from (Use(*part, WRITE) for part in one.written)


def _beside(nodes: Sequence[Node], names: Names) -> Iterator[tuple[Slot, Use]]:
    """What is used by no work: of operators without a model, and of parameters beside weights."""
    for node in nodes:
        name, trains = node.layer.name, names.job.trains
        if node.layer.kind == "uncounted":
            yield from _unknown(node, names)
        if node.other_parameters:
            used = Use(*names.parameters(node, "P", names.full), READ)
            yield Slot(Step(name, FORWARD, ELEMENTWISE)), used
        if node.layer.kind == "max-pool" and node.learns and trains and names.as_torch:
            for source in node.inputs:
                yield Slot(Step(name, BACK, ELEMENTWISE)), Use(*names.given(source), READ)
        if node.learned_parameters and trains:
            used = Use(*names.parameters(node, "dP", names.full), WRITE)
            yield Slot(Step(name, WEIGHT, ELEMENTWISE)), used


def _unknown(node: Node, names: Names) -> Iterator[tuple[Slot, Use]]:
    """What an operator without a model uses: it reads its inputs, and writes its output."""
    name = node.layer.name
    forward, back = (Slot(Step(name, pass_, ELEMENTWISE)) for pass_ in (FORWARD, BACK))
    for source in node.inputs:
        yield forward, Use(*names.given(source), READ)
    yield forward, Use(*names.maps[name], WRITE)
    for one in names.signals.get(name, ()):
        yield back, Use(*one, READ)
    for place, wanted in enumerate(node.signal_to):
        for one in names.passed(node, place) if wanted and names.job.trains else ():
            yield back, Use(*one, WRITE)


def _ends(names: Names) -> list[str]:
    """The layers that nobody takes from: what the network gives."""
    return [name for name in names.named if name not in names.takers]


def _see_ends(names: Names, places: Sequence[Slot], uses: dict[Slot, list[Use]]) -> None:
    """Let what the network gives be taken, and its signals be there when the way back begins."""
    ends = _ends(names)
    used = [slot for slot in places if slot in uses]
    forward = [slot for slot in used if slot.step.pass_ == FORWARD]
    if not forward:  # views alone
        forward = [Slot(Step(ends[-1] if ends else INPUT, FORWARD, ELEMENTWISE))]
    # A loss, or whoever asked, takes what the network gives.
    uses.setdefault(forward[-1], []).extend(Use(*names.maps[name], READ) for name in ends)
    back = next((slot for slot in used if slot.step.pass_ in (BACK, WEIGHT)), None)
    if back is not None:
        learned = [name for name in ends if names.named[name].learns]
        uses[back][:0] = [Use(*one, WRITE) for name in learned for one in names.signals[name]]
