"""Small spec files that are right, for tests to break, and chips made of numbers."""

import os
from pathlib import Path

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled
from hwmodel.specs.hardware import Hardware

CHIP = """\
version: 1
name: chip
title: A chip
energy_unit: pJ
sources: {me: "me, 2024"}
levels:
  - {level: 2, name: DRAM, holds: [I, F, O], capacity: unlimited, access_energy: 50 pJ/B, source: me}
  - {level: 1, name: SRAM, capacity: 64 KiB, access_energy: 5 pJ/B, source: me}
  - {level: 0, name: RF, capacity: 1 KiB, access_energy: 0.5 pJ/B, source: me}
arithmetic:
  - {operation: mac, bits: 32, energy: 4.6 pJ, source: me}
"""

NETWORK = """\
version: 1
name: net
title: A network
input: [3, 8, 8]
layers:
  - {name: conv1, kind: conv, channels: 8, kernel: 3, padding: 1}
  - {name: act1, kind: activation}
  - {name: pool1, kind: max-pool, kernel: 2}
  - {name: conv2, kind: conv, channels: 4, kernel: 3, stride: 2}
  - {name: fc1, kind: linear, features: 10}
"""

METHOD = """\
version: 1
name: mine
title: Mine
sources: {me: "me, 2024"}
layers:
  - {where: {position: [first, last]}, precision: fp, source: me}
  - weights: 1
    weight_signal: full_precision
    arithmetic: {forward: logic, backward_input: add, backward_weight: add}
    update: optimizer
    source: me
tensors:
  - {where: {kind: [activation]}, bits: 1, signal: full_precision, source: me}
  - {where: {kind: [conv, linear]}, bits: preactivation, signal: full_precision, source: me}
  - {bits: full_precision, signal: full_precision, source: me}
extra_work:
  - {what: scaling, where: {kind: [conv, linear]}, source: me}
"""

# Four memories one in another, as a chip of 168 PEs is not: what `eyeriss` was. In 16-bit MACs.
STACKED = str(Path(__file__).parent / "data" / "eyeriss-stacked.yaml")

# The preset `paper` under another name, for tests to change one choice of.
ACCOUNTING = (
    bundled(Accounting)["paper"].read_text(encoding="utf-8").replace("name: paper", "name: mine")
)


def written(folder, text, *changes, name="file.yaml"):
    """A path to `text` after (old, new) replacements, each of which must find its place."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# What `full` counts, on tiles that take no search.
GREEDY = """\
version: 1
name: greedy
title: t
based_on: full
counting:
  search: level-by-level
  stationary: filter
  weight_gradient: signal-as-filters
  transfers: upper
"""

# Commands under the accounting of the source, which takes no long search.
COMPARE = (
    "compare",
    "vgg-small-1fc",
    "--accounting",
    "paper",
    "--hardware",
    "ascend,v100",
    "--methods",
    "fp,bold",
)
REPORT = (
    "report",
    "vgg-small-1fc",
    "--accounting",
    "paper",
    "--hardware",
    "ascend",
    "--method",
    "bold",
)


def chip(*levels, mac=2.0, operations=1, split=None):
    """A chip of (capacity in bits or None, read and write energy per bit), the outermost first.

    `split`, three of them for I, F and O, stands for one more level, the innermost.
    """
    shared = [memory(f"L{i}", level, "IFO") for i, level in enumerate(levels)]
    if split:
        parts = [memory(f"S{x}", part, x) for x, part in zip("IFO", split, strict=True)]
        shared.append({"name": "S", "split": parts})
    for number, level in enumerate(reversed(shared)):
        level["level"] = number
    price = {
        "operation": "mac",
        "bits": 32,
        "energy": mac,
        "operations": operations,
        "source": "me",
    }
    return Hardware.model_validate(
        {"version": 1, "name": "made", "title": "Made", "energy_unit": "pJ", "levels": shared,
         "arithmetic": [price]}
    )  # fmt: skip


def memory(name, level, holds):
    capacity, read, write = level
    return {
        "name": name,
        "holds": list(holds),
        "capacity": "unlimited" if capacity is None else f"{capacity} bit",
        "read_energy": read,
        "write_energy": write,
        "source": "me",
    }


def unsaid(words):
    """The words of a command without its `--accounting`, for a test that says its own or none."""
    at = words.index("--accounting")
    return (*words[:at], *words[at + 2 :])


# Methods of language models that others stand for: one of each kind is enough on whole networks.
ALIKE = {
    "adafactor", "bf16", "bf16-pure", "dorefa", "fp8", "fp8-lm", "lion", "mxfp4", "mxfp4-backward",
    "mxfp8", "qat-int8", "qlora", "ttq", "twn", "w8a8",
}  # fmt: skip
# Those of the source are alike in fewer ways, and left out but under HWMODEL_TESTS=thorough.
if os.environ.get("HWMODEL_TESTS") != "thorough":
    ALIKE |= {
        "bibert", "binarybert", "bold-8", "bold-bn-kd", "fp32", "ir-net", "lab", "meliusnet", "rad",
        "rbnn", "real2binary", "slb",
    }  # fmt: skip
