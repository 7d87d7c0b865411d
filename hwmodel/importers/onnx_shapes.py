"""Shape inference by the `onnx` package, helped where a file computes its shapes as it runs.

Inference follows the common operators on shapes, but not all that exporters write (Where, Equal,
ConstantOfShape). Those of a few whole numbers are run by the package's reference, become constants
and are inferred again; nothing that depends on a tensor's elements is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hwmodel.errors import ShapeError

__all__ = ["inferred_shapes", "known_values", "with_computed_shapes"]

ROUNDS = 40  # of inference: each makes known what the next one needs
FEW = 64  # elements of a shape, of an index, of what they are made of
SPARE = 3 * 2**28  # B that inference may take beyond what the process has


def inferred_shapes(model: Any, where: str, *, computed: bool) -> Any:
    """The model with the dimensions that the package can tell. Raises: ShapeError.

    Args:
        computed: whether shapes may be computed by the file's own operators, which takes longer.
    """
    from onnx import checker, shape_inference

    errors = (shape_inference.InferenceError, checker.ValidationError)
    try:
        with _bounded():
            return shape_inference.infer_shapes(model, data_prop=computed)
    except MemoryError:
        raise ShapeError(f"{where}: inferring its shapes takes more than {SPARE:,} B") from None
    except (*errors, RuntimeError, ValueError, TypeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = (lines[0] if lines else type(error).__name__)[:200]
        raise ShapeError(f"{where}: shapes do not fit: {reason}") from None


def with_computed_shapes(model: Any, where: str) -> Any:
    """An inferred model with the dimensions that its own operators compute. Raises: ShapeError."""
    for _ in range(ROUNDS):
        if not _run_shapes(model):
            break
        model = inferred_shapes(model, where, computed=True)
    return model


@contextmanager
def _bounded() -> Iterator[None]:
    """Bound this process to `SPARE` more bytes meanwhile, where the system can."""
    try:
        import resource

        with open("/proc/self/statm", "rb", buffering=0) as stream:
            pages = int(stream.read().split()[5])
    except (ImportError, OSError, ValueError, IndexError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = pages * resource.getpagesize() + SPARE
    if soft != resource.RLIM_INFINITY and soft <= most:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _run_shapes(model: Any) -> bool:
    """Make constants of operators on shapes where shapes are unknown; say whether any was made."""
    graph = model.graph
    shapes = {info.name: info.type.tensor_type for info in (*graph.value_info, *graph.output)}
    unknown = [n for n in graph.node if not all(_closed(shapes.get(o)) for o in n.output if o)]
    if not unknown:
        return False
    shapes |= {info.name: info.type.tensor_type for info in graph.input}
    values = _stored(graph)
    ran = False
    for node in graph.node:
        result = _result(node, values, shapes, model.opset_import)
        if result is None:
            continue
        values[node.output[0]] = result
        if node.op_type != "Constant":
            _become_constant(node, result)
            ran = True
    return ran


def known_values(model: Any) -> dict[str, Any]:
    """Few whole numbers and truth values of an inferred model that its own operators compute."""
    graph = model.graph
    infos = (*graph.value_info, *graph.output, *graph.input)
    shapes = {info.name: info.type.tensor_type for info in infos}
    values = _stored(graph)
    for node in graph.node:
        result = _result(node, values, shapes, model.opset_import)
        if result is not None:
            values[node.output[0]] = result
    return values


def _closed(tensor: Any) -> bool:
    """Whether all dimensions are known."""
    return (
        tensor is not None
        and tensor.HasField("shape")
        and all(dim.HasField("dim_value") for dim in tensor.shape.dim)
    )


def _stored(graph: Any) -> dict[str, Any]:
    """Constants of few whole numbers, by name."""
    from onnx import TensorProto, numpy_helper

    found = {}
    for tensor in graph.initializer:
        few = len(tensor.dims) < 2 and all(length <= FEW for length in tensor.dims)
        if few and tensor.data_type in (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL):
            try:
                found[tensor.name] = numpy_helper.to_array(tensor)
            except (ValueError, TypeError):
                continue  # its elements are not there
    return found


# What exporters compute shapes with.
_ON_SHAPES = frozenset(
    {
        "Add", "And", "Cast", "Concat", "Constant", "ConstantOfShape", "Div", "Equal", "Expand",
        "Gather", "Greater", "Identity", "Less", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or",
        "Range", "ReduceProd", "Reshape", "Slice", "Squeeze", "Sub", "Transpose", "Unsqueeze",
        "Where",
    }
)  # fmt: skip
_OF_SIZE = {"ConstantOfShape": 0, "Expand": 1}  # operators that grow, and the operand that says it


def _result(node: Any, values: dict[str, Any], shapes: dict[str, Any], opsets: Any) -> Any:
    """Run an operator on known whole numbers; None where it is none, or gives much.

    Args:
        opsets: versions of the operators, which say what are operands and what attributes.
    """
    import numpy as np

    first = shapes.get(node.input[0]) if node.input else None
    if node.op_type == "Shape" and _closed(first) and not node.attribute:
        dims = [dim.dim_value for dim in shapes[node.input[0]].shape.dim]
        return np.array(dims, dtype=np.int64)
    if node.op_type not in _ON_SHAPES or len(node.output) != 1 or node.domain:
        return None
    if any(name and name not in values for name in node.input):
        return None
    from onnx import FunctionProto
    from onnx.reference import ReferenceEvaluator

    try:
        if not _small(node, values):
            return None
        given = {n: values[n] for n in node.input if n}
        alone = FunctionProto(
            name="f", input=list(given), output=node.output, node=[node], opset_import=opsets
        )
        result = ReferenceEvaluator(alone).run(None, given, {})[0]
    except Exception:  # whatever the reference thinks of a hostile node: it stays unknown
        return None
    whole = isinstance(result, np.ndarray) and result.dtype.kind in "ib" and result.size <= FEW
    return result if whole else None


def _small(node: Any, values: dict[str, Any]) -> bool:
    """Whether the result cannot be large."""
    import numpy as np

    if node.op_type == "Constant":
        return bool(node.ByteSize() <= 16 * FEW)
    if node.op_type == "Range":
        start, limit, step = (int(values[name]) for name in node.input)
        return step != 0 and abs(limit - start) <= FEW * abs(step)
    at = _OF_SIZE.get(node.op_type)
    if at is None:
        return True
    size = float(np.prod(values[node.input[at]].astype(np.float64)))
    return 0 <= size <= FEW


def _become_constant(node: Any, result: Any) -> None:
    """Turn a node into a constant; its names stay, which in a damaged file may be no text."""
    from onnx import AttributeProto, numpy_helper

    del node.input[:], node.attribute[:]
    node.op_type = "Constant"
    value = node.attribute.add()
    value.name, value.type = "value", AttributeProto.TENSOR
    value.t.CopyFrom(numpy_helper.from_array(result))
