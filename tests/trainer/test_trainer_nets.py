import numpy as np
import small

from hwmodel.importers.load import load_network
from hwmodel.specs.training import Recipe
from hwmodel.trainer.layers import BoolConv, Threshold, conv_scale, linear_scale, window_slope
from hwmodel.trainer.nets import build
from hwmodel.trainer.stack import stack


def by_name(net):
    return {node.name: node for node in net.nodes}


def bundled(name, method="bold", **recipe):
    return by_name(build(stack(load_network(name), small.method(method)), Recipe(**recipe), 4, 0))


def test_the_extents_of_the_bundled_networks():
    nodes = bundled("conv-mnist")
    conv1, conv2, fc4 = (nodes[name].shape for name in ("conv1", "conv2", "fc4"))
    assert (conv1.HO, conv1.HF, conv1.stride, conv1.weights) == (12, 5, 2, "real")
    assert conv1.parameters == 16 * 25 + 16  # the first layer has biases
    assert (conv2.C, conv2.M, conv2.HO, conv2.fan_in, conv2.weights) == (16, 32, 12, 144, "boolean")
    assert (fc4.C, fc4.M, fc4.parameters) == (288, 128, 288 * 128)


def test_a_block_sums_integers_and_both_branches_learn():
    made = small.net()
    rng = np.random.default_rng(0)
    logits = made.forward(rng.standard_normal((4, 6, 6, 1)).astype(np.float32), training=True)
    made.backward(rng.standard_normal(logits.shape).astype(np.float32))
    values = made.values
    assert values["sum"].dtype.kind == "i"
    assert (values["sum"] == values["conv3"] + values["side"]).all()
    assert (made.signals["conv3"] == made.signals["side"]).all()
    expected = made.sent["conv2"] + made.sent["side"]
    assert (made.signals["act1"] == expected).all()
    for name in ("conv2", "conv3", "side", "fc4"):
        assert np.abs(by_name(made)[name].layer.boolean[0].votes).max() > 0


def test_slopes_and_scales_follow_fan_in_and_fan_out():
    nodes = by_name(small.net())
    assert nodes["act2"].layer.slope == window_slope(5 * 9)
    assert nodes["act3"].layer.slope == window_slope(7 * 9 + 5)  # variances of a sum add up
    assert nodes["act1"].layer.slope == window_slope(1)
    assert nodes["conv2"].layer.scale == conv_scale(7, 3, 2, False)
    pooled = bundled("conv-small")
    assert pooled["conv2"].layer.scale == conv_scale(64, 3, 1, True)


def test_a_recipe_reaches_the_layers():
    recipe = {"reweighting": False, "scaling": False, "logic": "xor", "bias": True}
    nodes = by_name(small.net(**recipe, signal="boolean", outside="true"))
    conv = nodes["conv2"].layer
    assert isinstance(conv, BoolConv) and conv.scale == 1 and conv.fill == 1
    assert conv.rules == ("xor", "boolean", True, None) and len(conv.boolean) == 2
    assert nodes["conv2"].shape.fan_in == 46
    assert isinstance(nodes["act2"].layer, Threshold) and nodes["act2"].layer.slope is None
    assert "bn1" not in nodes


def test_batch_norm_takes_the_place_of_the_upstream_factor():
    nodes = by_name(small.net("bold-bn"))
    assert nodes["act2"].inputs == ("bn2",) and nodes["act2"].layer.slope == window_slope(1)
    assert nodes["conv2"].layer.scale == nodes["fc4"].layer.scale == 1
    both = by_name(small.net("bold-bn", scaling=True))
    assert both["fc4"].layer.scale == linear_scale(9)


def test_xor_and_xnor_train_alike():
    """The sums change sign with the logic, and so do the votes: no weight notices."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 6, 6, 1)).astype(np.float32)
    a, b = small.net(), small.net(logic="xor")
    flipped = by_name(b)["fc4"].layer.boolean[0]
    flipped.flip(np.ones_like(flipped.values))
    for name in ("conv2", "conv3", "side"):
        weights = by_name(b)[name].layer.boolean[0]
        weights.flip(np.ones_like(weights.values))
    assert (a.forward(x) == b.forward(x)).all()
    z = rng.standard_normal((4, 10)).astype(np.float32)
    a.backward(z)
    b.backward(z)
    for name in ("conv2", "fc4"):
        votes = [by_name(made)[name].layer.boolean[0].votes for made in (a, b)]
        assert np.allclose(votes[0], -votes[1], atol=1e-6)


def test_layers_draw_from_streams_of_their_own():
    first, again, other = (small.net(seed=seed) for seed in (1, 1, 2))
    for name in ("conv2", "conv3"):
        bits = [by_name(made)[name].layer.boolean[0].bits for made in (first, again, other)]
        assert (bits[0] == bits[1]).all() and (bits[0] != bits[2]).any()


def test_a_network_draws_alike_with_and_without_batch_norms():
    with_norms, without = by_name(small.net("bold-bn", seed=3)), by_name(small.net(seed=3))
    for name in ("conv2", "conv3", "side", "fc4"):
        bits = [found[name].layer.boolean[0].bits for found in (with_norms, without)]
        assert (bits[0] == bits[1]).all()


def test_three_branches_are_summed():
    made = small.net("fp", ("inputs: [conv3, side]", "inputs: [conv3, side, side]"))
    x = np.random.default_rng(1).standard_normal((4, 6, 6, 1)).astype(np.float32)
    logits = made.forward(x)
    made.backward(np.ones_like(logits))
    total = made.values["conv3"] + made.values["side"] + made.values["side"]
    assert (made.values["sum"] == total).all()
    assert (made.signals["side"] == made.sent["sum"] + made.sent["sum"]).all()
    assert by_name(made)["sum"].shape.fan_in == 3
