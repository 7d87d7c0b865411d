"""Rows of a sensitivity study -> tables on screen and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hwmodel.rerun.tables import what
from hwmodel.vary.paths import Scalar
from hwmodel.vary.sensitivity import Effect, Reversal, Sampled, Sensitivity
from hwmodel.views.colours import called
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as Listed

__all__ = ["largest", "moves_of", "sensitivity_tables", "short", "shown"]

LISTED = 10  # fields in the table of a chip
NAMED = 3  # fields in the sentence of a method
NOTHING = 1e-9  # points; what rounding leaves is no effect

Rows = Sequence[Effect]


def moves_of(effects: Rows) -> dict[tuple[str, Scalar], Rows]:
    """Group rows by move: by field and value moved to."""
    found: dict[tuple[str, Scalar], list[Effect]] = {}
    for effect in effects:
        found.setdefault((effect.field, effect.value_to), []).append(effect)
    return dict(found)


def largest(effects: Rows) -> list[tuple[str, float]]:
    """Return fields with the largest change that a move of them brings [points], largest first.

    Parts of a whole that moves are left out, and so are fields without effect.
    """
    most: dict[str, float] = {}
    for effect in effects:
        if effect.change_points is not None and not effect.part_of:
            most[effect.field] = max(most.get(effect.field, 0.0), abs(effect.change_points))
    moved = [(field, change) for field, change in most.items() if change > NOTHING]
    return sorted(moved, key=lambda found: -found[1])


def short(joined: str) -> str:
    """Shorten the name of several fields or values: the first alone where they are many.

    >>> short("accounting.counting.rows + accounting.counting.counting"), short("a.b + a.c + a.d")
    ('accounting.counting.rows + counting', 'a.b + 2 others')
    """
    first, *others = joined.split(" + ")
    if len(others) > 1:
        return f"{first} + {len(others)} others"
    return " + ".join([first, *(other.rpartition(".")[2] for other in others)])


_STEPS = (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")  # of rates


def shown(value: Scalar, field: str, unit: str) -> str:
    """Write a value with its unit; a capacity in KiB.

    >>> shown(8e8, "hardware.clock", "Hz"), shown(9e11, "hardware.levels.DRAM.bandwidth", "B/s")
    ('800 MHz', '900 GB/s')
    """
    if not isinstance(value, (int, float)):
        return "not stated" if value == "null" else short(str(value))
    if field.endswith(".capacity"):
        return f"{value / 8192:,.4g} KiB"
    if unit in ("Hz", "B/s"):
        step, letter = next((step for step in _STEPS if abs(value) >= step[0]), (1.0, ""))
        return f"{value / step:.4g} {letter}{unit}"
    return f"{value:.4g} {unit}".strip()


def sensitivity_tables(found: Sensitivity) -> Iterator[RenderableType | str]:
    """Yield for each chip the largest effects, each method's movers, the ranking, the samples."""
    for chip in dict.fromkeys(effect.hardware for effect in found.effects):
        here = [effect for effect in found.effects if effect.hardware == chip]
        yield _largest_table(here)
        yield from _most_moved(here)
        yield from _ranking(here, [r for r in found.reversals if r.hardware == chip])
        yield from _without_effect(here)
        for one in found.sampled:
            if one.hardware == chip:
                yield _spread_table(one)
                yield _held(one)


def _methods(here: Rows) -> list[str]:
    return list(dict.fromkeys(effect.method for effect in here))


def _largest_table(here: Rows) -> Listed:
    """Tabulate the fields of largest effect, with the move, for all methods that any move moves."""
    first = here[0]
    methods = [m for m in _methods(here) if largest([e for e in here if e.method == m])]
    listed = table(
        f"{called(first.network, 'network')} on {called(first.hardware, 'hardware')}, "
        f"accounting {first.accounting}, one {what(first.mode, first.batch)}: change of the "
        "percentage of the baseline, in points",
        ["field", "from", "to"],
        [called(method) for method in methods],
    )
    moves = moves_of(here)
    for field, _ in largest(here)[:LISTED]:
        rows = max((rows for (name, _), rows in moves.items() if name == field), key=_size)
        ends = (rows[0].value_from, rows[0].value_to)
        values = [shown(value, field, rows[0].unit) for value in ends]
        changes = [
            "-" if row.change_points is None else f"{row.change_points:+.2f}"
            for row in rows
            if row.method in methods
        ]
        listed.add_row(short(field), *values, *changes)
    return listed


def _size(rows: Rows) -> float:
    """Return the largest change of a move [points]."""
    return max((abs(r.change_points) for r in rows if r.change_points is not None), default=0.0)


def _most_moved(here: Rows) -> Iterator[str]:
    """Name, for each method that anything moves, the three fields that move it most."""
    for method in _methods(here):
        rows = [effect for effect in here if effect.method == method]
        parts = []
        for field, _ in largest(rows)[:NAMED]:
            best = max((r for r in rows if r.field == field), key=lambda r: _size([r]))
            to = shown(best.value_to, field, best.unit)
            parts.append(f"{short(field)} ({to}: {best.change_points:+.2f} points)")
        if parts:
            yield f"{called(method)} is moved most by {', '.join(parts)}."


def _ranking(here: Rows, reversals: Sequence[Reversal]) -> Iterator[str]:
    """Say whether the order of the methods is the same after every move."""
    first: dict[str, tuple[int, float]] = {
        e.method: (e.rank_before, e.percent_before)
        for e in here
        if e.rank_before is not None and e.percent_before is not None
    }
    order = sorted(first, key=lambda method: first[method][0])
    ranked = ", ".join(f"{called(method)} {first[method][1]:.2f} %" for method in order)
    chip = called(here[0].hardware, "hardware")
    yield f"Ranking on {chip}, the cheapest first: {ranked}."
    tried = sum(any(r.percent_after is not None for r in rows) for rows in moves_of(here).values())
    for one in reversals:
        old = shown(one.value_from, one.field, one.unit)
        at = one.value_to if one.flips_at is None else one.flips_at
        new = shown(at, one.field, one.unit)
        how = f"at {new}" if one.flips_at is None else f"from {new} on"
        yield f"  {short(one.field)}, now {old}: {how} {_places(one)}."
    other = (
        f"the other {tried - len(reversals)} of {tried}" if reversals else f"each of the {tried}"
    )
    yield f"It survives {other} moves: no flip between x 1/2 and x 2, nor by a choice."


def _places(one: Reversal) -> str:
    """Say which method gets cheaper than which."""
    beaten: dict[str, list[str]] = {}
    for before, after in one.pairs:
        beaten.setdefault(called(before), []).append(called(after))
    return "; ".join(f"{name} costs more than {', '.join(x)}" for name, x in beaten.items())


def _without_effect(here: Rows) -> Iterator[str]:
    """Name the fields that change nothing, and the moves that cannot be made, with the reason."""
    moves = moves_of(here)
    still = [
        field
        for field in dict.fromkeys(field for field, _ in moves)
        for mine in [[rows for (name, _), rows in moves.items() if name == field]]
        if any(r.percent_after is not None for rows in mine for r in rows)
        and all(_size(rows) <= NOTHING for rows in mine)
        and not any(_partly(rows) for rows in mine)
    ]
    if still:
        yield f"No effect here: {', '.join(still)}."
    refused: dict[str, list[str]] = {}
    for (field, value), rows in moves.items():
        for reason in dict.fromkeys(row.reason for row in rows if row.reason):
            those = [called(row.method) for row in rows if row.reason == reason]
            of = "" if len(those) == len(rows) else f" ({', '.join(those)})"
            to = f" to {shown(value, field, rows[0].unit)}" if value != "" else ""
            refused.setdefault(reason, []).append(f"{field}{to}{of}")
    if refused:
        yield "Not moved:"
    for reason, those in refused.items():
        yield f"  {', '.join(those)}: {reason}"
    together = list(dict.fromkeys(field for field, _ in moves if " + " in field))
    if together:
        yield f"Moved together, as the accounting allows no other way: {'; '.join(together)}."


def _partly(rows: Rows) -> bool:
    """Say whether a move can be computed for some methods and not for others."""
    return len({row.percent_after is None for row in rows}) > 1


def _spread_table(one: Sampled) -> Listed:
    """Tabulate the percentiles of every method."""
    listed = table(
        f"{one.samples:,} samples on {called(one.hardware, 'hardware')}: percent of the baseline",
        ["method"],
        ["5th percentile", "median", "95th percentile", "samples"],
    )
    for spread in one.spreads:
        cuts = (spread.percentile_5, spread.percentile_50, spread.percentile_95)
        cells = ("-" if cut is None else f"{cut:.2f}" for cut in cuts)
        listed.add_row(called(spread.method), *cells, f"{spread.samples:,}")
    return listed


def _held(one: Sampled) -> str:
    """Say what was drawn, and in how many samples the ranking holds."""
    drawn = (
        f"{one.drawn} constants at once, evenly on a logarithmic scale {one.ranges}, "
        f"seed {one.seed}."
    )
    if not one.complete:
        return f"{drawn} In no sample could every method be computed."
    share = 100 * one.ranking_held / one.complete
    among = "" if one.complete == one.samples else " in which every method can be computed"
    return f"{drawn} The ranking holds in {share:.1f} % of the {one.complete:,} samples{among}."
