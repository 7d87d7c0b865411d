"""PyTorch modules -> networks, through `torch.export`.

Export runs the module once on tensors without elements and records the operators that run:
functional convolutions as well as modules, in the order of the run, each with the module it ran
in. Parameters that several modules share are one tensor there, and so are stored once here.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from math import prod
from typing import Any

from hwmodel.errors import HwmodelError, ShapeError, printable
from hwmodel.graph.layers import Source
from hwmodel.graph.network import INPUT, Network
from hwmodel.importers.batch import input_shape, of_one_image
from hwmodel.importers.graph import Constant, Dims, Graph, Operand, Value
from hwmodel.importers.torch_operators import CHANNELS_FIRST, Ran, convert
from hwmodel.specs.arguments import expect

__all__ = ["from_torch"]


def from_torch(module: Any, example_inputs: Any, *, name: str | None = None) -> Network:
    """Read the network of an `nn.Module`, for one image.

    Args:
        example_inputs: a tensor or a tuple of them, as the module takes them; dimension 0 of the
            first is the batch, which is taken out. Its elements do not matter.
        name: of the network; left out, that of the module's class.

    Raises: HwmodelError where the package torch is missing or the module cannot be exported;
        ShapeError where a layer cannot be a layer here.
    """
    if name is not None:
        expect(str, "name", name, "text")
    given = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    name = name or type(module).__name__
    program = _exported(module, tuple(given), name)
    return _Walk(name, program).network()


def _exported(module: Any, inputs: tuple[Any, ...], name: str) -> Any:
    try:
        import torch
    except ImportError:
        raise HwmodelError(
            "reading PyTorch modules needs the package torch: pip install 'hwmodel[torch]'"
        ) from None
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one operator in the place of attention
    try:
        with _quiet():
            return torch.export.export(module, inputs, strict=False)
    except Exception as error:  # whatever the module's own code raises
        first = (str(error).strip().splitlines() or [""])[0][:200]
        raise HwmodelError(
            f"{name}: torch.export cannot follow it: {type(error).__name__}: {first}"
        ) from error
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what torch logs and prints of its own graphs; the error says what is wrong."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


class _Walk:
    """The recorded operators in turn; every node leads to a value, a constant, or several."""

    def __init__(self, name: str, program: Any) -> None:
        self.name, self.graph = name, Graph(name)
        self.nodes = list(program.graph.nodes)
        self.found: dict[Any, Any] = {}
        signature = program.graph_signature
        self.parameters: dict[str, str] = dict(signature.inputs_to_parameters)
        self.inputs = [n for n in self.nodes if n.name in set(signature.user_inputs)]
        self.inputs = [n for n in self.inputs if hasattr(n.meta.get("val"), "shape")]
        if not self.inputs:
            raise ShapeError(f"{name}: takes no tensor")
        self.graph.images = _images(self.inputs[0])

    def network(self) -> Network:
        """Return the network that was recorded."""
        for node in self.nodes:
            if node.op == "placeholder":
                self.found[node] = self._placeholder(node)
            elif node.op == "get_attr":
                self.found[node] = Constant((), node.name)
            elif node.op == "call_function":
                self._operator(node)
            else:
                self._outputs(node)
        for found in list(self.found.values()):
            if isinstance(found, Value) and not found.layer and not found.readers:
                self.graph.settle(found)
        if not self.graph.layers:
            raise ShapeError(f"{self.name}: nothing in it depends on its input")
        return Network(
            version=1,
            name=Graph("").unused(self.name),
            title=f"{printable(self.name)}, read from a PyTorch module",
            sources={"module": f"{printable(self.name)}, torch.export"},
            input=self.graph.shapes[INPUT],
            layers=tuple(self.graph.layers),
        )

    def _outputs(self, node: Any) -> None:
        """See that the module's outputs are computed."""
        for given in node.all_input_nodes:
            found = self.found.get(given)
            for one in found if isinstance(found, list) else [found]:
                if isinstance(one, Value):
                    self.graph.settle(one)

    def _placeholder(self, node: Any) -> Operand:
        value = node.meta.get("val")
        if node not in self.inputs:
            parameter = self.parameters.get(node.name)
            shape = tuple(value.shape) if hasattr(value, "shape") else ()
            return Constant(shape, parameter or node.name, parameter is not None)
        dims = self._dims(value, node.name)
        assert dims is not None  # inputs are tensors
        targets = [_operator_name(user) for user in node.users]
        first = bool(targets) and targets[0] in CHANNELS_FIRST
        shape = input_shape(dims, numbers=not value.is_floating_point(), channels_first=first)
        if node is self.inputs[0]:
            self.graph.shapes[INPUT] = shape
            return Value(dims, INPUT, shape, readers=len(node.users))
        return self.graph.put(Source, node.name, [], dims, shape=shape)

    def _dims(self, value: Any, name: str) -> Dims | None:
        """Dimensions of a tensor for one image."""
        if not hasattr(value, "shape"):
            return None
        try:
            dims = [int(length) for length in value.shape]
        except (TypeError, ValueError, RuntimeError):  # depends on the data
            return None
        if dims and min(dims) < 1:
            raise ShapeError(f"{self.name}: {name} is {dims}: all have to be above 0")
        return of_one_image(dims, self.graph.images, f"{self.name}: tensor {name}")

    def _operator(self, node: Any) -> None:
        if _operator_name(node) == "getitem":
            whole, index = self.found.get(node.args[0]), node.args[1]
            self.found[node] = (
                whole[index] if isinstance(whole, list) and index < len(whole) else whole
            )
            return
        operands = [self.found.get(arg) for arg in node.all_input_nodes]
        flat = [o for one in operands for o in (one if isinstance(one, list) else [one])]
        value = node.meta.get("val")
        if not any(isinstance(operand, Value) for operand in flat):
            self.found[node] = _folded(node, value, flat)
            return
        several = isinstance(value, (tuple, list))
        dims = [self._dims(v, node.name) for v in (value if several else [value])]
        ran = Ran(self.graph, _called(node), _operator_name(node), node, self.found, dims, several)
        try:
            results = convert(ran)
        except ShapeError as error:
            if str(error).startswith(self.name):
                raise
            raise ShapeError(f"{self.name}: {ran.name}: {error}") from None
        for result in results:
            if isinstance(result, Value):
                result.readers = 1 if several else len(node.users)
        self.found[node] = results if several else results[0]
        if ran.in_place and node.args:
            self.found[node.args[0]] = self.found[node]


def _images(node: Any) -> int:
    """Return the batch, dimension 0 of the first input, if it has one."""
    dims = node.meta["val"].shape
    first = next((_operator_name(user) for user in node.users), "")
    spatial = {"conv1d": 1, "conv2d": 2, "conv_transpose1d": 1, "conv_transpose2d": 2}.get(first)
    unbatched = len(dims) < 2 or (spatial is not None and len(dims) == spatial + 1)
    return 1 if unbatched else int(dims[0])


def _operator_name(node: Any) -> str:
    """Return an operator's name: conv2d of "aten.conv2d.default", getitem of the built-in."""
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    if packet is None:
        return getattr(target, "__name__", str(target))
    name: str = packet.__name__
    return name


def _called(node: Any) -> str:
    """Return the path of the module that a node ran in, with the operator if that ran several."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1] if stack else ("", "")
    path = path.split("@")[0]
    kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    whole = kind.startswith("torch.nn.modules.") and kind.split(".")[3] != "container"
    if path and whole and "activation.Multihead" not in kind and ".transformer." not in kind:
        return path
    return f"{path}.{node.name}" if path else str(node.name)


def _folded(node: Any, value: Any, operands: Sequence[Any]) -> Any:
    """Return the constant that a node makes of constants; one parameter stays that parameter."""
    if isinstance(value, (tuple, list)):
        return [
            Constant(tuple(getattr(v, "shape", ())), f"{node.name}.{i}")
            for i, v in enumerate(value)
        ]
    shape = tuple(int(length) for length in getattr(value, "shape", ()))
    learned = [o for o in operands if isinstance(o, Constant) and o.learned]
    if len({o.key for o in learned}) == 1 and prod(learned[0].dims) == prod(shape):
        return learned[0]._replace(dims=shape)
    return Constant(shape, node.name, bool(learned))
