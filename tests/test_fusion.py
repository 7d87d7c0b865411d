"""Fused operators: words of DRAM by hand, operator by operator, and what holds for all networks."""

import os
from math import prod
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hwmodel import HwmodelError, SpecError, compare, evaluate
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.hardware import Hardware
from hwmodel.vary.paths import replaced_all
from tests.test_memory import CHAIN, FORK

FULL = load(Accounting, "full")
FUSED = replaced_all(FULL, {"extras.elementwise": "fused"})
TARGETS = YAML(typ="safe").load(Path(__file__).parent / "data" / "schedule_targets.yaml")


def words(report):
    """Words of 32 bit that DRAM is asked for: by layer and pass, tensor and direction."""
    found = {}
    for one in report.ledger.entries:
        if one.memory == "L3":
            key = f"{one.pass_} of {one.layer}", one.stored, str(one.direction)
            found[key] = found.get(key, 0) + one.count / 32
    return found


def moved(layers, given, *, method="fp", mode="training", accounting=FUSED):
    """Words of DRAM of maps and signals of a network, by step, tensor and direction."""
    document = {"version": 1, "name": "net", "title": "t", "input": list(given), "layers": layers}
    report = evaluate(
        validate(Network, document, "net"), "ascend", method, accounting=accounting, mode=mode
    )
    return {key: n for key, n in words(report).items() if key[1][:2] in ("a:", "d:")}


def test_conv_norm_relu_conv_of_vgg_small_is_six_words_then_three():
    """Words of DRAM an element between two products, without those that they read."""
    block, n = TARGETS["fused"]["block_conv_bn_relu"], 256 * 16 * 16
    for name, accounting in (("streamed", FULL), ("fused", FUSED)):
        trained = evaluate("vgg-small", "ascend", "fp", accounting=accounting)
        run = evaluate("vgg-small", "ascend", "fp", accounting=accounting, mode="inference")

        def total(report, pass_, product):
            entries = [e for e in report.ledger.entries if e.memory == "L3" and e.pass_ == pass_]
            own = [
                e for e in entries if e.layer in ("bn3", "act3") and e.stored[:2] in ("a:", "d:")
            ]
            result = "a:conv3" if pass_ == "forward" else "d:act3"
            own += [e for e in entries if e.layer == product and e.stored == result]
            return sum(one.elements for one in own) / n

        assert total(trained, "forward", "conv3") == block["training_forward"][name]
        assert total(trained, "backward_input", "conv4") == block["training_backward"][name]
        assert total(run, "forward", "conv3") == block["inference"][name]
    assert block["training_forward"] == {"streamed": 6, "fused": 3}


@pytest.mark.skipif(os.environ.get("HWMODEL_TESTS") != "thorough", reason="searches ResNet-50")
@pytest.mark.parametrize("elementwise", ["streamed", "fused"])
def test_resnet50_at_16_bit_costs_an_image_what_the_prototype_has(elementwise):
    """Filters held, the asking memory charged; batch 256."""
    held = {"counting.stationary": "filter", "counting.transfers": "upper"}
    rules = replaced_all(FULL, held | {"extras.elementwise": elementwise})
    found = evaluate("resnet50", "ascend", "fp16", accounting=rules, batch=256).energy / 256 / 1e9
    target = TARGETS["fused"]["resnet50_fp16_batch256_ascend_mJ_per_image"][elementwise]
    assert found == pytest.approx(target, rel=1e-3)


def test_a_word_of_that_map_is_13_microjoule():
    """65,536 elements of 32 bit at 6.25 pJ a bit; the norm is folded: two words less of each."""
    energies = [
        evaluate("vgg-small", "ascend", "fp", accounting=one, mode="inference")
        .energies("layer", "memory")
        .get(("bn3", "L3"), 0.0)
        for one in (FULL, FUSED)
    ]
    assert energies == [pytest.approx(2 * 65_536 * 32 * 6.25), 0.0]
    assert pytest.approx(13.107, abs=5e-4) == 65_536 * 32 * 6.25 / 1e6


def test_a_chain_by_hand():
    report = evaluate(validate(Network, CHAIN, "net"), "ascend", "fp", accounting=FUSED)
    found = {key: n for key, n in words(report).items() if key[1][:2] in ("a:", "d:")}
    assert found == {
        ("forward of conv", "a:input", "read"): 32,
        ("forward of act", "a:act", "write"): 48,
        ("forward of fc", "a:act", "read"): 48,
        ("forward of fc", "a:fc", "write"): 5,  # what the network gives
        ("backward_weight of fc", "a:act", "read"): 48,
        ("backward_weight of fc", "d:fc", "read"): 5,  # of the loss
        ("backward_input of fc", "d:fc", "read"): 5,
        ("backward_input of act", "a:act", "read"): 48,
        ("backward_input of act", "d:conv", "write"): 48,
        ("backward_weight of conv", "a:input", "read"): 32,
        ("backward_weight of conv", "d:conv", "read"): 48,
    }


def test_what_is_fused_is_done_at_the_step_of_its_maker():
    report = evaluate(validate(Network, CHAIN, "net"), "ascend", "fp", accounting=FUSED)
    own = {str(report.memory.steps[e.step]) for e in report.ledger.entries if e.layer == "act"}
    assert own == {"forward of conv", "backward_input of fc"}


def test_a_residual_block_by_hand():
    """The sum goes with its branch, and the signals of both with the branch's, made last."""
    found = moved(FORK["layers"], FORK["input"])
    own = {key: n for key, n in found.items() if ":conv" not in key[1] and "fc" not in key[1]}
    assert own == {
        ("forward of conv", "a:input", "read"): 32,
        ("forward of act", "a:act", "write"): 48,
        ("forward of two", "a:act", "read"): 48,
        ("forward of sum", "a:act", "read"): 48,  # the shortcut; `two` is added to as it is made
        ("forward of sum", "a:sum", "write"): 48,
        ("forward of fc", "a:sum", "read"): 48,
        ("backward_weight of fc", "a:sum", "read"): 48,
        ("backward_input of fc", "d:sum", "write"): 48,
        ("backward_weight of two", "a:act", "read"): 48,
        ("backward_weight of two", "d:sum", "read"): 48,
        ("backward_input of two", "d:sum", "read"): 48,
        ("backward_input of act", "d:sum", "read"): 48,  # added to two's, then masked
        ("backward_input of act", "a:act", "read"): 48,
        ("backward_weight of conv", "a:input", "read"): 32,
    }
    assert found["backward_input of act", "d:conv", "write"] == 48


ONE = {"kind": "conv", "channels": 4, "kernel": 1}
FIRST, LAST = {"name": "first", **ONE}, {"name": "last", **ONE}
MAP = 4 * 8 * 8  # words


@pytest.mark.parametrize(
    ("layer", "forward", "back"),
    [  # reads of a:first, writes of a:x; reads of d:x, of what is saved, writes of d:first; maps
        ({"kind": "activation", "function": "gelu"}, (0, 1), (0, 1, 1)),
        ({"kind": "scale"}, (0, 1), (0, 1, 1)),
        ({"kind": "scale", "learned": False}, (0, 1), (0, 0, 1)),
        ({"kind": "batch-norm"}, (1, 1), (1, 2, 1)),
        ({"kind": "batch-norm", "learned": False}, (0, 1), (0, 0, 1)),
        ({"kind": "layer-norm"}, (1, 1), (1, 1, 1)),
        ({"kind": "activation", "function": "softmax"}, (1, 1), (1, 1, 1)),
        ({"kind": "max-pool", "kernel": 2}, (0, 1 / 4), (0, 0, 1)),
        ({"kind": "average-pool", "kernel": 2, "stride": 2}, (0, 1 / 4), (0, 0, 1)),
        ({"kind": "max-pool", "kernel": 3, "stride": 2, "padding": 1}, (1, 1 / 4), (1 / 4, 0, 1)),
        ({"kind": "average-pool", "kernel": 2, "stride": 2, "padding": 1}, (1, 25 / 64),
         (25 / 64, 0, 1)),
        ({"kind": "global-average-pool"}, (0, 1 / 64), (0, 0, 1)),
        ({"kind": "upsample", "factor": 2}, (1, 4), (4, 0, 1)),
        ({"kind": "pixel-unshuffle", "factor": 2}, (1, 1), (1, 0, 1)),
    ],
)  # fmt: skip
def test_each_operator_between_two_products_by_hand(layer, forward, back):
    found = moved([FIRST, {"name": "x", **layer}, LAST], (4, 8, 8))
    at = {k: v / MAP for k, v in found.items() if k[0] in ("forward of x", "backward_input of x")}
    saved = sum(n for (step, name, _), n in at.items() if step[0] == "b" and name[0] == "a")
    assert (
        at.get(("forward of x", "a:first", "read"), 0),
        at["forward of x", "a:x", "write"],
    ) == forward
    assert (
        at.get(("backward_input of x", "d:x", "read"), 0),
        saved,
        at["backward_input of x", "d:first", "write"],
    ) == back
    # What is read was written, and what is not read was not.
    for step, name, pass_ in (("forward of first", "a:first", forward[0]),
                              ("backward_input of last", "d:x", back[0])):  # fmt: skip
        reads = pass_ or (name == "a:first" and saved and layer.get("function") == "gelu")
        reads = reads or (name == "a:first" and layer == {"kind": "scale"})
        assert ((step, name, "write") in found) == bool(reads)


def test_a_norm_of_the_network_s_input_has_no_maker():
    found = moved([{"name": "bn", "kind": "batch-norm"}, LAST], (4, 8, 8))
    assert found["forward of bn", "a:input", "read"] == 2 * MAP
    assert found["forward of bn", "a:bn", "write"] == MAP
    # and a loss's signal is not made here either: its sums need a read of their own
    found = moved([FIRST, {"name": "bn", "kind": "batch-norm"}], (4, 8, 8))
    assert found["backward_input of bn", "d:bn", "read"] == 2 * MAP


def test_a_gate_goes_with_what_is_made_last():
    """Squeeze and excitation: the gate is made last, so the map is read again for the product."""
    layers = [
        FIRST, {"name": "gap", "kind": "global-average-pool"},
        {"name": "fc", "kind": "linear", "features": 4},
        {"name": "gate", "kind": "activation", "function": "sigmoid"},
        {"name": "x", "kind": "multiply", "inputs": ["first", "gate"]}, LAST,
    ]  # fmt: skip
    assert moved(layers, (4, 8, 8), mode="inference") == {
        ("forward of first", "a:input", "read"): MAP,
        ("forward of first", "a:first", "write"): MAP,
        ("forward of gap", "a:gap", "write"): 4,  # averaged as it is made
        ("forward of fc", "a:gap", "read"): 4,
        ("forward of x", "a:first", "read"): MAP,
        ("forward of x", "a:x", "write"): MAP,
        ("forward of last", "a:x", "read"): MAP,
        ("forward of last", "a:last", "write"): MAP,
    }


def test_what_a_layer_takes_twice_is_read_once():
    """A square of what has just been made reads nothing; a sum of the input with itself one map."""
    layers = [
        FIRST, {"name": "square", "kind": "multiply", "inputs": ["first", "first"]},
        {"name": "twice", "kind": "add", "inputs": ["input", "input"]},
        {"name": "x", "kind": "add", "inputs": ["square", "twice"]},
    ]  # fmt: skip
    assert moved(layers, (4, 8, 8), mode="inference") == {
        ("forward of first", "a:input", "read"): MAP,
        ("forward of square", "a:square", "write"): MAP,
        ("forward of twice", "a:input", "read"): MAP,
        ("forward of x", "a:square", "read"): MAP,
        ("forward of x", "a:x", "write"): MAP,
    }


def test_joined_tensors_are_written_to_their_places():
    layers = [FIRST, {"name": "second", **ONE, "inputs": ["input"]},
              {"name": "x", "kind": "concat", "inputs": ["first", "second"]}, LAST]  # fmt: skip
    found = moved(layers, (4, 8, 8))
    assert found["forward of x", "a:x", "write"] == 2 * MAP
    assert found["backward_input of x", "d:first", "write"] == MAP
    gone = {"a:first", "a:second", "d:x"}
    assert not [key for key in found if key[1] in gone]


def test_a_narrow_map_is_copied_as_its_wide_one_is_made():
    """Sums of 32 bit into a threshold: DRAM sees the words of 1 bit alone."""
    report = evaluate("vgg-small", "ascend", "binarynet", accounting=FUSED, mode="inference")
    maps = [e for e in report.ledger.entries if e.memory == "L3" and e.stored[:1] in "ac"]
    bits = {}
    for one in maps:
        bits.setdefault(one.stored, set()).add(one.bits)
    assert bits["a:input"] == {32} and bits["a:fc3"] == {32}
    assert {name for name, widths in bits.items() if widths != {1}} == {"a:input", "a:fc3"}


def test_work_beside_the_graph_is_fused_like_a_scale():
    layers = [FIRST, {"name": "act1", "kind": "activation"}, {"name": "mid", **ONE},
              {"name": "act2", "kind": "activation"}, LAST]  # fmt: skip
    streamed = moved(layers, (4, 8, 8), method="xnor-net", accounting=FULL)
    found = moved(layers, (4, 8, 8), method="xnor-net")
    step = "forward of mid"
    assert any(key[0] == step and key[1:] == ("a:mid", "read") for key in streamed)
    assert not [key for key in found if key[0] == step and key[1] == "a:mid" and key[2] == "read"]


PROTOTYPE = [  # of the specification's table: fused less streamed [uJ], batch 1 on the Ascend
    ("vgg-small", "fp", "inference", 4549.8 - 4177.3), ("vgg-small", "bold", "inference", 122.9 - 119.6),
    ("vgg-small", "binarynet", "training", 27990.8 - 27458.6),
    ("vgg-small", "bold", "training", 7157.6 - 7074.4),
    ("resnet18", "fp", "inference", 9024 - 6453), ("resnet18", "binarynet", "training", 32979 - 28926),
]  # fmt: skip


@pytest.mark.parametrize(("network", "method", "mode", "less"), PROTOTYPE)
def test_the_prototype_found_as_much_less(network, method, mode, less):
    asked = {"counting.stationary": "filter", "counting.transfers": "upper"}
    streamed, fused = (
        evaluate(network, "ascend", method, accounting=replaced_all(one, asked), mode=mode).energy
        for one in (FULL, FUSED)
    )
    digits = 1.5 if network == "resnet18" else 0.11  # of two figures as the table rounds them
    assert (streamed - fused) / 1e6 == pytest.approx(less, abs=digits)


ZOO = [
    ("vgg-small", "bold"), ("resnet18", "xnor-net"), ("densenet121", "fp"),
    ("deeplabv3-resnet18", "bold"), ("edsr-small-x2", "fp"), ("bert-base", "bold-bert"),
    ("bnext-18", "bnext"), ("mobilenet-v1", "fp16"), ("pokebnn-1.0x", "pokebnn"),
]  # fmt: skip
if os.environ.get("HWMODEL_TESTS") != "thorough":  # the largest take seconds
    ZOO = [pair for pair in ZOO if pair[0] not in ("densenet121", "pokebnn-1.0x")]


@pytest.mark.parametrize(("name", "method"), ZOO)
@pytest.mark.parametrize("mode", ["training", "inference"])
def test_nothing_but_moves_of_maps_and_signals_becomes_less(name, method, mode):
    quick = {"counting.stationary": "filter", "counting.transfers": "upper"}  # of the search
    streamed, fused = (
        {
            e.name: e
            for e in evaluate(name, "tpuv4i", method, accounting=one, mode=mode).ledger.entries
        }
        for one in (replaced_all(FULL, quick), replaced_all(FUSED, quick))
    )
    assert not fused.keys() - streamed.keys()
    for key, one in streamed.items():
        less = one.elements - (fused[key].elements if key in fused else 0)
        assert less >= 0
        if less:
            assert one.memory and one.stored[:2] in ("a:", "d:") and one.role != "unfinished sum"


def test_what_does_not_go_together_is_refused():
    for field in ("elementwise", "update_order"):
        with pytest.raises(SpecError, match=f"extras.{field}: fused needs counting exact"):
            replaced_all(load(Accounting, "paper"), {f"extras.{field}": "fused"})
    for field, value in (("optimizer", "none"), ("boolean_update", False)):  # dF would be free
        unused = {"extras.update_order": "fused", f"extras.{field}": value}
        with pytest.raises(SpecError, match="fused needs updates that are counted"):
            replaced_all(FUSED, unused)
    shared = [FIRST, {"name": "act", "kind": "activation"}, {**LAST, "shares": "first"}]
    at_once = replaced_all(FUSED, {"extras.update_order": "fused"})
    said = "update_order fused: layer last shares the weights of first, whose gradient is a sum"
    with pytest.raises(HwmodelError, match=said):
        moved(shared, (4, 8, 8), accounting=at_once)
    moved(shared, (4, 8, 8), accounting=at_once, mode="inference")
    held = replaced_all(at_once, {"counting.stationary": "filter", "counting.transfers": "upper"})
    with pytest.raises(HwmodelError, match="sums of the gradient of conv1 leave unfinished to L1"):
        evaluate("vgg-small", "ascend", "fp", accounting=held)


def test_sums_may_end_in_any_memory_of_the_innermost_level():
    """The Ascend's is split: sums of conv1's gradient lie in L0-C, and nowhere else."""
    at_once = replaced_all(FUSED, {"extras.update_order": "fused"})
    report = evaluate("vgg-small", "ascend", "bold", accounting=at_once)
    sums = [e for e in report.ledger.entries if e.stored.startswith("dF") and e.memory]
    assert {e.memory for e in sums} == {"L0-C"}


def test_weights_stepped_as_their_gradients_are_made_move_no_gradient():
    """By hand: of F, m and v each way, 246 weights; and nothing of dF."""
    at_once = replaced_all(FUSED, {"extras.update_order": "fused"})
    report = evaluate(validate(Network, CHAIN, "net"), "ascend", "fp", accounting=at_once)
    assert not [e for e in report.ledger.entries if e.stored.startswith("dF") and e.memory]
    updates = sum(n for (step, _, _), n in words(report).items() if step.startswith("update"))
    assert updates == 6 * 246


def test_extra_work_without_words_on_an_activation_moves_nothing():
    """A fake quantiser has 2 additions and 2 MACs an element, and no word: memories are as in fp.

    So of each activation, convolution and linear layer (the file of qat-int8), under `chip`, too.
    """
    fake, fp = compare("conv-mnist", "ascend", ["qat-int8", "fp"], accounting="chip",
                       mode="inference")  # fmt: skip
    network = load_network("conv-mnist")
    kinds = ("activation", "add", "conv", "linear")
    elements = sum(prod(n.output_shape) for n in network.nodes() if n.layer.kind in kinds)
    chip = load(Hardware, "ascend")
    mac = chip.price("mac", 32).energy_per_operation
    add = min(chip.price("add", 32).energy_per_operation if chip.price("add", 32) else
              0.195652 * mac, mac)  # fmt: skip
    assert fake.memory == pytest.approx(fp.memory, rel=1e-12)
    assert fake.compute - fp.compute == pytest.approx(2 * elements * (mac + add), rel=1e-5)
    assert min(entry.count for entry in fake.report.ledger.entries) > 0
