"""What of a comparison may be set beside what: the sentences that every view of one has.

The screen, tables for print, the HTML page and the appendix take them from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from hwmodel.model.compare import Comparison
from hwmodel.model.duration import FREE, idle
from hwmodel.model.prices import paid_once
from hwmodel.model.reached import noise
from hwmodel.model.report import Report, by_width
from hwmodel.model.residency.products import NEAR
from hwmodel.model.widths import unlearned
from hwmodel.rerun.tables import alike, unproved, whose
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.quantity import not_to_compare
from hwmodel.views.chip import size
from hwmodel.views.colours import called

if TYPE_CHECKING:
    from hwmodel.rerun.question import Question
    from hwmodel.vary.sensitivity import Effect

ROUNDING = 1e-9  # of an energy, relative

__all__ = ["asides", "comparable", "moved_steps", "remarks"]


def remarks(asked: Question) -> list[str]:
    """List what a reader of a comparison has to know of its methods and chips, a sentence each."""
    moves = asked.moved_words(called)
    trained = asked.accountings if asked.mode == "training" else ()
    found = [f"Moved, for methods and baseline: {moves}." if moves else ""]
    found += [unlearned(method, choice) for choice, method in product(trained, asked.methods)]
    for choice in asked.accountings:
        boards: dict[str, list[str]] = {}
        for chip in asked.hardware:
            boards.setdefault(paid_once(chip, choice), []).append(called(chip.name, "hardware"))
        found += [f"{', '.join(names)}: {said}." for said, names in boards.items() if said]
    found += [_steps(asked.methods, choice) for choice in trained]
    found += [_static(asked.hardware, choice) for choice in asked.accountings]
    if asked.accuracy is not None:
        runs = {
            m.name: [t for t in asked.traces if t.epochs and t.run.method == m.name]
            for m in asked.methods
        }
        found.append(f"{said}." if (said := noise(runs, asked.accuracy)) else "")
    return list(dict.fromkeys(filter(None, found)))


def asides(lines: Sequence[Comparison]) -> Iterator[str]:
    """Say what is to be known of single lines of one chip and accounting, alike ones together.

    It is why they have no energy, which tilings are not proved, what is priced by width, and why
    there is no time.
    """
    yield from _failed(lines)
    done = [(line, line.report) for line in lines if line.report]
    tiled = [(line, report) for line, report in done if report.unproved]
    if tiled:
        names = whose([line for line, _ in tiled], lines, called)
        yield f"{names}: {unproved([(x, report.proof) for x, report in tiled], lines, called)}"
    if said := _bounds(done):
        yield said
    if said := _larger(done):
        yield said
    wide = [(line, report) for line, report in done if report.by_width]
    if wide:
        keys = {key for _, report in wide for key in report.ledger.keys}
        names = whose([line for line, _ in wide], lines, called)
        yield f"{names}: {by_width(wide[0][1].prices, keys)}"
    for those, said in alike(lines, lambda x: x.report.untimed if x.report else ""):
        yield f"{whose(those, lines, called)}: {said}"
    if found_none := _unbounded(lines):
        yield found_none
    if any(line.report and idle(line.report.hardware) for line in lines if line.time_overlapped_s):
        yield f"Times are the least that these tilings can take. {FREE}"


def _failed(lines: Sequence[Comparison]) -> Iterator[str]:
    """Say why lines have no energy; of several without room only what each lacks."""
    crowded = [line for line in lines if line.lacking_memory]
    several = len(crowded) > 1

    def why(line: Comparison) -> str:
        short = several and line.lacking_memory
        return "" if line.energy is not None or short else str(line.reason)

    for those, said in alike(lines, why):
        yield f"{whose(those, lines, called)}: {said}"
    if several:
        yield _no_room(crowded, lines)


def _no_room(crowded: Sequence[Comparison], lines: Sequence[Comparison]) -> str:
    """Say by how much each of several runs exceeds which memory."""
    found = []
    for memory in dict.fromkeys(line.lacking_memory for line in crowded):
        here = [line for line in crowded if line.lacking_memory == memory]
        each = alike(here, lambda x: size(8 * (x.lacking_bytes or 0), 3))
        found.append(
            f"in {memory} for "
            + ", ".join(f"{whose(those, lines, called)} ({much} too much)" for those, much in each)
        )
    return f"No room {'; '.join(found)}: `hwmodel memory` lists what each keeps"


def _bounds(done: Sequence[tuple[Comparison, Report]]) -> str:
    """Say how much less than found each energy could be, where it is not proved; "" for none."""
    gaps = [(line, report, report.gap) for line, report in done]
    open_ = [(line, report, gap) for line, report, gap in gaps if gap is not None and gap > NEAR]
    if not open_:
        return ""
    lines = [line for line, _ in done]
    parts = [f"{100 * (1 - gap):.2f} % ({whose([line], lines, called)})" for line, _, gap in open_]
    near = [line for line, _, gap in gaps if gap is not None and gap <= NEAR]
    if near:
        parts.append(f"{100 * (1 - NEAR):.2f} % or more ({whose(near, lines, called)})")
    least = ", ".join(parts)
    stays = " and of what stays on the chip" if any(r.residency for _, r, _ in open_) else ""
    return f"No choice of tiles{stays} costs less than these parts of the energies: {least}"


def _larger(done: Sequence[tuple[Comparison, Report]]) -> str:
    """Say of which methods an image costs more in a larger batch, for less stays on the chip."""
    last: dict[tuple[str, str], float] = {}
    rising: dict[str, None] = {}
    for line, report in sorted(done, key=lambda pair: pair[0].batch):
        key, each = (line.network, line.method), report.energy / report.images
        if report.residency is not None and each > last.get(key, each) * (1 + ROUNDING):
            rising[called(line.method)] = None
        last[key] = each
    if not rising:
        return ""
    return (
        f"{', '.join(rising)}: an image costs more in a larger batch, of which less stays on the "
        "chip: a tensor stays as a whole, and nothing is split by images (docs/limits.md)"
    )


def _unbounded(lines: Sequence[Comparison]) -> str:
    """Say which memories that are used take no time, for no bandwidth of them is stated."""
    timed = [line.report for line in lines if line.report and line.time_overlapped_s is not None]
    names = dict.fromkeys(name for report in timed for name in report.timeless)
    if not names:
        return ""
    return (
        f"What moves in {', '.join(names)} takes no time, for no bandwidth is stated there: times "
        "are what they are at least, powers at most"
    )


def said_of(lines: Sequence[Comparison]) -> str:
    """Say which figures of a comparison's lines may be set against each other: `comparable`."""
    apart = len({(line.network, line.batch) for line in lines}) > 1
    places = (((x.hardware, x.accounting), bool(x.static)) for x in lines if x.energy is not None)
    return comparable(places, (line.unit for line in lines), apart)


def comparable(
    rows: Iterable[tuple[tuple[str, str], bool]], units: Iterable[str], apart: bool = False
) -> str:
    """Say which figures of a comparison may be set against each other, without a full stop.

    Args:
        rows: of each its chip and accounting, and whether static energy is in it.
        units: of the energies.
        apart: whether the rows are of several networks or batches.

    >>> comparable([(("a", "paper"), False), (("b", "paper"), False)], ["pJ"])
    'Figures of one column may be compared; across chips only percentages may'
    >>> comparable([(("a", "chip"), True), (("b", "chip"), False)], ["pJ"])
    'Figures of one column may be compared; across chips none may, for not all hold static energy'
    """
    held: dict[tuple[str, str], bool] = {}
    for place, static in rows:
        held[place] = held.get(place, False) or static
    places = [*held]
    accountings = len({accounting for _, accounting in places})
    alone = " of one network and batch" if apart else ""
    if len(places) == 1:
        return f"All figures{alone} may be compared with each other"
    said = [f"Figures of one column{alone} may be compared"]
    if len(places) != accountings:
        alike = len({(of, static) for (_, of), static in held.items()}) == accountings
        other = "none may, for not all hold static energy"
        said.append(f"across chips {'only percentages may' if alike else other}")
    said += ["across accountings no figures may"] if accountings > 1 else []
    mixed = not_to_compare(units)
    return "; ".join([*said, mixed] if mixed else said)


def _static(chips: Sequence[Hardware], accounting: Accounting) -> str:
    """Say in which chips' energies static energy is, where that is not so of all; "" else."""
    if accounting.counting.counting == "paper":
        return ""
    paid = [chip for chip in chips if chip.array and chip.static_energy]
    if len(paid) in (0, len(chips)):
        return ""
    beside = [chip for chip in chips if chip not in paid and chip.static_watts]
    names, others = (
        ", ".join(called(chip.name, "hardware") for chip in some) for some in (paid, beside)
    )
    said = f"Static energy is in the energies of {names} (accounting {accounting.name})"
    beside_time = f", of {others} beside the time alone" if others else ", of no other"
    return f"{said}{beside_time}: their percentages hold different things."


def moved_steps(asked: Question, effects: Iterable[Effect]) -> Iterator[str]:
    """Say of a study by what its methods are stepped, and which are not by an optimizer moved."""
    if asked.mode != "training":
        return
    if said := _steps(asked.methods, asked.accountings[0]):
        yield said
    own = [f"{called(m.name)} by {m.optimizer}" for m in asked.methods if m.optimizer]
    if own and any("extras.optimizer" in effect.field for effect in effects):
        yield (
            "Moves of extras.optimizer step the methods that state none of their own, and not "
            f"{', '.join(own)}: there methods are not stepped alike."
        )


def _steps(methods: Sequence[Method], accounting: Accounting) -> str:
    """Say by what each method is stepped, where that is not one for all; "" else."""
    usual = accounting.extras.optimizer
    by: dict[str, list[str]] = {}
    for method in methods if usual != "none" else ():
        by.setdefault(method.optimizer or usual, []).append(called(method.name))
    if len(by) < 2:
        return ""
    each = "; ".join(f"{', '.join(names)} by {optimizer}" for optimizer, names in by.items())
    return f"Not stepped alike under accounting {accounting.name}: {each}."
