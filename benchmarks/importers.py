"""Importing an ONNX file against the package's own shape inference on the same file.

    python benchmarks/importers.py

In one process, warm, the four are taken in turn, and of each the least time of many is kept:

inference   `onnx.load` and `onnx.shape_inference.infer_shapes`: from the file to shapes in Python
path        `onnx.shape_inference.infer_shapes_path`: from file to file, nothing of it in Python
import      `hwmodel.importers.onnx.from_onnx`: from the file to a network
reading     what goes before a first layer: the file parsed, its shapes inferred, every operator and
            every shape read once from Python; an importer that reads all of them does no less

Then the same as whole commands, each in a fresh process with its bytecode at hand, as after an
install: inference and path by a line of Python, the import by `from_onnx` in such a line and by
`hwmodel network import`.

The files are the light ones of the onnx package, which have no weights, and one of sixteen
convolutions with 44 MB of them. Times are of the processor [ms], ratios are import over the other.

Where torch is installed, a ResNet-50 on its meta device, one image and two:

counter     `torch.utils.flop_counter` around one forward pass
from_torch  the module -> a network
export      `torch.export.export`, which from_torch calls once, of several images twice
"""

from __future__ import annotations

import os
import sys
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
RUNS = 6  # of every command


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


def commands(path: Path, folder: Path) -> dict[str, list[str]]:
    """What Python is given, by name."""
    file, inferred = str(path), str(folder / "inferred.onnx")
    return {
        "inference": ["-c", f"import onnx; from onnx.shape_inference import infer_shapes; "
                      f"infer_shapes(onnx.load({file!r}))"],
        "path": ["-c", f"from onnx.shape_inference import infer_shapes_path; "
                 f"infer_shapes_path({file!r}, {inferred!r})"],
        "from_onnx": ["-c", f"from hwmodel import from_onnx; from_onnx({file!r})"],
        "command": ["-m", "hwmodel", "network", "import", file, "-o", str(folder / "made.yaml")],
    }  # fmt: skip


def process_ms(arguments: list[str], environment: dict[str, str]) -> float:
    """Processor time of a fresh process, its start included [ms]."""
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    words = [sys.executable, *arguments]
    child = os.posix_spawn(sys.executable, words, environment, file_actions=quiet)
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{' '.join(words)}: exit status {status}")
    return 1000 * (used.ru_utime + used.ru_stime)


def in_one_process(files: list[Path], folder: Path) -> None:
    """Print the table of function calls."""
    print(
        f"{'file':22} {'operators':>9} {'layers':>6} {'inference':>9} {'path':>7} {'import':>7} "
        f"{'reading':>7} {'/inference':>10} {'/path':>7}"
    )
    for path in files:
        own, other, ours, floor = least(
            [
                partial(inference, path),
                partial(shape_inference.infer_shapes_path, str(path), str(folder / "o.onnx")),
                partial(from_onnx, path),
                partial(reading, path),
            ]
        )
        operators = len(onnx.load(path).graph.node)
        print(
            f"{path.stem:22} {operators:9} {len(from_onnx(path).layers):6} {own:9.2f} "
            f"{other:7.2f} {ours:7.2f} {floor:7.2f} {ours / own:10.2f} {ours / other:7.2f}"
        )


def as_commands(files: list[Path], folder: Path) -> None:
    """Print the table of whole commands; every kind once before it counts."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    print(
        f"\n{'file':22} {'inference':>9} {'path':>7} {'from_onnx':>9} {'command':>7} "
        f"{'from_onnx /inference':>20} {'/path':>5} {'command /inference':>18} {'/path':>5}"
    )
    for words in commands(files[0], folder).values():
        process_ms(words, environment)
    for path in files:
        taken: dict[str, list[float]] = {}
        for _ in range(RUNS):
            for name, words in commands(path, folder).items():
                taken.setdefault(name, []).append(process_ms(words, environment))
        own, other, ours, whole = (min(times) for times in taken.values())
        print(
            f"{path.stem:22} {own:9.0f} {other:7.0f} {ours:9.0f} {whole:7.0f} {ours / own:20.2f} "
            f"{ours / other:5.2f} {whole / own:18.2f} {whole / other:5.2f}"
        )


class Bottleneck:
    """A block of ResNet-50, made once torch is there."""

    def __new__(cls, before: int, channels: int, stride: int, project: bool) -> Any:
        """Return the module."""
        from torch import nn

        def conv(ins: int, outs: int, kernel: int, step: int = 1) -> list[Any]:
            one = nn.Conv2d(ins, outs, kernel, step, kernel // 2, bias=False)
            return [one, nn.BatchNorm2d(outs)]

        class Block(nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                relu = nn.ReLU(inplace=True)
                self.path = nn.Sequential(
                    *conv(before, channels, 1), relu, *conv(channels, channels, 3, stride), relu,
                    *conv(channels, 4 * channels, 1),
                )  # fmt: skip
                self.shortcut = nn.Sequential(
                    *(conv(before, 4 * channels, 1, stride) if project else ())
                )

            def forward(self, x: Any) -> Any:
                return nn.functional.relu(self.path(x) + self.shortcut(x))

        return Block()


def resnet50() -> Any:
    """The module."""
    from torch import nn

    layers: list[Any] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    before = 64
    for channels, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for index in range(blocks):
            stride = 2 if index == 0 and channels > 64 else 1
            layers.append(Bottleneck(before, channels, stride, index == 0))
            before = 4 * channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def of_torch() -> None:
    """Print the table of PyTorch modules."""
    try:
        import torch
        from torch.utils.flop_counter import FlopCounterMode
    except ImportError:
        print("\nno torch")
        return
    from hwmodel.importers.torch import from_torch

    with torch.device("meta"):
        module = resnet50().eval()
    print(f"\n{'ResNet-50':22} {'counter':>9} {'from_torch':>10} {'export':>9} {'/counter':>9}")
    for images in (1, 2):
        x = torch.zeros(images, 3, 224, 224, device="meta")

        def counter(x: Any = x) -> Any:
            with FlopCounterMode(display=False), torch.no_grad():
                return module(x)

        def export(x: Any = x) -> Any:
            return torch.export.export(module, (x,), strict=False)

        own, ours, floor = least([counter, partial(from_torch, module, x), export])
        name = f"{images} image{'s' * (images > 1)}"
        print(f"{name:22} {own:9.0f} {ours:10.0f} {floor:9.0f} {ours / own:9.1f}")


def main() -> None:
    """Print all tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [*sorted(LIGHT.glob("*.onnx")), with_weights(folder / "with_weights.onnx")]
        in_one_process(files, folder)
        as_commands(files, folder)
    of_torch()


if __name__ == "__main__":
    main()
