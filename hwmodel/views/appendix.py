"""A page for a paper's appendix: what a table was computed of, and how to compute it again.

One list of sections, written as HTML that prints on a page, or as a PDF.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from hwmodel.errors import DataError, HwmodelError
from hwmodel.graph.network import Network
from hwmodel.model.not_counted import not_counted, on_chips
from hwmodel.model.optimal_tiles import greedy_note
from hwmodel.model.runs import Each, Reported, Run
from hwmodel.rerun.question import Question, question
from hwmodel.rerun.tables import NATURE, common_scale, fixed
from hwmodel.rerun.verify import stated, verify
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import SpecModel, write
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import is_known
from hwmodel.views.chip import size
from hwmodel.views.colours import called, looks_of
from hwmodel.views.pages import Section, numeric, write_pages
from hwmodel.views.paper import places_asides
from hwmodel.views.remarks import comparable, remarks
from hwmodel.views.rules import method_sentences

__all__ = ["sections", "write_appendix"]

TITLE = "How the energies were computed"

ENDINGS = (".html", ".pdf")
TILED = "percent_of_baseline_optimal_tiles"  # a column; empty or absent: nothing stands beside
_OF_CHIP = {"array", "clock", "macs_per_cycle", "operations_per_cycle", "static_power"}
_OF_CHIP |= {"static_energy_per_cycle", "voltage", "reference", "zeros", "path_prices"}
FULL = ".15g"  # a number as a file has it, without the noise of binary fractions
SHOWN = ".9g"  # a price that may follow from one in another unit
ROUNDING = 1e-9  # relative difference of a number that is none
_UNITS = {  # divisor and unit of what files state in units of their own
    "clock": (1e6, "MHz"), "static_power": (1.0, "W"), "bandwidth": (1e9, "GB/s"),
    "read_bandwidth": (1e9, "GB/s"), "write_bandwidth": (1e9, "GB/s"),
}  # fmt: skip
_CSS = (
    "@page{size:A4;margin:14mm}body{font:8.5pt/1.3 sans-serif;max-width:182mm;margin:1em auto;"
    "padding:0 1em;overflow-wrap:anywhere}h1{font-size:12pt}h2{font-size:9.5pt;margin:.8em 0 .2em}"
    "p{margin:.2em 0}div{display:flex;flex-wrap:wrap;"
    "gap:.4em 2em}table{border-collapse:collapse;font-size:7.5pt}"
    "th,td{text-align:left;padding:0 .8em 0 0;vertical-align:top}.n{text-align:right}"
)


def write_appendix(table: Path, output: Path, each: Each = map) -> None:
    """Write the page of a table that `compare` made, which is computed anew.

    Args:
        each: who computes the reports.

    Raises: HwmodelError.
    """
    ending = output.suffix.lower()
    if ending not in ENDINGS:
        raise HwmodelError(f"{output}: an appendix ends in {' or '.join(ENDINGS)}")
    if table.suffix.lower() == ".zip":
        raise DataError(f"{table}: is a bundle; unpack it, and name the table in it")
    records, made, asked = stated(table)
    if asked.NAME != "compare":
        raise DataError(f"{table}: is of {asked.NAME}; an appendix is of a table of compare")
    values = question(asked)
    provenance = values.provenance()
    if provenance.inputs_sha256 != made["inputs_sha256"]:
        raise DataError(
            f"{table}: its inputs are not as they were; make it anew, or see `hwmodel verify`"
        )
    kept: list[Reported] = []

    def keeping(compute: Callable[[Run], Reported], runs: Sequence[Run]) -> Iterator[Reported]:
        for one in each(compute, runs):
            kept.append(one)
            yield one

    _see_numbers(table, keeping)
    lines = list(values.lines(each=lambda compute, runs: iter(kept)))
    with looks_of(values.specs()):
        found = sections(values, records, made, list(places_asides(lines)))
    if ending == ".html":
        write(output, _html(found))
    else:
        write_pages(TITLE, found, output)


def _see_numbers(table: Path, each: Each) -> None:
    """See that the table is what is computed today. Raises: DataError with the first that is not.

    Libraries of other machines may round the last digit otherwise.
    """
    verdict = verify(table, tolerance=ROUNDING, each=each)
    if not verdict.holds:
        extra = [f"{row}: is not computed" for row in verdict.extra]
        missing = [f"{row}: is missing" for row in verdict.missing]
        first, *more = [*map(str, verdict.moved), *extra, *missing]
        others = f" (and {len(more):,} more)" if more else ""
        raise DataError(f"{table}: is not what is computed: {first}{others}; see `hwmodel verify`")


def sections(
    asked: Question,
    records: Sequence[Mapping[str, str]],
    made: Mapping[str, str],
    asides: Sequence[str] = (),
) -> list[Section]:
    """Return the sections of the page.

    Args:
        records: rows of the table, as text.
        made: its version, hashes of inputs and command.
        asides: what is to be known of single rows.
    """
    network = asked.network
    macs = sum(node.macs for node in network.nodes())
    weights = sum(node.weights for node in network.nodes() if not node.layer.shares)
    batches = " and ".join(map(str, asked.batches))
    run = "one training iteration" if asked.mode == "training" else "one inference"
    what = (
        f"Energy of {run} of {called(network.name, 'network')} ({network.title}; {macs:,} MACs an "
        f"image forward, {weights:,} weights of products), batch {batches}, accounting "
        f"{' and '.join(one.name for one in asked.accountings)}; {NATURE}."
    )
    whole = f"The baseline, 100 %, is {asked.baseline_words(called)}, on the same chip."
    places = [(record["hardware"], record["accounting"]) for record in records]
    apart = len({(record["network"], record["batch"]) for record in records}) > 1
    held = [bool(float(record.get("static") or 0)) for record in records]
    units = (record["unit"] for record in records)
    said = f"{comparable(zip(places, held, strict=True), units, apart)}."
    known = [*_greedy(asked, records), *remarks(asked), *asides]
    return [
        Section("What was computed", [what, f"{whole} {said}"], [*_results(records)]),
        *([Section("Remarks", known)] if known else []),
        Section(
            "Model",
            [
                "Each layer gives up to three products, forward, of signals back and of weight "
                "gradients, each a loop nest; a search cuts it into tiles that fit the memories. "
                "Energy is the sum over layers, passes, tensors and memories of bits read or "
                "written times the price of a bit there, and of operations times the price of "
                "one (docs/model.md)."
            ],
        ),
        _choices(asked.accountings),
        Section("Methods", [*method_sentences(asked.methods, network)]),
        Section("Constants", [], [*_moved_constants(asked)]),
        Section("Rates and extents of the chips", [*_rates(asked.hardware)]),
        Section("Prices that no chip states", [*_assumed(asked)]),
        Section("Sources", [*_sources(asked)]),
        Section(
            "Not counted",
            [f"{x.name}: {'; '.join(_left_out(network, x, asked))}." for x in asked.accountings],
        ),
        Section(
            "Reproduction",
            [made["command"], f"hwmodel {made['version']}, inputs {made['inputs_sha256']}"],
        ),
    ]


def _greedy(asked: Question, records: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Say under which accountings tiles are greedy, and what the figures beside them are."""
    for one in asked.accountings:
        if note := greedy_note(one):
            beside = any(x["accounting"] == one.name and x.get(TILED) for x in records)
            yield f"{note if beside else note.partition('.')[0]}."


def _left_out(network: Network, accounting: Accounting, asked: Question) -> list[str]:
    """List what is not counted of a network, and of which chips what is."""
    return [*on_chips(not_counted(network, accounting, asked.mode), asked.hardware, accounting)]


def _results(records: Sequence[Mapping[str, str]]) -> Iterator[list[list[str]]]:
    """Yield a table of each chip and accounting: energy, percent, where published the residual.

    Where tiles are greedy, the percentage with optimal ones stands beside.
    """
    known = any(record.get("source_percent") for record in records)
    places = dict.fromkeys((record["hardware"], record["accounting"]) for record in records)
    alone = len({accounting for _, accounting in places}) == 1
    for place in places:
        here = [record for record in records if (record["hardware"], record["accounting"]) == place]
        alike = (x for x in records if x["unit"] == here[0]["unit"])  # one unit on every chip
        energies = (float(x["energy"] or 0.0) for x in alike)
        divisor, unit, decimals = common_scale(energies, here[0]["unit"])
        chip = called(place[0], "hardware")
        named = chip if alone else f"{chip}, accounting {place[1]}"
        head = [named, f"energy, {unit}", "%"]
        greedy = any(x.get(TILED) and x[TILED] != x["percent_of_baseline"] for x in here)
        head += ["optimal tiles, %"] if greedy else []
        rows = [[*head, "published %", "residual %"] if known else head]
        for record in here:
            energy = float(record["energy"] or 0.0) / divisor
            shown = [fixed(energy, decimals) if record["energy"] else "-"]
            numbers = [record["percent_of_baseline"], *([record[TILED]] if greedy else [])]
            numbers += [record["source_percent"], record["residual_percent"]] if known else []
            shown += [f"{float(number):.2f}" if number else "-" for number in numbers]
            rows.append([_line(record, records), *shown])
        yield rows


def _line(record: Mapping[str, str], records: Sequence[Mapping[str, str]]) -> str:
    """Name a line by its method; of several networks and batches by these, too."""
    found = [called(record["network"], "network")]
    found = found if len({other["network"] for other in records}) > 1 else []
    if len({other["batch"] for other in records}) > 1:
        found.append(f"batch {record['batch']}")
    method = called(record["method"])
    return f"{method} ({', '.join(found)})" if found else method


def _choices(accountings: Sequence[Accounting]) -> Section:
    """Every choice, `search` and so on, of one accounting, or of several side by side."""
    chosen = [dict(_chosen(one)) for one in accountings]
    if len(chosen) == 1:
        said = "; ".join(f"{name} {choice}" for name, choice in chosen[0].items())
        return Section("Choices", [f"{accountings[0].name}: {said}."])
    names = dict.fromkeys(name for of_one in chosen for name in of_one)
    body = [[name, *(of_one.get(name, "-") for of_one in chosen)] for name in names]
    head = ["accounting", *(one.name for one in accountings)]
    return Section("Choices", [], [[head, *body]])


def _chosen(spec: SpecModel) -> Iterator[tuple[str, str]]:
    """Yield every choice of an accounting with its name."""
    left_out = {"version", "name", "title", "sources", "source", "based_on"}
    values: dict[str, Any] = {name: getattr(spec, name) for name in type(spec).model_fields}
    for name, value in values.items():
        if name in left_out or value is None:
            continue
        if isinstance(value, SpecModel):
            yield from _chosen(value)
        elif isinstance(value, (str, int, float)):
            word = ("no", "yes")[value] if isinstance(value, bool) else str(value)
            yield name.replace("_", " "), word


def _moved_constants(asked: Question) -> Iterator[list[list[str]]]:
    """Yield a table of each chip's constants; a source is not cited for what was moved."""
    moves: tuple[str, ...] = getattr(asked.asked, "move", ())
    own = [move for move in moves if move.startswith("hardware.")]
    stated = asked.hardware
    if own:
        stated = question(asked.asked.model_copy(update={"move": ()})).hardware
    for chip, before in zip(asked.hardware, stated, strict=True):
        having = ", ".join(m for m in own if is_known(chip, m.partition("=")[0].partition(".")[2]))
        rows = [[called(chip.name, chip.KIND), "", "source"]]
        for now, then in zip(_constants(chip), _constants(before), strict=True):
            what, value, source = now
            said = source if value == then[1] else f"moved: {having}, of {then[1]} ({source})"
            rows.append([what, value, said])
        yield rows


def _constants(chip: Hardware) -> Iterator[list[str]]:
    """Yield prices and capacities of a chip, each with its source."""
    for level in chip.levels:
        for memory in level.buffers:
            bits = memory.capacity_bits
            held = "unlimited" if bits is None else size(bits)
            scale = chip.scale_of(memory)
            read = memory.read_energy_per_bit * scale
            paid = memory.write_energy_per_bit * scale
            price = f"{read:{SHOWN}}"
            price += f" read, {paid:{SHOWN}} written" if read != paid else ""
            yield [memory.name, f"{held}, {price} {chip.unit}/bit", memory.source]
    for one in chip.arithmetic:
        value = f"{one.energy_per_operation * chip.scale:{SHOWN}} {chip.unit}"
        yield [f"{one.pair or f'{one.bits}-bit'} {one.operation}", value, one.source]


def _rates(chips: Sequence[Hardware]) -> Iterator[str]:
    """What a chip states beside sizes and prices, and its notes, which name their sources."""
    for chip in chips:
        found = [
            f"{level.name}: {stated}"
            for level in chip.levels
            for stated in _stated(level, {"fanout", "multicast", "reduction", "hop_energy"})
        ]
        memories = [memory for level in chip.levels for memory in level.buffers]
        fields = {"bandwidth", "read_bandwidth", "write_bandwidth", "leakage"}
        found += [f"{m.name}: {stated}" for m in memories for stated in _stated(m, fields)]
        found += _stated(chip, _OF_CHIP)
        said = "; ".join(found) or "no rates are stated"
        notes = "".join(f" {note.removesuffix('.')}." for note in chip.notes)
        yield f"{called(chip.name, chip.KIND)} ({chip.title}): {said}.{notes}"


def _stated(spec: SpecModel, fields: set[str]) -> list[str]:
    """The fields that a file states, of some, as it states them."""
    values = spec.model_dump(mode="json", exclude_defaults=True, include=fields)
    return [_flat(name, value) for name, value in values.items()]


def _flat(name: str, value: Any) -> str:
    """Write a field with its unit, "clock 1530 MHz"; parts of one in brackets."""
    words = name.replace("_", " ")
    if isinstance(value, dict):
        parts = ", ".join(_flat(*one) for one in value.items())
        return f"{words} ({parts})" if parts else words
    if isinstance(value, list):
        divisor, unit = _UNITS.get(name, (1.0, ""))
        numbers = [f"{x / divisor:{FULL}}" if isinstance(x, float) else str(x) for x in value if x]
        return " ".join(filter(None, (words, *numbers, unit)))
    if isinstance(value, float):
        return f"{words} {value:{FULL}}"
    return f"{words} {('no', 'yes')[value] if isinstance(value, bool) else value}"


def _assumed(asked: Question) -> Iterator[str]:
    """Relative prices of the accountings with their sources, and the rule for other widths."""
    for one in asked.accountings:
        prices = one.prices
        found = [f"a special function {prices.special_function_macs:g}"]
        if prices.logic_price_macs is not None:
            found.append(f"a Boolean operation {prices.logic_price_macs:g}")
        found += [
            f"{x.bits}-bit {x.operation} {x.macs:g} ({x.source})" for x in prices.relative_prices
        ]
        yield (
            f"{one.name}, where a chip states no price of its own, in MACs of "
            f"{one.widths.full_precision_bits} bit: {'; '.join(found)}."
        )
    yield (
        "An integer operation of a width that neither states lies between its neighbours, or in "
        "proportion beyond them: an adder with its width, a multiplier with the square of its "
        "width (docs/model.md section 5)."
    )


def _sources(asked: Question) -> Iterator[str]:
    """Yield what the short names of sources stand for: each text once, with who cites it."""
    said: dict[tuple[str, str], list[str]] = {}
    for spec in (*asked.hardware, *asked.methods, *asked.accountings):
        for key, text in spec.sources.items():
            said.setdefault((key, text), []).append(spec.name)
    yield from (f"{', '.join(by)}, {key}: {text}" for (key, text), by in said.items())


def _html(found: Sequence[Section]) -> str:
    """Write the page as HTML; whatever a file says is text."""
    lines = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">",
        f"<title>{TITLE}</title><style>{_CSS}</style></head><body>",
        f"<h1>{TITLE}</h1>",
    ]
    for section in found:
        lines.append(f"<h2>{escape(section.title)}</h2>")
        lines += [f"<p>{escape(text)}</p>" for text in section.texts]
        lines += ["<div>", *map(_html_table, section.tables), "</div>"]
    return "\n".join([*lines, "</body></html>"]) + "\n"


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    """Write a table, of which the first row is the head."""
    head, *body = rows
    right = [' class="n"' * (column in numeric(rows)) for column in range(len(head))]

    def cells(row: Sequence[str], tag: str, end: str = "") -> str:
        pairs = zip(row, right, strict=True)
        return "".join(f"<{tag}{end}{its}>{escape(cell)}</{tag[:2]}>" for cell, its in pairs)

    heads = cells(head, "th", ' scope="col"')
    lines = [f"<table><thead><tr>{heads}</tr></thead><tbody>"]
    lines += [f"<tr>{cells(row, 'td')}</tr>" for row in body]
    return "\n".join([*lines, "</tbody></table>"])
