"""The nodes of an ONNX graph in turn: every tensor's name leads to a value or a constant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

from hwmodel.errors import ShapeError, SpecError
from hwmodel.importers.graph import Constant, Dims, Graph, Operand, Value, plain
from hwmodel.importers.onnx_call import Call
from hwmodel.importers.onnx_constants import FLOATS, INTEGERS, of_node, stored
from hwmodel.importers.onnx_operators import convert
from hwmodel.importers.onnx_quantizers import IN_PLACE, QUANTIZERS
from hwmodel.layers import Shape, Source
from hwmodel.network import INPUT, Network

__all__ = ["Reader"]


class Reader:
    """Walks the nodes; every tensor's name leads to a value or a constant."""

    def __init__(self, where: str, graph: Any) -> None:
        self.graph = Graph(where)
        self.where = where
        self.tensors: dict[str, Operand | None] = {"": None}
        self.types = {info.name: info.type.tensor_type for info in graph.value_info}
        self.types |= {info.name: info.type.tensor_type for info in graph.output}
        self.readers = Counter(name for node in graph.node for name in node.input)
        self.images = 1
        for tensor in graph.initializer:
            self.tensors[tensor.name] = stored(tensor, tensor.name, learned=True)
        for tensor in graph.sparse_initializer:
            name = tensor.values.name
            learned = tensor.values.data_type in FLOATS
            self.tensors[name] = Constant(tuple(tensor.dims), name, learned)
        inputs = [given for given in graph.input if given.name not in self.tensors]
        if not inputs:
            raise ShapeError(f"{where}: has no input; everything in it is a constant")
        self._inputs(inputs, graph.node)

    def _inputs(self, inputs: Sequence[Any], nodes: Sequence[Any]) -> None:
        """The network's input is the first; the others are sources."""
        first = inputs[0].type.tensor_type
        self.images = first.shape.dim[0].dim_value if len(first.shape.dim) > 1 else 1
        for given in inputs:
            tensor = given.type.tensor_type
            dims = self._of_one_image([d.dim_value for d in tensor.shape.dim], given.name)
            shape = _input_shape(dims, tensor.elem_type, given.name, nodes)
            if given is inputs[0]:
                self.graph.shapes[INPUT] = shape
                self.tensors[given.name] = Value(dims, INPUT, shape)
            else:
                self.tensors[given.name] = self.graph.put(Source, given.name, [], dims, shape=shape)

    def _of_one_image(self, dims: Sequence[int], name: str) -> Dims:
        """Dimensions with the batch taken out. Raises: ShapeError where it is not among them."""
        N = self.images
        if N == 1 or not dims:
            return tuple(dims)
        if dims[0] % N == 0:
            return dims[0] // N, *dims[1:]
        if N in dims:
            at = list(dims).index(N)
            return (*dims[:at], 1, *dims[at + 1 :])
        raise ShapeError(
            f"{self.where}: tensor {name} is {list(dims)}, which is not made of {N} images alike; "
            "export the file for a batch of one"
        )

    def read(self, node: Any) -> None:
        """Take one node in."""
        operands: list[Operand | None] = []
        for name in node.input:
            if name not in self.tensors:
                raise SpecError(
                    f"{self.where}: {node.op_type} {node.name!r} takes {name!r}, which no operator "
                    "before it gives (a cycle, or a wrong order)"
                )
            operands.append(self.tensors[name])
        if not any(isinstance(operand, Value) for operand in operands):
            self._fold(node, operands)
            return
        outputs = [name for name in node.output if name]
        call = Call(
            self.graph, _called(node), node.op_type, node.domain, operands,
            [self._dims(name) for name in outputs], node.attribute, self._width(node),
        )  # fmt: skip
        results = convert(call)
        for name, result in zip(outputs, results, strict=False):
            if isinstance(result, Value):
                result.readers = self.readers[name]
            self.tensors[name] = result
        for name in outputs[len(results) :]:  # masks and statistics that nobody counts
            if self.readers[name]:
                self.tensors[name] = self.graph.uncounted(
                    call.name, node.op_type, operands, self._dims(name)
                )

    def _dims(self, name: str) -> Dims | None:
        """Dimensions of a tensor for one image; None where the file leaves them to the data."""
        tensor = self.types.get(name)
        if tensor is None or not tensor.HasField("shape"):
            return None
        dims = [dim.dim_value for dim in tensor.shape.dim]
        if dims and min(dims) < 1:
            if any(d.HasField("dim_value") and d.dim_value < 1 for d in tensor.shape.dim):
                raise ShapeError(f"{self.where}: tensor {name} is {dims}: all have to be above 0")
            return None
        return self._of_one_image(dims, name)

    def _width(self, node: Any) -> int | None:
        """What a quantizer states [bit]; None for any other operator, or where it is not known."""
        if (node.op_type, node.domain) not in QUANTIZERS:
            return None
        return QUANTIZERS[node.op_type, node.domain](
            [self.tensors[name] for name in node.input], node.attribute
        )

    def _fold(self, node: Any, operands: Sequence[Operand | None]) -> None:
        """A node of constants gives constants: a reshaped or dequantized weight is a weight."""
        parts = [part for part in operands if isinstance(part, Constant)]
        for name in node.output:
            tensor = self.types.get(name)
            dims = tuple(d.dim_value for d in tensor.shape.dim) if tensor is not None else ()
            elements = tensor is not None and tensor.elem_type in FLOATS
            bits = self._width(node)
            if bits is None:
                bits = next((part.bits for part in parts if part.bits), None)
            found = Constant(dims, name, elements, bits=bits)
            if node.op_type == "Constant":
                found = of_node(node.attribute, name)
            elif len({part.key for part in parts if part.learned}) == 1:
                found = found._replace(key=next(part.key for part in parts if part.learned))
            if node.op_type in IN_PLACE and parts and prod(dims) == prod(parts[0].dims):
                found = found._replace(values=parts[0].values, learned=parts[0].learned)
            self.tensors[name] = found

    def network(self, name: str) -> Network:
        """What has been read. Values that nobody has asked for are outputs."""
        for tensor in list(self.tensors.values()):
            if isinstance(tensor, Value) and not tensor.layer and not tensor.readers:
                self.graph.settle(tensor)
        if not self.graph.layers:
            raise ShapeError(f"{self.where}: nothing in it depends on its input")
        return Network(
            version=1,
            name=Graph("").unused(name),
            title=f"{name}, read from an ONNX file",
            sources={"file": f"{name}.onnx"},
            input=self.graph.shapes[INPUT],
            layers=tuple(self.graph.layers),
        )


def _called(node: Any) -> str:
    """A node's name, for people: "/layer1/layer1.0/conv1/Conv" is layer1.0.conv1."""
    name: str = node.name or next((output for output in node.output if output), node.op_type)
    parts = [part for part in name.split("/") if part]
    if len(parts) > 1 and parts[-1].split("_")[0] == node.op_type:
        parts = parts[:-1] if node.op_type in _NAMED_BY_MODULE else parts
    short: list[str] = []
    for part in parts:
        if short and part.startswith(f"{short[-1]}."):
            short.pop()
        short.append(part)
    return ".".join(short) or node.op_type


_NAMED_BY_MODULE = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization"})


def _input_shape(dims: Dims, element: int, name: str, nodes: Sequence[Any]) -> Shape:
    """(C, H, W) of an input: what its first reader takes for channels."""
    reader = next((node for node in nodes if name in node.input), None)
    if reader is not None and reader.op_type == "Transpose" and len(dims) == 4:
        order = next((tuple(a.ints) for a in reader.attribute if a.name == "perm"), (0, 3, 2, 1))
        if order[0] == 0:
            return plain([dims[axis] for axis in order])
    if len(dims) == 2 and element in INTEGERS:
        return (1, dims[1], 1)
    first = ("Conv", "ConvTranspose", "BatchNormalization", "MaxPool", "AveragePool")
    if len(dims) == 3 and (reader is None or reader.op_type not in first):
        return dims[2], dims[1], 1
    return plain(dims)
