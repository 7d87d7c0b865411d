# tables hold whole messages, one a line
"""What is trained is what is priced, layer by layer; what cannot be trained is refused by name."""

import numpy as np
import pytest
import small

from hwmodel import evaluate
from hwmodel.errors import SpecError
from hwmodel.graph.network import zoo
from hwmodel.graph.yaml import network_yaml
from hwmodel.importers.load import load_network
from hwmodel.model.widths import edges, treatment
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.method import LayerRule, Method, TensorRule
from hwmodel.specs.training import Recipe
from hwmodel.trainer.nets import build
from hwmodel.trainer.stack import stack

NETWORKS = ("deep-mlp", "conv-small", "conv-mnist")
TRAINED = ("as-stated", "binaryconnect", "binarynet", "bold", "bold-1-1-16", "bold-8", "bold-bn", "fp", "fp32", "meliusnet")  # fmt: skip
REFUSED = {
    "bi-realnet": "method bi-realnet is not trained here: the derivatives of its signs are estimated in a way of its own",
    "bibert": "method bibert is not trained here: it learns from a teacher",
    "dorefa": "reads inputs of 2 bit and signals of 6 bit; trained are full precision",
    "fp16": "layer conv1 has weights of 16 bit and signals of 16 bit to them; trained are full precision, and weights of 1 bit that are signs of latent ones or flip",
    "int8": "layer conv1 has weights of 8 bit and signals of 32 bit to them",
    "ir-net": "layer conv1 needs what no layer of the network does: shift by the weights' power of two",
    "rbnn": "method rbnn is not trained here: weights are rotated before their sign is taken",
    "slb": "method slb is not trained here: a distribution over the values of each weight is learned",
    "xnor-net": "network conv-small is not trained by xnor-net: layer conv1 needs what no layer of the network does: scaling factors of weights and inputs",
}


def kinds(method, nodes):
    """The class that a priced layer asks for, by its name; from widths and updates alone."""
    accounting = load(Accounting, "paper")
    widths = edges(method, nodes, accounting)
    found = {}
    for node in nodes:
        kind, bits = node.layer.kind, widths[node.layer.name].bits
        if node.macs:
            does = treatment(method, node, accounting)
            of = {"conv": "Conv", "linear": "Linear"}[kind]
            flips = (does.weight_bits, does.update) == (1, "boolean")
            found[node.layer.name] = f"Bool{of}" if flips else of
        elif kind == "activation":
            flips = any(
                treatment(method, n, accounting).update == "boolean" for n in nodes if n.macs
            )
            found[node.layer.name] = {True: "Threshold", False: "SignThrough"}[flips] if bits == 1 else "Relu"  # fmt: skip
        else:
            found[node.layer.name] = {"batch-norm": "BatchNorm", "max-pool": "MaxPool", "add": "Add"}[kind]  # fmt: skip
    return found


PAIRS = [(name, by) for name in NETWORKS for by in TRAINED]


@pytest.mark.parametrize(("name", "by"), PAIRS)
def test_what_is_trained_is_what_is_priced(name, by):
    """Kinds, order, inputs, shapes, weights and their width, batch norms, activations."""
    network, method = load_network(name), load(Method, by)
    report = evaluate(network, "ascend", method, accounting="full")
    priced = {layer for (layer,) in report.energies("layer")}
    nodes = network.nodes(frozenset(method.omits))
    accounting = load(Accounting, "full")
    widths = edges(method, nodes, accounting)
    net = build(stack(network, method), Recipe(), 4, 0)
    C, H, W = network.input
    net.forward(np.zeros((2, H, W, C), np.float32), training=True)

    assert [made.name for made in net.nodes] == [node.layer.name for node in nodes]
    assert {made.name for made in net.nodes} == priced
    wanted = kinds(method, nodes)
    for made, node in zip(net.nodes, nodes, strict=True):
        value = net.values[made.name]
        (C, H, W), bits = node.output_shape, widths[made.name].bits
        assert type(made.layer).__name__ == wanted[made.name] and made.inputs == node.inputs
        assert value.reshape(2, H, W, C).shape in (value.shape, (2, 1, 1, C))
        boolean = [weights.values.size for weights in made.layer.boolean]
        reals = [weights.value.size for weights in made.layer.real]
        assert sum(boolean) + sum(reals) == node.weights + node.other_parameters
        if node.macs:
            does = treatment(method, node, accounting)
            assert (does.weight_bits == 1) == bool(boolean or made.layer.binary)
            assert (boolean or reals)[0] == node.weights
            read = net.values[node.inputs[0]].dtype == bool
            assert read == (does.read(widths[node.inputs[0]].bits).bits == 1)
        if node.layer.kind == "activation":
            assert (value.dtype == bool) == (bits == 1)


def test_every_bundled_method_is_trained_or_refused_for_a_reason():
    network, refused = load_network("conv-small"), {}
    for name in bundled(Method):
        try:
            stack(network, load(Method, name))
        except SpecError as error:
            refused[name] = str(error)
    assert {*bundled(Method)} - {*refused} == {*TRAINED}
    for name, said in REFUSED.items():
        assert said in refused[name]


@pytest.mark.parametrize("by", ["bold", "fp"])
def test_every_bundled_network_is_trained_or_refused_in_a_sentence(by):
    trained = []
    for name in zoo():
        try:
            stack(load_network(name), small.method(by))
        except SpecError as error:
            assert str(error).startswith(f"network {name} is not trained by {by}: layer ")
        else:
            trained.append(name)
    assert {*NETWORKS, "vgg-small", "mlp-784-512-512-10"} <= {*trained}


def test_batch_norms_are_there_as_the_method_has_them():
    """The priced full-precision network once had batch norms that the trained one had not."""
    found = {
        by: [node.name for node in build(stack(load_network("deep-mlp"), load(Method, by)), Recipe(), 4, 0).nodes]
        for by in ("fp", "bold", "bold-bn")
    }  # fmt: skip
    assert found["fp"] == found["bold-bn"]
    assert [name for name in found["fp"] if name.startswith("bn")] == [
        f"bn{n}" for n in range(1, 6)
    ]
    assert found["bold"] == [name for name in found["fp"] if not name.startswith("bn")]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_file_of_a_bundled_network_trains_the_same(name, tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text(network_yaml(load_network(name)))
    ours, theirs = (stack(load_network(what), load(Method, "bold")) for what in (name, path))
    assert ours == theirs


NORM = "{name: bn2, kind: batch-norm}"
ACT = "{name: act2, kind: activation}"
LAST = "{name: fc5, kind: linear, features: 10, bias: true}"


@pytest.mark.parametrize(
    ("by", "change", "message"),
    [
        ("bold", (ACT, "{name: act2, kind: activation, function: prelu}"), "layer act2 is none of those that are trained: activations of function method, relu, sign, threshold"),
        ("bold", (ACT, "{name: act2, kind: activation, function: relu}"), "layer act2 is a relu of 1 bit; trained are, on numbers, threshold and sign of 1 bit, relu in full precision"),
        ("fp", (ACT, "{name: act2, kind: activation, function: sign}"), "layer act2 is a sign of 32 bit; trained are"),
        ("bold", (NORM, "{name: bn2, kind: activation}"), "layer act2 is a threshold of 1 bit on truth values; trained are"),
        ("fp", (NORM, "{name: bn2, kind: layer-norm}"), "layer bn2 is of kind layer-norm; trained are activation, add, batch-norm, conv, linear, max-pool"),
        ("fp", (NORM, "{name: bn2, kind: batch-norm, affine: false}"), "layer bn2 is none of those that are trained: batch norms with scale and shift"),
        ("fp", ("kernel: 3, stride: 2", "kernel: 2, dilation: 2, stride: 2"), "layer conv2 is none of those that are trained: square convolutions"),
        ("fp", ("kernel: 3, stride: 2, padding: 1", "kernel: 3, stride: 2, padding: [0, 0, 2, 2]"), "layer conv2 is none of those that are trained: square convolutions"),
        ("fp", ("kernel: 2}", "kernel: 2, stride: 1}"), "layer pool is none of those that are trained: max-pools of 2 x 2 that do not overlap"),
        ("fp", (LAST, LAST.replace("}", ", learned: biases}")), "layer fc5 is frozen, wholly or in part; trained are layers that learn all they have"),
        ("bold", ("stride: 2, padding: 1}", "stride: 2, padding: 1, learned: false}"), "layer conv2 is frozen"),
        ("fp", ("kind: max-pool", "kind: average-pool"), "layer pool is of kind average-pool"),
        ("bold", ("inputs: [act1]", "inputs: [conv1]"), "layer side reads truth values, and conv1 gives none; put an activation there"),
        ("fp", ("inputs: [conv3, side]", "inputs: [side, side]"), "layer conv3 gives what no layer takes"),
        ("fp", (LAST, LAST + "\n  - {name: bn5, kind: batch-norm}"), "layer bn5 is the last one, and not linear with real weights"),
        ("fp", (LAST, "{name: late, kind: conv, channels: 10, kernel: 1}"), "layer late takes images, and a linear layer before it gives rows"),
        ("fp", ("{name: bn4, kind: batch-norm}", "{name: two, kind: linear, features: 9}\n  - {name: bn4, kind: linear, features: 9, shares: two}"), "layer bn4 shares its weights; trained are layers with weights of their own"),
    ],
)  # fmt: skip
def test_a_layer_that_is_not_trained_is_named(by, change, message):
    with pytest.raises(SpecError) as error:
        stack(small.network(change), small.method(by))
    text = str(error.value)
    assert text.startswith(f"network block is not trained by {by}: layer ")
    assert message in text and "\n" not in text


def test_rules_of_a_users_method_are_followed():
    """Weights that flip wherever the rules say so, and none where they name another method."""
    rules = small.method("bold").layers
    spared = LayerRule(where={"role": ("spared",)}, precision="fp", source="x")
    method = small.method("bold").model_copy(update={"layers": (spared, *rules)})
    change = (
        "channels: 7, kernel: 3, padding: 1",
        "role: spared, channels: 7, kernel: 3, padding: 1",
    )
    found = stack(small.network(change), method)
    assert found.weights == {"conv1": "real", "conv2": "boolean", "conv3": "real", "side": "boolean", "fc4": "boolean", "fc5": "real"}  # fmt: skip
    assert found.values["sum"] == "real" and found.values["conv2"] == "integer"


def test_numbers_that_are_priced_narrower_than_they_are_trained_are_refused():
    narrow = TensorRule(where={"kind": ("add",)}, bits=8, signal="full_precision", source="x")
    method = small.method("fp")
    method = method.model_copy(update={"tensors": (narrow, *method.tensors)})
    with pytest.raises(SpecError, match="layer sum gives numbers of 8 bit; trained are full prec"):
        stack(small.network(), method)
