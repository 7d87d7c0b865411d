"""compare: methods side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from hwmodel.cli.options import Files, Ours, Strict
from hwmodel.cli.processes import Jobs, processes_of, shared
from hwmodel.cli.screen import Destination, console, deliver, destination, progress, say, stem_of
from hwmodel.errors import HwmodelError, many
from hwmodel.rerun.asked import CompareAsked

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hwmodel.graph.network import Network
    from hwmodel.model.compare import Comparison
    from hwmodel.model.reached import Reached
    from hwmodel.rerun.question import Question
    from hwmodel.specs.accounting import Accounting
    from hwmodel.specs.provenance import Provenance

__all__ = ["compare", "partly", "refuse_if_none"]


def compare(
    options: CompareAsked,
    to: Files,
    ours: Ours = "",
    jobs: Jobs = None,
    strict: Strict = False,
) -> None:
    """Methods side by side: energy, percent of the baseline, published figures where they exist."""
    from hwmodel.model.not_counted import refuse_unknown
    from hwmodel.rerun.asked import split_names
    from hwmodel.rerun.question import question
    from hwmodel.views.colours import looks_of, named

    where, asked = destination(to, draws=True), question(options)
    processes = processes_of(jobs)
    if strict:
        refuse_unknown(asked.network)
    with looks_of(asked.specs()):
        methods = [method.name for method in asked.methods]
        mine = named(split_names(ours), methods, "--ours") if ours else ()
        _compare(asked, where, mine, processes)


def _compare(asked: Question, where: Destination, ours: Sequence[str], jobs: int) -> None:
    """Compute what is asked, and deliver it."""
    from hwmodel.rerun.tables import comparison_table, notes
    from hwmodel.views.colours import called
    from hwmodel.views.formats import Result
    from hwmodel.views.paper import comparison_paper
    from hwmodel.views.remarks import remarks

    networks = [asked.network, *([asked.baseline_network] if asked.baseline_network else [])]
    if where.figures and len(networks) > 1:
        raise HwmodelError(f"-o {where.figures[0]}: a figure is of one network; this table has two")
    alike = len(asked.methods) + len(networks) - 1  # lines of one chip, accounting and batch
    total = len(asked.hardware) * len(asked.accountings) * len(asked.batches) * alike
    each = partial(shared, jobs=jobs)
    lines = progress(asked.lines(each=each), total, "comparing", alike, _first_of(alike, total))
    refuse_if_none(lines)
    ends = asked.ends(lines)
    presets = asked.accountings
    missing = {preset.name: _not_counted(networks, preset, asked) for preset in presets}
    provenance = asked.provenance(where.date)
    said, unmoved = remarks(asked), _unmoved(asked)
    whole = asked.baseline_words(called)
    paper = comparison_paper(lines, asked.training, whole, provenance, ours, notes=said)
    table = comparison_table(lines, asked.training, ends)
    several = [[one.name for one in of] for of in (asked.hardware, asked.methods, presets)]
    run = [asked.mode], ["batch" + "+".join(map(str, asked.batches))]
    stem = stem_of(asked.asked, [one.name for one in networks], *several, *run)
    result = Result(table, paper, missing, provenance)
    page = _page(lines, asked, provenance, said) if where.html else ""
    tables = _tables(lines, ends, asked)
    kinds = ["methods"] if len(networks) == 1 else []  # of one network

    def end(not_counted: Mapping[str, Sequence[str]]) -> str:
        return "\n".join([*said, *filter(None, [unmoved]), notes(not_counted)])

    deliver(tables, end, result, where, stem=stem, kinds=kinds, page=page, ours=ours)
    partly(lines, told=not where.printed)


def _of(line: Comparison) -> str:
    from hwmodel.views.colours import called

    return f" of {called(line.network, 'network')}"


def _first_of(alike: int, total: int) -> Callable[[Comparison], str]:
    """What is said of lines before the tables, that need all of them: a sentence for each group."""
    from hwmodel.rerun.tables import common_scale, fixed
    from hwmodel.views.colours import called

    found: list[Comparison] = []
    seen = 0

    def said(line: Comparison) -> str:
        nonlocal seen
        found.append(line)
        seen += 1
        if len(found) < alike or seen == total:
            return ""
        these, found[:] = [*found], []
        divisor, unit, decimals = common_scale((x.energy for x in these), line.unit)
        networks = len({x.network for x in these}) > 1
        each = [
            f"{called(x.method)}{_of(x) * networks} {fixed(x.energy / divisor, decimals)} {unit}"
            + ("" if x.percent_of_baseline is None else f" ({x.percent_of_baseline:.2f} %)")
            for x in these
            if x.energy is not None
        ]
        at = f"{called(line.hardware, 'hardware')}, accounting {line.accounting}"
        return f"{at}, batch {line.batch:,}: {'; '.join(each)}" if each else ""

    return said


def _not_counted(networks: list[Network], preset: Accounting, asked: Question) -> list[str]:
    """What one accounting leaves out of what is compared; of several networks, of which."""
    from hwmodel.model.not_counted import not_counted, on_chips
    from hwmodel.model.widths import unpriced

    of = {one.name: not_counted(one, preset, asked.mode) for one in networks}
    found = [
        item if all(item in items for items in of.values()) else f"{item} ({name})"
        for name, items in of.items()
        for item in items
    ]
    own = [x for method in asked.methods for x in unpriced(method, preset)]
    found += own if asked.mode == "training" else []
    return list(on_chips(dict.fromkeys(found), asked.hardware, preset))


def _unmoved(asked: Question) -> str:
    """Say the percentages without the moves that were asked for; "" without any."""
    from hwmodel.rerun.question import question
    from hwmodel.rerun.tables import common_scale, fixed

    if not asked.moved_words():
        return ""
    before, several = question(asked.asked.model_copy(update={"move": ()})), asked.batches[1:] != ()
    lines = [(x, x.energy) for x in before.lines(optimal_tiles=False) if x.energy is not None]
    networks, each = len({line.network for line, _ in lines}) > 1, []
    for line, energy in lines:
        alike = (its for other, its in lines if other.unit == line.unit)
        divisor, unit, decimals = common_scale(alike, line.unit)
        percent = line.percent_of_baseline
        share = "" if percent is None else f", {percent:.2f} %"
        named = _named(line, several, networks)
        each.append(f"{named} {fixed(energy / divisor, decimals)} {unit}{share}")
    return f"Unmoved: {'; '.join(each)}."


def _tables(
    lines: list[Comparison], ends: list[Reached], asked: Question
) -> Iterator[RenderableType]:
    """What is printed of a comparison, made only where it is."""
    from hwmodel.views.colours import called
    from hwmodel.views.screen_tables import comparison_tables, of_runs, reached_tables

    yield from comparison_tables(lines, asked.training, room=console().width)
    if ends:
        yield from reached_tables(lines, ends)
    said = {
        line.method: of_runs(line.report) for line in lines if line.report and line.report.traces
    }
    yield from (f"{called(method)}: {text}\n" for method, text in said.items())


def _page(
    lines: list[Comparison], asked: Question, provenance: Provenance, said: Sequence[str]
) -> str:
    """The HTML file of a comparison."""
    from hwmodel.rerun.tables import run_sentence
    from hwmodel.views.html.page import page

    run, several = asked.training, asked.batches[1:] != ()
    runs = [
        f"{_named(line, several)}, accounting {line.accounting}. {run_sentence(line.report, run)}"
        for line in lines
        if run and line.report
    ]
    baseline = asked.baseline.name if asked.baseline else ""
    return page(lines, lines, provenance, asked.specs(), baseline=baseline, remarks=[*said, *runs])


def _named(line: Comparison, several: bool, networks: bool = False) -> str:
    """What a line is of: a method on a chip, by their labels; of several batches at which.

    Args:
        networks: whether there are several networks.
    """
    from hwmodel.views.colours import called

    at = f", batch {line.batch:,}" * several
    of = f" of {called(line.network, 'network')}" * networks
    return f"{called(line.method)}{of} on {called(line.hardware, 'hardware')}{at}"


def refuse_if_none(lines: list[Comparison]) -> None:
    """Stop, with nothing written, where nothing is known of any line; what each lacks is."""
    if lines and all(line.energy is None and not line.lacking_memory for line in lines):
        raise HwmodelError(str(lines[0].reason))


def partly(lines: list[Comparison], *, told: bool = False) -> None:
    """Exit with 1 where some lines could not be computed: what is there, is right.

    Args:
        told: whether tables on the screen have remarks on those that could.
    """
    from hwmodel.views.colours import called
    from hwmodel.views.remarks import asides

    unsaid = [] if told else lines
    for chip, accounting in dict.fromkeys((line.hardware, line.accounting) for line in unsaid):
        here = [x for x in unsaid if (x.hardware, x.accounting) == (chip, accounting)]
        for text in asides(here):
            say(f"hwmodel: {called(chip, 'hardware')}, accounting {accounting}. {text}")
    failed = [line for line in lines if line.energy is None]
    if failed:
        number = f"{many(len(failed), 'line')} of {len(lines)}"
        where = "; the reasons stand below the tables" if told else ""
        say(f"hwmodel: {number} without an energy{where}")
        raise typer.Exit(1)
