"""Sweeps: what a file may say, which points there are, and that each is what evaluate gives."""

import csv
import io
import random
import re
import time

import pytest

from hwmodel.errors import HwmodelError, Infeasible, SpecError
from hwmodel.graph.network import family_member
from hwmodel.importers.load import load_network
from hwmodel.model.compare import Comparison, compare
from hwmodel.model.evaluate import evaluate
from hwmodel.model.plans import occupied
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling import level_by_level
from hwmodel.tiling.tile import tile
from hwmodel.vary.paths import replaced_all
from hwmodel.vary.sweep.conditions import conditions, holds
from hwmodel.vary.sweep.file import SweepFile
from hwmodel.vary.sweep.part import ENERGIES, columns, on_chip_bits, run_part, searches
from hwmodel.vary.sweep.plan import plan
from hwmodel.vary.sweep.results import front, lowest

SMALL = {
    "version": 1,
    "accounting": "paper",
    "name": "small",
    "title": "A small sweep",
    "network": "mlp-784-512-512-10",
    "hardware": ["ascend", "v100"],
    "method": ["fp", "bold"],
}
L1 = "hardware.levels.L1.capacity"
L2 = "hardware.levels.L2.capacity"


def planned(**fields):
    return plan(SweepFile.model_validate(SMALL | fields))


def lines(swept, points=None):
    """The rows of a sweep as a table has them."""
    text = run_part(swept, swept.points() if points is None else points)
    return [
        dict(zip(columns(swept), cells, strict=True)) for cells in csv.reader(io.StringIO(text))
    ]


def same(energy):
    """Equal but for rounding: counts times prices, added up in another order."""
    return pytest.approx(energy, rel=1e-12)


def alone(row):
    """One point by `compare`, from what its row says of it."""

    def value(text):
        return int(text) if re.fullmatch(r"\d+", text) else float(text)

    def spec(kind):
        root = f"{kind.KIND}."
        moved = {
            path.removeprefix(root): value(text)
            for path, text in row.items()
            if path.startswith(root) and text
        }
        return replaced_all(load(kind, row[kind.KIND]), moved)

    network = row["network"]
    if "network.features" in row:
        features = [int(n) for n in re.findall(r"\d+", row["network.features"])]
        network = family_member(network, {"features": features})
    (line,) = compare(
        network, [spec(Hardware)], [spec(Method)],
        accounting=spec(Accounting), batch=int(row["batch"]), mode=row["mode"],
        optimal_tiles=False,
    )  # fmt: skip
    return line


AXES = (
    {"accounting.widths.boolean_signal_bits": (1, 3, 16)},
    {"accounting.prices.logic_price_macs": (0.001, 0.01)},
    {L1: ("256 KiB", "1 MiB", "3 MiB")},
    {L2: {"times": (0.5, 1.0, 3.0)}},
    {
        "hardware.levels.L3.access_energy": {"times": (0.3, 1.0, 2.7)},
        "hardware.levels.DRAM.access_energy": (3.1, 6.25, 20),
    },
    {"hardware.arithmetic.mac.32": {"times": (0.7, 1.1)}},
)


@pytest.mark.parametrize(
    ("accounting", "batch", "number"), [("paper", (1, 7, 200), 60), ("full", (1, 7), 8)]
)
def test_every_point_is_what_compare_gives_for_it_alone(accounting, batch, number):
    swept = planned(
        accounting=accounting, batch=batch, axes=AXES, mode=("training", "inference"),
        sample={"points": number, "seed": 3},
    )  # fmt: skip
    rows = lines(swept)
    assert len(rows) == number
    assert len({row["energy"] for row in rows}) > number / 2
    parts = (*ENERGIES, "memory")
    assert set(parts) <= set(Comparison._fields)
    for row in rows:
        line = alone(row)
        for name in ("energy", *parts):
            assert float(row[name]) == same(getattr(line, name)), (name, row)
        assert row["unit"] == line.unit
        assert float(row["energy_per_image"]) == same(line.energy / int(row["batch"]))


def test_fields_of_methods_and_arguments_of_families_are_axes_too():
    swept = planned(
        hardware="ascend",
        axes=(
            {"network.features": ((784, 10), (784, 300, 300, 10))},
            {"method.layers.3.weight_signal": (1, 9)},
        ),
        method="bold",
    )
    rows = lines(swept)
    assert [row["network.features"] for row in rows] == ["[784, 10]"] * 2 + [
        "[784, 300, 300, 10]"
    ] * 2
    assert len({row["energy"] for row in rows[2:]}) == 2  # the first has no Boolean layer
    for row in rows:
        assert float(row["energy"]) == same(alone(row).energy)
        assert row["published_accuracy_percent"] == ""


def test_a_baseline_is_evaluated_at_every_point():
    """Percentages are those of compare, with the chip that the point has."""
    swept = planned(baseline="fp", axes=({L1: ("64 KiB", "1 MiB")},))
    for row in lines(swept):
        chip = replaced_all(load(Hardware, row["hardware"]), {"levels.L1.capacity": int(row[L1])})
        (line,) = compare(
            row["network"], [chip], [row["method"]], accounting="paper", optimal_tiles=False
        )
        assert float(row["percent_of_baseline"]) == same(line.percent_of_baseline)


def test_points_come_with_the_chip_s_axes_last_and_each_once():
    swept = planned(axes=({L1: ("64 KiB", "1 MiB", "2 MiB")}, {"batch": (1, 5)}))
    rows = lines(swept)
    assert [int(row["point"]) for row in rows] == [*range(24)]
    seen = [(row["method"], row["batch"], row["hardware"], int(row[L1])) for row in rows]
    sizes = [8 * 2**16, 8 * 2**20, 8 * 2**21]
    assert seen == [
        (method, batch, chip, size)
        for method in ("fp", "bold")
        for batch in "15"
        for chip in ("ascend", "v100")
        for size in sizes
    ]


def test_derived_fields_follow_and_constraints_leave_points_out():
    half = "hardware.levels.L0-A.capacity"
    swept = planned(
        hardware="ascend",
        axes=({L1: ("64 KiB", "1 MiB", "9 MiB")}, {L2: ("1 MiB", "16 MiB")}),
        derived={
            half: {"of": L1, "times": 0.5},
            "hardware.levels.L0-B.capacity": {"of": half},
            "hardware.levels.L0-C.access_energy": {"of": "hardware.levels.L1.read_energy"},
        },
        constraints=(f"{L1} <= {L2}", "batch < 2"),
        method="fp",
    )
    rows = lines(swept)
    kept = [(int(row[L1]) // 8192, int(row[L2]) // 8192) for row in rows]
    assert kept == [(64, 1024), (64, 16384), (1024, 1024), (1024, 16384), (9216, 16384)]
    for row in rows:
        assert 2 * int(row[half]) == int(row[L1]) == 2 * int(row["hardware.levels.L0-B.capacity"])
        assert float(row["hardware.levels.L0-C.access_energy"]) == 0.3125
        chip = replaced_all(
            load(Hardware, "ascend"),
            {path.removeprefix("hardware."): float(row[path]) if "energy" in path else int(row[path])
             for path in swept.paths},
        )  # fmt: skip
        assert float(row["energy"]) == same(
            evaluate(row["network"], chip, "fp", accounting="paper").energy
        )


@pytest.mark.parametrize("sample", [None, {"points": 150, "seed": 3}])
def test_constraints_keep_what_plain_python_keeps(sample):
    """On two chips, of which one lacks a memory, and two roots; a spec's own value counts, too."""
    l0a = "hardware.levels.L0-A.capacity"
    options = {
        "batch": [1, 3, 4],
        "accounting.widths.boolean_signal_bits": [1, 8, 16],
        L1: [2, 4, 8],
        L2: [4, 8],
    }
    fields = {
        "axes": tuple({path: tuple(f"{v} bit" if "capacity" in path else v for v in values)}
                      for path, values in options.items()),
        "sample": sample,
    }  # fmt: skip
    wanted = (f"{L1} < {L2} and batch != 3", f"accounting.widths.boolean_signal_bits >= {L1}",
              f"{l0a} == 65536 B", "method == bold", f"{L2} > batch")  # fmt: skip
    own = {
        buffer.name: buffer.capacity_bits for buffer in load(Hardware, "ascend").levels[-1].split
    }
    assert own["L0-A"] == 65536 * 8  # V100 has no such memory: nothing to break
    swept, free = planned(constraints=wanted, **fields), planned(**fields)

    def shown(point):
        values = free.shown(free.digits(point))
        return [values[name] for name in ("method", *options)]

    def keeps(method, batch, bits, l1, l2):
        return l1 < l2 and batch != 3 and bits >= l1 and method == "bold" and l2 > batch

    kept = [point for point in free.points() if keeps(*shown(point))]
    assert list(swept.points()) == kept
    assert 0 < len(kept) < len(free.points()) / 4


def test_points_are_left_out_by_what_lives_at_one_time():
    """conv-mnist's peaks under full, and what a chip's memory has: sizes with sizes, in any unit."""
    fields = {"network": "conv-mnist", "accounting": "full", "method": ("fp", "bold"),
              "hardware": "ascend", "batch": [1, 5], "axes": ({L1: ("1 MiB", "4 MiB")},)}  # fmt: skip
    full, network = load(Accounting, "full"), load_network("conv-mnist")
    peaks = {
        (name, batch): occupied(network, Job(load(Method, name), full, batch, "training"))
        .peak().size
        for name in ("fp", "bold") for batch in (1, 5)
    }  # fmt: skip
    for constraint, keeps in (
        ("peak <= 1 MiB", lambda peak, _: peak <= 2**20),
        ("peak <= 1048576", lambda peak, _: peak <= 2**20),
        ("peak_bytes > 8388608 bit", lambda peak, _: peak > 2**20),
        (f"peak < {L1}", lambda peak, capacity: 8 * peak < capacity),
    ):
        swept = planned(constraints=(constraint,), **fields)
        shown = [swept.shown(swept.digits(point)) for point in swept.points()]
        found = [(row["method"], row["batch"], row[L1]) for row in shown]
        assert found == [
            (*run, size)
            for run, peak in peaks.items()
            for size in (8 * 2**20, 32 * 2**20)
            if keeps(peak, size)
        ]
        assert 0 < len(found) < 8


def test_constraints_of_a_million_points_take_no_minute():
    values = {"times": tuple(range(1, 101))}
    started = time.monotonic()
    swept = planned(
        hardware="ascend", method="fp", axes=({L1: values}, {L2: values}, {"batch": (*range(1, 101),)}),
        constraints=(f"{L1} > 1024 GiB", "batch > 1"),
    )  # fmt: skip
    with pytest.raises(HwmodelError, match="no point keeps all constraints"):
        swept.points()
    assert time.monotonic() - started < 20  # 2 s on a machine that has nothing else to do


def test_a_sample_is_the_same_again_and_has_no_point_twice():
    first = planned(axes=AXES, sample={"points": 100, "seed": 1}).points()
    assert first == planned(axes=AXES, sample={"points": 100, "seed": 1}).points()
    assert first != planned(axes=AXES, sample={"points": 100, "seed": 2}).points()
    assert len(set(first)) == 100 and first == sorted(first)
    assert len(planned(sample={"points": 100, "seed": 2}).points()) == 4  # all there are


def test_a_point_that_cannot_be_is_marked_with_the_reason_that_evaluate_gives():
    swept = planned(axes=({L1: ("8 bit", "64 KiB")},))
    rows = lines(swept)
    for row in rows:
        chip = replaced_all(load(Hardware, row["hardware"]), {"levels.L1.capacity": int(row[L1])})
        if row["reason"]:
            with pytest.raises(Infeasible) as caught:
                evaluate(row["network"], chip, row["method"], accounting="paper")
            assert row["reason"] == str(caught.value)
            assert row["energy"] == row["memory"] == row["unproved_tilings"] == ""
        else:
            assert float(row["energy"]) == same(
                evaluate(row["network"], chip, row["method"], accounting="paper").energy
            )
    assert [bool(row["reason"]) for row in rows] == [True, False] * 4


def test_a_width_that_a_chip_does_not_price_is_a_reason_too():
    rows = lines(planned(axes=({"accounting.widths.full_precision_bits": (32, 16)},), method="fp"))
    assert [row["reason"][:50] for row in rows] == ["", ""] + [
        f"hardware {chip}: states no price of a 16-bit mac, wh"[:50] for chip in ("ascend", "v100")
    ]


def test_tilings_are_searched_once_in_the_whole_sweep():
    """Equal problems of all methods and batches; prices of operations search nothing."""
    swept = planned(
        network="mlp-784-512-512-10", method=("fp", "fp16"), hardware="ascend", mode="inference",
        accounting="full",
        axes=({L1: ("64 KiB", "1 MiB")}, {"hardware.arithmetic.mac.32": {"times": (0.5, 1.0)}}),
    )  # fmt: skip
    tile.cache_clear()
    assert sum(not row["reason"] for row in lines(swept)) == 8
    assert tile.cache_info().misses == searches(swept, swept.points()) == 2 * 2 * 3


def test_greedy_levels_are_settled_once_in_the_whole_sweep(monkeypatch):
    """For equal tiles above, memories and prices of what moves, whatever else differs."""
    steps = []

    def settled(step, settle=level_by_level._settled):
        steps.append(step)
        return settle(step)

    monkeypatch.setattr(level_by_level, "_settled", settled)
    level_by_level.greedy.cache_clear()
    swept = planned(
        method=("fp", "fp16", "bold", "binaryconnect"), hardware="ascend",
        axes=({L1: ("64 KiB", "1 MiB")}, {"hardware.arithmetic.mac.32": {"times": (0.5, 1.0)}}),
    )  # fmt: skip
    assert sum(not row["reason"] for row in lines(swept)) == 16
    assert len(steps) == len(set(steps)) > searches(swept, swept.points()) / 2


def test_a_teacher_s_forward_pass_is_paid_for(monkeypatch):
    swept = planned(
        network="bert-base", hardware="ascend", method="bit",
        axes=({"accounting.extras.teacher": (True, False)},),
    )  # fmt: skip
    with_teacher, without = lines(swept)
    assert with_teacher["accounting.extras.teacher"] == "true"
    accounting = replaced_all(load(Accounting, "paper"), {"extras.teacher": True})
    report = evaluate("bert-base", "ascend", "bit", accounting=accounting)
    assert float(with_teacher["energy"]) == same(report.energy)
    assert report.energy > float(without["energy"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"axes": ({"hardware.levels.L1.capasity": ("1 MiB",)},)}, "did you mean 'capacity'"),
        ({"axes": ({"hardware.levels.L9.capacity": ("1 MiB",)},)}, "hardware ascend: 'levels.L9.capacity' is no path"),
        ({"axes": ({"hardwear.levels": (1,)},)}, "did you mean 'hardware'"),
        ({"axes": ({"hardware.levels.L1": (1,)},)}, "is no single value"),
        ({"axes": ({"mode": ("training",)},)}, "'mode' is no path to a value"),
        ({"axes": ({"hardware.levels.L3.access_energy": (1,)},)}, "axes.1: hardware v100 has no hardware.levels.L3.access_energy"),
        ({"axes": ({L1: ("1 MB",)},)}, "axes.1: hardware ascend, levels.L1: capacity: '1 MB': 'MB' means 1000 to some"),
        ({"axes": ({L1: {"times": (0.3,)}},)}, "0.3 times 8.38861e+06 is 2.51658e+06, which is not whole"),
        ({"axes": ({"accounting.counting.search": {"times": (2,)}},)}, "'level-by-level' is no number"),
        ({"axes": ({"batch": (0,)},)}, "batch 0: must be a whole number"),
        ({"axes": ({"batch": (1,)},), "batch": (2, 3)}, "batch is set in two places"),
        ({"derived": {L1: {"of": "accounting.extras.flip_rate"}}}, f"derived.{L1}: follows accounting.extras.flip_rate, which is of no hardware"),
        ({"derived": {L1: {"of": "hardware.levels.L2.capacty"}}}, "did you mean 'capacity'"),
        ({"constraints": ("hardware.levels.L1.capacty < 3",)}, "did you mean 'hardware.levels.L1.capacity'"),
        ({"constraints": ("batch",)}, "'batch' is no comparison"),
        ({"hardware": ("ascend", "ascend")}, "hardware ascend stands there twice"),
        ({"axes": ({L1: ("1 KiB", "1024 B")},)}, f"axes.1: {L1} 8192 stands there twice"),
        ({"axes": ({L1: {"times": (1, 2, 1)}},)}, "axes.1: hardware.levels.L1.capacity 8388608 stands there twice"),
        ({"method": "blod"}, "no method is called 'blod'"),
        ({"baseline": "pf"}, "no method is called 'pf'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_runs(fields, message):
    with pytest.raises(HwmodelError) as caught:
        planned(**fields)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (f"axes: [{{{L1}: [1 MiB], {L2}: [1 MiB, 2 MiB]}}]", "fields of one axis advance together"),
        ("axes: [{}]", "axes.1 varies no field"),
        (f"axes: [{{{L1}: [1 MiB]}}, {{{L1}: [2 MiB]}}]", f"{L1} is set in two places"),
        ("batch: [2, 0]", "batch.2 0: must be at least 1"),
        ("batch: some", "batch 'some': must be a whole number"),
        ("mode: traning", "mode"),
        ("sample: {points: 3}", "sample.seed is missing"),
        ("axis: []", "axis is not a field; did you mean 'axes'?"),
        ("axes: [{batch: []}]", "axes"),
        (f"axes: [{{{L1}: {{times: [1, -1]}}}}]", f"{L1}.times.2 -1: must be at least 0"),
        ("mode: [traning]", "mode.1 'traning': must be 'training' or 'inference'"),
    ],
)
def test_mistakes_in_a_file_name_the_field(tmp_path, changes, message):
    path = tmp_path / "s.yaml"
    head = "version: 1\nname: s\ntitle: t\nnetwork: vgg-small\nhardware: ascend\nmethod: fp\n"
    path.write_text(head + changes + "\n")
    with pytest.raises(SpecError, match=r"s\.yaml(:\d+)?: ") as caught:
        load(SweepFile, path)
    assert message in str(caught.value)


def test_a_grid_that_is_too_large_is_refused_unless_drawn_from():
    rates = tuple(i / 1e3 for i in range(300))
    axes = (
        {"batch": tuple(range(1, 301))},
        {"accounting.extras.flip_rate": rates},
        {"accounting.widths.boolean_signal_bits": tuple(range(1, 65))},
        {"accounting.widths.border_bits": (1, 2)},
    )
    swept = planned(axes=axes)
    with pytest.raises(HwmodelError, match="46,080,000 points; at most 10,000,000"):
        swept.points()
    assert len(planned(axes=axes, sample={"points": 9, "seed": 0}).points()) == 9


def test_comparisons_are_read_and_nothing_else_is():
    known = (
        "batch",
        "hardware.levels.L1.capacity",
        "method",
        "energy",
        "accounting.extras.teacher",
        "peak_bytes",
        "time_overlapped_s",
        "power_w",
    )
    values = {
        "peak_bytes": 2**18,
        "time_overlapped_s": 1e-4,
        "power_w": 0.25,
        "batch": 16,
        L1: 8 * 2**20,
        "method": "bold",
        "energy": 2.5,
        "accounting.extras.teacher": True,
    }

    def kept(text):
        return holds(conditions(text, known), values, absent=False)

    assert kept("batch <= 16 and method == bold")
    assert not kept("batch < 16")
    assert kept(f"{L1} == 1 MiB and {L1} > energy and energy >= 2.5e0")
    assert kept("accounting.extras.teacher == true and method != 'fp'")
    assert not kept("method == 'fp'")
    assert kept("peak <= 256 KiB and peak == 262144 and peak >= 2097152 bit")
    assert not kept("peak < 256 KiB") and not kept("peak > 262144")
    assert kept("time <= 0.1 ms and time >= 100 us and time < 0.2 ms and time <= 1e-4")
    assert not kept("time < 99 µs") and not kept("time > 0.001 s")
    assert kept("power_w <= 250 mW") and not kept("power_w > 0.3 W")
    assert kept("")
    assert not holds(conditions("energy < 3", known), {"energy": None}, absent=False)
    assert holds(conditions("energy < 3", known), {}, absent=True)
    for text, message in (
        ("__import__('os')", "is no comparison"),
        ("bach == 1", "did you mean 'batch'"),
        ("batch == hardware.levels.L1.capactiy", "is no name here; did you mean"),
        ("batch < 3 MB", "'MB' means 1000 to some"),
        ("energy < 3 KiB", "energy is no size, so that '3 KiB' is none of it"),
        ("peak < 3 pJ", "'pJ'"),
        ("peek < 3 KiB", "did you mean 'peak'?"),
        ("1 < batch < 3", "'1' is no name here"),
        ("time < 3 KiB", "'KiB' is no time; use one of s, ms, us, µs, ns"),
        ("batch < 3 < 4", "is no value"),
        ("method < bold", "words are equal or not"),
        ("method < 3", "compares 'bold' with 3"),
        ("batch ==", "is no comparison"),
    ):
        with pytest.raises(HwmodelError, match=re.escape(message)):
            kept(text)


def test_the_front_and_the_best_by_hand():
    x, y = [3, 1, 2, 2, 1, 4], [1, 5, 3, 4, 6, 1]
    assert front(x, y) == [1, 2, 0]
    rows = [{"point": i} for i in range(4)]
    assert lowest(rows, [2.0, 1.0, 1.0, 0.5], 3) == [{"point": 3}, {"point": 1}, {"point": 2}]
    draw = random.Random(5)
    x, y = ([draw.randrange(30) for _ in range(200)] for _ in range(2))
    pairs = list(zip(x, y, strict=True))
    best = {
        p for p in pairs
        if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)
    }  # fmt: skip
    assert {pairs[i] for i in front(x, y)} == best


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("L1.capacity: [", "L9.capacity: [", "s.yaml:8: hardware ascend: 'levels.L9.capacity' is no path"),
        ("[1, 2]", "[2, 2]", "s.yaml:9: axes.2: batch 2 stands there twice"),
        ("64 KiB", "0 KiB", "s.yaml:8: axes.1: hardware ascend, levels.L1: capacity: '0 KiB'"),
        ("L0-A.capacity: {", "L0-Z.capacity: {", "s.yaml:11: hardware ascend: 'levels.L0-Z.capacity' is no"),
        ("batch < 2", "bach < 2", "s.yaml:14: 'bach < 2': 'bach' is no name here; did you mean 'batch'?"),
        ("batch < 2", "time <= 1 ms", "s.yaml:14: 'time <= 1 ms': time is a result, and constraints choose points before any is computed; choose among results: hwmodel best TABLE --where 'time <= 1 ms'"),
        ("batch < 2", "energy < 2", "s.yaml:14: 'energy < 2': energy is a result, and"),
        ("deep-mlp", "deep-mpl", "s.yaml:4: no network is called 'deep-mpl': did you mean 'deep-mlp'?"),
        ("method: fp", "method: [fp, bald]", "s.yaml:6: no method is called 'bald': did you mean"),
    ],
)  # fmt: skip
def test_a_mistake_of_a_file_is_told_with_file_and_line(refused, tmp_path, old, new, sentence):
    text = """\
version: 1
name: s
title: t
network: deep-mlp
hardware: ascend
method: fp
axes:
  - {hardware.levels.L1.capacity: [64 KiB, 1 MiB]}
  - {batch: [1, 2]}
derived:
  hardware.levels.L0-A.capacity: {of: hardware.levels.L1.capacity, times: 0.5}
constraints:
  - batch > 0
  - batch < 2
"""
    assert old in text
    (tmp_path / "s.yaml").write_text(text.replace(old, new))
    assert refused("sweep", "s.yaml", "--dry-run").startswith(sentence)


def test_the_capacity_is_that_on_the_chip():
    """A finite DRAM is none of it; 80 shared memories are 80, with 64 register files each."""
    chip = load(Hardware, "v100-sm")
    kib = 6 * 1024 + 80 * 64 + 80 * 64 * 4
    assert on_chip_bits(chip) == 8192 * kib
    finite = replaced_all(chip, {"levels.DRAM.capacity": "16 GiB"})
    assert finite.is_bounded and on_chip_bits(finite) == 8192 * kib


@pytest.mark.parametrize("turned", [False, True])
def test_axes_of_one_figure_are_refused_before_anything_runs(refused, tmp_path, turned):
    """The second was dropped, and rows stated both."""
    axes = [
        "- hardware.levels.L3.read_energy: [2, 20]",
        "- hardware.levels.L3.access_energy: [1, 9]",
    ]
    text = (
        "version: 1\nname: s\ntitle: S\nnetwork: conv-mnist\nhardware: ascend\nmethod: fp\naxes:\n"
    )
    (tmp_path / "s.yaml").write_text(text + "".join(f"  {a}\n" for a in axes[:: 1 - 2 * turned]))
    said = refused("sweep", "s.yaml")
    assert "levels.L3.read_energy" in said and "levels.L3.access_energy" in said
    assert said.endswith("set one figure; give one")
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


@pytest.mark.parametrize(
    "second", ["read_energy=x2", "access_energy=x0.5", "write_energy=1 pJ/bit"]
)
def test_moves_of_one_figure_are_refused(refused, second):
    path = "hardware.levels.L3."
    for moves in (
        (f"{path}access_energy=x0.5", path + second),
        (path + second, f"{path}access_energy=x0.5"),
    ):
        words = [word for move in moves for word in ("--move", move)]
        said = refused("compare", "conv-mnist", "--hardware", "ascend", "--methods", "fp", *words)
        assert said.startswith("--move: hardware ascend: ")
        assert said.endswith(" set one figure; give one")
