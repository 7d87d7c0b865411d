"""One problem, tiled: from a line of text to the loop nest, the traffic and the certificate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING

from hwmodel.errors import HwmodelError, Infeasible
from hwmodel.model.prices import read_by
from hwmodel.rerun.tables import NATURE, scale
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping, Traffic
from hwmodel.tiling.options import Memories, SearchOptions, memories, pass_kinds
from hwmodel.tiling.pricing import level_energies, memory_energy, partial_sum_bits, rates
from hwmodel.tiling.tile import Tiling, counts, tile, touched_elements
from hwmodel.tiling.view import NOWHERE, Homes, view, whole_view, widened
from hwmodel.views.loop_nest import loop_nest
from hwmodel.views.posed import Posed
from hwmodel.views.rooms import ALONE, Residents, lacking, left, staying, with_room
from hwmodel.views.saved_tiling import sizes
from hwmodel.views.screen_tables import table
from hwmodel.views.spread_report import Spread, spread
from hwmodel.work.flattening import Loops
from hwmodel.work.problem import Problem, ProductPass
from hwmodel.work.tensor import Pass

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "Solved",
    "chosen",
    "solved",
    "with_own_tiles",
]


def chosen(
    name: str, chip: Hardware, *, search: str, counting: str, stationary: str
) -> tuple[SearchOptions, Loops]:
    """The options of an accounting on a chip, with the choices of the command line, and its loops.

    Raises: SpecError.
    """
    preset = load(Accounting, name)
    own = {"counting": counting, "search": search, "stationary": stationary}
    values = preset.counting.model_dump() | {field: value for field, value in own.items() if value}
    if counting == "paper":
        values |= {"rows": "bounding", "padding": "counted", "transfers": "upper"}
        values |= {} if search else {"search": "level-by-level"}
    if values["search"] == "level-by-level":
        values |= {"weight_gradient": "signal-as-filters"}
        values |= {} if stationary else {"stationary": "filter"}
    whole = preset.model_dump(exclude_defaults=True) | {"counting": values}
    accounting = read_by(chip, validate(Accounting, whole, "options"))
    optimal = accounting.counting.search == "optimal"
    loops = accounting.counting.loops if optimal else "apart"
    return SearchOptions.of(accounting, Pass.FORWARD), loops


@dataclass(frozen=True)
class Solved:
    """A tiling with its traffic, energy and certificate."""

    posed: Posed
    hardware: Hardware
    places: Memories  # of the chip, as the tensors of the pass lie in them
    options: SearchOptions
    tiling: Tiling
    traffic: list[Traffic]
    energies: list[tuple[float, float, float]]  # of I, F and O at each level [chip's unit]
    energy: float  # of the memories [chip's unit]
    greedy: float | None  # of the level-by-level tiling under the same counting
    optimum: float | None = None  # of optimal tiles, counted exactly, where these are greedy
    residents: Residents = ALONE
    own_tiles: float | None = (
        None  # no tiles of its own for each operand cost less; None: not asked
    )

    @property
    def problem(self) -> Problem:
        """The problem that is tiled."""
        return self.posed.problem

    @property
    def overflows(self) -> list[str]:
        """Lines on memories that the tiling does not fit, with the missing bytes."""
        beside = self.problem, self.tiling.mapping, self.places, self.options
        return list(lacking(self.residents, *beside))

    def json(self) -> str:
        """Write one object: energy, unit, lower_bound, gap, proved, tiles, accesses and more."""
        proof = self.tiling.certificate
        names = [level.name for level in self.hardware.levels]
        mapping = self.tiling.mapping
        tiles = [
            {"level": name, **sizes(tile), "held": held}
            for name, tile, held in zip(names[1:], mapping.tiles, mapping.held, strict=True)
        ]
        accesses = [
            {"level": name, "I": t.I_reads, "F": t.F_reads, "O": _sums(t)} | t._asdict()
            for name, t in zip(names, self.traffic, strict=True)
        ]
        fields = {
            "energy": self.energy,
            "unit": self.hardware.unit,
            "lower_bound": proof.lower_bound if proof else None,
            "gap": proof.gap if proof else None,
            "proved": proof.proved if proof else False,
            "space": proof.space if proof else None,
            "examined": proof.examined if proof else None,
            "fits": not self.overflows,
            "loops": self.posed.loops,
            "resident": self.residents.named(self.hardware),
            "free_bits": self.residents.stated(self.hardware),
            "level_by_level_energy": self.greedy,
            "tiles": tiles,
            "accesses": accesses,
        }
        return json.dumps(fields, indent=2) + "\n"

    def pieces(self) -> Iterator[RenderableType | str]:
        """Yield the tables and lines that `hwmodel tile` prints."""
        mapping = self.tiling.mapping
        yield from self.posed.note(self.hardware)
        yield loop_nest(self.problem, mapping, self.places, self.options) + "\n"
        yield self._table()
        yield from self._sentences()

    def _table(self) -> RenderableType:
        divisor, unit = scale(self.energy, self.hardware.unit)
        sums = partial_sum_bits(self.problem, self.options.partial_sum_bits)
        widths = ", ".join(f"{x} {width}" for x, width in self.problem.bits._asdict().items())
        widths += " bit" if sums == self.problem.bits.O else f" bit, unfinished sums {sums} bit"
        listed = table(
            f"accesses [elements of {widths}] and energy, {unit}",
            ["level"],
            ["I", "F", "O", "of I", "of F", "of O", "sum"],
        )
        for index, (level, asked) in enumerate(
            zip(self.hardware.levels, self.traffic, strict=True)
        ):
            energies = self.energies[index]
            elements = (asked.I_reads, asked.F_reads, _sums(asked))
            listed.add_row(
                level.name,
                *(f"{n:,}" for n in elements),
                *(f"{energy / divisor:,.3f}" for energy in (*energies, fsum(energies))),
            )
        return listed

    def _sentences(self) -> Iterator[str]:
        divisor, unit = scale(self.energy, self.hardware.unit)
        plain = f"{self.energy!r} {self.hardware.unit}"
        if self.options.transfers == "both":
            yield "energies of a level have what the level below pays for its side of each transfer"
        yield f"memory energy {self.energy / divisor:,.4f} {unit} ({plain})"
        proof = self.tiling.certificate
        if proof is None:
            yield "no certificate: this tiling is not from the optimal search"
            if self.optimum:
                exact = ", counted exactly" if self.options.counting == "paper" else ""
                yield (
                    f"optimal tiles{exact}: {self.optimum / divisor:,.4f} {unit}; this is "
                    f"{self.energy / self.optimum:.4f} times that"
                )
        else:
            found = "proved optimal" if proof.proved else f"NOT proved: gap {100 * proof.gap:.4f} %"
            yield (
                f"{found}; lower bound {proof.lower_bound / divisor:,.4f} {unit}; "
                f"{proof.space:.3g} tilings in the space, {proof.examined:,} examined"
            )
        if self.own_tiles is not None:
            gain = 100 * max(0.0, 1 - self.own_tiles / self.energy) if self.energy else 0.0
            yield f"tiles of their own per operand could gain at most {gain:.1f} %"
        yield from (f"DOES NOT FIT: {overflow}" for overflow in self.overflows)
        yield from self._compulsory()
        if self.greedy is not None:
            yield (
                f"level by level: {self.greedy / divisor:,.4f} {unit}, "
                f"{self.greedy / self.energy:.4f} times this"
            )
        yield f"Operations are not part of it. All figures are {NATURE}."

    def _compulsory(self) -> Iterator[str]:
        """Set what the outermost memory moves beside each tensor moved once."""
        top, problem = self.traffic[0], self.problem
        each = (
            (top.I_reads, touched_elements(problem), problem.bits.I),
            (top.F_reads, problem.F_elements, problem.bits.F),
            (top.O_writes, problem.O_elements, problem.bits.O),
        )
        moving = [one for one, home in zip(each, self.residents.homes, strict=True) if home is None]
        if moving:
            moved, once = (sum(n[i] * n[2] for n in moving) for i in (0, 1))
            name = self.hardware.levels[0].name
            yield f"{name} moves {moved / once:.4f} times the compulsory traffic"
        yield from staying(self.residents, self.hardware)


def _sums(asked: Traffic) -> int:
    total: int = asked.O_partial_reads + asked.O_partial_writes + asked.O_writes
    return total


def solved(
    posed: Posed,
    hardware: Hardware,
    options: SearchOptions,
    mapping: Mapping | None = None,
    pass_: ProductPass = "forward",
    residents: Residents = ALONE,
) -> Solved | Spread:
    """Search the tiling of a problem, or take a given one; count its traffic and energy.

    A given one is evaluated as it is; `Solved.overflows` says where it does not fit.

    Args:
        pass_: says what is multiplied, and so which of several outermost memories are asked.

    Raises: Infeasible, TooLarge; HwmodelError where what stays has no room.
    """
    chip, problem = memories(hardware, pass_kinds(pass_)), posed.problem
    residents = with_room(residents, posed.apart, hardware)
    homes, free = residents.homes, residents.room
    places = whole_view(chip, homes, free) if homes != NOWHERE or free else chip
    if mapping:
        tiling = Tiling(mapping, None)
    else:
        tiling = _searched(
            problem,
            view(chip, homes, free) if places != chip else chip,
            options,
            residents,
            hardware,
        )
        tiling = tiling._replace(mapping=widened(problem, tiling.mapping, homes))
    if places.spatial:
        return spread(posed, hardware, places, options, tiling, residents)
    asked = _paid(counts(problem, tiling.mapping, options), homes)
    greedy = _greedy(posed.apart, places, options) if homes == NOWHERE else None
    energy = _energy(problem, asked, places, options)
    searched = options.search == "level-by-level" and mapping is None
    optimum = _optimum(problem, places, options) if searched else None
    each, moved = _energies(problem, asked, places, options, homes), _read_at_home(asked, homes.O)
    return Solved(
        posed, hardware, places, options, tiling, moved, each, energy, greedy, optimum, residents
    )


def _searched(
    problem: Problem,
    chip: Memories,
    options: SearchOptions,
    residents: Residents,
    hardware: Hardware,
) -> Tiling:
    try:
        return tile(problem, chip, options)
    except Infeasible as error:
        if not residents.room:
            raise
        rest = left(residents, hardware)
        raise HwmodelError(f"{error}; beside what stays tiles find {rest}") from None


def with_own_tiles(found: Solved | Spread) -> Solved:
    """Add what tiles of its own for each operand cost at least.

    Raises: HwmodelError for what that is not known of.
    """
    if not isinstance(found, Solved) or found.residents.homes != NOWHERE:
        raise HwmodelError(
            "--own-tiles: known for chips without arrays and memories side by side alone, and "
            "where no operand stays"
        )
    if found.options.counting != "exact" or found.options.rows != "touched":
        raise HwmodelError("--own-tiles: known for counting exact and rows that are touched alone")
    from hwmodel.tiling.spatial.uneven import uneven

    return replace(found, own_tiles=uneven(found.problem, found.places, found.options))


def _paid(asked: Sequence[Traffic], homes: Homes) -> list[Traffic]:
    """What each level is asked for without operands that stay further in.

    Sums that come back to a home are counted where their reduction is cut, and read at home, at a
    price of which `view` knows.
    """
    found = []
    for level, one in enumerate(asked):
        I, F, O = (home is not None and level < home for home in homes)  # noqa: E741
        one = one._replace(I_reads=0) if I else one
        one = one._replace(F_reads=0) if F else one
        found.append(one._replace(O_partial_writes=0, O_writes=0) if O else one)
    return found


def _read_at_home(asked: Sequence[Traffic], home: int | None) -> list[Traffic]:
    """The same with all sums that come back counted where they are read."""
    if home is None:
        return list(asked)
    reads = sum(one.O_partial_reads for one in asked[: home + 1])
    outside = [one._replace(O_partial_reads=0) for one in asked[:home]]
    return [*outside, asked[home]._replace(O_partial_reads=reads), *asked[home + 1 :]]


def _energies(
    problem: Problem,
    asked: Sequence[Traffic],
    places: Memories,
    options: SearchOptions,
    homes: Homes,
) -> list[tuple[float, float, float]]:
    """Energies of I, F and O at each level [chip's unit]."""
    sums, transfers = options.partial_sum_bits, options.transfers
    found = [
        level_energies(one, rates(problem, places, level, sums, transfers))
        for level, one in enumerate(asked)
    ]
    if homes.O is not None:
        of_I, of_F, of_O = found[homes.O]
        found[homes.O] = of_I, of_F, of_O + fsum(outside for *_, outside in found[: homes.O])
        found[: homes.O] = [(of_I, of_F, 0.0) for of_I, of_F, _ in found[: homes.O]]
    return found


def _optimum(problem: Problem, places: Memories, options: SearchOptions) -> float:
    """Return the energy of the optimal tiling; by exact counts, which the search minimises."""
    best = replace(options, search="optimal")
    if options.counting == "paper":
        best = replace(best, counting="exact", rows="touched", padding="skipped")
    asked = counts(problem, tile(problem, places, best).mapping, best)
    return _energy(problem, asked, places, best)


def _energy(
    problem: Problem, asked: list[Traffic], places: Memories, options: SearchOptions
) -> float:
    sums, transfers = options.partial_sum_bits, options.transfers
    return memory_energy(problem, asked, places, sums, transfers)


def _greedy(problem: Problem, places: Memories, options: SearchOptions) -> float | None:
    """Return the energy of the level-by-level tiling; None where the greedy rule finds none."""
    greedily = replace(options, search="level-by-level", stationary="filter")
    try:
        mapping = tile(problem, places, greedily).mapping
    except HwmodelError:
        return None
    return _energy(problem, counts(problem, mapping, options), places, options)
