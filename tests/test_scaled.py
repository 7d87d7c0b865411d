"""An SRAM's price by its capacity: by hand, against CACTI's results, and what is refused."""

import csv
import json
from itertools import product
from math import log
from pathlib import Path

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.model.duration import Demand, duration
from hwmodel.specs.files import load, validate
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.scaled import NODES, at_capacity
from hwmodel.specs.stated import Energy
from hwmodel.vary.paths import leaves, replaced, replaced_all

KIB = 8 * 2**10
HOROWITZ = {"8 KiB": "10 pJ/64bit", "32 KiB": "20 pJ/64bit", "1 MiB": "100 pJ/64bit"}
CHIP = {
    "version": 1, "name": "toy", "title": "t", "energy_unit": "pJ", "sources": {"made-up": "here"},
    "levels": [
        {"level": 1, "name": "DRAM", "capacity": "unlimited", "access_energy": "50 pJ/B",
         "source": "made-up"},
        {"level": 0, "name": "L2", "capacity": "256 KiB",
         "energy": {"scale": "sram", "at": HOROWITZ}, "source": "made-up"},
    ],
    "arithmetic": [{"operation": "mac", "bits": 32, "energy": "4.6 pJ", "source": "made-up"}],
}  # fmt: skip


def chip(**changes):
    document = json.loads(json.dumps(CHIP))
    document["levels"][1] |= changes
    document["levels"][1] = {k: v for k, v in document["levels"][1].items() if v is not None}
    return validate(Hardware, document, "toy")


def per_access(energy):
    return energy * 64


@pytest.mark.parametrize(
    ("capacity", "energy"),
    [  # of 64 bit [pJ]
        ("256 KiB", 20 * 8 ** (log(5) / log(32))),  # 52.5, with the exponent 0.464
        ("32 KiB", 20.0), ("8 KiB", 10.0), ("1 MiB", 100.0),
        ("16 KiB", 10 * 2**0.5),  # the exponent of the first two points is 1/2
        ("2 KiB", 5.0),  # carried on by a factor of four
        ("4 MiB", 100 * 4 ** (log(5) / log(32))),
    ],
)  # fmt: skip
def test_horowitz_s_points_by_hand(capacity, energy):
    memory = chip(capacity=capacity).memory("L2")
    assert per_access(memory.read_energy_per_bit) == pytest.approx(energy, rel=1e-12)
    assert memory.read_energy_per_bit == memory.write_energy_per_bit
    moved = replaced(chip(), "levels.L2.capacity", capacity).memory("L2")
    assert moved.read_energy_per_bit == memory.read_energy_per_bit
    if capacity == "256 KiB":
        assert energy == pytest.approx(52.5, abs=0.05)


def cacti():
    """Energy of an access [pJ per bit] by width of the port and capacity [KiB]."""
    text = (Path(__file__).parent / "data" / "sram_cacti_mnsim.csv").read_text().splitlines()[1:]
    found = {}
    for row in csv.DictReader(text):
        found.setdefault(int(row["width_bit"]), {})[int(row["size_KiB"])] = float(row["pJ_per_bit"])
    return found


def test_cacti_s_results_between_the_points_within_13_percent():
    worst = 0.0
    for by_size in cacti().values():
        points = {f"{size} KiB": Energy(by_size[size], "pJ") for size in (8, 64, 512)}
        for size in (16, 32, 128, 256):
            ours = at_capacity(points, size * KIB).value
            worst = max(worst, abs(ours / by_size[size] - 1))
    assert 0.10 < worst < 0.13


def test_reading_and_writing_may_have_points_of_their_own():
    each = {
        "scale": "sram",
        "read": HOROWITZ,
        "write": {"8 KiB": "40 pJ/64bit", "8 MiB": "40 pJ/64bit"},
    }
    memory = chip(energy=each).memory("L2")
    assert per_access(memory.read_energy_per_bit) == pytest.approx(52.53, abs=0.01)
    assert per_access(memory.write_energy_per_bit) == 40


def test_a_path_to_the_energy_replaces_the_points():
    found = {leaf.path: leaf for leaf in leaves(chip())}
    assert per_access(found["levels.L2.access_energy"].value) == pytest.approx(52.53, abs=0.01)
    flat = replaced(chip(), "levels.L2.access_energy", "1 pJ/bit")
    assert flat.memory("L2").energy is None
    both = replaced_all(flat, {"levels.L2.capacity": "1 MiB"})
    assert both.memory("L2").read_energy_per_bit == 1.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"energy": {"scale": "sram", "at": {"8 KiB": "1 pJ/B"}}}, "give two points or more"),
        ({"energy": {"scale": "sram", "at": {"8 KiB": "1 pJ/B", "8192 B": "2 pJ/B"}}},
         "8192 B: capacities must rise from point to point"),
        ({"energy": {"scale": "sram", "at": {"8 KiB": "2 pJ/B", "1 MiB": "1 pJ/B"}}},
         "1 MiB: its price is below that of a smaller capacity"),
        ({"energy": {"scale": "sram", "at": {"8 KiB": "0 pJ/B", "1 MiB": "1 pJ/B"}}}, "must be above 0"),
        ({"energy": {"scale": "sram", "at": {"8": "1 pJ/B", "1 MiB": "1 pJ/B"}}}, "is no size"),
        ({"energy": {"scale": "sram", "at": HOROWITZ, "read": HOROWITZ}}, "points as at, or as read"),
        ({"energy": {"scale": "sram"}}, "points as at, or as read and write"),
        ({"energy": {"scale": "sram", "read": HOROWITZ}}, "points as at, or as read and write"),
        ({"capacity": "unlimited"}, "is scaled by the capacity, which is unlimited"),
        ({"capacity": "2047 B"}, "has points from 8 KiB to 1 MiB, which go for a quarter"),
        ({"capacity": "4097 KiB"}, "has points from 8 KiB to 1 MiB, which go for a quarter"),
        ({"access_energy": "1 pJ/bit"}, "here: access_energy, energy"),
        ({"energy": None}, "here: none of them"),
        ({"energy": {"scale": "sram", "at": {"8 KiB": "1 MAC/B", "1 MiB": "1 MAC/B"}}},
         "is in MAC, but energy_unit is pJ"),
        ({"energy": {"scale": "sram", "at": {"8 KiB": "1 pJ/B", "1 MiB": "1 MAC/B"}}},
         "1 MiB: its price is in another unit"),
    ],
)  # fmt: skip
def test_what_is_no_scale_is_refused(changes, said):
    with pytest.raises(SpecError) as refused:
        chip(**changes)
    assert said in str(refused.value)


def test_a_sweep_of_capacities_costs_what_each_chip_does_alone(hwmodel, tmp_path):
    (tmp_path / "toy.yaml").write_text(json.dumps(CHIP))
    sizes = ["128 KiB", "256 KiB", "1 MiB"]
    sweep = {"version": 1, "name": "s", "title": "t", "network": "mlp-784-512-512-10",
             "hardware": "toy.yaml", "method": "fp16", "accounting": "full",
             "axes": [{"hardware.levels.L2.capacity": sizes}]}  # fmt: skip
    (tmp_path / "s.yaml").write_text(json.dumps(sweep))
    code, _, err = hwmodel("sweep", "s.yaml", "--out", "s.csv", "--jobs", "1")
    assert code == 0 and "same at every capacity" not in err
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    for row, size in zip(rows, sizes, strict=True):
        alone = evaluate(
            "mlp-784-512-512-10", chip(capacity=size), "fp16", accounting="full"
        ).energy  # each at its own price
        assert float(row["energy"]) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(("flat", "axis"), list(product((True, False), ("alone", "both"))))
def test_a_capacity_without_a_price_of_its_own_is_told(hwmodel, tmp_path, flat, axis):
    document = json.loads(json.dumps(CHIP))
    if flat:
        del document["levels"][1]["energy"]
        document["levels"][1]["access_energy"] = "1 pJ/bit"
    (tmp_path / "toy.yaml").write_text(json.dumps(document))
    own = {"hardware.levels.L2.capacity": ["64 KiB", "128 KiB"]}
    if axis != "alone":
        own["hardware.levels.L2.access_energy"] = ["1 pJ/bit", "2 pJ/bit"]
    sweep = {"version": 1, "name": "s", "title": "t", "network": "vgg-small",
             "hardware": "toy.yaml", "method": "fp16", "axes": [own]}  # fmt: skip
    (tmp_path / "s.yaml").write_text(json.dumps(sweep))
    code, _, err = hwmodel("sweep", "s.yaml", "--dry-run")
    said = "hwmodel: warning: L2 of toy costs the same at every capacity: the largest will win"
    assert code == 0 and (said in err) == (flat and axis == "alone")


def test_bundled_chips_state_their_prices_as_before():
    assert load(Hardware, "ascend").memory("L2").energy is None


def test_a_bare_number_among_the_points_is_in_the_chip_s_unit_per_bit():
    """10 pJ/64bit is 0.15625 pJ of a bit."""
    bare = {"8 KiB": 0.15625, "1 MiB": "100 pJ/64bit"}
    stated = {"8 KiB": "10 pJ/64bit", "1 MiB": "100 pJ/64bit"}
    for capacity in ("8 KiB", "64 KiB", "1 MiB"):
        one, other = (
            chip(capacity=capacity, energy={"scale": "sram", "at": points}).memory("L2")
            for points in (bare, stated)
        )
        assert one.read_energy_per_bit == other.read_energy_per_bit
    with pytest.raises(SpecError, match="is in MAC, but energy_unit is pJ"):
        chip(energy={"scale": "sram", "at": {"8 KiB": 0.1, "1 MiB": "8 MAC/B"}})


CACTI7 = Path(__file__).parent / "data" / "sram_cacti7.csv"


@pytest.mark.parametrize("node", ["45nm", "22nm"])
def test_prices_of_a_node_are_those_of_cacti(node):
    """All capacities of CACTI's own table: exactly at the points that were taken, else near."""
    reads, writes = NODES[node]
    with CACTI7.open(encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(x for x in file if x[0] != "#") if r["node_nm"] in node]
    assert len(rows) == 14
    for row in rows:
        size = int(row["KiB"]) * KIB
        taken = row["KiB"] in ("1", "8", "64", "512", "8192")
        for points, column in ((reads, "read_pJ"), (writes, "write_pJ")):
            found, wanted = per_access(at_capacity(points, size).value), float(row[column])
            assert found == pytest.approx(wanted, rel=1e-12 if taken else 0.28), (
                row["KiB"],
                column,
            )


def test_a_node_stands_in_the_place_of_points():
    """By hand, 22 nm, 256 KiB between 64 and 512: 4.689 x 4^(log(12.562 / 4.689) / log 8)."""
    made = chip(energy={"scale": "sram", "node": "22nm"}, source="cacti")
    read, write = made.levels[1].energies
    power = log(12.562 / 4.689) / log(8)
    assert per_access(read.value) == pytest.approx(4.689 * 4**power)
    assert write.value < read.value and read.unit == "pJ"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"energy": {"scale": "sram", "node": "22nm"}}, "name cacti as source"),
        ({"energy": {"scale": "sram", "node": "7nm"}, "source": "cacti"}, "node"),
        ({"energy": {"scale": "sram", "node": "22nm", "at": HOROWITZ}, "source": "cacti"},
         "give points as at, or as read and write, or a node"),
        ({"energy": {"scale": "sram"}}, "give points as at, or as read and write, or a node"),
    ],
)  # fmt: skip
def test_a_node_is_never_silent(changes, said):
    with pytest.raises(SpecError) as refused:
        chip(**changes)
    assert said in str(refused.value)


POWERS = {"64 KiB": "40 mW", "256 KiB": "160 mW"}
TIMED = {"clock": "10 Hz", "macs_per_cycle": {32: 2}}


def leaking(powers=POWERS, capacity="256 KiB", memory=(), **of_chip):
    document = json.loads(json.dumps(CHIP)) | TIMED | of_chip
    document["levels"][0]["bandwidth"] = "100 B/s"
    document["levels"][1] |= {"capacity": capacity, "leakage": {"at": powers}, **dict(memory)}
    return validate(Hardware, {k: v for k, v in document.items() if v is not None}, "toy")


@pytest.mark.parametrize(
    ("capacity", "watts"),
    [("64 KiB", 0.04), ("128 KiB", 0.08), ("256 KiB", 0.16), ("1 MiB", 0.64), ("16 KiB", 0.01)],
)  # the exponent of both points is 1
def test_leakage_by_hand(capacity, watts):
    assert leaking(capacity=capacity).leakage == pytest.approx(watts, rel=1e-12)
    moved = replaced(leaking(), "levels.L2.capacity", capacity)
    assert moved.leakage == pytest.approx(watts, rel=1e-12)


def test_leakage_of_memories_side_by_side_beside_static_power_times_the_time():
    """Four of 160 mW and 2 W: 2.64 W. 5 s of it are 13.2 J beside 5 J that are moved."""
    found = leaking(memory={"fanout": 4}, static_power="2 W")
    assert found.static_watts == pytest.approx(2.64, rel=1e-12)
    asked = {0: Demand({"DRAM": 8 * 500}, {}, {}, 0, 0)}  # 500 B at 100 B/s
    time = duration(asked, found, 1, 5e12)
    assert time.overlapped == 5.0 and time.energy(5.0) == pytest.approx(18.2, rel=1e-12)
    assert time.power == pytest.approx(3.64, rel=1e-12)


def test_leakage_is_in_every_cycle_of_an_array():
    """160 mW / 10 Hz = 16 mJ a cycle; one point is of its own capacity."""
    found = leaking({"256 KiB": "160 mW"}, macs_per_cycle=None, array={})
    assert found.static_energy == pytest.approx(0.016 * 1e12, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"clock": None},
            "leakage: is an energy only with a clock, and an array or macs_per_cycle",
        ),
        ({"macs_per_cycle": None}, "leakage: is an energy only with a clock, and an array or"),
        ({"powers": {"64 KiB": "40 mW"}}, "leakage: has one point, which is of 64 KiB alone"),
        ({"powers": {"64 KiB": "40 mW", "32 KiB": "4 mW"}}, "capacities must rise"),
        ({"powers": {"64 KiB": "40 mW", "128 KiB": "4 mW"}}, "leaks less than a smaller capacity"),
        ({"powers": {"64 KiB": "40 pJ", "256 KiB": "41 mW"}}, "40 pJ"),
        ({"powers": {}}, "give a point or more"),
        ({"capacity": "8 MiB"}, "leakage: has points from 64 KiB to 256 KiB, which go for"),
        ({"capacity": "unlimited"}, "unlimited"),
    ],
)
def test_what_cannot_leak_is_refused(changes, said):
    with pytest.raises(SpecError) as caught:
        leaking(**({"memory": {"energy": None, "access_energy": "1 pJ/bit"}} | changes))
    assert said in str(caught.value)


def test_a_normalised_chip_leaks_nothing():
    macs = {"energy_unit": "MAC", "levels": [
        {"level": 1, "name": "DRAM", "capacity": "unlimited", "access_energy": 1, "source": "made-up"},
        {"level": 0, "name": "L2", "capacity": "256 KiB", "access_energy": 1, "source": "made-up",
         "leakage": {"at": POWERS}}],
        "arithmetic": [{"operation": "mac", "bits": 32, "energy": 1, "source": "made-up"}]}  # fmt: skip
    with pytest.raises(SpecError, match="is in W, but energy_unit is MAC"):
        validate(Hardware, CHIP | TIMED | macs, "toy")
