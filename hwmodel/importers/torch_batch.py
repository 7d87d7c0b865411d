"""Which axis of a PyTorch module's inputs is the batch, found by changing its length.

The module is exported once more with a prime for the number of images, one that divides no other
length. Then every axis that the prime divides is made of the images, whatever views and products
have made of them. Where something multiplies, normalizes or averages along such an axis or takes
its places apart, these were no images: a module that takes sequences first does so along
dimension 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError, ShapeError

__all__ = ["Batched", "batched", "graphs_within", "input_nodes", "operator_name", "shape_of"]

_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
Export = Callable[[tuple[Any, ...]], Any]


class Batched(NamedTuple):
    """A recorded run, and the images in it."""

    program: Any
    images: int
    marked: bool  # whether their number divides no length that is not made of them


def batched(export: Export, inputs: tuple[Any, ...], name: str) -> Batched:
    """Run a module so that the images in it are known. Raises: ShapeError, HwmodelError."""
    program = export(inputs)
    given = input_nodes(program)
    if not given:
        raise ShapeError(f"{name}: takes no tensor")
    dims, images = tuple(map(int, given[0].meta["val"].shape)), _images(given[0])
    if images == 1:
        return Batched(program, 1, marked=False)
    prime = _apart(program)
    first = _exported_with(export, inputs, 0, prime)
    if _keeps_apart(first, prime):
        return Batched(first, prime, marked=True)
    numbers = not given[0].meta["val"].is_floating_point()
    attended = len(dims) == (2 if numbers else 3) and images in _attended(program)
    no_batch = first is not None or attended
    if no_batch and dims[1] == 1:
        return Batched(program, 1, marked=False)
    if no_batch or len(dims) > 4:  # frames or steps may be first, and of one number only
        second = _exported_with(export, inputs, 1, prime)
        if _keeps_apart(second, prime):
            return Batched(second, prime, marked=True)
    return Batched(program, _left(name, dims, images, no_batch=no_batch), marked=False)


def _left(name: str, dims: Sequence[int], images: int, *, no_batch: bool) -> int:
    """Return the images of a run that works for its own lengths only. Raises: ShapeError."""
    if not no_batch:
        return images
    if len(dims) == 2:  # one sequence
        return 1
    raise ShapeError(
        f"{name}: computes along dimension 0 of its input {list(dims)}, so that it is no batch, "
        "and dimension 1 is none either; give an example of one image"
    )


def _images(node: Any) -> int:
    """Return dimension 0 of the first input, if it can be a batch."""
    dims = node.meta["val"].shape
    first = next((operator_name(user) for user in node.users), "")
    along = {"conv1d": 1, "conv2d": 2, "conv3d": 3}
    spatial = along.get(first.replace("_transpose", ""))
    unbatched = len(dims) < 2 or (spatial is not None and len(dims) == spatial + 1)
    return 1 if unbatched else int(dims[0])


def _apart(program: Any) -> int:
    """Find a prime that divides no length of a run."""
    lengths = {length for node in _nodes(program) for length in shape_of(node)}
    return next((p for p in _PRIMES if all(length % p for length in lengths)), 101)


def _exported_with(export: Export, inputs: tuple[Any, ...], axis: int, length: int) -> Any:
    """Run a module with another length along an axis of the first input, and of others as long.

    None where the module cannot be run so.
    """
    from torch.utils import _pytree

    leaves, tree = _pytree.tree_flatten(inputs)
    tensors = [i for i, leaf in enumerate(leaves) if len(getattr(leaf, "shape", ())) > axis]
    alike = [i for i in tensors if leaves[i].shape[axis] == leaves[tensors[0]].shape[axis]]
    for changed in dict.fromkeys((tuple(alike), tuple(tensors[:1]))):
        others = list(leaves)
        for i in changed:
            shape = list(leaves[i].shape)
            shape[axis] = length
            others[i] = leaves[i].new_zeros(shape)
        try:
            return export(_pytree.tree_unflatten(others, tree))
        except HwmodelError:
            continue
    return None


def _keeps_apart(program: Any, images: int) -> bool:
    """Say whether there is a run, and it computes along no axis that is made of the images."""
    return program is not None and all(
        length % images for node in _nodes(program) for length in (*_along(node), *_over(node))
    )


def _attended(program: Any) -> set[int]:
    """Collect the lengths that attention and recurrent layers run along."""
    return {length for node in _nodes(program) for length in _over(node)}


_SOFTMAX = frozenset({"softmax", "log_softmax", "_softmax", "_log_softmax"})
_APART = frozenset(
    {
        "amax", "amin", "argmax", "cumsum", "logsumexp", "max", "mean", "min", "select", "std",
        "sum", "unbind", "var",
    }
)  # fmt: skip
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_WEIGHTED = frozenset({"linear", "mm", "bmm", "matmul", "addmm", "baddbmm"})
_CONVOLUTIONS = frozenset(
    {
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        "convolution",
    }
)  # fmt: skip


def _over(node: Any) -> Iterator[int]:
    """Yield the lengths that an operator normalizes, attends or goes along."""
    operator = operator_name(node)
    if operator in _SOFTMAX:
        yield shape_of(node.args[0])[_named(node, "dim", -1)]
    elif operator == "scaled_dot_product_attention":
        yield shape_of(node.args[1])[-2]
    elif operator in _RECURRENT and len(shape_of(node.args[0])) == 3:
        yield shape_of(node.args[0])[1 if _named(node, "batch_first", False) else 0]


def _along(node: Any) -> Iterator[int]:
    """Yield the lengths that a product sums, a window slides or an operator reduces along.

    Reductions over several axes are left out: statistics of a batch are no sign of sequences.
    """
    operator = operator_name(node)
    if operator in _APART:
        default = 0 if operator in ("select", "unbind") else None
        axis = _named(node, "dim", default)
        axis = axis[0] if isinstance(axis, (list, tuple)) and len(axis) == 1 else axis
        if isinstance(axis, int) and shape_of(node.args[0]):
            yield shape_of(node.args[0])[axis]
    if operator in _WEIGHTED:
        at = 1 if operator in ("addmm", "baddbmm") else 0
        yield from shape_of(node.args[at])[-1:]
    elif operator in _CONVOLUTIONS:
        axes = len(shape_of(node.args[1])) - 2
        yield from shape_of(node.args[0])[-axes - 1 :]


def _named(node: Any, argument: str, default: Any) -> Any:
    """Return an argument of an operator by name."""
    fields = [field.name for field in node.target._schema.arguments]
    at = fields.index(argument) if argument in fields else len(node.args)
    return node.args[at] if at < len(node.args) else node.kwargs.get(argument, default)


def shape_of(node: Any) -> tuple[int, ...]:
    """Return the lengths of the tensor that a node gives; 1 where they depend on the data."""
    shape = getattr(node.meta.get("val"), "shape", ())
    return tuple(length if isinstance(length, int) else 1 for length in shape)


def input_nodes(program: Any) -> list[Any]:
    """Return the nodes of the tensors that a module is given."""
    names = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.name in names]
    return [node for node in nodes if hasattr(node.meta.get("val"), "shape")]


def _nodes(program: Any) -> Iterator[Any]:
    """Yield every node, also of the graphs within operators."""
    graphs = [program.graph]
    while graphs:
        for node in graphs.pop().nodes:
            graphs += [inner.graph for inner in graphs_within(node)]
            if node.op in ("call_function", "placeholder"):
                yield node


def graphs_within(node: Any) -> list[Any]:
    """Return the modules that an operator is given, as a region under autocast is."""
    if node.op != "call_function":
        return []
    given = [one for one in node.all_input_nodes if one.op == "get_attr"]
    held = [getattr(node.graph.owning_module, one.target, None) for one in given]
    return [module for module in held if hasattr(module, "graph")]


def operator_name(node: Any) -> str:
    """Return an operator's name: conv2d of "aten.conv2d.default", getitem of the built-in."""
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    if packet is None:
        return str(getattr(target, "__name__", target))
    name: str = packet.__name__
    return name
