"""Tensors that stay on the chip: truncated chips, every set of residents, replay, refusals."""

import os
import re
import subprocess
import sys
from itertools import combinations
from math import fsum
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hwmodel import HwmodelError, SpecError, evaluate
from hwmodel.errors import SpecWarning
from hwmodel.importers.load import load_network
from hwmodel.model.entries import AWAY, Stay
from hwmodel.model.plans import all_tasks, occupied, prepared
from hwmodel.model.residency.items import items, tracked
from hwmodel.model.residency.packing import Row, pack
from hwmodel.model.residency.plan import residency_levels
from hwmodel.model.residency.products import Product
from hwmodel.model.residency.run import Outcome, Run, Streamed
from hwmodel.model.schedule import schedule
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.tiling.accesses import traffic
from hwmodel.tiling.options import SearchOptions, memories
from hwmodel.tiling.pricing import memory_energy
from hwmodel.tiling.tile import tile
from hwmodel.tiling.view import Homes, view
from hwmodel.vary.paths import replaced_all
from hwmodel.work.tensor import Direction
from hwmodel.work.work import Move, Multiply
from tests.specs import chip, written

THOROUGH = pytest.mark.skipif(os.environ.get("HWMODEL_TESTS") != "thorough", reason="15 s")
DATA = Path(__file__).parent / "data"
TARGETS = YAML(typ="safe").load(DATA / "schedule_targets.yaml")["residency"]
CHIP = load(Accounting, "chip")
# The targets were computed with filters held and the memory that is asked charged.
HELD = replaced_all(CHIP, {"counting.stationary": "filter", "counting.transfers": "upper"})
BIG = {"levels.L2.capacity": "512 MiB", "levels.L1.capacity": "64 MiB"}


def small(L2, L1="4 KiB", L0="1 KiB"):
    """horowitz45 with other capacities at the prices of its own, as the targets have it."""
    chip = load(Hardware, "horowitz45")
    for name, capacity in {"L2": L2, "L1": L1, "L0": L0}.items():
        price = chip.memory(name).read_energy_per_bit
        chip = replaced_all(chip, {f"levels.{name}.access_energy": price})
        chip = replaced_all(chip, {f"levels.{name}.capacity": capacity})
    return chip


def without(accounting):
    return replaced_all(accounting, {"counting.residency": "none"})


@pytest.mark.filterwarnings("ignore:.*is the unit right")  # its L1 is the outermost memory
@pytest.mark.parametrize("case", TARGETS["truncated_chip"]["cases"], ids=str)
def test_where_all_fits_a_level_the_chip_ends_there(case):
    """The border: input and output, and in training the signal of the loss, outside of L1."""
    asked = {"method": case["method"], "mode": case["mode"]}
    big = replaced_all(load(Hardware, "ascend"), BIG)
    whole = evaluate("vgg-small", big, accounting=HELD, **asked)
    ends = evaluate(
        "vgg-small", DATA / "residency" / "ascend-l1.yaml", accounting=without(HELD), **asked
    )
    outside = 6.25 + 0.625  # of L3 and L2 [pJ/bit]
    words = 3_072 + 10 + (10 if case["mode"] == "training" else 0)
    assert whole.energy == pytest.approx(ends.energy + words * 32 * outside, rel=1e-14)
    assert words * 32 * outside / 1e6 == pytest.approx(case["border"], abs=5e-7)
    # The accounting was then without adders as wide as their sum needs, and without some counters.
    if (case["method"], case["mode"]) == ("bold", "inference"):
        assert whole.energy / 1e6 == pytest.approx(case["resident"], abs=5e-7)
    assert whole.residency.lower_bound == pytest.approx(whole.residency.energy, rel=1e-8)


def run_of(network, chip, method, accounting, mode="inference"):
    """Everything that may stay, as the plan has it, put together by hand."""
    network = load_network(network)
    job = Job(load(Method, method), accounting, 1, mode)
    tasks, kept = all_tasks(network, job), occupied(network, job)
    given = schedule(*prepared(network, job), job).given
    room = residency_levels(chip)
    products = {
        i: Product(
            task, memories(chip, task.work.kinds),
            SearchOptions.of(accounting, task.work.pass_), room,
        )
        for i, task in enumerate(tasks)
        if isinstance(task.work, Multiply)
    }  # fmt: skip
    moves = {
        i: Streamed.of(task, memories(chip, task.work.kinds), accounting.counting.transfers)
        for i, task in enumerate(tasks)
        if isinstance(task.work, Move) and task.work.times
    }
    found = items(tracked(tasks, kept.tensors, given), room, len(kept.steps) - 1)
    return Run(tasks, products, moves, found, room)


def all_sets(run):
    """Every set of items of which no two save one access or move a tensor between levels."""

    def apart(i, j):
        one, other = run.items[i], run.items[j]
        if one.name != other.name:
            return True
        touched = {*one.saves, *one.begins} & {*other.saves, *other.begins}
        return not (set(one.saves) & set(other.saves) or (one.level != other.level and touched))

    sets = [()]
    for i in range(len(run.items)):
        sets += [(*known, i) for known in sets if all(apart(i, j) for j in known)]
    return sets


# conv-mnist: the prototype's optima, whose accounting had other prices of additions.
@pytest.mark.parametrize(
    ("size", "method"),
    [("4 KiB", "fp16"), pytest.param("1 KiB", "bold", marks=THOROUGH),
     pytest.param("64 KiB", "fp16", marks=THOROUGH)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_no_set_of_residents_is_better_and_none_is_below_the_bound(size, method):
    """Each set has the best of all tilings that were found for any."""
    chip = small(size)
    found = evaluate("conv-mnist", chip, method, accounting=HELD, mode="inference").residency
    run = run_of("conv-mnist", chip, method, HELD)
    costs = [run.outcome(some) for some in all_sets(run)]
    least = min(cost.energy for cost in costs if isinstance(cost, Outcome))
    assert least * (1 - 1e-9) <= found.energy <= least * (1 + 1e-4)
    assert found.lower_bound <= least * (1 + 1e-12)
    assert found.lower_bound / least > 0.9


def test_optima_of_the_prototype_differ_by_what_theirs_do():
    """Of fp16 on 64 and on 128 KiB; prices of additions have changed since, alike in both.

    With an L2 of 4 KiB theirs has 28.33, ours 29.05 less the additions' 0.16: there a map takes no
    room yet while the product runs that it comes of. In that room the same tilings cost 28.14.
    """
    target = {c["chip"]: c["optimum"] for c in TARGETS["exhaustive"] if c["method"] == "fp16"}
    ours = {
        chip: evaluate("conv-mnist", small(size), "fp16", accounting=HELD, mode="inference")
        for chip, size in (("h64", "64 KiB"), ("h128", "128 KiB"), ("h32", "4 KiB"))
    }
    differ = {chip: report.energy / 1e6 - target[chip] for chip, report in ours.items()}
    assert differ["h64"] == pytest.approx(differ["h128"], abs=1e-4)
    run, staying = run_of("conv-mnist", small("4 KiB"), "fp16", HELD), ours["h32"].residency
    least = sum(move.energy(Stay(parts=(2 if run.tasks[n].layer != "act1" else None,)))
                for n, move in run.moves.items())  # fmt: skip
    for number, product in run.products.items():
        home = staying.stays.get(number, AWAY).homes.I  # act2, act3 and act4, where they are read
        free = {1: 4096 * 8, 2: 4096 * 8}
        if home is not None:
            free[home] -= product.work.problem.I_elements * 16
        least += product.tiled(Stay(Homes(home)), free).energy
    arithmetic = ours["h32"].energy - staying.energy
    assert (least + arithmetic) / 1e6 - differ["h64"] < target["h32"] < ours["h32"].energy / 1e6


def test_the_optimum_and_the_bound_of_the_prototype():
    (target,) = (case for case in TARGETS["exhaustive"] if case["method"] == "bold")
    found = evaluate("conv-mnist", small("64 KiB"), "bold", accounting=HELD, mode="inference")
    assert found.energy / 1e6 == pytest.approx(target["optimum"], abs=5e-5)
    least = found.energy - found.residency.energy + found.residency.lower_bound
    assert least / 1e6 >= target["bound_at_least"]


THEIRS = [
    pytest.param(
        mode, method, row, marks=() if (mode, method) == ("inference", "bold") else THOROUGH
    )
    for mode, by_method in TARGETS["prototype_vgg_small_ascend_batch1"].items()
    for method, row in by_method.items()
]


@pytest.mark.parametrize(("mode", "method", "theirs"), THEIRS)
def test_vgg_small_as_the_prototype_has_it(mode, method, theirs):
    """As it is, fused, with residents, the bound [uJ]; additions and counters differ a little.

    So what fusion saves is equal; what residents leave is as low, and the bound no lower.
    """
    full = replaced_all(
        load(Accounting, "full"), {"counting.stationary": "filter", "counting.transfers": "upper"}
    )
    plain, fused, found = (
        evaluate("vgg-small", "ascend", method, accounting=accounting, mode=mode)
        for accounting in (full, without(HELD), HELD)
    )
    own = [report.energy / 1e6 for report in (plain, fused, found)]
    differ = own[0] - theirs[0]
    assert abs(differ) < 12
    assert own[0] - own[1] == pytest.approx(theirs[0] - theirs[1], abs=0.15)
    assert own[2] - differ <= theirs[2] * 1.003
    least = (found.energy - found.residency.energy + found.residency.lower_bound) / 1e6
    assert least - differ >= theirs[3] * 0.998


def test_a_view_costs_what_its_entries_do():
    """What is searched is what is entered, for every choice of homes, whoever pays a transfer."""
    for transfers in ("upper", "both"):
        accounting = replaced_all(CHIP, {"counting.transfers": transfers})
        run = run_of("conv-mnist", small("64 KiB"), "fp16", accounting)
        product = next(iter(run.products.values()))
        problem, options = product.work.problem, product.options
        for I, F, O in combinations((None, 1, 2, None, 1, 2, None), 3):  # noqa: E741
            homes = Homes(I, F, O)
            seen = view(product.chip, homes, run.capacities)
            found = tile(problem, seen, options)
            priced = memory_energy(
                problem, traffic(problem, found.mapping, "exact", options.rule), seen,
                options.partial_sum_bits, transfers,
            )  # fmt: skip
            mine = product._search(Stay(homes), run.capacities, finished=False).energy
            if product.work.leaves:
                assert mine == pytest.approx(priced, rel=1e-12)
            else:  # an operator takes finished sums as they are made
                assert mine < priced


def test_a_level_without_room_for_what_stays_nowhere():
    """All of L2 is taken: nothing is held there, and nothing else fails."""
    run = run_of("conv-mnist", small("64 KiB"), "fp16", CHIP)
    product = next(iter(run.products.values()))
    found = product.tiled(Stay(Homes(1, 1, None)), {1: 0, 2: 4096})
    assert found.rooms[1] == 0
    assert found.rooms[2] <= 4096


def test_energy_falls_as_capacity_grows_and_ends_at_fusion_alone():
    chips = [small(size) for size in ("8 KiB", "1 MiB")]
    found = [
        evaluate("conv-mnist", chip, "bold", accounting=HELD, mode="inference").energy
        for chip in chips
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.5 * found[-1]
    never = replaced_all(chips[-1], {"levels.L2.stays": False, "levels.L1.stays": False})
    with pytest.warns(SpecWarning, match="has no memory in which tensors could stay"):
        none = evaluate("conv-mnist", never, "bold", accounting=HELD, mode="inference")
    fused = evaluate("conv-mnist", chips[-1], "bold", accounting=without(HELD), mode="inference")
    assert none.energy == fused.energy


@pytest.mark.parametrize("mode", ["inference", pytest.param("training", marks=THOROUGH)])
def test_replayed_step_by_step_no_memory_ever_holds_more_than_it_has(mode):
    """Tensors come and go by their own names; whoever reads on the chip finds the tensor there."""
    report = evaluate("conv-mnist", small("64 KiB"), "bold", accounting=CHIP, mode=mode)
    staying = report.residency
    last = len(report.memory.steps) - 1
    life = {one.name: (one.first, one.last) for one in report.memory.tensors}
    for level, capacity in staying.capacities.items():
        for step in range(last + 1):
            here = {
                item.name: item.bits
                for item in staying.items
                if item.level == level and item.first <= step <= item.last
            }
            tiles = [
                tiled.rooms[level] + tiled.resting.get(level, 0)
                for tiled, (task, _) in zip(staying.tilings.values(), report.tilings, strict=True)
                if task.at.step == step
            ]
            assert fsum(here.values()) + max(tiles, default=0) <= capacity
    there = {
        (item.name, item.level, step)
        for item in staying.items
        for step in range(item.first, item.last + 1)
    }
    names = {level.name: n for n, level in enumerate(report.hardware.levels)}
    whole = {item.name: item for item in staying.items if item.whole}
    for one in report.ledger.entries:
        if one.stored in whole and one.memory in names:
            assert names[one.memory] >= whole[one.stored].level, one
            assert (one.stored, whole[one.stored].level, one.step) in there
    for item in whole.values():
        assert (item.first, item.last) == life[item.name]


def test_the_binary_weights_of_vgg_small_and_a_map_stay_by_hand():
    """Weights of 14,008,320 x 1 and 13,696 x 32 bit are 1.72 MiB; a:act3 has 65,536 bit."""
    asked = {"method": "binarynet", "mode": "inference"}
    fused = evaluate("vgg-small", "ascend", accounting=without(HELD), **asked)
    found = evaluate("vgg-small", "ascend", accounting=HELD, **asked)

    def outermost(report, name):
        return sum(
            energy
            for (memory, tensor, _), energy in report.energies("memory", "tensor", "stored").items()
            if memory == "L3" and tensor == name
        )

    assert outermost(fused, "F") == pytest.approx(14_446_592 * 6.25)
    assert outermost(found, "F") == 0
    assert outermost(found, "I") == 3_072 * 32 * 6.25
    assert outermost(found, "O") == 10 * 32 * 6.25
    moved = {
        (one.memory, str(one.direction)): one.count
        for one in fused.ledger.entries
        if one.stored == "a:act3" and one.memory in ("L3", "L2")
    }
    assert moved == {(m, d): 65_536 for m in ("L3", "L2") for d in ("read", "write")}
    assert not [
        e for e in found.ledger.entries if e.stored == "a:act3" and e.memory in ("L3", "L2")
    ]


@THOROUGH
def test_methods_are_equal_at_inference_and_bold_wins_in_training():
    """Percent of full precision on the Ascend, batch 1; the prototype's, with other adders."""
    percent = {}
    for mode in ("inference", "training"):
        whole = evaluate("vgg-small", "ascend", "fp", accounting=HELD, mode=mode)
        for method in ("binarynet", "bold"):
            own = evaluate("vgg-small", "ascend", method, accounting=HELD, mode=mode)
            percent[mode, method] = 100 * own.energy / whole.energy
            least = own.residency.lower_bound / own.residency.energy
            assert 1 >= least > 0.998
    assert percent["inference", "binarynet"] == pytest.approx(0.61, abs=0.02)
    assert percent["inference", "bold"] == pytest.approx(0.59, abs=0.02)
    assert percent["training", "binarynet"] == pytest.approx(75.5, abs=0.3)
    assert percent["training", "bold"] == pytest.approx(15.6, abs=0.15)


@THOROUGH
def test_weights_used_as_gradients_finish_save_the_votes_way():
    """Updates at the end send votes to DRAM and back."""
    later = replaced_all(HELD, {"extras.update_order": "after-iteration"})
    asked = ("vgg-small", "ascend", "bold")
    assert (
        evaluate(*asked, accounting=later).energy > 1.1 * evaluate(*asked, accounting=HELD).energy
    )


def test_rows_add_up_and_names_are_told_apart():
    report = evaluate("conv-mnist", "ascend", "binarynet", accounting=CHIP)
    names = [one.name for one in report.ledger.entries]
    assert len(names) == len(set(names))
    assert report.energy == pytest.approx(fsum(row[-2] for row in report.records), rel=1e-12)
    parts = report.energies("direction")
    moved = sum(energy for (direction,), energy in parts.items() if direction != "operate")
    assert moved == pytest.approx(report.residency.energy, rel=1e-9)


@pytest.mark.parametrize(
    ("group", "field", "value", "rule"),
    [
        ("counting", "search", "level-by-level", "tensors needs search optimal"),
        ("counting", "counting", "paper", "optimal needs counting exact"),
    ],
)
def test_refused(group, field, value, rule):
    with pytest.raises((SpecError, HwmodelError), match=rule):
        replaced_all(HELD, {f"{group}.{field}": value})


def test_the_file_is_refused_at_its_line(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "version: 1\nname: mine\ntitle: t\nbased_on: paper\ncounting:\n  residency: tensors\n"
    )
    with pytest.raises(SpecError, match=r"mine.yaml:6: .*residency.*tensors needs counting exact"):
        load(Accounting, file)


def test_a_packing_by_hand():
    """Of 3, 2 and 2 in a room of 4: the two smaller ones; all three where there is no end."""
    values = [30.0, 20.0, 20.0]
    assert pack(values, [Row({0: 3, 1: 2, 2: 2}, 4)], 0.0, loose=False).chosen == [1, 2]
    everything = pack(values, [], 0.0, loose=True)
    assert everything.chosen == [0, 1, 2]
    assert everything.most == pytest.approx(70)


def test_what_the_solver_prints_stays_out_of_the_output():
    """HiGHS prints its name past Python, even where all its output is switched off."""
    code = "from hwmodel.model.residency.packing import pack; print(pack([1.0], [], 0, loose=True))"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout.startswith("Packed(chosen=[0]")
    assert "HiGHS" not in asked.stdout + asked.stderr


GROUPED = """\
version: 1
name: grouped
title: Heads that share keys, turned
input: [1, 64, 1]
layers:
  - {name: words, kind: embedding, vocabulary: 1000, features: 256}
  - {name: q, kind: linear, features: 256, over: channels}
  - {name: k, kind: linear, features: 64, over: channels, inputs: [words]}
  - {name: v, kind: linear, features: 64, over: channels, inputs: [words]}
  - {name: qr, kind: rotary, heads: 8, inputs: [q]}
  - {name: kr, kind: rotary, heads: 2, inputs: [k]}
  - {name: scores, kind: attention-scores, heads: 8, kv_heads: 2, causal: true, inputs: [qr, kr]}
  - {name: softmax, kind: activation, function: softmax}
  - {name: context, kind: attention-context, heads: 8, kv_heads: 2, causal: true, inputs: [softmax, v]}
"""


def test_signals_that_an_operator_takes_at_once_are_no_gradients_used_as_they_are_made(tmp_path):
    """The signal of keys, which rotary takes as it is made, may leave unfinished: no weight waits.

    It was refused as if the weights' step were fused, which `chip` has not asked for.
    """
    hardware = chip((None, 8.0, 8.0), (64 * 8192, 0.5, 0.5), (4 * 8192, 0.05, 0.05))
    report = evaluate(written(tmp_path, GROUPED), hardware, "fp", accounting="chip")
    unfinished = report.table.query("role == 'unfinished sum' and layer == 'scores'")
    assert len(unfinished) and report.energy > 0


def living(steps):
    """The first of some steps, and the one behind the last."""
    first, last = map(int, steps.split(" to "))
    return first, last + 1


def test_the_schedule_lists_what_stays_and_the_room(hwmodel):
    """784 x 512 words and 512 x 512 bits of weights stay; in each memory all adds up to its room."""
    asked = ("report", "mlp-784-512-512-10", "--hardware", "ascend", "--method", "bold")
    inference = ("--mode", "inference", "--schedule")
    code, out, err = hwmodel(*asked, "--accounting", "chip", *inference)
    assert code == 0, err
    rows = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
    stays = {row[0]: row[1:] for row in rows if len(row) == 4 and re.match(r"\d+ to \d+$", row[2])}
    lines = [row for row in rows if row[0].isdigit() and row[1].startswith("forward of")]
    assert [line[1].removeprefix("forward of ") for line in lines] == [
        "fc1", "fc1", "fc1.act", "fc2", "fc2", "fc2.act", "fc3", "fc3",
    ]  # fmt: skip
    assert [line[0] for line in lines] == list(map(str, range(1, 9)))  # as `memory` numbers them
    assert [line[2] for line in lines[:4]] == ["product", "elementwise", "elementwise", "product"]
    for step, _, _, *rooms in lines:
        bits = [int(one.replace(",", "")) for one in rooms]
        for memory, (taken, tiles, free), capacity in (
            ("L2", bits[:3], 8 * 2**23), ("L1", bits[3:], 8 * 2**20)
        ):  # fmt: skip
            assert taken + tiles + free == capacity
            assert taken == sum(
                int(size.replace(",", ""))
                for where, steps, size in stays.values()
                if where == memory and int(step) in range(*living(steps))
            )
    assert stays == {
        "F:fc1": ["L2", "1 to 8", f"{784 * 512 * 32:,}"],
        "F:fc2": ["L1", "1 to 8", f"{512 * 512:,}"],
        "F:fc3": ["L1", "1 to 8", f"{5120 * 32:,}"],
        "a:fc1": ["L1", "1 to 4", "512"],
        "a:fc2": ["L1", "4 to 7", "512"],
    }
    assert "but for what comes from outside or is given there: 0.0 %" in " ".join(out.split())
    markdown = (*inference[:2], "--accounting", "chip", "--format", "markdown")
    text = hwmodel(*asked, *markdown)[1]
    assert re.search(
        r"stays of tensors on the chip; no choice costs less than \d+\.\d\d % of this \(gap", text
    )
    code, out, err = hwmodel(*asked, *inference, "--accounting", "full")
    assert (code, out) == (2, "") and err.startswith("hwmodel: --schedule: nothing stays on the ")


def test_a_tensor_that_stays_on_takes_its_room_once(tmp_path):
    """The input's 131,072 bit, maps of 8,192 and filters of 512: 148,992 bit, or 18.2 KiB.

    So the input comes from outside once, for a; b and c find it. Its stay from a to
    b and the one from b to c share a step, and take its room there once.
    """
    layers = "".join(
        f"  - {{name: {name}, kind: conv, channels: 1, kernel: 1, bias: false, inputs: [input]}}\n"
        for name in "abc"
    )
    text = f"version: 1\nname: fan\ntitle: t\ninput: [16, 16, 16]\nlayers:\n{layers}"
    (tmp_path / "fan.yaml").write_text(f"{text}  - {{name: s, kind: add, inputs: [a, b, c]}}\n")
    one_level = {"levels.L1.stays": False}
    found = [
        evaluate(
            tmp_path / "fan.yaml",
            replaced_all(small(size), one_level),
            "fp",
            accounting=CHIP,
            mode="inference",
        )
        for size in ("17 KiB", "19 KiB", "24 KiB", "64 KiB")
    ]
    assert all(one.residency.lower_bound <= found[3].residency.energy for one in found[1:])
    read = [
        sum(one.count for one in report.ledger.entries
            if one.memory == "DRAM" and one.direction == Direction.READ and one.tensor == "I")
        for report in found
    ]  # fmt: skip
    assert read == [131_072] * 4  # twice, where each stay took its own room
    assert [one.energy for one in found] == sorted((one.energy for one in found), reverse=True)
