"""sensitivity: what moves the percentages, and whether the ranking of methods survives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodel.cli.options import Strict, Study
from hwmodel.cli.processes import Jobs, processes_of
from hwmodel.cli.screen import Destination, destination, progress, say, stem_of, told
from hwmodel.errors import printable
from hwmodel.rerun.asked import SensitivityAsked

if TYPE_CHECKING:
    from pathlib import Path

    from hwmodel.rerun.question import Question
    from hwmodel.specs.provenance import Provenance
    from hwmodel.vary.sensitivity import Sensitivity

__all__ = ["sensitivity"]


def sensitivity(
    options: SensitivityAsked, to: Study, jobs: Jobs = None, strict: Strict = False
) -> None:
    """Every constant of the chips and every choice of the accounting moved, one at a time."""
    from hwmodel.model.not_counted import refuse_unknown
    from hwmodel.rerun.question import question
    from hwmodel.views.colours import looks_of

    where, asked, processes = destination(to), question(options), processes_of(jobs)
    if strict:
        refuse_unknown(asked.network)
    found = asked.study(processes, progress)
    with looks_of(asked.specs()):
        _deliver(found, asked, where)


def _with_optimal_tiles(asked: Question) -> str:
    """The percentages that optimal tiles would give, a line for each chip."""
    from hwmodel.views.colours import called

    lines: dict[str, list[str]] = {}
    for line in asked.lines():
        percents = line.percent_of_baseline, line.percent_of_baseline_optimal_tiles
        greedy, optimal = ("-" if p is None else f"{p:.2f} %" for p in percents)
        words = f"{called(line.method)} {optimal} instead of {greedy}"
        lines.setdefault(called(line.hardware, "hardware"), []).append(words)
    return "\n".join(f"  {chip}: {', '.join(found)}" for chip, found in lines.items())


def _deliver(found: Sensitivity, asked: Question, to: Destination) -> None:
    """Tables to the screen; the CSVs, and a figure for each chip, to a folder."""
    from hwmodel.model.optimal_tiles import greedy_note
    from hwmodel.rerun.tables import NATURE, effects_table
    from hwmodel.views.remarks import moved_steps
    from hwmodel.views.sensitivity_tables import sensitivity_tables

    provenance = asked.provenance(to.date)
    text = effects_table(found.effects).csv(provenance)
    greedy = greedy_note(asked.accountings[0])
    beside = f"{greedy}:\n{_with_optimal_tiles(asked)}\n" if greedy else ""
    if asked.accountings[0].name == "full":
        beside += (
            "Percentages are those of accounting full; compare and report take chip where none is "
            "named, and --accounting chip moves the same under it, in more time.\n"
        )
    beside += "".join(f"{said}\n" for said in moved_steps(asked, found.effects))
    notes = f"{beside}All figures are {NATURE}.\n{provenance}"
    lost = told(sensitivity_tables(found), notes, lambda _: text, to)
    if to.folder is not None:
        _to_folder(found, asked, provenance, text, to.folder)
    if lost is not None:
        raise lost


def _to_folder(
    found: Sensitivity, asked: Question, provenance: Provenance, text: str, folder: Path
) -> None:
    """The CSVs, and a figure for each chip."""
    from hwmodel.rerun.tables import spreads_table
    from hwmodel.specs.files import write
    from hwmodel.views.tornado import draw_tornado

    chips, methods = ([one.name for one in of] for of in (asked.hardware, asked.methods))
    run = [asked.accountings[0].name], [asked.mode], [f"batch{asked.batches[0]}"]
    stem = stem_of(asked.asked, [asked.network.name], chips, methods, *run)
    write(folder / f"{stem}.csv", text)
    if found.sampled:
        spreads = spreads_table(found.sampled)
        write(folder / f"{stem}_samples.csv", spreads.csv(provenance))
    for chip in chips:
        mine = [effect for effect in found.effects if effect.hardware == chip]
        for ending in ("png", "svg"):
            figure = folder / f"{stem}_{chip}_tornado.{ending}"
            draw_tornado(mine, figure, provenance.cells[:3])
    more = ", _samples.csv" if found.sampled else ""
    wrote = (
        f"wrote {folder / stem}.csv{more}, and a tornado of each chip as .png and .svg beside it"
    )
    say(printable(wrote))
