"""D: traces fit by extents, are refused for what they are, and several of a method stand beside.

D2, D7 and D9 are tests of the trainer (`tests/trainer`): what is priced is what is trained.
"""

import csv
import io
import json
import math
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hwmodel import compare, evaluate
from hwmodel.errors import DataError
from hwmodel.graph.network import NetworkFile
from hwmodel.model.reached import reached
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.specs.trace import dumps, loads, read_trace, sum_bits, write_trace
from hwmodel.specs.training import Recipe, Training
from hwmodel.trainer.data import Dataset
from hwmodel.trainer.measure import Sizes
from hwmodel.trainer.nets import build
from hwmodel.trainer.stack import stack
from hwmodel.trainer.train import Settings, train
from tests.cases.test_turn2_state import LEAST, used
from tests.rows import merged
from tests.traces import CONV_SMALL, trace

ASKED = ("--hardware", "ascend", "--accounting", "full", "--method", "bold")


@pytest.fixture
def traced(tmp_path):
    """A function that writes a trace and gives the name of its file."""

    def write(name="t.json", **changes):
        write_trace(trace(**changes), tmp_path / name)
        return name

    return write


# D1: what a trace fits


def test_D1_a_trace_of_another_network_is_refused_with_the_layers_that_differ(refused, traced):
    said = refused("report", "vgg-small", *ASKED, "--trace", traced())
    assert said == (
        "the trace of conv-small by bold, seed 0 measured other layers than those of vgg-small: "
        "conv1 has M 128 for 32, C 3 for 1, HO 32 for 8, WO 32 for 8 of conv1; "
        "conv2 has M 128 for 64, C 128 for 32, HO 32 for 8, WO 32 for 8 of conv2; "
        "conv3 has M 256 for 64, C 128 for 64, HO 16 for 4, WO 16 for 4 of conv3; and 3 more"
    )


def conv_small(**renamed):
    """Conv-small without norms, some layers under other names."""
    layers = [
        {"name": "conv1", "kind": "conv", "kernel": 3, "padding": 1, "channels": 32, "bias": True},
        {"name": "act1", "kind": "activation"},
        {"name": "conv2", "kind": "conv", "kernel": 3, "padding": 1, "channels": 64},
        {"name": "pool2", "kind": "max-pool", "kernel": 2},
        {"name": "act2", "kind": "activation"},
        {"name": "conv3", "kind": "conv", "kernel": 3, "padding": 1, "channels": 64},
        {"name": "pool3", "kind": "max-pool", "kernel": 2},
        {"name": "act3", "kind": "activation"},
        {"name": "fc4", "kind": "linear", "features": 128},
        {"name": "act4", "kind": "activation"},
        {"name": "fc5", "kind": "linear", "features": 10, "bias": True},
    ]
    for layer in layers:
        layer["name"] = renamed.get(layer["name"], layer["name"])
    document = {"version": 1, "name": "mine", "title": "t", "input": [1, 8, 8], "layers": layers}
    return NetworkFile.model_validate(document).network()


def test_D1_names_do_not_matter_extents_do():
    """conv2 of 576 terms in the place of conv3 would take its figures by name."""
    swapped = conv_small(conv2="conv3", conv3="conv2", fc4="other")
    found = evaluate(swapped, "ascend", "bold", accounting="full", trace=trace())
    assert [found.edges[name].sum_bits for name in ("conv3", "conv2", "other")] == [9, 7, 8]


@pytest.mark.parametrize(
    ("place", "change", "said"),
    [
        (2, {"padding": 0, "kernel": 1}, "conv2 has HF 1 for 3, WF 1 for 3, padding 0 for 1"),
        (5, {"groups": 2}, "conv3 has groups 2 for 1 of conv3"),
        (5, {"dilation": 2, "padding": 2}, "conv3 has padding 2 for 1, dilation 2 for 1"),
        (8, {"features": 64}, "fc4 has M 64 for 128 of fc4; fc5 has C 64 for 128"),
        (
            2,
            {"kernel": [3, 1], "padding": [1, 0]},
            "conv2 has WF 1 for 3, padding (1, 0, 1, 0) for 1",
        ),
    ],
)
def test_D1_any_extent_that_differs_is_told(place, change, said):
    document = {"version": 1, "name": "mine", "title": "t", "input": [1, 8, 8]}
    layers = [
        json.loads(layer.model_dump_json(exclude_defaults=True)) for layer in conv_small().layers
    ]
    layers[place] |= change
    network = NetworkFile.model_validate(document | {"layers": layers}).network()
    with pytest.raises(DataError) as error:
        evaluate(network, "ascend", "bold", accounting="full", trace=trace())
    assert said in str(error.value)


def test_D1_a_layer_more_is_another_network():
    layers = {**CONV_SMALL, "fc6": ("linear", 10, 10, 1, 1, 0, 10)}
    with pytest.raises(DataError, match=r": 5 layers compute sums here, 6 there$"):
        evaluate("conv-small", "ascend", "bold", accounting="full", trace=trace(layers=layers))


# D3: what a trace is


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"frozen": True}, "the trace of conv-small by bold, seed 0, is of a control whose Boolean weights were frozen: it measured no training of them"),
        ({"accuracies": (0.9, 0.106)}, "the trace of conv-small by bold, seed 0 ends at 10.6 % accuracy, 10.0 % being chance: the run collapsed, and its widths are those of nothing learned"),
        ({"method": "fp", "weights": "real"}, "the trace of conv-small by fp, seed 0 measured another method than bold"),
        ({"weights": "real"}, "the trace of conv-small by bold, seed 0 measured other layers than those of conv-small: conv2 has weights boolean for real of conv2; conv3 has weights boolean for real of conv3; fc4 has weights boolean for real of fc4"),
        ({"accuracies": ()}, "the trace of conv-small by bold, seed 0 has no epoch yet"),
    ],
)  # fmt: skip
def test_D3_what_measured_no_such_training_is_refused(refused, traced, changes, said):
    assert refused("report", "conv-small", *ASKED, "--trace", traced(**changes)) == said


@pytest.mark.parametrize(("accuracy", "holds"), [(0.18, False), (0.2, True)])
def test_D3_a_run_has_learned_from_a_tenth_of_the_way_on(accuracy, holds):
    """Of ten classes: 0.1 is chance, and 0.1 + 0.1 (1 - 0.1) = 0.19 the least."""
    given = trace(accuracies=(0.5, accuracy))
    if holds:
        evaluate("conv-small", "ascend", "bold", trace=given, accounting="paper")
    else:
        with pytest.raises(DataError, match="collapsed"):
            evaluate("conv-small", "ascend", "bold", trace=given, accounting="paper")


def test_D3_a_run_that_was_cut_short_says_so(hwmodel, traced):
    name = traced(accuracies=(0.5,))
    code, out, _ = hwmodel("report", "conv-small", *ASKED, "--trace", name)
    assert code == 0 and "at batch 4, seed 0, 1 of 2 epochs" in " ".join(out.split())


# D4: votes and zeros

TINY = """
{"version": 1, "name": "tiny", "title": "t", "input": [2, 1, 1], "layers": [
 {"name": "fc1", "kind": "linear", "features": 5, "bias": true},
 {"name": "act1", "kind": "activation"},
 {"name": "fc2", "kind": "linear", "features": 3},
 {"name": "act2", "kind": "activation"},
 {"name": "fc3", "kind": "linear", "features": 10, "bias": true}]}
"""


def width_of(values, error):
    """The least b that keeps an rms error, by the formulas of docs/trainer.md, Limited widths."""
    sizes, rms = [abs(v) for v in values if v], math.sqrt(sum(v * v for v in values) / len(values))
    for bits in range(1, 33):
        if bits == 1:
            step = 2.0 ** round(math.log2(sum(sizes) / len(sizes)))
            held = [math.copysign(step, v) if v else 0 for v in values]
        else:
            step = 2.0 ** (math.floor(math.log2(max(sizes))) + 1 - bits + 1)
            L = 2 ** (bits - 1) - 1
            held = [min(L, max(-L, round(v / step))) * step for v in values]
        off = sum((a - b) ** 2 for a, b in zip(held, values, strict=True)) / len(values)
        if math.sqrt(off) <= error * rms:
            return bits
    raise AssertionError


def test_D4_votes_signals_and_sums_of_a_step_by_hand():
    """One step of four images, forward and back in plain Python from the weights as drawn."""
    network = NetworkFile.model_validate_json(TINY).network()
    training = Training(
        version=1, name="one", title="t", epochs=1, images=4, batch=4,
        recipe=Recipe(reweighting=False),
    )  # fmt: skip
    x = np.array([[1, -2], [0.5, 0.25], [-1, 1], [2, 0.75]], np.float32)
    y = np.array([3, 1, 4, 1])
    images = x.reshape(4, 1, 1, 2)
    data = Dataset("made", images, y, images, y, 10, "0" * 64)
    method = load(Method, "bold")
    layers = {
        node.name: node.layer for node in build(stack(network, method), training.recipe, 4, 7).nodes
    }
    w1, b1 = (p.value.tolist() for p in layers["fc1"].real)
    w2 = layers["fc2"].boolean[0].signs.tolist()
    w3, b3 = (p.value.tolist() for p in layers["fc3"].real)

    sums, votes, received = [], [[0.0] * 5 for _ in range(3)], []
    for image, label in zip(x.tolist(), y.tolist(), strict=True):
        hidden = [
            1 if sum(a * b for a, b in zip(row, image, strict=True)) + bias >= 0 else -1
            for row, bias in zip(w1, b1, strict=True)
        ]
        s = [sum(int(a) * h for a, h in zip(row, hidden, strict=True)) for row in w2]
        sums += s
        active = [1 if value >= 0 else -1 for value in s]
        logits = [
            sum(a * b for a, b in zip(row, active, strict=True)) + bias
            for row, bias in zip(w3, b3, strict=True)
        ]
        total = sum(math.exp(v) for v in logits)
        loss = [math.exp(v) / total - (i == label) for i, v in enumerate(logits)]
        z = [sum(loss[o] / 4 * w3[o][j] for o in range(10)) for j in range(3)]
        received += z
        for j in range(3):
            for i in range(5):
                votes[j][i] += z[j] * hidden[i]
    votes = [v for row in votes for v in row]

    measured = train(Settings(network, method, training, seed=7), data).epochs[0].layers[1]
    assert (measured.preactivation.lowest, measured.preactivation.highest) == (min(sums), max(sums))
    assert all(s % 2 for s in sums)  # of five terms: odd
    halves = [(s - 1) // 2 for s in sums]
    held = next(b for b in range(1, 9) if all(-(2 ** (b - 1)) <= h < 2 ** (b - 1) for h in halves))
    assert measured.sum_bits == held
    for seen, values in ((measured.vote, votes), (measured.signal, received)):
        assert seen.largest == pytest.approx(max(map(abs, values)), rel=1e-5)
        assert seen.rms == pytest.approx(
            math.sqrt(sum(v * v for v in values) / len(values)), rel=1e-5
        )
        assert seen.zero_share == 0
        assert seen.mean == pytest.approx(sum(values) / len(values), rel=1e-4, abs=1e-8)
        assert (seen.bits, seen.holds_bits) == (width_of(values, 0.3), width_of(values, 0.01))


def test_D4_zeros_and_widths_are_of_every_step():
    """(3, 0, 0, 1) and (0, 0, 0, 7) have 5 zeros of 8.

    At 30 % the first takes 3 bit, steps of 1 (of 2 or with one magnitude it is off by 1 twice,
    sqrt(2 / 10)), the second 1, for 8 is off by 1 of 7; at 1 % that takes 4, steps of 1 up to 7.
    """
    sizes = Sizes(0.3)
    sizes.step(np.array([3.0, 0, 0, 1]))
    sizes.step(np.array([0.0, 0, 0, 7]))
    found = sizes.result()
    assert (found.zero_share, found.bits, found.holds_bits, found.largest) == (5 / 8, 3, 4, 7)
    assert found.mean == 11 / 8
    assert found.rms == pytest.approx(math.sqrt((9 + 1 + 49) / 8))


def test_D4_reports_take_the_votes_that_were_measured():
    """fc4 has 256 x 128 weights: its votes leave the weight gradient and enter the update."""
    assumed = evaluate("conv-small", "ascend", "bold", accounting="full", batch=4)
    measured = evaluate("conv-small", "ascend", "bold", accounting="full", trace=trace())
    for layer, votes in (("conv2", 6), ("conv3", 7), ("fc4", 10)):
        for report, bits in ((assumed, 16), (measured, votes)):
            rows = [r for r in merged(report) if r.layer == layer and r.tensor == "dF"]
            update = {r.bits for r in rows if r.phase == "update"}
            weights = {"conv2": 64 * 32 * 9, "conv3": 64 * 64 * 9, "fc4": 256 * 128}[layer]
            assert update == {weights * bits}


def test_D4_a_report_shows_votes_and_zeros(hwmodel, traced):
    code, out, _ = hwmodel("report", "conv-small", *ASKED, "--trace", traced(zeros=0.75))
    line = next(x for x in out.splitlines() if re.match(r"\s+fc4\s+16 -> 6", x))
    assert code == 0 and re.search(
        r"16 -> 6\s+75\.0\s+16 -> 10\s+75\.0\s+16 -> 5\s+1 -> 25\s+9 -> 8", line
    )
    assert "they keep an rms error of 1 %" in " ".join(out.split())


def test_D4_a_report_says_which_error_its_widths_keep(hwmodel, traced):
    """Widths that train are those of a report; those that hold the values stand beside them."""
    run = trace(signal_error=0.3)
    epochs = tuple(
        epoch.model_copy(
            update={
                "layers": tuple(
                    layer.model_copy(
                        update={
                            name: size.model_copy(update={"holds_bits": bits})
                            for name, bits in (("signal", 25), ("sent", 26), ("vote", 11))
                            if (size := getattr(layer, name))
                        }
                    )
                    for layer in epoch.layers
                )
            }
        )
        for epoch in run.epochs
    )
    traced()
    write_trace(run.model_copy(update={"epochs": epochs}), Path("t.json"))
    _, out, _ = hwmodel("report", "conv-small", *ASKED, "--trace", "t.json")
    said = "they keep an rms error of 30 %; the values are held, to 1 %, by signal 26, vote 11 bit"
    assert said in " ".join(out.split())


def test_D4_an_accounting_may_skip_the_zeros_of_signals():
    """A quarter of the operations of both backward passes, and all else as it was."""
    full = load(Accounting, "full")
    skips = full.model_copy(
        update={"counting": full.counting.model_copy(update={"zero_signals": "skipped"})}
    )
    one, other = (
        evaluate("conv-small", "ascend", "bold", accounting=a, trace=trace(zeros=0.75))
        for a in (full, skips)
    )
    pairs = list(zip(one.ledger.entries, other.ledger.entries, strict=True))
    moved = [(a, b) for a, b in pairs if a.elements != b.elements]
    assert {(a.pass_, a.component, a.key.direction) for a, _ in moved} == {
        ("backward_input", "product", "operate"), ("backward_weight", "product", "operate"),
    }  # fmt: skip
    assert all(b.elements == pytest.approx(a.elements / 4, abs=1) for a, b in moved)
    assert {a.layer for a, _ in moved} == set(CONV_SMALL)
    without = [
        evaluate("conv-small", "ascend", "bold", accounting=a, batch=4) for a in (full, skips)
    ]
    assert without[0].energy == without[1].energy


# D5: one representation of a sum


@pytest.mark.parametrize(
    ("lowest", "highest", "bits"),
    [
        (-200, 198, 8),  # of 288 terms, even: -100 .. 99; in two's complement of s it would be 9
        (-288, 288, 9),  # -144 .. 144, as a count from 0 to 288 takes
        (-9, 9, 4),  # odd: -5 .. 4, a count from 0 to 9
        (-7, 7, 3),  # odd: -4 .. 3, a count from 0 to 7
        (-1, 1, 1),
        (-64, 64, 7),
        (-64, 62, 6),
    ],
)
def test_D5_the_lowest_bit_of_a_sum_is_known_and_not_stored(lowest, highest, bits):
    assert sum_bits(lowest, highest) == bits


def test_D5_a_whole_range_takes_what_a_count_takes():
    """As many different sums as counts, and as wide: 0 to m take ceil(log2(m + 1)) bit."""
    terms = range(1, 300)
    assert [sum_bits(-m, m) for m in terms] == [math.ceil(math.log2(m + 1)) for m in terms]


def test_D5_a_trace_of_version_1_is_read_like_for_like(tmp_path):
    """Its 9 bit of two's complement, of sums from -200 to 198, are 8; it has no votes."""
    values = json.loads(dumps(trace()))
    values["version"] = 1
    for layer in values["layers"]:
        del layer["worst_sum_bits"]
        layer["worst_accumulator_bits"] = 10 if layer["weights"] == "boolean" else None
    for epoch in values["epochs"]:
        for layer in epoch["layers"]:
            del layer["vote"]
            layer["accumulator_bits"] = 9 if layer.pop("sum_bits") else None
            layer["preactivation"] |= {"lowest": -200, "highest": 198}
    old = loads(json.dumps(values), tmp_path / "old.json")
    assert [layer.worst_sum_bits for layer in old.layers] == [None, 9, 10, 9, None]
    found = evaluate("conv-small", "ascend", "bold", accounting="full", trace=old)
    assert [found.edges[name].sum_bits for name in ("conv2", "conv3", "fc4")] == [8, 8, 8]
    assert found.measured["fc4"].vote_bits is None
    assert {
        r.bits for r in merged(found) if (r.layer, r.phase, r.tensor) == ("fc4", "update", "dF")
    } == {16 * 256 * 128}
    values["epochs"][0]["layers"][1]["preactivation"]["lowest"] = "low"
    with pytest.raises(DataError, match=r"old.json: is a damaged trace of version 1; train anew"):
        loads(json.dumps(values), tmp_path / "old.json")


# D6: several runs of a method


def runs(*accuracies, **changes):
    return [trace(accuracies=a, seed=seed, **changes) for seed, a in enumerate(accuracies)]


EARLY, LATE, NEVER = (0.9, 0.9, 0.9), (0.5, 0.6, 0.9), (0.5, 0.6, 0.8)


def test_D6_both_runs_of_a_method_count(hwmodel, traced, tmp_path):
    """It was 1.20 or 2.75 of fp's energy, as the seed would have it."""
    names = [
        traced(f"{i}.json", accuracies=a, seed=i, epochs=3) for i, a in enumerate([EARLY, LATE])
    ]
    more = [x for name in names for x in ("--trace", name)]
    asked = (
        "compare",
        "conv-small",
        "--hardware",
        "ascend",
        "--accounting",
        "full",
        "--methods",
        "bold",
    )
    code, out, _ = hwmodel(*asked, *more, "--accuracy", "0.9", "--sustain", "1")
    assert code == 0 and "10 to 30" in out
    reach = ("--accuracy", "0.9", "--sustain", "1")
    _, text, _ = hwmodel(*asked, "--trace", ",".join(names), *reach, "--csv", "-")
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["runs"], row["runs_reached"], row["spread"]) == ("2", "2", "extremes")
    assert (row["steps_low"], row["steps_middle"], row["steps_high"]) == ("10", "", "30")
    assert float(row["energy_high"]) == 30 * float(row["energy"])
    assert "--trace 0.json,1.json" in row["command"]


@pytest.mark.parametrize(
    ("accuracies", "reach", "steps"),
    [
        ([EARLY, LATE, EARLY, LATE, LATE], 5, (10, 30, 30)),  # 10 10 30 30 30: 2nd, 3rd, 4th
        ([EARLY, NEVER, EARLY, LATE, NEVER], 3, (10, 30, None)),  # 10 10 30 - -
        ([NEVER, NEVER, EARLY, LATE, NEVER], 2, (30, None, None)),  # 10 30 - - -
    ],
)
def test_D6_quartiles_of_five_runs_by_nearest_rank(accuracies, reach, steps):
    given = runs(*accuracies, epochs=3)
    lines = list(compare("conv-small", "ascend", "bold", accounting="full", traces=given))
    (end,) = reached(lines, given, 0.9, sustain=1)
    assert (end.runs, end.runs_reached, end.spread) == (5, reach, "quartiles")
    assert (end.steps_low, end.steps_middle, end.steps_high) == steps
    energies = [None if n is None else n * lines[0].energy for n in steps]
    assert [end.energy_low, end.energy_middle, end.energy_high] == energies


@pytest.mark.parametrize(
    ("sustain", "steps"),
    [(1, 10), (2, 30), (3, 50), (4, None)],
)
def test_D6_a_target_is_reached_where_it_stays_reached(sustain, steps):
    """An evaluation every 10 steps: the first of as many in a row as are asked for."""
    lists = {
        1: (0.9, 0.8, 0.8, 0.9, 0.9),
        2: (0.9, 0.8, 0.9, 0.9, 0.8, 0.9),
        3: (0.9, 0.8, 0.9, 0.8, 0.9, 0.95, 0.9),
        4: (0.9, 0.9, 0.9, 0.8, 0.9, 0.9, 0.9),
    }
    run = trace(accuracies=lists[sustain])
    lines = list(compare("conv-small", "ascend", "bold", traces=[run]))
    (end,) = reached(lines, [run], 0.9, sustain)
    assert (end.steps_middle, end.runs_reached) == (steps, int(steps is not None))


def test_D6_a_target_is_stated_or_there_is_none():
    """One that is taken from what the runs reached was set in view of them."""
    given = runs((0.5, 0.7, 0.6, 0.9), (0.4, 0.8, 0.8, 0.8))
    (end,) = reached(list(compare("conv-small", "ascend", "bold", traces=given)), given, None)
    assert (end.runs, end.target_accuracy_percent, end.steps_low, end.energy_low) == (
        2,
        *[None] * 3,
    )


def test_D6_a_target_is_never_one_of_the_test_images(refused, traced):
    """The accuracy on test images is 0.9, that on validation images 0.5; without, it is refused."""
    run = trace(accuracies=(0.5, 0.5))
    tested = run.model_copy(
        update={"epochs": tuple(e.model_copy(update={"accuracy": 0.9}) for e in run.epochs)}
    )
    lines = list(compare("conv-small", "ascend", "bold", traces=[tested]))
    (end,) = reached(lines, [tested], 0.9, sustain=1)
    assert (end.runs_reached, end.trace_accuracy_percent) == (0, 90)
    asked = ("--hardware", "ascend", "--methods", "bold", "--accuracy", "0.9")
    name = traced(validated=False)
    assert refused("compare", "conv-small", *asked, "--trace", name) == (
        "the trace of conv-small by bold, seed 0 has no validation accuracy, and a target is never "
        "one of the test images; train with --validation 0.2"
    )


@pytest.mark.parametrize(("target", "noisy"), [(0.88, False), (0.89, False), (0.9, True)])
def test_D6_a_target_at_the_noise_is_said_to_be(hwmodel, traced, target, noisy):
    """Medians in the end are 0.9 and, of 0.88 0.95 0.91, 0.91: a point below the lowest is 0.89."""
    names = [
        traced(f"{i}.json", accuracies=(0.5, a), seed=i) for i, a in enumerate([0.88, 0.95, 0.91])
    ]
    names.append(traced("fp.json", method="fp", weights="real", accuracies=(0.9, 0.9)))
    asked = ("conv-small", "--hardware", "ascend", "--accounting", "full", "--methods", "bold,fp")
    more = ("--trace", ",".join(names), "--accuracy", str(target), "--sustain", "1")
    code, out, _ = hwmodel("compare", *asked, *more)
    assert code == 0
    assert ("is at the noise: 90.0 % is the median of fp in the end" in out) == noisy


def test_D6_sustain_is_an_option_of_traces(refused, traced):
    asked = ("compare", "conv-small", "--hardware", "ascend", "--methods", "bold")
    for words in (("--sustain", "2"), ("--trace", traced(), "--sustain", "0")):
        assert refused(*asked, *words).endswith("a whole number from 1 to 1,000, with --trace")


def test_D6_the_end_of_runs_is_a_mean_with_a_deviation():
    """0.8, 0.9 and 0.7: mean 80, deviation of three 10."""
    given = runs((0.8,), (0.9,), (0.7,))
    (end,) = reached(
        list(compare("conv-small", "ascend", "bold", traces=given, accounting="paper")), given, None
    )
    assert end.trace_accuracy_percent == pytest.approx(80)
    assert end.trace_accuracy_deviation == pytest.approx(10)


def test_D6_widths_hold_in_every_run_and_rates_are_means():
    other = {"conv2": (8, 9, 5, 10), "conv3": (7, 6, 7, 9), "fc4": (8, 6, 11, 5)}
    given = [trace(flip=0.1, zeros=0.2), trace(flip=0.3, zeros=0.6, bits=other, seed=1)]
    found = evaluate("conv-small", "ascend", "bold", accounting="full", trace=given)
    conv2, fc4 = found.measured["conv2"], found.measured["fc4"]
    assert (conv2.sum_bits, conv2.signal_bits, conv2.vote_bits, conv2.accumulator_bits) == (
        9,
        9,
        6,
        11,
    )
    assert fc4.vote_bits == 11
    assert (conv2.flip_rate, conv2.signal_zeros, conv2.vote_zeros) == pytest.approx((0.2, 0.4, 0.4))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 1, "learning_rate": 40.0}, "the traces of conv-small by bold, seed 0 and of conv-small by bold, seed 1 differ in more than their seed: learning_rate 1.0 and 40.0"),
        ({}, "two of the traces are of one run, conv-small by bold, seed 0"),
    ],
)  # fmt: skip
def test_D6_runs_of_one_method_differ_in_their_seed_alone(refused, traced, changes, said):
    names = f"{traced('a.json')},{traced('b.json', **changes)}"
    assert refused("report", "conv-small", *ASKED, "--trace", names) == said


def test_D6_accuracies_on_other_images_do_not_compare(refused, traced):
    names = f"{traced()},{traced('fp.json', method='fp', weights='real', data_digest='1' * 64)}"
    asked = ("--hardware", "ascend", "--methods", "bold,fp", "--trace", names)
    assert refused("compare", "conv-small", *asked) == (
        "the traces of conv-small by bold, seed 0 and of conv-small by fp, seed 0 are of "
        "different images: their accuracies do not compare"
    )


# D8: nothing is dropped, guessed or destroyed


@pytest.mark.parametrize("command", ["report", "explain"])
def test_D8_the_batch_is_the_trace_s(hwmodel, traced, command):
    more = ("conv2",) if command == "explain" else ()
    name = traced(batch=12)
    words = [command, "conv-small", *ASKED, "--trace", name]
    words[2:2] = [] if not more else ["--layer", *more]
    code, out, err = hwmodel(*words)
    assert code == 0, err
    assert "batch is 12" in out if more else "iteration of 12 images" in out
    if not more:
        text = " ".join(hwmodel(*words, "--batch", "5")[1].split())
        assert "iteration of 5 images" in text
        assert "on d at batch 12, seed 0; they are priced here at batch 5" in text


def test_D8_steps_of_one_batch_are_none_of_another(refused, traced):
    asked = ("compare", "conv-small", "--hardware", "ascend", "--methods", "bold,fp")
    assert refused(*asked, "--trace", traced(), "--batch", "8") == (
        "the trace of conv-small by bold, seed 0 ran at batch 4: its steps are no iterations of "
        "batch 8; leave out --batch"
    )
    names = f"{traced()},{traced('fp.json', method='fp', weights='real', batch=16)}"
    assert refused(*asked, "--trace", names) == (
        "the traces have different batches, 4 (conv-small by bold, seed 0) and 16 (conv-small by "
        "fp, seed 0): their steps do not compare"
    )


def test_D8_no_trace_is_left_aside(refused, traced):
    names = f"{traced()},{traced('bn.json', method='bold-bn')}"
    asked = ("--hardware", "ascend", "--methods", "bold,fp", "--trace", names)
    assert refused("compare", "conv-small", *asked) == (
        "the trace of conv-small by bold-bn, seed 0 is of none of the methods compared, bold, fp"
    )


def test_D8_a_finished_trace_is_not_written_over_unasked(hwmodel, refused, tmp_path):
    pytest.importorskip("sklearn")
    words = ("train", "--epochs", "1", "--trace", "t.json")
    assert hwmodel(*words)[0] == 0
    before = (tmp_path / "t.json").read_bytes()
    assert refused(*words, "--seed", "1") == (
        "t.json: is there already, the trace of deep-mlp by bold, seed 0, 1 of 1 epochs; give "
        "another --trace, --resume to go on, or --overwrite"
    )
    assert (tmp_path / "t.json").read_bytes() == before
    assert hwmodel(*words, "--seed", "1", "--overwrite")[0] == 0
    assert read_trace(tmp_path / "t.json").run.seed == 1


def bomb(path, kind):
    """A checkpoint with a right seal that stands for gigabytes: compressed, shared, or a hole."""
    from hwmodel.trainer.checkpoint import _seal

    packed = io.BytesIO()
    if kind == "compressed":
        with (
            zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open("zeros.npy", "w", force_zip64=True) as member,
        ):
            for _ in range(150):
                member.write(bytes(10**7))
    else:
        np.savez(packed, trace=np.zeros(2_900_000, np.uint8))
    content = packed.getvalue()
    if kind == "shared":  # three thousand names for one member
        name, end = b"trace.npy", content.rindex(b"PK\x05\x06")
        start = content.index(b"PK\x01\x02")
        entry = content[start:end]
        many = b"".join(entry.replace(name, b"%09d" % i) for i in range(3000))
        tail = bytearray(content[end:])
        tail[8:12] = (3000).to_bytes(2, "little") * 2
        tail[12:16] = len(many).to_bytes(4, "little")
        content = content[:start] + many + bytes(tail)
    path.write_bytes(content + _seal(content))
    if kind == "hole":
        os.truncate(path, 8_700_000_000)


@pytest.mark.parametrize("kind", ["compressed", "shared", "hole"])
def test_D8_a_checkpoint_that_unpacks_to_gigabytes_is_refused(tmp_path, kind):
    pytest.importorskip("sklearn")
    bomb(tmp_path / "t.json.checkpoint.npz", kind)
    words = ("train", "--epochs", "1", "--trace", "t.json", "--resume")
    code, said, memory, _ = used(*words, cwd=tmp_path)
    assert code == 2 and said.count("\n") == 1
    assert said.startswith("hwmodel: t.json.checkpoint.npz: is ")
    assert memory < LEAST
