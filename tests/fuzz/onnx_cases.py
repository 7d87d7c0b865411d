"""ONNX files: the light models of the onnx package spoiled, and graphs of random operators."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.fuzz.mutations import spoiled

__all__ = ["onnx_case", "onnx_samples"]

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LENGTHS = [
    1,
    1,
    2,
    3,
    3,
    4,
    8,
    16,
    224,
    0,
    -1,
    -2,
    7,
    2**15,
    2**31,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
]
ATTRIBUTES: dict[str, Any] = {
    "kernel_shape": 2, "strides": 2, "pads": 4, "dilations": 2, "group": 0, "axis": 0, "axes": 1, "perm": 4,
    "auto_pad": ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "?"], "ceil_mode": 0, "transB": 0, "transA": 0,
    "output_shape": 2, "output_padding": 2, "keepdims": 0, "num_heads": 0, "blocksize": 0, "to": 0, "value": "tensor",
    "shape": 4, "starts": 1, "ends": 1, "split": 2, "epsilon": 1e-5, "alpha": 1e308, "mode": ["nearest", "DCR", "x"],
}  # fmt: skip
OPERATORS = [
    "Conv",
    "ConvTranspose",
    "ConvInteger",
    "Gemm",
    "MatMul",
    "BatchNormalization",
    "InstanceNormalization",
    "LayerNormalization",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Erf",
    "Exp",
    "Sqrt",
    "Pow",
    "Clip",
    "LeakyRelu",
    "PRelu",
    "Gelu",
    "Softmax",
    "HardSwish",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Concat",
    "Reshape",
    "Transpose",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Slice",
    "Split",
    "Gather",
    "Expand",
    "Shape",
    "ConstantOfShape",
    "Constant",
    "Identity",
    "Cast",
    "Dropout",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "ReduceMean",
    "ReduceSum",
    "Pad",
    "Resize",
    "Upsample",
    "DepthToSpace",
    "SpaceToDepth",
    "Where",
    "Einsum",
    "LSTM",
    "If",
    "Loop",
    "Range",
    "Tile",
    "QuantizeLinear",
    "DequantizeLinear",
    "QLinearConv",
    "TopK",
    "NonZero",
    "Attention",
    "Foo",
]


def onnx_samples() -> list[bytes]:
    """The smaller light models, which have shapes and no weights."""
    names = ("bvlc_alexnet", "zfnet512", "squeezenet", "vgg19", "inception_v1")
    return [(LIGHT / f"light_{name}.onnx").read_bytes() for name in names]


def onnx_case(random: Random, samples: list[bytes]) -> bytes:
    """A file that may be read, or not."""
    kind = random.random()
    if kind < 0.3:
        content = random.choice(samples[:2])
        for _ in range(random.choice([1, 3, 20])):
            content = spoiled(random, content)
        return content
    model = _model(random) if kind < 0.7 else _changed(random, random.choice(samples))
    content: bytes = model.SerializeToString()
    return spoiled(random, content) if random.random() < 0.1 else content


def _model(random: Random) -> onnx.ModelProto:
    """A graph of random operators on an image, on tokens or on nothing in particular."""
    shape = random.choice(
        [[1, 3, 8, 8], [2, 3, 16], [1, 16], [], ["N", 3, 8, 8], [1, 3, 0, 8], [1] * 7]
    )
    if random.random() < 0.2:
        shape = [random.choice(LENGTHS) for _ in shape]
    names = ["x", "", "nowhere"]
    weights, nodes = [], []
    for number in range(random.choice([1, 2, 3, 8, 20])):
        operator = random.choice(OPERATORS)
        inputs = [random.choice(names[-3:] if random.random() < 0.8 else names)]
        for _ in range(random.choice([0, 1, 1, 2, 3])):
            inputs.append(
                _weight(random, weights) if random.random() < 0.8 else random.choice(names)
            )
        outputs = [f"t{number}"] * random.choice([1, 1, 1, 1, 0, 2])
        nodes.append(
            helper.make_node(operator, inputs, outputs, name=f"n{number}", **_attributes(random))
        )
        names += outputs or [f"t{number}"]
    if random.random() < 0.1:
        nodes[0].input[0] = nodes[-1].output[0] if nodes[-1].output else "x"
    inputs = [helper.make_tensor_value_info("x", random.choice([1, 1, 7, 99]), shape)]
    outputs = [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    versions = [helper.make_opsetid("", random.choice([1, 7, 11, 13, 17, 21, 999, 0]))]
    return helper.make_model(graph, opset_imports=versions)


def _weight(random: Random, weights: list[Any]) -> str:
    """The name of a tensor of random shape, its numbers there or not."""
    dims = [random.choice(LENGTHS[:13]) for _ in range(random.choice([0, 1, 1, 2, 4, 4]))]
    if random.random() < 0.1:
        dims = [random.choice(LENGTHS) for _ in dims]
    tensor = onnx.TensorProto(
        name=f"w{len(weights)}", data_type=random.choice([1, 1, 7, 6, 3, 0]), dims=dims
    )
    if random.random() < 0.5:
        count = random.choice([1, 2, 4])
        numbers = [random.choice(LENGTHS) for _ in range(count)]
        tensor.dims[:] = random.choice([[count], [count], [], [3]])
        tensor.data_type = 7
        tensor.int64_data.extend(numbers)
    weights.append(tensor)
    return tensor.name


def _attributes(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(random.choice([0, 0, 1, 2, 4])):
        name, shape = random.choice(list(ATTRIBUTES.items()))
        if shape == "tensor":
            found[name] = helper.make_tensor("v", 7, [1], [random.choice(LENGTHS)])
        elif isinstance(shape, list):
            found[name] = random.choice(shape)
        elif isinstance(shape, float):
            found[name] = random.choice([shape, 0.0, float("nan"), float("inf")])
        elif shape == 0:
            found[name] = random.choice(LENGTHS)
        else:
            found[name] = [
                random.choice(LENGTHS) for _ in range(random.choice([shape, shape, 1, 3]))
            ]
    return found


def _changed(random: Random, content: bytes) -> onnx.ModelProto:
    """A light model with a few of its fields changed."""
    model = onnx.ModelProto.FromString(content)
    graph = model.graph
    for _ in range(random.choice([1, 1, 2, 5])):
        random.choice(CHANGES)(random, graph, random.choice(graph.node))
    return model


def _rewire(random: Random, graph: Any, node: Any) -> None:
    if node.input:
        node.input[random.randrange(len(node.input))] = random.choice(
            random.choice(graph.node).output
        )


def _other_attribute(random: Random, graph: Any, node: Any) -> None:
    if node.attribute:
        attribute = random.choice(node.attribute)
        attribute.ints[:] = [random.choice(LENGTHS) for _ in attribute.ints]
        attribute.i = random.choice(LENGTHS)


def _other_dims(random: Random, graph: Any, node: Any) -> None:
    if graph.initializer:
        tensor = random.choice(graph.initializer)
        tensor.dims[:] = [random.choice(LENGTHS) for _ in tensor.dims]


def _other_input(random: Random, graph: Any, node: Any) -> None:
    for dim in random.choice(graph.input).type.tensor_type.shape.dim:
        dim.dim_value = random.choice(LENGTHS)


NAMES = ["", "=1+1", "a" * 10_000, "../x", "\x1b[2J", "ß"]
CHANGES: list[Callable[[Random, Any, Any], None]] = [
    _rewire, _other_attribute, _other_dims, _other_input,
    lambda random, graph, node: setattr(node, "op_type", random.choice(OPERATORS)),
    lambda random, graph, node: setattr(node, "name", random.choice(NAMES)),
    lambda random, graph, node: graph.node.remove(node),
    lambda random, graph, node: graph.node.insert(random.randrange(len(graph.node)), node),
]  # fmt: skip
