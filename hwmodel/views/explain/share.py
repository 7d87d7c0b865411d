"""The share of a layer's rows in the whole run, with the baseline's row beside each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from hwmodel.errors import HwmodelError, nearest
from hwmodel.model.ledger import NAME
from hwmodel.model.report import Report
from hwmodel.rerun.tables import NATURE, tiles_sentence, what
from hwmodel.views.colours import called
from hwmodel.views.explain.lines import energy, table

__all__ = ["shares"]

Row = tuple[str, ...]  # the name of a row: values of `NAME`
_SAID = NAME[1:]  # without the layer


def shares(report: Report, baseline: Report, layer: str, pass_: str | None = None) -> str:
    """Set every row of a layer, or of one of its passes, in proportion, in Markdown.

    Each has its energy, its share of the layer (or of its pass) and of the whole run, then the same
    of the baseline on the same chip under the same accounting, and the one in percent of the other.

    Args:
        baseline: the report of the method that is 100 %.
        pass_: None is all of them.

    Raises: HwmodelError where neither report has such rows.
    """
    ours, theirs = (_rows(one, layer, pass_) for one in (report, baseline))
    names = list(dict.fromkeys([*ours, *theirs]))
    if not names:
        known = dict.fromkeys(layer for (layer,) in report.energies("layer"))
        hint = "has no such pass" if layer in known else nearest(layer, known)
        raise HwmodelError(f"{report.network.name} has no row of layer {layer!r}: {hint}")
    base = called(baseline.method.name)
    head = [
        f"# Shares of {layer} in {called(report.network.name, 'network')} on "
        f"{called(report.hardware.name, 'hardware')} under {called(report.method.name)}, "
        f"accounting {report.accounting.name}: one {what(report.mode, report.batch)}",
        "",
        f"Energies in {report.unit}, {NATURE}. The whole run: {energy(report.energy)} "
        f"{report.unit}, of {base} {energy(baseline.energy)} {report.unit}"
        f"{_percent(report.energy, baseline.energy, ', which is {} % of it')}.",
        "",
    ]
    of = f"layer's {pass_.replace('_', ' ')}" if pass_ else "layer"
    columns = (
        "row", "energy", f"% of the {of}", "% of the whole", f"{base}: energy",
        f"% of its {of}", "% of its whole", f"% of {base}",
    )  # fmt: skip
    layers = sum(ours.values()), sum(theirs.values())
    rows = [
        _line(_words(name), ours.get(name), theirs.get(name), layers, report, baseline)
        for name in names
    ]
    part = f"{layer}, {pass_}" if pass_ else layer
    mine, its = (_by_place(of) for of in (ours, theirs))
    for name in dict.fromkeys([*mine, *its]):
        rows.append(_line(f"all {name}", mine.get(name), its.get(name), layers, report, baseline))
    rows.append(_line(f"all of {part}", *layers, layers, report, baseline))
    end = ["", *filter(None, [tiles_sentence(report), report.unproved and f"{report.unproved}."])]
    return "\n".join([*head, *table(columns, rows), *end]).rstrip() + "\n"


def _rows(report: Report, layer: str, pass_: str | None) -> dict[Row, float]:
    """Energy of every row of a layer, by the row's name without the layer."""
    found = report.energies(*NAME)
    at = NAME.index("pass")
    return {
        name[1:]: paid
        for name, paid in found.items()
        if name[0] == layer and pass_ in (None, name[at])
    }


def _by_place(rows: Mapping[Row, float]) -> dict[str, float]:
    """Sum rows by what is done where, in every pass: `reads at L3`, `operations`."""
    found: dict[str, list[float]] = {}
    for name, paid in rows.items():
        of = dict(zip(_SAID, map(str, name), strict=True))
        place = f"{of['direction']}s at {of['memory']}" if of["memory"] else "operations"
        found.setdefault(place, []).append(paid)
    return {place: fsum(several) for place, several in found.items()}


def _words(name: Row) -> str:
    """Write a row's name: `forward: read F (operand) at L3`."""
    of = dict(zip(_SAID, map(str, name), strict=True))
    place = f"at {of['memory']}" if of["memory"] else of["operation"]
    role = "" if of["role"] == "operand" else f" ({of['role']})"
    return f"{of['pass'].replace('_', ' ')}: {of['direction']} {of['tensor']}{role} {place}"


def _line(
    name: str,
    ours: float | None,
    theirs: float | None,
    layers: Sequence[float],
    report: Report,
    baseline: Report,
) -> tuple[str, ...]:
    """One line of the table; "-" where one of the two has no such row."""
    cells: Iterator[str] = (
        text
        for paid, of_layer, whole in (
            (ours, layers[0], report.energy), (theirs, layers[1], baseline.energy)
        )
        for text in (
            "-" if paid is None else energy(paid),
            _percent(paid, of_layer),
            _percent(paid, whole),
        )
    )  # fmt: skip
    return name, *cells, _percent(ours, theirs)


def _percent(part: float | None, whole: float | None, form: str = "{}") -> str:
    """Write a part in percent; "-" (or nothing, within a sentence) where there is none."""
    if part is None or not whole:
        return "-" if form == "{}" else ""
    return form.format(f"{100 * part / whole:.2f}")
