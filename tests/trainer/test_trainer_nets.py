# tables hold whole messages, one a line
import numpy as np
import pytest
import small

from hwmodel.errors import NameUnknown, ShapeError, SpecError
from hwmodel.specs.files import bundled
from hwmodel.trainer.layers import BoolConv, Threshold, conv_scale, window_slope
from hwmodel.trainer.nets import build
from hwmodel.trainer.specs import MethodSpec, NetworkSpec, network_spec


def net(**changes):
    return build(small.network(), small.method(**changes), (6, 6, 1), 10, 16, 0)


def by_name(net):
    return {node.name: node for node in net.nodes}


@pytest.mark.parametrize("name", ["conv-mnist", "conv-small", "deep-mlp"])
def test_bundled_networks_end_in_ten_classes(name):
    image = (28, 28, 1) if name == "conv-mnist" else (8, 8, 1)
    for method in bundled(MethodSpec):
        made = build(network_spec(name), small.method(method), image, 10, 4, 0)
        assert made.forward(np.zeros((2, *image), np.float32)).shape == (2, 10)


def test_the_extents_of_the_bundled_networks():
    nodes = by_name(build(network_spec("conv-mnist"), small.method(), (28, 28, 1), 10, 4, 0))
    conv1, conv2, fc4 = (nodes[name].shape for name in ("conv1", "conv2", "fc4"))
    assert (conv1.HO, conv1.HF, conv1.stride, conv1.weights) == (12, 5, 2, "real")
    assert (conv2.C, conv2.M, conv2.HO, conv2.fan_in, conv2.weights) == (16, 32, 12, 144, "boolean")
    assert (fc4.C, fc4.M, fc4.parameters) == (288, 128, 288 * 128)


def test_a_block_sums_integers_and_both_branches_learn():
    made = net()
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
    nodes = by_name(net())
    assert nodes["act2"].layer.slope == window_slope(5 * 9)
    assert nodes["act3"].layer.slope == window_slope(7 * 9 + 5)  # variances of a sum add up
    assert nodes["act1"].layer.slope == window_slope(1)
    assert nodes["conv2"].layer.scale == conv_scale(7, 3, 2, False)
    pooled = by_name(build(network_spec("conv-small"), small.method(), (8, 8, 1), 10, 4, 0))
    assert pooled["conv2"].layer.scale == conv_scale(64, 3, 1, True)


def test_a_methods_choices_reach_the_layers():
    nodes = by_name(net(reweighting=False, scaling=False, logic="xor", bias=True, signal="boolean"))
    conv = nodes["conv2"].layer
    assert isinstance(conv, BoolConv) and conv.scale == 1
    assert conv.rules == ("xor", "boolean", True) and len(conv.boolean) == 2
    assert nodes["conv2"].shape.fan_in == 46
    assert isinstance(nodes["act2"].layer, Threshold) and nodes["act2"].layer.slope is None
    assert "act1 norm" not in nodes
    norm = by_name(build(small.network(), small.method("bold-bn"), (6, 6, 1), 10, 16, 0))
    assert norm["act2"].inputs == ("act2 norm",) and norm["act2"].layer.slope == window_slope(1)


def test_xor_and_xnor_train_alike():
    """The sums change sign with the logic, and so do the votes: no weight notices."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 6, 6, 1)).astype(np.float32)
    a, b = net(), net(logic="xor")
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
    first, again, other = (
        build(small.network(), small.method(), (6, 6, 1), 10, 16, seed) for seed in (1, 1, 2)
    )
    for name in ("conv2", "conv3"):
        bits = [by_name(made)[name].layer.boolean[0].bits for made in (first, again, other)]
        assert (bits[0] == bits[1]).all() and (bits[0] != bits[2]).any()


def write(tmp_path, *changes):
    text = small.BLOCK
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "net.yaml"
    path.write_text(text)
    return path


def test_a_users_file_is_a_network(tmp_path):
    assert network_spec(write(tmp_path)) == small.network()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("kernel: 3, stride", "kernle: 3, stride"), ":9: layers.conv2.kernle is not a field; did you mean 'kernel'?"),
        (("outputs: 9", "outputs: 0"), ":16: layers.fc4.outputs 0: must be at least 1"),
        (("input: conv3", "input: conv4"), ":13: layers.sum: no layer above is called 'conv4'; did you mean 'conv3'?"),
        (("second: side", "second: sum"), ":13: layers.sum: no layer above is called 'sum'; known: act1, act2, conv1, conv2, conv3, side"),
        (("name: act2", "name: act1"), ":10: layers.act1: the name is used twice"),
        (("input: act1", "input: conv2"), ":12: layers.side: takes conv2, which is no activation; put one between, or give this layer 'precision: full'"),
        (("5, kernel: 3, padding: 1, precision: full", "5, kernel: 3"), ":7: layers.conv1: takes the image, which is no activation; put one between, or give this layer 'precision: full'"),
        (("outputs: 10, precision: full", "outputs: 10"), ":18: layers.fc5: the last layer is linear with 'precision: full'"),
        (("input: conv3, second: side", "input: side, second: side"), ":11: layers.conv3: no layer takes its output"),
        (("kind: pool", "kind: pol"), ":14: layers.pool"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_one_line_with_its_place(tmp_path, change, message):
    path = write(tmp_path, change)
    with pytest.raises(SpecError) as error:
        network_spec(path)
    assert str(error.value).startswith(f"{path}{message}")
    assert "\n" not in str(error.value)


def test_unknown_names_give_the_nearest():
    with pytest.raises(
        NameUnknown, match="no trainer network is called 'deep-mpl': did you mean 'deep-mlp'"
    ):
        network_spec("deep-mpl")
    with pytest.raises(
        NameUnknown, match="no training method is called 'blod': did you mean 'bold'"
    ):
        small.method("blod")


@pytest.mark.parametrize(
    ("change", "image", "message"),
    [
        (("pool}", "pool}"), (2, 2, 1), "network block: pool pools 2 x 2 pixels, its input has 1 x 1"),
        (("outputs: 10", "outputs: 11"), (6, 6, 1), "network block: fc5 gives 11 outputs, the data has 10 classes"),
        (("kernel: 1, stride: 2", "kernel: 1"), (6, 6, 1), "network block: sum adds conv3 of 3 x 3 x 7 and side of 6 x 6 x 7"),
        (("kernel: 3, stride: 2", "kernel: 9"), (6, 6, 1), "network block: conv2 has a window of 9 x 9, its input with padding is 8 x 8"),
    ],
)  # fmt: skip
def test_layers_that_do_not_fit_are_named(tmp_path, change, image, message):
    spec = network_spec(write(tmp_path, change))
    with pytest.raises(ShapeError) as error:
        build(spec, small.method(), image, 10, 16, 0)
    assert str(error.value) == message


def test_a_convolution_after_a_linear_layer_is_refused():
    layers = list(small.network().layers)
    layers[-1:-1] = [layers[2].model_copy(update={"name": "late", "input": "act4"})]
    spec = NetworkSpec.model_construct(**{**dict(small.network()), "layers": tuple(layers)})
    with pytest.raises(ShapeError, match="late takes images, its input is 9"):
        build(spec, small.method(), (6, 6, 1), 10, 16, 0)


def test_boolean_weights_refuse_a_relu(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(
        "version: 1\nname: m\ntitle: t\nweights: boolean\nactivation: relu\n"
        "batch_norm: false\nlearning_rate: 1\n"
    )
    with pytest.raises(SpecError, match="Boolean weights need Boolean inputs"):
        small.method(str(path))
