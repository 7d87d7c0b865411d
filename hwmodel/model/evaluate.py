"""The line itself: network, chip, method -> products -> tiles -> accesses -> energy -> table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, prod
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex

from hwmodel.errors import HwmodelError, Infeasible, ShapeError, TooLarge, many
from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.importers.load import load_network
from hwmodel.model import widths
from hwmodel.model.energy import Product, Row, Stream, product_rows, stream_rows
from hwmodel.model.measured import Measures, measures
from hwmodel.model.widths import Edge
from hwmodel.model.workload import MODES, Job, Mode, works
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import expect, path_of, whole, word
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.trace import Trace, read_trace
from hwmodel.tiling.optimal.search import Stationary
from hwmodel.tiling.tile import Tiling, tile
from hwmodel.work.problem import Problem

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "Found", "Report", "Tiler", "check_run", "evaluate", "not_counted"]
__all__ += ["place", "priced", "refuse_unknown", "stationary", "teacher_works", "workload"]

VIEWS = ("reshape", "slice", "source")  # nothing moves forward: no cost that could be left out
MAX_BATCH = 2**31
COLUMNS = (
    "network", "hardware", "method", "accounting", "batch", "layer", "pass", "component",
    "tensor", "level", "accesses", "bits", "operations", "energy", "unit",
)  # fmt: skip


Found = dict[tuple[Problem, Stationary | None], Tiling]


class Tiler:
    """The tiling of each problem on one chip under one accounting; equal ones are found once."""

    def __init__(
        self, hardware: Hardware, accounting: Accounting, found: Found | None = None
    ) -> None:
        """With tilings that are `found` already, for equal `tiling.tile.tiling_inputs`."""
        self.hardware, self.accounting = hardware, accounting
        self._found = {} if found is None else found

    def tiling(self, work: Product) -> Tiling:
        """The tiling for `work`. Raises: Infeasible, TooLarge; they name the layer."""
        key = work.problem, stationary(work, self.accounting)
        if key not in self._found:
            try:
                self._found[key] = tile(work.problem, self.hardware, self.accounting, key[1])
            except (Infeasible, TooLarge) as error:
                error.where = place(work, self.hardware)
                raise
        return self._found[key]


def stationary(work: Product, accounting: Accounting) -> Stationary | None:
    """What may be held where it is not as accounted: in backward_weight either operand may."""
    free = accounting.counting.weight_gradient == "best-of-two-roles"
    held_only = accounting.counting.stationary == "filter"
    return "either" if free and held_only and work.phase == "backward_weight" else None


def place(work: Product, hardware: Hardware) -> str:
    """How messages name a product on a chip."""
    return f"{work.layer}, {work.phase} on {hardware.name}"


@dataclass(frozen=True, repr=False)
class Report:
    """Energy of one iteration (training) or one run (inference) of a batch, row by row."""

    network: Network
    hardware: Hardware
    method: Method
    accounting: Accounting
    batch: int
    mode: Mode
    rows: tuple[Row, ...]
    tilings: tuple[tuple[Product, Tiling], ...]
    edges: dict[str, Edge]  # width of every tensor, by the layer it comes from
    not_counted: tuple[str, ...]
    measured: Measures | None = None  # of a trace, if the report took one

    def __repr__(self) -> str:
        inputs = (self.network, self.hardware, self.method, self.accounting)
        names = ", ".join(spec.name for spec in inputs)
        return f"<Report {names}, batch {self.batch}: {self.energy:.6g} {self.unit}>"

    @cached_property
    def energy(self) -> float:
        """Sum of all rows [`unit`]; views ask for it once a layer."""
        return fsum(row.energy for row in self.rows)

    @property
    def unit(self) -> str:
        """Unit of every energy: "pJ", or "MAC" on a chip whose costs are normalised."""
        return self.hardware.energy_unit

    @property
    def job(self) -> Job:
        """What is done of every layer."""
        return Job(self.method, self.accounting, self.batch, self.mode, self.measured)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Layers of the network as the method has them, at their places."""
        return self.network.nodes(frozenset(self.method.omits))

    @property
    def unproved(self) -> str:
        """What is to be said of tilings that the optimal search did not prove; "" if nothing."""
        gaps = [t.certificate.gap for _, t in self.tilings if t.certificate and t.certificate.gap]
        if not gaps:
            return ""
        return (
            f"{len(gaps)} of {len(self.tilings)} tilings are not proved optimal: the largest gap "
            f"to a lower bound is {100 * max(gaps):.1f} %"
        )

    @property
    def records(self) -> list[tuple[object, ...]]:
        """The tidy table as plain tuples in the order of `COLUMNS`."""
        inputs = (self.network.name, self.hardware.name, self.method.name, self.accounting.name)
        return [(*inputs, self.batch, *row, self.unit) for row in self.rows]

    @property
    def table(self) -> pd.DataFrame:
        """The tidy table: one row per layer, pass, component, tensor and level."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=list(COLUMNS))

    def by(self, *columns: str) -> pd.Series[float]:
        """Energy [`unit`] summed over all but `columns` of the table, in order of appearance."""
        unknown = [column for column in columns if column not in COLUMNS]
        if unknown or not columns:
            raise HwmodelError(f"by{columns}: give columns of the table, {', '.join(COLUMNS)}")
        return self.table.groupby(list(columns), sort=False)["energy"].sum()


def evaluate(
    network: str | Path | Network,
    hardware: str | Path | Hardware,
    method: str | Path | Method,
    *,
    accounting: str | Path | Accounting = "paper",
    batch: SupportsIndex = 1,
    mode: Mode = "training",
    trace: str | Path | Trace | None = None,
    tiler: Tiler | None = None,
) -> Report:
    """Energy of one training iteration, or of one inference, of a batch.

    Names, paths to YAML files and values are accepted alike.

    Args:
        batch: images in the iteration.
        mode: "training" (all passes) or "inference" (forward only).
        trace: what a training run measured, or its file: widths of Boolean signals, sums and
            accumulators and flip rates in the place of the accounting's.
        tiler: one that has searched before, on the same chip under the same accounting.

    Raises: HwmodelError, of which SpecError, NameUnknown, ShapeError and Infeasible are kinds.
    """
    network = load_network(network)
    chip = load(Hardware, hardware)
    method = load(Method, method)
    widths.tell_doubts(method)
    choices = load(Accounting, accounting)
    images = check_run(batch, mode)
    tiler = Tiler(chip, choices) if tiler is None else _fitting(tiler, chip, choices)
    measured = None if trace is None else measures(_read(trace))
    job = Job(method, choices, images, mode, measured)
    work, edges = workload(network, job)
    rows, tilings = priced(work, job, tiler)
    missing = not_counted(network, choices, mode)
    return Report(
        network, chip, method, choices, images, mode, tuple(rows), tuple(tilings), edges, missing,
        measured,
    )  # fmt: skip


def _fitting(tiler: Tiler, chip: Hardware, accounting: Accounting) -> Tiler:
    """The tiler, whose own chip and accounting all prices come from. Raises: HwmodelError."""
    expect(Tiler, "tiler", tiler, "a Tiler")
    for own, asked in ((tiler.hardware, chip), (tiler.accounting, accounting)):
        if own != asked:
            other = asked.name if own.name != asked.name else f"another {asked.name}"
            raise HwmodelError(f"tiler: is for {own.KIND} {own.name}, but {other} is asked for")
    return tiler


def _read(trace: str | Path | Trace) -> Trace:
    """What a training run measured, or what its file says of it. Raises: HwmodelError."""
    if isinstance(trace, Trace):
        return trace
    expect((str, Path), "trace", trace, "a path or a Trace")
    return read_trace(path_of("trace", trace))


def workload(network: Network, job: Job) -> tuple[list[Product | Stream], dict[str, Edge]]:
    """What all layers have to do, and the width of every tensor. No chip and no price is asked."""
    nodes = network.nodes(frozenset(job.method.omits))
    edges = widths.edges(job.method, nodes, job.accounting, job.measured)
    return [work for node in nodes for work in works(node, edges, job)], edges


def priced(
    work: Iterable[Product | Stream], job: Job, tiler: Tiler
) -> tuple[list[Row], list[tuple[Product, Tiling]]]:
    """Rows of a workload on the tiler's chip, and the tiling of each product.

    Raises: Infeasible, TooLarge, SpecError where an operation has no price.
    """
    rows, tilings = _rows(work, tiler)
    return rows + _rows(teacher_works(job), tiler)[0], tilings


def _rows(
    work: Iterable[Product | Stream], tiler: Tiler
) -> tuple[list[Row], list[tuple[Product, Tiling]]]:
    rows: list[Row] = []
    tilings: list[tuple[Product, Tiling]] = []
    for one in work:
        if isinstance(one, Product):
            tiling = tiler.tiling(one)
            tilings.append((one, tiling))
            rows += product_rows(one, tiling.mapping, tiler.hardware, tiler.accounting)
        else:
            rows += stream_rows(one, tiler.hardware, tiler.accounting)
    return rows, tilings


def teacher_works(job: Job) -> list[Product | Stream]:
    """The forward pass of a distilling method's teacher, its layers named after it."""
    teacher = job.method.teacher
    if not (job.accounting.extras.teacher and teacher and job.trains):
        return []
    network, method = load_network(teacher.network), load(Method, teacher.method)
    found, _ = workload(network, Job(method, job.accounting, job.batch, "inference"))
    return [replace(work, layer=f"{network.name}.{work.layer}") for work in found]


def check_run(batch: SupportsIndex, mode: Mode) -> int:
    """The batch, where there are such a batch and such a mode. Raises: HwmodelError."""
    images = whole("batch", batch, 1, MAX_BATCH)
    word("mode", mode, MODES)
    return images


def not_counted(network: Network, accounting: Accounting, mode: Mode) -> tuple[str, ...]:
    """What the report leaves out: layers that have no model, and what the accounting names."""
    left: dict[str, list[int]] = {}
    streamed = accounting.extras.elementwise == "streamed"
    nodes = network.nodes()
    for node in nodes:
        layer = node.layer
        counted = layer.loops(node.input_shapes, 1) or (streamed and layer.cost(node.input_shapes))
        if not counted and layer.kind not in VIEWS:
            left.setdefault(getattr(layer, "operator", layer.kind), []).append(
                prod(node.output_shape)
            )
    everything = sum(prod(node.output_shape) for node in nodes)
    layers = [
        f"{kind}: {many(len(sizes), 'layer')}, {sum(sizes):,} output elements an image "
        f"({100 * sum(sizes) / everything:.1f} % of the network's)"
        for kind, sizes in left.items()
    ]
    if mode != "training":
        return (*layers, *accounting.not_counted)
    signals = _signals_left_out(nodes, streamed)
    return (*layers, *signals, *accounting.not_counted, *accounting.not_counted_in_training)


def _signals_left_out(nodes: Sequence[Node], streamed: bool) -> Iterator[str]:
    """What signals and gradients cost between layers, as far as it is not counted."""
    left = {"zeros in the signals of tensors that slices take only a part of": _cut(nodes)}
    if not streamed:
        left |= _sums_left_out(nodes)
    for what, found in left.items():
        if found:
            yield f"{what}: {many(len(found), 'tensor')}"


def _sums_left_out(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """Signals and gradients that are added up where operators are not streamed."""
    return {
        "adding up the signals of tensors that several layers take": [
            n for n in nodes if n.learns and max(n.taken) > 1
        ],
        "adding up the gradients of weights that several layers share": [
            n for n in nodes if n.layer.shares
        ],
        "summing the gradients of learned constants over the images": [
            n for n in nodes if n.layer.kind == "source" and n.other_parameters
        ],
    }


def _cut(nodes: Sequence[Node]) -> list[Node]:
    """Layers whose output slices alone take, and not all of it."""
    return [n for n in nodes if n.learns and n.consumers and n.taken[0]]


def refuse_unknown(network: Network) -> None:
    """See that every operator of the network has a model. Raises: ShapeError."""
    unknown = [layer for layer in network.layers if layer.kind == "uncounted"]
    if unknown:
        first = unknown[0]
        raise ShapeError(
            f"{network.name}: layer {first.name} is the operator {first.operator!r}, which has no "
            f"model ({many(len(unknown), 'such layer')}); without --strict it is listed as not "
            "counted"
        )
