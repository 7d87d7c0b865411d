"""Time: steps by hand, Eyeriss' measured layers between both bounds, and GPUs' images a second."""

import csv
import os
from math import inf
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hwmodel import SpecError, evaluate
from hwmodel.graph.network import Network
from hwmodel.model.duration import MACS, Demand, demands, duration
from hwmodel.model.ledger import Component, entry
from hwmodel.model.prices import Key
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import leaves, replaced, replaced_all
from hwmodel.work.tensor import Direction, Factor, Pass, Role
from tests.test_memory import CHAIN

DATA = Path(__file__).parent / "data"
TARGETS = YAML(typ="safe").load(DATA / "schedule_targets.yaml")["time"]
MHZ = 1e6


def chip(**changes):
    """DRAM of 8 pJ and 100 B/s, SRAM of 1 pJ; 2 MACs a cycle of 10 Hz at 32 bit, 8 at 16 bit."""
    document = {
        "version": 1, "name": "toy", "title": "t", "energy_unit": "pJ",
        "sources": {"made-up": "here"}, "clock": "10 Hz", "macs_per_cycle": {32: 2, 16: 8},
        "levels": [
            {"level": 1, "name": "DRAM", "capacity": "unlimited", "access_energy": "8 pJ/bit",
             "bandwidth": "100 B/s", "source": "made-up"},
            {"level": 0, "name": "SRAM", "capacity": "1 MiB", "access_energy": "1 pJ/bit",
             "source": "made-up"},
        ],
        "arithmetic": [{"operation": "mac", "bits": 32, "energy": "4.6 pJ", "source": "made-up"}],
    }  # fmt: skip
    document |= changes
    document = {field: value for field, value in document.items() if value is not None}
    return validate(Hardware, document, "toy")


def one(step, direction, name, count, bits=0, component=Component.PRODUCT):
    """An entry of a step: `count` elements of 8 bit moved, or operations."""
    key = Key(direction, name, bits if direction == "operate" else 0)
    width = bits if direction == "operate" else 8
    what = "x", Pass.FORWARD, component, "O", Role.OPERAND
    return entry(*what, key, width, (Factor("n", count),), step)


READ, WRITE, OPERATE = Direction.READ, Direction.WRITE, Direction.OPERATE


def test_two_steps_by_hand():
    """40 MACs at 20 a second: 2 s, beside 50 B at 100 B/s; then an operator with 300 B alone."""
    entries = [
        one(0, OPERATE, "mac", 40, 32), one(0, READ, "DRAM", 30), one(0, WRITE, "DRAM", 20),
        one(0, READ, "SRAM", 10**6),  # which states no bandwidth
        one(1, READ, "DRAM", 100, component=Component.ELEMENTWISE),
        one(1, WRITE, "DRAM", 200, component=Component.ELEMENTWISE),
        one(1, OPERATE, "mac", 10**6, 32, Component.ELEMENTWISE),  # beside the MACs' time
    ]  # fmt: skip
    found = duration(demands(entries), chip(static_power="2 W"), 3, 5e12)
    assert [(s.overlapped, s.serial, s.bound) for s in found.steps] == [
        (2.0, 2.5, MACS), (3.0, 3.0, "DRAM")
    ]  # fmt: skip
    assert (found.overlapped, found.serial, found.busy) == (5.0, 5.5, 0.4)
    assert found.bounds == {MACS: 0.4, "DRAM": 0.6}
    # 5 J and 2 W: 15 J in 5 s
    assert (found.energy(5.0), found.power) == (15.0, 3.0)
    assert found.energy(5.5) == 16.0


def test_a_step_takes_a_cycle_at_least():
    """A MAC of 2 a cycle of 0.1 s; a byte of 10 a cycle; a step that asks for nothing takes none."""
    entries = [
        one(0, OPERATE, "mac", 1, 32), one(0, READ, "DRAM", 1),
        one(1, READ, "DRAM", 1, component=Component.ELEMENTWISE),
        one(2, OPERATE, "mac", 1, 32, Component.ELEMENTWISE),
        one(3, OPERATE, "mac", 3, 32), one(3, READ, "DRAM", 1),
    ]  # fmt: skip
    found = duration(demands(entries), chip(), 1, 0.6e12)
    assert [s.overlapped for s in found.steps] == pytest.approx([0.1, 0.1, 0.0, 0.15])
    assert [s.serial for s in found.steps] == pytest.approx([0.1, 0.1, 0.0, 0.16])
    assert [s.bound for s in found.steps] == [MACS, "DRAM", MACS, MACS]
    assert found.power == pytest.approx(0.6 / 0.35)


@pytest.mark.parametrize(
    ("operations", "seconds"),
    [
        ([("mac", 16, 80)], 80 / 8 / 10),
        ([("mac", 8, 80)], 80 / 8 / 10),  # of the next wider rate
        ([("mac", 20, 80)], 80 / 2 / 10),
        ([("int-mul", 8, 80), ("int-add", 25, 80)], 80 / 8 / 10),  # one multiply-accumulate
        ([("int-add", 25, 80)], 80 / 2 / 10),  # signed additions alone
        ([("mac", 16, 80), ("mac", 32, 80)], 1.0 + 4.0),
        ([("logic", 1, 80)], 80 / 40 / 10),
    ],
)
def test_products_by_width(operations, seconds):
    entries = [one(0, OPERATE, kind, n, bits) for kind, bits, n in operations]
    asked = demands([*entries, one(0, READ, "DRAM", 1)])
    found = duration(asked, chip(operations_per_cycle={"logic": 40}), 1, 0.0)
    assert found.steps[0].compute == pytest.approx(seconds)


def test_a_port_for_each_way_works_beside_the_other():
    levels = chip().model_dump(exclude_unset=True)["levels"]
    assert levels
    both = replaced_all(chip(), {"levels.DRAM.bandwidth": "100 B/s"})
    asked = {0: Demand({"DRAM": 800}, {"DRAM": 1600}, {}, 0, 0)}
    assert duration(asked, both, 1, 0.0).overlapped == 3.0
    document = {
        "level": 1, "name": "DRAM", "capacity": "unlimited", "access_energy": "8 pJ/bit",
        "read_bandwidth": "100 B/s", "write_bandwidth": "50 B/s", "source": "made-up",
    }  # fmt: skip
    inner = {"level": 0, "name": "SRAM", "capacity": "1 MiB", "access_energy": "1 pJ/bit",
             "source": "made-up"}  # fmt: skip
    each = chip(levels=[document, inner])
    found = duration(asked, each, 1, 0.0)
    assert (found.overlapped, found.serial) == (4.0, 5.0)


def test_memories_side_by_side_share_what_is_asked_of_them():
    inner = {"level": 0, "name": "SRAM", "capacity": "1 MiB", "access_energy": "1 pJ/bit",
             "bandwidth": "10 B/s", "fanout": 4, "source": "made-up"}  # fmt: skip
    outer = {"level": 1, "name": "DRAM", "capacity": "unlimited", "access_energy": "8 pJ/bit",
             "bandwidth": "100 B/s", "source": "made-up"}  # fmt: skip
    asked = {0: Demand({"SRAM": 8 * 80}, {}, {}, 0, 0)}
    assert duration(asked, chip(levels=[outer, inner]), 1, 0.0).overlapped == 2.0


def eyeriss():
    text = (DATA / "eyeriss_jssc17_alexnet.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in text if not line.startswith("#")))
    return {row["layer"]: row for row in rows if row["layer"] != "total"}


# Multiply-accumulates of an image by hand: outputs times taps times channels of a group.
ALEXNET = {
    "conv1": 96 * 55 * 55 * 3 * 11 * 11, "conv2": 256 * 27 * 27 * 48 * 5 * 5,
    "conv3": 384 * 13 * 13 * 256 * 9, "conv4": 384 * 13 * 13 * 192 * 9,
    "conv5": 256 * 13 * 13 * 192 * 9,
}  # fmt: skip


def test_eyeriss_s_five_latencies_lie_between_the_bounds():
    """Published MACs, active PEs and DRAM bytes; 200 MHz, and 8 byte in a cycle of 60 MHz."""
    total = [0.0, 0.0, 0.0]
    for layer, row in eyeriss().items():
        toy = chip(clock="200 MHz", macs_per_cycle={16: int(row["active_pes"])})
        toy = replaced(toy, "levels.DRAM.bandwidth", "480 MB/s")
        macs, moved = 4 * ALEXNET[layer], round(float(row["dram_MB"]) * 1e6)
        assert macs / 1e9 == pytest.approx(float(row["gmacs_batch"]), abs=0.005)
        entries = [one(0, OPERATE, "mac", macs, 16), one(0, READ, "DRAM", moved)]
        found = duration(demands(entries), toy, 4, 0.0)
        published = float(row["processing_latency_ms"]) / 1e3
        assert found.overlapped <= published <= found.serial
        for i, time in enumerate((found.overlapped, published, found.serial)):
            total[i] += 1e3 * time
    assert total == [
        pytest.approx(90.0, abs=0.1),
        pytest.approx(103.5),
        pytest.approx(122.1, abs=0.1),
    ]


@pytest.mark.skipif(
    os.environ.get("HWMODEL_TESTS") != "thorough", reason="searches ResNet-50 at batch 256"
)
@pytest.mark.parametrize(
    ("row", "method"),
    list(zip(TARGETS["resnet50_training_images_per_s"], ("fp", "fp16"), strict=True)),
)
def test_a_v100_s_images_a_second(row, method):
    """The prototype's bounds of the published trainings, whose time is longer than both."""
    asked = {"counting.stationary": "filter", "counting.transfers": "upper"}
    accounting = replaced_all(load(Accounting, "full"), asked)
    flops = {32: 15.7e12, 16: 125e12}
    v100 = replaced_all(load(Hardware, "v100"), {
        "clock": "1530 MHz", "levels.DRAM.bandwidth": "900 GB/s",
        "macs_per_cycle": {bits: rate / 2 / 1530e6 for bits, rate in flops.items()},
    })  # fmt: skip
    found = evaluate("resnet50", v100, method, accounting=accounting, batch=256).time
    assert 256 / found.overlapped == pytest.approx(row["streamed_overlapped"], rel=2e-3)
    assert 256 / found.serial == pytest.approx(row["streamed_serial"], rel=2e-3)
    assert 256 / found.serial > row["published"]


def test_a_report_s_time_is_that_of_its_own_entries():
    """The chain of two layers: bytes of each step as the ledger has them, MACs by hand."""
    timed = chip(levels=[{"level": 1, "name": "DRAM", "capacity": "unlimited",
                          "access_energy": "8 pJ/bit", "bandwidth": "100 B/s", "source": "made-up"},
                         {"level": 0, "name": "SRAM", "capacity": "1 MiB",
                          "access_energy": "1 pJ/bit", "source": "made-up"}])  # fmt: skip
    report = evaluate(
        validate(Network, CHAIN, "net"), timed, "fp", mode="inference", accounting="full"
    )
    found = report.time
    names = [str(report.memory.steps[step.step]) for step in found.steps]
    assert names == ["forward of conv", "forward of act", "forward of fc"]
    words = [32 + 6 + 48, 48 + 48, 48 + 240 + 5]
    assert [step.memories["DRAM"] for step in found.steps] == [4 * n / 100 for n in words]
    macs = [3 * 2 * 16, 0, 48 * 5]
    assert [step.compute for step in found.steps] == [n / 2 / 10 for n in macs]
    assert found.energy(0.0) == pytest.approx(report.energy * 1e-12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clock": None}, "a time needs a clock"),
        ({"macs_per_cycle": None}, "a time needs macs_per_cycle or an array"),
        ({"clock": None, "macs_per_cycle": None}, "a time needs a clock, and macs_per_cycle or"),
    ],
)
def test_what_a_time_needs_is_told(changes, said):
    report = evaluate(
        validate(Network, CHAIN, "net"), chip(**changes), "fp", mode="inference", accounting="full"
    )
    with pytest.raises(SpecError) as refused:
        assert report.time
    assert said in str(refused.value)


def test_no_rate_is_guessed():
    net = validate(Network, CHAIN, "net")
    narrow = chip(macs_per_cycle={16: 8})
    with pytest.raises(SpecError, match="macs_per_cycle has no rate for 32-bit products"):
        assert evaluate(net, narrow, "fp", mode="inference", accounting="full").time
    middle = {"name": "mid", "kind": "conv", "channels": 3, "kernel": 1}
    layers = [
        *CHAIN["layers"][:2],
        middle,
        {"name": "act2", "kind": "activation"},
        *CHAIN["layers"][2:],
    ]
    boolean = validate(Network, CHAIN | {"layers": layers}, "net")
    with pytest.raises(SpecError, match="Boolean products need operations_per_cycle"):
        assert evaluate(boolean, chip(), "bold", mode="inference", accounting="full").time
    report = evaluate(
        boolean,
        chip(operations_per_cycle={"logic": 10}),
        "bold",
        mode="inference",
        accounting="full",
    )
    assert 0 < report.time.overlapped < inf


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"macs_per_cycle": {32: 0}}, "macs_per_cycle.32 0: must be above 0"),
        ({"macs_per_cycle": {}}, "names no width"),
        ({"macs_per_cycle": {"wide": 2}}, "widths are whole numbers of bits"),
        ({"macs_per_cycle": {32: 2}, "array": {}}, "is what the array says already"),
        ({"operations_per_cycle": {"xor": 2}}, "operations_per_cycle"),
        ({"static_power": "1 W", "macs_per_cycle": None}, "is paid in each cycle of an array"),
        ({"static_power": "-1 W"}, "must be from"),
        ({"clock": "0 Hz"}, "must be from"),
    ],
)
def test_rates_that_cannot_be_are_refused(changes, said):
    with pytest.raises(SpecError) as refused:
        chip(**changes)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("bandwidth", "0 B/s", "must be from"), ("bandwidth", 900, "has no unit"),
        ("bandwidth", "900 GBps", "is no bandwidth"),
        ("read_bandwidth", "1 GB/s", "give bandwidth, of both ways together"),
    ],
)  # fmt: skip
def test_bandwidths_that_cannot_be_are_refused(field, value, said):
    level = {"level": 1, "name": "DRAM", "capacity": "unlimited", "access_energy": "8 pJ/bit",
             "source": "made-up", field: value}  # fmt: skip
    inner = {"level": 0, "name": "SRAM", "capacity": "1 MiB", "access_energy": "1 pJ/bit",
             "source": "made-up"}  # fmt: skip
    with pytest.raises(SpecError) as refused:
        chip(levels=[level, inner])
    assert said in str(refused.value)


def test_rates_are_fields_that_can_be_moved():
    found = {leaf.path: (leaf.value, leaf.unit) for leaf in leaves(chip())}
    assert found["levels.DRAM.bandwidth"] == (100.0, "B/s")
    assert found["clock"] == (10.0, "Hz") and found["macs_per_cycle.32"] == (2, "")
    moved = replaced_all(chip(), {"levels.DRAM.bandwidth": 50.0, "macs_per_cycle.32": 4})
    assert moved.levels[0].rates == (50.0, 50.0) and moved.macs_per_cycle == {32: 4, 16: 8}


def test_the_command_prints_both_bounds(hwmodel, tmp_path):
    (tmp_path / "net.yaml").write_text(str(CHAIN).replace("'", '"'))
    text = """
version: 1
name: toy
title: t
energy_unit: pJ
sources: {made-up: here}
clock: 10 Hz
macs_per_cycle: {32: 2}
levels:
  - {level: 1, name: DRAM, capacity: unlimited, access_energy: 8 pJ/bit, bandwidth: 100 B/s, source: made-up}
  - {level: 0, name: SRAM, capacity: 1 MiB, access_energy: 1 pJ/bit, source: made-up}
arithmetic: [{operation: mac, bits: 32, energy: 4.6 pJ, source: made-up}]
"""
    (tmp_path / "toy.yaml").write_text(text)
    asked = ("report", "net.yaml", "--hardware", "toy.yaml", "--mode", "inference",
             "--accounting", "full")  # fmt: skip
    code, out, err = hwmodel(*asked, "--method", "fp")
    assert code == 0, err
    # conv 4.8 s of MACs and 3.44 of DRAM, act 3.84 of DRAM, fc 12 and 11.72: 20.64 and 35.8 s
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert rows["time,"][-2:] == ["2.064e+04", "3.58e+04"]
    assert "steps wait for MACs 81.4 %, DRAM 18.6 % of the time" in " ".join(out.split())
    assert "What moves in SRAM takes no time, for no bandwidth is stated there" in " ".join(
        out.split()
    )
    code, out, err = hwmodel(*asked, "--method", "bold")
    assert code == 0


TOY = """
version: 1
name: toy
title: t
energy_unit: pJ
sources: {made-up: here}
clock: 10 Hz
macs_per_cycle: {32: 2}
static_power: 3 W
levels:
  - {level: 1, name: DRAM, capacity: unlimited, access_energy: 8 pJ/bit, bandwidth: 100 B/s, source: made-up}
  - {level: 0, name: SRAM, capacity: 1 MiB, access_energy: 1 pJ/bit, source: made-up}
arithmetic: [{operation: mac, bits: 32, energy: 4.6 pJ, source: made-up}]
"""


def test_static_energy_that_a_time_counts_is_not_called_uncounted(hwmodel, tmp_path):
    (tmp_path / "net.yaml").write_text(str(CHAIN).replace("'", '"'))
    (tmp_path / "toy.yaml").write_text(TOY)
    asked = (
        "report",
        "net.yaml",
        "--hardware",
        "toy.yaml",
        "--mode",
        "inference",
        "--method",
        "fp",
    )
    out = " ".join(hwmodel(*asked, "--accounting", "full")[1].split())
    assert "energy, static over all the time, mJ" in out
    said = "static energy (beside times alone)"
    assert said in out
    (tmp_path / "toy.yaml").write_text(TOY.replace("static_power: 3 W\n", ""))
    assert said not in " ".join(hwmodel(*asked, "--accounting", "full")[1].split())


def test_compare_and_sweeps_have_a_report_s_times_and_peak(hwmodel, tmp_path):
    """The chain in inference, by hand: 20.64 and 35.8 s, 3 W; 743 words at the last step but one."""
    (tmp_path / "net.yaml").write_text(str(CHAIN).replace("'", '"'))
    (tmp_path / "toy.yaml").write_text(TOY)
    asked = "net.yaml", "--hardware", "toy.yaml", "--mode", "inference", "--accounting", "full"
    code, out, err = hwmodel("compare", *asked, "--methods", "fp", "--csv", "-")
    assert code == 0, err
    (row,) = csv.DictReader(out.splitlines())
    assert float(row["time_overlapped_s"]) == pytest.approx(20.64)
    assert float(row["time_serial_s"]) == pytest.approx(35.8)
    joules = float(row["energy"]) * 1e-12 + 3 * 20.64
    assert float(row["power_w"]) == pytest.approx(joules / 20.64)
    assert float(row["edp_js"]) == pytest.approx(joules * 20.64)
    assert int(row["peak_bytes"]) == 4 * (246 + 48 + 48)
    sweep = """
version: 1
name: s
title: t
network: net.yaml
hardware: toy.yaml
method: fp
accounting: full
mode: inference
axes: [{hardware.levels.DRAM.bandwidth: [100 B/s, 10 B/s], hardware.clock: [10 Hz, 20 Hz]}]
"""
    (tmp_path / "s.yaml").write_text(sweep)
    code, _, err = hwmodel("sweep", "s.yaml", "--out", "s.csv", "--jobs", "1")
    assert code == 0, err
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    for name in ("peak_bytes", "time_overlapped_s", "time_serial_s", "power_w", "edp_js"):
        assert float(rows[0][name]) == pytest.approx(float(row[name]), rel=1e-12)
    # 34.4 s, 38.4 s and 117.2 s of DRAM; 2.4 and 6 s of MACs
    assert float(rows[1]["time_overlapped_s"]) == pytest.approx(34.4 + 38.4 + 117.2)
    assert float(rows[1]["time_serial_s"]) == pytest.approx(34.4 + 38.4 + 117.2 + 2.4 + 6)
    short = {"time": "time_overlapped_s", "edp": "edp_js", "peak": "peak_bytes", "energy": "energy"}
    for by, column in short.items():
        code, out, _ = hwmodel("best", "s.csv", "--by", by, "--top", "1", "--csv", "-")
        least = min(rows, key=lambda row, of=column: (float(row[of]), int(row["point"])))
        assert code == 0 and out.splitlines()[1].startswith(f"{least['point']},")
    code, _, err = hwmodel("best", "s.csv", "--where", "time <= 100 and peak < 1 KiB")
    assert code == 2 and "no row has an energy and keeps" in err
    assert hwmodel("best", "s.csv", "--where", "time <= 200 and peak < 1 MiB")[0] == 0
    assert hwmodel("verify", "s.csv")[0] == 0


def test_a_chip_without_rates_has_a_peak_alone(hwmodel, tmp_path):
    (tmp_path / "net.yaml").write_text(str(CHAIN).replace("'", '"'))
    _, out, _ = hwmodel(
        "compare", "net.yaml", "--hardware", "ascend", "--methods", "fp",
        "--accounting", "full", "--csv", "-",
    )  # fmt: skip
    (row,) = csv.DictReader(out.splitlines())
    assert row["time_overlapped_s"] == row["edp_js"] == ""
    assert int(row["peak_bytes"]) == 4 * (416 + 3 * 246)  # test_memory has it by hand
