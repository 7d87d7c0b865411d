"""The report of a run: every entry of its ledger, priced, and sentences on how it came about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any

from hwmodel.errors import HwmodelError, SpecError, many
from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.model.attention_choice import Ways, in_ways
from hwmodel.model.duration import Duration, demands, duration, untimed
from hwmodel.model.ledger import NAME, Component, Ledger
from hwmodel.model.measured import Measures
from hwmodel.model.memory import Occupancy
from hwmodel.model.notebook import html_table
from hwmodel.model.plans import occupied
from hwmodel.model.prices import Key, Prices
from hwmodel.model.proof import Proof, proof
from hwmodel.model.residency.plan import Residency
from hwmodel.model.utilisation import idleness
from hwmodel.model.widths import Edge
from hwmodel.model.workload import Job, Mode, Task
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.trace import Trace
from hwmodel.tiling.tile import Tiling
from hwmodel.work.tensor import Pass, TensorKind, plain
from hwmodel.work.work import Multiply

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "Report", "by_width"]

FEW = 3  # layers that a sentence names
COLUMNS = (
    "network", "hardware", "method", "accounting", "batch",
    *NAME, "bits", "elements", "count", "price", "energy", "unit",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Report:
    """The energy of one iteration (training) or one run (inference) of a batch, row by row."""

    network: Network
    hardware: Hardware
    method: Method
    accounting: Accounting
    batch: int
    mode: Mode
    ledger: Ledger
    tilings: tuple[tuple[Task, Tiling], ...]  # of every product, a teacher's among them
    edges: dict[str, Edge]  # width of every tensor, by the layer it comes from
    not_counted: tuple[str, ...]
    measured: Measures | None = None  # of traces, if the report took some
    traces: tuple[Trace, ...] = ()
    residency: Residency | None = None  # what stays on the chip; None: nothing may
    ways: tuple[Ways, ...] = ()  # of attention that takes the cheaper of two

    def __repr__(self) -> str:
        inputs = (self.network, self.hardware, self.method, self.accounting)
        names = ", ".join(spec.name for spec in inputs)
        return f"<Report {names}, batch {self.batch}: {self.energy:.6g} {self.unit}>"

    @cached_property
    def energy(self) -> float:
        """The sum of all entries [`unit`]."""
        return self.energies()[()]

    @property
    def prices(self) -> Prices:
        """The prices of the chip under the accounting."""
        return Prices(self.hardware, self.accounting)

    def energies(self, *columns: str) -> dict[tuple[str, ...], float]:
        """Energy [`unit`] of every group of entries that agree in some columns of `ledger.NAME`."""
        return self.ledger.by(*columns).energies(self.prices)

    @property
    def unit(self) -> str:
        """Unit of every energy: "pJ", or as in "MAC (fp32)" where a chip's costs are normalised."""
        return self.hardware.unit

    @property
    def images(self) -> int:
        """Images for one update: of one iteration, or of those whose gradients are added up."""
        return self.job.images

    @property
    def job(self) -> Job:
        """The job that the report is of."""
        job = Job(self.method, self.accounting, self.batch, self.mode, self.measured)
        return in_ways(job, self.ways)

    @cached_property
    def memory(self) -> Occupancy:
        """Every tensor of the run with the steps at which it lives; `.peak()` is the most bits."""
        return occupied(self.network, self.job)

    @property
    def untimed(self) -> str:
        """A sentence on why there is no time on a chip that states rates; "" where there is one."""
        if untimed(self.hardware):
            return ""
        try:
            self.time  # noqa: B018
        except SpecError as error:
            return f"no time: {error}"
        return ""

    @cached_property
    def time(self) -> Duration:
        """Lower bound and serial time of the run. Raises: SpecError where the chip lacks rates."""
        asked = demands(self.ledger.entries)
        return duration(asked, self.hardware, self.images, self.energy)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Layers of the network as the method has them, at their places."""
        return self.network.nodes(frozenset(self.method.omits))

    @cached_property
    def proof(self) -> Proof:
        """How many of the tilings are proved optimal."""
        return proof(self.tilings)

    @property
    def unproved(self) -> str:
        """A sentence on tilings that the optimal search did not prove; "" if there are none."""
        said = self.proof.sentence()
        if not said or self.residency or self.gap is None:
            return said
        return f"{said}; no tiles cost less than {100 * (1 - self.gap):.2f} % of the whole energy"

    @cached_property
    def gap(self) -> float | None:
        """1 - lower bound / energy of the run; None where no bound is known.

        The bound holds for all choices of what stays on the chip and of tiles, or of tiles alone
        where nothing may stay. A tiling's gap is that of its product's energy at most.
        """
        if not self.energy:
            return None
        found = self.residency
        if found is not None:
            if found.lower_bound is None:
                return None
            return 1 - (found.lower_bound + self.energy - found.energy) / self.energy
        if self.accounting.counting.search != "optimal":
            return None
        gaps: dict[tuple[str, ...], float] = {}
        for task, tiling in self.tilings:
            own = tiling.certificate.gap if tiling.certificate else 0.0
            key = task.layer, task.work.pass_, Component.PRODUCT
            gaps[key] = max(own, gaps.get(key, 0.0))
        energies = self.energies("layer", "pass", "component")
        return fsum(gap * energies.get(key, 0.0) for key, gap in gaps.items()) / self.energy

    @property
    def staying(self) -> str:
        """A sentence on what stays on the chip, its lower bound, and what is left; "" for none."""
        found = self.residency
        if found is None or not self.energy:
            return ""
        part = {one.name: one.part.kind for one in self.memory.tensors}
        outermost = {memory.name for memory in self.hardware.levels[0].buffers}
        left = fsum(
            energy
            for (memory, name), energy in self.energies("memory", "stored").items()
            if memory in outermost and name and name not in found.border
            and part.get(name.partition(" + ")[0]) in (TensorKind.MAPS, TensorKind.SIGNALS)
        )  # fmt: skip
        known = "prices fall outwards, so that no bound is known"
        if self.gap is not None:
            gap = 100 * self.gap
            given = ", with attention run as it is here," if self.ways else ""
            known = f"no choice{given} costs less than {100 - gap:.2f} % of this (gap {gap:.2f} %)"
        return (
            f"{many(len(found.items), 'stay')} of tensors on the chip; {known}. Activations "
            f"through the outermost memory, but for what comes from outside or is given there: "
            f"{100 * left / self.energy:.1f} % (depth-first could save at most this)"
        )

    @property
    def attention(self) -> str:
        """A sentence on blocks of attention that run as separate products; "" if none does."""
        apart = [one for one in self.ways if one.is_separate]
        if not apart:
            return ""
        kernels = [one.kernel for one in apart if one.kernel is not None]
        less = "for which one kernel has no room"
        if len(kernels) == len(apart):
            share = 1 - fsum(one.separate or 0.0 for one in apart) / fsum(kernels)
            less = f"which cost {100 * share:.1f} % less than in one kernel"
            if share <= 0:
                less = "with which the run costs less than with one kernel"
        few = ", ".join(one.scores for one in apart[:FEW]) + ", ..." * (len(apart) > FEW)
        blocks = many(len(self.ways), "block")
        return f"attention: {len(apart)} of {blocks} as separate products, {less} ({few})"

    @property
    def by_width(self) -> str:
        """A sentence on prices that nobody states, made of the widths; "" if there are none."""
        return by_width(self.prices, self.ledger.keys)

    @property
    def timeless(self) -> list[str]:
        """Memories that are used and take no time: the chip states no bandwidth of them."""
        used = {memory for (memory,) in self.energies("memory") if memory}
        memories = (memory for level in self.hardware.levels for memory in level.buffers)
        return [memory.name for memory in memories if memory.name in used and not memory.rates]

    @property
    def bit_operations(self) -> dict[str, int]:
        """Bit operations of the products of each layer, in all passes of the report."""
        found: dict[str, int] = {}
        for task, _ in self.tilings:
            assert isinstance(task.work, Multiply)
            found[task.layer] = found.get(task.layer, 0) + task.work.bit_operations
        return found

    @property
    def idleness(self) -> str:
        """A sentence on how many MACs work, on a chip with an array; "" without."""
        if self.hardware.array is None or not self.tilings:
            return ""
        return idleness(self.hardware, self.accounting, self.tilings)

    @property
    def records(self) -> list[tuple[object, ...]]:
        """The tidy table as plain tuples in the order of `COLUMNS`: energy = count x price."""
        inputs = (self.network.name, self.hardware.name, self.method.name, self.accounting.name)
        paid = {key: self.prices.value(key) for key in self.ledger.by().keys}
        return [
            (
                *inputs, self.batch, *map(str, entry.name), plain(entry.bits), entry.elements,
                entry.count, paid[entry.key], entry.count * paid[entry.key], self.unit,
            )
            for entry in self.ledger.entries
        ]  # fmt: skip

    @property
    def table(self) -> pd.DataFrame:
        """The tidy table: one row for every entry of the ledger."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=list(COLUMNS))

    def plot(self, kind: str = "", **look: Any) -> Any:
        """Draw it: `layers`, `levels`, `passes`, `level-tensor` or `roofline`; `hwmodel.plot`."""
        import hwmodel

        return hwmodel.plot(self, kind, **look)

    def _repr_html_(self) -> str:
        """Show the energy by layer and pass; whatever a name holds is text."""
        cells, layers = self.energies("layer", "pass"), self.energies("layer")
        passes = [one for one in Pass if any(pass_ == one for _, pass_ in cells)]
        rows = [
            (layer, *(f"{cells.get((layer, one), 0.0):,.4g}" for one in passes), f"{total:,.4g}",
             f"{100 * total / self.energy if self.energy else 0.0:.1f}")
            for (layer,), total in layers.items()
        ]  # fmt: skip
        head = ("layer", *(one.replace("_", " ") for one in passes), f"sum, {self.unit}", "%")
        return html_table(f"{self!r}"[1:-1] + ", analytical, not measured", head, rows)

    def by(self, *columns: str) -> pd.Series[float]:
        """Energy [`unit`] summed over all but `columns` of the table, in order of appearance."""
        import pandas as pd

        unknown = [column for column in columns if column not in NAME]
        if unknown or not columns:
            raise HwmodelError(f"by{columns}: give columns of the table, {', '.join(NAME)}")
        found = self.energies(*columns)
        labels = [list(map(str, column)) for column in zip(*found, strict=True)]
        several = len(columns) > 1
        index = (
            pd.MultiIndex.from_arrays(labels, names=columns)
            if several
            else pd.Index(labels[0], name=columns[0])
        )
        return pd.Series(list(found.values()), index=index, name="energy", dtype=float)


def by_width(prices: Prices, keys: Iterable[Key]) -> str:
    """Name prices that nobody states, made of the widths; "" if there are none."""
    keys = [*keys]
    found, dearer = prices.derived(keys), prices.dearer(keys)
    said = f"by width (docs/model.md section 5): {found}" if found else ""
    told = "; ".join(filter(None, (said, prices.unsummed(keys), prices.relative(keys), dearer)))
    return told and f"prices that the chip does not state, {told}"
