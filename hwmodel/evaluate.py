"""The line itself: network, chip, method -> products -> tiles -> accesses -> energy -> table."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hwmodel.accesses import Mapping
from hwmodel.accounting import Accounting
from hwmodel.energy import Product, Row, Stream, product_rows, stream_rows
from hwmodel.errors import HwmodelError, Infeasible
from hwmodel.files import load
from hwmodel.hardware import Hardware
from hwmodel.layers import PASSES
from hwmodel.method import Method, Treatment
from hwmodel.network import Network, Node, load_network
from hwmodel.problem import Problem, Widths
from hwmodel.search import level_by_level

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MODES", "Mode", "Report", "Tiler", "evaluate", "works"]

Mode = Literal["training", "inference"]
MODES: dict[Mode, tuple[str, ...]] = {"training": tuple(PASSES), "inference": ("forward",)}
MAX_BATCH = 2**31
COLUMNS = (
    "network", "hardware", "method", "accounting", "batch", "layer", "pass", "component",
    "tensor", "level", "accesses", "bits", "operations", "energy", "unit",
)  # fmt: skip


class Tiler:
    """The mapping of each problem on one chip; equal problems are searched once."""

    def __init__(self, hardware: Hardware) -> None:
        self.hardware = hardware
        self._found: dict[Problem, Mapping] = {}

    def mapping(self, work: Product) -> Mapping:
        """The tiles for `work`. Raises: Infeasible, naming the layer."""
        if work.problem not in self._found:
            try:
                self._found[work.problem] = level_by_level(work.problem, self.hardware)
            except Infeasible as error:
                error.where = f"{work.layer}, {work.phase} on {self.hardware.name}"
                raise
        return self._found[work.problem]


@dataclass(frozen=True)
class Report:
    """Energy of one iteration (training) or one run (inference) of a batch, row by row."""

    network: Network
    hardware: Hardware
    method: Method
    accounting: Accounting
    batch: int
    mode: Mode
    rows: tuple[Row, ...]
    not_counted: tuple[str, ...]

    @property
    def energy(self) -> float:
        """Sum of all rows [`unit`]."""
        return fsum(row.energy for row in self.rows)

    @property
    def unit(self) -> str:
        """Unit of every energy: "pJ", or "MAC" on a chip whose costs are normalised."""
        return self.hardware.energy_unit

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
    batch: int = 1,
    mode: Mode = "training",
    tiler: Tiler | None = None,
) -> Report:
    """Energy of one training iteration, or of one inference, of a batch.

    Names, paths to YAML files and values are accepted alike.

    Args:
        batch: images in the iteration.
        mode: "training" (all passes) or "inference" (forward only).
        tiler: one that has searched before on the same chip; its findings are used again.

    Raises: HwmodelError, of which SpecError, NameUnknown, ShapeError and Infeasible are kinds.
    """
    network = load_network(network)
    chip = load(Hardware, hardware)
    method = load(Method, method)
    choices = load(Accounting, accounting)
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= MAX_BATCH:
        raise HwmodelError(f"batch {batch!r}: must be a whole number from 1 to {MAX_BATCH}")
    if mode not in MODES:
        raise HwmodelError(f"mode {mode!r}: must be one of {', '.join(MODES)}")
    tiler = tiler or Tiler(chip)
    rows: list[Row] = []
    for node in network.nodes():
        for work in works(node, method, choices, batch, mode):
            if isinstance(work, Product):
                rows += product_rows(work, tiler.mapping(work), chip, choices)
            else:
                rows += stream_rows(work, chip)
    missing = not_counted(network, choices, mode)
    return Report(network, chip, method, choices, batch, mode, tuple(rows), missing)


def works(
    node: Node, method: Method, accounting: Accounting, batch: int, mode: Mode
) -> list[Product | Stream]:
    """What one layer has to do in one iteration: its products, then what is only moved."""
    loops = node.layer.loops(node.input_shapes, batch)
    if not loops:
        return []
    treatment = method.treatment(node, accounting)
    macs = batch * node.layer.macs(node.input_shapes)
    skipped = node.position == "first" and not accounting.first_layer_input_gradient
    result: list[Product | Stream] = []
    for phase, nest in loops.items():
        if phase not in MODES[mode] or (skipped and phase == "backward_input"):
            continue
        tensors = nest.tensors
        bits = Widths(*(treatment.bits[tensor] for tensor in tensors))
        problem = Problem(nest.extent, nest.height, nest.width, bits, nest.groups)
        result.append(
            Product(node.layer.name, phase, problem, tensors, macs, treatment.arithmetic[phase])
        )
    return result + _extra_streams(node, treatment, accounting, batch)


def _extra_streams(
    node: Node, treatment: Treatment, accounting: Accounting, batch: int
) -> list[Product | Stream]:
    """The method's full-precision work on pre-activations, as words moved through DRAM."""
    channels, rows, columns = node.output_shape
    words = batch * channels * rows * columns * accounting.preactivation_words
    width = accounting.full_precision_bits
    return [
        Stream(node.layer.name, "forward", "elementwise", what, 0, words, width)
        for what in treatment.extra
    ]


def not_counted(network: Network, accounting: Accounting, mode: Mode) -> tuple[str, ...]:
    """What the report leaves out: layers that have no model, and what the accounting names."""
    left: dict[str, list[int]] = {}
    for node in network.nodes():
        if not node.layer.loops(node.input_shapes, 1):
            C, H, W = node.output_shape
            left.setdefault(node.layer.kind, []).append(C * H * W)
    layers = [
        f"{kind}: {len(sizes)} layers, {sum(sizes):,} output elements an image"
        for kind, sizes in left.items()
    ]
    return (
        *layers,
        *accounting.not_counted,
        *(accounting.not_counted_in_training if mode == "training" else ()),
    )
