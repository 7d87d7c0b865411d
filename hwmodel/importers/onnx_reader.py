"""Reads the nodes of an ONNX graph in turn into layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import prod
from operator import attrgetter
from typing import Any

from hwmodel.errors import ShapeError, SpecError, printable
from hwmodel.graph.layers import Shape, Source
from hwmodel.graph.layers.base import MAX_EXTENT
from hwmodel.graph.network import INPUT, Network
from hwmodel.importers.batch import input_shape, of_one_image
from hwmodel.importers.graph import Constant, Dims, Graph, Operand, Value, plain, text
from hwmodel.importers.onnx_call import Call
from hwmodel.importers.onnx_constants import FLOATS, INTEGERS, of_node, stored
from hwmodel.importers.onnx_contents import STANDARD, Contents, Node, Types
from hwmodel.importers.onnx_operators import convert
from hwmodel.importers.onnx_quantizers import IN_PLACE, QUANTIZERS, blocks
from hwmodel.importers.written_out import recognised_layers

__all__ = ["Reader"]

DEEPEST = 20  # constants made of constants before they are read


class Reader:
    """Walks the nodes; every tensor's name leads to a value or a constant."""

    def __init__(self, where: str, contents: Contents, inferred: Any) -> None:
        self.graph = Graph(where)
        self.where, self.nodes, self.stored = where, contents.nodes, contents.stored
        self.unknown = False  # whether the dimensions of a tensor are
        self.tensors: dict[str, Operand | None] = {"": None}
        self.types = Types(inferred)
        self.outputs = {info.name for info in inferred.output}
        self.readers = Counter(chain.from_iterable(map(attrgetter("inputs"), self.nodes)))
        self.lazy: dict[str, tuple[Node, int]] = {}  # nodes of constants, and how many in a row
        for tensor in contents.sparse:
            name = tensor.values.name
            learned = tensor.values.data_type in FLOATS
            self.tensors[name] = Constant(tuple(tensor.dims), name, learned)
        if not contents.inputs:
            raise ShapeError(f"{where}: has no input; everything in it is a constant")
        self._inputs(contents.inputs)

    def _inputs(self, inputs: Sequence[Any]) -> None:
        """Take the first input as the network's, the others as layers `source`."""
        first_readers = _first_readers(self.nodes, {given.name for given in inputs})
        self.graph.images = self._images(inputs[0])
        for given in inputs:
            tensor = given.type.tensor_type
            dims = of_one_image(
                [d.dim_value for d in tensor.shape.dim],
                self.graph.images,
                f"{self.where}: tensor {given.name}",
            )
            if max(dims, default=1) > MAX_EXTENT:
                raise ShapeError(
                    f"{self.where}: input {given.name} is {list(dims)}; at most {MAX_EXTENT:,} each"
                )
            shape = _input_shape(dims, tensor.elem_type, first_readers.get(given.name))
            if given is inputs[0]:
                self.graph.shapes[INPUT] = shape
                self.tensors[given.name] = Value(dims, INPUT, shape)
            else:
                self.tensors[given.name] = self.graph.put(Source, given.name, [], dims, shape=shape)

    def _images(self, given: Any) -> int:
        """The batch: dimension 0 of the first input, unless sequences are first.

        Attention or recurrence along as many places as dimension 0 has shows that.

        Raises: ShapeError where they are, and are several.
        """
        tensor = given.type.tensor_type
        dims: list[int] = [dim.dim_value for dim in tensor.shape.dim]
        if len(dims) < 2 or dims[0] == 1:
            return 1
        may_be_sequence = len(dims) == (2 if tensor.elem_type in INTEGERS else 3)
        if not may_be_sequence or dims[0] not in self._attended(dims, given.name):
            return dims[0]
        if dims[1] == 1:
            return 1
        raise ShapeError(
            f"{self.where}: attention or recurrence is along as many places as dimension 0 of its "
            f"input {text(given.name)} {dims} has, which may be no batch then; export it for one "
            "image"
        )

    def _attended(self, dims: Sequence[int], first: str) -> set[int]:
        """Lengths that softmax and recurrent layers go along."""
        found = set()
        for node in self.nodes:
            if node.operator not in _ALONG or not node.inputs:
                continue
            known = self.types.get(node.inputs[0])
            given = dims if node.inputs[0] == first else known.dims if known else ()
            if len(given) < 3:
                continue
            stated = {a.name: a.i for a in node.message.attribute}
            axis = stated.get(*_ALONG[node.operator])
            found.add(given[axis] if -len(given) <= axis < len(given) else 0)
        return found

    def _read(self, node: Node) -> None:
        """Take one node in."""
        if self._postponed(node):
            return
        if not self._depends(node) and not self._stays(node):
            self._fold(node, [self._operand(name) for name in node.inputs])
            return
        outputs = node.outputs
        while len(outputs) > 1 and not self.readers[outputs[-1]]:
            outputs = outputs[:-1]  # masks and statistics that nobody takes
        call = Call(
            self.graph, _called(node), node, self._operand,
            list(map(self._dims, outputs)), self.tensors,
        )  # fmt: skip
        results = self._converted(call)
        for name, result in zip(outputs, results, strict=False):
            if isinstance(result, Value):
                result.readers = self.readers[name]
            self.tensors[name] = result
        for name in outputs[len(results) :]:
            if self.readers[name]:
                self.tensors[name] = self.graph.uncounted(
                    call.name, node.operator, call.x, self._dims(name)
                )

    def _depends(self, node: Node) -> bool:
        """Whether a node takes a value. Raises: SpecError where nothing before gives a tensor."""
        depends = False
        for name in node.inputs:
            if name in self.tensors:
                depends = depends or isinstance(self.tensors[name], Value)
            elif name in self.stored:
                self._operand(name)
            elif name not in self.lazy:
                raise SpecError(
                    f"{self.where}: {node.operator} {_called(node)} takes {name!r}, which no "
                    "operator before it gives (a cycle, or a wrong order)"
                )
        return depends

    def _postponed(self, node: Node) -> bool:
        """Whether a node makes one constant of constants, which is read when it is needed."""
        if node.operator in _LAYERS:
            return False
        depth = 0
        for name in node.inputs:
            if name in self.lazy:
                depth = max(depth, self.lazy[name][1])
            elif name not in self.stored:
                return False
        if depth > DEEPEST or len(node.outputs) != 1:
            return False
        self.lazy[node.outputs[0]] = node, depth + 1
        return True

    def _stays(self, node: Node) -> bool:
        """Whether a layer is one although what it is given is constant: its weights are learned."""
        if node.operator not in _LAYERS or node.domain not in STANDARD:
            return False
        weights = [self._operand(name) for name in node.inputs[1:2]]
        return any(isinstance(w, Constant) and w.stored for w in weights)

    def _converted(self, call: Call) -> list[Operand]:
        """Return a node's outputs. Raises: ShapeError, SpecError; they name the node."""
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

    def _operand(self, name: str) -> Operand | None:
        """Return the value or constant that a name stands for, if it has been given."""
        if name in self.tensors:
            return self.tensors[name]
        if name in self.stored:
            found = stored(self.stored[name], f"{self.where}: tensor {text(name)}", name)
            self.tensors[name] = found
            return found
        maker, _ = self.lazy[name]
        of_elements = maker.inputs[: _OF_ELEMENTS.get(maker.operator)]
        self._fold(maker, [self._operand(given) for given in of_elements])
        return self.tensors[name]

    def _dims(self, name: str) -> Dims | None:
        """Return a tensor's dimensions for one image; None where the data decide them."""
        found = self.types.get(name)
        if found is None or not found.known:
            if found is not None and found.wrong:
                shown = list(found.dims)
                raise ShapeError(f"{self.where}: tensor {name} is {shown}: all have to be above 0")
            self.unknown = True
            return None
        dims, images = found.dims, self.graph.images
        if images == 1 or (len(dims) == 1 and found.element in INTEGERS):
            return dims  # as they are; a shape or an index has no image
        return of_one_image(dims, images, f"{self.where}: tensor {name}")

    def _fold(self, node: Node, operands: Sequence[Operand | None]) -> None:
        """Take in a node of constants, which gives constants: a reshaped weight is a weight."""
        if node.operator == "Constant":
            for name in node.outputs:
                self.tensors[name] = of_node(node.message.attribute, self.where, name)
            return
        parts = [part for part in operands if isinstance(part, Constant)]
        width = QUANTIZERS.get((node.operator, node.domain))
        bits = width(operands, node.message.attribute) if width else None
        for name in node.outputs:
            found = self.types.get(name)
            dims = found.dims if found else ()
            learned = found is not None and found.element in FLOATS and prod(dims) > 1
            learned = learned and node.operator != "ConstantOfShape"
            made = Constant(dims, name, learned, None, bits)
            made = _made_of(parts, node.operator, made) if parts else made
            if node.operator == "DequantizeLinear":
                made = made._replace(blocks=blocks(operands, node.message.attribute))
            self.tensors[name] = made

    def network(self, name: str) -> Network:
        """Return the network of all nodes; see that outputs and unused values are computed."""
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
            title=f"{printable(name)}, read from an ONNX file",
            sources={"file": f"{printable(name)}.onnx"},
            input=self.graph.shapes[INPUT],
            layers=recognised_layers(self.graph),
        )


def _made_of(parts: Sequence[Constant], operator: str, made: Constant) -> Constant:
    """Return the constant that a node makes; it is its only learned part if that is all of it."""
    keys = {part.key: prod(part.dims) for part in parts if part.learned}
    whole = len(keys) == 1 and [prod(made.dims)] == list(keys.values())
    key = next(iter(keys)) if whole else made.key  # a part of it is stored by itself
    bits = made.bits
    if bits is None:
        bits = next((part.bits for part in parts if part.bits), None)
    first = parts[0]
    if operator in IN_PLACE and prod(made.dims) == prod(first.dims):
        return Constant(
            made.dims, first.key, first.learned, first.elements, bits, blocks=first.blocks
        )
    return Constant(made.dims, key, made.learned, None, bits)


# The attribute that says along which axis an operator goes, and what it is if it is not there.
# Before version 13 softmax was along all axes from 1 on, which of attention is said to be the last.
_ALONG = dict.fromkeys(("Softmax", "LogSoftmax"), ("axis", -1))
_ALONG |= dict.fromkeys(("GRU", "LSTM", "RNN"), ("layout", 0))
# What stays a layer where its input is constant; a MatMul of constants makes weights of others.
_LAYERS = frozenset({"BatchNormalization", "Conv", "ConvTranspose", "LayerNormalization"})


def _called(node: Node) -> str:
    """Shorten a node's name for people: "/layer1/layer1.0/conv1/Conv" is layer1.0.conv1."""
    name = text(node.message.name or next((o for o in node.outputs if o), node.operator))
    if "/" not in name:
        return name
    parts = [part for part in name.split("/") if part]
    if len(parts) > 1 and parts[-1].split("_")[0] == node.operator:
        parts = parts[:-1] if node.operator in _NAMED_BY_MODULE else parts
    short: list[str] = []
    for part in parts:
        if short and part.startswith(f"{short[-1]}."):
            short.pop()
        short.append(part)
    return ".".join(short) or node.operator


_NAMED_BY_MODULE = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization"})
# How many operands of an operator hold elements of its result; those after them say its shape.
_OF_ELEMENTS = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1, "Squeeze": 1, "Unsqueeze": 1}


def _first_readers(nodes: Sequence[Node], names: set[str]) -> dict[str, Node]:
    """Find the first node that takes each of the tensors."""
    found: dict[str, Node] = {}
    for node in nodes:
        for name in names.intersection(node.inputs):
            found.setdefault(name, node)
        if len(found) == len(names):
            break
    return found


def _input_shape(dims: Dims, element: int, reader: Node | None) -> Shape:
    """Return (C, H, W) of an input, with the channels that its first reader takes."""
    if reader is not None and reader.operator == "Transpose" and len(dims) == 4:
        stated = (tuple(a.ints) for a in reader.message.attribute if a.name == "perm")
        order = next(stated, (0, 3, 2, 1))
        if order[0] == 0:
            return plain([dims[axis] for axis in order])
    first = reader is not None and reader.operator in _CHANNELS_FIRST
    return input_shape(dims, numbers=element in INTEGERS, channels_first=first)


_CHANNELS_FIRST = frozenset(
    {"Conv", "ConvTranspose", "BatchNormalization", "MaxPool", "AveragePool", "GlobalAveragePool"}
)
