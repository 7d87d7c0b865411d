"""Operations of every operator: the steps that docs/model.md writes out, added up."""

import re
from math import prod
from typing import get_args

import pytest

from hwmodel.graph.layers.elementwise import Function
from hwmodel.vary.paths import replaced
from tests.test_architecture import PACKAGE
from tests.test_gradients import FULL, LAST, N, reported

TEXT = (PACKAGE.parent / "docs" / "model.md").read_text(encoding="utf-8")
KINDS = {"A": "add", "M": "mac", "S": "special"}
K = 4  # elements under a window, of 2 x 2
FIRST = {"name": "first", "kind": "conv", "channels": 4, "kernel": 1}
SIZE = N * 4 * 4 * 4
OTHERS = {  # rows that are no function: the layer, and its output's elements in those of its input
    "`batch-norm`": ({"kind": "batch-norm"}, 1),
    "`batch-norm` in inference": ({"kind": "batch-norm"}, 1),
    "`layer-norm`": ({"kind": "layer-norm"}, 1),
    "`rms-norm`": ({"kind": "rms-norm"}, 1),
    "`multiply`": ({"kind": "multiply", "inputs": ["first", "first"]}, 1),
    "`scale`": ({"kind": "scale"}, 1),
    "`scale`, not learned": ({"kind": "scale", "learned": False}, 1),
    "`max-pool`": ({"kind": "max-pool", "kernel": 2}, 1 / 4),
    "`average-pool`": ({"kind": "average-pool", "kernel": 2}, 1 / 4),
    "`upsample`, nearest": ({"kind": "upsample", "factor": 2}, 4),
    "`upsample`, bilinear": ({"kind": "upsample", "factor": 2, "interpolation": "bilinear"}, 4),
}
# See below.
ELSEWHERE = {"`add`", "`global-average-pool`", "`embedding`, learned `source`", "`rotary`"}


def table():
    """Cells of the table of operations, forward and back, by the operator's name."""
    (body,) = re.findall(
        r"^\| operator \| forward \| back \|.*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE
    )
    for line in body.splitlines():
        names, forward, back, _ = (cell.strip() for cell in line.strip("|").split(" | "))
        several = re.fullmatch(r"(?:`[a-z-]+`[, ]*)+", names)
        for name in re.findall(r"`[a-z-]+`", names) if several else [names]:
            yield name, forward, back


def steps(text):
    """Operations that a cell or a block writes out, by kind: A, 2 M, (K - 1) A."""
    found = dict.fromkeys(KINDS.values(), 0)
    for times, letter in re.findall(
        r"(\(K - 1\) |\b\d+ )?\b([AMS])\b", re.sub(r"`[^`]*`", "", text)
    ):
        found[KINDS[letter]] += K - 1 if "K" in times else int(times or 1)
    return {kind: times for kind, times in found.items() if times}


def test_steps_are_added_up():
    assert steps("`h = x A` M, 2 A; (K - 1) A and S") == {"add": K + 1, "mac": 1, "special": 1}


def counted(report, layer, phase, elements):
    """Operations of a layer in one pass, by kind, for each of so many elements."""
    found = {}
    for one in report.ledger.entries:
        if (one.layer, one.pass_) == (layer, phase) and one.operation:
            found[one.operation] = found.get(one.operation, 0) + one.elements / elements
    return found


@pytest.mark.parametrize(("name", "forward", "back"), [*table()])
def test_operators_take_the_operations_that_are_written_out(name, forward, back):
    if name in ELSEWHERE:
        return
    function = {"kind": "activation", "function": name.strip("`")}
    layer, ratio = OTHERS.get(name, (function, 1))
    mode = "inference" if "inference" in name else "training"
    report = reported(FIRST, {"name": "it"} | layer, LAST, mode=mode)
    elements = SIZE * ratio
    assert counted(report, "it", "forward", elements) == steps(forward)
    assert counted(report, "it", "backward_input", elements) == steps(back)


def test_windows_as_large_as_the_image_and_sums_of_tensors():
    cells = {name: (forward, back) for name, forward, back in table()}
    pool = {"name": "pool", "kind": "global-average-pool"}
    report = reported(FIRST, pool, LAST)
    assert counted(report, "pool", "forward", N * 4) == {"add": 16 - 1, "mac": 1}
    assert cells["`global-average-pool`"][0].startswith("(K - 1) A, `y = s / K` M")
    assert counted(report, "pool", "backward_input", N * 4) == steps(
        cells["`global-average-pool`"][1]
    )
    three = {"name": "sum", "kind": "add", "inputs": ["first", "first", "first"]}
    assert counted(reported(FIRST, three, LAST), "sum", "forward", SIZE) == {"add": 2}


def test_turning_queries_takes_two_multiply_adds_each_way():
    rows = {"name": "rows", "kind": "reshape", "shape": [8, 8, 1]}
    report = reported(FIRST, rows, {"name": "it", "kind": "rotary", "heads": 2}, LAST)
    cells = {name: (forward, back) for name, forward, back in table()}
    for phase, cell in zip(("forward", "backward_input"), cells["`rotary`"], strict=True):
        assert counted(report, "it", phase, SIZE) == steps(cell) == {"mac": 2}


def test_every_function_is_written_out():
    assert {name.strip("`") for name, *_ in table()} >= set(get_args(Function))


def optimizers():
    """Lines of the block of optimizers, by the name that begins each."""
    (block,) = re.findall(r"\*Optimizers\*.*\n\n((?:    .*\n)+)", TEXT)
    return dict(re.findall(r"^    (\w+) +(.*\n(?:     .*\n)*)", block, re.MULTILINE))


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_optimizers_take_the_operations_that_are_written_out(name):
    shape = (2, 3, 3)
    layer = {"name": "fc", "kind": "linear", "features": 5}
    accounting = replaced(FULL, "extras.optimizer", name)
    report = reported(layer, shape=shape, accounting=accounting)
    assert counted(report, "fc", "update", 5 * prod(shape)) == steps(optimizers()[name])
