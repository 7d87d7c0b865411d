"""Chips with memories side by side and arrays: their files, what may not stand in them, drawn."""

import csv
import json
import os
import re
from pathlib import Path

import pytest

from hwmodel import HwmodelError, SpecError, evaluate
from hwmodel.errors import SpecWarning
from hwmodel.importers.load import load_network
from hwmodel.model.plans import all_tasks
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling.options import Bound, memories
from hwmodel.vary.counted import Counted
from hwmodel.vary.paths import replaced
from hwmodel.work.problem import Widths
from tests.specs import CHIP, written

RF = "{level: 0, name: RF, "
PES = "{level: 0, name: RF, fanout: 256, "
ARRAY = ("arithmetic:", "array: {}\narithmetic:")


def chip(folder, *changes):
    return load(Hardware, written(folder, CHIP, *changes))


def test_without_the_fields_a_chip_is_what_it_was(tmp_path):
    plain = memories(chip(tmp_path))
    assert not plain.spatial
    assert [x.fanout for x in plain.levels] == [1, 1, 1]


def test_a_fanout_of_axes(tmp_path):
    fields = (
        "fanout: {M: 12, positions: 14}, multicast: false, reduction: false, hop_energy: 2 pJ/B, "
    )
    places = memories(chip(tmp_path, (RF, RF + fields)))
    level = places.levels[2]
    assert level.fanout == 12 * 14
    assert level.axes == (Bound(("M",), 12), Bound(("N", "HO", "WO"), 14))
    assert (level.multicast, level.reduction, level.hop_energy_per_bit) == (False, False, 0.25)
    assert places.spatial


def test_macs_and_lanes(tmp_path):
    array = "array: {M: 16, C: 16, positions: 16, operand_bits: 16}\narithmetic:"
    places = memories(chip(tmp_path, ("arithmetic:", array)))
    assert places.macs(Widths(16, 16, 32)) == 16**3
    assert places.macs(Widths(8, 1, 32)) == 2 * 16**3
    assert places.macs(Widths(1, 1, 32)) == 16 * 16**3
    assert places.macs(Widths(32, 1, 32)) == 16**3


def test_static_energy_of_a_cycle(tmp_path):
    time = "array: {}\nclock: 1600 MHz\nstatic_power: 50 W\narithmetic:"
    assert chip(tmp_path, ("arithmetic:", time)).static_energy == pytest.approx(50 / 1.6e9 * 1e12)


def test_operands_may_pass_a_level_by(tmp_path):
    places = memories(chip(tmp_path, ("name: SRAM, ", "name: SRAM, holds: [I, O], ")))
    assert places.spatial
    assert [level.holds("F") for level in places.levels] == [True, False, True]


SPLIT = (
    "{level: 0, name: RF, capacity: 1 KiB, access_energy: 0.5 pJ/B, source: me}",
    "{level: 0, name: RF, split: [{name: A, holds: [I, O], capacity: 1 KiB, access_energy: 1 pJ/B, "
    "source: me%s}, {name: B, holds: [F], capacity: 1 KiB, access_energy: 1 pJ/B, source: me}]}",
)


def member(field):
    return SPLIT[0], SPLIT[1] % f", {field}"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        # where a fan-out may stand
        ([("name: DRAM, ", "name: DRAM, fanout: 2, ")],
         ":7: levels.DRAM.fanout: the outermost level is there once; fanout and what goes with it "
         "belong to levels below it"),
        ([member("fanout: 4")],
         ":9: levels.RF.split.A.fanout: belongs to the level RF, not to one memory of its split"),
        ([member("hop_energy: 1 pJ/B")],
         ":9: levels.RF.split.A.hop_energy: belongs to the level RF, not to one memory of its split"),
        ([(RF, RF + "multicast: false, ")],
         ":9: levels.RF.multicast: says how memories side by side are served; state their fanout, "
         "too"),
        ([(RF, RF + "reduction: true, ")],
         ":9: levels.RF.reduction: says how memories side by side are served; state their fanout, "
         "too"),
        ([(RF, RF + "hop_energy: 1 pJ/B, ")],
         ":9: levels.RF.hop_energy: says how memories side by side are served; state their fanout, "
         "too"),
        # what it may be
        ([(RF, RF + "fanout: 0, ")],
         ":9: levels.RF.fanout: 0 must be a whole number from 1 to 2147483648"),
        ([(RF, RF + "fanout: 2.5, ")],
         ":9: levels.RF.fanout: 2.5 must be a whole number from 1 to 2147483648"),
        ([(RF, RF + "fanout: {M: 4, positoins: 2}, ")],
         ":9: levels.RF.fanout: 'positoins' is no loop or axis; did you mean 'positions'?"),
        ([(RF, RF + "fanout: {HO: 4, positions: 2}, ")],
         ":9: levels.RF.fanout: names the loop HO twice, in HO and in positions"),
        ([(RF, RF + "fanout: {M: 0}, ")],
         ":9: levels.RF.fanout: M: 0 must be a whole number from 1 to 2147483648"),
        ([(RF, RF + "fanout: {}, ")],
         ":9: levels.RF.fanout: names no axis; write them as in {M: 12, positions: 14}, or a number"),
        ([(RF, RF + "fanout: 4, multicast: 1, ")],
         ":9: levels.RF.multicast 1: must be true or false"),
        ([(RF, RF + "fanout: 4, hop_energy: 2 MAC/16bit, ")],
         ":9: levels.RF.hop_energy: is in MAC, but energy_unit is pJ"),
        # what levels hold
        ([(RF, RF + "holds: [], ")], ":9: levels.RF.holds a list of 0: must have at least 1"),
        ([(RF, RF + "holds: [I, I], ")],
         ":9: levels.RF: holds I, I; each of I, F, O at most once"),
        # arrays
        ([("arithmetic:", "array: {M: 0}\narithmetic:")], ":10: array.M 0: must be at least 1"),
        ([("arithmetic:", "array: {X: 4}\narithmetic:")], ":10: array.X is not a field; known: "),
        ([("arithmetic:", "array: {HF: 4, reduction: 2}\narithmetic:")],
         ":10: array: names the loop HF twice, in HF and in reduction"),
        ([("arithmetic:", "array: {holds: W}\narithmetic:")],
         ":10: array.holds 'W': must be 'I', 'F', 'O' or 'none'"),
        ([("arithmetic:", "array: {cycle_energy: 1 MAC}\narithmetic:")],
         ":10: array.cycle_energy: is in MAC, but energy_unit is pJ"),
        # time
        ([("arithmetic:", "array: {}\nstatic_power: 5 W\narithmetic:")],
         ":11: static_power: is an energy only with a clock, as in '1530 MHz'"),
        ([("arithmetic:", "clock: 1 GHz\nstatic_power: 5 W\narithmetic:")],
         ":11: static_power: is paid in each cycle of an array; state one ('array: {}' is one MAC)"),
        ([("arithmetic:", "array: {}\nclock: 5\narithmetic:")],
         ":11: clock: 5 has no unit; write one as in '1530 MHz'"),
        ([("arithmetic:", "array: {}\nclock: 5 W\narithmetic:")],
         ":11: clock: '5 W': 'W' is no frequency; use one of Hz, kHz, MHz, GHz"),
        ([ARRAY, ("array: {}", "array: {}\nclock: 1 GHz\nstatic_power: 5 W\n"
          "static_energy_per_cycle: 5 pJ")],
         ":12: static_power: is the same as static_energy_per_cycle; give one"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_field(tmp_path, changes, sentence):
    with pytest.raises(SpecError) as refused:
        chip(tmp_path, *changes)
    assert f"file.yaml{sentence}" in str(refused.value)


def test_static_power_needs_joules(tmp_path):
    macs = [
        ("pJ\n", "MAC\n"), ("50 pJ/B", "50 MAC/B"), ("5 pJ/B", "5 MAC/B"),
        ("0.5 pJ/B", "0.5 MAC/B"), ("4.6 pJ", "1 MAC"),
        ("arithmetic:", "array: {}\nclock: 1 GHz\nstatic_power: 5 W\narithmetic:"),
    ]  # fmt: skip
    with pytest.raises(SpecError, match="static_power: is in W, but energy_unit is MAC; give "):
        chip(tmp_path, *macs)


@pytest.mark.parametrize(
    "change",
    [(RF, PES), ARRAY, ("name: SRAM, ", "name: SRAM, holds: [I, O], ")],
    ids=["fanout", "array", "passed by"],
)
def test_the_source_s_counts_are_refused(tmp_path, change):
    with pytest.raises(HwmodelError) as refused:
        evaluate("conv-small", written(tmp_path, CHIP, change), "fp", accounting="paper")
    assert str(refused.value) == (
        "counting paper, search level-by-level: the source has no chip with a fanout, an array or "
        "a level that an operand passes by; use accounting full"
    )


def test_a_chip_is_drawn(hwmodel, tmp_path):
    array = "array: {M: 4, positions: 2, holds: F, operand_bits: 16}\narithmetic:"
    rf = RF + "holds: [I, F], fanout: {M: 3, C: 2}, hop_energy: 2 pJ/B, "
    path = written(
        tmp_path, CHIP, ("name: SRAM, ", "name: SRAM, fanout: 4, reduction: false, "),
        (RF, rf), ("arithmetic:", array),
    )  # fmt: skip
    drawn = hwmodel("hardware", "show", path)[1].partition("# The chip")[2]
    for words in (
        "4 x SRAM: 64 KiB each, 256 KiB in all; holds I, F, O",
        "their sums arrive one after the other",
        "6 x RF (24 in all): 1 KiB each, 24 KiB in all; holds I, F",
        "axes: M 3, C 2",
        "hop: 0.25 pJ/bit",
        "8 MACs a memory, 192 in all; side by side: M 4, positions 2",
        "F rests in them from cycle to cycle",
        "narrower operands share lanes of 16 bit along C",
        "F: DRAM -> SRAM -> RF -> MACs",
        "O: DRAM <- SRAM <- MACs",
    ):
        assert words in drawn


SPATIAL = [name for name in bundled(Hardware) if memories(load(Hardware, name)).spatial]


def test_chips_with_arrays_are_bundled():
    assert sorted(SPATIAL) == [
        "a100-board", "ascend-cube", "binareye", "eyeriss", "eyeriss-isca", "horowitz45-array",
        "mcu-m4", "tpuv4i-array", "v100-board", "v100-sm",
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
@pytest.mark.parametrize("name", SPATIAL)
def test_a_report_adds_up_and_says_how_many_macs_work(name):
    network = "deep-mlp" if name == "binareye" else "mlp-784-512-512-10"  # what it has room for
    report = evaluate(network, name, "bold", accounting="full", mode="inference")
    rows = report.records
    assert len({row[5:13] for row in rows}) == len(rows)  # no two entries have one name
    assert report.energy == pytest.approx(sum(row[-2] for row in rows), rel=1e-12)
    assert report.idleness.startswith("utilisation: ")
    free = report.hardware.static_energy == 0
    assert ("time is free here" in report.idleness) == free
    paid = report.energies("operation")
    assert (paid[("chip-cycle",)] == 0) == free
    assert not any("unlimited broadcast" in line for line in report.not_counted)


STATIC = """array: {M: 2, holds: none, cycle_energy: 1 pJ}
clock: 1 GHz
static_power: 8 mW
"""


def test_static_energy_is_a_part_of_its_own_in_every_view(hwmodel, tmp_path):
    """8 mW for a ns are 8 pJ: of 12 outputs of 16 products each, two of which go side by side."""
    written(tmp_path, CHIP, ("arithmetic:", STATIC + "arithmetic:"), name="c.yaml")
    (tmp_path / "n.yaml").write_text(
        "{version: 1, name: n, title: n, input: [16, 1, 1], "
        "layers: [{name: only, kind: linear, features: 12}]}"
    )
    found = evaluate(tmp_path / "n.yaml", tmp_path / "c.yaml", "fp", accounting="full",
                     mode="inference")  # fmt: skip
    words = ("n.yaml", "--hardware", "c.yaml", "--accounting", "full", "--mode", "inference")
    code, out, err = hwmodel("compare", *words, "--methods", "fp", "--csv", "-")
    assert code == 0, err
    (line,) = csv.DictReader(out.splitlines())
    assert float(line["static"]) == pytest.approx(12 * 16 / 2 * 8, rel=1e-12)
    parts = [float(line[part]) for part in ("compute", "memory", "static")]
    assert sum(parts) == pytest.approx(found.energy, rel=1e-12)
    cycles = sum(row.count for row in found.table.itertuples() if row.operation == "array-cycle")
    assert cycles == 12 * 16 / 2
    assert found.energies("place")[("(static energy)",)] == pytest.approx(12 * 16 / 2 * 8)
    shown = hwmodel("report", *words, "--method", "fp", "--html", "p.html")[1]
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    for view in (shown, page):
        assert "(static energy)" in view and "(cycles of arrays)" in view
    assert '<th scope="col" class="n">static' in page or ">static</" in page
    wide = hwmodel("compare", *words, "--methods", "fp")[1]
    assert "static" in wide


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
@pytest.mark.parametrize(("batch", "share"), [(1, 12.5), (2, 25.0), (8, 100.0)])
def test_images_are_on_the_axis_of_channels_in_backward_weight(tmp_path, batch, share):
    """Of 8 x 8 MACs a column of 8 filters works for each image; 64 inputs and outputs fill all."""
    written(
        tmp_path,
        CHIP,
        ("arithmetic:", "array: {M: 8, C: 8, cycle_energy: 1000000 pJ}\narithmetic:"),
        name="c.yaml",
    )
    layers = "".join(f"{{name: {one}, kind: linear, features: 64}}, " for one in "ab")
    (tmp_path / "n.yaml").write_text(
        f"{{version: 1, name: n, title: n, input: [64, 1, 1], layers: [{layers}]}}"
    )
    report = evaluate(
        tmp_path / "n.yaml", tmp_path / "c.yaml", "fp", accounting="full", batch=batch
    )
    said = f"(100.0 % in forward, 100.0 % in backward input, {share:.1f} % in backward weight)"
    assert said in report.idleness
    summed = f"backward weight sums over images, {batch} on axis C of 8"
    assert (summed in report.idleness) == (batch < 8)


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
def test_macs_by_padding_are_paid_and_told_apart_from_work(hwmodel, tmp_path):
    """A 3 x 3 kernel over 4 x 4 with padding 1: along an axis 2 + 3 + 3 + 2 of 12 taps are rows."""
    net = "{version: 1, name: n, title: n, input: [2, 4, 4], layers: [{name: c, kind: conv,"
    (tmp_path / "n.yaml").write_text(f"{net} channels: 3, kernel: 3, padding: 1}}]}}")
    words = ("--hardware", "horowitz45-array", "--method", "fp", "--mode", "inference")
    report = evaluate(
        tmp_path / "n.yaml", "horowitz45-array", "fp", accounting="full", mode="inference"
    )
    share = 100 * (12 * 12 - 10 * 10) / (12 * 12)
    assert f"; {share:.1f} % of those paid meet padding and are no work" in report.idleness
    out = hwmodel("explain", "n.yaml", "--layer", "c", "--accounting", "full", *words)[1]
    assert f"Of {2 * 3 * 144:,} MACs that are paid, {2 * 3 * 44:,} meet padding: for them " in out


def test_without_an_array_the_report_says_what_the_innermost_reads_are():
    line = "innermost reads: unlimited broadcast, for the chip states no array"
    assert line in evaluate("mlp-784-512-512-10", "ascend", "fp", accounting="full").not_counted
    paper = evaluate("mlp-784-512-512-10", "ascend", "fp", accounting="paper")
    assert line not in paper.not_counted


def test_a_tiling_is_shown_saved_and_read_again(hwmodel):
    conv = "N=2,M=4,C=4,H=6,W=6,K=3,pad=1"
    asked = "tile", "--hardware", "eyeriss-isca", "--conv", conv, "--bits", "16,16,16"
    code, out, _ = hwmodel(*asked, "--stationary", "best", "--save", "m.json")
    assert code == 0
    assert "parallel-for" in out and "utilisation" in out and "moments of the chip" in out
    first = json.loads(hwmodel(*asked, "--stationary", "best", "--json")[1])
    again = json.loads(hwmodel(*asked, "--tiles", "m.json", "--json")[1])
    assert again["energy"] == first["energy"] and again["accesses"] == first["accesses"]
    assert first["fits"] and first["lower_bound"] <= first["energy"]


def test_all_energies_of_a_tiling_in_json_add_up(hwmodel):
    conv = "N=2,M=4,C=4,H=6,W=6,K=3,pad=1"
    asked = "tile", "--hardware", "v100-board", "--conv", conv, "--bits", "16,16,16", "--json"
    found = json.loads(hwmodel(*asked)[1])
    rows = sum(row["energy"] for row in found["accesses"])
    whole = rows + found["energy_of_cycles"] + found["energy_of_moments"]
    assert whole == pytest.approx(found["energy"], rel=1e-12)
    assert found["energy_of_cycles"] == pytest.approx(30.0 * found["cycles"])  # 30 pJ in its file


def test_a_cycle_that_an_array_does_not_take_is_told(hwmodel, tmp_path):
    """Sixteen filters at once, in an array that has no axis of them."""
    conv = "N=2,M=16,C=4,H=6,W=6,K=3,pad=1"
    asked = "tile", "--hardware", "v100-board", "--conv", conv, "--bits", "16,16,16"
    assert hwmodel(*asked, "--save", "m.json")[0] == 0
    saved = json.loads((tmp_path / "m.json").read_text())
    saved["tiles"][-1]["M"] = saved["tiles"][-1]["union"]["M"] = saved["cycle"]["M"] = 16
    for tile in saved["tiles"][:-1]:
        tile["M"] = tile["union"]["M"] = 16
    (tmp_path / "m.json").write_text(json.dumps(saved))
    code, out, _ = hwmodel(*asked, "--tiles", "m.json")
    assert code == 1 and "DOES NOT FIT: 16 of M in a cycle, of which the array takes one" in out


def test_explain_writes_the_paths_of_a_count(hwmodel, tmp_path):
    """With filters held: with anything held, one PE is cheapest, and nothing is spread."""
    (tmp_path / "held.yaml").write_text(
        "version: 1\nname: held\ntitle: t\nbased_on: full\n"
        "counting: {stationary: filter, transfers: upper}\n"
    )
    out = hwmodel(
        "explain", "mlp-784-512-512-10", "--layer", "fc3", "--hardware", "eyeriss-isca",
        "--method", "fp", "--accounting", "held.yaml", "--mode", "inference",
    )[1]  # fmt: skip
    assert "on its way into or out of one" in out
    assert re.search(r"C = 512 cut by place at RF \d+ \(taken together\)", out)


NET = """\
version: 1
name: little
title: A little network
input: [4, 1, 1]
layers:
  - {name: only, kind: linear, features: 3}
"""
MOVED = {
    "levels.RF.fanout": 2, "levels.RF.multicast": False, "levels.RF.reduction": False,
    "levels.RF.hop_energy": 0.5, "levels.RF.capacity": "30 B", "array.holds": "O", "array.C": 2,
    "array.cycle_energy": 7.0, "static_energy_per_cycle": 3.0,
}  # fmt: skip


def test_sweeps_move_every_field_as_a_report_has_it(tmp_path):
    """Counts that a sweep remembers depend on each of them."""
    rf = RF + "fanout: 4, multicast: true, reduction: true, hop_energy: 0.25 pJ/bit, "
    array = "array: {M: 2, holds: none, cycle_energy: 1 pJ}\nstatic_energy_per_cycle: 1 pJ\n"
    base = chip(tmp_path, (RF, rf), ("arithmetic:", array + "arithmetic:"))
    moved = [base, *(replaced(base, path, value) for path, value in MOVED.items())]
    network = load_network(written(tmp_path, NET, name="net.yaml"))
    job = Job(load(Method, "fp"), load(Accounting, "full"), 1, "inference", None)
    tasks = all_tasks(network, job)
    found = Counted().costs("key", tasks, network, job, moved)
    alone = [evaluate(network, one, "fp", accounting="full", mode="inference") for one in moved]
    assert [cost.energy for cost in found] == pytest.approx(
        [one.energy for one in alone], rel=1e-12
    )
    assert len({round(cost.energy, 6) for cost in found}) > 5


def test_narrow_operands_that_share_no_lane_are_told():
    with pytest.warns(SpecWarning, match="array states no operand_bits, so operands of 1 bit"):
        evaluate("mlp-784-512-512-10", "eyeriss-isca", "bold", accounting="full", mode="inference")


@pytest.mark.skipif(os.environ.get("HWMODEL_TESTS") != "thorough", reason="a minute each")
@pytest.mark.parametrize("name", ["ascend", "ascend-cube", "v100"])
def test_the_page_s_table_at_batch_1_is_what_is_computed(name, tmp_path):
    """Filters held, and the memory that is asked pays; `v100-sm` would take several minutes."""
    accounting = written(
        tmp_path,
        "version: 1\nname: held\ntitle: t\nbased_on: full\n"
        "counting: {stationary: filter, transfers: upper}\n",
        name="held.yaml",
    )
    page = (Path(__file__).parent.parent / "docs" / "chips.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{name}` \[[^]]*\] \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", page, re.M)
    said = [float(cell) for cell in row.groups()]
    fp, bold = (
        evaluate("vgg-small", name, method, accounting=accounting).energy
        for method in ("fp", "bold")
    )
    assert [fp / 1e9, bold / 1e9] == pytest.approx(said[:2], rel=2e-3)
    assert 100 * bold / fp == pytest.approx(said[2], abs=0.006)


@pytest.mark.skipif(os.environ.get("HWMODEL_TESTS") != "thorough", reason="a minute each")
@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize(
    ("name", "within"),
    # With an array, what is found is near a bound, and may be found nearer.
    [("ascend", 0.0), ("ascend-cube", 5e-3), ("v100", 0.0), ("v100-sm", 5e-3)],
)
def test_the_page_s_table_under_full_is_what_is_computed(name, within, batch):
    page = (Path(__file__).parent.parent / "docs" / "chips.md").read_text(encoding="utf-8")
    place = f"`{name}`" + (f", batch {batch}" if batch > 1 else "")
    row = re.search(rf"^\| {place} \| ([\d.]+) \| ([\d.]+) \|.*\| ([\d.]+) \|$", page, re.M)
    fp, bold, percent = (float(cell) for cell in row.groups())
    by = {"accounting": "full", "batch": batch}
    found = [evaluate("vgg-small", name, x, **by).energy for x in ("fp", "bold")]
    near = {"abs": 0.006, "rel": within}
    assert [energy / 1e9 for energy in found] == pytest.approx([fp, bold], **near)
    assert 100 * found[1] / found[0] == pytest.approx(percent, **near)
