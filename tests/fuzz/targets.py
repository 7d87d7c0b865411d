"""What is fuzzed: for each target, files to begin from, how to spoil them, and commands to run.

To add one: a function that makes a case from a `Random` and samples, and a
line in `TARGETS`.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from hwmodel.graph.yaml import network_yaml
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.trace import dumps
from hwmodel.specs.training import Training
from tests.fuzz.laws import laws_of_prices, price_case
from tests.fuzz.mutations import json_case, network_case, text_case, yaml_case
from tests.fuzz.states import (
    bundled_table,
    bundles,
    bytes_case,
    cached,
    same_table,
    stopped_sweep,
    trained,
    zip_case,
)
from tests.fuzz.streams import laws_of_streams, stream_case
from tests.specs import ACCOUNTING, CHIP, METHOD, NETWORK
from tests.traces import trace

TINY = """\
version: 1
name: tiny
title: What reports of a spoiled chip, method or accounting are made of
input: [3, 6, 6]
layers:
  - {name: conv1, kind: conv, channels: 4, kernel: 3, padding: 1}
  - {name: norm1, kind: batch-norm}
  - {name: act1, kind: activation}
  - {name: conv2, kind: conv, channels: 4, kernel: 3, stride: 2}
  - {name: fc1, kind: linear, features: 10}
"""
TILING = {
    "tiles": [
        dict.fromkeys(("M", "N", "C", "H", "W", "HF", "WF"), 1) | {"level": x, "held": "F"}
        for x in "210"
    ]
}
CONV = "N=1,M=4,C=3,H=6,W=6,K=3,pad=1"


SWEEP = """\
version: 1
name: s
title: t
network: tiny.yaml
hardware: [ascend, v100]
method: [fp, bold]
accounting: paper
batch: [1, 2]
baseline: fp
axes:
  - hardware.levels.L1.capacity: [256 KiB, 1 MiB]
  - hardware.levels.L2.capacity: {times: [0.25, 1]}
derived:
  accounting.widths.boolean_vote_bits: {of: accounting.widths.boolean_signal_bits}
constraints:
  - hardware.levels.L1.capacity <= hardware.levels.L2.capacity
"""


RANGES = """\
accounting.extras.flip_rate: [0.001, 0.1]
hardware.levels.L1.capacity: [256 KiB, 4 MiB]
hardware.levels.L3.read_energy: [20 pJ/B, 80 pJ/B]
"""
EXPLAIN = ["explain", "TINY", "--hardware", "ascend", "--method", "bold"]


class Target(NamedTuple):
    """One kind of input."""

    ending: str
    samples: Callable[[], list[Any]]
    case: Callable[[Random, list[Any]], bytes]
    commands: list[list[str]]  # FILE stands for the case, TINY for a small network
    slow: bool = False  # a case may rightly take seconds
    few: bool = False  # every case takes seconds
    place: str = ""  # of the case in the folder
    around: Callable[[], dict[str, bytes]] = dict  # files that stand about it, by name
    law: Callable[[Path], list[str]] | None = None  # what must hold in the folder afterwards
    caches: bool = False  # whether tilings are kept, in the folder `cache`


def _texts(kind: type, *more: str) -> list[str]:
    return [*(path.read_text(encoding="utf-8") for path in bundled(kind).values()), *more]


def _networks() -> list[str]:
    names = ("vgg-small", "resnet18", "bert-base", "edsr-x2", "deep-mlp")
    return [NETWORK, TINY, *(network_yaml(load_network(name)) for name in names)]


def _traces() -> list[str]:
    return [dumps(trace()), dumps(trace(accuracies=()))]


def _tables(*to: str) -> list[str]:
    """A comparison and a report, of which nothing is searched."""
    quick = ["mlp-784-512-512-10", "--hardware", "ascend", "--accounting", "paper"]
    return [
        _made("compare", "--methods", "fp,bold", *quick, "--optimal-tiles", "no", *to),
        _made("report", "--method", "bold", *quick, *to),
    ]


def _results() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tiny.yaml").write_text(TINY)
        (Path(folder) / "sweep.yaml").write_text(SWEEP)
        _made("sweep", "sweep.yaml", "--jobs", "1", "--out", "out.csv", cwd=folder)
        return [(Path(folder) / "out.csv").read_text(encoding="utf-8")]


def _made(*words: str, cwd: str | None = None) -> str:
    """Standard output of a command."""
    command = [sys.executable, "-m", "hwmodel", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


def _report(**options: str) -> list[str]:
    asked = {"hardware": "ascend", "method": "bold", "accounting": "full"} | options
    return ["report", asked.pop("network", "TINY"), *(
        word for name, value in asked.items() for word in (f"--{name}", value)
    ), "--csv", "-"]  # fmt: skip


TARGETS: dict[str, Target] = {
    "hardware": Target(
        ".yaml",
        lambda: _texts(Hardware, CHIP),
        yaml_case,
        [
            ["hardware", "check", "FILE"],
            _report(hardware="FILE", accounting="paper"),
            _report(hardware="FILE"),
        ],
        slow=True,  # a search on a chip with memories side by side takes seconds (docs/limits.md)
    ),
    "method": Target(
        ".yaml",
        lambda: _texts(Method, METHOD),
        yaml_case,
        [["method", "check", "FILE"], _report(method="FILE")],
    ),
    "accounting": Target(
        ".yaml",
        lambda: _texts(Accounting, ACCOUNTING),
        yaml_case,
        [["accounting", "check", "FILE"], _report(accounting="FILE")],
    ),
    "training": Target(
        ".yaml", lambda: _texts(Training), yaml_case, [["training", "check", "FILE"], _report(training="FILE")]
    ),
    "network": Target(
        ".yaml",
        _networks,
        network_case,
        [
            ["network", "check", "FILE"],
            ["network", "show", "FILE", "--csv", "-"],
            ["network", "show", "FILE", "--yaml"],
            _report(network="FILE", accounting="paper"),
            _report(network="FILE", method="fp"),
            ["train", "--network", "FILE", "--epochs", "1", "--trace", "made.json"],
        ],
        slow=True,
    ),
    "trace": Target(".json", _traces, json_case, [_report(network="conv-small", trace="FILE", accounting="paper")]),
    "tiling": Target(
        ".json",
        lambda: [json.dumps(TILING)],
        json_case,
        [["tile", "--hardware", "ascend", "--conv", CONV, "--bits", "16,16,16", "--tiles", "FILE", "--json"]],
    ),
    "options": Target(
        ".txt",
        lambda: [CONV, CONV + ",stride=2x1,dilation=1,groups=1", "16,16,16", "vgg-small", "ascend,v100", "fp,bold"],
        text_case,
        [
            ["tile", "--hardware", "ascend", "--conv", "TEXT", "--bits", "16,16,16", "--json"],
            ["tile", "--hardware", "ascend", "--conv", CONV, "--bits", "TEXT", "--json"],
            ["compare", "TINY", "--hardware", "TEXT", "--methods", "fp", "--csv", "-"],
            ["compare", "TINY", "--hardware", "ascend", "--methods", "TEXT", "--csv", "-"],
            ["compare", "TINY", "--hardware", "ascend", "--methods", "fp", "--batch", "TEXT", "--csv", "-"],
            ["compare", "TINY", "--TEXT", "ascend", "--methods", "fp"],
            ["network", "check", "TEXT"],
            ["TEXT"],
        ],
        slow=True,
    ),
    "explain": Target(
        ".txt",
        lambda: ["conv1", "fc1", "forward", "backward-weight", "inference", "3,6,6", "5", "md"],
        text_case,
        [
            [*EXPLAIN, "--layer", "TEXT"],
            [*EXPLAIN, "--layer", "conv1", "--pass", "TEXT"],
            [*EXPLAIN, "--layer", "conv1", "--mode", "TEXT"],
            [*EXPLAIN, "--layer", "conv1", "--input-shape", "TEXT"],
            [*EXPLAIN, "--layer", "conv1", "--batch", "TEXT"],
            [*EXPLAIN, "--layer", "conv1", "--output", "made.TEXT"],
        ],
        slow=True,
    ),
    "ranges": Target(
        ".yaml",
        lambda: [RANGES],
        yaml_case,
        [["sensitivity", "TINY", "--hardware", "ascend,v100", "--methods", "fp,bold", "--samples", "2",
          "--accounting", "paper", "--jobs", "1", "--ranges", "FILE", "--csv", "-"]],
        slow=True,
    ),
    "table": Target(".csv", lambda: _tables("--csv", "-"), text_case, [["plot", "FILE", "-o", "made.svg"], ["verify", "FILE"]], slow=True),
    "json": Target(".json", lambda: _tables("--format", "json", "-o", "-"), json_case, [["verify", "FILE"]], slow=True),
    "results": Target(
        ".csv",
        _results,
        text_case,
        [
            ["best", "FILE", "--where", "unit == pJ", "--csv", "-"],
            ["best", "FILE", "--by", "hardware.levels.L1.capacity", "--csv", "-"],
            ["plot", "FILE", "-o", "made.svg", "--where", "unit == pJ"],
        ],
        slow=True,
    ),
    "sweep": Target(
        ".yaml",
        lambda: [SWEEP],
        yaml_case,
        [["sweep", "FILE", "--dry-run"], ["sweep", "FILE", "--jobs", "1", "--out", "made.csv"]],
        slow=True,
    ),
}  # fmt: skip

PART, MANIFEST = "made.csv.parts/part-000000.txt", "made.csv.parts/manifest.json"
TILINGS, CHECKPOINT = "cache/tilings.sqlite", "made.json.checkpoint.npz"
RESUMED = ["sweep", "sweep.yaml", "--jobs", "1", "--out", "made.csv", "--resume"]


FEW = """\
version: 1
name: s
title: t
network: tiny.yaml
hardware: v100
method: fp
mode: inference
axes:
  - hardware.arithmetic.mac.32: {times: [1, 2]}
"""


def _stopped() -> dict[str, bytes]:
    return stopped_sweep(FEW, TINY)[0]


def _swept(folder: Path) -> list[str]:
    return same_table("made.csv", stopped_sweep(FEW, TINY)[1])(folder)


def _cached() -> dict[str, bytes]:
    return cached(TINY)


def _right(folder: Path) -> list[str]:
    return same_table("made.csv", _cached()["right.csv"])(folder)


def _plain_chips() -> list[str]:
    """Chips that every search knows: without fan-outs and arrays."""
    return [text for text in _texts(Hardware) if "fanout:" not in text and "array:" not in text]


TARGETS |= {
    "prices": Target(
        ".yaml",
        _plain_chips,
        price_case,
        [
            _report(hardware="FILE", accounting="paper"),
            ["tile", "--hardware", "FILE", "--conv", CONV, "--bits", "16,16,16", "--json"],
        ],
        slow=True,
        few=True,
        law=laws_of_prices,
    ),
    "bundle": Target(".zip", lambda: [*bundles(TINY)], zip_case, [["verify", "FILE"]], slow=True),
    "part": Target(
        "",
        lambda: [_stopped()[PART]],
        bytes_case,
        [RESUMED],
        slow=True,
        place=PART,
        around=_stopped,
        law=_swept,
    ),
    "manifest": Target(
        "",
        lambda: [_stopped()[MANIFEST]],
        bytes_case,
        [RESUMED],
        slow=True,
        place=MANIFEST,
        around=_stopped,
        law=_swept,
    ),
    "cache": Target(
        "",
        lambda: [_cached()[TILINGS]],
        bytes_case,
        [[*_report()[:-1], "made.csv"]],
        slow=True,
        place=TILINGS,
        around=_cached,
        law=_right,
        caches=True,
    ),
}


def _beside() -> dict[str, bytes]:
    """What the commands of closed streams are given."""
    files, right = stopped_sweep(FEW, TINY)
    table, bundle = bundled_table(TINY)
    return {"sweep.yaml": files["sweep.yaml"], "right.csv": right, "t.csv": table, "s.zip": bundle}


TARGETS["streams"] = Target(
    ".txt",
    lambda: ["4 open closed broken"],
    stream_case,
    [],
    slow=True,
    few=True,
    around=_beside,
    law=laws_of_streams,
)
try:
    import sklearn  # noqa: F401
except ImportError:  # an extra
    pass
else:
    TARGETS["checkpoint"] = Target(
        "",
        lambda: [trained()[CHECKPOINT]],
        bytes_case,
        [["train", "--epochs", "1", "--trace", "made.json", "--resume"]],
        slow=True,
        place=CHECKPOINT,
        around=trained,
    )

try:
    from tests.fuzz.onnx_cases import onnx_case, onnx_samples
except ImportError:  # an extra
    pass
else:
    TARGETS["onnx"] = Target(
        ".onnx",
        onnx_samples,
        onnx_case,
        [["network", "check", "FILE"], ["network", "import", "FILE", "-o", "made.yaml"]],
        slow=True,
    )
