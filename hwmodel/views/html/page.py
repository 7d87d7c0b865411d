"""Lines and reports -> one HTML file: everything it needs stands in it, and it asks no network.

The names in it come from files of users; the template escapes every one, and the page's own
policy lets no script run but the one below.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from hwmodel.model.compare import Comparison
from hwmodel.model.report import Report
from hwmodel.rerun.tables import NATURE, of_batches
from hwmodel.specs.files import NamedSpec
from hwmodel.specs.provenance import Provenance
from hwmodel.views.colours import called, looks_of, part_looks
from hwmodel.views.html.parts import (
    PARTS,
    HeatMap,
    LayerTable,
    TilingLine,
    groups,
    heat_map,
    layer_table,
    sentence,
    tiling_lines,
)
from hwmodel.views.html.timeline import Timeline, timeline
from hwmodel.views.remarks import said_of
from hwmodel.work.flattening import stands
from hwmodel.work.tensor import Pass

__all__ = ["MAX_BYTES", "page"]

MAX_BYTES = 3_000_000
MAX_CONTENT = 100_000  # characters of one input that is shown
FOLDER = Path(__file__).parent
FOLDED = 200  # around a derivation, at most [B]
ASSETS = ("page.js", "page.css")
Explained = Callable[[Report, str], Any]


class _Detail(NamedTuple):
    """One report as the page shows it."""

    line: Comparison
    report: Report
    sentence: str
    layers: LayerTable
    heat: HeatMap
    tilings: list[TilingLine]
    stands: str  # which loops stand for several; "" for none
    times: Timeline | None  # None: the chip states no rates


class _Source(NamedTuple):
    """One input: its kind and name, its hash, its sources, its content."""

    kind: str
    name: str
    sha256: str
    title: str
    sources: dict[str, str]
    content: str  # JSON; "" where there is none or too much of it


def page(
    lines: Sequence[Comparison],
    shown: Sequence[Comparison],
    provenance: Provenance,
    specs: Iterable[NamedSpec],
    *,
    baseline: str = "",
    remarks: Sequence[str] = (),
    explained: Explained | None = None,
) -> str:
    """Write the whole file, of at most `MAX_BYTES`.

    Of a single report that is shown, the layers that cost most are derived, as many as there is
    room for. Where even the details of reports have no room, the page says so.

    Args:
        lines: methods to be set side by side, the baseline among them.
        shown: those of `lines` whose report is shown in detail; a single one stands open.
        specs: what the inputs of the provenance hold, as far as they are specs.
        baseline: name of the method that is 100 %; by default that of each accounting.
        remarks: further sentences below the comparison.
        explained: HTML of the derivation of one layer; None: none is shown.
    """
    specs = [*specs]
    with looks_of(specs):
        return _page(lines, shown, provenance, specs, baseline, remarks, explained)


def _page(
    lines: Sequence[Comparison],
    shown: Sequence[Comparison],
    provenance: Provenance,
    specs: Sequence[NamedSpec],
    baseline: str,
    remarks: Sequence[str],
    explained: Explained | None,
) -> str:
    """The same, while things look as their files say."""
    details = [_detail(line, line.report, baseline) for line in shown if line.report]
    common = _common(lines, shown, provenance, baseline)
    common["inputs"] = _sources(specs, provenance)
    common |= {"remarks": remarks, "details": details, "derived": {}, "places": {}, "fits": True}
    text = _rendered(common)
    size = len(text.encode())
    if size > MAX_BYTES:
        return _rendered(common | {"details": [], "fits": False})
    if explained and len(details) == 1:
        derived = _derived(details[0], explained, MAX_BYTES - size)
        places = {line.layer: n for n, line in enumerate(details[0].layers.lines, start=1)}
        return _rendered(common | {"derived": derived, "places": places})
    return text


def _derived(detail: _Detail, explained: Explained, room: int) -> dict[str, Any]:
    """Return derivations of the layers that cost most, in the order of the layers.

    Args:
        room: for them [B].
    """
    own = {node.layer.name for node in detail.report.nodes}  # not a teacher's
    found = {}
    for line in sorted(detail.layers.lines, key=lambda line: -line.total):
        if line.layer in own:
            text = explained(detail.report, line.layer)
            room -= len(text.encode()) + FOLDED
            if room < 0:
                break
            found[line.layer] = text
    return {line.layer: found[line.layer] for line in detail.layers.lines if line.layer in found}


def _common(
    lines: Sequence[Comparison], shown: Sequence[Comparison], provenance: Provenance, baseline: str
) -> dict[str, Any]:
    """Return the values that the page shows however much of it is left out."""
    from markupsafe import Markup

    script, style = ((FOLDER / name).read_text(encoding="utf-8") for name in ASSETS)
    reports = [line.report for line in lines if line.report is not None]
    places = {(line.hardware, line.accounting) for line in lines}
    return {
        "title": _title(lines, shown),
        "subtitle": _subtitle(lines, shown),
        "mode": of_batches(lines),
        "batches": len({line.batch for line in lines}) > 1,
        "nature": NATURE,
        "summary": _summary(lines, shown, baseline),
        "groups": groups(lines),
        "parts": PARTS,
        "colours": {part: own.colour for part, own in part_looks((*Pass, *PARTS)).items()},
        "comparable": f"{said_of(lines)}." if len(places) > 1 else "",
        "not_counted": {report.accounting.name: report.not_counted for report in reports},
        "provenance": provenance,
        "command": f"{provenance.command} --html {provenance.task}.html",
        "script": Markup(script),
        "style": Markup(style),
        "script_sha256": b64encode(sha256(script.encode()).digest()).decode(),
    }


def _rendered(values: dict[str, Any]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["called"] = called
    environment.filters["chip"] = lambda name: called(name, "hardware")
    return environment.get_template("page.html.j2").render(values)


def _title(lines: Sequence[Comparison], shown: Sequence[Comparison]) -> str:
    """Write the page's title."""
    first = lines[0]
    if len(shown) == 1:
        network, method = called(first.network, "network"), called(shown[0].method)
        return f"{network} on {called(shown[0].hardware, 'hardware')} under {method}"
    methods, chips = ({line[i] for line in lines} for i in (1, 2))
    plural = "s" if len(chips) > 1 else ""
    network = called(first.network, "network")
    return f"{network}: {len(methods)} methods on {len(chips)} chip{plural}"


def _subtitle(lines: Sequence[Comparison], shown: Sequence[Comparison]) -> str:
    """Write the titles of a single report's specs, or the title of several reports' network."""
    report = next(line.report for line in (*shown, *lines) if line.report)
    if len(shown) != 1:
        return report.network.title
    return f"{report.network.title}. {report.hardware.title}. {report.method.title}"


def _detail(line: Comparison, report: Report, baseline: str) -> _Detail:
    return _Detail(
        line,
        report,
        _sentence(line, report, baseline),
        layer_table(report),
        heat_map(report),
        tiling_lines(report),
        stands(report.accounting.counting.loops),
        timeline(report),
    )


def _sentence(line: Comparison, report: Report, baseline: str) -> str:
    return sentence(report, line.percent_of_baseline, baseline or report.accounting.baseline)


def _summary(lines: Sequence[Comparison], shown: Sequence[Comparison], baseline: str) -> list[str]:
    """Write a sentence on the report that is shown, or on the cheapest of each group."""
    if len(shown) == 1:
        return [_sentence(x, x.report, baseline) for x in shown if x.report]
    cheapest: dict[tuple[str, str, int], Comparison] = {}
    for line in lines:
        key = line.hardware, line.accounting, line.batch
        known = cheapest.get(key)
        if line.energy is not None and (known is None or line.energy < (known.energy or 0.0)):
            cheapest[key] = line
    return [_sentence(x, x.report, baseline) for x in cheapest.values() if x.report]


def _sources(specs: Iterable[NamedSpec], provenance: Provenance) -> list[_Source]:
    """List every input with its hash and its content."""
    named = {(spec.KIND, spec.name): spec for spec in specs}
    found = []
    for given in provenance.inputs:
        known = named.get((given.kind, given.name))
        title, sources = (known.title, known.sources) if known else ("", {})
        found.append(_Source(*given, title, sources, _content(known) if known else ""))
    return found


def _content(spec: NamedSpec) -> str:
    """Return the text that is hashed, with spaces; "" where it is too long to be shown."""
    values = spec.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(values, indent=1, ensure_ascii=False)
    return text if len(text) <= MAX_CONTENT else ""
