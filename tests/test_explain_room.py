"""What `explain` says is left of memories beside what stays there, by tensors counted by hand."""

import re

import pytest

from hwmodel import evaluate
from hwmodel.views.explain.explanation import explanation
from tests.specs import CHIP, NETWORK, written
from tests.test_explain import parts

# One after the other: 8 x 16, 16 x 16 and 16 x 4 weights.
CHAIN = """\
version: 1
name: net
title: t
input: [8, 1, 1]
layers:
  - {name: one, kind: linear, features: 16}
  - {name: two, kind: linear, features: 16}
  - {name: three, kind: linear, features: 4}
"""
# The map of `one` waits for the sum while `three` runs, which does not read it.
SKIP = """\
version: 1
name: net
title: t
input: [2, 8, 8]
layers:
  - {name: one, kind: conv, channels: 4, kernel: 3, padding: 1}
  - {name: two, kind: conv, channels: 4, kernel: 3, padding: 1}
  - {name: three, kind: conv, channels: 4, kernel: 3, padding: 1}
  - {name: sum, kind: add, inputs: [three, one]}
"""
IN_CHAIN = 32 * (8 * 16 + 16 * 16 + 16 * 4)  # bits of weights, which stay from run to run
IN_SKIP = 32 * 9 * (2 * 4 + 4 * 4 + 4 * 4)
MAP = 32 * 16, 32 * 4 * 8 * 8  # bits of a map of each
LEFT = re.compile(
    r"- Of the ([\d,]+) bit of (\w+) ([\d,]+) are taken by what stays there in this step: "
    r"([\d,]+) are left for tiles"
)
TAKEN = re.compile(r"- (\w+) is taken up, .*?([\d,]+)` bit, of [\d,]+")


def left_in(text):
    """What an explanation says is left, by pass: memory, capacity, taken and left [bit]."""
    found = {}
    for title, _, lines in parts(text):
        for match in filter(None, map(LEFT.fullmatch, lines)):
            capacity, memory, taken, left = match.groups()
            numbers = (int(x.replace(",", "")) for x in (capacity, taken, left))
            found.setdefault(title, []).append((memory, *numbers))
    return found


@pytest.mark.parametrize(
    ("network", "size", "taken"),
    [
        # Maps live from the layer that writes them to the last that reads them, both ends included.
        (CHAIN, 64, {"one": IN_CHAIN + MAP[0], "two": IN_CHAIN + 2 * MAP[0], "three": IN_CHAIN + MAP[0]}),
        # Of 32,768 bit 4,864 are left to `two` and to `three`.
        (SKIP, 4, {"one": IN_SKIP + MAP[1], "two": IN_SKIP + 2 * MAP[1], "three": IN_SKIP + 2 * MAP[1]}),
    ],
    ids=["chain", "skip"],
)  # fmt: skip
def test_an_explanation_says_what_stays_leave_of_a_memory(tmp_path, network, size, taken):
    """Inference, 32 bit: all weights and all maps but the network's input and output stay."""
    net = written(tmp_path, network, name="net.yaml")
    small = written(tmp_path, CHIP, ("capacity: 64 KiB", f"capacity: {size} KiB"))
    found = evaluate(net, small, "fp", accounting="chip", mode="inference")
    bits = size * 8 * 1024
    for layer, used in taken.items():
        said = left_in(explanation(found, layer))
        assert said == {"forward: tiling": [("SRAM", bits, used, bits - used)]}
    without = evaluate(net, small, "fp", accounting="full", mode="inference")
    assert "left for tiles" not in explanation(without, "two")


# One more memory, above SRAM.
LEVEL = "  - {level: 2, name: L2, capacity: 64 KiB, access_energy: 9 pJ/B, source: me}\n"
BEFORE = "  - {level: 1, name: SRAM"
TWO = ("level: 2, name: DRAM", "level: 3, name: DRAM"), (BEFORE, LEVEL + BEFORE)


def test_nothing_is_said_of_a_memory_with_all_of_its_room_or_without_end(tmp_path):
    """All that stays has room in SRAM, which is cheaper than L2."""
    net = written(tmp_path, CHAIN, name="net.yaml")

    def said(*changes):
        run = evaluate(
            net, written(tmp_path, CHIP, *changes), "fp", accounting="chip", mode="inference"
        )
        assert {run.residency.levels[item.level] for item in run.residency.items} == {"SRAM"}
        return left_in(explanation(run, "two"))

    whole, taken = 64 * 8 * 1024, IN_CHAIN + 2 * MAP[0]
    assert said(*TWO) == {"forward: tiling": [("SRAM", whole, taken, whole - taken)]}
    assert said(("SRAM, capacity: 64 KiB", "SRAM, capacity: unlimited")) == {}


def test_what_is_left_is_the_capacity_without_every_tensor_that_lives_in_the_step(tmp_path):
    """Two memories, and a way back: in each step the tensors are added up that live there."""
    net = written(tmp_path, NETWORK, name="net.yaml")
    small = (
        ("L2, capacity: 64 KiB", "L2, capacity: 16 KiB"),
        ("SRAM, capacity: 64", "SRAM, capacity: 8"),
    )
    chip = written(tmp_path, CHIP, *TWO, *small)
    found = evaluate(net, chip, "fp", accounting="chip", batch=2)
    capacities = {"L2": 16 * 8 * 1024, "SRAM": 8 * 8 * 1024}
    memories = dict(zip(capacities, found.residency.levels, strict=True))
    met = set()
    for task, _ in found.tilings:
        wanted = []
        for name, bits in capacities.items():
            living = {
                item.name: item.bits
                for item in found.residency.items
                if item.level == memories[name] and item.first <= task.at.step <= item.last
            }
            taken = sum(living.values())
            wanted += [(name, bits, taken, bits - taken)] * (taken > 0)
        pass_ = str(task.work.pass_)
        text = explanation(found, task.layer, pass_)
        assert left_in(text).get(f"{pass_}: tiling", []) == wanted
        left = {name: bits for name, _, _, bits in wanted}
        for name, used in TAKEN.findall(text):  # by tiles, which have that room
            assert int(used.replace(",", "")) <= left.get(name, 2**13)  # that of RF
        met.add(tuple(wanted))
    assert len(met) > 3 and all(len(wanted) == 2 for wanted in met)  # else it is hardly a test


# The input is read by three layers in turn, and comes from outside once.
FAN = """\
version: 1
name: net
title: t
input: [16, 16, 16]
layers:
  - {name: a, kind: conv, channels: 1, kernel: 1, bias: false, inputs: [input]}
  - {name: b, kind: conv, channels: 1, kernel: 1, bias: false, inputs: [input]}
  - {name: c, kind: conv, channels: 1, kernel: 1, bias: false, inputs: [input]}
  - {name: sum, kind: add, inputs: [a, b, c]}
"""


def test_a_stay_that_begins_where_another_ends_brings_nothing_from_outside(tmp_path):
    net = written(tmp_path, FAN, name="net.yaml")
    found = evaluate(net, written(tmp_path, CHIP), "fp", accounting="chip", mode="inference")
    lines = {
        layer: [
            line for line in explanation(found, layer).splitlines() if line.startswith("- a:input")
        ]
        for layer in "abc"
    }
    assert ["once outside" in " ".join(lines[layer]) for layer in "abc"] == [True, False, False]
    assert "where the stay before leaves it" in " ".join(lines["b"])
