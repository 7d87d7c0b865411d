"""The nodes of an ONNX graph in turn: every tensor's name leads to a value or a constant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

from hwmodel.errors import ShapeError, SpecError
from hwmodel.importers.batch import input_shape, of_one_image
from hwmodel.importers.graph import Constant, Dims, Graph, Operand, Value, plain, text
from hwmodel.importers.onnx_call import Call
from hwmodel.importers.onnx_constants import FLOATS, INTEGERS, of_node, stored
from hwmodel.importers.onnx_operators import convert
from hwmodel.importers.onnx_quantizers import IN_PLACE, QUANTIZERS
from hwmodel.layers import Shape, Source
from hwmodel.network import INPUT, Network

__all__ = ["Reader"]

DEEPEST = 20  # constants made of constants before they are read


class Reader:
    """Walks the nodes; every tensor's name leads to a value or a constant."""

    def __init__(self, where: str, graph: Any) -> None:
        self.graph = Graph(where)
        self.where, self.nodes = where, graph.node
        self.unknown = False  # whether the dimensions of a tensor are
        self.tensors: dict[str, Operand | None] = {"": None}
        self.types = {info.name: info for info in (*graph.value_info, *graph.output)}
        self.outputs = {info.name for info in graph.output}
        self.readers = Counter(chain.from_iterable(node.input for node in graph.node))
        self.stored = {tensor.name: tensor for tensor in graph.initializer}  # read when needed
        self.lazy: dict[str, tuple[Any, int]] = {}  # nodes of constants, and how many in a row
        for tensor in graph.sparse_initializer:
            name = tensor.values.name
            learned = tensor.values.data_type in FLOATS
            self.tensors[name] = Constant(tuple(tensor.dims), name, learned)
        known = self.tensors.keys() | self.stored.keys()
        inputs = [given for given in graph.input if given.name not in known]
        if not inputs:
            raise ShapeError(f"{where}: has no input; everything in it is a constant")
        self._inputs(inputs, graph.node)

    def _inputs(self, inputs: Sequence[Any], nodes: Sequence[Any]) -> None:
        """The network's input is the first; the others are sources."""
        first = inputs[0].type.tensor_type
        self.graph.images = first.shape.dim[0].dim_value if len(first.shape.dim) > 1 else 1
        for given in inputs:
            tensor = given.type.tensor_type
            dims = of_one_image(
                [d.dim_value for d in tensor.shape.dim],
                self.graph.images,
                f"{self.where}: tensor {given.name}",
            )
            shape = _input_shape(dims, tensor.elem_type, given.name, nodes)
            if given is inputs[0]:
                self.graph.shapes[INPUT] = shape
                self.tensors[given.name] = Value(dims, INPUT, shape)
            else:
                self.tensors[given.name] = self.graph.put(Source, given.name, [], dims, shape=shape)

    def _read(self, node: Any) -> None:
        """Take one node in."""
        operator, names = node.op_type, node.input
        if self._postponed(node, names):
            return
        operands = [self._operand(name, node) for name in names]
        if not any(type(operand) is Value for operand in operands):
            self._fold(node, operands)
            return
        outputs = list(node.output)
        while len(outputs) > 1 and not self.readers[outputs[-1]]:
            outputs.pop()  # masks and statistics that nobody takes
        call = Call(
            self.graph, _called(node), node.op_type, node.domain, operands,
            [self._dims(name) for name in outputs], node.attribute, self._width(node),
        )  # fmt: skip
        results = self._converted(call)
        for name, result in zip(outputs, results, strict=False):
            if isinstance(result, Value):
                result.readers = self.readers[name]
            self.tensors[name] = result
        for name in outputs[len(results) :]:
            if self.readers[name]:
                self.tensors[name] = self.graph.uncounted(
                    call.name, operator, operands, self._dims(name)
                )

    def _postponed(self, node: Any, names: Sequence[str]) -> bool:
        """Whether a node makes one constant of constants, which is read when it is needed."""
        depth = 0
        for name in names:
            if name in self.lazy:
                depth = max(depth, self.lazy[name][1])
            elif name not in self.stored:
                return False
        if depth > DEEPEST or len(node.output) != 1:
            return False
        self.lazy[node.output[0]] = node, depth + 1
        return True

    def _converted(self, call: Call) -> list[Operand]:
        """What a node gives. Raises: ShapeError, SpecError; they name the node."""
        try:
            return convert(call)
        except ShapeError as error:
            if str(error).startswith(self.where):
                raise
            raise ShapeError(f"{self.where}: {call.operator} {call.name}: {error}") from None
        except (IndexError, OverflowError, TypeError, ValueError, ZeroDivisionError):
            raise SpecError(
                f"{self.where}: {call.operator} {call.name}: its operands or attributes are not "
                f"those of a {call.operator}"
            ) from None

    def _operand(self, name: str, node: Any) -> Operand | None:
        """What a name stands for. Raises: SpecError where nothing before has it."""
        if name in self.tensors:
            return self.tensors[name]
        if name in self.stored:
            found = stored(self.stored[name], name, learned=True)
        elif name in self.lazy:
            maker, _ = self.lazy[name]
            self._fold(maker, [self._operand(given, maker) for given in maker.input])
            return self.tensors[name]
        else:
            raise SpecError(
                f"{self.where}: {node.op_type} {node.name!r} takes {name!r}, which no operator "
                "before it gives (a cycle, or a wrong order)"
            )
        self.tensors[name] = found
        return found

    def _whole_dims(self, name: str) -> Dims:
        """Dimensions of a constant; () where they are not known."""
        info = self.types.get(name)
        return tuple([d.dim_value for d in info.type.tensor_type.shape.dim]) if info else ()

    def _is_float(self, name: str) -> bool:
        info = self.types.get(name)
        return info is not None and info.type.tensor_type.elem_type in FLOATS

    def _dims(self, name: str) -> Dims | None:
        """Dimensions of a tensor for one image; None where the file leaves them to the data."""
        info = self.types.get(name)
        if info is None or not info.type.tensor_type.HasField("shape"):
            self.unknown = True
            return None
        tensor = info.type.tensor_type
        dims = [dim.dim_value for dim in tensor.shape.dim]
        if dims and min(dims) < 1:
            if any(d.HasField("dim_value") and d.dim_value < 1 for d in tensor.shape.dim):
                raise ShapeError(f"{self.where}: tensor {name} is {dims}: all have to be above 0")
            self.unknown = True
            return None
        if len(dims) == 1 and tensor.elem_type in INTEGERS:
            return tuple(dims)  # a shape or an index
        return of_one_image(dims, self.graph.images, f"{self.where}: tensor {name}")

    def _width(self, node: Any) -> int | None:
        """What a quantizer states [bit]; None for any other operator, or where it is not known."""
        if (node.op_type, node.domain) not in QUANTIZERS:
            return None
        return QUANTIZERS[node.op_type, node.domain](
            [self._operand(name, node) for name in node.input], node.attribute
        )

    def _fold(self, node: Any, operands: Sequence[Operand | None]) -> None:
        """A node of constants gives constants: a reshaped or dequantized weight is a weight."""
        parts = [part for part in operands if isinstance(part, Constant)]
        for name in node.output:
            dims = self._whole_dims(name)
            bits = self._width(node)
            if bits is None:
                bits = next((part.bits for part in parts if part.bits), None)
            found = Constant(dims, name, self._is_float(name) and prod(dims) > 1, bits=bits)
            if node.op_type == "Constant":
                found = of_node(node.attribute, name)
            elif len({part.key for part in parts if part.learned}) == 1:
                found = found._replace(key=next(part.key for part in parts if part.learned))
            if node.op_type in IN_PLACE and parts and prod(dims) == prod(parts[0].dims):
                found = found._replace(values=parts[0].values, learned=parts[0].learned)
            self.tensors[name] = found

    def network(self, name: str) -> Network:
        """What the nodes make. The graph's outputs, and values that nobody takes, are computed."""
        for node in self.nodes:
            self._read(node)
        for key, tensor in list(self.tensors.items()):
            if isinstance(tensor, Value) and (key in self.outputs or not tensor.readers):
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
    name = text(node.name or next((o for o in node.output if o), node.op_type))
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
    first = reader is not None and reader.op_type in _CHANNELS_FIRST
    return input_shape(dims, numbers=element in INTEGERS, channels_first=first)


_CHANNELS_FIRST = frozenset(
    {"Conv", "ConvTranspose", "BatchNormalization", "MaxPool", "AveragePool", "GlobalAveragePool"}
)
