"""PyTorch modules -> networks, through `torch.export`.

Export runs the module once on tensors without elements and records the operators that run:
functional convolutions as well as modules, in the order of the run, each with the module it ran
in. Parameters that several modules share are one tensor there, and so are stored once here.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from math import prod
from typing import Any

from hwmodel.errors import HwmodelError, ShapeError, SpecWarning, printable
from hwmodel.graph.layers import Source
from hwmodel.graph.network import INPUT, Network
from hwmodel.importers.batch import input_shape, of_one_image
from hwmodel.importers.graph import Constant, Dims, Graph, Operand, Value
from hwmodel.importers.torch_batch import (
    Batched,
    batched,
    graphs_within,
    input_nodes,
    operator_name,
    shape_of,
)
from hwmodel.importers.torch_operators import CHANNELS_FIRST, FILLED, LAYERS, TABLES, convert
from hwmodel.importers.torch_ran import Ran
from hwmodel.importers.torch_routing import expected_lengths
from hwmodel.importers.written_out import recognised_layers
from hwmodel.specs.arguments import expect

__all__ = ["from_torch"]


def from_torch(module: Any, example_inputs: Any, *, name: str | None = None) -> Network:
    """Read the network of an `nn.Module`, for one image.

    Args:
        example_inputs: a tensor or a tuple of them, as the module takes them. Dimension 0 of the
            first is the batch, which is taken out; dimension 1 where the module takes sequences
            first. Their elements do not matter.
        name: of the network; left out, that of the module's class.

    Raises: HwmodelError where the package torch is missing or the module cannot be exported;
        ShapeError where a layer cannot be a layer here.
    """
    if name is not None:
        expect(str, "name", name, "text")
    given = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    name = name or type(module).__name__
    run = batched(lambda inputs: _exported(module, inputs, name), tuple(given), name)
    return _Walk(name, run).network()


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
        hint = next((advice for words, advice in _ADVICE.items() if words in str(error)), "")
        raise HwmodelError(
            f"{name}: torch.export cannot follow it: {type(error).__name__}: {first}{hint}"
        ) from error
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


_ADVICE = {  # by words of what torch says
    "data-dependent": "; what runs depends on the data, as where only the experts that a batch "
    "meets are run: run all of them in turn, or write dispatch, experts and combine in a network "
    "file",
    "in output, which is not a known type": "; it gives more than tensors, as a cache of keys and "
    "values: ask it for none (module.config.use_cache = False)",
    "unsupported scalarType": "; it reads numbers of tensors while it runs: make it and its inputs "
    "on the CPU, not on the meta device",
}


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

    def __init__(self, name: str, run: Batched) -> None:
        self.name, self.graph, self.run = name, Graph(name), run
        self.nodes = list(run.program.graph.nodes)
        self.found: dict[Any, Any] = {}
        self.parameters: dict[str, str] = dict(run.program.graph_signature.inputs_to_parameters)
        self.inputs = input_nodes(run.program)
        self.stored = _stored(run.program)
        self.graph.images = run.images
        self.without_gradients = False  # whether what runs now is under torch.no_grad
        self.expected: dict[
            str, int
        ] = {}  # lengths that the data decide, as a router shares evenly

    def network(self) -> Network:
        """Return the network that was recorded."""
        for node in self.nodes:
            if node.op == "placeholder":
                self.found[node] = self._placeholder(node)
            elif node.op == "output":
                self._outputs(node)
            else:
                self._node(node)
        for found in list(self.found.values()):
            if isinstance(found, Value) and not found.layer and not found.readers:
                self.graph.settle(found)
        if not self.graph.layers:
            raise ShapeError(f"{self.name}: nothing in it depends on its input")
        if self.expected:
            rows = ", ".join(f"{n // self.run.images:,}" for n in sorted({*self.expected.values()}))
            warnings.warn(
                f"{self.name}: how many tokens each expert is sent depends on the data; they are "
                f"shared evenly here, {rows} rows for each, and all experts' weights are read",
                SpecWarning,
                stacklevel=3,
            )
        return Network(
            version=1,
            name=Graph("").unused(self.name),
            title=f"{printable(self.name)}, read from a PyTorch module",
            sources={"module": f"{printable(self.name)}, torch.export"},
            input=self.graph.shapes[INPUT],
            layers=recognised_layers(self.graph),
        )

    def _node(self, node: Any) -> None:
        """Take an operator, a stored tensor, or a region in."""
        if node.op == "get_attr":
            self.found[node] = Constant(shape_of(node), node.name)
        elif graphs_within(node):
            self._region(node)
        elif operator_name(node) == "getitem":
            self._part(node)
        else:
            self._operator(node)

    def _part(self, node: Any) -> None:
        """Take one of several tensors that an operator gives."""
        whole, index = self.found.get(node.args[0]), node.args[1]
        one = whole[index] if isinstance(whole, list) and index < len(whole) else whole
        self.found[node] = one
        if isinstance(one, Value):
            one.readers = max(one.readers, len(node.users))

    def _region(self, node: Any) -> None:
        """Take in the operators of a region within the module: under autocast, under no_grad.

        Raises: ShapeError where the operator around it is another, which may choose or repeat.
        """
        operator, modules = operator_name(node), graphs_within(node)
        if operator not in _REGIONS:
            raise ShapeError(
                f"{self.name}: {_called(node)}: cannot follow {operator}, which runs parts of the "
                "module or does not, or more often than once"
            )
        before = self.without_gradients
        if operator == "wrap_with_set_grad_enabled":
            self.without_gradients = not node.args[0]
        inner = list(modules[0].graph.nodes)
        places = [one for one in inner if one.op == "placeholder"]
        given = [one for one in node.all_input_nodes if not _holds_graph(one)]
        by_place = [one for one in (*node.args, *node.kwargs.values()) if one in set(given)]
        for place, one in zip(places, by_place, strict=True):
            found = self.found[place] = self.found.get(one)
            if isinstance(found, Value):
                found.readers += len(place.users) - 1
        for one in inner:
            if one.op == "output":
                results = one.args[0]
                several = isinstance(results, (tuple, list))
                found = [self.found.get(r) for r in (results if several else [results])]
                self.found[node] = found if several else found[0]
            elif one.op != "placeholder":
                self._node(one)
        self.without_gradients = before

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
            frozen = parameter is not None and not self._trained(parameter)
            learned = parameter is not None
            return Constant(shape_of(node), parameter or node.name, learned, frozen=frozen)
        dims = self._dims(value, node.name)
        assert dims is not None  # inputs are tensors
        targets = [operator_name(user) for user in node.users]
        first = bool(targets) and targets[0] in CHANNELS_FIRST
        shape = input_shape(dims, numbers=not value.is_floating_point(), channels_first=first)
        if node is self.inputs[0]:
            self.graph.shapes[INPUT] = shape
            return Value(dims, INPUT, shape, readers=len(node.users))
        return self.graph.put(Source, node.name, [], dims, shape=shape)

    def _trained(self, parameter: str) -> bool:
        """Say whether a gradient of a parameter is asked for."""
        return bool(self.run.program.state_dict[parameter].requires_grad)

    def _dims(self, value: Any, name: str) -> Dims | None:
        """Dimensions of a tensor for one image."""
        if not hasattr(value, "shape"):
            return None
        try:
            dims = [
                self.expected[str(n)] if str(n) in self.expected else int(n) for n in value.shape
            ]
        except (TypeError, ValueError, RuntimeError):  # depends on the data
            return None
        if dims and min(dims) < 1:
            raise ShapeError(f"{self.name}: {name} is {dims}: all have to be above 0")
        what = f"{self.name}: tensor {name}"
        return of_one_image(dims, self.run.images, what, anyway=self.run.marked)

    def _operator(self, node: Any) -> None:
        """Take one operator in: a layer, a view, or a constant."""
        operator = operator_name(node)
        self.expected |= expected_lengths(node, self.run.images)
        operands = [self.found.get(arg) for arg in node.all_input_nodes]
        flat = [o for one in operands for o in (one if isinstance(one, list) else [one])]
        value = node.meta.get("val")
        several = isinstance(value, (tuple, list))
        if not several and not hasattr(value, "shape"):  # a check, or a length
            self.found[node] = Constant(())
            return
        depends = any(isinstance(operand, Value) for operand in flat)
        if _is_empty(value):  # a part of no length, which others leave out
            self.found[node] = Constant(shape_of(node))
            return
        if operator in FILLED or not (depends or _stays(operator, flat)):
            self.found[node] = self._folded(node, value, flat)
            return
        dims = [self._dims(v, node.name) for v in (value if several else [value])]
        ran = Ran(
            self.graph, _called(node), operator, node, self.found, dims, several,
            trained=not self.without_gradients, stored=self.stored,
        )  # fmt: skip
        results = self._converted(ran)
        for result in results:
            if isinstance(result, Value):
                result.readers = 1 if several else len(node.users)
        self.found[node] = results if several else results[0]
        if ran.in_place and node.args:
            self.found[node.args[0]] = self.found[node]

    def _converted(self, ran: Ran) -> list[Operand]:
        """Convert an operator. Raises: ShapeError; it names the operator."""
        try:
            return convert(ran)
        except ShapeError as error:
            if str(error).startswith(self.name):
                raise
            raise ShapeError(f"{self.name}: {ran.name}: {error}") from None

    def _folded(self, node: Any, value: Any, operands: Sequence[Any]) -> Any:
        """Return the constant that a node makes of constants; one parameter stays that one."""
        if isinstance(value, (tuple, list)):
            return [
                Constant(tuple(getattr(v, "shape", ())), f"{node.name}.{i}")
                for i, v in enumerate(value)
            ]
        shape = shape_of(node)
        if self.run.marked:
            shape = of_one_image(shape, self.run.images, "", anyway=True)
        learned = [o for o in operands if isinstance(o, Constant) and o.learned]
        if len({o.key for o in learned}) == 1 and prod(learned[0].dims) == prod(shape):
            return learned[0]._replace(dims=shape)
        frozen = bool(learned) and all(one.frozen for one in learned)
        return Constant(shape, node.name, bool(learned), frozen=frozen)


def _stored(program: Any) -> dict[Any, Any]:
    """Buffers and constants of a module, by their nodes."""
    signature = program.graph_signature
    names = {**signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    tensors = {**program.constants, **program.state_dict}
    places = (node for node in program.graph.nodes if node.op == "placeholder")
    return {node: tensors[names[node.name]] for node in places if names.get(node.name) in tensors}


# Regions of a module that run once, as they stand.
_REGIONS = frozenset(
    {"hints_wrapper", "tag_activation_checkpoint", "wrap", "wrap_activation_checkpoint",
     "wrap_with_autocast", "wrap_with_set_grad_enabled"}
)  # fmt: skip


def _holds_graph(node: Any) -> bool:
    """Say whether a node stands for a module within, and for no tensor."""
    held = getattr(node.graph.owning_module, str(node.target), None)
    return node.op == "get_attr" and hasattr(held, "graph")


def _is_empty(value: Any) -> bool:
    """Say whether a tensor has no element."""
    lengths = getattr(value, "shape", ())
    return any(isinstance(length, int) and length == 0 for length in lengths)


def _stays(operator: str, operands: Sequence[Any]) -> bool:
    """Say whether a layer is one although what it is given is constant: it learns, as others do."""
    learned = [isinstance(o, Constant) and o.learned for o in operands]
    return (operator in LAYERS and any(learned[1:])) or (operator in TABLES and any(learned[:1]))


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
