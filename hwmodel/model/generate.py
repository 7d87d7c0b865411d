"""The energy of a generated token: the prompt at once, then token by token behind a cache.

**Prefill** runs the prompt of P tokens of each sequence in one pass, the head at its last place
alone; it gives the first token. **Decoding** is D steps; step t takes one token of each sequence
and meets P + t keys, its own among them, so that D + 1 tokens leave.

Only the products of attention, and what is done to scores, change from step to step. These are
counted at the first and the last length and one between, and lie on straight lines from one to
the next; all else is counted once. So counts that are linear in the length (multiply-accumulates,
elements of one pass over cache and scores) are exact, and accesses as good as the lines:
`error` says what a line from end to end errs in the middle.

Source: docs/generate.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

from hwmodel.errors import HwmodelError, TooLarge
from hwmodel.graph.generation import generating, see_generates
from hwmodel.graph.layers import AttentionScores
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.model.attention_choice import in_ways
from hwmodel.model.cached import PARTS, CacheWidth, Counts, Places, narrowed, states
from hwmodel.model.entered import entered
from hwmodel.model.evaluate import check_run, see_priced, staying_in, ways_of
from hwmodel.model.memory import see_room
from hwmodel.model.plans import all_tasks, occupied, run_name
from hwmodel.model.prices import Prices, read_by
from hwmodel.model.workload import Job, Task
from hwmodel.specs import usual
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import whole
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.work.tensor import Direction, Role, product
from hwmodel.work.work import Move, Multiply

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "LONGEST", "Elements", "Generation", "Phase", "elements_of", "generate"]

LONGEST = 2**31  # tokens
COLUMNS = (
    "network", "hardware", "method", "accounting", "batch", "prefill", "decode", "cache_bits",
    "phase", "part", "energy", "energy_per_token", "unit", "elements_read", "elements_written",
    "macs",
)  # fmt: skip


class Elements(NamedTuple):
    """Elements of one pass over each tensor, and multiply-accumulates, of all sequences."""

    weights: Fraction = Fraction(0)  # of products, read; rows of tables besides
    cache_read: Fraction = Fraction(0)
    cache_written: Fraction = Fraction(0)
    scores: Fraction = Fraction(0)  # written, and read again
    macs: Fraction = Fraction(0)

    def plus(self, other: Elements, times: Fraction | int) -> Elements:
        """The sum with so many times another."""
        return Elements(*(a + times * b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Phase:
    """Prefill, or all steps of decoding, of a batch of sequences."""

    name: str
    tokens: int  # that its energy is divided by, of all sequences
    counts: Counts
    elements: Elements
    prices: Prices

    @cached_property
    def parts(self) -> dict[str, float]:
        """Energy of each part [the chip's unit]; static energy where the chip has some."""
        found = dict.fromkeys(PARTS, 0.0)
        for (part, key), count in self.counts.items():
            found[part] = found.get(part, 0.0) + float(count) * self.prices.value(key)
        return found

    @property
    def energy(self) -> float:
        """Of all parts [the chip's unit]."""
        return sum(self.parts.values())


@dataclass(frozen=True, repr=False)
class Generation:
    """What generating costs: prefill and decoding of a batch of sequences."""

    network: Network
    hardware: Hardware
    method: Method
    accounting: Accounting
    batch: int
    prefill: int  # tokens of the prompt of each sequence
    decode: int  # steps after the first token
    cache_bits: CacheWidth | None
    phases: tuple[Phase, ...]  # prefill, and decoding if there are steps
    steps: dict[int, dict[str, float]]  # by keys that are met: energy of a token, by part
    error: float | None  # of a line from end to end, in the middle; None where all are counted

    def __repr__(self) -> str:
        names = ", ".join((self.network.name, self.hardware.name, self.method.name))
        return f"<Generation {names}, batch {self.batch}: {self.energy:.6g} {self.unit} a token>"

    @property
    def unit(self) -> str:
        """Unit of every energy."""
        return self.hardware.unit

    @property
    def energy(self) -> float:
        """A token of decoding, or of the prompt where nothing is decoded [`unit`]."""
        return self.phases[-1].energy / self.phases[-1].tokens

    @property
    def energy_with_prefill(self) -> float:
        """Both phases, for each token of decoding [`unit`]: as boards are measured."""
        return sum(phase.energy for phase in self.phases) / self.phases[-1].tokens

    @property
    def records(self) -> list[tuple[object, ...]]:
        """The tidy table as tuples in the order of `COLUMNS`."""
        inputs = (self.network.name, self.hardware.name, self.method.name, self.accounting.name)
        asked = (self.batch, self.prefill, self.decode, str(self.cache_bits or ""))
        found: list[tuple[object, ...]] = []
        for phase in self.phases:
            n = phase.elements
            moved: dict[str, tuple[object, object, object]] = {
                "weights": (round(n.weights), 0, ""),
                "cache": (int(n.cache_read), int(n.cache_written), ""),
                "scores": (int(n.scores), int(n.scores), ""),
                "compute": ("", "", int(n.macs)),
            }
            for part, energy in phase.parts.items():
                each = energy / phase.tokens
                counted = moved.get(part, ("", "", ""))
                found.append((*inputs, *asked, phase.name, part, energy, each, self.unit, *counted))
        return found

    @property
    def table(self) -> pd.DataFrame:
        """The tidy table: a row for each phase and part."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=list(COLUMNS))


def generate(
    network: str | Path | Network,
    hardware: str | Path | Hardware,
    method: str | Path | Method,
    *,
    prefill: SupportsIndex,
    decode: SupportsIndex,
    batch: SupportsIndex = 1,
    cache_bits: str | int | None = None,
    accounting: str | Path | Accounting = usual.ACCOUNTING,
) -> Generation:
    """Compute the energy of generating `decode` tokens behind prompts of `prefill` tokens.

    Args:
        batch: sequences side by side.
        cache_bits: width of a key's or value's element in the cache, as 8, or "8/128" with a
            scale of 16 bit for 128 elements; left out, as products read it.

    Raises: HwmodelError.
    """
    found, chip = load_network(network), load(Hardware, hardware)
    rules, choices = load(Method, method), read_by(chip, load(Accounting, accounting))
    P, D = whole("prefill", prefill, 1, LONGEST), whole("decode", decode, 0, LONGEST)
    job = Job(rules, choices, check_run(batch, "inference"), "inference")
    see_generates(found, P + D)
    width = None if cache_bits is None else CacheWidth.of(cache_bits)
    if width and not any(isinstance(x, AttentionScores) for x in found.layers):
        raise HwmodelError(f"cache-bits {width}: {found.name} keeps no keys or values")
    run = _Run(found, chip, job, width)
    steps: dict[int, dict[str, float]] = {}
    error = None
    try:
        phases = [run.prompted(P)]
        if D:
            decoding, steps, error = run.decoded(P, D)
            phases.append(decoding)
    except TooLarge as large:
        large.advice = "take fewer tokens, or fewer sequences"
        raise
    return Generation(
        found, chip, rules, choices, job.batch, P, D, width, tuple(phases), steps, error
    )  # fmt: skip


@dataclass(frozen=True)
class _Run:
    """A network on a chip, at any point of a generation."""

    network: Network
    chip: Hardware
    job: Job
    width: CacheWidth | None

    @cached_property
    def prices(self) -> Prices:
        """The prices of the chip under the accounting."""
        return Prices(self.chip, self.job.accounting)

    def prompted(self, P: int) -> Phase:
        """The prompt at once."""
        whole = generating(self.network, P, 0)
        run = self._suited(whole, begins=True)
        run._see_room(whole)
        counts, elements = run.counted(whole, None, begins=True)
        return Phase("prefill", P * self.job.batch, counts, elements, self.prices)

    def decoded(self, P: int, D: int) -> tuple[Phase, dict[int, dict[str, float]], float | None]:
        """All steps; the energy of a token at the lengths that are counted; and the error."""
        last = generating(self.network, 1, P + D - 1)
        run = self._suited(last)  # all steps in one way, of which three lengths tell all others
        run._see_room(last)
        alone = self.job.accounting.counting.residency == "none"  # else all shares a chip's room
        same, moved = run.counted(last, False) if alone else ({}, Elements())
        lengths = _lengths(self.network, P + 1, P + D)
        counted = {
            S: run.counted(generating(self.network, 1, S - 1), True if alone else None)
            for S in lengths
        }
        total: Counts = {key: D * count for key, count in same.items()}
        elements = Elements().plus(moved, D)
        weights = _weights(lengths) if len(lengths) > 1 else {lengths[0]: Fraction(D)}
        for S, weight in weights.items():
            counts, moved = counted[S]
            for key, count in counts.items():
                total[key] = total.get(key, Fraction(0)) + weight * count
            elements = elements.plus(moved, weight)
        B = self.job.batch
        steps = {}
        for S, (counts, moved) in counted.items():
            step = Phase("step", B, _sum([(same, moved), (counts, moved)])[0], moved, self.prices)
            steps[S] = {part: energy / B for part, energy in step.parts.items()}
        energies = {S: sum(parts.values()) for S, parts in steps.items()}
        return Phase("decode", D * B, total, elements, self.prices), steps, _error(energies)

    def counted(
        self, network: Network, changing: bool | None, begins: bool = False
    ) -> tuple[Counts, Elements]:
        """Counts of what changes with the number of keys, or of all else; None: of both.

        Args:
            begins: whether there is nothing before these tokens.
        """
        places = self._places(network)
        wide = self._wide(network, places, changing, begins)
        elements = elements_of(wide, places, self.job.batch)
        tasks, new = self._work(wide, places)
        see_priced(tasks, self.prices, self.job.method.name)
        counts: Counts = {}
        staying = staying_in(tasks, network, self.job, self.chip, new)
        for entry in entered(tasks, self.chip, self.job.accounting, staying)[0].entries:
            for part, share in places.parts(entry):
                key = part, entry.key
                more = share * entry.count
                if part == "cache" and self.width and entry.bits == self.width.bits:
                    more *= 1 + self.width.scales
                counts[key] = counts.get(key, Fraction(0)) + more
        return counts, elements

    def _places(self, network: Network) -> Places:
        nodes = network.nodes(frozenset(self.job.method.omits))
        outermost = [memory.name for memory in self.chip.levels[0].buffers]
        return Places(nodes, outermost, self.width is not None)

    def _wide(
        self, network: Network, places: Places, changing: bool | None, begins: bool
    ) -> list[Task]:
        """The work with a cache that is as wide as what is written to it; see `counted`."""
        every, both = all_tasks(network, self.job), changing is None
        tasks = [task for task in every if both or (task.layer in places.changing) == changing]
        if not changing:
            nodes = network.nodes(frozenset(self.job.method.omits))
            tasks += states(tasks, nodes, self.job.batch, begins)
        return tasks

    def _work(self, tasks: list[Task], places: Places) -> tuple[list[Task], list[str]]:
        """The work with the cache as it is, and what leaves for it: later steps read it outside."""
        if not self.width:
            return tasks, _keys_and_values(tasks, places)
        return list(narrowed(tasks, places.attention, self.width, self.job.batch)), []

    def _suited(self, network: Network, begins: bool = False) -> _Run:
        """The run with attention as it costs less on the chip, at a network's length."""
        places = self._places(network)

        def work(job: Job) -> tuple[list[Task], list[str]]:
            run = replace(self, job=job)
            return run._work(run._wide(network, places, None, begins), places)

        ways = ways_of(network, self.job, self.chip, work)
        return replace(self, job=in_ways(self.job, ways))

    def _see_room(self, network: Network) -> None:
        if self.chip.is_bounded:
            see_room(self.chip, occupied(network, self.job), run_name(network, self.job))


def elements_of(tasks: list[Task], places: Places, batch: int) -> Elements:
    """Elements of one pass over each tensor, by the works that read them."""
    weights, (cache, written, scores, macs) = Fraction(0), (0, 0, 0, 0)
    for layer, work, _ in tasks:
        if isinstance(work, Move) and work.tensor.role == Role.CELL and layer in places.states:
            read = work.direction == Direction.READ
            cache += read * work.tensor.elements
            written += (not read) * work.tensor.elements
        if not isinstance(work, Multiply):
            continue
        macs += product(work.macs)
        node = places.attention.get(layer)
        if node is None:
            met = work.nest.times[1].value if work.nest.times else 1
            weights += Fraction(met) * work.repeats * work.problem.F_elements
            continue
        cache += work.problem.I_elements if work.kernel else work.problem.F_elements
        C, L, _ = node.input_shapes[1]
        written += batch * C * L
        if node.layer.kind == "attention-scores" and not work.kernel:
            scores += round(
                work.problem.O_elements * (work.nest.times[2].value if work.nest.times else 1)
            )
    return Elements(weights, *(Fraction(n) for n in (cache, written, scores, macs)))


def _keys_and_values(tasks: Iterable[Task], places: Places) -> list[str]:
    """Names of the tensors that attention leaves to later tokens, as the works read them."""
    found: list[str] = []
    for layer, work, at in tasks:
        if isinstance(work, Multiply) and layer in places.attention:
            found += at.stored[0 if work.kernel else 1]
    return found


def _sum(found: Iterable[tuple[Counts, Elements]]) -> tuple[Counts, Elements]:
    counts: Counts = {}
    elements = Elements()
    for some, moved in found:
        for key, count in some.items():
            counts[key] = counts.get(key, Fraction(0)) + count
        elements = elements.plus(moved, 1)
    return counts, elements


def _lengths(network: Network, first: int, last: int) -> list[int]:
    """The numbers of keys at which attention is counted: the ends, the middle, ends of windows."""
    windows = (getattr(layer, "window", None) for layer in network.layers)
    if not any(isinstance(layer, AttentionScores) for layer in network.layers):
        return [last]  # nothing changes
    found = {first, (first + last) // 2, last} | {w for w in windows if w and first < w < last}
    return sorted(found)


def _weights(lengths: list[int]) -> dict[int, Fraction]:
    """How often each length stands for all, on straight lines from one to the next.

    >>> [str(weight) for weight in _weights([1, 3]).values()]
    ['3/2', '3/2']
    """
    found = dict.fromkeys(lengths, Fraction(0))
    found[lengths[-1]] += 1
    for one, other in pairwise(lengths):
        steps = other - one  # the other end belongs to the next line
        found[one] += Fraction(steps + 1, 2)
        found[other] += Fraction(steps - 1, 2)
    return found


def _error(energies: dict[int, float]) -> float | None:
    """The relative error of a line from end to end in the middle; None where it is not needed."""
    lengths = list(energies)
    if len(lengths) == 1:
        return None
    first, last = lengths[0], lengths[-1]
    if last - first < 3:
        return None
    middle = (first + last) // 2
    share = (middle - first) / (last - first)
    line = energies[first] + share * (energies[last] - energies[first])
    return abs(line / energies[middle] - 1)
