"""What a job does on a network: layers, steps and tasks, what it keeps, and its teacher's run."""

from __future__ import annotations

from hwmodel.errors import HwmodelError, many
from hwmodel.graph.attended import past
from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.importers.load import load_network
from hwmodel.model import widths
from hwmodel.model.memory import Occupancy, occupancy
from hwmodel.model.schedule import Schedule, schedule
from hwmodel.model.widths import Edge
from hwmodel.model.workload import Job, Task
from hwmodel.specs.files import load
from hwmodel.specs.lately import lately
from hwmodel.specs.method import Method

__all__ = [
    "all_tasks",
    "occupied",
    "planned",
    "prepared",
    "run_name",
    "teacher_layer",
    "teacher_run",
    "teacher_schedule",
]


@lately(16)
def prepared(network: Network, job: Job) -> tuple[tuple[Node, ...], dict[str, Edge]]:
    """Return the layers of a network that a job has, and the width of every tensor.

    Raises: HwmodelError for training where everything is frozen.
    """
    nodes = network.nodes(frozenset(job.method.omits))
    if job.trains and not job.method.trains:
        raise HwmodelError(f"method {job.method.name} is for inference; use --mode inference")
    behind = next((node.layer.name for node in nodes if past(node.layer)), None)
    if job.trains and behind:
        raise HwmodelError(
            f"{network.name}: layer {behind} has a past in a cache, which training has not; use "
            "--mode inference"
        )
    kept = next((node.layer.name for node in nodes if node.layer.checkpoint), None)
    if not job.trains and kept:
        raise HwmodelError(
            f"{network.name}: layer {kept} is a checkpoint, for the way back, which inference has "
            "not; use --mode training, or no checkpoint"
        )
    frozen = any(node.layer.frozen and (node.weights or node.other_parameters) for node in nodes)
    if job.trains and frozen and not any(node.learns for node in nodes):
        raise HwmodelError(f"{network.name}: nothing in it learns; use --mode inference")
    return nodes, widths.edges(job.method, nodes, job.accounting, job.measured)


@lately(16)  # chips, tables of energy and of memory ask for the same ones
def planned(network: Network, job: Job, prefix: str = "") -> Schedule:
    """Return the schedule of a job on a network.

    Args:
        prefix: of the names of layers and tensors, where several networks run.

    Raises: HwmodelError.
    """
    return schedule(*prepared(network, job), job, prefix)


def all_tasks(network: Network, job: Job) -> tuple[Task, ...]:
    """List the work of a job on a network, with the forward pass of its teacher at the end.

    In the schedule the teacher comes first, counted or not.
    """
    mine, taught = planned(network, job), teacher_schedule(job)
    if taught is None:
        return mine.tasks
    before = len(taught.steps)
    later = (task._replace(at=task.at._replace(step=task.at.step + before)) for task in mine.tasks)
    extras = job.accounting.extras
    again = (t._replace(at=t.at._replace(times=extras.accumulate)) for t in taught.tasks)
    return (*later, *(again if extras.teacher else ()))


def teacher_schedule(job: Job) -> Schedule | None:
    """Return the run of a distilling method's teacher, whose names begin with its network's."""
    extras = job.accounting.extras.model_copy(update={"teacher": True})
    accounting = job.accounting.model_copy(update={"extras": extras})
    found = teacher_run(job._replace(accounting=accounting))
    if found is None:
        return None
    network, run = found
    return planned(network, run, teacher_layer(network, ""))


def teacher_run(job: Job) -> tuple[Network, Job] | None:
    """Return the network that a distilling method learns from, and its run, which is forward."""
    teacher = job.method.teacher
    if not (job.accounting.extras.teacher and teacher and job.trains):
        return None
    network, method = load_network(teacher.network), load(Method, teacher.method)
    return network, Job(method, job.accounting, job.batch, "inference")


def teacher_layer(network: Network, layer: str) -> str:
    """Name a teacher's layer, NETWORK:LAYER: a colon is in no name of a user's."""
    return f"{network.name}:{layer}"


def occupied(network: Network, job: Job) -> Occupancy:
    """Return what a job on a network keeps in the outermost memories, its teacher's run first."""
    runs = teacher_schedule(job), planned(network, job)
    return occupancy([run for run in runs if run])


def run_name(network: Network, job: Job) -> str:
    """Name a run in a message."""
    images = many(job.batch, "image")
    return f"{network.name} under {job.method.name}, {job.mode} of {images},"
