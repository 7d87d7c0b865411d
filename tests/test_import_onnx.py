"""ONNX files: hand-computed counts, every operator, files that are wrong; see also _light."""

import csv
import os
import resource
import subprocess
import sys
import time
from math import prod
from pathlib import Path

import pytest

from hwmodel.errors import HwmodelError, ShapeError, SpecError
from hwmodel.graph.layers import Scale
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate
from tests.rows import merged

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

from hwmodel.importers.onnx import from_onnx, input_shapes  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
FLOAT, INT64, INT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT8


# Graphs of a few nodes


def save(tmp_path, nodes, inputs, initializers=(), outputs=("y",), opset=21, domains=(), **extra):
    """A file of the given nodes; initializers are dims, or dims with a type or with values."""
    tensors = []
    for name, given in dict(initializers).items():
        dims, kind, values = (
            (*given, None, None)[:3] if isinstance(given[0], tuple) else (given, None, None)
        )
        kind = kind or FLOAT
        tensor = TensorProto(name=name, dims=dims, data_type=kind)
        if values is not None:
            tensor = helper.make_tensor(name, kind, dims, values)
        tensors.append(tensor)
    given = [
        helper.make_tensor_value_info(name, *(dims if isinstance(dims, tuple) else (FLOAT, dims)))
        for name, dims in inputs.items()
    ]
    functions = extra.pop("functions", ())
    results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", given, results, tensors, **extra)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, functions=functions).SerializeToString()
    )
    return path


def node(operator, inputs, outputs="y", **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def imported(*args, **kwargs):
    shapes = kwargs.pop("input_shapes", None)
    return from_onnx(save(*args, **kwargs), shapes).nodes()


@pytest.mark.parametrize(
    ("x", "w", "attributes", "shape", "macs"),
    [
        # all lengths different primes: 5 x 7 x 9 taps x 11 x 13
        ([1, 5, 11, 13], (7, 5, 3, 3), {"pads": [1, 1, 1, 1]}, (7, 11, 13), 45_045),
        ([1, 3, 227, 227], (64, 3, 11, 11), {"strides": [4, 4]}, (64, 55, 55), 70_276_800),
        ([1, 96, 27, 27], (256, 48, 5, 5), {"pads": [2] * 4, "group": 2}, (256, 27, 27),
         223_948_800),
        # ONNX has top, left, bottom, right
        ([1, 1, 224, 224], (1, 1, 3, 3), {"pads": [1, 2, 0, 3]}, (1, 223, 227), 223 * 227 * 9),
        ([1, 1, 224, 224], (1, 1, 3, 3), {"strides": [2, 1], "pads": [1] * 4}, (1, 112, 224),
         112 * 224 * 9),
        ([1, 1, 32, 32], (1, 1, 3, 3), {"dilations": [18, 18], "pads": [18] * 4}, (1, 32, 32),
         32 * 32 * 9),
        ([1, 1, 4, 4], (2, 1, 2, 2), {"auto_pad": "SAME_UPPER"}, (2, 4, 4), 128),
        ([1, 1, 128, 128], (128, 1, 3, 3), {"auto_pad": "VALID"}, (128, 126, 126), 18_289_152),
        ([1, 32, 128], (32, 32, 3), {"pads": [4, 4], "strides": [2]}, (32, 67, 1), 205_824),
        ([10, 3, 224, 224], (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}, (64, 112, 112),
         118_013_952),
    ],
)  # fmt: skip
def test_convolutions(tmp_path, x, w, attributes, shape, macs):
    (found,) = imported(tmp_path, [node("Conv", "x w", **attributes)], {"x": x}, {"w": w})
    assert (found.output_shape, found.macs, found.weights) == (shape, macs, prod(w))


@pytest.mark.parametrize(
    ("dims", "axes", "kept", "operator", "kind", "seen", "out", "adds"),
    [
        # tokens, features: each of 7 features is a sum of 5 tokens, 4 additions and a factor
        ([2, 5, 7], [1], 0, "ReduceMean", "global-average-pool", (7, 5, 1), (7, 1, 1), 4),
        ([2, 5, 7], [1], 1, "ReduceMean", "global-average-pool", (7, 5, 1), (7, 1, 1), 4),
        ([2, 5, 7], [-2], 0, "ReduceMax", "max-pool", (7, 5, 1), (7, 1, 1), 4),
        # rows, columns, channels, and channels first
        ([1, 3, 5, 7], [1, 2], 0, "ReduceMean", "global-average-pool", (7, 3, 5), (7, 1, 1), 14),
        ([1, 3, 5, 7], [2, 3], 0, "ReduceMean", "global-average-pool", (3, 5, 7), (3, 1, 1), 34),
        # neither: no pool
        ([1, 3, 5, 7], [1], 0, "ReduceMean", "uncounted", None, None, None),
        ([2, 5, 7], [1], 0, "ReduceSum", "uncounted", None, None, None),
    ],
)  # fmt: skip
def test_a_mean_over_all_but_the_channels_is_a_pool(
    tmp_path, dims, axes, kept, operator, kind, seen, out, adds
):
    nodes = [node("Relu", "x", "h"), node(operator, "h axes", keepdims=kept)]
    path = save(tmp_path, nodes, {"x": dims}, {"axes": ((len(axes),), INT64, axes)})
    *_, found = from_onnx(path).nodes()
    assert found.layer.kind == kind
    if adds is not None:
        assert (found.input_shapes, found.output_shape) == ((seen,), out)
        rows = merged(evaluate(path, "ascend", "fp", accounting="full", mode="inference"))
        (made,) = [r for r in rows if (r.layer, r.tensor) == (found.layer.name, "add")]
        assert made.operations == adds * prod(out)


def test_same_lower_pads_before(tmp_path):
    (found,) = imported(
        tmp_path,
        [node("Conv", "x w", auto_pad="SAME_LOWER")],
        {"x": [1, 1, 4, 4]},
        {"w": (2, 1, 2, 2)},
    )
    assert found.layer.padding == (1, 1, 0, 0)


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ({"strides": [2, 2]}, (1, 4, 4)),
        ({"strides": [2, 2], "output_padding": [1, 1]}, (1, 5, 5)),
        ({"strides": [2, 2], "pads": [1, 0, 0, 1]}, (1, 3, 3)),
        ({"strides": [2, 2], "output_shape": [3, 4]}, (1, 3, 4)),
    ],
)
def test_transposed_convolutions_count_over_their_input(tmp_path, attributes, shape):
    (found,) = imported(
        tmp_path,
        [node("ConvTranspose", "x w", **attributes)],
        {"x": [1, 3, 2, 2]},
        {"w": (3, 1, 2, 2)},
    )
    assert (found.output_shape, found.macs) == (shape, 48)


def test_transposed_convolutions_in_groups(tmp_path):
    """4 to 6 channels in 2 groups, 3 x 3 taps, on 5 x 7: 6 x 2 x 9 weights at 35 places."""
    nodes = [node("ConvTranspose", "x w", group=2)]
    (found,) = imported(tmp_path, nodes, {"x": [1, 4, 5, 7]}, {"w": (4, 3, 3, 3)})
    assert (found.output_shape, found.weights, found.macs) == ((6, 7, 9), 108, 108 * 35)


def test_a_bias_is_the_layer_s_only_if_nobody_takes_the_sum_before(tmp_path):
    nodes = [node("MatMul", "x w", "h"), node("Add", "h b", "s"), node("Mul", "h s")]
    found = imported(tmp_path, nodes, {"x": [1, 7, 3]}, {"w": (3, 5), "b": (5,)})
    assert [n.layer.kind for n in found] == ["linear", "source", "add", "multiply"]
    assert (found[0].layer.bias, found[1].other_parameters) == (False, 5)


def test_products(tmp_path):
    """Gemm either way round, and MatMul at 128 places: 128 x 128 x 128 MACs."""
    (gemm,) = imported(
        tmp_path, [node("Gemm", "x w b", transB=1)], {"x": [1, 512]}, {"w": (10, 512), "b": (10,)}
    )
    assert (gemm.weights, gemm.other_parameters, gemm.macs) == (5120, 10, 5120)
    (matmul,) = imported(tmp_path, [node("MatMul", "x w")], {"x": [1, 128, 128]}, {"w": (128, 128)})
    assert (matmul.macs, matmul.weights, matmul.output_shape) == (2_097_152, 16_384, (128, 128, 1))
    nodes = [node("MatMul", "x w", "h"), node("Add", "h b")]
    (biased,) = imported(tmp_path, nodes, {"x": [1, 7, 3]}, {"w": (3, 5), "b": (5,)})
    assert (biased.layer.bias, biased.macs) == (True, 105)
    *_, left = imported(tmp_path, [node("MatMul", "w x")], {"x": [1, 7, 3]}, {"w": (5, 7)})
    assert (left.macs, left.weights) == (105, 35)


def test_products_of_activations_have_no_weights(tmp_path):
    nodes = [node("Transpose", "x", "t", perm=[0, 1, 3, 2]), node("MatMul", "x t")]
    found = imported(tmp_path, nodes, {"x": [2, 3, 5, 7]})[-1]
    assert (found.macs, found.weights, found.output_shape) == (3 * 5 * 5 * 7, 0, (3, 5, 5))


def test_weights_stored_once_are_counted_once(tmp_path):
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h w")]
    first, second = imported(tmp_path, nodes, {"x": [1, 7, 3]}, {"w": (3, 3)})
    assert (first.weights, second.weights, second.macs) == (9, 0, 63)
    assert second.layer.shares == first.layer.name


@pytest.mark.parametrize(
    ("operator", "stored", "target"), [("Reshape", (3, 1), [3, 1]), ("Unsqueeze", (3,), [1])]
)
def test_weights_in_another_shape_are_still_stored_once(tmp_path, operator, stored, target):
    nodes = [
        node(operator, "w target", "w1"), node(operator, "w target", "w2"), node("MatMul", "x w1", "a"),
        node("MatMul", "x w2", "b"), node("Add", "a b"),
    ]  # fmt: skip
    constants = {"w": stored, "target": ((len(target),), INT64, target)}
    first, second, _ = imported(tmp_path, nodes, {"x": [1, 7, 3]}, constants)
    assert (first.weights, second.weights, second.layer.shares) == (3, 0, first.layer.name)


def test_an_input_is_what_its_first_reader_takes_it_for(tmp_path):
    """Rows, columns, channels, which a transposition puts first; who reads it later is no matter."""
    nodes = [
        node("Transpose", "x", "t", perm=[0, 3, 1, 2]), node("Conv", "t w", "c"), node("Relu", "x", "r"),
        node("Add", "r more"),
    ]  # fmt: skip
    path = save(tmp_path, nodes, {"x": [1, 5, 7, 3], "more": [1, 5, 7, 3]}, {"w": (2, 3, 1, 1)})
    assert from_onnx(path).input == (3, 5, 7)


def test_whole_numbers_along_one_axis_are_not_one_for_each_image(tmp_path):
    nodes = [node("ArgMax", "x", "i", axis=0, keepdims=0), node("Relu", "x")]
    found, _ = imported(tmp_path, nodes, {"x": [4, 3]})
    assert (found.layer.operator, found.output_shape) == ("ArgMax", (3, 1, 1))


def scalar(value):
    return (), FLOAT, [value]


def test_gelu_in_pieces(tmp_path):
    nodes = [
        node("Div", "x r", "a"), node("Erf", "a", "b"), node("Add", "b one", "c"),
        node("Mul", "x c", "d"), node("Mul", "d half"),
    ]  # fmt: skip
    constants = {"r": scalar(2**0.5), "one": scalar(1.0), "half": scalar(0.5)}
    (found,) = imported(tmp_path, nodes, {"x": [1, 7, 3]}, constants)
    assert (found.layer.kind, found.layer.function) == ("activation", "gelu")


def test_layer_norm_in_pieces(tmp_path):
    nodes = [
        node("ReduceMean", "x axes", "m"), node("Sub", "x m", "c"), node("Pow", "c two", "s"),
        node("ReduceMean", "s axes", "v"), node("Add", "v eps", "e"), node("Sqrt", "e", "d"),
        node("Div", "c d", "n"), node("Mul", "n gamma", "g"), node("Add", "g beta"),
    ]  # fmt: skip
    constants = {
        "axes": ((1,), INT64, [-1]), "two": scalar(2.0), "eps": scalar(1e-5), "gamma": (3,),
        "beta": (3,),
    }  # fmt: skip
    (found,) = imported(tmp_path, nodes, {"x": [1, 7, 3]}, constants)
    assert (found.layer.kind, found.other_parameters) == ("layer-norm", 6)


def test_swish_hard_swish_and_chains_that_nobody_knows(tmp_path):
    def only(*nodes, **constants):
        (found,) = imported(tmp_path, list(nodes), {"x": [1, 4, 2, 2]}, constants)
        return getattr(found.layer, "function", getattr(found.layer, "operator", found.layer.kind))

    assert only(node("Sigmoid", "x", "s"), node("Mul", "x s")) == "swish"
    assert only(node("HardSigmoid", "x", "s", alpha=1 / 6), node("Mul", "s x")) == "hardswish"
    assert only(node("Mul", "x k"), k=scalar(0.1)) == "scale"
    assert only(node("Clip", "x low high"), low=scalar(0.0), high=scalar(6.0)) == "hardtanh"
    assert only(node("Exp", "x")) == "Exp"


def test_attention_as_exporters_write_it(tmp_path):
    """12 tokens, 8 features, 2 heads: 12 x 12 x 8 MACs in each of the two products."""
    split = ((4,), INT64, [0, 0, 2, 4])
    nodes = [
        *[node("MatMul", f"x w{p}", p) for p in "qkv"],
        *[node("Reshape", f"{p} split", f"{p}1") for p in "qkv"],
        node("Transpose", "q1", "q2", perm=[0, 2, 1, 3]),
        node("Transpose", "k1", "k2", perm=[0, 2, 3, 1]),
        node("Transpose", "v1", "v2", perm=[0, 2, 1, 3]),
        node("MatMul", "q2 k2", "s"), node("Div", "s root", "t"), node("Softmax", "t", "p", axis=-1),
        node("MatMul", "p v2", "c"), node("Transpose", "c", "c1", perm=[0, 2, 1, 3]),
        node("Reshape", "c1 join", "c2"), node("MatMul", "c2 wo"),
    ]  # fmt: skip
    constants = {f"w{p}": (8, 8) for p in "qkvo"}
    constants |= {"split": split, "join": ((3,), INT64, [0, 0, 8]), "root": scalar(2.0)}
    found = imported(tmp_path, nodes, {"x": ["batch", 12, 8]}, constants)
    macs = {n.layer.kind: n.macs for n in found}
    assert [n.layer.kind for n in found] == [
        "linear", "linear", "linear", "attention-scores", "scale", "activation",
        "attention-context", "linear",
    ]  # fmt: skip
    assert macs["attention-scores"] == macs["attention-context"] == 12 * 12 * 8
    assert found[3].layer.heads == 2


def test_shapes_that_only_a_computation_states(tmp_path):
    """Shape, Gather, Concat, Reshape: how exporters flatten."""
    nodes = [
        node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n zeros", "n1"),
        node("Concat", "n1 rest", "target", axis=0), node("Reshape", "x target", "f"),
        node("MatMul", "f w"),
    ]  # fmt: skip
    constants = {
        "zero": ((), INT64, [0]), "zeros": ((1,), INT64, [0]), "rest": ((1,), INT64, [-1]),
        "w": (24, 5),
    }  # fmt: skip
    (found,) = imported(tmp_path, nodes, {"x": ["n", 2, 3, 4]}, constants)
    assert found.macs == 120


def test_shapes_that_inference_does_not_follow(tmp_path):
    """A class token repeated to the batch through Where and Equal, as exporters write expand."""
    nodes = [
        node("Shape", "x", "d"), node("Gather", "d zero", "n"), node("Unsqueeze", "n zeros", "n1"),
        node("Concat", "n1 minus minus", "target", axis=0),
        node("ConstantOfShape", "three", "ones", value=helper.make_tensor("v", INT64, [1], [1])),
        node("Mul", "ones minus", "negative"), node("Equal", "target negative", "open"),
        node("Where", "open ones target", "shape"), node("Expand", "token shape", "tokens"),
        node("Concat", "tokens x", "all", axis=1), node("MatMul", "all w", "h"),
        node("Quant", "h s z two", domain="qonnx.custom_op.general"),
    ]  # fmt: skip
    constants = {
        "s": scalar(1.0), "z": scalar(0.0), "two": scalar(2.0),
        "zero": ((), INT64, [0]), "zeros": ((1,), INT64, [0]), "minus": ((1,), INT64, [-1]),
        "three": ((1,), INT64, [3]), "token": (1, 1, 6), "w": (6, 5),
    }  # fmt: skip
    domains = ["qonnx.custom_op.general"]
    found = imported(tmp_path, nodes, {"x": ["n", 16, 6]}, constants, domains=domains)
    assert [n.layer.kind for n in found] == ["source", "concat", "linear"]
    assert (found[0].other_parameters, found[2].macs, found[2].layer.bits) == (6, 17 * 30, 2)


def test_a_name_that_is_no_text_is_made_one(tmp_path):
    path = save(tmp_path, [helper.make_node("Relu", ["x"], ["y"], "abcd")], {"x": [1, 3]})
    path.write_bytes(path.read_bytes().replace(b"abcd", b"ab\xff\xfe"))
    assert from_onnx(path).layers[0].name == "ab"


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            [node("Relu", "x", "a"), node("Sigmoid", "x", "a"), node("Neg", "a")],
            "Sigmoid gives 'a'",
        ),
        ([node("Split", "x", "y y", axis=1)], "Split gives 'y'"),
        ([node("Relu", "x", "x"), node("Neg", "x")], "Relu gives 'x'"),
        ([node("Relu", "x", "w"), node("Add", "x w")], "Relu gives 'w'"),
    ],
)
def test_a_tensor_that_two_places_give_is_refused(tmp_path, nodes, said):
    """As the format's own checker does: names of tensors are assigned once."""
    path = save(tmp_path, nodes, {"x": [1, 8]}, {"w": (1, 8)})
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(onnx.load(path))
    with pytest.raises(SpecError, match=f"model.onnx: {said}, which is given before"):
        from_onnx(path)


def test_pools_joins_and_slices(tmp_path):
    nodes = [
        node("MaxPool", "x", "p", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        node("GlobalAveragePool", "p", "g"), node("Mul", "p g", "m"),
        node("Concat", "p m", "c", axis=1), node("Slice", "c start stop axis", "s"),
        node("DepthToSpace", "s", "d", blocksize=2), node("Resize", "d   size", mode="linear"),
    ]  # fmt: skip
    nodes[-1] = helper.make_node("Resize", ["d", "", "", "size"], ["y"], mode="linear")
    constants = {
        "start": ((1,), INT64, [4]), "stop": ((1,), INT64, [12]), "axis": ((1,), INT64, [1]),
        "size": ((4,), INT64, [1, 2, 9, 11]),
    }  # fmt: skip
    found = imported(tmp_path, nodes, {"x": [1, 8, 8, 8]}, constants)
    kinds = [n.layer.kind for n in found]
    assert kinds == [
        "max-pool", "global-average-pool", "multiply", "concat", "slice", "pixel-shuffle", "upsample",
    ]  # fmt: skip
    assert [n.output_shape for n in found][-3:] == [(8, 4, 4), (2, 8, 8), (2, 9, 11)]


def test_embedding_and_several_inputs(tmp_path):
    nodes = [node("Gather", "table ids", "e"), node("Add", "e more")]
    inputs = {"ids": (INT64, [1, 7]), "more": [1, 7, 5]}
    found = imported(tmp_path, nodes, inputs, {"table": (100, 5)})
    assert [n.layer.kind for n in found] == ["source", "embedding", "add"]
    assert found[1].other_parameters == 500 and found[2].output_shape == (5, 7, 1)


def test_what_has_no_model_is_passed_over_by_name(tmp_path):
    nodes = [
        node("LRN", "x", "h", size=5),
        node("Foo", "h", "f", domain="my.ops"),
        node("Relu", "f"),
    ]
    path = save(tmp_path, nodes, {"x": [1, 4, 5, 5]}, domains=["my.ops"])
    report = evaluate(path, "ascend", "fp", accounting="full")
    share = "1 layer, no parameters, unknown multiply-accumulates, 100 output elements (33.3 % of"
    assert [line for line in report.not_counted if line.startswith(("LRN", "my.ops.Foo"))] == [
        f"LRN, an operator without a model: {share} all) an image",
        f"my.ops.Foo, an operator without a model: {share} all) an image",
    ]


def branch(*nodes, results=("b",)):
    infos = [helper.make_tensor_value_info(name, FLOAT, None) for name in results]
    return helper.make_graph(nodes, "branch", [], infos)


def looped():
    """A body that takes `h` from around it; it goes round twice."""
    given = [("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("v", FLOAT, None)]
    given = [helper.make_tensor_value_info(*one) for one in given]
    infos = [("more", TensorProto.BOOL, []), ("w2", FLOAT, None)]
    infos = [helper.make_tensor_value_info(*one) for one in infos]
    nodes = [node("Identity", "go", "more"), node("Add", "v h", "w2")]
    body = helper.make_graph(nodes, "body", given, infos)
    return node("Loop", "twice yes zeros", "f", body=body)


@pytest.mark.parametrize(
    "inner",
    [
        node("If", "yes", "f", then_branch=branch(node("Relu", "h", "b")),
             else_branch=branch(node("Neg", "h", "b"))),
        node("If", "yes", "f", else_branch=branch(node("Neg", "h", "b")),
             then_branch=branch(node("If", "yes", "b",
                                     then_branch=branch(node("Relu", "h", "c"), results=["c"]),
                                     else_branch=branch(node("Neg", "h", "c"), results=["c"])))),
        looped(),
    ],
)  # fmt: skip
def test_a_branch_or_a_body_takes_tensors_from_around_it(tmp_path, inner):
    """Though all its own inputs are constants, what comes after depends on the network's input."""
    nodes = [node("Conv", "x w", "h"), inner, node("Conv", "f w")]
    nodes.insert(0, node("Cast", "maybe", "yes", to=TensorProto.BOOL))
    constants = {"w": (4, 4, 1, 1), "zeros": (1, 4, 5, 5)}
    constants |= {"maybe": ((1,), FLOAT, [1]), "twice": ((), TensorProto.INT64, [2])}
    shape = [
        helper.make_tensor_value_info("f", FLOAT, [1, 4, 5, 5])
    ]  # of a loop's, none is inferred
    found = imported(tmp_path, nodes, {"x": [1, 4, 5, 5]}, constants, value_info=shape)
    assert [layer.layer.kind for layer in found] == ["conv", "uncounted", "conv"]
    assert [layer.macs for layer in found] == [400, 0, 400]  # 4 x 4 x 5 x 5
    assert found[1].layer.operator == inner.op_type


SQUEEZED = [
    node("Shape", "h", "s"), node("Gather", "s last", "n"), node("Equal", "n one", "yes"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "function"), [(1, "relu"), (5, "tanh")])
def test_a_branch_that_a_shape_decides_is_chosen(tmp_path, columns, function):
    """As of a squeeze; a branch within the branch, and one that hands on what is around it."""
    inner = node("If", "yes", "b", then_branch=branch(node("Relu", "h", "c"), results=["c"]),
                 else_branch=branch(node("Tanh", "h", "c"), results=["c"]))  # fmt: skip
    nodes = [
        node("Conv", "x w", "h"), *SQUEEZED,
        node("If", "always", "f", then_branch=branch(inner),
             else_branch=branch(node("Neg", "h", "b"))),
        node("If", "always", "g", then_branch=branch(results=["f"]),
             else_branch=branch(node("Neg", "h", "b"))),
        node("Conv", "g w"),
    ]  # fmt: skip
    constants = {"w": (4, 4, 1, 1), "one": ((), INT64, [1]), "last": ((), INT64, [3])}
    constants |= {"always": ((), TensorProto.BOOL, [True])}
    found = imported(tmp_path, nodes, {"x": [1, 4, 5, columns]}, constants)
    assert [n.layer.kind for n in found] == ["conv", "activation", "conv"]
    assert found[1].layer.function == function


def test_two_branches_may_have_the_same_names_within(tmp_path):
    """Both are taken, and both make b."""
    one = {
        "then_branch": branch(node("Relu", "x", "b")),
        "else_branch": branch(node("Neg", "x", "b")),
    }
    nodes = [node("If", "yes", "f", **one), node("If", "no", "g", **one), node("Add", "f g")]
    constants = {"yes": ((), TensorProto.BOOL, [True]), "no": ((), TensorProto.BOOL, [False])}
    found = imported(tmp_path, nodes, {"x": [1, 4]}, constants)
    assert [n.layer.kind for n in found] == ["activation", "scale", "add"]


# Widths


def test_quantizers_set_widths(tmp_path):
    zero8, zero4 = ((), INT8, [0]), ((), TensorProto.INT4, [0])
    nodes = [
        node("QuantizeLinear", "x s z8", "xq"), node("DequantizeLinear", "xq s z8", "xd"),
        node("DequantizeLinear", "wq s z4", "w"), node("Conv", "xd w", "c"),
        node("QuantizeLinear", "c s z8", "cq"), node("DequantizeLinear", "cq s z8"),
    ]  # fmt: skip
    constants = {"s": scalar(0.1), "z8": zero8, "z4": zero4, "wq": ((7, 5, 1, 1), TensorProto.INT4)}
    path = save(tmp_path, nodes, {"x": [1, 5, 3, 3]}, constants)
    view, found = from_onnx(path).nodes()
    assert (view.layer.kind, view.layer.bits) == ("reshape", 8)
    assert (found.layer.weight_bits, found.layer.bits, found.input_bits) == (4, 8, (8,))
    rows = merged(evaluate(path, "ascend", "as-stated", mode="inference", accounting="paper"))
    top = {row.tensor: row.bits / row.accesses for row in rows if row.level == "L3"}
    assert top == {"I": 8, "F": 4, "O": 8}


@pytest.mark.parametrize(("attributes", "bits"), [({}, 8), ({"output_dtype": TensorProto.INT4}, 4)])
def test_a_quantizer_without_zero_point(tmp_path, attributes, bits):
    nodes = [
        node("Relu", "x", "r"), node("QuantizeLinear", "r s", "q", **attributes),
        node("DequantizeLinear", "q s"),
    ]  # fmt: skip
    (found,) = imported(tmp_path, nodes, {"x": [1, 6]}, {"s": scalar(0.5)})
    assert found.layer.bits == bits


def test_qonnx_quantizers_set_widths(tmp_path):
    domain = "qonnx.custom_op.general"
    bits = {"two": scalar(2.0), "s": scalar(1.0), "z": scalar(0.0)}
    nodes = [
        node("Quant", "w0 s z two", "w", domain=domain), node("MatMul", "x w", "h"),
        node("BipolarQuant", "h s", domain=domain),
    ]  # fmt: skip
    (found,) = imported(tmp_path, nodes, {"x": [1, 6]}, bits | {"w0": (6, 3)}, domains=[domain])
    assert (found.layer.weight_bits, found.layer.bits, found.weights) == (2, 1, 18)


# Files that are wrong, open or large


@pytest.mark.parametrize(
    ("operator", "operands", "bits"),
    [
        ("FloatQuant", (4, 3, 7, 448), "e4m3"),  # exponent, mantissa, bias, largest
        ("FloatQuant", (2, 1, 1, 6), "e2m1"),
        ("FloatQuant", (8, 23, 127, 3e38), None),  # full precision states nothing
        ("Quant", (0, 4), 4),
        ("Trunc", (0, 8, 1, 5), 5),  # zero, width before, scale and width after
        ("Trunc", (0, 8, 5), 5),  # of the first version
    ],
)
@pytest.mark.parametrize("domain", ["qonnx.custom_op.general", "onnx.brevitas"])
def test_quantizers_as_brevitas_exports_them(tmp_path, operator, operands, bits, domain):
    """Each of the weights and of the input; operands behind the scale, all of them numbers."""
    numbers = [f"n{i}" for i in range(len(operands))]
    quantized = [
        helper.make_node(operator, [name, "scale", *numbers], [f"{name}.q"], domain=domain)
        for name in ("h", "w")
    ]
    nodes = [node("Relu", "x", "h"), *quantized, node("MatMul", "h.q w.q")]
    stored = {"w": (6, 4), "scale": ((), FLOAT, [0.5])}
    stored |= {name: ((), FLOAT, [n]) for name, n in zip(numbers, operands, strict=True)}
    found = imported(tmp_path, nodes, {"x": [1, 6]}, stored, domains=(domain,))
    assert [n.layer.kind for n in found] == ["activation", "linear"]
    assert (found[0].layer.bits, found[1].layer.weight_bits) == (bits, bits)


@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        (TensorProto.FLOAT8E4M3FN, "e4m3"),
        (TensorProto.FLOAT8E5M2, "e5m2"),
        (TensorProto.FLOAT4E2M1, "e2m1"),
    ],
)
def test_floating_types_of_eight_and_four_bits(tmp_path, kind, bits):
    """The type of the zero point, or the one that is stated, is the format."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=kind),
        node("DequantizeLinear", "q s", "d"), node("DequantizeLinear", "w s", "v"),
        node("MatMul", "d v"),
    ]  # fmt: skip
    stored = {"s": ((), FLOAT, [0.5]), "w": ((6, 4), kind, None)}
    found = imported(tmp_path, nodes, {"x": [1, 6]}, stored, opset=23)
    assert (found[-1].layer.weight_bits, found[-1].input_bits) == (bits, (bits,))


@pytest.mark.parametrize(
    ("dims", "said"),
    [
        (["n", 12, "h", 40], "1,12,224,40"),  # what the file states, and an image's rows
        (["n", "tokens", 64], "1,128,64"),
        (["n", 5, "past"], "1,5,128"),
        (None, "1,3,224,224"),
    ],
)
def test_what_a_file_leaves_open_is_said_with_what_it_states(tmp_path, dims, said):
    with pytest.raises(ShapeError) as error:
        imported(tmp_path, [node("Relu", "x", "y")], {"x": dims})
    assert str(error.value).endswith(f"state them with --input-shape x={said}")


def test_an_input_with_a_space_in_its_name_is_quoted(tmp_path):
    one = helper.make_node("Relu", ["the image"], ["y"])
    with pytest.raises(ShapeError, match=r"--input-shape 'the image=1,3,224,224'$"):
        imported(tmp_path, [one], {"the image": ["n", 3, "h", "w"]})
    found = imported(tmp_path, [one], {"the image": ["n", 3, "h", "w"]},
                     input_shapes=input_shapes(["the image=1,3,8,8"]))  # fmt: skip
    assert found[0].output_shape == (3, 8, 8)


def test_open_dimensions_are_the_user_s(tmp_path):
    path = save(tmp_path, [node("Conv", "x w")], {"x": ["n", 3, "h", "w"]}, {"w": (5, 3, 1, 1)})
    with pytest.raises(ShapeError, match=r"input x is \[n, 3, h, w\].*--input-shape x=1,3,224,224"):
        from_onnx(path)
    assert load_network(path, input_shapes(["x=1,3,7,11"])).nodes()[0].macs == 15 * 77
    for words, message in (
        ({"z": (1,)}, "has no input 'z'; its inputs are x"),
        ({"x": (1, 3, 7)}, "input x has 4 dimensions, not 3"),
        ({"x": (1, 4, 7, 7)}, "differs where the file leaves nothing open"),
    ):
        with pytest.raises(SpecError, match=message):
            from_onnx(path, words)
    with pytest.raises(SpecError, match="write name=1,3,224,224"):
        input_shapes(["x=1,0"])


def test_weights_and_external_data_are_not_read(tmp_path):
    path = save(tmp_path, [node("MatMul", "x w")], {"x": [1, 40_000]}, {"w": (40_000, 20_000)})
    model = onnx.load(path, load_external_data=False)
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="there_is_no_such_file.bin")
    path.write_bytes(model.SerializeToString())
    assert from_onnx(path).nodes()[0].weights == 800_000_000


def test_short_constants_are_kept_where_weights_are_not():
    from hwmodel.importers.wire import without_weights

    few = helper.make_tensor("few", INT64, (100,), range(100))
    many = helper.make_tensor("many", INT64, (1000,), range(1000))
    model = helper.make_model(helper.make_graph([node("Relu", "x")], "g", [], [], [few, many]))
    lean = onnx.ModelProto.FromString(without_weights(memoryview(model.SerializeToString()), "m"))
    kept, left_out = lean.graph.initializer
    assert kept == few and left_out.dims == [1000] and not left_out.ByteSize() > 100


def test_large_weights_within_the_file_are_passed_over(tmp_path):
    raw = helper.make_tensor("w", FLOAT, (600, 600), b"\0" * 1_440_000, raw=True)
    graph = helper.make_graph(
        [node("MatMul", "x w")], "g", [helper.make_tensor_value_info("x", FLOAT, [1, 600])],
        [helper.make_tensor_value_info("y", FLOAT, None)], [raw],
    )  # fmt: skip
    path = tmp_path / "large.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    from hwmodel.importers.wire import without_weights

    assert len(without_weights(memoryview(path.read_bytes()), "large.onnx")) < 300
    assert from_onnx(path).nodes()[0].weights == 360_000


def test_a_cycle_is_named(tmp_path):
    path = save(
        tmp_path, [node("Add", "x b", "a"), node("Relu", "a", "b")], {"x": [1, 3]}, outputs="b"
    )
    with pytest.raises(SpecError, match="Add a takes 'b', which no operator before it gives"):
        from_onnx(path)


NORM = node("BatchNormalization", "x scale shift mean var")


@pytest.mark.parametrize("missing", ["scale", "shift", "mean", "var"])
def test_an_operand_that_nothing_gives_is_named_though_nobody_reads_it(tmp_path, missing):
    stored = {name: (3,) for name in ("scale", "shift", "mean", "var") if name != missing}
    path = save(tmp_path, [NORM], {"x": [1, 3, 4, 4]}, stored)
    with pytest.raises(HwmodelError, match=f"BatchNormalization y takes '{missing}', which no"):
        from_onnx(path)


def test_a_stored_tensor_that_cannot_be_is_named_though_nobody_reads_it(tmp_path):
    stored = {"scale": (3,), "shift": (3,), "mean": (3,), "var": (-3,)}
    path = save(tmp_path, [NORM], {"x": [1, 3, 4, 4]}, stored)
    with pytest.raises(ShapeError, match=r"tensor var is \[-3\]: none may be below 0"):
        from_onnx(path)


def test_constants_that_no_layer_asks_for_are_not_read(tmp_path, monkeypatch):
    from hwmodel.importers.onnx_reader import Reader

    made = ("scale", "shift", "mean", "var", "bias", "w")
    nodes = [node("ConstantOfShape", f"{name}.shape", name) for name in made]
    nodes += [node("Conv", "given w bias", "x"), NORM]
    shapes = {f"{name}.shape": ((1,), INT64, [3]) for name in made}
    shapes["w.shape"] = ((4,), INT64, [3, 2, 5, 5])
    read, fold = [], Reader._fold
    monkeypatch.setattr(
        Reader, "_fold", lambda self, n, given: (read.extend(n.outputs), fold(self, n, given))[1]
    )
    conv, norm = imported(tmp_path, nodes, {"given": [1, 2, 9, 9]}, shapes)
    assert read == ["w"]
    assert (conv.weights, conv.other_parameters) == (3 * 2 * 5 * 5, 3)
    assert (norm.output_shape, norm.other_parameters) == ((3, 5, 5), 2 * 3)


def test_an_operand_that_is_left_out_is_none(tmp_path):
    conv = helper.make_node("Conv", ["x", "w", ""], ["y"])
    (found,) = imported(tmp_path, [conv], {"x": [1, 2, 9, 9]}, {"w": (3, 2, 5, 5)})
    assert found.other_parameters == 0


def test_a_layer_takes_in_one_bias_and_no_second(tmp_path):
    nodes = [node("Conv", "x w", "a"), node("Add", "a b", "c"), node("Add", "c d")]
    stored = {"w": (3, 2, 5, 5), "b": (3, 1, 1), "d": (3, 1, 1)}
    found = imported(tmp_path, nodes, {"x": [1, 2, 9, 9]}, stored)
    assert [n.layer.kind for n in found] == ["conv", "source", "add"]
    assert [n.other_parameters for n in found] == [3, 3, 0]


def test_types_are_told_apart_by_all_that_they_say():
    from hwmodel.importers.onnx_contents import TensorType, Types

    stated = {
        "a": (FLOAT, [1, 2]), "b": (FLOAT, [1, 2]), "c": (INT64, [1, 2]), "d": (FLOAT, [2, 1]),
        "open": (FLOAT, [1, "n"]), "none": (FLOAT, [1, 0]), "scalar": (FLOAT, []),
        "rankless": (FLOAT, None),
    }  # fmt: skip
    infos = [helper.make_tensor_value_info(name, *given) for name, given in stated.items()]
    types = Types(helper.make_graph([], "g", [], infos[:4], value_info=infos[4:]))
    assert {name: types.get(name) for name in stated} == {
        "a": TensorType((1, 2), FLOAT, known=True, wrong=False),
        "b": TensorType((1, 2), FLOAT, known=True, wrong=False),
        "c": TensorType((1, 2), INT64, known=True, wrong=False),
        "d": TensorType((2, 1), FLOAT, known=True, wrong=False),
        "open": TensorType((1, 0), FLOAT, known=False, wrong=False),
        "none": TensorType((1, 0), FLOAT, known=False, wrong=True),
        "scalar": TensorType((), FLOAT, known=True, wrong=False),
        "rankless": TensorType((), FLOAT, known=False, wrong=False),
    }
    assert types.get("nowhere") is None


@pytest.mark.parametrize("dims", [[1, 0, 4, 4], [1, -3, 4, 4]])
def test_lengths_of_zero_and_below_are_named(tmp_path, dims):
    path = save(tmp_path, [node("Relu", "x")], {"x": dims})
    with pytest.raises(ShapeError, match="all have to be above 0"):
        from_onnx(path)


@pytest.mark.parametrize(
    ("attributes", "w", "message"),
    [
        ({"pads": [-9, -9, -9, -9]}, (2, 3, 3, 3), "attributes and inputs do not fit"),
        ({"strides": [0, 0]}, (2, 3, 3, 3), "attributes and inputs do not fit"),
        ({"strides": [1]}, (2, 3, 3, 3), "do not fit|not those of a Conv"),
        ({"group": 2}, (2, 3, 3, 3), "its weights are for 6 channels, its input has 3"),
        ({"dilations": [99, 99]}, (2, 3, 3, 3), "all have to be above 0"),
        ({}, (2, 4, 3, 3), "its weights are for 4 channels, its input has 3"),
        ({}, (2, 3, -3, 3), "none may be below 0"),
        ({}, (2, 3, 9, 9), "all have to be above 0"),
    ],
)
def test_attributes_that_cannot_be_end_in_a_message(tmp_path, attributes, w, message):
    path = save(tmp_path, [node("Conv", "x w", **attributes)], {"x": [1, 3, 4, 4]}, {"w": w})
    with pytest.raises(HwmodelError, match=message):
        from_onnx(path)


@pytest.mark.parametrize("cut", [0, 1, 10, 500, 2000, 15_000])
def test_truncated_files_end_in_a_message(tmp_path, cut):
    path = tmp_path / "cut.onnx"
    path.write_bytes((LIGHT / "light_squeezenet.onnx").read_bytes()[:cut])
    with pytest.raises(HwmodelError, match=r"cut\.onnx"):
        from_onnx(path)


def test_damaged_files_end_in_a_message_or_in_a_network(tmp_path):
    """One byte changed at every 97th place."""
    whole = (LIGHT / "light_bvlc_alexnet.onnx").read_bytes()
    path = tmp_path / "damaged.onnx"
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            from_onnx(path).nodes()
        except HwmodelError as error:
            assert str(error)


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))
from hwmodel.errors import HwmodelError
from hwmodel.importers.onnx import from_onnx
try:
    print(len(from_onnx(sys.argv[1]).layers), "layers")
except HwmodelError as error:
    print(error)
"""


def limited(path):
    """What importing says, in a process of its own with 1 GB."""
    start = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr[-500:]
    assert time.monotonic() - start < 20
    return ran.stdout.strip()


def chain(length):
    """The bytes of a file with so many operators in a row; written as a text, for speed."""

    def field(number, body):
        size, out = len(body), bytearray([number << 3 | 2])
        while size > 0x7F:
            out.append(size & 0x7F | 0x80)
            size >>= 7
        return bytes(out) + bytes([size]) + body

    nodes = b"".join(
        field(1, field(1, b"%d" % i) + field(2, b"%d" % (i + 1)) + field(4, b"Relu"))
        for i in range(length)
    )
    info = helper.make_tensor_value_info("0", FLOAT, [1, 3]).SerializeToString()
    opset = helper.make_opsetid("", 21).SerializeToString()
    return b"\x08\x0a" + field(7, nodes + field(11, info)) + field(8, opset)


def test_a_million_operators_end_in_a_message(tmp_path):
    path = tmp_path / "long.onnx"
    path.write_bytes(chain(10**6))
    assert limited(path).endswith("more than 100,000 operators")


def test_more_layers_than_a_network_has_end_in_a_message(tmp_path):
    path = tmp_path / "long.onnx"
    path.write_bytes(chain(90_000))
    assert limited(path).endswith("more than 10,000 layers")


def test_long_rows_of_constants_and_of_elementary_operators(tmp_path):
    nodes = [node("Identity", f"c{i}", f"c{i + 1}") for i in range(3000)]
    nodes += [node("Exp", f"x{i}", f"x{i + 1}") for i in range(3000)]
    nodes.append(node("Mul", "x3000 c3000"))
    found = imported(tmp_path, nodes, {"x0": [1, 3]}, {"c0": (3,)})
    assert found[-1].layer.kind == "scale" and found[-1].other_parameters == 3
    assert {n.layer.operator for n in found[:-1]} == {"Exp"} and len(found) == 3001


def test_two_gigabytes_of_weights_are_not_read(tmp_path):
    """A sparse file: the weights are a hole of 2 GB in the middle of one field."""
    head = chain(3)
    tensor = TensorProto(name="w", dims=[1], data_type=FLOAT).SerializeToString()
    path = tmp_path / "huge.onnx"
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(2**31 - 2)  # zeros: no field has the number 0
    assert "huge.onnx" in limited(path)
    with path.open("wb") as stream:
        stream.truncate(2**31 + 5)
    assert limited(path).endswith("an ONNX file has at most 2,147,483,647")
    assert tensor and resource


def test_importing_takes_no_longer_than_twice_what_shape_inference_takes(tmp_path):
    """On a file with its weights (ResNet-18's, 47 MB); see docs/networks.md for files without."""
    path = tmp_path / "weights.onnx"
    nodes, tensors, before = [], [], 64
    for i in range(16):
        channels = 64 * 2 ** (i // 4)
        dims = (channels, before, 3, 3)
        raw = b"\0" * 4 * prod(dims)
        tensors.append(helper.make_tensor(f"w{i}", FLOAT, dims, raw, raw=True))
        nodes.append(node("Conv", f"{i} w{i}", f"c{i}", pads=[1] * 4))
        nodes.append(node("Relu", f"c{i}", str(i + 1)))
        before = channels
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("0", FLOAT, [1, 64, 56, 56])],
        [helper.make_tensor_value_info("16", FLOAT, None)], tensors,
    )  # fmt: skip
    path.write_bytes(helper.make_model(graph).SerializeToString())

    def least(function):
        times = []
        for _ in range(3):
            start = time.process_time()
            function()
            times.append(time.process_time() - start)
        return min(times)

    model = onnx.load(path)
    inferring = least(lambda: onnx.shape_inference.infer_shapes(model))
    assert least(lambda: from_onnx(path)) <= 2 * inferring


@pytest.mark.parametrize("dims", [[1, 2**40, 4, 4], [2**40, 2**40]])
def test_lengths_beyond_any_network_are_named(tmp_path, dims):
    path = save(tmp_path, [node("Relu", "x")], {"x": dims})
    with pytest.raises(ShapeError, match=r"input x is \[.*\]; at most 2,147,483,648 each"):
        from_onnx(path)


def test_devices_pipes_and_folders_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")  # would wait for ever
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "device.onnx").symlink_to("/dev/zero")  # would not end
    for name in ("pipe", "folder", "device"):
        with pytest.raises(
            HwmodelError, match=rf"{name}\.onnx: is no file, but (a folder, )?a device or a pipe"
        ):
            from_onnx(tmp_path / f"{name}.onnx")


def test_shapes_that_double_until_no_memory_holds_them(tmp_path):
    nodes = [node("Shape", "x", "c0")]
    nodes += [node("Concat", f"c{i} c{i}", f"c{i + 1}", axis=0) for i in range(40)]
    nodes.append(node("Reshape", "x c40"))
    said = limited(save(tmp_path, nodes, {"x": [1, 3]}))
    assert "inferring its shapes takes more than" in said


def test_as_many_inputs_as_operators(tmp_path):
    """Looking each input's first reader up by itself took minutes."""
    inputs = {f"x{i}": [1, 3] for i in range(20_000)}
    nodes = [node("Relu", name, f"y{name}") for name in inputs]
    assert limited(save(tmp_path, nodes, inputs)).endswith("more than 10,000 layers")


def function(name, *nodes):
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], nodes, opsets)


def call(name, given="a", made="b"):
    return node(name, given, made, domain="own")


def calling(tmp_path, *functions):
    """A file that calls f0."""
    return save(
        tmp_path, [call("f0", "x", "y")], {"x": [1, 3]}, domains=["own"], functions=functions
    )


def test_functions_are_written_out_where_they_are_called(tmp_path):
    """f0 is f1 twice, f1 a linear layer of 3 x 3 weights computed there and a ReLU."""
    inner = [
        helper.make_node("Constant", [], ["w"], value=helper.make_tensor("v", FLOAT, (3, 3), [1.0] * 9)),
        node("MatMul", "a w", "h"), node("Relu", "h", "b"),
    ]  # fmt: skip
    f0, f1 = function("f0", call("f1", made="t"), call("f1", "t")), function("f1", *inner)
    found = from_onnx(calling(tmp_path, f0, f1)).nodes()
    assert [n.layer.kind for n in found] == ["linear", "activation"] * 2
    assert [n.macs for n in found] == [9, 0, 9, 0]


def test_functions_that_cannot_be_written_out(tmp_path):
    relu = node("Relu", "a", "b")
    twice = [
        function(f"f{i}", call(f"f{i + 1}", made="t"), call(f"f{i + 1}", "t")) for i in range(40)
    ]
    with pytest.raises(SpecError, match=r"written out, are 1,099,511,627,776 operators of"):
        from_onnx(calling(tmp_path, *twice, function("f40", relu)))  # 2^40
    with pytest.raises(SpecError, match=r"functions call themselves: f0 -> f0"):
        from_onnx(calling(tmp_path, function("f0", call("f0"))))
    deep = [function(f"f{i}", call(f"f{i + 1}")) for i in range(3000)]
    with pytest.raises(SpecError, match=r"functions cannot be written out: .*depth"):
        from_onnx(calling(tmp_path, *deep, function("f3000", relu)))
    long = function("f0", node("Relu", "a", "b", doc_string="x" * 10**6))
    nodes = [call("f0", f"x{i}", f"x{i + 1}") for i in range(200)]
    path = save(
        tmp_path, nodes, {"x0": [1, 3]}, outputs=["x200"], domains=["own"], functions=[long]
    )
    with pytest.raises(SpecError, match=r"200 operators of 200,\d+,\d+ B in all; at most"):
        from_onnx(path)


@pytest.mark.parametrize(("dims", "parameters"), [((1,), 0), ((1, 1, 5), 5), ((5,), 5)])
def test_a_factor_for_each_channel_is_learned_and_one_for_all_is_none(tmp_path, dims, parameters):
    """Exporters write the root of attention as a tensor of one element."""
    constants = {"f": (dims, FLOAT, [0.5] * prod(dims))}
    (found,) = imported(tmp_path, [node("Mul", "x f")], {"x": [1, 7, 5]}, constants)
    assert (found.layer.kind, found.other_parameters) == ("scale", parameters)


def test_a_bias_of_one_feature_is_a_bias(tmp_path):
    nodes = [node("MatMul", "x w", "h"), node("Add", "h b")]
    (found,) = imported(tmp_path, nodes, {"x": [1, 5]}, {"w": (5, 1), "b": ((1,), FLOAT, [0.5])})
    assert (found.layer.bias, found.other_parameters) == (True, 1)


def test_a_factor_that_is_no_parameter_costs_none():
    assert Scale(name="s", kind="scale", learned=False).other_parameters([(7, 1, 1)]) == 0


@pytest.mark.parametrize(
    ("operator", "inputs"), [("Pow", ["x"]), ("Add", ["x", ""]), ("MatMul", ["", "x"])]
)
def test_an_operand_that_is_missing_ends_in_a_message(tmp_path, operator, inputs):
    made = helper.make_node(operator, inputs, ["y"], name="n")
    path = save(tmp_path, [made], {"x": [1, 16]})
    with pytest.raises(
        ShapeError, match=f"{operator} .*: its operand [12] is missing|shapes do not fit"
    ):
        from_onnx(path)


@pytest.mark.parametrize("operator", ["Shape", "Range", "Expand", "ConstantOfShape"])
def test_operators_on_shapes_without_operands_end_in_a_message(tmp_path, operator):
    nodes = [
        helper.make_node(operator, [], ["s"], name="n"),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    path = save(tmp_path, nodes, {"x": [1, 16]})
    with pytest.raises(HwmodelError):
        from_onnx(path)


def test_parts_of_one_stored_tensor_are_weights_of_their_own(tmp_path):
    """Queries, keys and values from one stored (8, 24): 3 x 8 x 8 weights, none of them shared."""
    found = imported(
        tmp_path,
        [
            node("Split", "w", "a b c", axis=1, num_outputs=3),
            node("MatMul", "x a", "q"),
            node("MatMul", "x b", "k"),
            node("MatMul", "x c", "v"),
            node("Sum", "q k v"),
        ],
        {"x": [1, 5, 8]},
        {"w": (8, 24)},
    )
    assert [one.weights for one in found] == [64, 64, 64, 0]
    assert sum(one.macs for one in found) == 3 * 5 * 8 * 8


def test_integers_that_are_dequantized_twice_are_stored_once(tmp_path):
    """Each reader with a DequantizeLinear of its own: 4 x 4 weights of 8 bits, stored once."""
    one = {"s": ((), FLOAT, [1.0]), "z": ((), INT8, [0]), "w": ((4, 4, 1, 1), INT8)}
    nodes = [node("DequantizeLinear", "w s z", "u"), node("DequantizeLinear", "w s z", "v")]
    nodes += [node("Conv", "x u", "a"), node("Conv", "a v")]
    found = imported(tmp_path, nodes, {"x": [1, 4, 6, 6]}, one)
    assert [(n.weights, n.layer.weight_bits) for n in found] == [(16, 8), (0, 8)]


@pytest.mark.parametrize(
    ("c", "inputs", "parameters"),
    [
        ({"c": (4,)}, {}, 32 + 4),
        ({"c": (1, 4)}, {}, 32 + 4),
        ({"c": (1,)}, {}, 32 + 1),  # one number for all features
        ({"c": (6, 4)}, {}, 32 + 24),  # one for each place and feature
        ({"c": (6, 1)}, {}, 32 + 6),
        ({}, {"c": [6, 4]}, 32),  # computed: no parameter, but an addition
    ],
)
def test_what_a_gemm_adds(tmp_path, c, inputs, parameters):
    """(6, 8) times (8, 4): 192 MACs, and what C stores."""
    nodes = [node("Reshape", "x s", "a"), node("Gemm", "a w c")]
    stored = {"w": (8, 4), "s": ((2,), INT64, [6, 8])} | c
    found = imported(tmp_path, nodes, {"x": [1, 6, 8]} | inputs, stored)
    assert sum(n.macs for n in found) == 192
    assert sum(n.weights + n.other_parameters for n in found) == parameters


@pytest.mark.parametrize(
    ("operator", "kind", "w"),
    [("Conv", "conv", (3, 2, 1, 1)), ("ConvTranspose", "conv-transpose", (2, 3, 1, 1))],
)
def test_a_bias_that_is_computed_is_added(tmp_path, operator, kind, w):
    found = imported(tmp_path, [node(operator, "x w b")], {"x": [1, 2, 4, 4], "b": [3]}, {"w": w})
    assert [n.layer.kind for n in found] == ["source", kind, "add"]
    assert sum(n.weights + n.other_parameters for n in found) == 6


def test_zero_points_of_a_convolution_of_integers_are_no_bias(tmp_path):
    inits = {"w": ((3, 2, 1, 1), INT8), "p": ((), TensorProto.UINT8, [3]), "q": ((), INT8, [0])}
    nodes = [node("ConvInteger", "x w p q", "a"), node("Cast", "a", to=FLOAT)]
    (found,) = imported(tmp_path, nodes, {"x": (TensorProto.UINT8, [1, 2, 4, 4])}, inits)
    assert (found.macs, found.weights, found.other_parameters) == (96, 6, 0)


def test_attention_to_the_past_meets_its_keys(tmp_path):
    """3 queries and 13 keys, of which 10 are of the past: 2 x 2 x 3 x 13 x 4 = 624 MACs."""
    given = {"q": [1, 2, 3, 4], "k": [1, 2, 3, 4], "v": [1, 2, 3, 4]}
    given |= {"m": [3, 13], "pk": [1, 2, 10, 4], "pv": [1, 2, 10, 4]}
    nodes = [node("Attention", "q k v m pk pv", "y k2 v2")]
    found = imported(tmp_path, nodes, given, opset=23, outputs=("y", "k2", "v2"))
    assert sum(n.macs for n in found) == 624
    assert sum(n.other_parameters + n.weights for n in found) == 0
    assert [n.layer.past for n in found if "attention" in n.layer.kind] == [10, 10]


TODAY = Path(__file__).parent / "data" / "today" / "onnx_fused_blocks.csv"
FUSED = [
    row
    for row in csv.DictReader(TODAY.read_text(encoding="utf-8").splitlines())
    if row["item"].startswith("onnx")
]


@pytest.mark.parametrize("row", FUSED, ids=lambda row: row["case"])
def test_attention_of_shared_keys_and_a_past_is_as_the_reference_has_it(tmp_path, row):
    """The file is of one sequence, the row of B of them."""
    n = {key: int(value) for key, value in (word.split("=") for word in row["case"].split())}
    new, past, kv, d = n["new"], n["past"], n["kv_heads"], n["d"]
    given = {"q": [1, n["heads"], new, d]} | {key: [1, kv, new, d] for key in "kv"}
    given |= {key: [1, kv, past, d] for key in ("pk", "pv")}
    inputs = ["q", "k", "v", "", "pk", "pv"]
    one = helper.make_node("Attention", inputs, ["y", "k2", "v2"], is_causal=1)
    found = imported(tmp_path, [one], given, opset=23, outputs=("y", "k2", "v2"))
    (scores,) = (x for x in found if x.layer.kind == "attention-scores")
    words = 2 * kv * d * scores.output_shape[2]
    assert row["expected"] == f"{n['B'] * sum(x.macs for x in found)}; {n['B'] * words}"
    assert all(x.layer.causal for x in found if "attention" in x.layer.kind)


@pytest.mark.parametrize(
    ("operator", "axis", "scale", "shift", "parameters"),
    [
        ("LayerNormalization", -1, (6,), (6,), 12),
        ("LayerNormalization", -1, (6,), None, 6),
        ("LayerNormalization", 1, (4, 5, 6), None, 120),
        ("RMSNormalization", -1, (6,), None, 6),
        ("RMSNormalization", 1, (4, 5, 6), None, 120),
    ],
)
def test_parameters_of_norms(tmp_path, operator, axis, scale, shift, parameters):
    stored = {"s": scale} | ({"b": shift} if shift else {})
    nodes = [node(operator, " ".join(["x", *stored]), axis=axis)]
    found = imported(tmp_path, nodes, {"x": [1, 4, 5, 6]}, stored, opset=23)
    assert sum(n.other_parameters for n in found) == parameters
    kind = "rms-norm" if operator == "RMSNormalization" else "layer-norm"
    assert sum(n.layer.kind == kind for n in found) == 1


def test_columns_of_a_table_are_no_embedding(tmp_path):
    """Of a table (8, 100), columns by number: (8, 5), which is no lookup of rows."""
    (found,) = imported(
        tmp_path, [node("Gather", "e x", axis=1)], {"x": (INT64, [1, 5])}, {"e": (8, 100)}
    )
    assert (found.layer.kind, prod(found.output_shape)) == ("uncounted", 40)


@pytest.mark.parametrize("operator", ["Add", "Mul"])
def test_a_constant_as_long_as_the_batch_is_of_places(tmp_path, operator):
    """8 images of 8 places of 64: a constant (8, 64) is one of places, not repeated by image."""
    found = imported(tmp_path, [node(operator, "x p")], {"x": [8, 8, 64]}, {"p": (8, 64)})
    assert sum(n.other_parameters for n in found) == 8 * 64


def test_products_that_both_repeat_have_no_model(tmp_path):
    """(2, 1) batches times (1, 2) are (2, 2): neither side has them all."""
    *_, found = imported(
        tmp_path, [node("MatMul", "a b")], {"a": [1, 2, 1, 3, 5], "b": [1, 1, 2, 5, 7]}
    )
    assert (found.layer.kind, prod(found.output_shape)) == ("uncounted", 2 * 2 * 3 * 7)


@pytest.mark.parametrize(
    ("nodes", "parameters"),
    [
        ([node("Gemm", "x w b", "a"), node("Gemm", "a w c")], 64 + 8 + 8),
        ([node("Gemm", "x w b", "a"), node("Gemm", "a w b")], 64 + 8),
        ([node("MatMul", "x w", "u"), node("Add", "u b", "a"), node("MatMul", "a w", "v"),
          node("Add", "v c")], 64 + 8 + 8),
        ([node("MatMul", "x w", "u"), node("Add", "u b", "a"), node("MatMul", "a w", "v"),
          node("Add", "v b")], 64 + 8),
        ([node("MatMul", "x w", "a"), node("Gemm", "a w c")], 64 + 8),
    ],
)  # fmt: skip
def test_shared_weights_with_biases_of_their_own(tmp_path, nodes, parameters):
    """8 x 8 weights stored once; each bias that is stored counts once."""
    stored = {"w": (8, 8), "b": (8,), "c": (8,)}
    used = {name: stored[name] for one in nodes for name in one.input if name in stored}
    found = imported(tmp_path, nodes, {"x": [1, 8]}, used)
    assert sum(n.weights + n.other_parameters for n in found) == parameters
    assert sum(n.macs for n in found) == 2 * 64


@pytest.mark.parametrize(("slopes", "parameters"), [((1,), 1), ((1, 1, 1), 1), ((6, 1, 1), 6)])
def test_a_prelu_has_a_slope_for_each_channel_or_one_for_all(tmp_path, slopes, parameters):
    (found,) = imported(tmp_path, [node("PRelu", "x s")], {"x": [1, 6, 4, 4]}, {"s": slopes})
    assert (found.layer.kind, found.other_parameters) == ("activation", parameters)


def test_a_letter_has_one_length(tmp_path):
    path = save(tmp_path, [node("Relu", "x")], {"x": ["n", 2, "n", "m"]})
    assert from_onnx(path, {"x": (4, 2, 4, 5)}).input == (2, 4, 5)
    with pytest.raises(SpecError, match=r"input x: \[4, 2, 5, 6\] makes n 5, which is 4 already$"):
        from_onnx(path, {"x": (4, 2, 5, 6)})


def test_the_standard_operators_have_two_names(tmp_path):
    path = save(tmp_path, [node("MatMul", "x w", "h"), node("Relu", "h", domain="ai.onnx")],
                {"x": [1, 8]}, {"w": (8, 4)})  # fmt: skip
    model = onnx.load(path)
    model.opset_import[0].domain = "ai.onnx"
    path.write_bytes(model.SerializeToString())
    assert [layer.kind for layer in from_onnx(path).layers] == ["linear", "activation"]


@pytest.mark.parametrize(
    ("operator", "w", "attributes", "macs"),
    [
        # a result of 4 x 5 x 7 places; of a transpose, places of its input
        ("Conv", (2, 3, 2, 3, 1), {"pads": [0, 1, 0, 0, 1, 0]}, 2 * 3 * 6 * 4 * 5 * 7),
        ("Conv", (6, 1, 2, 3, 1), {"group": 3, "strides": [2, 1, 1]}, 6 * 6 * 2 * 3 * 7),
        ("ConvTranspose", (3, 2, 2, 3, 1), {"strides": [2, 1, 1]}, 3 * 2 * 6 * 5 * 5 * 7),
        ("ConvTranspose", (3, 2, 2, 3, 1), {}, 3 * 2 * 6 * 5 * 5 * 7),
    ],
)
def test_C12_convolutions_along_three_axes(tmp_path, operator, w, attributes, macs):
    nodes = [node(operator, "x w b", **attributes)]
    bias = w[1] if operator == "ConvTranspose" else w[0]
    found = imported(tmp_path, nodes, {"x": [1, 3, 5, 5, 7]}, {"w": w, "b": (bias,)})
    assert sum(n.macs for n in found) == macs
    assert sum(n.weights + n.other_parameters for n in found) == prod(w) + bias
