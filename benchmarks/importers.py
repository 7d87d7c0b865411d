"""Importing an ONNX file against the package's own shape inference on the same file.

    python benchmarks/importers.py

In one process, warm, the four are taken in turn, and of each the least time of many is kept:

inference   `onnx.load` and `onnx.shape_inference.infer_shapes`: from the file to shapes in Python
path        `onnx.shape_inference.infer_shapes_path`: from file to file, nothing of it in Python
import      `hwmodel.importers.onnx.from_onnx`: from the file to a network
reading     what goes before a first layer: the file parsed, its shapes inferred, every operator and
            every shape read once from Python; an importer that reads all of them does no less

The files are the light ones of the onnx package, which have no weights, and one of sixteen
convolutions with 44 MB of them. Times are of the processor [ms], ratios are import over the other.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper, shape_inference

from hwmodel.importers.onnx import from_onnx
from hwmodel.importers.onnx_contents import contents_of
from hwmodel.importers.onnx_shapes import inferred_shapes

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
SECONDS = 2.0  # for one file


def inference(path: Path) -> Any:
    """Shapes of a file, in Python."""
    return shape_inference.infer_shapes(onnx.load(path))


def reading(path: Path) -> Any:
    """What an importer needs of a file, as plain tuples."""
    model = onnx.ModelProto.FromString(path.read_bytes())
    contents = contents_of(model.graph)
    inferred = inferred_shapes(model, str(path), computed=False).graph
    shapes = {
        info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in (*inferred.value_info, *inferred.output)
    }
    return contents, shapes


def least(functions: list[Callable[[], Any]]) -> list[float]:
    """The least processor time of each, taken in turn [ms]."""
    times = [float("inf")] * len(functions)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for index, function in enumerate(functions):
            start = time.process_time()
            function()
            times[index] = min(times[index], time.process_time() - start)
    return [1000 * seconds for seconds in times]


def with_weights(path: Path) -> Path:
    """A file of sixteen 3 x 3 convolutions with their weights."""
    nodes, tensors, before = [], [], 64
    for index in range(16):
        channels = 64 * 2 ** (index // 4)
        dims = (channels, before, 3, 3)
        raw = b"\0" * 4 * prod(dims)
        tensors.append(helper.make_tensor(f"w{index}", TensorProto.FLOAT, dims, raw, raw=True))
        made = f"c{index}"
        nodes.append(helper.make_node("Conv", [f"{index}", f"w{index}"], [made], pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [made], [f"{index + 1}"]))
        before = channels
    given = helper.make_tensor_value_info("0", TensorProto.FLOAT, [1, 64, 56, 56])
    result = helper.make_tensor_value_info("16", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [given], [result], tensors)
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


def main() -> None:
    """Print the table."""
    print(
        f"{'file':22} {'operators':>9} {'layers':>6} {'inference':>9} {'path':>7} {'import':>7} "
        f"{'reading':>7} {'/inference':>10} {'/path':>7}"
    )
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "inferred.onnx")
        files = [*sorted(LIGHT.glob("*.onnx")), with_weights(Path(folder) / "with_weights.onnx")]
        for path in files:
            own, other, ours, floor = least(
                [
                    partial(inference, path),
                    partial(shape_inference.infer_shapes_path, str(path), out),
                    partial(from_onnx, path),
                    partial(reading, path),
                ]
            )
            operators = len(onnx.load(path).graph.node)
            print(
                f"{path.stem:22} {operators:9} {len(from_onnx(path).layers):6} {own:9.2f} "
                f"{other:7.2f} {ours:7.2f} {floor:7.2f} {ours / own:10.2f} {ours / other:7.2f}"
            )


if __name__ == "__main__":
    main()
