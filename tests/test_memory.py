"""What a run keeps at a time: chains by hand, published sizes, and every life replayed."""

import json
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hwmodel import evaluate
from hwmodel.graph.network import Network, family_member
from hwmodel.importers.load import load_network
from hwmodel.model.memory import occupancy
from hwmodel.model.names import Part
from hwmodel.model.plans import occupied, prepared
from hwmodel.model.schedule import everything, schedule
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.method import Method
from hwmodel.vary.paths import replaced_all
from hwmodel.work.tensor import TensorKind
from tests.specs import CHIP, written

FULL = load(Accounting, "full")
FUSED = replaced_all(
    FULL, {"extras.elementwise": "fused", "extras.update_order": "as-gradients-finish"}
)
DATA = Path(__file__).parent / "data" / "turn2"
MIB = 8 * 2**20  # bits

CHAIN = {
    "version": 1,
    "name": "chain",
    "title": "Two layers with weights",
    "input": [2, 4, 4],
    "layers": [
        {"name": "conv", "kind": "conv", "channels": 3, "kernel": 1},
        {"name": "act", "kind": "activation"},
        {"name": "flat", "kind": "reshape", "shape": [48, 1, 1]},
        {"name": "fc", "kind": "linear", "features": 5},
    ],
}
FORK = CHAIN | {
    "name": "fork",
    "layers": [
        {"name": "conv", "kind": "conv", "channels": 3, "kernel": 1},
        {"name": "act", "kind": "activation"},
        {"name": "two", "kind": "conv", "channels": 3, "kernel": 1},
        {"name": "sum", "kind": "add", "inputs": ["two", "act"]},
        {"name": "fc", "kind": "linear", "features": 5},
    ],
}


def kept(network, method="fp", batch=1, mode="training", **changes):
    found = validate(Network, network, "net") if isinstance(network, dict) else network
    accounting = replaced_all(FULL, {f"extras.{name}": value for name, value in changes.items()})
    return occupied(found, Job(load(Method, method), accounting, batch, mode))


def words(found, kinds=tuple(TensorKind)):
    """Words of 32 bit at each step, by the step."""
    return [
        (str(step), bits // 32) for step, bits in zip(found.steps, found.bits(kinds), strict=True)
    ]


def lives(found):
    """Steps from the first to the last of every tensor, and its words of 32 bit."""
    return {one.name: (one.first, one.last, one.bits / 32) for one in found.tensors}


# By hand: image 32, maps of 48, 5 results; weights 6 and 240, and Adam's m and v for each of them.
WEIGHTS, STATES = 6 + 240, 2 * (6 + 240)


def test_a_chain_by_hand_step_by_step():
    found = kept(CHAIN)
    assert lives(found) == {
        "a:input": (0, 6, 32), "a:conv": (0, 1, 48), "a:act": (1, 5, 48), "a:fc": (2, 2, 5),
        "d:fc": (3, 4, 5), "d:flat": (4, 5, 48), "d:conv": (5, 6, 48),
        "F:conv": (0, 8, 6), "F:fc": (0, 8, 240), "dF:fc": (3, 8, 240), "dF:conv": (6, 7, 6),
        "m(F):conv": (0, 8, 6), "v(F):conv": (0, 8, 6),
        "m(F):fc": (0, 8, 240), "v(F):fc": (0, 8, 240),
    }  # fmt: skip
    moving = [
        ("forward of conv", 32 + 48),
        ("forward of act", 32 + 48 + 48),
        ("forward of fc", 32 + 48 + 5),  # of the reshaped map, which is the same tensor
        ("backward_weight of fc", 32 + 48 + 5 + 240),
        ("backward_input of fc", 32 + 48 + 5 + 48 + 240),
        ("backward_input of act", 32 + 48 + 48 + 48 + 240),
        ("backward_weight of conv", 32 + 48 + 240 + 6),
        ("update of conv", 240 + 6),
        ("update of fc", 240),
    ]
    assert words(found) == [(step, n + WEIGHTS + STATES) for step, n in moving]
    peak = found.peak()
    assert (str(peak.step), peak.bits) == ("backward_input of act", 32 * (416 + WEIGHTS + STATES))
    assert {part.value: bits / 32 for part, bits in peak.parts.items()} == {
        "weights": WEIGHTS, "optimizer states": STATES, "weight gradients": 240,
        "activations": 32 + 48, "signals": 48 + 48,
    }  # fmt: skip
    assert sum(peak.parts.values()) == peak.bits == sum(one.bits for one in peak.tensors)


def test_inference_keeps_weights_and_what_the_next_layer_reads():
    found = kept(CHAIN, mode="inference", batch=2)
    assert words(found) == [
        ("forward of conv", WEIGHTS + 2 * (32 + 48)),
        ("forward of act", WEIGHTS + 2 * (48 + 48)),
        ("forward of fc", WEIGHTS + 2 * (48 + 5)),
    ]


def test_a_network_of_views_keeps_what_it_is_given():
    view = CHAIN | {"layers": [{"name": "flat", "kind": "reshape", "shape": [32, 1, 1]}]}
    assert words(kept(view, mode="inference")) == [("forward of flat", 32)]
    norms = CHAIN | {"layers": [{"name": "bn", "kind": "batch-norm"}]}
    assert kept(norms, "bold", mode="inference").peak().bits == 0  # which has none


@pytest.mark.parametrize(("optimizer", "states"), [("none", 0), ("sgd", 0), ("momentum", 1)])
def test_states_are_those_of_the_optimizer_counted_or_not(optimizer, states):
    found = kept(CHAIN, optimizer=optimizer, elementwise="preactivation-words")
    assert found.bits([TensorKind.STATE])[0] == 32 * states * WEIGHTS
    assert found.peak().bits == 32 * (416 + (1 + states) * WEIGHTS)


def test_a_sum_passes_its_signal_on_and_a_fork_adds_up_what_its_takers_give():
    found = lives(kept(FORK))
    names = {name for name in found if name.startswith("d:")}
    # Of `sum` the branch `two` and the shortcut have one signal, and `act` gets a second one.
    assert names == {"d:fc", "d:sum", "d:act<two", "d:act", "d:conv"}
    # Steps 0 to 4 go forward; back: fc's two products 5, 6; two's 7, 8; fork 9, act 10, conv 11.
    assert found["d:sum"][:2] == (6, 9)
    assert found["d:act<two"][:2] == (8, 9)
    assert found["d:act"][:2] == (9, 10)
    assert found["a:act"][:2] == (1, 10)  # its way back reads its own output
    assert found["a:sum"][:2] == (3, 5)


def test_narrow_weights_have_latent_ones_and_boolean_ones_accumulators():
    layers = [*CHAIN["layers"][:2], {"name": "mid", "kind": "conv", "channels": 3, "kernel": 1},
              {"name": "act2", "kind": "activation"}, *CHAIN["layers"][2:]]  # fmt: skip
    net = CHAIN | {"layers": layers}
    binary = {one.name: one for one in kept(net, "binarynet").tensors}
    assert binary["F:mid"].bits == 9 and binary["latent F:mid"].bits == 9 * 32
    assert binary["latent F:mid"].part.kind == TensorKind.STATE
    boolean = {one.name: one for one in kept(net, "bold").tensors}
    assert boolean["F:mid"].bits == 9 and boolean["accumulator F:mid"].bits == 9 * 16
    assert "latent F:mid" not in boolean and "m(F):mid" not in boolean


def test_frozen_layers_have_neither_gradient_nor_state_nor_ifmap_kept():
    layers = [CHAIN["layers"][0] | {"learned": False}, *CHAIN["layers"][1:]]
    found = lives(kept(CHAIN | {"layers": layers}))
    assert {"dF:conv", "m(F):conv", "d:act", "d:conv"}.isdisjoint(found)
    assert found["a:input"][:2] == (0, 0) and found["F:conv"][2] == 6


def test_the_published_sizes_of_vgg_small():
    """Each by hand; Wang et al. 2021 have them for BinaryNet, batch 100, in MiB."""
    found = kept(load_network("vgg-small"), batch=100)
    of = {one.name: one.bits for one in found.tensors}
    filters = sum(bits for name, bits in of.items() if name.startswith("F:"))
    assert filters == 14_022_016 * 32 and filters / MIB == pytest.approx(53.49, abs=0.005)
    gradients = sum(bits for name, bits in of.items() if name.startswith("dF:"))
    assert gradients == filters
    states = sum(bits for name, bits in of.items() if re.match(r"[mv]\(F\):", name))
    assert states / MIB == pytest.approx(106.98, abs=0.005)
    # 128 x 32 x 32 words of 100 images.
    assert max(bits for name, bits in of.items() if name.startswith("a:")) == 50 * MIB
    # Of four under a window, which was the largest: 2 bit for each of 229,376 / 4 results.
    indices = sum(one.bits for one in found.tensors if one.part == Part.INDICES)
    assert indices == 100 * 229_376 // 4 * 2
    assert 87.5 * MIB == 100 * 229_376 * 32  # masks of a word each, as theirs


def test_the_inputs_of_vgg_small_s_nine_weight_layers_are_291_840_words_an_image():
    network = load_network("vgg-small")
    job = everything(Job(load(Method, "fp"), FULL, 100, "training"))
    inputs = {}
    run = schedule(*prepared(network, job), job)
    for step, uses in zip(run.steps, run.uses, strict=True):
        if (step.pass_, step.component) == ("backward_weight", "product"):
            inputs |= {use.name: use.bits for use in uses if use.part == Part.ACTIVATIONS}
    assert sum(inputs.values()) == 291_840 * 100 * 32
    assert sum(inputs.values()) / MIB == pytest.approx(111.33, abs=0.005)


ZOO = [
    ("vgg-small", "fp"), ("vgg-small", "bold"), ("resnet18", "binaryconnect"),
    ("resnet18", "bold"), ("densenet121", "fp"), ("bi-realnet-18", "xnor-net"),
    ("deeplabv3-resnet18", "bold"), ("edsr-small-x2", "fp"), ("bert-base", "bold-bert"),
    ("reactnet-resnet18", "real2binary"), ("bnext-18", "bnext"), ("mobilenet-v1", "fp16"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "method"), ZOO)
@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("accounting", [FULL, FUSED], ids=["streamed", "fused"])
def test_every_life_replayed(name, method, mode, accounting):
    """A set of names is carried from step to step, and a name dropped after its last use."""
    job = everything(Job(load(Method, method), accounting, 2, mode))
    run = schedule(*prepared(load_network(name), job), job)
    sizes, last = {}, {}
    for number, uses in enumerate(run.uses):
        for use in uses:
            sizes[use.name] = max(sizes.get(use.name, 0), use.bits)
            last[use.name] = number
    always = {use.name for uses in run.uses for use in uses if use.part.is_kept}
    living, replayed, written = set(always), [], set()
    for number, uses in enumerate(run.uses):
        written |= {use.name for use in uses if use.direction == "write"}
        for use in uses:  # nothing is read that was not made before
            given = use.part.is_kept or use.name.endswith(":input")
            assert use.direction == "write" or given or use.name in written, use
        living |= {use.name for use in uses}
        replayed.append(sum(sizes[one] for one in living))
        living = {one for one in living if one in always or last[one] > number}
    found = occupancy([run])
    assert found.bits() == replayed
    assert found.peak().bits == max(replayed)
    by_kind = [found.bits([kind]) for kind in TensorKind]
    assert [sum(each) for each in zip(*by_kind, strict=True)] == replayed


def test_a_teacher_s_weights_are_kept_through_the_iteration():
    found = kept(load_network("bi-realnet-18"), "real2binary")
    teacher = [one for one in found.tensors if one.name.startswith("resnet")]
    weights = [one for one in teacher if one.part == Part.WEIGHTS]
    assert weights and all((w.first, w.last) == (0, len(found.steps) - 1) for w in weights)
    assert not any(one.part in (Part.GRADIENTS, Part.MOMENTS) for one in teacher)


def test_the_report_has_it_whatever_the_accounting_counts():
    paper, full = (
        evaluate("vgg-small", "ascend", "binarynet", accounting=accounting).memory
        for accounting in ("paper", "full")
    )
    fewer = {one.name for one in full.tensors if one.part != Part.MOMENTS}
    assert {one.name for one in paper.tensors} == fewer  # `paper` names no optimizer


def test_the_order_of_updates_by_hand():
    """Stepped at once, a gradient lives to its layer's update, and at most one lives at a time."""
    at_end = lives(kept(CHAIN))
    at_once = kept(CHAIN, update_order="as-gradients-finish")
    order = ["forward of conv", "forward of act", "forward of fc", "backward_weight of fc",
             "backward_input of fc", "update of fc", "backward_input of act",
             "backward_weight of conv", "update of conv"]  # fmt: skip
    assert [str(step) for step in at_once.steps] == order
    assert at_end["dF:fc"][:2] == (3, 8) and lives(at_once)["dF:fc"][:2] == (3, 5)
    assert lives(at_once)["dF:conv"][:2] == (7, 8)
    found = kept(CHAIN, update_order="fused")
    assert not any(one.part == Part.GRADIENTS for one in found.tensors)
    # At fc's backward_input: image, a:act, d:fc, d:flat, dF; at act's: image, a:act, two signals.
    assert at_once.peak().bits == 32 * (32 + 48 + 5 + 48 + 240 + WEIGHTS + STATES)
    assert found.peak().bits == 32 * (32 + 48 + 48 + 48 + WEIGHTS + STATES)


def test_a_fused_chain_by_hand():
    """What is fused is done at the step of its maker, so both ends of a group live together.

    Steps: conv with act, fc; back fc's products, the second with act, and conv's; updates.
    """
    found = lives(kept(CHAIN, elementwise="fused"))
    maps = {name: life for name, life in found.items() if name[:2] in ("a:", "d:")}
    assert maps == {
        "a:input": (0, 4, 32), "a:act": (0, 3, 48), "a:fc": (1, 1, 5), "d:fc": (2, 3, 5),
        "d:conv": (3, 4, 48),
    }  # fmt: skip


def test_a_joined_tensor_lives_from_its_first_part():
    one = {"kind": "conv", "channels": 2, "kernel": 1, "inputs": ["input"]}
    layers = [{"name": "one", **one}, {"name": "two", **one}, {"name": "three", **one},
              {"name": "x", "kind": "concat", "inputs": ["one", "two", "three"]},
              {"name": "last", "kind": "conv", "channels": 2, "kernel": 1}]  # fmt: skip
    found = kept(CHAIN | {"layers": layers}, mode="inference", elementwise="fused")
    assert [str(step) for step in found.steps] == [
        f"forward of {name}" for name in ("one", "two", "three", "last")
    ]
    assert lives(found)["a:x"] == (0, 3, 6 * 16)


def test_bold_on_vgg_small_keeps_156_mebibyte_by_hand():
    """Batch 100, at backward_input of conv2; 50 of it the 32-bit sums of the first layer.

    A signal of 16 bit goes in and one of the same size comes out, whoever writes it: fused or not.
    """
    boolean, real, images = 14_008_320, 13_696, 100
    assert boolean + real == 14_022_016
    weights = boolean + 32 * real
    states = 16 * boolean + 2 * 32 * real
    gradients = 16 * boolean + 32 * 10_240  # votes, and dF of the last layer
    sums = images * 128 * 32 * 32 * 32
    signals = 2 * images * 128 * 32 * 32 * 16
    image = images * 3 * 32 * 32 * 32
    for elementwise in ("streamed", "fused"):
        found = kept(load_network("vgg-small"), "bold", batch=100, elementwise=elementwise).peak()
        assert str(found.step) == "backward_input of conv2"
        assert found.bits == weights + states + gradients + sums + signals + image
    assert found.bits / MIB == pytest.approx(156.48, abs=0.005)


TORCH = YAML(typ="safe").load(Path(__file__).parent / "data" / "schedule_targets.yaml")["memory"]


@pytest.mark.parametrize("elementwise", ["streamed", "fused"])
@pytest.mark.parametrize("row", TORCH["pytorch_memtracker"], ids=lambda row: row["network"])
def test_pytorch_s_measured_peak_within_1_percent(row, elementwise):
    """MemTracker runs one operator after the other: `streamed` is within 0.01 % of it."""
    network = load_network(row["network"].partition(" ")[0])
    peak = kept(network, batch=row["batch"], kept="pytorch", elementwise=elementwise).peak()
    assert peak.bits / MIB == pytest.approx(row["total"], rel=0.01)
    if elementwise == "streamed":
        assert peak.bits / MIB == pytest.approx(row["total"], rel=1e-4)
    if elementwise == "streamed" and row["network"] == "vgg-small":  # class by class
        found = {part.name.lower(): bits / MIB for part, bits in peak.parts.items()}
        assert {
            "param": found["weights"], "grad": found["gradients"], "opt": found["moments"],
            "act": found["activations"] + found["indices"], "temp": found["signals"],
        } == {key: pytest.approx(row[key], abs=0.011) for key in
              ("param", "grad", "opt", "act", "temp")}  # fmt: skip


def test_what_pytorch_s_pools_keep_by_hand():
    layers = [CHAIN["layers"][0], {"name": "pool", "kind": "max-pool", "kernel": 2},
              {"name": "fc", "kind": "linear", "features": 5}]  # fmt: skip
    net = CHAIN | {"layers": layers}
    minimal, torch = (lives(kept(net, kept=how)) for how in ("minimal", "pytorch"))
    # 48 elements in windows of 4: 12 indices of 2 bit, or of 64; forward is steps 0 to 2.
    assert minimal["index:pool"] == (1, 5, 12 * 2 / 32) and torch["index:pool"] == (1, 5, 12 * 2)
    assert minimal["a:conv"][:2] == (0, 1) and torch["a:conv"][:2] == (0, 5)
    assert evaluate_energy(net, "minimal") == evaluate_energy(net, "pytorch")


def evaluate_energy(net, how):
    accounting = replaced_all(FULL, {"extras.kept": how})
    return evaluate(validate(Network, net, "net"), "ascend", "fp", accounting=accounting).energy


def test_attention_keeps_its_operands_as_maps():
    found = kept(family_member("bert-base", {"blocks": 1}), "fp", batch=2)
    parts = {one.name: one.part for one in found.tensors}
    assert not any(name.startswith(("F:layer0.scores", "dF:layer0.scores")) for name in parts)
    assert parts["a:layer0.key"] == Part.ACTIVATIONS and parts["d:layer0.key"] == Part.SIGNALS


def test_the_command_prints_the_peak_by_class_and_by_memory(hwmodel, tmp_path):
    """The chain's peak by hand, in bytes: 4 for each of its words."""
    path = tmp_path / "chain.yaml"
    path.write_text(json.dumps(CHAIN))
    code, out, err = hwmodel(
        "memory",
        path,
        "--method",
        "fp",
        "--accounting",
        "full",
        "--hardware",
        DATA / "hw_mcu2.yaml",
        "--mode",
        "training",
    )
    assert (code, err) == (0, "")
    total = 4 * (416 + WEIGHTS + STATES)
    cells = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert cells["weights"][1] == f"{4 * WEIGHTS:,}" and cells["all"][1] == f"{total:,}"
    assert cells["sram"][-2:] == [f"{total:,}", "262,144"]
    assert f"Peak: {total:,} B at backward_input of act, step 6 of 9; " in out
    assert out.endswith("\nFits on mcu.\n")
    code, out, err = hwmodel("memory", path, "--method", "fp", "--mode", "trainig")
    assert (code, out, err) == (
        2,
        "",
        "hwmodel: mode 'trainig': must be one of training, inference\n",
    )


def test_where_a_run_does_not_fit_and_by_how_much(hwmodel, tmp_path):
    """Several chips at once; 4 bytes for each of the chain's words, as above."""
    (tmp_path / "chain.yaml").write_text(json.dumps(CHAIN))
    small = "{level: 1, name: SRAM, capacity: 1 KiB, access_energy: 5 pJ/B, source: me}"
    outer = next(line for line in CHIP.splitlines() if "DRAM" in line)
    upper = next(line for line in CHIP.splitlines() if "SRAM" in line)
    written(tmp_path, CHIP, name="chip.yaml")
    written(
        tmp_path, CHIP, (f"{outer}\n", ""), (upper, f"  - {small}"), ("name: chip", "name: tiny"),
        name="tiny.yaml",
    )  # fmt: skip
    words = ("--method", "fp", "--accounting", "full", "--hardware", "chip.yaml,tiny.yaml")
    code, out, err = hwmodel("memory", "chain.yaml", *words)
    assert (code, err) == (1, "")
    missing = (4 * (416 + WEIGHTS + STATES) - 1024) / 2**20
    assert out.splitlines()[-2:] == [
        "Fits on chip, whose outermost memory is unlimited here.",
        f"Does not fit on tiny: by {missing:,.2f} MiB in SRAM.",
    ]
    assert "exit code is 0 where the run fits on every chip" in " ".join(
        hwmodel("memory", "--help")[1].split()
    )
