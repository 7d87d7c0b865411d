"""Networks: wiring, inferred shapes, positions, and what a network's file may not say."""

import re
from pathlib import Path

import pytest

from hwmodel import NameUnknown, ShapeError, SpecError
from hwmodel.graph.layers import KINDS, BaseLayer
from hwmodel.graph.network import Network, zoo
from hwmodel.graph.recurrent import CELLS, Recurrent
from hwmodel.importers.load import load_network
from tests.specs import NETWORK, written

ROOT = Path(__file__).parent.parent


def test_shapes_follow_from_the_input(tmp_path):
    nodes = load_network(written(tmp_path, NETWORK)).nodes()
    assert [(n.layer.name, n.inputs, n.output_shape) for n in nodes] == [
        ("conv1", ("input",), (8, 8, 8)),
        ("act1", ("conv1",), (8, 8, 8)),
        ("pool1", ("act1",), (8, 4, 4)),
        ("conv2", ("pool1",), (4, 1, 1)),
        ("fc1", ("conv2",), (10, 1, 1)),
    ]


def test_first_and_last_are_those_with_weights(tmp_path):
    text = NETWORK + "  - {name: end, kind: activation}\n"
    positions = [node.position for node in load_network(written(tmp_path, text)).nodes()]
    assert positions == ["first", "middle", "middle", "middle", "last", "middle"]


def test_a_network_of_one_layer_has_its_first_there(tmp_path):
    text = NETWORK[: NETWORK.index("  - {name: act1")]
    assert [node.position for node in load_network(written(tmp_path, text)).nodes()] == ["first"]


def test_a_branch_takes_the_layer_it_names(tmp_path):
    branch = ("name: conv2,", "name: conv2, inputs: [conv1],")
    nodes = {n.layer.name: n for n in load_network(written(tmp_path, NETWORK, branch)).nodes()}
    assert nodes["conv2"].input_shapes == ((8, 8, 8),)
    assert nodes["fc1"].inputs == ("conv2",)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("kernel: 3", "kernel: 0", ":6: layers.conv1.kernel: 0 is not between 1 and 2147483648"),
        ("kernel: 3", "kernel: 99999999999",
         ":6: layers.conv1.kernel: 99999999999 is not between 1 and 2147483648"),
        ("kernel: 3", "kernel: [3, 3, 3]",
         ":6: layers.conv1.kernel: [3, 3, 3]: give one number or 2"),
        ("kernel: 3", "kernel: 3.0", ":6: layers.conv1.kernel: 3.0 is no whole number"),
        ("kernel: 3", "kernel: true", ":6: layers.conv1.kernel: True is no whole number"),
        ("kernel: 3", "kernel: '3'", ":6: layers.conv1.kernel: '3' is no whole number"),
        ("kernel: 3", "kernel: ~", ":6: layers.conv1.kernel: None is no whole number"),
        ("padding: 1", "padding: -1", ":6: layers.conv1.padding: -1 is not between 0 and 2147483648"),
        ("padding: 1", "padding: [1, 2, 3]",
         ":6: layers.conv1.padding: [1, 2, 3]: give one number or 2 or 4"),
        ("padding: 1", "stride: 0", ":6: layers.conv1.stride: 0 is not between 1 and 2147483648"),
        ("padding: 1", "groups: 0", ":6: layers.conv1.groups 0: must be at least 1"),
        ("padding: 1", "strid: 1", ":6: layers.conv1.strid is not a field; did you mean 'stride'?"),
        ("channels: 8, ", "", ":6: layers.conv1.channels is missing"),
        ("kind: conv,", "kind: convolution,",
         ":6: layers.conv1.kind: 'convolution' is no kind of layer; known: activation, add, "),
        ("kind: conv,", "kind: lsmt,",
         ":6: layers.conv1.kind: 'lsmt' is no kind of layer; did you mean 'lstm'?"),
        ("kind: conv, ", "", ":6: layers.conv1.kind is missing"),
        ("channels: 8, kernel: 3, ", "", ":6: layers.conv1.kernel, channels are missing"),
        ("features: 10", "features: 10, channels: 3",
         ":10: layers.fc1.channels is not a field; known: bias, bits, "),
        ("kernel: 2", "kernel: 2, stride: 0",
         ":8: layers.pool1.stride: 0 is not between 1 and 2147483648"),
        ("  - {name: act1", "  - act\n  - {name: act1",
         ":7: layers.2 'act': must be 'field: value' lines"),
        ("kind: activation", "kind: activation, inputs: conv1",
         ":7: layers.act1.inputs 'conv1': must be a list"),
        ("kind: activation", "kind: activation, inputs: []",
         ":7: layers.act1.inputs a list of 0: must have at least 1"),
        ("[3, 8, 8]", "[3, 8]", ":4: input.3 is missing"),
        ("[3, 8, 8]", "[3, 0, 8]", ":4: input.2 0: must be at least 1"),
        ("[3, 8, 8]", "3", ":4: input 3: must be a list"),
    ],
)  # fmt: skip
def test_a_network_that_cannot_be_is_refused_in_one_sentence(tmp_path, old, new, sentence):
    path = written(tmp_path, NETWORK, (old, new))
    with pytest.raises(SpecError) as caught:
        load_network(path)
    said = str(caught.value).removeprefix(str(path))
    assert said == sentence or (sentence.endswith(", ") and said.startswith(sentence))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("name: act1", "name: conv1", ":7: two layers are called 'conv1'"),
        ("name: act1", "name: input", ":7: 'input' is the network's own input, no layer"),
        ("kind: activation", "kind: activation, inputs: [nope]",
         ":7: layer act1 takes 'nope', which is no layer before it"),
        ("kind: activation", "kind: activation, inputs: [pool1]",
         ":7: layer act1 takes 'pool1', which is no layer before it"),
        ("kind: activation", "kind: activation, inputs: [input, conv1]",
         ":7: layer act1: takes 1 input, is given 2"),
        ("padding: 1", "groups: 3",
         ":6: layer conv1: groups 3 does not divide the 8 output channels (input (3, 8, 8), channels 8)"),
        ("padding: 1", "dilation: 18",
         ":6: layer conv1: the effective kernel spans 37 rows, more than the 8 of its input (3, 8, 8) with padding "
         "[0, 0, 0, 0]"),
    ],
)  # fmt: skip
def test_layers_that_do_not_fit_together_are_named(tmp_path, old, new, sentence):
    path = written(tmp_path, NETWORK, (old, new))
    with pytest.raises(ShapeError) as caught:
        load_network(path)
    assert str(caught.value) == f"{path}{sentence}"


def test_an_unknown_network_comes_with_the_nearest():
    with pytest.raises(NameUnknown) as caught:
        load_network("vgg-smal")
    assert str(caught.value) == "no network is called 'vgg-smal': did you mean 'vgg-small'?"


@pytest.mark.parametrize("name", zoo())
def test_every_bundled_network_is_right(name):
    network = load_network(name)
    assert isinstance(network, Network)
    assert network.name == name
    assert load_network(network) is network


@pytest.mark.parametrize(
    ("inputs", "meant"),
    [("act, befor", "before"), ("acts, before", "act"), ("act, convv", "conv"), ("act, xyz", "")],
)
def test_an_unknown_input_of_a_repeated_list_comes_with_the_nearest_name(tmp_path, inputs, meant):
    path = tmp_path / "net.yaml"
    path.write_text(f"""\
version: 1
name: net
title: t
input: [3, 8, 8]
layers:
  - {{name: conv, kind: conv, channels: 3, kernel: 3, padding: 1}}
  - name: block
    repeat: 2
    layers:
      - {{name: act, kind: activation}}
      - {{name: sum, kind: add, inputs: [{inputs}]}}
""")
    with pytest.raises(ShapeError) as caught:
        load_network(path)
    unknown = next(name for name in inputs.split(", ") if name not in ("act", "before"))
    hint = f"; did you mean {meant!r}?" if meant else ""
    assert str(caught.value) == (
        f"{path}:11: layer block.0.sum takes {unknown!r}, which is no layer before it{hint}"
    )


def test_a_layer_of_a_repeated_list_cannot_be_called_before(tmp_path):
    path = tmp_path / "n.yaml"
    path.write_text(
        "{version: 1, name: n, title: t, input: [1, 4, 4], layers: [{name: b, repeat: 2, layers: "
        "[{name: before, kind: activation}]}]}"
    )
    with pytest.raises(SpecError, match="no layer of the list may be called 'before'"):
        load_network(path)


def test_all_values_of_a_field_of_several_kinds_are_told(tmp_path, refused):
    text = NETWORK.replace("kind: linear", "kind: linear, learned: maybe")
    assert text != NETWORK
    said = refused("network", "check", written(tmp_path, text).name)
    assert said.endswith("learned 'maybe': must be true or false, or 'biases' or 'frozen'")


def test_the_documents_list_every_kind_of_layer_that_a_file_may_have_with_its_fields():
    """Against the schema, by which an editor checks a file."""
    text = (ROOT / "docs" / "networks.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (`.*?) \| (.*?) \| .* \|$", text.partition("### Kinds")[2], re.MULTILINE
    )
    common = {"name", "kind", *BaseLayer.model_fields}
    listed = {}
    for kinds, fields in rows:
        words = fields
        for kind in re.findall(r"`(.*?)`", kinds):
            if like := re.match(r"as `(.*?)`", fields):
                words = f"{listed[like[1]]}{fields[like.end() :]}"
            listed[kind] = words
    models = {kind: model for model, kind in KINDS.items()} | dict.fromkeys(CELLS, Recurrent)
    assert set(listed) == set(models)
    for kind, model in models.items():
        required = {name for name, field in model.model_fields.items() if field.is_required()}
        assert set(re.findall(r"\*\*`(.*?)`\*\*", listed[kind])) == required - {"name", "kind"}, (
            kind
        )
        named = set(re.findall(r"`(.*?)`", re.sub(r"\(left out.*?\)", "", listed[kind])))
        assert named - common == set(model.model_fields) - common, kind


def test_all_layers_that_are_wrong_are_told_with_their_lines(tmp_path):
    """A layer that takes one that is wrong is not told: nobody knows its shape."""
    path = tmp_path / "n.yaml"
    path.write_text(
        "version: 1\nname: n\ntitle: n\ninput: [3, 8, 8]\nlayers:\n"
        "  - {name: a, kind: conv, channels: 8, kernel: 3}\n"
        "  - {name: b, kind: conv, channels: 8, kernel: 9, inputs: [a]}\n"
        "  - {name: after, kind: conv, channels: 8, kernel: 99}\n"
        "  - {name: c, kind: conv, channels: 7, kernel: 1, groups: 2, inputs: [input]}\n"
        "  - {name: d, kind: add, inputs: [a, c]}\n"
        "  - {name: e, kind: reshape, shape: [5, 5, 5], inputs: [a]}\n"
        "  - {name: f, kind: conv, channels: 7, kernel: 1, inputs: [later]}\n"
    )
    with pytest.raises(ShapeError) as caught:
        load_network(path)
    said = str(caught.value)
    assert [line for line in range(1, 20) if f"{path}:{line}: " in said] == [7, 9, 11, 12]
    assert "after" not in said and "layer d" not in said
