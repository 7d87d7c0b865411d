"""What holds of every chip, however its prices are: searches in their order, floors, sums."""

import warnings
from collections import defaultdict
from itertools import pairwise
from math import fsum, isclose
from pathlib import Path
from random import Random
from typing import Any

from ruamel.yaml import YAML

from hwmodel.errors import HwmodelError
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate
from hwmodel.model.report import COLUMNS, Report
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import replaced_all
from tests.fuzz.mutations import flow

NET = """\
version: 1
name: net
title: Two products that are searched in a moment
input: [2, 5, 5]
layers:
  - {name: conv1, kind: conv, channels: 4, kernel: 3, stride: 2, padding: 1}
  - {name: fc1, kind: linear, features: 6}
"""
PRICES = ("read_energy", "write_energy", "access_energy", "efficiency")
# From the freest search to the one with the fewest choices.
_FILTER = {"counting.stationary": "filter"}
_ROLE = _FILTER | {"counting.weight_gradient": "signal-as-filters"}
SEARCHES = {
    "best": {"counting.stationary": "best"},
    "either role": _FILTER | {"counting.weight_gradient": "best-of-two-roles"},
    "filter": _ROLE,
    "level by level": _ROLE | {"counting.search": "level-by-level"},
}


def price_case(random: Random, samples: list[str]) -> bytes:
    """A chip whose prices have changed places among its memories, or are upside down."""
    document = YAML(typ="safe", pure=True).load(random.choice(samples))
    for several in _prices(document):
        values = [holder[name] for holder, name in several]
        if random.random() < 0.5:
            random.shuffle(values)
        else:
            values.reverse()
        for (holder, name), value in zip(several, values, strict=True):
            holder[name] = value
    limited = [memory for memory in _memories(document) if "B" in str(memory.get("capacity"))]
    for memory in limited:  # so small that a tiling has to choose
        memory["capacity"] = f"{random.choice([48, 150, 400, 1000, 4000])} B"
    return flow(document).encode()


def _memories(document: Any) -> list[Any]:
    return [x for level in document["levels"] for x in (level, *level.get("split", ()))]


def _prices(document: Any) -> list[list[tuple[Any, str]]]:
    """List where prices stand in a chip's file: those that may change places."""
    stated = [(memory, name) for memory in _memories(document) for name in PRICES if name in memory]
    return [
        [(memory, name) for memory, name in stated if name != "efficiency"],
        [(memory, name) for memory, name in stated if name == "efficiency"],
        [(entry, "energy") for entry in document["arithmetic"] if "energy" in entry],
    ]


def laws_of_prices(folder: Path) -> list[str]:
    """Check the laws on the chip of a case; nothing is said of one that is refused."""
    accountings = accountings_of()
    try:
        reports = reports_of(folder / "case.yaml", folder, accountings)
    except HwmodelError:
        return []
    wrong = [problem for name, found in reports.items() for problem in _sums(name, found)]
    wrong += _floors(reports["best"])
    return wrong + _in_order(reports)


def accountings_of() -> dict[str, Accounting]:
    """The usual accounting with every search."""
    full = load(Accounting, "full")
    return {name: replaced_all(full, changes) for name, changes in SEARCHES.items()}


def reports_of(chip: Path, folder: Path, accountings: dict[str, Accounting]) -> dict[str, Report]:
    """Reports of the small network on a chip, by every search. Raises: HwmodelError."""
    net = folder / "net.yaml"
    net.write_text(NET)
    network = load_network(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is improbable, as it is meant to be
        priced = load(Hardware, chip)
    return {
        name: evaluate(network, priced, "fp", accounting=accounting)
        for name, accounting in accountings.items()
    }


def _products(found: Report) -> dict[tuple[str, str], float]:
    """What memory costs each product: what a search makes least."""
    rows = [dict(zip(COLUMNS, record, strict=True)) for record in found.records]
    cost: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row["component"] == "product" and row["direction"] != "operate":
            cost[row["layer"], row["pass"]].append(row["energy"])
    return {key: fsum(values) for key, values in cost.items()}


def _in_order(reports: dict[str, Report]) -> list[str]:
    """A search with more choices finds nothing worse, where it has proved that it found all."""
    wrong = []
    cost = {name: _products(found) for name, found in reports.items()}
    proved = {
        name: {(task.layer, str(task.work.pass_)): t.certificate is None or t.certificate.proved
               for task, t in found.tilings}
        for name, found in reports.items()
    }  # fmt: skip
    names = [*SEARCHES]
    for freer, other in pairwise(names):
        for key, energy in cost[freer].items():
            if proved[freer].get(key, True) and energy > cost[other][key] * (1 + 1e-9):
                wrong.append(f"{freer} costs {energy!r} at {key}, {other} {cost[other][key]!r}")
    return wrong


def _floors(found: Report) -> list[str]:
    """From the outermost memory each filter is read once at least, each ofmap written to it."""
    top = [buffer.name for buffer in found.hardware.levels[0].buffers]
    moved: dict[tuple[str, ...], int] = defaultdict(int)
    for record in found.records:
        row = dict(zip(COLUMNS, record, strict=True))
        if row["component"] == "product" and row["memory"] in top:
            moved[
                tuple(map(str, (row["layer"], row["pass"], row["tensor"], row["direction"])))
            ] += row["elements"]
    wrong = []
    for task, _ in found.tilings:
        n, groups = task.work.nest.extent, task.work.nest.groups
        least = {
            (str(task.work.F), "read"): n.M * n.C * n.HF * n.WF * groups,
            (str(task.work.O), "write"): n.N * n.M * n.HO * n.WO * groups,
        }
        for (tensor, direction), floor in least.items():
            key = (task.layer, str(task.work.pass_), tensor, direction)
            if moved[key] < floor:
                wrong.append(f"{' '.join(key)}: {moved[key]} elements, {floor} at least")
    return wrong


def _sums(name: str, found: Report) -> list[str]:
    rows = [dict(zip(COLUMNS, record, strict=True)) for record in found.records]
    energies = [row["count"] * row["price"] for row in rows]
    wrong = [
        f"{name}: a row is not count x price"
        for row, e in zip(rows, energies, strict=True)
        if row["energy"] != e
    ]
    for columns in ((), ("pass",), ("layer",), ("memory", "direction")):
        total = fsum(found.energies(*columns).values())
        if not isclose(total, fsum(energies), rel_tol=1e-12):
            wrong.append(f"{name}: {total!r} by {columns}, rows are {fsum(energies)!r}")
    return wrong
