"""Words of weights that backward_input reads: which are copies, counted by hand.

One middle layer of 256 x 256 weights; bits that the update writes to the outermost memory.
"""

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.graph.network import Network
from hwmodel.specs.files import load, validate
from hwmodel.specs.method import Method
from tests.test_number_formats import FULL, MIDDLE, of

WEIGHTS = 256 * 256
SCALED = WEIGHTS * 8 + WEIGHTS // 32 * 8  # mxfp8: a scale of 8 bit for 32 weights


def method(**rule):
    """Full precision, of whose only rule some fields are stated otherwise."""
    text = load(Method, "fp").model_dump(exclude_none=True) | {"name": "mine"}
    text["layers"] = [text["layers"][0] | rule]
    return validate(Method, text, "mine.yaml")


def written(report, role):
    """Bits of F in a role that the update of layer b writes."""
    outermost = report.hardware.levels[0].buffers[0].name
    wanted = {"layer": "b", "memory": outermost, "pass_": "update", "tensor": "F"}
    entries = of(report, role=role, direction="write", **wanted)
    return sum(entry.count for entry in entries)


def lying(report):
    """Bits of everything that lies in memory of layer b's weights, by its name."""
    own = [one for one in report.memory.tensors if one.name.endswith("F:b")]
    return {one.name: one.bits for one in own if not one.name.startswith(("dF", "m(", "v("))}


@pytest.mark.parametrize(
    ("rule", "bits", "copy", "memory"),
    [
        ({"weights": 8}, 8, 0, {"F": 8, "latent F": 32}),
        ({"weights": 8, "weights_backward": 8}, 8, 0, {"F": 8, "latent F": 32}),
        ({"weights": 8, "weights_backward": 16}, 8, 16, {"F": 8, "latent F": 32, "c16F": 16}),
        ({"weights": 8, "weights_backward": 32}, 8, 0, {"F": 8, "latent F": 32}),
        ({"weights": 8, "weights_backward": "full_precision"}, 8, 0, {"F": 8, "latent F": 32}),
        ({"weights": 8, "latent": 16, "weights_backward": 16}, 8, 0, {"F": 8, "latent F": 16}),
        ({"weights": "e4m3", "weights_backward": "e4m3"}, 8, 0, {"F": 8, "latent F": 32}),
        ({"weights": "e4m3", "weights_backward": 8}, 8, 8, {"F": 8, "latent F": 32, "c8F": 8}),
    ],
)  # fmt: skip
def test_only_other_words_are_a_copy(rule, bits, copy, memory):
    """Words that forward reads are read again, and so are the latent ones."""
    found = evaluate(MIDDLE, "tpuv4i", method(**rule), accounting=FULL)
    assert written(found, "operand") == bits * WEIGHTS
    assert written(found, "copy") == copy * WEIGHTS
    assert lying(found) == {f"{name}:b": one * WEIGHTS for name, one in memory.items()}


def test_blocks_run_along_the_reduction_and_so_have_a_copy_a_pass():
    mine = method(weights="mxfp8", weights_backward="mxfp8")
    found = evaluate(MIDDLE, "tpuv4i", mine, accounting=FULL)
    assert written(found, "operand") == written(found, "copy") == SCALED


def test_what_is_equal_costs_what_is_not_stated():
    alone, beside = (
        evaluate("tiny-kws", "mcu-m4", method(weights=8, **more), accounting="full")
        for more in ({}, {"weights_backward": 8})
    )
    assert beside.energy == alone.energy
    assert beside.memory.peak() == alone.memory.peak()


def test_boolean_weights_have_nothing_to_make_other_words_of():
    text = load(Method, "bold").model_dump(exclude_none=True) | {"name": "mine"}
    text["layers"] = [rule | {"weights_backward": 8} for rule in text["layers"]]
    with pytest.raises(SpecError, match=r"weights_backward of .* leave it out"):
        evaluate("conv-mnist", "ascend", validate(Method, text, "mine.yaml"))


@pytest.mark.parametrize("width", [32, 16])
@pytest.mark.parametrize("first", [True, False])
def test_weights_that_layers_share_have_one_copy_or_one_latent(width, first):
    """The owner may be the first layer, which itself gives no signal back."""
    layers = [
        {"name": name, "kind": "linear", "features": 256, "over": "channels"} for name in "abc"
    ]
    sharer, owner = ("b", "a") if first else ("c", "b")
    layers["abc".index(sharer)]["shares"] = owner
    text = {"version": 1, "name": "tied", "title": "t", "input": [256, 16, 1], "layers": layers}
    tied = validate(Network, text, "tied")
    mine = method(weights=8, weights_backward=width)
    found = evaluate(tied, "tpuv4i", mine, accounting=FULL)
    owners = {"a", "c"} if first else {"a", "b"}
    latents = [one for one in found.memory.tensors if one.name.startswith("latent F")]
    assert {one.name: one.bits for one in latents} == {
        f"latent F:{name}": 32 * WEIGHTS for name in owners
    }
    own = owners if first else {"b"}  # the first layer's are read by nobody on the way back
    wanted = {f"c16F:{name}": 16 * WEIGHTS for name in own} if width == 16 else {}
    lie = {one.name: one.bits for one in found.memory.tensors if one.name.startswith("c")}
    assert lie == wanted
    outermost = found.hardware.levels[0].buffers[0].name
    made = of(found, role="copy", direction="write", memory=outermost, pass_="update", tensor="F")
    assert {f"c16F:{one.layer}": one.count for one in made} == wanted
