"""Tilings that are known and items, chosen together: a 0/1 program.

Under one tiling every operand costs its own, wherever the others stay (`products.Costs`). So a
variable is

    x_i        item i is chosen
    y_t        tiling t of a product is taken: one of each product
    z_t,X,l    that, and operand X has its home at level l: at most one level, and only if y_t

and for each access of X the z of its level add up to the items that have it there. Its room at
every step and level is what living items take (once, of a tensor that goes on where it ended: a
variable that is 1 if any of them is) and the tiles of what does not stay. The best choice
so far is one of the program's, so that its answer is never worse, but for the gap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hwmodel.model.entries import AWAY
from hwmodel.model.residency.bound import pick_rows
from hwmodel.model.residency.items import Access
from hwmodel.model.residency.packing import Row, rounded, solved
from hwmodel.model.residency.products import Costs, Product
from hwmodel.model.residency.run import Known, Run
from hwmodel.work.problem import OPERANDS

__all__ = ["tight_steps", "together"]

GAP, ROUGH = 2.5e-4, 1e-3  # of the energy, and where rooms are guessed
ENERGY = 1e6  # of the run without residents, in units of the program
MOST = 24  # tilings of one product
EFFORT = 50  # of the solver, which at its root alone may take minutes


@dataclass
class _Program:
    """Costs, rows and room as they are written."""

    run: Run
    unit: float  # energy of a unit of cost [chip's unit]
    share: int  # of the room that tiles take, of which one is counted
    costs: list[float] = field(default_factory=list)
    parts: set[int] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)
    rooms: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)  # by level and step

    def variable(self, energy: float, rooms: Mapping[int, int] = {}, step: int = 0) -> int:
        """Return the number of a new variable, with its cost and the room that it takes."""
        number = len(self.costs)
        self.costs.append(energy / self.unit)
        for level, bits in rooms.items():
            if bits:
                self.rooms.setdefault((level, step), {})[number] = -(-bits // self.share)
        return number


def together(
    run: Run, energy: float, parts: int = 1, known: Collection[int] = (), *, near: bool = False
) -> Known:
    """Choose items, with the best tilings known for each choice.

    Args:
        energy: of the run without residents [chip's unit].
        parts: of the room that tiles take, of which only one is counted.
        known: a choice that has room with tilings that are known; no worse one is returned.
        near: look only at choices that differ from it where parts of items would; which takes a
            tenth of the time.
    """
    if not energy:
        return Known([], energy)
    key = parts, *(len(product.tilings) for product in run.products.values())
    for one in {False, near}:
        if (*key, one) in run.chosen:  # nothing has been found since
            return run.chosen[*key, one]
    program = _Program(run, energy / ENERGY, parts)
    saving, beginning = run.by_place("saves"), run.by_place("begins")
    finding = run.by_place("finds")
    _items(program, finding)
    places: dict[int, dict[tuple[int, int], None]] = {}
    for access, level in (*saving, *beginning, *finding):
        places.setdefault(access.task, {})[access.place, level] = None
    for number, product in run.products.items():
        homes = _product(program, number, product, places.get(number, {}))
        step = run.tasks[number].at.step
        for (place, level), own in homes.items():
            access = Access(number, place, step, place == 2)
            at, once = (access, level), product.pass_to(OPERANDS[place], level)
            saves, begins, finds = (by.get(at, []) for by in (saving, beginning, finding))
            _linked(program, own, saves, begins or finds, once if begins else 0.0)
    program.rows += [*pick_rows(run), *_rooms(program)]
    gap = GAP if parts == 1 else ROUGH
    _brought(program)
    _found(program, saving, finding)
    rest = sum(move.energy(AWAY) for move in run.moves.values())
    best = solved(
        program.costs, program.rows, gap, program.parts, EFFORT, (len(run.items), known),
        rewrites=bool(known), beside=rest / program.unit, begins_anew=False, near=near,
    )  # fmt: skip
    chosen = [i for i in best.chosen if i < len(run.items)]
    run.chosen[*key, near] = Known(chosen, best.cost * program.unit + rest)
    return run.chosen[*key, near]


def _product(
    program: _Program, number: int, product: Product, places: Mapping[tuple[int, int], None]
) -> dict[tuple[int, int], list[int]]:
    """Write the tilings of a product; return its variables of each operand and home."""
    step = program.run.tasks[number].at.step
    taken: list[int] = []
    homes: dict[tuple[int, int], list[int]] = {at: [] for at in places}
    for costs in _of_use(product):
        away = costs.cycles + sum(costs.energy[x, None] for x in OPERANDS)
        rooms = {level: sum(parts.values()) for level, parts in costs.parts.items()}
        whole = program.variable(away, rooms, step)
        taken.append(whole)
        for place, operand in enumerate(OPERANDS):
            own = []
            for level in (level for at, level in places if at == place):
                saved = costs.energy[operand, level] - costs.energy[operand, None]
                less = {k: -p.get(operand, 0) for k, p in costs.parts.items() if k <= level}
                if operand == "O":
                    less[level] = less.get(level, 0) + costs.resting[level]
                own.append(program.variable(saved, less, step))
                homes[place, level].append(own[-1])
            if own:
                program.parts.update(own)
                program.rows.append(Row({**dict.fromkeys(own, 1), whole: -1}, 0))
    program.rows.append(Row(dict.fromkeys(taken, 1), 1, 1))
    return homes


def _of_use(product: Product) -> Sequence[Costs]:
    """The tilings of a product of which no other is as good in all, the latest of many."""
    found: list[tuple[tuple[float, ...], Costs]] = []
    for costs in product.tilings:
        own = (
            costs.cycles, *costs.energy.values(), *costs.resting.values(),
            *(parts.get(x, 0) for parts in costs.parts.values() for x in OPERANDS),
        )  # fmt: skip
        if not any(_is_as_good(other, own) for other, _ in found):
            found = [one for one in found if not _is_as_good(own, one[0])]
            found.append((own, costs))
    return [costs for _, costs in found[:1] + found[1:][-(MOST - 1) :]]


def _is_as_good(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(x <= y for x, y in zip(one, other, strict=True))


def _linked(
    program: _Program, own: Sequence[int], saves: Sequence[int], begins: Sequence[int], once: float
) -> None:
    """An operand is at home if an item saves its access, or begins there, which costs once."""
    home = dict.fromkeys(own, 1)
    if not begins:
        program.rows.append(Row(home | dict.fromkeys(saves, -1), 0, 0))
        return
    for i in own:
        program.costs[i] += once / program.unit
    for i in saves:
        program.costs[i] -= once / program.unit
    program.rows.append(Row(home | dict.fromkeys((*saves, *begins), -1), 0))
    for several in (saves, begins):
        if several:
            at_least = dict.fromkeys(own, -1) | dict.fromkeys(several, 1)
            program.rows.append(Row(at_least, 0))


def _items(program: _Program, finding: Mapping[tuple[Access, int], list[int]]) -> None:
    """Write a variable for each item, with what operators save that nothing else would."""
    run = program.run
    for item in run.items:
        streamed = (
            run.moves[a.task].outside(item.level)
            for a in item.saves
            if a.task in run.moves and (a, item.level) not in finding
        )
        program.variable(-sum(streamed))


def _found(
    program: _Program,
    saving: Mapping[tuple[Access, int], list[int]],
    finding: Mapping[tuple[Access, int], list[int]],
) -> None:
    """An operator reads at home what stays there, or what another of its step has brought."""
    for (access, level), finds in finding.items():
        if move := program.run.moves.get(access.task):
            there = program.variable(-move.outside(level))
            program.parts.add(there)
            staying = (*saving.get((access, level), ()), *finds)
            program.rows.append(Row({there: 1} | dict.fromkeys(staying, -1), 0))


def _brought(program: _Program) -> None:
    """What an operator reads is written to where it stays, unless it has stayed there till then."""
    run = program.run
    for i, item in enumerate(run.items):
        access = run.brings(item)
        cost = run.moves[access.task].into(item.level) if access else 0.0
        if not cost:
            continue
        there = program.variable(cost)
        program.parts.add(there)
        saving = run.by_access.get(access, ()) if access else ()
        staying = dict.fromkeys((j for j in saving if run.items[j].level == item.level), 1)
        if cost > 0:
            less = {j: -1 for j in staying}
            program.rows.append(Row({i: 1, there: -1} | less, 0))
        else:
            program.rows.append(Row({there: 1, i: -1}, 0))
            program.rows.append(Row({there: 1} | staying, 1))


def _rooms(program: _Program) -> list[Row]:
    found: dict[tuple[object, ...], Row] = {}
    for level, capacity in program.run.capacities.items():
        alive = program.run.alive(level)
        tiles = {at: rooms for (k, at), rooms in program.rooms.items() if k == level}
        for step in tight_steps(alive, tiles):
            bits = dict(tiles.get(step, {}))
            living = alive.get(step, ())
            bits |= {i: program.run.items[i].bits for i in living}
            for several in program.run.again(living):
                there = program.variable(0.0)
                program.parts.add(there)
                program.rows += [Row({i: 1, there: -1}, 0) for i in several]
                bits[there] = bits[several[0]]
                bits = {i: own for i, own in bits.items() if i not in several}
            row = rounded(Row(bits, capacity), loose=False)
            if sum(x for x in row.of.values() if x > 0) > row.most:
                found[(row.most, *sorted(row.of.items()))] = row
    return [*found.values()]


def tight_steps(alive: Mapping[int, Sequence[int]], tiles: Collection[int]) -> list[int]:
    """Return the steps at which room may be short: with tiles, or with more living than at others.

    Args:
        alive: the items that can live, by step.
        tiles: steps at which tiles take room.
    """
    living = {step: frozenset(several) for step, several in alive.items()}
    found: list[int] = sorted(tiles)
    kept = [living[step] for step in found if step in living]
    for step in sorted(living, key=lambda at: (-len(living[at]), at)):
        if step not in tiles and not any(living[step] <= other for other in kept):
            found.append(step)
            kept.append(living[step])
    return found
