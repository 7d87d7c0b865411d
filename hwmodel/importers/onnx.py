"""ONNX files -> networks.

Shapes come from the `onnx` package's own inference; weights are never read. The batch that the
file is made for (dimension 0 of its first input) is taken out: a network is of one image.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from stat import S_ISREG
from typing import Any

from hwmodel.errors import HwmodelError, ShapeError, SpecError
from hwmodel.graph.layers.base import MAX_EXTENT
from hwmodel.graph.network import Network
from hwmodel.importers.graph import text
from hwmodel.importers.onnx_branches import with_chosen_branches
from hwmodel.importers.onnx_contents import STANDARD, Contents, contents_of, forget_files
from hwmodel.importers.onnx_functions import inlined
from hwmodel.importers.onnx_reader import Reader
from hwmodel.importers.onnx_shapes import inferred_shapes, with_computed_shapes
from hwmodel.importers.onnx_stand_ins import as_they_were, stand_in
from hwmodel.importers.wire import MAX_NODES, without_weights
from hwmodel.specs.arguments import expect, path_of, several, whole
from hwmodel.specs.inputs import note_input

__all__ = ["from_onnx", "input_shapes"]

SMALL = 2**20  # B; a file up to this size is read as it is
LARGEST = 2**31 - 1  # B; what a protocol buffer can hold


def from_onnx(path: str | Path, input_shapes: Mapping[str, Sequence[int]] | None = None) -> Network:
    """Read the network of an ONNX file, for one image.

    Args:
        input_shapes: dimensions of inputs by name, where the file leaves them open. An open first
            dimension is the batch, and 1.

    Raises: SpecError where the file cannot be read, ShapeError where shapes do not fit or are not
        known; HwmodelError where the package onnx is missing.
    """
    path, where, shapes = path_of("path", path), str(path), _stated(input_shapes)
    model = _model(path)
    for info in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        _open(info)
    contents = contents_of(model.graph)
    _see_each_given_once(contents, where)
    _bind_inputs(contents.inputs, where, shapes)
    if any(node.operator == "If" for node in contents.nodes):
        contents = contents_of(with_chosen_branches(model, where).graph)
        _see_each_given_once(contents, where)
    stand_in(model.graph, contents.nodes)
    computed = any(node.operator == "Shape" for node in contents.nodes)
    model = inferred_shapes(model, where, computed=computed)
    reader = Reader(where, contents, model.graph)
    try:
        network = reader.network(path.stem)
    except ShapeError:
        if not reader.unknown:
            raise
    if reader.unknown:
        completed = with_computed_shapes(model, where).graph
        nodes = as_they_were(contents_of(completed).nodes, contents.nodes)
        network = Reader(where, contents._replace(nodes=nodes), completed).network(path.stem)
    return network


def _stated(shapes: Mapping[str, Sequence[int]] | None) -> dict[str, Sequence[int]]:
    """Check the shapes that a caller gives. Raises: HwmodelError."""
    if shapes is None:
        return {}
    rule = "a mapping of names to dimensions, as {'images': (1, 3, 224, 224)}"
    expect(Mapping, "input_shapes", shapes, rule)
    return {
        name: [whole(f"input_shapes {name}", n, 1, MAX_EXTENT) for n in several(
            f"input_shapes {name}", dims, "a list of dimensions")]
        for name, dims in shapes.items()
    }  # fmt: skip


def input_shapes(stated: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read shapes from words like "images=1,3,224,224". Raises: SpecError.

    >>> input_shapes(["x=1,3,224,224"])
    {'x': (1, 3, 224, 224)}
    """
    shapes = {}
    for word in stated:
        name, _, numbers = word.rpartition("=")
        parts = numbers.split(",")
        if not name or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            raise SpecError(f"--input-shape {word!r}: write name=1,3,224,224, all of them above 0")
        shapes[name] = tuple(map(int, parts))
    return shapes


def _package() -> Any:
    try:
        import onnx
    except ImportError:
        raise HwmodelError(
            "reading ONNX files needs the package onnx: pip install 'hwmodel[onnx]'"
        ) from None
    return onnx


def _model(path: Path) -> Any:
    """Parse the file without its large weights. Raises: SpecError."""
    onnx = _package()
    from google.protobuf.message import DecodeError

    try:
        model = onnx.ModelProto.FromString(_bytes(path))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    except DecodeError:
        raise SpecError(f"{path}: is no ONNX file that can be read, or only part of one") from None
    forget_files(model)
    for opset in model.opset_import:
        if opset.domain in STANDARD:  # inference knows one name of it
            opset.domain = ""
    if not model.graph.node:
        raise SpecError(f"{path}: is empty, or holds no operator of an ONNX graph")
    if len(model.graph.node) > MAX_NODES:
        raise SpecError(f"{path}: more than {MAX_NODES:,} operators")
    return inlined(model, str(path))


def _bytes(path: Path) -> bytes:
    there = note_input(path)
    found = there.stat()
    if not S_ISREG(found.st_mode):  # a device or a pipe need not end
        raise SpecError(f"{path}: is no file, but a folder, a device or a pipe")
    size = found.st_size
    if size > LARGEST:
        raise SpecError(f"{path}: {size:,} B; an ONNX file has at most {LARGEST:,}")
    if size <= SMALL:
        return there.read_bytes()
    with there.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return without_weights(memoryview(mapped), str(path))


def _see_each_given_once(contents: Contents, where: str) -> None:
    """See that every tensor comes from one place; of two, none is meant. Raises: SpecError."""
    given = {*contents.stored, *(info.name for info in contents.inputs)}
    given |= {tensor.values.name for tensor in contents.sparse}
    for node in contents.nodes:
        for name in filter(None, node.outputs):
            if name in given:
                raise SpecError(
                    f"{where}: {node.operator} gives {text(name)!r}, which is given before; "
                    "every tensor has a name of its own"
                )
            given.add(name)


def _open(info: Any) -> None:
    """Leave dimensions open that are -1, as some exporters write open ones."""
    for dim in info.type.tensor_type.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value == -1:
            dim.ClearField("dim_value")


def _bind_inputs(inputs: Sequence[Any], where: str, shapes: dict[str, Sequence[int]]) -> None:
    """Give every input its dimensions. Raises: ShapeError, SpecError."""
    names = {given.name for given in inputs}
    unknown = [name for name in shapes if name not in names]
    if unknown:
        listed = ", ".join(given.name for given in inputs)
        raise SpecError(f"{where}: has no input {unknown[0]!r}; its inputs are {listed}")
    symbols: dict[str, int] = {}
    for given in inputs:
        if given.name in shapes:
            _bind(given, where, shapes[given.name], symbols)
    for given in inputs:
        _see_closed(given, where, symbols)


def _bind(given: Any, where: str, shape: Sequence[int], symbols: dict[str, int]) -> None:
    dims = given.type.tensor_type.shape.dim
    stated = given.type.tensor_type.HasField("shape")
    if stated and len(dims) != len(shape):
        raise SpecError(f"{where}: input {given.name} has {len(dims)} dimensions, not {len(shape)}")
    if not stated:
        for _ in shape:
            dims.add()
    for dim, length in zip(dims, shape, strict=True):
        if dim.HasField("dim_value") and dim.dim_value != length:
            raise SpecError(
                f"{where}: input {given.name} is {_shown(dims)}; {list(shape)} differs where the "
                "file leaves nothing open"
            )
        symbol = dim.dim_param
        if symbol and symbols.setdefault(symbol, length) != length:
            raise SpecError(
                f"{where}: input {given.name}: {list(shape)} makes {symbol} {length}, which is "
                f"{symbols[symbol]} already"
            )
        dim.dim_value = length


def _see_closed(given: Any, where: str, symbols: Mapping[str, int]) -> None:
    """Set an open batch to 1; refuse any other open dimension that is not stated."""
    if not given.type.HasField("tensor_type"):
        raise ShapeError(f"{where}: input {given.name} is no tensor, but a sequence or a map")
    tensor = given.type.tensor_type
    known, shown = tensor.HasField("shape"), _shown(tensor.shape.dim)
    for index, dim in enumerate(tensor.shape.dim):
        if not dim.HasField("dim_value"):
            length = symbols.get(dim.dim_param, 1 if index == 0 else 0)
            known = known and length > 0
            if length:
                dim.dim_value = length
        elif dim.dim_value < 1:
            raise ShapeError(f"{where}: input {given.name} is {shown}; all have to be above 0")
    if not known:
        raise ShapeError(
            f"{where}: input {given.name} is {shown}, which leaves dimensions open; "
            f"state them with --input-shape {quote(f'{given.name}={_example(tensor)}')}"
        )


def _example(tensor: Any) -> str:
    """An input's dimensions, those that the file leaves open as an image or a sequence may be."""
    dims = tensor.shape.dim
    usual = (1, 3, 224, 224) if len(dims) in (0, 4) else (1, *(128,) * (len(dims) - 1))
    stated = [dim.dim_value if dim.HasField("dim_value") else 0 for dim in dims] or usual
    return ",".join(str(one or other) for one, other in zip(stated, usual, strict=True))


def _shown(dims: Any) -> str:
    words = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in dims]
    return f"[{', '.join(words)}]"
