"""ONNX operators of language models, of the standard and of ONNX Runtime: counts by hand."""

from math import prod
from pathlib import Path

import pytest

from hwmodel.errors import ShapeError
from hwmodel.importers.load import load_network
from hwmodel.model.evaluate import evaluate

pytest.importorskip("onnx")
from onnx import TensorProto, helper

from tests.rows import merged
from tests.test_import_onnx import imported, node

DATA = Path(__file__).parent / "data" / "turn2"
OURS = "com.microsoft"
HALF = TensorProto.FLOAT16


def contributed(operator, inputs, outputs="y", **attributes):
    """A node of ONNX Runtime's; "-" is an operand that is left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    results = ["" if name == "-" else name for name in outputs.split()]
    return helper.make_node(operator, names, results, domain=OURS, **attributes)


def attention_of(found):
    return [n for n in found if n.layer.kind in ("attention-scores", "attention-context")]


def weights_from_hbm(network, method):
    """What the second operand of each product moves from the outermost memory [bit]."""
    report = evaluate(network, "tpuv4i", method, accounting="full", mode="inference")
    return {r.layer: r.bits for r in merged(report) if (r.tensor, r.level) == ("F", "HBM")}


def parameters_of(found):
    return sum(n.weights + n.other_parameters for n in found)


@pytest.mark.parametrize("name", ["c_attention23_gqa", "c_gqa"])
def test_C6_eight_heads_of_queries_and_two_of_keys(name):
    """64 queries and keys of 32 features: 2 x 64 x 64 x 256 MACs, K and V 65,536 bit at 16 bit."""
    network = load_network(DATA / f"{name}.onnx")
    found = network.nodes()
    assert sum(n.macs for n in found) == 2_097_152
    assert [n.layer.kv_heads for n in attention_of(found)] == [2, 2]
    assert "uncounted" not in {n.layer.kind for n in found}
    assert weights_from_hbm(network, "fp16") == {"y.scores": 65_536, "y.context": 65_536}


@pytest.mark.parametrize("past", [0, 511])
def test_C7_a_token_behind_a_cache(tmp_path, past):
    """2 x 8 x S x 32 MACs; keys and values of S x 2 x 32 words each."""
    given = {"q": [1, 1, 256], "k": [1, 1, 64], "v": [1, 1, 64]}
    given |= {"pk": [1, 2, past, 32], "pv": [1, 2, past, 32]} if past else {}
    given |= {"sl": (TensorProto.INT32, [1]), "tl": (TensorProto.INT32, [1])}
    nodes = [
        contributed("GroupQueryAttention", f"q k v {'pk pv' if past else '- -'} sl tl", "y a b",
                    num_heads=8, kv_num_heads=2)
    ]  # fmt: skip
    found = imported(tmp_path, nodes, given, outputs=("y", "a", "b"), domains=(OURS,))
    S = past + 1
    assert sum(n.macs for n in found) == 2 * 8 * S * 32
    assert [(n.layer.past, n.layer.causal) for n in attention_of(found)] == [(past, True)] * 2
    assert found[-1].output_shape == (256, 1, 1)


def test_grouped_attention_turns_queries_and_keys_within_a_window(tmp_path):
    """Packed: 4 heads of queries, 2 of keys and of values, 8 features each, side by side."""
    nodes = [
        contributed("GroupQueryAttention", "x - - pk pv sl tl cos sin", "h a b", num_heads=4,
                    kv_num_heads=2, do_rotary=1, local_window_size=3),
        node("MatMul", "h w"),
    ]  # fmt: skip
    given = {"x": [1, 5, 64], "pk": [1, 2, 7, 8], "pv": [1, 2, 7, 8]}
    given |= {"sl": (TensorProto.INT32, [1]), "tl": (TensorProto.INT32, [1])}
    stored = {"w": (32, 11), "cos": (20, 4), "sin": (20, 4)}
    found = imported(tmp_path, nodes, given, stored, domains=(OURS,))
    assert sum(n.macs for n in found) == 2 * 4 * 5 * 12 * 8 + 5 * 32 * 11
    turned = [(n.layer.heads, n.output_shape) for n in found if n.layer.kind == "rotary"]
    assert turned == [(4, (32, 5, 1)), (2, (16, 5, 1))]
    assert {n.layer.window for n in attention_of(found)} == {3}
    assert parameters_of(found) == 32 * 11


def test_packed_queries_that_are_none_are_named(tmp_path):
    node_ = contributed("GroupQueryAttention", "x - - - - sl tl", num_heads=4, kv_num_heads=2)
    given = {"x": [1, 5, 63], "sl": (TensorProto.INT32, [1]), "tl": (TensorProto.INT32, [1])}
    with pytest.raises(ShapeError, match=r"\[1, 5, 63\] is not queries of 4 and keys"):
        imported(tmp_path, [node_], given, domains=(OURS,))


def test_attention_of_several_heads(tmp_path):
    nodes = [contributed("MultiHeadAttention", "q k v", num_heads=4)]
    given = {"q": [1, 5, 32], "k": [1, 7, 32], "v": [1, 7, 32]}
    found = imported(tmp_path, nodes, given, domains=(OURS,))
    assert sum(n.macs for n in found) == 2 * 4 * 5 * 7 * 8
    assert "uncounted" not in {n.layer.kind for n in found}


@pytest.mark.parametrize(
    ("mode", "cap", "taken"),
    [(0, 0, "attention-scores"), (1, 50, "attention-scores"), (2, 50, "scale"), (2, 0, "attention-scores"),
     (3, 0, "activation")],
)  # fmt: skip
def test_scores_that_leave_and_scores_that_are_bounded(tmp_path, mode, cap, taken):
    """A tanh and a factor for each score; the factor before it folds into the scores' own."""
    given = {key: [1, 2, 5, 8] for key in "qkv"}
    attributes = {"qk_matmul_output_mode": mode, "softcap": float(cap)}
    nodes = [
        helper.make_node("Attention", ["q", "k", "v"], ["h", "", "", "s"], **attributes),
        node("Relu", "s", "y"), node("Relu", "h", "z"),
    ]  # fmt: skip
    found = imported(tmp_path, nodes, given, opset=23, outputs=("y", "z"))
    by_name = {n.layer.name: n for n in found}
    assert by_name[by_name["y"].inputs[0]].layer.kind == taken
    functions = [getattr(n.layer, "function", "") for n in found]
    assert functions.count("tanh") == (cap > 0)
    assert by_name["y"].output_shape == (2, 5, 5)


def test_numbers_of_keys_that_are_data_have_no_model(tmp_path):
    given = {key: [1, 2, 5, 8] for key in "qkv"} | {"n": (TensorProto.INT64, [1])}
    nodes = [helper.make_node("Attention", ["q", "k", "v", "", "", "", "n"], ["y"])]
    found = imported(tmp_path, nodes, given, opset=24)
    assert [n.layer.operator for n in found if n.layer.kind == "uncounted"] == ["Attention"]


@pytest.mark.parametrize(
    ("domain", "inputs", "x", "heads"),
    [
        ("", "x cos sin", [1, 4, 5, 8], 0),
        ("", "x cos sin p", [1, 5, 32], 4),
        (OURS, "x p cos sin", [1, 4, 5, 8], 0),
        (OURS, "x p cos sin", [1, 5, 32], 0),
        (OURS, "x p cos sin", [1, 5, 32], 4),
    ],
)
def test_rotary_embeddings(tmp_path, domain, inputs, x, heads):
    attributes = {"num_heads": heads} if heads else {}
    one = helper.make_node("RotaryEmbedding", inputs.split(), ["y"], domain=domain, **attributes)
    shape = [1, 5, 4] if inputs == "x cos sin" else [20, 4]
    given = {"x": x} | ({"p": (TensorProto.INT64, [1, 5])} if "p" in inputs.split() else {})
    stored = {"cos": tuple(shape), "sin": tuple(shape)}
    found = imported(tmp_path, [one], given, stored, opset=23, domains=(OURS,))
    (turned,) = [n for n in found if n.layer.kind == "rotary"]
    assert (turned.layer.heads, turned.output_shape) == (4, (32, 5, 1))


def test_a_turn_of_a_part_is_listed(tmp_path):
    one = contributed("RotaryEmbedding", "x p cos sin", rotary_embedding_dim=4, num_heads=4)
    given = {"x": [1, 5, 32], "p": (TensorProto.INT64, [1, 5])}
    stored = {"cos": (20, 2), "sin": (20, 2)}
    found = imported(tmp_path, [one], given, stored, domains=(OURS,))
    assert found[-1].layer.operator == "com.microsoft.RotaryEmbedding"


@pytest.mark.parametrize("domain", ["", OURS])
@pytest.mark.parametrize("bias", [False, True])
def test_blocks_as_onnx_runtime_fuses_them(tmp_path, domain, bias):
    """Norm, product, norm of the sum with the shortcut, product, the sum taken on."""
    b = " b" if bias else ""
    nodes = [
        helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["n"]),
        node("MatMul", "n w", "h"),
        helper.make_node("SkipSimplifiedLayerNormalization", ["x", "h", "g2", *b.split()],
                         ["m", "", "", "s"], domain=domain),
        node("MatMul", "m w2", "k"), node("Add", "s k"),
    ]  # fmt: skip
    stored = {"g": (8,), "g2": (8,), "w": (8, 8), "w2": (8, 8)} | ({"b": (8,)} if bias else {})
    found = imported(tmp_path, nodes, {"x": [1, 5, 8]}, stored, domains=(OURS,))
    kinds = [n.layer.kind for n in found if n.layer.kind != "source"]
    assert kinds == ["rms-norm", "linear", "add", "rms-norm", "linear", "add"]
    assert parameters_of(found) == sum(prod(dims) for dims in stored.values())
    assert sum(n.macs for n in found) == 2 * 5 * 64


def test_the_sum_that_is_taken_on_has_a_shape(tmp_path):
    nodes = [
        contributed("SkipSimplifiedLayerNormalization", "x z g", "m - - s"),
        helper.make_node("Concat", ["s", "m"], ["y"], axis=2),
    ]
    given = {"x": [1, 5, 8], "z": [1, 5, 8]}
    found = imported(tmp_path, nodes, given, {"g": (8,)}, domains=(OURS,))
    assert found[-1].output_shape == (16, 5, 1)
    assert found[-1].layer.axis == "channels"


def test_a_layer_norm_of_a_sum(tmp_path):
    nodes = [contributed("SkipLayerNormalization", "x z g b")]
    given = {"x": [1, 5, 8], "z": [1, 5, 8]}
    found = imported(tmp_path, nodes, given, {"g": (8,), "b": (8,)}, domains=(OURS,))
    assert [n.layer.kind for n in found] == ["source", "add", "layer-norm"]
    assert parameters_of(found) == 16


# Weights in blocks that share a scale


def test_C11_weights_of_four_bits_and_a_scale_a_block():
    """16 x 256 x 256 MACs; the file's scales are of 32 bit, one for 32 weights: 5 bit a weight."""
    network = load_network(DATA / "c_matmulnbits.onnx")
    (found,) = network.nodes()
    assert (found.macs, found.weights) == (1_048_576, 65_536)
    assert found.layer.weight_format.total(256, 256) == 65_536 * 4 + 2_048 * 32
    assert weights_from_hbm(network, "as-stated") == {"y": 65_536 * 5}
    assert weights_from_hbm(network, "fp16") == {"y": 65_536 * 16}


@pytest.mark.parametrize(
    ("scale", "zeros", "bits"),
    [
        (HALF, None, 4.5),
        (HALF, ((256, 4), TensorProto.UINT8, None), 4.625),
        (HALF, ((2048,), HALF, None), 5),
        (TensorProto.FLOAT, None, 5),
    ],
)
def test_bits_of_a_weight_with_its_scale_and_zero_point(tmp_path, scale, zeros, bits):
    """Blocks of 32 (networks.md section 6): 4.5 bit with a scale of 16, 4.625 with 4 of a zero."""
    names = "x b s z" if zeros else "x b s"
    nodes = [contributed("MatMulNBits", names, "h", K=256, N=256, bits=4, block_size=32),
             node("Relu", "h")]  # fmt: skip
    stored = {"b": ((256, 8, 16), TensorProto.UINT8, None), "s": ((2048,), scale, None)}
    stored |= {"z": zeros} if zeros else {}
    found = imported(tmp_path, nodes, {"x": [1, 16, 256]}, stored, domains=(OURS,))
    assert float(found[0].layer.weight_format.width(256, 256)) == bits


def test_products_of_packed_weights_change_the_features(tmp_path):
    """What follows has the product's own width: 64 -> 48 -> 10, a bias, 20 tokens."""
    nodes = [
        contributed("MatMulNBits", "x b s - - c", "h", K=64, N=48, bits=8, block_size=16),
        node("MatMul", "h w"),
    ]
    stored = {"b": ((48, 4, 16), TensorProto.UINT8, None), "s": ((192,), HALF, None)}
    stored |= {"w": (48, 10), "c": (48,)}
    first, second = imported(tmp_path, nodes, {"x": [1, 20, 64]}, stored, domains=(OURS,))
    assert (first.macs, second.macs) == (20 * 64 * 48, 20 * 48 * 10)
    assert (first.other_parameters, first.output_shape) == (48, (48, 20, 1))
    assert first.layer.weight_format.width(48, 64) == 9


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"K": 256, "N": 256, "bits": 4}, "block_size 0"),
        ({"K": 256, "N": 256, "bits": 0, "block_size": 32}, "bits 0"),
        ({"K": 0, "N": 256, "bits": 4, "block_size": 32}, "K 0"),
        ({"K": 256, "N": -(2**62), "bits": 4, "block_size": 32}, "N -4611686018427387904"),
        ({"K": 256, "N": 2**40, "bits": 4, "block_size": 32}, "features"),
        (
            {"K": 128, "N": 256, "bits": 4, "block_size": 32},
            "are for 128 channels, its input has 256",
        ),
    ],
)
def test_packed_weights_that_cannot_be_end_in_a_message(tmp_path, attributes, said):
    stored = {"b": ((256, 8, 16), TensorProto.UINT8, None), "s": ((2048,), HALF, None)}
    nodes = [contributed("MatMulNBits", "x b s", **attributes)]
    with pytest.raises(ShapeError, match=said):
        imported(tmp_path, nodes, {"x": [1, 16, 256]}, stored, domains=(OURS,))


def test_a_fused_norm_among_shapes_that_a_computation_states(tmp_path):
    """Inference does not follow the target of the reshape, so that shapes are computed."""
    nodes = [
        contributed("SkipSimplifiedLayerNormalization", "x z g", "m - - s"),
        node("Shape", "s", "n"), node("Slice", "n none one", "start"),
        node("Equal", "start start", "yes"), node("Where", "yes to to", "target"),
        node("Reshape", "s target"),
    ]  # fmt: skip
    given = {"x": [1, 5, 8], "z": [1, 5, 8]}
    stored = {"g": (8,), "none": ((1,), 7, [0]), "one": ((1,), 7, [2]), "to": ((2,), 7, [5, 8])}
    found = imported(tmp_path, nodes, given, stored, domains=(OURS,))
    assert [n.layer.kind for n in found] == ["source", "add", "rms-norm"]


@pytest.mark.parametrize(
    ("words", "zeros", "axis", "bits"),
    [
        (TensorProto.FLOAT4E2M1, None, 0, 4.5),
        (TensorProto.INT4, None, 0, 4.5),
        (TensorProto.INT4, ((8, 128), TensorProto.INT4, None), 0, 4.625),
    ],
)
def test_blocks_of_dequantized_weights_share_a_scale_of_sixteen_bits(
    tmp_path, words, zeros, axis, bits
):
    """Blocks of 32 along the 256 that are summed: 16 / 32 bit a weight of a scale, 4 / 32 of a zero."""
    nodes = [
        node("DequantizeLinear", "b s z" if zeros else "b s", "w", axis=axis, block_size=32),
        node("MatMul", "x w"),
    ]
    stored = {"b": ((256, 128), words, None), "s": ((8, 128), HALF, None)}
    stored |= {"z": zeros} if zeros else {}
    (found,) = imported(tmp_path, nodes, {"x": [1, 16, 256]}, stored, opset=23)
    assert float(found.weight_bits.width(128, 256)) == bits
    assert (found.layer.weight_format.float == "e2m1") == (words == TensorProto.FLOAT4E2M1)


def test_blocks_across_the_sums_of_a_product_are_no_format_of_it(tmp_path):
    nodes = [node("DequantizeLinear", "b s", "w", axis=1, block_size=32), node("MatMul", "x w")]
    stored = {"b": ((256, 128), TensorProto.INT4, None), "s": ((256, 4), HALF, None)}
    (found,) = imported(tmp_path, nodes, {"x": [1, 16, 256]}, stored, opset=23)
    assert found.weight_bits == 4
