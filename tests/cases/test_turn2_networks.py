"""Networks and files of networks on which hwmodel was wrong; PyTorch's are in test_import_torch."""

import json
import shutil
from math import prod
from pathlib import Path

import pytest

from hwmodel.errors import HwmodelError, ShapeError, SpecWarning
from hwmodel.graph.network import NetworkFile
from hwmodel.graph.yaml import network_yaml
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate
from hwmodel.model.plans import all_tasks
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.method import Method
from hwmodel.vary.paths import replaced_all
from hwmodel.work.tensor import Role
from hwmodel.work.work import Move, Multiply

DATA = Path(__file__).parent.parent / "data" / "turn2"


def network(*layers, given=(16, 32, 32)):
    document = {"version": 1, "name": "net", "title": "t", "input": list(given)}
    return validate(NetworkFile, document | {"layers": list(layers)}, "net").network()


def tasks(found, mode="training", accounting="full"):
    job = Job(load(Method, "fp16"), load(Accounting, accounting), 1, mode)
    return [(task.layer, task.work) for task in all_tasks(found, job)]


def products(found, layer=None):
    """Multiply-accumulates of a training iteration by pass, each nest multiplied out."""
    counts = {}
    for name, work in tasks(found):
        if isinstance(work, Multiply) and layer in (None, name):
            size = prod(work.nest.extent) * work.nest.groups
            counts[str(work.pass_)] = counts.get(str(work.pass_), 0) + size
    return counts


# C1, C2: stated widths

KEEPS = {
    "max-pool": {"kind": "max-pool", "kernel": 2},
    "nearest": {"kind": "upsample", "factor": 2},
    "reshape": {"kind": "reshape", "shape": [8, 64, 32]},
    "slice": {"kind": "slice", "start": 4, "stop": 12},
    "pixel-shuffle": {"kind": "pixel-shuffle", "factor": 2},
    "pixel-unshuffle": {"kind": "pixel-unshuffle", "factor": 2},
    "expand": {"kind": "expand", "shape": [32, 32, 32]},
    "concat": {"kind": "concat", "inputs": ["a", "a"]},
    "relu": {"kind": "activation", "function": "relu"},
    "pad": {"kind": "uncounted", "operator": "Pad", "shape": [16, 34, 34]},
    "transpose": {"kind": "uncounted", "operator": "Transpose"},
}
CHANGES = {
    "bilinear": {"kind": "upsample", "factor": 2, "interpolation": "bilinear"},
    "average-pool": {"kind": "average-pool", "kernel": 2},
    "gelu": {"kind": "activation", "function": "gelu"},
    "operator": {"kind": "uncounted", "operator": "Foo"},
    "wider": {"kind": "concat", "inputs": ["a", "input"]},
}
FOUR = {"name": "a", "kind": "activation", "function": "relu", "bits": 4}
CONV = {"name": "conv", "kind": "conv", "channels": 16, "kernel": 1, "weight_bits": 4}


def test_C1_the_case_itself(shown):
    shutil.copy(DATA / "c2_minimal.yaml", "net.yaml")
    rows = shown("net.yaml", method="as-stated")
    assert (rows["conv"]["weight_bits"], rows["conv"]["input_bits"]) == ("4", "4")
    assert rows["pool"]["activation_bits"] == "4"


@pytest.mark.parametrize("word", [*KEEPS, *CHANGES])
def test_C1_stated_widths_pass_through_what_keeps_values(word):
    layer = {"name": "between", **(KEEPS | CHANGES)[word]}
    (works,) = [
        work
        for name, work in tasks_of_stated(network(FOUR, layer, CONV))
        if name == "conv" and isinstance(work, Multiply) and work.pass_ == "forward"
    ]
    wanted = (4, 4, "int-mul") if word in KEEPS else (32, 4, "mac")
    assert (works.I.bits, works.F.bits, works.operations[0].kind) == wanted


def tasks_of_stated(found):
    job = Job(load(Method, "as-stated"), load(Accounting, "full"), 1, "inference")
    return [(task.layer, task.work) for task in all_tasks(found, job)]


def test_C2_how_wide_weights_are_stored_does_not_depend_on_the_input(shown):
    eight = {"kind": "conv", "channels": 16, "kernel": 1, "weight_bits": 8}
    layers = [
        {"name": "one", **eight},
        {"name": "two", **eight, "shares": "one", "weight_bits": None},
        {"name": "three", "kind": "conv", "channels": 16, "kernel": 1},
    ]
    rows = shown([{k: v for k, v in one.items() if v} for one in layers], (16, 8, 8), "as-stated")
    assert [rows[name]["weight_bits"] for name in ("one", "two", "three")] == ["8", "8", "32"]
    assert [rows[name]["input_bits"] for name in ("one", "two")] == ["32", "32"]
    assert rows["one"]["parameter_bytes"] == str(16 * 16)


# C4: frozen layers


def test_C4_frozen_layers_are_not_charged_as_if_they_learned(hwmodel):
    """Four times base 1024 x 1024, A 1024 x 8, B 8 x 1024 on 128 tokens, by hand."""
    found = load_network(DATA / "lora4.yaml")
    block, T = 1024 * 1024 + 2 * 8 * 1024, 128
    wanted = {
        "forward": 4 * T * block,
        "backward_weight": 4 * 2 * T * 8 * 1024,
        "backward_input": 3 * T * block + T * 8 * 1024,  # of the first block that of B alone
    }
    assert products(found) == wanted
    assert sum(wanted.values()) == 963_641_344
    nodes = found.nodes()
    assert sum(n.weights for n in nodes) == 4_259_840
    assert sum(n.learned_weights for n in nodes) == 65_536
    then = {"counting.stationary": "filter", "counting.transfers": "upper"}  # as the case has them
    accounting = replaced_all(load(Accounting, "full"), then)
    report = evaluate(found, "tpuv4i", "fp16", accounting=accounting)
    assert report.energy == pytest.approx(1_682e6, rel=5e-4)
    _, out, _ = hwmodel("network", "show", DATA / "lora4.yaml")
    assert "65,536 of 4,259,840 parameters learn" in " ".join(out.split())
    stepped = {n for n, w in tasks(found) if isinstance(w, Move) and w.pass_ == "update"}
    assert stepped == {f"{x}{i}" for x in "AB" for i in range(4)}


LINEAR = {"kind": "linear", "over": "channels"}


def test_C4_attention_goes_back_only_to_operands_that_learn():
    """K and V are of frozen layers: no dK, and no dV; dQ and dP are wanted."""
    layers = [
        {"name": "q", **LINEAR, "features": 8, "inputs": ["input"]},
        {"name": "k", **LINEAR, "features": 8, "inputs": ["input"], "learned": False},
        {"name": "v", **LINEAR, "features": 8, "inputs": ["input"], "learned": False},
        {"name": "s", "kind": "attention-scores", "heads": 2, "inputs": ["q", "k"]},
        {"name": "p", "kind": "activation", "function": "softmax"},
        {"name": "c", "kind": "attention-context", "heads": 2, "inputs": ["p", "v"]},
    ]
    found = network(*layers, given=(8, 5, 1))
    assert products(found, "s") == {"forward": 200, "backward_input": 200}
    assert products(found, "c") == {"forward": 200, "backward_input": 200}
    assert products(found, "q") == {"forward": 320, "backward_weight": 320}
    assert products(found, "k") == {"forward": 320}


def test_C4_nothing_is_kept_where_nothing_learns():
    """A frozen norm after a learned layer: statistics are constants, and no input is kept."""
    layers = [
        {"name": "one", "kind": "conv", "channels": 4, "kernel": 1},
        {"name": "bn", "kind": "batch-norm", "learned": False},
        {"name": "scale", "kind": "scale", "learned": "frozen"},
        {"name": "last", "kind": "conv", "channels": 2, "kernel": 1, "learned": False},
    ]
    found = network(*layers, given=(4, 3, 3))
    moves = [(n, w) for n, w in tasks(found) if isinstance(w, Move) and n in ("bn", "scale")]
    assert not [w for _, w in moves if w.tensor.role == Role.SAVED or w.pass_ == "update"]
    for name in ("bn", "scale"):
        own = [(str(w.pass_), w.tensor.name, w.times) for n, w in moves if n == name]
        assert own == [
            ("forward", "I", 1), ("forward", "O", 1),
            ("backward_input", "dO", 1), ("backward_input", "dI", 1),
        ]  # fmt: skip
    assert products(found, "last") == {"forward": 72, "backward_input": 72}
    assert sum(n.other_parameters for n in found.nodes()) == 8 + 4


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ([{"name": "p", "kind": "max-pool", "kernel": 2, "learned": False}], "without weights and"),
        ([{"name": "c", **CONV, "learned": "biases"} | {"name": "c"}], "without biases"),
        (
            [{"name": "one", "kind": "conv", "channels": 16, "kernel": 1, "learned": False},
             {"name": "two", "kind": "conv", "channels": 16, "kernel": 1, "shares": "one",
              "learned": True}],
            "layer two shares the weights of one, of which learned is false",
        ),
    ],
)  # fmt: skip
def test_C4_what_cannot_be_frozen_so_is_refused(refused, tmp_path, layers, said):
    document = {"version": 1, "name": "n", "title": "t", "input": [16, 8, 8], "layers": layers}
    (tmp_path / "n.yaml").write_text(json.dumps(document))
    assert said in refused("network", "check", "n.yaml")


def test_C4_training_where_nothing_learns_is_refused():
    found = network({**CONV, "learned": False})
    with pytest.raises(HwmodelError, match="nothing in it learns; use --mode inference"):
        evaluate(found, "ascend", "fp", accounting="paper")
    assert evaluate(found, "ascend", "fp", mode="inference", accounting="paper").energy > 0


def test_C4_a_network_with_frozen_layers_is_written_as_it_was(tmp_path):
    first = network(
        {**CONV, "learned": False, "bias": True},
        {**CONV, "name": "again", "shares": "conv", "bias": True},
        {**CONV, "name": "last", "learned": "biases", "bias": True},
    )
    assert [n.learned_weights + n.learned_parameters for n in first.nodes()] == [0, 0, 16]
    (tmp_path / "again.yaml").write_text(network_yaml(first))
    assert load_network(tmp_path / "again.yaml").nodes() == first.nodes()


# C16: a sequence is not flattened unasked


@pytest.mark.parametrize("shape", [(512, 64, 1), (7, 2, 1)])
def test_C16_a_sequence_is_not_flattened_unless_asked_for(shape):
    D, L, _ = shape
    with pytest.raises(ShapeError, match=f"may be a sequence of {L} tokens; say over: channels"):
        network({"name": "fc", "kind": "linear", "features": 10}, given=shape).nodes()
    for over, weights, macs in (("all", 10 * D * L, 10 * D * L), ("channels", 10 * D, 10 * D * L)):
        layer = {"name": "fc", "kind": "linear", "features": 10, "over": over}
        (node,) = network(layer, given=shape).nodes()
        assert (node.weights, node.macs) == (weights, macs)


def test_C16_maps_and_vectors_are_as_before():
    for shape in ((512, 7, 7), (512, 1, 7), (784, 1, 1), (1, 784, 1)):
        (node,) = network({"name": "fc", "kind": "linear", "features": 10}, given=shape).nodes()
        assert node.weights == 10 * prod(shape)


# Frames of one image under the same filters


def test_C14_frames_share_filters_and_nothing_else():
    """Five frames of 3 channels: the products of five images, the weights of one."""
    conv = {"name": "c", "kind": "conv", "channels": 4, "kernel": 3, "stride": 2}
    (whole,) = network({**conv, "frames": 5}, given=(15, 9, 9)).nodes()
    (one,) = network(conv, given=(3, 9, 9)).nodes()
    assert whole.output_shape == (20, 4, 4)
    assert (whole.weights, whole.macs) == (one.weights, 5 * one.macs) == (108, 5 * 108 * 16)
    assert whole.layer.loops(whole.input_shapes, 2) == one.layer.loops(one.input_shapes, 10)
    up = {"name": "c", "kind": "conv-transpose", "channels": 4, "kernel": 3, "stride": 2}
    (whole,) = network({**up, "frames": 5}, given=(15, 9, 9)).nodes()
    (one,) = network(up, given=(3, 9, 9)).nodes()
    assert whole.layer.loops(whole.input_shapes, 2) == one.layer.loops(one.input_shapes, 10)
    assert whole.macs == 5 * one.macs
    with pytest.raises(ShapeError, match="4 frames do not divide the 15 channels"):
        network({**conv, "frames": 4}, given=(15, 9, 9)).nodes()


# B13: shares of what is not counted

ODD = {"kind": "uncounted", "shape": [1, 1, 1]}


def test_B13_shares_are_by_parameters_and_products_first():
    """An operator with 91 % of the parameters and one of 258 output elements."""
    layers = [
        {"name": "c", "kind": "conv", "channels": 1, "kernel": 1},
        {"name": "fft", **ODD, "operator": "FFT", "shape": [1, 16, 16]},
        {"name": "lstm", **ODD, "operator": "LSTM", "parameters": 160, "known_macs": 12_288},
        {"name": "rnn", **ODD, "operator": "RNN", "parameters": 2},
    ]
    found = network(*layers, given=(16, 16, 16))
    with pytest.warns(
        SpecWarning, match=r"no model of LSTM, RNN: 162 parameters \(91.0 % of all\)"
    ):
        report = evaluate(found, "ascend", "fp", mode="inference", accounting="paper")
    assert report.not_counted[:3] == (
        "LSTM, an operator without a model: 1 layer, 160 parameters (89.9 % of all), 12,288 "
        "multiply-accumulates (75.0 % of all), 1 output element (0.2 % of all) an image",
        "RNN, an operator without a model: 1 layer, 2 parameters (1.1 % of all), unknown "
        "multiply-accumulates, 1 output element (0.2 % of all) an image",
        "FFT, an operator without a model: 1 layer, no parameters, unknown multiply-accumulates, "
        "256 output elements (49.8 % of all) an image",
    )


@pytest.mark.parametrize("accounting", ["paper", "full"])
def test_B13_a_report_in_which_nothing_is_counted_is_an_error(refused, tmp_path, accounting):
    layers = [{"name": "lstm", **ODD, "operator": "LSTM", "parameters": 160}]
    document = {"version": 1, "name": "n", "title": "t", "input": [16, 8, 8], "layers": layers}
    (tmp_path / "n.yaml").write_text(json.dumps(document))
    said = refused(
        "report", "n.yaml", "--hardware", "ascend", "--method", "fp", "--accounting", accounting
    )
    assert f"n: nothing of its forward pass is counted under accounting {accounting}" in said


# ONNX files

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def saved(path, nodes, inputs, stored=(), outputs=("y",)):
    tensors = []
    for name, dims in dict(stored).items():
        if isinstance(dims, tuple):
            tensors.append(TensorProto(name=name, dims=dims, data_type=FLOAT))
        else:
            tensors.append(helper.make_tensor(name, INT64, [len(dims)], dims))
    given = [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in inputs.items()]
    made = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", given, made, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    return path


def node(operator, inputs, outputs="y", **attributes):
    return helper.make_node(operator, inputs.split(" "), outputs.split(), **attributes)


def test_C9_initial_states_made_of_shapes_do_not_depend_on_the_data():
    """1 x 1 convolution 3 -> 8 on 4 x 20; LSTM of 2 directions, 20 steps, 64 x (32 + 16)."""
    conv, *lstm = load_network(DATA / "c_crnn_h0.onnx").nodes()
    assert conv.macs == 8 * 3 * 80
    assert sum(n.macs for n in lstm) == 20 * 2 * 64 * (32 + 16)
    assert conv.macs + sum(n.macs for n in lstm) == 124_800
    assert sum(n.weights for n in lstm) == 2 * 64 * (32 + 16)


@pytest.mark.parametrize("options", [(), ("--input-shape", "x=5,3,8,8")])
def test_C10_minus_one_is_an_open_dimension(shown, hwmodel, options):
    code, out, err = hwmodel(
        "network", "show", DATA / "c_paddle_minus1.onnx", "--csv", "-", *options
    )
    assert (code, err) == (0, "")
    assert f",{4 * 3 * 9 * 64}," in out  # 3 -> 4 channels, 3 x 3 taps, 8 x 8 places


@pytest.mark.parametrize("name", ["o_ext_rel_absent", "o_ext_const"])
def test_E3_no_path_of_an_onnx_file_is_opened(tmp_path, refused, name):
    """Whether the file is there, and what it says, changes nothing."""
    shutil.copy(DATA / f"{name}.onnx", tmp_path)
    shapes = (None, (1, 3072), (-1, 10))
    said = []
    for shape in shapes:
        if shape:
            values = b"".join(n.to_bytes(8, "little", signed=True) for n in shape)
            (tmp_path / "weights.bin").write_bytes(values)
        said.append(refused("network", "show", f"{name}.onnx"))
    assert len(set(said)) == 1
    assert "are not known" in said[0]


def test_E3_paths_are_forgotten_wherever_they_stand(tmp_path):
    """In attributes, lists of tensors, sparse tensors, graphs within operators and functions."""
    from hwmodel.importers.onnx_contents import forget_files

    def outside():
        tensor = TensorProto(name="w", data_type=INT64, dims=[2])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="w.bin")
        return tensor

    sparse = helper.make_sparse_tensor(outside(), outside(), [4])
    constant = helper.make_node("Constant", [], ["c"], value=outside())
    inner = helper.make_graph([constant], "inner", [], [], [outside()])
    holder = helper.make_node("If", ["b"], ["z"], then_branch=inner, else_branch=inner)
    listed = helper.make_node("Foo", [], ["f"], many=[outside()], few=sparse, graphs=[inner])
    function = helper.make_function("d", "f", [], ["c"], [constant], [])
    graph = helper.make_graph([constant, holder, listed], "g", [], [], [outside()])
    graph.sparse_initializer.append(sparse)
    model = helper.make_model(graph, functions=[function])
    assert model.SerializeToString().count(b"w.bin") == 14
    forget_files(model)
    assert b"w.bin" not in model.SerializeToString()


def attention(length, batch):
    """Self-attention of one head on (L, N, 16), tokens first, as exporters write it."""
    return [
        node("MatMul", "x wq", "q"), node("MatMul", "x wk", "k"), node("MatMul", "x wv", "v"),
        node("Transpose", "q", "qt", perm=[1, 0, 2]), node("Transpose", "k", "kt", perm=[1, 2, 0]),
        node("Transpose", "v", "vt", perm=[1, 0, 2]), node("MatMul", "qt kt", "s"),
        node("Softmax", "s", "p", axis=-1), node("MatMul", "p vt", "o"),
        node("Transpose", "o", perm=[1, 0, 2]),
    ]  # fmt: skip


def test_C3_sequences_first_in_an_onnx_file(tmp_path):
    """50 tokens of 16 features: 3 L D^2 and twice L^2 D."""
    weights = {"wq": (16, 16), "wk": (16, 16), "wv": (16, 16)}
    path = saved(tmp_path / "m.onnx", attention(50, 1), {"x": [50, 1, 16]}, weights)
    macs = sum(n.macs for n in load_network(path).nodes())
    assert macs == 3 * 50 * 256 + 2 * 50 * 50 * 16
    path = saved(tmp_path / "m.onnx", attention(50, 4), {"x": [50, 4, 16]}, weights)
    with pytest.raises(ShapeError, match="which may be no batch then; export it for one image"):
        load_network(path)


def test_C3_a_recurrent_layer_takes_steps_first(tmp_path):
    """Seven steps, four gates of 5 from 3 and 5."""
    nodes = [node("LSTM", "x w r", hidden_size=5)]
    stored = {"w": (1, 20, 3), "r": (1, 20, 5)}
    found = load_network(saved(tmp_path / "m.onnx", nodes, {"x": [7, 1, 3]}, stored)).nodes()
    assert sum(n.macs for n in found) == 7 * 20 * (3 + 5)


def test_C5_a_convolution_of_a_stored_map_stays_a_layer(tmp_path):
    nodes = [node("Conv", "waves w", "e"), node("Add", "x e")]
    stored = {"waves": (1, 64, 32, 32), "w": (48, 64, 1, 1)}
    found = load_network(saved(tmp_path / "m.onnx", nodes, {"x": [1, 48, 32, 32]}, stored)).nodes()
    assert {n.layer.kind: n.macs for n in found} == {
        "source": 0, "conv": 48 * 64 * 1024, "add": 0,
    }  # fmt: skip


def test_C14_frames_in_an_onnx_file(tmp_path):
    nodes = [
        node("Reshape", "x fold", "f"), node("Conv", "f w", "c"), node("MaxPool", "c", "p",
        kernel_shape=[2, 2], strides=[2, 2]), node("GlobalAveragePool", "p", "g"),
        node("Flatten", "g"),
    ]  # fmt: skip
    stored = {"fold": [6, 3, 8, 8], "w": (4, 3, 3, 3)}
    found = load_network(saved(tmp_path / "m.onnx", nodes, {"x": [1, 6, 3, 8, 8]}, stored)).nodes()
    (conv,) = [n for n in found if n.layer.kind == "conv"]
    assert (conv.macs, conv.weights) == (6 * 108 * 36, 108)
    assert prod(found[-1].output_shape) == 6 * 4
    assert "uncounted" not in {n.layer.kind for n in found}


def test_B14_an_expand_that_repeats_elements_is_a_view(tmp_path):
    nodes = [node("Relu", "x", "h"), node("Expand", "h to", "e"), node("Add", "e z")]
    path = saved(
        tmp_path / "m.onnx", nodes, {"x": [1, 3, 1, 1], "z": [1, 3, 5, 5]}, {"to": [1, 3, 5, 5]}
    )
    found = load_network(path)
    assert [n.layer.kind for n in found.nodes()] == ["source", "activation", "expand", "add"]
    moved = [w for name, w in tasks(found) if name.startswith("e") and w.pass_ == "forward"]
    assert not moved  # the sum reads each element as often as it is repeated
    read = [
        w.tensor.elements
        for name, w in tasks(found)
        if isinstance(w, Move) and w.pass_ == "forward" and w.tensor.name.startswith("I")
    ]
    assert read == [3, 75, 75]
